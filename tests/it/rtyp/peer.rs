//! A client of RTYP, written by hand: as honest as a test wants it to be.

use std::net::SocketAddr;

use super::bytes::{Datagram, Event, Frames, Said, Token, kind, login_request, logout};
use super::talk::Talk;
use crate::world::pipe::Ending;
use crate::world::{Action, Actor, Arrival};

mod hello;

use hello::Hello;

/// Where the server is.
pub const SERVER: &str = "198.51.100.1:4242";

const CONNECT_MS: u64 = 250;
const BINDING_MS: u64 = 5000;
const KEEP_ALIVE_MS: u64 = 1000;

/// What a peer does by itself.
#[derive(Debug, Clone, Copy)]
pub struct Conduct {
    /// Sends Connect after the login until the Accept comes, and gives up after 5 s; says hello
    /// until it is answered, for as long.
    pub connect: bool,
    /// Ends an old session that it gets back for a hello, and says it anew.
    pub restart: bool,
    /// Keeps the session alive.
    pub ping: bool,
    /// Answers Pings.
    pub pong: bool,
    /// Acknowledges events in time.
    pub ack: bool,
    /// Sends events, and sends them again.
    pub resend: bool,
    /// Closes its side when the server has closed.
    pub hang_up: bool,
}

impl Conduct {
    /// Does everything that the documents ask for.
    pub const HONEST: Self = Self {
        connect: true,
        restart: true,
        ping: true,
        pong: true,
        ack: true,
        resend: true,
        hang_up: true,
    };

    /// Does nothing by itself.
    pub const SILENT: Self = Self {
        connect: false,
        restart: false,
        ping: false,
        pong: false,
        ack: false,
        resend: false,
        hang_up: false,
    };
}

/// The peer.
#[derive(Debug)]
pub struct Peer {
    pub conduct: Conduct,
    /// Which it speaks.
    pub version: u8,
    /// Where its stream comes from.
    pub tcp: SocketAddr,
    /// Where its datagrams come from.
    pub udp: SocketAddr,
    /// Where it connects to.
    pub server: SocketAddr,
    /// The first sequence it uses.
    pub first: u16,
    /// Every byte that came over TCP.
    pub stream: Vec<u8>,
    /// Everything the server said over TCP, and when.
    pub said: Vec<(u64, Said)>,
    /// How and when the server's side of the stream ended.
    pub end: Option<(u64, Ending)>,
    /// What it says to be let in, in version 2.
    pub hello: Option<Hello>,
    /// The secret and the number that a ServerHello gave.
    pub greeted: Option<(u64, u8)>,
    /// The challenges and rejections that came, and when.
    pub outside: Vec<(u64, Datagram)>,
    /// The ServerByes that came: when, and the reason.
    pub byes: Vec<(u64, u8)>,
    /// Since the login, or the ServerHello: the UDP side.
    pub talk: Option<Talk>,
    /// When the first Accept, or the ServerHello, came.
    pub bound_at: Option<u64>,
    /// Gave up, because no Accept or ServerHello came in time.
    pub gave_up: bool,
    /// Datagrams that were not for this session, or came before the Accept.
    pub dropped: Vec<(u64, Vec<u8>)>,
    now: u64,
    frames: Frames,
    connect_due: Option<u64>,
    give_up_at: u64,
    over: bool,
    actions: Vec<Action>,
}

/// The one connection a peer has.
const STREAM: u32 = 0;

impl Peer {
    /// An honest peer at this address, for TCP and UDP alike.
    #[track_caller]
    pub fn new(address: &str) -> Self {
        let address: SocketAddr = address.parse().expect("an address");
        Self {
            conduct: Conduct::HONEST,
            version: 1,
            tcp: address,
            udp: address,
            server: SERVER.parse().expect("an address"),
            first: 0,
            stream: Vec::new(),
            said: Vec::new(),
            end: None,
            hello: None,
            greeted: None,
            outside: Vec::new(),
            byes: Vec::new(),
            talk: None,
            bound_at: None,
            gave_up: false,
            dropped: Vec::new(),
            now: 0,
            frames: Frames::default(),
            connect_due: None,
            give_up_at: 0,
            over: false,
            actions: Vec::new(),
        }
    }

    /// One that does nothing by itself.
    pub fn silent(address: &str) -> Self {
        Self {
            conduct: Conduct::SILENT,
            ..Self::new(address)
        }
    }

