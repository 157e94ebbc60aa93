//! What a flood costs those who play: how much of what they say comes back, and how late, at the
//! server and at the bare loop under the same flood.
//!
//! Three threads may have but two cores: the loop, the flooder, and the players. A flooder of the
//! world has a machine of its own, so the loop asks to run before others. All else is the
//! scheduler's affair, so both sides are measured in short slices in turn, and what counts is the
//! median of the ratios of two slices that follow each other.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anteroom::Remote;

use crate::common::bytes::kind;
use crate::common::floor::{Floor, Loop};
use crate::common::pairs::Spread;
use crate::common::players::Players;
use crate::common::priority::prefer_this_thread;
use crate::common::report::Report;
use crate::common::served::Served;
use crate::common::talkers::{Talk, Talkers};
use crate::flood::sender::{Sender, first_hello, junk};

/// Of what is said so much must come back, as a part of what comes back from the bare loop, up to
/// two thirds of the rate at which one thread can send.
const SHARE: f64 = 0.97;
/// Players, each with a game to itself. Together they say 800 things a second.
const PLAYERS: usize = 16;
/// How long one side is measured before it is the other's turn.
const SLICE: Duration = Duration::from_millis(250);
/// Pairs of slices.
const PAIRS: usize = 11;
/// Before a slice is measured its flood has been there for so long.
const SETTLING: Duration = Duration::from_millis(30);
/// So long as much as can be sent is sent at those who play: longer than a session may be silent.
const ENDURED: Duration = Duration::from_secs(12);

/// Writes the datagram of this number.
type Write = fn(u64, &mut Vec<u8>);

/// How much comes.
#[derive(Clone, Copy, PartialEq)]
enum Level {
    Calm,
    /// So many a second.
    Paced(u64),
    /// As many as one thread can send.
    Full,
}

/// Measures, prints and judges all of it.
pub fn shares(report: &mut Report) {
    let mut floor = Floor::echoing(is_of_a_player).expect("free ports");
    let mut served = Served::bind(PLAYERS);
    let mut at_floor = Side::of(&mut floor);
    let mut at_server = Side::of(&mut served);
    let remote = served.0.remote();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            prefer_this_thread();
            floor.run(&is_over);
        });
        scope.spawn(|| {
            prefer_this_thread();
            served.0.run()
        });
        // Also if something fails: whoever is not told would be waited for.
        let _ending = Ending {
            remote: &remote,
            is_over: &is_over,
        };
        measure(report, &mut at_floor, &mut at_server, &remote);
        drop((at_floor, at_server));
    });
}

/// What the bare loop sends back: a Connect, or Data.
fn is_of_a_player(datagram: &[u8]) -> bool {
    matches!(
        datagram,
        [b'R', b'T', b'Y', b'P', 1, kind::CONNECT | kind::DATA, ..]
    )
}

/// Ends both loops when it goes.
struct Ending<'a> {
    remote: &'a Remote,
    is_over: &'a AtomicBool,
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        // One that has failed has ended.
        let _ = self.remote.stop();
    }
}

fn measure(report: &mut Report, floor: &mut Side, server: &mut Side, remote: &Remote) {
    let buffers = &remote.addresses()[0].receive_buffers;
    report.note(&format!(
        "{PLAYERS} players in a flood, with a receive buffer of {buffers:?} bytes"
    ));
    let pairs = report.repeat(PAIRS) | 1;
    let mut judge = |what: &str, sides: [&mut Side; 2], level: Level, write: Write| {
        let cell = Cell::measure(pairs, sides, level, write);
        cell.tell(report, what, level);
    };
    judge("no flood", [floor, server], Level::Calm, junk);
    for (name, write) in [("junk", junk as Write), ("hellos", first_hello)] {
        let full = floor.full_rate(write);
        for (part, level) in [
            ("a third", Level::Paced(full / 3)),
            ("two thirds", Level::Paced(full * 2 / 3)),
            ("all", Level::Full),
        ] {
            judge(
                &format!("{part} of a flood of {name}"),
                [floor, server],
                level,
                write,
            );
        }
    }
    let enduring = if report.is_quick() { SLICE } else { ENDURED };
    let (talk, rate) = server.slice(Level::Full, mixed, enduring);
    report.note(&format!(
        "{} s of {rate:.0} of both a second: {:.3} comes back",
        enduring.as_secs(),
        talk.share()
    ));
    let stats = remote.stats().expect("it runs");
    let count = |name| stats.get("rtyp", name);
    assert_eq!(count("sessions"), Some(PLAYERS as u64), "nobody was lost");
    assert_eq!(
        count("logins"),
        Some(PLAYERS as u64),
        "and nobody else came"
    );
}

