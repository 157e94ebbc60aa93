//! Stream connections: two ends, ordered bytes, and the ways in which they end.
//!
//! The pipe is a pessimist: an abort destroys what is still under way, as a reset may. So whoever
//! wants last words to arrive has to close with care.

use std::net::SocketAddr;

/// How long a machine's closed connection swallows what the other end still says.
pub const DRAIN_MS: u64 = 1000;

/// How an end learned that its connection is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Orderly, behind the last byte.
    Fin,
    /// Thrown away, with whatever was under way.
    Reset,
}

/// How written bytes are cut on their way.
#[derive(Debug, Clone, Copy, Default)]
pub enum Pieces {
    /// Each write arrives as one piece.
    #[default]
    Whole,
    /// At most this many bytes at a time.
    Of(usize),
    /// Between one and this many bytes at a time, by seed.
    Random(usize),
}

/// Names one end of a pipe: the pipe, and 0 for who connected or 1 for who accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndId {
    pub pipe: usize,
    pub side: usize,
}

impl EndId {
    /// The other end.
    pub fn other(self) -> Self {
        Self {
            pipe: self.pipe,
            side: 1 - self.side,
        }
    }
}

/// Who holds an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder {
    /// A machine, by its index, and its slot there.
    Machine(usize, u32),
    /// A peer, by its index, and its own name for the connection.
    Peer(usize, u32),
    /// Not accepted yet, or nobody listens.
    Nobody,
}

/// What an end still does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reads {
    /// Hands on what comes.
    Open,
    /// Has said its last word and swallows what comes.
    Draining,
    /// Answers what comes with a reset.
    Gone,
}

/// What travels through a pipe.
#[derive(Debug, Clone)]
pub enum Parcel {
    /// The connection stands.
    Opened,
    /// Bytes.
    Bytes(Vec<u8>),
    /// The last of them was sent.
    Fin,
    /// Everything is void.
    Reset,
}

/// One end.
#[derive(Debug)]
pub struct End {
    pub holder: Holder,
    pub address: SocketAddr,
    pub reads: Reads,
    /// Neither finished nor aborted yet.
    pub writes: bool,
    /// How what this end writes is cut.
    pub pieces: Pieces,
    /// Raised by an abort: what was sent under an older number never arrives.
    pub epoch: u32,
    /// The arrival of the latest parcel from here: nothing overtakes it.
    pub arrival: u64,
}

/// A connection.
#[derive(Debug)]
pub struct Pipe {
    pub ends: [End; 2],
    pub delay_ms: u64,
}

impl Pipe {
    /// A connection between two addresses, held by nobody yet.
    pub fn new(from: SocketAddr, to: SocketAddr, delay_ms: u64) -> Self {
        let end = |address| End {
            holder: Holder::Nobody,
            address,
            reads: Reads::Open,
            writes: true,
            pieces: Pieces::Whole,
            epoch: 0,
            arrival: 0,
        };
        Self {
            ends: [end(from), end(to)],
            delay_ms,
        }
    }
}
