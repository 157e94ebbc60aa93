//! A world in a box: a virtual clock, machines, peers and the network between them.
//!
//! Nothing in it waits: the clock jumps to whatever happens next, be it an arrival, a machine's
//! deadline or a peer's own timer. At the same millisecond arrivals come first, then machines,
//! then peers. The same seed gives the same run; a failure prints it with the last steps.

use std::collections::VecDeque;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::ops::{Index, IndexMut};

use anteroom::engine::{Close, Effect, Entropy, Env, Input, Machine, Outbox, Path, Seeded};

pub mod link;
pub mod machine;
pub mod net;
pub mod pipe;
pub mod seeds;
mod selftest;
mod sockets;

use machine::{Node, folded};
use net::{Happening, Net, Owner};
use pipe::{EndId, Ending, Holder, Parcel, Reads};

/// Whoever takes part by sending bytes, honestly or not.
pub trait Actor {
    /// The addresses at which datagrams, and connections, come in.
    fn addresses(&self) -> Vec<SocketAddr>;

    /// Tells the time; called before anything else happens.
    fn clock(&mut self, now: u64);

    /// Something came.
    fn arrival(&mut self, arrival: Arrival<'_>);

    /// When [`Actor::tick`] is due.
    fn wake(&self) -> Option<u64>;

    /// The time has come.
    fn tick(&mut self);

    /// What is to be done since the last call.
    fn actions(&mut self) -> Vec<Action>;
}

/// What comes to an actor.
#[derive(Debug)]
pub enum Arrival<'a> {
    /// A connection stands: one of its own, or one that was accepted (named by the world, from
    /// [`ACCEPTED`] on).
    Opened(u32),
    /// Bytes on a connection.
    Stream(u32, &'a [u8]),
    /// No more bytes will come on it.
    Ended(u32, Ending),
    /// A datagram.
    Datagram {
        from: SocketAddr,
        to: SocketAddr,
        bytes: &'a [u8],
    },
}

/// The first name of a connection that was accepted. Actors name their own from 0.
pub const ACCEPTED: u32 = 1 << 16;

/// What an actor wants done.
#[derive(Debug)]
pub enum Action {
    /// Connect, under a name of its own.
    Connect {
        name: u32,
        from: SocketAddr,
        to: SocketAddr,
    },
    /// Write.
    Write(u32, Vec<u8>),
    /// End the writing.
    Fin(u32),
    /// Throw the connection away.
    Abort(u32),
    /// Send a datagram, from whatever source.
    Datagram {
        from: SocketAddr,
        to: SocketAddr,
        bytes: Vec<u8>,
    },
}

/// Names an actor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PeerId(pub usize);

/// How many steps may happen without the clock moving: more is a loop.
const STEPS_AT_ONCE: u64 = 200_000;
/// How many of the last steps a failure prints.
const TRACE: usize = 60;

/// Everything.
pub struct World<P: Actor> {
    /// The network, and the clock.
    pub net: Net,
    seed: u64,
    nodes: Vec<Node>,
    peers: Vec<Member<P>>,
    touched: Option<usize>,
    steps: u64,
    steps_at_once: u64,
    trace: VecDeque<(u64, Step)>,
}

struct Member<P> {
    actor: P,
    ends: Vec<(u32, EndId)>,
    accepted: u32,
}

impl<P: Actor> World<P> {
    /// An empty world.
    pub fn new(seed: u64) -> Self {
        Self {
            net: Net::new(seed),
            seed,
            nodes: Vec::new(),
            peers: Vec::new(),
            touched: None,
            steps: 0,
            steps_at_once: 0,
            trace: VecDeque::new(),
        }
    }

    /// Adds a machine that listens at these addresses; returns its number.
    pub fn machine(&mut self, machine: Box<dyn Machine>, sockets: &[SocketAddr]) -> usize {
        let dice = Box::new(Seeded::new(self.seed ^ 0xD1CE));
        self.machine_with(machine, dice, sockets)
    }

