//! The client: logs in over TCP, binds its UDP endpoint, plays and leaves; without sockets.
//!
//! A [`Client`] is a [`Machine`] like the service at the other end, and talks through the same
//! channel. Whoever drives it gives it what arrives, performs the effects and reads
//! [`Client::notices`] after each call; the [driver](crate::driver) does that over real sockets.
//!
//! ```text
//! Connecting -- TCP stands --> LoggingIn -- LoginAccepted --> Binding -- Accept --> Playing
//!      `------------------------------+---------------------------+----------------> Ended
//! ```

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};

use super::wire::{
    self, CUSTOM_FROM_CLIENT_MAX, FRAME_HEAD_BYTES, FromClient, Login, PAYLOAD_MAX, Reason,
    TEXT_MAX, ToClient, ToServer, kind,
};
use crate::engine::{Close, Conn, Env, Input, Machine, Path, Time};

mod counters;
mod notice;
mod session;

pub use notice::{End, Notice};

use counters::Counters;
use notice::Notices;
use session::Session;

/// From the first call to the server's answer: the connection has to be made, and the server may
/// take 4 s to ask its game.
const ANSWER_MS: u64 = 10_000;

/// A player's side of a session.
#[derive(Debug)]
pub struct Client {
    name: Box<str>,
    stage: Stage,
    /// The time of the latest call.
    now: Time,
    /// The beginning of a TCP message.
    partial: Vec<u8>,
    report: Report,
}

/// What it has to tell.
#[derive(Debug, Default)]
struct Report {
    /// To its user, about the latest call.
    notices: Notices,
    /// To whoever asks.
    counters: Counters,
}

/// How far it has come, and what exists only there.
#[derive(Debug)]
enum Stage {
    /// The connection is being made; no time is set before the first call.
    Connecting { give_up_at: Option<Time> },
    /// LoginRequest is sent.
    LoggingIn {
        conn: Conn,
        server: SocketAddr,
        give_up_at: Time,
    },
    /// LoginAccepted has come: binding, then playing.
    Accepted(Box<Session>),
    /// All is over.
    Ended(End),
}

/// How far a client has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// The TCP connection is being made.
    Connecting,
    /// The server is to answer the login.
    LoggingIn,
    /// The login was accepted, and the UDP endpoint is being bound.
    Binding,
    /// The game runs over UDP.
    Playing,
    /// All is over.
    Ended(End),
}

/// The name is not 1 to 16 bytes without control characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadName;

impl fmt::Display for BadName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        wire::Reject::BadName.fmt(f)
    }
}

impl std::error::Error for BadName {}

/// Why something was not sent. Nothing ends by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendError {
    /// The client does not play: not yet, or no more.
    NotPlaying,
    /// It does not fit: at most this many bytes do.
    TooLong {
        /// Bytes.
        max: usize,
    },
    /// The text is empty or has control characters.
    BadText,
    /// 1024 events or 512 KiB of them wait already; there is room again when the server has
    /// acknowledged some.
    Full,
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotPlaying => f.write_str("not in the game"),
            Self::TooLong { max } => write!(f, "too long: at most {max} bytes fit"),
            Self::BadText => f.write_str("the text is empty or has control characters"),
            Self::Full => f.write_str("too much waits to be sent"),
        }
    }
}

impl std::error::Error for SendError {}

/// What a game does with it.
impl Client {
    /// A client that will log in with this name, once it is driven.
    ///
    /// # Errors
    /// [`BadName`] if the name is not 1 to 16 bytes of text without control characters.
    pub fn new(name: &str) -> Result<Self, BadName> {
        let name = wire::name(name.as_bytes()).ok_or(BadName)?;
        Ok(Self {
            name: name.into(),
            stage: Stage::Connecting { give_up_at: None },
            now: Time::ZERO,
            partial: Vec::new(),
            report: Report::default(),
        })
    }

