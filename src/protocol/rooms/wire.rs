//! The bytes of Rooms, as PROTOCOL.md lays them out.
//!
//! A [`Packet`] is the envelope of everything, over UDP and TCP. In it a client sends a
//! [`Request`], the server a [`Message`].
//!
//! Reading borrows from the input and writing appends to a lent buffer: nothing here allocates.
//! What is read is well-formed; a field that the protocol answers differently from a bad shape
//! (a name, a password, a size) is handed on raw.

mod components;
pub mod kind;
mod listing;
mod message;
mod packet;
mod reason;
mod request;
mod token;

pub use components::{
    CUSTOM_FROM, Component, Components, Custom, Finite, HEALTH, POSITION, write_components,
};
pub use listing::{Room, Rooms, write_rooms};
pub use message::Message;
pub use packet::{Packet, PacketError, frame, write_packet};
pub use reason::{NotCreated, NotRegistered, Reason};
pub use request::{Password, Request};
pub use token::Token;

use crate::bytes::{Reader, WireError, Writer};

/// The protocol version of this codec.
pub const VERSION: u8 = 1;
/// What is in front of the payload.
pub const HEADER_BYTES: usize = 12;
/// What is in front of the payload and behind it: the smallest packet.
pub const ENVELOPE_BYTES: usize = HEADER_BYTES + 2;
/// The longest packet.
pub const PACKET_MAX: usize = 1200;
/// The longest payload.
pub const PAYLOAD_MAX: usize = PACKET_MAX - ENVELOPE_BYTES;
/// The most players of a room; its seats are numbered from 0.
pub const PLAYERS_MAX: u8 = 16;
/// The longest name of a user, in bytes.
pub const USER_NAME_MAX: usize = 16;
/// The longest name of a room, in bytes.
pub const ROOM_NAME_MAX: usize = 32;
/// The longest password, in bytes.
pub const PASSWORD_MAX: usize = 64;
/// The shortest password that Register takes, in bytes.
pub const NEW_PASSWORD_MIN: usize = 8;
/// The longest line of chat, in bytes.
pub const CHAT_MAX: usize = 200;
/// The most bytes of a component of the game's own: with its number it fills a packet.
pub const CUSTOM_BYTES_MAX: usize = PAYLOAD_MAX - 2;

// What is within the rules fits into its packet.
const _: () = assert!(2 + USER_NAME_MAX + 2 + CHAT_MAX <= PAYLOAD_MAX);
const _: () = assert!(2 + ROOM_NAME_MAX + 1 + 2 + PASSWORD_MAX <= PAYLOAD_MAX);

/// A user's name: 1 to 16 bytes of UTF-8 without control characters (below 0x20, and 0x7F).
pub fn user_name(bytes: &[u8]) -> Option<&str> {
    plain(bytes, USER_NAME_MAX)
}

/// A room's name: 1 to 32 bytes, otherwise as a [`user_name`].
pub fn room_name(bytes: &[u8]) -> Option<&str> {
    plain(bytes, ROOM_NAME_MAX)
}

/// A password: 1 to 64 bytes, otherwise as a [`user_name`]. Register wants
/// [`NEW_PASSWORD_MIN`] at least.
pub fn password(password: Password<'_>) -> Option<&str> {
    plain(password.0, PASSWORD_MAX)
}

/// A line of chat: 1 to 200 bytes, otherwise as a [`user_name`].
pub fn chat_text(bytes: &[u8]) -> Option<&str> {
    plain(bytes, CHAT_MAX)
}

fn plain(bytes: &[u8], max: usize) -> Option<&str> {
    if bytes.is_empty() || bytes.len() > max {
        return None;
    }
    let text = std::str::from_utf8(bytes).ok()?;
    let control = text.bytes().any(|byte| byte < 0x20 || byte == 0x7F);
    (!control).then_some(text)
}

