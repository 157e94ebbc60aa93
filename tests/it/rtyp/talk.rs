//! One side of a UDP conversation: numbers, acknowledgements, events, Pings.
//!
//! Everything here is kept in sets and maps of numbers that never wrap, and without any bound:
//! the opposite of how the library does it.

use std::collections::{BTreeMap, BTreeSet};

use super::bytes::{DATAGRAM_MAX, Datagram, Event, Token, kind};

/// Our numbers start this high, so that one that never wraps can be told from the sixteen bits
/// of the wire without ever becoming negative.
const BASE: u64 = 1 << 16;
/// An Events datagram is acknowledged within 25 ms; we take our time, but not all of it.
const ACK_MS: u64 = 20;
/// ... or before 16 more datagrams have come.
const ACK_BEFORE: u32 = 15;
/// How far ids may be apart in flight, and how many bytes their bodies may have.
const FLIGHT_IDS: u64 = 256;
const FLIGHT_BYTES: usize = 32 * 1024;

/// An event on its way out.
#[derive(Debug, Clone)]
struct Outgoing {
    event: Event,
    due: u64,
    sends: u32,
}

/// A datagram of ours.
#[derive(Debug, Clone)]
struct Sent {
    /// The events in it, until it is acknowledged.
    ids: Vec<u64>,
    acknowledged: bool,
}

/// Something that came, for assertions.
#[derive(Debug, Clone)]
pub struct Got {
    pub at: u64,
    pub datagram: Datagram,
    /// Whether its number was new.
    pub new: bool,
}

/// One side.
#[derive(Debug, Clone)]
pub struct Talk {
    pub now: u64,
    /// What we write into the session field.
    pub session: Token,
    /// What we expect there.
    pub theirs: Token,
    /// Everything that came, in the order it came.
    pub log: Vec<Got>,
    /// The events that came, in the order of their ids, once each.
    pub events: Vec<Event>,
    /// When each of them was handed on.
    pub events_at: Vec<u64>,
    /// Whether the other side is held to what it may acknowledge.
    pub strict: bool,
    /// Acknowledges nothing, whatever came.
    pub deaf: bool,
    /// How long an event waits before it is sent again.
    pub resend_ms: u64,
    /// The newest round trip, from a Pong.
    pub rtt: Option<u64>,
    pub last_sent: u64,
    pub last_valid: u64,
    pub last_ping: Option<u64>,
    next: u64,
    first: u64,
    /// Everything we sent, from the first on.
    sent: Vec<Sent>,
    seen: BTreeSet<u64>,
    outgoing: BTreeMap<u64, Outgoing>,
    next_out: u64,
    early: BTreeMap<u64, Event>,
    next_in: u64,
    ack_due: Option<u64>,
    since_events: u32,
    pings: BTreeMap<u32, u64>,
    nonce: u32,
}

impl Talk {
    /// A conversation of version 1 that numbers its datagrams from `first`.
    pub fn new(session: u32, first: u16, now: u64) -> Self {
        let session = Token::Shared(session);
        Self::between(session, session, first, now)
    }

    /// A conversation that numbers its datagrams from `first`, with a token for each direction.
    pub fn between(session: Token, theirs: Token, first: u16, now: u64) -> Self {
        let first = BASE + u64::from(first);
        Self {
            now,
            session,
            theirs,
            log: Vec::new(),
            events: Vec::new(),
            events_at: Vec::new(),
            strict: true,
            deaf: false,
            resend_ms: 200,
            rtt: None,
            last_sent: now,
            last_valid: now,
            last_ping: None,
            next: first,
            first,
            sent: Vec::new(),
            seen: BTreeSet::new(),
            outgoing: BTreeMap::new(),
            next_out: BASE,
            early: BTreeMap::new(),
            next_in: BASE,
            ack_due: None,
            since_events: 0,
            pings: BTreeMap::new(),
            nonce: 0x1000,
        }
    }

    /// The next datagram of ours, with all that we have to acknowledge.
    pub fn datagram(&mut self, kind: u8, payload: &[u8]) -> Datagram {
        self.carrying(kind, payload, Vec::new())
    }