    /// Adds a machine with dice of the test's choice.
    pub fn machine_with(
        &mut self,
        machine: Box<dyn Machine>,
        dice: Box<dyn Entropy>,
        sockets: &[SocketAddr],
    ) -> usize {
        let number = self.nodes.len();
        for (socket, address) in sockets.iter().enumerate() {
            self.net.own(*address, Owner::Machine(number, socket as u8));
        }
        self.nodes.push(Node::new(machine, dice, sockets.to_vec()));
        number
    }

    /// Adds an actor at its addresses, whoever had them before.
    pub fn add(&mut self, actor: P) -> PeerId {
        let id = self.peers.len();
        for address in actor.addresses() {
            self.net.own(address, Owner::Peer(id));
        }
        self.peers.push(Member {
            actor,
            ends: Vec::new(),
            accepted: ACCEPTED,
        });
        PeerId(id)
    }

    /// The virtual clock, in milliseconds.
    pub fn now(&self) -> u64 {
        self.net.now
    }

    /// Lets this much time pass.
    pub fn for_ms(&mut self, ms: u64) {
        let end = self.net.now + ms;
        while self.step(end) {}
    }

    /// Lets time pass until the condition holds; fails if it does not within `ms`.
    #[track_caller]
    pub fn until(&mut self, ms: u64, condition: impl FnMut(&Self) -> bool) {
        assert!(
            self.within(ms, condition),
            "did not happen within {ms} ms (it is {} now)",
            self.net.now
        );
    }

    /// Lets time pass until the condition holds, at most `ms`; says whether it does.
    pub fn within(&mut self, ms: u64, mut condition: impl FnMut(&Self) -> bool) -> bool {
        let end = self.net.now + ms;
        self.flush();
        while !condition(self) {
            if !self.step(end) {
                return condition(self);
            }
        }
        true
    }

    /// Hands a machine an input from outside: a command, or the wish to stop.
    pub fn input(&mut self, machine: usize, input: Input<'_>) {
        self.flush();
        let out = self.nodes[machine].handle(self.net.now, input);
        self.perform(machine, &out);
    }

    /// Says to a machine that it shall stop.
    pub fn stop(&mut self, machine: usize) {
        self.input(machine, Input::Stop);
    }

    /// Calls something that has the effects of a machine without being an input: a method of a
    /// client, say, that a test shares.
    pub fn call<T>(&mut self, machine: usize, call: impl FnOnce(&mut Env<'_>) -> T) -> T {
        self.flush();
        let mut out = Outbox::new();
        let node = &mut self.nodes[machine];
        let result = call(&mut Env {
            now: anteroom::engine::Time::from_ms(self.net.now),
            dice: &mut *node.dice,
            out: &mut out,
        });
        self.perform(machine, &out);
        result
    }

    /// Connects a machine (a client) to an address.
    pub fn dial(&mut self, machine: usize, from: SocketAddr, to: SocketAddr) -> EndId {
        let end = self.net.connect(from, to, Holder::Nobody);
        let conn = self.nodes[machine].accept(end);
        self.net.end(end).holder = Holder::Machine(machine, conn.slot);
        end
    }

    /// All counters of a machine.
    pub fn stats(&self, machine: usize) -> Vec<(&'static str, u64)> {
        self.nodes[machine].machine.stats()
    }

    /// A counter of a machine.
    #[track_caller]
    pub fn stat(&self, machine: usize, name: &str) -> u64 {
        let stats = self.stats(machine);
        let found = stats.iter().find(|(key, _)| *key == name);
        found.unwrap_or_else(|| panic!("no counter {name}")).1
    }

    /// What a machine warned of since the last call: about whom, and the name of what it refused.
    pub fn warnings(&mut self, machine: usize) -> Vec<(IpAddr, &'static str)> {
        std::mem::take(&mut self.nodes[machine].warnings)
    }

    /// The connections that a machine has not closed: how many, and how many have logged in.
    pub fn connections(&self, machine: usize) -> (usize, usize) {
        let open = self.nodes[machine].open();
        open.fold((0, 0), |(all, in_), (_, settled)| {
            (all + 1, in_ + usize::from(settled))
        })
    }

    /// When a machine wants to be woken.
    pub fn deadline(&self, machine: usize) -> Option<u64> {
        self.nodes[machine].deadline()
    }
}

// The run: one step after the other.
impl<P: Actor> World<P> {
    /// Does the next thing that happens up to `end`; false if nothing does, and then it is `end`.
    fn step(&mut self, end: u64) -> bool {
        self.flush();
        if self.step_now() {
            self.steps += 1;
            self.steps_at_once += 1;
            assert!(self.steps_at_once < STEPS_AT_ONCE, "time stands still");
            return true;
        }
        let machines = self.nodes.iter().filter_map(Node::deadline);
        let peers = self.peers.iter().filter_map(|peer| peer.actor.wake());
        let next = machines.chain(peers).chain(self.net.next()).min();
        self.steps_at_once = 0;
        match next {
            Some(next) if next <= end => {
                self.net.now = next;
                true
            }
            _ => {
                self.net.now = end;
                false
            }
        }
    }