    /// How far it has come.
    pub fn state(&self) -> State {
        match &self.stage {
            Stage::Connecting { .. } => State::Connecting,
            Stage::LoggingIn { .. } => State::LoggingIn,
            Stage::Accepted(session) if session.is_playing() => State::Playing,
            Stage::Accepted(_) => State::Binding,
            Stage::Ended(end) => State::Ended(*end),
        }
    }

    /// The own number in the game, 0 to 3, while the session exists.
    pub fn player(&self) -> Option<u8> {
        self.session().map(Session::player)
    }

    /// Whether another player of this number is in the game, as far as the events have told.
    pub fn is_present(&self, player: u8) -> bool {
        self.session()
            .is_some_and(|session| session.is_present(player))
    }

    /// The smoothed round trip to the server in milliseconds, once one was measured.
    pub fn rtt_ms(&self) -> Option<u64> {
        self.session()?.rtt_ms()
    }

    /// Whether the server has acknowledged every event, so that none is lost by leaving now.
    pub fn is_all_acknowledged(&self) -> bool {
        self.session().is_none_or(Session::is_all_acknowledged)
    }

    /// What the latest [`Machine::handle`], [`Client::logout`] or [`Client::unconnected`] brought,
    /// in order. The next one of them forgets it.
    pub fn notices(&self) -> impl Iterator<Item = Notice<'_>> {
        self.report.notices.iter()
    }

    /// Sends the game's own bytes, unreliable and unordered, at once.
    ///
    /// # Errors
    /// [`SendError::NotPlaying`]; [`SendError::TooLong`] above 1182 bytes. (The relay passes on
    /// at most 1181.)
    pub fn send(&mut self, env: &mut Env<'_>, bytes: &[u8]) -> Result<(), SendError> {
        self.now = env.now;
        let session = self.playing()?;
        fits(bytes, PAYLOAD_MAX)?;
        session.send(env, kind::DATA, |w| w.bytes(bytes));
        Ok(())
    }

    /// Queues a line of chat, reliable; it leaves with the next [`Input::Tick`], due at once.
    ///
    /// # Errors
    /// [`SendError::NotPlaying`]; [`SendError::TooLong`] above 200 bytes; [`SendError::BadText`];
    /// [`SendError::Full`].
    pub fn chat(&mut self, text: &str) -> Result<(), SendError> {
        let session = self.playing()?;
        fits(text.as_bytes(), TEXT_MAX)?;
        let text = wire::text(text.as_bytes()).ok_or(SendError::BadText)?;
        session.push(FromClient::Chat(text))
    }

    /// Queues the game's own event, reliable and in order; it leaves as a chat does.
    ///
    /// # Errors
    /// [`SendError::NotPlaying`]; [`SendError::TooLong`] above 1023 bytes; [`SendError::Full`].
    pub fn custom(&mut self, body: &[u8]) -> Result<(), SendError> {
        let session = self.playing()?;
        fits(body, CUSTOM_FROM_CLIENT_MAX)?;
        session.push(FromClient::Custom(body))
    }

    /// Asks for the game to start; whether it does is the game's word.
    ///
    /// # Errors
    /// [`SendError::NotPlaying`]; [`SendError::Full`].
    pub fn start(&mut self) -> Result<(), SendError> {
        self.playing()?.push(FromClient::Start)
    }

    /// Leaves, at whatever stage: says Logout if logged in, and closes. Events that were not
    /// acknowledged may be lost. It has ended when this returns; ending twice does nothing.
    pub fn logout(&mut self, env: &mut Env<'_>) {
        if !matches!(self.stage, Stage::Ended(_)) {
            self.report.notices.clear();
            self.now = env.now;
            self.end(env, End::Left);
        }
    }

    /// Keeps the session alive from within a long load, when nothing else drives the client:
    /// sends a Ping if nothing was sent for 1 s (a Connect if one is due, before the Accept).
    /// Cheap, and takes nothing in; to be called as often as is convenient, at least every 5 s.
    pub fn keep_alive(&mut self, env: &mut Env<'_>) {
        self.now = env.now;
        if let Stage::Accepted(session) = &mut self.stage {
            session.keep_alive(env);
        }
    }

    /// The driver could not make the connection.
    pub fn unconnected(&mut self, kind: io::ErrorKind) {
        if matches!(self.stage, Stage::Connecting { .. }) {
            self.report.notices.clear();
            self.over(End::Unconnected(kind));
        }
    }

    fn session(&self) -> Option<&Session> {
        match &self.stage {
            Stage::Accepted(session) => Some(session),
            _ => None,
        }
    }

    fn playing(&mut self) -> Result<&mut Session, SendError> {
        match &mut self.stage {
            Stage::Accepted(session) if session.is_playing() => Ok(session),
            _ => Err(SendError::NotPlaying),
        }
    }
}

