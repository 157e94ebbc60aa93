//! A player written by hand, over real sockets: a stream, an endpoint, and one conversation.

use std::collections::{BTreeMap, VecDeque};
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use socket2::{Domain, SockRef, Socket, Type};

use crate::PATIENCE;
use crate::bytes::{Datagram, Event, LOGIN_ACCEPTED, kind, login_accepted, login_request};

const CONNECT_EVERY: Duration = Duration::from_millis(250);
const PING_EVERY: Duration = Duration::from_secs(1);

/// Connects a stream that waits for nothing longer than a test has patience.
pub fn connect(to: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect_timeout(&to, PATIENCE).expect("the server listens");
    patient(stream)
}

/// The same, from an address of its own.
pub fn connect_from(ip: &str, to: SocketAddr) -> TcpStream {
    let socket = Socket::new(Domain::for_address(to), Type::STREAM, None).expect("a socket");
    let ip: IpAddr = ip.parse().expect("an address");
    let local = SocketAddr::new(ip, 0).into();
    socket.bind(&local).expect("an address of ours");
    socket.connect(&to.into()).expect("the server listens");
    patient(socket.into())
}

fn patient(stream: TcpStream) -> TcpStream {
    stream.set_read_timeout(Some(PATIENCE)).expect("set");
    stream.set_write_timeout(Some(PATIENCE)).expect("set");
    stream.set_nodelay(true).expect("set");
    stream
}

/// All that comes until the end; a reset is no end.
#[track_caller]
pub fn read_all(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).expect("an end, no reset");
    bytes
}

/// Waits until the server has closed, in whichever way, and checks that it said nothing.
#[track_caller]
pub fn closed_without_a_word(stream: &mut TcpStream) {
    match stream.read(&mut [0]) {
        Ok(0) => {}
        Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
        other => panic!("neither closed nor silent: {other:?}"),
    }
}

/// Whether the server has said nothing more so far, and has not closed.
pub fn is_open_and_silent(stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).expect("set");
    let peeked = stream.peek(&mut [0]);
    stream.set_nonblocking(false).expect("set");
    peeked.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}

/// From now on closing the stream resets it.
pub fn reset_on_close(stream: &TcpStream) {
    let linger = SockRef::from(stream).set_linger(Some(Duration::ZERO));
    linger.expect("set");
}

/// A login that was accepted.
pub struct Login {
    pub stream: TcpStream,
    pub token: u32,
    pub number: u8,
    pub udp_port: u16,
}

impl Login {
    /// Logs in.
    #[track_caller]
    pub fn new(server: SocketAddr, name: &str) -> Self {
        Self::over(connect(server), name)
    }

    /// Logs in by this stream.
    #[track_caller]
    pub fn over(mut stream: TcpStream, name: &str) -> Self {
        let request = login_request(name.as_bytes());
        stream.write_all(&request).expect("the server reads");
        Self::answered(stream)
    }

    /// Waits for the answer to a LoginRequest.
    #[track_caller]
    pub fn answered(mut stream: TcpStream) -> Self {
        let mut answer = [0; LOGIN_ACCEPTED];
        stream.read_exact(&mut answer).expect("an answer in time");
        let (token, number, udp_port) = login_accepted(&answer);
        Self {
            stream,
            token,
            number,
            udp_port,
        }
    }

    /// Goes on to play, from an endpoint of the same address, with the server at the address of
    /// the stream.
    pub fn at_udp(self) -> Player {
        let ip = self.stream.local_addr().expect("connected").ip();
        let server = self.stream.peer_addr().expect("connected").ip();
        let socket = UdpSocket::bind((ip, 0)).expect("a port");
        let to = SocketAddr::new(server, self.udp_port);
        Player::new(self, socket, to)
    }

    /// Goes on to play.
    #[track_caller]
    pub fn bind(self) -> Player {
        let mut player = self.at_udp();
        player.bind();
        player
    }
}

/// A player with an endpoint.
pub struct Player {
    pub stream: TcpStream,
    pub socket: UdpSocket,
    /// Where its datagrams go, and all that it hears must come from.
    pub server: SocketAddr,
    pub number: u8,
    /// Whether it speaks when it has heard nothing for a while.
    pub pings: bool,
    /// Data that came, with the sender's number.
    pub data: VecDeque<(u8, Vec<u8>)>,
    /// Events that came, in the order of their ids, once each.
    pub events: Vec<Event>,
    token: u32,
    next: u16,
    /// The newest number that came, and which of the 32 before it.
    seen: Option<(u16, u32)>,
    early: BTreeMap<u16, Event>,
    pinged: Instant,
}

