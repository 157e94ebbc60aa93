//! The TCP door of version 1: from the accepted connection to the session, and the end by TCP.

use std::net::{IpAddr, SocketAddr};

use super::Service;
use super::core::Core;
use super::counters::Count;
use super::door::Newcomer;
use super::session::{Cause, Door, due};
use super::wire::{self, FRAME_HEAD_BYTES, Login, Reason, Reject, ToClient, ToServer};
use crate::engine::table::Due;
use crate::engine::{Close, Conn, Env, Key};

/// From the accept to a complete LoginRequest.
const LOGIN_MS: u64 = 5_000;

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
                self.core.refuse_link(env, conn, Count::LoginLate);
                self.core.engine.forget(conn);
                env.out.close(conn, Close::Now);
            }
            Due::Farewell(endpoint) => {
                self.core.engine.say_farewell(env.out, endpoint, env.now);
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

    /// Judges a LoginRequest whose shape is right.
    fn login(&mut self, env: &mut Env<'_>, conn: Conn, login: Login<'_>) {
        let Some(peer) = self.core.engine.peer(conn) else {
            return;
        };
        let entered = match login {
            Login::OtherVersion(_) => Err(Reject::BadVersion),
            Login::V1 { name } => {
                let newcomer = Newcomer {
                    name,
                    room: &[],
                    ip: peer.ip(),
                    door: Door::Login,
                    conn: Some(conn),
                    ghost: None,
                };
                self.knock(env, &newcomer)
            }
        };
        if let Err(reason) = entered {
            self.core.engine.forget(conn);
            self.core.say_login_rejected(env, conn, peer.ip(), reason);
        }
    }
}

impl Core {
    pub(super) fn say_login_rejected(
        &mut self,
        env: &mut Env<'_>,
        conn: Conn,
        ip: IpAddr,
        reason: Reject,
    ) {
        self.count_rejected(env, ip, reason);
        let rejected = ToClient::LoginRejected {
            reason: reason.code(),
        };
        env.out.stream(conn, |w| rejected.write(w));
        env.out.close(conn, Close::Drain);
    }

    /// Counts what a connection without a session did.
    fn refuse_link(&mut self, env: &mut Env<'_>, conn: Conn, count: Count) {
        if let Some(peer) = self.engine.peer(conn) {
            self.refuse(env, peer.ip(), count);
        }
    }

    /// The stream broke a rule: it is closed without a word, and its session ends.
    fn distrust(&mut self, env: &mut Env<'_>, conn: Conn) {
        match self.engine.session_of(conn) {
            Some(key) => self.end(env, key, Cause::MalformedStream),
            None => {
                self.refuse_link(env, conn, Count::LoginMalformed);
                self.engine.forget(conn);
                env.out.close(conn, Close::Now);
            }
        }
    }
}
