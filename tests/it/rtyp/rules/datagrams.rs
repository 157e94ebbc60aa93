//! Section 2: the header, the sizes, numbering and acknowledgement.

use std::net::SocketAddr;

use anteroom::engine::Refusal;

use super::super::bytes::{DATAGRAM_MAX, Datagram, Event, PAYLOAD_MAX, event, kind, left};
use super::super::hall::{Hall, SERVICE, Told, address};
use super::super::peer::Peer;
use crate::world::PeerId;
use crate::world::seeds::seed;

/// A player that is bound, says nothing by itself, and whose newest number is `newest`.
fn numbered(newest: u16) -> (Hall, PeerId) {
    let mut hall = Hall::new(seed());
    let peer = Peer::silent(&address(1)).first(newest);
    let peer = hall.enter_as("R9", peer);
    hall[peer].connect();
    hall.settle();
    assert!(hall[peer].is_bound());
    hall[peer].talk_mut().strict = false;
    hall.told();
    (hall, peer)
}

/// Sends Data with this number and says whether the game was told.
fn is_taken(hall: &mut Hall, peer: PeerId, sequence: u16) -> bool {
    let data = Datagram::new(kind::DATA, hall[peer].token(), &[]).sequence(sequence);
    hall[peer].raw(&data.bytes());
    hall.for_ms(20);
    matches!(hall.told()[..], [Told::Data { .. }])
}

/// Sends one datagram of the session, after which it must be over.
#[track_caller]
fn ends(kind: u8, payload: &[u8]) {
    let mut hall = Hall::new(seed());
    let peer = hall.enter_silent("R9", 1);
    hall.told();
    hall[peer].send(kind, payload);
    hall.settle();
    let reason = hall[peer].logged_out();
    assert_eq!(reason, Some(left::PROTOCOL_ERROR), "{kind} {payload:02X?}");
    assert_eq!(hall.count("ended-protocol-error"), 1);
    let told = hall.told();
    assert!(
        matches!(told[..], [Told::Left { reason: 3, .. }]),
        "{told:?}"
    );
}

#[test]
fn r6_header() {
    let mut hall = Hall::new(seed());
    let peer = hall.enter_as("R9", Peer::silent(&address(1)));
    let stranger: SocketAddr = "10.9.9.9:9".parse().expect("an address");
    let token = hall[peer].token();
    let connect = Datagram::new(kind::CONNECT, token, &[]).sequence(0x1234);
    hall[peer].raw_from(stranger, &connect.bytes());
    hall.settle();
    let [a, b, c, d] = token.to_le_bytes();
    assert_eq!(
        hall.net.strays[&stranger],
        [[
            0x52, 0x54, 0x59, 0x50, 1, 2, 0, 0, 0x34, 0x12, 0, 0, 0, 0, a, b, c, d
        ]]
    );
}

#[test]
fn r7_datagram_size() {
    let mut hall = Hall::new(seed());
    let peer = hall.enter_silent("R9", 1);
    hall.told();
    hall[peer].send(kind::DATA, &[7; PAYLOAD_MAX]);
    hall[peer].send(kind::DATA, &[]);
    hall.settle();
    let told = hall.told();
    let lens: Vec<usize> = told
        .iter()
        .map(|told| match told {
            Told::Data { bytes, .. } => bytes.len(),
            _ => panic!("{told:?}"),
        })
        .collect();
    assert_eq!(lens, [PAYLOAD_MAX, 0]);
    let long = hall[peer].send(kind::DATA, &[7; PAYLOAD_MAX + 1]).bytes();
    assert_eq!(long.len(), DATAGRAM_MAX + 1);
    hall[peer].raw(&long[..17]);
    hall[peer].raw(&[]);
    hall.settle();
    assert_eq!(hall.told(), []);
    assert_eq!(hall.count("ignored-long"), 1);
    assert_eq!(hall.count("ignored-short"), 2);
    // The server's own.
    let player = hall.handle("R9");
    let sent = hall.act(move |replies| replies.send(player, &[&[1; 1000], &[2; 182]]));
    assert_eq!(sent, Ok(()));
    let sent = hall.act(move |replies| replies.send(player, &[&[1; 1000], &[2; 183]]));
    assert_eq!(sent, Err(Refusal::TooLong { max: PAYLOAD_MAX }));
    hall.settle();
    assert_eq!(
        hall[peer].payloads(kind::DATA),
        [[&[1; 1000][..], &[2; 182]].concat()]
    );
}

