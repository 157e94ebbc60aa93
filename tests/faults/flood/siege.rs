//! A flood of first hellos from many addresses at the real program, in which somebody honest
//! comes in.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::hello::Newcomer;
use super::sender::{Sender, first_hello};
use super::watched::{Numbers, Watched};
use crate::program::pass;

/// Challenges that the program sends a second.
const BUDGET: f64 = 20_000.0;
/// So many hellos come before the memory is looked at for the first time: they touch what is
/// touched once, the buffers into which datagrams are received, and the outbox.
const WARMING: u64 = 2_000;
/// Whoever has waited so long looks whether another is in.
const PATIENT_FOR: Duration = Duration::from_millis(500);
/// What all the hellos together may add to the resident memory.
const GROWTH_KIB_MAX: u64 = 1024;

/// What a siege is to be.
pub struct Siege {
    /// Hellos a second; `None`: as many as one thread can send.
    pub rate: Option<u64>,
    /// How many are sent at least; it goes on until somebody honest is in.
    pub hellos: u64,
    /// How many honest ones want in, at most four: there is one game.
    pub honest: u8,
    /// How long it has lasted when they come: at twice the budget, one second uses up what was
    /// saved of it.
    pub head_start: Duration,
    /// How long the first of them may take.
    pub within: Duration,
}

/// How it went.
pub struct Outcome {
    sent: u64,
    lasted: Duration,
    /// Of all who are in: after how long, and how often each had said hello.
    entered: Vec<(Duration, u32)>,
    resident_kib: [u64; 2],
    /// What it cost the program.
    cpu: Duration,
    numbers: Numbers,
}

impl Siege {
    /// Runs it.
    pub fn lay(&self) -> Outcome {
        let mut server = Watched::start(&[]);
        let udp = server.program.udp();
        let mut sender = Sender::new(udp).expect("a socket");
        sender.flood(None, |sent| sent >= WARMING, first_hello);
        // Who answers this has taken the hellos before it.
        server.numbers();
        let before_kib = server.program.resident_kib();
        let cpu_before = server.program.cpu();
        let (sent, lasted, entered) = self.besiege(&mut sender, udp);
        let numbers = server.numbers();
        let after_kib = server.program.resident_kib();
        let cpu = server.program.cpu() - cpu_before;
        server.end();
        Outcome {
            sent,
            lasted,
            entered,
            resident_kib: [before_kib, after_kib],
            cpu,
            numbers,
        }
    }

    /// The flood and the honest; how many hellos were sent, for how long, and who is in.
    fn besiege(
        &self,
        sender: &mut Sender,
        udp: SocketAddr,
    ) -> (u64, Duration, Vec<(Duration, u32)>) {
        let began = Instant::now();
        let come = began + self.head_start;
        let deadline = come + self.within;
        let is_one_in = AtomicBool::new(false);
        thread::scope(|scope| {
            let honest = (0..self.honest).map(|number| newcomer(number, udp));
            let waiting: Vec<_> = honest
                .map(|newcomer| {
                    scope.spawn(|| {
                        pass(come);
                        wait(newcomer, deadline, &is_one_in)
                    })
                })
                .collect();
            let before = sender.sent();
            let is_decided = || is_one_in.load(Ordering::Acquire) || deadline <= Instant::now();
            let is_over = |sent| self.hellos <= sent && is_decided();
            sender.flood(self.rate, is_over, first_hello);
            let lasted = began.elapsed();
            let came = waiting.into_iter().map(|it| it.join().expect("no panic"));
            let entered = came.flatten().map(|(at, tries)| (at - come, tries));
            (sender.sent() - before, lasted, entered.collect())
        })
    }
}

/// The honest one of this number: at 127.0.0.2 and behind, where no flood comes from.
fn newcomer(number: u8, udp: SocketAddr) -> Newcomer {
    let ip = IpAddr::from(Ipv4Addr::new(127, 0, 0, 2 + number));
    Newcomer::new(ip, udp, &format!("honest {number}")).expect("a socket")
}

/// Says hello until somebody is in. When that was, and after how many tries, if it is this one.
fn wait(
    mut newcomer: Newcomer,
    deadline: Instant,
    is_one_in: &AtomicBool,
) -> Option<(Instant, u32)> {
    while Instant::now() < deadline && !is_one_in.load(Ordering::Acquire) {
        if newcomer.enter(deadline.min(Instant::now() + PATIENT_FOR)) {
            is_one_in.store(true, Ordering::Release);
            return Some((Instant::now(), newcomer.tries));
        }
    }
    None
}

impl Outcome {
    /// Fails unless somebody honest was in in time and nothing was kept for anybody else.
    #[track_caller]
    pub fn assert_harmless(&self) {
        assert!(!self.entered.is_empty(), "nobody is in: {self}");
        let logins = self.numbers.of("logins");
        assert_eq!(logins, self.entered.len() as u64, "of the honest alone");
        assert!(self.numbers.of("sessions") <= logins);
        assert_eq!(self.numbers.starting("rejected"), 0);
        let [before, after] = self.resident_kib;
        assert!(after <= before + GROWTH_KIB_MAX, "{self}");
        // Each was answered or counted as dropped, or the system had no room for it.
        let answered = self.numbers.of("challenges");
        let seen = answered + self.numbers.of("challenges-dropped") + logins;
        assert_eq!(seen, self.numbers.of("datagrams-in"));
        let most = BUDGET * (self.lasted.as_secs_f64() + 2.0);
        assert!(answered as f64 <= most, "{answered} challenges");
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.lasted.as_secs_f64();
        let rate = self.sent as f64 / seconds;
        let [before, after] = self.resident_kib;
        write!(
            f,
            "{} hellos in {seconds:.1} s ({rate:.0}/s, {} taken, {} answered, at {:.0} % of a \
             processor); a try has odds of {:.3}; {before} KiB resident before, {after} KiB after; in:",
            self.sent,
            self.numbers.of("datagrams-in"),
            self.numbers.of("challenges"),
            100.0 * self.cpu.as_secs_f64() / seconds,
            (BUDGET / rate).min(1.0),
        )?;
        for (at, tries) in &self.entered {
            write!(f, " after {:.3} s and {tries} tries", at.as_secs_f64())?;
        }
        Ok(())
    }
}
