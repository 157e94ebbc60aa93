//! The bytes of RTYP version 1, as PROTOCOL.md lays them out.
//!
//! Reading borrows from the input and writing appends to a lent buffer: nothing here allocates.
//! What is read is well-formed; a field that the protocol answers differently from a bad shape
//! (a name, a version, a reason) is handed on raw.

use std::fmt;

use crate::bytes::{Reader, WireError, Writer};

/// The first four bytes of every datagram.
pub const MAGIC: [u8; 4] = *b"RTYP";
/// The protocol version of this codec, in the login and in every datagram.
pub const VERSION: u8 = 1;
/// The length in front of a TCP message.
pub const FRAME_HEAD_BYTES: usize = 2;
/// The longest TCP message, its length not included.
pub const FRAME_MAX: usize = 512;
/// The UDP header.
pub const HEADER_BYTES: usize = 18;
/// The longest datagram, header included.
pub const DATAGRAM_MAX: usize = 1200;
/// The longest payload of a datagram.
pub const PAYLOAD_MAX: usize = DATAGRAM_MAX - HEADER_BYTES;
/// What [`Header::ack`] says, with no bits set, while nothing was received.
pub const NOTHING_RECEIVED: u16 = 0xFFFF;
/// Players of a game; they are numbered from 0.
pub const PLAYERS_MAX: u8 = 4;
/// The longest name, in bytes.
pub const NAME_MAX: usize = 16;
/// The longest line of chat, in bytes.
pub const TEXT_MAX: usize = 200;
/// The most events in one datagram.
pub const EVENTS_MAX: usize = 32;
/// Id, kind and length of an event.
pub const EVENT_HEAD_BYTES: usize = 5;
/// The longest body of an event.
pub const EVENT_BODY_MAX: usize = 1024;
/// The longest Custom body a client may send: one with a player number in front still fits.
pub const CUSTOM_FROM_CLIENT_MAX: usize = EVENT_BODY_MAX - 1;

const _: () = assert!(EVENT_HEAD_BYTES + EVENT_BODY_MAX <= PAYLOAD_MAX);
const _: () = assert!(1 + 2 + TEXT_MAX <= EVENT_BODY_MAX);

/// The first byte of a TCP message: what it is.
pub mod message {
    /// Client to server: version, name.
    pub const LOGIN_REQUEST: u8 = 1;
    /// Server to client: session, player, UDP port.
    pub const LOGIN_ACCEPTED: u8 = 2;
    /// Server to client: reason.
    pub const LOGIN_REJECTED: u8 = 3;
    /// Both ways: reason.
    pub const LOGOUT: u8 = 4;
}

/// The type of a datagram.
pub mod kind {
    /// Client to server, empty: bind this endpoint to the session.
    pub const CONNECT: u8 = 1;
    /// Server to client, empty: the endpoint is bound.
    pub const ACCEPT: u8 = 2;
    /// Both ways: a nonce.
    pub const PING: u8 = 3;
    /// Both ways: the nonce of a Ping.
    pub const PONG: u8 = 4;
    /// Both ways: the game's own bytes, unreliable.
    pub const DATA: u8 = 5;
    /// Both ways: reliable events.
    pub const EVENTS: u8 = 6;
    /// Both ways, empty: only the header's acknowledgements matter.
    pub const ACK: u8 = 7;
}

/// The kind of a reliable event.
pub mod event {
    /// Server to client: somebody joined.
    pub const PLAYER_JOINED: u8 = 1;
    /// Server to client: somebody left.
    pub const PLAYER_LEFT: u8 = 2;
    /// Server to client: the game runs.
    pub const GAME_STARTED: u8 = 3;
    /// Both ways: a line of chat.
    pub const CHAT: u8 = 4;
    /// Both ways: the game's own.
    pub const CUSTOM: u8 = 5;
    /// Client to server: start the game.
    pub const START: u8 = 6;
}

/// Why a login was rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reject {
    /// No game has a free number.
    ServerFull = 1,
    /// The server does not speak the client's version.
    BadVersion = 2,
    /// The name is empty, too long, not UTF-8 or has control characters.
    BadName = 3,
    /// Another player has the name.
    NameTaken = 4,
    /// The game runs and takes no new players.
    GameStarted = 5,
    /// A limit of the client's address.
    TooMany = 6,
    /// There is no game of the wanted name.
    NoSuchGame = 7,
    /// The game itself refused.
    Refused = 8,
}

impl Reject {
    /// The reason on the wire.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The reason with this number; `None` if there is none (to be taken like any other).
    pub const fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            1 => Self::ServerFull,
            2 => Self::BadVersion,
            3 => Self::BadName,
            4 => Self::NameTaken,
            5 => Self::GameStarted,
            6 => Self::TooMany,
            7 => Self::NoSuchGame,
            8 => Self::Refused,
            _ => return None,
        })
    }
}

impl fmt::Display for Reject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ServerFull => "the server is full",
            Self::BadVersion => "the server does not speak this version of the protocol",
            Self::BadName => "the name must be 1 to 16 bytes of text without control characters",
            Self::NameTaken => "another player has this name",
            Self::GameStarted => "the game has started and takes no new players",
            Self::TooMany => "too many players or attempts from this address",
            Self::NoSuchGame => "there is no game of this name",
            Self::Refused => "the game refused",
        })
    }
}

