//! What strangers can have written to the log: little, and all else is counted.

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::{self, ErrorKind, PipeWriter, Read, Write};
use std::net::IpAddr;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::PATIENCE;
use crate::flood::hello::Newcomer;
use crate::flood::sender::{Sender, address, junk};
use crate::flood::watched::Watched;
use crate::player::{Player, exchange_in_a_flood};
use crate::program::{Program, anteroom};

const LASTS: Duration = Duration::from_secs(3);
/// Bad datagrams a second, where it is not as many as can be sent.
const RATE: u64 = 20_000;

/// Lines about strangers: so many at once, and as many a second.
const LINES: f64 = 20.0;
/// Lines about one of them: so many at once, and one in 10 s.
const LINES_PER_IP: usize = 3;

/// `O_NONBLOCK` of Linux.
const NONBLOCK: i32 = 0o4000;

#[test]
fn many_addresses_have_no_more_lines_than_the_budget_that_all_share() {
    let _alone = crate::alone();
    let flooded = Flooded::by(address, Some(RATE));
    let lines = flooded.lines_of_each();
    assert!(lines.len() as f64 >= LINES * LASTS.as_secs_f64(), "used");
    assert!(lines.values().all(|lines| *lines == 1));
}

#[test]
fn nor_have_they_when_as_much_comes_as_can_be_sent() {
    let _alone = crate::alone();
    Flooded::by(address, None);
}

#[test]
fn an_address_has_no_more_lines_than_its_own_budget() {
    let _alone = crate::alone();
    let loud = |number: u64| IpAddr::from([127, 9, 9, number as u8 % 5]);
    let flooded = Flooded::by(loud, Some(RATE));
    let more = flooded.lasted.as_secs() as usize / 10 + 1;
    let lines = flooded.lines_of_each();
    assert_eq!(lines.len(), 5);
    for lines in lines.values() {
        assert!((LINES_PER_IP..=LINES_PER_IP + more).contains(lines));
    }
}

/// What became of a flood of bad datagrams.
struct Flooded {
    /// Whose datagrams were warned of, once for each line.
    warned_of: Vec<IpAddr>,
    /// From the first datagram to the end of the program.
    lasted: Duration,
}

impl Flooded {
    /// Sends from these addresses, and checks that what was refused was either written or
    /// counted, and within the budget.
    #[track_caller]
    fn by(from: fn(u64) -> IpAddr, rate: Option<u64>) -> Self {
        let mut server = Watched::start(&[]);
        let mut sender = Sender::from(from, server.program.udp()).expect("a socket");
        let began = Instant::now();
        sender.flood(rate, |_| began.elapsed() >= LASTS, junk);
        let numbers = server.numbers();
        let log = server.end();
        let lasted = began.elapsed();

        let (warned_of, suppressed) = (log.warned_of(), log.suppressed());
        let (lines, unwritten) = (warned_of.len() as u64, suppressed.iter().sum());
        println!("{} sent; {numbers:?}; {suppressed:?}", sender.sent());
        let refused = numbers.starting("ignored");
        assert_eq!(numbers.of("datagrams-in"), refused, "all were bad");
        // Nobody is warned of what also comes from those whose session has just ended.
        let refused = refused - numbers.of("ignored-unbound");
        assert_eq!(lines + unwritten, refused, "written or counted");
        assert_eq!(numbers.of("warnings"), lines);
        assert_eq!(numbers.of("warnings-suppressed"), unwritten);
        assert!(lines as f64 <= LINES * (1.0 + lasted.as_secs_f64()));
        // One line a second says how many, and one more does so at the end.
        assert!(suppressed.len() as u64 <= lasted.as_secs() + 2);
        // Nothing else was written, but for the numbers.
        let others = log.lines().len() - warned_of.len() - suppressed.len();
        assert!(others < 10, "{:?}", log.lines());
        Self { warned_of, lasted }
    }

    /// How many lines there are about each.
    fn lines_of_each(&self) -> HashMap<IpAddr, usize> {
        let mut lines = HashMap::new();
        for ip in &self.warned_of {
            *lines.entry(*ip).or_default() += 1;
        }
        lines
    }
}

#[test]
fn a_standard_error_that_nobody_reads_stops_nothing_in_a_flood() {
    let _alone = crate::alone();
    let (mut unread, writer) = io::pipe().expect("a pipe");
    let filling = fill(&writer);
    let mut command = anteroom(&["--bind", "127.0.0.1", "--games", "2"]);
    let server = Program::spawn(command.stderr(writer));
    // With it goes the last writing end but the program's own.
    drop(command);
    let (tcp, udp) = (server.tcp(), server.udp());
    let (mut one, mut two) = (Player::enter(tcp, "one"), Player::enter(tcp, "two"));

    let (began, is_over) = (Instant::now(), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut sender = Sender::new(udp).expect("a socket");
            // It ends also where nobody says so, because the test has failed.
            let is_late = || began.elapsed() >= 2 * PATIENCE;
            let is_over = |_| is_over.load(Ordering::Acquire) || is_late();
            sender.flood(Some(RATE), is_over, junk);
        });
        let mut rounds = 0..;
        while began.elapsed() < LASTS {
            for round in rounds.by_ref().take(2) {
                exchange_in_a_flood(&mut one, &mut two, round);
            }
            one.play_until(Instant::now() + Duration::from_millis(10));
            two.play_until(Instant::now() + Duration::from_millis(10));
        }
        let mut newcomer = Newcomer::new([127, 0, 0, 2].into(), udp, "three").expect("a socket");
        let is_in = newcomer.enter(Instant::now() + Duration::from_secs(5));
        is_over.store(true, Ordering::Release);
        assert!(is_in, "three is not in after {} tries", newcomer.tries);
    });
    server.signal("TERM");
    assert_eq!(server.end(Duration::from_secs(5)), Some(0));
    let mut bytes = Vec::new();
    unread.read_to_end(&mut bytes).expect("the filling");
    assert_eq!(bytes.len(), filling, "there was no room all the while");
}

/// Fills a pipe; returns with how many bytes.
fn fill(pipe: &PipeWriter) -> usize {
    // Opened anew it can be told not to wait, and whoever inherits the other end still does.
    let path = format!("/proc/self/fd/{}", pipe.as_raw_fd());
    let opened = OpenOptions::new()
        .write(true)
        .custom_flags(NONBLOCK)
        .open(path);
    let mut unwaiting = opened.expect("the pipe");
    let mut filling = 0;
    loop {
        match unwaiting.write(&[b'\n'; 4096]) {
            Ok(count) => filling += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return filling,
            Err(error) => panic!("cannot fill the pipe: {error}"),
        }
    }
}
