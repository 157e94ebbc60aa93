//! Sections 1 and 2: what is a packet, and what is said in it.

use super::super::bytes::{Ask, Packet, Said, kind, raw_text, summed, text};
use super::super::hall::{Hall, SERVICE};
use super::super::peer::Peer;
use crate::rtyp::dice::Rigged;
use crate::world::PeerId;
use crate::world::seeds::seed;

/// The counter by which a datagram of the peer was refused; `None` if it was taken.
#[track_caller]
fn refused(hall: &mut Hall, peer: PeerId, bytes: &[u8]) -> Option<&'static str> {
    let before = ignored(hall);
    hall[peer].raw(bytes);
    hall.for_ms(11);
    let after = ignored(hall);
    let mut grown = Vec::new();
    for ((name, before), (_, after)) in before.into_iter().zip(after) {
        assert!(after - before <= 1, "{name}");
        if after > before {
            grown.push(name);
        }
    }
    assert!(grown.len() <= 1, "{grown:?}");
    grown.first().copied()
}

/// The service's refusals of datagrams, by name.
fn ignored(hall: &Hall) -> Vec<(&'static str, u64)> {
    const NAMES: [&str; 15] = [
        "ignored-source",
        "ignored-long",
        "ignored-short",
        "ignored-version",
        "ignored-length",
        "ignored-checksum",
        "ignored-token",
        "ignored-endpoint",
        "ignored-repeated",
        "ignored-old",
        "ignored-malformed",
        "ignored-waiting",
        "ignored-requests",
        "ignored-keys",
        "ignored-outside-room",
    ];
    NAMES.map(|name| (name, hall.stat(SERVICE, name))).to_vec()
}

fn packet(hall: &mut Hall, peer: PeerId, ask: &Ask) -> Packet {
    hall[peer].packet(ask)
}

#[test]
fn r1_whole_or_malformed() {
    let whole = [
        Ask::login("Axel", "RTYPE"),
        Ask::register("Axel", "RTYPE"),
        Ask::chat("hi"),
        Ask::create("den", "pw", 4),
        Ask::delete("den"),
        Ask::join("den", "pw"),
        Ask::rooms(3),
        Ask::key(65),
        Ask::leave(),
        Ask::init(),
        Ask::logout(),
    ];
    for ask in whole {
        let mut wrong = vec![[&ask.payload[..], &[0]].concat()];
        wrong.extend((0..ask.payload.len()).map(|cut| ask.payload[..cut].to_vec()));
        for payload in wrong {
            let mut hall = Hall::new(seed());
            let peer = hall.silent(1);
            let ask = Ask::new(ask.kind, &payload);
            let bytes = packet(&mut hall, peer, &ask).bytes();
            assert_eq!(
                refused(&mut hall, peer, &bytes),
                Some("ignored-malformed"),
                "{ask:02X?}"
            );
            assert!(hall[peer].log.is_empty() && hall[peer].end.is_none());
        }
    }
    // Types that are unknown, or the server's.
    for kind in [0x04, 0x05, 0x06, 0x0D, 0x0E, 0x10, 0x11, 0x7F, 0xFF] {
        let mut hall = Hall::new(seed());
        let peer = hall.silent(1);
        let bytes = packet(&mut hall, peer, &Ask::new(kind, &[])).bytes();
        let refused = refused(&mut hall, peer, &bytes);
        assert_eq!(refused, Some("ignored-malformed"), "{kind}");
    }
}

#[test]
fn r2_wrong_values_of_clients() {
    let mut hall = Hall::new(seed());
    let peer = hall.silent(1);
    let long = "x".repeat(1000);
    let cases: [(Ask, Said); 6] = [
        (Ask::login("", ""), Said::Login(false)),
        (Ask::login(&long, "pw"), Said::Login(false)),
        (Ask::register("\n", "long enough"), Said::Register(false, 2)),
        (Ask::register("Axel", "short"), Said::Register(false, 3)),
        (
            Ask::join("\u{7F}", ""),
            Said::Join(false, 255, String::new()),
        ),
        (Ask::delete(&long), Said::DeleteRoom(false, String::new())),
    ];
    for (ask, answer) in cases {
        assert_eq!(hall.ask(peer, &ask), answer, "{ask:02X?}");
    }
    let invalid = Ask::new(
        kind::LOGIN,
        &[raw_text(b"\xC3"), raw_text(b"\xFF\xFF")].concat(),
    );
    assert_eq!(hall.ask(peer, &invalid), Said::Login(false));
    assert_eq!(hall.count("ignored-malformed"), 0);
    assert_eq!(hall.told(), [], "the game was asked about nonsense");
}

