//! Section 5.6: what a datagram may do.

use std::net::SocketAddr;

use super::super::bytes::{Datagram, Event, HEADER, event, kind, left};
use super::super::hall::{Hall, SERVICE, Told, address, server};
use super::super::peer::Peer;
use crate::world::PeerId;
use crate::world::seeds::{seed, seeds};

fn bound() -> (Hall, PeerId) {
    let mut hall = Hall::new(seed());
    let peer = hall.enter_silent("R9", 1);
    hall.told();
    (hall, peer)
}

/// All counters of datagrams that were dropped.
const IGNORED: [&str; 13] = [
    "ignored-source",
    "ignored-short",
    "ignored-long",
    "ignored-magic",
    "ignored-version",
    "ignored-unbound",
    "ignored-unknown-token",
    "ignored-bound-elsewhere",
    "ignored-wrong-token",
    "ignored-repeated",
    "ignored-old",
    "ignored-session-rate",
    "ignored-events-rate",
];

/// Checks that exactly this counter has moved by one since the last call.
#[track_caller]
fn counted(hall: &Hall, before: &mut [u64; 13], name: &str) {
    let now = IGNORED.map(|name| hall.count(name));
    let moved: Vec<&str> = (0..13)
        .filter(|index| now[*index] != before[*index])
        .map(|index| IGNORED[index])
        .collect();
    assert_eq!(moved, [name]);
    *before = now;
}

#[test]
fn r83_impossible_source() {
    let mut hall = Hall::new(seed());
    let peer = hall.enter_as("R9", Peer::silent(&address(1)));
    let connect = Datagram::new(kind::CONNECT, hall[peer].token(), &[]).bytes();
    let mut before = [0; 13];
    for source in [
        "0.0.0.0:5000",
        "[::]:5000",
        "224.0.0.1:5000",
        "239.255.255.255:5000",
        "[ff02::1]:5000",
        "255.255.255.255:5000",
        "10.0.0.1:0",
        "198.51.100.1:4242",
        "[::ffff:198.51.100.1]:4242",
        "[::ffff:224.0.0.1]:5000",
    ] {
        let source: SocketAddr = source.parse().expect("an address");
        hall[peer].raw_from(source, &connect);
        hall.for_ms(20);
        counted(&hall, &mut before, "ignored-source");
        assert_eq!(hall.count("bindings"), 0, "{source}");
    }
    // Its neighbours are as good as any.
    let neighbour = "198.51.100.1:4243".parse().expect("an address");
    hall[peer].raw_from(neighbour, &connect);
    hall.settle();
    assert_eq!(hall.count("bindings"), 1);
}

#[test]
fn r84_not_a_datagram_of_ours() {
    let (mut hall, peer) = bound();
    let good = Datagram::new(kind::DATA, hall[peer].token(), &[]).sequence(500);
    let mut bytes = good.bytes();
    bytes.resize(1201, 0);
    let mut before = [0; 13];
    // Each has all the faults of those behind it.
    bytes[0] = 0;
    bytes[4] = 3;
    let cases: [(&[u8], &str); 6] = [
        (&bytes[..1201], "ignored-long"),
        (&bytes[..HEADER - 1], "ignored-short"),
        (&[], "ignored-short"),
        (&bytes[..HEADER], "ignored-magic"),
        (&bytes[..1200], "ignored-magic"),
        (
            &[&[0x52, 0x54, 0x59, 0x51], &bytes[4..HEADER]].concat(),
            "ignored-magic",
        ),
    ];
    let elsewhere = "10.0.0.77:5000".parse().expect("an address");
    for from in [hall[peer].udp, elsewhere] {
        for (bytes, name) in cases {
            hall[peer].raw_from(from, bytes);
            hall.for_ms(20);
            counted(&hall, &mut before, name);
        }
        for (version, name) in [
            (0, "ignored-version"),
            (3, "ignored-version"),
            (255, "ignored-version"),
            // Its header is four bytes longer.
            (2, "ignored-short"),
        ] {
            let mut other = good.clone();
            other.version = version;
            hall[peer].raw_from(from, &other.bytes());
            hall.for_ms(20);
            counted(&hall, &mut before, name);
        }
    }
    assert_eq!(hall.told(), []);
    hall[peer].raw(&good.bytes());
    hall.settle();
    assert!(matches!(hall.told()[..], [Told::Data { .. }]));
}

