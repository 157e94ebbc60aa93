//! What strangers can do to the service by numbers alone: nothing to anybody, and it costs no more
//! bytes than it brings.

use std::collections::HashSet;
use std::net::SocketAddr;

use anteroom::engine::Seeded;

use super::bare::{Bare, Drawn};
use super::bytes::{Datagram, MAGIC, kind, string};
use super::hall::{Hall, SERVICE, Told, server};
use super::peer::Peer;
use crate::world::seeds::seed;

/// An endpoint of so many addresses, by number.
fn forged(number: u64, addresses: u64) -> SocketAddr {
    let ip = (0x0B00_0000 + number % addresses) as u32;
    SocketAddr::from((ip.to_be_bytes(), 1024 + (number / addresses) as u16))
}

/// Somebody honest in the middle of it, who says hello as the document asks for.
struct Honest {
    endpoint: SocketAddr,
    cookie: u64,
    next_at: u64,
    give_up_at: u64,
    tries: u64,
    let_in_at: Option<u64>,
}

impl Honest {
    fn new(now: u64) -> Self {
        Self {
            endpoint: "192.0.2.7:5000".parse().expect("an endpoint"),
            cookie: 0,
            next_at: now,
            give_up_at: now + 5000,
            tries: 0,
            let_in_at: None,
        }
    }

    /// Says what is due. One that gave up begins anew.
    fn say(&mut self, bare: &mut Bare) {
        if self.let_in_at.is_some() || bare.now < self.next_at {
            return;
        }
        if bare.now >= self.give_up_at {
            *self = Self {
                tries: self.tries,
                ..Self::new(bare.now)
            };
        }
        self.next_at = bare.now + 250;
        self.tries += 1;
        bare.hear(
            self.endpoint,
            &Datagram::hello(self.cookie, b"", b"R9").bytes(),
        );
        let Some(answer) = bare.answer() else { return };
        match answer.kind {
            kind::CONNECT_CHALLENGE => {
                let cookie = answer.payload[..].try_into().expect("a cookie");
                self.cookie = u64::from_le_bytes(cookie);
                self.next_at = bare.now;
                self.say(bare);
            }
            kind::SERVER_HELLO => self.let_in_at = Some(bare.now),
            kind => panic!("type {kind}"),
        }
    }
}

/// So many first hellos a second for so many ms, from 50000 addresses, and somebody honest behind
/// all of them; returns how long it took him to get in.
fn flood(rate: u64, ms: u64) -> Option<u64> {
    const ADDRESSES: u64 = 50_000;
    let mut bare = Bare::new(seed());
    let hello = Datagram::hello(0, b"", b"flood").bytes();
    let mut number = 0;
    let mut drawn = Drawn::default();
    // By then the flood has used up what was saved.
    let start = bare.now + 1000;
    let mut honest = Honest::new(start);
    for _ in 0..ms {
        bare.pass(1);
        for _ in 0..rate / 1000 {
            let one = bare.hear(forged(number, ADDRESSES), &hello);
            assert!(one.bytes <= hello.len() as u64 && one.datagrams <= 1);
            drawn.datagrams += one.datagrams;
            number += 1;
        }
        honest.say(&mut bare);
        if rate > 100_000 && honest.let_in_at.is_some() {
            break;
        }
    }
    // Nobody is there but the honest one, no name is taken, and the game has heard of nobody.
    let is_in = honest.let_in_at.is_some();
    assert_eq!(bare.count("sessions"), u64::from(is_in));
    let told = bare.shelf.open().told.len();
    assert_eq!(told, if is_in { 2 } else { 0 });
    assert_eq!(
        bare.count("challenges-dropped") + bare.count("challenges"),
        number + {
            // All but those of the honest one that had the right cookie.
            honest.tries - u64::from(is_in)
        }
    );
    let odds = (20_000.0 / rate as f64).min(1.0);
    println!(
        "{rate} hellos a second, {} of {number} answered; odds per try {odds:.3}, in at try {}",
        drawn.datagrams, honest.tries
    );
    honest.let_in_at.map(|at| at - start)
}

