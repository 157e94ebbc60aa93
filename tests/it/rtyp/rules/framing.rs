//! Section 1: framing and encodings.

use anteroom::engine::Refusal;
use anteroom::guard::escape::escaped;

use super::super::bytes::{
    Event, Said, event, frame, left, login_request, logout, rejected, string,
};
use super::super::hall::{Hall, Told};
use crate::world::pipe::{Ending, Pieces};
use crate::world::seeds::{seed, seeds};

/// Says these bytes on a connection that has logged in; a witness hears of it.
fn say_after_login(bytes: &[u8]) -> Hall {
    let mut hall = Hall::new(seed());
    let witness = hall.enter("witness", 1);
    let speaker = hall.enter("speaker", 2);
    hall.settle();
    hall[speaker].write(bytes);
    hall.settle();
    assert!(hall[speaker].closed_without_a_word(), "after {bytes:02X?}");
    assert_eq!(
        hall[witness].events(),
        [
            Event::joined(1, "speaker"),
            Event::left(1, left::PROTOCOL_ERROR)
        ]
    );
    hall
}

fn is_closed_at_once(bytes: &[u8]) {
    let mut hall = Hall::new(seed());
    let peer = hall.greet(1, bytes);
    assert!(hall[peer].closed_without_a_word(), "after {bytes:02X?}");
    assert_eq!(hall.count("login-malformed"), 1, "after {bytes:02X?}");
    assert_eq!(hall.told(), []);
}

#[test]
fn r1_frames_in_any_pieces() {
    seeds(20, |seed| {
        for pieces in [Pieces::Whole, Pieces::Of(1), Pieces::Random(5)] {
            let mut hall = Hall::new(seed);
            hall.net.pieces = pieces;
            let mut both = login_request(1, b"R9");
            both.extend(logout(0));
            let peer = hall.greet(1, &both);
            // What was answered before the end has arrived.
            assert!(matches!(hall[peer].said[..], [(_, Said::Accepted { .. })]));
            assert!(matches!(hall[peer].end, Some((_, Ending::Fin))));
            assert_eq!(hall.count("logins"), 1);
            assert_eq!(hall.count("ended-left"), 1);
        }
    });
}

#[test]
fn r1_two_logins_in_one_segment_are_answered_and_closed() {
    let mut hall = Hall::new(seed());
    let mut both = login_request(1, b"R9");
    both.extend(login_request(1, b"R9"));
    let peer = hall.greet(1, &both);
    assert!(matches!(hall[peer].said[..], [(_, Said::Accepted { .. })]));
    assert!(matches!(hall[peer].end, Some((_, Ending::Fin))));
    assert_eq!(hall.count("ended-malformed-stream"), 1);
    assert_eq!(hall.count("sessions"), 0);
}

#[test]
fn r2_length_judged_at_once() {
    for len in [0u16, 513, 514, 0x8000, 65_535] {
        is_closed_at_once(&len.to_le_bytes());
        say_after_login(&len.to_le_bytes());
    }
    // 512 is a length like any other: the whole message is waited for, and its name is too long.
    let mut hall = Hall::new(seed());
    let request = login_request(1, &[b'x'; 508]);
    assert_eq!(request[..2], [0, 2]);
    let peer = hall.greet(1, &request[..513]);
    assert_eq!(hall[peer].end, None);
    hall[peer].write(&request[513..]);
    hall.settle();
    assert_eq!(hall[peer].rejected(), Some(rejected::BAD_NAME));
}

#[test]
fn r3_whole_or_malformed() {
    let request = login_request(1, b"R9");
    let message = &request[2..];
    // Every field cut, and one byte too many.
    for len in 1..message.len() {
        // The version alone is judged before the shape; it is 1 here.
        is_closed_at_once(&frame(&message[..len]));
    }
    is_closed_at_once(&frame(&[message, &[0]].concat()));
    // A string that reaches past the end.
    is_closed_at_once(&frame(&[1, 1, 3, 0, 0x52, 0x39]));
    is_closed_at_once(&frame(&[1, 1, 0xFF, 0xFF, 0x52, 0x39]));
    for kind in [0, 2, 3, 5, 6, 127, 255] {
        is_closed_at_once(&frame(&[kind]));
        is_closed_at_once(&frame(&[kind, 0]));
        is_closed_at_once(&frame(&[&[kind], &message[1..]].concat()));
        say_after_login(&frame(&[kind]));
        say_after_login(&frame(&[kind, 0]));
    }
    // A Logout without its reason, and one with something behind it.
    say_after_login(&frame(&[4]));
    say_after_login(&frame(&[4, 0, 0]));
}

