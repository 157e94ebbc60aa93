//! Sections 3.4 and 3.5: binding the UDP endpoint, and the example.

use std::net::SocketAddr;

use super::super::bytes::{Datagram, Event, Token, event, kind};
use super::super::dice::Rigged;
use super::super::hall::{Hall, SERVICE, Told, address, server};
use super::super::peer::Peer;
use crate::world::PeerId;
use crate::world::seeds::seed;

fn endpoint(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

/// A player that has logged in and sends nothing.
fn logged_in() -> (Hall, PeerId, u32) {
    let mut hall = Hall::new(seed());
    let peer = hall.enter_as("R9", Peer::silent(&address(1)));
    let token = hall[peer].token();
    (hall, peer, token)
}

/// Sends this to the server from an endpoint that nobody has; returns what came back.
fn forged(hall: &mut Hall, peer: PeerId, from: SocketAddr, datagram: &Datagram) -> usize {
    let before = hall.net.strays.get(&from).map_or(0, Vec::len);
    hall[peer].raw_from(from, &datagram.bytes());
    hall.for_ms(50);
    hall.net.strays.get(&from).map_or(0, Vec::len) - before
}

#[test]
fn r29_connect_binds() {
    for first in [0, 1, 32_768, 65_535] {
        let (mut hall, peer, token) = logged_in();
        hall.told();
        hall[peer].talk_mut().strict = false;
        let connect = Datagram::new(kind::CONNECT, token, &[]).sequence(first);
        hall[peer].raw(&connect.bytes());
        hall.for_ms(10);
        let accept = &hall[peer].talk().log[0].datagram;
        assert_eq!(
            (accept.kind, accept.session),
            (kind::ACCEPT, Token::Shared(token))
        );
        assert_eq!((accept.ack, &accept.payload[..]), (first, &[][..]));
        assert!(matches!(&hall.told()[..], [Told::Joined { name, .. }] if name == "R9"));
        assert_eq!(hall.count("bindings"), 1);
    }
}

#[test]
fn r29_traffic_may_start_both_ways() {
    let mut hall = Hall::new(seed());
    let first = hall.enter("first", 1);
    let second = hall.enter("second", 2);
    hall[first].send(kind::DATA, b"hello");
    hall[second].send(kind::DATA, b"you");
    hall.settle();
    assert_eq!(hall[second].payloads(kind::DATA), [b"\0hello"]);
    assert_eq!(hall[first].payloads(kind::DATA), [b"\x01you"]);
}

#[test]
fn r30_connect_again() {
    // A lost Accept: the client asks again, and again gets one.
    let mut hall = Hall::new(seed());
    let udp = endpoint(&address(1));
    let mut lost = 2;
    hall.net.link(server(), udp).filter = Some(Box::new(move |bytes| {
        let is_lost = bytes[5] == kind::ACCEPT && lost > 0;
        lost -= u32::from(is_lost);
        !is_lost
    }));
    let peer = hall.enter("R9", 1);
    assert_eq!(
        hall[peer].talk().numbers_used(),
        4,
        "three Connects and a Ping"
    );
    assert_eq!(hall.count("bindings"), 1);

    // The same bytes again, and a new number, in mid-game as well.
    hall.for_ms(3000);
    let connect = hall[peer].connect();
    hall.settle();
    let accepts = hall[peer].count(kind::ACCEPT);
    hall[peer].raw(&connect.bytes());
    hall[peer].raw(&connect.clone().sequence(0).bytes());
    hall.settle();
    assert_eq!(hall[peer].count(kind::ACCEPT), accepts + 2);
    assert_eq!(hall.count("bindings"), 1);
    let told = hall.told();
    let joined = told.iter().filter(|it| matches!(it, Told::Joined { .. }));
    assert_eq!(joined.count(), 1);
}

#[test]
fn r30_only_a_new_connect_refreshes_the_timeout() {
    for (is_new, lives) in [(true, true), (false, false)] {
        let mut hall = Hall::new(seed());
        let peer = hall.enter_silent("R9", 1);
        let connect = hall[peer].connect().bytes();
        for _ in 0..15 {
            hall.for_ms(1000);
            if is_new {
                hall[peer].connect();
            } else {
                hall[peer].raw(&connect);
            }
        }
        assert_eq!(hall[peer].end.is_none(), lives);
    }
}

#[test]
fn r31_bound_stays_bound() {
    let (mut hall, peer, token) = logged_in();
    let elsewhere = endpoint("10.0.0.1:5001");
    let thief = endpoint("10.6.6.6:5000");
    hall[peer].connect();
    hall.settle();
    let connect = Datagram::new(kind::CONNECT, token, &[]).sequence(500);
    for from in [elsewhere, thief] {
        assert_eq!(forged(&mut hall, peer, from, &connect), 0);
    }
    assert_eq!(hall.count("ignored-bound-elsewhere"), 2);
    // The owner still plays, and its numbering was not touched.
    hall.told();
    hall[peer].send(kind::DATA, b"mine");
    hall.settle();
    assert!(matches!(&hall.told()[..], [Told::Data { bytes, .. }] if bytes == b"mine"));
}

#[test]
fn r31_an_endpoint_has_one_session() {
    let mut hall = Hall::new(seed());
    let first = hall.enter_silent("first", 1);
    let second = hall.enter_as("second", Peer::silent(&address(2)));
    let connect = Datagram::new(kind::CONNECT, hall[second].token(), &[]);
    let from = hall[first].udp;
    let before = hall.tally(SERVICE, from).out_datagrams;
    hall[second].raw_from(from, &connect.bytes());
    hall.settle();
    assert_eq!(hall.tally(SERVICE, from).out_datagrams, before);
    assert_eq!(hall.count("bindings"), 1);
    // The second session still has no endpoint, and may get one.
    hall[second].connect();
    hall.settle();
    assert!(hall[second].is_bound());
}

#[test]
fn r32_not_bound_not_heard() {
    let (mut hall, peer, token) = logged_in();
    let own = hall[peer].udp;
    let ended = hall.enter_as("ended", Peer::silent(&address(2)));
    let ended_token = hall[ended].token();
    hall[ended].leave();
    hall.settle();
    hall.told();
    let chat = Event::new(event::CHAT, b"\x01\0x").bytes(0);
    let cases = [
        Datagram::new(kind::CONNECT, 0, &[]),
        Datagram::new(kind::CONNECT, token ^ 1, &[]),
        Datagram::new(kind::CONNECT, ended_token, &[]),
        Datagram::new(kind::CONNECT, token, &[0]),
        Datagram::new(kind::ACCEPT, token, &[]),
        Datagram::new(kind::PING, token, &[0; 4]),
        Datagram::new(kind::PONG, token, &[0; 4]),
        Datagram::new(kind::DATA, token, b"x"),
        Datagram::new(kind::EVENTS, token, &chat),
        Datagram::new(kind::ACK, token, &[]),
        Datagram::new(99, token, &[]),
    ];
    for case in cases {
        hall[peer].raw(&case.bytes());
        hall.for_ms(50);
        assert_eq!(hall.tally(SERVICE, own).out_datagrams, 0, "{case:?}");
        assert_eq!(hall.told(), [], "{case:?}");
        assert_eq!(hall[peer].end, None, "{case:?}");
    }
    assert_eq!(hall.count("ignored-unknown-token"), 3);
    assert_eq!(hall.count("ignored-unbound"), 8);
    // None of it stands in the way of the binding.
    hall[peer].connect();
    hall.settle();
    assert!(hall[peer].is_bound());
}

#[test]
fn r32_a_session_the_game_is_asked_about_cannot_be_bound() {
    let dice = Rigged::new(&[77]);
    let mut hall = Hall::with_dice(seed(), Box::new(dice));
    hall.shelf.open().answer = super::super::hall::Answer::Wait;
    let peer = hall.greet(1, &super::super::bytes::login_request(1, b"R9"));
    let connect = Datagram::new(kind::CONNECT, 77, &[]);
    hall[peer].raw(&connect.bytes());
    hall.settle();
    let own = hall[peer].udp;
    assert_eq!(hall.tally(SERVICE, own).out_datagrams, 0);
    assert_eq!(hall.count("bindings"), 0);
}

#[test]
fn r33_answered_from_where_it_came() {
    let other = endpoint("198.51.100.2:4242");
    let mut hall = Hall::with_sockets(seed(), &[server(), other]);
    let peer = hall.enter("R9", 1);
    hall.settle();
    hall[peer].conduct.ping = false;
    // The peer fails the test if anything comes from where it does not send to.
    for address in [other, server(), other] {
        hall[peer].server = address;
        hall[peer].ping();
        hall.for_ms(4321);
    }
    assert_eq!(hall[peer].count(kind::PONG), 4);
    // What is not valid moves nothing: a repeated datagram to the first address.
    let repeated = hall[peer].connect().bytes();
    hall.settle();
    hall[peer].server = server();
    let accepts = hall[peer].count(kind::ACCEPT);
    hall[peer].raw(&repeated);
    hall[peer].server = other;
    hall.settle();
    assert_eq!(hall[peer].count(kind::ACCEPT), accepts + 1);
    hall.for_ms(4321);
    assert!(hall[peer].is_bound());
}

#[test]
fn r34_example() {
    let dice = Rigged::new(&[1, 2, 0xDEAD_BEEF]);
    let mut hall = Hall::with_dice(seed(), Box::new(dice));
    hall.enter_as("a", Peer::silent(&address(1)));
    hall.enter_as("b", Peer::silent(&address(2)));
    let peer = hall.greet(3, &[0x06, 0, 1, 1, 2, 0, 0x52, 0x39]);
    assert_eq!(
        hall[peer].stream,
        [0x08, 0, 2, 0xEF, 0xBE, 0xAD, 0xDE, 2, 0x92, 0x10]
    );
    hall[peer].talk_mut().strict = false;
    hall[peer].raw(&[
        0x52, 0x54, 0x59, 0x50, 1, 1, 0, 0, 0xFF, 0xFF, 0, 0, 0, 0, 0xEF, 0xBE, 0xAD, 0xDE,
    ]);
    hall.for_ms(10);
    let accept = hall[peer].talk().log[0].datagram.bytes();
    assert_eq!(
        accept,
        [
            0x52, 0x54, 0x59, 0x50, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0xEF, 0xBE, 0xAD, 0xDE
        ]
    );
}
