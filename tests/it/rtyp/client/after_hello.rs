//! Version 2: from the first ServerHello to the last farewell.

use std::cell::RefCell;
use std::rc::Rc;

use anteroom::protocol::rtyp::wire::Reason;
use anteroom::protocol::rtyp::{End, SendError, State};

use super::super::bytes::{Datagram, Event, Token};
use super::super::peer::SERVER;
use super::greeted::{Greeted, PUBLIC, SECRET};
use super::greeter::{Greeter, Greeting, Said, kind, outside};
use super::{OWN, address};
use crate::world::link::Weather;

#[test]
fn r116_its_numbers_start_with_its_first_datagram_that_carries_the_token() {
    let mut table = Greeted::playing();
    for _ in 0..10 {
        table
            .act(|client, env| client.send(env, b"x"))
            .expect("it plays");
        table.world.for_ms(500);
    }
    let own = table.host().came.iter();
    let own: Vec<u16> = own
        .filter(|(_, said)| said.token == SECRET)
        .map(|(_, said)| said.sequence)
        .collect();
    assert!(own.len() > 10);
    let expected: Vec<u16> = (0..own.len() as u16).collect();
    assert_eq!(own, expected);
}

#[test]
fn a_repeated_server_hello_changes_nothing() {
    let mut table = Greeted::playing();
    let told = table.player.get().told.len();
    let said = table.host().came.len();
    for _ in 0..3 {
        let hello = table.host().hello().bytes();
        table.world.for_ms(10);
        table.host().send_raw(&hello);
    }
    table.world.for_ms(10);
    assert_eq!(table.player.get().told.len(), told);
    assert_eq!(table.host().came.len(), said);
    assert_eq!(table.stat("ignored-repeated"), 3);
    table
        .act(|client, env| client.send(env, b"x"))
        .expect("it plays");
    table.world.for_ms(10);
    let newest = table.newest();
    assert_eq!(newest.token, SECRET);
    assert_ne!(newest.sequence, 0, "its numbers go on");
    assert!(table.host().talk.is_acknowledged(0));
}

#[test]
fn r123_after_it_every_other_player_token_is_dropped() {
    for mut table in [Greeted::playing(), Greeted::unheard()] {
        let told = table.player.get().told.len();
        let said = table.host().came.len();
        let mut forged = vec![
            outside(kind::CONNECT_CHALLENGE, &[7; 8]),
            outside(kind::HELLO_REJECTED, &[1]),
            outside(kind::SERVER_BYE, &[1]),
        ];
        for token in [0, PUBLIC + 1, PUBLIC.swap_bytes(), SECRET as u32] {
            for (kind, payload) in [
                (kind::PING, &[0; 4][..]),
                (kind::DATA, b"x"),
                (kind::SERVER_HELLO, &[1, 1, 1, 1, 1, 1, 1, 1, 0]),
                (kind::SERVER_BYE, &[4]),
            ] {
                let mut datagram = outside(kind, payload).sequence(900);
                datagram.session = Token::Public(token);
                forged.push(datagram);
            }
        }
        let count = forged.len() as u64;
        for datagram in forged {
            table.host().send_raw(&datagram.bytes());
        }
        // Nor does its token make another endpoint the server's, or another version ours.
        let own = table.host().talk.datagram(kind::DATA, b"x");
        let own = Datagram { version: 2, ..own };
        let stranger = address("198.51.100.1:4243");
        table.host().send_raw_from(stranger, &own.bytes());
        let first = Datagram { version: 1, ..own };
        table.host().send_raw(&first.bytes());
        table.world.for_ms(20);
        assert_eq!(table.stat("ignored-wrong-token"), count);
        assert_eq!(table.stat("ignored-source"), 1);
        assert_eq!(table.stat("ignored-version"), 1);
        assert_eq!(table.state(), State::Playing);
        assert_eq!(table.player.get().told.len(), told);
        assert_eq!(table.host().came.len(), said);
    }
}

