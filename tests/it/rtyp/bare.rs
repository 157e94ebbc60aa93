//! The service without a network: a datagram goes in, and what it draws comes out at once. For
//! what has to be done a million times.

use std::net::{IpAddr, SocketAddr};

use anteroom::engine::{Conn, Effect, Env, Input, Machine, Outbox, Path, Seeded, Time};
use anteroom::guard::limit::Addresses;
use anteroom::protocol::rtyp::{Service, Settings};

use super::bytes::{Datagram, Said, kind, login_request};
use super::hall::{Chronicler, Shelf, server, settings};

/// The service, its game's diary and the clock.
pub struct Bare {
    pub now: u64,
    pub shelf: Shelf,
    service: Service,
    dice: Seeded,
    out: Outbox,
}

/// What came out for one thing that went in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Drawn {
    pub datagrams: u64,
    pub bytes: u64,
}

impl Bare {
    /// One game and the limits of the table.
    pub fn new(seed: u64) -> Self {
        Self::with(seed, |_| ())
    }

    /// A service with settings of the test's choice.
    pub fn with(seed: u64, change: impl FnOnce(&mut Settings)) -> Self {
        let mut settings = settings();
        change(&mut settings);
        settings.addresses = Addresses::new(&settings.limits);
        let shelf = Shelf::default();
        let game = Box::new(Chronicler::new(&shelf));
        Self {
            now: 1_000_000,
            shelf,
            service: Service::new(game, &settings),
            dice: Seeded::new(seed),
            out: Outbox::new(),
        }
    }

    /// A datagram comes.
    pub fn hear(&mut self, from: SocketAddr, bytes: &[u8]) -> Drawn {
        let path = Path {
            socket: 0,
            local: server(),
            remote: SocketAddr::new(from.ip().to_canonical(), from.port()),
        };
        self.input(Input::Datagram { path, bytes });
        let mut drawn = Drawn::default();
        for (_, bytes) in self.sent() {
            drawn.datagrams += 1;
            drawn.bytes += bytes.len() as u64;
        }
        drawn
    }

    /// Lets time pass; returns what was sent meanwhile.
    pub fn pass(&mut self, ms: u64) -> Drawn {
        let end = self.now + ms;
        let mut drawn = Drawn::default();
        while let Some(due) = self.service.deadline().filter(|due| due.ms() <= end) {
            self.now = due.ms().max(self.now);
            self.input(Input::Tick);
            drawn.datagrams += self.sent().count() as u64;
            drawn.bytes += self
                .sent()
                .map(|(_, bytes)| bytes.len() as u64)
                .sum::<u64>();
        }
        self.now = end;
        drawn
    }

    fn input(&mut self, input: Input<'_>) {
        self.out.clear();
        let mut env = Env {
            now: Time::from_ms(self.now),
            dice: &mut self.dice,
            out: &mut self.out,
        };
        self.service.handle(&mut env, input);
    }

    /// What was sent for the last thing that went in, and to whom.
    pub fn sent(&self) -> impl Iterator<Item = (SocketAddr, &[u8])> {
        self.out.effects().filter_map(|effect| match effect {
            Effect::Datagram { path, bytes } => Some((path.remote, bytes)),
            _ => None,
        })
    }

    /// What was warned of for it, and about whom.
    pub fn warned(&self) -> impl Iterator<Item = (IpAddr, &'static str)> {
        self.out.effects().filter_map(|effect| match effect {
            Effect::Warning { about, what } => Some((about, what)),
            _ => None,
        })
    }

    /// The first datagram sent for it.
    pub fn answer(&self) -> Option<Datagram> {
        self.sent().next().map(|(_, bytes)| Datagram::parse(bytes))
    }

    /// The cookie of an endpoint now; fails if none comes.
    #[track_caller]
    pub fn cookie(&mut self, endpoint: SocketAddr) -> u64 {
        self.hear(endpoint, &Datagram::hello(0, b"", b"R9").bytes());
        let answer = self.answer().expect("a challenge");
        assert_eq!(answer.kind, kind::CONNECT_CHALLENGE);
        u64::from_le_bytes(answer.payload[..].try_into().expect("a cookie"))
    }

    /// Somebody of either version comes in and is bound; returns its token. Its datagram 0 is sent.
    #[track_caller]
    pub fn enter(&mut self, version: u8, endpoint: SocketAddr, name: &str) -> u64 {
        if version == 2 {
            let hello = Datagram::hello(self.cookie(endpoint), b"", name.as_bytes());
            self.hear(endpoint, &hello.bytes());
            let answer = self.answer().expect("a ServerHello");
            let secret = answer.payload[..8].try_into().expect("eight bytes");
            let secret = u64::from_le_bytes(secret);
            self.hear(endpoint, &Datagram::secret(kind::ACK, secret, &[]).bytes());
            return secret;
        }
        let conn = Conn {
            slot: 0,
            generation: 0,
        };
        self.input(Input::Opened {
            conn,
            peer: endpoint,
        });
        let request = login_request(1, name.as_bytes());
        self.input(Input::Stream {
            conn,
            bytes: &request,
        });
        let said = self.out.effects().find_map(|effect| match effect {
            Effect::Stream { bytes, .. } => Some(Said::parse(&bytes[2..])),
            _ => None,
        });
        let Some(Said::Accepted { session, .. }) = said else {
            panic!("not let in: {said:?}")
        };
        self.hear(
            endpoint,
            &Datagram::new(kind::CONNECT, session, &[]).bytes(),
        );
        session.into()
    }

    /// A counter.
    #[track_caller]
    pub fn count(&self, name: &str) -> u64 {
        let stats = self.service.stats();
        let found = stats.iter().find(|(key, _)| *key == name);
        found.unwrap_or_else(|| panic!("no counter {name}")).1
    }
    /// When it wants to be woken.
    pub fn deadline(&self) -> Option<Time> {
        self.service.deadline()
    }
}
