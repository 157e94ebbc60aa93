//! Server to client: answers, and what is told unasked.

use super::components::Components;
use super::listing::Rooms;
use super::token::Token;
use super::{PLAYERS_MAX, chat_text, check, kind, read_bool, room_name, user_name, write_packet};
use crate::bytes::{Reader, WireError, Writer};

/// The seat, or the owner of an entity, that is none.
const NONE: u8 = 255;

/// What the server sends: [`Message::AssignToken`] and [`Message::Logout`] over TCP, everything
/// else over UDP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message<'a> {
    /// Answers Login: whether user and password are right.
    LoginAnswer(bool),
    /// Answers Register: what is wrong, a [`NotRegistered`](super::NotRegistered) or a number
    /// still unknown, never 0.
    RegisterAnswer(Result<(), u8>),
    /// The session is over, and the connection closes.
    Logout {
        /// A [`Reason`](super::Reason), or a number still unknown.
        reason: u8,
    },
    /// A line of chat; for whoever said it, the answer to Chat.
    Chat {
        /// What [`user_name`] accepts.
        user: &'a str,
        /// What [`chat_text`] accepts.
        text: &'a str,
    },
    /// There is an entity.
    CreateEntity {
        /// Its number in the room.
        entity: u32,
        /// The game's own.
        kind: u16,
        /// The seat of its owner, not 255, if it has one.
        owner: Option<u8>,
    },
    /// Components of entities, and what else the game says.
    UpdateComponent(Components<'a>),
    /// An entity is gone.
    DeleteEntity {
        /// Its number in the room.
        entity: u32,
    },
    /// Answers Create Room: what is wrong, a [`NotCreated`](super::NotCreated) or a number still
    /// unknown, never 0.
    CreateRoomAnswer(Result<(), u8>),
    /// Answers Delete Room; to the members of the room, unasked, that it is gone.
    DeleteRoom {
        /// Whether it is gone.
        ok: bool,
        /// What [`room_name`] accepts; may be empty if not `ok`.
        name: &'a str,
    },
    /// Answers Join Room.
    JoinAnswer {
        /// The seat, 0 to 15; without one the answer is no.
        seat: Option<u8>,
        /// What [`room_name`] accepts; may be empty without a seat.
        name: &'a str,
    },
    /// Answers Get room.
    Rooms(Rooms<'a>),
    /// Answers Leave Room: whether the client was in one.
    LeaveAnswer(bool),
    /// Answers Join Room.
    WrongPassword,
    /// Answers Join Room.
    FullRoom,
    /// The first packet of a connection.
    AssignToken {
        /// The client's from now on.
        token: Token,
        /// Where the client sends its datagrams, not 0.
        udp_port: u16,
    },
}

impl<'a> Message<'a> {
    /// Reads the payload of a packet of this type.
    ///
    /// # Errors
    /// A type that is unknown or only a client's, a field cut short, bytes left over, a value that
    /// the field's rule excludes.
    pub fn read(kind: u8, payload: &'a [u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(payload);
        let message = Self::fields(kind, &mut reader)?;
        reader.end("message")?;
        Ok(message)
    }

    fn fields(kind: u8, reader: &mut Reader<'a>) -> Result<Self, WireError> {
        Ok(match kind {
            kind::LOGIN => Self::LoginAnswer(read_bool(reader, "ok")?),
            kind::REGISTER => Self::RegisterAnswer(read_result(reader)?),
            kind::LOGOUT => Self::Logout {
                reason: reader.u8("reason")?,
            },
            kind::CHAT => Self::Chat {
                user: user_name(reader.string_be("user")?).ok_or(WireError::Invalid("user"))?,
                text: chat_text(reader.string_be("text")?).ok_or(WireError::Invalid("text"))?,
            },
            kind::CREATE_ENTITY => Self::CreateEntity {
                entity: reader.u32_be("entity")?,
                kind: reader.u16_be("kind")?,
                owner: Some(reader.u8("owner")?).filter(|&owner| owner != NONE),
            },
            kind::UPDATE_COMPONENT => Self::UpdateComponent(Components::read(reader.rest())?),
            kind::DELETE_ENTITY => Self::DeleteEntity {
                entity: reader.u32_be("entity")?,
            },
            kind::CREATE_ROOM => Self::CreateRoomAnswer(read_result(reader)?),
            kind::DELETE_ROOM => {
                let ok = read_bool(reader, "ok")?;
                let name = read_room_name(reader, ok)?;
                Self::DeleteRoom { ok, name }
            }
            kind::JOIN_ROOM => {
                let seat = read_seat(reader)?;
                let name = read_room_name(reader, seat.is_some())?;
                Self::JoinAnswer { seat, name }
            }
            kind::GET_ROOMS => Self::Rooms(Rooms::read(reader.rest())?),
            kind::LEAVE_ROOM => Self::LeaveAnswer(read_bool(reader, "ok")?),
            kind::WRONG_PASSWORD => Self::WrongPassword,
            kind::FULL_ROOM => Self::FullRoom,
            kind::ASSIGN_TOKEN => {
                let token = Token(reader.u32_be("token")?);
                let udp_port = reader.u16_be("udp_port")?;
                check(token.is_for_clients(), "token")?;
                check(udp_port != 0, "udp_port")?;
                Self::AssignToken { token, udp_port }
            }
            _ => return Err(WireError::Invalid("type")),
        })
    }

    /// The type of its packet.
    pub fn kind(&self) -> u8 {
        match self {
            Self::LoginAnswer(_) => kind::LOGIN,
            Self::RegisterAnswer(_) => kind::REGISTER,
            Self::Logout { .. } => kind::LOGOUT,
            Self::Chat { .. } => kind::CHAT,
            Self::CreateEntity { .. } => kind::CREATE_ENTITY,
            Self::UpdateComponent(_) => kind::UPDATE_COMPONENT,
            Self::DeleteEntity { .. } => kind::DELETE_ENTITY,
            Self::CreateRoomAnswer(_) => kind::CREATE_ROOM,
            Self::DeleteRoom { .. } => kind::DELETE_ROOM,
            Self::JoinAnswer { .. } => kind::JOIN_ROOM,
            Self::Rooms(_) => kind::GET_ROOMS,
            Self::LeaveAnswer(_) => kind::LEAVE_ROOM,
            Self::WrongPassword => kind::WRONG_PASSWORD,
            Self::FullRoom => kind::FULL_ROOM,
            Self::AssignToken { .. } => kind::ASSIGN_TOKEN,
        }
    }

    /// Whether it travels over TCP; everything else does over UDP.
    pub fn is_for_stream(&self) -> bool {
        matches!(self, Self::AssignToken { .. } | Self::Logout { .. })
    }

    /// The type of the request that it can be the answer to.
    pub fn answers(&self) -> Option<u8> {
        match self {
            Self::WrongPassword | Self::FullRoom => Some(kind::JOIN_ROOM),
            _ => Some(self.kind()).filter(|kind| kind::ANSWERED.contains(kind)),
        }
    }

    /// Appends the whole packet. Strings within their rules fit.
    pub fn write(&self, writer: &mut Writer<'_>, id: u16) {
        write_packet(writer, self.kind(), id, Token::SERVER, |writer| {
            self.write_payload(writer);
        });
    }

    /// Appends the payload alone.
    pub fn write_payload(&self, writer: &mut Writer<'_>) {
        match self {
            Self::LoginAnswer(ok) | Self::LeaveAnswer(ok) => writer.u8((*ok).into()),
            Self::RegisterAnswer(result) | Self::CreateRoomAnswer(result) => {
                writer.u8(result.is_ok().into());
                writer.u8(result.err().unwrap_or(0));
            }
            Self::Logout { reason } => writer.u8(*reason),
            Self::Chat { user, text } => {
                writer.string_be(user.as_bytes());
                writer.string_be(text.as_bytes());
            }
            Self::CreateEntity {
                entity,
                kind,
                owner,
            } => {
                writer.u32_be(*entity);
                writer.u16_be(*kind);
                writer.u8(owner.unwrap_or(NONE));
            }
            Self::UpdateComponent(components) => writer.bytes(components.as_bytes()),
            Self::DeleteEntity { entity } => writer.u32_be(*entity),
            Self::DeleteRoom { ok, name } => {
                writer.u8((*ok).into());
                writer.string_be(name.as_bytes());
            }
            Self::JoinAnswer { seat, name } => {
                writer.u8(seat.is_some().into());
                writer.u8(seat.unwrap_or(NONE));
                writer.string_be(name.as_bytes());
            }
            Self::Rooms(rooms) => rooms.write(writer),
            Self::WrongPassword | Self::FullRoom => {}
            Self::AssignToken { token, udp_port } => {
                writer.u32_be(token.0);
                writer.u16_be(*udp_port);
            }
        }
    }
}

/// Ok and reason: one of them says no if and only if the other does.
fn read_result(reader: &mut Reader<'_>) -> Result<Result<(), u8>, WireError> {
    let ok = read_bool(reader, "ok")?;
    let reason = reader.u8("reason")?;
    check(ok == (reason == 0), "reason")?;
    Ok(if ok { Ok(()) } else { Err(reason) })
}

/// Ok and seat: 255 if and only if not ok.
fn read_seat(reader: &mut Reader<'_>) -> Result<Option<u8>, WireError> {
    let ok = read_bool(reader, "ok")?;
    let seat = reader.u8("seat")?;
    let is_seat = if ok { seat < PLAYERS_MAX } else { seat == NONE };
    check(is_seat, "seat")?;
    Ok(ok.then_some(seat))
}

/// A request may have named no room that could be: then the answer names none either.
fn read_room_name<'a>(reader: &mut Reader<'a>, ok: bool) -> Result<&'a str, WireError> {
    match reader.string_be("name")? {
        b"" if !ok => Ok(""),
        name => room_name(name).ok_or(WireError::Invalid("name")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::listing::write_rooms;
    use super::super::tests::{only_whole, written};
    use super::*;

    /// Of each type at least one: type, payload, and the type it answers.
    fn cases() -> Vec<(Message<'static>, u8, &'static [u8], Option<u8>)> {
        let owned = |owner| Message::CreateEntity {
            entity: 0x0102_0304,
            kind: 0x0506,
            owner,
        };
        let update = b"\0\x02\0\0\x01\0\xFF\xFF\xFF\xFE\x01\0own";
        let page = b"\0\x07\0\x05\x01\0\x03den\x01\x02\x10";
        vec![
            (Message::LoginAnswer(true), 0x00, b"\x01", Some(0x00)),
            (Message::LoginAnswer(false), 0x00, b"\0", Some(0x00)),
            (Message::RegisterAnswer(Ok(())), 0x01, b"\x01\0", Some(0x01)),
            (Message::RegisterAnswer(Err(4)), 0x01, b"\0\x04", Some(0x01)),
            (Message::Logout { reason: 200 }, 0x02, b"\xC8", None),
            (
                Message::Chat {
                    user: "Axel",
                    text: "hé",
                },
                0x03,
                b"\0\x04Axel\0\x03h\xC3\xA9",
                Some(0x03),
            ),
            (owned(Some(3)), 0x04, b"\x01\x02\x03\x04\x05\x06\x03", None),
            (owned(None), 0x04, b"\x01\x02\x03\x04\x05\x06\xFF", None),
            (
                Message::UpdateComponent(Components::read(update).unwrap()),
                0x05,
                update,
                None,
            ),
            (
                Message::DeleteEntity {
                    entity: 0x0102_0304,
                },
                0x06,
                b"\x01\x02\x03\x04",
                None,
            ),
            (
                Message::CreateRoomAnswer(Ok(())),
                0x07,
                b"\x01\0",
                Some(0x07),
            ),
            (
                Message::CreateRoomAnswer(Err(9)),
                0x07,
                b"\0\x09",
                Some(0x07),
            ),
            (
                Message::DeleteRoom {
                    ok: true,
                    name: "den",
                },
                0x08,
                b"\x01\0\x03den",
                Some(0x08),
            ),
            (
                Message::DeleteRoom {
                    ok: false,
                    name: "",
                },
                0x08,
                b"\0\0\0",
                Some(0x08),
            ),
            (
                Message::JoinAnswer {
                    seat: Some(15),
                    name: "den",
                },
                0x09,
                b"\x01\x0F\0\x03den",
                Some(0x09),
            ),
            (
                Message::JoinAnswer {
                    seat: None,
                    name: "den",
                },
                0x09,
                b"\0\xFF\0\x03den",
                Some(0x09),
            ),
            (
                Message::JoinAnswer {
                    seat: None,
                    name: "",
                },
                0x09,
                b"\0\xFF\0\0",
                Some(0x09),
            ),
            (
                Message::Rooms(Rooms::read(page).unwrap()),
                0x0A,
                page,
                Some(0x0A),
            ),
            (Message::LeaveAnswer(true), 0x0B, b"\x01", Some(0x0B)),
            (Message::WrongPassword, 0x0D, b"", Some(0x09)),
            (Message::FullRoom, 0x0E, b"", Some(0x09)),
            (
                Message::AssignToken {
                    token: Token(0xDEAD_BEEF),
                    udp_port: 4243,
                },
                0x10,
                b"\xDE\xAD\xBE\xEF\x10\x93",
                None,
            ),
        ]
    }

    #[test]
    fn r9_messages_are_exactly_their_bytes() {
        for (message, kind, payload, answers) in cases() {
            assert_eq!(message.kind(), kind);
            assert_eq!(written(|w| message.write_payload(w)), payload);
            assert_eq!(Message::read(kind, payload).as_ref(), Ok(&message));
            assert_eq!(message.answers(), answers, "{message:?}");
            assert_eq!(message.is_for_stream(), [0x02, 0x10].contains(&kind));
            if kind != kind::UPDATE_COMPONENT {
                only_whole(payload, |bytes| Message::read(kind, bytes).is_ok());
            }
        }
    }

    #[test]
    fn r1_types_unknown_or_of_the_client_are_refused() {
        for kind in [0x0C, 0x0F].into_iter().chain(0x11..=0xFF) {
            for payload in [&b""[..], b"\0", b"\0\0\0\0"] {
                let refused = Err(WireError::Invalid("type"));
                assert_eq!(Message::read(kind, payload), refused, "{kind}");
            }
        }
    }

    #[test]
    fn r1_a_bool_is_0_or_1() {
        for (kind, rest) in [
            (0x00, &b""[..]),
            (0x01, b"\0"),
            (0x07, b"\0"),
            (0x08, b"\0\x03den"),
            (0x09, b"\0\0\x03den"),
            (0x0B, b""),
        ] {
            for ok in 2..=255 {
                let payload = [&[ok], rest].concat();
                let refused = Err(WireError::Invalid("ok"));
                assert_eq!(Message::read(kind, &payload), refused);
            }
        }
    }

    #[test]
    fn r3_an_answer_does_not_contradict_itself() {
        for (kind, payload, field) in [
            (0x01, &b"\x01\x01"[..], "reason"),
            (0x01, b"\0\0", "reason"),
            (0x07, b"\x01\x07", "reason"),
            (0x07, b"\0\0", "reason"),
            (0x09, b"\x01\x10\0\x03den", "seat"),
            (0x09, b"\x01\xFF\0\x03den", "seat"),
            (0x09, b"\0\0\0\x03den", "seat"),
            (0x09, b"\x01\0\0\0", "name"),
            (0x08, b"\x01\0\0", "name"),
        ] {
            let refused = Err(WireError::Invalid(field));
            assert_eq!(Message::read(kind, payload), refused, "{payload:?}");
        }
    }

    #[test]
    fn r3_names_and_texts_of_the_server_keep_their_rule() {
        for (kind, payload, field) in [
            (0x03, &b"\0\0\0\x02hi"[..], "user"),
            (0x03, b"\0\x04A\nel\0\x02hi", "user"),
            (0x03, b"\0\x04Axel\0\0", "text"),
            (0x03, b"\0\x04Axel\0\x01\x7F", "text"),
            (0x08, b"\0\0\x01\xC3", "name"),
            (0x09, b"\x01\0\0\x01\n", "name"),
        ] {
            let refused = Err(WireError::Invalid(field));
            assert_eq!(Message::read(kind, payload), refused, "{payload:?}");
        }
    }

    #[test]
    fn r1_a_token_nobody_has_and_a_port_nobody_hears_are_refused() {
        for (payload, field) in [
            (b"\0\0\0\0\x10\x93", "token"),
            (b"\xFF\xFF\xFF\xFF\x10\x93", "token"),
            (b"\x21\x12\xA4\x42\x10\x93", "token"),
            (b"\xDE\xAD\xBE\xEF\0\0", "udp_port"),
        ] {
            let refused = Err(WireError::Invalid(field));
            assert_eq!(Message::read(kind::ASSIGN_TOKEN, payload), refused);
        }
    }

    #[test]
    fn a_page_that_was_packed_is_a_message() {
        let payload = written(|w| _ = write_rooms(w, 0, 0, []));
        let read = Message::read(kind::GET_ROOMS, &payload);
        assert!(matches!(read, Ok(Message::Rooms(page)) if page.total == 0));
    }
}
