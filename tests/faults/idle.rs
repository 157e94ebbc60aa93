//! A server to which nobody is connected costs nothing.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::player::{Player, exchange};
use crate::program::{Program, anteroom, pass, until};

const WATCHED: Duration = Duration::from_secs(10);

/// What the program may have in memory when it has just started.
const RESIDENT_KIB_MAX: u64 = 6 * 1024;

#[test]
fn an_empty_server_does_nothing_at_all() {
    let server = Program::spawn(&mut anteroom(&[]));
    // Also when it is empty again.
    let (mut one, mut two) = (
        Player::enter(server.at("127.0.0.1").0, "one"),
        Player::enter(server.at("127.0.0.1").0, "two"),
    );
    exchange(&mut one, &mut two, 0);
    drop((one, two));
    let mut last = 0;
    until("it waits", || {
        // Whatever it still had to do takes much less time than this.
        pass(Instant::now() + Duration::from_secs(2));
        std::mem::replace(&mut last, server.switches()) == server.switches()
    });

    let (cpu, switches) = (server.cpu(), server.switches());
    pass(Instant::now() + WATCHED);
    assert_eq!(server.switches(), switches, "a thread of it ran");
    assert_eq!(server.cpu(), cpu);
    server.signal("TERM");
    assert_eq!(server.end(Duration::from_secs(5)), Some(0));
}

#[test]
fn an_empty_server_calls_the_system_not_once_in_10_s() {
    let server = Program::spawn(&mut anteroom(&[]));
    let path = std::env::temp_dir().join(format!("anteroom-strace-{}", server.id()));
    let traced = Command::new("timeout")
        .args(["--signal=INT", "11", "strace", "-f", "-qq", "-ttt", "-o"])
        .arg(&path)
        .args(["-p", &server.id().to_string()])
        .output();
    let log = fs::read_to_string(&path);
    let Ok(log) = log else {
        println!("skipped: strace is not to be had: {traced:?}");
        return;
    };
    fs::remove_file(&path).expect("it was there");
    println!("{log}");
    // Being attached to and let go again wakes the waiting threads up.
    let calls: Vec<(f64, &str)> = log.lines().filter_map(call).collect();
    let attached = calls.first().expect("a call that waits").0;
    let during = |(at, _): &&(f64, &str)| (1.0..10.5).contains(&(at - attached));
    let during: Vec<_> = calls.iter().filter(during).collect();
    assert!(during.is_empty(), "{during:?}");
}

/// When a line of strace says that a call was made, and the line.
fn call(line: &str) -> Option<(f64, &str)> {
    let at = line.split_whitespace().nth(1)?.parse().ok()?;
    Some((at, line))
}

#[test]
fn it_is_small_when_it_starts() {
    let server = Program::spawn(&mut anteroom(&[]));
    let resident = server.resident_kib();
    println!("{resident} KiB resident of {RESIDENT_KIB_MAX} allowed");
    assert!(resident <= RESIDENT_KIB_MAX, "{resident} KiB");
}
