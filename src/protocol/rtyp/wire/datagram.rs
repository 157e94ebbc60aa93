//! UDP: the header of every datagram, and the payloads of each type.

use std::fmt;

use super::event::Events;
use super::token::{PlayerToken, Session, SessionToken, SharedToken};
use super::{DATAGRAM_MAX, HEADER_BYTES, MAGIC, VERSION, VERSION_2, read_player};
use crate::bytes::{Reader, WireError, Writer};

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
    /// Version 2, client to server: lets the client in, once its cookie is right.
    pub const CLIENT_HELLO: u8 = 16;
    /// Version 2, server to client: the cookie.
    pub const CONNECT_CHALLENGE: u8 = 17;
    /// Version 2, server to client: the session.
    pub const SERVER_HELLO: u8 = 18;
    /// Version 2, server to client: no session, and why.
    pub const HELLO_REJECTED: u8 = 19;
    /// Version 2, client to server: the session ends.
    pub const CLIENT_BYE: u8 = 20;
    /// Version 2, server to client: the session ends, and why.
    pub const SERVER_BYE: u8 = 21;
}

/// What stands in front of every datagram, behind magic and version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// One of [`kind`], or a number that is none.
    pub kind: u8,
    /// The number of this datagram among its sender's, wrapping.
    pub sequence: u16,
    /// The newest sequence received; [`NOTHING_RECEIVED`](super::NOTHING_RECEIVED) with no bits before there is one.
    pub ack: u16,
    /// Bit n: `ack - 1 - n` was received.
    pub ack_bits: u32,
    /// The token, and with it the version.
    pub session: Session,
}

/// Why bytes are no datagram of ours. Each is counted apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HeaderError {
    /// Above [`DATAGRAM_MAX`].
    Long,
    /// Below [`HEADER_BYTES`], or below the header of its version and direction.
    Short,
    /// It does not start with [`MAGIC`].
    Magic,
    /// Neither [`VERSION`] nor [`VERSION_2`].
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

/// Who sent a datagram.
#[derive(Debug, Clone, Copy)]
enum Side {
    Client,
    Server,
}

impl Header {
    /// Splits a datagram of a client into header and payload.
    ///
    /// # Errors
    /// The first that applies, in the order of [`HeaderError`].
    pub fn from_client(datagram: &[u8]) -> Result<(Self, &[u8]), HeaderError> {
        Self::read(datagram, Side::Client)
    }

    /// Splits a datagram of the server into header and payload.
    ///
    /// # Errors
    /// The first that applies, in the order of [`HeaderError`].
    pub fn from_server(datagram: &[u8]) -> Result<(Self, &[u8]), HeaderError> {
        Self::read(datagram, Side::Server)
    }

    fn read(datagram: &[u8], side: Side) -> Result<(Self, &[u8]), HeaderError> {
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
        let version = match reader.u8("version") {
            Ok(version @ (VERSION | VERSION_2)) => version,
            _ => return Err(HeaderError::Version),
        };
        let header = Self::fields(&mut reader, version, side).map_err(|_| HeaderError::Short)?;
        Ok((header, reader.rest()))
    }

    fn fields(reader: &mut Reader<'_>, version: u8, side: Side) -> Result<Self, WireError> {
        Ok(Self {
            kind: reader.u8("type")?,
            sequence: reader.u16_le("sequence")?,
            ack: reader.u16_le("ack")?,
            ack_bits: reader.u32_le("ack_bits")?,
            session: match (version, side) {
                (VERSION, _) => Session::Shared(SharedToken(reader.u32_le("session")?)),
                (_, Side::Client) => Session::Secret(SessionToken(reader.u64_le("session")?)),
                (_, Side::Server) => Session::Public(PlayerToken(reader.u32_le("session")?)),
            },
        })
    }

    /// Appends the header; the payload goes behind it.
    pub fn write(&self, writer: &mut Writer<'_>) {
        writer.bytes(&MAGIC);
        writer.u8(self.session.version());
        writer.u8(self.kind);
        writer.u16_le(self.sequence);
        writer.u16_le(self.ack);
        writer.u32_le(self.ack_bits);
        match self.session {
            Session::Shared(SharedToken(token)) | Session::Public(PlayerToken(token)) => {
                writer.u32_le(token);
            }
            Session::Secret(SessionToken(token)) => writer.u64_le(token),
        }
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
    /// Lets the client in; only to the server.
    ClientHello(Hello<'a>),
    /// The cookie; only to the client.
    ConnectChallenge(u64),
    /// The session and the player's number; only to the client.
    ServerHello(SessionToken, u8),
    /// Why there is no session; only to the client.
    HelloRejected(u8),
    /// The client ends the session, whatever reason it says; only to the server.
    ClientBye(u8),
    /// The server ends the session; only to the client.
    ServerBye(u8),
}

/// What a ClientHello carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hello<'a> {
    /// The newest cookie the client has; 0 if it has none.
    pub cookie: u64,
    /// Empty, or the name of a game.
    pub room: &'a [u8],
    /// Raw, to be judged by [`name`](super::name).
    pub name: &'a [u8],
}

impl<'a> Hello<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self, WireError> {
        Ok(Self {
            cookie: reader.u64_le("cookie")?,
            room: reader.string_le("room")?,
            name: reader.string_le("name")?,
        })
    }

    fn write(&self, writer: &mut Writer<'_>) {
        writer.u64_le(self.cookie);
        writer.string_le(self.room);
        writer.string_le(self.name);
    }
}