#[test]
fn r4_names_and_texts() {
    let cases: [(String, bool); 9] = [
        ("a".into(), true),
        ("é".repeat(8), true),
        ("\u{80}\u{202E}".into(), true),
        (" ".into(), true),
        (String::new(), false),
        ("x".repeat(17), false),
        ("a\u{1F}".into(), false),
        ("\u{7F}".into(), false),
        ("\0".into(), false),
    ];
    for (name, is_good) in cases {
        let mut hall = Hall::new(seed());
        let peer = hall.silent(1);
        let answer = hall.ask(peer, &Ask::register(&name, "long enough"));
        let expected = match is_good {
            true => Said::Register(true, 0),
            false => Said::Register(false, 2),
        };
        assert_eq!(answer, expected, "{name:?}");
    }
    let mut hall = Hall::new(seed());
    let peer = hall.silent_user("Axel", 1);
    for (len, answer) in [
        (33, Said::CreateRoom(false, 2)),
        (32, Said::CreateRoom(true, 0)),
    ] {
        assert_eq!(
            hall.ask(peer, &Ask::create(&"x".repeat(len), "", 4)),
            answer
        );
    }
    // Byte by byte: no case, no normal form.
    for name in ["X".repeat(32), "e\u{301}".into(), "é".into()] {
        hall.ask(peer, &Ask::leave());
        let answer = hall.ask(peer, &Ask::join(&name, ""));
        assert!(matches!(answer, Said::Join(false, ..)));
    }
    hall.create(peer, "chat", 4);
    assert!(hall.try_ask(peer, &Ask::chat(&"x".repeat(201))).is_none());
    assert!(hall.try_ask(peer, &Ask::chat(&"x".repeat(200))).is_some());
}

#[test]
fn r5_unchanged() {
    let mut hall = Hall::new(seed());
    let strange = "\u{202E}\u{85}é";
    let [a, b] = [1, 2].map(|host| hall.enter(host));
    hall.log_in(a, strange);
    hall.log_in(b, "b");
    hall.create(a, strange, 4);
    hall.join(b, strange);
    hall.ask(a, &Ask::chat(strange));
    hall.settle();
    let line = (strange.to_owned(), strange.to_owned());
    assert_eq!(hall[b].lines(), [line]);
}

#[test]
fn r6_envelope() {
    // The page's example, byte for byte, and each field of it changed.
    let mut hall = Hall::with_dice(seed(), Box::new(Rigged::new(&[0xDEAD_BEEF])));
    let peer = hall.silent(1);
    let token = hall[peer].token().to_be_bytes();
    let key = [&[1, 0x0C, 0, 2][..], &token, &[0, 0, 0, 4, 0, 0, 0, 65]].concat();
    for (at, value, counted) in [
        (0, 0, "ignored-version"),
        (0, 2, "ignored-version"),
        (4, !token[0], "ignored-token"),
        (7, !token[3], "ignored-token"),
        (8, 0xFF, "ignored-length"),
        (11, 3, "ignored-length"),
        (11, 5, "ignored-length"),
        (1, 0x0D, "ignored-malformed"),
    ] {
        let mut bytes = key.clone();
        bytes[at] = value;
        assert_eq!(refused(&mut hall, peer, &summed(bytes)), Some(counted));
    }
    let mut bytes = key;
    bytes[3] = 3;
    let outside = refused(&mut hall, peer, &summed(bytes));
    assert_eq!(outside, Some("ignored-outside-room"), "taken, and judged");
}

