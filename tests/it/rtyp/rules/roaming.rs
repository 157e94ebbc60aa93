//! Section 5.8: a session of version 2 follows its player, and nobody else.

use std::net::SocketAddr;

use super::super::bytes::{Datagram, Event, Token, event, kind};
use super::super::hall::{Hall, SERVICE, address};
use super::super::peer::Peer;
use crate::world::PeerId;
use crate::world::link::Weather;
use crate::world::seeds::{seed, seeds};

/// Where the player comes to.
pub(super) const ELSEWHERE: &str = "10.7.7.7:7000";

pub(super) fn elsewhere() -> SocketAddr {
    ELSEWHERE.parse().expect("an address")
}

/// A player that answers Pings and does nothing else, somebody at another endpoint who does
/// nothing, and one more player.
pub(super) fn quiet() -> (Hall, PeerId, PeerId, PeerId) {
    let mut hall = Hall::new(seed());
    let other = hall.enter("other", 2);
    let peer = hall.enter_2_silent("R9", 1);
    let stranger = hall.add(Peer::v2_silent(ELSEWHERE));
    hall.told();
    (hall, peer, stranger, other)
}

/// The Pings that came to somebody without a session: when, and their nonces.
pub(super) fn asked(hall: &Hall, stranger: PeerId) -> Vec<(u64, Datagram)> {
    let dropped = hall[stranger].dropped.iter();
    let pings = dropped.map(|(at, bytes)| (*at, Datagram::parse(bytes)));
    pings.filter(|(_, it)| it.kind == kind::PING).collect()
}

/// What the player would send next, sent from elsewhere.
pub(super) fn speak(hall: &mut Hall, peer: PeerId, kind: u8, payload: &[u8]) {
    let bytes = hall[peer].talk_mut().datagram(kind, payload).bytes();
    hall[peer].raw_from(elsewhere(), &bytes);
}

/// Answers the newest Ping that came to the other endpoint.
pub(super) fn answer(hall: &mut Hall, peer: PeerId, stranger: PeerId) {
    let newest = asked(hall, stranger)
        .last()
        .expect("a Ping")
        .1
        .payload
        .clone();
    speak(hall, peer, kind::PONG, &newest);
}

pub(super) fn has_moved(hall: &Hall) -> bool {
    hall.count("moves") == 1
}

#[test]
fn r100_candidate() {
    let (mut hall, peer, stranger, other) = quiet();
    let player = hall.handle("R9");
    hall.act(move |replies| replies.custom(player, &[b"x"]))
        .expect("it is there");
    hall.for_ms(20);
    hall[peer].talk_mut().deaf = true;
    hall[peer].send(kind::DATA, b"last");
    hall[peer].talk_mut().deaf = false;
    hall.for_ms(10);
    hall.told();
    let number = hall[peer].talk().numbers_used();
    // Its payload is not taken, its number not used up, its acknowledgements do not count, and it
    // keeps nobody alive.
    let events = hall[peer].count(kind::EVENTS);
    speak(&mut hall, peer, kind::DATA, b"x");
    let chat = Event::chat("x").bytes(0);
    speak(&mut hall, peer, kind::EVENTS, &chat);
    speak(&mut hall, peer, kind::CLIENT_BYE, &[0]);
    hall.for_ms(500);
    assert_eq!(hall.told(), []);
    assert_eq!(hall.count("sessions"), 2);
    assert!(
        hall[peer].count(kind::EVENTS) > events,
        "it was acknowledged"
    );
    assert_eq!(asked(&hall, stranger).len(), 2);
    assert_eq!(hall[other].payloads(kind::DATA).len(), 1);
    let again = Datagram::secret(kind::DATA, hall[peer].secret(), b"mine").sequence(number as u16);
    hall[peer].raw(&again.bytes());
    hall.for_ms(11);
    assert_eq!(hall[other].payloads(kind::DATA).len(), 2);
    let spoken_at = hall.now() - 6;
    for _ in 0..12 {
        hall.for_ms(1000);
        speak(&mut hall, peer, kind::ACK, &[]);
    }
    hall.for_ms(100);
    assert_eq!(hall.count("ended-timed-out"), 1);
    assert!(hall.now() - spoken_at > 10_000);
}