    fn step_now(&mut self) -> bool {
        let now = self.net.now;
        if let Some(happening) = self.net.pop_due() {
            self.happen(happening);
            return true;
        }
        let due = |wake: Option<u64>| wake.is_some_and(|wake| wake <= now);
        if let Some(machine) = self.nodes.iter().position(|node| due(node.deadline())) {
            self.tick(machine);
            return true;
        }
        let peer = self.peers.iter().position(|peer| due(peer.actor.wake()));
        if let Some(peer) = peer {
            self.note(Step::Woken(peer));
            let actor = &mut self.peers[peer].actor;
            actor.clock(now);
            actor.tick();
            self.act(peer);
        }
        peer.is_some()
    }

    fn tick(&mut self, machine: usize) {
        self.note(Step::Tick(machine));
        let now = self.net.now;
        let out = self.nodes[machine].handle(now, Input::Tick);
        self.perform(machine, &out);
        let deadline = self.nodes[machine].deadline();
        assert!(
            deadline.is_none_or(|deadline| deadline > now),
            "machine {machine} spins: its deadline is {deadline:?} after the tick of {now}"
        );
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Datagram { from, to, bytes } => self.datagram(from, to, &bytes),
            Happening::Stream { at, epoch, parcel } => {
                // An abort destroys what was sent before it.
                if self.net.end(at.other()).epoch == epoch {
                    self.stream(at, parcel);
                }
            }
            Happening::LetGo { from, to } => self.net.let_go(from, to),
            Happening::Drained { end } => {
                if self.net.end(end).reads == Reads::Draining {
                    self.net.end(end).reads = Reads::Gone;
                }
            }
        }
    }

    fn datagram(&mut self, from: SocketAddr, to: SocketAddr, bytes: &[u8]) {
        self.note(Step::datagram(from, to, bytes));
        match self.net.owner(to) {
            Some(Owner::Machine(machine, socket)) => {
                let node = &mut self.nodes[machine];
                node.came(from, bytes.len());
                let path = Path {
                    socket,
                    local: node.local(socket),
                    remote: folded(from),
                };
                let out = node.handle(self.net.now, Input::Datagram { path, bytes });
                self.perform(machine, &out);
            }
            Some(Owner::Peer(peer)) => self.arrive(peer, Arrival::Datagram { from, to, bytes }),
            None => self.net.strays.entry(to).or_default().push(bytes.to_vec()),
        }
    }

