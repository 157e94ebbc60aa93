//! How much is written because of strangers: budgets for warnings about a sender.
//!
//! A warning passes a budget of its sender's address (3, then one per 10 s) and one that all share
//! (20 a second). The shared one holds against forged addresses, each of which would otherwise be
//! new and have a budget to itself. What is suppressed is counted, and told in one line a second.

use std::net::IpAddr;

use super::keyed::{KeyedHash, octets};
use super::network::network;
use crate::engine::bucket::{Bucket, Rate};
use crate::engine::{Entropy, NoEntropy, Time};

const PER_IP: Rate = Rate::one_per_ms(10_000, 3);
const SHARED: Rate = Rate::per_second(20, 20);
const REPORT_MS: u64 = 1_000;

/// Addresses share this many budgets by a keyed hash, so nothing grows with them, and nobody can
/// choose whose budget he shares. Only what is written is charged, and that is 20 a second in all:
/// a flood of forged addresses can keep 200 budgets empty, so it silences a given address with a
/// chance of one in twenty, and then a refused line is counted like any other.
const BUDGETS: usize = 4096;

/// The budgets of a process. Every warning about a sender is either allowed or counted as
/// suppressed, and whatever was suppressed is reported exactly once.
#[derive(Debug)]
pub struct Quiet {
    hash: KeyedHash,
    per_ip: Box<[Bucket]>,
    shared: Bucket,
    printed: u64,
    suppressed: u64,
    /// Of those suppressed.
    reported: u64,
    /// When the next report is due; set while there is something to report.
    due: Option<Time>,
}

impl Quiet {
    /// Nothing was written yet.
    ///
    /// # Errors
    /// [`NoEntropy`] if the dice failed.
    pub fn new(dice: &mut dyn Entropy) -> Result<Self, NoEntropy> {
        Ok(Self {
            hash: KeyedHash::draw(dice)?,
            per_ip: vec![Bucket::new(); BUDGETS].into_boxed_slice(),
            shared: Bucket::new(),
            printed: 0,
            suppressed: 0,
            reported: 0,
            due: None,
        })
    }

    /// Whether a warning about `ip` may be written. If so it must be; if not it is counted as
    /// suppressed, and costs neither budget anything. Loopback is no exception.
    pub fn allow(&mut self, now: Time, ip: IpAddr) -> bool {
        let index = self.hash.hash(&octets(network(ip))) as usize % BUDGETS;
        let own = &mut self.per_ip[index];
        let is_allowed = !self.shared.is_empty(now, SHARED) && own.take(now, PER_IP);
        if is_allowed {
            self.shared.take(now, SHARED);
            self.printed += 1;
        } else {
            self.suppressed += 1;
            self.due.get_or_insert(now + REPORT_MS);
        }
        is_allowed
    }

    /// When [`report`](Self::report) has something to say; `None` if nothing was suppressed.
    pub fn deadline(&self) -> Option<Time> {
        self.due
    }

    /// How many warnings were suppressed since the last report, once this is due: one second after
    /// the first of them, and so at most once a second.
    pub fn report(&mut self, now: Time) -> Option<u64> {
        self.due.filter(|due| *due <= now)?;
        self.last_report()
    }

    /// As [`report`](Self::report), but at once: when nothing will be written any more.
    pub fn last_report(&mut self) -> Option<u64> {
        self.due.take()?;
        let count = self.suppressed - self.reported;
        self.reported = self.suppressed;
        Some(count)
    }

    /// How many warnings were allowed.
    pub fn printed(&self) -> u64 {
        self.printed
    }

