//! A server of RTYP version 1, played by hand for one client at a time.

use std::collections::HashMap;
use std::net::SocketAddr;

use super::bytes::{Datagram, Event, Frames, kind, login_accepted};
use super::talk::Talk;
use crate::world::pipe::Ending;
use crate::world::{Action, Actor, Arrival};

const PING_MS: u64 = 4000;

/// What the host does by itself.
#[derive(Debug, Clone, Copy)]
pub struct Hosting {
    /// Accepts whatever LoginRequest comes.
    pub log_in: bool,
    /// Answers every Connect with an Accept and a Ping.
    pub accept: bool,
    /// Answers Pings.
    pub pong: bool,
    /// Pings every 4 s.
    pub ping: bool,
    /// Acknowledges events.
    pub ack: bool,
    /// Sends events, and sends them again.
    pub resend: bool,
}

impl Hosting {
    /// Does everything.
    pub const HONEST: Self = Self {
        log_in: true,
        accept: true,
        pong: true,
        ping: true,
        ack: true,
        resend: true,
    };

    /// Does nothing by itself.
    pub const SILENT: Self = Self {
        log_in: false,
        accept: false,
        pong: false,
        ping: false,
        ack: false,
        resend: false,
    };
}

/// The host.
#[derive(Debug)]
pub struct Host {
    pub hosting: Hosting,
    pub address: SocketAddr,
    /// What LoginAccepted says: token, player, and the port of `address`.
    pub session: u32,
    pub player: u8,
    /// The messages that came over TCP, without their prefixes, and when.
    pub messages: Vec<(u64, Vec<u8>)>,
    /// How and when the client's side of the stream ended.
    pub end: Option<(u64, Ending)>,
    /// When the client's connection stood.
    pub opened_at: Option<u64>,
    /// All connections, the newest last, and how those ended that the client has ended.
    pub streams: Vec<(u32, Option<Ending>)>,
    /// Every datagram that came, and when.
    pub datagrams: Vec<(u64, Datagram)>,
    /// Where the client plays from, since its first Connect.
    pub client: Option<SocketAddr>,
    /// The UDP side.
    pub talk: Talk,
    now: u64,
    stream: Option<u32>,
    frames: HashMap<u32, Frames>,
    actions: Vec<Action>,
}

impl Host {
    /// An honest host at this address, which gives this token.
    #[track_caller]
    pub fn new(address: &str, session: u32) -> Self {
        Self {
            hosting: Hosting::HONEST,
            address: address.parse().expect("an address"),
            session,
            player: 0,
            messages: Vec::new(),
            end: None,
            opened_at: None,
            streams: Vec::new(),
            datagrams: Vec::new(),
            client: None,
            talk: Talk::new(session, 0, 0),
            now: 0,
            stream: None,
            frames: HashMap::new(),
            actions: Vec::new(),
        }
    }

    /// One that does nothing by itself.
    pub fn silent(address: &str, session: u32) -> Self {
        Self {
            hosting: Hosting::SILENT,
            ..Self::new(address, session)
        }
    }

    /// Accepts the login.
    pub fn accept_login(&mut self) {
        let accepted = login_accepted(self.session, self.player, self.address.port());
        self.write(&accepted);
    }

    /// Writes to the newest connection.
    #[track_caller]
    pub fn write(&mut self, bytes: &[u8]) {
        let stream = self.stream.expect("nobody has connected");
        self.actions.push(Action::Write(stream, bytes.to_vec()));
    }

    /// Writes to the connection of this index, counted from 0.
    pub fn write_to(&mut self, index: usize, bytes: &[u8]) {
        let (stream, _) = self.streams[index];
        self.actions.push(Action::Write(stream, bytes.to_vec()));
    }

    /// Closes its side of the connection of this index.
    pub fn fin_of(&mut self, index: usize) {
        let (stream, _) = self.streams[index];
        self.actions.push(Action::Fin(stream));
    }

    /// Closes its side of the newest connection.
    #[track_caller]
    pub fn fin(&mut self) {
        let stream = self.stream.expect("nobody has connected");
        self.actions.push(Action::Fin(stream));
    }

    /// Throws the newest connection away.
    #[track_caller]
    pub fn abort(&mut self) {
        let stream = self.stream.expect("nobody has connected");
        self.actions.push(Action::Abort(stream));
    }