#[test]
fn r8_payloads() {
    for kind in [kind::CONNECT, kind::ACK] {
        ends(kind, &[0]);
        ends(kind, &[0; PAYLOAD_MAX]);
    }
    for kind in [kind::PING, kind::PONG] {
        for len in [0, 1, 3, 5, PAYLOAD_MAX] {
            ends(kind, &vec![0; len]);
        }
    }
    // The server's own types, version 2's, and those that do not exist.
    for kind in [0, kind::ACCEPT, 8, 15, 16, 17, 18, 19, 20, 21, 255] {
        ends(kind, &[]);
        ends(kind, &[0; 4]);
    }
    let custom = |len| Event::new(event::CUSTOM, &vec![0; len]);
    let many = |count: u16| -> Vec<u8> { (0..count).flat_map(|id| custom(0).bytes(id)).collect() };
    ends(kind::EVENTS, &[]);
    ends(kind::EVENTS, &many(33));
    ends(kind::EVENTS, &custom(1025).bytes(0));
    let whole = custom(3).bytes(0);
    for len in 1..whole.len() {
        ends(kind::EVENTS, &whole[..len]);
    }
    ends(kind::EVENTS, &[&whole[..], &[0]].concat());

    let mut hall = Hall::new(seed());
    let peer = hall.enter_silent("R9", 1);
    hall.told();
    hall[peer].send(kind::EVENTS, &many(32));
    hall.for_ms(2000);
    hall[peer].send(kind::EVENTS, &custom(1023).bytes(32));
    hall.settle();
    assert_eq!(hall.told().len(), 33);
}

#[test]
fn r9_own_numbering() {
    let (mut hall, peer) = numbered(65_530);
    hall.enter("other", 2);
    for _ in 0..10 {
        hall[peer].connect();
        hall[peer].ping();
        hall[peer].send(kind::DATA, b"x");
    }
    hall.settle();
    let log = &hall[peer].talk().log;
    assert_eq!(hall[peer].count(kind::ACCEPT), 11);
    for (number, got) in log.iter().enumerate() {
        assert_eq!(usize::from(got.datagram.sequence), number);
    }
    // Ours went over the edge meanwhile, and nothing was lost by it.
    assert_eq!(hall[peer].talk().numbers_used(), 31);
    assert_eq!(hall[peer].payloads(kind::PONG).len(), 10);
}

#[test]
fn r9_the_servers_numbers_wrap() {
    let mut hall = Hall::new(seed());
    let peer = hall.enter("R9", 1);
    for _ in 0..700 {
        for _ in 0..100 {
            hall[peer].ping();
        }
        hall.for_ms(200);
    }
    let log = &hall[peer].talk().log;
    assert!(log.len() > 70_000);
    for (number, got) in log.iter().enumerate() {
        assert!(got.new);
        assert_eq!(got.datagram.sequence, number as u16);
    }
}

#[test]
fn r10_new_or_not() {
    for newest in [1000, 0, 65_535, 32_768] {
        let (mut hall, peer) = numbered(newest);
        let mut taken = |ahead: u16| is_taken(&mut hall, peer, newest.wrapping_add(ahead));
        assert!(!taken(0), "the Connect had it");
        assert!(!taken(32_768));
        assert!(taken(32_767));
        let newest = newest.wrapping_add(32_767);
        let mut taken = |ahead: u16| is_taken(&mut hall, peer, newest.wrapping_add(ahead));
        assert!(!taken(0));
        assert!(!taken(0_u16.wrapping_sub(33)));
        assert!(!taken(32_768));
        assert!(taken(0_u16.wrapping_sub(32)));
        assert!(!taken(0_u16.wrapping_sub(32)));
        assert!(taken(0_u16.wrapping_sub(1)));
        assert!(taken(5));
        assert!(taken(3));
        assert!(!taken(3));
        assert!(taken(4));
        let ignored = hall.count("ignored-repeated") + hall.count("ignored-old");
        assert_eq!(ignored, 7);
    }
}