#[test]
fn a_flood_of_first_hellos_leaves_nothing_and_locks_nobody_out() {
    // 200000 from 50000 addresses, 20000 a second.
    let took = flood(20_000, 10_000).expect("let in");
    assert!(took <= 1000, "{took} ms");
    let took = flood(400_000, 30_000).expect("let in");
    assert!(took <= 30_000, "{took} ms");
}

/// Payloads of so many bytes: zeroes, and where there is one, a well-formed one.
fn payloads(kind: u8, version: u8, len: usize) -> Vec<Vec<u8>> {
    let mut payloads = vec![vec![0; len]];
    if (kind, version) == (kind::CLIENT_HELLO, 2) && len >= 12 {
        let name = vec![b'n'; len - 12];
        payloads.push([&[7; 8][..], &string(b""), &string(&name)].concat());
    }
    payloads
}

#[test]
fn a_stranger_gets_no_more_than_it_sends_whatever_it_sends() {
    let stranger: SocketAddr = "203.0.113.9:900".parse().expect("an endpoint");
    let mut bare = Bare::new(seed());
    let mut answered = HashSet::new();
    for kind in (0..32).chain([255]) {
        for version in 0..4 {
            for len in 0..=1400_usize {
                let mut bytes = MAGIC.to_vec();
                bytes.extend([version, kind, 0, 0, 0xFF, 0xFF]);
                bytes.resize(if version == 2 { 22 } else { 18 }, 0);
                let rest = len.saturating_sub(bytes.len());
                bytes.truncate(len);
                for payload in payloads(kind, version, rest) {
                    let sent = [&bytes[..], &payload].concat();
                    assert_eq!(sent.len(), len);
                    let drawn = bare.hear(stranger, &sent);
                    assert!(drawn.datagrams <= 1, "{kind} {version} {len}");
                    assert!(drawn.bytes <= len as u64, "{kind} {version} {len}");
                    if drawn.datagrams > 0 {
                        answered.insert((kind, version));
                    }
                    // The same from the server's own socket is never answered.
                    assert_eq!(bare.hear(server(), &sent), Drawn::default());
                }
            }
            // The budget of challenges is no matter here.
            assert_eq!(bare.pass(1000), Drawn::default());
        }
    }
    assert_eq!(answered, HashSet::from([(kind::CLIENT_HELLO, 2)]));
    assert_eq!(bare.count("sessions"), 0);
    assert_eq!(bare.deadline(), None);
}

#[test]
fn what_only_a_server_says_is_never_answered() {
    // Neither to a stranger, with whatever token, nor to the endpoint of a session of either
    // version without its token.
    let mut hall = Hall::new(seed());
    let one = hall.enter_silent("one", 1);
    let two = hall.enter_2_silent("two", 2);
    let nobody = hall.add(Peer::v2_silent("203.0.113.9:900"));
    hall.settle();
    let (token, secret) = (hall[one].token(), hall[two].secret());
    let sources = [one, two, nobody].map(|peer| hall[peer].udp);
    let out = sources.map(|source| hall.tally(SERVICE, source).out_datagrams);
    for from in sources {
        for (kind, len) in [(2, 0), (17, 8), (18, 9), (19, 1), (21, 1)] {
            for session in [0, 1, token ^ 1, !token] {
                hall[nobody].raw_from(from, &Datagram::new(kind, session, &vec![1; len]).bytes());
            }
            for session in [0, 1, secret ^ 1, u64::from(hall[two].public())] {
                let bytes = Datagram::secret(kind, session, &vec![1; len]).bytes();
                hall[nobody].raw_from(from, &bytes);
            }
        }
    }
    hall.for_ms(20);
    assert_eq!(
        sources.map(|source| hall.tally(SERVICE, source).out_datagrams),
        out
    );
    assert_eq!(hall.count("sessions"), 2);
}

