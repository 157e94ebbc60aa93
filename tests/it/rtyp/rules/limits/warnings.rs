//! What is counted, what is warned of, and how much of that is written.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use anteroom::engine::{Seeded, Time};
use anteroom::guard::quiet::Quiet;

use super::super::super::bare::Bare;
use super::super::super::bytes::{Datagram, frame, kind, login_request};
use super::super::super::dice::Rigged;
use super::super::super::hall::{Answer, Hall, SERVICE, address};
use super::super::super::peer::Peer;
use super::super::knock;
use super::{HERE, come, go, limited};
use crate::world::seeds::seed;

/// Somebody's address.
fn ip(host: u8) -> IpAddr {
    Ipv4Addr::new(10, 0, 0, host).into()
}

/// How the names of refusals and of ends begin.
const REFUSALS: [&str; 5] = ["rejected-", "login-", "ignored-", "ended-", "no-entropy"];

/// All refusals that a service has counted.
fn refused(hall: &Hall) -> Vec<(&'static str, u64)> {
    let counted = hall.stats(SERVICE).into_iter();
    let is_refusal = |name: &str| REFUSALS.iter().any(|prefix| name.starts_with(prefix));
    counted
        .filter(|(name, count)| is_refusal(name) && *count > 0)
        .collect()
}

/// One of these was counted, once, nothing else was, and it was warned of as the sender's.
#[track_caller]
fn warns(hall: &mut Hall, host: u8, name: &'static str) {
    hall.settle();
    assert_eq!(refused(hall), [(name, 1)]);
    assert_eq!(hall.warnings(SERVICE), [(ip(host), name)]);
}

