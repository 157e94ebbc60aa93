//! The program from outside: its exit codes, what it prints, and how it ends.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

/// How long anything may take before a test fails.
const PATIENCE: Duration = Duration::from_secs(20);

/// A LoginRequest of `R9`, and how long its answer is: the example of the protocol's section 3.5.
const LOGIN: [u8; 8] = [6, 0, 1, 1, 2, 0, b'R', b'9'];
const LOGIN_ACCEPTED_BYTES: usize = 10;
/// Logout with the reason Shutdown.
const SHUTDOWN: [u8; 4] = [2, 0, 4, 1];

fn anteroom(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_anteroom"));
    command
        .args(arguments)
        .stdin(Stdio::null())
        .env_remove("RUST_LOG");
    command
}

/// The output of a program that ends by itself.
fn output(arguments: &[&str]) -> Output {
    anteroom(arguments).output().expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("the program prints UTF-8")
}

/// A running server, ended with the test.
struct Running {
    child: Child,
    /// What it prints, line by line.
    lines: Receiver<String>,
}

impl Running {
    fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let lines = lines_of(child.stdout.take().expect("it is piped"));
        Self { child, lines }
    }

    fn line(&self) -> String {
        self.lines.recv_timeout(PATIENCE).expect("a line in time")
    }

    /// Waits for `ready`; returns where the service is bound over TCP.
    fn ready(&self) -> SocketAddr {
        let service = self.line();
        assert_eq!(self.line(), "ready");
        let tcp = service
            .split_whitespace()
            .find_map(|word| word.strip_prefix("tcp="));
        tcp.expect("a TCP address").parse().expect("one address")
    }

    fn signal(&self, name: &str) {
        let kill = format!("kill -{name} {}", self.child.id());
        let status = Command::new("sh").args(["-c", &kill]).status();
        assert!(status.expect("a shell").success());
    }

    /// Waits for the end; nothing more may be printed until then.
    fn end(&mut self) -> ExitStatus {
        let more = self.lines.recv_timeout(PATIENCE);
        assert_eq!(more, Err(std::sync::mpsc::RecvTimeoutError::Disconnected));
        self.child.wait().expect("it has ended")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It has ended already, unless the test failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn lines_of(pipe: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, lines) = channel();
    thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            // The test may have seen enough.
            let _ = sender.send(line);
        }
    });
    lines
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect_timeout(&address, PATIENCE).expect("the server listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    stream
}

/// Logs in; from now on the server has somebody to say farewell to.
fn log_in(address: SocketAddr) -> TcpStream {
    let mut stream = connect(address);
    stream.write_all(&LOGIN).expect("the server reads");
    let mut answer = [0; LOGIN_ACCEPTED_BYTES];
    stream.read_exact(&mut answer).expect("the server answers");
    assert_eq!(answer[..3], [8, 0, 2], "LoginAccepted");
    stream
}

const LOOPBACK: [&str; 6] = ["--bind", "127.0.0.1", "--rtyp", "0", "--rooms", "off"];

