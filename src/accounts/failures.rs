//! Failed logins: five in a minute for a user from an address, thirty from an address.
//!
//! What is being judged counts as if it had failed, or whoever asks for many at once would have
//! them all judged before the first has failed.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::net::IpAddr;

use super::USER_LEN_MAX;
use crate::engine::Time;
use crate::guard::network::network;

/// Failures of a user from an address before nothing is looked at.
const PAIR_MAX: usize = 5;
/// Failures of an address.
const IP_MAX: usize = 30;
/// How long a failure counts, in milliseconds.
const WINDOW_MS: u64 = 60_000;
/// How many users with an address, and how many addresses, are remembered.
const TRACKED_MAX: usize = 4096;

/// An attempt to log in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Guess {
    pair: Pair,
    at: Time,
}

/// A user and the address somebody tries it from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Pair {
    network: IpAddr,
    /// Filled up with zeros, which no name has.
    user: [u8; USER_LEN_MAX],
}

impl Guess {
    /// `user` has at most [`USER_LEN_MAX`] bytes; what is beyond does not count.
    pub(super) fn new(now: Time, ip: IpAddr, user: &str) -> Self {
        let mut padded = [0; USER_LEN_MAX];
        for (to, from) in padded.iter_mut().zip(user.bytes()) {
            *to = from;
        }
        let pair = Pair {
            network: network(ip),
            user: padded,
        };
        Self { pair, at: now }
    }
}

/// What is to happen with a guess.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Judgement {
    /// It is looked at.
    Look,
    /// There were too many failures: it is false.
    Refuse,
    /// There will be if those under way fail: it may come again.
    Wait,
}

/// All that failed lately, and what is under way.
#[derive(Debug, Default)]
pub(super) struct Failures {
    pairs: Recent<Pair>,
    ips: Recent<IpAddr>,
    /// Bounded by the queue of the workers.
    under_way: Vec<Guess>,
}

impl Failures {
    /// What is to happen with `guess`, now.
    pub(super) fn judge(&self, guess: &Guess) -> Judgement {
        let Guess { pair, at } = guess;
        let of_pair = self.pairs.count(*at, pair);
        let of_ip = self.ips.count(*at, &pair.network);
        if of_pair >= PAIR_MAX || of_ip >= IP_MAX {
            return Judgement::Refuse;
        }
        let under_way = || self.under_way.iter().map(|other| &other.pair);
        let more_of_pair = under_way().filter(|other| *other == pair).count();
        let more_of_ip = under_way().filter(|other| other.network == pair.network);
        if of_pair + more_of_pair >= PAIR_MAX || of_ip + more_of_ip.count() >= IP_MAX {
            return Judgement::Wait;
        }
        Judgement::Look
    }

    /// `guess` is being looked at.
    pub(super) fn begin(&mut self, guess: Guess) {
        self.under_way.push(guess);
    }

    /// `guess` was looked at.
    pub(super) fn end(&mut self, guess: &Guess, has_failed: bool) {
        let index = self.under_way.iter().position(|other| other == guess);
        debug_assert!(index.is_some(), "it was under way");
        if let Some(index) = index {
            self.under_way.swap_remove(index);
        }
        if has_failed {
            self.pairs.add(guess.at, guess.pair, PAIR_MAX);
            self.ips.add(guess.at, guess.pair.network, IP_MAX);
        }
    }
}

/// When something last happened, for a bounded number of keys. Every addition has cost the hash of
/// a password; beside that, looking through all keys for the oldest costs nothing.
#[derive(Debug)]
struct Recent<K> {
    times: HashMap<K, VecDeque<Time>>,
}

impl<K> Default for Recent<K> {
    fn default() -> Self {
        Self {
            times: HashMap::new(),
        }
    }
}

impl<K: Hash + Eq + Copy> Recent<K> {
    /// How often it happened in the last minute.
    fn count(&self, now: Time, key: &K) -> usize {
        let times = self.times.get(key).into_iter().flatten();
        times.filter(|at| is_recent(now, **at)).count()
    }

