//! Timers: keys that come back when their time has come.

use std::collections::BTreeMap;

use super::Time;

/// Timers in the order of their deadlines.
#[derive(Debug)]
pub struct Wheel<K> {
    timers: BTreeMap<TimerId, K>,
    armed: u64,
}

/// One timer; stale once it has fired or was cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimerId {
    due: Time,
    number: u64,
}

impl<K: Copy> Wheel<K> {
    /// Without timers.
    pub fn new(_start: Time) -> Self {
        Self {
            timers: BTreeMap::new(),
            armed: 0,
        }
    }

    /// `key` comes back at `due`.
    pub fn arm(&mut self, key: K, due: Time) -> TimerId {
        self.armed += 1;
        let id = TimerId {
            due,
            number: self.armed,
        };
        self.timers.insert(id, key);
        id
    }

    /// The timer will not fire. Returns whether it would have.
    pub fn cancel(&mut self, id: TimerId) -> bool {
        self.timers.remove(&id).is_some()
    }

    /// When [`Wheel::pop`] is worth calling next.
    pub fn next(&self) -> Option<Time> {
        self.timers.keys().next().map(|id| id.due)
    }

    /// The key of the next timer that is due.
    pub fn pop(&mut self, now: Time) -> Option<K> {
        let first = self.timers.first_entry()?;
        (first.key().due <= now).then(|| first.remove())
    }
}
