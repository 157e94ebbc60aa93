//! A token bucket that is one number: the instant at which it will be full again.
//!
//! It is refilled by the clock, never per call or per loop turn (the generic cell rate algorithm),
//! so a thousand idle buckets cost nothing.

use super::Time;

const NS_PER_MS: u64 = 1_000_000;
const NS_PER_SECOND: u64 = 1_000_000_000;

/// How fast a bucket refills and how much it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// Nanoseconds in which one token comes back, at least 1.
    token_ns: u64,
    /// At least 1.
    burst: u64,
}

impl Rate {
    /// `tokens` (1 to 10⁹) come back each second, never more than that; a full bucket holds
    /// `burst` (from 1). Numbers outside count as the nearest inside.
    pub const fn per_second(tokens: u64, burst: u64) -> Self {
        let tokens = if tokens == 0 { 1 } else { tokens };
        Self::new(NS_PER_SECOND.div_ceil(tokens), burst)
    }

    /// One token comes back every `ms` milliseconds (from 1); a full bucket holds `burst` (from
    /// 1). Numbers outside count as the nearest inside.
    pub const fn one_per_ms(ms: u64, burst: u64) -> Self {
        let ms = if ms == 0 { 1 } else { ms };
        Self::new(ms.saturating_mul(NS_PER_MS), burst)
    }

    /// What `count` (from 1) buckets of this rate give together: tokens come back that much faster,
    /// and a full bucket holds that many times more.
    pub const fn times(self, count: u64) -> Self {
        let count = if count == 0 { 1 } else { count };
        let token_ns = self.token_ns.div_ceil(count);
        Self::new(token_ns, self.burst.saturating_mul(count))
    }

    /// What a full bucket holds.
    pub const fn burst(self) -> u64 {
        self.burst
    }

    const fn new(token_ns: u64, burst: u64) -> Self {
        Self {
            token_ns,
            burst: if burst == 0 { 1 } else { burst },
        }
    }
}

/// A bucket of tokens; what it holds at most and how fast it refills is the caller's [`Rate`],
/// the same in every call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bucket {
    /// In nanoseconds since [`Time::ZERO`]; in the past if it is full.
    full_at_ns: u64,
}

impl Bucket {
    /// A full bucket.
    pub const fn new() -> Self {
        Self { full_at_ns: 0 }
    }

    /// Whether not even one whole token is in it.
    pub fn is_empty(&self, now: Time, rate: Rate) -> bool {
        let one_left_ns = (rate.burst - 1).saturating_mul(rate.token_ns);
        self.missing_ns(now) > one_left_ns
    }

    /// Whether it is as full as it gets: a bucket like a new one.
    pub fn is_full(&self, now: Time) -> bool {
        self.missing_ns(now) == 0
    }

    /// From when on it is full, unless something is taken before.
    pub const fn full_at(&self) -> Time {
        Time::from_ms(self.full_at_ns.div_ceil(NS_PER_MS))
    }

    /// How many whole tokens are in it.
    pub fn tokens(&self, now: Time, rate: Rate) -> u64 {
        let missing = self.missing_ns(now).div_ceil(rate.token_ns);
        rate.burst.saturating_sub(missing)
    }

    /// Takes one token; returns false, and takes none, if it is empty.
    pub fn take(&mut self, now: Time, rate: Rate) -> bool {
        let there_is_one = !self.is_empty(now, rate);
        if there_is_one {
            self.charge(now, rate, 1);
        }
        there_is_one
    }

    /// Takes `tokens` whether they are in it or not: it may fall below zero, and then stays empty
    /// until the debt is paid by the clock.
    pub fn charge(&mut self, now: Time, rate: Rate, tokens: u64) {
        let cost_ns = tokens.saturating_mul(rate.token_ns);
        self.full_at_ns = self.full_at_ns.max(ns(now)).saturating_add(cost_ns);
    }

    /// How long until it is full.
    fn missing_ns(&self, now: Time) -> u64 {
        self.full_at_ns.saturating_sub(ns(now))
    }
}

