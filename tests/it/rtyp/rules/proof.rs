//! Section 5.3: an endpoint elsewhere than its login must prove itself.

use std::net::SocketAddr;

use super::super::bytes::{Datagram, Event, kind};
use super::super::hall::{Hall, SERVICE, Told, address};
use super::super::peer::{Conduct, Peer};
use super::knock;
use crate::world::PeerId;
use crate::world::machine::Tally;
use crate::world::seeds::{seed, seeds};

/// Where those play whose stream comes from elsewhere.
const ELSEWHERE: &str = "10.7.7.7:7000";

fn elsewhere() -> SocketAddr {
    ELSEWHERE.parse().expect("an address")
}

/// A player that is bound elsewhere and does nothing by itself.
fn unproven() -> (Hall, PeerId) {
    let mut hall = Hall::new(seed());
    let peer = Peer::silent(&address(1)).udp_at(ELSEWHERE);
    let peer = hall.enter_as("R9", peer);
    hall[peer].connect();
    hall.settle();
    assert!(hall[peer].is_bound());
    (hall, peer)
}

/// Sends a Ping, and returns the nonce of the server's own.
fn ask_back(hall: &mut Hall, peer: PeerId) -> u32 {
    let before = hall[peer].count(kind::PING);
    hall[peer].ping();
    hall.for_ms(11);
    let pings = hall[peer].payloads(kind::PING);
    assert_eq!(pings.len(), before + 1);
    let nonce: [u8; 4] = pings[before].try_into().expect("four bytes");
    u32::from_le_bytes(nonce)
}

/// Whether the game's Data reaches the player, though it is more than came from there.
fn is_proven(hall: &mut Hall, peer: PeerId) -> bool {
    let player = hall.handle("R9");
    let before = hall[peer].count(kind::DATA);
    hall.act(move |replies| replies.send(player, &[&[0; 1182]]))
        .expect("it is there");
    hall.for_ms(6);
    hall[peer].count(kind::DATA) > before
}

#[test]
fn r71_proven_by_tcp() {
    for udp in ["10.0.0.1:5000", "10.0.0.1:6000"] {
        let mut hall = Hall::new(seed());
        let peer = hall.enter_as("R9", Peer::silent(&address(1)).udp_at(udp));
        hall[peer].connect();
        hall.settle();
        // It never answers a Ping, and plays for as long as it likes.
        for _ in 0..120 {
            hall[peer].send(kind::DATA, b"x");
            assert!(is_proven(&mut hall, peer));
            hall.for_ms(1000);
        }
        assert_eq!(hall[peer].end, None);
        hall[peer].ping();
        hall.settle();
        assert_eq!(hall[peer].count(kind::PONG), 1);
        assert_eq!(hall.count("unsent-unproven"), 0);
    }
    let (mut hall, peer) = unproven();
    assert!(!is_proven(&mut hall, peer));
}

#[test]
fn r93_proven_by_cookie() {
    let mut hall = Hall::new(seed());
    let peer = knock(&mut hall, ELSEWHERE, b"", b"R9");
    let proven_at = hall[peer].bound_at.expect("it is let in") - 5;
    // It never answers a Ping, and hears the game for ten seconds.
    for second in 1..10 {
        assert!(is_proven(&mut hall, peer));
        let rest = proven_at + 1000 * second - hall.now();
        hall.for_ms(rest);
        hall[peer].send(kind::DATA, &[0; 1000]);
        // A hello that comes again does not make them longer, with whatever cookie.
        hall[peer].say_hello();
        hall[peer].raw(&Datagram::hello(0, b"", b"R9").bytes());
    }
    let rest = proven_at + 9999 - hall.now();
    hall.for_ms(rest);
    assert!(is_proven(&mut hall, peer));
    assert!(!is_proven(&mut hall, peer));
    // From then on no more than comes, whatever came before.
    hall.echo_only(SERVICE, elsewhere());
    let other = hall.enter("other", 2);
    for _ in 0..100 {
        hall[peer].send(kind::DATA, &[0; 10]);
        hall[peer].say_hello();
        hall[other].send(kind::DATA, &[0; 100]);
        hall[other].say("hello");
        hall.for_ms(30);
    }
    assert!(hall.count("unsent-unproven") > 50);
    assert!(hall[peer].is_bound());
}

