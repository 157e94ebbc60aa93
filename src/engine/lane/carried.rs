//! The lane whose events are acknowledged when a datagram that carried them is.
//!
//! A [`Sender`] packs events into datagrams and remembers which datagram carried which; the
//! acknowledgements of the datagram header ([`seq`](crate::engine::seq)) tell it what arrived. A
//! [`Receiver`] hands events on strictly in order, once each, and holds what comes early. For this
//! to work the receiving side marks a datagram as received only if each of its events was taken,
//! held or skipped ([`Receiver::admits`]).
//!
//! A lane that was never used holds no heap memory, one in steady traffic allocates nothing, and
//! one that runs empty after a burst gives its memory back.

mod carriers;
mod receiver;
mod sender;
#[cfg(test)]
mod tests;

pub use receiver::{Admission, Receiver};
pub use sender::{Full, Sender};

/// The body of an event has at most this many bytes.
pub const BODY_MAX: usize = 1024;
/// A datagram carries at most this many events.
pub const EVENTS_PER_DATAGRAM: usize = 32;
/// This many ids may be in flight, counted from the oldest that was not acknowledged.
pub const IN_FLIGHT_IDS: usize = 256;
/// This many bytes of bodies may be in flight: transmitted and not acknowledged.
pub const IN_FLIGHT_BYTES: usize = 32 * 1024;
/// This many events may wait in a sender, in flight or not.
pub const WAITING_EVENTS: usize = 1024;
/// This many bytes of bodies may wait in a sender, in flight or not.
pub const WAITING_BYTES: usize = 512 * 1024;
/// An event is held if it is at most this many ids ahead of the next one due.
pub const HELD_AHEAD: u16 = 255;
/// This many bytes of bodies may be held.
pub const HELD_BYTES: usize = 64 * 1024;
/// At most this many datagrams with an event sent before leave in [`RESEND_SPAN_MS`].
pub const RESENDS_PER_SPAN: u32 = 32;
/// See [`RESENDS_PER_SPAN`]; in milliseconds.
pub const RESEND_SPAN_MS: u64 = 20;
/// The longest wait between two transmissions of an event, unless the first wait is longer
/// already; in milliseconds.
pub const RESEND_WAIT_MAX_MS: u64 = 1_000;
/// The oldest event may wait this long without any event being acknowledged, in milliseconds.
pub const STUCK_MS: u64 = 15_000;
/// The oldest event may wait this long at all, in milliseconds.
pub const STUCK_AT_ALL_MS: u64 = 60_000;

/// An empty lane keeps buffers up to this many bytes of bodies, and gives larger ones back.
const KEEP_BYTES: usize = 8 * 1024;
/// An empty lane keeps lists up to this many entries, and gives longer ones back.
const KEEP_ENTRIES: usize = 128;

// Neither end may be driven beyond what the other one takes.
const _: () = assert!(IN_FLIGHT_IDS == HELD_AHEAD as usize + 1);
const _: () = assert!(IN_FLIGHT_BYTES <= HELD_BYTES && HELD_BYTES <= WAITING_BYTES);
const _: () = assert!(BODY_MAX <= IN_FLIGHT_BYTES && BODY_MAX <= u16::MAX as usize);
const _: () = assert!(EVENTS_PER_DATAGRAM == u32::BITS as usize);
