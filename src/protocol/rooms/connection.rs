//! The TCP connection: it brings a client its token, stays silent, and ends with the session.

use std::net::{IpAddr, SocketAddr};

use super::Service;
use super::core::{Cause, Core};
use super::counters::Count;
use super::session::{Data, due};
use super::wire::{Message, Reason, Token};
use crate::engine::{Close, Conn, Env, Key, entropy};
use crate::guard::limit::{Refused, Visit};
use crate::guard::network::network;

/// From the accept to the first valid datagram, and from each to the next.
pub const SILENCE_MS: u64 = 10_000;
/// A bound session that was silent for longer than this is a ghost.
const GHOST_MS: u64 = 3_000;
/// Draws of a token that is not taken.
const TOKEN_DRAWS: usize = 4;
/// The id of the Assign Token, and of a Logout in its place.
const FIRST_ID: u16 = 1;

impl Service {
    /// A connection was accepted.
    pub(super) fn opened(&mut self, env: &mut Env<'_>, conn: Conn, peer: SocketAddr) {
        if self.core.is_stopping {
            return env.out.close(conn, Close::Now);
        }
        if let Err(count) = self.core.admit(env, conn, peer) {
            self.core.refuse(env, peer.ip(), count);
            self.core.engine.forget(conn);
            let logout = Message::Logout {
                reason: Reason::Full.code(),
            };
            env.out.stream(conn, |w| logout.write(w, FIRST_ID));
            env.out.close(conn, Close::Drain);
        }
    }

    /// Bytes came on a connection: the client is to be silent there.
    pub(super) fn stream(&mut self, env: &mut Env<'_>, conn: Conn) {
        if let Some(key) = self.core.engine.session_of(conn) {
            self.core
                .end(env, key, Cause::Server(Reason::ProtocolError));
        }
    }

    /// A connection is over.
    pub(super) fn closed(&mut self, env: &mut Env<'_>, conn: Conn) {
        if let Some(key) = self.core.engine.session_of(conn) {
            self.core.end(env, key, Cause::Closed);
        }
    }

    /// Says farewell to everyone and takes nobody in any more.
    pub(super) fn stop(&mut self, env: &mut Env<'_>) {
        self.core.is_stopping = true;
        let sessions: Vec<Key> = self.core.engine.sessions().map(|(key, _)| key).collect();
        for key in sessions {
            self.core.end(env, key, Cause::Server(Reason::Shutdown));
        }
    }
}

impl Core {
    /// Gives a connection a session and a token.
    fn admit(&mut self, env: &mut Env<'_>, conn: Conn, peer: SocketAddr) -> Result<(), Count> {
        let oldest = self.oldest_pending();
        if self.is_full() && oldest.is_none() {
            return Err(Count::RefusedFull);
        }
        let token = self.draw_token(env).ok_or(Count::NoEntropy)?;
        let visit = self.enter(env, peer.ip())?;
        if let Some(oldest) = oldest.filter(|_| self.is_full()) {
            self.end(env, oldest, Cause::Server(Reason::Full));
        }
        let data = Data::new(peer.ip(), visit, env.now);
        self.engine.opened(conn, peer, env.now + SILENCE_MS);
        let origin = network(peer.ip());
        let key = self
            .engine
            .open(token.0.into(), Some(conn), origin, env.now, data);
        let key = key.ok_or(Count::NoEntropy)?;
        self.engine.arm(key, due::SILENCE, env.now + SILENCE_MS);
        self.counters.add(Count::Connections);
        let assign = Message::AssignToken {
            token,
            udp_port: self.udp_port,
        };
        env.out.stream(conn, |w| assign.write(w, FIRST_ID));
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.engine.session_count() >= self.sessions_max
    }

    /// With the server full, the one that waits longest for its first valid datagram goes for a
    /// newcomer that has passed everything else.
    fn oldest_pending(&self) -> Option<Key> {
        let sessions = self.engine.sessions().filter(|_| self.is_full());
        let pending = sessions.filter(|(_, session)| session.data.path.is_none());
        let oldest = pending.min_by_key(|(_, session)| session.data.opened);
        oldest.map(|(key, _)| key)
    }

    /// The limits of the address. Where that of sessions would refuse it, the ghost of the address
    /// that is silent the longest makes room.
    fn enter(&mut self, env: &mut Env<'_>, ip: IpAddr) -> Result<Visit, Count> {
        let refused = match self.entrance.enter(env.now, ip) {
            Ok(visit) => return Ok(visit),
            Err(refused) => refused,
        };
        let ghost = self.ghost(env, ip).filter(|_| refused == Refused::Sessions);
        let ghost = ghost.ok_or(Count::RefusedTooMany)?;
        let mut visit = self
            .entrance
            .attempt(env.now, ip)
            .map_err(|_| Count::RefusedTooMany)?;
        self.counters.add(Count::GhostsEnded);
        self.end(env, ghost, Cause::Server(Reason::TimedOut));
        self.entrance
            .settle(&mut visit)
            .map_err(|_| Count::RefusedTooMany)?;
        Ok(visit)
    }

    /// The bound session of an address that is silent the longest, if it is a ghost.
    fn ghost(&self, env: &Env<'_>, ip: IpAddr) -> Option<Key> {
        let there = self.engine.sessions_from(network(ip)).iter();
        there
            .filter_map(|key| Some((*key, self.engine.get(*key)?)))
            .filter(|(_, session)| session.data.path.is_some())
            .filter(|(_, session)| env.now.since(session.heard) > GHOST_MS)
            .min_by_key(|(_, session)| session.heard)
            .map(|(key, _)| key)
    }

    /// A token that a client may have and no live session has; `None` if the generator fails.
    fn draw_token(&self, env: &mut Env<'_>) -> Option<Token> {
        for _ in 0..TOKEN_DRAWS {
            let token = Token(entropy::u32(env.dice).ok()?);
            if token.is_for_clients() && self.engine.with_token(token.0.into()).is_none() {
                return Some(token);
            }
        }
        None
    }
}
