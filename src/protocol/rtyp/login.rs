//! The TCP door of version 1: from the accepted connection to the session, and the end by TCP.

use std::net::SocketAddr;

use super::Service;
use super::core::Core;
use super::counters::Count;
use super::games::Seat;
use super::session::{Cause, Data, Stage, due};
use super::wire::{self, FRAME_HEAD_BYTES, Login, Reason, Reject, ToClient, ToServer};
use crate::engine::table::Due;
use crate::engine::{Close, Conn, Env, Event, Key, Ticket, Verdict, entropy};

/// From the accept to a complete LoginRequest.
const LOGIN_MS: u64 = 5_000;
/// From LoginAccepted to the bound endpoint.
const BIND_MS: u64 = 10_000;
/// For the game to answer about a newcomer.
const ANSWER_MS: u64 = 4_000;
/// Draws of a token that is not taken. One in 2^32 is taken by each player, so a second draw is
/// rare and a fourth says that the generator is broken.
const TOKEN_DRAWS: usize = 4;

impl Service {
    /// A connection was accepted.
    pub(super) fn opened(&mut self, env: &mut Env<'_>, conn: Conn, peer: SocketAddr) {
        if self.core.is_stopping {
            env.out.close(conn, Close::Now);
        } else {
            self.core.engine.opened(conn, peer, env.now + LOGIN_MS);
        }
    }

    /// Bytes came on a connection: takes every whole message, keeps the beginning of one.
    pub(super) fn stream(&mut self, env: &mut Env<'_>, conn: Conn, bytes: &[u8]) {
        if !self.core.engine.knows(conn) {
            return;
        }
        let mut held = self.core.engine.take_partial(conn);
        let mut rest = bytes;
        if !held.is_empty() {
            held.extend_from_slice(bytes);
            rest = &held;
        }
        loop {
            match wire::frame(rest) {
                Ok(Some(body)) => {
                    rest = &rest[FRAME_HEAD_BYTES + body.len()..];
                    self.message(env, conn, body);
                    if !self.core.engine.knows(conn) {
                        return;
                    }
                }
                Ok(None) if rest.is_empty() => return,
                Ok(None) => return self.core.engine.keep_partial(conn, rest),
                Err(_) => return self.core.distrust(env, conn),
            }
        }
    }

    /// A connection is over.
    pub(super) fn closed(&mut self, env: &mut Env<'_>, conn: Conn) {
        match self.core.engine.session_of(conn) {
            Some(key) => self.core.end(env, key, Cause::Left),
            None if self.core.engine.knows(conn) => {
                self.core.counters.add(Count::LoginAbandoned);
                self.core.engine.forget(conn);
            }
            None => {}
        }
    }

    /// Says farewell to everyone and takes nobody in any more.
    pub(super) fn stop(&mut self, env: &mut Env<'_>) {
        self.core.is_stopping = true;
        let sessions: Vec<Key> = self.core.engine.sessions().map(|(key, _)| key).collect();
        for key in sessions {
            self.core.end(env, key, Cause::Server(Reason::Shutdown));
        }
        let strangers: Vec<Conn> = self.core.engine.strangers().collect();
        for conn in strangers {
            self.core.engine.forget(conn);
            env.out.close(conn, Close::Now);
        }
    }

    /// A deadline has come.
    pub(super) fn due(&mut self, env: &mut Env<'_>, due: Due) {
        match due {
            Due::Link(conn) => {
                self.core.counters.add(Count::LoginLate);
                self.core.engine.forget(conn);
                env.out.close(conn, Close::Now);
            }
            Due::Session(key, due::ANSWER) => self.core.reject(env, key, Reject::Refused),
            Due::Session(key, which) => self.core.session_due(env, key, which),
        }
    }

    fn message(&mut self, env: &mut Env<'_>, conn: Conn, body: &[u8]) {
        let session = self.core.engine.session_of(conn);
        match (ToServer::read(body), session) {
            (Ok(ToServer::LoginRequest(login)), None) => self.login(env, conn, login),
            (Ok(ToServer::Logout { .. }), Some(key)) => self.core.end(env, key, Cause::Left),
            _ => self.core.distrust(env, conn),
        }
    }

    /// Judges a LoginRequest whose shape is right; asks the game last.
    fn login(&mut self, env: &mut Env<'_>, conn: Conn, login: Login<'_>) {
        let Some(peer) = self.core.engine.peer(conn) else {
            return;
        };
        let admitted = match login {
            Login::OtherVersion(_) => Err(Reject::BadVersion),
            Login::V1 { name } => self.core.admit(env, conn, peer, name),
        };
        match admitted {
            Ok((key, seat, name)) => {
                let service = self.core.service;
                let player = self.core.player(key, seat);
                let ticket = Ticket { service, key };
                let event = Event::Connecting {
                    ticket,
                    player,
                    name,
                    ip: peer.ip(),
                };
                self.tell(env, event);
            }
            Err(reason) => {
                self.core.engine.forget(conn);
                self.core.say_rejected(env, conn, reason);
            }
        }
    }
}

