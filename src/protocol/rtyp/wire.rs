//! The bytes of RTYP version 1, as PROTOCOL.md lays them out.
//!
//! [`message`] is what travels over TCP, `datagram` ([`Header`], [`Payload`]) over UDP, and
//! [`event`] what an Events datagram holds.
//!
//! Reading borrows from the input and writing appends to a lent buffer: nothing here allocates.
//! What is read is well-formed; a field that the protocol answers differently from a bad shape
//! (a name, a version, a reason) is handed on raw.

mod datagram;
pub mod event;
pub mod message;
mod reason;
pub mod token;

pub use datagram::{Header, HeaderError, Hello, Payload, kind};
pub use event::{Events, FromClient, FromServer, RawEvent};
pub use message::{Login, ToClient, ToServer, frame};
pub use reason::{Reason, Reject};
pub use token::{PlayerToken, Session, SessionToken, SharedToken};

use crate::bytes::{Reader, WireError, Writer};

/// The first four bytes of every datagram.
pub const MAGIC: [u8; 4] = *b"RTYP";
/// The protocol version of this codec, in the login and in every datagram.
pub const VERSION: u8 = 1;
/// The other version, in datagrams alone.
pub const VERSION_2: u8 = 2;
/// The length in front of a TCP message.
pub const FRAME_HEAD_BYTES: usize = 2;
/// The longest TCP message, its length not included.
pub const FRAME_MAX: usize = 512;
/// The UDP header, but for that of a client's datagram of version 2.
pub const HEADER_BYTES: usize = 18;
/// The UDP header of a client's datagram of version 2.
pub const HEADER_BYTES_2: usize = 22;
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

fn read_player(reader: &mut Reader<'_>) -> Result<u8, WireError> {
    let player = reader.u8("player")?;
    check(player < PLAYERS_MAX, "player")?;
    Ok(player)
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
    for read in [Header::from_client(bytes), Header::from_server(bytes)] {
        let Ok((header, payload)) = read else {
            continue;
        };
        let mut again = Vec::new();
        header.write(&mut Writer::new(&mut again));
        assert_eq!([&again, payload].concat(), bytes);
        fuzz_payload(header.session.version(), header.kind, payload);
    }
    if let Some((&kind, rest)) = bytes.split_first() {
        fuzz_payload(VERSION, kind, rest);
        fuzz_payload(VERSION_2, kind, rest);
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

fn fuzz_payload(version: u8, kind: u8, payload: &[u8]) {
    let Ok(read) = Payload::read(version, kind, payload) else {
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
    pub(super) const LOGIN_REQUEST: &[u8] = b"\x06\0\x01\x01\x02\0R9";
    pub(super) const LOGIN_ACCEPTED: &[u8] = b"\x08\0\x02\xEF\xBE\xAD\xDE\x02\x92\x10";
    pub(super) const CONNECT: &[u8] = b"RTYP\x01\x01\0\0\xFF\xFF\0\0\0\0\xEF\xBE\xAD\xDE";
    /// Chat "hi" as event 0x0102, then a Start as event 0x0103.
    pub(super) const EVENTS: &[u8] = b"\x02\x01\x04\x04\0\x02\0hi\x03\x01\x06\0\0";

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

    /// Numbers that look random and are the same in every run (xorshift).
    fn next(state: &mut u64) -> usize {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        (*state >> 32) as usize
    }

    #[test]
    fn fuzz() {
        let seeds: [&[u8]; 9] = [
            LOGIN_REQUEST,
            LOGIN_ACCEPTED,
            b"\x02\0\x04\0",
            CONNECT,
            &[b"RTYP\x01\x06\0\0\xFF\xFF\0\0\0\0\x01\0\0\0", EVENTS].concat(),
            b"\x01\x03\x02\0R9",
            b"\x04\xFF\x02\0hi",
            b"RTYP\x02\x10\0\0\xFF\xFF\0\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x01\x001\x02\0R9",
            b"RTYP\x02\x12\0\0\xFF\xFF\0\0\0\0\x01\0\0\0\x01\x02\x03\x04\x05\x06\x07\x08\x03",
        ];
        let mut state = 0x5EED;
        for _ in 0..200_000 {
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
        }
    }
}