#[test]
fn r125_a_session_whose_pings_are_unanswered_for_3_s_is_asked_for_again_and_continues() {
    let mut table = Greeted::unheard();
    let start = table.player.get().told[1].0;
    table.world.for_ms(2_999 - (table.world.now() - start));
    assert_eq!(table.host().of(kind::CLIENT_HELLO).len(), 2);
    table.world.for_ms(10);
    let hellos = table.host().of(kind::CLIENT_HELLO);
    assert_eq!(
        (hellos[2].0 - start, hellos[2].1.cookie()),
        (3_005, table.host().cookie)
    );
    // The host has the session still: nothing is told, and the numbers go on.
    table.world.for_ms(2_980);
    assert_eq!(table.host().of(kind::CLIENT_HELLO).len(), 3);
    assert_eq!(table.player.get().told.len(), 2);
    let pings = table.host().of(kind::PING);
    let numbers: Vec<u16> = pings.iter().map(|(_, ping)| ping.sequence).collect();
    assert_eq!(numbers, [0, 1, 2, 3, 4, 5]);
    // It is still not answered, so it asks again; until it is.
    table.world.for_ms(100);
    assert_eq!(table.host().of(kind::CLIENT_HELLO).len(), 4);
    table.host().greeting.play = true;
    table.world.for_ms(10_000);
    assert_eq!(table.host().of(kind::CLIENT_HELLO).len(), 4);
    assert_eq!(table.state(), State::Playing);
    assert_eq!(table.player.get().told.len(), 2);
}

#[test]
fn r125_an_answered_ping_ends_the_asking() {
    let mut table = Greeted::unheard();
    table.host().greeting = Greeting::SILENT;
    table.world.for_ms(3_500);
    let asked = table.host().of(kind::CLIENT_HELLO).len();
    assert_eq!(asked, 2 + 3);
    let (_, ping) = table.host().of(kind::PING).pop().expect("a Ping");
    table.host().send(kind::PONG, &ping.payload);
    table.world.for_ms(10_000);
    assert_eq!(table.host().of(kind::CLIENT_HELLO).len(), asked);
    assert_eq!(table.state(), State::Playing);
}

#[test]
fn r125_a_session_that_the_server_has_forgotten_gives_way_to_another() {
    let mut table = Greeted::unheard();
    table.host().event(Event::joined(1, "Luke"));
    table.world.for_ms(100);
    assert!(table.player.get().client.is_present(1));
    table.host().restart(SECRET + 1, PUBLIC + 1);
    table.host().greeting.play = true;
    table.host().player = 2;
    table.until(3_600, |player| player.count("Joined") == 2);
    table.world.for_ms(1_000);
    {
        let player = table.player.get();
        assert_eq!(player.notices()[3..], ["Accepted { player: 2 }", "Joined"]);
        assert_eq!(player.client.player(), Some(2));
        assert!(!player.client.is_present(1));
    }
    let new = table.host().came.iter();
    let new: Vec<Said> = new
        .filter(|(_, said)| said.token == SECRET + 1)
        .map(|(_, said)| said.clone())
        .collect();
    assert_eq!((new[0].kind, new[0].sequence), (kind::PING, 0));
    assert_eq!(table.newest().token, SECRET + 1);
    // What still comes of the old one is nobody's.
    let mut old = outside(kind::DATA, b"old").sequence(9);
    old.session = Token::Public(PUBLIC);
    table.host().send_raw(&old.bytes());
    table.world.for_ms(10);
    assert_eq!(table.player.get().count("Data"), 0);
}

#[test]
fn r125_a_server_that_answers_neither_pings_nor_hellos_is_left() {
    let mut table = Greeted::unheard();
    table.host().greeting = Greeting::SILENT;
    table.until(8_000, |player| player.count("Ended") == 1);
    table.assert_ended(End::NoAnswer, 3);
    let asked = table.host().of(kind::CLIENT_HELLO).len();
    assert_eq!(asked, 2 + 20);
}

#[test]
fn a_rejection_of_the_second_hello_ends_it() {
    let mut table = Greeted::unheard();
    table.host().greeting = Greeting::SILENT;
    table.world.for_ms(3_100);
    let rejected = outside(kind::HELLO_REJECTED, &[5]);
    table.host().send_raw(&rejected.bytes());
    table.world.for_ms(10);
    table.assert_ended(End::Rejected(5), 0);
}