#[test]
fn r100_only_with_secret_new_and_well_formed() {
    let (mut hall, peer, stranger, _) = quiet();
    let secret = hall[peer].secret();
    let public = u64::from(hall[peer].public());
    let next = hall[peer].talk().numbers_used() as u16;
    let torn = &Event::chat("x").bytes(0)[..4];
    let old = hall[stranger].talk.is_none();
    assert!(old);
    let v1 = hall.enter_as("old", Peer::silent(&address(3)));
    let shared = hall[v1].token();
    let unbound = [
        Datagram::secret(kind::DATA, secret ^ 1, b"x").sequence(next),
        Datagram::secret(kind::DATA, public, b"x").sequence(next),
        Datagram::secret(kind::DATA, shared.into(), b"x").sequence(next),
        Datagram::secret(kind::DATA, 0, b"x").sequence(next),
        Datagram::new(kind::DATA, secret as u32, b"x").sequence(next),
    ];
    let refused = [
        Datagram::secret(kind::DATA, secret, b"x").sequence(0),
        Datagram::secret(kind::DATA, secret, b"x").sequence(next - 1),
        Datagram::secret(kind::DATA, secret, b"x").sequence(next ^ 0x8000),
        Datagram::secret(99, secret, b"x").sequence(next),
        Datagram::secret(kind::CONNECT, secret, b"").sequence(next),
        Datagram::secret(kind::SERVER_BYE, secret, &[1]).sequence(next),
        Datagram::secret(kind::PING, secret, &[0; 3]).sequence(next),
        Datagram::secret(kind::EVENTS, secret, torn).sequence(next),
    ];
    let unbound = unbound.iter().map(|it| (it, "ignored-unbound"));
    let refused = refused.iter().map(|it| (it, "ignored-candidate"));
    for (datagram, counter) in unbound.chain(refused) {
        let before = hall.count(counter);
        hall[peer].raw_from(elsewhere(), &datagram.bytes());
        hall.for_ms(20);
        assert_eq!(hall.count(counter), before + 1, "{datagram:?}");
    }
    assert_eq!(hall[stranger].dropped.len(), 0);
    assert_eq!(hall.count("ended-protocol-error"), 0);
    // From an endpoint with a session it is that session's business.
    let good = Datagram::secret(kind::DATA, secret, b"x")
        .sequence(next)
        .bytes();
    let third = hall.enter_2("third", 4);
    hall[third].raw(&good);
    hall[v1].connect();
    hall.settle();
    hall[v1].raw(&good);
    hall.settle();
    assert_eq!(hall.count("ignored-wrong-token"), 2);
    hall[peer].raw_from(elsewhere(), &good);
    hall.settle();
    assert_eq!(asked(&hall, stranger).len(), 1);
}

#[test]
fn r100_one_the_newest_for_two_seconds() {
    let (mut hall, peer, stranger, _) = quiet();
    hall[peer].conduct.pong = true;
    let second = hall.add(Peer::v2_silent("10.8.8.8:8000"));
    let third = hall[second].udp;
    // It is asked until 2 s after its last datagram; it pays for as much.
    for _ in 0..20 {
        speak(&mut hall, peer, kind::DATA, &[0; 50]);
    }
    hall.for_ms(6);
    let spoken_at = hall.now() - 1;
    hall.for_ms(5000);
    let pings = asked(&hall, stranger);
    assert_eq!(pings.len(), 8);
    assert!(pings[7].0 - 5 - spoken_at < 2000);
    // Another one takes its place.
    speak(&mut hall, peer, kind::DATA, &[0; 50]);
    hall.for_ms(100);
    let bytes = hall[peer].talk_mut().datagram(kind::DATA, &[0; 50]).bytes();
    hall[peer].raw_from(third, &bytes);
    hall.for_ms(1000);
    assert_eq!(asked(&hall, stranger).len(), 9);
    assert_eq!(
        asked(&hall, second).len(),
        3,
        "what came from there pays for three"
    );
    assert!(!has_moved(&hall));
}

#[test]
fn r101_both_are_asked() {
    let (mut hall, peer, stranger, _) = quiet();
    hall.echo_only(SERVICE, elsewhere());
    let before = hall[peer].talk().log.len();
    let start = hall.now();
    speak(&mut hall, peer, kind::DATA, &[0; 200]);
    hall.for_ms(1900);
    let times: Vec<u64> = asked(&hall, stranger)
        .iter()
        .map(|(at, _)| at - start)
        .collect();
    assert_eq!(times, [10, 260, 510, 760, 1010, 1260, 1510, 1760]);
    let pings = hall[peer].talk().log[before..].iter();
    let pings = pings.filter(|got| got.datagram.kind == kind::PING);
    let times: Vec<u64> = pings.map(|got| got.at - start).collect();
    let expected: Vec<u64> = (0..38).map(|n| 10 + n * 50).collect();
    assert_eq!(times, expected);
    // All are of the one numbering of the server.
    let theirs = asked(&hall, stranger)
        .into_iter()
        .map(|(_, it)| it.sequence);
    let log = hall[peer].talk().log.iter();
    let mut all: Vec<u16> = log.map(|got| got.datagram.sequence).chain(theirs).collect();
    all.sort_unstable();
    let used = all.len() as u16;
    assert_eq!(all, (0..used).collect::<Vec<u16>>());
    // Nonces are fresh.
    let mut nonces: Vec<Vec<u8>> = asked(&hall, stranger)
        .into_iter()
        .map(|it| it.1.payload)
        .collect();
    nonces.sort_unstable();
    nonces.dedup();
    assert_eq!(nonces.len(), 8);
}

