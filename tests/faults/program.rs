//! The program `anteroom` as a process of its own, and what the system tells of it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{IpAddr, SocketAddr};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::PATIENCE;

/// How long one tick of the system's accounts is.
const TICK: Duration = Duration::from_millis(10);

/// A running server, killed with the test if it has not ended.
pub struct Program {
    child: Child,
    /// What it prints, line by line, until it ends.
    lines: Receiver<String>,
    tcp: Vec<SocketAddr>,
    udp: Vec<SocketAddr>,
}

/// The program, to be started; on ports of the system's choice.
pub fn anteroom(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_anteroom"));
    command
        .args(["serve", "--rtyp", "0", "--rooms", "off"])
        .args(arguments);
    command
}

impl Program {
    /// A server at 127.0.0.1 that is ready.
    pub fn start(arguments: &[&str]) -> Self {
        let command = &mut anteroom(&["--bind", "127.0.0.1"]);
        Self::spawn(command.args(arguments))
    }

    /// A server that is ready.
    pub fn spawn(command: &mut Command) -> Self {
        let mut child = command
            .env_remove("RUST_LOG")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let (sender, lines) = channel();
        let stdout = BufReader::new(child.stdout.take().expect("it is piped"));
        thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                // The test may have seen enough.
                let _ = sender.send(line);
            }
        });
        let mut program = Self {
            child,
            lines,
            tcp: Vec::new(),
            udp: Vec::new(),
        };
        program.greeting();
        program
    }

    fn greeting(&mut self) {
        let line = |program: &Self| program.lines.recv_timeout(PATIENCE).expect("a line");
        let service = line(self);
        let addresses = |name: &str| -> Vec<SocketAddr> {
            let word = service
                .split_whitespace()
                .find_map(|w| w.strip_prefix(name));
            let list = word.expect("addresses").split(',');
            list.map(|it| it.parse().expect("an address")).collect()
        };
        (self.tcp, self.udp) = (addresses("tcp="), addresses("udp="));
        assert_eq!(line(self), "ready");
    }

    /// Where it listens first.
    pub fn tcp(&self) -> SocketAddr {
        self.tcp[0]
    }

    /// Where it receives datagrams first.
    pub fn udp(&self) -> SocketAddr {
        self.udp[0]
    }

    /// Where a server that is bound to all addresses is reached at `ip`, over TCP and over UDP.
    pub fn at(&self, ip: &str) -> (SocketAddr, SocketAddr) {
        let ip: IpAddr = ip.parse().expect("an address");
        let (tcp, udp) = (self.tcp[0].port(), self.udp[0].port());
        (SocketAddr::new(ip, tcp), SocketAddr::new(ip, udp))
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal. A process that was stopped or continued is so when this returns.
    pub fn signal(&self, name: &str) {
        let kill = format!("kill -{name} {}", self.id());
        let status = Command::new("sh").args(["-c", &kill]).status();
        assert!(status.expect("a shell").success());
    }

    /// Waits for the end; fails if it does not come `within` so much time, or if anything more is
    /// printed until then. Returns the exit code.
    #[track_caller]
    pub fn end(mut self, within: Duration) -> Option<i32> {
        let more = self.lines.recv_timeout(within);
        assert_eq!(more, Err(RecvTimeoutError::Disconnected), "no end");
        self.child.wait().expect("it has ended").code()
    }

    /// The time it has spent on a processor so far.
    pub fn cpu(&self) -> Duration {
        let stat = self.proc("stat");
        // The name in brackets may have spaces of its own.
        let (_, rest) = stat.rsplit_once(')').expect("a name");
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let ticks = |index: usize| fields[index].parse::<u32>().expect("a number");
        TICK * (ticks(11) + ticks(12))
    }

    /// How much of its memory is resident, in KiB.
    pub fn resident_kib(&self) -> u64 {
        number_behind(&self.proc("status"), "VmRSS:")
    }

    /// How many descriptors below `limit` it has open; those above it has inherited.
    pub fn descriptors_below(&self, limit: u32) -> usize {
        let path = format!("/proc/{}/fd", self.id());
        let names = fs::read_dir(path).expect("it runs");
        let numbers = names.filter_map(|name| name.ok()?.file_name().to_str()?.parse().ok());
        numbers.filter(|number: &u32| *number < limit).count()
    }

    /// How often its threads have begun to wait, or were made to, so far.
    pub fn switches(&self) -> u64 {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.id())).expect("it runs");
        let of_task = |task: fs::DirEntry| {
            let status = fs::read_to_string(task.path().join("status")).expect("it runs");
            ["voluntary_ctxt_switches:", "nonvoluntary_ctxt_switches:"]
                .map(|name| number_behind(&status, name))
                .iter()
                .sum::<u64>()
        };
        tasks.map(|task| of_task(task.expect("a task"))).sum()
    }

    fn proc(&self, file: &str) -> String {
        fs::read_to_string(format!("/proc/{}/{file}", self.id())).expect("it runs")
    }
}

fn number_behind(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.expect(name).parse().expect(name)
}

impl Drop for Program {
    fn drop(&mut self) {
        // It has ended already, unless the test failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Asks again and again until `done`; fails the test if it takes too long.
#[track_caller]
pub fn until(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !done() {
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        thread::park_timeout(Duration::from_millis(1));
    }
}

/// Lets time pass: what is tested is what happens meanwhile.
pub fn pass(until: Instant) {
    while let Some(left) = until.checked_duration_since(Instant::now()) {
        thread::park_timeout(left);
    }
}
