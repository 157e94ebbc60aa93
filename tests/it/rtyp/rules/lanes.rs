//! Section 4.1: reliable events, in lanes both ways.

use super::super::bytes::{Event, event, kind, left};
use super::super::hall::{Hall, Told, address};
use super::super::peer::{Conduct, Peer};
use crate::world::PeerId;
use crate::world::seeds::seed;

/// A bound player that does nothing by itself, and the server knows how long its way is.
pub fn silent() -> (Hall, PeerId) {
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
pub fn custom(id: u16, len: usize) -> Vec<u8> {
    Event::new(event::CUSTOM, &body(id, len)).bytes(id)
}

/// A body that shows its id.
fn body(id: u16, len: usize) -> Vec<u8> {
    let mut body = id.to_le_bytes().to_vec();
    body.resize(len.max(2), 0);
    body
}

/// Sends events in one datagram; says whether it was acknowledged in time.
pub fn is_acknowledged(hall: &mut Hall, peer: PeerId, events: &[Vec<u8>]) -> bool {
    let number = hall[peer].talk().numbers_used();
    hall[peer].send(kind::EVENTS, &events.concat());
    hall.for_ms(35);
    hall[peer].talk().is_acknowledged(number)
}

/// The ids of the client's events that the game was told of since the last call, in their order.
pub fn told_ids(hall: &Hall) -> Vec<u16> {
    let ids = hall.told().into_iter().map(|told| match told {
        Told::Custom { body, .. } => u16::from_le_bytes([body[0], body[1]]),
        told => panic!("{told:?}"),
    });
    ids.collect()
}

/// Makes the server send events of these lengths to its only player.
pub fn push(hall: &mut Hall, lens: &[usize]) {
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
pub fn sent(hall: &Hall, peer: PeerId) -> Vec<(u64, u16, Vec<u16>)> {
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
