//! Sections 4.1 and 4.2: what a session may send, and what an event may be.

use anteroom::engine::Refusal;

use super::super::bytes::{Event, event, kind, left};
use super::super::hall::{Hall, Told};
use super::lanes::{custom, is_acknowledged, push, sent, silent, told_ids};
use crate::world::seeds::seed;

#[test]
fn r59_event_budget() {
    // 32 at once, one event in each datagram, then 20 a second.
    let (mut hall, peer) = silent();
    let send = |hall: &mut Hall, ids: std::ops::Range<u16>| {
        for id in ids {
            hall[peer].send(kind::EVENTS, &custom(id, 2));
        }
        hall.for_ms(5);
    };
    send(&mut hall, 0..100);
    assert_eq!(told_ids(&hall), (0..32).collect::<Vec<_>>());
    for _ in 0..200 {
        let next = hall[peer].talk().events_out();
        assert_eq!(next, 0, "nothing goes through the lane here");
        send(&mut hall, 32..60);
    }
    let taken = told_ids(&hall);
    assert_eq!(taken, (32..32 + taken.len() as u16).collect::<Vec<_>>());
    assert!((19..=21).contains(&taken.len()), "{}", taken.len());
    assert!(hall.count("ignored-events-rate") > 1000);
    // A second later 20 more can be taken; what was taken before is not charged again.
    for _ in 0..100 {
        send(&mut hall, 0..20);
    }
    hall.for_ms(500);
    send(&mut hall, 52..100);
    assert!((19..=22).contains(&told_ids(&hall).len()));
}

#[test]
fn r59_a_datagram_is_taken_whole_and_may_overdraw() {
    let (mut hall, peer) = silent();
    let many = |ids: std::ops::Range<u16>| ids.map(|id| custom(id, 2)).collect::<Vec<_>>();
    assert!(is_acknowledged(&mut hall, peer, &many(0..31)));
    assert!(is_acknowledged(&mut hall, peer, &many(31..63)));
    assert!(!is_acknowledged(&mut hall, peer, &many(63..64)));
    assert!(
        is_acknowledged(&mut hall, peer, &many(0..3)),
        "what was taken before costs nothing"
    );
    // 31 below zero: it takes 31 · 50 ms until one whole event is there again.
    hall.for_ms(1400);
    assert!(!is_acknowledged(&mut hall, peer, &many(63..64)));
    hall.for_ms(100);
    assert!(is_acknowledged(&mut hall, peer, &many(63..64)));

    // Bodies: 8184 bytes leave eight, so one more of 1023 is taken, and then none for a while.
    let (mut hall, peer) = silent();
    for id in 0..9 {
        hall[peer].send(kind::EVENTS, &custom(id, 1023));
    }
    hall.for_ms(6);
    assert_eq!(told_ids(&hall).len(), 9);
    assert!(!is_acknowledged(&mut hall, peer, &[custom(9, 2)]));
    hall.for_ms(100);
    assert!(is_acknowledged(&mut hall, peer, &[custom(9, 2)]));
}

#[test]
fn r59_the_rate_can_be_set() {
    let mut hall = Hall::with(seed(), |settings| {
        settings.limits.set("events-rate", 200).expect("in range");
    });
    let peer = hall.enter_silent("R9", 1);
    hall.told();
    let mut id = 0;
    for _ in 0..100 {
        hall.for_ms(10);
        for _ in 0..2 {
            assert!(hall[peer].talk().strict);
            hall[peer].send(kind::EVENTS, &custom(id, 2));
            id += 1;
        }
    }
    hall.settle();
    assert_eq!(told_ids(&hall).len(), 200);
}

