//! UDP: the header of every datagram, and the payloads of each type.

use std::fmt;

use super::event::Events;
use super::{DATAGRAM_MAX, HEADER_BYTES, MAGIC, VERSION};
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
            Self::Events(events) => writer.bytes(events.as_bytes()),
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
}
