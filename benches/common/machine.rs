//! A service without sockets, and peers that talk to it: all is virtual but the cost.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use anteroom::engine::{
    Conn, Effect, Entropy, Env, Event, Game, Input, Machine, Outbox, Path, Replies, Seeded, Time,
    Verdict,
};
use anteroom::guard::limits::Limits;
use anteroom::protocol::rtyp::{Service, Settings};

use super::bytes::{HEADER, Speaker, accepted_token, kind, login_request};

/// The server's own UDP endpoint.
const LOCAL: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 4242);

/// A game that lets everybody in and sends each Data back to where it came from.
#[derive(Debug, Default)]
pub struct Echo;

impl Game for Echo {
    fn event(&mut self, _: Time, event: Event<'_>, out: &mut dyn Replies) {
        match event {
            Event::Connecting { ticket, .. } => {
                let _ = out.answer(ticket, Verdict::Admit);
            }
            Event::Data { player, bytes } => {
                let _ = out.send(player, &[bytes]);
            }
            _ => {}
        }
    }
}

/// A service and its world.
pub struct Driven {
    pub service: Service,
    pub now: Time,
    pub out: Outbox,
    dice: Seeded,
    opened: u32,
    /// Reused, so that a conversation allocates only what the machine does.
    said: Vec<Answer>,
}

impl Driven {
    /// A service in which nobody plays yet.
    pub fn new(game: Box<dyn Game + Send>, games: u32, limits: Limits) -> Self {
        let settings = Settings {
            service: 0,
            udp_port: LOCAL.port(),
            games,
            limits,
            ..Settings::default()
        };
        Self {
            service: Service::new(game, &settings),
            now: Time::from_ms(1_000),
            out: Outbox::new(),
            dice: Seeded::new(7),
            opened: 0,
            said: Vec::new(),
        }
    }

    /// Gives the machine one input. Its effects stay in `out` until the next.
    pub fn input(&mut self, input: Input<'_>) {
        self.out.clear();
        let mut env = Env {
            now: self.now,
            dice: &mut self.dice,
            out: &mut self.out,
        };
        self.service.handle(&mut env, input);
    }

    /// A datagram comes from `path`.
    pub fn datagram(&mut self, path: Path, bytes: &[u8]) {
        self.input(Input::Datagram { path, bytes });
    }

    /// A connection is opened from peer number `number`.
    pub fn open(&mut self, number: u32) -> Conn {
        let conn = Conn {
            slot: self.opened,
            generation: 0,
        };
        self.opened += 1;
        let peer = SocketAddr::new(address(number), 50_000);
        self.input(Input::Opened { conn, peer });
        conn
    }

    /// Bytes come on a connection.
    pub fn stream(&mut self, conn: Conn, bytes: &[u8]) {
        self.input(Input::Stream { conn, bytes });
    }

    /// A connection is over.
    pub fn close(&mut self, conn: Conn) {
        self.input(Input::Closed { conn });
    }

    /// Peer number `number` logs in under `name` and binds its endpoint.
    pub fn join(&mut self, number: u32, name: &str) -> Peer {
        let conn = self.open(number);
        self.stream(conn, &login_request(name));
        let token = self
            .out
            .effects()
            .find_map(|effect| match effect {
                Effect::Stream { bytes, .. } => Some(accepted_token(bytes)),
                _ => None,
            })
            .expect("an answer to the login");
        let mut peer = Peer {
            conn,
            path: path(number),
            speaker: Speaker::new(token),
        };
        let connect = peer.speaker.say(kind::CONNECT, &[]);
        self.datagram(peer.path, connect);
        peer
    }

    /// Gives what is in `out` to `peers`, which stand in order of their numbers from 0, and
    /// their answers to the machine, until nobody has anything to say.
    pub fn converse(&mut self, peers: &mut [Peer]) {
        let mut said = std::mem::take(&mut self.said);
        hear(&self.out, peers, &mut said);
        while let Some(answer) = said.pop() {
            self.datagram(answer.path, &answer.bytes[..answer.len]);
            hear(&self.out, peers, &mut said);
        }
        self.said = said;
    }

    /// Lets time pass in which `peers` only answer.
    pub fn pass(&mut self, ms: u64, peers: &mut [Peer]) {
        let until = self.now + ms;
        while let Some(due) = self.service.deadline().filter(|due| *due <= until) {
            self.now = due.max(self.now);
            self.input(Input::Tick);
            self.converse(peers);
        }
        self.now = until;
    }

    /// The counter of this name.
    ///
    /// # Panics
    /// If there is none.
    pub fn count(&self, name: &str) -> u64 {
        let stats = self.service.stats();
        let found = stats.into_iter().find(|(of, _)| *of == name);
        found.unwrap_or_else(|| panic!("no counter {name}")).1
    }
}

/// A player's side.
pub struct Peer {
    pub conn: Conn,
    pub path: Path,
    pub speaker: Speaker,
}

/// What a peer has to say to what it heard.
struct Answer {
    path: Path,
    bytes: [u8; HEADER + 4],
    len: usize,
}

/// Adds to `said` what `peers` have to say to the datagrams in `out`: a Pong to each Ping, an Ack
/// to events.
fn hear(out: &Outbox, peers: &mut [Peer], said: &mut Vec<Answer>) {
    for effect in out.effects() {
        let Effect::Datagram { path, bytes } = effect else {
            continue;
        };
        let Some(peer) = peers.get_mut(number(&path)) else {
            continue;
        };
        let answer = match peer.speaker.hear(bytes) {
            (kind::PING, nonce) => peer.speaker.say(kind::PONG, nonce),
            (kind::EVENTS, _) => peer.speaker.say(kind::ACK, &[]),
            _ => continue,
        };
        let mut bytes = [0; HEADER + 4];
        bytes[..answer.len()].copy_from_slice(answer);
        let len = answer.len();
        said.push(Answer { path, bytes, len });
    }
}

/// The endpoint of peer number `number`, below 2^24, as the service sees it.
pub fn path(number: u32) -> Path {
    Path {
        socket: 0,
        local: LOCAL,
        remote: SocketAddr::new(address(number), 40_000),
    }
}

/// The number of the peer at `path`.
fn number(path: &Path) -> usize {
    match path.remote.ip() {
        IpAddr::V4(ip) => (ip.to_bits() & 0x00FF_FFFF) as usize,
        IpAddr::V6(_) => usize::MAX,
    }
}

/// Endpoints that nobody plays from.
pub fn strangers(count: usize) -> Vec<Path> {
    let mut dice = Seeded::new(11);
    let mut stranger = || {
        let mut random = [0; 6];
        dice.fill(&mut random).expect("seeded dice never fail");
        let ip = Ipv4Addr::new(198, 18 | random[0] & 1, random[1], random[2]);
        let port = 1_024 | u16::from_le_bytes([random[3], random[4]]);
        Path {
            remote: SocketAddr::from((ip, port)),
            ..path(0)
        }
    };
    (0..count).map(|_| stranger()).collect()
}

fn address(number: u32) -> IpAddr {
    let [_, a, b, c] = number.to_be_bytes();
    IpAddr::from([10, a, b, c])
}
