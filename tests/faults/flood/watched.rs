//! The program, with somebody who reads its log.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, PipeReader};
use std::net::IpAddr;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::PATIENCE;
use crate::program::{Program, anteroom};

/// The program at 127.0.0.1, all limits on, with its log.
pub struct Watched {
    pub program: Program,
    pub log: Log,
}

impl Watched {
    /// One that is ready.
    pub fn start(arguments: &[&str]) -> Self {
        let (reader, writer) = io::pipe().expect("a pipe");
        let mut command = anteroom(&["--bind", "127.0.0.1", "--limit-loopback"]);
        let program = Program::spawn(command.args(arguments).stderr(writer));
        // With it goes the last writing end but the program's own.
        drop(command);
        Self {
            program,
            log: Log::read(reader),
        }
    }

    /// What it has counted when it has taken all that was sent to it, as it says when it is asked.
    pub fn numbers(&mut self) -> Numbers {
        let mut taken = u64::MAX;
        loop {
            self.program.signal("USR1");
            let numbers = self.log.numbers();
            if std::mem::replace(&mut taken, numbers.of("datagrams-in")) == taken {
                return numbers;
            }
        }
    }

    /// Lets it end, and returns all that its log says.
    pub fn end(mut self) -> Log {
        self.program.signal("TERM");
        let code = self.program.end(Duration::from_secs(5));
        assert_eq!(code, Some(0));
        self.log.finish();
        self.log
    }
}

/// What the program writes to standard error, line by line.
pub struct Log {
    lines: Receiver<String>,
    /// Those that have been looked at.
    read: Vec<String>,
}

impl Log {
    /// Reads from now on.
    pub fn read(from: PipeReader) -> Self {
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in BufReader::new(from).lines().map_while(Result::ok) {
                // The test may have seen enough.
                let _ = sender.send(line);
            }
        });
        Self {
            lines,
            read: Vec::new(),
        }
    }

    /// The counters that are told next.
    pub fn numbers(&mut self) -> Numbers {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let line = self.lines.recv_timeout(left).expect("the numbers in time");
            self.read.push(line.clone());
            if let Some(numbers) = Numbers::parse(&line) {
                return numbers;
            }
        }
    }

    /// Reads to the end.
    fn finish(&mut self) {
        let deadline = Instant::now() + PATIENCE;
        let left = || deadline.saturating_duration_since(Instant::now());
        while let Ok(line) = self.lines.recv_timeout(left()) {
            self.read.push(line);
        }
        assert!(!left().is_zero(), "the log has no end");
    }

    /// Of whom the program warned, once for each warning.
    pub fn warned_of(&self) -> Vec<IpAddr> {
        let warnings = self.read.iter().filter_map(|line| {
            let (_, rest) = line.split_once("] rtyp: ")?;
            rest.split_once(": ")?.0.parse().ok()
        });
        warnings.collect()
    }

    /// How many warnings were suppressed, as told line by line.
    pub fn suppressed(&self) -> Vec<u64> {
        let reports = self.read.iter().filter_map(|line| {
            let (head, rest) = line.split_once(" warnings about peers suppressed")?;
            assert_eq!(rest, "", "{line}");
            head.rsplit_once(' ')?.1.parse().ok()
        });
        reports.collect()
    }

    /// All lines that were read.
    pub fn lines(&self) -> &[String] {
        &self.read
    }
}

/// The counters that are not 0, and `sessions`.
#[derive(Debug)]
pub struct Numbers(HashMap<String, u64>);

impl Numbers {
    fn parse(line: &str) -> Option<Self> {
        let (_, told) = line.split_once("] rtyp: sessions=")?;
        let words = format!("sessions={told}");
        let pairs = words.split_whitespace().map(|word| {
            let (name, count) = word.split_once('=').expect("a name and a number");
            (name.to_owned(), count.parse().expect("a number"))
        });
        Some(Self(pairs.collect()))
    }

    /// The counter of this name.
    pub fn of(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    /// All counters whose name starts so, together.
    pub fn starting(&self, with: &str) -> u64 {
        let named = self.0.iter().filter(|(name, _)| name.starts_with(with));
        named.map(|(_, count)| count).sum()
    }
}
