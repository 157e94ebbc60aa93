//! The client: gets in, plays and leaves; without sockets.
//!
//! A [`Client`] is a [`Machine`] like the service at the other end, and talks through the same
//! channel. Whoever drives it gives it what arrives, performs the effects and reads
//! [`Client::notices`] after each call; the [driver](crate::driver) does that over real sockets.
//!
//! The versions differ in their door: version 1 logs in over TCP and binds a UDP endpoint
//! (`login`), version 2 says hello over UDP alone (`hello`). Behind either is the same `session`.
//!
//! ```text
//! v1: Connecting -- TCP stands --> LoggingIn -- LoginAccepted --> Binding -- Accept --> Playing
//! v2:                              LoggingIn ------------------ ServerHello ----------> Playing
//! ```
//!
//! Whatever its state, it may have Ended next.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};

use super::wire::{self, CUSTOM_FROM_CLIENT_MAX, FromClient, Header, HeaderError, TEXT_MAX, kind};
use crate::engine::{Env, Input, Machine, Path, Time, source};

mod counters;
mod farewell;
mod hello;
mod login;
mod notice;
mod session;

pub use notice::{End, Notice};

use counters::{Count, Counters};
use farewell::Farewell;
use hello::Hello;
use login::Login;
use notice::Notices;
use session::Session;

/// The longest name of a game, in bytes.
const ROOM_MAX: usize = 16;

/// A player's side of a session.
#[derive(Debug)]
pub struct Client {
    name: Box<str>,
    door: Door,
    stage: Stage,
    /// The time of the latest call.
    now: Time,
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

/// How it gets in.
#[derive(Debug)]
enum Door {
    /// Version 1.
    Login(Login),
    /// Version 2.
    Hello(Hello),
}

/// How far it has come, and what exists only there.
#[derive(Debug)]
enum Stage {
    /// It was never called.
    Fresh,
    /// At the door.
    Entering,
    /// It has a session: it binds its endpoint, then plays.
    Accepted(Box<Session>),
    /// All is over, but for what is still to be said.
    Ended(End, Option<Farewell>),
}

/// How far a client has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// The TCP connection is being made.
    Connecting,
    /// The server is to answer the login or the hello.
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

/// What no hello can say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadHello {
    /// The name is not 1 to 16 bytes without control characters.
    Name,
    /// The name of the game is longer than 16 bytes.
    Room,
}

impl fmt::Display for BadHello {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name => BadName.fmt(f),
            Self::Room => f.write_str("the name of the game must be at most 16 bytes"),
        }
    }
}

impl std::error::Error for BadHello {}

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

/// How a client comes to be.
impl Client {
    /// A client of version 1 that will log in with this name, once it is driven and has a
    /// connection ([`Client::wants_connection`]). It ends when nothing is heard for 30 s.
    ///
    /// # Errors
    /// [`BadName`] if the name is not 1 to 16 bytes of text without control characters.
    pub fn new(name: &str) -> Result<Self, BadName> {
        Self::at(Door::Login(Login::new(false)), name)
    }

    /// One that logs in again by itself when it has heard nothing for 6 s, as when its router has
    /// moved it: in a session of its own then, which [`Notice::Accepted`] begins.
    ///
    /// # Errors
    /// As [`Client::new`].
    pub fn rejoining(name: &str) -> Result<Self, BadName> {
        Self::at(Door::Login(Login::new(true)), name)
    }

    /// A client of version 2 that will say hello to this endpoint with this name, once it is
    /// driven. `room` names one game of the server's, or is empty: any.
    ///
    /// # Errors
    /// [`BadHello::Name`] as [`Client::new`]; [`BadHello::Room`] above 16 bytes.
    pub fn v2(server: SocketAddr, name: &str, room: &str) -> Result<Self, BadHello> {
        if room.len() > ROOM_MAX {
            return Err(BadHello::Room);
        }
        let hello = Hello::new(folded(server), room);
        Self::at(Door::Hello(hello), name).map_err(|BadName| BadHello::Name)
    }

    fn at(door: Door, name: &str) -> Result<Self, BadName> {
        let name = wire::name(name.as_bytes()).ok_or(BadName)?;
        Ok(Self {
            name: name.into(),
            door,
            stage: Stage::Fresh,
            now: Time::ZERO,
            report: Report::default(),
        })
    }
}

