//! How a session can end, or never begin.

use std::io;

use anteroom::engine::Machine;
use anteroom::protocol::rooms::wire::Reason;
use anteroom::protocol::rooms::{End, SendError, State};

use super::host::{Host, TOKEN};
use super::{HOST, Table};

/// A client that waits for its token.
fn greeting() -> Table {
    let mut host = Host::new(HOST);
    host.greets = false;
    let table = Table::new(host);
    assert_eq!(table.state(), State::Greeting);
    table
}

#[test]
fn without_a_token_it_gives_up_after_ten_seconds() {
    let mut table = greeting();
    table.world.for_ms(9_900);
    assert_eq!(table.state(), State::Greeting);
    table.world.for_ms(200);
    table.assert_ended(End::NoAnswer);
    assert!(table.host().came.is_empty());
}

#[test]
fn r79_every_reason_of_the_server_is_told_and_an_unknown_one_is_a_shutdown() {
    for code in (0..=6).chain([7, 255]) {
        for mut table in [greeting(), Table::open()] {
            table.host().write(2, &[code]);
            let reason = Reason::from_code(code).unwrap_or(Reason::Shutdown);
            let is_deaf = reason == Reason::TimedOut && table.state() == State::Open;
            table.assert_ended(match is_deaf {
                true => End::Unreachable,
                false => End::Logout(reason),
            });
        }
    }
}

#[test]
fn r80_who_timed_out_and_never_heard_a_datagram_is_not_reached() {
    let mut table = Table::open();
    table.ask(|client| client.rooms(0));
    table.say(0x0A, &[0, 0, 0, 0, 0]);
    table.host().write(2, &[3]);
    table.assert_ended(End::Logout(Reason::TimedOut));
    let mut table = Table::open();
    table.host().write(2, &[3]);
    table.assert_ended(End::Unreachable);
}

#[test]
fn r79_anything_else_over_tcp_is_malformed() {
    let token = [&TOKEN.to_be_bytes()[..], &4_243_u16.to_be_bytes()].concat();
    let no_token = [&0_u32.to_be_bytes()[..], &4_243_u16.to_be_bytes()].concat();
    for (kind, payload) in [(0x10, &no_token[..]), (0, b"\x01"), (0x20, b""), (2, b"")] {
        let mut table = greeting();
        table.host().write(kind, payload);
        table.assert_ended(End::Malformed);
    }
    for (kind, payload) in [(0x10, &token[..]), (0, b"\x01"), (3, b"")] {
        let mut table = Table::open();
        table.host().write(kind, payload);
        table.assert_ended(End::Malformed);
    }
    let mut table = Table::open();
    table.host().write_raw(vec![2]);
    table.assert_ended(End::Malformed);
}

#[test]
fn a_connection_that_is_over_ends_the_session() {
    for mut table in [greeting(), Table::open()] {
        table.host().fin();
        table.assert_ended(End::Closed);
    }
}

#[test]
fn a_connection_that_cannot_be_made_is_told_once() {
    let mut client = anteroom::protocol::rooms::Client::new();
    assert!(client.wants_connection());
    client.unconnected(io::ErrorKind::ConnectionRefused);
    client.unconnected(io::ErrorKind::TimedOut);
    let end = End::Unconnected(io::ErrorKind::ConnectionRefused);
    assert_eq!(client.state(), State::Ended(end));
    assert_eq!(client.deadline(), None);
}

#[test]
fn r85_after_its_logout_it_waits_for_the_servers() {
    let mut table = Table::open();
    table.logout();
    assert_eq!(table.state(), State::Leaving);
    table.world.for_ms(500);
    let logouts = table.host().of(2);
    assert_eq!(logouts.len(), 1, "it goes once");
    assert_eq!(logouts[0].1.payload, [0]);
    let login = table.player.get().client.login("R9", "password");
    assert_eq!(login, Err(SendError::NotOpen));
    table.logout();
    table.host().write(2, &[0]);
    table.assert_ended(End::Left);
    assert_eq!(table.host().of(2).len(), 1);
}

#[test]
fn r85_it_closes_after_a_second_without_it() {
    let mut table = Table::open();
    table.logout();
    let at = table.world.now();
    table.world.for_ms(990);
    assert_eq!(table.state(), State::Leaving);
    table.world.for_ms(20);
    table.assert_ended(End::Left);
    let closed = table.host().end.expect("closed").0;
    assert!((1_000..1_020).contains(&(closed - at)));
}

#[test]
fn who_leaves_without_a_session_closes_at_once() {
    let mut table = greeting();
    table.logout();
    table.assert_ended(End::Left);
}

#[test]
fn a_server_that_says_nothing_is_asked_and_given_up_after_thirty_seconds() {
    let mut table = Table::open();
    table.ask(|client| client.rooms(0));
    table.say(0x0A, &[0, 0, 0, 0, 0]);
    let heard = table.world.now();
    table.world.for_ms(14_000);
    assert_eq!(table.host().of(0x0A).len(), 1, "signs of life are enough");
    table.world.for_ms(1_100);
    let probe = table.host().of(0x0A)[1].1.clone();
    assert_eq!(probe.payload, [0xFF, 0xFF]);
    // An answer is proof, and nobody's news.
    table.say(0x0A, &[0, 0, 0xFF, 0xFF, 0]);
    assert_eq!(table.count("Rooms"), 1);
    let proven = table.world.now();
    table.world.for_ms(15_100);
    assert_eq!(table.host().of(0x0A).len(), 3);
    // The user's own question does not wait for ours.
    table.ask(|client| client.rooms(3));
    let asked = table.host().of(0x0A).pop().expect("asked").1;
    assert_eq!(asked.payload, [0, 3]);
    table.world.for_ms(14_800);
    assert_eq!(table.state(), State::Open, "heard at {heard} and {proven}");
    table.world.for_ms(150);
    table.assert_ended(End::Silent);
    assert_eq!(table.count("NoAnswer"), 1, "of the user's");
}
