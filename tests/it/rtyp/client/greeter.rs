//! A server of RTYP version 2, played by hand for one client; its bytes are from the document.

use std::net::SocketAddr;

use super::super::bytes::{self, Datagram, Event};
use super::super::talk::Talk;
use crate::world::{Action, Actor, Arrival};

pub use super::super::bytes::{HEADER_2, kind};

const PING_MS: u64 = 4_000;

/// A datagram of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    pub kind: u8,
    pub sequence: u16,
    pub ack: u16,
    pub ack_bits: u32,
    pub token: u64,
    pub payload: Vec<u8>,
}

impl Said {
    /// From the wire; fails the test if it is none.
    #[track_caller]
    pub fn parse(bytes: &[u8]) -> Self {
        assert!(bytes.len() >= HEADER_2, "a datagram of {}", bytes.len());
        assert!(bytes.len() <= 1200, "a datagram of {}", bytes.len());
        assert_eq!(bytes[..5], *b"RTYP\x02", "wrong magic or version");
        let word = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        Self {
            kind: bytes[5],
            sequence: word(6),
            ack: word(8),
            ack_bits: u32::from(word(10)) | u32::from(word(12)) << 16,
            token: u64::from_le_bytes(bytes[14..22].try_into().expect("8 bytes")),
            payload: bytes[HEADER_2..].to_vec(),
        }
    }

    /// The cookie of a hello.
    pub fn cookie(&self) -> u64 {
        assert_eq!(self.kind, kind::CLIENT_HELLO);
        u64::from_le_bytes(self.payload[..8].try_into().expect("8 bytes"))
    }
}

/// What a server sends outside of any session.
pub fn outside(kind: u8, payload: &[u8]) -> Datagram {
    let mut datagram = Datagram::new(kind, 0, payload);
    datagram.version = 2;
    datagram
}

/// What the greeter does by itself.
#[derive(Debug, Clone, Copy)]
pub struct Greeting {
    /// Answers a hello with the wrong cookie by the right one.
    pub challenge: bool,
    /// Answers a hello with the right cookie by the session.
    pub admit: bool,
    /// Answers Pings, pings behind the first ServerHello and every 4 s.
    pub play: bool,
    /// Acknowledges events, and sends its own again.
    pub lanes: bool,
}

impl Greeting {
    pub const HONEST: Self = Self {
        challenge: true,
        admit: true,
        play: true,
        lanes: true,
    };
    pub const SILENT: Self = Self {
        challenge: false,
        admit: false,
        play: false,
        lanes: false,
    };
}

/// The server.
#[derive(Debug)]
pub struct Greeter {
    pub greeting: Greeting,
    pub address: SocketAddr,
    /// The one right cookie.
    pub cookie: u64,
    /// The secret of its session, and the player's number; `talk` has the public token.
    pub token: u64,
    pub player: u8,
    /// Every datagram that came, and when.
    pub came: Vec<(u64, Said)>,
    /// Their bytes.
    pub raw: Vec<Vec<u8>>,
    /// Where the client is, since its first hello.
    pub client: Option<SocketAddr>,
    pub talk: Talk,
    now: u64,
    actions: Vec<Action>,
}

impl Greeter {
    /// An honest one with these tokens.
    pub fn new(address: &str, token: u64, player_token: u32) -> Self {
        Self {
            greeting: Greeting::HONEST,
            address: address.parse().expect("an address"),
            cookie: 0x1122_3344_5566_7788,
            token,
            player: 0,
            came: Vec::new(),
            raw: Vec::new(),
            client: None,
            talk: Talk::new(player_token, 0, 0),
            now: 0,
            actions: Vec::new(),
        }
    }

    /// It has lost everything: session, tokens and the key of its cookies.
    pub fn restart(&mut self, token: u64, player_token: u32) {
        self.cookie = self.cookie.wrapping_add(1);
        self.token = token;
        self.talk = Talk::new(player_token, 0, self.now);
    }

    /// Sends a datagram of the session, with its next number; returns it.
    pub fn send(&mut self, kind: u8, payload: &[u8]) -> Datagram {
        let datagram = self.talk.datagram(kind, payload);
        self.session(datagram)
    }

    /// Sends the session's ServerHello.
    pub fn hello(&mut self) -> Datagram {
        let payload = [&self.token.to_le_bytes()[..], &[self.player]].concat();
        self.send(kind::SERVER_HELLO, &payload)
    }

    /// Sends a cookie.
    pub fn challenge(&mut self, cookie: u64) {
        let datagram = outside(kind::CONNECT_CHALLENGE, &cookie.to_le_bytes());
        self.send_raw(&datagram.bytes());
    }

