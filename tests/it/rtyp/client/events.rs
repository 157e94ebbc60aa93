//! The client's lanes of reliable events, both ways.

use anteroom::protocol::rtyp::{SendError, State};

use super::super::bytes::{Event, event, kind};
use super::super::host::{Host, Hosting};
use super::{TOKEN, Table};
use crate::world::link::Weather;
use crate::world::seeds::seeds;

/// The ids of all events that came to the host, in the order of their transmissions.
fn transmissions(host: &Host) -> Vec<(u64, u16, u8)> {
    let datagrams = host.came(kind::EVENTS).into_iter();
    let events = datagrams.flat_map(|(at, datagram)| {
        let events = Event::parse_all(&datagram.payload).into_iter();
        events.map(move |(id, event)| (at, id, event.kind))
    });
    events.collect()
}

#[test]
fn every_event_of_the_server_is_told() {
    let mut table = Table::playing();
    for event in [
        Event::joined(1, "Luke"),
        Event::started(),
        Event::said(1, "hi"),
        Event::said(255, "from the game"),
        Event::new(event::CUSTOM, b"\x01own"),
        Event::left(1, 4),
        Event::joined(1, "Han"),
        Event::left(1, 99),
    ] {
        table.host().event(event);
    }
    table.world.for_ms(50);
    assert_eq!(
        table.player.get().notices()[2..],
        [
            "PlayerJoined { player: 1, name: \"Luke\" }",
            "GameStarted",
            "Chat { player: 1, text: \"hi\" }",
            "Chat { player: 255, text: \"from the game\" }",
            "Custom { body: [1, 111, 119, 110] }",
            "PlayerLeft { player: 1, reason: Kicked }",
            "PlayerJoined { player: 1, name: \"Han\" }",
            "PlayerLeft { player: 1, reason: Left }",
        ]
    );
}

#[test]
fn r50_events_come_in_order_and_once_through_a_storm_both_ways() {
    seeds(10, |seed| {
        let mut table = Table::playing();
        table.world.net.dice = anteroom::engine::Seeded::new(seed);
        table.world.net.weather = Weather::storm();
        let (host, own) = (table.host().address, super::address(super::OWN));
        table.world.net.link(host, own).weather = Weather::storm();
        table.world.net.link(own, host).weather = Weather::storm();
        for number in 0..300_u16 {
            table
                .player
                .get()
                .client
                .custom(&number.to_le_bytes())
                .expect("room");
            table
                .host()
                .event(Event::new(event::CUSTOM, &number.to_le_bytes()));
            table.world.for_ms(5);
        }
        let (host, player) = (table.host, table.player.clone());
        table.world.until(120_000, |world| {
            world[host].talk.events.len() == 300 && player.get().count("Custom") == 300
        });
        table.until(60_000, |player| player.client.is_all_acknowledged());
        table
            .world
            .until(60_000, |world| world[host].talk.unacknowledged() == 0);
        for number in 0..300_u16 {
            let bytes = number.to_le_bytes();
            assert_eq!(table.host().talk.events[usize::from(number)].body, bytes);
        }
        let expected = (0..300_u16).map(|n| format!("Custom {{ body: {:?} }}", n.to_le_bytes()));
        let player = table.player.get();
        let told = player
            .notices()
            .into_iter()
            .filter(|it| it.starts_with("Custom"));
        assert!(told.eq(expected), "seed {seed}");
    });
}

#[test]
fn r51_early_events_are_held_up_to_255_ahead_and_further_is_malformed() {
    let mut table = Table::playing();
    table.host().hosting = Hosting::SILENT;
    for id in [2, 1, 255] {
        table.host().send(
            kind::EVENTS,
            &Event::said(1, &format!("line {id}")).bytes(id),
        );
    }
    table.world.for_ms(50);
    assert_eq!(table.player.get().count("Chat"), 0);
    let before = table.acknowledged();
    table
        .host()
        .send(kind::EVENTS, &Event::said(1, "too far").bytes(256));
    table.world.for_ms(50);
    assert_eq!(table.stat("ignored-malformed"), 1);
    assert_eq!(
        table.host().datagrams.last().expect("it spoke").1.ack,
        before.0
    );
    table
        .host()
        .send(kind::EVENTS, &Event::said(1, "line 0").bytes(0));
    table.world.for_ms(50);
    let player = table.player.get();
    let lines: Vec<&str> = player.notices()[2..].to_vec();
    assert_eq!(lines.len(), 3);
    for (number, line) in lines.iter().enumerate() {
        assert_eq!(
            *line,
            format!("Chat {{ player: 1, text: \"line {number}\" }}")
        );
    }
}

