//! The connections of all services: who is there, what waits for them, and how they end.
//!
//! A connection is *open* as long as its machine knows it. Then its last bytes are written, its
//! write side is shut down, and what still comes is read and thrown away, or else the system
//! would answer it with a reset that destroys those last bytes. Slots are freed at the end of a
//! turn, so that no event of it can name a successor.

use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;

use mio::Registry;
use slab::Slab;

use super::counters::Counters;
use super::outgoing::{Outgoing, Written};
use super::source::{SLOTS_MAX, Source};
use super::tcp::Connection;
use crate::engine::{Close, Conn, Time};
use crate::guard::pending::{Admission, Pending, Place};

/// How long the last bytes may take to be written, and how long the other end may then take to
/// close.
const CLOSING_MS: u64 = 1_000;

/// How many connections may be closing while new ones come; beyond, the one closing longest is
/// dropped.
const CLOSING_MAX: usize = 1_024;

/// The connections of all services.
pub(super) struct Streams {
    registry: Registry,
    slots: Slab<Stream>,
    generations: Vec<u32>,
    pending: Pending,
    /// Those that may have something to read, each once, and some that are over.
    readable: VecDeque<Conn>,
    /// Those being closed, by the time at which they are dropped.
    closing: BTreeSet<(Time, Conn)>,
    /// Those whose machine has to be told that they are over.
    lost: Vec<(u8, Conn)>,
    /// Those whose slots are freed at the end of the turn.
    dead: Vec<u32>,
    closing_max: usize,
}

struct Stream {
    socket: Connection,
    service: u8,
    conn: Conn,
    phase: Phase,
    outgoing: Outgoing,
    /// Until it has logged in.
    place: Option<Place>,
    /// Is among the readable ones.
    queued: bool,
    /// The other end has closed its side.
    ended: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The machine knows it.
    Open,
    /// Its last bytes are being written.
    Flushing(Time),
    /// They are written, and what comes is thrown away.
    Draining(Time),
    /// It is over, and its slot will be free.
    Dead,
}

/// What reading came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Piece {
    /// So many bytes, for the machine of this service.
    Bytes(u8, usize),
    /// So many bytes that nobody wants any more.
    Rubbish(usize),
    /// The end of an open connection, of this service.
    End(u8),
    /// Nothing now.
    Nothing,
}

impl Streams {
    pub(super) fn new(registry: Registry, pending: Pending) -> Self {
        Self {
            registry,
            slots: Slab::new(),
            generations: Vec::new(),
            pending,
            readable: VecDeque::new(),
            closing: BTreeSet::new(),
            lost: Vec::new(),
            dead: Vec::new(),
            closing_max: CLOSING_MAX,
        }
    }

    /// Takes in an accepted connection, unless its address has enough that have not logged in.
    pub(super) fn admit(
        &mut self,
        service: u8,
        socket: Connection,
        peer: SocketAddr,
        counters: &mut Counters,
    ) -> Option<Conn> {
        let conn = self.next_conn()?;
        let (place, evicted) = match self.pending.admit(peer.ip(), conn) {
            Admission::Admitted { place, evicted } => (place, evicted),
            Admission::Refused => {
                counters.pending_refused += 1;
                return None;
            }
        };
        if let Some(evicted) = evicted {
            counters.pending_evicted += 1;
            self.lose(evicted.slot);
        }
        let mut stream = Stream::new(socket, service, conn, place);
        let token = Source::Stream { slot: conn.slot }.token();
        if stream.socket.register(&self.registry, token).is_err() {
            counters.unwatched += 1;
            self.pending.leave(place);
            return None;
        }
        let slot = self.slots.insert(stream);
        debug_assert_eq!(slot, conn.slot as usize);
        Some(conn)
    }

    fn next_conn(&mut self) -> Option<Conn> {
        let slot = self.slots.vacant_key();
        if slot == self.generations.len() {
            self.generations.push(0);
        }
        let generation = *self.generations.get(slot)?;
        let slot = u32::try_from(slot).ok().filter(|slot| *slot < SLOTS_MAX)?;
        Some(Conn { slot, generation })
    }

    /// Writes `bytes` to an open connection, or queues them. Who does not read them is dropped.
    pub(super) fn write(&mut self, conn: Conn, bytes: &[u8], counters: &mut Counters) {
        let Some(stream) = self.open(conn) else {
            return;
        };
        let Stream {
            outgoing, socket, ..
        } = stream;
        let waited = !outgoing.is_empty();
        counters.stream_bytes_out += bytes.len() as u64;
        match outgoing.write(bytes, |bytes| socket.write(bytes)) {
            Written::All => {}
            Written::Waiting if waited => {}
            Written::Waiting => self.watch_writing(conn.slot, true),
            Written::Full => {
                counters.slow_readers += 1;
                self.lose(conn.slot);
            }
            Written::Failed => self.lose(conn.slot),
        }
    }

