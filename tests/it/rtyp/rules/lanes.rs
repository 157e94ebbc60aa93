//! Section 4.1: reliable events, and what a session may send.

use anteroom::engine::Refusal;

use super::super::bytes::{Event, event, kind, left};
use super::super::hall::{Hall, Told, address};
use super::super::peer::{Conduct, Peer};
use crate::world::PeerId;
use crate::world::seeds::seed;

/// A bound player that does nothing by itself, and the server knows how long its way is.
fn silent() -> (Hall, PeerId) {
    let mut hall = Hall::new(seed());
    let peer = hall.enter_silent("R9", 1);
    hall.told();
    (hall, peer)
}

/// One that is alive but acknowledges nothing.
fn deaf() -> (Hall, PeerId) {
    let (mut hall, peer) = silent();
    hall[peer].talk_mut().deaf = true;
    hall[peer].conduct = Conduct {
        ping: true,
        pong: true,
        ..Conduct::SILENT
    };
    (hall, peer)
}

/// An event of a client, on the wire.
fn custom(id: u16, len: usize) -> Vec<u8> {
    Event::new(event::CUSTOM, &body(id, len)).bytes(id)
}

/// A body that shows its id.
fn body(id: u16, len: usize) -> Vec<u8> {
    let mut body = id.to_le_bytes().to_vec();
    body.resize(len.max(2), 0);
    body
}

/// Sends events in one datagram; says whether it was acknowledged in time.
fn is_acknowledged(hall: &mut Hall, peer: PeerId, events: &[Vec<u8>]) -> bool {
    let number = hall[peer].talk().numbers_used();
    hall[peer].send(kind::EVENTS, &events.concat());
    hall.for_ms(35);
    hall[peer].talk().is_acknowledged(number)
}

/// The ids of the client's events that the game was told of since the last call, in their order.
fn told_ids(hall: &Hall) -> Vec<u16> {
    let ids = hall.told().into_iter().map(|told| match told {
        Told::Custom { body, .. } => u16::from_le_bytes([body[0], body[1]]),
        told => panic!("{told:?}"),
    });
    ids.collect()
}

/// Makes the server send events of these lengths to its only player.
fn push(hall: &mut Hall, lens: &[usize]) {
    let player = hall.handle("R9");
    let lens = lens.to_vec();
    hall.act(move |replies| {
        for len in lens {
            replies
                .custom(player, &[&vec![0; len]])
                .expect("it is there");
        }
    });
}

/// The Events datagrams that came: when, their number, and the ids in them.
fn sent(hall: &Hall, peer: PeerId) -> Vec<(u64, u16, Vec<u16>)> {
    let log = hall[peer].talk().log.iter();
    log.filter(|got| got.datagram.kind == kind::EVENTS)
        .map(|got| {
            let events = Event::parse_all(&got.datagram.payload);
            let ids = events.iter().map(|(id, _)| *id).collect();
            (got.at, got.datagram.sequence, ids)
        })
        .collect()
}

/// Acknowledges exactly this datagram of the server.
fn acknowledge(hall: &mut Hall, peer: PeerId, sequence: u16) {
    let mut data = hall[peer].talk_mut().datagram(kind::ACK, &[]);
    data.ack = sequence;
    data.ack_bits = 0;
    hall[peer].raw(&data.bytes());
}

#[test]
fn r50_in_order_once() {
    let (mut hall, peer) = silent();
    for ids in [
        &[2][..],
        &[0],
        &[0],
        &[1, 2],
        &[1],
        &[5, 4],
        &[6, 3, 6],
        &[7, 0],
    ] {
        let events: Vec<_> = ids.iter().map(|id| custom(*id, 5)).collect();
        assert!(is_acknowledged(&mut hall, peer, &events));
    }
    assert_eq!(told_ids(&hall), [0, 1, 2, 3, 4, 5, 6, 7]);
    push(&mut hall, &[1, 2, 3]);
    hall.settle();
    push(&mut hall, &[4]);
    hall.settle();
    let (first, second) = (&sent(&hall, peer)[0], sent(&hall, peer).pop());
    assert_eq!(first.2, [0, 1, 2]);
    assert_eq!(second.map(|it| it.2), Some(vec![3]));
    let lens: Vec<_> = hall[peer].events().iter().map(|it| it.body.len()).collect();
    assert_eq!(lens, [1, 2, 3, 4]);
}

