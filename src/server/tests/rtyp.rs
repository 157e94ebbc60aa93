//! What the rules of RTYP ask of the shell, at real sockets. The peer writes its own bytes.

use std::io::{ErrorKind, Write};
use std::net::UdpSocket;

use socket2::{Domain, SockRef, Socket, Type};

use super::*;
use crate::server::Rtyp;

/// A server whose time only the test lets pass.
struct Hall {
    server: Server,
}

/// A player by its two sockets.
struct Player {
    stream: TcpStream,
    socket: UdpSocket,
    token: [u8; 4],
    sequence: u16,
}

const CONNECT: u8 = 1;
const ACCEPT: u8 = 2;
const PING: u8 = 3;
const PONG: u8 = 4;
const LOGOUT_TIMED_OUT: [u8; 4] = [2, 0, 4, 2];

impl Hall {
    fn new(configure: impl FnOnce(&mut Config)) -> Self {
        let mut config = on(&["127.0.0.1"]);
        config.rtyp = Some(Rtyp {
            port: 0,
            games: 16,
            ..Rtyp::default()
        });
        configure(&mut config);
        Self {
            server: Server::bind(config).expect("bound"),
        }
    }

    /// Turns until `done` has something.
    fn until<T>(&mut self, mut done: impl FnMut() -> Option<T>) -> T {
        for _ in 0..1_000 {
            self.server.turn(Some(MOMENT / 10)).expect("a turn");
            if let Some(done) = done() {
                return done;
            }
        }
        panic!("it never happens");
    }

    /// Lets `ms` milliseconds pass in which the server listens.
    fn pass(&mut self, ms: u64) {
        for step in (0..ms).step_by(200) {
            self.server.clock.stall(200.min(ms - step));
            self.turn();
        }
    }

    fn turn(&mut self) {
        let goes_on = self.server.turn(Some(Duration::ZERO)).expect("a turn");
        assert!(goes_on);
    }

    fn connect(&mut self) -> TcpStream {
        self.connect_from([127, 0, 0, 1])
    }

    /// A connection from `ip` that the server has accepted, and perhaps closed already.
    fn connect_from(&mut self, ip: [u8; 4]) -> TcpStream {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        socket
            .bind(&SocketAddr::from((ip, 0)).into())
            .expect("bound");
        let to = self.server.addresses()[0].tcp[0];
        let accepted = self.stat("accepted");
        socket.connect(&to.into()).expect("connected");
        while self.stat("accepted") == accepted {
            self.server.turn(Some(PATIENCE)).expect("a turn");
        }
        socket.set_nonblocking(true).expect("set");
        socket.into()
    }

    /// Reads what comes next, at least one byte; empty at the end.
    fn read(&mut self, mut stream: &TcpStream) -> Vec<u8> {
        let mut buffer = [0; 64];
        let count = self.until(|| stream.read(&mut buffer).ok());
        buffer[..count].to_vec()
    }

    fn log_in(&mut self, mut stream: TcpStream, name: &str) -> Player {
        let len = u8::try_from(name.len()).expect("a short name");
        let request = [&[len + 4, 0, 1, 1, len, 0], name.as_bytes()].concat();
        stream.write_all(&request).expect("written");
        let accepted = self.read(&stream);
        assert_eq!(accepted[..3], [8, 0, 2], "{accepted:?}");
        let socket = endpoint("127.0.0.1", self.server.addresses()[0].udp[0]);
        socket.set_nonblocking(true).expect("set");
        Player {
            stream,
            socket,
            token: accepted[3..7].try_into().expect("four bytes"),
            sequence: 0,
        }
    }

    fn join(&mut self, name: &str) -> Player {
        let stream = self.connect();
        let mut player = self.log_in(stream, name);
        player.send(CONNECT, &[]);
        self.receive(&player, ACCEPT);
        player
    }

    /// Waits for a datagram of the type `kind`.
    fn receive(&mut self, player: &Player, kind: u8) {
        let mut buffer = [0; 1_500];
        self.until(|| {
            let count = player.socket.recv(&mut buffer).ok()?;
            (count >= 18 && buffer[5] == kind).then_some(())
        });
    }

    /// The player is there: its Ping is answered.
    fn assert_plays(&mut self, player: &mut Player) {
        player.ping();
        self.receive(player, PONG);
        let said = player.stream.peek(&mut [0]);
        assert_eq!(said.expect_err("nothing").kind(), ErrorKind::WouldBlock);
    }

    fn stat(&self, name: &str) -> u64 {
        let stats = self.server.stats();
        stats.get("rtyp", name).expect("a counter of this name")
    }
}

