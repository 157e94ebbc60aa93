//! A page of the list of rooms, the answer to Get room.

use super::{PAYLOAD_MAX, PLAYERS_MAX, check, read_bool, room_name};
use crate::bytes::{Reader, WireError, Writer};

/// What the list says of one room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room<'a> {
    /// What [`room_name`] accepts.
    pub name: &'a str,
    /// Whether it asks for a password.
    pub private: bool,
    /// How many are in it, 1 to `max_players`.
    pub players: u8,
    /// How many it is for, 1 to 16.
    pub max_players: u8,
}

impl<'a> Room<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self, WireError> {
        let name = reader.string_be("name")?;
        let name = room_name(name).ok_or(WireError::Invalid("name"))?;
        let private = read_bool(reader, "private")?;
        let players = reader.u8("players")?;
        let max_players = reader.u8("max_players")?;
        check((1..=PLAYERS_MAX).contains(&max_players), "max_players")?;
        check((1..=max_players).contains(&players), "players")?;
        Ok(Self {
            name,
            private,
            players,
            max_players,
        })
    }

    /// Appends the room.
    fn write(&self, writer: &mut Writer<'_>) {
        writer.string_be(self.name.as_bytes());
        writer.u8(self.private.into());
        writer.u8(self.players);
        writer.u8(self.max_players);
    }

    fn bytes(&self) -> usize {
        2 + self.name.len() + 3
    }
}

/// The rooms of one page, in order of creation, all whole. Clone it to walk twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rooms<'a> {
    /// How many rooms there are in all.
    pub total: u16,
    /// How many of them are before those that are left here.
    pub first: u16,
    count: u8,
    rest: &'a [u8],
}

/// Total, first and count of a page.
const PAGE_HEAD_BYTES: usize = 2 + 2 + 1;

// The count of a full page fits its byte, whatever the names.
const _: () = assert!((PAYLOAD_MAX - PAGE_HEAD_BYTES) / (2 + 3) <= u8::MAX as usize);

impl<'a> Rooms<'a> {
    /// Reads the payload of the server's Get room packet to its last byte.
    ///
    /// # Errors
    /// A room cut short, bytes left over, more rooms than `total` says, a room outside the rules
    /// of its fields.
    pub fn read(payload: &'a [u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(payload);
        let total = reader.u16_be("total")?;
        let first = reader.u16_be("first")?;
        let count = reader.u8("count")?;
        let is_within = u32::from(first) + u32::from(count) <= u32::from(total);
        check(count == 0 || is_within, "count")?;
        let mut rest = reader;
        for _ in 0..count {
            Room::read(&mut reader)?;
        }
        reader.end("rooms")?;
        Ok(Self {
            total,
            first,
            count,
            rest: rest.rest(),
        })
    }

    /// Appends the payload with the rooms that are left.
    pub(super) fn write(&self, writer: &mut Writer<'_>) {
        writer.u16_be(self.total);
        writer.u16_be(self.first);
        writer.u8(self.count);
        writer.bytes(self.rest);
    }
}

impl<'a> Iterator for Rooms<'a> {
    type Item = Room<'a>;

    fn next(&mut self) -> Option<Room<'a>> {
        // All were read once already: the only failure left is that none is.
        let mut reader = Reader::new(self.rest);
        let room = Room::read(&mut reader).ok()?;
        self.count -= 1;
        self.first += 1;
        self.rest = reader.rest();
        Some(room)
    }
}

/// Appends a payload with as many of `rooms` as fit; `first` of `total` were passed over before
/// them. Returns how many it took.
pub fn write_rooms<'r>(
    writer: &mut Writer<'_>,
    total: u16,
    first: u16,
    rooms: impl IntoIterator<Item = Room<'r>>,
) -> u8 {
    let start = writer.len();
    writer.u16_be(total);
    writer.u16_be(first);
    let count_at = writer.reserve_u8();
    let mut count = 0;
    for room in rooms {
        if writer.len() - start + room.bytes() > PAYLOAD_MAX {
            break;
        }
        room.write(writer);
        count += 1;
    }
    debug_assert!(count == 0 || u32::from(first) + u32::from(count) <= u32::from(total));
    writer.patch_u8(count_at, count);
    count
}

