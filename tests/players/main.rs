//! `anteroom bots` and `anteroom chat` from outside, at a server of this process.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::process::{Child, ChildStdin, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anteroom::{Config, Error, Remote, Rtyp, Server};

mod rooms;

/// How long anything may take before a test fails.
const PATIENCE: Duration = Duration::from_secs(20);

/// A server with so many games.
struct Serving {
    remote: Remote,
    thread: Option<JoinHandle<Result<(), Error>>>,
}

impl Serving {
    fn games(games: u32) -> Self {
        Self::serve(Config {
            rtyp: Some(Rtyp {
                port: 0,
                games,
                ..Rtyp::default()
            }),
            ..Config::default()
        })
    }

    fn serve(config: Config) -> Self {
        let server = Server::bind(Config {
            bind: vec!["127.0.0.1".parse().expect("an address")],
            ..config
        });
        let (remote, thread) = server.expect("bound").spawn().expect("a thread");
        let thread = Some(thread);
        Self { remote, thread }
    }

    fn address(&self) -> String {
        self.remote.addresses()[0].tcp[0].to_string()
    }

    /// Where players of version 2 say hello.
    fn udp(&self) -> String {
        self.remote.addresses()[0].udp[0].to_string()
    }

    fn stop(&mut self) {
        let _ = self.remote.stop();
        if let Some(thread) = self.thread.take() {
            let ended = thread.join().expect("no panic");
            assert!(ended.is_ok(), "{ended:?}");
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.stop();
    }
}

fn anteroom(command: &str, server: &str, arguments: &[&str]) -> Command {
    let mut program = Command::new(env!("CARGO_BIN_EXE_anteroom"));
    program.args([command, "--server", server]).args(arguments);
    program.stdin(Stdio::null()).env_remove("RUST_LOG");
    program
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("the program prints UTF-8")
}

fn bots(server: &str, arguments: &[&str]) -> Output {
    let output = anteroom("bots", server, arguments).output();
    output.expect("the program starts")
}

/// The number in a line of the table.
#[track_caller]
fn number(table: &str, name: &str) -> u64 {
    let line = table.lines().find_map(|line| line.strip_prefix(name));
    let number = line.map(str::trim).and_then(|number| number.parse().ok());
    number.unwrap_or_else(|| panic!("no {name} in:\n{table}"))
}

#[test]
fn bots_play_in_their_games_and_lose_nothing() {
    let serving = Serving::games(3);
    let wanted = ["--count", "10", "--seconds", "2", "--rate", "50"];
    let version_2 = [&wanted[..], &["--v2"]].concat();
    for output in [
        bots(&serving.address(), &wanted),
        bots(&serving.udp(), &version_2),
    ] {
        assert_nothing_lost(&output);
    }
}

/// Ten bots played in games of four, four and two.
#[track_caller]
fn assert_nothing_lost(output: &Output) {
    let table = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{table}");
    assert_eq!(number(&table, "logins done"), 10);
    assert_eq!(number(&table, "logins failed"), 0);
    assert_eq!(number(&table, "sessions rejoined"), 0);
    assert_eq!(number(&table, "sessions ended early"), 0);
    assert_eq!(number(&table, "datagrams lost"), 0, "{table}");
    let sent = number(&table, "datagrams sent");
    assert!((200..=1_000).contains(&sent), "{table}");
    let received = number(&table, "datagrams received");
    assert!(received > sent && received <= sent * 3, "{table}");
    for line in ["delay p50 ", "delay p99 ", "delay p99.9 "] {
        let delay = table.lines().find(|it| it.starts_with(line));
        assert!(delay.is_some_and(|it| it.ends_with(" ms")), "{table}");
    }
    assert_eq!(text(&output.stderr), "");
}

#[test]
fn a_bot_that_does_not_get_in_is_told_with_the_reason() {
    let serving = Serving::games(1);
    let output = bots(&serving.address(), &["--count", "6", "--seconds", "1"]);
    assert_eq!(output.status.code(), Some(1));
    let table = text(&output.stdout);
    assert_eq!(number(&table, "logins done"), 4);
    assert_eq!(number(&table, "logins failed"), 2);
    assert!(table.contains("\n  2 × the server is full\n"), "{table}");
    assert_eq!(number(&table, "datagrams lost"), 0);
    let told = text(&output.stderr);
    assert_eq!(told, "anteroom: 2 of 6 logins failed\n");
}

#[test]
fn without_a_server_the_bots_end_at_once() {
    let nobody = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let nobody = nobody.expect("a free port").to_string();
    let output = bots(&nobody, &["--count", "3"]);
    assert_eq!(output.status.code(), Some(1));
    let table = text(&output.stdout);
    let why = "  3 × cannot connect to the server: connection refused\n";
    assert!(table.contains(why), "{table}");
}

#[test]
fn a_signal_and_a_server_that_stops_end_the_bots_with_their_table() {
    let mut serving = Serving::games(1);
    let mut program = anteroom("bots", &serving.address(), &[]);
    let program = program.stdout(Stdio::piped()).stderr(Stdio::piped());
    let running = program.spawn().expect("the program starts");
    wait_for_players(&serving, 4);
    signal(&running, "INT");
    let output = running.wait_with_output().expect("it has ended");
    assert_eq!(output.status.code(), Some(0));
    let table = text(&output.stdout);
    assert_eq!(number(&table, "logins done"), 4);
    assert_eq!(number(&table, "sessions ended early"), 0);

    let running = program.spawn().expect("the program starts");
    wait_for_players(&serving, 4);
    serving.stop();
    let output = running.wait_with_output().expect("it has ended");
    assert_eq!(output.status.code(), Some(0));
    let table = text(&output.stdout);
    assert!(table.contains("  4 × the server is stopping\n"), "{table}");
    assert_eq!(number(&table, "datagrams lost"), 0);
}

/// Waits until so many play and have said something.
fn wait_for_players(serving: &Serving, count: u64) {
    let end = Instant::now() + PATIENCE;
    let mut heard_before = None;
    loop {
        let stats = serving.remote.stats().expect("it runs");
        let (_, stats) = &stats.services[0];
        let of = |name: &str| stats.iter().find(|(key, _)| *key == name).map(|it| it.1);
        let heard = of("datagrams-in").expect("a counter");
        if of("sessions") == Some(count) && heard > 100 + *heard_before.get_or_insert(heard) {
            return;
        }
        assert!(Instant::now() < end, "in vain: {stats:?}");
        thread::yield_now();
    }
}

fn signal(running: &Child, name: &str) {
    let kill = format!("kill -{name} {}", running.id());
    let status = Command::new("sh").args(["-c", &kill]).status();
    assert!(status.expect("a shell").success());
}

/// Somebody who chats.
struct Chatting {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Chatting {
    fn start(server: &str, name: &str) -> Self {
        Self::start_with(server, &["--name", name])
    }

