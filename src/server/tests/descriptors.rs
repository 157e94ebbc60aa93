//! A process that has run out of descriptors goes on accepting when it has some again.

use std::fs::File;
use std::process::Command;

use super::*;

/// Set in the process in which descriptors run out, since all tests of one share them.
const ALONE: &str = "ANTEROOM_TEST_ALONE";

#[test]
fn accepting_goes_on_by_itself_when_there_are_descriptors_again() {
    if std::env::var_os(ALONE).is_some() {
        return run_out();
    }
    let name = "server::tests::descriptors::\
                accepting_goes_on_by_itself_when_there_are_descriptors_again";
    let output = Command::new("sh")
        .args(["-c", "ulimit -n 64 && exec \"$0\" \"$@\""])
        .arg(std::env::current_exe().expect("this program"))
        .args(["--exact", name, "--nocapture"])
        .env(ALONE, "1")
        .output()
        .expect("a shell");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    assert!(text.contains("1 passed"), "{text}");
}

fn run_out() {
    let mut server = Bound::new(&on(&["127.0.0.1"]));
    let streams: Vec<TcpStream> = (0..15).map(|_| connect(server.tcp())).collect();
    // Whatever is free now is taken, but for a few.
    let mut others: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    others.truncate(others.len() - 5);
    let accepted = server.turn_dry().len();
    assert_eq!(accepted, 5);
    assert_eq!(server.server.stats().get("echo", "accept-paused"), Some(1));
    // Nothing tells the server that there are descriptors again.
    drop(others);
    let rest = server.turn_until(streams.len() - accepted);
    assert!(rest.iter().all(|note| matches!(note, Note::Opened(_))));
}
