//! Version 2's way in: hello over UDP, again with the cookie that the server gives, until it
//! gives a session.

use std::net::SocketAddr;

use super::super::wire::{
    self, Header, NOTHING_RECEIVED, Payload, PlayerToken, Reason, SessionToken, VERSION_2, kind,
};
use super::counters::Count;
use super::notice::{End, Notice};
use super::session::{self, Session, Tokens};
use super::{Client, Door, Stage};
use crate::engine::{Credit, Env, Path, Time};

/// A hello is said again after this time …
const HELLO_EVERY_MS: u64 = 250;
/// … for so long.
const HELLO_MS: u64 = 5_000;
/// A session none of whose Pings is answered for so long may be none of the server's any more.
const UNANSWERED_MS: u64 = 3_000;

/// The hellos of a client.
#[derive(Debug)]
pub struct Hello {
    path: Path,
    room: Box<str>,
    /// The newest that came; 0 before.
    cookie: u64,
    phase: Phase,
}

#[derive(Debug)]
enum Phase {
    /// Nothing is to be said: it has not begun, or a Ping of the session was answered.
    Silent,
    /// A ServerHello has come, and a Ping of its session is to be answered by then.
    Unanswered { until: Time },
    /// No ServerHello has come since it began.
    Saying {
        next_at: Time,
        give_up_at: Time,
        /// The server is there: it has sent a cookie, or once a session.
        is_heard: bool,
        /// A session of somebody before us was told to end.
        has_ended_foreign: bool,
    },
}

impl Hello {
    /// Hellos to this endpoint, to enter this game or, if it is empty, any.
    pub fn new(server: SocketAddr, room: &str) -> Self {
        Self {
            path: session::path_to(server, 0),
            room: room.into(),
            cookie: 0,
            phase: Phase::Silent,
        }
    }

    /// The server's endpoint.
    pub fn server(&self) -> SocketAddr {
        self.path.remote
    }

    /// Says hello from now on. `is_heard` says whether the server has been there before.
    pub fn begin(&mut self, env: &mut Env<'_>, name: &str, is_heard: bool) {
        self.phase = Phase::Saying {
            next_at: env.now,
            give_up_at: env.now + HELLO_MS,
            is_heard,
            has_ended_foreign: false,
        };
        self.say_if_due(env, name);
    }

    /// When [`Hello::tick`] is due.
    pub fn deadline(&self) -> Time {
        match self.phase {
            Phase::Silent => Time::NEVER,
            Phase::Unanswered { until } => until,
            Phase::Saying {
                next_at,
                give_up_at,
                ..
            } => next_at.min(give_up_at),
        }
    }

    /// Says what is due, or why it is all in vain.
    pub fn tick(&mut self, env: &mut Env<'_>, name: &str) -> Option<End> {
        match self.phase {
            Phase::Unanswered { until } if until <= env.now => self.begin(env, name, true),
            Phase::Saying {
                give_up_at,
                is_heard,
                ..
            } if give_up_at <= env.now => {
                return Some(match is_heard {
                    true => End::NoAnswer,
                    false => End::Unreachable,
                });
            }
            _ => self.say_if_due(env, name),
        }
        None
    }

    /// Says hello, if it is time to.
    pub fn say_if_due(&mut self, env: &mut Env<'_>, name: &str) {
        let Phase::Saying {
            next_at,
            give_up_at,
            ..
        } = &mut self.phase
        else {
            return;
        };
        if env.now < *next_at || *give_up_at <= env.now {
            return;
        }
        *next_at = env.now + HELLO_EVERY_MS;
        let hello = Payload::ClientHello(wire::Hello {
            cookie: self.cookie,
            room: self.room.as_bytes(),
            name: name.as_bytes(),
        });
        self.say(env, SessionToken(0), 0, NOTHING_RECEIVED, &hello);
    }

    /// An answered Ping says that the session is one of the server's.
    pub fn settle(&mut self, session: &Session) {
        if session.is_answered() {
            self.phase = Phase::Silent;
        }
    }

    /// A cookie came. The first is said back at once, later ones when a hello is due: whoever
    /// forges them draws no more out of us than what is sent anyway.
    fn challenged(&mut self, env: &mut Env<'_>, name: &str, cookie: u64) {
        self.cookie = cookie;
        if let Phase::Saying {
            next_at, is_heard, ..
        } = &mut self.phase
            && !std::mem::replace(is_heard, true)
        {
            *next_at = env.now;
            self.say_if_due(env, name);
        }
    }

    /// The server has the session of somebody before us at this endpoint: it is ended, and hello
    /// said anew; but that only once, for the reason above.
    fn end_foreign(&mut self, env: &mut Env<'_>, name: &str, header: &Header, token: SessionToken) {
        let bye = Payload::ClientBye(Reason::Left.code());
        let sequence = header.ack.wrapping_add(1);
        self.say(env, token, sequence, header.sequence, &bye);
        if let Phase::Saying {
            next_at,
            give_up_at,
            has_ended_foreign,
            ..
        } = &mut self.phase
            && !std::mem::replace(has_ended_foreign, true)
        {
            (*next_at, *give_up_at) = (env.now, env.now + HELLO_MS);
            self.say_if_due(env, name);
        }
    }

