//! The receiving end: what was taken, and what came early and is held.

use std::collections::VecDeque;
use std::ops::Range;

use super::{HELD_AHEAD, HELD_BYTES, KEEP_BYTES, KEEP_ENTRIES};
use crate::engine::seq::distance;

/// What is to be done with a datagram's events, all of them or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// Each of them will be taken, held or skipped: the datagram may be marked as received.
    Take {
        /// How many of them were neither taken nor held before.
        fresh: usize,
        /// The bytes of those bodies.
        fresh_bytes: usize,
    },
    /// More than 64 KiB of bodies would be held: the datagram is to be treated as if it had never
    /// come, and will come again.
    Later,
    /// An id is more than 255 ahead of the next one due, which no sender that keeps to the rules
    /// sends: malformed.
    TooFar,
}

/// The receiving end of a lane.
#[derive(Debug)]
pub struct Receiver {
    /// The id that is handed on next.
    next: u16,
    held: Held,
}

impl Receiver {
    /// Nothing was received yet; the first event has the id `first_id`. Allocates nothing.
    pub const fn new(first_id: u16) -> Self {
        Self {
            next: first_id,
            held: Held::new(),
        }
    }

    /// Judges the events of one datagram, given as id and length of the body in the order in
    /// which [`Receiver::take`] will get them. Changes nothing.
    pub fn admits<I>(&self, events: I) -> Admission
    where
        I: Iterator<Item = (u16, usize)> + Clone,
    {
        let too_far = |(id, _)| distance(self.next, id) > HELD_AHEAD.cast_signed();
        if events.clone().any(too_far) {
            return Admission::TooFar;
        }
        let (mut next, mut held_bytes) = (0, self.held.bytes);
        let (mut fresh, mut fresh_bytes) = (0, 0);
        for (place, (id, len)) in events.clone().enumerate() {
            let Some(ahead) = self.ahead(id) else {
                continue;
            };
            // What is held when this one comes: from before, or from earlier in the datagram.
            let held = |ahead| {
                let is_it = |&(id, _): &(u16, usize)| self.ahead(id) == Some(ahead);
                let earlier = || events.clone().take(place).find(is_it);
                let before = self.held.len_at(ahead);
                before.or_else(|| earlier().map(|(_, len)| len))
            };
            if ahead == next {
                next += 1;
                while let Some(len) = held(next) {
                    held_bytes -= len;
                    next += 1;
                }
            } else if held(ahead).is_none() {
                held_bytes += len;
            } else {
                continue;
            }
            if held_bytes > HELD_BYTES {
                return Admission::Later;
            }
            fresh += 1;
            fresh_bytes += len;
        }
        Admission::Take { fresh, fresh_bytes }
    }

    /// Takes one event of a datagram that was admitted: hands it on and all that waited for it,
    /// in order, or holds it, or skips it if it was taken or held before.
    pub fn take(&mut self, id: u16, kind: u8, body: &[u8], deliver: &mut dyn FnMut(u8, &[u8])) {
        match self.ahead(id) {
            Some(0) => {
                self.next = self.next.wrapping_add(1);
                deliver(kind, body);
                let released = self.held.release(deliver);
                self.next = self.next.wrapping_add(released);
            }
            Some(ahead) if ahead <= usize::from(HELD_AHEAD) => self.held.hold(ahead, kind, body),
            _ => {}
        }
    }

    /// To be called every few seconds: gives all memory back if nothing is held.
    pub fn rest(&mut self) {
        if self.held.slots.is_empty() {
            self.held = Held::new();
        }
    }

    /// The capacities of its buffers: bytes of bodies, events.
    #[cfg(test)]
    pub(super) fn buffers(&self) -> (usize, usize) {
        let held = &self.held;
        let bodies = held.arena.capacity() + held.spare.capacity();
        (bodies, held.slots.capacity())
    }

    /// How far ahead of the next one due an id is; `None` if it is behind: taken long ago.
    fn ahead(&self, id: u16) -> Option<usize> {
        usize::try_from(distance(self.next, id)).ok()
    }
}

/// Events that came early.
#[derive(Debug)]
struct Held {
    /// By distance from the next one due, which itself is never held.
    slots: VecDeque<Option<Slot>>,
    /// Their bodies, in no order and with gaps.
    arena: Vec<u8>,
    /// The other arena, for closing the gaps.
    spare: Vec<u8>,
    /// The bodies without the gaps.
    bytes: usize,
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    at: u32,
    len: u16,
    kind: u8,
}

impl Slot {
    fn range(self) -> Range<usize> {
        let at = self.at as usize;
        at..at + usize::from(self.len)
    }
}

impl Held {
    const fn new() -> Self {
        Self {
            slots: VecDeque::new(),
            arena: Vec::new(),
            spare: Vec::new(),
            bytes: 0,
        }
    }

    /// The length of the body held `ahead` of the next one due, if one is.
    fn len_at(&self, ahead: usize) -> Option<usize> {
        let slot = self.slots.get(ahead)?.as_ref()?;
        Some(usize::from(slot.len))
    }

    /// Holds an event (`ahead` from 1), unless it is held already.
    fn hold(&mut self, ahead: usize, kind: u8, body: &[u8]) {
        if self.len_at(ahead).is_some() {
            return;
        }
        self.make_room(body.len());
        if self.slots.len() <= ahead {
            self.slots.resize(ahead + 1, None);
        }
        self.slots[ahead] = Some(Slot {
            at: self.arena.len() as u32,
            len: body.len() as u16,
            kind,
        });
        self.arena.extend_from_slice(body);
        self.bytes += body.len();
    }

    /// The next one due was taken: hands on those right behind it and returns how many.
    fn release(&mut self, deliver: &mut dyn FnMut(u8, &[u8])) -> u16 {
        self.slots.pop_front();
        let mut released = 0;
        while let Some(&Some(slot)) = self.slots.front() {
            self.slots.pop_front();
            self.bytes -= usize::from(slot.len);
            deliver(slot.kind, &self.arena[slot.range()]);
            released += 1;
        }
        if self.slots.is_empty() {
            self.clear();
        }
        released
    }

    /// Closes the gaps before they are larger than what is held, or than half of what may be.
    fn make_room(&mut self, len: usize) {
        let wanted = self.bytes + len;
        let gaps_max = KEEP_BYTES.max(wanted).min(HELD_BYTES / 2);
        if self.arena.len() + len <= wanted + gaps_max {
            return;
        }
        self.spare.clear();
        for slot in self.slots.iter_mut().flatten() {
            let at = self.spare.len() as u32;
            self.spare.extend_from_slice(&self.arena[slot.range()]);
            slot.at = at;
        }
        std::mem::swap(&mut self.arena, &mut self.spare);
    }

    /// Nothing is held: the arena starts anew, and large buffers are given back.
    fn clear(&mut self) {
        debug_assert_eq!(self.bytes, 0);
        self.arena.clear();
        if self.arena.capacity() + self.spare.capacity() > 2 * KEEP_BYTES {
            (self.arena, self.spare) = (Vec::new(), Vec::new());
        }
        if self.slots.capacity() > KEEP_ENTRIES {
            self.slots = VecDeque::new();
        }
    }
}