/// What a game does with it.
impl Client {
    /// How far it has come.
    pub fn state(&self) -> State {
        match (&self.stage, &self.door) {
            (Stage::Fresh | Stage::Entering, Door::Login(login)) if !login.is_asking() => {
                State::Connecting
            }
            (Stage::Fresh | Stage::Entering, _) => State::LoggingIn,
            (Stage::Accepted(session), _) if session.is_playing() => State::Playing,
            (Stage::Accepted(_), _) => State::Binding,
            (Stage::Ended(end, _), _) => State::Ended(*end),
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
    /// [`SendError::NotPlaying`]; [`SendError::TooLong`] above 1182 bytes, or 1178 in version 2.
    /// (The relay passes on at most 1181.)
    pub fn send(&mut self, env: &mut Env<'_>, bytes: &[u8]) -> Result<(), SendError> {
        self.now = env.now;
        let session = self.playing()?;
        fits(bytes, session.payload_max())?;
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

    /// Leaves, at whatever stage: says so to the server if there is a session, and closes. Events
    /// that were not acknowledged may be lost. It has ended when this returns, though in version 2
    /// it repeats its farewell for 200 ms more, as long as it is driven; ending twice does nothing.
    pub fn logout(&mut self, env: &mut Env<'_>) {
        if !matches!(self.stage, Stage::Ended(..)) {
            self.report.notices.clear();
            self.now = env.now;
            self.end(env, End::Left);
        }
    }

    /// Keeps the session alive from within a long load, when nothing else drives the client:
    /// sends a Ping if nothing was sent for 1 s (a Connect or a hello if one is due, before).
    /// Cheap, and takes nothing in; to be called as often as is convenient, at least every 5 s.
    pub fn keep_alive(&mut self, env: &mut Env<'_>) {
        self.now = env.now;
        if let (Stage::Entering, Door::Hello(hello)) = (&self.stage, &mut self.door) {
            hello.say_if_due(env, &self.name);
        }
        if let Stage::Accepted(session) = &mut self.stage {
            session.keep_alive(env);
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

/// What its driver does about connections.
impl Client {
    /// Whether it wants a connection to be made: answered by [`Input::Opened`] once one stands, or
    /// by [`Client::unconnected`]. One that is being made when it wants none any more is to be
    /// given up. Version 2 never wants any.
    ///
    /// Each connection goes with a UDP socket of its own, whose number ([`Path::socket`]) is the
    /// connection's slot ([`slot`](crate::engine::Conn::slot)): who logs in again because nothing is heard any more
    /// leaves from a new port, by a way that no router has forgotten. Version 2 has socket 0.
    pub fn wants_connection(&self) -> bool {
        let is_over = matches!(self.stage, Stage::Ended(..));
        !is_over && matches!(&self.door, Door::Login(login) if login.is_connecting())
    }

    /// Whether it may want another connection later on.
    pub fn rejoins(&self) -> bool {
        matches!(&self.door, Door::Login(login) if login.rejoins())
    }

    /// The driver could not make the connection.
    pub fn unconnected(&mut self, kind: io::ErrorKind) {
        if self.wants_connection() {
            self.report.notices.clear();
            self.attempt_failed(End::Unconnected(kind));
        }
    }
}

impl Machine for Client {
    fn handle(&mut self, env: &mut Env<'_>, input: Input<'_>) {
        self.report.notices.clear();
        self.now = env.now;
        if matches!(self.stage, Stage::Fresh) {
            self.begin(env);
        }
        match input {
            Input::Opened { conn, peer } => self.opened(env, conn, peer),
            Input::Stream { conn, bytes } => self.stream(env, conn, bytes),
            Input::Closed { conn } => self.closed(conn),
            Input::Datagram { path, bytes } => self.datagram(env, path, bytes),
            Input::Tick => self.tick(env),
            Input::Stop => self.end(env, End::Left),
            // For players, of which a client has none.
            Input::Command(_) => {}
        }
        self.settle(env);
    }

    fn deadline(&self) -> Option<Time> {
        match (&self.stage, &self.door) {
            (Stage::Fresh, _) => Some(Time::ZERO),
            (Stage::Entering, Door::Login(login)) => Some(login.deadline(None)),
            (Stage::Entering, Door::Hello(hello)) => Some(hello.deadline()),
            (Stage::Accepted(session), door) => {
                let door = match door {
                    Door::Login(login) => login.deadline(Some(session)),
                    Door::Hello(hello) => hello.deadline(),
                };
                Some(door.min(session.deadline(self.now)))
            }
            (Stage::Ended(_, farewell), _) => farewell.as_ref().map(Farewell::deadline),
        }
    }

    fn stats(&self) -> Vec<(&'static str, u64)> {
        self.report.counters.named().collect()
    }
}

/// Datagrams, time, the end.
impl Client {
    fn begin(&mut self, env: &mut Env<'_>) {
        self.stage = Stage::Entering;
        match &mut self.door {
            Door::Login(login) => login.begin(env.now),
            Door::Hello(hello) => hello.begin(env, &self.name, false),
        }
    }

    fn datagram(&mut self, env: &mut Env<'_>, path: Path, bytes: &[u8]) {
        let heard = self.judge(path, bytes).and_then(|(header, payload)| {
            if let Some(greeted) = self.greeted(env, &header, payload) {
                return greeted;
            }
            match &mut self.stage {
                Stage::Accepted(session) => session.heard(env, &header, payload, &mut self.report),
                _ => Err(Count::IgnoredUnbound),
            }
        });
        match heard {
            Ok(count) | Err(count) => self.report.counters.add(count),
        }
    }

    /// What every datagram must be: the server's, and of our version.
    fn judge<'a>(&self, path: Path, bytes: &'a [u8]) -> Result<(Header, &'a [u8]), Count> {
        let server = match (&self.stage, &self.door) {
            (Stage::Accepted(session), _) => session.server(),
            (Stage::Entering, Door::Hello(hello)) => hello.server(),
            _ => return Err(Count::IgnoredUnbound),
        };
        // The address is compared without its scope, which the system has judged.
        let is_server = path.remote.ip() == server.ip() && path.remote.port() == server.port();
        if !source::is_plausible(&path) || !is_server {
            return Err(Count::IgnoredSource);
        }
        let (header, payload) = Header::from_server(bytes).map_err(ignored)?;
        let version = match self.door {
            Door::Login(_) => wire::VERSION,
            Door::Hello(_) => wire::VERSION_2,
        };
        match header.session.version() == version {
            true => Ok((header, payload)),
            false => Err(Count::IgnoredVersion),
        }
    }

    fn tick(&mut self, env: &mut Env<'_>) {
        let over = match &mut self.stage {
            Stage::Accepted(session) => session.tick(env),
            Stage::Ended(_, farewell) => {
                farewell.take_if(|farewell| farewell.tick(env));
                return;
            }
            Stage::Fresh | Stage::Entering => None,
        };
        let over = over.or_else(|| match &mut self.door {
            Door::Login(_) => self.tend_login(env),
            Door::Hello(hello) => hello.tick(env, &self.name),
        });
        if let Some(end) = over {
            self.end(env, end);
        }
    }

    /// Sends what is due, and draws what follows from what the call has brought.
    fn settle(&mut self, env: &mut Env<'_>) {
        let Stage::Accepted(session) = &mut self.stage else {
            return;
        };
        if let Some(reason) = session.dismissed() {
            return self.dismissed_by_bye(env, reason);
        }
        session.settle(env);
        match &mut self.door {
            Door::Login(login) => login.settle(env, session),
            Door::Hello(hello) => hello.settle(session),
        }
    }

    /// Ends the session from this side. Who has one and leaves by itself says so to the server.
    fn end(&mut self, env: &mut Env<'_>, end: End) {
        let leaves = matches!(
            end,
            End::Left | End::Unreachable | End::Silent | End::NoAnswer
        );
        let session = self.over(end).filter(|_| leaves);
        match (&mut self.door, session) {
            (Door::Login(login), session) => login.close(env, session.is_some()),
            (Door::Hello(_), Some(session)) => {
                let farewell = Farewell::new(env, session);
                self.stage = Stage::Ended(end, Some(farewell));
            }
            (Door::Hello(_), None) => {}
        }
    }

    /// All is over, and the user is told so, once. Returns the session, if there was one.
    fn over(&mut self, end: End) -> Option<Box<Session>> {
        if matches!(self.stage, Stage::Ended(..)) {
            return None;
        }
        self.report.notices.push(Notice::Ended(end));
        match std::mem::replace(&mut self.stage, Stage::Ended(end, None)) {
            Stage::Accepted(session) => Some(session),
            _ => None,
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

fn ignored(error: HeaderError) -> Count {
    match error {
        HeaderError::Long => Count::IgnoredLong,
        HeaderError::Short => Count::IgnoredShort,
        HeaderError::Magic => Count::IgnoredMagic,
        HeaderError::Version => Count::IgnoredVersion,
    }
}
