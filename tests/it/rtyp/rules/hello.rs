//! Section 6: tokens, the hello, and the example of version 2.

use super::super::bytes::{
    Datagram, Event, HEADER, HEADER_2, Token, kind, login_request, rejected,
};
use super::super::dice::Rigged;
use super::super::hall::{Answer, Hall, SERVICE, Told, address};
use super::super::peer::Peer;
use super::knock;
use crate::world::PeerId;
use crate::world::seeds::seed;

/// What a silent peer of version 2 is told when it says hello with a right cookie.
pub(super) fn verdict(hall: &mut Hall, host: u8, room: &[u8], name: &[u8]) -> Result<u8, u8> {
    let peer = knock(hall, &address(host), room, name);
    match hall[peer].greeted {
        Some((_, number)) => Ok(number),
        None => Err(hall[peer].rejected().expect("an answer")),
    }
}

#[test]
fn r92_longer_header() {
    let mut hall = Hall::new(seed());
    let stranger = hall.add(Peer::v2_silent(&address(9)));
    let ack = Datagram::secret(kind::ACK, 0x0102_0304_0506_0708, &[]).bytes();
    assert_eq!(ack.len(), HEADER_2);
    for len in HEADER..HEADER_2 {
        hall[stranger].raw(&ack[..len]);
    }
    hall.settle();
    assert_eq!(hall.count("ignored-short"), 4);
    hall[stranger].raw(&ack);
    hall.settle();
    assert_eq!(hall.count("ignored-short"), 4);
    assert_eq!(hall.count("ignored-unbound"), 1);
    // All that the server sends has the short one, with its public token.
    let peer = hall.enter_2("R9", 1);
    let public = hall[peer].public();
    hall.for_ms(1000);
    for got in &hall[peer].talk().log {
        assert_eq!(got.datagram.session, Token::Public(public));
    }
    // And it takes payloads of 1178 bytes behind the long one.
    let other = hall.enter("other", 2);
    hall[peer].send(kind::DATA, &[7; 1178]);
    hall.settle();
    assert_eq!(hall[other].payloads(kind::DATA)[0].len(), 1179);
    hall[peer].send(kind::DATA, &[7; 1179]);
    hall.settle();
    assert_eq!(hall.count("ignored-long"), 1);
}

#[test]
fn r104_secret_and_public() {
    let mut hall = Hall::new(seed());
    let peers = [1, 2].map(|host| hall.enter_2(&format!("p{host}"), host));
    let old = hall.enter("old", 3);
    hall[peers[0]].say("hi");
    hall.for_ms(10_000);
    for peer in peers {
        let secret = hall[peer].secret().to_le_bytes();
        for other in [peers[0], peers[1], old] {
            for got in &hall[other].talk().log {
                let bytes = got.datagram.bytes();
                let is_told = bytes.windows(8).any(|window| window == secret);
                let may = other == peer && got.datagram.kind == kind::SERVER_HELLO;
                assert_eq!(is_told, may, "{:?}", got.datagram);
            }
        }
    }
    // Who has only the public one has nothing.
    let public = u64::from(hall[peers[0]].public());
    let next = hall[peers[0]].talk().numbers_used() as u16;
    hall.told();
    for token in [public, public << 32, public | public << 32] {
        let data = Datagram::secret(kind::DATA, token, b"x").sequence(next);
        hall[peers[0]].raw(&data.bytes());
        hall[peers[0]].raw_from("10.9.9.9:9".parse().expect("an address"), &data.bytes());
    }
    hall.settle();
    assert_eq!(hall.count("ignored-wrong-token"), 3);
    assert_eq!(hall.count("ignored-unbound"), 3);
    assert_eq!(hall.told(), []);
}

/// Dice that give a cookie key first, then these words.
fn after_the_key(words: &[u32]) -> Rigged {
    Rigged::new(&[&[1, 2, 3, 4], words].concat())
}

#[test]
fn r105_session_token() {
    // Zero, one that looks like a public token, then a good one; the low word comes first.
    let dice = after_the_key(&[0, 0, 77, 0, 5, 6, 1, 1]);
    let mut hall = Hall::with_dice(seed(), Box::new(dice.clone()));
    let first = hall.enter_2_silent("a", 1);
    assert_eq!(hall[first].secret(), 6 << 32 | 5);
    // That of a live session is drawn anew.
    dice.next(&[5, 6, 7, 8]);
    let second = hall.enter_2_silent("b", 2);
    assert_eq!(hall[second].secret(), 8 << 32 | 7);
    // Without dice none is made up.
    dice.breaks(true);
    assert_eq!(verdict(&mut hall, 3, b"", b"c"), Err(rejected::REFUSED));
    dice.breaks(false);
    let secrets: Vec<u64> = (3..203)
        .map(|host| {
            let peer = knock(&mut hall, &address(host), b"", b"d");
            hall.for_ms(20);
            let secret = hall[peer].secret();
            hall[peer].leave();
            hall.for_ms(20);
            secret
        })
        .collect();
    assert_eq!(secrets.iter().fold(0, |all, it| all | it), u64::MAX);
    assert_eq!(secrets.iter().fold(u64::MAX, |all, it| all & it), 0);
}