    /// Plays from another endpoint than its stream comes from.
    #[track_caller]
    pub fn udp_at(mut self, address: &str) -> Self {
        self.udp = address.parse().expect("an address");
        self
    }

    /// Starts numbering its datagrams elsewhere.
    pub fn first(mut self, first: u16) -> Self {
        self.first = first;
        self
    }
}

// What a test makes it do.
impl Peer {
    /// Connects, and says nothing.
    pub fn open(&mut self) {
        self.actions.push(Action::Connect {
            name: STREAM,
            from: self.tcp,
            to: self.server,
        });
    }

    /// Writes to the stream.
    pub fn write(&mut self, bytes: &[u8]) {
        self.actions.push(Action::Write(STREAM, bytes.to_vec()));
    }

    /// Closes its side of the stream.
    pub fn fin(&mut self) {
        self.over = true;
        self.actions.push(Action::Fin(STREAM));
    }

    /// Throws the stream away: its process died.
    pub fn abort(&mut self) {
        self.over = true;
        self.actions.push(Action::Abort(STREAM));
    }

    /// Connects and logs in, or says hello.
    pub fn login(&mut self, name: &str) {
        if self.version == 2 {
            return self.hello(name);
        }
        self.open();
        self.write(&login_request(1, name.as_bytes()));
    }

    /// Leaves in good order.
    pub fn leave(&mut self) {
        if self.version == 2 {
            (0..3).for_each(|_| drop(self.bye()));
            self.over = true;
            return;
        }
        self.write(&logout(0));
        self.fin();
    }

    /// Falls silent over UDP, and leaves its stream open.
    pub fn fall_silent(&mut self) {
        self.conduct = Conduct::SILENT;
    }

    /// Sends bytes as a datagram.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.raw_from(self.udp, bytes);
    }

    /// Sends bytes as a datagram from a source of its choice.
    pub fn raw_from(&mut self, from: SocketAddr, bytes: &[u8]) {
        self.actions.push(Action::Datagram {
            from,
            to: self.server_udp(),
            bytes: bytes.to_vec(),
        });
    }

    /// Sends a datagram of its session, with its next number; returns it.
    #[track_caller]
    pub fn send(&mut self, kind: u8, payload: &[u8]) -> Datagram {
        let datagram = self.talk_mut().datagram(kind, payload);
        self.raw(&datagram.bytes());
        datagram
    }

    /// Sends one Connect.
    #[track_caller]
    pub fn connect(&mut self) -> Datagram {
        self.send(kind::CONNECT, &[])
    }

    /// Sends one Ping.
    #[track_caller]
    pub fn ping(&mut self) {
        let ping = self.talk_mut().ping();
        self.raw(&ping.bytes());
    }

    /// Sends an event, and again until it is acknowledged.
    #[track_caller]
    pub fn event(&mut self, event: Event) {
        self.talk_mut().event(event);
        self.send_due();
    }

    /// Says something in chat.
    #[track_caller]
    pub fn say(&mut self, text: &str) {
        self.event(Event::chat(text));
    }
}

// What a test asks it.
impl Peer {
    /// The session, its player number and the UDP port, once logged in.
    pub fn accepted(&self) -> Option<(u32, u8, u16)> {
        self.said.iter().find_map(|(_, said)| match said {
            Said::Accepted {
                session,
                player,
                udp_port,
            } => Some((*session, *player, *udp_port)),
            _ => None,
        })
    }

    /// The token of version 1; fails if it has not logged in.
    #[track_caller]
    pub fn token(&self) -> u32 {
        self.accepted().expect("not logged in").0
    }

    /// The player number; fails if it has not logged in.
    #[track_caller]
    pub fn player(&self) -> u8 {
        let accepted = self.accepted().map(|it| it.1);
        let number = accepted.or(self.greeted.map(|it| it.1));
        number.expect("not logged in")
    }

    /// Whether it was let in, bound or not.
    pub fn is_in(&self) -> bool {
        self.accepted().is_some() || self.greeted.is_some()
    }

    /// The reason it was rejected for.
    pub fn rejected(&self) -> Option<u8> {
        let said = self.said.iter().find_map(|(_, said)| match said {
            Said::Rejected(reason) => Some(*reason),
            _ => None,
        });
        let outside = self.outside.iter().rev();
        let mut rejections = outside.filter(|(_, it)| it.kind == kind::HELLO_REJECTED);
        said.or_else(|| rejections.next().map(|(_, it)| it.payload[0]))
    }