#[test]
fn a_million_guesses_at_a_session_do_nothing_to_it() {
    for version in [1, 2] {
        let mut bare = Bare::with(seed(), |settings| settings.games = 2);
        let endpoint: SocketAddr = "192.0.2.7:5000".parse().expect("an endpoint");
        let elsewhere: SocketAddr = "203.0.113.9:900".parse().expect("an endpoint");
        let secret = bare.enter(version, endpoint, "R9");
        let start = bare.now;
        let mut dice = Seeded::new(seed());
        let mut drawn = Drawn::default();
        for round in 0..1_000_000_u32 {
            let kind = [
                kind::DATA,
                kind::CLIENT_BYE,
                kind::CONNECT,
                kind::CLIENT_HELLO,
                kind::PING,
            ][round as usize % 5];
            let from = if dice.below(2) == 0 {
                endpoint
            } else {
                elsewhere
            };
            let guess = match dice.below(3) {
                0 => secret ^ 1 << dice.below(64),
                1 => dice.below(1 << 32),
                _ => dice.next_u64(),
            };
            let sequence = 1 + dice.below(20) as u16;
            let mut datagram = match (kind, dice.below(2)) {
                (kind::CLIENT_HELLO, _) => Datagram::hello(guess, b"", b"R9"),
                (_, 0) => Datagram::new(kind, guess as u32, &[0; 4][..4 * usize::from(kind == 3)]),
                _ => Datagram::secret(kind, guess, &[0; 1][..usize::from(kind == 20)]),
            };
            datagram.sequence = sequence;
            let is_guessed = match version {
                1 => guess as u32 == secret as u32 && datagram.version == 1,
                _ => guess == secret,
            };
            if is_guessed {
                continue;
            }
            let one = bare.hear(from, &datagram.bytes());
            assert!(one.bytes <= datagram.bytes().len() as u64);
            if kind != kind::CLIENT_HELLO {
                assert_eq!(one, Drawn::default());
            }
            drawn.datagrams += one.datagrams;
        }
        assert_eq!(bare.now, start);
        assert_eq!(bare.count("sessions"), 1);
        assert_eq!(bare.shelf.open().told.len(), 2, "asked and joined");
        assert_eq!(bare.count("moves") + bare.count("ended-left"), 0);
        // It plays on: no number of its own was used up.
        let data = match version {
            1 => Datagram::new(kind::DATA, secret as u32, b"x").sequence(1),
            _ => Datagram::secret(kind::DATA, secret, b"x").sequence(1),
        };
        bare.hear(endpoint, &data.bytes());
        let told = bare.shelf.open().told.last().cloned();
        assert!(matches!(told, Some(Told::Data { .. })), "{told:?}");
        assert!(
            drawn.datagrams <= 20_000,
            "no more than the budget of challenges"
        );
    }
}

#[test]
fn forged_byes_end_nothing() {
    for version in [1, 2] {
        let mut hall = Hall::new(seed());
        let peer = match version {
            1 => hall.enter_silent("R9", 1),
            _ => hall.enter_2_silent("R9", 1),
        };
        hall.settle();
        hall.told();
        let forger = hall.add(Peer::v2_silent("203.0.113.9:900"));
        let (from, next) = (hall[peer].udp, hall[peer].talk().numbers_used() as u16);
        let mut dice = Seeded::new(seed());
        for _ in 0..10_000 {
            let bye = Datagram::secret(kind::CLIENT_BYE, dice.next_u64(), &[0]).sequence(next);
            hall[forger].raw_from(from, &bye.bytes());
            hall[forger].raw(&bye.bytes());
            let old = Datagram::new(kind::CLIENT_BYE, dice.next_u64() as u32, &[0]).sequence(next);
            hall[forger].raw_from(from, &old.bytes());
        }
        hall.for_ms(20);
        assert_eq!(hall.count("sessions"), 1);
        assert_eq!(hall.told(), []);
        hall[peer].send(kind::DATA, b"x");
        hall.settle();
        assert!(matches!(hall.told()[..], [Told::Data { .. }]));
    }
}