impl Player {
    /// Logs in and binds its endpoint.
    #[track_caller]
    pub fn enter(server: SocketAddr, name: &str) -> Self {
        Login::new(server, name).bind()
    }

    /// One that has not bound its endpoint yet.
    pub fn new(login: Login, socket: UdpSocket, server: SocketAddr) -> Self {
        Self {
            stream: login.stream,
            socket,
            server,
            number: login.number,
            pings: true,
            data: VecDeque::new(),
            events: Vec::new(),
            token: login.token,
            next: 0,
            seen: None,
            early: BTreeMap::new(),
            pinged: Instant::now(),
        }
    }

    /// Sends Connect until the Accept comes.
    #[track_caller]
    pub fn bind(&mut self) {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            self.send(kind::CONNECT, &[]);
            let next = Instant::now() + CONNECT_EVERY;
            while let Some(datagram) = self.hear(next) {
                if datagram.kind == kind::ACCEPT {
                    return;
                }
            }
        }
        panic!("no Accept");
    }

    /// Sends a datagram of its session, with its next number.
    pub fn send(&mut self, kind: u8, payload: &[u8]) {
        let (ack, ack_bits) = self.seen.unwrap_or((0xFFFF, 0));
        let datagram = Datagram {
            kind,
            sequence: self.next,
            ack,
            ack_bits,
            session: self.token,
            payload: payload.to_vec(),
        };
        self.next = self.next.wrapping_add(1);
        let sent = self.socket.send_to(&datagram.bytes(), self.server);
        sent.expect("the system sends");
    }

    /// Sends a Ping; returns what its Pong will carry.
    pub fn ping(&mut self) -> [u8; 4] {
        let nonce = u32::from(self.next).to_le_bytes();
        self.pinged = Instant::now();
        self.send(kind::PING, &nonce);
        nonce
    }

    /// Waits until `deadline` for a datagram, which is answered as the document asks for.
    #[track_caller]
    pub fn hear(&mut self, deadline: Instant) -> Option<Datagram> {
        let mut buffer = [0; 2048];
        loop {
            let wake = match self.pings {
                true => deadline.min(self.pinged + PING_EVERY),
                false => deadline,
            };
            let wait = wake.saturating_duration_since(Instant::now());
            // Zero would stand for ever.
            let wait = wait.max(Duration::from_micros(1));
            self.socket.set_read_timeout(Some(wait)).expect("set");
            match self.socket.recv_from(&mut buffer) {
                Ok((len, from)) => {
                    assert_eq!(from, self.server, "answered from elsewhere");
                    if let Some(datagram) = self.take(&buffer[..len]) {
                        return Some(datagram);
                    }
                }
                Err(error) if is_nothing(error.kind()) => {}
                Err(error) => panic!("the endpoint fails: {error}"),
            }
            if self.pings && self.pinged.elapsed() >= PING_EVERY {
                self.ping();
            }
            if deadline <= Instant::now() {
                return None;
            }
        }
    }

    /// Pings, and waits for the answer: all that was on its way to the server is heard, and
    /// nothing is on its way to the player but what the server says by itself.
    #[track_caller]
    pub fn is_heard(&mut self) {
        let nonce = self.ping();
        let deadline = Instant::now() + PATIENCE;
        let is_pong = |it: &Datagram| it.kind == kind::PONG && it.payload == nonce;
        while !is_pong(&self.hear(deadline).expect("a Pong")) {}
    }

    /// As [`Player::is_heard`], where a flood may push a datagram out of the server's receive
    /// buffer: what is not answered is asked again.
    #[track_caller]
    pub fn is_heard_in_a_flood(&mut self) {
        let give_up = Instant::now() + PATIENCE;
        while Instant::now() < give_up {
            let nonce = self.ping();
            let again = Instant::now() + Duration::from_millis(250);
            while let Some(it) = self.hear(again) {
                if it.kind == kind::PONG && it.payload == nonce {
                    return;
                }
            }
        }
        panic!("waited in vain for a Pong");
    }

    /// Hears and answers until then.
    #[track_caller]
    pub fn play_until(&mut self, deadline: Instant) {
        while Instant::now() < deadline {
            self.hear(deadline);
        }
    }

    /// Hears until something is `found`; fails the test if it takes too long.
    #[track_caller]
    pub fn hear_until<T>(
        &mut self,
        what: &str,
        mut found: impl FnMut(&mut Self) -> Option<T>,
    ) -> T {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(it) = found(self) {
                return it;
            }
            assert!(Instant::now() < deadline, "waited in vain: {what}");
            self.hear(deadline);
        }
    }

    /// Waits to hear that somebody left.
    #[track_caller]
    pub fn hears_left(&mut self, number: u8, reason: u8) {
        let left = Event::left(number, reason);
        self.hear_until(&format!("{left:?}"), |player| {
            player.events.contains(&left).then_some(())
        });
    }

    /// Nobody has left as far as it knows, and its own session has not ended.
    #[track_caller]
    pub fn assert_undisturbed(&self) {
        let all_joins = self.events.iter().all(Event::is_join);
        assert!(all_joins, "{:?}", self.events);
        assert!(is_open_and_silent(&self.stream), "its session has ended");
    }

    fn take(&mut self, bytes: &[u8]) -> Option<Datagram> {
        let datagram = Datagram::parse(bytes);
        assert_eq!(datagram.session, self.token, "a foreign session");
        if !self.is_new(datagram.sequence) {
            return None;
        }
        match datagram.kind {
            kind::ACCEPT | kind::PONG | kind::ACK => {}
            kind::PING => self.send(kind::PONG, &datagram.payload),
            kind::DATA => {
                let (from, bytes) = datagram.payload.split_first().expect("a sender");
                self.data.push_back((*from, bytes.to_vec()));
            }
            kind::EVENTS => {
                self.take_events(&datagram.payload);
                self.send(kind::ACK, &[]);
            }
            kind => panic!("no server sends {kind}"),
        }
        Some(datagram)
    }

    fn is_new(&mut self, sequence: u16) -> bool {
        let Some((newest, bits)) = self.seen else {
            self.seen = Some((sequence, 0));
            return true;
        };
        let (ahead, behind) = (sequence.wrapping_sub(newest), newest.wrapping_sub(sequence));
        match (ahead, behind) {
            (1..=0x7FFF, _) => {
                let bits = (u64::from(bits) << 1 | 1).checked_shl(u32::from(ahead) - 1);
                self.seen = Some((sequence, bits.unwrap_or(0) as u32));
                true
            }
            (_, 1..=32) => {
                let bit = 1 << (behind - 1);
                self.seen = Some((newest, bits | bit));
                bits & bit == 0
            }
            _ => false,
        }
    }

    fn take_events(&mut self, payload: &[u8]) {
        for (id, event) in Event::parse_all(payload) {
            self.early.insert(id, event);
        }
        let mut due = self.events.len() as u16;
        while let Some(event) = self.early.remove(&due) {
            self.events.push(event);
            due += 1;
        }
        // What came again is taken already.
        self.early.retain(|id, _| *id > due);
    }
}

