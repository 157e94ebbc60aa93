//! The steps of a turn, in their order.

use std::io;
use std::time::Duration;

use super::remote::Order;
use super::source::Source;
use super::streams::Piece;
use super::{EVENTS_MAX, Error, Server};
use crate::engine::{Close, Conn, Input, Time};
use crate::guard::quiet::Quiet;

/// How many bytes are read from one connection in a turn.
pub(super) const READ_BYTES: usize = 16 * 1024;

/// How many connections are read in a turn.
const READS_MAX: usize = 64;

/// How many orders of other threads are taken in a turn.
const ORDERS_MAX: usize = 64;

/// How long a wait lasts at most while anything has a deadline. That the process was stopped is
/// told by a wait that came back late, and by nothing else: what a long wait hides would count.
const WAIT_MS: u64 = 500;

/// How long timers wait at most for the sockets to run dry.
const HELD_MS: u64 = 1_000;

/// How long the farewells may take.
const STOPPING_MS: u64 = 2_000;

impl Server {
    /// Waits for events, and notes what they are about. They are only hints: reading tells the
    /// truth.
    pub(super) fn wait(&mut self, wait: Option<Duration>) -> Result<(), Error> {
        let rested = self.clock.rest();
        let wait = self.shortest(wait, rested);
        match self.poll.poll(&mut self.events, wait) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => {
                return Err(Error::poll(error));
            }
            _ => {}
        }
        self.world.now = self.clock.wake(wait);
        self.note_events();
        if self.clock.take_gap() {
            self.hold_timers();
        }
        Ok(())
    }

    fn note_events(&mut self) {
        let mut count = 0;
        for event in &self.events {
            count += 1;
            match Source::of(event.token()) {
                Source::Orders => self.inbox.mark(),
                Source::Listener { service, index } => {
                    if let Some(service) = self.services.get_mut(usize::from(service)) {
                        service.mark_listener(index);
                    }
                }
                Source::Datagrams { service, index } => {
                    if let Some(service) = self.services.get_mut(usize::from(service)) {
                        service.mark_datagrams(index);
                    }
                }
                Source::Stream { slot } => {
                    if event.is_readable() || event.is_read_closed() || event.is_error() {
                        self.streams.mark_readable(slot);
                    }
                    if event.is_writable() {
                        self.streams.writable(slot, self.world.now);
                    }
                }
            }
        }
        self.events_full = count == EVENTS_MAX;
    }

    /// How long to wait: not at all if work is left over, and not beyond any deadline.
    pub(super) fn shortest(&self, wait: Option<Duration>, now: Time) -> Option<Duration> {
        if self.has_more() {
            return Some(Duration::ZERO);
        }
        let due = self
            .deadline()
            .map(|due| Duration::from_millis(due.since(now).min(WAIT_MS)));
        due.into_iter().chain(wait).min()
    }

    fn deadline(&self) -> Option<Time> {
        let services = self.services.iter().filter_map(|it| it.deadline());
        let ends = self.streams.deadline().into_iter().chain(self.stopping);
        services
            .chain(ends)
            .chain(self.world.quiet.deadline())
            .min()
    }

    fn has_more(&self) -> bool {
        self.inbox.has_more()
            || self.streams.readable() > 0
            || self.held.is_some()
            || self.services.iter().any(|it| it.has_more())
    }

    /// Nobody was heard for a while. What came meanwhile is taken before anybody is judged late.
    pub(super) fn hold_timers(&mut self) {
        self.services.iter_mut().for_each(|it| it.owe());
        self.held.get_or_insert(self.world.now + HELD_MS);
    }

    /// Does what other threads want done.
    pub(super) fn take_orders(&mut self) {
        for _ in 0..ORDERS_MAX {
            let Some(order) = self.inbox.next() else {
                return;
            };
            match order {
                Order::Stop => self.stop(),
                Order::Command(service, command) => {
                    if let Some(service) = self.services.get_mut(usize::from(service)) {
                        let input = Input::Command(command);
                        service.feed(&mut self.world, &mut self.streams, input);
                    }
                }
                Order::Stats(reply) => {
                    // Who asked may have stopped waiting.
                    let _ = reply.try_send(self.stats());
                }
            }
        }
    }

    /// Says farewell to everyone.
    fn stop(&mut self) {
        if self.stopping.is_some() {
            return;
        }
        self.stopping = Some(self.world.now + STOPPING_MS);
        self.streams.stop();
        for service in &mut self.services {
            service.stop(&mut self.world, &mut self.streams);
        }
        if let Some(service) = self.services.first_mut() {
            self.streams
                .close_all(self.world.now, &mut service.counters);
        }
        self.tell_lost();
    }

    /// Takes what has come, in bounds, and remembers where there is more.
    pub(super) fn take_input(&mut self) {
        for service in &mut self.services {
            service.accept(&mut self.world, &mut self.streams);
        }
        for _ in 0..self.streams.readable().min(READS_MAX) {
            let Some(conn) = self.streams.next_readable() else {
                break;
            };
            self.read(conn);
        }
        for service in &mut self.services {
            service.receive(&mut self.world, &mut self.streams, &mut self.batch);
        }
        self.tell_lost();
    }

    /// Reads from one connection until it is empty or has had its share.
    fn read(&mut self, conn: Conn) {
        let mut left = READ_BYTES;
        while left > 0 {
            match self.streams.read(conn, &mut self.piece[..left]) {
                Piece::Bytes(service, count) => {
                    left -= count;
                    self.feed_stream(service, conn, count);
                }
                Piece::Rubbish(count) => left -= count,
                Piece::End(service) => return self.end(service, conn),
                Piece::Nothing => return,
            }
        }
        self.streams.mark_readable(conn.slot);
    }

    fn feed_stream(&mut self, service: u8, conn: Conn, count: usize) {
        let Some(service) = self.services.get_mut(usize::from(service)) else {
            return;
        };
        service.counters.stream_bytes_in += count as u64;
        let bytes = &self.piece[..count];
        let input = Input::Stream { conn, bytes };
        service.feed(&mut self.world, &mut self.streams, input);
    }

    /// The end of an open connection was read: what is queued for it is still written.
    fn end(&mut self, service: u8, conn: Conn) {
        let Some(service) = self.services.get_mut(usize::from(service)) else {
            return;
        };
        let input = Input::Closed { conn };
        service.feed(&mut self.world, &mut self.streams, input);
        let counters = &mut service.counters;
        self.streams
            .close(conn, Close::Drain, self.world.now, counters);
    }

    /// Tells the machines of connections that were lost by no doing of theirs.
    fn tell_lost(&mut self) {
        for service in &mut self.services {
            service.perform(&mut self.world, &mut self.streams);
        }
    }

    /// Lets time pass, after whoever spoke in time was heard.
    pub(super) fn pass_time(&mut self) {
        let now = self.world.now;
        self.tell_suppressed(|quiet| quiet.report(now));
        if self.timers_wait() {
            return;
        }
        self.held = None;
        for service in &mut self.services {
            service.tick(&mut self.world, &mut self.streams);
        }
        self.streams.expire(self.world.now);
    }

    /// Tells how many warnings about peers were not written.
    pub(super) fn tell_suppressed(&mut self, report: impl FnOnce(&mut Quiet) -> Option<u64>) {
        if let Some(count) = report(&mut self.world.quiet) {
            log::warn!("{count} warnings about peers suppressed");
        }
    }

    /// Whether timers still wait for a socket to run dry.
    fn timers_wait(&self) -> bool {
        let Some(until) = self.held else { return false };
        let owed = self.services.iter().any(|it| it.is_owed())
            || self.streams.readable() > 0
            || self.events_full;
        owed && self.world.now < until
    }

    /// Whether the server was stopped and has nothing more to say.
    pub(super) fn is_over(&self) -> bool {
        self.stopping.is_some_and(|until| {
            let silent = self
                .services
                .iter()
                .all(|it| it.machine.deadline().is_none());
            until <= self.world.now || (silent && self.streams.is_empty())
        })
    }
}
