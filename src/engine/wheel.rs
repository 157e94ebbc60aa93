//! The timer wheel: what is due when, for everything of a service.
//!
//! It is a hierarchy of wheels, one for every six bits of a [`Time`]. A timer sits on the level of
//! the highest bits in which its deadline differs from the wheel's own time, and moves down as
//! that time comes near. So a millisecond is a slot of its own, no deadline is beyond the horizon,
//! and two timers with the same deadline always share a slot, where they keep their order.
//! A bit per slot finds the next deadline without a scan, however far away it is.

use super::Time;
use super::slots::{Key, Slots};

/// So many bits of a time are an index on one level.
const BITS: u32 = 6;
/// Slots on a level.
const SLOTS: usize = 1 << BITS;
/// Levels, for all bits of a time.
const LEVELS: usize = u64::BITS.div_ceil(BITS) as usize;

/// Names a timer from its arming until it fires or is cancelled; afterwards it names nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TimerId(Key);

/// Timers, each with a `K` that says what it is for. Allocates when more are armed at once than
/// ever before, and about 17 KiB when it is made.
#[derive(Debug)]
pub struct Wheel<K> {
    /// Nothing is armed for before this, except what was overdue when it was armed.
    elapsed: Time,
    timers: Slots<Timer<K>>,
    /// By level and index; see [`Place::slot`].
    slots: Box<[Slot]>,
    /// Of each level, the slots that are not empty, as bits.
    occupied: [u64; LEVELS],
    /// The levels that are not empty, as bits.
    levels: u16,
}

/// A circular list of timers: those with the same deadline are in the order they were armed.
#[derive(Debug, Clone, Copy)]
struct Slot {
    head: Option<Key>,
    /// Not later than the first deadline in the list; earlier only if that timer was cancelled.
    earliest: Time,
}

#[derive(Debug, Clone, Copy)]
struct Timer<K> {
    what: K,
    due: Time,
    place: Place,
    prev: Key,
    next: Key,
}

/// Where a slot is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    level: u8,
    index: u8,
}

impl Place {
    /// Where a deadline belongs while the wheel's time is `elapsed`.
    fn of(due: Time, elapsed: Time) -> Self {
        let differing = (due.ms() ^ elapsed.ms()) | (SLOTS as u64 - 1);
        let level = differing.ilog2() / BITS;
        let index = (due.ms() >> (level * BITS)) % SLOTS as u64;
        Self {
            level: level as u8,
            index: index as u8,
        }
    }

    fn slot(self) -> usize {
        usize::from(self.level) * SLOTS + usize::from(self.index)
    }

    /// The first instant of this slot, which is not before `elapsed` (but may be `elapsed`).
    fn start(self, elapsed: Time) -> Time {
        let shift = u32::from(self.level) * BITS;
        let above = u64::MAX.checked_shl(shift + BITS).unwrap_or(0);
        Time::from_ms((elapsed.ms() & above) | u64::from(self.index) << shift)
    }
}

impl<K: Copy> Wheel<K> {
    /// A wheel without timers at the time `start`.
    pub fn new(start: Time) -> Self {
        let empty = Slot {
            head: None,
            earliest: Time::NEVER,
        };
        Self {
            elapsed: start,
            timers: Slots::default(),
            slots: vec![empty; LEVELS * SLOTS].into(),
            occupied: [0; LEVELS],
            levels: 0,
        }
    }

    /// How many timers are armed.
    pub fn len(&self) -> usize {
        self.timers.len()
    }

    /// Whether none is armed.
    pub fn is_empty(&self) -> bool {
        self.timers.is_empty()
    }

    /// Arms a timer that fires once, at `due` or, if that is past, at the next [`Wheel::pop`].
    pub fn arm(&mut self, what: K, due: Time) -> TimerId {
        const NOWHERE: Key = Key {
            slot: u32::MAX,
            generation: 0,
        };
        let key = self.timers.insert(Timer {
            what,
            due,
            place: Place { level: 0, index: 0 },
            prev: NOWHERE,
            next: NOWHERE,
        });
        self.link(key);
        TimerId(key)
    }

    /// Cancels a timer; false if it has fired or was cancelled already.
    pub fn cancel(&mut self, timer: TimerId) -> bool {
        let TimerId(key) = timer;
        let armed = self.timers.get(key).is_some();
        if armed {
            self.remove(key);
        }
        armed
    }