    /// The reason of the server's Logout or ServerBye.
    pub fn logged_out(&self) -> Option<u8> {
        let said = self.said.iter().find_map(|(_, said)| match said {
            Said::Logout(reason) => Some(*reason),
            _ => None,
        });
        said.or_else(|| self.byes.first().map(|(_, reason)| *reason))
    }

    /// The server closed the connection and had said nothing, or nothing but LoginAccepted.
    pub fn closed_without_a_word(&self) -> bool {
        let silent = matches!(self.said[..], [] | [(_, Said::Accepted { .. })]);
        self.end.is_some() && silent && self.frames.left() == 0
    }

    /// Accepted over UDP, and not over yet.
    pub fn is_bound(&self) -> bool {
        self.bound_at.is_some() && !self.over
    }

    /// The session is over, for whatever reason.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// The events that came, in order, once each.
    pub fn events(&self) -> &[Event] {
        self.talk.as_ref().map_or(&[], |talk| &talk.events)
    }

    /// The payloads of one type of datagram that came, duplicates left out.
    pub fn payloads(&self, kind: u8) -> Vec<&[u8]> {
        let log = self.talk.iter().flat_map(|talk| &talk.log);
        log.filter(|got| got.new && got.datagram.kind == kind)
            .map(|got| &got.datagram.payload[..])
            .collect()
    }

    /// How many datagrams of one type came, duplicates included.
    pub fn count(&self, kind: u8) -> usize {
        let log = self.talk.iter().flat_map(|talk| &talk.log);
        log.filter(|got| got.datagram.kind == kind).count()
    }

    /// The UDP side; fails before the login.
    #[track_caller]
    pub fn talk(&self) -> &Talk {
        self.talk.as_ref().expect("not logged in")
    }

    /// The UDP side; fails before the login.
    #[track_caller]
    pub fn talk_mut(&mut self) -> &mut Talk {
        self.talk.as_mut().expect("not logged in")
    }

    /// Where its datagrams go.
    pub fn server_udp(&self) -> SocketAddr {
        let port = self.accepted().map_or(self.server.port(), |it| it.2);
        SocketAddr::new(self.server.ip(), port)
    }
}

// What it does by itself.
impl Peer {
    fn heard(&mut self, said: Said) {
        self.said.push((self.now, said));
        if let Said::Accepted { session, .. } = said {
            self.talk = Some(Talk::new(session, self.first, self.now));
            self.give_up_at = self.now + BINDING_MS;
            if self.conduct.connect {
                self.connect();
                self.connect_due = Some(self.now + CONNECT_MS);
            }
        }
    }

    fn datagram(&mut self, from: SocketAddr, bytes: &[u8]) {
        assert_eq!(from, self.server_udp(), "not from the server's endpoint");
        let datagram = Datagram::parse(bytes);
        check(&datagram);
        if datagram.session == Token::Public(0) {
            return self.heard_outside(&datagram);
        }
        if datagram.kind == kind::SERVER_HELLO && self.talk.is_none() && self.version == 2 {
            self.heard_hello(&datagram);
        }
        let lets_in = matches!(datagram.kind, kind::ACCEPT | kind::SERVER_HELLO);
        let awaited = self.bound_at.is_some() || lets_in;
        let Some(talk) = &mut self.talk else {
            return self.dropped.push((self.now, bytes.to_vec()));
        };
        if !awaited || datagram.session != talk.theirs {
            return self.dropped.push((self.now, bytes.to_vec()));
        }
        let new = talk.take(&datagram);
        if self.bound_at.is_none() {
            self.bound_at = Some(self.now);
            self.connect_due = None;
            if self.conduct.ping {
                self.ping();
            }
        }
        if new && datagram.kind == kind::PING && self.conduct.pong && !self.over {
            self.send(kind::PONG, &datagram.payload);
        }
        if datagram.kind == kind::SERVER_BYE {
            self.byes.push((self.now, datagram.payload[0]));
            self.over = true;
        }
    }

