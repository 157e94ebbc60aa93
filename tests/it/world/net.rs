//! The network between machines and peers: what is under way and when it arrives.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::net::SocketAddr;

use anteroom::engine::Seeded;

use super::link::{Link, Weather};
use super::pipe::{DRAIN_MS, EndId, Holder, Parcel, Pieces, Pipe, Reads};

/// Who answers at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// A machine, by its index; the number of its socket.
    Machine(usize, u8),
    /// A peer, by its index.
    Peer(usize),
}

/// Something that happens at a time.
#[derive(Debug)]
pub enum Happening {
    /// A datagram arrives.
    Datagram {
        from: SocketAddr,
        to: SocketAddr,
        bytes: Vec<u8>,
    },
    /// Something arrives at an end, sent under an epoch.
    Stream {
        at: EndId,
        epoch: u32,
        parcel: Parcel,
    },
    /// A link may have to let go of held datagrams.
    LetGo { from: SocketAddr, to: SocketAddr },
    /// A closed connection has drained for long enough.
    Drained { end: EndId },
}

struct Scheduled {
    at: u64,
    order: u64,
    what: Happening,
}

impl PartialEq for Scheduled {
    fn eq(&self, other: &Self) -> bool {
        self.order == other.order
    }
}

impl Eq for Scheduled {}

impl PartialOrd for Scheduled {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Scheduled {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}

type Links = HashMap<(SocketAddr, SocketAddr), Link>;

/// Everything that is under way.
pub struct Net {
    /// The virtual clock, in milliseconds.
    pub now: u64,
    /// Decides about loss and the like; the machines have dice of their own.
    pub dice: Seeded,
    /// What links do that were not told otherwise.
    pub weather: Weather,
    /// How long a stream's bytes take.
    pub stream_delay_ms: u64,
    /// How streams that are opened from now on are cut.
    pub pieces: Pieces,
    /// What arrived where nobody is: the destination, and the datagrams.
    pub strays: HashMap<SocketAddr, Vec<Vec<u8>>>,
    owners: HashMap<SocketAddr, Owner>,
    links: Links,
    pipes: Vec<Pipe>,
    queue: BinaryHeap<Reverse<Scheduled>>,
    order: u64,
}

impl Net {
    /// A quiet network.
    pub fn new(seed: u64) -> Self {
        Self {
            // Not 0: nobody may rely on the start of time.
            now: 1_000_000,
            dice: Seeded::new(seed),
            weather: Weather::default(),
            stream_delay_ms: 5,
            pieces: Pieces::Whole,
            strays: HashMap::new(),
            owners: HashMap::new(),
            links: HashMap::new(),
            pipes: Vec::new(),
            queue: BinaryHeap::new(),
            order: 0,
        }
    }

    /// Gives an address to somebody, whoever had it before.
    pub fn own(&mut self, address: SocketAddr, owner: Owner) {
        self.owners.insert(address, owner);
    }

    /// Nobody is at the address any more.
    pub fn disown(&mut self, address: SocketAddr) {
        self.owners.remove(&address);
    }

    /// Who has the address.
    pub fn owner(&self, address: SocketAddr) -> Option<Owner> {
        self.owners.get(&address).copied()
    }

    /// One direction between two endpoints, to change its weather or filter.
    pub fn link(&mut self, from: SocketAddr, to: SocketAddr) -> &mut Link {
        entry(&mut self.links, self.weather, from, to)
    }

    /// Sends a datagram, from whatever source the sender claims.
    pub fn datagram(&mut self, from: SocketAddr, to: SocketAddr, bytes: &[u8]) {
        let link = entry(&mut self.links, self.weather, from, to);
        let carried = link.carry(self.now, bytes, &mut self.dice);
        for (at, bytes) in carried.arrivals {
            self.schedule(at, Happening::Datagram { from, to, bytes });
        }
        if let Some(at) = carried.look_again {
            self.schedule(at, Happening::LetGo { from, to });
        }
    }