#[test]
fn r51_events_taken_or_held_before_are_skipped_and_acknowledged() {
    let mut table = Table::playing();
    table.host().hosting = Hosting::SILENT;
    let (first, third) = (Event::said(1, "a").bytes(0), Event::said(1, "c").bytes(2));
    for payload in [
        &first,
        &first,
        &third,
        &third,
        &[&first[..], &third].concat(),
    ] {
        let sent = table.host().send(kind::EVENTS, payload);
        table.world.for_ms(40);
        let (_, ack) = table.host().came(kind::ACK).pop().expect("an Ack");
        assert_eq!(ack.ack, sent.sequence);
    }
    assert_eq!(table.player.get().count("Chat"), 1);
    table
        .host()
        .send(kind::EVENTS, &Event::said(1, "b").bytes(1));
    table.world.for_ms(40);
    assert_eq!(table.player.get().count("Chat"), 3);
}

#[test]
fn r52_a_datagram_is_taken_whole_or_not_at_all() {
    let mut table = Table::playing();
    table.host().hosting = Hosting::SILENT;
    // A malformed text spoils what is in front of it.
    let spoiled = [
        Event::said(1, "good").bytes(0),
        Event::said(1, "bad\n").bytes(1),
    ]
    .concat();
    let sent = table.host().send(kind::EVENTS, &spoiled);
    table.world.for_ms(50);
    assert_eq!(table.player.get().count("Chat"), 0);
    assert!(table.acknowledged().1 & 1 == 0, "{sent:?} is acknowledged");
    table
        .host()
        .send(kind::EVENTS, &Event::said(1, "good").bytes(0));
    table.world.for_ms(50);
    assert_eq!(table.player.get().count("Chat"), 1);
}

#[test]
fn r52_what_finds_no_room_is_not_acknowledged_but_alive() {
    let mut table = Table::playing();
    table.host().hosting = Hosting::SILENT;
    table.world.for_ms(100);
    let body = |id: u16| Event::new(event::CUSTOM, &[7; 1024]).bytes(id);
    for id in 1..=64 {
        table.host().send(kind::EVENTS, &body(id));
    }
    table.world.for_ms(100);
    assert_eq!(table.stat("ignored-events-held"), 0);
    let refused = table.host().send(kind::EVENTS, &body(65));
    table.world.for_ms(40);
    assert_eq!(table.stat("ignored-events-held"), 1);
    let (ack, bits) = table.acknowledged();
    assert_eq!((ack, bits & 1), (refused.sequence + 1, 0));
    assert_eq!(table.player.get().count("Custom"), 0);
    table.host().send(kind::EVENTS, &body(0));
    table.world.for_ms(40);
    assert_eq!(table.player.get().count("Custom"), 65);
}

#[test]
fn r53_no_more_than_256_ids_and_32_kib_are_in_flight() {
    for (len, most) in [(1, 256), (1023, 32)] {
        let mut table = Table::playing();
        table.host().hosting = Hosting::SILENT;
        for _ in 0..500 {
            table
                .player
                .get()
                .client
                .custom(&vec![1; len])
                .expect("room");
        }
        table.world.for_ms(5_000);
        let mut ids: Vec<u16> = transmissions(table.host()).iter().map(|it| it.1).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids, (0..most).collect::<Vec<u16>>());
    }
}

#[test]
fn r54_what_is_due_is_packed_together_from_the_oldest_on() {
    let mut table = Table::playing();
    for _ in 0..40 {
        table.player.get().client.start().expect("room");
    }
    table.world.for_ms(50);
    let sizes: Vec<usize> = table
        .host()
        .came(kind::EVENTS)
        .iter()
        .map(|it| Event::parse_all(&it.1.payload).len())
        .collect();
    assert_eq!(sizes, [32, 8]);
    assert_eq!(table.host().talk.events.len(), 40);
}

#[test]
fn r55_an_event_is_sent_again_after_r_2r_4r_up_to_a_second() {
    let mut table = Table::binding();
    table.world.for_ms(10);
    table.host().hosting = Hosting::SILENT;
    table.host().send(kind::ACCEPT, &[]);
    table.world.for_ms(20);
    table.player.get().client.chat("hi").expect("room");
    table.world.for_ms(6_000);
    let times: Vec<u64> = transmissions(table.host()).iter().map(|it| it.0).collect();
    let waits: Vec<u64> = times.windows(2).map(|two| two[1] - two[0]).collect();
    assert_eq!(waits[..5], [300, 600, 1_000, 1_000, 1_000]);
}

#[test]
fn r56_at_most_32_datagrams_are_sent_again_in_20_ms() {
    let mut table = Table::playing();
    table.host().hosting = Hosting::SILENT;
    for _ in 0..32 {
        table.player.get().client.custom(&[1; 1023]).expect("room");
    }
    for _ in 0..200 {
        table.player.get().client.start().expect("room");
    }
    table.world.for_ms(5_000);
    let times: Vec<u64> = table
        .host()
        .came(kind::EVENTS)
        .iter()
        .map(|it| it.0)
        .collect();
    let fresh = 32 + 7;
    for (index, at) in times.iter().enumerate().skip(fresh) {
        let span = times[fresh..=index]
            .iter()
            .filter(|other| *other + 20 > *at);
        assert!(span.count() <= 32);
    }
    assert!(times.len() > 200);
}