    /// When [`Wheel::pop`] is worth calling next; `None` if no timer is armed (or only for
    /// [`Time::NEVER`]). It is the first deadline (overdue ones count as due when they were
    /// armed), or earlier if a timer that was to fire first was cancelled. Later than now once
    /// `pop(now)` has returned `None`.
    pub fn next(&self) -> Option<Time> {
        let earliest = self.slots[self.first()?.slot()].earliest;
        (earliest != Time::NEVER).then_some(earliest)
    }

    /// Fires one timer that is due at `now`: of all that are, the one with the earliest deadline,
    /// and of those with the same deadline the one armed first. `None` if none is due.
    ///
    /// `now` must not go backwards. To be repeated until it returns `None`.
    pub fn pop(&mut self, now: Time) -> Option<K> {
        while let Some(place) = self.first() {
            let start = place.start(self.elapsed);
            if start > now {
                break;
            }
            self.elapsed = start;
            let head = self.slots[place.slot()].head;
            let head = head.expect("an occupied slot has a timer");
            if place.level == 0 {
                return Some(self.remove(head).what);
            }
            self.move_down(place, head);
        }
        self.elapsed = self.elapsed.max(now);
        None
    }

    /// The slot with the first deadline: every timer of a level is due before all of the levels
    /// above.
    fn first(&self) -> Option<Place> {
        let level = self.levels.trailing_zeros();
        let occupied = self.occupied.get(level as usize)?;
        let index = occupied.trailing_zeros();
        Some(Place {
            level: level as u8,
            index: index as u8,
        })
    }

    /// Spreads a slot, whose first instant has come, over the levels below.
    fn move_down(&mut self, place: Place, head: Key) {
        self.vacate(place);
        let mut key = head;
        loop {
            let next = self.timer(key).next;
            self.link(key);
            if next == head {
                break;
            }
            key = next;
        }
    }

    /// Puts a timer that is in no list where it belongs.
    fn link(&mut self, key: Key) {
        let due = self.timer(key).due;
        let when = due.max(self.elapsed);
        let place = Place::of(when, self.elapsed);
        let slot = self.slots[place.slot()];
        let (prev, next, first) = match slot.head {
            Some(head) => self.neighbours(place, head, due),
            None => (key, key, true),
        };
        self.timer(prev).next = key;
        self.timer(next).prev = key;
        let timer = self.timer(key);
        (timer.place, timer.prev, timer.next) = (place, prev, next);
        let slot = &mut self.slots[place.slot()];
        slot.earliest = slot.earliest.min(when);
        if first {
            slot.head = Some(key);
        }
        self.occupied[usize::from(place.level)] |= 1 << place.index;
        self.levels |= 1 << place.level;
    }

    /// Between which two timers of a slot that is not empty one with this deadline belongs, and
    /// whether it is then the first.
    ///
    /// That is at the end: only in the slot of the present millisecond deadlines are told apart,
    /// since what is armed there may be overdue.
    fn neighbours(&mut self, place: Place, head: Key, due: Time) -> (Key, Key, bool) {
        let tail = self.timer(head).prev;
        let mut prev = tail;
        while place.level == 0 && self.timer(prev).due > due {
            if prev == head {
                return (tail, head, true);
            }
            prev = self.timer(prev).prev;
        }
        (prev, self.timer(prev).next, false)
    }

    /// Takes a timer that is armed out of its list and forgets it.
    fn remove(&mut self, key: Key) -> Timer<K> {
        let timer = self.timers.remove(key).expect("the timer is armed");
        let Timer {
            place, prev, next, ..
        } = timer;
        if next == key {
            self.vacate(place);
            return timer;
        }
        self.timer(prev).next = next;
        self.timer(next).prev = prev;
        let slot = &mut self.slots[place.slot()];
        if slot.head == Some(key) {
            slot.head = Some(next);
        }
        timer
    }

    fn vacate(&mut self, place: Place) {
        let level = usize::from(place.level);
        self.slots[place.slot()] = Slot {
            head: None,
            earliest: Time::NEVER,
        };
        self.occupied[level] &= !(1 << place.index);
        if self.occupied[level] == 0 {
            self.levels &= !(1 << level);
        }
    }

