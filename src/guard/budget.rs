//! The budgets of a whole service, whoever asks: they refill by the clock, and they hold against
//! forged addresses, each of which is new.

use super::limits::{Limit, Limits};
use crate::engine::bucket::{Bucket, Rate};
use crate::engine::{Entropy, Time, entropy};

/// The challenges that a service sends: so many a second, the excess dropped at random.
///
/// Were it dropped in the order of arrival, a flood that is always there first would leave
/// nothing for anybody else. So while less than half of the budget is left, a hello is answered
/// with the probability that what is left bears to that half. A flood then drains the budget until
/// just as much passes as comes back, and there it stays, whatever the flood's order: at R
/// challenges and F hellos a second each hello is answered with probability R/F. Who always comes
/// last in a turn of n hellos fares little worse, by a factor of x/(eˣ − 1), where x is n to half
/// the budget: 0.95 for a thousand hellos at the default. An honest client asks 20 times in 5 s; in
/// a flood of ten times the budget it gets its cookie with 88 %, of four times with 99.7 %.
///
/// A crowd of up to half a second's worth at once is answered whole.
#[derive(Debug)]
pub struct Challenges {
    bucket: Bucket,
    rate: Rate,
    /// Below this, chance decides.
    scarce: u64,
}

impl Challenges {
    /// A full budget: one second's worth.
    pub fn new(limits: &Limits) -> Self {
        let a_second = limits.get(Limit::Challenges);
        Self {
            bucket: Bucket::new(),
            rate: Rate::per_second(a_second, a_second),
            scarce: (a_second / 2).max(1),
        }
    }

    /// Whether a hello without a right cookie is answered with a challenge, which is taken off the
    /// budget. If not, or if the dice fail, it is to be dropped and counted.
    pub fn allow(&mut self, now: Time, dice: &mut dyn Entropy) -> bool {
        let left = self.bucket.tokens(now, self.rate);
        let is_allowed = left >= self.scarce || self.is_lucky(left, dice);
        if is_allowed {
            self.bucket.charge(now, self.rate, 1);
        }
        is_allowed
    }

    /// Never if nothing is left.
    fn is_lucky(&self, left: u64, dice: &mut dyn Entropy) -> bool {
        let below_scarce = |random: u32| (u64::from(random) * self.scarce) >> 32;
        entropy::u32(dice).is_ok_and(|random| below_scarce(random) < left)
    }
}

/// The Connects with a wrong token that a service has seen: so many a second are suffered.
///
/// Guessing a token at flood rates must win nothing: a right guess from a stranger's address
/// counts only while this is not exhausted, and each wrong one takes from it. So no more guesses
/// than the limit can win in a second, however many are sent.
#[derive(Debug)]
pub struct WrongTokens {
    bucket: Bucket,
    rate: Rate,
}

impl WrongTokens {
    /// Nobody has guessed yet: one second's worth is left.
    pub fn new(limits: &Limits) -> Self {
        let a_second = limits.get(Limit::WrongTokens);
        Self {
            bucket: Bucket::new(),
            rate: Rate::per_second(a_second, a_second),
        }
    }

    /// A Connect had a wrong token. What exceeds the bucket leaves no debt: it is open again as
    /// soon as the flood ends.
    pub fn count(&mut self, now: Time) {
        self.bucket.take(now, self.rate);
    }

