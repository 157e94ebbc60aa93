//! The few deadlines of one session: the earliest of them is its one entry in the wheel.

use super::Time;

/// How many deadlines a session can have.
pub const DEADLINES: usize = 8;

/// A table of [`DEADLINES`] deadlines, named by an index that the protocol gives a meaning.
///
/// Every method panics if `which` is not below [`DEADLINES`]: it is a constant of the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadlines {
    at: [Time; DEADLINES],
}

impl Default for Deadlines {
    fn default() -> Self {
        Self::new()
    }
}

impl Deadlines {
    /// None is set.
    pub const fn new() -> Self {
        Self {
            at: [Time::NEVER; DEADLINES],
        }
    }

    /// Sets one, whether it was set or not; [`Time::NEVER`] clears it.
    pub fn set(&mut self, which: usize, at: Time) {
        self.at[which] = at;
    }

    /// Clears one.
    pub fn clear(&mut self, which: usize) {
        self.at[which] = Time::NEVER;
    }

    /// When it is due; [`Time::NEVER`] if it is not set.
    pub fn get(&self, which: usize) -> Time {
        self.at[which]
    }

    /// When the first of them is due; [`Time::NEVER`] if none is set.
    pub fn earliest(&self) -> Time {
        self.at.into_iter().min().unwrap_or(Time::NEVER)
    }

    /// Clears the earliest that is due at `now` and returns its index; of equal ones the lower
    /// index first. `None` if none is due.
    pub fn take_due(&mut self, now: Time) -> Option<usize> {
        let (which, at) = (0..).zip(self.at).min_by_key(|&(_, at)| at)?;
        let due = at <= now && at != Time::NEVER;
        due.then(|| {
            self.clear(which);
            which
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_due_when_none_is_set() {
        let mut deadlines = Deadlines::new();
        assert_eq!(deadlines.earliest(), Time::NEVER);
        assert_eq!(deadlines.take_due(Time::NEVER), None);
    }

    #[test]
    fn what_is_due_is_taken_once_in_order_of_time_then_of_index() {
        let at = Time::from_ms;
        let mut deadlines = Deadlines::default();
        for (which, ms) in [(7, 10), (3, 20), (1, 20), (0, 30), (2, 31), (5, 5)] {
            deadlines.set(which, at(ms));
        }
        deadlines.clear(5);
        assert_eq!(deadlines.get(5), Time::NEVER);
        assert_eq!(deadlines.get(3), at(20));
        assert_eq!(deadlines.earliest(), at(10));
        assert_eq!(deadlines.take_due(at(9)), None);
        let due: Vec<_> = std::iter::from_fn(|| deadlines.take_due(at(30))).collect();
        assert_eq!(due, [7, 1, 3, 0]);
        assert_eq!(deadlines.earliest(), at(31));
        deadlines.set(2, at(40));
        assert_eq!(deadlines.take_due(at(31)), None, "set again is set later");
        assert_eq!(deadlines.take_due(at(40)), Some(2));
        assert_eq!(deadlines, Deadlines::new());
    }
}