    /// How many warnings were suppressed, reported or not yet.
    pub fn suppressed(&self) -> u64 {
        self.suppressed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Seeded;

    fn quiet(seed: u64) -> Quiet {
        Quiet::new(&mut Seeded::new(seed)).expect("seeded dice never fail")
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    fn at(ms: u64) -> Time {
        Time::from_ms(ms)
    }

    #[test]
    fn three_warnings_about_an_address_then_one_every_ten_seconds() {
        for alike in [
            ["192.0.2.1", "::ffff:192.0.2.1"],
            ["2001:db8::1", "2001:db8::ffff:2"],
            ["127.0.0.1", "127.0.0.1"],
        ] {
            let mut quiet = quiet(1);
            let mut allowed = |ms: u64, ask: usize| {
                let asked = (0..ask).filter(|n| quiet.allow(at(ms), ip(alike[n % 2])));
                asked.count()
            };
            assert_eq!(allowed(5_000, 100), 3);
            assert_eq!(allowed(14_999, 100), 0);
            assert_eq!(allowed(15_000, 100), 1);
            assert_eq!(allowed(24_999, 100), 0);
            assert_eq!(allowed(1_000_000, 100), 3);
            assert!(quiet.allow(at(1_000_000), ip("192.0.2.200")), "another one");
        }
    }

    #[test]
    fn forged_addresses_share_twenty_a_second() {
        let mut quiet = quiet(2);
        let mut dice = Seeded::new(2);
        let mut allowed = |from, to| {
            let mut count = 0;
            for ms in from..to {
                for _ in 0..20 {
                    let forged = IpAddr::from((dice.next_u64() as u32).to_be_bytes());
                    count += u32::from(quiet.allow(at(ms), forged));
                }
            }
            count
        };
        assert_eq!(allowed(0, 1), 20, "the burst");
        let a_minute = allowed(1, 60_001);
        assert!((1_190..=1_200).contains(&a_minute), "{a_minute}");
        // Nobody can choose whose budget he shares, and what was refused cost nothing: nearly
        // everybody else can still be warned about.
        let innocent = (0..1_000_u32).filter(|n| {
            let index = quiet
                .hash
                .hash(&octets(IpAddr::from((7 << 24 | n).to_be_bytes())));
            !quiet.per_ip[index as usize % BUDGETS].is_empty(at(60_001), PER_IP)
        });
        assert!(innocent.count() > 930);
    }

    #[test]
    fn what_one_budget_refuses_costs_the_other_nothing() {
        let mut quiet = quiet(3);
        let loud = ip("192.0.2.1");
        assert_eq!((0..1_000).filter(|_| quiet.allow(at(0), loud)).count(), 3);
        let others = (0..100_u8).filter(|n| quiet.allow(at(0), IpAddr::from([198, 51, 100, *n])));
        assert_eq!(others.count(), 17, "of the shared 20");
        // Refused by the shared one alone, so all three are left later.
        let late = ip("203.0.113.1");
        assert!(!quiet.allow(at(0), late));
        assert_eq!((0..100).filter(|_| quiet.allow(at(1_000), late)).count(), 3);
    }

    #[test]
    fn one_report_a_second_while_something_is_suppressed() {
        let mut quiet = quiet(4);
        let loud = ip("192.0.2.1");
        assert!((0..3).all(|_| quiet.allow(at(100), loud)));
        assert_eq!((quiet.deadline(), quiet.report(at(99_999))), (None, None));
        let mut reports = Vec::new();
        for ms in 100..4_000 {
            if ms < 2_500 {
                assert!(!quiet.allow(at(ms), loud));
            }
            let due = quiet.deadline().is_some_and(|due| due <= at(ms));
            let report = quiet.report(at(ms));
            assert_eq!(report.is_some(), due);
            reports.extend(report.map(|count| (ms, count)));
        }
        assert_eq!(reports, [(1_100, 1_001), (2_101, 1_001), (3_102, 398)]);
        assert_eq!(quiet.deadline(), None);
    }

    #[test]
    fn every_warning_is_printed_or_reported_once() {
        for seed in 0..50 {
            let mut quiet = quiet(seed);
            let mut dice = Seeded::new(seed);
            let (mut now, mut asked, mut printed, mut reported) = (at(0), 0, 0, 0);
            for _ in 0..5_000 {
                now = now + [0, 1, dice.below(40), dice.below(3_000)][dice.below(4) as usize];
                if dice.below(4) > 0 {
                    let from = IpAddr::from([10, 0, 0, dice.below(30) as u8]);
                    printed += u64::from(quiet.allow(now, from));
                    asked += 1;
                } else {
                    reported += quiet.report(now).unwrap_or(0);
                }
                assert_eq!(quiet.printed(), printed);
                assert_eq!(quiet.printed() + quiet.suppressed(), asked);
            }
            reported += quiet.last_report().unwrap_or(0);
            assert_eq!(printed + reported, asked);
            assert_eq!((quiet.last_report(), quiet.deadline()), (None, None));
        }
    }
}
