//! Mechanism without I/O: who exists, where they are, when something is due, how a session ends.
//!
//! The engine sees no socket, no clock, no dice and no protocol. A [`Machine`] is driven by
//! `(Env, Input)`; its effects are written into [`Env::out`], and when the call returns nothing is
//! left behind but the next deadline.

use std::net::SocketAddr;

pub mod bucket;
pub mod deadlines;
pub mod entropy;
pub mod event;
pub mod lane;
pub mod outbox;
pub mod proof;
pub mod rtt;
pub mod seq;
pub mod slots;
pub mod source;
pub mod table;
pub mod time;
pub mod wheel;

pub use entropy::{Entropy, NoEntropy, Seeded};
pub use event::{
    Component, Entity, Event, Game, Gone, Player, Refusal, Replies, Secret, Ticket, Verdict,
};
pub use outbox::{Close, Credit, Effect, Outbox, Path};
pub use slots::Key;
pub use time::Time;

/// All that a machine may know of the world, and where it writes its effects.
pub struct Env<'a> {
    /// The time of this call.
    pub now: Time,
    /// Random bytes.
    pub dice: &'a mut dyn Entropy,
    /// What to do.
    pub out: &'a mut Outbox,
}

/// A stream connection as the driver numbers it: a slot and its generation, so that a number kept
/// for too long finds nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Conn {
    /// The driver's slot.
    pub slot: u32,
    /// How often the slot was used before, wrapping.
    pub generation: u32,
}

/// What happens to a machine.
pub enum Input<'a> {
    /// A stream connection was accepted (or, at a client, established).
    Opened {
        /// The connection.
        conn: Conn,
        /// Its other end.
        peer: SocketAddr,
    },
    /// Bytes came on a connection, in pieces of any size.
    Stream {
        /// The connection.
        conn: Conn,
        /// The bytes.
        bytes: &'a [u8],
    },
    /// A connection is over: its end was read, it failed, or the driver had to drop it.
    Closed {
        /// The connection.
        conn: Conn,
    },
    /// A datagram came.
    Datagram {
        /// The way it came.
        path: Path,
        /// All of it.
        bytes: &'a [u8],
    },
    /// Time has passed; whatever is due is done. Also to be given whenever
    /// [`Machine::deadline`] is not later than now.
    Tick,
    /// Something another thread wants done with the players.
    Command(Command),
    /// Say farewell to everyone and take nobody in any more.
    Stop,
}

/// Something to be done with the players of a service, from wherever.
pub type Command = Box<dyn FnOnce(&mut dyn Replies) + Send>;

/// Anything that is driven by `(Env, Input)`: a service, a client, a party's host or guest.
pub trait Machine {
    /// Takes one input. Effects are in `env.out` when it returns.
    fn handle(&mut self, env: &mut Env<'_>, input: Input<'_>);

    /// When [`Input::Tick`] is due next; `None` if nothing is.
    fn deadline(&self) -> Option<Time>;

    /// Named counters, in a fixed order.
    fn stats(&self) -> Vec<(&'static str, u64)>;
}
