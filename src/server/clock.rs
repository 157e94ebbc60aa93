//! Listening time: the only place that asks the system for the time.
//!
//! The clock is monotonic, less what the process could not listen (stopped, suspended, starved,
//! busy elsewhere). So a stall makes nobody late, and no other code knows of it.

use std::time::{Duration, Instant};

use crate::engine::Time;

/// From this many milliseconds of not listening on, they count for nobody.
const STALL_MS: u64 = 500;

/// The clock of one loop.
#[derive(Debug)]
pub(crate) struct Clock {
    start: Instant,
    listening: Listening,
}

impl Clock {
    /// A clock that starts now, at [`Time::ZERO`].
    pub(crate) fn new() -> Self {
        Self {
            start: Instant::now(),
            listening: Listening::default(),
        }
    }

    /// A turn is over and a wait begins; the time it begins at.
    pub(crate) fn rest(&mut self) -> Time {
        let raw_ms = self.raw_ms();
        self.listening.rest(raw_ms)
    }

    /// The wait, which should have taken `wait` at most, is over and a turn begins; the time of
    /// that turn.
    pub(crate) fn wake(&mut self, wait: Option<Duration>) -> Time {
        let raw_ms = self.raw_ms();
        self.listening.wake(raw_ms, wait.map(whole_ms))
    }

    /// Whether there was a gap in listening since this was last asked.
    pub(crate) fn take_gap(&mut self) -> bool {
        std::mem::take(&mut self.listening.gap)
    }

    /// Lets `ms` milliseconds pass in which nothing was done.
    #[cfg(test)]
    pub(crate) fn stall(&mut self, ms: u64) {
        self.start -= Duration::from_millis(ms);
    }

    fn raw_ms(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// `wait` in milliseconds, rounded up as the system's wait rounds it.
fn whole_ms(wait: Duration) -> u64 {
    u64::try_from(wait.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

/// What of the time was listening time, told from the raw times at which waits begin and end.
#[derive(Debug, Default)]
struct Listening {
    lost_ms: u64,
    rested_ms: u64,
    woke_ms: u64,
    gap: bool,
}

impl Listening {
    /// A turn ends at `raw_ms`. All of it is lost if it took too long: nobody was heard meanwhile.
    fn rest(&mut self, raw_ms: u64) -> Time {
        self.lose(raw_ms.saturating_sub(self.woke_ms));
        self.rested_ms = raw_ms;
        self.time(raw_ms)
    }

    /// A wait of `wait_ms` ends at `raw_ms`. What it took longer than that is lost if it is much.
    fn wake(&mut self, raw_ms: u64, wait_ms: Option<u64>) -> Time {
        if let Some(wait_ms) = wait_ms {
            let due_ms = self.rested_ms.saturating_add(wait_ms);
            self.lose(raw_ms.saturating_sub(due_ms));
        }
        self.woke_ms = raw_ms;
        self.time(raw_ms)
    }

    fn lose(&mut self, ms: u64) {
        if ms > STALL_MS {
            self.lost_ms += ms;
            self.gap = true;
        }
    }

    fn time(&self, raw_ms: u64) -> Time {
        Time::from_ms(raw_ms.saturating_sub(self.lost_ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(time: Time) -> u64 {
        time.ms()
    }

    #[test]
    fn waits_and_turns_in_time_lose_nothing() {
        let mut clock = Listening::default();
        assert_eq!(ms(clock.rest(10)), 10);
        assert_eq!(ms(clock.wake(1_010, Some(1_000))), 1_010);
        assert_eq!(ms(clock.rest(1_500)), 1_500, "a turn of 490 ms");
        assert_eq!(ms(clock.wake(2_100, Some(100))), 2_100, "500 ms late");
        assert_eq!(ms(clock.rest(2_600)), 2_600, "a turn of 500 ms");
        assert!(!clock.gap);
    }

    #[test]
    fn a_wait_that_came_back_late_loses_what_is_past_its_deadline() {
        let mut clock = Listening::default();
        clock.rest(0);
        assert_eq!(ms(clock.wake(4_000, Some(1_000))), 1_000);
        assert!(clock.gap);
        assert_eq!(ms(clock.rest(4_010)), 1_010);
        assert_eq!(ms(clock.wake(5_010, Some(500))), 2_010, "500 ms late");
    }

    #[test]
    fn an_early_event_or_a_wait_without_end_loses_nothing() {
        let mut clock = Listening::default();
        clock.rest(0);
        assert_eq!(ms(clock.wake(3_000, Some(60_000))), 3_000);
        clock.rest(3_001);
        assert_eq!(ms(clock.wake(100_000, None)), 100_000);
        assert!(!clock.gap);
    }

    #[test]
    fn a_turn_that_took_too_long_is_lost_whole() {
        let mut clock = Listening::default();
        clock.rest(0);
        let began = clock.wake(100, Some(100));
        assert_eq!(clock.rest(100 + 501), began);
        assert!(clock.gap);
        assert_eq!(ms(clock.wake(701, Some(100))), 200);
    }

    #[test]
    fn twenty_seconds_of_silence_are_nothing() {
        let mut clock = Listening::default();
        let mut raw = 0;
        let mut last = clock.rest(raw);
        for stall in [0, 20_000, 0, 3_000, 499] {
            raw += 250 + stall;
            let now = clock.wake(raw, Some(250));
            assert!(now.since(last) <= 250 + STALL_MS);
            last = clock.rest(raw);
        }
    }

    #[test]
    fn time_never_runs_backwards() {
        let mut dice = crate::engine::Seeded::new(7);
        let mut clock = Listening::default();
        let (mut raw, mut last) = (0, Time::ZERO);
        for _ in 0..10_000 {
            raw += dice.below(1_200);
            let rested = clock.rest(raw);
            raw += dice.below(1_200);
            let wait = (dice.below(2) == 0).then(|| dice.below(1_000));
            let woke = clock.wake(raw, wait);
            assert!(last <= rested && rested <= woke);
            last = woke;
        }
    }

    #[test]
    fn the_gap_is_told_once() {
        let mut clock = Clock::new();
        clock.listening.rest(0);
        clock.listening.wake(2_000, Some(0));
        assert!(clock.take_gap());
        assert!(!clock.take_gap());
    }

    #[test]
    fn parts_of_a_millisecond_are_waited_whole() {
        assert_eq!(whole_ms(Duration::ZERO), 0);
        assert_eq!(whole_ms(Duration::from_micros(1)), 1);
        assert_eq!(whole_ms(Duration::from_millis(7)), 7);
        assert_eq!(whole_ms(Duration::MAX), u64::MAX);
    }
}
