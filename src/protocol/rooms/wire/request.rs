//! Client to server: what a packet asks for.

use std::fmt;

use super::token::Token;
use super::{kind, write_packet};
use crate::bytes::{Reader, WireError, Writer};

/// What a client sends, all of it over UDP. Strings and numbers are raw: the answer, not the
/// reader, judges them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request<'a> {
    /// Who the client is.
    Login {
        /// To be judged by [`user_name`](super::user_name).
        user: &'a [u8],
        /// To be judged by [`password`](super::password).
        password: Password<'a>,
    },
    /// A new account.
    Register {
        /// To be judged by [`user_name`](super::user_name).
        user: &'a [u8],
        /// To be judged by [`password`](super::password).
        password: Password<'a>,
    },
    /// The client ends its session.
    Logout {
        /// Whatever the client says; it asked.
        reason: u8,
    },
    /// A line for the room.
    Chat {
        /// To be judged by [`chat_text`](super::chat_text).
        text: &'a [u8],
    },
    /// A new room.
    CreateRoom {
        /// To be judged by [`room_name`](super::room_name).
        name: &'a [u8],
        /// Empty, or to be judged by [`password`](super::password).
        password: Password<'a>,
        /// How many it is for.
        max_players: u8,
    },
    /// The end of the client's room.
    DeleteRoom {
        /// Which.
        name: &'a [u8],
    },
    /// A seat in a room.
    JoinRoom {
        /// Which.
        name: &'a [u8],
        /// What the room may ask for.
        password: Password<'a>,
    },
    /// Which rooms there are.
    GetRooms {
        /// How many of them, in order of creation, to pass over.
        first: u16,
    },
    /// Out of the room.
    LeaveRoom,
    /// A key was pressed.
    Key(i32),
    /// A sign of life, and a question for the entities of the room.
    Init,
}

impl<'a> Request<'a> {
    /// Reads the payload of a packet of this type.
    ///
    /// # Errors
    /// A type that is unknown or only the server's, a field cut short, bytes left over.
    pub fn read(kind: u8, payload: &'a [u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(payload);
        let request = match kind {
            kind::LOGIN => Self::Login {
                user: reader.string_be("user")?,
                password: Password(reader.string_be("password")?),
            },
            kind::REGISTER => Self::Register {
                user: reader.string_be("user")?,
                password: Password(reader.string_be("password")?),
            },
            kind::LOGOUT => Self::Logout {
                reason: reader.u8("reason")?,
            },
            kind::CHAT => Self::Chat {
                text: reader.string_be("text")?,
            },
            kind::CREATE_ROOM => Self::CreateRoom {
                name: reader.string_be("name")?,
                password: Password(reader.string_be("password")?),
                max_players: reader.u8("max_players")?,
            },
            kind::DELETE_ROOM => Self::DeleteRoom {
                name: reader.string_be("name")?,
            },
            kind::JOIN_ROOM => Self::JoinRoom {
                name: reader.string_be("name")?,
                password: Password(reader.string_be("password")?),
            },
            kind::GET_ROOMS => Self::GetRooms {
                first: reader.u16_be("first")?,
            },
            kind::LEAVE_ROOM => Self::LeaveRoom,
            kind::KEY => Self::Key(reader.i32_be("key")?),
            kind::INIT => Self::Init,
            _ => return Err(WireError::Invalid("type")),
        };
        reader.end("request")?;
        Ok(request)
    }

    /// The type of its packet.
    pub fn kind(&self) -> u8 {
        match self {
            Self::Login { .. } => kind::LOGIN,
            Self::Register { .. } => kind::REGISTER,
            Self::Logout { .. } => kind::LOGOUT,
            Self::Chat { .. } => kind::CHAT,
            Self::CreateRoom { .. } => kind::CREATE_ROOM,
            Self::DeleteRoom { .. } => kind::DELETE_ROOM,
            Self::JoinRoom { .. } => kind::JOIN_ROOM,
            Self::GetRooms { .. } => kind::GET_ROOMS,
            Self::LeaveRoom => kind::LEAVE_ROOM,
            Self::Key(_) => kind::KEY,
            Self::Init => kind::INIT,
        }
    }

    /// Appends the whole packet. Strings within their rules fit.
    pub fn write(&self, writer: &mut Writer<'_>, id: u16, token: Token) {
        write_packet(writer, self.kind(), id, token, |writer| {
            self.write_payload(writer);
        });
    }