    /// Whether only Connects from the IP of the session's TCP peer may bind now.
    pub fn is_exhausted(&self, now: Time) -> bool {
        self.bucket.is_empty(now, self.rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{NoEntropy, Seeded};

    const A_SECOND: u64 = 20_000;

    /// A flood of `flood` hellos in each millisecond; who is honest comes behind all of them,
    /// once in a millisecond.
    fn under_flood(flood: u64, seconds: u64) -> (u64, u64) {
        let mut challenges = Challenges::new(&Limits::default());
        let mut dice = Seeded::new(flood);
        let (mut to_flood, mut to_honest) = (0, 0);
        // A second to drain what was saved up.
        for ms in 0..(1 + seconds) * 1_000 {
            let counts = u64::from(ms >= 1_000);
            let mut allow = || u64::from(challenges.allow(Time::from_ms(ms), &mut dice)) * counts;
            to_flood += (0..flood).map(|_| allow()).sum::<u64>();
            to_honest += allow();
        }
        (to_flood, to_honest)
    }

    #[test]
    fn within_the_budget_nothing_is_dropped() {
        let mut challenges = Challenges::new(&Limits::default());
        let mut dice = Seeded::new(1);
        for ms in 5_000..15_000 {
            assert!((0..20).all(|_| challenges.allow(Time::from_ms(ms), &mut dice)));
        }
        let later = Time::from_ms(16_000);
        assert!((0..A_SECOND / 2).all(|_| challenges.allow(later, &mut dice)));
    }

    #[test]
    fn a_flood_gets_the_budget_and_no_more() {
        for flood in [40, 200, 1_000] {
            let (to_flood, to_honest) = under_flood(flood, 3);
            let sent = to_flood + to_honest;
            let budget = 3 * A_SECOND;
            assert!(
                sent.abs_diff(budget) < budget / 50,
                "{sent} at {flood} each ms"
            );
        }
    }

    #[test]
    fn it_refills_by_the_clock_and_not_by_asking() {
        let mut challenges = Challenges::new(&Limits::default());
        let mut dice = Seeded::new(2);
        let mut ask = |ms| {
            let asked =
                (0..20 * A_SECOND).filter(|_| challenges.allow(Time::from_ms(ms), &mut dice));
            asked.count() as u64
        };
        assert_eq!(ask(0), A_SECOND);
        assert_eq!(ask(0), 0);
        assert_eq!(ask(10), A_SECOND / 100);
        assert_eq!(ask(3_600_000), A_SECOND);
    }

    #[test]
    fn who_always_comes_last_has_nearly_the_odds_of_the_flood() {
        for (flood, loss) in [(200_u64, 0.98), (1_000, 0.94)] {
            let seconds = 20;
            let (_, to_honest) = under_flood(flood, seconds);
            let fair = (A_SECOND * seconds) as f64 / (flood + 1) as f64;
            let share = to_honest as f64 / fair;
            assert!(
                (loss - 0.12..loss + 0.12).contains(&share),
                "{share} at {flood} each ms"
            );
        }
    }

    #[test]
    fn a_budget_of_one_is_one_a_second() {
        let mut limits = Limits::default();
        limits.set("challenges", 1).expect("in range");
        let mut challenges = Challenges::new(&limits);
        let mut dice = Seeded::new(3);
        let mut times = (0..10_000).filter(|ms| challenges.allow(Time::from_ms(*ms), &mut dice));
        let expected: Vec<u64> = (0..10).map(|second| second * 1_000).collect();
        assert!(times.by_ref().eq(expected));
    }

    #[test]
    fn without_entropy_what_is_scarce_is_dropped() {
        struct Broken;
        impl Entropy for Broken {
            fn fill(&mut self, _: &mut [u8]) -> Result<(), NoEntropy> {
                Err(NoEntropy)
            }
        }
        let mut challenges = Challenges::new(&Limits::default());
        let allowed = (0..A_SECOND).filter(|_| challenges.allow(Time::ZERO, &mut Broken));
        assert_eq!(allowed.count() as u64, A_SECOND / 2 + 1);
    }

    #[test]
    fn no_flood_of_guesses_has_more_chances_than_the_limit() {
        let mut wrong = WrongTokens::new(&Limits::default());
        let mut chances = 0;
        for ms in 0..10_000 {
            for _ in 0..500 {
                chances += u64::from(!wrong.is_exhausted(Time::from_ms(ms)));
                wrong.count(Time::from_ms(ms));
            }
        }
        assert!((2_190..=2_200).contains(&chances), "{chances}");
        assert!(wrong.is_exhausted(Time::from_ms(9_999)));
        assert!(
            !wrong.is_exhausted(Time::from_ms(10_010)),
            "the flood left no debt"
        );
    }

    #[test]
    fn a_few_mistakes_exhaust_nothing() {
        let mut wrong = WrongTokens::new(&Limits::default());
        for _ in 0..199 {
            wrong.count(Time::ZERO);
            assert!(!wrong.is_exhausted(Time::ZERO));
        }
        wrong.count(Time::ZERO);
        assert!(wrong.is_exhausted(Time::ZERO));
    }
}
