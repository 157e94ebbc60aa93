//! Section 3.1: who may connect.

use super::super::bytes::Ask;
use super::super::hall::{Hall, SERVICE, address};
use super::super::peer::Peer;
use crate::world::PeerId;
use crate::world::seeds::seed;

/// Somebody else at this address.
fn at(host: u16, port: u16) -> Peer {
    let mut address = address(host);
    address.set_port(port);
    Peer::silent(address)
}

/// Opens a connection; whether it got a token.
fn opens(hall: &mut Hall, host: u16, port: u16) -> (PeerId, bool) {
    let peer = hall.open(at(host, port));
    let is_in = hall[peer].assigned().is_some();
    if !is_in {
        assert_eq!(hall[peer].logged_out(), Some(2));
        assert_eq!(hall[peer].said[0].1.id, 1);
        assert!(hall[peer].end.is_some());
    }
    (peer, is_in)
}

fn limited(name: &'static str, value: u64) -> Hall {
    Hall::with(seed(), |settings| {
        settings.limits.set(name, value).expect("in range");
    })
}

#[test]
fn r21_per_address() {
    let mut hall = Hall::new(seed());
    let ins: Vec<bool> = (0..7).map(|port| opens(&mut hall, 1, 1 + port).1).collect();
    assert_eq!(ins, [true, true, true, true, true, false, false]);
    assert!(opens(&mut hall, 2, 1).1, "others are not concerned");
    // Five sessions are enough even with attempts; a refusal costs none.
    hall.for_ms(4000);
    for port in 10..20 {
        assert!(!opens(&mut hall, 1, port).1);
    }
    hall[PeerId(0)].fin();
    hall[PeerId(1)].fin();
    hall[PeerId(2)].fin();
    hall.settle();
    let ins: Vec<bool> = (20..23).map(|port| opens(&mut hall, 1, port).1).collect();
    assert_eq!(ins, [true, true, false], "one attempt comes back in 2 s");
    hall.for_ms(2000);
    assert!(opens(&mut hall, 1, 30).1);
    assert_eq!(hall.count("refused-too-many"), 2 + 10 + 1);
}

#[test]
fn r22_full() {
    let mut hall = limited("rooms-sessions", 3);
    let bound = hall.silent(1);
    let [first, second] = [2, 3].map(|host| opens(&mut hall, host, 1).0);
    hall.for_ms(10);
    let (third, is_in) = opens(&mut hall, 4, 1);
    assert!(is_in);
    assert_eq!(hall[first].logged_out(), Some(2), "it waited longest");
    assert_eq!(hall[first].said[1].1.id, 2);
    assert_eq!(hall.count("ended-for-another"), 1);
    for peer in [second, third] {
        assert_eq!(hall[peer].end, None);
        hall.send(peer, &Ask::init());
    }
    assert!(!opens(&mut hall, 5, 1).1);
    assert_eq!(hall.count("refused-full"), 1);
    for peer in [bound, second, third] {
        assert_eq!(hall[peer].end, None);
    }
    hall[bound].send(&Ask::logout());
    hall.settle();
    assert!(opens(&mut hall, 6, 1).1);
}

#[test]
fn r22_who_is_refused_evicts_nobody() {
    let mut hall = limited("rooms-sessions", 6);
    for port in 1..=5 {
        let (peer, _) = opens(&mut hall, 1, port);
        hall.send(peer, &Ask::init());
    }
    let (waiting, _) = opens(&mut hall, 2, 1);
    assert!(!opens(&mut hall, 1, 6).1);
    assert_eq!(hall[waiting].end, None);
    assert!(opens(&mut hall, 3, 1).1);
    assert!(hall[waiting].end.is_some());
}

#[test]
fn r23_refused_then_closed() {
    let mut hall = limited("sessions-per-ip", 1);
    opens(&mut hall, 1, 1);
    for port in 2..50 {
        let (peer, is_in) = opens(&mut hall, 1, port);
        assert!(!is_in && hall[peer].said.len() == 1);
    }
    assert!(opens(&mut hall, 2, 1).1, "it goes on accepting");
    hall.for_ms(20_000);
    assert_eq!(hall.count("sessions"), 0);
    assert_eq!(hall.connections(SERVICE), (0, 0));
}

#[test]
fn r24_pending_until_the_first_valid_datagram() {
    let mut hall = Hall::new(seed());
    let (peer, _) = opens(&mut hall, 1, 1);
    let malformed = Ask::new(0x0F, &[1]);
    hall.send(peer, &malformed);
    let packet = Ask::init().packet(1, hall[peer].token() ^ 1);
    hall[peer].raw(&packet.bytes());
    hall.settle();
    assert_eq!(hall.connections(SERVICE), (1, 0));
    hall.send(peer, &Ask::init());
    assert_eq!(hall.connections(SERVICE), (1, 1));
    assert_eq!(hall.count("bindings"), 1);
}

#[test]
fn r25_room_of_a_ghost() {
    let mut hall = Hall::new(seed());
    let peers: Vec<PeerId> = (1..=5).map(|port| opens(&mut hall, 1, port).0).collect();
    hall.for_ms(2000);
    // One waits for its first datagram still; two fall silent one after the other.
    for (wait, peer) in [(0, 1), (500, 2)] {
        hall.for_ms(wait);
        hall.send(peers[peer], &Ask::init());
    }
    let silent_since = hall.now();
    while hall.now() < silent_since + 2400 {
        hall.send(peers[3], &Ask::init());
        hall.send(peers[4], &Ask::init());
        hall.for_ms(200);
    }
    assert!(!opens(&mut hall, 1, 10).1, "silent for less than 3 s");
    hall.for_ms(300);
    hall.send(peers[3], &Ask::init());
    hall.send(peers[4], &Ask::init());
    assert!(opens(&mut hall, 1, 11).1);
    assert_eq!(hall[peers[1]].logged_out(), Some(3), "the longest");
    for peer in [0, 2, 3, 4] {
        assert_eq!(hall[peers[peer]].end, None);
    }
    assert_eq!(hall.count("ghosts-ended"), 1);
    assert_eq!(hall.count("sessions"), 5);
}

#[test]
fn r25_no_ghost_ends_without_an_attempt() {
    let mut hall = limited("attempt-ms", 20_000);
    let peers: Vec<PeerId> = (1..=5).map(|port| opens(&mut hall, 1, port).0).collect();
    for peer in &peers {
        hall.send(*peer, &Ask::init());
    }
    hall.for_ms(4000);
    assert!(!opens(&mut hall, 1, 10).1);
    assert_eq!(hall.count("ghosts-ended"), 0);
    for peer in peers {
        assert_eq!(hall[peer].end, None);
    }
}
