//! The shell: sockets, clock, entropy and threads around the machines of the protocols.
//!
//! Everything that happens in a server happens in a *turn* of its loop, on one thread: wait for
//! the sockets, read the clock, take what has come, let time pass, send what is to be sent. See
//! [`Server::turn`], and `turn.rs` for its steps.
//!
//! - `config` what a server is to be, `bind` its ports, `error` why it cannot be;
//! - `service` a machine and its sockets: `tcp` listeners, `udp` datagrams;
//! - `streams` the connections of all services, `outgoing` what waits for one of them;
//! - `clock` the only place that asks for the time, `dice` the only one that asks for randomness;
//! - `remote` a server as seen from other threads.

mod bind;
pub(crate) mod clock;
mod config;
mod counters;
pub(crate) mod dice;
mod error;
mod outgoing;
mod readiness;
mod remote;
mod service;
mod source;
mod streams;
mod tcp;
#[cfg(test)]
mod tests;
mod turn;
mod udp;

use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use mio::{Events, Poll, Waker};

use self::clock::Clock;
use self::dice::Dice;
use self::remote::Inbox;
use self::service::{Service, World};
use self::source::Source;
use self::streams::Streams;
use self::turn::READ_BYTES;
use self::udp::Batch;
use crate::engine::{Outbox, Time};
use crate::guard::limit;
use crate::guard::limits::Limit;
use crate::guard::pending::Pending;
use crate::guard::quiet::Quiet;

use self::config::Plan;
pub use self::config::{Config, Rooms, Rtyp};
pub use self::error::{Error, Transport};
pub use self::remote::{Addresses, Remote, RemoteError, Stats};

/// How many events one wait takes.
const EVENTS_MAX: usize = 256;

/// A bound server: one loop for all its services, on whatever thread runs it.
pub struct Server {
    poll: Poll,
    events: Events,
    clock: Clock,
    world: World,
    services: Vec<Service>,
    streams: Streams,
    inbox: Inbox,
    remote: Remote,
    batch: Batch,
    /// What is read from a connection, until its machine has seen it.
    piece: Box<[u8]>,
    /// Timers wait until the sockets have run dry, or until this time.
    held: Option<Time>,
    /// Whether the last wait took as many events as it could.
    events_full: bool,
    /// When a server that is stopping ends at the latest.
    stopping: Option<Time>,
}

impl Server {
    /// Binds all ports. From now on the system queues what comes; it is taken by [`Server::run`]
    /// or [`Server::turn`].
    ///
    /// # Errors
    /// An [`Error`] that names the port or address, or says that nothing is to be served.
    pub fn bind(mut config: Config) -> Result<Self, Error> {
        let plans = config.take_plans()?;
        Self::with_plans(&config, plans)
    }

    /// Binds the services of `plans`, whatever protocols `config` names.
    fn with_plans(config: &Config, plans: Vec<Plan>) -> Result<Self, Error> {
        let services = bind_services(config, plans)?;
        let poll = Poll::new().map_err(Error::poll)?;
        Self::assemble(config, poll, services).map_err(Error::poll)
    }

    fn assemble(config: &Config, poll: Poll, mut services: Vec<Service>) -> std::io::Result<Self> {
        let registry = poll.registry();
        for service in &mut services {
            service.register(registry)?;
        }
        let mut dice = Dice::new();
        let quiet = Quiet::new(&mut dice).map_err(std::io::Error::other)?;
        let waker = Waker::new(registry, Source::Orders.token())?;
        let addresses = services.iter().map(Service::addresses).collect();
        let (orders, inbox) = mpsc::channel();
        let pending = Pending::new(&config.limits, config.limit_loopback);
        Ok(Self {
            streams: Streams::new(registry.try_clone()?, pending),
            poll,
            events: Events::with_capacity(EVENTS_MAX),
            clock: Clock::new(),
            world: World {
                now: Time::ZERO,
                dice,
                out: Outbox::new(),
                quiet,
            },
            services,
            inbox: Inbox::new(inbox),
            remote: Remote::new(orders, waker, addresses),
            batch: Batch::new(),
            piece: vec![0; READ_BYTES].into_boxed_slice(),
            held: None,
            events_full: false,
            stopping: None,
        })
    }

    /// A handle to this server, for any thread.
    pub fn remote(&self) -> Remote {
        self.remote.clone()
    }

    /// Where each service is bound.
    pub fn addresses(&self) -> &[Addresses] {
        self.remote.addresses()
    }

    /// What was counted so far.
    pub fn stats(&self) -> Stats {
        let services = self.services.iter();
        Stats {
            services: services.map(|it| (it.name, it.stats())).collect(),
        }
    }

    /// Serves on this thread until [`Remote::stop`] and the farewells are over.
    ///
    /// # Errors
    /// [`Error::Poll`] if the system no longer lets it wait for its sockets.
    pub fn run(mut self) -> Result<(), Error> {
        while self.turn(None)? {}
        self.tell_suppressed(Quiet::last_report);
        Ok(())
    }

    /// Serves on a thread of its own.
    ///
    /// # Errors
    /// [`Error::Thread`] if the system starts none; the server is gone then.
    pub fn spawn(self) -> Result<(Remote, JoinHandle<Result<(), Error>>), Error> {
        let remote = self.remote();
        thread::Builder::new()
            .name("anteroom".to_owned())
            .spawn(move || self.run())
            .map(|thread| (remote, thread))
            .map_err(|source| Error::Thread { source })
    }

    /// One turn, inside a loop of one's own: waits for something to happen, at most for `wait`
    /// (zero: not at all; `None`: as long as it takes, or 500 ms if anything has a deadline), and
    /// does what is due. Time that passes between two turns is lost for everybody alike if it is
    /// more than 500 ms.
    ///
    /// Returns whether it goes on: `false` after [`Remote::stop`], when the farewells are over.
    ///
    /// # Errors
    /// [`Error::Poll`] if the system no longer lets it wait for its sockets.
    pub fn turn(&mut self, wait: Option<Duration>) -> Result<bool, Error> {
        if self.is_over() {
            return Ok(false);
        }
        self.wait(wait)?;
        self.take_orders();
        self.take_input();
        self.pass_time();
        self.streams.free();
        Ok(!self.is_over())
    }
}

fn bind_services(config: &Config, plans: Vec<Plan>) -> Result<Vec<Service>, Error> {
    if plans.is_empty() {
        return Err(Error::NoService);
    }
    config.check_addresses()?;
    let ips = bind::addresses(&config.bind);
    let peers = limit::Addresses::new(&config.limits);
    let services = (0..)
        .zip(plans)
        .map(|(index, plan)| Service::bind(plan, index, &ips, config, &peers))
        .collect::<Result<Vec<_>, _>>()?;
    tell_receive_buffer(config.limits.get(Limit::RecvBuffer), &services);
    Ok(services)
}

/// A small buffer loses datagrams in a burst: whoever runs the host should know of it once.
fn tell_receive_buffer(asked: u64, services: &[Service]) {
    let granted = services
        .iter()
        .flat_map(|it| it.addresses().receive_buffers)
        .min();
    match granted {
        Some(granted) if (granted as u64) < asked => {
            log::info!("the system grants receive buffers of {granted} bytes instead of {asked}")
        }
        Some(granted) => log::debug!("receive buffers of {granted} bytes"),
        None => {}
    }
}