#[test]
fn r106_player_token() {
    let dice = Rigged::new(&[]);
    let mut hall = Hall::with_dice(seed(), Box::new(dice.clone()));
    let old = hall.enter_as("old", Peer::silent(&address(9)));
    let taken = hall[old].token();
    let peer = hall.add(Peer::v2_silent(&address(1)));
    hall[peer].hello("a");
    hall.settle();
    // Never 0, never that of a live session of either version.
    dice.next(&[1, 1, 0, taken, 7]);
    hall[peer].say_hello();
    hall.settle();
    let greeted = &hall[peer].talk().log[0].datagram;
    assert_eq!(
        (greeted.kind, greeted.session),
        (kind::SERVER_HELLO, Token::Public(7))
    );
    let other = hall.add(Peer::v2_silent(&address(2)));
    hall[other].hello("b");
    hall.settle();
    dice.next(&[2, 2, 7, 8]);
    hall[other].say_hello();
    hall.settle();
    assert_eq!(hall[other].public(), 8);
    // Fresh for each session, also of the same player.
    hall[peer].leave();
    hall.settle();
    let again = hall.enter_2("a", 1);
    assert_ne!(hall[again].public(), 7);
}

#[test]
fn r107_shape_and_cookie() {
    let mut hall = Hall::new(seed());
    let peer = hall.add(Peer::v2_silent(&address(1)));
    let good = Datagram::hello(0, b"1", b"R9");
    let bytes = good.bytes();
    let mut wrong: Vec<Vec<u8>> = (HEADER_2..bytes.len())
        .map(|len| bytes[..len].to_vec())
        .collect();
    wrong.push([&bytes[..], &[0]].concat());
    let mut long = bytes.clone();
    long.resize(1200, 0);
    wrong.push(long);
    for (count, wrong) in (1..).zip(&wrong) {
        hall[peer].raw(wrong);
        hall.for_ms(20);
        assert_eq!(hall.count("ignored-hello"), count, "{wrong:02X?}");
    }
    assert_eq!(hall[peer].challenges(), 0);
    // Name and room are not looked at before the cookie is right, the rest of the header never.
    let mut count = 0;
    for (room, name) in [
        (&b""[..], &b""[..]),
        (b"no such room", b"R9"),
        (&[0xFF; 100], &[0; 500]),
    ] {
        for (sequence, ack, session) in [(0, 0xFFFF, 0), (9, 8, 7), (0xFFFF, 0, u64::MAX)] {
            for cookie in [0, 1, u64::MAX] {
                let mut hello = Datagram::hello(cookie, room, name).sequence(sequence);
                hello.ack = ack;
                hello.ack_bits = 5;
                hello.session = Token::Secret(session);
                hall[peer].raw(&hello.bytes());
                hall.for_ms(20);
                count += 1;
                assert_eq!(hall[peer].challenges(), count);
            }
        }
    }
    let mut hello = Datagram::hello(0, b"", b"R9").sequence(500);
    hello.session = Token::Secret(99);
    hall[peer].raw(&hello.bytes());
    hall.for_ms(20);
    let newest = hall[peer]
        .outside
        .last()
        .expect("a challenge")
        .1
        .payload
        .clone();
    hello.payload[..8].copy_from_slice(&newest);
    hall[peer].raw(&hello.bytes());
    hall.for_ms(20);
    assert!(hall[peer].is_bound());
}

#[test]
fn r108_nothing_is_kept() {
    let mut hall = Hall::new(seed());
    for host in 0..200 {
        let peer = hall.add(Peer::v2_silent(&address(host)));
        hall[peer].hello("R9");
        hall.for_ms(15);
        assert_eq!(hall[peer].challenges(), 1);
    }
    assert_eq!(hall.count("sessions"), 0);
    assert_eq!(hall.told(), []);
    assert_eq!(hall.deadline(SERVICE), None, "nothing is due for anybody");
    assert_eq!(hall.addresses.tracked(), 0);
    // Nobody has the name.
    hall.enter_2("R9", 201);
    assert_eq!(hall.addresses.tracked(), 1);
}