#[test]
fn help_and_version_are_printed() {
    let help = output(&["--help"]);
    assert!(help.status.success() && help.stderr.is_empty());
    assert!(text(&help.stdout).contains("--limit NAME=VALUE"));
    let version = output(&["--version"]);
    assert!(version.status.success() && version.stderr.is_empty());
    assert_eq!(
        text(&version.stdout),
        format!("anteroom {}\n", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn a_wrong_argument_is_named_and_exits_with_2() {
    for (arguments, named) in [
        (
            ["--games", "0"],
            "`--games 0`: allowed is a number from 1 to 65536",
        ),
        (["--limit", "pending=0"], "`pending` is from 1 to 102400"),
        (["serve", "--bogus"], "unknown argument `--bogus`"),
        (["--rtyp", "70000"], "a port from 0 to 65535"),
    ] {
        let output = output(&arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
        let told = text(&output.stderr);
        assert!(told.contains(named), "{arguments:?}: {told}");
    }
}

#[test]
fn a_port_in_use_is_named_and_exits_with_1() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = taken.local_addr().expect("an address").port().to_string();
    for quiet in ["info", "off"] {
        let mut command = anteroom(&[
            "serve",
            "--bind",
            "127.0.0.1",
            "--rtyp",
            &port,
            "--rooms",
            "off",
        ]);
        let output = command
            .env("RUST_LOG", quiet)
            .output()
            .expect("the program starts");
        assert_eq!(output.status.code(), Some(1));
        assert!(output.stdout.is_empty());
        let told = text(&output.stderr);
        assert!(told.contains(&port) && told.contains("in use"), "{told}");
    }
}

#[test]
fn it_prints_its_addresses_and_ready_and_ends_well_by_a_signal() {
    for signal in ["TERM", "INT"] {
        let mut server = Running::start(&mut anteroom(&LOOPBACK));
        let service = server.line();
        let (tcp, udp) = service
            .strip_prefix("rtyp tcp=127.0.0.1:")
            .and_then(|rest| rest.split_once(" udp=127.0.0.1:"))
            .expect(&service);
        for port in [tcp, udp] {
            assert_ne!(port.parse::<u16>().expect(&service), 0);
        }
        assert_eq!(server.line(), "ready");
        server.signal(signal);
        assert_eq!(server.end().code(), Some(0));
    }
}

#[test]
fn rooms_says_where_its_accounts_are() {
    let file = std::env::temp_dir().join(format!("anteroom-program-{}", std::process::id()));
    let path = file.to_str().expect("a plain path");
    let off = ["--bind", "127.0.0.1", "--rtyp", "off", "--rooms", "0"];
    for (accounts, said) in [(&[][..], "memory"), (&["--accounts", path], "file")] {
        let mut server = Running::start(&mut anteroom(&[&off, accounts].concat()));
        let service = server.line();
        assert!(service.starts_with("rooms tcp=127.0.0.1:"), "{service}");
        assert!(service.ends_with(&format!(" accounts={said}")), "{service}");
        assert_eq!(server.line(), "ready");
        server.signal("TERM");
        assert_eq!(server.end().code(), Some(0));
    }
    std::fs::remove_file(&file).expect("it was made");
    let refused = output(&[&off[..], &["--accounts", "/dev/null"]].concat());
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("/dev/null"));
}

#[test]
fn a_signal_says_farewell_and_a_second_one_exits_at_once() {
    let mut server = Running::start(&mut anteroom(&LOOPBACK));
    let mut player = log_in(server.ready());
    server.signal("TERM");
    let mut farewell = [0; SHUTDOWN.len()];
    player.read_exact(&mut farewell).expect("a farewell");
    assert_eq!(farewell, SHUTDOWN);
    // The player does not close, so the farewell is not over yet.
    server.signal("INT");
    assert_eq!(server.end().code(), Some(128 + 2));
}

#[test]
fn a_standard_output_that_nobody_reads_ends_nothing() {
    // Standard output is the only place that tells which port the system chose.
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let address = free.expect("a free port");
    let port = address.port().to_string();
    let mut command = anteroom(&["--bind", "127.0.0.1", "--rtyp", &port, "--rooms", "off"]);
    let mut child = command
        .stdout(closed_pipe())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let lines = lines_of(child.stderr.take().expect("it is piped"));
    let server = Running { child, lines };
    let deadline = Instant::now() + PATIENCE;
    while TcpStream::connect(address).is_err() {
        assert!(Instant::now() < deadline, "the server does not listen");
        thread::yield_now();
    }
    drop(log_in(address));
    server.signal("TERM");
    let mut server = server;
    while server.lines.recv_timeout(PATIENCE).is_ok() {}
    assert_eq!(server.end().code(), Some(0));

    let help = anteroom(&["--help"]).stdout(closed_pipe()).status();
    assert_eq!(help.expect("it starts").code(), Some(0));
}

/// The writing end of a pipe whose other end is gone.
fn closed_pipe() -> Stdio {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    writer.into()
}

#[test]
fn a_standard_error_that_nobody_reads_stops_nothing() {
    // Each connection is worth several lines of mio's tracing: a full pipe (64 KiB) and a full
    // queue (1024 lines) several times over.
    const CONNECTIONS: usize = 3000;
    let mut command = anteroom(&LOOPBACK);
    command.env("RUST_LOG", "trace").stderr(Stdio::piped());
    let mut server = Running::start(&mut command);
    let address = server.ready();
    for _ in 0..CONNECTIONS {
        drop(connect(address));
    }
    drop(log_in(address));
    let log = lines_of(server.child.stderr.take().expect("it is piped"));
    let is_report = |line: &String| line.ends_with("lines of the log suppressed");
    let deadline = Instant::now() + PATIENCE;
    while !is_report(&log.recv_timeout(PATIENCE).expect("a report")) {
        assert!(
            Instant::now() < deadline,
            "nothing was reported as suppressed"
        );
    }
    server.signal("TERM");
    assert_eq!(server.end().code(), Some(0));
}

#[test]
fn a_filter_that_is_not_understood_is_said_and_ends_nothing() {
    for stderr in [closed_pipe(), Stdio::piped()] {
        let mut command = anteroom(&LOOPBACK);
        command.env("RUST_LOG", "a=b=c===").stderr(stderr);
        let mut server = Running::start(&mut command);
        drop(log_in(server.ready()));
        if let Some(pipe) = server.child.stderr.take() {
            let said = lines_of(pipe).recv_timeout(PATIENCE).expect("a line");
            assert!(said.contains("RUST_LOG is not understood"), "{said}");
        }
        server.signal("TERM");
        assert_eq!(server.end().code(), Some(0));
    }
}

#[test]
fn it_may_open_as_many_descriptors_as_the_system_grants() {
    let limited = format!(
        "ulimit -S -n 64; exec {} {}",
        env!("CARGO_BIN_EXE_anteroom"),
        LOOPBACK.join(" ")
    );
    let mut server = Running::start(Command::new("sh").args(["-c", &limited]));
    server.ready();
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", server.child.id()));
    let limits = limits.expect("the system tells the limits");
    let line = limits
        .lines()
        .find(|line| line.starts_with("Max open files"))
        .expect("a limit");
    let words: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(words[3], words[4], "{line}");
    assert_ne!(words[3], "64");
    server.signal("TERM");
    assert_eq!(server.end().code(), Some(0));
}
