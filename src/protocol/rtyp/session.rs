//! What the server keeps about a player, from the question to the game until the end.

use std::net::IpAddr;

use super::channel::Channel;
use super::games::Seat;
use super::roam::Candidate;
use super::wire::{
    self, HEADER_BYTES, PAYLOAD_MAX, PlayerToken, Reason, Reject, Session, SessionToken,
    SharedToken, kind,
};
use crate::bytes::Writer;
use crate::engine::bucket::Bucket;
use crate::engine::proof::Proof;
use crate::engine::{Env, Key, Path, Time, entropy};
use crate::guard::limit::Visit;

/// A Ping that stays unanswered is followed by another after this time.
const PING_AGAIN_MS: u64 = 1_000;
/// The next Ping after one that was answered.
const PING_EVERY_MS: u64 = 4_000;
/// An answered Ping proves an endpoint for so long.
const PROOF_MS: u64 = 10_000;

/// The deadlines of a session, as the engine numbers them.
pub mod due {
    /// The game has not answered.
    pub const ANSWER: usize = 0;
    /// No valid datagram for too long, or not bound in time.
    pub const SILENCE: usize = 1;
    /// A Ping is due.
    pub const PING: usize = 2;
    /// Events are due to be sent.
    pub const EVENTS: usize = 3;
    /// An Ack is owed.
    pub const ACK: usize = 4;
    /// Events have waited too long for an acknowledgement.
    pub const STUCK: usize = 5;
    /// An endpoint that wants to take the session over, and the one that has it, are asked.
    pub const ROAM: usize = 6;
}

/// A session's own part in the engine's table.
#[derive(Debug)]
pub struct Data {
    /// Shown to the other players.
    pub name: Box<str>,
    /// Its number and game.
    pub seat: Seat,
    /// The address it came from: that of its TCP connection, or of its hello.
    pub ip: IpAddr,
    /// Counts for its address while the session lives.
    pub visit: Visit,
    /// The ghosts that end when the game admits it.
    pub ghosts: Vec<Ghost>,
    /// Who is being asked about and will end it, if it still is a ghost then.
    pub heir: Option<Key>,
    /// How far it has come.
    pub stage: Stage,
}

impl Data {
    /// The conversation over UDP, once there is one.
    pub fn bound(&mut self) -> Option<&mut Bound> {
        match &mut self.stage {
            Stage::Bound(bound) => Some(bound),
            Stage::Asked(_) | Stage::Accepted => None,
        }
    }

    /// Whether the player is bound.
    pub fn is_bound(&self) -> bool {
        matches!(self.stage, Stage::Bound(_))
    }
}

/// A ghost in a newcomer's way.
#[derive(Debug, Clone, Copy)]
pub struct Ghost {
    pub key: Key,
    /// Whether the newcomer takes its number; else only its place under the address's limit.
    pub gives_seat: bool,
}

impl Ghost {
    /// What stands in the newcomer's way if this is no ghost any more.
    pub fn stands_for(self) -> Reject {
        if self.gives_seat {
            Reject::NameTaken
        } else {
            Reject::TooMany
        }
    }
}

/// The way into the server.
#[derive(Debug, Clone, Copy)]
pub enum Door {
    /// A LoginRequest over TCP.
    Login,
    /// A ClientHello that came this way.
    Hello(Path),
}

/// How far a session has come.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly every session is bound nearly always"
)]
pub enum Stage {
    /// The game is asked about it.
    Asked(Door),
    /// LoginAccepted is sent; no endpoint yet.
    Accepted,
    /// It has an endpoint and plays.
    Bound(Bound),
}

/// Why a session ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The client said Logout or closed its connection.
    Left,
    /// The client's TCP stream cannot be trusted any more.
    MalformedStream,
    /// The server ends it, for this reason.
    Server(Reason),
}

impl Cause {
    /// What the other players are told.
    pub fn reason(self) -> Reason {
        match self {
            Self::Left => Reason::Left,
            Self::MalformedStream => Reason::ProtocolError,
            Self::Server(reason) => reason,
        }
    }
}

/// What names a session in its datagrams.
#[derive(Debug, Clone, Copy)]
pub enum Tokens {
    /// Version 1: the same both ways.
    Shared(SharedToken),
    /// Version 2: the player's secret, and what everybody may know.
    Own {
        secret: SessionToken,
        public: PlayerToken,
    },
}