#[test]
fn r51_early_held() {
    let (mut hall, peer) = silent();
    assert!(is_acknowledged(&mut hall, peer, &[custom(255, 2)]));
    for id in 1..255 {
        assert!(is_acknowledged(&mut hall, peer, &[custom(id, 2)]));
        hall.for_ms(30);
    }
    assert_eq!(told_ids(&hall), []);
    assert!(is_acknowledged(&mut hall, peer, &[custom(0, 2)]));
    assert_eq!(told_ids(&hall), (0..256).collect::<Vec<_>>());
    // One further ahead is malformed, the others in the datagram notwithstanding.
    hall[peer].send(kind::EVENTS, &[custom(256, 2), custom(512, 2)].concat());
    hall.settle();
    assert_eq!(hall[peer].logged_out(), Some(left::PROTOCOL_ERROR));
    assert!(matches!(hall.told()[..], [Told::Left { .. }]));
}

/// A player whose events 1 to 65 fill the server's 64 KiB, while the first one is missing.
fn all_held() -> (Hall, PeerId) {
    let (mut hall, peer) = silent();
    for id in 1..=64 {
        assert!(is_acknowledged(&mut hall, peer, &[custom(id, 1023)]));
        hall.for_ms(100);
    }
    assert!(is_acknowledged(&mut hall, peer, &[custom(65, 64)]));
    (hall, peer)
}

#[test]
fn r51_held_bodies_are_bounded() {
    let (mut hall, peer) = all_held();
    assert!(!is_acknowledged(&mut hall, peer, &[custom(66, 2)]));
    assert!(
        is_acknowledged(&mut hall, peer, &[custom(7, 1023)]),
        "held already"
    );
    assert!(is_acknowledged(&mut hall, peer, &[custom(0, 1000)]));
    assert_eq!(told_ids(&hall), (0..66).collect::<Vec<_>>());
    assert!(is_acknowledged(&mut hall, peer, &[custom(66, 2)]));
    assert_eq!(told_ids(&hall), [66]);
}

#[test]
fn r52_all_or_nothing() {
    let (mut hall, peer) = all_held();
    // One that is skipped and one for which there is no room: nothing of it has come.
    let both = [custom(3, 1023), custom(66, 2)];
    let number = hall[peer].talk().numbers_used();
    assert!(!is_acknowledged(&mut hall, peer, &both));
    hall[peer].ping();
    hall.settle();
    assert!(hall[peer].talk().is_acknowledged(number + 1));
    assert!(!hall[peer].talk().is_acknowledged(number));
    // But its acknowledgements count: the server's event is not sent again.
    push(&mut hall, &[1]);
    hall.for_ms(50);
    assert!(!is_acknowledged(&mut hall, peer, &both));
    let sends = sent(&hall, peer).len();
    assert_eq!(sends, 1);
    // And it refreshes the timeout.
    for _ in 0..20 {
        hall.for_ms(1000);
        assert!(!is_acknowledged(&mut hall, peer, &both));
    }
    assert_eq!(sent(&hall, peer).len(), sends);
    assert_eq!(hall[peer].end, None);
    assert!(hall.count("ignored-events-held") >= 22);
}