#[test]
fn r109_challenge() {
    let mut hall = Hall::new(seed());
    let peer = hall.add(Peer::v2_silent(&address(1)));
    let endpoint = hall[peer].udp;
    hall.echo_only(SERVICE, endpoint);
    hall[peer].hello("");
    hall.settle();
    let tally = hall.tally(SERVICE, endpoint);
    assert_eq!((tally.in_bytes, tally.out_bytes), (34, 26));
    let first = hall[peer].cookie();
    assert_ne!(first, 0);
    // The same in the same window; another draws the right one again.
    for wrong in [0, first ^ 1, first.swap_bytes(), !first] {
        hall[peer].raw(&Datagram::hello(wrong, b"", b"R9").bytes());
        hall.for_ms(20);
        assert_eq!(hall[peer].cookie(), first);
    }
    hall.for_ms(30_000);
    hall[peer].hello("R9");
    hall.settle();
    assert_ne!(hall[peer].cookie(), first, "the old one is stale");
    assert_eq!(hall[peer].challenges(), 6);
    assert!(!hall[peer].is_in());
    hall[peer].say_hello();
    hall.settle();
    assert!(hall[peer].is_in());
    // Who has a session is challenged no less.
    hall[peer].raw(&Datagram::hello(7, b"", b"R9").bytes());
    hall.settle();
    assert_eq!(hall[peer].challenges(), 7);
    assert_eq!(hall.count("challenges"), 7);
}

#[test]
fn r112_order_of_a_hello() {
    let mut hall = Hall::new(seed());
    hall.shelf.open().answer = Answer::Refuse;
    // Each has all the faults of those behind it.
    assert_eq!(verdict(&mut hall, 1, b"9", b""), Err(rejected::BAD_NAME));
    assert_eq!(
        verdict(&mut hall, 1, b"9", b"seventeen bytes.."),
        Err(rejected::BAD_NAME)
    );
    assert_eq!(verdict(&mut hall, 1, b"9", b"a\n"), Err(rejected::BAD_NAME));
    assert_eq!(
        verdict(&mut hall, 1, b"9", b"\xC3"),
        Err(rejected::BAD_NAME)
    );
    hall.shelf.open().answer = Answer::Admit;
    for host in 2..6 {
        hall.enter_2(&format!("p{host}"), host);
    }
    hall.shelf.open().answer = Answer::Refuse;
    assert_eq!(
        verdict(&mut hall, 1, b"9", b"R9"),
        Err(rejected::NO_SUCH_GAME)
    );
    assert_eq!(
        verdict(&mut hall, 1, b"", b"R9"),
        Err(rejected::SERVER_FULL)
    );
    hall[PeerId(4)].leave();
    hall.settle();
    hall.told();
    // Five of one address reach the game, the sixth the limit, and none costs but these.
    for _ in 0..5 {
        assert_eq!(verdict(&mut hall, 1, b"", b"R9"), Err(rejected::REFUSED));
    }
    assert_eq!(hall.told().len(), 5);
    assert_eq!(verdict(&mut hall, 1, b"", b"R9"), Err(rejected::TOO_MANY));
    assert_eq!(verdict(&mut hall, 1, b"", b"p3"), Err(rejected::NAME_TAKEN));
    assert_eq!(hall.told(), []);
    // Over TCP version 2 is as wrong as any.
    let peer = hall.greet(7, &login_request(2, b"R9"));
    assert_eq!(hall[peer].rejected(), Some(rejected::BAD_VERSION));
    // Over UDP a version that is not spoken is nothing.
    let mut third = Datagram::hello(0, b"", b"R9");
    third.version = 3;
    let peer = hall.add(Peer::v2_silent(&address(8)));
    hall[peer].raw(&third.bytes());
    hall.settle();
    assert_eq!(hall.tally(SERVICE, hall[peer].udp).out_datagrams, 0);
    assert_eq!(hall.count("ignored-version"), 1);
}

#[test]
fn r113_room() {
    let place = |hall: &mut Hall, host: u8, room: &[u8]| {
        hall.told();
        let verdict = verdict(hall, host, room, b"R9");
        match hall.told().first() {
            Some(Told::Connecting { player, .. }) => Ok((player.game(), player.number())),
            _ => Err(verdict.expect_err("nobody enters unasked")),
        }
    };
    let mut hall = Hall::with_games(seed(), 12);
    assert_eq!(place(&mut hall, 1, b"12"), Ok((11, 0)));
    assert_eq!(place(&mut hall, 2, b""), Ok((0, 0)));
    assert_eq!(
        place(&mut hall, 3, b"1"),
        Err(rejected::NAME_TAKEN),
        "only that game"
    );
    let wrong: [&[u8]; 12] = [
        b"0",
        b"13",
        b"01",
        b"+1",
        b" 1",
        b"1 ",
        b"-1",
        b"1.0",
        b"one",
        b"\xFF",
        b"\0",
        b"18446744073709551617",
    ];
    for room in wrong {
        assert_eq!(
            place(&mut hall, 4, room),
            Err(rejected::NO_SUCH_GAME),
            "{room:?}"
        );
    }
    hall.act(|replies| replies.start(0));
    assert_eq!(
        verdict(&mut hall, 4, b"1", b"late"),
        Err(rejected::GAME_STARTED)
    );
    assert_eq!(verdict(&mut hall, 4, b"", b"late"), Ok(0));

    let mut hall = Hall::with(seed(), |settings| {
        settings.games = 2;
        settings.names = vec!["red".to_owned(), "sixteen bytes ok".to_owned()];
    });
    assert_eq!(place(&mut hall, 1, b"sixteen bytes ok"), Ok((1, 0)));
    assert_eq!(place(&mut hall, 2, b""), Ok((0, 0)));
    for room in [&b"1"[..], b"Red", b"re", b"red ", b"sixteen bytes ok."] {
        assert_eq!(
            place(&mut hall, 4, room),
            Err(rejected::NO_SUCH_GAME),
            "{room:?}"
        );
    }
}

