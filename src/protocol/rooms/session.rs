//! What the server keeps about a client, from the accepted connection to the end.

use std::collections::VecDeque;
use std::net::IpAddr;

use super::counters::Count;
use super::wire::kind;
use crate::engine::bucket::Bucket;
use crate::engine::seq::History;
use crate::engine::{Path, Time};
use crate::guard::limit::Visit;

/// What is told unasked goes again after these times.
const REPEATS_MS: [u64; 3] = [100, 250, 500];
/// So many packets of a session may wait to be said again; beyond, the one that waits longest goes
/// no more.
const REPEATED_MAX: usize = 256;

/// The deadlines of a session, as the engine numbers them.
pub mod due {
    /// No valid datagram for too long, or not bound in time.
    pub const SILENCE: usize = 0;
    /// The game has not answered about a Login.
    pub const LOGIN: usize = 1;
    /// The game has not answered about a Register.
    pub const REGISTER: usize = 2;
    /// Something is to be said again.
    pub const REPEAT: usize = 3;
}

/// A session's own part in the engine's table.
#[derive(Debug)]
pub struct Data {
    /// The address of the TCP connection: the only one that is heard.
    pub ip: IpAddr,
    /// Counts for its address while the session lives.
    _visit: Visit,
    pub opened: Time,
    /// The way its newest valid datagram came; `None` before the first.
    pub path: Option<Path>,
    /// Who it is, once it has logged in.
    pub user: Option<Box<str>>,
    /// The room it is in, and its seat there.
    pub place: Option<Place>,
    /// How many rooms it has been in.
    pub stays: u32,
    /// The ids it has used.
    pub received: History,
    /// The id of the next packet to it.
    pub next_id: u16,
    /// How many questions were asked about it.
    pub questions: u32,
    pub login: Option<Asked>,
    pub register: Option<Asked>,
    answers: [Option<Answer>; kind::ANSWERED.len()],
    repeats: VecDeque<Repeat>,
    /// What it may still ask for now.
    pub requests: Bucket,
    /// How many keys it may still press now.
    pub keys: Bucket,
    /// How many of its packets had a wrong shape.
    pub malformed: u8,
    /// When it was last shown everything.
    pub shown: Option<Time>,
}

/// Where a session sits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub room: u32,
    pub seat: u8,
}

/// A question to the game.
#[derive(Debug)]
pub struct Asked {
    /// The id of the request.
    pub id: u16,
    pub question: u32,
    pub user: Box<str>,
}

/// What the newest request of a type was answered.
#[derive(Debug)]
struct Answer {
    /// The id of the request.
    id: u16,
    kind: u8,
    payload: Box<[u8]>,
}

/// A packet that is told several times.
#[derive(Debug)]
struct Repeat {
    packet: Box<[u8]>,
    first: Time,
    /// How many of the repetitions are said.
    said: usize,
}

impl Repeat {
    /// Whether it matters only to who is in the room it was told in.
    fn is_of_a_room(&self) -> bool {
        let kind = self.packet.get(1).copied();
        matches!(
            kind,
            Some(kind::CHAT | kind::CREATE_ENTITY | kind::DELETE_ENTITY)
        )
    }

    fn due(&self) -> Time {
        REPEATS_MS
            .get(self.said)
            .map_or(Time::NEVER, |after| self.first + *after)
    }
}

impl Data {
    pub fn new(ip: IpAddr, visit: Visit, now: Time) -> Self {
        Self {
            ip,
            _visit: visit,
            opened: now,
            path: None,
            user: None,
            place: None,
            stays: 0,
            received: History::default(),
            // 1 is the Assign Token, over TCP.
            next_id: 2,
            questions: 0,
            login: None,
            register: None,
            answers: Default::default(),
            repeats: VecDeque::new(),
            requests: Bucket::new(),
            keys: Bucket::new(),
            malformed: 0,
            shown: None,
        }
    }

    /// One Login or Register is worked out at a time.
    ///
    /// # Errors
    /// While one is, the request `id` counts as unseen.
    pub fn await_turn(&mut self, id: u16) -> Result<(), Count> {
        if self.login.is_none() && self.register.is_none() {
            return Ok(());
        }
        self.received.forget(id);
        Err(Count::IgnoredWaiting)
    }

    /// The id of the next packet.
    pub fn take_id(&mut self) -> u16 {
        let id = self.next_id;
        self.next_id = id.wrapping_add(1);
        id
    }

    /// Remembers what the request `id` of type `request` was answered.
    pub fn remember(&mut self, request: u8, id: u16, kind: u8, payload: Box<[u8]>) {
        if let Some(index) = index(request) {
            self.answers[index] = Some(Answer { id, kind, payload });
        }
    }

    /// What the request `id` of type `request` was answered, if that is remembered.
    pub fn remembered(&self, request: u8, id: u16) -> Option<(u8, &[u8])> {
        let answer = self.answers[index(request)?].as_ref()?;
        (answer.id == id).then_some((answer.kind, &*answer.payload))
    }

    /// The packet was said once, and is to be said again. Returns whether another one goes no more
    /// for it.
    pub fn repeat(&mut self, packet: Box<[u8]>, now: Time) -> bool {
        let is_full = self.repeats.len() >= REPEATED_MAX;
        if is_full {
            self.repeats.pop_front();
        }
        self.repeats.push_back(Repeat {
            packet,
            first: now,
            said: 0,
        });
        is_full
    }

    /// It is out of its room: what was told of it is said no more.
    pub fn forget_room(&mut self) {
        self.place = None;
        self.repeats.retain(|repeat| !repeat.is_of_a_room());
    }

    /// When something is to be said again.
    pub fn repeat_due(&self) -> Time {
        self.repeats
            .iter()
            .map(Repeat::due)
            .min()
            .unwrap_or(Time::NEVER)
    }

    /// Says again what is due.
    pub fn say_again(&mut self, now: Time, mut say: impl FnMut(&[u8])) {
        for repeat in &mut self.repeats {
            while repeat.due() <= now {
                say(&repeat.packet);
                repeat.said += 1;
            }
        }
        self.repeats.retain(|repeat| repeat.due() != Time::NEVER);
        if self.repeats.is_empty() {
            self.repeats = VecDeque::new();
        }
    }
}

fn index(request: u8) -> Option<usize> {
    kind::ANSWERED.iter().position(|kind| *kind == request)
}