#[test]
fn r85_wrong_token() {
    let (mut hall, peer) = bound();
    let token = hall[peer].token();
    let next = hall[peer].talk().numbers_used() as u16;
    let mut before = IGNORED.map(|name| hall.count(name));
    let out = hall.tally(SERVICE, hall[peer].udp).out_datagrams;
    for foreign in [0, token ^ 1, token ^ 0x8000_0000, !token] {
        for kind in [0, 1, 2, 3, 4, 5, 6, 7, 16, 99, 255] {
            for payload in [&[][..], &[0; 4], &[7; 100]] {
                let datagram = Datagram::new(kind, foreign, payload).sequence(next);
                hall[peer].raw(&datagram.bytes());
                hall.for_ms(10);
                counted(&hall, &mut before, "ignored-wrong-token");
            }
        }
    }
    assert_eq!(hall[peer].end, None);
    assert_eq!(hall.told(), []);
    assert_eq!(hall.tally(SERVICE, hall[peer].udp).out_datagrams - out, 0);
    // The token of another live session is as wrong.
    let other = hall.enter_silent("other", 2);
    hall.told();
    let mut before = IGNORED.map(|name| hall.count(name));
    let theirs = Datagram::new(kind::DATA, hall[other].token(), b"x").sequence(next);
    hall[peer].raw(&theirs.bytes());
    hall.for_ms(20);
    counted(&hall, &mut before, "ignored-wrong-token");
    assert_eq!(hall.told(), []);
    // No window was moved.
    hall[peer].send(kind::DATA, b"mine");
    hall.settle();
    assert!(matches!(hall.told()[..], [Told::Data { .. }]));
}

#[test]
fn r86_duplicate_or_too_old() {
    let (mut hall, peer) = bound();
    let data = hall[peer].send(kind::DATA, b"x");
    hall.for_ms(20);
    assert_eq!(hall.told().len(), 1);
    // The server's event is not acknowledged by what is repeated, whatever it says.
    let player = hall.handle("R9");
    hall.act(move |replies| replies.custom(player, &[b"x"]))
        .expect("it is there");
    hall.for_ms(20);
    let mut before = IGNORED.map(|name| hall.count(name));
    let mut repeated = hall[peer].talk_mut().datagram(kind::DATA, b"x");
    repeated.sequence = data.sequence;
    hall[peer].raw(&repeated.bytes());
    hall.for_ms(20);
    counted(&hall, &mut before, "ignored-repeated");
    repeated.sequence = data.sequence.wrapping_sub(40);
    hall[peer].raw(&repeated.bytes());
    hall.for_ms(20);
    counted(&hall, &mut before, "ignored-old");
    assert_eq!(hall.told(), []);
    let events = hall[peer].count(kind::EVENTS);
    hall.for_ms(1000);
    assert!(
        hall[peer].count(kind::EVENTS) > events,
        "it was acknowledged"
    );
    // Malformed or not makes no difference any more.
    let mut late = repeated;
    late.kind = 99;
    late.sequence = data.sequence;
    hall[peer].raw(&late.bytes());
    hall.settle();
    assert_eq!(hall[peer].end, None);
}

#[test]
fn r87_protocol_error() {
    let torn = &Event::chat("x").bytes(0)[..4];
    for (kind, payload) in [
        (0, &[][..]),
        (kind::ACCEPT, &[]),
        (8, &[]),
        (255, &[]),
        (kind::PING, &[0; 3]),
        (kind::PONG, &[]),
        (kind::ACK, &[0]),
        (kind::CONNECT, &[0]),
        (kind::EVENTS, torn),
    ] {
        let mut hall = Hall::new(seed());
        let witness = hall.enter("witness", 2);
        let peer = hall.enter_silent("R9", 1);
        hall[peer].send(kind, payload);
        // What comes behind it is for nobody.
        hall[peer].send(kind::DATA, b"x");
        hall.settle();
        assert_eq!(
            hall[peer].logged_out(),
            Some(left::PROTOCOL_ERROR),
            "{kind}"
        );
        let event = Event::left(1, left::PROTOCOL_ERROR);
        assert_eq!(hall[witness].events().last(), Some(&event));
        assert_eq!(hall[witness].count(kind::DATA), 0);
        assert_eq!(hall.count("ended-protocol-error"), 1);
        assert_eq!(hall.count("ignored-unbound"), 1);
    }
}

