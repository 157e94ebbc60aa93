//! The UDP door of version 2: an address is proven by a stateless cookie before anything is kept
//! for it.

use super::Service;
use super::core::Core;
use super::counters::Count;
use super::door::Newcomer;
use super::session::{Door, Stage};
use super::wire::{
    Header, Hello, NOTHING_RECEIVED, Payload, PlayerToken, Reject, Session, VERSION_2, kind,
};
use crate::engine::{Credit, Env, Path};
use crate::guard::cookie::Cookies;

impl Service {
    /// A ClientHello of `size` bytes came, from whatever endpoint. Until its cookie is right
    /// nothing but its shape is looked at, and its own bytes pay for the answer.
    pub(super) fn hello(
        &mut self,
        env: &mut Env<'_>,
        path: Path,
        size: usize,
        payload: &[u8],
    ) -> Result<(), Count> {
        if self.core.is_stopping {
            return Err(Count::IgnoredHello);
        }
        let at_endpoint = self.core.engine.at(&path.remote);
        if let Some(session) = at_endpoint.and_then(|key| self.core.engine.get(key))
            && session.conn().is_some()
        {
            return Err(Count::IgnoredHello);
        }
        let Ok(Payload::ClientHello(hello)) = Payload::read(VERSION_2, kind::CLIENT_HELLO, payload)
        else {
            return Err(Count::IgnoredHello);
        };
        let mut paid = u32::try_from(size).unwrap_or(0);
        if !self.core.is_proven(env, path, &hello)? {
            return self.core.challenge(env, path, &mut paid);
        }
        if let Some(again) = self.core.repeat_hello(env, path, size) {
            return again;
        }
        let newcomer = Newcomer {
            name: hello.name,
            room: hello.room,
            ip: path.remote.ip(),
            door: Door::Hello(path),
            conn: None,
            ghost: at_endpoint,
        };
        if let Err(reason) = self.knock(env, &newcomer) {
            self.core
                .say_hello_rejected(env, path, Credit::Echo(&mut paid), reason);
        }
        Ok(())
    }
}

impl Core {
    /// Whether the hello carries the right cookie.
    fn is_proven(
        &mut self,
        env: &mut Env<'_>,
        path: Path,
        hello: &Hello<'_>,
    ) -> Result<bool, Count> {
        let cookies = self.cookies(env)?;
        Ok(hello.cookie != 0 && cookies.check(env.now, path.remote, hello.cookie))
    }

    fn cookies(&mut self, env: &mut Env<'_>) -> Result<&Cookies, Count> {
        if self.cookies.is_none() {
            self.cookies = Cookies::new(env.dice).ok();
        }
        self.cookies.as_ref().ok_or(Count::NoEntropy)
    }

    /// Answers with the cookie of the endpoint, and keeps nothing.
    fn challenge(&mut self, env: &mut Env<'_>, path: Path, paid: &mut u32) -> Result<(), Count> {
        if !self.challenges.allow(env.now, env.dice) {
            return Err(Count::ChallengesDropped);
        }
        let cookie = self.cookies(env)?.make(env.now, path.remote);
        let challenge = Payload::ConnectChallenge(cookie);
        say_outside(env, path, Credit::Echo(paid), &challenge);
        self.counters.add(Count::Challenges);
        Ok(())
    }

    /// What a proven hello from an endpoint with a session comes to, if it is no newcomer's: the
    /// same ServerHello again, which neither extends nor disturbs the session.
    fn repeat_hello(
        &mut self,
        env: &mut Env<'_>,
        path: Path,
        size: usize,
    ) -> Option<Result<(), Count>> {
        let key = self.engine.at(&path.remote)?;
        let is_ghost = self.is_ghost(env.now, key);
        let session = self.engine.get(key)?;
        if self.has_heir(session) || matches!(session.data.stage, Stage::Asked(_)) {
            return Some(Err(Count::IgnoredWaiting));
        }
        if is_ghost {
            return None;
        }
        let number = session.data.seat.number;
        let bound = self.bound(key)?;
        bound.proof.heard(env.now, size);
        bound.send_hello(env, number);
        Some(Ok(()))
    }

    /// Tells a proven endpoint that there is no session for it.
    pub(super) fn say_hello_rejected(
        &mut self,
        env: &mut Env<'_>,
        path: Path,
        credit: Credit<'_>,
        reason: Reject,
    ) {
        self.count_rejected(env, path.remote.ip(), reason);
        say_outside(env, path, credit, &Payload::HelloRejected(reason.code()));
    }
}

/// Sends a datagram that stands outside of any session's numbering.
fn say_outside(env: &mut Env<'_>, path: Path, credit: Credit<'_>, payload: &Payload<'_>) {
    let header = Header {
        kind: payload.kind(),
        sequence: 0,
        ack: NOTHING_RECEIVED,
        ack_bits: 0,
        session: Session::Public(PlayerToken(0)),
    };
    env.out.datagram(path, credit, |w| {
        header.write(w);
        payload.write(w);
    });
}