/// Why a session ended: in Logout, and in PlayerLeft for the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The player quit, or its connection closed.
    Left = 0,
    /// The server is stopping.
    Shutdown = 1,
    /// Nothing valid came for too long.
    TimedOut = 2,
    /// The client sent something invalid.
    ProtocolError = 3,
    /// The game put the player out.
    Kicked = 4,
}

impl Reason {
    /// The reason on the wire.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The reason with this number; `None` if there is none.
    pub const fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            0 => Self::Left,
            1 => Self::Shutdown,
            2 => Self::TimedOut,
            3 => Self::ProtocolError,
            4 => Self::Kicked,
            _ => return None,
        })
    }

    /// What a Logout of the server with this number means: an unknown one is a Shutdown.
    pub fn of_server_logout(code: u8) -> Self {
        Self::from_code(code).unwrap_or(Self::Shutdown)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Left => "left",
            Self::Shutdown => "the server is stopping",
            Self::TimedOut => "timed out",
            Self::ProtocolError => "sent something invalid",
            Self::Kicked => "was put out of the game",
        })
    }
}

// --- TCP ---------------------------------------------------------------------------------------

/// The body of the first whole frame of `bytes`; `None` if it is not whole yet. The frame is
/// [`FRAME_HEAD_BYTES`] longer than its body.
///
/// # Errors
/// [`WireError::Invalid`] for a length of 0 or above [`FRAME_MAX`], as soon as the length is there.
pub fn frame(bytes: &[u8]) -> Result<Option<&[u8]>, WireError> {
    let mut reader = Reader::new(bytes);
    let Ok(len) = reader.u16_le("len") else {
        return Ok(None);
    };
    let len = usize::from(len);
    if len == 0 || len > FRAME_MAX {
        return Err(WireError::Invalid("len"));
    }
    Ok(reader.bytes(len, "frame").ok())
}

/// A TCP message of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToServer<'a> {
    /// The first message.
    LoginRequest(Login<'a>),
    /// The client ends its session.
    Logout {
        /// Whatever the client says; it left.
        reason: u8,
    },
}

/// A LoginRequest, as far as it is ours to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Login<'a> {
    /// Another version than ours, whatever follows.
    OtherVersion(u8),
    /// Ours.
    V1 {
        /// Raw, to be judged by [`name`].
        name: &'a [u8],
    },
}

impl<'a> ToServer<'a> {
    /// Reads the body of a frame: kind first, then of a login its version, then the shape.
    ///
    /// # Errors
    /// An unknown kind or one of the other direction, a field cut short, bytes left over.
    pub fn read(body: &'a [u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(body);
        let message = match reader.u8("kind")? {
            message::LOGIN_REQUEST => match reader.u8("version")? {
                VERSION => Self::LoginRequest(Login::V1 {
                    name: reader.string_le("name")?,
                }),
                other => return Ok(Self::LoginRequest(Login::OtherVersion(other))),
            },
            message::LOGOUT => Self::Logout {
                reason: reader.u8("reason")?,
            },
            _ => return Err(WireError::Invalid("kind")),
        };
        reader.end("message to the server")?;
        Ok(message)
    }

    /// Appends the whole frame. Of another version it has nothing but the version; a name that
    /// [`name`] accepts fits.
    pub fn write(&self, writer: &mut Writer<'_>) {
        write_frame(writer, |writer| match *self {
            Self::LoginRequest(Login::V1 { name }) => {
                writer.bytes(&[message::LOGIN_REQUEST, VERSION]);
                writer.string_le(name);
            }
            Self::LoginRequest(Login::OtherVersion(version)) => {
                writer.bytes(&[message::LOGIN_REQUEST, version]);
            }
            Self::Logout { reason } => writer.bytes(&[message::LOGOUT, reason]),
        });
    }
}

/// A TCP message of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToClient {
    /// The session exists.
    LoginAccepted {
        /// The session token, not 0.
        session: u32,
        /// The player's number, 0 to 3.
        player: u8,
        /// Where the client sends its datagrams, not 0.
        udp_port: u16,
    },
    /// There is no session, and the connection closes.
    LoginRejected {
        /// A [`Reject`], or a number still unknown.
        reason: u8,
    },
    /// The server ends the session.
    Logout {
        /// A [`Reason`], or a number still unknown.
        reason: u8,
    },
}

