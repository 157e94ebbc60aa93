//! What the client sends and takes over UDP while it plays: numbers, acknowledgements, Data, and
//! the order in which it judges.

use anteroom::engine::Env;
use anteroom::protocol::rtyp::{Client, End, SendError, State};

use super::super::bytes::{DATAGRAM_MAX, Datagram, Event, PAYLOAD_MAX, event, kind};
use super::super::host::Host;
use super::super::peer::SERVER;
use super::{CLIENT, TOKEN, Table};

#[test]
fn r9_it_numbers_its_datagrams_one_by_one_across_the_wrap() {
    let mut table = Table::playing();
    for _ in 0..200 {
        let send = |client: &mut Client, env: &mut Env<'_>| {
            (0..350).try_for_each(|_| client.send(env, b"x"))
        };
        table.act(send).expect("sent");
        table.world.for_ms(10);
    }
    let datagrams = &table.host().datagrams;
    assert!(datagrams.len() > 70_000);
    for (number, (_, datagram)) in datagrams.iter().enumerate() {
        assert_eq!(datagram.sequence, number as u16);
    }
    assert_eq!(table.state(), State::Playing);
}

#[test]
fn r10_numbers_may_start_anywhere_wrap_and_come_late() {
    let mut table = Table::binding();
    table.world.for_ms(10);
    table.numbered(kind::ACCEPT, 65_530, b"");
    let told = |table: &Table| table.player.get().count("Data");
    for (sequence, is_new) in [
        (65_530, false),
        (65_531, true),
        (3, true),
        (3, false),
        (65_535, true),
        (65_535, false),
        // 33 behind the newest is too old, 32 is not.
        (3_u16.wrapping_sub(33), false),
        (3_u16.wrapping_sub(32), true),
        (3 + 32_767, true),
        (3, false),
    ] {
        let before = told(&table);
        table.numbered(kind::DATA, sequence, b"\x01");
        assert_eq!(told(&table) - before, usize::from(is_new), "{sequence}");
    }
}

#[test]
fn r11_acks_name_the_newest_and_the_32_before_it() {
    let mut table = Table::playing();
    table.world.for_ms(100);
    let first = table.host().talk.numbers_used() as u16;
    for ahead in [1, 2, 5, 32, 31] {
        table.numbered(kind::DATA, first + 100 + ahead, b"");
    }
    table.host().talk.strict = false;
    let probe = Datagram::new(kind::PING, TOKEN, &[9; 4]).sequence(first + 133);
    table.host().raw(&probe.bytes());
    table.world.for_ms(20);
    let (_, pong) = table.host().came(kind::PONG).pop().expect("a Pong");
    assert_eq!(pong.ack, first + 133);
    let bits = [132, 131, 105, 102, 101].map(|seen: u32| 1_u32 << (133 - 1 - seen));
    assert_eq!(pong.ack_bits, bits.iter().sum::<u32>());
}

#[test]
fn r12_an_ack_of_the_unsent_frees_nothing_and_harms_nothing() {
    let mut table = Table::playing();
    table.host().hosting.ack = false;
    table.player.get().client.chat("hi").expect("queued");
    table.world.for_ms(50);
    for ack in [500, 30_000, 0x8000, 0xFFFF] {
        let mut datagram = table.host().talk.datagram(kind::ACK, &[]);
        (datagram.ack, datagram.ack_bits) = (ack, u32::MAX);
        table.host().raw(&datagram.bytes());
    }
    table.world.for_ms(50);
    assert_eq!(table.state(), State::Playing);
    assert!(!table.player.get().client.is_all_acknowledged());
    table.host().hosting.ack = true;
    table.host().send(kind::ACK, &[]);
    table.world.for_ms(50);
    assert!(table.player.get().client.is_all_acknowledged());
}

#[test]
fn r7_datagrams_of_18_to_1200_bytes_are_taken_and_sent() {
    let mut table = Table::playing();
    let longest = vec![7; PAYLOAD_MAX];
    table.host().send(kind::DATA, &longest);
    table.host().send(kind::DATA, b"");
    table.world.for_ms(10);
    assert_eq!(table.player.get().count("Data"), 2);
    table
        .act(|client, env| client.send(env, &longest))
        .expect("fits");
    table
        .act(|client, env| client.send(env, b""))
        .expect("fits");
    table.world.for_ms(10);
    let came: Vec<usize> = table
        .host()
        .came(kind::DATA)
        .iter()
        .map(|it| it.1.payload.len())
        .collect();
    assert_eq!(came, [PAYLOAD_MAX, 0]);
    let too_long = vec![7; PAYLOAD_MAX + 1];
    let refused = table.act(|client, env| client.send(env, &too_long));
    assert_eq!(refused, Err(SendError::TooLong { max: PAYLOAD_MAX }));
    table.world.for_ms(10);
    assert_eq!(table.host().came(kind::DATA).len(), 2);
}

#[test]
fn r84_what_is_no_datagram_of_ours_is_dropped_and_counted_by_its_first_fault() {
    let mut table = Table::playing();
    let good = table.host().talk.datagram(kind::DATA, &[1]).bytes();
    let mut long = good.clone();
    long.resize(DATAGRAM_MAX + 1, 0);
    let (mut magic, mut version) = (good.clone(), good.clone());
    (magic[0], magic[4]) = (b'X', 9);
    version[4] = 3;
    for bytes in [&long[..], &good[..17], b"", &magic, &version] {
        table.host().raw(bytes);
    }
    table.world.for_ms(10);
    for (name, count) in [
        ("ignored-long", 1),
        ("ignored-short", 2),
        ("ignored-magic", 1),
        ("ignored-version", 1),
    ] {
        assert_eq!(table.stat(name), count, "{name}");
    }
    assert_eq!(table.player.get().count("Data"), 0);
    table.host().raw(&good);
    table.world.for_ms(10);
    assert_eq!(table.player.get().count("Data"), 1);
}

