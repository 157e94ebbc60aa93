//! The process runs out of descriptors: those who play go on, the loop does not spin, and when
//! there are some again whoever waited gets in.

use std::net::TcpStream;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::player::{Login, Player, connect, exchange};
use crate::program::{Program, anteroom, until};

const LIMIT: u32 = 40;
/// More than there are descriptors for, for longer than the test takes: every 5 s as many as
/// there is room for are closed, because they do not log in.
const CROWD: usize = 300;

const MEASURED: Duration = Duration::from_secs(2);
/// A tenth of a processor. A loop that spins takes all that it gets.
const CPU_MAX: Duration = Duration::from_millis(200);

#[test]
fn players_play_on_without_descriptors_and_who_waits_gets_in_when_there_are_some() {
    let server = Program::spawn(&mut limited());
    let mut one = Player::enter(server.tcp(), "one");
    let mut two = Player::enter(server.tcp(), "two");
    let crowd: Vec<TcpStream> = (0..CROWD).map(|_| connect(server.tcp())).collect();
    let has_none = || server.descriptors_below(LIMIT) == LIMIT as usize;
    until("no descriptor is left", has_none);

    let (began, before) = (Instant::now(), server.cpu());
    let mut rounds = 0..;
    while began.elapsed() < MEASURED {
        for round in rounds.by_ref().take(2) {
            exchange(&mut one, &mut two, round);
        }
        one.play_until(Instant::now() + Duration::from_millis(50));
    }
    let used = server.cpu() - before;
    println!("{used:?} of a processor in {MEASURED:?} without descriptors");
    assert!(used <= CPU_MAX, "{used:?}");
    until("still no descriptor is left", has_none);

    one.assert_undisturbed();
    two.assert_undisturbed();

    // This one is behind all the others, and when they are gone nobody is there any more who could
    // wake the server up by chance.
    let waiting = connect(server.tcp());
    drop((one, two, crowd));
    Login::over(waiting, "waited");
    Login::new(server.tcp(), "came later");
    server.signal("TERM");
    assert_eq!(server.end(Duration::from_secs(5)), Some(0));
}

/// A server that may have so few descriptors, and cannot ask for more.
fn limited() -> Command {
    let program = anteroom(&["--bind", "127.0.0.1"]);
    let mut shell = Command::new("sh");
    let script = format!("ulimit -n {LIMIT}; exec \"$0\" \"$@\"");
    shell.args(["-c", &script]).arg(program.get_program());
    shell.args(program.get_args());
    shell
}