impl ToClient {
    /// Reads the body of a frame.
    ///
    /// # Errors
    /// An unknown kind or one of the other direction, a field cut short, bytes left over; a
    /// session 0, a player above 3, a UDP port 0.
    pub fn read(body: &[u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(body);
        let message = match reader.u8("kind")? {
            message::LOGIN_ACCEPTED => Self::accepted(&mut reader)?,
            message::LOGIN_REJECTED => Self::LoginRejected {
                reason: reader.u8("reason")?,
            },
            message::LOGOUT => Self::Logout {
                reason: reader.u8("reason")?,
            },
            _ => return Err(WireError::Invalid("kind")),
        };
        reader.end("message to the client")?;
        Ok(message)
    }

    fn accepted(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let session = reader.u32_le("session")?;
        check(session != 0, "session")?;
        let player = read_player(reader)?;
        let udp_port = reader.u16_le("udp_port")?;
        check(udp_port != 0, "udp_port")?;
        Ok(Self::LoginAccepted {
            session,
            player,
            udp_port,
        })
    }

    /// Appends the whole frame.
    pub fn write(&self, writer: &mut Writer<'_>) {
        write_frame(writer, |writer| match *self {
            Self::LoginAccepted {
                session,
                player,
                udp_port,
            } => {
                writer.u8(message::LOGIN_ACCEPTED);
                writer.u32_le(session);
                writer.u8(player);
                writer.u16_le(udp_port);
            }
            Self::LoginRejected { reason } => writer.bytes(&[message::LOGIN_REJECTED, reason]),
            Self::Logout { reason } => writer.bytes(&[message::LOGOUT, reason]),
        });
    }
}

/// Appends what `fields` writes, its length in front. A body too long for a frame gets a length
/// that no reader takes.
fn write_frame(writer: &mut Writer<'_>, fields: impl FnOnce(&mut Writer<'_>)) {
    let len_at = writer.reserve_u16_le();
    let start = writer.len();
    fields(writer);
    let len = u16::try_from(writer.len() - start).unwrap_or(u16::MAX);
    writer.patch_u16_le(len_at, len);
}

// --- Text --------------------------------------------------------------------------------------

/// A player's name: 1 to 16 bytes of UTF-8 without control characters (below 0x20, and 0x7F).
pub fn name(bytes: &[u8]) -> Option<&str> {
    plain(bytes, NAME_MAX)
}

/// A line of chat: 1 to 200 bytes, otherwise as a [`name`].
pub fn text(bytes: &[u8]) -> Option<&str> {
    plain(bytes, TEXT_MAX)
}

fn plain(bytes: &[u8], max: usize) -> Option<&str> {
    if bytes.is_empty() || bytes.len() > max {
        return None;
    }
    let text = std::str::from_utf8(bytes).ok()?;
    let control = text.bytes().any(|byte| byte < 0x20 || byte == 0x7F);
    (!control).then_some(text)
}

// --- UDP ---------------------------------------------------------------------------------------

/// What stands in front of every datagram, behind magic and version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// One of [`kind`], or a number that is none.
    pub kind: u8,
    /// The number of this datagram among its sender's, wrapping.
    pub sequence: u16,
    /// The newest sequence received; [`NOTHING_RECEIVED`] with no bits before there is one.
    pub ack: u16,
    /// Bit n: `ack - 1 - n` was received.
    pub ack_bits: u32,
    /// The session token.
    pub session: u32,
}

/// Why bytes are no datagram of ours. Each is counted apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HeaderError {
    /// Above [`DATAGRAM_MAX`].
    Long,
    /// Below [`HEADER_BYTES`].
    Short,
    /// It does not start with [`MAGIC`].
    Magic,
    /// Another version than [`VERSION`].
    Version,
}

impl fmt::Display for HeaderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Long => "longer than a datagram may be",
            Self::Short => "shorter than the header",
            Self::Magic => "not a datagram of this protocol",
            Self::Version => "a version that is not spoken here",
        })
    }
}

impl std::error::Error for HeaderError {}

impl Header {
    /// Splits a datagram into header and payload.
    ///
    /// # Errors
    /// The first that applies, in the order of [`HeaderError`].
    pub fn read(datagram: &[u8]) -> Result<(Self, &[u8]), HeaderError> {
        if datagram.len() > DATAGRAM_MAX {
            return Err(HeaderError::Long);
        }
        if datagram.len() < HEADER_BYTES {
            return Err(HeaderError::Short);
        }
        let mut reader = Reader::new(datagram);
        if reader.bytes(MAGIC.len(), "magic") != Ok(&MAGIC) {
            return Err(HeaderError::Magic);
        }
        if reader.u8("version") != Ok(VERSION) {
            return Err(HeaderError::Version);
        }
        let header = Self::fields(&mut reader).map_err(|_| HeaderError::Short)?;
        Ok((header, reader.rest()))
    }

    fn fields(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        Ok(Self {
            kind: reader.u8("type")?,
            sequence: reader.u16_le("sequence")?,
            ack: reader.u16_le("ack")?,
            ack_bits: reader.u32_le("ack_bits")?,
            session: reader.u32_le("session")?,
        })
    }

    /// Appends the header; the payload goes behind it.
    pub fn write(&self, writer: &mut Writer<'_>) {
        writer.bytes(&MAGIC);
        writer.u8(VERSION);
        writer.u8(self.kind);
        writer.u16_le(self.sequence);
        writer.u16_le(self.ack);
        writer.u32_le(self.ack_bits);
        writer.u32_le(self.session);
    }
}