    /// Sends a datagram of the session, with its next number; returns it.
    #[track_caller]
    pub fn send(&mut self, kind: u8, payload: &[u8]) -> Datagram {
        let datagram = self.talk.datagram(kind, payload);
        self.raw(&datagram.bytes());
        datagram
    }

    /// Sends bytes to where the client plays from.
    #[track_caller]
    pub fn raw(&mut self, bytes: &[u8]) {
        self.raw_from(self.address, bytes);
    }

    /// The same from a source of its choice.
    #[track_caller]
    pub fn raw_from(&mut self, from: SocketAddr, bytes: &[u8]) {
        self.actions.push(Action::Datagram {
            from,
            to: self.client.expect("no datagram has come"),
            bytes: bytes.to_vec(),
        });
    }

    /// Sends an event, and again until it is acknowledged.
    #[track_caller]
    pub fn event(&mut self, event: Event) {
        self.talk.event(event);
        self.send_due();
    }

    /// The datagrams of one type that came, and when.
    pub fn came(&self, kind: u8) -> Vec<(u64, &Datagram)> {
        let all = self.datagrams.iter();
        all.filter(|(_, datagram)| datagram.kind == kind)
            .map(|(at, datagram)| (*at, datagram))
            .collect()
    }

    fn ping(&mut self) {
        let ping = self.talk.ping();
        self.raw(&ping.bytes());
    }

    fn datagram(&mut self, from: SocketAddr, bytes: &[u8]) {
        let datagram = Datagram::parse(bytes);
        check(&datagram);
        self.datagrams.push((self.now, datagram.clone()));
        self.client.get_or_insert(from);
        let new = self.talk.take(&datagram);
        match datagram.kind {
            kind::CONNECT if self.hosting.accept => {
                self.send(kind::ACCEPT, &[]);
                if self.talk.last_ping.is_none() {
                    self.ping();
                }
            }
            kind::PING if self.hosting.pong && new => {
                self.send(kind::PONG, &datagram.payload);
            }
            _ => {}
        }
    }

    fn send_due(&mut self) {
        if self.client.is_none() {
            return;
        }
        for datagram in self.talk.due(self.hosting.ack, self.hosting.resend) {
            self.raw(&datagram.bytes());
        }
    }

    fn ping_due(&self) -> Option<u64> {
        let last = self.talk.last_ping.filter(|_| self.hosting.ping)?;
        Some(last + PING_MS)
    }
}

impl Actor for Host {
    fn addresses(&self) -> Vec<SocketAddr> {
        vec![self.address]
    }

    fn clock(&mut self, now: u64) {
        self.now = now;
        self.talk.now = now;
    }

    fn arrival(&mut self, arrival: Arrival<'_>) {
        match arrival {
            Arrival::Opened(stream) => {
                self.stream = Some(stream);
                self.streams.push((stream, None));
                self.opened_at = Some(self.now);
            }
            Arrival::Stream(stream, bytes) => {
                let frames = self.frames.entry(stream).or_default();
                for message in frames.take(bytes) {
                    let login = message[0] == 1;
                    self.messages.push((self.now, message));
                    if login && self.hosting.log_in {
                        self.accept_login();
                    }
                }
            }
            Arrival::Ended(stream, how) => {
                let ended = self.streams.iter_mut().find(|(it, _)| *it == stream);
                ended.expect("it was opened").1 = Some(how);
                if Some(stream) == self.stream {
                    self.end = Some((self.now, how));
                }
            }
            Arrival::Datagram { from, to, bytes } => {
                assert_eq!(to, self.address);
                self.datagram(from, bytes);
            }
        }
        self.send_due();
    }

    fn wake(&self) -> Option<u64> {
        self.client?;
        let talk = self.talk.wake(self.hosting.ack, self.hosting.resend);
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
fn check(datagram: &Datagram) {
    let len = datagram.payload.len();
    match datagram.kind {
        kind::CONNECT | kind::ACK => assert_eq!(len, 0, "{datagram:02X?}"),
        kind::PING | kind::PONG => assert_eq!(len, 4, "{datagram:02X?}"),
        kind::DATA => {}
        kind::EVENTS => {
            for (_, event) in Event::parse_all(&datagram.payload) {
                assert!((4..=6).contains(&event.kind), "no client sends {event:?}");
            }
        }
        _ => panic!("no client sends {datagram:02X?}"),
    }
}