#[test]
fn r53_in_flight() {
    for (lens, flying) in [(vec![1; 600], 256), (vec![1024; 64], 32)] {
        let (mut hall, peer) = deaf();
        push(&mut hall, &lens);
        hall.for_ms(5000);
        let all = sent(&hall, peer);
        let mut ids: Vec<u16> = all.iter().flat_map(|it| it.2.clone()).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids, (0..flying).collect::<Vec<_>>());
        // An acknowledgement makes room for as much as it frees.
        let (_, sequence, oldest) = &all[0];
        acknowledge(&mut hall, peer, *sequence);
        hall.for_ms(50);
        let newest = sent(&hall, peer).iter().flat_map(|it| it.2.clone()).max();
        assert_eq!(newest, Some(flying + oldest.len() as u16 - 1));
    }
}

#[test]
fn r54_packing() {
    let packed = |lens: &[usize]| -> Vec<usize> {
        let (mut hall, peer) = deaf();
        push(&mut hall, lens);
        hall.for_ms(20);
        sent(&hall, peer).iter().map(|it| it.2.len()).collect()
    };
    assert_eq!(packed(&[1; 40]), [32, 8]);
    // A head of five bytes each: 1182 bytes are two of 586, or three of 389.
    assert_eq!(packed(&[586; 4]), [2, 2]);
    assert_eq!(packed(&[587; 4]), [1, 1, 1, 1]);
    assert_eq!(packed(&[389; 5]), [3, 2]);
    assert_eq!(packed(&[1024, 148, 1]), [2, 1]);
}

#[test]
fn r54_ids_of_a_datagram_are_close() {
    // All are acknowledged but the first and this one: they are due again at the same time, and
    // would fit into one datagram.
    let packed_with_the_first = |other: usize| {
        let (mut hall, peer) = deaf();
        let mut lens = [1000; 34];
        lens[0] = 200;
        lens[other] = 200;
        push(&mut hall, &lens[..33.max(other + 1)]);
        hall.for_ms(20);
        let first = sent(&hall, peer);
        for (_, sequence, ids) in &first {
            if ids[..] != [0] && ids[..] != [other as u16] {
                acknowledge(&mut hall, peer, *sequence);
            }
        }
        hall.for_ms(120);
        let again = sent(&hall, peer).split_off(first.len());
        again[0].2.len() == 2
    };
    assert!(packed_with_the_first(31));
    assert!(!packed_with_the_first(33));
}

/// The waits between the transmissions of one event that is never acknowledged.
fn waits(hall: &Hall, peer: PeerId) -> Vec<u64> {
    let sent = sent(hall, peer);
    sent.windows(2).map(|two| two[1].0 - two[0].0).collect()
}

#[test]
fn r55_resending() {
    // The round trip is 10 ms.
    let (mut hall, peer) = deaf();
    push(&mut hall, &[1]);
    hall.for_ms(5500);
    assert_eq!(waits(&hall, peer)[..6], [100, 200, 400, 800, 1000, 1000]);
    // It was never measured.
    let mut hall = Hall::new(seed());
    let peer = hall.enter_as("R9", Peer::silent(&address(1)));
    hall[peer].connect();
    hall.settle();
    push(&mut hall, &[1]);
    hall.for_ms(5500);
    assert_eq!(waits(&hall, peer)[..5], [300, 600, 1000, 1000, 1000]);
    // It is 1000 ms: r is 1500, which is more than a second each time.
    let mut hall = Hall::new(seed());
    hall.net.weather.delay_ms = 500;
    let peer = hall.add(Peer::new(&address(1)));
    hall[peer].login("R9");
    hall.for_ms(3000);
    hall[peer].talk_mut().deaf = true;
    push(&mut hall, &[1]);
    hall.for_ms(8000);
    assert_eq!(waits(&hall, peer)[..4], [1500, 1500, 1500, 1500]);
}

#[test]
fn r55_a_busy_link_gets_no_copies_it_does_not_need() {
    let (mut hall, peer) = silent();
    hall[peer].conduct = Conduct::HONEST;
    for _ in 0..50 {
        push(&mut hall, &[10]);
        hall.for_ms(40);
    }
    hall.settle();
    assert_eq!(hall[peer].events().len(), 50);
    let sends: usize = sent(&hall, peer).iter().map(|it| it.2.len()).sum();
    assert_eq!(sends, 50);
}