    /// It happened; only the last `max` times are of interest.
    fn add(&mut self, at: Time, key: K, max: usize) {
        if self.times.len() >= TRACKED_MAX && !self.times.contains_key(&key) {
            self.forget_oldest();
        }
        let times = self.times.entry(key).or_default();
        times.retain(|other| is_recent(at, *other));
        times.push_back(at);
        if times.len() > max {
            times.pop_front();
        }
    }

    fn forget_oldest(&mut self) {
        let last = |times: &VecDeque<Time>| times.iter().max().copied();
        let oldest = self.times.iter().min_by_key(|(_, times)| last(times));
        if let Some(key) = oldest.map(|(key, _)| *key) {
            self.times.remove(&key);
        }
    }
}

fn is_recent(now: Time, at: Time) -> bool {
    now.since(at) < WINDOW_MS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guess(ms: u64, ip: &str, user: &str) -> Guess {
        Guess::new(Time::from_ms(ms), ip.parse().expect("an address"), user)
    }

    /// Judges it, and has it fail if it is looked at.
    fn fail(failures: &mut Failures, guess: Guess) -> Judgement {
        let judgement = failures.judge(&guess);
        if judgement == Judgement::Look {
            failures.begin(guess);
            failures.end(&guess, true);
        }
        judgement
    }

    #[test]
    fn five_failures_in_a_minute_refuse_the_next_of_the_pair() {
        let mut failures = Failures::default();
        for ms in 0..5 {
            let judgement = fail(&mut failures, guess(ms * 10_000, "192.0.2.1", "axel"));
            assert_eq!(judgement, Judgement::Look);
        }
        let judge = |ms, ip, user| failures.judge(&guess(ms, ip, user));
        assert_eq!(judge(40_000, "192.0.2.1", "axel"), Judgement::Refuse);
        assert_eq!(judge(59_999, "192.0.2.1", "axel"), Judgement::Refuse);
        assert_eq!(judge(60_000, "192.0.2.1", "axel"), Judgement::Look);
        assert_eq!(judge(59_999, "192.0.2.1", "axe"), Judgement::Look);
        assert_eq!(judge(59_999, "192.0.2.2", "axel"), Judgement::Look);
    }

    #[test]
    fn what_is_refused_prolongs_nothing() {
        let mut failures = Failures::default();
        let mut looked_at = 0;
        for ms in (0..600_000).step_by(100) {
            let judgement = fail(&mut failures, guess(ms, "192.0.2.1", "axel"));
            looked_at += u32::from(judgement == Judgement::Look);
        }
        assert_eq!(looked_at, 50, "five in each of ten minutes");
    }

    #[test]
    fn thirty_failures_in_a_minute_refuse_the_address() {
        let mut failures = Failures::default();
        for n in 0..30 {
            let guess = guess(n, "192.0.2.1", &format!("user{n}"));
            assert_eq!(fail(&mut failures, guess), Judgement::Look);
        }
        let judge = |ms, ip| failures.judge(&guess(ms, ip, "somebody"));
        assert_eq!(judge(59_999, "192.0.2.1"), Judgement::Refuse);
        assert_eq!(judge(59_999, "192.0.2.2"), Judgement::Look);
        assert_eq!(judge(60_000, "192.0.2.1"), Judgement::Look);
    }

    #[test]
    fn an_address_is_an_ipv6_64_and_loopback_is_one_like_others() {
        for [one, other] in [
            ["2001:db8::1", "2001:db8::ffff:2"],
            ["192.0.2.1", "::ffff:192.0.2.1"],
            ["127.0.0.1", "127.0.0.1"],
        ] {
            let mut failures = Failures::default();
            for _ in 0..5 {
                fail(&mut failures, guess(0, one, "axel"));
            }
            let judgement = failures.judge(&guess(0, other, "axel"));
            assert_eq!(judgement, Judgement::Refuse, "{one} and {other}");
        }
    }

    #[test]
    fn what_is_under_way_counts_until_it_is_known() {
        let mut failures = Failures::default();
        let asked: Vec<Guess> = (0..5).map(|ms| guess(ms, "192.0.2.1", "axel")).collect();
        for guess in &asked {
            assert_eq!(failures.judge(guess), Judgement::Look);
            failures.begin(*guess);
        }
        let next = guess(5, "192.0.2.1", "axel");
        assert_eq!(failures.judge(&next), Judgement::Wait);
        failures.end(&asked[0], false);
        assert_eq!(failures.judge(&next), Judgement::Look);
        for guess in &asked[1..] {
            failures.end(guess, true);
        }
        assert_eq!(fail(&mut failures, next), Judgement::Look);
        assert_eq!(failures.judge(&next), Judgement::Refuse);
        assert!(failures.under_way.is_empty());
    }

    #[test]
    fn what_an_address_has_under_way_is_bounded_too() {
        let mut failures = Failures::default();
        for n in 0..30 {
            failures.begin(guess(0, "192.0.2.1", &format!("user{n}")));
        }
        let judge = |ip| failures.judge(&guess(0, ip, "somebody"));
        assert_eq!(judge("192.0.2.1"), Judgement::Wait);
        assert_eq!(judge("192.0.2.2"), Judgement::Look);
    }

    #[test]
    fn the_oldest_of_4096_pairs_goes() {
        let mut failures = Failures::default();
        let ip = |n: u64| format!("10.0.{}.{}", n / 250, n % 250);
        for _ in 0..5 {
            fail(&mut failures, guess(1, &ip(0), "axel"));
            fail(&mut failures, guess(2, &ip(1), "axel"));
        }
        for n in 2..4096 {
            fail(&mut failures, guess(n + 1, &ip(n), "axel"));
        }
        let judge = |failures: &Failures, n| failures.judge(&guess(5_000, &ip(n), "axel"));
        assert_eq!(judge(&failures, 0), Judgement::Refuse);
        fail(&mut failures, guess(5_000, &ip(4096), "axel"));
        assert_eq!(failures.pairs.times.len(), TRACKED_MAX);
        assert_eq!(failures.ips.times.len(), TRACKED_MAX);
        assert_eq!(judge(&failures, 0), Judgement::Look);
        assert_eq!(judge(&failures, 1), Judgement::Refuse);
        // Who is there already takes nobody's place.
        fail(&mut failures, guess(5_001, &ip(4096), "axel"));
        assert_eq!(judge(&failures, 1), Judgement::Refuse);
    }

    #[test]
    fn random_conversations_never_look_at_more_than_the_budgets() {
        use crate::engine::Seeded;
        for seed in 0..50 {
            let (mut failures, mut dice) = (Failures::default(), Seeded::new(seed));
            let (mut now, mut asked, mut failed) = (0, Vec::new(), Vec::<Guess>::new());
            for _ in 0..2_000 {
                now += dice.below(1_500);
                let user = format!("user{}", dice.below(12));
                let next = guess(now, "192.0.2.1", &user);
                if failures.judge(&next) == Judgement::Look {
                    failures.begin(next);
                    asked.push(next);
                }
                while !asked.is_empty() && dice.below(2) == 0 {
                    let guess = asked.swap_remove(dice.below(asked.len() as u64) as usize);
                    let has_failed = dice.below(8) > 0;
                    failures.end(&guess, has_failed);
                    failed.extend(has_failed.then_some(guess));
                }
                let recent = failed.iter().filter(|one| is_recent(next.at, one.at));
                let of_pair = recent.clone().filter(|one| one.pair == next.pair);
                assert!(of_pair.count() <= PAIR_MAX, "seed {seed}");
                assert!(recent.count() <= IP_MAX, "seed {seed}");
            }
        }
    }
}
