//! Players who hear nothing any more: they do not read, or their network is gone without a word.

use std::ops::Range;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::bytes::{Event, kind, left, logout};
use crate::player::{Player, exchange, read_all};
use crate::program::{Program, anteroom, pass};

/// How long a player may be silent, and what a busy machine may add.
const SILENCE: Range<Duration> = Duration::from_millis(9500)..Duration::from_secs(13);

/// How long a stop may take, on a busy machine.
const END_WITHIN: Duration = Duration::from_millis(3500);

#[test]
fn who_reads_nothing_any_more_times_out_and_holds_nobody_up() {
    let server = Program::start(&[]);
    let enter = |name| Player::enter(server.tcp(), name);
    let (mut one, mut two, mut deaf) = (enter("one"), enter("two"), enter("deaf"));
    let began = Instant::now();
    deaf.is_heard();
    let mut rounds = 0..;
    let left = loop {
        // More than the deaf one's socket has room for, and all of it arrives at the others.
        for round in rounds.by_ref().take(5) {
            exchange(&mut one, &mut two, round);
        }
        pass(Instant::now() + Duration::from_millis(20));
        if let Some(left) = one.events.iter().find(|event| !event.is_join()) {
            break left.clone();
        }
        assert!(began.elapsed() < SILENCE.end, "it has not timed out");
    };
    assert_eq!(left.body, [deaf.number, left::TIMED_OUT]);
    let after = began.elapsed();
    println!("timed out after {after:?}");
    assert!(SILENCE.contains(&after), "{after:?}");
    two.hears_left(deaf.number, left::TIMED_OUT);
    assert_eq!(read_all(&mut deaf.stream), logout(left::TIMED_OUT));
}

/// Set in the process that has a network of its own.
const ALONE: &str = "ANTEROOM_TEST_ALONE";

#[test]
fn a_player_whose_network_dies_times_out_and_holds_up_no_stop() {
    if std::env::var_os(ALONE).is_some() {
        return networks_die();
    }
    let link = "ip link add near0 type veth peer name far0";
    let mut probe = Command::new("unshare");
    let probe = probe.args(["--net", "sh", "-c", link]).output();
    if !probe.is_ok_and(|output| output.status.success()) {
        println!("skipped: no networks can be made here; this takes root, unshare, ip and veth");
        return;
    }
    let name = "rtyp::deaf::a_player_whose_network_dies_times_out_and_holds_up_no_stop";
    let output = Command::new("unshare")
        .arg("--net")
        .arg(std::env::current_exe().expect("this program"))
        .args(["--exact", name, "--nocapture"])
        .env(ALONE, "1")
        .output()
        .expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout);
    println!("{text}");
    assert!(output.status.success(), "{output:?}");
    assert!(text.contains("1 passed"));
}

/// In a network of our own, with the server in another, and one link for each player.
fn networks_die() {
    let bin = anteroom(&["--bind", "0.0.0.0"]);
    let mut apart = Command::new("unshare");
    apart
        .arg("--net")
        .arg(bin.get_program())
        .args(bin.get_args());
    let server = Program::spawn(&mut apart);
    let enter = |index: u8, name| {
        lay_link(&server, index);
        Player::enter(server.at(&format!("198.18.{index}.2")).0, name)
    };
    let (mut witness, mut cut) = (enter(1, "witness"), enter(2, "cut"));
    let mut cut_late = enter(3, "cut late");
    let mut friend = Player::enter(server.at("198.18.1.2").0, "friend");
    let began = Instant::now();
    cut.is_heard();
    run("ip link set near2 down");
    for round in 0.. {
        if !witness.events.iter().all(Event::is_join) {
            break;
        }
        assert!(began.elapsed() < SILENCE.end, "it has not timed out");
        exchange(&mut witness, &mut friend, round);
        cut_late.play_until(Instant::now() + Duration::from_millis(50));
    }
    let after = began.elapsed();
    println!("timed out after {after:?}");
    witness.hears_left(cut.number, left::TIMED_OUT);
    assert!(SILENCE.contains(&after), "{after:?}");

    run("ip link set near3 down");
    witness.send(kind::DATA, b"lost on the way to one of us");
    let asked = Instant::now();
    server.signal("TERM");
    assert_eq!(read_all(&mut witness.stream), logout(left::SHUTDOWN));
    assert_eq!(server.end(END_WITHIN), Some(0));
    println!("ended after {:?}", asked.elapsed());
}

/// Joins our network and the server's: we are `198.18.INDEX.1` there, and it is `.2`.
fn lay_link(server: &Program, index: u8) {
    let id = server.id();
    run(&format!(
        "ip link add near{index} type veth peer name far{index} netns {id}
         ip addr add 198.18.{index}.1/24 dev near{index}
         ip link set near{index} up
         nsenter --target {id} --net ip addr add 198.18.{index}.2/24 dev far{index}
         nsenter --target {id} --net ip link set far{index} up"
    ));
}

fn run(script: &str) {
    let status = Command::new("sh").args(["-ec", script]).status();
    assert!(status.expect("a shell").success(), "{script}");
}
