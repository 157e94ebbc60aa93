//! A client of Rooms, written by hand: as honest as a test wants it to be.

use std::net::SocketAddr;

use super::bytes::{Ask, Packet, Said, Window, kind, take_packets};
use super::picture::Picture;
use crate::world::pipe::Ending;
use crate::world::{Action, Actor, Arrival};

/// Where the server is.
pub const SERVER: &str = "198.51.100.1:4243";

const REPEAT_MS: u64 = 500;
const SENDS: u32 = 5;
const ALIVE_MS: u64 = 1000;

/// What a peer does by itself.
#[derive(Debug, Clone, Copy)]
pub struct Conduct {
    /// Says Init at once on its token, on entering a room, when it hears of what it does not
    /// know, and when it has said nothing for a second.
    pub init: bool,
    /// Repeats requests.
    pub repeat: bool,
    /// Closes its side when the server has closed.
    pub hang_up: bool,
}

impl Conduct {
    /// Does everything that the document asks for.
    pub const HONEST: Self = Self {
        init: true,
        repeat: true,
        hang_up: true,
    };

    /// Does nothing by itself.
    pub const SILENT: Self = Self {
        init: false,
        repeat: false,
        hang_up: false,
    };
}

/// A datagram that came.
#[derive(Debug, Clone)]
pub struct Got {
    pub at: u64,
    pub from: SocketAddr,
    pub packet: Packet,
    pub said: Said,
    /// Its id was new.
    pub new: bool,
}

/// A request, from its first sending to its answer.
#[derive(Debug, Clone)]
pub struct Request {
    pub ask: Ask,
    pub id: u16,
    pub sends: u32,
    pub answer: Option<Said>,
    /// It is over without an answer.
    pub failed: bool,
    due: u64,
}

impl Request {
    fn is_open(&self) -> bool {
        self.answer.is_none() && !self.failed
    }
}

/// The peer.
#[derive(Debug)]
pub struct Peer {
    pub conduct: Conduct,
    /// Where its stream comes from.
    pub tcp: SocketAddr,
    /// Where its datagrams come from.
    pub udp: SocketAddr,
    /// Where it connects to.
    pub server: SocketAddr,
    /// Everything the server said over TCP, and when.
    pub said: Vec<(u64, Packet)>,
    /// How and when the server's side of the stream ended.
    pub end: Option<(u64, Ending)>,
    /// Every datagram that came.
    pub log: Vec<Got>,
    /// Every request that has an answer.
    pub requests: Vec<Request>,
    /// The id of its next packet.
    pub next_id: u16,
    /// While it is in a room.
    pub picture: Option<Picture>,
    /// Who it is, for telling its own lines from others'.
    pub user: String,
    now: u64,
    last_sent: u64,
    last_init: Option<u64>,
    asks_again: bool,
    stream: Vec<u8>,
    window: Window,
    over: bool,
    actions: Vec<Action>,
}

/// The one connection a peer has.
const STREAM: u32 = 0;

impl Peer {
    /// An honest peer at this address, for TCP and UDP alike.
    #[track_caller]
    pub fn new(address: SocketAddr) -> Self {
        Self {
            conduct: Conduct::HONEST,
            tcp: address,
            udp: address,
            server: SERVER.parse().expect("an address"),
            said: Vec::new(),
            end: None,
            log: Vec::new(),
            requests: Vec::new(),
            next_id: 1,
            picture: None,
            user: String::new(),
            now: 0,
            last_sent: 0,
            last_init: None,
            asks_again: false,
            stream: Vec::new(),
            window: Window::default(),
            over: false,
            actions: Vec::new(),
        }
    }

    /// One that does nothing by itself.
    pub fn silent(address: SocketAddr) -> Self {
        Self {
            conduct: Conduct::SILENT,
            ..Self::new(address)
        }
    }
}

// What a test makes it do.
impl Peer {
    /// Connects.
    pub fn open(&mut self) {
        self.actions.push(Action::Connect {
            name: STREAM,
            from: self.tcp,
            to: self.server,
        });
    }

    /// Writes to the stream, which it never should.
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