/// The server heard no Ping, takes the session for a ghost's and ends it in favour of the hello.
#[test]
fn a_session_that_times_out_while_hello_is_said_again_gives_way_to_another() {
    let mut table = Greeted::unheard();
    table.host().greeting = Greeting::SILENT;
    table.world.for_ms(3_100);
    table.host().send(kind::SERVER_BYE, &[2]);
    table.world.for_ms(5);
    assert_eq!(table.state(), State::LoggingIn);
    assert_eq!(table.player.get().client.player(), None);
    table.host().restart(SECRET + 1, PUBLIC + 1);
    table.host().greeting = Greeting::HONEST;
    table.until(600, |player| player.count("Joined") == 2);
    assert_eq!(table.player.get().count("Ended"), 0);
    // Any other reason is final.
    let mut table = Greeted::unheard();
    table.host().greeting = Greeting::SILENT;
    table.world.for_ms(3_100);
    table.host().send(kind::SERVER_BYE, &[4]);
    table.world.for_ms(5);
    table.assert_ended(End::Logout(Reason::Kicked), 0);
}

#[test]
fn r126_leaving_is_said_three_times_100_ms_apart() {
    for mut table in [Greeted::playing(), Greeted::unheard()] {
        let number = table
            .host()
            .came
            .iter()
            .filter(|(_, said)| said.token == SECRET);
        let number = number.count() as u16;
        let start = table.world.now();
        table.act(|client, env| client.logout(env));
        table.act(|client, env| client.logout(env));
        assert_eq!(table.state(), State::Ended(End::Left));
        table.world.for_ms(300);
        let byes = table.host().of(kind::CLIENT_BYE);
        let said: Vec<(u64, u16)> = byes
            .iter()
            .map(|(at, bye)| (at - start, bye.sequence - number))
            .collect();
        assert_eq!(said, [(5, 0), (105, 1), (205, 2)]);
        assert!(byes.iter().all(|(_, bye)| bye.token == SECRET));
        let silent = table.act(|client, env| client.send(env, b"x"));
        assert_eq!(silent, Err(SendError::NotPlaying));
        table.act(|client, env| client.keep_alive(env));
        table.world.stop(super::CLIENT);
        table.world.for_ms(1_000);
        assert_eq!(table.host().of(kind::CLIENT_BYE).len(), 3);
        assert_eq!(table.newest().kind, kind::CLIENT_BYE);
    }
}

#[test]
fn r126_the_servers_bye_ends_it_and_is_not_answered() {
    for (code, reason) in [
        (0, Reason::Left),
        (1, Reason::Shutdown),
        (2, Reason::TimedOut),
        (3, Reason::ProtocolError),
        (4, Reason::Kicked),
        (5, Reason::Shutdown),
        (255, Reason::Shutdown),
    ] {
        for mut table in [Greeted::playing(), Greeted::unheard()] {
            let said = table.host().came.len();
            for _ in 0..3 {
                table.host().send(kind::SERVER_BYE, &[code]);
            }
            table.world.for_ms(5);
            table.assert_ended(End::Logout(reason), 0);
            assert_eq!(table.host().came.len(), said);
        }
    }
    for bad in [&b""[..], b"\x01\0"] {
        let mut table = Greeted::playing();
        table.host().send(kind::SERVER_BYE, bad);
        table.world.for_ms(50);
        assert_eq!(table.state(), State::Playing);
        assert_eq!(table.stat("ignored-malformed"), 1);
    }
}

#[test]
fn r89_what_no_server_sends_in_a_session_is_dropped() {
    let mut table = Greeted::playing();
    table.host().talk.strict = false;
    for (kind, payload) in [
        (kind::CONNECT, &b""[..]),
        (kind::ACCEPT, b""),
        (kind::CLIENT_HELLO, &[0; 13]),
        (kind::CLIENT_BYE, b"\0"),
        (kind::CONNECT_CHALLENGE, b"\0"),
        (kind::SERVER_HELLO, b"\0"),
        (kind::PING, b"\0"),
        (0, b""),
        (22, b""),
    ] {
        table.host().send(kind, payload);
    }
    table.world.for_ms(10);
    assert_eq!(table.stat("ignored-malformed"), 9);
    assert_eq!(table.state(), State::Playing);
}

#[test]
fn r80_after_30_s_of_silence_it_says_farewell_and_tells() {
    let mut table = Greeted::playing();
    table.world.for_ms(10);
    table.host().greeting = Greeting::SILENT;
    table.host().send(kind::ACK, &[]);
    table.world.for_ms(30_004);
    assert_eq!(table.state(), State::Playing);
    table.world.for_ms(1);
    table.assert_ended(End::Silent, 3);
    let pings = table.host().of(kind::PING).len();
    assert!((30..=32).contains(&pings), "{pings}");
}