fn ns(time: Time) -> u64 {
    time.ms().saturating_mul(NS_PER_MS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Seeded;

    fn takes(bucket: &mut Bucket, now: Time, rate: Rate) -> u64 {
        let mut taken = 0;
        while bucket.take(now, rate) {
            taken += 1;
        }
        taken
    }

    #[test]
    fn a_burst_at_once_then_one_per_interval() {
        let rate = Rate::per_second(20, 32);
        let mut bucket = Bucket::new();
        let start = Time::from_ms(7_777);
        assert!(bucket.is_full(start));
        assert_eq!(takes(&mut bucket, start, rate), 32);
        assert!(!bucket.is_full(start));
        for token in 0..100 {
            assert!(bucket.is_empty(start + (token * 50 + 49), rate));
            assert!(bucket.take(start + (token + 1) * 50, rate));
        }
        let later = start + 5_000 + 1_599;
        assert!(!bucket.is_full(later));
        assert!(bucket.is_full(later + 1));
        assert_eq!(takes(&mut bucket, later + 3_600_000, rate), 32);
    }

    #[test]
    fn one_every_two_seconds() {
        let rate = Rate::one_per_ms(2000, 5);
        let mut bucket = Bucket::new();
        assert_eq!(takes(&mut bucket, Time::ZERO, rate), 5);
        assert!(!bucket.take(Time::from_ms(1_999), rate));
        assert!(bucket.take(Time::from_ms(2_000), rate));
        assert!(!bucket.take(Time::from_ms(2_000), rate));
    }

    #[test]
    fn a_debt_is_paid_before_anything_is_given() {
        let rate = Rate::per_second(8192, 8192);
        let mut bucket = Bucket::new();
        bucket.charge(Time::ZERO, rate, 8191);
        assert!(!bucket.is_empty(Time::ZERO, rate));
        bucket.charge(Time::ZERO, rate, 8193);
        assert!(bucket.is_empty(Time::from_ms(1_000), rate));
        assert!(!bucket.is_empty(Time::from_ms(1_001), rate));
    }

    #[test]
    fn it_says_how_many_tokens_are_in_it_and_when_it_is_full() {
        let rate = Rate::per_second(700, 900);
        let (mut bucket, mut dice) = (Bucket::new(), Seeded::new(1));
        let mut now = Time::ZERO;
        for _ in 0..2_000 {
            now = now + dice.below(40);
            bucket.charge(now, rate, dice.below(30));
            let tokens = bucket.tokens(now, rate);
            assert_eq!(takes(&mut { bucket }, now, rate), tokens);
            assert_eq!(bucket.is_empty(now, rate), tokens == 0);
            assert!(bucket.is_full(bucket.full_at()));
            assert!(bucket.full_at() == Time::ZERO || !bucket.is_full(bucket.full_at() - 1));
        }
        bucket.charge(now, rate, 2_000);
        assert_eq!(bucket.tokens(now, rate), 0, "in debt");
        assert_eq!(Bucket::new().tokens(Time::ZERO, rate), rate.burst());
    }

    #[test]
    fn four_buckets_together_give_four_times_as_much() {
        let rate = Rate::one_per_ms(2_000, 5);
        assert_eq!(rate.times(4), Rate::one_per_ms(500, 20));
        assert_eq!(Rate::one_per_ms(10, 5).times(4).token_ns, 2_500_000);
        assert_eq!((rate.times(1), rate.times(0)), (rate, rate));
        assert_eq!(rate.times(u64::MAX).burst, u64::MAX);
    }

    #[test]
    fn in_the_long_run_no_more_than_the_rate() {
        for per_second in [1, 3, 7, 20, 512, 4999, 51_200] {
            let burst = per_second + 1;
            let rate = Rate::per_second(per_second, burst);
            let mut bucket = Bucket::new();
            let mut dice = Seeded::new(per_second);
            let (mut now, mut taken) = (Time::ZERO, 0);
            while now.ms() < 100_000 {
                taken += takes(&mut bucket, now, rate);
                now = now + dice.below(90);
            }
            let most = per_second * now.ms() / 1000 + burst;
            assert!(taken <= most, "{taken} > {most}");
            assert!(taken > most * 98 / 100, "{taken} of {most}");
        }
    }

    #[test]
    fn nothing_overflows() {
        let numbers = [0, 1, 2, NS_PER_SECOND, u64::MAX - 1, u64::MAX];
        for (a, b) in numbers.into_iter().flat_map(|a| numbers.map(|b| (a, b))) {
            for rate in [Rate::per_second(a, b), Rate::one_per_ms(a, b)] {
                for ms in numbers {
                    let mut bucket = Bucket::new();
                    assert!(bucket.take(Time::ZERO, rate), "a bucket holds at least one");
                    bucket.charge(Time::from_ms(ms), rate, a);
                    bucket.charge(Time::from_ms(b), rate, u64::MAX);
                    bucket.is_empty(Time::NEVER, rate);
                    bucket.tokens(Time::from_ms(b), rate.times(a));
                    bucket.full_at();
                    bucket.is_full(Time::from_ms(ms));
                }
            }
        }
    }

    #[test]
    fn a_rate_of_zero_is_a_rate_of_one() {
        assert_eq!(Rate::per_second(0, 0), Rate::per_second(1, 1));
        assert_eq!(Rate::one_per_ms(0, 0), Rate::one_per_ms(1, 1));
    }
}