/// Junk and hellos in turn.
fn mixed(number: u64, bytes: &mut Vec<u8>) {
    if number.is_multiple_of(2) {
        junk(number / 2, bytes);
    } else {
        first_hello(number, bytes);
    }
}

/// A loop as those outside of it know it: its players, and who floods it.
struct Side {
    talkers: Talkers,
    sender: Sender,
}

impl Side {
    fn of(subject: &mut dyn Loop) -> Self {
        let players = Players::join(subject, PLAYERS).expect("players");
        Self {
            talkers: Talkers::new(players).expect("a poll"),
            sender: Sender::new(subject.udp()).expect("a socket"),
        }
    }

    /// The players talk for so long in a flood; returns what came of it, and how much flooded a
    /// second.
    fn slice(&mut self, level: Level, write: Write, lasting: Duration) -> (Talk, f64) {
        let rate = match level {
            Level::Calm => return (self.talkers.talk(lasting), 0.0),
            Level::Paced(rate) => Some(rate),
            Level::Full => None,
        };
        let (talkers, sender) = (&mut self.talkers, &mut self.sender);
        let is_over = AtomicBool::new(false);
        let (began, before) = (Instant::now(), sender.sent());
        let talk = thread::scope(|scope| {
            scope.spawn(|| sender.flood(rate, |_| is_over.load(Ordering::Acquire), write));
            talkers.wait(SETTLING);
            let talk = talkers.talk(lasting);
            is_over.store(true, Ordering::Release);
            talk
        });
        let sent = sender.sent() - before;
        (talk, sent as f64 / began.elapsed().as_secs_f64())
    }

    /// How many of these one thread can send a second while a loop takes them: the most of some
    /// slices, since others may have had the processor in the rest.
    fn full_rate(&mut self, write: Write) -> u64 {
        let slices = (0..3).map(|_| self.slice(Level::Full, write, SLICE).1);
        slices.fold(0.0, f64::max) as u64
    }
}

/// One kind of flood at one rate, at both sides.
#[derive(Default)]
struct Cell {
    floor: Slices,
    server: Slices,
}

/// The slices of one side.
#[derive(Default)]
struct Slices {
    shares: Vec<f64>,
    delays_us: Vec<f64>,
    rates: Vec<f64>,
}

impl Cell {
    fn measure(pairs: usize, [floor, server]: [&mut Side; 2], level: Level, write: Write) -> Self {
        let mut cell = Self::default();
        for pair in 0..pairs {
            // Neither is always the first.
            if pair % 2 == 0 {
                cell.floor.add(floor.slice(level, write, SLICE));
            }
            cell.server.add(server.slice(level, write, SLICE));
            if pair % 2 == 1 {
                cell.floor.add(floor.slice(level, write, SLICE));
            }
        }
        cell
    }

    fn tell(&self, report: &mut Report, what: &str, level: Level) {
        let pairs = self.server.shares.iter().zip(&self.floor.shares);
        let ratios = pairs.map(|(server, floor)| server / floor.max(f64::MIN_POSITIVE));
        let ratio = Spread::of(ratios.collect());
        let least = (level != Level::Full).then_some(SHARE);
        report.at_least(&format!("{what}: share"), ratio.median, least);
        report.note(&format!("    server {}", self.server));
        report.note(&format!("    floor  {}", self.floor));
    }
}

impl Slices {
    fn add(&mut self, (talk, rate): (Talk, f64)) {
        self.shares.push(talk.share());
        self.delays_us.extend(talk.delays_us);
        self.rates.push(rate);
    }
}

impl std::fmt::Display for Slices {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (share, rate) = (
            Spread::of(self.shares.clone()),
            Spread::of(self.rates.clone()),
        );
        write!(
            f,
            "{:>7.0}/s   {:.3} comes back ({:.3} to {:.3})",
            rate.median, share.median, share.least, share.most
        )?;
        let mut delays = self.delays_us.clone();
        delays.sort_by(f64::total_cmp);
        let Some(last) = delays.len().checked_sub(1) else {
            return Ok(());
        };
        let at = |part: usize| delays[last * part / 100] / 1000.0;
        write!(
            f,
            ", half within {:.2} ms, 99 % within {:.2} ms",
            at(50),
            at(99)
        )
    }
}
