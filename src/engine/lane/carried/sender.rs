//! The sending end: what waits, what is in flight, and which datagram carried what.

use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;

use super::carriers::{Carrier, Carriers};
use super::{
    BODY_MAX, HELD_BYTES, IN_FLIGHT_BYTES, IN_FLIGHT_IDS, KEEP_BYTES, KEEP_ENTRIES, RESEND_SPAN_MS,
    RESEND_WAIT_MAX_MS, RESENDS_PER_SPAN, STUCK_AT_ALL_MS, STUCK_MS, WAITING_BYTES, WAITING_EVENTS,
};
use crate::engine::Time;

/// The lane takes no more: 1024 events or 512 KiB wait already, or the body is above 1024 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Full;

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("too many events wait to be acknowledged")
    }
}

impl std::error::Error for Full {}

/// The sending end of a lane.
#[derive(Debug)]
pub struct Sender {
    /// How many bytes an event takes in a datagram beside its body.
    event_head: usize,
    /// The id of the first of `events`.
    oldest: u16,
    /// From the oldest that is not acknowledged to the newest, one by one.
    events: VecDeque<Outgoing>,
    /// The bodies of `events`, one behind the other.
    bodies: VecDeque<u8>,
    /// How many of `events`, from the oldest on, were transmitted.
    sent: usize,
    /// The bodies of those, acknowledged or not: no more than the other end can hold.
    sent_bytes: usize,
    /// The bodies of those that are not acknowledged.
    in_flight_bytes: usize,
    /// How many of `events` are not acknowledged.
    waiting_events: usize,
    /// The bodies of those.
    waiting_bytes: usize,
    carriers: Carriers,
    /// When the first of what is in flight is to be sent again.
    resend_at: Time,
    budget: ResendBudget,
    /// When an event was acknowledged last.
    moved_at: Time,
    /// Whether an event was appended since the last [`Sender::rest`].
    was_used: bool,
}

/// One event, from its `push` until it and all older ones are acknowledged.
#[derive(Debug, Clone, Copy)]
struct Outgoing {
    first_sent: Time,
    /// When it is to be sent again; meaningless before the first transmission.
    due: Time,
    len: u16,
    kind: u8,
    /// How often it was transmitted, at most 255.
    sends: u8,
    acknowledged: bool,
}

/// What an event is to a datagram that is being packed.
enum Turn {
    /// It goes in: for the first time, or again.
    Fresh,
    Again,
    /// It is acknowledged, or not due yet; one behind it may be.
    NotNow,
    /// It may not be sent yet, and so nothing behind it.
    Stop,
}

impl Sender {
    /// An empty lane whose first event gets the id `first_id`. In a datagram each event will take
    /// `event_head` bytes beside its body. Allocates nothing.
    pub const fn new(first_id: u16, event_head: usize) -> Self {
        Self {
            event_head,
            oldest: first_id,
            events: VecDeque::new(),
            bodies: VecDeque::new(),
            sent: 0,
            sent_bytes: 0,
            in_flight_bytes: 0,
            waiting_events: 0,
            waiting_bytes: 0,
            carriers: Carriers::new(),
            resend_at: Time::NEVER,
            budget: ResendBudget::new(),
            moved_at: Time::ZERO,
            was_used: false,
        }
    }

    /// Appends an event whose body is `parts`, one behind the other.
    ///
    /// # Errors
    /// [`Full`] if 1024 events wait already, if more than 512 KiB of bodies would, or if the body
    /// has more than 1024 bytes; nothing was appended then.
    pub fn push(&mut self, kind: u8, parts: &[&[u8]]) -> Result<(), Full> {
        let len: usize = parts.iter().map(|part| part.len()).sum();
        let fits = len <= BODY_MAX
            && self.waiting_events < WAITING_EVENTS
            && self.waiting_bytes + len <= WAITING_BYTES;
        if !fits {
            return Err(Full);
        }
        for part in parts {
            self.bodies.extend(*part);
        }
        self.events.push_back(Outgoing {
            first_sent: Time::NEVER,
            due: Time::NEVER,
            len: len as u16,
            kind,
            sends: 0,
            acknowledged: false,
        });
        self.waiting_events += 1;
        self.waiting_bytes += len;
        self.was_used = true;
        self.check();
        Ok(())
    }