#[test]
fn r86_a_duplicate_neither_counts_nor_keeps_alive() {
    let mut table = Table::playing();
    table.host().hosting = super::super::host::Hosting::SILENT;
    let again = table.host().send(kind::DATA, &[1]).bytes();
    table.world.for_ms(10);
    let start = table.world.now();
    for _ in 0..29 {
        table.world.for_ms(1_000);
        table.host().raw(&again);
    }
    table.until(5_000, |player| player.count("Ended") == 1);
    assert_eq!(table.state(), State::Ended(End::Silent));
    assert!(table.world.now() - start <= 30_000);
    assert_eq!(table.player.get().count("Data"), 1);
    assert_eq!(table.stat("ignored-repeated"), 29);
}

#[test]
fn r89_where_the_server_would_end_the_session_it_drops() {
    let mut table = Table::playing();
    table.world.for_ms(100);
    let before = table.acknowledged();
    let first = table.host().talk.numbers_used() as u16;
    let bad_events: [&[u8]; 6] = [
        b"",
        b"\0\0\x03\0",
        b"\0\0\x03\x01\0",
        &[0; 5 * 33],
        b"\0\0\x03\x01\0\0",
        b"\0\0\x02\x01\0\0",
    ];
    let bad: [(u8, &[u8]); 9] = [
        (0, b""),
        (8, b""),
        (16, b"\0"),
        (kind::CONNECT, b""),
        (kind::CONNECT, b"\0"),
        (kind::ACCEPT, b"\0"),
        (kind::PING, b"\x01\x02\x03"),
        (kind::PONG, b"\x01\x02\x03\x04\x05"),
        (kind::ACK, b"\0"),
    ];
    let bad_events = bad_events.map(|payload| (kind::EVENTS, payload));
    let said = table.host().datagrams.len();
    for (number, (kind, payload)) in bad.into_iter().chain(bad_events).enumerate() {
        table.numbered(kind, first + number as u16, payload);
    }
    assert_eq!(table.state(), State::Playing);
    assert_eq!(table.stat("ignored-malformed"), 15);
    assert_eq!(table.host().datagrams.len(), said, "it answers none");
    // None was marked received, so its number can still come.
    table.numbered(kind::DATA, first + 3, b"\x01");
    assert_eq!(table.player.get().count("Data"), 1);
    assert_eq!(before.0, first - 1);
}

#[test]
fn r90_nothing_without_the_token_does_anything() {
    let mut table = Table::playing();
    table.world.for_ms(100);
    table.host().hosting = super::super::host::Hosting::SILENT;
    let start = table.world.now();
    let told = table.player.get().told.len();
    let joined = Event::joined(1, "Luke").bytes(0);
    while table.state() == State::Playing {
        for kind in 0..9 {
            let payload = if kind == kind::EVENTS {
                &joined[..]
            } else {
                &[0; 4]
            };
            let forged = Datagram::new(kind, 1, payload).sequence(20_000);
            table.host().raw(&forged.bytes());
        }
        table.world.for_ms(500);
    }
    assert_eq!(table.state(), State::Ended(End::Silent));
    assert!(table.world.now() - start < 31_000);
    assert_eq!(table.player.get().told.len(), told + 1);
    // Its Pings were all it sent: one a second.
    let sent = table
        .host()
        .datagrams
        .iter()
        .filter(|(at, _)| *at > start)
        .count();
    assert!((28..=31).contains(&sent), "{sent}");
    let newest = &table.host().datagrams.last().expect("a Ping").1;
    assert_ne!(newest.ack, 20_000);
}

#[test]
fn r70_it_knows_who_is_there() {
    let mut table = Table::playing();
    let knows = |table: &Table| {
        (0..=5)
            .filter(|n| table.player.get().client.is_present(*n))
            .collect::<Vec<u8>>()
    };
    assert!(knows(&table).is_empty());
    for (kind, body) in [
        (event::PLAYER_JOINED, &b"\x01\x01\0a"[..]),
        (event::PLAYER_JOINED, b"\x03\x01\0b"),
    ] {
        table.host().event(Event::new(kind, body));
    }
    table.world.for_ms(10);
    assert_eq!(knows(&table), [1, 3]);
    table.host().event(Event::left(1, 0));
    table.world.for_ms(10);
    assert_eq!(knows(&table), [3]);
    table.host().event(Event::joined(1, "c"));
    table.world.for_ms(10);
    assert_eq!(knows(&table), [1, 3]);
}

#[test]
fn who_does_not_play_sends_nothing() {
    let refuses = |client: &mut Client| {
        assert_eq!(client.chat("hi"), Err(SendError::NotPlaying));
        assert_eq!(client.custom(b""), Err(SendError::NotPlaying));
        assert_eq!(client.start(), Err(SendError::NotPlaying));
    };
    let mut ended = Table::playing();
    ended.world.stop(CLIENT);
    for mut table in [
        Table::new(Host::silent(SERVER, TOKEN)),
        Table::logging_in(Host::silent(SERVER, TOKEN)),
        Table::binding(),
        ended,
    ] {
        let sent = table.act(|client, env| client.send(env, b"x"));
        assert_eq!(sent, Err(SendError::NotPlaying));
        refuses(&mut table.player.get().client);
        table.world.for_ms(100);
        assert!(table.host().came(kind::DATA).is_empty());
        assert!(table.host().came(kind::EVENTS).is_empty());
    }
}