/// These were counted, nothing else was, and of none there was a warning.
#[track_caller]
fn is_silent(hall: &mut Hall, names: &[&'static str]) {
    hall.settle();
    let counted: Vec<&str> = refused(hall).into_iter().map(|(name, _)| name).collect();
    assert_eq!(counted, names);
    assert_eq!(hall.warnings(SERVICE), []);
}

#[test]
fn r135_warnings_of_datagrams() {
    let connect = |token: u32| Datagram::new(kind::CONNECT, token, &[]).bytes();
    let mut version = connect(1);
    version[4] = 3;
    let mut magic = connect(1);
    magic[0] ^= 1;
    let hello = Datagram::hello(0, b"", b"R9").bytes();
    for (name, bytes) in [
        ("ignored-short", connect(1)[..17].to_vec()),
        ("ignored-short", hello[..21].to_vec()),
        ("ignored-long", vec![0; 1201]),
        ("ignored-magic", magic),
        ("ignored-version", version),
        ("ignored-unknown-token", connect(1)),
        ("ignored-hello", hello[..30].to_vec()),
    ] {
        let mut hall = limited(&[]);
        let peer = hall.add(Peer::silent(&address(9)));
        hall[peer].raw(&bytes);
        warns(&mut hall, 9, name);
    }
    let mut hall = limited(&[]);
    let peer = hall.add(Peer::silent(&address(9)));
    hall[peer].raw_from("10.0.0.7:0".parse().expect("an address"), &connect(1));
    warns(&mut hall, 7, "ignored-source");

    let mut hall = limited(&[]);
    let player = hall.enter_silent("R9", 1);
    let bytes = connect(hall[player].token());
    hall[player].raw_from("10.0.0.8:8".parse().expect("an address"), &bytes);
    warns(&mut hall, 8, "ignored-bound-elsewhere");

    let mut hall = limited(&[]);
    let player = hall.enter_silent("R9", 1);
    let bytes = connect(hall[player].token() ^ 1);
    hall[player].raw(&bytes);
    warns(&mut hall, 1, "ignored-wrong-token");

    let mut hall = limited(&[("wrong-tokens", 1)]);
    let player = hall.enter_as("R9", Peer::silent(&address(1)).udp_at("10.0.0.8:8"));
    let bytes = connect(hall[player].token());
    hall[player].raw(&connect(1));
    hall[player].raw(&bytes);
    hall.settle();
    let warned = ["ignored-unknown-token", "ignored-guess"].map(|name| (ip(8), name));
    assert_eq!(hall.warnings(SERVICE), warned);

    let mut hall = limited(&[]);
    let player = hall.enter_silent("R9", 1);
    hall[player].send(99, &[]);
    warns(&mut hall, 1, "ended-protocol-error");
}

#[test]
fn r135_warnings_of_newcomers() {
    let mut hall = limited(&[]);
    hall.greet(5, &frame(&[99]));
    warns(&mut hall, 5, "login-malformed");

    let mut hall = limited(&[]);
    hall.greet(5, &[]);
    hall.for_ms(5000);
    warns(&mut hall, 5, "login-late");

    let mut hall = limited(&[]);
    let peer = hall.enter_silent("R9", 1);
    hall[peer].write(&frame(&[99]));
    warns(&mut hall, 1, "ended-malformed-stream");

    for version in [1, 2] {
        let mut hall = limited(&[("sessions-per-ip", 1)]);
        for number in 0..2 {
            let _ = come(&mut hall, version, HERE, number);
        }
        warns(&mut hall, 1, "rejected-too-many");
    }

    let dice = Rigged::new(&[]);
    let mut hall = Hall::with_dice(seed(), Box::new(dice.clone()));
    dice.breaks(true);
    let peer = hall.add(Peer::v2_silent(&address(3)));
    hall[peer].hello("R9");
    warns(&mut hall, 3, "no-entropy");
}

#[test]
fn r135_what_honest_players_may_do_is_only_counted() {
    let mut hall = limited(&[]);
    let peer = come(&mut hall, 1, HERE, 0).expect("a place");
    go(&mut hall, peer);
    let peer = hall.greet(2, &[]);
    hall[peer].fin();
    is_silent(&mut hall, &["ended-left", "login-abandoned"]);

    // What is told to the peer itself.
    let mut hall = Hall::new(seed());
    hall.shelf.open().answer = Answer::Refuse;
    hall.greet(1, &login_request(1, b"R9"));
    hall.greet(1, &login_request(1, b""));
    hall.greet(1, &login_request(2, b"R9"));
    knock(&mut hall, &address(1), b"9", b"R9");
    hall.shelf.open().answer = Answer::Admit;
    let players = [2, 3, 4].map(|host| hall.enter(&format!("p{host}"), host));
    hall.greet(1, &login_request(1, b"p2"));
    hall.enter("p5", 5);
    hall.greet(1, &login_request(1, b"R9"));
    hall.act(|replies| replies.start(0));
    go(&mut hall, players[0]);
    hall.greet(1, &login_request(1, b"R9"));
    is_silent(
        &mut hall,
        &[
            "ended-left",
            "rejected-server-full",
            "rejected-bad-version",
            "rejected-bad-name",
            "rejected-name-taken",
            "rejected-game-started",
            "rejected-no-such-game",
            "rejected-refused",
        ],
    );
    // A bad line, and the end.
    let mut hall = Hall::new(seed());
    let player = hall.enter_silent("R9", 1);
    let data = hall[player].send(kind::DATA, b"x");
    hall[player].raw(&data.bytes());
    hall[player].raw_from("10.0.0.1:9".parse().expect("an address"), &data.bytes());
    hall.for_ms(20_000);
    is_silent(
        &mut hall,
        &["ended-timed-out", "ignored-unbound", "ignored-repeated"],
    );
}

/// One of the datagrams that nobody should send, each kind in its turn.
fn bad(number: u32) -> Vec<u8> {
    let mut connect = Datagram::new(kind::CONNECT, 1 + number, &[]).bytes();
    match number % 5 {
        0 => connect.truncate(17),
        1 => connect[0] = 0,
        2 => connect[4] = 9,
        3 => return Datagram::hello(0, b"", b"R9").bytes()[..30].to_vec(),
        _ => {}
    }
    connect
}

/// What is written of a flood.
struct Log {
    quiet: Quiet,
    /// When a warning was written about each address.
    about: HashMap<IpAddr, Vec<u64>>,
    /// When, in all.
    lines: Vec<u64>,
    /// When it was told how many were suppressed.
    reports: Vec<(u64, u64)>,
}

impl Log {
    fn new() -> Self {
        Self {
            quiet: Quiet::new(&mut Seeded::new(seed())).expect("seeded dice never fail"),
            about: HashMap::new(),
            lines: Vec::new(),
            reports: Vec::new(),
        }
    }

    /// As a server does it with the effects of one datagram.
    fn write(&mut self, bare: &Bare) {
        let now = Time::from_ms(bare.now);
        for (about, _) in bare.warned() {
            if self.quiet.allow(now, about) {
                self.about.entry(about).or_default().push(bare.now);
                self.lines.push(bare.now);
            }
        }
        if let Some(count) = self.quiet.report(now) {
            self.reports.push((bare.now, count));
        }
    }
}

/// How many of these times lie in the fullest span of so many milliseconds.
fn fullest(times: &[u64], ms: u64) -> usize {
    let behind = |first: usize| {
        times[first..]
            .iter()
            .take_while(move |it| **it < times[first] + ms)
    };
    (0..times.len())
        .map(|first| behind(first).count())
        .max()
        .unwrap_or(0)
}

#[test]
fn r135_a_million_from_ten_thousand() {
    let mut bare = Bare::new(seed());
    let mut log = Log::new();
    // 25 a millisecond, for 40 s.
    for number in 0..1_000_000 {
        let host = Ipv4Addr::from_bits(0x0B00_0000 + number % 10_000);
        bare.hear(SocketAddr::from((host, 4000)), &bad(number));
        log.write(&bare);
        if number % 25 == 24 {
            bare.pass(1);
        }
    }
    let kinds = ["short", "magic", "version", "hello", "unknown-token"];
    for kind in kinds {
        assert_eq!(bare.count(&format!("ignored-{kind}")), 200_000);
    }
    let printed = log.lines.len();
    assert_eq!(log.quiet.printed(), printed as u64);
    assert_eq!(log.quiet.printed() + log.quiet.suppressed(), 1_000_000);
    // 20 at once and 20 a second; about anybody three at once and one in ten seconds.
    assert!((800..=820).contains(&printed), "{printed}");
    assert!(fullest(&log.lines, 1000) <= 40);
    for times in log.about.values() {
        assert!(fullest(times, 10_000) <= 4);
        assert!(times.len() <= 3 + 3);
    }
    // What was suppressed is told in a line a second, all of it.
    let told: u64 = log.reports.iter().map(|(_, count)| count).sum();
    let rest = log.quiet.last_report().unwrap_or(0);
    assert_eq!(told + rest, log.quiet.suppressed());
    let times: Vec<u64> = log.reports.iter().map(|(at, _)| *at).collect();
    assert!((39..=40).contains(&times.len()), "{times:?}");
    assert_eq!(fullest(&times, 1000), 1);
}

#[test]
fn r135_one_loud_address_silences_nobody_else() {
    let mut bare = Bare::new(seed());
    let mut log = Log::new();
    let (loud, other) = ("192.0.2.1:1", "192.0.2.2:1");
    for number in 0..60_000 {
        let from = if number % 1000 == 999 { other } else { loud };
        bare.hear(from.parse().expect("an endpoint"), &bad(number));
        log.write(&bare);
        bare.pass(1);
    }
    // Three at once and one every ten seconds, about each as if it were alone.
    let of = |at: &str| log.about[&at.parse::<SocketAddr>().expect("an endpoint").ip()].len();
    assert_eq!((of(loud), of(other)), (3 + 5, 3 + 5));
}
