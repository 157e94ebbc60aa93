//! Reliable events: their heads in an Events datagram, and the bodies of each kind.

use super::{CUSTOM_FROM_CLIENT_MAX, EVENT_BODY_MAX, EVENTS_MAX, check, name, read_player, text};
use crate::bytes::{Reader, WireError, Writer};

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

/// One reliable event, its body not looked into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawEvent<'a> {
    /// Its number among its sender's events, wrapping.
    pub id: u16,
    /// One of the kinds above, or a number that is none.
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

    /// Appends the event: [`EVENT_HEAD_BYTES`](super::EVENT_HEAD_BYTES) and the body.
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

    /// The bytes of the events that are left.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.rest
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
            CHAT => Self::Chat(read_text(&mut reader)?),
            CUSTOM => {
                check(body.len() <= CUSTOM_FROM_CLIENT_MAX, "custom body")?;
                Self::Custom(reader.rest())
            }
            START => Self::Start,
            _ => return Err(WireError::Invalid("event kind")),
        };
        reader.end("event of a client")?;
        Ok(event)
    }

    /// Gives `take` the kind and, in parts, the body of this event.
    pub fn parts<R>(&self, take: impl FnOnce(u8, &[&[u8]]) -> R) -> R {
        match *self {
            Self::Chat(text) => take(CHAT, &[&len_of(text), text.as_bytes()]),
            Self::Custom(body) => take(CUSTOM, &[body]),
            Self::Start => take(START, &[]),
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
        /// A [`Reason`](super::Reason), or a number still unknown.
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
            PLAYER_JOINED => Self::PlayerJoined {
                player: read_player(&mut reader)?,
                name: name(reader.string_le("name")?).ok_or(WireError::Invalid("name"))?,
            },
            PLAYER_LEFT => Self::PlayerLeft {
                player: read_player(&mut reader)?,
                reason: reader.u8("reason")?,
            },
            GAME_STARTED => Self::GameStarted,
            CHAT => Self::Chat {
                player: reader.u8("player")?,
                text: read_text(&mut reader)?,
            },
            CUSTOM => Self::Custom(reader.rest()),
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
                take(PLAYER_JOINED, &parts)
            }
            Self::PlayerLeft { player, reason } => take(PLAYER_LEFT, &[&[player, reason]]),
            Self::GameStarted => take(GAME_STARTED, &[]),
            Self::Chat { player, text } => {
                let parts: [&[u8]; 3] = [&[player], &len_of(text), text.as_bytes()];
                take(CHAT, &parts)
            }
            Self::Custom(body) => take(CUSTOM, &[body]),
        }
    }
}

/// The length in front of a string. Names and texts are far shorter than it could say.
fn len_of(string: &str) -> [u8; 2] {
    u16::try_from(string.len())
        .unwrap_or(u16::MAX)
        .to_le_bytes()
}

fn read_text<'a>(reader: &mut Reader<'a>) -> Result<&'a str, WireError> {
    text(reader.string_le("text")?).ok_or(WireError::Invalid("text"))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{EVENTS, only_whole, written};
    use super::*;

    fn joined(kind: u8, parts: &[&[u8]]) -> (u8, Vec<u8>) {
        (kind, parts.concat())
    }

    #[test]
    fn events_are_1_to_32_and_all_whole() {
        let chat = RawEvent {
            id: 0x0102,
            kind: CHAT,
            body: b"\x02\0hi",
        };
        let start = RawEvent {
            id: 0x0103,
            kind: START,
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
        only_whole(b"\x02\0hi", |body| FromClient::read(CHAT, body).is_ok());
        only_whole(b"", |body| FromClient::read(START, body).is_ok());
        assert!(FromClient::read(CHAT, b"\x02\0h\n").is_err());
        assert!(FromClient::read(CUSTOM, &[0; 1023]).is_ok());
        assert!(FromClient::read(CUSTOM, &[0; 1024]).is_err());
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
            if kind != CUSTOM {
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
}
