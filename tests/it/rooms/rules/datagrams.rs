//! Section 4: which datagrams a session is made of.

use std::net::SocketAddr;

use anteroom::engine::Seeded;

use super::super::bytes::{Ask, Packet, kind, summed};
use super::super::hall::{Hall, SERVICE, address, server};
use super::super::peer::Peer;
use crate::world::seeds::seed;

fn addr(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

#[test]
fn r29_order() {
    // Each datagram has all faults from one place of the order on.
    let mut hall = Hall::new(seed());
    let peer = hall.silent(1);
    hall.send(peer, &Ask::init());
    let stranger = addr("10.9.9.9:9");
    let token = hall[peer].token();
    let bad = |version: u8, token: u32, length: u32, sum: bool| {
        let mut bytes = vec![version, 0xEE, 0, 1];
        bytes.extend(token.to_be_bytes());
        bytes.extend(length.to_be_bytes());
        let mut bytes = summed(bytes);
        if !sum {
            bytes[13] ^= 1;
        }
        bytes
    };
    let cases: [(&str, SocketAddr, Vec<u8>); 9] = [
        ("ignored-source", addr("224.0.0.1:9"), vec![9; 1300]),
        ("ignored-long", stranger, vec![9; 1201]),
        ("ignored-short", stranger, vec![9; 13]),
        ("ignored-version", stranger, bad(2, 0, 5, false)),
        ("ignored-length", stranger, bad(1, 0, 5, false)),
        ("ignored-checksum", stranger, bad(1, 0, 0, false)),
        ("ignored-token", stranger, bad(1, token ^ 1, 0, true)),
        ("ignored-endpoint", stranger, bad(1, token, 0, true)),
        ("ignored-repeated", address(1), bad(1, token, 0, true)),
    ];
    for (name, from, bytes) in cases {
        assert_eq!(hall.count(name), 0);
        hall[peer].raw_from(from, &bytes);
        hall.settle();
        assert_eq!(hall.count(name), 1, "{name}");
    }
    let all: u64 = hall_ignored(&hall);
    assert_eq!(all, 9, "each was counted once");
}

fn hall_ignored(hall: &Hall) -> u64 {
    let names = [
        "ignored-source",
        "ignored-long",
        "ignored-short",
        "ignored-version",
        "ignored-length",
        "ignored-checksum",
        "ignored-token",
        "ignored-endpoint",
        "ignored-repeated",
        "ignored-old",
        "ignored-malformed",
    ];
    names.iter().map(|name| hall.count(name)).sum()
}

#[test]
fn r30_impossible_source() {
    let mut hall = Hall::new(seed());
    let peer = hall.open(Peer::silent(address(1)));
    let sources = [
        "0.0.0.0:9",
        "224.0.0.1:9",
        "239.1.2.3:9",
        "255.255.255.255:9",
        "10.0.0.1:0",
        "198.51.100.1:4243",
        "[::]:9",
        "[ff02::1]:9",
    ];
    for source in sources {
        let bytes = hall[peer].packet(&Ask::init()).bytes();
        hall[peer].raw_from(addr(source), &bytes);
    }
    hall.settle();
    assert_eq!(hall.count("ignored-source"), sources.len() as u64);
    assert_eq!(hall.count("bindings"), 0);
}

#[test]
fn r31_wrong_token() {
    let mut hall = Hall::new(seed());
    let peer = hall.silent(1);
    let token = hall[peer].token();
    for wrong in (0..32).map(|bit| token ^ 1 << bit).chain([0, u32::MAX]) {
        for _ in 0..10 {
            let packet = Ask::logout().packet(9, wrong);
            hall[peer].raw(&packet.bytes());
        }
    }
    hall.settle();
    assert_eq!(hall.count("ignored-token"), 340);
    assert_eq!(hall[peer].end, None);
}

#[test]
fn r32_valid() {
    let mut hall = Hall::new(seed());
    let peer = hall.silent(1);
    for _ in 0..10 {
        hall.for_ms(9000);
        hall.send(peer, &Ask::key(1));
    }
    assert_eq!(hall[peer].end, None, "whatever is valid keeps it alive");
    assert_eq!(hall.count("ignored-outside-room"), 10, "and is judged");
}

#[test]
fn r33_the_first_binds() {
    let mut hall = Hall::new(seed());
    let peer = hall.open(Peer::silent(address(1)));
    let bytes = hall[peer].packet(&Ask::init()).bytes();
    for other in [2, 3] {
        hall[peer].raw_from(address(other), &bytes);
    }
    hall.settle();
    assert_eq!(hall.count("ignored-endpoint"), 2);
    assert_eq!(hall.count("bindings"), 0);
    // Another port of the same address is as good.
    let mut own = address(1);
    own.set_port(1);
    hall[peer].raw_from(own, &bytes);
    hall.settle();
    assert_eq!(hall.count("bindings"), 1);
    hall[peer].raw(&bytes);
    hall.settle();
    assert_eq!(hall.count("ignored-endpoint"), 3);
}

#[test]
fn r34_bound_stays_bound() {
    let mut hall = Hall::new(seed());
    let [a, b] = [1, 2].map(|host| hall.silent(host));
    let logout = hall[a].packet(&Ask::logout()).bytes();
    let mut near = address(1);
    near.set_port(5001);
    for from in [address(2), address(3), near] {
        hall[b].raw_from(from, &logout);
    }
    hall.settle();
    assert_eq!(hall.count("ignored-endpoint"), 3);
    assert_eq!(hall.count("sessions"), 2);
    // Nor does a third get an endpoint that has a session.
    let mut third = Peer::silent(address(1));
    third.tcp.set_port(7000);
    third.udp.set_port(7000);
    let third = hall.open(third);
    let bytes = hall[third].packet(&Ask::init()).bytes();
    hall[third].raw_from(address(1), &bytes);
    hall.settle();
    assert_eq!(hall.count("ignored-endpoint"), 4);
    hall[third].raw(&bytes);
    hall.settle();
    assert_eq!(hall.count("bindings"), 3);
}

#[test]
fn r35_malformed() {
    for bound in [true, false] {
        let mut hall = Hall::new(seed());
        let peer = match bound {
            true => hall.silent(1),
            false => hall.open(Peer::silent(address(1))),
        };
        for number in 0..9 {
            hall.send(peer, &Ask::new(number, b"\xFF\xFF\xFF"));
        }
        assert_eq!(hall[peer].end, None);
        hall.send(peer, &Ask::new(0x55, &[]));
        hall.settle();
        assert_eq!(hall[peer].logged_out(), Some(4));
        assert_eq!(hall.count("ignored-malformed"), 10);
    }
}

#[test]
fn r36_answered_from_where_it_came() {
    let other = addr("198.51.100.2:4243");
    let mut hall = Hall::with_sockets(seed(), &[server(), other]);
    let peer = hall.silent(1);
    for at in [server(), other, server(), other, other] {
        hall[peer].forget();
        hall[peer].server = at;
        hall.send(peer, &Ask::rooms(0));
        let from: Vec<SocketAddr> = hall[peer].log.iter().map(|got| got.from).collect();
        assert_eq!(from, [at]);
    }
}

#[test]
fn r36_nothing_before_the_first() {
    let mut hall = Hall::new(seed());
    let peer = hall.open(Peer::silent(address(1)));
    hall.for_ms(12_000);
    assert!(hall[peer].log.is_empty());
    assert!(hall.net.strays.is_empty());
}

#[test]
fn r37_nothing_without_the_token() {
    let mut hall = Hall::new(seed());
    let [victim, free] = [1, 2].map(|host| hall.silent(host));
    let unbound = hall.open(Peer::silent(address(3)));
    let start = hall.now();
    let attacker = addr("10.6.6.6:666");
    hall.echo_only(SERVICE, attacker);
    let tokens: Vec<u32> = [victim, free, unbound]
        .map(|peer| hall[peer].token())
        .into();
    let mut dice = Seeded::new(seed());
    for round in 0..3000_u64 {
        let token = dice.below(1 << 32) as u32;
        if tokens.contains(&token) {
            continue;
        }
        let packet = Packet {
            kind: (round % 0x12) as u8,
            id: dice.below(65_536) as u16,
            token,
            payload: vec![0; dice.below(4) as usize],
        };
        let sources = [attacker, address(1), address(2), address(3), address(4)];
        let from = sources[round as usize % sources.len()];
        hall[victim].raw_from(from, &packet.bytes());
        if round % 20 == 0 {
            hall.send(free, &Ask::rooms(0));
        }
        hall.for_ms(3);
    }
    let tally = hall.tally(SERVICE, attacker);
    assert_eq!((tally.in_datagrams, tally.out_datagrams), (600, 0));
    // The victim was silent, and timed out when it had to; so did who was never bound.
    let over = |peer| hall[peer].end.expect("timed out").0;
    assert!(over(victim) - start < 10_020 && hall[victim].log.is_empty());
    assert!(over(unbound) - start < 10_020);
    assert_eq!(hall[free].end, None);
    assert!(hall[free].came(kind::GET_ROOMS).len() == 150);
    assert_eq!(hall.count("bindings"), 2);
}