impl Core {
    /// Gives the newcomer a seat, a token and a session that waits for the game's word.
    fn admit<'a>(
        &mut self,
        env: &mut Env<'_>,
        conn: Conn,
        peer: SocketAddr,
        name: &'a [u8],
    ) -> Result<(Key, Seat, &'a str), Reject> {
        let name = wire::name(name).ok_or(Reject::BadName)?;
        let engine = &self.engine;
        let seat = self.games.place(|key| {
            engine
                .get(key)
                .is_some_and(|session| &*session.data.name == name)
        })?;
        let token = self.draw_token(env).ok_or(Reject::Refused)?;
        let data = Data {
            name: name.into(),
            seat,
            ip: peer.ip(),
            stage: Stage::Asked,
        };
        let key = self
            .engine
            .open(token, Some(conn), env.now, data)
            .ok_or(Reject::Refused)?;
        self.games.take(seat, key);
        self.engine.arm(key, due::ANSWER, env.now + ANSWER_MS);
        Ok((key, seat, name))
    }

    /// A token that is not 0 and no live session has; `None` if the generator fails.
    fn draw_token(&mut self, env: &mut Env<'_>) -> Option<u64> {
        for _ in 0..TOKEN_DRAWS {
            let Ok(token) = entropy::u32(env.dice) else {
                break;
            };
            let token = u64::from(token);
            if token != 0 && self.engine.with_token(token).is_none() {
                return Some(token);
            }
        }
        self.counters.add(Count::NoEntropy);
        log::error!("rtyp: no token could be drawn; a login is refused");
        None
    }

    /// The game has answered about a newcomer. Returns whether anybody waited for it.
    pub(super) fn answer(&mut self, env: &mut Env<'_>, key: Key, verdict: Verdict) -> bool {
        let Some(session) = self.engine.get_mut(key) else {
            return false;
        };
        if !matches!(session.data.stage, Stage::Asked) {
            return false;
        }
        match verdict {
            Verdict::Admit => self.accept(env, key),
            Verdict::Refuse => self.reject(env, key, Reject::Refused),
        }
        true
    }

    fn accept(&mut self, env: &mut Env<'_>, key: Key) {
        let Some(session) = self.engine.get_mut(key) else {
            return;
        };
        let Some(conn) = session.conn() else { return };
        session.data.stage = Stage::Accepted;
        let accepted = ToClient::LoginAccepted {
            session: session.token() as u32,
            player: session.data.seat.number,
            udp_port: self.udp_port,
        };
        env.out.stream(conn, |w| accepted.write(w));
        env.out.settled(conn);
        self.counters.add(Count::Logins);
        self.engine.disarm(key, due::ANSWER);
        self.engine.arm(key, due::SILENCE, env.now + BIND_MS);
    }

    /// Ends a session that the game did not admit: nobody has heard of it.
    fn reject(&mut self, env: &mut Env<'_>, key: Key, reason: Reject) {
        let Some(session) = self.engine.end(key) else {
            return;
        };
        self.games.leave(session.data.seat);
        if let Some(conn) = session.conn() {
            self.say_rejected(env, conn, reason);
        }
    }

    fn say_rejected(&mut self, env: &mut Env<'_>, conn: Conn, reason: Reject) {
        self.counters.add(match reason {
            Reject::ServerFull => Count::RejectedServerFull,
            Reject::BadVersion => Count::RejectedBadVersion,
            Reject::BadName => Count::RejectedBadName,
            Reject::NameTaken => Count::RejectedNameTaken,
            Reject::GameStarted => Count::RejectedGameStarted,
            Reject::TooMany | Reject::NoSuchGame | Reject::Refused => Count::RejectedRefused,
        });
        let rejected = ToClient::LoginRejected {
            reason: reason.code(),
        };
        env.out.stream(conn, |w| rejected.write(w));
        env.out.close(conn, Close::Drain);
    }

    /// The stream broke a rule: it is closed without a word, and its session ends.
    fn distrust(&mut self, env: &mut Env<'_>, conn: Conn) {
        match self.engine.session_of(conn) {
            Some(key) => self.end(env, key, Cause::MalformedStream),
            None => {
                self.counters.add(Count::LoginMalformed);
                self.engine.forget(conn);
                env.out.close(conn, Close::Now);
            }
        }
    }
}