/// An IPv4-mapped address as IPv4, as datagrams name their source.
fn folded(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        ip @ IpAddr::V4(_) => SocketAddr::new(ip, address.port()),
        IpAddr::V6(_) => address,
    }
}

fn fits(bytes: &[u8], max: usize) -> Result<(), SendError> {
    match bytes.len() <= max {
        true => Ok(()),
        false => Err(SendError::TooLong { max }),
    }
}

impl Machine for Client {
    fn handle(&mut self, env: &mut Env<'_>, input: Input<'_>) {
        self.report.notices.clear();
        self.now = env.now;
        if let Stage::Connecting { give_up_at } = &mut self.stage {
            give_up_at.get_or_insert(env.now + ANSWER_MS);
        }
        match input {
            Input::Opened { conn, peer } => self.opened(env, conn, peer),
            Input::Stream { conn, bytes } if self.conn() == Some(conn) => self.stream(env, bytes),
            Input::Closed { conn } => self.closed(conn),
            Input::Datagram { path, bytes } => self.datagram(env, path, bytes),
            Input::Tick => self.tick(env),
            Input::Stop => self.end(env, End::Left),
            // A stream that is not ours; a command for players, of which a client has none.
            Input::Stream { .. } | Input::Command(_) => {}
        }
        if let Stage::Accepted(session) = &mut self.stage {
            session.settle(env);
        }
    }

    fn deadline(&self) -> Option<Time> {
        match &self.stage {
            Stage::Connecting { give_up_at } => Some(give_up_at.unwrap_or(Time::ZERO)),
            Stage::LoggingIn { give_up_at, .. } => Some(*give_up_at),
            Stage::Accepted(session) => Some(session.deadline(self.now)),
            Stage::Ended(_) => None,
        }
    }

    fn stats(&self) -> Vec<(&'static str, u64)> {
        self.report.counters.named().collect()
    }
}

/// The TCP connection.
impl Client {
    fn opened(&mut self, env: &mut Env<'_>, conn: Conn, peer: SocketAddr) {
        let Stage::Connecting { give_up_at } = self.stage else {
            return env.out.close(conn, Close::Now);
        };
        self.stage = Stage::LoggingIn {
            conn,
            server: folded(peer),
            give_up_at: give_up_at.unwrap_or(env.now + ANSWER_MS),
        };
        let name = self.name.as_bytes();
        let request = ToServer::LoginRequest(Login::V1 { name });
        env.out.stream(conn, |w| request.write(w));
    }

    /// Takes every whole message, keeps the beginning of one.
    fn stream(&mut self, env: &mut Env<'_>, bytes: &[u8]) {
        let mut held = std::mem::take(&mut self.partial);
        held.extend_from_slice(bytes);
        let mut rest = &held[..];
        while !matches!(self.stage, Stage::Ended(_)) {
            match wire::frame(rest) {
                Ok(Some(body)) => {
                    rest = &rest[FRAME_HEAD_BYTES + body.len()..];
                    self.message(env, body);
                }
                Ok(None) => {
                    self.partial = rest.to_vec();
                    return;
                }
                Err(_) => self.end(env, End::Malformed),
            }
        }
    }