/// What a datagram carries behind its header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Payload<'a> {
    /// Binds the endpoint; only to the server.
    Connect,
    /// The endpoint is bound; only to the client.
    Accept,
    /// Asks for a Pong with the same nonce.
    Ping(u32),
    /// The nonce of a Ping.
    Pong(u32),
    /// The game's own bytes, any number of them.
    Data(&'a [u8]),
    /// 1 to 32 reliable events.
    Events(Events<'a>),
    /// Nothing but the header's acknowledgements.
    Ack,
}

impl<'a> Payload<'a> {
    /// Reads the payload of a datagram of this [`kind`](Header::kind), whatever its direction
    /// (see [`Payload::is_for_server`] and [`Payload::is_for_client`]). The bodies of events are
    /// not looked into.
    ///
    /// # Errors
    /// An unknown kind; a payload of another shape than its kind has.
    pub fn read(kind: u8, payload: &'a [u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(payload);
        let read = match kind {
            kind::CONNECT => Self::Connect,
            kind::ACCEPT => Self::Accept,
            kind::PING => Self::Ping(reader.u32_le("nonce")?),
            kind::PONG => Self::Pong(reader.u32_le("nonce")?),
            kind::DATA => Self::Data(reader.rest()),
            kind::EVENTS => Self::Events(Events::read(reader.rest())?),
            kind::ACK => Self::Ack,
            _ => return Err(WireError::Invalid("type")),
        };
        reader.end("payload")?;
        Ok(read)
    }

    /// Appends the payload.
    pub fn write(&self, writer: &mut Writer<'_>) {
        match self {
            Self::Connect | Self::Accept | Self::Ack => {}
            Self::Ping(nonce) | Self::Pong(nonce) => writer.u32_le(*nonce),
            Self::Data(bytes) => writer.bytes(bytes),
            Self::Events(events) => writer.bytes(events.rest),
        }
    }

    /// The [`Header::kind`] of this payload.
    pub fn kind(&self) -> u8 {
        match self {
            Self::Connect => kind::CONNECT,
            Self::Accept => kind::ACCEPT,
            Self::Ping(_) => kind::PING,
            Self::Pong(_) => kind::PONG,
            Self::Data(_) => kind::DATA,
            Self::Events(_) => kind::EVENTS,
            Self::Ack => kind::ACK,
        }
    }

    /// Whether a client may send it.
    pub fn is_for_server(&self) -> bool {
        !matches!(self, Self::Accept)
    }

    /// Whether the server may send it.
    pub fn is_for_client(&self) -> bool {
        !matches!(self, Self::Connect)
    }
}

// --- Events ------------------------------------------------------------------------------------

/// One reliable event, its body not looked into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawEvent<'a> {
    /// Its number among its sender's events, wrapping.
    pub id: u16,
    /// One of [`event`], or a number that is none.
    pub kind: u8,
    /// At most [`EVENT_BODY_MAX`] bytes.
    pub body: &'a [u8],
}

impl<'a> RawEvent<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self, WireError> {
        let id = reader.u16_le("event id")?;
        let kind = reader.u8("event kind")?;
        let body = reader.string_le("event body")?;
        check(body.len() <= EVENT_BODY_MAX, "event body")?;
        Ok(Self { id, kind, body })
    }

    /// Appends the event: [`EVENT_HEAD_BYTES`] and the body.
    pub fn write(&self, writer: &mut Writer<'_>) {
        debug_assert!(self.body.len() <= EVENT_BODY_MAX);
        writer.u16_le(self.id);
        writer.u8(self.kind);
        writer.string_le(self.body);
    }
}

/// The events of one datagram, in its order: 1 to 32 of them, all whole. Clone it to walk twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Events<'a> {
    rest: &'a [u8],
}

impl<'a> Events<'a> {
    /// Reads the payload of an Events datagram to its last byte.
    ///
    /// # Errors
    /// No event or more than 32, one cut short, a body above 1024 bytes.
    pub fn read(payload: &'a [u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(payload);
        let mut count = 0;
        while reader.left() > 0 {
            RawEvent::read(&mut reader)?;
            count += 1;
        }
        check((1..=EVENTS_MAX).contains(&count), "events")?;
        Ok(Self { rest: payload })
    }
}

impl<'a> Iterator for Events<'a> {
    type Item = RawEvent<'a>;

    fn next(&mut self) -> Option<RawEvent<'a>> {
        // All were read once already: the only failure left is that none is.
        let mut reader = Reader::new(self.rest);
        let event = RawEvent::read(&mut reader).ok()?;
        self.rest = reader.rest();
        Some(event)
    }
}

