//! Time as data: milliseconds of listening time since an arbitrary start.

use std::ops::{Add, Sub};

/// An instant, in milliseconds since an arbitrary start.
///
/// The engine never asks for the time; it is told (see [`Env`](super::Env)). The clock behind it
/// counts only while the process could listen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(u64);

impl Time {
    /// The start of time.
    pub const ZERO: Self = Self(0);
    /// Later than every instant that is ever handed out: a deadline that is not set.
    pub const NEVER: Self = Self(u64::MAX);

    /// The instant `ms` milliseconds after the start.
    pub const fn from_ms(ms: u64) -> Self {
        Self(ms)
    }

    /// Milliseconds since the start.
    pub const fn ms(self) -> u64 {
        self.0
    }

    /// Milliseconds from `earlier` to here; 0 if `earlier` is later.
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<u64> for Time {
    type Output = Self;

    /// The instant `ms` milliseconds later. Past the end of time it stays [`Time::NEVER`].
    fn add(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }
}

impl Sub<u64> for Time {
    type Output = Self;

    /// The instant `ms` milliseconds earlier, at the earliest the start.
    fn sub(self, ms: u64) -> Self {
        Self(self.0.saturating_sub(ms))
    }
}
