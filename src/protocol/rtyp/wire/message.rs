//! TCP: frames, and the messages in them. A message starts with its kind.

use super::{FRAME_MAX, VERSION, check, read_player};
use crate::bytes::{Reader, WireError, Writer};

/// Client to server: version, name.
pub const LOGIN_REQUEST: u8 = 1;
/// Server to client: session, player, UDP port.
pub const LOGIN_ACCEPTED: u8 = 2;
/// Server to client: reason.
pub const LOGIN_REJECTED: u8 = 3;
/// Both ways: reason.
pub const LOGOUT: u8 = 4;

/// The body of the first whole frame of `bytes`; `None` if it is not whole yet. The frame is
/// [`FRAME_HEAD_BYTES`](super::FRAME_HEAD_BYTES) longer than its body.
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
        /// Raw, to be judged by [`name`](super::name).
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
            LOGIN_REQUEST => match reader.u8("version")? {
                VERSION => Self::LoginRequest(Login::V1 {
                    name: reader.string_le("name")?,
                }),
                other => return Ok(Self::LoginRequest(Login::OtherVersion(other))),
            },
            LOGOUT => Self::Logout {
                reason: reader.u8("reason")?,
            },
            _ => return Err(WireError::Invalid("kind")),
        };
        reader.end("message to the server")?;
        Ok(message)
    }

    /// Appends the whole frame. Of another version it has nothing but the version; a name that
    /// [`name`](super::name) accepts fits.
    pub fn write(&self, writer: &mut Writer<'_>) {
        write_frame(writer, |writer| match *self {
            Self::LoginRequest(Login::V1 { name }) => {
                writer.bytes(&[LOGIN_REQUEST, VERSION]);
                writer.string_le(name);
            }
            Self::LoginRequest(Login::OtherVersion(version)) => {
                writer.bytes(&[LOGIN_REQUEST, version]);
            }
            Self::Logout { reason } => writer.bytes(&[LOGOUT, reason]),
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
        /// A [`Reject`](super::Reject), or a number still unknown.
        reason: u8,
    },
    /// The server ends the session.
    Logout {
        /// A [`Reason`](super::Reason), or a number still unknown.
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
            LOGIN_ACCEPTED => Self::accepted(&mut reader)?,
            LOGIN_REJECTED => Self::LoginRejected {
                reason: reader.u8("reason")?,
            },
            LOGOUT => Self::Logout {
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
                writer.u8(LOGIN_ACCEPTED);
                writer.u32_le(session);
                writer.u8(player);
                writer.u16_le(udp_port);
            }
            Self::LoginRejected { reason } => writer.bytes(&[LOGIN_REJECTED, reason]),
            Self::Logout { reason } => writer.bytes(&[LOGOUT, reason]),
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

#[cfg(test)]
mod tests {
    use super::super::tests::{LOGIN_ACCEPTED, LOGIN_REQUEST, only_whole, written};
    use super::*;

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
}
