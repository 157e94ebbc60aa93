//! What the server keeps: heap for each session, memory of the whole program, its size.
#![forbid(unsafe_code)]

mod common;

use std::fs;
use std::io::{self, BufRead, BufReader};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, ExitCode, Stdio};

use allocation_counter::measure;
use anteroom::guard::limits::Limits;

use common::descriptors;
use common::floor::Loop;
use common::machine::{Driven, Echo};
use common::players::Players;
use common::report::Report;
use common::served::Served;

/// An idle session's part of the heap.
const SESSION_BYTES: f64 = 1_536.0;
/// Sessions of the machine without sockets.
const MACHINE_SESSIONS: usize = 10_000;
/// Sessions through real sockets, if there are descriptors for them.
const SOCKET_SESSIONS: usize = 4_000;
/// Both ends of a connection, and the player's datagram socket.
const DESCRIPTORS_EACH: usize = 3;
/// Connections that say nothing; the system queues no more at once.
const SILENT: usize = 1_000;

const MIB: f64 = 1_048_576.0;
/// Resident size of the program after its start.
const RESIDENT_MIB: f64 = 6.0;
/// Size of the stripped program.
const PROGRAM_MIB: f64 = 3.0;

fn main() -> ExitCode {
    let mut report = Report::new("memory");
    let descriptors = descriptors::raise();
    machine(&mut report);
    sockets(&mut report, descriptors);
    silent(&mut report, descriptors);
    program(&mut report).expect("the program starts");
    report.exit()
}

/// Heap of an idle session of the machine, four to a game.
fn machine(report: &mut Report) {
    let mut kept = None;
    let spent = measure(|| {
        let games = MACHINE_SESSIONS as u32 / 4;
        let mut driven = Driven::new(Box::new(Echo), games, Limits::default());
        let mut peers = Vec::new();
        allocation_counter::opt_out(|| peers.reserve_exact(MACHINE_SESSIONS));
        for number in 0..MACHINE_SESSIONS as u32 {
            peers.push(driven.join(number, &format!("P{number}")));
            driven.converse(&mut peers);
            driven.pass(1, &mut peers);
        }
        driven.pass(10_000, &mut peers);
        kept = Some((driven, peers));
    });
    let each = spent.bytes_current as f64 / MACHINE_SESSIONS as f64;
    let what = format!("heap of an idle session, {MACHINE_SESSIONS} of them");
    report.number(&what, each, "bytes", Some(SESSION_BYTES));
}

/// Heap of an idle session of the whole server.
fn sockets(report: &mut Report, descriptors: usize) {
    let sessions = SOCKET_SESSIONS.min(descriptors / DESCRIPTORS_EACH);
    let mut counted = Counted::bind(sessions);
    let players = Players::join(&mut counted, sessions).expect("players");
    let each = counted.bytes as f64 / sessions as f64;
    let what = format!("the same through sockets, {sessions} of them");
    report.number(&what, each, "bytes", Some(SESSION_BYTES));
    assert_eq!(players.len(), sessions);
}

/// Heap of a connection that says nothing: it has no buffer.
fn silent(report: &mut Report, descriptors: usize) {
    let connections = SILENT.min(descriptors / 2);
    let mut counted = Counted::bind(1);
    let mut clients = Vec::new();
    for _ in 0..connections {
        clients.push(TcpStream::connect(counted.tcp()).expect("a connection"));
    }
    while counted.served.count("accepted") < connections as u64 {
        counted.turn();
    }
    let each = counted.bytes as f64 / connections as f64;
    report.number("heap of a silent connection", each, "bytes", None);
}

/// A server whose heap is counted.
struct Counted {
    served: Served,
    /// Allocated in its turns and not given back.
    bytes: i64,
}

impl Counted {
    fn bind(games: usize) -> Self {
        Self {
            served: Served::bind(games),
            bytes: 0,
        }
    }
}

impl Loop for Counted {
    fn turn(&mut self) {
        self.bytes += measure(|| self.served.turn()).bytes_current;
    }

    fn tcp(&self) -> SocketAddr {
        self.served.tcp()
    }

    fn udp(&self) -> SocketAddr {
        self.served.udp()
    }
}

/// The program itself, with its defaults but for the ports.
fn program(report: &mut Report) -> io::Result<()> {
    let path = env!("CARGO_BIN_EXE_anteroom");
    let mut program = Command::new(path)
        .args([
            "serve",
            "--bind",
            "127.0.0.1",
            "--rtyp",
            "0",
            "--rooms",
            "0",
        ])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let resident = resident_once_ready(&mut program);
    program.kill()?;
    program.wait()?;
    match resident? {
        Some(bytes) => {
            let mib = bytes as f64 / MIB;
            report.number("resident after the start", mib, "MiB", Some(RESIDENT_MIB));
        }
        None => report.note("resident after the start: this system does not tell"),
    }
    let mib = fs::metadata(path)?.len() as f64 / MIB;
    report.number("the program", mib, "MiB", Some(PROGRAM_MIB));
    Ok(())
}

/// The resident bytes of the program after it has said that it is ready; `None` if the system has
/// no /proc.
fn resident_once_ready(program: &mut Child) -> io::Result<Option<u64>> {
    let output = program.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let lines = BufReader::new(output).lines();
    let ready = lines.map_while(Result::ok).any(|line| line == "ready");
    if !ready {
        return Err(io::Error::other("the program ended and was not ready"));
    }
    let Ok(status) = fs::read_to_string(format!("/proc/{}/status", program.id())) else {
        return Ok(None);
    };
    let kib = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    Ok(kib.map(|kib| kib * 1_024))
}