/// An event of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FromClient<'a> {
    /// A line of chat: what [`text`] accepts.
    Chat(&'a str),
    /// The game's own: at most [`CUSTOM_FROM_CLIENT_MAX`] bytes.
    Custom(&'a [u8]),
    /// Asks for the game to start.
    Start,
}

impl<'a> FromClient<'a> {
    /// Reads the body of an event of this kind.
    ///
    /// # Errors
    /// An unknown kind or one of the other direction; a body outside its rule.
    pub fn read(kind: u8, body: &'a [u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(body);
        let event = match kind {
            event::CHAT => Self::Chat(read_text(&mut reader)?),
            event::CUSTOM => {
                check(body.len() <= CUSTOM_FROM_CLIENT_MAX, "custom body")?;
                Self::Custom(reader.rest())
            }
            event::START => Self::Start,
            _ => return Err(WireError::Invalid("event kind")),
        };
        reader.end("event of a client")?;
        Ok(event)
    }

    /// Gives `take` the kind and, in parts, the body of this event.
    pub fn parts<R>(&self, take: impl FnOnce(u8, &[&[u8]]) -> R) -> R {
        match *self {
            Self::Chat(text) => take(event::CHAT, &[&len_of(text), text.as_bytes()]),
            Self::Custom(body) => take(event::CUSTOM, &[body]),
            Self::Start => take(event::START, &[]),
        }
    }
}

/// An event of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FromServer<'a> {
    /// Somebody is in the game, or was before the receiver.
    PlayerJoined {
        /// Its number, 0 to 3.
        player: u8,
        /// What [`name`] accepts.
        name: &'a str,
    },
    /// Somebody is gone.
    PlayerLeft {
        /// Its number, 0 to 3.
        player: u8,
        /// A [`Reason`], or a number still unknown.
        reason: u8,
    },
    /// The game runs.
    GameStarted,
    /// A line of chat.
    Chat {
        /// Who said it; the game may use a number that is no player's.
        player: u8,
        /// What [`text`] accepts.
        text: &'a str,
    },
    /// The game's own.
    Custom(&'a [u8]),
}

impl<'a> FromServer<'a> {
    /// Reads the body of an event of this kind; `None` is one that a client skips, unknown or not
    /// meant for it.
    ///
    /// # Errors
    /// A known kind with a body outside its rule.
    pub fn read(kind: u8, body: &'a [u8]) -> Result<Option<Self>, WireError> {
        let mut reader = Reader::new(body);
        let event = match kind {
            event::PLAYER_JOINED => Self::PlayerJoined {
                player: read_player(&mut reader)?,
                name: name(reader.string_le("name")?).ok_or(WireError::Invalid("name"))?,
            },
            event::PLAYER_LEFT => Self::PlayerLeft {
                player: read_player(&mut reader)?,
                reason: reader.u8("reason")?,
            },
            event::GAME_STARTED => Self::GameStarted,
            event::CHAT => Self::Chat {
                player: reader.u8("player")?,
                text: read_text(&mut reader)?,
            },
            event::CUSTOM => Self::Custom(reader.rest()),
            _ => return Ok(None),
        };
        reader.end("event of the server")?;
        Ok(Some(event))
    }

    /// Gives `take` the kind and, in parts, the body of this event.
    pub fn parts<R>(&self, take: impl FnOnce(u8, &[&[u8]]) -> R) -> R {
        match *self {
            Self::PlayerJoined { player, name } => {
                let parts: [&[u8]; 3] = [&[player], &len_of(name), name.as_bytes()];
                take(event::PLAYER_JOINED, &parts)
            }
            Self::PlayerLeft { player, reason } => take(event::PLAYER_LEFT, &[&[player, reason]]),
            Self::GameStarted => take(event::GAME_STARTED, &[]),
            Self::Chat { player, text } => {
                let parts: [&[u8]; 3] = [&[player], &len_of(text), text.as_bytes()];
                take(event::CHAT, &parts)
            }
            Self::Custom(body) => take(event::CUSTOM, &[body]),
        }
    }
}

/// The length in front of a string. Names and texts are far shorter than it could say.
fn len_of(string: &str) -> [u8; 2] {
    u16::try_from(string.len())
        .unwrap_or(u16::MAX)
        .to_le_bytes()
}

fn read_player(reader: &mut Reader<'_>) -> Result<u8, WireError> {
    let player = reader.u8("player")?;
    check(player < PLAYERS_MAX, "player")?;
    Ok(player)
}

fn read_text<'a>(reader: &mut Reader<'a>) -> Result<&'a str, WireError> {
    text(reader.string_le("text")?).ok_or(WireError::Invalid("text"))
}

fn check(holds: bool, field: &'static str) -> Result<(), WireError> {
    if holds {
        Ok(())
    } else {
        Err(WireError::Invalid(field))
    }
}

/// Reads `bytes` as everything they could be: nothing may panic, and what is accepted must be
/// written again exactly as it came. For fuzzing; see also the test of the same name.
#[doc(hidden)]
pub fn fuzz(bytes: &[u8]) {
    if let Ok(Some(body)) = frame(bytes) {
        fuzz_message(body);
    }
    fuzz_message(bytes);
    if let Ok((header, payload)) = Header::read(bytes) {
        let mut again = Vec::new();
        header.write(&mut Writer::new(&mut again));
        assert_eq!([&again, payload].concat(), bytes);
        fuzz_payload(header.kind, payload);
    }
    if let Some((&kind, rest)) = bytes.split_first() {
        fuzz_payload(kind, rest);
        fuzz_event(kind, rest);
    }
}

fn fuzz_message(body: &[u8]) {
    let mut again = Vec::new();
    if let Ok(message) = ToServer::read(body) {
        message.write(&mut Writer::new(&mut again));
        let kept = match message {
            ToServer::LoginRequest(Login::OtherVersion(_)) => 2,
            _ => body.len(),
        };
        fuzz_frame(&again, &body[..kept]);
    }
    again.clear();
    if let Ok(message) = ToClient::read(body) {
        message.write(&mut Writer::new(&mut again));
        fuzz_frame(&again, body);
    }
}

fn fuzz_frame(written: &[u8], body: &[u8]) {
    assert_eq!(&written[FRAME_HEAD_BYTES..], body);
    if body.len() <= FRAME_MAX {
        assert_eq!(frame(written), Ok(Some(body)));
    }
}

