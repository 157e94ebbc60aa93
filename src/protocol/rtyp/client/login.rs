//! Version 1's way in: a login over TCP; and, if it is to, another one on a second connection when
//! nothing is heard any more.

use std::io;
use std::net::SocketAddr;

use super::super::wire::{
    self, FRAME_HEAD_BYTES, Login as Request, Reason, Reject, SharedToken, ToClient, ToServer,
};
use super::notice::{End, Notice};
use super::session::{self, SILENCE_MS, Session};
use super::{Client, Door, Stage, folded};
use crate::engine::{Close, Conn, Env, Time};

/// From the first call to the server's answer: the connection has to be made, and the server may
/// take 4 s to ask its game.
const ANSWER_MS: u64 = 10_000;
/// Who heard nothing valid for so long logs in again.
const REJOIN_MS: u64 = 6_000;
/// One attempt to log in again has so long …
const REJOIN_ANSWER_MS: u64 = 6_000;
/// … and the next begins so long after its end.
const REJOIN_EVERY_MS: u64 = 2_000;

/// The connections of a client, and its logins.
#[derive(Debug)]
pub struct Login {
    rejoins: bool,
    /// The connection of the session, while it stands.
    line: Option<Line>,
    attempt: Attempt,
    /// What there is to know while it logs in again.
    again: Option<Again>,
}

/// A connection, and the beginning of a message that came on it.
#[derive(Debug)]
struct Line {
    conn: Conn,
    server: SocketAddr,
    partial: Vec<u8>,
}

/// A login that is under way.
#[derive(Debug)]
enum Attempt {
    /// None is.
    None,
    /// Its connection is being made.
    Connecting { give_up_at: Time },
    /// LoginRequest is sent.
    Asking { line: Line, give_up_at: Time },
    /// One has failed, and the next begins then.
    Resting { until: Time },
}

#[derive(Debug)]
struct Again {
    give_up_at: Time,
    /// The session's own connection is in the way: the server hears us, so it has the name.
    closes_first: bool,
    /// How the session ended meanwhile, if it has.
    lost: Option<End>,
}

impl Login {
    /// No login yet.
    pub fn new(rejoins: bool) -> Self {
        Self {
            rejoins,
            line: None,
            attempt: Attempt::Connecting {
                give_up_at: Time::NEVER,
            },
            again: None,
        }
    }

    /// The first call has come.
    pub fn begin(&mut self, now: Time) {
        let give_up_at = now + ANSWER_MS;
        self.attempt = Attempt::Connecting { give_up_at };
    }

    /// Whether it may log in again by itself.
    pub fn rejoins(&self) -> bool {
        self.rejoins
    }

    /// Whether a connection is being made, or to be made.
    pub fn is_connecting(&self) -> bool {
        matches!(self.attempt, Attempt::Connecting { .. })
    }

    /// Whether the server is to answer a login.
    pub fn is_asking(&self) -> bool {
        matches!(self.attempt, Attempt::Asking { .. })
    }

    /// When [`Client::tend_login`] is due, given the session if there is one.
    pub fn deadline(&self, session: Option<&Session>) -> Time {
        let attempt = match &self.attempt {
            Attempt::None => session.map_or(Time::NEVER, |session| self.rejoin_at(session)),
            Attempt::Connecting { give_up_at } | Attempt::Asking { give_up_at, .. } => *give_up_at,
            Attempt::Resting { until } => *until,
        };
        let again = self.again.as_ref();
        attempt.min(again.map_or(Time::NEVER, |again| again.give_up_at))
    }

    /// When it is to log in again, if nothing is heard until then.
    fn rejoin_at(&self, session: &Session) -> Time {
        match session.heard_at() {
            Some(heard_at) if self.rejoins && self.line.is_some() => heard_at + REJOIN_MS,
            _ => Time::NEVER,
        }
    }

    /// Gives the second login up if something valid was heard on the first.
    pub fn settle(&mut self, env: &mut Env<'_>, session: &Session) {
        if self.again.is_some() && env.now < self.rejoin_at(session) {
            self.again = None;
            if let Some(line) = self.take_asking() {
                env.out.close(line.conn, Close::Now);
            }
            self.attempt = Attempt::None;
        }
    }

    /// Closes whatever stands; behind a Logout, if the session's connection is to hear one.
    pub fn close(&mut self, env: &mut Env<'_>, says_so: bool) {
        if let Some(line) = self.take_asking() {
            env.out.close(line.conn, Close::Now);
        }
        self.attempt = Attempt::None;
        let Some(line) = self.line.take() else { return };
        if says_so {
            let reason = Reason::Left.code();
            let logout = ToServer::Logout { reason };
            env.out.stream(line.conn, |w| logout.write(w));
            env.out.close(line.conn, Close::Drain);
        } else {
            env.out.close(line.conn, Close::Now);
        }
    }