#[test]
fn r101_never_more_than_came() {
    // 22 bytes pay for one Ping, and 23 for no second one.
    for (len, pings) in [(0, 1), (1, 1), (21, 1), (22, 2), (44, 3)] {
        let (mut hall, peer, stranger, _) = quiet();
        hall[peer].conduct.pong = true;
        hall.echo_only(SERVICE, elsewhere());
        speak(&mut hall, peer, kind::DATA, &vec![0; len]);
        hall.for_ms(3000);
        assert_eq!(
            asked(&hall, stranger).len(),
            pings,
            "{len} bytes of payload"
        );
    }
}

#[test]
fn r102_moving() {
    for delay_ms in [5, 50, 150] {
        let mut hall = Hall::new(seed());
        hall.net.weather = Weather::clear(delay_ms);
        let other = hall.enter("other", 2);
        let peer = hall.enter_2("R9", 1);
        hall.for_ms(3000);
        let old = hall[peer].udp;
        hall.rebind(peer, ELSEWHERE);
        // It speaks first when it would have.
        let first_at = loop {
            hall.for_ms(1);
            if hall.tally(SERVICE, elsewhere()).in_datagrams > 0 {
                break hall.now();
            }
        };
        hall.until(2500, |world| world.stat(SERVICE, "moves") == 1);
        let took = hall.now() - first_at;
        let rtt = 2 * delay_ms;
        assert!(
            (1000 + rtt..1020 + rtt).contains(&took),
            "{took} ms at {rtt}"
        );
        // The old endpoint is forgotten: nothing goes there any more.
        hall.for_ms(delay_ms);
        let strays = hall.tally(SERVICE, old).out_datagrams;
        hall[peer].say("here");
        hall[other].say("there");
        hall.for_ms(10_000);
        assert_eq!(hall.tally(SERVICE, old).out_datagrams, strays);
        assert_eq!(hall[other].events().last(), Some(&Event::said(1, "here")));
        assert_eq!(hall[peer].events().last(), Some(&Event::said(0, "there")));
        assert!(hall[peer].is_bound());
        assert_eq!(hall.count("moves"), 1);
        // It may come again, and back.
        hall.rebind(peer, &old.to_string());
        hall.for_ms(5000);
        assert_eq!(hall.count("moves"), 2);
        hall[peer].say("back");
        hall.for_ms(2 * delay_ms + 100);
        assert_eq!(hall[other].events().last(), Some(&Event::said(1, "back")));
    }
}

#[test]
fn r102_the_new_endpoint_is_proven_for_ten_seconds() {
    let (mut hall, peer, stranger, _) = quiet();
    let player = hall.handle("R9");
    speak(&mut hall, peer, kind::DATA, &[0; 50]);
    hall.for_ms(11);
    answer(&mut hall, peer, stranger);
    hall.until(2000, |world| world.stat(SERVICE, "moves") == 1);
    let moved_at = hall.now();
    let came = |hall: &Hall| hall[stranger].dropped.len();
    let send = |hall: &mut Hall| {
        let before = came(hall);
        hall.act(move |replies| replies.send(player, &[&[0; 1000]]))
            .expect("it is there");
        hall.for_ms(5);
        came(hall) > before
    };
    assert!(send(&mut hall));
    for _ in 0..9 {
        hall.for_ms(1000);
        speak(&mut hall, peer, kind::ACK, &[]);
    }
    let rest = moved_at + 9990 - hall.now();
    hall.for_ms(rest);
    assert!(send(&mut hall));
    hall.for_ms(10);
    assert!(!send(&mut hall));
}