    /// To be called every few seconds: an empty lane that was not used since the last call gives
    /// all of its memory back. One in steady traffic keeps it, and allocates nothing.
    pub fn rest(&mut self) {
        if self.events.is_empty() && !std::mem::take(&mut self.was_used) {
            self.bodies = VecDeque::new();
            self.events = VecDeque::new();
            self.carriers = Carriers::new();
        }
    }

    /// Whether every event was acknowledged.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// When [`Sender::pack`] has something to pack: `now` if an event may go out for the first
    /// time, else when the first of those in flight is to be sent again and the budget for that
    /// allows it (`now` or earlier: at once). [`Time::NEVER`] if there is nothing.
    pub fn next_due(&self, now: Time) -> Time {
        if self.may_send_fresh() {
            now
        } else {
            self.resend_at.max(self.budget.free_at())
        }
    }

    /// When the other end counts as stuck and the session is to be ended: 15 s after the last
    /// acknowledgement of an event (or the first transmission of the oldest one, if that was
    /// later), and at the latest 60 s after the first transmission of the oldest one.
    /// [`Time::NEVER`] if nothing is in flight.
    pub fn stuck_at(&self) -> Time {
        match self.events.front() {
            Some(oldest) if self.sent > 0 => {
                let moving_until = self.moved_at.max(oldest.first_sent) + STUCK_MS;
                moving_until.min(oldest.first_sent + STUCK_AT_ALL_MS)
            }
            _ => Time::NEVER,
        }
    }

    /// Packs what is due, the oldest first, into one datagram: up to 32 events, up to `room` bytes
    /// with their heads. Each is given to `each` as id, kind, and the two halves of its body.
    ///
    /// Returns how many. If any, the datagram must be sent under the number `seq`, which must be
    /// ahead of all numbers used before; if none, nothing has changed: nothing is due
    /// ([`Sender::next_due`]), or `room` is too small for the first. Those packed are due again
    /// after `resend_ms`, twice that, four times that and so on, each time at most 1 s or
    /// `resend_ms`, whichever is longer. To be repeated until it returns 0.
    pub fn pack(
        &mut self,
        now: Time,
        resend_ms: u64,
        seq: u16,
        room: usize,
        mut each: impl FnMut(u16, u8, &[u8], &[u8]),
    ) -> usize {
        if self.next_due(now) > now {
            return 0;
        }
        let mut packed = Packed::new(self.oldest, room);
        let mut body_end = 0;
        for index in 0..self.events.len() {
            let Outgoing { len, kind, .. } = self.events[index];
            let body = body_end..body_end + usize::from(len);
            body_end = body.end;
            let again = match self.turn(index, now) {
                Turn::Fresh => false,
                Turn::Again => true,
                Turn::NotNow => continue,
                Turn::Stop => break,
            };
            if !packed.add(index, again, self.event_head + body.len()) {
                break;
            }
            let (first_half, second_half) = halves(&self.bodies, body);
            let id = self.oldest.wrapping_add(index as u16);
            each(id, kind, first_half, second_half);
            self.transmitted(index, now, resend_ms);
        }
        self.carried_by(seq, now, &packed);
        self.check();
        packed.count
    }

    /// Takes an acknowledgement header of the other end: `ack`, which must have been sent
    /// ([`Numbering::was_sent`](crate::engine::seq::Numbering::was_sent)), and `bits` for the 32 before it.
    ///
    /// Returns whether it acknowledged an event that was not acknowledged before.
    pub fn acknowledged(&mut self, now: Time, ack: u16, bits: u32) -> bool {
        let mut moved = false;
        for place in self.carriers.near(ack) {
            if let Some(carrier) = self.carriers.take_acknowledged(place, ack, bits) {
                moved |= self.arrived(carrier);
            }
        }
        if moved {
            self.moved_at = now;
            self.forget_acknowledged();
            self.check();
        }
        moved
    }