    /// Appends the payload alone.
    pub fn write_payload(&self, writer: &mut Writer<'_>) {
        match *self {
            Self::Login { user, password } | Self::Register { user, password } => {
                writer.string_be(user);
                writer.string_be(password.0);
            }
            Self::Logout { reason } => writer.u8(reason),
            Self::Chat { text } => writer.string_be(text),
            Self::CreateRoom {
                name,
                password,
                max_players,
            } => {
                writer.string_be(name);
                writer.string_be(password.0);
                writer.u8(max_players);
            }
            Self::DeleteRoom { name } => writer.string_be(name),
            Self::JoinRoom { name, password } => {
                writer.string_be(name);
                writer.string_be(password.0);
            }
            Self::GetRooms { first } => writer.u16_be(first),
            Self::Key(key) => writer.i32_be(key),
            Self::LeaveRoom | Self::Init => {}
        }
    }
}

/// A password as it came. Its `Debug` reveals nothing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Password<'a>(pub &'a [u8]);

impl fmt::Debug for Password<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{only_whole, written};
    use super::*;

    const AXEL: Request<'static> = Request::Login {
        user: b"Axel",
        password: Password(b"RTYPE"),
    };

    #[test]
    fn r9_requests_are_exactly_their_bytes() {
        let password = Password(b"pw");
        let raw = b"\xFF\0";
        let cases: [(Request<'_>, u8, &[u8]); 13] = [
            (AXEL, 0x00, b"\0\x04Axel\0\x05RTYPE"),
            (
                Request::Register {
                    user: raw,
                    password,
                },
                0x01,
                b"\0\x02\xFF\0\0\x02pw",
            ),
            (Request::Logout { reason: 9 }, 0x02, b"\x09"),
            (
                Request::Chat {
                    text: "hé".as_bytes(),
                },
                0x03,
                b"\0\x03h\xC3\xA9",
            ),
            (create(), 0x07, b"\0\x03den\0\0\x10"),
            (Request::DeleteRoom { name: b"den" }, 0x08, b"\0\x03den"),
            (
                Request::JoinRoom {
                    name: b"den",
                    password,
                },
                0x09,
                b"\0\x03den\0\x02pw",
            ),
            (Request::GetRooms { first: 0x0102 }, 0x0A, b"\x01\x02"),
            (Request::LeaveRoom, 0x0B, b""),
            (Request::Key(501), 0x0C, b"\0\0\x01\xF5"),
            (Request::Key(-1), 0x0C, b"\xFF\xFF\xFF\xFF"),
            (Request::Init, 0x0F, b""),
            (Request::Chat { text: b"" }, 0x03, b"\0\0"),
        ];
        for (request, kind, payload) in cases {
            assert_eq!(request.kind(), kind);
            assert_eq!(written(|w| request.write_payload(w)), payload);
            assert_eq!(Request::read(kind, payload), Ok(request));
            only_whole(payload, |bytes| Request::read(kind, bytes).is_ok());
        }
    }

    fn create() -> Request<'static> {
        Request::CreateRoom {
            name: b"den",
            password: Password(b""),
            max_players: 16,
        }
    }

    #[test]
    fn r1_a_string_longer_than_its_packet_is_cut_short() {
        for payload in [b"\xFF\xFFdeep", b"\0\x05deep", b"\x80\0deep"] {
            let short = Err(WireError::Short("name"));
            assert_eq!(Request::read(kind::DELETE_ROOM, payload), short);
        }
    }

    #[test]
    fn r1_types_unknown_or_of_the_server_are_refused() {
        let types = [0x04, 0x05, 0x06, 0x0D, 0x0E].into_iter();
        for kind in types.chain(0x10..=0xFF) {
            for payload in [&b""[..], b"\0", b"\0\0\0\0"] {
                let refused = Err(WireError::Invalid("type"));
                assert_eq!(Request::read(kind, payload), refused, "{kind}");
            }
        }
    }

    #[test]
    fn a_password_does_not_print_itself() {
        let text = format!("{AXEL:?} {AXEL:#?} {AXEL:x?}");
        assert!(text.contains("Password(..)"), "{text}");
        for secret in ["RTYPE", "82, 84", "52, 54"] {
            assert!(!text.contains(secret), "{text}");
        }
    }
}