#[cfg(test)]
mod tests {
    use super::super::tests::{only_whole, written};
    use super::*;

    const PAGE: &[u8] = b"\0\x07\0\x05\x02\0\x03den\x01\x02\x10\0\x02\xC3\xA9\0\x01\x01";

    const DEN: Room<'_> = Room {
        name: "den",
        private: true,
        players: 2,
        max_players: 16,
    };
    const ACUTE: Room<'_> = Room {
        name: "é",
        private: false,
        players: 1,
        max_players: 1,
    };

    #[test]
    fn r11_a_page_is_its_bytes() {
        let mut count = 0;
        let payload = written(|w| count = write_rooms(w, 7, 5, [DEN, ACUTE]));
        assert_eq!((count, &payload[..]), (2, PAGE));
        let mut page = Rooms::read(PAGE).unwrap();
        assert_eq!((page.total, page.first), (7, 5));
        assert_eq!(written(|w| page.write(w)), PAGE);
        assert_eq!(page.next(), Some(DEN));
        assert_eq!(
            written(|w| page.write(w)),
            written(|w| _ = write_rooms(w, 7, 6, [ACUTE]))
        );
        assert_eq!((page.next(), page.next()), (Some(ACUTE), None));
        only_whole(PAGE, |payload| Rooms::read(payload).is_ok());
    }

    #[test]
    fn r11_a_page_may_be_empty_and_begin_behind_the_end() {
        for (total, first) in [(0, 0), (3, 3), (3, 9), (0, u16::MAX)] {
            let payload = written(|w| _ = write_rooms(w, total, first, []));
            let mut page = Rooms::read(&payload).unwrap();
            assert_eq!((page.total, page.first, page.next()), (total, first, None));
            only_whole(&payload, |payload| Rooms::read(payload).is_ok());
        }
    }

    #[test]
    fn r11_a_page_holds_no_nonsense() {
        for (at, value, field) in [
            (1, 6, "count"),
            (3, 6, "count"),
            (2, 0xFF, "count"),
            (7, b'\n', "name"),
            (10, 2, "private"),
            (10, 0xFF, "private"),
            (11, 0, "players"),
            (11, 17, "players"),
            (12, 1, "players"),
            (12, 0, "max_players"),
            (12, 17, "max_players"),
        ] {
            let mut payload = PAGE.to_vec();
            payload[at] = value;
            let refused = Err(WireError::Invalid(field));
            assert_eq!(Rooms::read(&payload), refused, "{value} at {at}");
        }
        for count in [0, 1, 3, 255] {
            let mut payload = PAGE.to_vec();
            (payload[0], payload[4]) = (0xFF, count);
            assert!(Rooms::read(&payload).is_err());
        }
        let nameless = b"\0\x01\0\0\x01\0\0\0\x01\x01";
        assert_eq!(Rooms::read(nameless), Err(WireError::Invalid("name")));
    }

    #[test]
    fn r11_as_many_rooms_are_packed_as_fit() {
        let long = Room {
            name: "a name of no less than 32 bytes!",
            ..DEN
        };
        let short = Room { name: "x", ..DEN };
        for (room, fit) in [(long, 31), (short, 196)] {
            let mut count = 0;
            let payload = written(|w| count = write_rooms(w, 1000, 9, [room; 500]));
            assert_eq!((count, room.bytes()), (fit, room.name.len() + 5));
            assert!(payload.len() <= PAYLOAD_MAX);
            assert!(payload.len() + room.bytes() > PAYLOAD_MAX);
            let page = Rooms::read(&payload).unwrap();
            assert_eq!(page.collect::<Vec<_>>(), vec![room; fit.into()]);
        }
        let last = Room {
            name: &long.name[..29],
            ..DEN
        };
        let full = [long; 31].into_iter().chain([last, short]);
        let payload = written(|w| _ = write_rooms(w, 33, 0, full));
        assert_eq!(payload.len(), PAYLOAD_MAX);
        assert_eq!(Rooms::read(&payload).unwrap().last(), Some(last));
    }
}