#[test]
fn r11_ack_fields() {
    for newest in [1000, 65_500, 65_535, 0] {
        let (mut hall, peer) = numbered(newest);
        let accept = &hall[peer].talk().log[0].datagram;
        assert_eq!((accept.ack, accept.ack_bits), (newest, 0));
        let newest = newest.wrapping_add(100);
        let token = hall[peer].token();
        for behind in [0, 2, 10, 32, 33] {
            let sequence = newest.wrapping_sub(behind);
            let data = Datagram::new(kind::DATA, token, &[]).sequence(sequence);
            hall[peer].raw(&data.bytes());
        }
        let ping = Datagram::new(kind::PING, token, &[1, 2, 3, 4]);
        let ping = ping.sequence(newest.wrapping_sub(5));
        hall[peer].raw(&ping.bytes());
        hall.for_ms(20);
        let pong = &hall[peer].talk().log.last().expect("a Pong").datagram;
        assert_eq!(pong.kind, kind::PONG);
        assert_eq!(pong.payload, [1, 2, 3, 4]);
        let bits = 1 << 1 | 1 << 4 | 1 << 9 | 1 << 31;
        assert_eq!((pong.ack, pong.ack_bits), (newest, bits));
    }
}

#[test]
fn r12_ack_of_the_unsent() {
    let mut hall = Hall::new(seed());
    let peer = hall.enter_silent("R9", 1);
    let player = hall.handle("R9");
    hall.act(move |replies| replies.custom(player, &[b"x"]))
        .expect("it is there");
    // Not so long that a copy of it is on its way.
    hall.for_ms(20);
    let newest = hall[peer]
        .talk()
        .log
        .last()
        .expect("events")
        .datagram
        .sequence;
    for ahead in [1, 2, 33, 32_767, 32_768, 65_000] {
        let mut data = hall[peer].talk_mut().datagram(kind::DATA, &[]);
        data.ack = newest.wrapping_add(ahead);
        data.ack_bits = u32::MAX;
        hall[peer].raw(&data.bytes());
    }
    let sends = |hall: &Hall| hall[peer].count(kind::EVENTS);
    hall.for_ms(20);
    let before = sends(&hall);
    hall.for_ms(2000);
    assert!(sends(&hall) > before, "it was freed");
    // What acknowledges it truly frees it.
    hall[peer].send(kind::DATA, &[]);
    hall.for_ms(50);
    let before = sends(&hall);
    hall.for_ms(3000);
    assert_eq!(sends(&hall), before);
    assert_eq!(hall.count("sessions"), 1);
}

/// A bound, silent player; the server owes it nothing, and is not about to send a Ping.
fn owed_nothing() -> (Hall, PeerId) {
    let mut hall = Hall::new(seed());
    let peer = hall.enter_silent("R9", 1);
    hall.for_ms(100);
    (hall, peer)
}

fn custom(id: u16) -> Vec<u8> {
    Event::new(event::CUSTOM, b"x").bytes(id)
}

#[test]
fn r13_events_acknowledged_soon() {
    // Within 25 ms; the way takes 5 ms each time.
    let (mut hall, peer) = owed_nothing();
    let used = hall[peer].talk().numbers_used();
    let before = hall[peer].talk().log.len();
    hall[peer].send(kind::EVENTS, &custom(0));
    hall.for_ms(35);
    assert!(hall[peer].talk().is_acknowledged(used));
    let log = &hall[peer].talk().log[before..];
    assert_eq!(log.len(), 1);
    assert_eq!(log[0].datagram.kind, kind::ACK);

    // Before 16 more datagrams have come.
    let used = hall[peer].talk().numbers_used();
    hall[peer].send(kind::EVENTS, &custom(1));
    for _ in 0..15 {
        hall[peer].send(kind::DATA, &[]);
    }
    hall.for_ms(10);
    assert!(hall[peer].talk().is_acknowledged(used));

    // By whatever goes next.
    let (mut hall, peer) = owed_nothing();
    let used = hall[peer].talk().numbers_used();
    let before = hall[peer].talk().log.len();
    hall[peer].send(kind::EVENTS, &custom(0));
    hall[peer].ping();
    hall.for_ms(200);
    assert!(hall[peer].talk().is_acknowledged(used));
    let log = &hall[peer].talk().log[before..];
    assert_eq!(log.len(), 1);
    assert_eq!(log[0].datagram.kind, kind::PONG);
}

#[test]
fn r13_nothing_else_is_acknowledged() {
    let (mut hall, peer) = owed_nothing();
    let endpoint = hall[peer].udp;
    let before = hall.tally(SERVICE, endpoint).out_datagrams;
    for _ in 0..40 {
        hall[peer].send(kind::DATA, b"x");
        hall[peer].send(kind::ACK, &[]);
        hall[peer].send(kind::PONG, &[0; 4]);
    }
    hall.for_ms(500);
    assert_eq!(hall.tally(SERVICE, endpoint).out_datagrams, before);
}