fn fuzz_payload(kind: u8, payload: &[u8]) {
    let Ok(read) = Payload::read(kind, payload) else {
        return;
    };
    let mut again = Vec::new();
    read.write(&mut Writer::new(&mut again));
    assert_eq!((read.kind(), &again[..]), (kind, payload));
    if let Payload::Events(events) = read {
        again.clear();
        for event in events.clone() {
            event.write(&mut Writer::new(&mut again));
            fuzz_event(event.kind, event.body);
        }
        assert_eq!(again, payload);
        assert!((1..=EVENTS_MAX).contains(&events.count()));
    }
}

fn fuzz_event(kind: u8, body: &[u8]) {
    let same = |kind_again: u8, parts: &[&[u8]]| {
        assert_eq!((kind_again, &parts.concat()[..]), (kind, body));
    };
    if let Ok(event) = FromClient::read(kind, body) {
        event.parts(same);
    }
    if let Ok(Some(event)) = FromServer::read(kind, body) {
        event.parts(same);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // From the protocol's own example (3.5) and, for what it does not show, laid out by hand.
    const LOGIN_REQUEST: &[u8] = b"\x06\0\x01\x01\x02\0R9";
    const LOGIN_ACCEPTED: &[u8] = b"\x08\0\x02\xEF\xBE\xAD\xDE\x02\x92\x10";
    const CONNECT: &[u8] = b"RTYP\x01\x01\0\0\xFF\xFF\0\0\0\0\xEF\xBE\xAD\xDE";
    /// Chat "hi" as event 0x0102, then a Start as event 0x0103.
    const EVENTS: &[u8] = b"\x02\x01\x04\x04\0\x02\0hi\x03\x01\x06\0\0";

    fn written(write: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
        let mut bytes = Vec::new();
        write(&mut Writer::new(&mut bytes));
        bytes
    }

    fn joined(kind: u8, parts: &[&[u8]]) -> (u8, Vec<u8>) {
        (kind, parts.concat())
    }

    /// `accepts` these bytes, and neither any truncation of them nor one byte more.
    fn only_whole(bytes: &[u8], accepts: impl Fn(&[u8]) -> bool) {
        assert!(accepts(bytes));
        for cut in 0..bytes.len() {
            assert!(!accepts(&bytes[..cut]), "cut at {cut} of {bytes:02X?}");
        }
        assert!(
            !accepts(&[bytes, &[0]].concat()),
            "longer than {bytes:02X?}"
        );
    }

    #[test]
    fn messages_to_the_server_are_the_documents_bytes() {
        let login = ToServer::LoginRequest(Login::V1 { name: b"R9" });
        let other = ToServer::LoginRequest(Login::OtherVersion(2));
        let logout = ToServer::Logout { reason: 0 };
        for (message, bytes) in [
            (login, LOGIN_REQUEST),
            (other, b"\x02\0\x01\x02"),
            (logout, b"\x02\0\x04\0"),
        ] {
            assert_eq!(written(|w| message.write(w)), bytes);
            let body = frame(bytes).unwrap().unwrap();
            assert_eq!(ToServer::read(body), Ok(message));
        }
        only_whole(&LOGIN_REQUEST[2..], |body| ToServer::read(body).is_ok());
        only_whole(b"\x04\x09", |body| ToServer::read(body).is_ok());
    }

    #[test]
    fn another_version_is_told_before_the_shape() {
        let other = Ok(ToServer::LoginRequest(Login::OtherVersion(9)));
        assert_eq!(ToServer::read(b"\x01\x09"), other);
        assert_eq!(ToServer::read(b"\x01\x09\xFF\xFFgarbage"), other);
        assert_eq!(ToServer::read(b"\x01"), Err(WireError::Short("version")));
    }

    #[test]
    fn messages_to_the_client_are_the_documents_bytes() {
        let accepted = ToClient::LoginAccepted {
            session: 0xDEAD_BEEF,
            player: 2,
            udp_port: 4242,
        };
        let rejected = ToClient::LoginRejected { reason: 4 };
        let logout = ToClient::Logout { reason: 200 };
        for (message, bytes) in [
            (accepted, LOGIN_ACCEPTED),
            (rejected, b"\x02\0\x03\x04"),
            (logout, b"\x02\0\x04\xC8"),
        ] {
            assert_eq!(written(|w| message.write(w)), bytes);
            assert_eq!(ToClient::read(frame(bytes).unwrap().unwrap()), Ok(message));
            only_whole(&bytes[2..], |body| ToClient::read(body).is_ok());
        }
    }

    #[test]
    fn kinds_unknown_or_of_the_other_direction_are_refused() {
        for kind in (0..=255).filter(|kind| ![1, 4].contains(kind)) {
            let body = [&[kind], &LOGIN_ACCEPTED[3..]].concat();
            assert_eq!(ToServer::read(&body), Err(WireError::Invalid("kind")));
        }
        for kind in (0..=255).filter(|kind| ![2, 3, 4].contains(kind)) {
            let body = [&[kind], &LOGIN_REQUEST[3..]].concat();
            assert_eq!(ToClient::read(&body), Err(WireError::Invalid("kind")));
        }
    }

    #[test]
    fn a_login_accepted_holds_no_nonsense() {
        for (body, field) in [
            (b"\x02\0\0\0\0\x02\x92\x10", "session"),
            (b"\x02\x01\0\0\0\x04\x92\x10", "player"),
            (b"\x02\x01\0\0\0\x03\0\0", "udp_port"),
        ] {
            assert_eq!(ToClient::read(body), Err(WireError::Invalid(field)));
        }
        assert!(ToClient::read(b"\x02\x01\0\0\0\x03\x01\0").is_ok());
    }

    #[test]
    fn a_frame_is_whole_or_awaited_or_refused_at_its_length() {
        for cut in 0..LOGIN_REQUEST.len() {
            assert_eq!(frame(&LOGIN_REQUEST[..cut]), Ok(None));
        }
        let two = [LOGIN_REQUEST, LOGIN_ACCEPTED].concat();
        assert_eq!(frame(&two), Ok(Some(&LOGIN_REQUEST[2..])));
        assert_eq!(frame(b"\0\0"), Err(WireError::Invalid("len")));
        assert_eq!(frame(b"\x01\x02"), Err(WireError::Invalid("len")));
        let longest = [&b"\0\x02"[..], &[7; FRAME_MAX]].concat();
        assert_eq!(frame(&longest), Ok(Some(&[7; FRAME_MAX][..])));
        assert_eq!(frame(&longest[..2]), Ok(None));
    }

    #[test]
    fn names_and_texts_keep_their_rule() {
        for good in ["R", "R9", "sixteen bytes ok", "\u{80}", "é\u{202E}", " "] {
            assert_eq!(name(good.as_bytes()), Some(good));
        }
        for bad in [
            &b""[..],
            b"seventeen bytes..",
            b"\xC3",
            b"a\x1F",
            b"\x7F",
            b"\0",
        ] {
            assert_eq!(name(bad), None);
        }
        assert!(text(&[b'x'; 200]).is_some());
        assert!(text(&[b'x'; 201]).is_none() && text(b"").is_none() && text(b"a\nb").is_none());
    }

    #[test]
    fn the_header_is_the_documents_bytes() {
        let header = Header {
            kind: kind::CONNECT,
            sequence: 0,
            ack: NOTHING_RECEIVED,
            ack_bits: 0,
            session: 0xDEAD_BEEF,
        };
        assert_eq!(written(|w| header.write(w)), CONNECT);
        assert_eq!(Header::read(CONNECT), Ok((header, &[][..])));
        assert_eq!(Payload::read(header.kind, &[]), Ok(Payload::Connect));
        let fields = b"RTYP\x01\x06\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0A\x0B\x0C!";
        let header = Header {
            kind: kind::EVENTS,
            sequence: 0x0201,
            ack: 0x0403,
            ack_bits: 0x0807_0605,
            session: 0x0C0B_0A09,
        };
        assert_eq!(Header::read(fields), Ok((header, &b"!"[..])));
        assert_eq!(written(|w| header.write(w)), &fields[..18]);
    }

    #[test]
    fn a_header_is_refused_by_the_first_fault() {
        for cut in 0..CONNECT.len() {
            assert_eq!(Header::read(&CONNECT[..cut]), Err(HeaderError::Short));
        }
        let longest = [CONNECT, &[0; PAYLOAD_MAX]].concat();
        assert!(Header::read(&longest).is_ok());
        assert_eq!(Header::read(&[0; DATAGRAM_MAX + 1]), Err(HeaderError::Long));
        for at in 0..4 {
            let mut bytes = longest.clone();
            (bytes[at], bytes[4]) = (b'x', 9);
            assert_eq!(Header::read(&bytes), Err(HeaderError::Magic));
        }
        for version in [0, 2, 255] {
            let mut bytes = longest.clone();
            bytes[4] = version;
            assert_eq!(Header::read(&bytes), Err(HeaderError::Version));
        }
    }

    #[test]
    fn payloads_are_their_bytes_and_have_their_direction() {
        let events = Payload::Events(Events::read(EVENTS).unwrap());
        let nonce = &0x0102_0304_u32.to_le_bytes()[..];
        let cases = [
            (Payload::Connect, 1, &b""[..], (true, false)),
            (Payload::Accept, 2, b"", (false, true)),
            (Payload::Ping(0x0102_0304), 3, nonce, (true, true)),
            (Payload::Pong(0x0102_0304), 4, nonce, (true, true)),
            (Payload::Data(b"any"), 5, b"any", (true, true)),
            (Payload::Data(b""), 5, b"", (true, true)),
            (events, 6, EVENTS, (true, true)),
            (Payload::Ack, 7, b"", (true, true)),
        ];
        for (payload, kind, bytes, (for_server, for_client)) in cases {
            assert_eq!(payload.kind(), kind);
            assert_eq!(written(|w| payload.write(w)), bytes);
            assert_eq!(payload.is_for_server(), for_server);
            assert_eq!(payload.is_for_client(), for_client);
            assert_eq!(Payload::read(kind, bytes).as_ref(), Ok(&payload));
            if kind != kind::DATA && kind != kind::EVENTS {
                only_whole(bytes, |bytes| Payload::read(kind, bytes).is_ok());
            }
        }
        for kind in [0, 8, 16, 255] {
            assert_eq!(Payload::read(kind, b""), Err(WireError::Invalid("type")));
        }
    }

    #[test]
    fn events_are_1_to_32_and_all_whole() {
        let chat = RawEvent {
            id: 0x0102,
            kind: event::CHAT,
            body: b"\x02\0hi",
        };
        let start = RawEvent {
            id: 0x0103,
            kind: event::START,
            body: b"",
        };
        let events = Events::read(EVENTS).unwrap();
        assert_eq!(events.clone().collect::<Vec<_>>(), [chat, start]);
        let bytes = written(|w| [chat, start].iter().for_each(|event| event.write(w)));
        assert_eq!(bytes, EVENTS);
        for cut in (0..EVENTS.len()).filter(|&cut| cut != 9) {
            assert!(Events::read(&EVENTS[..cut]).is_err(), "cut at {cut}");
        }
        assert!(Events::read(&[EVENTS, &[0]].concat()).is_err());
        assert_eq!(Events::read(&[0; 5 * 32]).unwrap().count(), 32);
        assert_eq!(
            Events::read(&[0; 5 * 33]),
            Err(WireError::Invalid("events"))
        );
        let mut long = [&b"\0\0\x05\0\x04"[..], &[0; 1025]].concat();
        assert!(Events::read(&long[..long.len() - 1]).is_ok());
        long[3] = 1;
        assert_eq!(Events::read(&long), Err(WireError::Invalid("event body")));
    }

    #[test]
    fn events_of_a_client_are_their_bytes() {
        for (event, kind, body) in [
            (FromClient::Chat("hé"), 4, &b"\x03\0h\xC3\xA9"[..]),
            (FromClient::Custom(b"own"), 5, b"own"),
            (FromClient::Start, 6, b""),
        ] {
            assert_eq!(event.parts(joined), (kind, body.to_vec()));
            assert_eq!(FromClient::read(kind, body), Ok(event));
        }
        only_whole(b"\x02\0hi", |body| {
            FromClient::read(event::CHAT, body).is_ok()
        });
        only_whole(b"", |body| FromClient::read(event::START, body).is_ok());
        assert!(FromClient::read(event::CHAT, b"\x02\0h\n").is_err());
        assert!(FromClient::read(event::CUSTOM, &[0; 1023]).is_ok());
        assert!(FromClient::read(event::CUSTOM, &[0; 1024]).is_err());
        for kind in (0..=255).filter(|kind| !(4..=6).contains(kind)) {
            assert!(FromClient::read(kind, b"").is_err());
        }
    }

    #[test]
    fn events_of_the_server_are_their_bytes() {
        for (event, kind, body) in [
            (
                FromServer::PlayerJoined {
                    player: 3,
                    name: "R9",
                },
                1,
                &b"\x03\x02\0R9"[..],
            ),
            (
                FromServer::PlayerLeft {
                    player: 2,
                    reason: 9,
                },
                2,
                b"\x02\x09",
            ),
            (FromServer::GameStarted, 3, b""),
            (
                FromServer::Chat {
                    player: 255,
                    text: "hi",
                },
                4,
                b"\xFF\x02\0hi",
            ),
            (FromServer::Custom(b"own"), 5, b"own"),
        ] {
            assert_eq!(event.parts(joined), (kind, body.to_vec()));
            assert_eq!(FromServer::read(kind, body), Ok(Some(event)));
            if kind != event::CUSTOM {
                only_whole(body, |body| FromServer::read(kind, body).is_ok());
            }
        }
        for (kind, body) in [
            (1, &b"\x04\x02\0R9"[..]),
            (2, b"\x04\0"),
            (1, b"\0\0\0"),
            (4, b"\0\0\0"),
        ] {
            assert!(FromServer::read(kind, body).is_err());
        }
        for kind in (0..=255).filter(|kind| !(1..=5).contains(kind)) {
            assert_eq!(FromServer::read(kind, b"anything"), Ok(None));
        }
    }

    #[test]
    fn reasons_are_their_numbers() {
        for code in 0..=255 {
            assert_eq!(
                Reject::from_code(code).map(Reject::code),
                (1..=8).contains(&code).then_some(code)
            );
            assert_eq!(
                Reason::from_code(code).map(Reason::code),
                (code <= 4).then_some(code)
            );
        }
        assert_eq!(Reason::of_server_logout(5), Reason::Shutdown);
        assert_eq!(Reason::of_server_logout(2), Reason::TimedOut);
    }

    /// Numbers that look random and are the same in every run (xorshift).
    fn next(state: &mut u64) -> usize {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        (*state >> 32) as usize
    }

    #[test]
    fn fuzz() {
        let seeds: [&[u8]; 7] = [
            LOGIN_REQUEST,
            LOGIN_ACCEPTED,
            b"\x02\0\x04\0",
            CONNECT,
            &[b"RTYP\x01\x06\0\0\xFF\xFF\0\0\0\0\x01\0\0\0", EVENTS].concat(),
            b"\x01\x03\x02\0R9",
            b"\x04\xFF\x02\0hi",
        ];
        let mut state = 0x5EED;
        for round in 0..200_000 {
            let mut bytes = seeds[next(&mut state) % seeds.len()].to_vec();
            for _ in 0..next(&mut state) % 4 {
                let at = next(&mut state) % (bytes.len() + 1);
                match next(&mut state) % 4 {
                    0 => bytes.truncate(at),
                    1 => bytes.insert(at, next(&mut state) as u8),
                    2 => bytes.extend_from_within(at..),
                    _ if at < bytes.len() => bytes[at] = next(&mut state) as u8,
                    _ => {}
                }
            }
            assert!(bytes.len() < 1000, "round {round}");
            super::fuzz(&bytes);
        }
    }
}