#[test]
fn r56_resend_budget() {
    let (mut hall, peer) = deaf();
    push(&mut hall, &[600; 54]);
    hall.for_ms(50);
    let first = sent(&hall, peer).len();
    assert_eq!(first, 54);
    // A chatty peer buys no wakeups.
    for _ in 0..500 {
        hall[peer].send(kind::DATA, &[]);
        hall[peer].send(kind::DATA, &[]);
        hall.for_ms(1);
    }
    let again = sent(&hall, peer).split_off(first);
    assert!(again.len() >= 2 * 54, "{}", again.len());
    let at: Vec<u64> = again.iter().map(|it| it.0).collect();
    for (index, start) in at.iter().enumerate() {
        let span = at[index..].iter().take_while(|at| **at < start + 20);
        assert!(span.count() <= 32);
    }
    // Two spans are enough for all 54.
    assert!(at[53] - at[0] <= 25, "{} ms", at[53] - at[0]);
}

#[test]
fn r57_full_lane() {
    for (lens, one_more) in [(vec![1; 1024], 0), (vec![1024; 512], 1)] {
        let (mut hall, peer) = deaf();
        push(&mut hall, &lens);
        hall.for_ms(1000);
        assert_eq!(hall[peer].end, None);
        push(&mut hall, &[one_more]);
        hall.settle();
        assert_eq!(hall[peer].logged_out(), Some(left::TIMED_OUT));
        assert!(matches!(hall.told()[..], [Told::Left { reason: 2, .. }]));
    }
    // Who acknowledges gets any number.
    let mut hall = Hall::new(seed());
    let peer = hall.enter("R9", 1);
    for _ in 0..20 {
        push(&mut hall, &[500; 500]);
        hall.for_ms(1000);
    }
    assert_eq!(hall[peer].events().len(), 10_000);
}

#[test]
fn r58_stuck_lane() {
    // No acknowledgement at all: 15 s.
    let (mut hall, peer) = deaf();
    let pushed_at = hall.now();
    push(&mut hall, &[1]);
    hall.until(20_000, |hall| hall[peer].end.is_some());
    let took = hall.now() - 5 - pushed_at;
    assert!((15_000..15_020).contains(&took), "{took} ms");
    assert_eq!(hall[peer].logged_out(), Some(left::TIMED_OUT));

    // One every 14 s, but never that of the oldest: 60 s.
    let (mut hall, peer) = deaf();
    let pushed_at = hall.now();
    push(&mut hall, &[1]);
    for _ in 0..4 {
        hall.for_ms(13_000);
        push(&mut hall, &[1]);
        hall.for_ms(1000);
        let newest = sent(&hall, peer).iter().flat_map(|it| it.2.clone()).max();
        let alone = sent(&hall, peer)
            .into_iter()
            .find(|it| it.2[..] == [newest.expect("some")]);
        acknowledge(&mut hall, peer, alone.expect("it went alone once").1);
    }
    hall.until(20_000, |hall| hall[peer].end.is_some());
    let took = hall.now() - 5 - pushed_at;
    assert!((60_000..60_020).contains(&took), "{took} ms");
    assert_eq!(hall[peer].logged_out(), Some(left::TIMED_OUT));
}

#[test]
fn r58_slow_is_alive() {
    let (mut hall, peer) = deaf();
    for _ in 0..40 {
        push(&mut hall, &[1]);
        hall.for_ms(10_000);
        let (_, sequence, _) = sent(&hall, peer).pop().expect("events");
        acknowledge(&mut hall, peer, sequence);
    }
    assert_eq!(hall[peer].end, None);
    assert_eq!(hall[peer].events().len(), 40);
}

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