    /// Whether the oldest event that was never transmitted may be now: within 256 ids and 32 KiB
    /// in flight, and within what the other end can hold while an older one is missing there.
    fn may_send_fresh(&self) -> bool {
        self.events.get(self.sent).is_some_and(|event| {
            let len = usize::from(event.len);
            self.sent < IN_FLIGHT_IDS
                && self.in_flight_bytes + len <= IN_FLIGHT_BYTES
                && self.sent_bytes + len <= HELD_BYTES
        })
    }

    fn turn(&self, index: usize, now: Time) -> Turn {
        let event = &self.events[index];
        if index >= self.sent {
            return if self.may_send_fresh() {
                Turn::Fresh
            } else {
                Turn::Stop
            };
        }
        let due = !event.acknowledged && event.due <= now;
        if due && self.budget.free_at() <= now {
            Turn::Again
        } else {
            Turn::NotNow
        }
    }

    /// Notes that the event was put into a datagram.
    fn transmitted(&mut self, index: usize, now: Time, resend_ms: u64) {
        let event = &mut self.events[index];
        if event.sends == 0 {
            event.first_sent = now;
            self.sent += 1;
            self.sent_bytes += usize::from(event.len);
            self.in_flight_bytes += usize::from(event.len);
        }
        event.due = now + wait_ms(resend_ms, event.sends);
        event.sends = event.sends.saturating_add(1);
    }

    /// Notes which datagram carries what was packed.
    fn carried_by(&mut self, seq: u16, now: Time, packed: &Packed) {
        if packed.count == 0 {
            return;
        }
        if packed.resent {
            self.budget.spend(now);
        }
        let Packed { first, mask, .. } = *packed;
        self.carriers.remember(Carrier { seq, first, mask });
        self.find_resend_at();
    }

    /// Marks what the datagram carried as acknowledged; returns whether anything was not yet.
    fn arrived(&mut self, carrier: Carrier) -> bool {
        let mut moved = false;
        for id in carrier.ids() {
            if let Some(index) = self.in_flight(id) {
                let event = &mut self.events[index];
                event.acknowledged = true;
                self.in_flight_bytes -= usize::from(event.len);
                self.waiting_bytes -= usize::from(event.len);
                self.waiting_events -= 1;
                moved = true;
            }
        }
        moved
    }

    /// Where an event that was transmitted is in `events`, if it is not acknowledged.
    fn in_flight(&self, id: u16) -> Option<usize> {
        let index = usize::from(id.wrapping_sub(self.oldest));
        let event = self.events.get(index)?;
        (!event.acknowledged).then_some(index)
    }

    /// Lets go of what is acknowledged up to the oldest that is not, and of the datagrams that
    /// can tell nothing new.
    fn forget_acknowledged(&mut self) {
        let mut gone_bytes = 0;
        while let Some(event) = self.events.front()
            && event.acknowledged
        {
            gone_bytes += usize::from(event.len);
            self.events.pop_front();
            self.oldest = self.oldest.wrapping_add(1);
            self.sent -= 1;
        }
        self.bodies.drain(..gone_bytes);
        self.sent_bytes -= gone_bytes;
        while let Some(first) = self.carriers.first() {
            if first.ids().any(|id| self.in_flight(id).is_some()) {
                break;
            }
            self.carriers.forget_first();
        }
        self.find_resend_at();
        if self.events.is_empty() {
            self.give_memory_back();
        }
    }

    fn give_memory_back(&mut self) {
        if self.bodies.capacity() > KEEP_BYTES {
            self.bodies = VecDeque::new();
        }
        if self.events.capacity() > KEEP_ENTRIES {
            self.events = VecDeque::new();
        }
        if self.carriers.capacity() > KEEP_ENTRIES {
            self.carriers = Carriers::new();
        }
    }

    fn transmitted_events(&self) -> impl Iterator<Item = &Outgoing> {
        self.events.iter().take(self.sent)
    }

