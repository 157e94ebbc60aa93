//! From LoginAccepted to the first Accept.

use anteroom::protocol::rtyp::{End, State};

use super::super::bytes::{Datagram, Event, Token, kind};
use super::super::host::Host;
use super::super::peer::SERVER;
use super::{CLIENT, TOKEN, Table, address};
use crate::world::pipe::Ending;

#[test]
fn r45_connect_goes_at_once_and_every_250_ms_until_accept() {
    let mut table = Table::binding();
    let start = table.world.now();
    table.world.for_ms(1_900);
    let connects = table.host().came(kind::CONNECT);
    let times: Vec<u64> = connects.iter().map(|(at, _)| at - start).collect();
    assert_eq!(times, [5, 255, 505, 755, 1005, 1255, 1505, 1755]);
    for (number, (_, connect)) in connects.iter().enumerate() {
        assert_eq!(usize::from(connect.sequence), number);
        assert_eq!((connect.ack, connect.ack_bits), (0xFFFF, 0));
        assert_eq!(connect.session, Token::Shared(TOKEN));
    }
    table.host().send(kind::ACCEPT, &[]);
    table.world.for_ms(5_000);
    assert_eq!(table.state(), State::Playing);
    assert_eq!(table.host().came(kind::CONNECT).len(), 8);
}

#[test]
fn r46_without_an_accept_it_says_logout_and_tells_of_a_firewall() {
    let mut table = Table::binding();
    table.world.for_ms(4_999);
    assert_eq!(table.state(), State::Binding);
    table.world.for_ms(1);
    table.assert_ended(End::Unreachable);
    assert_eq!(table.last_message(), [4, 0]);
    assert!(matches!(table.host().end, Some((_, Ending::Fin))));
    assert_eq!(table.host().came(kind::CONNECT).len(), 20);
    assert_eq!(
        End::Unreachable.to_string(),
        "the server cannot be reached over UDP (a firewall, usually)"
    );
}

#[test]
fn an_accept_binds_once_and_a_second_one_changes_nothing() {
    let mut table = Table::playing();
    table.host().send(kind::ACCEPT, &[]);
    table.world.for_ms(50);
    assert_eq!(table.player.get().count("Joined"), 1);
    assert_eq!(table.host().came(kind::PING).len(), 1);
}

#[test]
fn r47_before_the_first_accept_everything_else_is_dropped() {
    let mut table = Table::binding();
    table.world.for_ms(50);
    let events = Event::joined(1, "Luke").bytes(0);
    for (kind, payload) in [
        (kind::ACCEPT, &b"\0"[..]),
        (kind::PING, b"\x01\x02\x03\x04"),
        (kind::PONG, b"\x01\x02\x03\x04"),
        (kind::DATA, b"\x01own"),
        (kind::EVENTS, &events),
        (kind::ACK, b""),
        (kind::CONNECT, b""),
        (99, b""),
    ] {
        table.host().send(kind, payload);
    }
    table.world.for_ms(500);
    assert_eq!(table.state(), State::Binding);
    assert_eq!(table.stat("ignored-unbound"), 8);
    assert_eq!(table.player.get().notices(), ["Accepted { player: 0 }"]);
    let (_, newest) = table.host().datagrams.last().expect("a Connect").clone();
    assert_eq!((newest.kind, newest.ack), (kind::CONNECT, 0xFFFF));
    // None of it was noted: the Accept is the first that is acknowledged.
    table.host().send(kind::ACCEPT, &[]);
    table.world.for_ms(10);
    assert_eq!(table.state(), State::Playing);
    let (_, ping) = table.host().came(kind::PING)[0];
    assert_eq!((ping.ack, ping.ack_bits), (8, 0));
}

#[test]
fn r47_strangers_and_wrong_tokens_are_dropped_before_and_after_the_accept() {
    for mut table in [Table::binding(), Table::playing()] {
        table.world.for_ms(50);
        let state = table.state();
        let told = table.player.get().told.len();
        let accept = Datagram::new(kind::ACCEPT, TOKEN, &[])
            .sequence(100)
            .bytes();
        let data = Datagram::new(kind::DATA, TOKEN, b"x").sequence(101).bytes();
        let strangers = [
            "198.51.100.1:4243",
            "198.51.100.2:4242",
            "[2001:db8::1]:4242",
        ];
        for stranger in strangers {
            table.host().raw_from(address(stranger), &accept);
            table.host().raw_from(address(stranger), &data);
        }
        for token in [0, TOKEN + 1, TOKEN.swap_bytes()] {
            let accept = Datagram::new(kind::ACCEPT, token, &[]).sequence(102);
            table.host().raw(&accept.bytes());
        }
        table.world.for_ms(50);
        assert_eq!(table.state(), state);
        assert_eq!(table.player.get().told.len(), told);
        assert_eq!(table.stat("ignored-source"), 6);
        assert_eq!(table.stat("ignored-wrong-token"), 3);
    }
}

#[test]
fn datagrams_go_to_the_address_of_the_connection_and_the_port_it_was_told() {
    let mut table = Table::new(Host::silent(SERVER, TOKEN));
    table.dial();
    table.world.for_ms(50);
    let told = super::super::bytes::login_accepted(TOKEN, 0, 5353);
    table.host().write(&told);
    table.world.for_ms(50);
    assert!(table.host().datagrams.is_empty());
    let arrived = &table.world.net.strays[&address("198.51.100.1:5353")];
    assert_eq!(Datagram::parse(&arrived[0]).kind, kind::CONNECT);
    assert_eq!(table.world.tally(CLIENT, address(SERVER)).out_datagrams, 0);
}

#[test]
fn it_answers_nothing_that_comes_before_the_login_is_accepted() {
    let mut table = Table::logging_in(Host::silent(SERVER, TOKEN));
    table.host().client = Some(address(super::OWN));
    table.host().send(kind::ACCEPT, &[]);
    table.host().send(kind::PING, &[0; 4]);
    table.world.for_ms(50);
    assert_eq!(table.state(), State::LoggingIn);
    assert_eq!(table.stat("ignored-unbound"), 2);
    assert!(table.host().datagrams.is_empty());
}