#[test]
fn r4_names_and_texts() {
    let long = "0123456789abcdef";
    for name in [
        "x",
        long,
        "\u{80}",
        "\u{9F}",
        "\u{7FF}ß\u{1F600}",
        " ",
        "\u{202E}",
        "~",
    ] {
        let mut hall = Hall::new(seed());
        let peer = hall.greet(1, &login_request(1, name.as_bytes()));
        assert!(hall[peer].accepted().is_some(), "{name:?}");
    }
    let bad: [&[u8]; 11] = [
        b"",
        b"0123456789abcdefg",
        &[b'x'; 300],
        b"\xFF",
        b"x\xC3",
        b"\xED\xA0\x80",
        b"\xC0\xAF",
        b"\x1F",
        b"x\0",
        b"x\x7Fx",
        b"0123456789abcde\xC3\xA9",
    ];
    for name in bad {
        let mut hall = Hall::new(seed());
        let peer = hall.greet(1, &login_request(1, name));
        assert_eq!(
            hall[peer].rejected(),
            Some(rejected::BAD_NAME),
            "{name:02X?}"
        );
        assert_eq!(hall.told(), []);
    }
    // The same bytes are the same name, and nothing else is.
    let mut hall = Hall::new(seed());
    hall.greet(1, &login_request(1, "é".as_bytes()));
    let same = hall.greet(2, &login_request(1, "é".as_bytes()));
    assert_eq!(hall[same].rejected(), Some(rejected::NAME_TAKEN));
    for other in ["e\u{301}", "É"] {
        let peer = hall.greet(3, &login_request(1, other.as_bytes()));
        assert!(hall[peer].accepted().is_some(), "{other:?}");
    }
}

#[test]
fn r4_lines_of_chat() {
    let longest = "x".repeat(200);
    let mut hall = Hall::new(seed());
    let speaker = hall.enter("speaker", 1);
    hall.enter("other", 2);
    hall.told();
    for text in ["x", &longest, "\u{80}\u{9F}\u{202E}", " "] {
        hall[speaker].say(text);
        hall.settle();
        let Some(Told::Chat { text: heard, .. }) = hall.told().pop() else {
            panic!("{text:?} was not told");
        };
        assert_eq!(heard, text);
    }
    let longer = [b'x'; 201];
    let bad: [&[u8]; 5] = [b"", &longer, b"\xFF", b"a\x1Fb", b"\x7F"];
    for text in bad {
        let mut hall = Hall::new(seed());
        let speaker = hall.enter("speaker", 1);
        hall.settle();
        hall[speaker].event(Event::new(event::CHAT, &string(text)));
        hall.settle();
        let reason = hall[speaker].logged_out();
        assert_eq!(reason, Some(left::PROTOCOL_ERROR), "{text:02X?}");
    }
}

#[test]
fn r4_the_game_cannot_say_it_either() {
    let mut hall = Hall::new(seed());
    hall.enter("listener", 1);
    let player = hall.handle("listener");
    for text in ["", "a\u{1F}b", "\u{7F}"] {
        let said = hall.act(move |replies| replies.chat(player, 0, text));
        assert_eq!(said, Err(Refusal::BadText), "{text:?}");
    }
    let long = "x".repeat(201);
    let said = hall.act(move |replies| replies.chat(player, 0, &long));
    assert_eq!(said, Err(Refusal::TooLong { max: 200 }));
}

#[test]
fn r5_unchanged_but_escaped() {
    let name = "\u{9B}2J\u{202E}\\n";
    let text = "\u{85}\u{2066}x\\";
    let mut hall = Hall::new(seed());
    let listener = hall.enter("listener", 1);
    let speaker = hall.enter(name, 2);
    hall[speaker].say(text);
    hall.settle();
    assert_eq!(
        hall[listener].events(),
        [Event::joined(1, name), Event::said(1, text)]
    );
    let shown = escaped(name).to_string();
    assert_eq!(shown, "\\u{9b}2J\\u{202e}\\\\n");
    assert_eq!(
        escaped("\0\u{7F}\u{2066}").to_string(),
        "\\u{0}\\u{7f}\\u{2066}"
    );
}
