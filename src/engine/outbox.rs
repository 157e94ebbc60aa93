//! What a machine wants done: datagrams, stream bytes and closings, in order.
//!
//! The outbox is a reusable arena: whoever drives the machine lends it, performs what is in it,
//! and clears it. It is also the only way to send a datagram, so it is where every datagram is
//! paid for with a [`Credit`].

use std::net::{IpAddr, SocketAddr};
use std::ops::Range;

use super::Conn;
use crate::bytes::Writer;

/// The way a datagram came, and by which its answer leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Path {
    /// Which of the service's sockets, counted from 0.
    pub socket: u8,
    /// The own endpoint: the address the datagram was sent to, and the socket's port.
    pub local: SocketAddr,
    /// The other end's endpoint, IPv4-mapped addresses folded to IPv4.
    pub remote: SocketAddr,
}

/// What pays for a datagram.
#[derive(Debug)]
pub enum Credit<'a> {
    /// The endpoint has proven that it is where it says: free.
    Proven,
    /// The endpoint has not: no more bytes than this many, which were received from it and not
    /// yet answered. What is sent is taken off.
    Echo(&'a mut u32),
}

/// How a connection is closed once its bytes are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Close {
    /// The last bytes must arrive: write them, shut down the write side, drain what comes for at
    /// most 1 s, then close (unread input would turn the close into a reset that destroys them).
    Drain,
    /// At once and without a word.
    Now,
}

/// One thing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect<'a> {
    /// Send these bytes as one datagram.
    Datagram {
        /// The way it goes.
        path: Path,
        /// The whole datagram.
        bytes: &'a [u8],
    },
    /// Write these bytes to the connection.
    Stream {
        /// The connection.
        conn: Conn,
        /// The bytes, whole messages.
        bytes: &'a [u8],
    },
    /// The connection has logged in: it no longer counts as pending, and reads little from now on.
    Settled {
        /// The connection.
        conn: Conn,
    },
    /// Close the connection; the machine has forgotten it already.
    Close {
        /// The connection.
        conn: Conn,
        /// In which way.
        how: Close,
    },
    /// Something a peer did was refused, and an operator may want to know. Whoever performs it
    /// bounds how much is written.
    Warning {
        /// The peer's address.
        about: IpAddr,
        /// What was refused.
        what: &'static str,
    },
}

#[derive(Debug, Clone)]
enum Entry {
    Datagram(Path, Range<usize>),
    Stream(Conn, Range<usize>),
    Settled(Conn),
    Close(Conn, Close),
    Warning(IpAddr, &'static str),
}

/// A reusable list of effects with one arena for their bytes.
#[derive(Debug, Default)]
pub struct Outbox {
    arena: Vec<u8>,
    entries: Vec<Entry>,
}

/// Above one of these, a cleared outbox gives its memory back.
const KEEP_BYTES: usize = 1 << 20;
const KEEP_EFFECTS: usize = 1 << 12;

impl Outbox {
    /// An empty outbox; allocates nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Queues the datagram that `write` writes, if `credit` pays for it.
    ///
    /// Returns whether it was queued; if not, nothing was taken off the credit.
    pub fn datagram(
        &mut self,
        path: Path,
        credit: Credit<'_>,
        write: impl FnOnce(&mut Writer<'_>),
    ) -> bool {
        let start = self.arena.len();
        write(&mut Writer::new(&mut self.arena));
        let end = self.arena.len();
        if let Credit::Echo(left) = credit {
            let cost = u32::try_from(end - start).unwrap_or(u32::MAX);
            let Some(rest) = left.checked_sub(cost) else {
                self.arena.truncate(start);
                return false;
            };
            *left = rest;
        }
        self.entries.push(Entry::Datagram(path, start..end));
        true
    }

    /// Queues the bytes that `write` writes for the connection.
    pub fn stream(&mut self, conn: Conn, write: impl FnOnce(&mut Writer<'_>)) {
        let start = self.arena.len();
        write(&mut Writer::new(&mut self.arena));
        self.entries
            .push(Entry::Stream(conn, start..self.arena.len()));
    }

    /// Says that the connection has logged in.
    pub fn settled(&mut self, conn: Conn) {
        self.entries.push(Entry::Settled(conn));
    }

    /// Closes the connection, after whatever was queued for it before.
    pub fn close(&mut self, conn: Conn, how: Close) {
        self.entries.push(Entry::Close(conn, how));
    }

    /// Warns of what a peer did.
    pub fn warn(&mut self, about: IpAddr, what: &'static str) {
        self.entries.push(Entry::Warning(about, what));
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Everything there is to do, in the order it was asked for.
    pub fn effects(&self) -> impl Iterator<Item = Effect<'_>> {
        self.entries.iter().map(|entry| match entry {
            Entry::Datagram(path, range) => Effect::Datagram {
                path: *path,
                bytes: &self.arena[range.clone()],
            },
            Entry::Stream(conn, range) => Effect::Stream {
                conn: *conn,
                bytes: &self.arena[range.clone()],
            },
            Entry::Settled(conn) => Effect::Settled { conn: *conn },
            Entry::Close(conn, how) => Effect::Close {
                conn: *conn,
                how: *how,
            },
            Entry::Warning(about, what) => Effect::Warning {
                about: *about,
                what,
            },
        })
    }

    /// Forgets everything, and keeps the memory unless it has grown beyond 1 MiB or 4096 effects.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.arena.clear();
        if self.arena.capacity() > KEEP_BYTES || self.entries.capacity() > KEEP_EFFECTS {
            *self = Self::default();
        }
    }
}
