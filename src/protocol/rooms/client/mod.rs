//! The client: connects, logs in, plays in rooms and leaves; without sockets.
//!
//! A [`Client`] is a [`Machine`] like the service at the other end. Whoever drives it gives it
//! what arrives, performs the effects and reads [`Client::notices`] after each call; the
//! [driver](crate::driver::rooms) does that over real sockets.
//!
//! ```text
//! Connecting -- TCP stands --> Greeting -- Assign Token --> Open -- logout --> Leaving --> Ended
//! ```
//!
//! Whatever its state, it may have Ended next.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::wire::{self, Message, Packet, Password, Reason, Request, Token};
use crate::engine::{Close, Conn, Env, Input, Machine, Path, Time};

mod asking;
mod counters;
mod notice;
mod picture;
mod session;

pub use asking::Ask;
pub use notice::{End, NotJoined, Notice};
pub use picture::{SHOT, Seen};

use counters::Counters;
use notice::Notices;
use session::Session;

/// From the first call to the token.
const TOKEN_MS: u64 = 10_000;
/// After its Logout a client waits so long for the server's.
const LOGOUT_MS: u64 = 1_000;

/// A player's side of a session.
#[derive(Debug)]
pub struct Client {
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

/// How far it has come, and what exists only there.
#[derive(Debug)]
enum Stage {
    /// It was never called.
    Fresh,
    /// The connection is being made.
    Connecting { give_up_at: Time },
    /// The connection stands, and is to bring the token.
    Greeting { line: Line, give_up_at: Time },
    /// It has its token.
    Open { line: Line, session: Box<Session> },
    /// Logout is said, and the server is to say so too.
    Leaving { line: Line, until: Time },
    /// All is over.
    Ended(End),
}

/// The connection, and the beginning of a packet that came on it.
#[derive(Debug)]
struct Line {
    conn: Conn,
    server: SocketAddr,
    partial: Vec<u8>,
}

/// How far a client has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// The TCP connection is being made.
    Connecting,
    /// The server is to give the token.
    Greeting,
    /// It may ask.
    Open,
    /// It has said that it leaves.
    Leaving,
    /// All is over.
    Ended(End),
}

/// Why something was not sent. Nothing ends by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendError {
    /// There is no session: not yet, or no more.
    NotOpen,
    /// An earlier request of the same type still waits for its answer.
    Waiting,
    /// The client is in no room.
    NotInRoom,
    /// The name is empty, too long or has control characters: of a user up to 16 bytes, of a room
    /// up to 32.
    BadName,
    /// The password is empty, longer than 64 bytes or has control characters.
    BadPassword,
    /// The text is empty, longer than 200 bytes or has control characters.
    BadText,
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotOpen => "there is no session",
            Self::Waiting => "an earlier one is not answered yet",
            Self::NotInRoom => "not in a room",
            Self::BadName => "the name is empty, too long or has control characters",
            Self::BadPassword => "the password is empty, too long or has control characters",
            Self::BadText => "the text is empty, too long or has control characters",
        })
    }
}

impl std::error::Error for SendError {}

impl Default for Client {
    fn default() -> Self {
        Self::new()
    }
}

/// What its user asks.
impl Client {
    /// A client that will wait for a token, once it is driven and has a connection.
    pub fn new() -> Self {
        Self {
            stage: Stage::Fresh,
            now: Time::ZERO,
            report: Report::default(),
        }
    }

    /// How far it has come.
    pub fn state(&self) -> State {
        match &self.stage {
            Stage::Fresh | Stage::Connecting { .. } => State::Connecting,
            Stage::Greeting { .. } => State::Greeting,
            Stage::Open { .. } => State::Open,
            Stage::Leaving { .. } => State::Leaving,
            Stage::Ended(end) => State::Ended(*end),
        }
    }

    /// The user it is logged in as.
    pub fn user(&self) -> Option<&str> {
        self.session()?.user()
    }

    /// The room it is in, and its seat there.
    pub fn room(&self) -> Option<(&str, u8)> {
        let room = self.session()?.room()?;
        Some((&room.name, room.seat))
    }

    /// What there is in the room, by id, as far as the server has told.
    pub fn entities(&self) -> &[Seen] {
        self.session().map_or(&[], Session::entities)
    }

    /// Whether a request of this type waits for its answer, so that another one is refused.
    pub fn is_asking(&self, ask: Ask) -> bool {
        self.session().is_some_and(|session| session.is_asking(ask))
    }

    /// What the latest [`Machine::handle`], [`Client::logout`] or [`Client::unconnected`] brought,
    /// in order. The next one of them forgets it.
    pub fn notices(&self) -> impl Iterator<Item = Notice<'_>> {
        self.report.notices.iter()
    }

    fn session(&self) -> Option<&Session> {
        match &self.stage {
            Stage::Open { session, .. } => Some(session),
            _ => None,
        }
    }

    fn open(&mut self) -> Result<&mut Session, SendError> {
        match &mut self.stage {
            Stage::Open { session, .. } => Ok(session),
            _ => Err(SendError::NotOpen),
        }
    }
}