    fn stream(&mut self, at: EndId, parcel: Parcel) {
        self.note(Step::Stream(at, parcel.clone()));
        if let Parcel::Opened = parcel {
            return self.opened(at);
        }
        let reads = self.net.end(at).reads;
        match (&parcel, reads) {
            (Parcel::Bytes(_), Reads::Gone) => return self.net.abort_late(at),
            (Parcel::Fin | Parcel::Reset, Reads::Draining) => {
                self.net.end(at).reads = Reads::Gone;
                return;
            }
            (_, Reads::Draining | Reads::Gone) => return,
            (_, Reads::Open) => {}
        }
        match self.net.end(at).holder {
            Holder::Machine(machine, slot) => self.stream_to_machine(machine, slot, at, &parcel),
            Holder::Peer(peer, name) => self.stream_to_peer(peer, name, at, &parcel),
            Holder::Nobody => {}
        }
    }

    fn stream_to_machine(&mut self, machine: usize, slot: u32, at: EndId, parcel: &Parcel) {
        let conn = self.nodes[machine].conn(slot);
        if let Parcel::Bytes(bytes) = parcel {
            let out = self.nodes[machine].handle(self.net.now, Input::Stream { conn, bytes });
            return self.perform(machine, &out);
        }
        let out = self.nodes[machine].handle(self.net.now, Input::Closed { conn });
        self.perform(machine, &out);
        self.nodes[machine].free(conn);
        // What was written before is still delivered; a reset has made it void.
        self.net.fin(at);
        self.net.end(at).reads = Reads::Gone;
    }

    fn stream_to_peer(&mut self, peer: usize, name: u32, at: EndId, parcel: &Parcel) {
        match parcel {
            Parcel::Bytes(bytes) => self.arrive(peer, Arrival::Stream(name, bytes)),
            Parcel::Fin => self.arrive(peer, Arrival::Ended(name, Ending::Fin)),
            Parcel::Reset => {
                self.net.end(at).reads = Reads::Gone;
                self.net.end(at).writes = false;
                self.arrive(peer, Arrival::Ended(name, Ending::Reset));
            }
            Parcel::Opened => {}
        }
    }

    /// A connection stands at this end.
    fn opened(&mut self, at: EndId) {
        let own = self.net.end(at).address;
        let remote = folded(self.net.end(at.other()).address);
        if at.side == 1 {
            let holder = match self.net.owner(own) {
                Some(Owner::Machine(machine, _)) => {
                    Holder::Machine(machine, self.nodes[machine].accept(at).slot)
                }
                Some(Owner::Peer(peer)) => Holder::Peer(peer, self.peers[peer].accept(at)),
                None => return self.net.abort(at),
            };
            self.net.end(at).holder = holder;
            self.net.post(at, Parcel::Opened);
        }
        match self.net.end(at).holder {
            Holder::Machine(machine, slot) => {
                let conn = self.nodes[machine].conn(slot);
                let input = Input::Opened { conn, peer: remote };
                let out = self.nodes[machine].handle(self.net.now, input);
                self.perform(machine, &out);
            }
            Holder::Peer(peer, name) => self.arrive(peer, Arrival::Opened(name)),
            Holder::Nobody => {}
        }
    }

    fn arrive(&mut self, peer: usize, arrival: Arrival<'_>) {
        let actor = &mut self.peers[peer].actor;
        actor.clock(self.net.now);
        actor.arrival(arrival);
        self.act(peer);
    }

    /// Does what a machine wants done. Whatever it says about a connection that is over is a
    /// fault: it has forgotten it already.
    fn perform(&mut self, machine: usize, out: &Outbox) {
        for effect in out.effects() {
            match effect {
                Effect::Datagram { path, bytes } => {
                    let from = self.nodes[machine].socket(path.socket, path.local);
                    self.nodes[machine].goes(path.remote, bytes.len());
                    self.net.datagram(from, path.remote, bytes);
                }
                Effect::Stream { conn, bytes } => {
                    let end = self.live(machine, conn);
                    self.net.write(end, bytes);
                }
                Effect::Warning { about, what } => {
                    self.nodes[machine].warnings.push((about, what));
                }
                Effect::Settled { conn } => {
                    self.live(machine, conn);
                    let first = self.nodes[machine].settle(conn);
                    assert!(first, "{conn:?} logged in twice");
                }
                Effect::Close { conn, how } => {
                    let end = self.live(machine, conn);
                    match how {
                        Close::Drain => self.net.drain(end),
                        Close::Now => self.net.abort(end),
                    }
                    self.nodes[machine].free(conn);
                }
            }
        }
    }