    fn timer(&mut self, key: Key) -> &mut Timer<K> {
        self.timers.get_mut(key).expect("lists name armed timers")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::engine::Seeded;

    fn at(ms: u64) -> Time {
        Time::from_ms(ms)
    }

    fn pop_all(wheel: &mut Wheel<u32>, now: u64) -> Vec<u32> {
        std::iter::from_fn(|| wheel.pop(at(now))).collect()
    }

    #[test]
    fn never_early_and_never_late() {
        for start in [0, 1, 63, 64, 4_095, 4_096, 262_143, 1 << 40] {
            for wait in [1, 2, 63, 64, 65, 4_000, 4_096, 60_000, 3_600_000, 1 << 41] {
                let mut wheel = Wheel::new(at(start));
                wheel.arm(7, at(start + wait));
                assert_eq!(wheel.next(), Some(at(start + wait)));
                assert_eq!(wheel.pop(at(start + wait - 1)), None);
                assert_eq!(wheel.next(), Some(at(start + wait)));
                assert_eq!(wheel.pop(at(start + wait)), Some(7));
                assert_eq!(wheel.pop(at(start + wait)), None);
                assert_eq!((wheel.next(), wheel.len()), (None, 0));
            }
        }
    }

    #[test]
    fn equal_deadlines_fire_in_the_order_they_were_set_from_however_far() {
        let mut wheel = Wheel::new(at(0));
        let due = 5_000_000;
        let mut what = 0;
        for now in [
            0, 1, 4_000_000, 4_990_000, 4_999_000, 4_999_930, 4_999_999, due,
        ] {
            assert_eq!(wheel.pop(at(now.min(due - 1))), None);
            for _ in 0..3 {
                wheel.arm(what, at(due));
                what += 1;
            }
        }
        assert_eq!(pop_all(&mut wheel, due + 10), (0..what).collect::<Vec<_>>());
    }

    #[test]
    fn what_is_overdue_fires_at_once_and_in_order() {
        let mut wheel = Wheel::new(at(1_000));
        for (what, due) in [(3, 900), (5, 1_000), (1, 5), (4, 900), (0, 0), (2, 5)] {
            wheel.arm(what, at(due));
        }
        assert_eq!(wheel.next(), Some(at(1_000)));
        assert_eq!(pop_all(&mut wheel, 1_000), [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn a_timer_armed_while_others_fire_takes_its_turn() {
        let mut wheel = Wheel::new(at(0));
        wheel.arm(1, at(100));
        wheel.arm(4, at(300));
        assert_eq!(wheel.pop(at(500)), Some(1));
        wheel.arm(3, at(200));
        wheel.arm(2, at(50));
        wheel.arm(5, at(500));
        wheel.arm(6, at(501));
        assert_eq!(pop_all(&mut wheel, 500), [2, 3, 4, 5]);
        assert_eq!(wheel.next(), Some(at(501)));
    }

    #[test]
    fn a_stale_id_cancels_nothing() {
        let mut wheel = Wheel::new(at(0));
        let first = wheel.arm(1, at(10));
        assert!(wheel.cancel(first));
        assert!(!wheel.cancel(first));
        assert_eq!(wheel.next(), None);
        let second = wheel.arm(2, at(10));
        assert_eq!(first.0.slot, second.0.slot);
        assert!(!wheel.cancel(first));
        assert_eq!(pop_all(&mut wheel, 10), [2]);
        assert!(!wheel.cancel(second));
    }

    #[test]
    fn a_jump_of_years_is_one_step_and_never_is_never() {
        let mut wheel = Wheel::new(at(123));
        let year = 31_557_600_000;
        for what in 0..10 {
            wheel.arm(what, at(u64::from(what) * year));
        }
        wheel.arm(10, Time::NEVER);
        assert_eq!(pop_all(&mut wheel, 5 * year), [0, 1, 2, 3, 4, 5]);
        assert_eq!(wheel.next(), Some(at(6 * year)));
        assert_eq!(pop_all(&mut wheel, 1_000_000 * year), [6, 7, 8, 9]);
        assert_eq!((wheel.next(), wheel.len()), (None, 1));
        assert_eq!(pop_all(&mut wheel, u64::MAX - 1), []);
    }

    /// The wheel beside a sorted map: by deadline, then by the order of arming.
    struct World {
        dice: Seeded,
        wheel: Wheel<u32>,
        model: BTreeMap<(Time, u32), TimerId>,
        ids: Vec<TimerId>,
        now: Time,
        /// Whether one was cancelled since nothing was armed.
        cancelled: bool,
    }

    impl World {
        fn new(seed: u64) -> Self {
            let mut dice = Seeded::new(seed);
            let now = at(dice.next_u64() >> (8 + dice.below(50)));
            Self {
                dice,
                wheel: Wheel::new(now),
                model: BTreeMap::new(),
                ids: Vec::new(),
                now,
                cancelled: false,
            }
        }

        /// A span of time, small or huge.
        fn span(&mut self) -> u64 {
            let largest = [4, 70, 5_000, 20_000, 300_000, 100_000_000, 1 << 42];
            let kind = self.dice.below(7) as usize;
            self.dice.below(largest[kind])
        }

        fn arm(&mut self) {
            let span = self.span();
            let due = match self.dice.below(12) {
                0 => self.now - span,
                1 => self.model.keys().next().map_or(self.now, |key| key.0),
                2 => self.model.keys().next_back().map_or(self.now, |key| key.0),
                _ => self.now + span,
            };
            let what = self.ids.len() as u32;
            let id = self.wheel.arm(what, due);
            self.model.insert((due, what), id);
            self.ids.push(id);
        }

        fn cancel(&mut self) {
            if self.ids.is_empty() {
                return;
            }
            let id = self.ids[self.dice.below(self.ids.len() as u64) as usize];
            let key = self.model.iter().find(|(_, armed)| **armed == id);
            let key = key.map(|(key, _)| *key);
            assert_eq!(self.wheel.cancel(id), key.is_some());
            if let Some(key) = key {
                self.model.remove(&key);
                self.cancelled = true;
            }
        }

        fn pop(&mut self) -> bool {
            let due = self.model.first_key_value().map(|(key, _)| *key);
            let due = due.filter(|(due, _)| *due <= self.now);
            assert_eq!(self.wheel.pop(self.now), due.map(|(_, what)| what));
            due.is_some_and(|key| self.model.remove(&key).is_some())
        }

        fn advance(&mut self) {
            let step = match self.dice.below(4) {
                0 => self.span(),
                // Exactly to where the wheel says it is worth it.
                1 => self.wheel.next().map_or(0, |next| next.since(self.now)),
                _ => self.dice.below(300),
            };
            self.now = self.now + step;
            while self.pop() {
                // What fires may arm another.
                if self.dice.below(8) == 0 {
                    self.arm();
                }
            }
            if let Some(next) = self.wheel.next() {
                assert!(next > self.now, "the loop would spin");
            }
        }

        fn check(&mut self) {
            assert_eq!(self.wheel.len(), self.model.len());
            let first = self.model.keys().next().map(|(due, _)| *due);
            let next = self.wheel.next();
            assert_eq!(next.is_some(), first.is_some());
            if let (Some(next), Some(first)) = (next, first) {
                assert!(next <= first.max(self.wheel.elapsed), "it would be late");
                assert!(self.cancelled || next == first.max(self.wheel.elapsed));
            }
            self.cancelled &= !self.model.is_empty();
        }
    }

    #[test]
    fn the_wheel_agrees_with_a_sorted_map() {
        for seed in 0..300 {
            let mut world = World::new(seed);
            let crowd = 4 + world.dice.below(60) as usize;
            let cancels = world.dice.below(4);
            for _ in 0..800 {
                match world.dice.below(8) {
                    0..=3 if world.model.len() < crowd => world.arm(),
                    4 if world.dice.below(4) < cancels => world.cancel(),
                    5 => drop(world.pop()),
                    _ => world.advance(),
                }
                world.check();
            }
            while let Some(next) = world.wheel.next() {
                world.now = world.now.max(next);
                while world.pop() {}
                world.check();
            }
            assert!(world.model.is_empty(), "seed {seed}: each fires once");
        }
    }

    #[test]
    fn steady_traffic_needs_no_more_room() {
        let mut wheel = Wheel::new(at(0));
        let mut ids: Vec<TimerId> = (0..100).map(|what| wheel.arm(what, at(1_000))).collect();
        for now in 0..10_000_u64 {
            let place = now as usize % 100;
            wheel.cancel(ids[place]);
            ids[place] = wheel.arm(place as u32, at(now + 20 + now * 37 % 5_000));
            pop_all(&mut wheel, now);
            assert!(ids[place].0.slot < 100);
        }
    }
}