#[test]
fn r7_packet_size() {
    let mut hall = Hall::new(seed());
    let peer = hall.silent(1);
    // A payload of 1186 is taken; it is a wrong name, and answered.
    let name = Ask::new(kind::DELETE_ROOM, &raw_text(&[b'x'; 1184]));
    let bytes = packet(&mut hall, peer, &name).bytes();
    assert_eq!(bytes.len(), 1200);
    assert_eq!(refused(&mut hall, peer, &bytes), None);
    assert_eq!(hall[peer].heard(kind::DELETE_ROOM).len(), 1);
    let name = Ask::new(kind::DELETE_ROOM, &raw_text(&[b'x'; 1185]));
    let bytes = packet(&mut hall, peer, &name).bytes();
    assert_eq!(refused(&mut hall, peer, &bytes), Some("ignored-long"));
    // Every truncation of a packet, and bytes behind it.
    let whole = packet(&mut hall, peer, &Ask::login("Axel", "RTYPE")).bytes();
    for cut in 0..whole.len() {
        let counted = match cut {
            ..14 => "ignored-short",
            _ => "ignored-length",
        };
        let short = &whole[..cut];
        assert_eq!(refused(&mut hall, peer, short), Some(counted), "{cut}");
        let summed = summed(whole[..cut].to_vec());
        let is_short = summed.len() < 14;
        let counted = match (is_short, summed.len() == whole.len()) {
            (true, _) => Some("ignored-short"),
            (false, false) => Some("ignored-length"),
            // That is the packet itself; its turn comes below.
            (false, true) => continue,
        };
        assert_eq!(refused(&mut hall, peer, &summed), counted, "{cut}");
    }
    let longer = [&whole[..], &[0]].concat();
    assert_eq!(refused(&mut hall, peer, &longer), Some("ignored-length"));
    for length in [12_u32, 14, 0, u32::MAX, 0x8000_000D, 0x0001_000D] {
        let mut bytes = whole[..whole.len() - 2].to_vec();
        bytes[8..12].copy_from_slice(&length.to_be_bytes());
        let counted = refused(&mut hall, peer, &summed(bytes));
        assert_eq!(counted, Some("ignored-length"), "{length}");
    }
    assert_eq!(refused(&mut hall, peer, &whole), None);
    assert_eq!(hall[peer].heard(kind::LOGIN), [&Said::Login(false)]);
}

#[test]
fn r8_checksum() {
    let mut hall = Hall::new(seed());
    let peer = hall.silent_user("Axel", 1);
    hall[peer].forget();
    hall.told();
    let whole = packet(&mut hall, peer, &Ask::create("den", "pw", 4)).bytes();
    for bit in 0..whole.len() * 8 {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let counted = match bit / 8 {
            0 => "ignored-version",
            8..=11 => "ignored-length",
            _ => "ignored-checksum",
        };
        assert_eq!(refused(&mut hall, peer, &bytes), Some(counted), "bit {bit}");
    }
    assert!(hall[peer].log.is_empty() && hall.told().is_empty());
    assert_eq!(refused(&mut hall, peer, &whole), None);
    assert_eq!(hall.count("rooms"), 1);
}

#[test]
fn r9_payloads() {
    // The peer holds every packet of the server against the table; here each type is said once.
    let mut hall = Hall::new(seed());
    let [a, b] = [("a", 1), ("b", 2)].map(|(name, host)| hall.user(name, host));
    hall.ask(a, &Ask::register("c", "long enough"));
    hall.ask(a, &Ask::create("den", "pw", 1));
    hall.ask(b, &Ask::join("den", "x"));
    hall.ask(b, &Ask::join("den", "pw"));
    hall.ask(a, &Ask::leave());
    hall.create(a, "den", 2);
    hall.join(b, "den");
    hall.ask(b, &Ask::rooms(0));
    hall.ask(b, &Ask::chat("hi"));
    hall.send(a, &Ask::key(32));
    hall.for_ms(4000);
    hall.ask(a, &Ask::delete("den"));
    hall.settle();
    for kind in (0..=0x10).filter(|kind| ![2, 0x0C, 0x0F, 0x10].contains(kind)) {
        let came = [a, b].map(|peer| hall[peer].came(kind).len());
        assert!(came.iter().sum::<usize>() > 0, "{kind}");
    }
    hall[a].send(&Ask::logout());
    hall.settle();
    let types: Vec<u8> = hall[a].said.iter().map(|(_, packet)| packet.kind).collect();
    assert_eq!(types, [kind::ASSIGN_TOKEN, kind::LOGOUT]);
}

