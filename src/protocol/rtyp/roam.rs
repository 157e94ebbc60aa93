//! Roaming in version 2: a session follows its player to another endpoint, but nobody who merely
//! copied a datagram can take it while its owner still speaks.

use super::core::Core;
use super::counters::Count;
use super::session::{Bound, due};
use super::wire::{Header, Payload, kind};
use crate::engine::proof::Proof;
use crate::engine::seq::Arrival;
use crate::engine::{Credit, Env, Key, Path, Time, entropy};

/// A candidate is forgotten so long after its last datagram.
const CANDIDATE_MS: u64 = 2_000;
/// The candidate is asked this often, …
const ASK_EVERY_MS: u64 = 250;
/// … and the endpoint that has the session this often: so often that on a line that loses three of
/// ten datagrams each way its owner is heard within the time below, but for once in a million.
const ASK_OLD_EVERY_MS: u64 = 50;
/// The old endpoint must have been silent for this long beyond a round trip since it was asked.
const SILENT_MS: u64 = 1_000;

/// An endpoint that sent the session's token and does not have the session.
#[derive(Debug)]
pub struct Candidate {
    path: Path,
    /// When it is forgotten.
    until: Time,
    /// What came from it and was not answered.
    unanswered: u32,
    /// The nonces of the last Pings to it.
    nonces: [Option<u32>; 4],
    ask_at: Time,
    /// When the old endpoint was first asked.
    old_asked_at: Time,
    ask_old_at: Time,
    has_answered: bool,
}

impl Candidate {
    fn new(path: Path, now: Time) -> Self {
        Self {
            path,
            until: now,
            unanswered: 0,
            nonces: [None; 4],
            ask_at: now,
            old_asked_at: now,
            ask_old_at: now,
            has_answered: false,
        }
    }

    /// When something is to be done about it.
    fn due(&self, move_at: Time) -> Time {
        let asks = self.ask_at.min(self.ask_old_at).min(self.until);
        if self.has_answered {
            asks.min(move_at)
        } else {
            asks
        }
    }
}

impl Core {
    /// A datagram of `size` bytes with a session's secret came from an endpoint without a session.
    pub(super) fn roam(
        &mut self,
        env: &mut Env<'_>,
        path: Path,
        size: usize,
        header: &Header,
        payload: &[u8],
    ) -> Result<(), Count> {
        let key = self.secret_key(header).ok_or(Count::IgnoredUnbound)?;
        let bound = self.bound(key).ok_or(Count::IgnoredUnbound)?;
        if bound.token != header.session {
            return Err(Count::IgnoredUnbound);
        }
        if bound.channel.arrival(header.sequence) != Arrival::New {
            return Err(Count::IgnoredCandidate);
        }
        let payload = self
            .read(key, header, payload)
            .ok_or(Count::IgnoredCandidate)?;
        let bound = self.bound(key).ok_or(Count::IgnoredUnbound)?;
        let candidate = match &mut bound.candidate {
            Some(candidate) if candidate.path.remote == path.remote => candidate,
            other => other.insert(Box::new(Candidate::new(path, env.now))),
        };
        candidate.path = path;
        candidate.until = env.now + CANDIDATE_MS;
        candidate.unanswered = candidate.unanswered.saturating_add(size as u32);
        if let Payload::Pong(nonce) = payload {
            candidate.has_answered |= candidate.nonces.contains(&Some(nonce));
        }
        self.tend_candidate(env, key);
        Ok(())
    }

    /// Asks whom it is time to ask, and moves the session or forgets the candidate.
    pub(super) fn tend_candidate(&mut self, env: &mut Env<'_>, key: Key) {
        let Some(session) = self.engine.get_mut(key) else {
            return;
        };
        let heard = session.heard;
        let Some(bound) = session.data.bound() else {
            return;
        };
        let rtt_ms = bound.channel.rtt_ms().unwrap_or(0);
        let Some(candidate) = &bound.candidate else {
            return;
        };
        let move_at = candidate.old_asked_at.max(heard) + SILENT_MS + rtt_ms;
        if candidate.has_answered && move_at <= env.now {
            return self.move_session(env, key);
        }
        if candidate.until <= env.now {
            bound.candidate = None;
            return;
        }
        bound.ask_both(env);
        let due = bound
            .candidate
            .as_ref()
            .map_or(Time::NEVER, |it| it.due(move_at));
        self.engine.arm(key, due::ROAM, due);
    }

    /// The candidate has the session from now on.
    fn move_session(&mut self, env: &mut Env<'_>, key: Key) {
        let Some(bound) = self.bound(key) else { return };
        let Some(candidate) = bound.candidate.take() else {
            return;
        };
        if !self.engine.rebind(key, candidate.path.remote) {
            return;
        }
        self.counters.add(Count::Moves);
        let Some(session) = self.engine.get_mut(key) else {
            return;
        };
        session.heard = env.now;
        let Some(bound) = session.data.bound() else {
            return;
        };
        bound.path = candidate.path;
        bound.proof = Proof::new(false);
        bound.prove(env.now);
        self.touch(key);
    }
}

impl Bound {
    fn ask_both(&mut self, env: &mut Env<'_>) {
        let Some(candidate) = &mut self.candidate else {
            return;
        };
        if candidate.ask_at <= env.now {
            candidate.ask_at = env.now + ASK_EVERY_MS;
            if let Ok(nonce) = entropy::u32(env.dice) {
                let header = self.channel.header(kind::PING);
                let credit = Credit::Echo(&mut candidate.unanswered);
                let is_sent = env.out.datagram(candidate.path, credit, |w| {
                    header.write(w);
                    w.u32_le(nonce);
                });
                if is_sent {
                    self.channel.sent();
                    candidate.nonces.rotate_right(1);
                    candidate.nonces[0] = Some(nonce);
                }
            }
        }
        if candidate.ask_old_at <= env.now {
            candidate.ask_old_at = env.now + ASK_OLD_EVERY_MS;
            self.ping(env);
        }
    }
}
