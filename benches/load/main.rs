//! The server through real sockets, next to a bare mio loop that makes the same calls: what a
//! datagram costs, what a login costs, and what a flood costs those who play meanwhile.
#![forbid(unsafe_code)]

#[path = "../common/mod.rs"]
mod common;
#[path = "../../tests/faults/flood/mod.rs"]
#[allow(dead_code, reason = "the tests use the rest of it")]
mod flood;
mod flooded;
#[path = "../../tests/faults/program.rs"]
#[allow(dead_code, reason = "the tests use the rest of it")]
mod program;

use std::process::ExitCode;
use std::time::Duration;

use common::descriptors;
use common::floor::{Floor, Loop};
use common::pairs::{Pairs, ns};
use common::players::{Players, WINDOW};
use common::report::Report;
use common::served::Served;
use flood::siege::Siege;

/// Server CPU per datagram, as a multiple of the floor's.
const DATAGRAM: f64 = 1.25;
/// That multiple at the most sessions, as a multiple of that at ten.
const GROWTH: f64 = 1.2;
/// Server CPU per login, from the connection to the Accept, as a multiple of the floor's.
const LOGIN: f64 = 1.3;

const SESSIONS: [usize; 4] = [1, 10, 100, 1_000];
/// Longer than anything here takes; whoever waits for it has failed.
const PATIENCE: Duration = Duration::from_secs(20);
/// A datagram socket and both ends of a connection for each player of either loop.
const DESCRIPTORS_EACH: usize = 6;

fn main() -> ExitCode {
    let mut report = Report::new("load: 64-byte datagrams and logins through loopback sockets");
    let descriptors = descriptors::raise();
    datagrams(&mut report, descriptors);
    logins(&mut report);
    flooded::shares(&mut report);
    sieges(&report);
    report.exit()
}

/// Data that comes back to its sender, in windows of 32 spread over the sessions.
fn datagrams(report: &mut Report, descriptors: usize) {
    let mut ratios = Vec::new();
    for sessions in SESSIONS {
        if descriptors < sessions * DESCRIPTORS_EACH {
            report.note(&format!(
                "{sessions} sessions: not with {descriptors} descriptors"
            ));
            break;
        }
        let pairs = echo(sessions, report.repeat(1_000));
        report.pairs(
            &format!("datagram, {sessions} sessions"),
            &pairs,
            Some(DATAGRAM),
        );
        ratios.push(pairs.ratio().median);
    }
    if let ([_, ten, ..], Some(most)) = (&ratios[..], ratios.last()) {
        report.number(
            "ratio at the most sessions to that at 10",
            most / ten,
            "x",
            Some(GROWTH),
        );
    }
}

/// The nanoseconds of a datagram at the floor and at the server, of `windows` of them.
fn echo(sessions: usize, windows: usize) -> Pairs {
    let (mut floor, mut served) = (Floor::bind().expect("free ports"), Served::bind(sessions));
    let mut at_floor = Players::join(&mut floor, sessions).expect("players");
    let mut at_served = Players::join(&mut served, sessions).expect("players");
    let measure = |players: &mut Players, subject: &mut dyn Loop| {
        let mut spent = Duration::ZERO;
        for _ in 0..windows {
            spent += players.echo_window(subject).expect("a window");
        }
        ns(spent, windows * WINDOW)
    };
    let pairs = Pairs::measure(
        || measure(&mut at_floor, &mut floor),
        || measure(&mut at_served, &mut served),
    );
    assert_eq!(served.count("sessions"), sessions as u64, "nobody was lost");
    pairs
}

/// Logins from the connection to the Accept, each when the one before it is over; and several at
/// a time, for comparison. The floor answers a Connect once; the server, which must, sends a Ping
/// behind the Accept, and that is most of the difference.
fn logins(report: &mut Report) {
    for (window, limit) in [(1, Some(LOGIN)), (8, None)] {
        let rounds = report.repeat(800) / window;
        let (mut floor, mut served) = (Floor::bind().expect("free ports"), Served::bind(window));
        let pairs = Pairs::measure(
            || login(&mut floor, window, rounds),
            || login(&mut served, window, rounds),
        );
        report.pairs(
            &format!("login to Accept, {window} at a time"),
            &pairs,
            limit,
        );
    }
}

/// The nanoseconds of a login. All who came leave again, which is not timed.
fn login(subject: &mut dyn Loop, window: usize, rounds: usize) -> f64 {
    let rounds = rounds.max(1);
    let mut spent = Duration::ZERO;
    for _ in 0..rounds {
        let mut players = Players::default();
        spent += players.join_window(subject, window).expect("players");
        players.leave(subject);
    }
    ns(spent, rounds * window)
}

/// Floods of first hellos at the program itself: nothing is kept for them, and whoever is honest
/// gets in. That is no matter of speed, so it holds for quick runs, too.
fn sieges(report: &Report) {
    let hellos = report.repeat(200_000) as u64;
    for (what, rate, within) in [
        ("20000 hellos a second", Some(20_000), 1),
        ("hellos at full rate", None, 30),
    ] {
        let outcome = Siege {
            rate,
            hellos,
            honest: if rate.is_some() { 1 } else { 4 },
            head_start: Duration::from_secs(1),
            within: Duration::from_secs(within),
        }
        .lay();
        report.note(&format!("{what}: {outcome}"));
        outcome.assert_harmless();
    }
}
