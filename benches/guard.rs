//! What it costs to say no: at a machine to whoever is a stranger, over what it costs to receive
//! him; cookies, budgets, and the limits of an address among a million.
#![forbid(unsafe_code)]

mod common;

use std::hint::black_box;
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::process::ExitCode;

use allocation_counter::measure;
use anteroom::engine::{Path, Seeded, Time};
use anteroom::guard::budget::Challenges;
use anteroom::guard::cookie::Cookies;
use anteroom::guard::limit::{Addresses, Entrance, Refused};
use anteroom::guard::limits::{Limit, Limits};
use anteroom::guard::quiet::Quiet;
use siphasher::sip::SipHasher24;

use common::bytes::{PAYLOAD, Speaker, client_hello, kind};
use common::machine::{Driven, Echo, strangers};
use common::pairs::{Pairs, ns_each};
use common::queue::over_receive;
use common::report::Report;

/// What a stranger's datagram may cost, as a part of receiving it.
const STRANGER: f64 = 0.25;
/// Endpoints that strangers come from in turn: more than fit into the nearest caches.
const STRANGERS: usize = 4_096;
/// Hellos of a flood that come in a millisecond: far more than are answered, or as many as are.
const CROWDED: usize = 1_000;
const SPARSE: usize = 10;
/// Hellos that use up what was saved of a budget of 20000 a second, if they come all too fast.
const SAVED: usize = 100_000;
/// Addresses that come one after another.
const CROWD: usize = 1_000_000;
/// What the table may take at any time, in MiB.
const TABLE_MIB: f64 = 8.0;

fn main() -> ExitCode {
    let mut report = Report::new("guard: strangers, cookies, budgets and the limits of an address");
    machine(&mut report);
    cookies(&mut report);
    budgets(&mut report);
    attempts(&mut report);
    refusals(&mut report);
    memory(&mut report);
    report.exit()
}

/// Strangers at a machine without sockets. Each is forgotten when the call returns.
fn machine(report: &mut Report) {
    let mut magic = Speaker::new(7).say(kind::DATA, &PAYLOAD).to_vec();
    magic[0] = b'X';
    let (first, wrong) = (client_hello(0), client_hello(1));
    for (what, counter, bytes, each_ms) in [
        ("a first hello, answered", "challenges", &first, SPARSE),
        ("a wrong cookie, answered", "challenges", &wrong, SPARSE),
        (
            "a first hello among too many",
            "challenges-dropped",
            &first,
            CROWDED,
        ),
        (
            "a wrong cookie among too many",
            "challenges-dropped",
            &wrong,
            CROWDED,
        ),
        ("junk", "ignored-magic", &magic, CROWDED),
    ] {
        let mut driven = Driven::new(Box::new(Echo), 1, Limits::default());
        let mut come = Strangers::new(each_ms);
        // What was saved up of a budget is used up first.
        come.feed(&mut driven, bytes, SAVED);
        let (before, fed) = (driven.count(counter), come.count);
        let pairs = over_receive(report, |count| come.feed(&mut driven, bytes, count));
        let counted = (driven.count(counter) - before) as f64 / (come.count - fed) as f64;
        assert!(
            counted > 0.9,
            "{what}: {counted:.3} are counted as {counter}"
        );
        assert_eq!(driven.count("sessions"), 0);
        report.pairs(what, &pairs, Some(STRANGER));
    }
}

/// Endpoints that take turns.
struct Strangers {
    paths: Vec<Path>,
    /// How many have come.
    count: usize,
    /// How many come in a millisecond.
    each_ms: usize,
}

impl Strangers {
    fn new(each_ms: usize) -> Self {
        Self {
            paths: strangers(STRANGERS),
            count: 0,
            each_ms,
        }
    }

    /// The nanoseconds of a datagram, of `count` that each say these bytes.
    fn feed(&mut self, driven: &mut Driven, bytes: &[u8], count: usize) -> f64 {
        ns_each(count, || {
            for _ in 0..count {
                if self.count.is_multiple_of(self.each_ms) {
                    driven.now = driven.now + 1;
                }
                let path = self.paths[self.count % self.paths.len()];
                driven.datagram(path, bytes);
                self.count += 1;
            }
        })
    }
}