    fn start_with(server: &str, arguments: &[&str]) -> Self {
        let mut program = anteroom("chat", server, arguments);
        program.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = program.spawn().expect("the program starts");
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                // The test may have seen enough.
                let _ = sender.send(line);
            }
        });
        let input = child.stdin.take();
        Self {
            child,
            input,
            lines,
        }
    }

    #[track_caller]
    fn prints(&self, expected: &str) {
        let line = self.lines.recv_timeout(PATIENCE);
        assert_eq!(line.as_deref(), Ok(expected));
    }

    fn types(&mut self, line: &str) {
        let input = self.input.as_mut().expect("not at its end");
        writeln!(input, "{line}").expect("it reads");
    }

    /// Waits for the end; nothing more may be printed until then.
    #[track_caller]
    fn end(&mut self) -> ExitStatus {
        let more = self.lines.recv_timeout(PATIENCE);
        assert_eq!(more, Err(std::sync::mpsc::RecvTimeoutError::Disconnected));
        self.child.wait().expect("it has ended")
    }
}

impl Drop for Chatting {
    fn drop(&mut self) {
        // It has ended already, unless the test failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn two_people_talk_start_and_leave() {
    let mut serving = Serving::games(1);
    let mut ada = Chatting::start(&serving.address(), "Ada");
    ada.prints("* you are Ada, player 0; /start starts the game, /quit leaves");
    let mut grace = Chatting::start_with(&serving.udp(), &["--v2", "--name", "Gr\u{202E}ace"]);
    grace.prints("* you are Gr\\u{202e}ace, player 1; /start starts the game, /quit leaves");
    grace.prints("* Ada is here, player 0");
    ada.prints("* Gr\\u{202e}ace is here, player 1");
    grace.types("hello");
    ada.prints("Gr\\u{202e}ace: hello");
    ada.types("");
    ada.types("/stat");
    ada.prints("* there are /start and /quit");
    ada.types("bell \u{7}");
    ada.prints("* not sent: the text is empty or has control characters");
    ada.types(&"x".repeat(201));
    ada.prints("* not sent: too long: at most 200 bytes fit");
    ada.types(&"x".repeat(5_000));
    ada.prints("* not sent: too long, or no text");
    ada.types("/start");
    ada.prints("* the game has started");
    grace.prints("* the game has started");
    grace.types("last words");
    grace.types("/quit");
    ada.prints("Gr\\u{202e}ace: last words");
    ada.prints("* Gr\\u{202e}ace left");
    assert_eq!(grace.end().code(), Some(0));
    serving.stop();
    ada.prints("* the server is stopping");
    assert_eq!(ada.end().code(), Some(0));
}

#[test]
fn the_end_of_the_input_leaves_when_all_has_been_said() {
    let serving = Serving::games(1);
    let ear = Chatting::start(&serving.address(), "Ear");
    ear.prints("* you are Ear, player 0; /start starts the game, /quit leaves");
    let mut mouth = Chatting::start(&serving.address(), "Mouth");
    for number in 0..50 {
        mouth.types(&number.to_string());
    }
    mouth.input = None;
    ear.prints("* Mouth is here, player 1");
    for number in 0..50 {
        ear.prints(&format!("Mouth: {number}"));
    }
    ear.prints("* Mouth left");
    mouth.prints("* you are Mouth, player 1; /start starts the game, /quit leaves");
    mouth.prints("* Ear is here, player 0");
    assert_eq!(mouth.end().code(), Some(0));
}

#[test]
fn a_signal_leaves_at_once() {
    let serving = Serving::games(1);
    let mut ada = Chatting::start(&serving.address(), "Ada");
    ada.prints("* you are Ada, player 0; /start starts the game, /quit leaves");
    signal(&ada.child, "TERM");
    assert_eq!(ada.end().code(), Some(0));
}

#[test]
fn who_is_not_let_in_is_told_why_in_a_plain_sentence() {
    let serving = Serving::games(1);
    let ada = Chatting::start(&serving.address(), "Ada");
    ada.prints("* you are Ada, player 0; /start starts the game, /quit leaves");
    let nobody = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let nobody = nobody.expect("a free port").to_string();
    let firewall = "the server cannot be reached over UDP (a firewall, usually)";
    for (server, version, sentence) in [
        (serving.address(), None, "another player has this name"),
        (serving.udp(), Some("--v2"), "another player has this name"),
        (nobody.clone(), Some("--v2"), firewall),
        (
            nobody,
            None,
            "cannot connect to the server: connection refused",
        ),
    ] {
        let name = ["--name", "Ada"];
        let arguments: Vec<&str> = name.into_iter().chain(version).collect();
        let output = anteroom("chat", &server, &arguments).output();
        let output = output.expect("the program starts");
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(text(&output.stderr), format!("anteroom: {sentence}\n"));
        assert_eq!(text(&output.stdout), "");
    }
}