    /// Lets go of what a link held for long enough.
    pub fn let_go(&mut self, from: SocketAddr, to: SocketAddr) {
        let link = entry(&mut self.links, self.weather, from, to);
        for (at, bytes) in link.let_go(self.now, &mut self.dice) {
            self.schedule(at, Happening::Datagram { from, to, bytes });
        }
    }

    /// Connects; both ends learn of it in due time. What is written before arrives behind it.
    pub fn connect(&mut self, from: SocketAddr, to: SocketAddr, holder: Holder) -> EndId {
        let mut pipe = Pipe::new(from, to, self.stream_delay_ms);
        pipe.ends[0].holder = holder;
        for end in &mut pipe.ends {
            end.pieces = self.pieces;
        }
        self.pipes.push(pipe);
        let end = EndId {
            pipe: self.pipes.len() - 1,
            side: 0,
        };
        self.post(end, Parcel::Opened);
        end
    }

    /// An end of a pipe.
    pub fn end(&mut self, end: EndId) -> &mut super::pipe::End {
        &mut self.pipes[end.pipe].ends[end.side]
    }

    /// Writes bytes, cut as the end is told to. Bytes after a `fin` or an abort go nowhere.
    pub fn write(&mut self, end: EndId, mut bytes: &[u8]) {
        if !self.end(end).writes {
            return;
        }
        while !bytes.is_empty() {
            let most = match self.end(end).pieces {
                Pieces::Whole => bytes.len(),
                Pieces::Of(count) => count,
                Pieces::Random(count) => 1 + self.dice.below(count as u64) as usize,
            };
            let (piece, rest) = bytes.split_at(most.min(bytes.len()));
            bytes = rest;
            self.post(end, Parcel::Bytes(piece.to_vec()));
        }
    }

    /// Ends the writing in good order.
    pub fn fin(&mut self, end: EndId) {
        if self.end(end).writes {
            self.post(end, Parcel::Fin);
            self.end(end).writes = false;
        }
    }

    /// Ends the writing and swallows what still comes, for a second.
    pub fn drain(&mut self, end: EndId) {
        self.fin(end);
        self.end(end).reads = Reads::Draining;
        self.schedule(self.now + DRAIN_MS, Happening::Drained { end });
    }

    /// Throws the connection away, and what was written but has not arrived.
    pub fn abort(&mut self, end: EndId) {
        let this = self.end(end);
        if this.reads == Reads::Gone && !this.writes {
            return;
        }
        this.reads = Reads::Gone;
        this.writes = false;
        this.epoch += 1;
        self.post(end, Parcel::Reset);
    }

    /// Answers bytes that came to an end that is gone.
    pub fn abort_late(&mut self, end: EndId) {
        self.post(end, Parcel::Reset);
    }

    /// Puts something on its way from an end to the other.
    pub fn post(&mut self, from: EndId, parcel: Parcel) {
        let now = self.now;
        let delay = self.pipes[from.pipe].delay_ms;
        let end = self.end(from);
        end.arrival = end.arrival.max(now + delay);
        let (arrival, epoch) = (end.arrival, end.epoch);
        let at = from.other();
        self.schedule(arrival, Happening::Stream { at, epoch, parcel });
    }

    /// When the next thing arrives.
    pub fn next(&self) -> Option<u64> {
        self.queue.peek().map(|Reverse(next)| next.at)
    }

    /// What arrives now, if anything does.
    pub fn pop_due(&mut self) -> Option<Happening> {
        if self.next()? > self.now {
            return None;
        }
        self.queue.pop().map(|Reverse(next)| next.what)
    }

    fn schedule(&mut self, at: u64, what: Happening) {
        self.order += 1;
        let order = self.order;
        self.queue.push(Reverse(Scheduled { at, order, what }));
    }
}

fn entry(links: &mut Links, weather: Weather, from: SocketAddr, to: SocketAddr) -> &mut Link {
    links
        .entry((from, to))
        .or_insert_with(|| Link::new(weather))
}