    /// The connection of this number, if it is ours.
    fn line(&mut self, conn: Conn) -> Option<&mut Line> {
        let asking = match &mut self.attempt {
            Attempt::Asking { line, .. } => Some(line),
            _ => None,
        };
        let ours = asking.into_iter().chain(&mut self.line);
        ours.into_iter().find(|line| line.conn == conn)
    }

    /// Takes the connection on which the login was asked for out of its attempt.
    fn take_asking(&mut self) -> Option<Line> {
        match std::mem::replace(&mut self.attempt, Attempt::None) {
            Attempt::Asking { line, .. } => Some(line),
            other => {
                self.attempt = other;
                None
            }
        }
    }
}

/// What comes over TCP.
impl Client {
    pub(super) fn opened(&mut self, env: &mut Env<'_>, conn: Conn, peer: SocketAddr) {
        let is_wanted = self.wants_connection();
        let Door::Login(Login { attempt, .. }) = &mut self.door else {
            return env.out.close(conn, Close::Now);
        };
        let Attempt::Connecting { give_up_at } = *attempt else {
            return env.out.close(conn, Close::Now);
        };
        if !is_wanted {
            return env.out.close(conn, Close::Now);
        }
        let line = Line {
            conn,
            server: folded(peer),
            partial: Vec::new(),
        };
        *attempt = Attempt::Asking { line, give_up_at };
        let name = self.name.as_bytes();
        let request = ToServer::LoginRequest(Request::V1 { name });
        env.out.stream(conn, |w| request.write(w));
    }

    /// Takes every whole message, keeps the beginning of one.
    pub(super) fn stream(&mut self, env: &mut Env<'_>, conn: Conn, bytes: &[u8]) {
        let Some(line) = self.line(conn) else { return };
        let mut held = std::mem::take(&mut line.partial);
        held.extend_from_slice(bytes);
        let mut rest = &held[..];
        // Each message may have closed the connection.
        while let Some(line) = self.line(conn) {
            match wire::frame(rest) {
                Ok(Some(body)) => {
                    rest = &rest[FRAME_HEAD_BYTES + body.len()..];
                    self.message(env, conn, body);
                }
                Ok(None) => {
                    line.partial = rest.to_vec();
                    return;
                }
                Err(_) => self.malformed(env, conn),
            }
        }
    }

    fn line(&mut self, conn: Conn) -> Option<&mut Line> {
        match &mut self.door {
            Door::Login(login) => login.line(conn),
            Door::Hello(_) => None,
        }
    }

    /// Whether this is the connection on which a login was asked for.
    fn is_asking_on(&self, conn: Conn) -> bool {
        matches!(&self.door, Door::Login(Login { attempt: Attempt::Asking { line, .. }, .. }) if line.conn == conn)
    }

    fn message(&mut self, env: &mut Env<'_>, conn: Conn, body: &[u8]) {
        match (ToClient::read(body), self.is_asking_on(conn)) {
            (Ok(ToClient::LoginRejected { reason }), true) => self.rejected(env, reason),
            (
                Ok(ToClient::LoginAccepted {
                    session,
                    player,
                    udp_port,
                }),
                true,
            ) => self.accepted(env, SharedToken(session), player, udp_port),
            (Ok(ToClient::Logout { reason }), false) => {
                self.dismissed(env, Reason::of_server_logout(reason));
            }
            _ => self.malformed(env, conn),
        }
    }

    /// The session exists: the first Connect leaves at once. An older one is left behind without
    /// a word, which might end the new one.
    fn accepted(&mut self, env: &mut Env<'_>, token: SharedToken, player: u8, udp_port: u16) {
        let Door::Login(login) = &mut self.door else {
            return;
        };
        let Some(line) = login.take_asking() else {
            return;
        };
        login.again = None;
        let (conn, mut server) = (line.conn, line.server);
        if let Some(old) = login.line.replace(line) {
            env.out.close(old.conn, Close::Now);
        }
        server.set_port(udp_port);
        let path = session::path_to(server, socket_of(conn));
        let session = Session::accepted(env, path, token, player);
        self.stage = Stage::Accepted(Box::new(session));
        self.report.notices.push(Notice::Accepted { player });
    }