#[test]
fn r57_more_than_may_wait_is_refused_and_ends_nothing() {
    for (body, most) in [(&[1; 512][..], 1024), (&[1; 1023], 512)] {
        let mut table = Table::playing();
        table.host().hosting.ack = false;
        table.host().hosting.resend = false;
        let mut queued = 0;
        let refused = loop {
            match table.player.get().client.custom(body) {
                Ok(()) => queued += 1,
                Err(error) => break error,
            }
        };
        assert_eq!((queued, refused), (most, SendError::Full));
        assert_eq!(table.player.get().client.custom(body), Err(SendError::Full));
        table.world.for_ms(1_000);
        assert_eq!(table.state(), State::Playing);
        // There is room again when some are acknowledged.
        table.host().hosting.ack = true;
        table.until(600_000, |player| player.client.is_all_acknowledged());
        assert_eq!(table.host().talk.events.len(), most);
        table.player.get().client.custom(body).expect("room again");
    }
}

#[test]
fn its_own_events_never_end_it_however_long_they_wait() {
    let mut table = Table::playing();
    table.host().hosting.ack = false;
    table.player.get().client.chat("hi").expect("room");
    // Pongs would acknowledge it: what comes says that nothing was received.
    table.host().hosting.pong = false;
    table.host().hosting.ping = false;
    for _ in 0..300 {
        table.host().talk.forget_seen();
        table.host().send(kind::DATA, &[1]);
        table.world.for_ms(1_000);
    }
    assert_eq!(table.state(), State::Playing);
    assert!(!table.player.get().client.is_all_acknowledged());
}

#[test]
fn r61_a_body_outside_its_rule_makes_the_datagram_malformed() {
    let mut table = Table::playing();
    table.host().hosting = Hosting::SILENT;
    let bad = [
        Event::new(event::PLAYER_JOINED, b"\x04\x01\0a"),
        Event::new(event::PLAYER_JOINED, b"\x01\0\0"),
        Event::new(event::PLAYER_JOINED, b"\x01\x11\0seventeen bytes.."),
        Event::new(event::PLAYER_LEFT, b"\x01"),
        Event::new(event::PLAYER_LEFT, b"\x04\0"),
        Event::new(event::GAME_STARTED, b"\0"),
        Event::new(event::CHAT, b"\x01\0\0"),
        Event::said(1, &"x".repeat(201)),
        Event::new(event::CHAT, b"\x01\x01\0\xFF"),
    ];
    for (number, event) in bad.iter().enumerate() {
        table.host().send(kind::EVENTS, &event.bytes(0));
        table.world.for_ms(10);
        assert_eq!(
            table.stat("ignored-malformed"),
            number as u64 + 1,
            "{event:?}"
        );
    }
    assert_eq!(table.state(), State::Playing);
    assert!(table.host().came(kind::ACK).is_empty());
}

#[test]
fn r62_unknown_kinds_are_skipped_in_their_turn() {
    let mut table = Table::playing();
    for event in [
        Event::said(1, "a"),
        Event::new(99, b"whatever"),
        Event::start(),
        Event::new(0, b""),
        Event::said(1, "b"),
    ] {
        table.host().event(event);
    }
    table.world.for_ms(100);
    assert_eq!(
        table.player.get().notices()[2..],
        [
            "Chat { player: 1, text: \"a\" }",
            "Chat { player: 1, text: \"b\" }"
        ]
    );
    assert_eq!(table.stat("skipped-events"), 3);
    assert_eq!(table.host().talk.unacknowledged(), 0);
}

#[test]
fn r63_what_breaks_its_rule_is_refused_and_not_sent() {
    let mut table = Table::playing();
    {
        let client = &mut table.player.get().client;
        let long = "x".repeat(201);
        assert_eq!(client.chat(&long), Err(SendError::TooLong { max: 200 }));
        for bad in ["", "a\nb", "\u{7F}", "\0"] {
            assert_eq!(client.chat(bad), Err(SendError::BadText));
        }
        assert_eq!(
            client.custom(&[0; 1024]),
            Err(SendError::TooLong { max: 1023 })
        );
        assert_eq!(client.chat(&long[..200]), Ok(()));
        assert_eq!(client.custom(&[0; 1023]), Ok(()));
        assert_eq!(client.custom(b""), Ok(()));
        assert_eq!(client.start(), Ok(()));
    }
    table.world.for_ms(50);
    let kinds: Vec<u8> = table
        .host()
        .talk
        .events
        .iter()
        .map(|event| event.kind)
        .collect();
    assert_eq!(
        kinds,
        [event::CHAT, event::CUSTOM, event::CUSTOM, event::START]
    );
    assert_eq!(table.host().talk.events[0], Event::chat(&"x".repeat(200)));
}

#[test]
fn what_waits_in_one_frame_leaves_in_one_datagram() {
    let mut table = Table::playing();
    table.world.for_ms(50);
    table.player.get().client.chat("a").expect("room");
    table.player.get().client.chat("b").expect("room");
    table.world.for_ms(5);
    assert_eq!(table.host().came(kind::EVENTS).len(), 1);
    assert_eq!(
        table.host().talk.events,
        [Event::chat("a"), Event::chat("b")]
    );
    assert_eq!(TOKEN, table.host().session);
}