#[test]
fn r114_outside_the_numbering() {
    let mut hall = Hall::new(seed());
    hall.shelf.open().answer = Answer::Wait;
    let late = knock(&mut hall, &address(1), b"", b"R9");
    let bad = knock(&mut hall, &address(2), b"", b"");
    hall.for_ms(5000);
    for (peer, reason) in [(late, rejected::REFUSED), (bad, rejected::BAD_NAME)] {
        let outside = &hall[peer].outside;
        let [(_, challenge), (_, no)] = &outside[..] else {
            panic!("{outside:?}")
        };
        let shape = |it: &Datagram| (it.sequence, it.ack, it.ack_bits, it.session);
        for it in [challenge, no] {
            assert_eq!(shape(it), (0, 0xFFFF, 0, Token::Public(0)));
        }
        assert_eq!(
            (challenge.kind, challenge.payload.len()),
            (kind::CONNECT_CHALLENGE, 8)
        );
        assert_eq!(
            (no.kind, &no.payload[..]),
            (kind::HELLO_REJECTED, &[reason][..])
        );
        assert!(!hall[peer].is_in());
    }
}

#[test]
fn r115_server_hello() {
    let mut hall = Hall::new(seed());
    let other = hall.enter("other", 2);
    hall.settle();
    hall.told();
    let peer = knock(&mut hall, &address(1), b"", b"R9");
    let told = hall.told();
    let [
        Told::Connecting {
            player: asked,
            name,
            ip,
        },
        Told::Joined { player: joined, .. },
    ] = &told[..]
    else {
        panic!("{told:?}")
    };
    assert_eq!(
        (asked, &name[..], &ip.to_string()[..]),
        (joined, "R9", "10.0.0.1")
    );
    let log = &hall[peer].talk().log;
    let kinds: Vec<u8> = log.iter().map(|got| got.datagram.kind).collect();
    assert_eq!(kinds[..3], [kind::SERVER_HELLO, kind::PING, kind::EVENTS]);
    for (sequence, got) in (0..).zip(&log[..3]) {
        let it = &got.datagram;
        assert_eq!((it.sequence, it.ack, it.ack_bits), (sequence, 0xFFFF, 0));
    }
    assert_eq!(log[0].datagram.payload[8], 1, "the lowest free number");
    assert_eq!(hall[peer].events(), [Event::joined(0, "other")]);
    assert_eq!(hall[other].events(), [Event::joined(1, "R9")]);
    // From that endpoint, and from no other.
    hall[peer].send(kind::DATA, b"here");
    hall.settle();
    assert_eq!(hall[other].payloads(kind::DATA), [&b"\x01here"[..]]);
    // A silent one ends by the same rules.
    hall.for_ms(11_000);
    assert_eq!(hall[other].events().last(), Some(&Event::left(1, 2)));
}

#[test]
fn r116_from_the_token_on() {
    for first in [0, 1, 500, 0xFFFE] {
        let mut hall = Hall::new(seed());
        let other = hall.enter("other", 2);
        let mut peer = Peer::v2_silent(&address(1));
        peer.first = first;
        let peer = hall.add(peer);
        let mut hello = Datagram::hello(0, b"", b"R9").sequence(first);
        hall[peer].hello("R9");
        hall.settle();
        let cookie = hall[peer].cookie();
        hello.payload[..8].copy_from_slice(&cookie.to_le_bytes());
        hall[peer].raw(&hello.bytes());
        hall.settle();
        for _ in 0..3 {
            hall[peer].send(kind::DATA, b"x");
        }
        hall.settle();
        assert_eq!(hall[other].count(kind::DATA), 3, "from {first}");
        assert_eq!(hall.count("ignored-repeated"), 0);
    }
}