    fn rejected(&mut self, env: &mut Env<'_>, code: u8) {
        let Door::Login(login) = &mut self.door else {
            return;
        };
        if let Some(line) = login.take_asking() {
            env.out.close(line.conn, Close::Now);
        }
        let reason = Reject::from_code(code);
        let passes = matches!(reason, Some(Reject::NameTaken | Reject::TooMany));
        match &mut login.again {
            Some(again) if again.lost.is_none() || passes => {
                again.closes_first |= reason == Some(Reject::NameTaken);
                self.attempt_failed(End::Rejected(code));
            }
            _ => {
                self.over(End::Rejected(code));
            }
        }
    }

    /// The server's Logout.
    fn dismissed(&mut self, env: &mut Env<'_>, reason: Reason) {
        let is_logging_in = matches!(&self.door, Door::Login(login) if login.again.is_some());
        if is_logging_in && reason == Reason::TimedOut {
            // What ends a ghost in favour of its owner; or it was too late for us.
            self.lose(env, End::Logout(reason));
        } else {
            self.end(env, End::Logout(reason));
        }
    }

    fn malformed(&mut self, env: &mut Env<'_>, conn: Conn) {
        let Door::Login(login) = &mut self.door else {
            return;
        };
        if login.again.is_some() && self.is_asking_on(conn) {
            env.out.close(conn, Close::Now);
            self.attempt_failed(End::Malformed);
        } else {
            self.end(env, End::Malformed);
        }
    }

    /// A connection is over, or could not be made.
    pub(super) fn closed(&mut self, conn: Conn) {
        let Door::Login(login) = &mut self.door else {
            return;
        };
        if login.line.take_if(|line| line.conn == conn).is_some() {
            match &mut login.again {
                // Who ends a ghost closes its connection; the answer may be on its way.
                Some(again) if matches!(login.attempt, Attempt::Asking { .. }) => {
                    again.lost = Some(End::Closed);
                    self.stage = Stage::Entering;
                }
                _ => {
                    self.over(End::Closed);
                }
            }
        } else if self.is_asking_on(conn) {
            self.attempt_failed(End::Closed);
        } else {
            self.unconnected(io::ErrorKind::ConnectionRefused);
        }
    }
}

/// Logging in again.
impl Client {
    /// Does what is due, or says why all is over.
    pub(super) fn tend_login(&mut self, env: &mut Env<'_>) -> Option<End> {
        let Door::Login(login) = &mut self.door else {
            return None;
        };
        if let Some(again) = &login.again
            && again.give_up_at <= env.now
        {
            return Some(again.lost.unwrap_or(End::Silent));
        }
        let session = match &self.stage {
            Stage::Accepted(session) => Some(session),
            _ => None,
        };
        if env.now < login.deadline(session.map(|session| &**session)) {
            return None;
        }
        match &login.attempt {
            Attempt::None => {
                let heard_at = session.and_then(|session| session.heard_at());
                login.again = Some(Again {
                    give_up_at: heard_at.unwrap_or(env.now) + SILENCE_MS,
                    closes_first: false,
                    lost: None,
                });
                self.attempt(env);
            }
            Attempt::Resting { .. } => self.attempt(env),
            Attempt::Connecting { .. } => {
                self.attempt_failed(End::Unconnected(io::ErrorKind::TimedOut));
            }
            Attempt::Asking { line, .. } => {
                env.out.close(line.conn, Close::Now);
                self.attempt_failed(End::NoAnswer);
            }
        }
        None
    }

    /// Begins a login in place of a session from which nothing is heard.
    fn attempt(&mut self, env: &mut Env<'_>) {
        let Door::Login(login) = &mut self.door else {
            return;
        };
        login.attempt = Attempt::Connecting {
            give_up_at: env.now + REJOIN_ANSWER_MS,
        };
        if let Some(again) = &mut login.again
            && std::mem::take(&mut again.closes_first)
        {
            self.lose(env, End::Rejected(Reject::NameTaken.code()));
        }
    }

    /// The session is over, but not the wish for one.
    fn lose(&mut self, env: &mut Env<'_>, end: End) {
        let Door::Login(login) = &mut self.door else {
            return;
        };
        if let Some(line) = login.line.take() {
            env.out.close(line.conn, Close::Now);
        }
        if let Some(again) = &mut login.again {
            again.lost.get_or_insert(end);
        }
        self.stage = Stage::Entering;
    }

    /// A login has come to nothing, and its connection is closed.
    pub(super) fn attempt_failed(&mut self, end: End) {
        let Door::Login(login) = &mut self.door else {
            return;
        };
        if login.again.is_none() {
            self.over(end);
        } else {
            let until = self.now + REJOIN_EVERY_MS;
            login.attempt = Attempt::Resting { until };
        }
    }
}

/// The number of the UDP socket that goes with a connection.
fn socket_of(conn: Conn) -> u8 {
    u8::try_from(conn.slot).unwrap_or(0)
}