/// Requests. Each leaves with the next [`Input::Tick`], due at once (or up to 1 s later if the one
/// before had to be repeated), and is repeated until it is answered, which a notice tells; after
/// 2.5 s without one, [`Notice::NoAnswer`] does. One of a type is under way at a time.
impl Client {
    /// Asks for an account: [`Notice::Registered`] or [`Notice::NotRegistered`].
    ///
    /// # Errors
    /// [`SendError::NotOpen`]; [`SendError::Waiting`]; [`SendError::BadName`];
    /// [`SendError::BadPassword`]. (That it has at least 8 bytes is the server's affair.)
    pub fn register(&mut self, user: &str, password: &str) -> Result<(), SendError> {
        let (user, password) = account(user, password)?;
        self.ask(Ask::Register, &Request::Register { user, password })
    }

    /// Says who the client is: [`Notice::LoggedIn`] or [`Notice::NotLoggedIn`].
    ///
    /// # Errors
    /// As [`Client::register`].
    pub fn login(&mut self, user: &str, password: &str) -> Result<(), SendError> {
        let (user, password) = account(user, password)?;
        self.ask(Ask::Login, &Request::Login { user, password })
    }

    /// Asks for a new room for 1 to 16 players, with an empty password for anybody:
    /// [`Notice::InRoom`] or [`Notice::NotCreated`].
    ///
    /// # Errors
    /// As [`Client::register`].
    pub fn create_room(
        &mut self,
        name: &str,
        password: &str,
        max_players: u8,
    ) -> Result<(), SendError> {
        let request = Request::CreateRoom {
            name: room_name(name)?,
            password: room_password(password)?,
            max_players,
        };
        self.ask(Ask::CreateRoom, &request)
    }

    /// Asks for a seat: [`Notice::InRoom`] or [`Notice::NotJoined`].
    ///
    /// # Errors
    /// As [`Client::register`].
    pub fn join_room(&mut self, name: &str, password: &str) -> Result<(), SendError> {
        let request = Request::JoinRoom {
            name: room_name(name)?,
            password: room_password(password)?,
        };
        self.ask(Ask::JoinRoom, &request)
    }

    /// Asks which rooms there are, behind the first `first`: [`Notice::Rooms`].
    ///
    /// # Errors
    /// [`SendError::NotOpen`]; [`SendError::Waiting`].
    pub fn rooms(&mut self, first: u16) -> Result<(), SendError> {
        self.ask(Ask::Rooms, &Request::GetRooms { first })
    }

    /// Leaves the room: [`Notice::OutOfRoom`].
    ///
    /// # Errors
    /// As [`Client::rooms`].
    pub fn leave_room(&mut self) -> Result<(), SendError> {
        self.ask(Ask::LeaveRoom, &Request::LeaveRoom)
    }

    /// Ends the room, which only its owner may: [`Notice::OutOfRoom`] or [`Notice::NotDeleted`].
    ///
    /// # Errors
    /// As [`Client::rooms`], and [`SendError::BadName`].
    pub fn delete_room(&mut self, name: &str) -> Result<(), SendError> {
        let name = room_name(name)?;
        self.ask(Ask::DeleteRoom, &Request::DeleteRoom { name })
    }

    /// Says a line to the room: [`Notice::Said`].
    ///
    /// # Errors
    /// As [`Client::rooms`]; [`SendError::NotInRoom`]; [`SendError::BadText`].
    pub fn chat(&mut self, text: &str) -> Result<(), SendError> {
        let text = wire::chat_text(text.as_bytes()).ok_or(SendError::BadText)?;
        self.open()?.room().ok_or(SendError::NotInRoom)?;
        let text = text.as_bytes();
        self.ask(Ask::Chat, &Request::Chat { text })
    }

    fn ask(&mut self, ask: Ask, request: &Request<'_>) -> Result<(), SendError> {
        let now = self.now;
        let session = self.open()?;
        if session.is_asking(ask) {
            return Err(SendError::Waiting);
        }
        session.ask(now, ask, request);
        Ok(())
    }
}

/// What is said once, and at once.
impl Client {
    /// Tells that a key was pressed; unreliable.
    ///
    /// # Errors
    /// [`SendError::NotOpen`]; [`SendError::NotInRoom`].
    pub fn key(&mut self, env: &mut Env<'_>, key: i32) -> Result<(), SendError> {
        self.now = env.now;
        let session = self.open()?;
        session.room().ok_or(SendError::NotInRoom)?;
        session.key(env, key);
        Ok(())
    }