    /// Sends a datagram that is none of a session of ours.
    fn say(
        &self,
        env: &mut Env<'_>,
        token: SessionToken,
        sequence: u16,
        ack: u16,
        payload: &Payload<'_>,
    ) {
        let header = Header {
            kind: payload.kind(),
            sequence,
            ack,
            ack_bits: 0,
            session: wire::Session::Secret(token),
        };
        // The server is where our user says that it is.
        env.out.datagram(self.path, Credit::Proven, |w| {
            header.write(w);
            payload.write(w);
        });
    }
}

/// What comes while hello is said.
impl Client {
    /// Takes what answers a hello: a cookie, a session, or a no. `None` if it is nothing of the
    /// kind, or no hello is being said.
    pub(super) fn greeted(
        &mut self,
        env: &mut Env<'_>,
        header: &Header,
        payload: &[u8],
    ) -> Option<Result<Count, Count>> {
        let Door::Hello(hello) = &self.door else {
            return None;
        };
        if !matches!(hello.phase, Phase::Saying { .. }) {
            return None;
        }
        let from = match header.session {
            wire::Session::Public(token) => token,
            wire::Session::Shared(_) | wire::Session::Secret(_) => return None,
        };
        let is_ours = self.session().is_some_and(|session| session.is_from(from));
        match header.kind {
            kind::CONNECT_CHALLENGE | kind::HELLO_REJECTED if from != PlayerToken(0) => {
                Some(Err(Count::IgnoredWrongToken))
            }
            kind::SERVER_HELLO if is_ours => Some(self.greeted_again(env, header, payload)),
            kind::CONNECT_CHALLENGE | kind::HELLO_REJECTED | kind::SERVER_HELLO => {
                Some(self.answered(env, header, from, payload))
            }
            _ => None,
        }
    }

    fn answered(
        &mut self,
        env: &mut Env<'_>,
        header: &Header,
        from: PlayerToken,
        payload: &[u8],
    ) -> Result<Count, Count> {
        let Door::Hello(hello) = &mut self.door else {
            return Err(Count::IgnoredUnbound);
        };
        match Payload::read(VERSION_2, header.kind, payload) {
            Ok(Payload::ConnectChallenge(cookie)) => hello.challenged(env, &self.name, cookie),
            Ok(Payload::HelloRejected(reason)) => self.end(env, End::Rejected(reason)),
            Ok(Payload::ServerHello(token, player))
                if token != SessionToken(0) && from != PlayerToken(0) =>
            {
                if (header.ack, header.ack_bits) == (NOTHING_RECEIVED, 0) {
                    self.admitted(env, header, Tokens { token, from }, player);
                } else {
                    hello.end_foreign(env, &self.name, header, token);
                }
            }
            _ => return Err(Count::IgnoredMalformed),
        }
        Ok(Count::Received)
    }

    /// There is a session for us: it takes the place of one that the server has forgotten.
    fn admitted(&mut self, env: &mut Env<'_>, header: &Header, tokens: Tokens, player: u8) {
        let Door::Hello(hello) = &mut self.door else {
            return;
        };
        hello.wait_for_answer(env.now);
        let session = Session::greeted(env, hello.path, tokens, player, header.sequence);
        self.stage = Stage::Accepted(Box::new(session));
        self.report.notices.push(Notice::Accepted { player });
        self.report.notices.push(Notice::Joined);
    }

    /// The server has our session still, and its numbering continues.
    fn greeted_again(
        &mut self,
        env: &mut Env<'_>,
        header: &Header,
        payload: &[u8],
    ) -> Result<Count, Count> {
        let (Stage::Accepted(session), Door::Hello(hello)) = (&mut self.stage, &mut self.door)
        else {
            return Err(Count::IgnoredUnbound);
        };
        let heard = session.heard(env, header, payload, &mut self.report)?;
        hello.wait_for_answer(env.now);
        Ok(heard)
    }
}

/// What ends a session while hello is said again.
impl Client {
    /// The server's ServerBye.
    pub(super) fn dismissed_by_bye(&mut self, env: &mut Env<'_>, reason: Reason) {
        let is_saying =
            matches!(&self.door, Door::Hello(hello) if matches!(hello.phase, Phase::Saying { .. }));
        if is_saying && reason == Reason::TimedOut {
            // It heard nothing of us, and ends a ghost in favour of the hello that is on its way.
            self.stage = Stage::Entering;
        } else {
            self.end(env, End::Logout(reason));
        }
    }
}

impl Hello {
    fn wait_for_answer(&mut self, now: Time) {
        self.phase = Phase::Unanswered {
            until: now + UNANSWERED_MS,
        };
    }
}