    /// The connection has logged in.
    pub(super) fn settle(&mut self, conn: Conn) {
        let Some(stream) = self.open(conn) else {
            return;
        };
        let place = stream.place.take();
        self.leave_pending(place);
    }

    /// Closes an open connection, which its machine has forgotten.
    pub(super) fn close(&mut self, conn: Conn, how: Close, now: Time, counters: &mut Counters) {
        if self.open(conn).is_none() {
            return;
        }
        match how {
            Close::Now => self.kill(conn.slot),
            Close::Drain => self.begin_closing(conn, now, counters),
        }
    }

    fn begin_closing(&mut self, conn: Conn, now: Time, counters: &mut Counters) {
        if self.closing.len() >= self.closing_max
            && let Some((_, oldest)) = self.closing.first().copied()
        {
            counters.closing_dropped += 1;
            self.kill(oldest.slot);
        }
        let Some(stream) = self.slots.get_mut(conn.slot as usize) else {
            return;
        };
        let place = stream.place.take();
        stream.phase = Phase::Flushing(now + CLOSING_MS);
        self.leave_pending(place);
        self.closing.insert((now + CLOSING_MS, conn));
        match self.flush(conn.slot) {
            Written::All => self.shut_down(conn.slot, now),
            Written::Failed => self.kill(conn.slot),
            Written::Waiting | Written::Full => {}
        }
    }

    /// Everything is written: says so to the other end, and waits for it to do the same.
    fn shut_down(&mut self, slot: u32, now: Time) {
        let Some(stream) = self.slots.get_mut(slot as usize) else {
            return;
        };
        let Phase::Flushing(until) = stream.phase else {
            return;
        };
        if stream.ended || stream.socket.shut_down().is_err() {
            return self.kill(slot);
        }
        stream.phase = Phase::Draining(now + CLOSING_MS);
        self.closing.remove(&(until, stream.conn));
        self.closing.insert((now + CLOSING_MS, stream.conn));
    }

    /// The poll says that there may be something to read.
    pub(super) fn mark_readable(&mut self, slot: u32) {
        let Some(stream) = self.slots.get_mut(slot as usize) else {
            return;
        };
        if stream.phase != Phase::Dead && !stream.ended && !stream.queued {
            stream.queued = true;
            self.readable.push_back(stream.conn);
        }
    }

    /// The poll says that there is room for bytes that wait.
    pub(super) fn writable(&mut self, slot: u32, now: Time) {
        let Some(stream) = self.slots.get(slot as usize) else {
            return;
        };
        if stream.outgoing.is_empty() {
            return;
        }
        match (stream.phase, self.flush(slot)) {
            (_, Written::Failed) => self.lose(slot),
            (Phase::Open, Written::All) => self.watch_writing(slot, false),
            (Phase::Flushing(_), Written::All) => self.shut_down(slot, now),
            _ => {}
        }
    }

    /// The next connection to read, if there is one. It is then no more among the readable ones.
    pub(super) fn next_readable(&mut self) -> Option<Conn> {
        while let Some(conn) = self.readable.pop_front() {
            if let Some(stream) = self.get(conn) {
                stream.queued = false;
                return Some(conn);
            }
        }
        None
    }

    /// How many connections may have something to read, at most.
    pub(super) fn readable(&self) -> usize {
        self.readable.len()
    }

    /// Reads from a connection into `buffer`.
    pub(super) fn read(&mut self, conn: Conn, buffer: &mut [u8]) -> Piece {
        let Some(stream) = self.get(conn) else {
            return Piece::Nothing;
        };
        let (service, open) = (stream.service, stream.phase == Phase::Open);
        match stream.socket.read(buffer) {
            Ok(None) => Piece::Nothing,
            Ok(Some(0)) => {
                stream.ended = true;
                self.read_end(conn.slot);
                if open {
                    Piece::End(service)
                } else {
                    Piece::Nothing
                }
            }
            Ok(Some(count)) if open => Piece::Bytes(service, count),
            Ok(Some(count)) => Piece::Rubbish(count),
            Err(_) => {
                self.lose(conn.slot);
                Piece::Nothing
            }
        }
    }

    /// The other end has closed its side: nothing of ours can be destroyed any more, so nothing
    /// needs to be waited for that is written.
    fn read_end(&mut self, slot: u32) {
        let Some(stream) = self.slots.get(slot as usize) else {
            return;
        };
        if matches!(stream.phase, Phase::Draining(_)) {
            self.kill(slot);
        }
    }