    /// Leaves, at whatever stage. With a session it says so to the server and waits for its word,
    /// at most 1 s, before it closes and has ended; without one it ends at once. Doing so twice
    /// does nothing.
    pub fn logout(&mut self, env: &mut Env<'_>) {
        self.report.notices.clear();
        self.now = env.now;
        self.leave(env);
    }

    /// Keeps the session alive from within a long load, when nothing else drives the client: sends
    /// Init if nothing was sent for 1 s. Cheap, and takes nothing in.
    pub fn keep_alive(&mut self, env: &mut Env<'_>) {
        self.now = env.now;
        if let Stage::Open { session, .. } = &mut self.stage {
            session.keep_alive(env);
        }
    }

    fn leave(&mut self, env: &mut Env<'_>) {
        match std::mem::replace(&mut self.stage, Stage::Fresh) {
            Stage::Open { line, mut session } => {
                session.logout(env);
                let until = env.now + LOGOUT_MS;
                self.stage = Stage::Leaving { line, until };
            }
            stage @ (Stage::Leaving { .. } | Stage::Ended(_)) => self.stage = stage,
            stage => {
                self.stage = stage;
                self.end(env, End::Left);
            }
        }
    }
}

/// What its driver does about the connection.
impl Client {
    /// Whether it wants a connection to be made: answered by [`Input::Opened`] once one stands, or
    /// by [`Client::unconnected`].
    pub fn wants_connection(&self) -> bool {
        matches!(self.stage, Stage::Fresh | Stage::Connecting { .. })
    }

    /// The driver could not make the connection.
    pub fn unconnected(&mut self, kind: io::ErrorKind) {
        if self.wants_connection() {
            self.report.notices.clear();
            self.over(End::Unconnected(kind));
        }
    }

    fn opened(&mut self, env: &mut Env<'_>, conn: Conn, peer: SocketAddr) {
        let Stage::Connecting { give_up_at } = self.stage else {
            return env.out.close(conn, Close::Now);
        };
        let line = Line {
            conn,
            server: folded(peer),
            partial: Vec::new(),
        };
        self.stage = Stage::Greeting { line, give_up_at };
    }

    /// Takes every whole packet, keeps the beginning of one.
    fn stream(&mut self, env: &mut Env<'_>, conn: Conn, bytes: &[u8]) {
        let Some(line) = self.line(conn) else { return };
        let mut held = std::mem::take(&mut line.partial);
        held.extend_from_slice(bytes);
        let mut rest = &held[..];
        // Each packet may have ended it.
        while let Some(line) = self.line(conn) {
            match wire::frame(rest) {
                Ok(Some(packet)) => {
                    rest = &rest[packet.len()..];
                    if let Err(end) = self.packet(env, packet) {
                        self.end(env, end);
                    }
                }
                Ok(None) => {
                    line.partial = rest.to_vec();
                    return;
                }
                Err(_) => self.end(env, End::Malformed),
            }
        }
    }

    /// A packet came over TCP: the token first, then nothing but the server's Logout.
    fn packet(&mut self, env: &mut Env<'_>, bytes: &[u8]) -> Result<(), End> {
        let packet = Packet::read(bytes).map_err(|_| End::Malformed)?;
        if packet.token != Token::SERVER {
            return Err(End::Malformed);
        }
        let message = Message::read(packet.kind, packet.payload).map_err(|_| End::Malformed)?;
        match (message, std::mem::replace(&mut self.stage, Stage::Fresh)) {
            (Message::AssignToken { token, udp_port }, Stage::Greeting { line, .. }) => {
                let path = path_to(SocketAddr::new(line.server.ip(), udp_port), line.conn);
                let session = Box::new(Session::new(env, path, token, packet.id));
                self.stage = Stage::Open { line, session };
                self.report.notices.push(Notice::Opened);
                Ok(())
            }
            (Message::Logout { reason }, stage) => {
                self.stage = stage;
                Err(self.dismissed(Reason::of_server_logout(reason)))
            }
            (_, stage) => {
                self.stage = stage;
                Err(End::Malformed)
            }
        }
    }

    /// The server says that it is over. Who was not heard, and heard nothing, is not reached.
    fn dismissed(&self, reason: Reason) -> End {
        let is_deaf = self.session().is_some_and(|session| !session.has_heard());
        match reason {
            Reason::TimedOut if is_deaf => End::Unreachable,
            reason => End::Logout(reason),
        }
    }

    fn closed(&mut self, conn: Conn) {
        if self.line(conn).is_some() {
            self.over(End::Closed);
        }
    }

