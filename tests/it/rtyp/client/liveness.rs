//! Pings, the round trip and silence.

use anteroom::protocol::rtyp::{End, State};

use super::super::bytes::kind;
use super::super::host::{Host, Hosting};
use super::super::peer::SERVER;
use super::{TOKEN, Table};
use crate::world::link::Weather;
use crate::world::pipe::Ending;

#[test]
fn r75_a_ping_goes_at_once_on_the_first_accept() {
    let mut table = Table::playing();
    let joined_at = table.player.get().told.last().expect("Joined").0;
    table.world.for_ms(5);
    let pings = table.host().came(kind::PING);
    assert_eq!(pings.len(), 1);
    assert_eq!(pings[0].0, joined_at + 5);
}

#[test]
fn r75_who_says_nothing_pings_once_a_second() {
    let mut host = Host::new(SERVER, TOKEN);
    host.hosting.ping = false;
    let mut table = Table::playing_at(host);
    table.world.for_ms(10_500);
    let pings: Vec<u64> = table
        .host()
        .came(kind::PING)
        .iter()
        .map(|(at, _)| *at)
        .collect();
    assert_eq!(pings.len(), 11);
    assert!(
        pings.windows(2).all(|two| two[1] - two[0] == 1_000),
        "{pings:?}"
    );
    let nonces: Vec<Vec<u8>> = table
        .host()
        .came(kind::PING)
        .iter()
        .map(|it| it.1.payload.clone())
        .collect();
    assert!(nonces.windows(2).all(|two| two[0] != two[1]));
}

#[test]
fn r75_who_speaks_and_hears_pings_only_for_the_round_trip() {
    let mut table = Table::playing();
    let start = table.world.now();
    for _ in 0..200 {
        table
            .act(|client, env| client.send(env, b"x"))
            .expect("sent");
        table.host().send(kind::DATA, b"\x01");
        table.world.for_ms(50);
    }
    let pings: Vec<u64> = table
        .host()
        .came(kind::PING)
        .iter()
        .map(|(at, _)| at - start)
        .collect();
    assert_eq!(pings.len(), 3, "{pings:?}");
    assert!(
        pings.windows(2).all(|two| two[1] - two[0] == 4_000),
        "{pings:?}"
    );
}

#[test]
fn r75_who_speaks_and_hears_nothing_pings_once_a_second_too() {
    let mut host = Host::new(SERVER, TOKEN);
    host.hosting.ping = false;
    host.hosting.pong = false;
    let mut table = Table::playing_at(host);
    for _ in 0..200 {
        table
            .act(|client, env| client.send(env, b"x"))
            .expect("sent");
        table.world.for_ms(50);
    }
    table.world.for_ms(10);
    let pings = table.host().came(kind::PING).len();
    assert_eq!(pings, 11);
}

#[test]
fn r77_a_ping_is_answered_at_once_with_its_nonce() {
    let mut table = Table::playing();
    table.world.for_ms(100);
    table.host().talk.strict = false;
    let at = table.world.now();
    let ping = table.host().send(kind::PING, &[0xDE, 0xAD, 0xBE, 0xEF]);
    table.world.for_ms(20);
    let (pong_at, pong) = table.host().came(kind::PONG).pop().expect("a Pong");
    assert_eq!(pong.payload, [0xDE, 0xAD, 0xBE, 0xEF]);
    assert_eq!((pong_at - at, pong.ack), (10, ping.sequence));
}

#[test]
fn r78_the_round_trip_is_measured_by_its_own_pings_alone() {
    let mut table = Table::binding();
    table.world.for_ms(10);
    table.host().hosting.pong = false;
    table.host().hosting.ping = false;
    assert_eq!(table.player.get().client.rtt_ms(), None);
    table.host().send(kind::ACCEPT, &[]);
    table.until(50, |player| player.count("Joined") == 1);
    for nonce in [[0; 4], [0xFF; 4]] {
        table.host().send(kind::PONG, &nonce);
    }
    table.world.for_ms(60);
    assert_eq!(table.player.get().client.rtt_ms(), None);
    let nonce = table.host().came(kind::PING)[0].1.payload.clone();
    let asked_at = table.player.get().told.last().expect("Joined").0;
    table.host().send(kind::PONG, &nonce);
    table.world.for_ms(5);
    let rtt = table.world.now() - asked_at;
    assert_eq!(table.player.get().client.rtt_ms(), Some(rtt));
    // The same again says nothing.
    table.world.for_ms(40);
    table.host().send(kind::PONG, &nonce);
    table.world.for_ms(20);
    assert_eq!(table.player.get().client.rtt_ms(), Some(rtt));
}

#[test]
fn r80_after_30_s_of_silence_it_says_logout_and_tells() {
    let mut table = Table::playing();
    table.world.for_ms(10);
    table.host().hosting = Hosting::SILENT;
    table.host().send(kind::ACK, &[]);
    table.world.for_ms(30_004);
    assert_eq!(table.state(), State::Playing);
    table.world.for_ms(1);
    table.assert_ended(End::Silent);
    assert_eq!(table.last_message(), [4, 0]);
    assert!(matches!(table.host().end, Some((_, Ending::Fin))));
}

#[test]
fn r88_anything_valid_keeps_it_alive() {
    for (kind, payload) in [
        (kind::ACCEPT, &b""[..]),
        (kind::PING, b"\0\0\0\0"),
        (kind::PONG, b"\0\0\0\0"),
        (kind::DATA, b""),
        (kind::EVENTS, b"\0\0\x03\0\0"),
        (kind::ACK, b""),
    ] {
        let mut table = Table::playing();
        table.world.for_ms(10);
        table.host().hosting = Hosting::SILENT;
        table.host().talk.strict = false;
        for _ in 0..3 {
            table.world.for_ms(29_000);
            table.host().send(kind, payload);
        }
        assert_eq!(table.state(), State::Playing, "by {kind}");
    }
}

#[test]
fn a_quiet_hour_on_a_bad_line_stays_alive() {
    let mut table = Table::playing();
    table.world.net.weather = Weather::storm();
    table.world.for_ms(3_600_000);
    assert_eq!(table.state(), State::Playing);
    assert_eq!(table.player.get().count("Ended"), 0);
}