    /// Sends bytes as a datagram.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.raw_from(self.udp, bytes);
    }

    /// Sends bytes as a datagram from a source of its choice.
    pub fn raw_from(&mut self, from: SocketAddr, bytes: &[u8]) {
        self.last_sent = self.now;
        let port = self.assigned().map_or(self.server.port(), |it| it.1);
        self.actions.push(Action::Datagram {
            from,
            to: SocketAddr::new(self.server.ip(), port),
            bytes: bytes.to_vec(),
        });
    }

    /// A packet of its session, with its next id.
    #[track_caller]
    pub fn packet(&mut self, ask: &Ask) -> Packet {
        let id = self.next_id;
        self.next_id = id.wrapping_add(1);
        ask.packet(id, self.token())
    }

    /// Sends a packet of its session once; returns its id.
    #[track_caller]
    pub fn send(&mut self, ask: &Ask) -> u16 {
        let packet = self.packet(ask);
        self.raw(&packet.bytes());
        if ask.kind == kind::INIT {
            self.last_init = Some(self.now);
        }
        packet.id
    }

    /// Sends a packet of its session again, or under an id of the test's choice.
    #[track_caller]
    pub fn send_as(&mut self, ask: &Ask, id: u16) {
        let packet = ask.packet(id, self.token());
        self.raw(&packet.bytes());
    }

    /// Asks, and repeats that as the document says; returns which of its requests this is.
    #[track_caller]
    pub fn ask(&mut self, ask: &Ask) -> usize {
        assert!(ask.is_answered());
        if ask.kind == kind::LOGIN {
            let len = usize::from(ask.payload[1]);
            self.user = String::from_utf8_lossy(&ask.payload[2..2 + len]).into_owned();
        }
        let id = self.send(ask);
        self.requests.push(Request {
            ask: ask.clone(),
            id,
            sends: 1,
            answer: None,
            failed: false,
            due: self.now + REPEAT_MS,
        });
        self.requests.len() - 1
    }
}

// What a test asks it.
impl Peer {
    /// Its token and the UDP port, once they came.
    pub fn assigned(&self) -> Option<(u32, u16)> {
        self.said
            .iter()
            .find_map(|(_, packet)| match Said::parse(packet) {
                Said::Assign { token, udp_port } => Some((token, udp_port)),
                _ => None,
            })
    }

    /// Its token; fails before it came.
    #[track_caller]
    pub fn token(&self) -> u32 {
        self.assigned().expect("no token came").0
    }

    /// The reason of the server's Logout.
    pub fn logged_out(&self) -> Option<u8> {
        self.said
            .iter()
            .find_map(|(_, packet)| match Said::parse(packet) {
                Said::Logout(reason) => Some(reason),
                _ => None,
            })
    }

    /// The session is over, for whatever reason.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// What came of one type, repetitions left out.
    pub fn heard(&self, kind: u8) -> Vec<&Said> {
        let log = self.log.iter().filter(|got| got.new);
        log.filter(|got| got.packet.kind == kind)
            .map(|got| &got.said)
            .collect()
    }

    /// The datagrams of one type, repetitions too.
    pub fn came(&self, kind: u8) -> Vec<&Got> {
        let log = self.log.iter();
        log.filter(|got| got.packet.kind == kind).collect()
    }

    /// The lines of chat that it shows, in order.
    pub fn lines(&self) -> Vec<(String, String)> {
        let chat = self.heard(kind::CHAT).into_iter();
        chat.filter_map(|said| match said {
            Said::Chat { user, text } => Some((user.clone(), text.clone())),
            _ => None,
        })
        .collect()
    }

    /// Forgets what came so far.
    pub fn forget(&mut self) {
        self.log.clear();
    }
}

// What it does by itself.
impl Peer {
    fn told(&mut self, packet: Packet) {
        let said = Said::parse(&packet);
        self.said.push((self.now, packet));
        if self.conduct.init && matches!(said, Said::Assign { .. }) {
            self.send(&Ask::init());
        }
    }

