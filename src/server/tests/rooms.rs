//! What the rules of Rooms ask of the shell, at real sockets. The peer writes its own bytes.

use std::io::ErrorKind;
use std::net::UdpSocket;

use socket2::SockRef;

use super::*;
use crate::server::Rooms;

const INIT: u8 = 0x0F;
/// Header, no payload, checksum.
const EMPTY: usize = 14;

fn server() -> Server {
    let mut config = on(&["127.0.0.1"]);
    config.rooms = Some(Rooms {
        port: 0,
        ..Rooms::default()
    });
    Server::bind(config).expect("bound")
}

/// A client that has its token, and is bound.
struct Client {
    stream: TcpStream,
    socket: UdpSocket,
    token: [u8; 4],
    id: u16,
}

impl Client {
    fn enter(server: &mut Server) -> Self {
        let to = server.addresses()[0].tcp[0];
        let mut stream = TcpStream::connect(to).expect("connected");
        stream.set_nonblocking(true).expect("set");
        let mut assign = [0; 20];
        until(server, |_| stream.read_exact(&mut assign).ok());
        assert_eq!(assign[..4], [1, 0x10, 0, 1]);
        let mut client = Self {
            stream,
            socket: endpoint("127.0.0.1", server.addresses()[0].udp[0]),
            token: assign[12..16].try_into().expect("four bytes"),
            id: 0,
        };
        let bound = stat(server, "bindings");
        client.init();
        until(server, |server| {
            (stat(server, "bindings") > bound).then_some(())
        });
        client
    }

    fn init(&mut self) {
        self.id += 1;
        let mut packet = vec![1, INIT];
        packet.extend(self.id.to_be_bytes());
        packet.extend(self.token);
        packet.extend([0; 4]);
        let sum: u16 = packet.iter().map(|byte| u16::from(*byte)).sum();
        packet.extend(sum.to_be_bytes());
        assert_eq!(packet.len(), EMPTY);
        self.socket.send(&packet).expect("sent");
    }

    fn is_connected(&self) -> bool {
        let said = self.stream.peek(&mut [0]);
        said.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
    }
}

fn until<T>(server: &mut Server, mut done: impl FnMut(&Server) -> Option<T>) -> T {
    for _ in 0..1_000 {
        server.turn(Some(MOMENT / 10)).expect("a turn");
        if let Some(done) = done(server) {
            return done;
        }
    }
    panic!("it never happens");
}

fn stat(server: &Server, name: &str) -> u64 {
    let stats = server.stats();
    stats.get("rooms", name).expect("a counter of this name")
}

fn turn(server: &mut Server) {
    assert!(server.turn(Some(Duration::ZERO)).expect("a turn"));
}

#[test]
fn r27_listening_time() {
    let mut server = server();
    let client = Client::enter(&mut server);
    // Twenty seconds in which nobody was heard make nobody late …
    server.clock.stall(20_000);
    turn(&mut server);
    assert!(client.is_connected());
    // … and ten in which the client could have spoken do.
    for _ in 0..60 {
        server.clock.stall(200);
        turn(&mut server);
    }
    until(&mut server, |server| {
        (stat(server, "ended-timed-out") == 1).then_some(())
    });
    assert_eq!(stat(&server, "sessions"), 0);
}

#[test]
fn r38_a_peers_failure_is_its_own() {
    let mut server = server();
    let mut stays = Client::enter(&mut server);
    let goes = Client::enter(&mut server);
    SockRef::from(&goes.stream)
        .set_linger(Some(Duration::ZERO))
        .expect("set");
    drop(goes);
    until(&mut server, |server| {
        (stat(server, "ended-left") == 1).then_some(())
    });
    let heard = stat(&server, "datagrams-in");
    stays.init();
    until(&mut server, |server| {
        (stat(server, "datagrams-in") > heard).then_some(())
    });
    assert!(stays.is_connected());
    assert_eq!(stat(&server, "sessions"), 1);
}
