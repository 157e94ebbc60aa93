//! Which datagram carried which events.

use std::collections::VecDeque;
use std::ops::Range;

use super::EVENTS_PER_DATAGRAM;
use crate::engine::seq::{WINDOW, acks, distance};

/// So many datagrams are remembered; the first is forgotten for a new one, and what it carried
/// is then acknowledged by another that carries it again.
const CARRIERS: usize = 2048;
/// A datagram this many sequences back is forgotten, long before its sequence is used again.
const REACH: i16 = 16_384;

/// A datagram and the events it carried: bit n stands for id `first + n`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Carrier {
    pub seq: u16,
    pub first: u16,
    pub mask: u32,
}

impl Carrier {
    /// The events it carried, without those that were told as acknowledged.
    pub fn ids(self) -> impl Iterator<Item = u16> {
        (0..EVENTS_PER_DATAGRAM as u16)
            .filter(move |bit| self.mask >> bit & 1 == 1)
            .map(move |bit| self.first.wrapping_add(bit))
    }
}

/// The datagrams that carried events, in the order of their sequences.
#[derive(Debug)]
pub(super) struct Carriers(VecDeque<Carrier>);

impl Carriers {
    pub const fn new() -> Self {
        Self(VecDeque::new())
    }

    pub fn capacity(&self) -> usize {
        self.0.capacity()
    }

    /// Appends one, whose sequence is ahead of all others, and forgets what is too much or too
    /// far back.
    pub fn remember(&mut self, carrier: Carrier) {
        while self.first().is_some_and(|first| {
            let back = distance(first.seq, carrier.seq);
            self.0.len() >= CARRIERS || !(1..=REACH).contains(&back)
        }) {
            self.forget_first();
        }
        self.0.push_back(carrier);
    }

    pub fn first(&self) -> Option<Carrier> {
        self.0.front().copied()
    }

    pub fn forget_first(&mut self) {
        self.0.pop_front();
    }

    /// The places of those whose sequence is `ack` or one of the 32 before it. If `ack` is behind
    /// all of them they are too far ahead to be meant, and none is.
    pub fn near(&self, ack: u16) -> Range<usize> {
        let Some(first) = self.first() else {
            return 0..0;
        };
        let offset = |seq: u16| seq.wrapping_sub(first.seq);
        let last = offset(ack);
        let oldest = last.saturating_sub(WINDOW);
        let start = self.0.partition_point(|c| offset(c.seq) < oldest);
        let end = self.0.partition_point(|c| offset(c.seq) <= last);
        start..end
    }

    /// The one at this place, if the header acknowledges it; it is told once, and carries nothing
    /// any more.
    pub fn take_acknowledged(&mut self, place: usize, ack: u16, bits: u32) -> Option<Carrier> {
        let carrier = &mut self.0[place];
        let taken = *carrier;
        acks(ack, bits, carrier.seq).then(|| {
            carrier.mask = 0;
            taken
        })
    }
}