fn is_nothing(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
    )
}

/// Each of the two says something, which the other must hear before anything else is said: not
/// one datagram may be lost. No `round` may be said twice.
#[track_caller]
pub fn exchange(one: &mut Player, two: &mut Player, round: u32) {
    say(one, two, round);
    say(two, one, round);
}

#[track_caller]
fn say(speaker: &mut Player, hearer: &mut Player, round: u32) {
    speaker.send(kind::DATA, &round.to_le_bytes());
    let said = (speaker.number, round.to_le_bytes().to_vec());
    hearer.hear_until(&format!("Data of round {round}"), |player| {
        let at = player.data.iter().position(|data| *data == said)?;
        player.data.drain(..=at);
        Some(())
    });
}

/// As [`exchange`], where a flood may push a datagram out of the server's receive buffer: what is
/// not heard is said again.
#[track_caller]
pub fn exchange_in_a_flood(one: &mut Player, two: &mut Player, round: u32) {
    insist(one, two, round);
    insist(two, one, round);
}

#[track_caller]
fn insist(speaker: &mut Player, hearer: &mut Player, round: u32) {
    let said = (speaker.number, round.to_le_bytes().to_vec());
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        speaker.send(kind::DATA, &round.to_le_bytes());
        let again = Instant::now() + Duration::from_millis(250);
        while Instant::now() < again {
            if let Some(at) = hearer.data.iter().position(|data| *data == said) {
                hearer.data.drain(..=at);
                return;
            }
            hearer.play_until(Instant::now() + Duration::from_millis(2));
        }
    }
    panic!("waited in vain: Data of round {round}");
}