#[test]
fn r75_a_ping_goes_at_once_and_whenever_nothing_was_said_for_a_second() {
    let mut table = Greeted::playing();
    table.host().greeting.play = false;
    let joined_at = table.player.get().told[1].0;
    table.world.for_ms(10_400);
    let pings = table.host().times(kind::PING);
    assert_eq!(pings[0], joined_at + 5);
    assert_eq!(pings.len(), 11);
    assert!(pings.windows(2).all(|two| two[1] - two[0] >= 1_000));
}

#[test]
fn r92_the_longest_datagram_has_room_for_the_longer_header() {
    let mut table = Greeted::playing();
    let longest = vec![7; 1_178];
    table
        .act(|client, env| client.send(env, &longest))
        .expect("it fits");
    let refused = table.act(|client, env| client.send(env, &[7; 1_179]));
    assert_eq!(refused, Err(SendError::TooLong { max: 1_178 }));
    for _ in 0..40 {
        let mut player = table.player.get();
        player.client.custom(&[8; 588]).expect("there is room");
        player.client.custom(&[8; 1_023]).expect("there is room");
    }
    table.world.for_ms(2_000);
    assert_eq!(table.host().of(kind::DATA)[0].1.payload, longest);
    assert_eq!(table.host().talk.events.len(), 80);
    assert!(table.player.get().client.is_all_acknowledged());
    // What the server sends has the shorter one.
    table.host().send(kind::DATA, &[9; 1_182]);
    table.world.for_ms(10);
    assert_eq!(table.player.get().count("Data"), 1);
}

#[test]
fn r50_events_come_in_order_and_once_through_a_storm_both_ways() {
    let mut table = Greeted::playing();
    table.world.net.weather = Weather::storm();
    for (from, to) in [(OWN, SERVER), (SERVER, OWN)] {
        let link = table.world.net.link(address(from), address(to));
        link.weather = Weather::storm();
    }
    for number in 0..100_u8 {
        table.host().event(Event::said(1, &number.to_string()));
        let said = number.to_string();
        table
            .player
            .get()
            .client
            .chat(&said)
            .expect("there is room");
        table.world.for_ms(50);
    }
    table.until(120_000, |player| {
        player.count("Chat") == 100 && player.client.is_all_acknowledged()
    });
    let told = table.player.get();
    let chats = told
        .notices()
        .into_iter()
        .filter(|it| it.starts_with("Chat"));
    for (number, chat) in chats.enumerate() {
        assert_eq!(chat, format!("Chat {{ player: 1, text: \"{number}\" }}"));
    }
    drop(told);
    let expected: Vec<Event> = (0..100).map(|it| Event::chat(&it.to_string())).collect();
    assert_eq!(table.host().talk.events, expected);
}

#[test]
fn r104_the_secret_goes_to_the_server_alone_and_is_never_printed() {
    let mut table = Greeted::by(Greeter::new(SERVER, SECRET, PUBLIC));
    let elsewhere: Rc<RefCell<u32>> = Rc::default();
    let strangers = ["198.51.100.1:4243", "198.51.100.2:4242"].map(address);
    for stranger in strangers {
        let count = Rc::clone(&elsewhere);
        table.world.net.link(address(OWN), stranger).filter = Some(Box::new(move |_| {
            *count.borrow_mut() += 1;
            true
        }));
    }
    table.until(100, |player| player.count("Joined") == 1);
    for (sequence, stranger) in (50..).zip(strangers) {
        let mut ping = outside(kind::PING, &[1; 4]).sequence(sequence);
        ping.session = Token::Public(PUBLIC);
        table.host().send_raw_from(stranger, &ping.bytes());
    }
    table.world.for_ms(100);
    let printed = {
        let player = table.player.get();
        format!("{:?} {:#?} {:?}", player.client, player.client, player.told)
    };
    table.act(|client, env| client.logout(env));
    table.world.for_ms(1_000);
    assert_eq!(*elsewhere.borrow(), 0);
    let printed = printed.to_lowercase();
    for secret in [
        SECRET.to_string(),
        format!("{SECRET:x}"),
        PUBLIC.to_string(),
        format!("{PUBLIC:x}"),
    ] {
        assert!(!printed.contains(&secret), "{printed}");
    }
}