    fn datagram(&mut self, from: SocketAddr, bytes: &[u8]) {
        let packet = Packet::parse(bytes);
        let said = Said::parse(&packet);
        let over_tcp = matches!(said, Said::Assign { .. } | Said::Logout(_));
        assert!(!over_tcp, "not over UDP: {said:?}");
        let new = self.window.take(packet.id);
        self.log.push(Got {
            at: self.now,
            from,
            packet: packet.clone(),
            said: said.clone(),
            new,
        });
        if !new || self.over {
            return;
        }
        self.answered(&packet, &said);
        self.follow(&packet, &said);
    }

    fn answered(&mut self, packet: &Packet, said: &Said) {
        let user = self.user.clone();
        let open = self.requests.iter_mut().find(|request| {
            let is_own = match said {
                Said::Chat { user: from, text } => *from == user && Ask::chat(text) == request.ask,
                _ => request.ask.kind == Said::answers(packet),
            };
            is_own && request.is_open()
        });
        let Some(request) = open else { return };
        request.answer = Some(said.clone());
        if matches!(said, Said::Join(true, ..) | Said::CreateRoom(true, _)) {
            self.picture.get_or_insert(Picture::new(packet.id));
            if self.conduct.init {
                self.send(&Ask::init());
            }
        }
        if matches!(said, Said::Leave(true)) {
            self.picture = None;
        }
    }

    fn follow(&mut self, packet: &Packet, said: &Said) {
        if matches!(said, Said::DeleteRoom(true, _)) {
            self.picture = None;
        }
        let Some(picture) = &mut self.picture else {
            return;
        };
        let is_unknown = picture.take(self.now, packet, said);
        self.asks_again |= is_unknown && self.conduct.init;
        self.ask_again();
    }

    /// What is unknown is asked for, at most once a second.
    fn ask_again(&mut self) {
        if self.asks_again && self.ask_again_due() <= self.now {
            self.asks_again = false;
            self.send(&Ask::init());
        }
    }

    fn ask_again_due(&self) -> u64 {
        self.last_init.map_or(0, |last| last + 1000)
    }

    fn repeat_due(&mut self) {
        let token = self.assigned().map(|it| it.0);
        let mut packets = Vec::new();
        for request in &mut self.requests {
            if !request.is_open() || request.due > self.now {
                continue;
            }
            if request.sends == SENDS {
                request.failed = true;
                continue;
            }
            request.sends += 1;
            request.due = self.now + REPEAT_MS;
            packets.extend(token.map(|token| request.ask.packet(request.id, token)));
        }
        for packet in packets {
            self.raw(&packet.bytes());
        }
    }

    fn alive_due(&self) -> Option<u64> {
        let is_due = self.conduct.init && self.assigned().is_some();
        is_due.then_some(self.last_sent + ALIVE_MS)
    }
}

impl Actor for Peer {
    fn addresses(&self) -> Vec<SocketAddr> {
        vec![self.udp]
    }

    fn clock(&mut self, now: u64) {
        self.now = now;
    }

    fn arrival(&mut self, arrival: Arrival<'_>) {
        match arrival {
            Arrival::Opened(_) => {}
            Arrival::Stream(_, bytes) => {
                self.stream.extend(bytes);
                let mut stream = std::mem::take(&mut self.stream);
                for packet in take_packets(&mut stream) {
                    self.told(packet);
                }
                self.stream = stream;
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
    }

    fn wake(&self) -> Option<u64> {
        if self.over {
            return None;
        }
        let open = self.requests.iter().filter(|request| request.is_open());
        let repeat = open.map(|request| request.due).min();
        let repeat = repeat.filter(|_| self.conduct.repeat);
        let again = self.asks_again.then(|| self.ask_again_due());
        [repeat, self.alive_due(), again]
            .into_iter()
            .flatten()
            .min()
    }

    fn tick(&mut self) {
        if self.conduct.repeat {
            self.repeat_due();
        }
        self.ask_again();
        if self.alive_due().is_some_and(|due| due <= self.now) {
            self.send(&Ask::init());
        }
    }

    fn actions(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.actions)
    }
}
