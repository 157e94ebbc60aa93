//! Thieves: whoever copied a datagram, or knows the secret, and wants a session of version 2.

use super::super::bytes::{Datagram, Event, kind};
use super::super::hall::{Hall, server};
use super::super::peer::Peer;
use super::roaming::{ELSEWHERE, asked};
use crate::world::link::Weather;
use crate::world::seeds::seeds;

/// A thief has copied a datagram of the player that the server has not seen, replays it from
/// elsewhere and answers each Ping in the player's name as well as it can.
fn theft(seed: u64, loss: u64, is_busy: bool) -> u64 {
    let mut hall = Hall::new(seed);
    let other = hall.enter("other", 2);
    let peer = hall.enter_2("R9", 1);
    hall.settle();
    hall.for_ms(2000);
    let thief = hall.add(Peer::v2_silent(ELSEWHERE));
    let udp = hall[peer].udp;
    for (from, to) in [(udp, server()), (server(), udp)] {
        hall.net.link(from, to).weather = Weather {
            loss,
            ..Weather::clear(20)
        };
    }
    hall[peer].talk_mut().strict = false;
    let mut lost = hall[peer].talk_mut().datagram(kind::DATA, b"x");
    let (secret, first) = (hall[peer].secret(), lost.sequence);
    let mut answered = 0;
    for round in 0..600_u16 {
        if is_busy && round % 3 == 0 {
            hall[peer].send(kind::DATA, b"playing");
        }
        // It takes whatever number is new by now: it knows the secret of what it copied.
        lost.sequence = first.wrapping_add(round % 32 * 4);
        hall[thief].raw(&lost.bytes());
        let pings = asked(&hall, thief);
        for (_, ping) in &pings[answered..] {
            let mut pong = Datagram::secret(kind::PONG, secret, &ping.payload);
            pong.sequence = hall[peer].talk().numbers_used() as u16 + 3 + round % 7;
            hall[thief].raw(&pong.bytes());
        }
        answered = pings.len();
        hall.for_ms(50);
    }
    assert!(answered > 20, "the thief was asked {answered} times");
    hall[other].say("still there?");
    hall.for_ms(3000);
    assert_eq!(
        hall[peer].events().last(),
        Some(&Event::said(0, "still there?"))
    );
    hall.count("moves")
}

/// Of a thousand datagrams so many are lost each way: of ten round trips three fail.
const THIRD_LOST: u64 = 163;

#[test]
fn a_thief_who_knows_the_secret_gets_nothing_from_who_answers() {
    for is_busy in [false, true] {
        for loss in [0, THIRD_LOST] {
            seeds(5, |seed| {
                assert_eq!(theft(seed, loss, is_busy), 0, "seed {seed}")
            });
        }
    }
}

/// A datagram that the server has not seen is replayed from elsewhere, once, and each Ping that
/// this draws is answered, while its owner says nothing by itself. How often the session moved.
fn replay(seed: u64, loss: u64) -> u64 {
    let mut hall = Hall::new(seed);
    let peer = hall.enter_2("R9", 1);
    hall.for_ms(2000);
    hall[peer].talk_mut().strict = false;
    let thief = hall.add(Peer::v2_silent(ELSEWHERE));
    let udp = hall[peer].udp;
    for (from, to) in [(udp, server()), (server(), udp)] {
        hall.net.link(from, to).weather = Weather {
            loss,
            ..Weather::clear(20)
        };
    }
    let lost = hall[peer].talk_mut().datagram(kind::DATA, &[0; 200]);
    let secret = hall[peer].secret();
    hall[thief].raw(&lost.bytes());
    let mut answered = 0;
    for _ in 0..300 {
        hall.for_ms(10);
        let pings = asked(&hall, thief);
        for (_, ping) in &pings[answered..] {
            let mut pong = Datagram::secret(kind::PONG, secret, &ping.payload);
            pong.sequence = lost.sequence.wrapping_add(1);
            hall[thief].raw(&pong.bytes());
        }
        answered = pings.len();
    }
    assert!(answered > 3, "it was asked {answered} times");
    assert!(hall[peer].is_bound());
    hall.count("moves")
}

#[test]
fn a_replayed_datagram_moves_nothing_also_while_its_owner_is_idle() {
    for loss in [0, THIRD_LOST] {
        seeds(100, |seed| {
            assert_eq!(replay(seed, loss), 0, "seed {seed}, loss {loss}")
        });
    }
    // Where three of ten datagrams are lost each way, each question is answered one time in two.
    seeds(200, |seed| {
        assert_eq!(
            replay(seed, 300),
            0,
            "seed {seed}, three of ten lost each way"
        )
    });
}
