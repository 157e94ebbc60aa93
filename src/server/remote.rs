//! A server as seen from other threads: orders, answers, numbers.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, sync_channel};
use std::time::Duration;

use mio::Waker;

use crate::engine::event::{Ticket, Verdict};
use crate::engine::{Command, Replies};

/// How long [`Remote::stats`] waits for the loop.
const STATS_WAIT: Duration = Duration::from_secs(2);

/// A handle to a server, for any thread. It does not keep the server alive.
#[derive(Clone)]
pub struct Remote {
    shared: Arc<Shared>,
}

struct Shared {
    orders: Sender<Order>,
    waker: Waker,
    addresses: Vec<Addresses>,
}

/// Something the loop is to do.
pub(super) enum Order {
    /// Say farewell to everyone, and end.
    Stop,
    /// Do something with the players of a service.
    Command(u8, Command),
    /// Tell the numbers.
    Stats(SyncSender<Stats>),
}

impl Remote {
    pub(super) fn new(orders: Sender<Order>, waker: Waker, addresses: Vec<Addresses>) -> Self {
        Self {
            shared: Arc::new(Shared {
                orders,
                waker,
                addresses,
            }),
        }
    }

    /// Has the server say farewell to everyone and end: within 100 ms the first farewell is out,
    /// and at most 2 s later [`Server::run`](super::Server::run) returns. Does not wait for it.
    ///
    /// # Errors
    /// [`RemoteError::Gone`] if the server has ended.
    pub fn stop(&self) -> Result<(), RemoteError> {
        self.order(Order::Stop)
    }

    /// Runs `command` on the server's thread, where it may act on the players of the service
    /// called `service`. Does not wait for it. The commands of one thread run in their order.
    ///
    /// # Errors
    /// [`RemoteError::Gone`] if the server has ended, [`RemoteError::NoSuchService`] if it has no
    /// service of this name.
    pub fn command(
        &self,
        service: &str,
        command: impl FnOnce(&mut dyn Replies) + Send + 'static,
    ) -> Result<(), RemoteError> {
        let index = (0..)
            .zip(&self.shared.addresses)
            .find(|(_, addresses)| addresses.service == service)
            .map(|(index, _)| index)
            .ok_or(RemoteError::NoSuchService)?;
        self.order(Order::Command(index, Box::new(command)))
    }

    /// Answers a question. A ticket whose asker is gone, or that was answered before, answers
    /// nobody.
    ///
    /// # Errors
    /// [`RemoteError::Gone`] if the server has ended, [`RemoteError::NoSuchService`] if the ticket
    /// is not of this server.
    pub fn answer(&self, ticket: Ticket, verdict: Verdict) -> Result<(), RemoteError> {
        if self.shared.addresses.len() <= usize::from(ticket.service) {
            return Err(RemoteError::NoSuchService);
        }
        let answer = move |replies: &mut dyn Replies| {
            // Who asked may have left meanwhile.
            let _ = replies.answer(ticket, verdict);
        };
        self.order(Order::Command(ticket.service, Box::new(answer)))
    }

    /// What the server has counted so far. Waits for the loop, so it must not be called on the
    /// server's own thread.
    ///
    /// # Errors
    /// [`RemoteError::Gone`] if the server has ended, [`RemoteError::NoReply`] if the loop did not
    /// answer within 2 s.
    pub fn stats(&self) -> Result<Stats, RemoteError> {
        let (reply, stats) = sync_channel(1);
        self.order(Order::Stats(reply))?;
        stats.recv_timeout(STATS_WAIT).map_err(|error| match error {
            RecvTimeoutError::Disconnected => RemoteError::Gone,
            RecvTimeoutError::Timeout => RemoteError::NoReply,
        })
    }

    /// Where each service is bound.
    pub fn addresses(&self) -> &[Addresses] {
        &self.shared.addresses
    }

    fn order(&self, order: Order) -> Result<(), RemoteError> {
        let Shared { orders, waker, .. } = &*self.shared;
        orders.send(order).map_err(|_| RemoteError::Gone)?;
        waker.wake().map_err(|_| RemoteError::Gone)
    }
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Remote")
            .field(&self.shared.addresses)
            .finish()
    }
}

/// Where a service is bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Addresses {
    /// The protocol's name.
    pub service: &'static str,
    /// Its listeners; they have one port.
    pub tcp: Vec<SocketAddr>,
    /// Its datagram sockets; they have one port.
    pub udp: Vec<SocketAddr>,
    /// The receive buffer the system granted to each datagram socket, in bytes. It may be less
    /// than the limit `recv-buffer` asks for.
    pub receive_buffers: Vec<usize>,
}

/// What a server has counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stats {
    /// For each service its name and its counters, in a fixed order.
    pub services: Vec<(&'static str, Vec<(&'static str, u64)>)>,
}

impl Stats {
    /// The counter `name` of `service`, if there is one.
    pub fn get(&self, service: &str, name: &str) -> Option<u64> {
        let (_, counters) = self.services.iter().find(|(of, _)| *of == service)?;
        let (_, count) = counters.iter().find(|(of, _)| *of == name)?;
        Some(*count)
    }
}

/// Why an order did not reach the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemoteError {
    /// The server has ended.
    Gone,
    /// The server has no such service.
    NoSuchService,
    /// The server did not answer in time.
    NoReply,
}

impl fmt::Display for RemoteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gone => "the server has ended",
            Self::NoSuchService => "the server has no such service",
            Self::NoReply => "the server did not answer in time",
        })
    }
}

impl std::error::Error for RemoteError {}

/// The orders of other threads as the loop takes them.
pub(super) struct Inbox {
    orders: Receiver<Order>,
    waiting: bool,
}

impl Inbox {
    pub(super) fn new(orders: Receiver<Order>) -> Self {
        Self {
            orders,
            waiting: false,
        }
    }

    /// The waker says that there are orders.
    pub(super) fn mark(&mut self) {
        self.waiting = true;
    }

    /// Whether there may be orders that the waker will not tell of again.
    pub(super) fn has_more(&self) -> bool {
        self.waiting
    }

    /// The next order.
    pub(super) fn next(&mut self) -> Option<Order> {
        if !self.waiting {
            return None;
        }
        let order = self.orders.try_recv().ok();
        self.waiting = order.is_some();
        order
    }
}