    /// A Ping with a nonce of its own.
    pub fn ping(&mut self) -> Datagram {
        self.nonce = self.nonce.wrapping_mul(747_796_405).wrapping_add(1);
        self.pings.insert(self.nonce, self.now);
        self.last_ping = Some(self.now);
        self.datagram(kind::PING, &self.nonce.to_le_bytes())
    }

    /// How many numbers we have used.
    pub fn numbers_used(&self) -> u64 {
        self.next - self.first
    }

    /// Whether the other side has acknowledged our datagram with this number (the first is 0).
    pub fn is_acknowledged(&self, index: u64) -> bool {
        let sent = self.sent.get(index as usize);
        sent.is_some_and(|sent| sent.acknowledged)
    }

    /// Queues an event; it goes with the next datagrams that [`Talk::due`] returns.
    pub fn event(&mut self, event: Event) {
        let due = self.now;
        let outgoing = Outgoing {
            event,
            due,
            sends: 0,
        };
        self.outgoing.insert(self.next_out, outgoing);
        self.next_out += 1;
    }

    /// How many events were queued and are not acknowledged.
    pub fn unacknowledged(&self) -> usize {
        self.outgoing.len()
    }

    /// How many events were queued.
    pub fn events_out(&self) -> u64 {
        self.next_out - BASE
    }

    /// How often the oldest event that waits was sent.
    pub fn oldest_sends(&self) -> u32 {
        let oldest = self.outgoing.values().next();
        oldest.map_or(0, |outgoing| outgoing.sends)
    }

    /// When [`Talk::due`] has something, if we acknowledge and resend.
    pub fn wake(&self, ack: bool, resend: bool) -> Option<u64> {
        let ack = self.ack_due.filter(|_| ack);
        let events = self.flight().map(|(_, outgoing)| outgoing.due).min();
        ack.into_iter().chain(events.filter(|_| resend)).min()
    }

    /// What is due now: events, and an Ack if nothing else carries it.
    pub fn due(&mut self, ack: bool, resend: bool) -> Vec<Datagram> {
        let mut datagrams = Vec::new();
        while resend && let Some(datagram) = self.events_datagram() {
            datagrams.push(datagram);
        }
        if ack && self.ack_due.is_some_and(|due| due <= self.now) {
            datagrams.push(self.datagram(kind::ACK, &[]));
        }
        datagrams
    }

    /// Takes a datagram in. Says whether it was new; what it acknowledges counts only then.
    #[track_caller]
    pub fn take(&mut self, datagram: &Datagram) -> bool {
        assert_eq!(datagram.session, self.theirs, "a foreign session");
        let number = self.unwrapped(datagram.sequence);
        let newest = self.seen.last().copied();
        let late = newest.is_some_and(|newest| number + 32 < newest);
        let new = !late && !self.seen.contains(&number);
        self.log.push(Got {
            at: self.now,
            datagram: datagram.clone(),
            new,
        });
        if !new {
            return false;
        }
        self.last_valid = self.now;
        if datagram.kind == kind::EVENTS {
            self.take_events(&datagram.payload);
        } else {
            self.since_events += u32::from(self.ack_due.is_some());
        }
        if self.since_events >= ACK_BEFORE {
            self.ack_due = Some(self.now);
        }
        self.seen.insert(number);
        self.take_acks(datagram.ack, datagram.ack_bits);
        if datagram.kind == kind::PONG {
            self.take_pong(&datagram.payload);
        }
        true
    }

    /// Forgets that anything ever came: what we send acknowledges nothing of it.
    pub fn forget_seen(&mut self) {
        self.seen.clear();
    }

    fn carrying(&mut self, kind: u8, payload: &[u8], ids: Vec<u64>) -> Datagram {
        let (ack, ack_bits) = self.header();
        let datagram = Datagram {
            sequence: self.next as u16,
            ack,
            ack_bits,
            ..Datagram::with(kind, self.session, payload)
        };
        self.sent.push(Sent {
            ids,
            acknowledged: false,
        });
        self.next += 1;
        self.last_sent = self.now;
        self.ack_due = None;
        self.since_events = 0;
        datagram
    }

    /// What we acknowledge: the newest that came and which of the 32 before it.
    fn header(&self) -> (u16, u32) {
        let Some(newest) = self.seen.last().copied().filter(|_| !self.deaf) else {
            return (0xFFFF, 0);
        };
        let before = self.seen.range(newest - 32..newest);
        let bits = before.map(|number| 1 << (newest - 1 - number));
        (
            newest as u16,
            bits.fold(0, |bits: u32, bit: u32| bits | bit),
        )
    }