#[test]
fn r10_as_many_records_as_fit() {
    let mut hall = Hall::new(seed());
    let mut peers = Vec::new();
    for host in 1..=16 {
        peers.push(hall.user(&format!("u{host}"), host));
    }
    hall.create(peers[0], "den", 16);
    for peer in &peers[1..] {
        hall.join(*peer, "den");
    }
    hall[peers[0]].forget();
    hall.send(peers[0], &Ask::key(262));
    hall.settle();
    // 16 ships: one packet each round.
    for said in hall[peers[0]].heard(kind::UPDATE) {
        let Said::Update(positions) = said else {
            unreachable!()
        };
        assert_eq!(positions.len(), 16);
    }
}

#[test]
fn r11_pages() {
    let mut hall = Hall::with(seed(), |settings| {
        settings
            .limits
            .set("rooms-sessions", 200)
            .expect("in range");
    });
    // Names of 32 bytes: 37 a room, so 31 rooms and five bytes of 1186.
    let name = |number: u16| format!("{number:032}");
    for number in 0..70 {
        let peer = hall.user(&format!("u{number}"), number + 1);
        hall.create(peer, &name(number), 4);
    }
    let reader = hall.user("reader", 500);
    for (first, count) in [
        (0, 31),
        (1, 31),
        (31, 31),
        (39, 31),
        (40, 30),
        (69, 1),
        (70, 0),
    ] {
        let Said::Page(page) = hall.ask(reader, &Ask::rooms(first)) else {
            panic!("no page");
        };
        assert_eq!((page.total, page.first), (70, first));
        assert_eq!(page.rooms.len(), count, "from {first}");
        for (number, room) in (first..).zip(&page.rooms) {
            assert_eq!(room.name, name(number));
        }
    }
}

#[test]
fn r14_examples() {
    let token = [0xDEAD_BEEF];
    let mut hall = Hall::with_dice(seed(), Box::new(Rigged::new(&token)));
    let peer = hall.open(Peer::silent(super::super::hall::address(1)));
    let said = hall[peer].said[0].1.bytes();
    let assign = b"\x01\x10\0\x01\xFF\xFF\xFF\xFF\0\0\0\x06\xDE\xAD\xBE\xEF\x10\x93\x07\xEF";
    assert_eq!(said, assign);

    let mut diary = hall.shelf.open();
    diary.users.insert("Axel".into(), "RTYPE".into());
    drop(diary);
    hall[peer].raw(b"\x01\0\0\x01\xDE\xAD\xBE\xEF\0\0\0\x0D\0\x04Axel\0\x05RTYPE\x06\x6E");
    hall.settle();
    let right = b"\x01\0\0\x02\xFF\xFF\xFF\xFF\0\0\0\x01\x01\x04\x01";
    assert_eq!(hall[peer].log[0].packet.bytes(), right);
    hall[peer].next_id = 3;
    hall.send(peer, &Ask::create("den", "", 4));
    hall[peer].raw(b"\x01\x0C\0\x02\xDE\xAD\xBE\xEF\0\0\0\x04\0\0\0\x41\x03\x8C");
    hall.settle();
    let key = super::super::hall::Told::Key {
        player: hall.handle("Axel"),
        key: 65,
    };
    assert!(hall.told().contains(&key));

    // The others, by the peer's own bytes.
    let said = |kind, id, payload: &[u8]| {
        let token = super::super::bytes::SERVER_TOKEN;
        Ask::new(kind, payload).packet(id, token).bytes()
    };
    let seat = [&[1, 2][..], &text("den")].concat();
    let seat2 = b"\x01\x09\0\x03\xFF\xFF\xFF\xFF\0\0\0\x07\x01\x02\0\x03den\x05\x4D";
    assert_eq!(said(kind::JOIN_ROOM, 3, &seat), seat2);
    let wrong = b"\x01\x0D\0\x07\xFF\xFF\xFF\xFF\0\0\0\0\x04\x11";
    assert_eq!(said(kind::WRONG_PASSWORD, 7, &[]), wrong);
    let full = b"\x01\x02\0\x01\xFF\xFF\xFF\xFF\0\0\0\x01\x02\x04\x03";
    assert_eq!(said(kind::LOGOUT, 1, &[2]), full);
}