#[test]
fn r72_proven_by_pong() {
    // One of the last four, and no older one.
    for (age, proves) in [
        (0, true),
        (1, true),
        (2, true),
        (3, true),
        (4, false),
        (5, false),
    ] {
        let (mut hall, peer) = unproven();
        let nonces: Vec<u32> = (0..6).map(|_| ask_back(&mut hall, peer)).collect();
        let answer = nonces[nonces.len() - 1 - age];
        hall[peer].send(kind::PONG, &answer.to_le_bytes());
        hall.for_ms(6);
        assert_eq!(
            is_proven(&mut hall, peer),
            proves,
            "the Ping {age} before the last"
        );
    }
    // A guess proves nothing.
    let (mut hall, peer) = unproven();
    let nonce = ask_back(&mut hall, peer);
    for guess in [0, 1, u32::MAX, nonce ^ 1, nonce.swap_bytes()] {
        hall[peer].send(kind::PONG, &guess.to_le_bytes());
        hall.for_ms(6);
        assert!(!is_proven(&mut hall, peer));
    }
}

#[test]
fn r72_a_nonce_is_fresh_each_time() {
    let (mut hall, peer) = unproven();
    let mut nonces: Vec<u32> = (0..200).map(|_| ask_back(&mut hall, peer)).collect();
    nonces.sort_unstable();
    nonces.dedup();
    assert_eq!(nonces.len(), 200);
    assert_eq!(nonces.iter().fold(0, |all, nonce| all | nonce), u32::MAX);
}

#[test]
fn r72_for_ten_seconds() {
    let (mut hall, peer) = unproven();
    for _ in 0..3 {
        let nonce = ask_back(&mut hall, peer);
        hall[peer].send(kind::PONG, &nonce.to_le_bytes());
        hall.for_ms(5);
        let proven_at = hall.now();
        hall.for_ms(5000);
        hall[peer].send(kind::ACK, &[]);
        let rest = proven_at + 9990 - hall.now();
        hall.for_ms(rest);
        assert!(is_proven(&mut hall, peer));
        hall.for_ms(10);
        assert!(!is_proven(&mut hall, peer));
    }
}

#[test]
fn r73_never_more_than_came() {
    seeds(10, |seed| {
        let mut hall = Hall::new(seed);
        hall.echo_only(SERVICE, elsewhere());
        let forger = hall.enter_as("forger", Peer::silent(&address(1)));
        let others = [2, 3, 4].map(|host| hall.enter(&format!("p{host}"), host));
        // An honest login, and everything else from the victim's address. The world fails the
        // test with the first byte too many.
        let mut talk = hall[forger].talk().clone();
        let mut served = Tally::default();
        for round in 0..400 {
            talk.now = hall.now();
            let kinds = [kind::CONNECT, kind::PING, kind::PONG, kind::DATA, kind::ACK];
            let kind = match round {
                0 => kind::CONNECT,
                _ => kinds[hall.net.dice.below(5) as usize],
            };
            let payload: &[u8] = match kind {
                kind::PING | kind::PONG => &[1, 2, 3, 4],
                kind::DATA => b"some data of the game",
                _ => &[],
            };
            let datagram = talk.datagram(kind, payload).bytes();
            hall[forger].raw_from(elsewhere(), &datagram);
            hall[others[0]].say("a line of chat for everyone who listens");
            hall[others[1]].send(kind::DATA, &[0; 900]);
            hall.for_ms(100);
            if round == 140 {
                served = hall.tally(SERVICE, elsewhere());
            }
        }
        // Until it is ended, because it acknowledges nothing, it is served as far as may be.
        assert!(served.out_bytes > served.in_bytes / 2, "{served:?}");
        assert_eq!(hall.count("ended-timed-out"), 1);
        assert!(hall.count("unsent-unproven") > 0);
        assert_eq!(hall.count("bindings"), 4);
    });
}

#[test]
fn r73_counted_from_the_moment_the_proof_ran_out() {
    let (mut hall, peer) = unproven();
    let other = hall.enter("other", 2);
    let nonce = ask_back(&mut hall, peer);
    hall[peer].send(kind::PONG, &nonce.to_le_bytes());
    hall.for_ms(5);
    let over_at = hall.now() + 10_000;
    // What comes while it is proven buys nothing for later.
    for _ in 0..99 {
        hall[peer].send(kind::DATA, &[0; 1000]);
        hall.for_ms(100);
    }
    let rest = over_at - hall.now();
    hall.for_ms(rest - 1);
    hall.echo_only(SERVICE, elsewhere());
    for _ in 0..200 {
        hall[peer].send(kind::DATA, &[0; 10]);
        hall[other].send(kind::DATA, &[0; 100]);
        hall[other].say("hello");
        hall.for_ms(30);
    }
    assert!(hall.count("unsent-unproven") > 100);
    assert_eq!(hall[peer].end, None);
}