    /// The number behind sixteen bits: the one closest to the newest that came.
    fn unwrapped(&self, sequence: u16) -> u64 {
        let Some(newest) = self.seen.last().copied() else {
            return BASE + u64::from(sequence);
        };
        let ahead = sequence.wrapping_sub(newest as u16);
        match ahead {
            0..=0x7FFF => newest + u64::from(ahead),
            _ => newest - u64::from(ahead.wrapping_neg()),
        }
    }

    fn take_acks(&mut self, ack: u16, ack_bits: u32) {
        let behind = u64::from((self.next as u16).wrapping_sub(1).wrapping_sub(ack));
        // Nothing of ours has come, says a header that is also the start of every conversation.
        let nothing = ack == 0xFFFF && ack_bits == 0 && self.next - self.first <= behind;
        if nothing {
            return;
        }
        let set = (0..32).filter(|bit| ack_bits & 1 << bit != 0);
        let named = std::iter::once(behind).chain(set.map(|bit| behind + 1 + bit));
        for behind in named {
            let number = (self.next - 1).checked_sub(behind);
            let sent = number.filter(|number| *number >= self.first);
            assert!(
                sent.is_some() || !self.strict,
                "acknowledges what was never sent: {ack} {ack_bits:08X}"
            );
            if let Some(number) = sent {
                let sent = &mut self.sent[(number - self.first) as usize];
                sent.acknowledged = true;
                for id in sent.ids.drain(..) {
                    self.outgoing.remove(&id);
                }
            }
        }
    }

    fn take_events(&mut self, payload: &[u8]) {
        for (id, event) in Event::parse_all(payload) {
            let ahead = id.wrapping_sub(self.next_in as u16);
            let behind = ahead.wrapping_neg();
            assert!(
                ahead <= 255 || behind <= 0x7FFF,
                "event {id} is {ahead} ahead of what is due"
            );
            if ahead <= 255 {
                let id = self.next_in + u64::from(ahead);
                let known = self.early.insert(id, event);
                let same = known.is_none_or(|known| known == self.early[&id]);
                assert!(same, "event {id} came again as another");
            }
        }
        while let Some(event) = self.early.remove(&self.next_in) {
            self.events.push(event);
            self.events_at.push(self.now);
            self.next_in += 1;
        }
        self.ack_due.get_or_insert(self.now + ACK_MS);
    }

    fn take_pong(&mut self, payload: &[u8]) {
        let nonce: [u8; 4] = payload.try_into().expect("a Pong carries a nonce");
        if let Some(at) = self.pings.remove(&u32::from_le_bytes(nonce)) {
            self.rtt = Some(self.now - at);
        } else {
            assert!(!self.strict, "a Pong for no Ping of ours");
        }
    }

    /// The events that may be in flight now, oldest first.
    fn flight(&self) -> impl Iterator<Item = (&u64, &Outgoing)> {
        let oldest = self.outgoing.keys().next().copied().unwrap_or(0);
        let mut bytes = 0;
        self.outgoing.iter().take_while(move |(id, outgoing)| {
            bytes += outgoing.event.body.len();
            **id < oldest + FLIGHT_IDS && bytes <= FLIGHT_BYTES
        })
    }

    fn events_datagram(&mut self) -> Option<Datagram> {
        let now = self.now;
        let mut ids = Vec::new();
        let mut payload = Vec::new();
        let payload_max = DATAGRAM_MAX - self.session.header();
        for (id, outgoing) in self.flight() {
            if outgoing.due > now {
                continue;
            }
            let bytes = outgoing.event.bytes(*id as u16);
            if ids.len() == 32 || payload.len() + bytes.len() > payload_max {
                break;
            }
            payload.extend(bytes);
            ids.push(*id);
        }
        if ids.is_empty() {
            return None;
        }
        for id in &ids {
            if let Some(outgoing) = self.outgoing.get_mut(id) {
                outgoing.due = now + self.resend_ms;
                outgoing.sends += 1;
            }
        }
        Some(self.carrying(kind::EVENTS, &payload, ids))
    }
}