    /// Drops the connections that have been closing for too long.
    pub(super) fn expire(&mut self, now: Time) {
        while let Some((until, conn)) = self.closing.first().copied()
            && until <= now
        {
            self.kill(conn.slot);
        }
    }

    /// When there is something to [`Streams::expire`].
    pub(super) fn deadline(&self) -> Option<Time> {
        self.closing.first().map(|(until, _)| *until)
    }

    /// No more connections will come, so as many may be closing at once as there are.
    pub(super) fn stop(&mut self) {
        self.closing_max = usize::MAX;
    }

    /// Lets at most `max` be closing at once.
    #[cfg(test)]
    pub(super) fn limit_closing(&mut self, max: usize) {
        self.closing_max = max;
    }

    /// How many bytes wait for connections.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        let streams = self.slots.iter();
        streams.map(|(_, stream)| stream.outgoing.waiting()).sum()
    }

    /// Closes all open connections; their machines are to be told.
    pub(super) fn close_all(&mut self, now: Time, counters: &mut Counters) {
        let open: Vec<(u8, Conn)> = self
            .slots
            .iter()
            .filter(|(_, stream)| stream.phase == Phase::Open)
            .map(|(_, stream)| (stream.service, stream.conn))
            .collect();
        for (service, conn) in open {
            self.lost.push((service, conn));
            self.begin_closing(conn, now, counters);
        }
    }

    /// A connection of `service` whose machine has to be told that it is over.
    pub(super) fn take_lost(&mut self, service: u8) -> Option<Conn> {
        let index = self.lost.iter().position(|(of, _)| *of == service)?;
        Some(self.lost.swap_remove(index).1)
    }

    /// Frees the slots of those that are over. No event of this turn may be looked at afterwards.
    pub(super) fn free(&mut self) {
        for slot in self.dead.drain(..) {
            if self.slots.try_remove(slot as usize).is_some()
                && let Some(generation) = self.generations.get_mut(slot as usize)
            {
                *generation = generation.wrapping_add(1);
            }
        }
        debug_assert!(self.lost.is_empty(), "a machine was not told");
        debug_assert!(self.closing.len() <= self.slots.len());
        debug_assert!(self.pending.len() <= self.slots.len());
    }

    /// Whether nobody is connected.
    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    fn get(&mut self, conn: Conn) -> Option<&mut Stream> {
        self.slots
            .get_mut(conn.slot as usize)
            .filter(|stream| stream.conn == conn && stream.phase != Phase::Dead)
    }

    fn open(&mut self, conn: Conn) -> Option<&mut Stream> {
        self.get(conn).filter(|stream| stream.phase == Phase::Open)
    }

    fn flush(&mut self, slot: u32) -> Written {
        let Some(stream) = self.slots.get_mut(slot as usize) else {
            return Written::Failed;
        };
        let Stream {
            outgoing, socket, ..
        } = stream;
        outgoing.flush(|bytes| socket.write(bytes))
    }

    /// The poll tells of room for bytes only while some wait.
    fn watch_writing(&mut self, slot: u32, on: bool) {
        let Some(stream) = self.slots.get_mut(slot as usize) else {
            return;
        };
        let token = Source::Stream { slot }.token();
        let watched = stream.socket.watch_room(&self.registry, token, on);
        if watched.is_err() {
            self.lose(slot);
        }
    }

    /// The connection is over, by no will of its machine, which is to be told if it knows it.
    fn lose(&mut self, slot: u32) {
        let Some(stream) = self.slots.get(slot as usize) else {
            return;
        };
        if stream.phase == Phase::Open {
            self.lost.push((stream.service, stream.conn));
        }
        self.kill(slot);
    }

    /// The connection is over.
    fn kill(&mut self, slot: u32) {
        let Some(stream) = self.slots.get_mut(slot as usize) else {
            return;
        };
        match stream.phase {
            Phase::Dead => return,
            Phase::Open => {}
            Phase::Flushing(until) | Phase::Draining(until) => {
                self.closing.remove(&(until, stream.conn));
            }
        }
        stream.phase = Phase::Dead;
        let place = stream.place.take();
        self.dead.push(slot);
        self.leave_pending(place);
    }

    fn leave_pending(&mut self, place: Option<Place>) {
        if let Some(place) = place {
            self.pending.leave(place);
        }
    }
}

impl Stream {
    fn new(socket: Connection, service: u8, conn: Conn, place: Place) -> Self {
        Self {
            socket,
            service,
            conn,
            phase: Phase::Open,
            outgoing: Outgoing::default(),
            place: Some(place),
            queued: false,
            ended: false,
        }
    }
}