fn read_bool(reader: &mut Reader<'_>, field: &'static str) -> Result<bool, WireError> {
    match reader.u8(field)? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(WireError::Invalid(field)),
    }
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
    if let Ok(Some(packet)) = frame(bytes) {
        assert!((ENVELOPE_BYTES..=PACKET_MAX).contains(&packet.len()));
        assert!(bytes.starts_with(packet));
        fuzz_packet(packet);
    }
    fuzz_packet(bytes);
    if let Some((&kind, payload)) = bytes.split_first() {
        fuzz_payload(kind, payload);
    }
}

fn fuzz_packet(bytes: &[u8]) {
    let Ok(packet) = Packet::read(bytes) else {
        return;
    };
    assert_eq!(frame(bytes), Ok(Some(bytes)));
    fuzz_payload(packet.kind, packet.payload);
    let mut again = Vec::new();
    packet.write(&mut Writer::new(&mut again));
    assert_eq!(again, bytes);
}

fn fuzz_payload(kind: u8, payload: &[u8]) {
    let mut again = Vec::new();
    if let Ok(request) = Request::read(kind, payload) {
        request.write_payload(&mut Writer::new(&mut again));
        assert_eq!((request.kind(), &again[..]), (kind, payload));
    }
    again.clear();
    let Ok(message) = Message::read(kind, payload) else {
        return;
    };
    message.write_payload(&mut Writer::new(&mut again));
    assert_eq!((message.kind(), &again[..]), (kind, payload));
    if payload.len() > PAYLOAD_MAX {
        return;
    }
    again.clear();
    match message {
        Message::UpdateComponent(components) => {
            let mut components = components.peekable();
            write_components(&mut Writer::new(&mut again), &mut components);
            assert_eq!((components.next(), &again[..]), (None, payload));
        }
        Message::Rooms(page) => {
            let (total, first) = (page.total, page.first);
            write_rooms(&mut Writer::new(&mut again), total, first, page);
            assert_eq!(again, payload);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // From the protocol's own examples.
    pub(super) const KEY: &[u8] = b"\x01\x0C\0\x02\xDE\xAD\xBE\xEF\0\0\0\x04\0\0\0\x41\x03\x8C";
    pub(super) const WRONG_PASSWORD: &[u8] = b"\x01\x0D\0\x07\xFF\xFF\xFF\xFF\0\0\0\0\x04\x11";
    pub(super) const LOGIN: &[u8] =
        b"\x01\0\0\x01\xDE\xAD\xBE\xEF\0\0\0\x0D\0\x04Axel\0\x05RTYPE\x06\x6E";

    const ASSIGN_TOKEN: &[u8] =
        b"\x01\x10\0\x01\xFF\xFF\xFF\xFF\0\0\0\x06\xDE\xAD\xBE\xEF\x10\x93\x07\xEF";
    const LOGIN_ANSWER: &[u8] = b"\x01\0\0\x02\xFF\xFF\xFF\xFF\0\0\0\x01\x01\x04\x01";
    const JOIN_ANSWER: &[u8] = b"\x01\x09\0\x03\xFF\xFF\xFF\xFF\0\0\0\x07\x01\x02\0\x03den\x05\x4D";
    const UPDATE: &[u8] =
        b"\x01\x05\0\x09\xFF\xFF\xFF\xFF\0\0\0\x0E\0\x01\0\0\0\x07\x43\x48\0\0\xBF\x80\0\0\x05\xEB";
    const FULL: &[u8] = b"\x01\x02\0\x01\xFF\xFF\xFF\xFF\0\0\0\x01\x02\x04\x03";

    pub(super) fn written(write: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
        let mut bytes = Vec::new();
        write(&mut Writer::new(&mut bytes));
        bytes
    }

    /// `accepts` these bytes, and neither any truncation of them nor one byte more.
    pub(super) fn only_whole(bytes: &[u8], accepts: impl Fn(&[u8]) -> bool) {
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
    fn r14_requests_of_the_examples() {
        let axel = Request::Login {
            user: b"Axel",
            password: Password(b"RTYPE"),
        };
        for (request, id, bytes) in [(axel, 1, LOGIN), (Request::Key(65), 2, KEY)] {
            let token = Token(0xDEAD_BEEF);
            assert_eq!(written(|w| request.write(w, id, token)), bytes);
            let packet = Packet::read(bytes).unwrap();
            assert_eq!((packet.id, packet.token), (id, token));
            assert_eq!(Request::read(packet.kind, packet.payload), Ok(request));
        }
    }

    #[test]
    fn r14_messages_of_the_examples() {
        let assign = Message::AssignToken {
            token: Token(0xDEAD_BEEF),
            udp_port: 4243,
        };
        let joined = Message::JoinAnswer {
            seat: Some(2),
            name: "den",
        };
        let records = b"\0\x01\0\0\0\x07\x43\x48\0\0\xBF\x80\0\0";
        let update = Message::UpdateComponent(Components::read(records).unwrap());
        let full = Message::Logout {
            reason: Reason::Full.code(),
        };
        for (message, id, bytes) in [
            (assign, 1, ASSIGN_TOKEN),
            (Message::LoginAnswer(true), 2, LOGIN_ANSWER),
            (joined, 3, JOIN_ANSWER),
            (Message::WrongPassword, 7, WRONG_PASSWORD),
            (update, 9, UPDATE),
            (full, 1, FULL),
        ] {
            assert_eq!(written(|w| message.write(w, id)), bytes);
            let packet = Packet::read(bytes).unwrap();
            assert_eq!((packet.id, packet.token), (id, Token::SERVER));
            assert_eq!(Message::read(packet.kind, packet.payload), Ok(message));
        }
    }

    #[test]
    fn r14_the_position_of_the_examples() {
        let payload = Packet::read(UPDATE).unwrap().payload;
        let position = Component::Position {
            entity: 7,
            x: Finite::new(200.0).unwrap(),
            y: Finite::new(-1.0).unwrap(),
        };
        let mut components = Components::read(payload).unwrap();
        assert_eq!(
            (components.next(), components.next()),
            (Some(position), None)
        );
    }

    /// A rule of a string.
    type Rule = fn(&[u8]) -> Option<&str>;

    #[test]
    fn r4_names_passwords_and_texts_keep_their_rule() {
        let rules: [(Rule, usize); 4] = [
            (user_name, 16),
            (room_name, 32),
            (|bytes| password(Password(bytes)), 64),
            (chat_text, 200),
        ];
        for (rule, max) in rules {
            for good in ["R", "R9", "sixteen bytes ok", "\u{80}", "é\u{202E}", " "] {
                assert_eq!(rule(good.as_bytes()), Some(good));
            }
            for bad in [&b""[..], b"\xC3", b"a\x1F", b"\x7F", b"\0", b"a\nb"] {
                assert_eq!(rule(bad), None);
            }
            let long = "é".repeat(max);
            assert_eq!(rule(&long.as_bytes()[..max]), Some(&long[..max]));
            assert_eq!(rule(&vec![b'x'; max + 1]), None);
        }
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
        let seeds: [&[u8]; 12] = [
            KEY,
            WRONG_PASSWORD,
            LOGIN,
            &[KEY, LOGIN].concat(),
            b"\x01\x01\0",
            b"\x03\0\x04Axel\0\x02hi",
            b"\x04\0\0\0\x01\0\x01\xFF",
            b"\x05\0\x01\0\0\0\x07\x43\x48\0\0\xBF\x80\0\0\0\x02\0\0\x01\0\0\0\0\x05\x01\0own",
            b"\x07\0\x03den\0\x02pw\x10",
            b"\x09\x01\x02\0\x03den",
            b"\x0A\0\x07\0\x05\x02\0\x03den\x01\x02\x10\0\x02\xC3\xA9\0\x01\x01",
            b"\x10\xDE\xAD\xBE\xEF\x10\x93",
        ];
        let mut state = 0x5EED;
        for _ in 0..100_000 {
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
            super::fuzz(&bytes);
            if let Some((&kind, payload)) = bytes.split_first() {
                let packet = written(|w| {
                    write_packet(w, kind, 1, Token::SERVER, |w| w.bytes(payload));
                });
                super::fuzz(&packet);
            }
        }
    }
}