    fn send_due(&mut self) {
        let conduct = self.conduct;
        if self.over || self.bound_at.is_none() {
            return;
        }
        let Some(talk) = &mut self.talk else { return };
        for datagram in talk.due(conduct.ack, conduct.resend) {
            self.raw(&datagram.bytes());
        }
    }

    fn ping_due(&self) -> Option<u64> {
        let talk = self.talk.as_ref()?;
        let quiet_since = talk.last_sent.min(talk.last_valid);
        let earliest = talk.last_ping.map_or(0, |at| at + KEEP_ALIVE_MS);
        let due = (quiet_since + KEEP_ALIVE_MS).max(earliest);
        (self.conduct.ping && self.bound_at.is_some()).then_some(due)
    }
}

impl Actor for Peer {
    fn addresses(&self) -> Vec<SocketAddr> {
        vec![self.udp]
    }

    fn clock(&mut self, now: u64) {
        self.now = now;
        if let Some(talk) = &mut self.talk {
            talk.now = now;
        }
    }

    fn arrival(&mut self, arrival: Arrival<'_>) {
        match arrival {
            Arrival::Opened(_) => {}
            Arrival::Stream(_, bytes) => {
                self.stream.extend(bytes);
                for message in self.frames.take(bytes) {
                    self.heard(Said::parse(&message));
                }
            }
            Arrival::Ended(_, how) => {
                self.end = Some((self.now, how));
                self.over = true;
                if self.conduct.hang_up {
                    self.actions.push(Action::Fin(STREAM));
                }
            }
            Arrival::Datagram { from, bytes, .. } => self.datagram(from, bytes),
        }
        self.send_due();
    }

    fn wake(&self) -> Option<u64> {
        if self.over {
            return None;
        }
        let conduct = self.conduct;
        let talk = self.talk.as_ref().filter(|_| self.bound_at.is_some());
        let talk = talk.and_then(|talk| talk.wake(conduct.ack, conduct.resend));
        let hello = self.hello.as_ref().and_then(|hello| hello.due);
        let due = [self.connect_due, hello, self.ping_due(), talk];
        due.into_iter().flatten().min()
    }

    fn tick(&mut self) {
        if self.connect_due.is_some_and(|due| due <= self.now) {
            self.connect_due = None;
            if self.now >= self.give_up_at {
                self.gave_up = true;
                return self.leave();
            }
            self.connect();
            self.connect_due = Some(self.now + CONNECT_MS);
        }
        self.hello_due();
        self.send_due();
        if self.ping_due().is_some_and(|due| due <= self.now) {
            self.ping();
        }
    }

    fn actions(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.actions)
    }
}

/// Fails the test if a server must not send this.
#[track_caller]
fn check(datagram: &Datagram) {
    let len = datagram.payload.len();
    let version = match datagram.kind {
        kind::ACCEPT => 1,
        16.. => 2,
        _ => datagram.version,
    };
    assert_eq!(datagram.version, version, "{datagram:02X?}");
    let is_outside = matches!(
        datagram.kind,
        kind::CONNECT_CHALLENGE | kind::HELLO_REJECTED
    );
    let numbers = (datagram.sequence, datagram.ack, datagram.ack_bits);
    match datagram.session {
        Token::Shared(token) => assert_ne!(token, 0),
        Token::Public(0) => assert!(is_outside && numbers == (0, 0xFFFF, 0), "{datagram:02X?}"),
        _ => assert!(!is_outside, "{datagram:02X?}"),
    }
    match datagram.kind {
        kind::CONNECT_CHALLENGE => assert_eq!(len, 8, "{datagram:02X?}"),
        kind::SERVER_HELLO => assert!(len == 9 && datagram.payload[8] < 4, "{datagram:02X?}"),
        kind::HELLO_REJECTED => assert!(len == 1 && (1..=8).contains(&datagram.payload[0])),
        kind::SERVER_BYE => assert!(len == 1 && (1..=4).contains(&datagram.payload[0])),
        kind::ACCEPT | kind::ACK => assert_eq!(len, 0, "{datagram:02X?}"),
        kind::PING | kind::PONG => assert_eq!(len, 4, "{datagram:02X?}"),
        kind::DATA => {}
        kind::EVENTS => {
            for (_, event) in Event::parse_all(&datagram.payload) {
                assert!((1..=5).contains(&event.kind), "no server sends {event:?}");
            }
        }
        _ => panic!("no server sends {datagram:02X?}"),
    }
}