#[test]
fn r88_valid() {
    // Whatever the type, its acknowledgement counts.
    let chat = Event::chat("x").bytes(0);
    for (kind, payload) in [
        (kind::CONNECT, &[][..]),
        (kind::PING, &[1; 4]),
        (kind::PONG, &[1; 4]),
        (kind::DATA, b"x"),
        (kind::EVENTS, &chat),
        (kind::ACK, &[]),
    ] {
        let (mut hall, peer) = bound();
        hall[peer].talk_mut().strict = false;
        let player = hall.handle("R9");
        hall.act(move |replies| replies.custom(player, &[b"x"]))
            .expect("it is there");
        hall.for_ms(20);
        assert_eq!(hall[peer].count(kind::EVENTS), 1);
        hall[peer].send(kind, payload);
        hall.for_ms(3000);
        assert_eq!(hall[peer].count(kind::EVENTS), 1, "type {kind}");
    }
    // And its payload is taken.
    let (mut hall, peer) = bound();
    hall[peer].send(kind::DATA, b"data");
    hall[peer].send(kind::EVENTS, &chat);
    hall[peer].ping();
    hall.settle();
    let told = hall.told();
    assert!(
        matches!(told[..], [Told::Data { .. }, Told::Chat { .. }]),
        "{told:?}"
    );
}

/// What happens to a player who falls silent, with or without somebody who forges datagrams
/// without its token: what was sent to it, and when it ended.
fn with_forger(seed: u64, forges: bool) -> (u64, u64, Vec<Told>) {
    let mut hall = Hall::new(1);
    let peer = hall.enter_silent("R9", 1);
    let unbound = hall.enter_as("unbound", Peer::silent(&address(2)));
    let forger = hall.add(Peer::silent("10.6.6.6:666"));
    let tokens = [hall[peer].token(), hall[unbound].token()];
    let mut dice = anteroom::engine::Seeded::new(seed);
    let sources: [SocketAddr; 5] = [
        hall[peer].udp,
        hall[unbound].udp,
        "10.0.0.1:5001".parse().expect("an address"),
        "10.6.6.6:666".parse().expect("an address"),
        server(),
    ];
    for _ in 0..500 {
        hall.for_ms(10);
        if forges {
            let (from, bytes) = forgery(&mut dice, &sources, tokens);
            hall[forger].raw_from(from, &bytes);
        }
    }
    // The player speaks once more: no window was moved.
    let said_at = hall.now();
    hall[peer].send(kind::DATA, b"last");
    for _ in 0..1000 {
        hall.for_ms(10);
        if forges {
            let (from, bytes) = forgery(&mut dice, &sources, tokens);
            hall[forger].raw_from(from, &bytes);
        }
    }
    hall.until(1000, |hall| hall[peer].end.is_some());
    let ended_at = hall.now() - said_at;
    hall.for_ms(1000);
    let all = sources.map(|source| hall.tally(SERVICE, source).out_datagrams);
    (all.iter().sum(), ended_at, hall.told())
}

/// Something that an outsider may send who knows neither of these tokens.
fn forgery(
    dice: &mut anteroom::engine::Seeded,
    sources: &[SocketAddr],
    tokens: [u32; 2],
) -> (SocketAddr, Vec<u8>) {
    let from = sources[dice.below(sources.len() as u64) as usize];
    let mut session = dice.next_u64() as u32;
    if tokens.contains(&session) {
        session ^= 1;
    }
    let session = if dice.below(2) == 0 {
        tokens[0] ^ (1 << dice.below(32))
    } else {
        session
    };
    let session = if tokens.contains(&session) {
        0
    } else {
        session
    };
    let chat = Event::new(event::CHAT, b"\x01\0x").bytes(0);
    let payload = [&[][..], &[0; 4], &chat, &[7; 50]][dice.below(4) as usize];
    let kind = dice.below(9) as u8;
    let mut datagram = Datagram::new(kind, session, payload).sequence(dice.next_u64() as u16);
    datagram.ack = dice.below(8) as u16;
    datagram.ack_bits = dice.next_u64() as u32;
    let mut bytes = datagram.bytes();
    match dice.below(8) {
        0 => bytes.truncate(dice.below(20) as usize),
        1 => bytes[dice.below(5) as usize] ^= 1 << dice.below(8),
        2 => bytes.resize(1201, 0),
        _ => {}
    }
    (from, bytes)
}

#[test]
fn r90_nothing_without_the_token() {
    let quiet = with_forger(1, false);
    seeds(10, |seed| assert_eq!(with_forger(seed, true), quiet));
}