#[test]
fn r60_traffic_budget() {
    let (mut hall, peer) = silent();
    push(&mut hall, &[1]);
    hall.for_ms(50);
    assert_eq!(sent(&hall, peer).len(), 1);
    hall[peer].talk_mut().deaf = true;
    for _ in 0..600 {
        hall[peer].send(kind::DATA, b"x");
    }
    hall[peer].talk_mut().deaf = false;
    // What is too much loses its payload only: its acknowledgement counts.
    let number = hall[peer].talk().numbers_used();
    hall[peer].send(kind::DATA, b"x");
    hall.for_ms(10);
    assert_eq!(hall.told().len(), 512);
    assert_eq!(hall.count("ignored-session-rate"), 89);
    hall.for_ms(1000);
    assert_eq!(sent(&hall, peer).len(), 1);
    // Its number is received, and a second later there is as much again.
    for _ in 0..600 {
        hall[peer].ping();
    }
    hall.for_ms(20);
    assert!(hall[peer].talk().is_acknowledged(number));
    assert_eq!(hall[peer].count(kind::PONG), 513);
}

#[test]
fn r60_excess_keeps_the_session_alive_and_zero_means_no_limit() {
    let limited = |rate| {
        let mut hall = Hall::with(seed(), |settings| {
            settings.limits.set("session-rate", rate).expect("in range");
        });
        let peer = hall.enter_silent("R9", 1);
        hall.told();
        (hall, peer)
    };
    let (mut hall, peer) = limited(1);
    for _ in 0..3000 {
        hall[peer].send(kind::DATA, b"x");
        hall.for_ms(10);
    }
    assert_eq!(hall[peer].end, None);
    assert!((30..=32).contains(&hall.told().len()));

    let (mut hall, peer) = limited(0);
    for _ in 0..5000 {
        hall[peer].send(kind::DATA, b"x");
    }
    hall.for_ms(10);
    assert_eq!(hall.told().len(), 5000);
}

#[test]
fn r61_event_bodies() {
    let text = |len: u16| [&len.to_le_bytes()[..], b"ab"].concat();
    let bad: [(u8, Vec<u8>); 14] = [
        (0, vec![]),
        (event::PLAYER_JOINED, [&[0][..], &text(2)].concat()),
        (event::PLAYER_LEFT, vec![0, 0]),
        (event::GAME_STARTED, vec![]),
        (event::CHAT, vec![]),
        (event::CHAT, vec![2]),
        (event::CHAT, text(1)),
        (event::CHAT, text(3)),
        (event::CHAT, [&[0][..], &text(2)].concat()),
        (event::CUSTOM, vec![0; 1024]),
        (event::START, vec![0]),
        (7, vec![]),
        (16, vec![]),
        (255, vec![]),
    ];
    for (kind, body) in bad {
        // As an event that is due, and as one that was taken before.
        for id in [1, 0] {
            let (mut hall, peer) = silent();
            assert!(is_acknowledged(&mut hall, peer, &[custom(0, 2)]));
            let bytes = Event::new(kind, &body).bytes(id);
            hall[peer].send(kind::EVENTS, &bytes);
            hall.settle();
            let reason = hall[peer].logged_out();
            assert_eq!(reason, Some(left::PROTOCOL_ERROR), "{kind} {body:02X?}");
            let told = hall.told();
            let [Told::Custom { .. }, Told::Left { .. }] = told[..] else {
                panic!("{told:?}")
            };
        }
    }
}

#[test]
fn r63_checked_before_sent() {
    let (mut hall, peer) = silent();
    let player = hall.handle("R9");
    let results = hall.act(move |replies| {
        [
            replies.custom(player, &[&[0; 1000], &[0; 25]]),
            replies.chat(player, 0, ""),
            replies.chat(player, 0, "\n"),
            replies.custom(player, &[&[0; 1000], &[1; 24]]),
            replies.chat(player, 0, "ok"),
            replies.custom(player, &[]),
        ]
    });
    assert_eq!(
        results,
        [
            Err(Refusal::TooLong { max: 1024 }),
            Err(Refusal::BadText),
            Err(Refusal::BadText),
            Ok(()),
            Ok(()),
            Ok(())
        ]
    );
    hall.settle();
    let long = [&[0; 1000][..], &[1; 24]].concat();
    assert_eq!(
        hall[peer].events(),
        [
            Event::new(event::CUSTOM, &long),
            Event::said(0, "ok"),
            Event::new(event::CUSTOM, &[])
        ]
    );
}