    fn live(&self, machine: usize, conn: anteroom::engine::Conn) -> EndId {
        let end = self.nodes[machine].end(conn);
        end.unwrap_or_else(|| panic!("machine {machine} speaks of {conn:?}, which is over"))
    }

    /// Does what the actor that a test touched last wants done.
    fn flush(&mut self) {
        if let Some(peer) = self.touched.take() {
            self.act(peer);
        }
    }

    fn act(&mut self, peer: usize) {
        for action in self.peers[peer].actor.actions() {
            match action {
                Action::Connect { name, from, to } => {
                    let end = self.net.connect(from, to, Holder::Peer(peer, name));
                    self.peers[peer].ends.push((name, end));
                }
                Action::Write(name, bytes) => {
                    let end = self.peers[peer].end(name);
                    self.net.write(end, &bytes);
                }
                Action::Fin(name) => {
                    let end = self.peers[peer].end(name);
                    self.net.fin(end);
                }
                Action::Abort(name) => {
                    let end = self.peers[peer].end(name);
                    self.net.abort(end);
                }
                Action::Datagram { from, to, bytes } => self.net.datagram(from, to, &bytes),
            }
        }
    }

    fn note(&mut self, step: Step) {
        if self.trace.len() == TRACE {
            self.trace.pop_front();
        }
        self.trace.push_back((self.net.now, step));
    }
}

impl<P: Actor> Index<PeerId> for World<P> {
    type Output = P;

    fn index(&self, id: PeerId) -> &P {
        &self.peers[id.0].actor
    }
}

impl<P: Actor> IndexMut<PeerId> for World<P> {
    /// The actor; what it wants done is done before the world goes on.
    fn index_mut(&mut self, id: PeerId) -> &mut P {
        self.flush();
        self.touched = Some(id.0);
        let actor = &mut self.peers[id.0].actor;
        actor.clock(self.net.now);
        actor
    }
}

impl<P> Member<P> {
    fn accept(&mut self, end: EndId) -> u32 {
        let name = self.accepted;
        self.accepted += 1;
        self.ends.push((name, end));
        name
    }

    fn end(&self, name: u32) -> EndId {
        let end = self.ends.iter().rev().find(|(key, _)| *key == name);
        end.unwrap_or_else(|| panic!("no connection {name}")).1
    }
}

impl<P: Actor> Drop for World<P> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for (at, step) in &self.trace {
                eprintln!("{at:>10} {step}");
            }
            eprintln!(
                "failed in step {} at {} ms; replay with ANTEROOM_SEED={}",
                self.steps, self.net.now, self.seed
            );
        }
    }
}

/// What a failure shows of a step.
enum Step {
    Datagram {
        from: SocketAddr,
        to: SocketAddr,
        len: usize,
        head: Vec<u8>,
    },
    Stream(EndId, Parcel),
    Tick(usize),
    Woken(usize),
}

impl Step {
    fn datagram(from: SocketAddr, to: SocketAddr, bytes: &[u8]) -> Self {
        Self::Datagram {
            from,
            to,
            len: bytes.len(),
            head: bytes[..bytes.len().min(40)].to_vec(),
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Datagram {
                from,
                to,
                len,
                head,
            } => write!(f, "{from} > {to} {len} bytes {head:02X?}"),
            Self::Stream(end, parcel) => {
                write!(f, "pipe {} side {} gets {parcel:02X?}", end.pipe, end.side)
            }
            Self::Tick(machine) => write!(f, "machine {machine} ticks"),
            Self::Woken(peer) => write!(f, "peer {peer} wakes"),
        }
    }
}