    /// The connection of this number, if it is ours.
    fn line(&mut self, conn: Conn) -> Option<&mut Line> {
        let line = match &mut self.stage {
            Stage::Greeting { line, .. }
            | Stage::Open { line, .. }
            | Stage::Leaving { line, .. } => line,
            Stage::Fresh | Stage::Connecting { .. } | Stage::Ended(_) => return None,
        };
        Some(line).filter(|line| line.conn == conn)
    }
}

impl Machine for Client {
    fn handle(&mut self, env: &mut Env<'_>, input: Input<'_>) {
        self.report.notices.clear();
        self.now = env.now;
        if matches!(self.stage, Stage::Fresh) {
            let give_up_at = env.now + TOKEN_MS;
            self.stage = Stage::Connecting { give_up_at };
        }
        match input {
            Input::Opened { conn, peer } => self.opened(env, conn, peer),
            Input::Stream { conn, bytes } => self.stream(env, conn, bytes),
            Input::Closed { conn } => self.closed(conn),
            Input::Datagram { path, bytes } => self.datagram(env, path, bytes),
            Input::Tick => self.tick(env),
            Input::Stop => self.leave(env),
            // For players, of which a client has none.
            Input::Command(_) => {}
        }
    }

    fn deadline(&self) -> Option<Time> {
        match &self.stage {
            Stage::Fresh => Some(Time::ZERO),
            Stage::Connecting { give_up_at } | Stage::Greeting { give_up_at, .. } => {
                Some(*give_up_at)
            }
            Stage::Open { session, .. } => Some(session.deadline()),
            Stage::Leaving { until, .. } => Some(*until),
            Stage::Ended(_) => None,
        }
    }

    fn stats(&self) -> Vec<(&'static str, u64)> {
        self.report.counters.named().collect()
    }
}

/// Datagrams, time, the end.
impl Client {
    fn datagram(&mut self, env: &mut Env<'_>, path: Path, bytes: &[u8]) {
        // Before the token and behind the Logout nothing is to be heard.
        if let Stage::Open { session, .. } = &mut self.stage {
            let heard = session.datagram(env, path, bytes, &mut self.report);
            let (Ok(count) | Err(count)) = heard;
            self.report.counters.add(count);
        }
    }

    fn tick(&mut self, env: &mut Env<'_>) {
        let end = match &mut self.stage {
            Stage::Connecting { give_up_at } | Stage::Greeting { give_up_at, .. } => {
                (*give_up_at <= env.now).then_some(End::NoAnswer)
            }
            Stage::Open { session, .. } => session.tick(env, &mut self.report),
            Stage::Leaving { until, .. } => (*until <= env.now).then_some(End::Left),
            Stage::Fresh | Stage::Ended(_) => None,
        };
        if let Some(end) = end {
            self.end(env, end);
        }
    }

    /// Closes the connection, if there is one, and ends.
    fn end(&mut self, env: &mut Env<'_>, end: End) {
        if let Stage::Greeting { line, .. }
        | Stage::Open { line, .. }
        | Stage::Leaving { line, .. } = &self.stage
        {
            env.out.close(line.conn, Close::Now);
        }
        self.over(end);
    }

    /// All is over, and the user is told so, once. Who leaves has left, however it ends.
    fn over(&mut self, end: End) {
        let end = match self.stage {
            Stage::Ended(_) => return,
            Stage::Leaving { .. } => End::Left,
            _ => end,
        };
        self.report.notices.push(Notice::Ended(end));
        self.stage = Stage::Ended(end);
    }
}

fn account<'a>(user: &'a str, password: &'a str) -> Result<(&'a [u8], Password<'a>), SendError> {
    let user = wire::user_name(user.as_bytes()).ok_or(SendError::BadName)?;
    let password = Password(password.as_bytes());
    wire::password(password).ok_or(SendError::BadPassword)?;
    Ok((user.as_bytes(), password))
}

fn room_name(name: &str) -> Result<&[u8], SendError> {
    let name = wire::room_name(name.as_bytes()).ok_or(SendError::BadName)?;
    Ok(name.as_bytes())
}

/// Empty, or a password.
fn room_password(password: &str) -> Result<Password<'_>, SendError> {
    let password = Password(password.as_bytes());
    match password.0.is_empty() || wire::password(password).is_some() {
        true => Ok(password),
        false => Err(SendError::BadPassword),
    }
}

/// The way to the server from the socket that goes with the connection: its number is the
/// connection's slot, its address the driver's affair.
fn path_to(server: SocketAddr, conn: Conn) -> Path {
    let unspecified = match server.ip() {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    Path {
        socket: conn.slot as u8,
        local: SocketAddr::new(unspecified, 0),
        remote: server,
    }
}

/// An IPv4-mapped address as IPv4, as datagrams name their source.
fn folded(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        ip @ IpAddr::V4(_) => SocketAddr::new(ip, address.port()),
        IpAddr::V6(_) => address,
    }
}