/// The conversation with a bound player.
#[derive(Debug)]
pub struct Bound {
    /// The way its newest valid datagram came.
    pub path: Path,
    /// The session field of every datagram the player sends.
    pub token: Session,
    /// Numbering, lanes and Pings.
    pub channel: Channel,
    /// Whether its endpoint has proven itself.
    pub proof: Proof,
    /// Data, Ping and Pong it may still send.
    pub traffic: Bucket,
    /// Events it may still send.
    pub events: Bucket,
    /// Bytes of events it may still send.
    pub bodies: Bucket,
    /// When the next Ping is due; past while one is due and could not be paid for.
    ping_at: Time,
    /// Stands in the list of those who may have something to be sent.
    pub is_touched: bool,
    /// Another endpoint that sent the session's token.
    pub candidate: Option<Box<Candidate>>,
}

impl Bound {
    /// A player who just got its endpoint; a Ping is due at once.
    pub fn new(path: Path, tokens: Tokens, by_address: bool, now: Time) -> Self {
        let (token, ours) = match tokens {
            Tokens::Shared(token) => (Session::Shared(token), Session::Shared(token)),
            Tokens::Own { secret, public } => (Session::Secret(secret), Session::Public(public)),
        };
        Self {
            path,
            token,
            channel: Channel::new(ours),
            proof: Proof::new(by_address),
            traffic: Bucket::default(),
            events: Bucket::default(),
            bodies: Bucket::default(),
            ping_at: now,
            is_touched: false,
            candidate: None,
        }
    }

    /// Sends one datagram, if the endpoint's credit pays for it. While an endpoint is not proven
    /// its Ping goes first, and while that cannot be paid for only what lets it in goes.
    pub fn send(
        &mut self,
        env: &mut Env<'_>,
        kind: u8,
        write: impl FnOnce(&mut Writer<'_>),
    ) -> bool {
        let lets_in = matches!(kind, kind::ACCEPT | kind::SERVER_HELLO);
        if !lets_in && kind != kind::PING && !self.settle_ping(env) {
            return false;
        }
        let header = self.channel.header(kind);
        let is_sent = env
            .out
            .datagram(self.path, self.proof.credit(env.now), |w| {
                header.write(w);
                write(w);
            });
        if is_sent {
            self.channel.sent();
        }
        is_sent
    }

    /// Sends the events that are due. Returns whether they all went.
    pub fn send_events(&mut self, env: &mut Env<'_>, scratch: &mut Vec<u8>) -> bool {
        while self.channel.events_due(env.now) <= env.now {
            if !self.settle_ping(env) {
                return false;
            }
            let room = self
                .proof
                .room(env.now)
                .saturating_sub(HEADER_BYTES)
                .min(PAYLOAD_MAX);
            scratch.clear();
            let packed = self.channel.pack(env.now, room, &mut Writer::new(scratch));
            if packed == 0 || !self.send(env, kind::EVENTS, |w| w.bytes(scratch)) {
                return false;
            }
        }
        true
    }

    /// Sends a Ping, if it can be paid for. Returns whether it went.
    pub fn ping(&mut self, env: &mut Env<'_>) -> bool {
        let Ok(nonce) = entropy::u32(env.dice) else {
            return false;
        };
        let is_sent = self.send(env, kind::PING, |w| w.u32_le(nonce));
        if is_sent {
            self.channel.asked(env.now, nonce);
            self.ping_at = env.now + PING_AGAIN_MS;
        }
        is_sent
    }

    /// A Pong came: if it answers, the endpoint is proven and the next Ping can wait.
    pub fn pong(&mut self, now: Time, nonce: u32) {
        if let Some(asked) = self.channel.answered(now, nonce) {
            self.prove(now);
            self.ping_at = self.ping_at.max(asked + PING_EVERY_MS);
        }
    }

    /// Sends the ServerHello, for the first time or again.
    pub fn send_hello(&mut self, env: &mut Env<'_>, number: u8) -> bool {
        let Session::Secret(token) = self.token else {
            return false;
        };
        let hello = wire::Payload::ServerHello(token, number);
        self.send(env, kind::SERVER_HELLO, |w| hello.write(w))
    }

    /// An answer proved the endpoint, or a cookie did.
    pub fn prove(&mut self, now: Time) {
        self.proof.renew(now + PROOF_MS);
    }

    /// Whether a Ping is due.
    pub fn is_ping_due(&self, now: Time) -> bool {
        self.ping_at <= now
    }

    /// When the next Ping is worth trying.
    pub fn ping_due(&self, now: Time) -> Time {
        if self.is_ping_due(now) {
            now + PING_AGAIN_MS
        } else {
            self.ping_at
        }
    }

    /// Pays for a Ping that is due to an endpoint that is not proven, before anything else.
    /// Returns whether other things may go.
    fn settle_ping(&mut self, env: &mut Env<'_>) -> bool {
        self.proof.holds(env.now) || !self.is_ping_due(env.now) || self.ping(env)
    }
}

const _: () = assert!(HEADER_BYTES + PAYLOAD_MAX == wire::DATAGRAM_MAX);
