//! A server of rooms, played by hand for one client, byte by byte.

use std::net::SocketAddr;

use crate::world::pipe::Ending;
use crate::world::{Action, Actor, Arrival};

/// The token that every client gets.
pub const TOKEN: u32 = 0xDEAD_BEEF;
/// The server's.
pub const SERVER: u32 = 0xFFFF_FFFF;

/// One packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    pub kind: u8,
    pub id: u16,
    pub token: u32,
    pub payload: Vec<u8>,
}

impl Said {
    /// As it travels.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![1, self.kind];
        bytes.extend(self.id.to_be_bytes());
        bytes.extend(self.token.to_be_bytes());
        bytes.extend((self.payload.len() as u32).to_be_bytes());
        bytes.extend(&self.payload);
        let sum = bytes
            .iter()
            .fold(0_u16, |sum, byte| sum.wrapping_add((*byte).into()));
        bytes.extend(sum.to_be_bytes());
        bytes
    }

    /// As it came; it has to be one.
    #[track_caller]
    pub fn parse(bytes: &[u8]) -> Self {
        let word = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
        let said = Self {
            kind: bytes[1],
            id: u16::from_be_bytes([bytes[2], bytes[3]]),
            token: word(4),
            payload: bytes[12..bytes.len() - 2].to_vec(),
        };
        assert_eq!(said.bytes(), bytes, "no packet");
        said
    }
}

/// A length of two bytes, and the text.
pub fn string(text: &str) -> Vec<u8> {
    let mut bytes = (text.len() as u16).to_be_bytes().to_vec();
    bytes.extend(text.as_bytes());
    bytes
}

/// An Update's record: where an entity is.
pub fn position(entity: u32, x: f32, y: f32) -> Vec<u8> {
    let mut bytes = vec![0, 1];
    bytes.extend(entity.to_be_bytes());
    bytes.extend(x.to_be_bytes());
    bytes.extend(y.to_be_bytes());
    bytes
}

/// Create Entity's payload.
pub fn entity(id: u32, kind: u16, owner: u8) -> Vec<u8> {
    let mut bytes = id.to_be_bytes().to_vec();
    bytes.extend(kind.to_be_bytes());
    bytes.push(owner);
    bytes
}

/// The host.
#[derive(Debug)]
pub struct Host {
    pub address: SocketAddr,
    /// Whether it gives the token by itself.
    pub greets: bool,
    /// Every datagram that came, and when.
    pub came: Vec<(u64, Said)>,
    /// How and when the client's side of the stream ended.
    pub end: Option<(u64, Ending)>,
    /// What came over TCP.
    pub stream_bytes: usize,
    /// The id of the next packet.
    pub next_id: u16,
    client: Option<SocketAddr>,
    stream: Option<u32>,
    now: u64,
    actions: Vec<Action>,
}

impl Host {
    pub fn new(address: &str) -> Self {
        Self {
            address: address.parse().expect("an address"),
            greets: true,
            came: Vec::new(),
            end: None,
            stream_bytes: 0,
            next_id: 1,
            client: None,
            stream: None,
            now: 0,
            actions: Vec::new(),
        }
    }

    fn said(&mut self, kind: u8, payload: &[u8]) -> Said {
        let id = self.next_id;
        self.next_id = id.wrapping_add(1);
        Said {
            kind,
            id,
            token: SERVER,
            payload: payload.to_vec(),
        }
    }

    /// Gives the token.
    pub fn assign(&mut self) {
        let mut payload = TOKEN.to_be_bytes().to_vec();
        payload.extend(self.address.port().to_be_bytes());
        self.write(0x10, &payload);
    }

    /// Says something over TCP.
    pub fn write(&mut self, kind: u8, payload: &[u8]) {
        let bytes = self.said(kind, payload).bytes();
        self.write_raw(bytes);
    }

    #[track_caller]
    pub fn write_raw(&mut self, bytes: Vec<u8>) {
        let stream = self.stream.expect("nobody has connected");
        self.actions.push(Action::Write(stream, bytes));
    }

    #[track_caller]
    pub fn fin(&mut self) {
        let stream = self.stream.expect("nobody has connected");
        self.actions.push(Action::Fin(stream));
    }

    /// Says something over UDP; returns it.
    #[track_caller]
    pub fn say(&mut self, kind: u8, payload: &[u8]) -> Said {
        let said = self.said(kind, payload);
        self.raw(&said.bytes());
        said
    }

    /// Sends this datagram.
    #[track_caller]
    pub fn raw(&mut self, bytes: &[u8]) {
        self.raw_from(self.address, bytes);
    }

    #[track_caller]
    pub fn raw_from(&mut self, from: SocketAddr, bytes: &[u8]) {
        self.actions.push(Action::Datagram {
            from,
            to: self.client.expect("the client has sent something"),
            bytes: bytes.to_vec(),
        });
    }

    /// What came of this type.
    pub fn of(&self, kind: u8) -> Vec<(u64, Said)> {
        let of_kind = self.came.iter().filter(|(_, said)| said.kind == kind);
        of_kind.cloned().collect()
    }

    /// When something of this type came.
    pub fn times(&self, kind: u8) -> Vec<u64> {
        self.of(kind).iter().map(|(at, _)| *at).collect()
    }
}

impl Actor for Host {
    fn addresses(&self) -> Vec<SocketAddr> {
        vec![self.address]
    }

    fn clock(&mut self, now: u64) {
        self.now = now;
    }

    fn arrival(&mut self, arrival: Arrival<'_>) {
        match arrival {
            Arrival::Opened(stream) => {
                self.stream = Some(stream);
                if self.greets {
                    self.assign();
                }
            }
            Arrival::Stream(_, bytes) => self.stream_bytes += bytes.len(),
            Arrival::Ended(_, ending) => self.end = Some((self.now, ending)),
            Arrival::Datagram { from, bytes, .. } => {
                self.client = Some(from);
                self.came.push((self.now, Said::parse(bytes)));
            }
        }
    }

    fn wake(&self) -> Option<u64> {
        None
    }

    fn tick(&mut self) {}

    fn actions(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.actions)
    }
}
