//! A machine as the world drives it: its dice, its sockets, its connections and its books.

use std::cell::{RefCell, RefMut};
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

use anteroom::engine::{Conn, Entropy, Env, Input, Machine, Outbox, Time};

use super::pipe::EndId;

/// What went in from and out to one endpoint, at the machine's edge.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    pub in_datagrams: u64,
    pub in_bytes: u64,
    pub out_datagrams: u64,
    pub out_bytes: u64,
}

/// A machine and what its driver keeps for it.
pub struct Node {
    pub machine: Box<dyn Machine>,
    pub dice: Box<dyn Entropy>,
    pub sockets: Vec<SocketAddr>,
    pub tallies: HashMap<SocketAddr, Tally>,
    /// Endpoints that must never get more bytes than came from them since they were put here.
    pub echo_only: HashMap<SocketAddr, Tally>,
    pub warnings: Vec<(IpAddr, &'static str)>,
    conns: Vec<Slot>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    generation: u32,
    end: Option<EndId>,
    settled: bool,
}

impl Node {
    /// A machine with its sockets, in the order of their numbers.
    pub fn new(
        machine: Box<dyn Machine>,
        dice: Box<dyn Entropy>,
        sockets: Vec<SocketAddr>,
    ) -> Self {
        Self {
            machine,
            dice,
            sockets,
            tallies: HashMap::new(),
            echo_only: HashMap::new(),
            warnings: Vec::new(),
            conns: Vec::new(),
        }
    }

    /// Hands the machine one input; its effects are in what is returned.
    pub fn handle(&mut self, now: u64, input: Input<'_>) -> Outbox {
        let mut out = Outbox::new();
        let mut env = Env {
            now: Time::from_ms(now),
            dice: &mut *self.dice,
            out: &mut out,
        };
        self.machine.handle(&mut env, input);
        out
    }

    /// When the machine wants to be woken.
    pub fn deadline(&self) -> Option<u64> {
        self.machine
            .deadline()
            .filter(|time| *time != Time::NEVER)
            .map(Time::ms)
    }

    /// Counts a datagram that came.
    pub fn came(&mut self, from: SocketAddr, len: usize) {
        for tally in self.books(from) {
            tally.in_datagrams += 1;
            tally.in_bytes += len as u64;
        }
    }

    /// Counts a datagram that goes, and holds it against what came where that is watched.
    pub fn goes(&mut self, to: SocketAddr, len: usize) {
        for tally in self.books(to) {
            tally.out_datagrams += 1;
            tally.out_bytes += len as u64;
        }
        if let Some(tally) = self.echo_only.get(&to) {
            assert!(
                tally.out_bytes <= tally.in_bytes,
                "{to} got {} bytes for {}",
                tally.out_bytes,
                tally.in_bytes
            );
        }
    }

    fn books(&mut self, address: SocketAddr) -> impl Iterator<Item = &mut Tally> {
        let watched = self.echo_only.get_mut(&address);
        [Some(self.tallies.entry(address).or_default()), watched]
            .into_iter()
            .flatten()
    }

    /// A free slot for a connection: the lowest, so that slots are used again at once.
    pub fn accept(&mut self, end: EndId) -> Conn {
        let free = self.conns.iter().position(|slot| slot.end.is_none());
        let slot = free.unwrap_or_else(|| {
            self.conns.push(Slot::default());
            self.conns.len() - 1
        });
        self.conns[slot].end = Some(end);
        self.conns[slot].settled = false;
        self.conn(slot as u32)
    }

    /// The number of the connection that is in a slot.
    pub fn conn(&self, slot: u32) -> Conn {
        Conn {
            slot,
            generation: self.conns[slot as usize].generation,
        }
    }

    /// The end behind a number; `None` if the connection is over.
    pub fn end(&self, conn: Conn) -> Option<EndId> {
        let slot = self.conns.get(conn.slot as usize)?;
        slot.end.filter(|_| slot.generation == conn.generation)
    }

    /// Frees the slot: the number finds nothing from now on.
    pub fn free(&mut self, conn: Conn) {
        if self.end(conn).is_some() {
            let slot = &mut self.conns[conn.slot as usize];
            slot.end = None;
            slot.generation = slot.generation.wrapping_add(1);
        }
    }

    /// Notes that a connection has logged in; says whether it was the first time.
    pub fn settle(&mut self, conn: Conn) -> bool {
        !std::mem::replace(&mut self.conns[conn.slot as usize].settled, true)
    }

    /// The connections that are not over, and whether they have logged in.
    pub fn open(&self) -> impl Iterator<Item = (EndId, bool)> {
        self.conns
            .iter()
            .filter_map(|slot| Some((slot.end?, slot.settled)))
    }

    /// The socket that a machine sends from, by its number. A client leaves it to its driver.
    pub fn socket(&self, number: u8, local: SocketAddr) -> SocketAddr {
        let socket = self.sockets[usize::from(number)];
        assert!(
            socket == local || local.ip().is_unspecified(),
            "socket {number} is not where the machine says"
        );
        socket
    }

    /// The address of a socket, as the machine's own end of a path.
    pub fn local(&self, number: u8) -> SocketAddr {
        self.sockets[usize::from(number)]
    }
}

/// A machine that a test keeps a hand on.
pub struct Shared<M>(Rc<RefCell<M>>);

impl<M> Shared<M> {
    /// Shares a machine.
    pub fn new(machine: M) -> Self {
        Self(Rc::new(RefCell::new(machine)))
    }

    /// The machine itself, until the guard goes.
    pub fn get(&self) -> RefMut<'_, M> {
        self.0.borrow_mut()
    }
}

impl<M> Clone for Shared<M> {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

impl<M: Machine> Machine for Shared<M> {
    fn handle(&mut self, env: &mut Env<'_>, input: Input<'_>) {
        self.0.borrow_mut().handle(env, input);
    }

    fn deadline(&self) -> Option<Time> {
        self.0.borrow().deadline()
    }

    fn stats(&self) -> Vec<(&'static str, u64)> {
        self.0.borrow().stats()
    }
}

/// IPv4-mapped addresses folded to IPv4, as every driver does it.
pub fn folded(address: SocketAddr) -> SocketAddr {
    let ip: IpAddr = address.ip().to_canonical();
    SocketAddr::new(ip, address.port())
}