    fn message(&mut self, env: &mut Env<'_>, body: &[u8]) {
        match (ToClient::read(body), &self.stage) {
            (Ok(ToClient::LoginRejected { reason }), Stage::LoggingIn { .. }) => {
                self.end(env, End::Rejected(reason));
            }
            (Ok(ToClient::Logout { reason }), Stage::Accepted(_)) => {
                self.end(env, End::Logout(Reason::of_server_logout(reason)));
            }
            (Ok(accepted @ ToClient::LoginAccepted { .. }), Stage::LoggingIn { .. }) => {
                self.accepted(env, accepted);
            }
            _ => self.end(env, End::Malformed),
        }
    }

    /// The session exists: the first Connect leaves at once.
    fn accepted(&mut self, env: &mut Env<'_>, accepted: ToClient) {
        let ToClient::LoginAccepted {
            session,
            player,
            udp_port,
        } = accepted
        else {
            return;
        };
        let Stage::LoggingIn { conn, server, .. } = self.stage else {
            return;
        };
        let mut endpoint = server;
        endpoint.set_port(udp_port);
        let session = Session::new(env, conn, endpoint, session, player);
        self.stage = Stage::Accepted(Box::new(session));
        self.report.notices.push(Notice::Accepted { player });
    }

    fn closed(&mut self, conn: Conn) {
        if matches!(self.stage, Stage::Connecting { .. }) {
            self.over(End::Unconnected(io::ErrorKind::ConnectionRefused));
        } else if self.conn() == Some(conn) {
            self.over(End::Closed);
        }
    }

    /// The connection, while it is ours.
    fn conn(&self) -> Option<Conn> {
        match &self.stage {
            Stage::Connecting { .. } | Stage::Ended(_) => None,
            Stage::LoggingIn { conn, .. } => Some(*conn),
            Stage::Accepted(session) => Some(session.conn()),
        }
    }
}

/// Datagrams, time, the end.
impl Client {
    fn datagram(&mut self, env: &mut Env<'_>, path: Path, bytes: &[u8]) {
        let heard = match &mut self.stage {
            Stage::Accepted(session) => session.heard(env, path, bytes, &mut self.report),
            _ => Err(counters::Count::IgnoredUnbound),
        };
        match heard {
            Ok(count) | Err(count) => self.report.counters.add(count),
        }
    }

    fn tick(&mut self, env: &mut Env<'_>) {
        let over = match &mut self.stage {
            Stage::Connecting { give_up_at } => give_up_at
                .is_some_and(|at| at <= env.now)
                .then_some(End::Unconnected(io::ErrorKind::TimedOut)),
            Stage::LoggingIn { give_up_at, .. } => {
                (*give_up_at <= env.now).then_some(End::NoAnswer)
            }
            Stage::Accepted(session) => session.tick(env),
            Stage::Ended(_) => None,
        };
        if let Some(end) = over {
            self.end(env, end);
        }
    }

    /// Ends the session from this side. Who was logged in and leaves by itself says Logout.
    fn end(&mut self, env: &mut Env<'_>, end: End) {
        if let Some(conn) = self.conn() {
            let leaves = matches!(end, End::Left | End::Unreachable | End::Silent);
            if leaves && matches!(self.stage, Stage::Accepted(_)) {
                let reason = Reason::Left.code();
                let logout = ToServer::Logout { reason };
                env.out.stream(conn, |w| logout.write(w));
                env.out.close(conn, Close::Drain);
            } else {
                env.out.close(conn, Close::Now);
            }
        }
        self.over(end);
    }

    /// The session is over, and its user is told so, once.
    fn over(&mut self, end: End) {
        if !matches!(self.stage, Stage::Ended(_)) {
            self.stage = Stage::Ended(end);
            self.partial = Vec::new();
            self.report.notices.push(Notice::Ended(end));
        }
    }
}