    fn find_resend_at(&mut self) {
        let in_flight = self.transmitted_events().filter(|e| !e.acknowledged);
        self.resend_at = in_flight.map(|e| e.due).min().unwrap_or(Time::NEVER);
    }

    /// The capacities of its buffers: bytes of bodies, events, datagrams.
    #[cfg(test)]
    pub(super) fn buffers(&self) -> (usize, usize, usize) {
        let Self {
            bodies,
            events,
            carriers,
            ..
        } = self;
        (bodies.capacity(), events.capacity(), carriers.capacity())
    }

    /// The books agree, in debug builds.
    fn check(&self) {
        if !cfg!(debug_assertions) {
            return;
        }
        let bytes = |of: &mut dyn Iterator<Item = &Outgoing>| -> usize {
            of.map(|event| usize::from(event.len)).sum()
        };
        let open = |event: &&Outgoing| !event.acknowledged;
        assert_eq!(self.bodies.len(), bytes(&mut self.events.iter()));
        assert_eq!(self.waiting_events, self.events.iter().filter(open).count());
        let waiting_bytes = bytes(&mut self.events.iter().filter(open));
        assert_eq!(self.waiting_bytes, waiting_bytes);
        assert_eq!(self.sent_bytes, bytes(&mut self.transmitted_events()));
        let in_flight_bytes = bytes(&mut self.transmitted_events().filter(open));
        assert_eq!(self.in_flight_bytes, in_flight_bytes);
        assert!(self.in_flight_bytes <= IN_FLIGHT_BYTES && self.sent <= IN_FLIGHT_IDS);
        assert!(self.events.front().is_none_or(|oldest| open(&oldest)));
    }
}

/// The wait behind transmission number `sends` (from 0): the first, then doubled each time.
fn wait_ms(resend_ms: u64, sends: u8) -> u64 {
    let doubled = resend_ms.saturating_mul(1 << sends.min(32));
    doubled.min(resend_ms.max(RESEND_WAIT_MAX_MS))
}

/// A part of a ring, as the two slices it may consist of.
fn halves(ring: &VecDeque<u8>, range: Range<usize>) -> (&[u8], &[u8]) {
    let (front, back) = ring.as_slices();
    let (start, end) = (range.start.min(front.len()), range.end.min(front.len()));
    let (back_start, back_end) = (range.start - start, range.end - end);
    (&front[start..end], &back[back_start..back_end])
}

/// What went into a datagram so far.
struct Packed {
    oldest: u16,
    room: usize,
    first: u16,
    mask: u32,
    count: usize,
    resent: bool,
}

impl Packed {
    fn new(oldest: u16, room: usize) -> Self {
        Self {
            oldest,
            room,
            first: oldest,
            mask: 0,
            count: 0,
            resent: false,
        }
    }

    /// Adds an event that takes `bytes`, if there is room and a bit for it.
    fn add(&mut self, index: usize, again: bool, bytes: usize) -> bool {
        let id = self.oldest.wrapping_add(index as u16);
        if self.count == 0 {
            self.first = id;
        }
        let bit = u32::from(id.wrapping_sub(self.first));
        let (Some(bit), Some(room)) = (1_u32.checked_shl(bit), self.room.checked_sub(bytes)) else {
            return false;
        };
        self.mask |= bit;
        self.room = room;
        self.count += 1;
        self.resent |= again;
        true
    }
}

/// How many more datagrams may carry something again: 32 in each span of 20 ms, so that neither
/// a burst nor a peer that causes many wakeups buys more.
#[derive(Debug, Clone, Copy)]
struct ResendBudget {
    since: Time,
    spent: u32,
}

impl ResendBudget {
    const fn new() -> Self {
        Self {
            since: Time::ZERO,
            spent: 0,
        }
    }

    fn free_at(&self) -> Time {
        if self.spent < RESENDS_PER_SPAN {
            Time::ZERO
        } else {
            self.since + RESEND_SPAN_MS
        }
    }

    fn spend(&mut self, now: Time) {
        if now >= self.since + RESEND_SPAN_MS {
            self.since = now;
            self.spent = 0;
        }
        self.spent += 1;
    }
}
