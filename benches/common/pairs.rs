//! How a number is measured.
//!
//! What counts is the CPU time of the thread, user and system: it does not see others who use the
//! machine. Clock speed, caches and neighbours still drift, so the floor and what is compared with
//! it are measured in turn, and the ratio is taken within each pair.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// How many pairs a number is the median of.
const PAIRS: usize = 9;

/// The CPU time this thread has used.
pub fn cpu_time() -> Duration {
    let spent = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(spent.tv_sec.unsigned_abs(), spent.tv_nsec as u32)
}

/// The CPU time that `work` takes, in nanoseconds for each of its `count` parts.
pub fn ns_each(count: usize, work: impl FnOnce()) -> f64 {
    let start = cpu_time();
    work();
    ns(cpu_time() - start, count)
}

/// A time in nanoseconds for each of `count` parts.
pub fn ns(time: Duration, count: usize) -> f64 {
    time.as_nanos() as f64 / count as f64
}

/// Nanoseconds of a floor and of a subject, measured in turn.
#[derive(Debug, Default)]
pub struct Pairs {
    floor_ns: Vec<f64>,
    subject_ns: Vec<f64>,
}

impl Pairs {
    /// Calls both in turn; each call returns the nanoseconds of one operation. The first pair
    /// warms up and is thrown away.
    pub fn measure(mut floor: impl FnMut() -> f64, mut subject: impl FnMut() -> f64) -> Self {
        floor();
        subject();
        let mut pairs = Self::default();
        for _ in 0..PAIRS {
            pairs.floor_ns.push(floor());
            pairs.subject_ns.push(subject());
        }
        pairs
    }

    /// The floor's nanoseconds.
    pub fn floor(&self) -> Spread {
        Spread::of(self.floor_ns.clone())
    }

    /// The subject's nanoseconds.
    pub fn subject(&self) -> Spread {
        Spread::of(self.subject_ns.clone())
    }

    /// How often the floor goes into the subject, pair by pair.
    pub fn ratio(&self) -> Spread {
        let pairs = self.subject_ns.iter().zip(&self.floor_ns);
        Spread::of(pairs.map(|(subject, floor)| subject / floor).collect())
    }
}

/// The middle and the ends of some values.
#[derive(Debug, Clone, Copy)]
pub struct Spread {
    /// As many are below as above.
    pub median: f64,
    /// The least of them.
    pub least: f64,
    /// The greatest of them.
    pub most: f64,
}

impl Spread {
    /// Of an odd number of values.
    pub fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        Self {
            median: values[values.len() / 2],
            least: values[0],
            most: values[values.len() - 1],
        }
    }
}