    /// Sends bytes to where the client is.
    pub fn send_raw(&mut self, bytes: &[u8]) {
        self.send_raw_from(self.address, bytes);
    }

    /// The same from a source of its choice.
    #[track_caller]
    pub fn send_raw_from(&mut self, from: SocketAddr, bytes: &[u8]) {
        self.actions.push(Action::Datagram {
            from,
            to: self.client.expect("no hello has come"),
            bytes: bytes.to_vec(),
        });
    }

    /// Sends an event, and again until it is acknowledged.
    pub fn event(&mut self, event: Event) {
        self.talk.event(event);
        self.send_due();
    }

    /// The datagrams of one type that came, and when.
    pub fn of(&self, kind: u8) -> Vec<(u64, Said)> {
        let all = self.came.iter();
        all.filter(|(_, said)| said.kind == kind).cloned().collect()
    }

    /// When the datagrams of one type came.
    pub fn times(&self, kind: u8) -> Vec<u64> {
        self.of(kind).iter().map(|(at, _)| *at).collect()
    }

    fn session(&mut self, mut datagram: Datagram) -> Datagram {
        datagram.version = 2;
        self.send_raw(&datagram.bytes());
        datagram
    }

    fn said(&mut self, said: Said) {
        check(&said);
        self.came.push((self.now, said.clone()));
        if said.kind == kind::CLIENT_HELLO {
            match said.cookie() == self.cookie {
                true if self.greeting.admit => {
                    self.hello();
                    if self.greeting.play && self.talk.last_ping.is_none() {
                        self.ping();
                    }
                }
                false if self.greeting.challenge => self.challenge(self.cookie),
                _ => {}
            }
        } else if said.token == self.token {
            let new = self.talk.take(&Datagram {
                version: 1,
                kind: said.kind,
                sequence: said.sequence,
                ack: said.ack,
                ack_bits: said.ack_bits,
                session: self.talk.session,
                payload: said.payload.clone(),
            });
            if said.kind == kind::PING && self.greeting.play && new {
                self.send(kind::PONG, &said.payload);
            }
        }
    }

    fn ping(&mut self) {
        let ping = self.talk.ping();
        self.session(ping);
    }

    fn send_due(&mut self) {
        let lanes = self.greeting.lanes;
        for datagram in self.talk.due(lanes, lanes) {
            self.session(datagram);
        }
    }

    fn ping_due(&self) -> Option<u64> {
        let last = self.talk.last_ping.filter(|_| self.greeting.play)?;
        Some(last + PING_MS)
    }
}

impl Actor for Greeter {
    fn addresses(&self) -> Vec<SocketAddr> {
        vec![self.address]
    }

    fn clock(&mut self, now: u64) {
        self.now = now;
        self.talk.now = now;
    }

    fn arrival(&mut self, arrival: Arrival<'_>) {
        let Arrival::Datagram { from, to, bytes } = arrival else {
            panic!("version 2 needs no connection: {arrival:?}");
        };
        assert_eq!(to, self.address);
        self.client.get_or_insert(from);
        self.raw.push(bytes.to_vec());
        self.said(Said::parse(bytes));
        self.send_due();
    }

    fn wake(&self) -> Option<u64> {
        self.client?;
        let talk = self.talk.wake(self.greeting.lanes, self.greeting.lanes);
        talk.into_iter().chain(self.ping_due()).min()
    }

    fn tick(&mut self) {
        self.send_due();
        if self.ping_due().is_some_and(|due| due <= self.now) {
            self.ping();
        }
    }

    fn actions(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.actions)
    }
}

/// Fails the test if a client must not send this.
#[track_caller]
fn check(said: &Said) {
    let len = said.payload.len();
    if said.kind == kind::CLIENT_HELLO {
        let head = (said.token, said.sequence, said.ack, said.ack_bits);
        assert_eq!(head, (0, 0, 0xFFFF, 0), "{said:02X?}");
        return;
    }
    assert_ne!(said.token, 0, "{said:02X?}");
    match said.kind {
        kind::ACK => assert_eq!(len, 0, "{said:02X?}"),
        kind::PING | kind::PONG => assert_eq!(len, 4, "{said:02X?}"),
        kind::CLIENT_BYE => assert_eq!(said.payload, [bytes::left::LEFT], "{said:02X?}"),
        kind::DATA => {}
        kind::EVENTS => {
            for (_, event) in Event::parse_all(&said.payload) {
                assert!((4..=6).contains(&event.kind), "no client sends {event:?}");
            }
        }
        _ => panic!("no client sends {said:02X?}"),
    }
}