impl<'a> Payload<'a> {
    /// Reads the payload of a datagram of this version and [`kind`](Header::kind), whatever its direction
    /// (see [`Payload::is_for_server`] and [`Payload::is_for_client`]). The bodies of events are
    /// not looked into.
    ///
    /// # Errors
    /// An unknown kind; a payload of another shape than its kind has.
    pub fn read(version: u8, kind: u8, payload: &'a [u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(payload);
        let read = match kind {
            kind::CONNECT if version == VERSION => Self::Connect,
            kind::ACCEPT if version == VERSION => Self::Accept,
            kind::PING => Self::Ping(reader.u32_le("nonce")?),
            kind::PONG => Self::Pong(reader.u32_le("nonce")?),
            kind::DATA => Self::Data(reader.rest()),
            kind::EVENTS => Self::Events(Events::read(reader.rest())?),
            kind::ACK => Self::Ack,
            _ if version != VERSION_2 => return Err(WireError::Invalid("type")),
            kind::CLIENT_HELLO => Self::ClientHello(Hello::read(&mut reader)?),
            kind::CONNECT_CHALLENGE => Self::ConnectChallenge(reader.u64_le("cookie")?),
            kind::SERVER_HELLO => {
                let token = SessionToken(reader.u64_le("session_token")?);
                Self::ServerHello(token, read_player(&mut reader)?)
            }
            kind::HELLO_REJECTED => Self::HelloRejected(reader.u8("reason")?),
            kind::CLIENT_BYE => Self::ClientBye(reader.u8("reason")?),
            kind::SERVER_BYE => Self::ServerBye(reader.u8("reason")?),
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
            Self::Events(events) => writer.bytes(events.as_bytes()),
            Self::ClientHello(hello) => hello.write(writer),
            Self::ConnectChallenge(cookie) => writer.u64_le(*cookie),
            Self::ServerHello(SessionToken(token), player) => {
                writer.u64_le(*token);
                writer.u8(*player);
            }
            Self::HelloRejected(reason) | Self::ClientBye(reason) | Self::ServerBye(reason) => {
                writer.u8(*reason);
            }
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
            Self::ClientHello(_) => kind::CLIENT_HELLO,
            Self::ConnectChallenge(_) => kind::CONNECT_CHALLENGE,
            Self::ServerHello(..) => kind::SERVER_HELLO,
            Self::HelloRejected(_) => kind::HELLO_REJECTED,
            Self::ClientBye(_) => kind::CLIENT_BYE,
            Self::ServerBye(_) => kind::SERVER_BYE,
        }
    }

    /// Whether a client may send it.
    pub fn is_for_server(&self) -> bool {
        !matches!(
            self,
            Self::Accept
                | Self::ConnectChallenge(_)
                | Self::ServerHello(..)
                | Self::HelloRejected(_)
                | Self::ServerBye(_)
        )
    }

    /// Whether the server may send it.
    pub fn is_for_client(&self) -> bool {
        !matches!(
            self,
            Self::Connect | Self::ClientHello(_) | Self::ClientBye(_)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{CONNECT, EVENTS, only_whole, written};
    use super::super::{NOTHING_RECEIVED, PAYLOAD_MAX};
    use super::*;

    #[test]
    fn the_header_is_the_documents_bytes() {
        let header = Header {
            kind: kind::CONNECT,
            sequence: 0,
            ack: NOTHING_RECEIVED,
            ack_bits: 0,
            session: Session::Shared(SharedToken(0xDEAD_BEEF)),
        };
        assert_eq!(written(|w| header.write(w)), CONNECT);
        assert_eq!(Header::from_client(CONNECT), Ok((header, &[][..])));
        assert_eq!(
            Payload::read(VERSION, header.kind, &[]),
            Ok(Payload::Connect)
        );
        let fields = b"RTYP\x01\x06\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0A\x0B\x0C!";
        let header = Header {
            kind: kind::EVENTS,
            sequence: 0x0201,
            ack: 0x0403,
            ack_bits: 0x0807_0605,
            session: Session::Shared(SharedToken(0x0C0B_0A09)),
        };
        assert_eq!(Header::from_client(fields), Ok((header, &b"!"[..])));
        assert_eq!(written(|w| header.write(w)), &fields[..18]);
    }

    #[test]
    fn a_header_is_refused_by_the_first_fault() {
        for cut in 0..CONNECT.len() {
            assert_eq!(
                Header::from_client(&CONNECT[..cut]),
                Err(HeaderError::Short)
            );
        }
        let longest = [CONNECT, &[0; PAYLOAD_MAX]].concat();
        assert!(Header::from_client(&longest).is_ok());
        assert_eq!(
            Header::from_client(&[0; DATAGRAM_MAX + 1]),
            Err(HeaderError::Long)
        );
        for at in 0..4 {
            let mut bytes = longest.clone();
            (bytes[at], bytes[4]) = (b'x', 9);
            assert_eq!(Header::from_client(&bytes), Err(HeaderError::Magic));
        }
        for version in [0, 3, 255] {
            let mut bytes = longest.clone();
            bytes[4] = version;
            assert_eq!(Header::from_client(&bytes), Err(HeaderError::Version));
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
            assert_eq!(Payload::read(VERSION, kind, bytes).as_ref(), Ok(&payload));
            if kind != kind::DATA && kind != kind::EVENTS {
                only_whole(bytes, |bytes| Payload::read(VERSION, kind, bytes).is_ok());
            }
        }
        for kind in [0, 8, 16, 255] {
            assert_eq!(
                Payload::read(VERSION, kind, b""),
                Err(WireError::Invalid("type"))
            );
        }
    }
}
