//! One side of a session's conversation over UDP, the same at the server and at the client:
//! numbering, acknowledgement, the lanes of events, Pings and the round trip.

use super::wire::{EVENT_HEAD_BYTES, Header, Session};
use crate::bytes::Writer;
use crate::engine::Time;
use crate::engine::lane::carried::{Full, Receiver, Sender};
use crate::engine::rtt::Rtt;
use crate::engine::seq::{Arrival, Numbering, Window};

/// An Events datagram is acknowledged within this time …
const ACK_MS: u64 = 25;
/// … or before this many more datagrams have come.
const ACK_DATAGRAMS: u8 = 16;
/// So many Pings are remembered; an older one's answer counts for nothing.
const PINGS: usize = 4;

/// The conversation with the other side.
#[derive(Debug)]
pub struct Channel {
    /// The session field of every datagram we send.
    session: Session,
    numbering: Numbering,
    received: Window,
    /// The events on their way to the other side.
    outgoing: Sender,
    /// The events on their way from the other side.
    pub incoming: Receiver,
    rtt: Rtt,
    pings: [Option<Ping>; PINGS],
    owed: Option<Owed>,
}

/// A question whose answer proves that the other side hears us.
#[derive(Debug, Clone, Copy)]
struct Ping {
    nonce: u32,
    at: Time,
}

/// An acknowledgement that must go by whatever goes next.
#[derive(Debug, Clone, Copy)]
struct Owed {
    due: Time,
    /// Datagrams that have come since.
    since: u8,
}

impl Owed {
    /// One more datagram would be one too many.
    fn is_urgent(self) -> bool {
        self.since + 1 >= ACK_DATAGRAMS
    }
}

impl Channel {
    /// A conversation in which nothing has been said.
    pub fn new(session: Session) -> Self {
        Self {
            session,
            numbering: Numbering::default(),
            received: Window::default(),
            outgoing: Sender::new(0, EVENT_HEAD_BYTES),
            incoming: Receiver::new(0),
            rtt: Rtt::default(),
            pings: [None; PINGS],
            owed: None,
        }
    }

    /// Whether a datagram with this sequence is new.
    pub fn arrival(&self, sequence: u16) -> Arrival {
        self.received.judge(sequence)
    }

    /// A new datagram was taken: it will be acknowledged. Returns whether an Ack must go at once,
    /// because so many have come since it was owed.
    pub fn note(&mut self, sequence: u16) -> bool {
        self.received.note(sequence);
        let Some(owed) = &mut self.owed else {
            return false;
        };
        owed.since = owed.since.saturating_add(1);
        owed.is_urgent()
    }

    /// What the header of a valid datagram acknowledges. Returns whether an event was among it.
    pub fn acknowledged(&mut self, now: Time, header: &Header) -> bool {
        self.numbering.was_sent(header.ack)
            && self.outgoing.acknowledged(now, header.ack, header.ack_bits)
    }

    /// The header of the next datagram, which is sent only by [`Channel::sent`].
    pub fn header(&self, kind: u8) -> Header {
        let (ack, ack_bits) = self.received.ack();
        Header {
            kind,
            sequence: self.numbering.upcoming(),
            ack,
            ack_bits,
            session: self.session,
        }
    }

    /// The datagram with the last [`Channel::header`] has been sent: its number is used, and what
    /// was owed has been acknowledged by it.
    pub fn sent(&mut self) {
        self.numbering.take();
        self.owed = None;
    }
}

/// Events.
impl Channel {
    /// Queues an event.
    ///
    /// # Errors
    /// [`Full`] if as many wait as may.
    pub fn push(&mut self, kind: u8, parts: &[&[u8]]) -> Result<(), Full> {
        self.outgoing.push(kind, parts)
    }

    /// When events are due to be sent; not later than now if some are. `NEVER` if none wait.
    pub fn events_due(&self, now: Time) -> Time {
        self.outgoing.next_due(now)
    }

    /// Writes the payload of the next datagram if it is to carry events: those that are due, the
    /// oldest first, in at most `room` bytes. Returns how many; the datagram must be sent then.
    pub fn pack(&mut self, now: Time, room: usize, w: &mut Writer<'_>) -> usize {
        let resend_ms = self.rtt.resend_ms();
        let sequence = self.numbering.upcoming();
        self.outgoing
            .pack(now, resend_ms, sequence, room, |id, kind, first, second| {
                w.u16_le(id);
                w.u8(kind);
                w.u16_le((first.len() + second.len()) as u16);
                w.bytes(first);
                w.bytes(second);
            })
    }

    /// Whether every event that was queued has been acknowledged.
    pub fn is_all_acknowledged(&self) -> bool {
        self.outgoing.is_empty()
    }

    /// To be called every few seconds: a conversation without events holds no memory for them.
    pub fn rest(&mut self) {
        self.outgoing.rest();
        self.incoming.rest();
    }

    /// When the session ends because the other side does not acknowledge events.
    pub fn stuck_at(&self) -> Time {
        self.outgoing.stuck_at()
    }

    /// An Events datagram was taken: it is to be acknowledged soon.
    pub fn owe(&mut self, now: Time) {
        self.owed.get_or_insert(Owed {
            due: now + ACK_MS,
            since: 0,
        });
    }

    /// When an Ack must go if nothing else has; `NEVER` if none is owed.
    pub fn ack_due(&self, now: Time) -> Time {
        match self.owed {
            Some(owed) if owed.is_urgent() => now.min(owed.due),
            Some(owed) => owed.due,
            None => Time::NEVER,
        }
    }

    /// The acknowledgement cannot be sent: the events will come again.
    pub fn forgive(&mut self) {
        self.owed = None;
    }
}

/// Pings.
impl Channel {
    /// A Ping with this nonce has been sent.
    pub fn asked(&mut self, now: Time, nonce: u32) {
        self.pings.rotate_right(1);
        self.pings[0] = Some(Ping { nonce, at: now });
    }

    /// A Pong came. Returns when its Ping was sent, if that was one of the last four and had not
    /// been answered; the round trip is measured by it.
    pub fn answered(&mut self, now: Time, nonce: u32) -> Option<Time> {
        let ping = self
            .pings
            .iter_mut()
            .find(|ping| ping.is_some_and(|ping| ping.nonce == nonce))?;
        let at = ping.take()?.at;
        self.rtt.sample(now.since(at));
        Some(at)
    }

    /// The smoothed round trip in milliseconds, once one was measured.
    pub fn rtt_ms(&self) -> Option<u64> {
        self.rtt.smoothed()
    }
}

const _: () = assert!(EVENT_HEAD_BYTES == 2 + 1 + 2);
