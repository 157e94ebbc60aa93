//! One protocol at its ports: a machine, its sockets, and what was counted at them.

use std::io;
use std::net::IpAddr;

use mio::Registry;

use super::bind;
use super::config::{Config, Plan};
use super::counters::Counters;
use super::dice::Dice;
use super::error::{Error, Transport};
use super::remote::Addresses;
use super::source::Source;
use super::streams::Streams;
use super::tcp::{Accepted, Listener};
use super::udp::{BATCH, Batch, Datagrams, segments};
use crate::engine::{Effect, Env, Input, Machine, Outbox, Time};
use crate::guard::limit::Addresses as PeerAddresses;
use crate::guard::limits::{Limit, Limits};
use crate::guard::quiet::Quiet;
use crate::protocol::Seat;

/// How many connections a listener accepts in a turn.
const ACCEPTS_MAX: usize = 16;

/// After how many datagrams of one socket a turn looks at others.
const DATAGRAMS_MAX: usize = 8 * BATCH;

/// All that the machines of a server may know of the world.
pub(super) struct World {
    pub(super) now: Time,
    pub(super) dice: Dice,
    pub(super) out: Outbox,
    /// Bounds what is logged because of peers.
    pub(super) quiet: Quiet,
}

/// One protocol at its ports.
pub(super) struct Service {
    pub(super) name: &'static str,
    pub(super) counters: Counters,
    pub(super) machine: Box<dyn Machine + Send>,
    index: u8,
    listeners: Vec<Listener>,
    sockets: Vec<Datagrams>,
}

impl Service {
    /// Binds what is planned, and makes the machine.
    pub(super) fn bind(
        plan: Plan,
        index: u8,
        ips: &[IpAddr],
        config: &Config,
        addresses: &PeerAddresses,
    ) -> Result<Self, Error> {
        let limits = &config.limits;
        let sockets = bind_datagrams(&plan, ips, limits)?;
        let listeners = bind_listeners(&plan, ips)?;
        let seat = Seat {
            service: index,
            udp_port: sockets.first().map_or(0, |socket| socket.local().port()),
            limits: limits.clone(),
            limit_loopback: config.limit_loopback,
            addresses: addresses.clone(),
        };
        Ok(Self {
            name: plan.name,
            counters: Counters::default(),
            machine: (plan.build)(&seat),
            index,
            listeners,
            sockets,
        })
    }

    /// Has the poll tell of the sockets.
    pub(super) fn register(&mut self, registry: &Registry) -> io::Result<()> {
        let service = self.index;
        for (index, listener) in (0..).zip(&mut self.listeners) {
            let token = Source::Listener { service, index }.token();
            listener.register(registry, token)?;
        }
        for (index, datagrams) in (0..).zip(&mut self.sockets) {
            let token = Source::Datagrams { service, index }.token();
            datagrams.register(registry, token)?;
        }
        Ok(())
    }

    /// Where it is bound.
    pub(super) fn addresses(&self) -> Addresses {
        Addresses {
            service: self.name,
            tcp: self.listeners.iter().map(Listener::local).collect(),
            udp: self.sockets.iter().map(Datagrams::local).collect(),
            receive_buffers: self.sockets.iter().map(Datagrams::receive_buffer).collect(),
        }
    }

    /// Gives the machine one input, and does what it wants done.
    pub(super) fn feed(&mut self, world: &mut World, streams: &mut Streams, input: Input<'_>) {
        self.handle(world, input);
        self.perform(world, streams);
    }

    fn handle(&mut self, world: &mut World, input: Input<'_>) {
        let mut env = Env {
            now: world.now,
            dice: &mut world.dice,
            out: &mut world.out,
        };
        self.machine.handle(&mut env, input);
    }

    /// Does what the machine wants done, and tells it what connections it lost thereby or before.
    pub(super) fn perform(&mut self, world: &mut World, streams: &mut Streams) {
        loop {
            for effect in world.out.effects() {
                match effect {
                    Effect::Datagram { path, bytes } => {
                        if let Some(socket) = self.sockets.get(usize::from(path.socket)) {
                            socket.send(&path, bytes, &mut self.counters);
                        }
                    }
                    Effect::Stream { conn, bytes } => {
                        streams.write(conn, bytes, &mut self.counters);
                    }
                    Effect::Warning { about, what } => {
                        if world.quiet.allow(world.now, about) {
                            self.counters.warnings += 1;
                            log::warn!("{}: {about}: {what}", self.name);
                        } else {
                            self.counters.warnings_suppressed += 1;
                        }
                    }
                    Effect::Settled { conn } => streams.settle(conn),
                    Effect::Close { conn, how } => {
                        streams.close(conn, how, world.now, &mut self.counters);
                    }
                }
            }
            world.out.clear();
            let Some(conn) = streams.take_lost(self.index) else {
                return;
            };
            self.handle(world, Input::Closed { conn });
        }
    }