/// The floor is the bare hash of as many bytes: once to make a cookie, twice to know one.
fn cookies(report: &mut Report) {
    let cookies = Cookies::new(&mut Seeded::new(1)).expect("seeded dice never fail");
    let hash = SipHasher24::new_with_key(&[7; 16]);
    let (now, count) = (Time::from_ms(123_456), report.repeat(2_000_000));
    let endpoint = SocketAddr::from(([192, 0, 2, 7], 5000));
    let floor = |hashes: usize| {
        ns_each(count, || {
            for _ in 0..count * hashes {
                black_box(hash.hash(black_box(&[9; 26])));
            }
        })
    };
    let make = || {
        ns_each(count, || {
            for _ in 0..count {
                black_box(cookies.make(now, black_box(endpoint)));
            }
        })
    };
    report.pairs("make a cookie", &Pairs::measure(|| floor(1), make), None);
    for (what, cookie) in [
        ("know a right cookie", cookies.make(now, endpoint)),
        ("know a wrong cookie", 1),
    ] {
        let check = || {
            ns_each(count, || {
                for _ in 0..count {
                    black_box(cookies.check(now, black_box(endpoint), black_box(cookie)));
                }
            })
        };
        report.pairs(what, &Pairs::measure(|| floor(2), check), None);
    }
}

/// A million forged hellos, or warnings about them, a second.
fn budgets(report: &mut Report) {
    let count = report.repeat(2_000_000);
    let now = |number: usize| Time::from_ms(number as u64 / 1_000);
    let mut dice = Seeded::new(2);
    let mut challenges = Challenges::new(&Limits::default());
    let challenge_ns = ns_each(count, || {
        for number in 0..count {
            black_box(challenges.allow(now(number), &mut dice));
        }
    });
    report.number("a hello in a flood of them", challenge_ns, "ns", None);
    let mut quiet = Quiet::new(&mut dice).expect("seeded dice never fail");
    let warning_ns = ns_each(count, || {
        for number in 0..count {
            black_box(quiet.allow(now(number), address(number)));
        }
    });
    report.number("a warning in a flood of them", warning_ns, "ns", None);
}

/// Everybody comes once and leaves.
fn attempts(report: &mut Report) {
    let count = report.repeat(CROWD);
    let (entrance, _) = entrance();
    let ns = ns_each(count, || {
        come_and_go(&entrance, 0..count);
    });
    report.number("enter and leave, each from a new address", ns, "ns", None);
}

/// The table is full of players, and strangers keep coming: nothing is allocated for them.
fn refusals(report: &mut Report) {
    let (entrance, max) = entrance();
    let players = (0..max).map(|number| entrance.enter(Time::ZERO, address(number)));
    let players: Vec<_> = players
        .map(|player| player.expect("there is room"))
        .collect();
    let count = report.repeat(CROWD);
    let mut ns = 0.0;
    let allocated = measure(|| {
        ns = ns_each(count, || {
            for number in max..max + count {
                let refused = entrance.enter(Time::from_ms(60_000), black_box(address(number)));
                assert_eq!(refused.err(), Some(Refused::TableFull));
            }
        });
    });
    assert_eq!(allocated.count_total, 0, "a refusal allocates");
    assert_eq!(players.len(), max, "nobody who plays was touched");
    report.number("a stranger refused by a full table", ns, "ns", None);
}

/// What the table takes does not grow with those who were there. The first million lets its maps
/// find their size, which they double once on the way, at no certain moment; the second adds
/// nothing. That is no matter of speed, so no quick run lets it pass.
fn memory(report: &mut Report) {
    let (entrance, _) = entrance();
    let first = measure(|| come_and_go(&entrance, 0..CROWD));
    let second = measure(|| come_and_go(&entrance, CROWD..2 * CROWD));
    let mib = |bytes: f64| bytes / f64::from(1 << 20);
    let held = first.bytes_current as f64;
    assert!(held > 0.0, "nothing was counted");
    assert!(
        (second.bytes_current as f64).abs() < held / 100.0,
        "after the second million the table holds {} bytes more than {held}",
        second.bytes_current
    );
    report.number(
        "the table after a million addresses",
        mib(held),
        "MiB",
        None,
    );
    let most = mib(first.bytes_max as f64);
    report.number("and at most on the way", most, "MiB", Some(TABLE_MIB));
}

fn come_and_go(entrance: &Entrance, numbers: Range<usize>) {
    for number in numbers {
        // Each has its attempt back after 2 s: as many as fit come in that time, and no more.
        let now = Time::from_ms(number as u64 / 8);
        let visit = entrance.enter(now, black_box(address(number)));
        drop(visit.expect("somebody else can go"));
    }
}

/// An entrance, and how many addresses its table tracks.
fn entrance() -> (Entrance, usize) {
    let limits = Limits::default();
    let max = limits.get(Limit::TrackedIps) as usize;
    (Addresses::new(&limits).entrance(&limits, false), max)
}

/// Everybody has an address, every other one an IPv6 /48, to himself.
fn address(number: usize) -> IpAddr {
    let [.., a, b, c, d] = number.to_be_bytes();
    match number % 2 {
        0 => IpAddr::from([11, b, c, d]),
        _ => IpAddr::from([0x20, 0x01, a, b, c, d, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]),
    }
}
