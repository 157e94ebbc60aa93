//! The timer wheel. The floor is a sorted map that does the same.
#![forbid(unsafe_code)]

mod common;

use std::collections::BTreeMap;
use std::hint::black_box;
use std::process::ExitCode;

use anteroom::engine::wheel::{TimerId, Wheel};
use anteroom::engine::{Seeded, Time};

use common::pairs::{Pairs, ns_each};
use common::report::Report;

/// Timers that stand, as those of so many sessions.
const STANDING: usize = 10_000;
/// Deadlines are at most so far away: longer than any of a session's.
const SPAN_MS: u64 = 15_000;

fn main() -> ExitCode {
    let mut report = Report::new("wheel: 10000 timers");
    let count = report.repeat(200_000);
    let (mut map, mut wheel) = (Sorted::default(), Wheels::new());
    let moves = Pairs::measure(|| moves(&mut map, count), || moves(&mut wheel, count));
    report.pairs("set anew", &moves, None);
    let (mut map, mut wheel) = (Sorted::default(), Wheels::new());
    let fires = Pairs::measure(|| fires(&mut map, count), || fires(&mut wheel, count));
    report.pairs("fire and set again", &fires, None);
    report.exit()
}

/// What is compared.
trait Timers {
    type Id;
    fn arm(&mut self, key: usize, at: Time) -> Self::Id;
    fn cancel(&mut self, id: Self::Id);
    fn next(&self) -> Option<Time>;
    fn pop(&mut self, now: Time) -> Option<usize>;
    /// The ids of the standing timers, and the time.
    fn state(&mut self) -> &mut (Vec<Option<Self::Id>>, Time);
}

/// Nanoseconds to cancel a timer and set it elsewhere.
fn moves<T: Timers>(timers: &mut T, count: usize) -> f64 {
    let mut dice = Seeded::new(3);
    stand(timers, &mut dice);
    let now = timers.state().1;
    ns_each(count, || {
        for _ in 0..count {
            let key = dice.below(STANDING as u64) as usize;
            if let Some(id) = timers.state().0[key].take() {
                timers.cancel(id);
            }
            let id = timers.arm(key, now + 1 + dice.below(SPAN_MS));
            timers.state().0[key] = Some(id);
        }
    })
}

/// Nanoseconds to wait for a timer, take it and set it again.
fn fires<T: Timers>(timers: &mut T, count: usize) -> f64 {
    let mut dice = Seeded::new(5);
    stand(timers, &mut dice);
    ns_each(count, || {
        let mut left = count;
        while left > 0 {
            let now = timers.next().expect("timers stand");
            timers.state().1 = now;
            while let Some(key) = timers.pop(now) {
                let id = timers.arm(key, now + 1 + dice.below(SPAN_MS));
                timers.state().0[key] = Some(id);
                left = left.saturating_sub(1);
            }
        }
    })
}

/// All timers stand, if they do not yet.
fn stand<T: Timers>(timers: &mut T, dice: &mut Seeded) {
    for key in 0..STANDING {
        if timers.state().0.len() == key {
            let at = timers.state().1 + 1 + dice.below(SPAN_MS);
            let id = timers.arm(key, at);
            timers.state().0.push(Some(id));
        }
    }
}

/// The floor: all deadlines in order; equal ones in the order they were set.
struct Sorted {
    timers: BTreeMap<(Time, u64), usize>,
    set: u64,
    state: (Vec<Option<(Time, u64)>>, Time),
}

impl Default for Sorted {
    fn default() -> Self {
        Self {
            timers: BTreeMap::new(),
            set: 0,
            state: (Vec::new(), Time::ZERO),
        }
    }
}

impl Timers for Sorted {
    type Id = (Time, u64);

    fn arm(&mut self, key: usize, at: Time) -> Self::Id {
        self.set += 1;
        self.timers.insert((at, self.set), key);
        (at, self.set)
    }

    fn cancel(&mut self, id: Self::Id) {
        black_box(self.timers.remove(&id));
    }

    fn next(&self) -> Option<Time> {
        self.timers.first_key_value().map(|((at, _), _)| *at)
    }

    fn pop(&mut self, now: Time) -> Option<usize> {
        let (at, _) = self.timers.first_key_value()?.0;
        if *at > now {
            return None;
        }
        self.timers.pop_first().map(|(_, key)| key)
    }

    fn state(&mut self) -> &mut (Vec<Option<Self::Id>>, Time) {
        &mut self.state
    }
}

struct Wheels {
    wheel: Wheel<usize>,
    state: (Vec<Option<TimerId>>, Time),
}

impl Wheels {
    fn new() -> Self {
        Self {
            wheel: Wheel::new(Time::ZERO),
            state: (Vec::new(), Time::ZERO),
        }
    }
}

impl Timers for Wheels {
    type Id = TimerId;

    fn arm(&mut self, key: usize, at: Time) -> TimerId {
        self.wheel.arm(key, at)
    }

    fn cancel(&mut self, id: TimerId) {
        black_box(self.wheel.cancel(id));
    }

    fn next(&self) -> Option<Time> {
        self.wheel.next()
    }

    fn pop(&mut self, now: Time) -> Option<usize> {
        self.wheel.pop(now)
    }

    fn state(&mut self) -> &mut (Vec<Option<TimerId>>, Time) {
        &mut self.state
    }
}