    /// Accepts who waits, in bounds.
    pub(super) fn accept(&mut self, world: &mut World, streams: &mut Streams) {
        for index in 0..self.listeners.len() {
            self.listeners[index].resume(world.now);
            for _ in 0..ACCEPTS_MAX {
                let listener = &mut self.listeners[index];
                if !listener.is_ready() {
                    break;
                }
                let accepted = listener.accept(world.now, &mut self.counters);
                let Accepted::One(socket, peer) = accepted else {
                    continue;
                };
                let conn = streams.admit(self.index, socket, peer, &mut self.counters);
                if let Some(conn) = conn {
                    self.feed(world, streams, Input::Opened { conn, peer });
                }
            }
        }
    }

    /// Receives what has come, in bounds.
    pub(super) fn receive(&mut self, world: &mut World, streams: &mut Streams, batch: &mut Batch) {
        for index in 0..self.sockets.len() {
            let mut taken = 0;
            while taken < DATAGRAMS_MAX && self.sockets[index].readiness.is_ready() {
                taken += self.receive_batch(index, world, streams, batch);
            }
        }
    }

    /// Receives a batch from one socket; returns how many datagrams were in it.
    fn receive_batch(
        &mut self,
        index: usize,
        world: &mut World,
        streams: &mut Streams,
        batch: &mut Batch,
    ) -> usize {
        let count = self.sockets[index].receive(batch, &mut self.counters);
        let mut taken = 0;
        for (meta, bytes) in batch.filled(count) {
            let path = self.sockets[index].path(meta);
            self.counters.datagram_bytes_in += bytes.len() as u64;
            for bytes in segments(bytes, meta.stride) {
                self.handle(world, Input::Datagram { path, bytes });
                taken += 1;
                // What is to be sent must not pile up behind joined datagrams.
                if taken % BATCH == 0 {
                    self.perform(world, streams);
                }
            }
        }
        self.counters.datagrams_in += taken as u64;
        self.perform(world, streams);
        taken
    }

    /// Tells the machine that its time has come, if it has.
    pub(super) fn tick(&mut self, world: &mut World, streams: &mut Streams) {
        let due = |machine: &dyn Machine| machine.deadline().is_some_and(|due| due <= world.now);
        if due(&*self.machine) {
            self.feed(world, streams, Input::Tick);
            let due = self.machine.deadline();
            debug_assert!(
                due.is_none_or(|due| due > world.now),
                "{}: after a tick something is still due: the loop would spin",
                self.name
            );
        }
    }

    /// Takes nobody in any more, and has the machine say farewell.
    pub(super) fn stop(&mut self, world: &mut World, streams: &mut Streams) {
        self.listeners.clear();
        self.feed(world, streams, Input::Stop);
    }

    /// When there is something to do without anything happening.
    pub(super) fn deadline(&self) -> Option<Time> {
        let resumes = self.listeners.iter().filter_map(Listener::deadline);
        resumes.chain(self.machine.deadline()).min()
    }

    /// The poll says that somebody waits to be accepted.
    pub(super) fn mark_listener(&mut self, index: u8) {
        if let Some(listener) = self.listeners.get_mut(usize::from(index)) {
            listener.readiness.mark();
        }
    }

    /// The poll says that datagrams have come.
    pub(super) fn mark_datagrams(&mut self, index: u8) {
        if let Some(socket) = self.sockets.get_mut(usize::from(index)) {
            socket.readiness.mark();
        }
    }

    /// Every socket has to be read until it runs dry, whatever the poll says.
    pub(super) fn owe(&mut self) {
        self.listeners.iter_mut().for_each(|it| it.readiness.owe());
        self.sockets.iter_mut().for_each(|it| it.readiness.owe());
    }

    /// Whether a socket has not run dry since.
    pub(super) fn is_owed(&self) -> bool {
        self.listeners.iter().any(Listener::is_owed)
            || self.sockets.iter().any(|it| it.readiness.is_owed())
    }

    /// Whether there is something left to take that the poll will not tell of again.
    pub(super) fn has_more(&self) -> bool {
        self.listeners.iter().any(Listener::is_ready)
            || self.sockets.iter().any(|it| it.readiness.is_ready())
    }

    /// The machine's counters and the shell's.
    pub(super) fn stats(&self) -> Vec<(&'static str, u64)> {
        let mut stats = self.machine.stats();
        stats.extend(self.counters.list());
        stats
    }
}

fn bind_datagrams(plan: &Plan, ips: &[IpAddr], limits: &Limits) -> Result<Vec<Datagrams>, Error> {
    let buffer = usize::try_from(limits.get(Limit::RecvBuffer)).unwrap_or(usize::MAX);
    bind::same_port(ips, plan.udp, |address, index| {
        let socket = Datagrams::bind(address, index, buffer)?;
        let port = socket.local().port();
        Ok((socket, port))
    })
    .map_err(|(address, source)| Error::bind(plan.name, Transport::Udp, address, source))
}

fn bind_listeners(plan: &Plan, ips: &[IpAddr]) -> Result<Vec<Listener>, Error> {
    let Some(port) = plan.tcp else {
        return Ok(Vec::new());
    };
    bind::same_port(ips, port, |address, _| {
        let listener = Listener::bind(address)?;
        let port = listener.local().port();
        Ok((listener, port))
    })
    .map_err(|(address, source)| Error::bind(plan.name, Transport::Tcp, address, source))
}