#[test]
fn r74_ping_first() {
    // The Connect paid for the Accept; nothing is left.
    let (mut hall, peer) = unproven();
    let player = hall.handle("R9");
    let out = |hall: &Hall| hall.tally(SERVICE, elsewhere()).out_datagrams;
    assert_eq!(out(&hall), 1);
    // 20 bytes: the Ping that is due takes 22, and what would fit must not go before it.
    hall[peer].send(kind::DATA, &[0; 2]);
    hall.for_ms(6);
    let sent = hall.act(move |replies| replies.send(player, &[&[0]]));
    assert_eq!(sent, Ok(()));
    hall.act(move |replies| replies.chat(player, 0, "x"))
        .expect("it is there");
    hall.for_ms(1500);
    assert_eq!(out(&hall), 1);
    // Only Accepts go. 20 bytes are left then, and two more are enough for the Ping.
    hall[peer].connect();
    hall.for_ms(11);
    assert_eq!(hall[peer].count(kind::ACCEPT), 2);
    assert_eq!(out(&hall), 2);
    hall[peer].send(kind::DATA, &[]);
    hall.for_ms(11);
    assert_eq!(hall[peer].count(kind::PING), 1);
    assert_eq!(
        hall[peer].events(),
        [],
        "38 bytes were left, and the chat takes 27"
    );
}

#[test]
fn r74_a_ping_draws_a_ping_and_events_wait_for_the_proof() {
    let (mut hall, peer) = unproven();
    let player = hall.handle("R9");
    let long = "x".repeat(200);
    hall.act(move |replies| replies.chat(player, 0, &long))
        .expect("it is there");
    let mut nonce = 0;
    for _ in 0..3 {
        nonce = ask_back(&mut hall, peer);
        hall.for_ms(1000);
    }
    assert_eq!(hall[peer].count(kind::PONG), 0);
    assert_eq!(hall[peer].events(), []);
    hall[peer].send(kind::PONG, &nonce.to_le_bytes());
    hall.for_ms(11);
    assert_eq!(hall[peer].events(), [Event::said(0, &"x".repeat(200))]);
    hall[peer].ping();
    hall.for_ms(11);
    assert_eq!(hall[peer].count(kind::PONG), 1);
}

#[test]
fn r74_an_honest_player_from_elsewhere_hears_the_others_within_three_round_trips() {
    let mut hall = Hall::new(seed());
    let other = hall.enter("other", 2);
    hall.settle();
    hall.net.weather.delay_ms = 50;
    let peer = hall.add(Peer::new(&address(1)).udp_at(ELSEWHERE));
    hall[peer].login("R9");
    hall.until(1000, |hall| hall[peer].accepted().is_some());
    hall.for_ms(300);
    assert_eq!(hall[peer].events(), [Event::joined(0, "other")]);
    hall[other].send(kind::DATA, &[0; 500]);
    hall[other].say("hello");
    hall.for_ms(60);
    assert_eq!(hall[peer].count(kind::DATA), 1);
    assert_eq!(hall[peer].events().last(), Some(&Event::said(0, "hello")));
    // It stays proven, for as long as it answers.
    hall.for_ms(60_000);
    hall[other].send(kind::DATA, &[0; 500]);
    hall.for_ms(60);
    assert_eq!(hall[peer].count(kind::DATA), 2);
    assert_eq!(hall.count("unsent-unproven"), 0);
}

#[test]
fn r74_a_silent_listener_elsewhere_is_asked_as_far_as_it_pays() {
    // It sends one byte of Data a second, never a Pong: its budget goes into Pings first.
    let (mut hall, peer) = unproven();
    hall.echo_only(SERVICE, elsewhere());
    hall[peer].conduct = Conduct::SILENT;
    for _ in 0..60 {
        hall[peer].send(kind::DATA, b"x");
        hall.for_ms(1000);
    }
    assert_eq!(hall[peer].end, None);
    let pings = hall[peer].count(kind::PING);
    assert!(
        (45..=52).contains(&pings),
        "{pings} Pings for 60 times 19 bytes"
    );
}

#[test]
fn r74_forged_data_is_played_but_not_answered_beyond_its_size() {
    let (mut hall, peer) = unproven();
    hall.told();
    let token = hall[peer].token();
    let data = Datagram::new(kind::DATA, token, b"move").sequence(77);
    hall[peer].raw(&data.bytes());
    hall.for_ms(6);
    assert!(matches!(&hall.told()[..], [Told::Data { bytes, .. }] if bytes == b"move"));
}