impl Player {
    fn send(&mut self, kind: u8, payload: &[u8]) {
        let sequence = self.sequence.to_le_bytes();
        self.sequence += 1;
        let nothing_heard = [0xFF, 0xFF, 0, 0, 0, 0];
        let head: [&[u8]; 6] = [
            b"RTYP\x01",
            &[kind],
            &sequence,
            &nothing_heard,
            &self.token,
            payload,
        ];
        self.socket.send(&head.concat()).expect("sent");
    }

    fn ping(&mut self) {
        self.send(PING, b"nonce"[..4].try_into().expect("four bytes"));
    }
}

#[test]
fn r26_pending_per_address() {
    let mut hall = Hall::new(|config| config.limit_loopback = true);
    let mut waiting: Vec<TcpStream> = (0..10).map(|_| hall.connect()).collect();
    let eleventh = hall.connect();
    assert_eq!(hall.read(&eleventh), b"", "without a word");
    let elsewhere = hall.connect_from([127, 0, 0, 2]);
    hall.log_in(elsewhere, "elsewhere");
    let first = waiting.remove(0);
    let _playing = hall.log_in(first, "first");
    let another = hall.connect();
    let _playing = hall.log_in(another, "another");
    assert_eq!(hall.stat("pending-refused"), 1);
}

#[test]
fn r26_loopback_is_exempt_unless_told_otherwise() {
    let mut hall = Hall::new(|_| ());
    let mut waiting: Vec<TcpStream> = (0..30).map(|_| hall.connect()).collect();
    let last = waiting.pop().expect("the last");
    hall.log_in(last, "last");
    assert_eq!(hall.stat("pending-refused"), 0);
}

#[test]
fn r27_pending_in_all() {
    let mut hall = Hall::new(|config| config.limits.set("pending", 3).expect("in range"));
    let playing = hall.connect();
    let mut playing = hall.log_in(playing, "playing");
    let waiting: Vec<TcpStream> = (0..3).map(|_| hall.connect()).collect();
    let fourth = hall.connect();
    assert_eq!(hall.read(&waiting[0]), b"", "the one that waited longest");
    for (index, stream) in waiting.into_iter().skip(1).enumerate() {
        hall.log_in(stream, &format!("waited{index}"));
    }
    hall.log_in(fourth, "fourth");
    playing.send(CONNECT, &[]);
    hall.receive(&playing, ACCEPT);
}

#[test]
fn r81_listening_time() {
    let mut hall = Hall::new(|_| ());
    let mut playing = hall.join("playing");
    let waiting = hall.connect();
    for stall_ms in [3_000, 20_000] {
        hall.server.clock.stall(stall_ms);
        hall.turn();
    }
    hall.assert_plays(&mut playing);
    let _waiting = hall.log_in(waiting, "waiting");
    hall.pass(9_000);
    assert_eq!(hall.stat("sessions"), 2, "one to be bound, one to be heard");
    hall.pass(1_500);
    assert_eq!(hall.read(&playing.stream), LOGOUT_TIMED_OUT);
    assert_eq!(hall.stat("sessions"), 0, "while it listens time passes");
}

#[test]
fn r82_what_came_in_time_is_read_before_its_deadline() {
    let mut hall = Hall::new(|_| ());
    let mut playing = hall.join("playing");
    hall.pass(9_800);
    playing.ping();
    hall.server.clock.stall(400);
    hall.turn();
    hall.assert_plays(&mut playing);
}

#[test]
fn r82_after_a_gap_the_sockets_are_read_dry_first() {
    let mut hall = Hall::new(|_| ());
    let mut playing = hall.join("playing");
    let noise = endpoint("127.0.0.1", hall.server.addresses()[0].udp[0]);
    hall.pass(9_800);
    for _ in 0..300 {
        noise.send(b"noise").expect("sent");
    }
    playing.ping();
    // The gap was just noticed, and the deadline has come.
    hall.server.hold_timers();
    hall.server.clock.stall(400);
    let before = hall.stat("datagrams-in");
    hall.turn();
    assert!(
        hall.stat("datagrams-in") - before < 301,
        "one turn is not enough"
    );
    hall.assert_plays(&mut playing);
}

#[test]
fn r91_a_peers_failure_is_its_own() {
    let mut hall = Hall::new(|_| ());
    let mut playing = hall.join("playing");
    for round in 0..5 {
        let gone = hall.join(&format!("gone{round}"));
        // Datagrams to it are refused from now on, and its connection is reset.
        drop(gone.socket);
        hall.pass(1_200);
        let linger = Some(Duration::ZERO);
        SockRef::from(&gone.stream).set_linger(linger).expect("set");
        drop(gone.stream);
        hall.assert_plays(&mut playing);
    }
    let sessions = hall.stat("sessions");
    assert_eq!(sessions, 1, "who failed is gone, and nobody else");
}