#[test]
fn r102_who_does_not_answer_gets_nothing() {
    // Neither the silent one, nor who guesses nonces, nor who answers the old endpoint's.
    let (mut hall, peer, stranger, _) = quiet();
    let mut dice = anteroom::engine::Seeded::new(seed());
    for round in 0..80 {
        let seen = asked(&hall, stranger);
        let nonce = match (round % 4, seen.last()) {
            (0, _) | (_, None) => (dice.next_u64() as u32).to_le_bytes().to_vec(),
            // An older one than the last four is none any more.
            (1, _) if seen.len() > 5 => seen[seen.len() - 5].1.payload.clone(),
            (2, Some((_, newest))) => newest.payload.iter().map(|byte| byte ^ 1).collect(),
            _ => {
                let theirs = hall[peer].payloads(kind::PING);
                theirs.last().expect("a Ping").to_vec()
            }
        };
        speak(&mut hall, peer, kind::PONG, &nonce);
        hall.for_ms(120);
    }
    assert_eq!(hall.count("moves"), 0);
    assert!(!hall[peer].payloads(kind::PING).is_empty());
}

#[test]
fn r103_not_while_its_owner_speaks() {
    let (mut hall, peer, stranger, other) = quiet();
    hall[peer].conduct.pong = true;
    let old = hall[peer].udp;
    let elsewhere_out = hall.tally(SERVICE, elsewhere()).out_bytes;
    for round in 0..50 {
        speak(&mut hall, peer, kind::DATA, &[0; 30]);
        hall.for_ms(11);
        answer(&mut hall, peer, stranger);
        hall[other].send(kind::DATA, &[round; 500]);
        hall[other].say("to the old endpoint");
        hall.for_ms(189);
    }
    assert_eq!(hall.count("moves"), 0);
    assert!(
        hall[peer].count(kind::DATA) == 50,
        "everything goes to the old endpoint"
    );
    assert_eq!(hall[peer].events().len(), 51);
    let got = hall.tally(SERVICE, elsewhere()).out_bytes - elsewhere_out;
    assert!(got < 2000, "{got} bytes of Pings");
    assert!(hall.tally(SERVICE, old).out_bytes > 25_000);
    // When its owner falls silent it moves.
    hall[peer].conduct.pong = false;
    speak(&mut hall, peer, kind::DATA, b"x");
    hall.for_ms(11);
    answer(&mut hall, peer, stranger);
    hall.for_ms(1200);
    assert!(has_moved(&hall));
}

#[test]
fn a_player_whose_port_changes_plays_on_within_two_seconds() {
    for loss in [0, 100] {
        seeds(10, |seed| {
            let mut hall = Hall::new(seed);
            hall.net.weather = Weather {
                loss,
                ..Weather::clear(30)
            };
            let other = hall.enter_as("other", Peer::new(&address(2)));
            let peer = hall.enter_as("R9", Peer::v2(&address(1)));
            hall.for_ms(3000);
            hall.rebind(peer, "10.0.0.1:5999");
            let new = hall[peer].udp;
            let mut first_at = None;
            for round in 0..600_u32 {
                hall[peer].send(kind::DATA, b"playing");
                if round % 10 == 0 {
                    hall[peer].event(Event::new(event::CUSTOM, &round.to_le_bytes()));
                }
                hall.for_ms(10);
                if hall.tally(SERVICE, new).in_datagrams > 0 {
                    first_at.get_or_insert(hall.now());
                }
                if hall.count("moves") == 1 {
                    break;
                }
            }
            let took = hall.now() - first_at.expect("it was heard");
            assert!(has_moved(&hall) && took <= 2000, "{took} ms");
            hall.for_ms(5000);
            let customs = hall[other]
                .events()
                .iter()
                .filter(|it| it.kind == event::CUSTOM);
            assert_eq!(customs.count() as u64, hall[peer].talk().events_out());
            assert_eq!(hall[peer].talk().unacknowledged(), 0);
        });
    }
}

#[test]
fn version_1_never_moves() {
    let (mut hall, _, stranger, _) = quiet();
    let old = hall.enter_silent("old", 3);
    let data = hall[old].talk_mut().datagram(kind::DATA, b"x");
    for _ in 0..10 {
        hall[old].raw_from(elsewhere(), &data.bytes());
        let mut second = data.clone();
        second.session = Token::Secret(u64::from(hall[old].token()));
        second.version = 2;
        hall[old].raw_from(elsewhere(), &second.bytes());
        hall.for_ms(300);
    }
    assert_eq!(hall[stranger].dropped.len(), 0);
    assert_eq!(hall.count("ignored-unbound"), 20);
    assert_eq!(hall.count("moves"), 0);
}
