//! Sections 5.4 and 5.5: keep-alive, round trip, timeouts.

use super::super::bytes::{Event, Said, Token, event, kind, left};
use super::super::hall::{Hall, SERVICE, address};
use super::super::peer::{Conduct, Peer};
use crate::world::PeerId;
use crate::world::seeds::seed;

/// When datagrams of one type came.
fn came(hall: &Hall, peer: PeerId, kind: u8) -> Vec<u64> {
    let log = hall[peer].talk().log.iter();
    log.filter(|got| got.datagram.kind == kind)
        .map(|got| got.at)
        .collect()
}

fn waits(times: &[u64]) -> Vec<u64> {
    times.windows(2).map(|two| two[1] - two[0]).collect()
}

#[test]
fn r76_the_servers_pings() {
    let mut hall = Hall::new(seed());
    let peer = hall.enter("R9", 1);
    hall.for_ms(60_000);
    let log = &hall[peer].talk().log;
    assert_eq!(
        [log[0].datagram.kind, log[1].datagram.kind],
        [kind::ACCEPT, kind::PING]
    );
    assert_eq!(log[0].at, log[1].at);
    let pings = came(&hall, peer, kind::PING);
    assert_eq!(waits(&pings), [4000; 15]);
    // Unanswered, it asks each second, until it is answered again.
    hall[peer].conduct.pong = false;
    hall.for_ms(10_000);
    let asked = came(&hall, peer, kind::PING).split_off(pings.len());
    assert!(waits(&asked).iter().all(|wait| *wait == 1000));
    assert!(asked.len() >= 7);
    hall[peer].conduct.pong = true;
    hall.for_ms(20_000);
    let all = came(&hall, peer, kind::PING);
    assert_eq!(waits(&all).split_off(all.len() - 4), [4000; 3]);
}

#[test]
fn r77_pong() {
    let mut hall = Hall::new(seed());
    let peer = hall.enter_silent("R9", 1);
    let known = hall[peer].count(kind::PONG);
    for nonce in [[0; 4], [0xFF; 4], [1, 2, 3, 4], [1, 2, 3, 4]] {
        hall[peer].talk_mut().strict = false;
        hall[peer].send(kind::PING, &nonce);
        hall.for_ms(10);
        let pongs = hall[peer].payloads(kind::PONG);
        assert_eq!(pongs.last(), Some(&&nonce[..]));
    }
    assert_eq!(hall[peer].count(kind::PONG), known + 4);
    // A repeated Ping is a repeated datagram.
    let ping = hall[peer].send(kind::PING, &[9; 4]).bytes();
    hall[peer].raw(&ping);
    hall.for_ms(10);
    assert_eq!(hall[peer].count(kind::PONG), known + 5);
}

/// How long the server waits until it sends an event again.
fn resends_after(hall: &mut Hall, peer: PeerId) -> u64 {
    let player = hall.handle("R9");
    let before = came(hall, peer, kind::EVENTS).len();
    hall[peer].talk_mut().deaf = true;
    hall.act(move |replies| replies.custom(player, &[b"x"]))
        .expect("it is there");
    hall.for_ms(6000);
    let times = came(hall, peer, kind::EVENTS).split_off(before);
    waits(&times)[0]
}

#[test]
fn r78_round_trip() {
    // The first sample is the value, and each later one moves it by an eighth of the difference:
    // 1000 is 1000, and with 200 behind it 900; 200 is 200, and with 1000 behind it 300.
    for (first, second, alone, both) in [(500, 100, 1500, 1350), (100, 500, 300, 450)] {
        for (samples, waits) in [(1, alone), (2, both)] {
            let mut hall = Hall::new(seed());
            hall.net.weather.delay_ms = first;
            let peer = hall.add(Peer::new(&address(1)));
            hall[peer].login("R9");
            hall.for_ms(3000);
            let (udp, server) = (hall[peer].udp, super::super::hall::server());
            for (from, to) in [(server, udp), (udp, server)] {
                hall.net.link(from, to).weather.delay_ms = second;
            }
            hall.until(5000, |hall| hall[peer].count(kind::PING) == samples);
            hall.for_ms(second + 50);
            hall[peer].conduct.pong = false;
            assert_eq!(resends_after(&mut hall, peer), waits);
        }
    }
}

#[test]
fn r78_a_pong_without_a_ping_says_nothing() {
    let mut hall = Hall::new(seed());
    let peer = hall.enter_as("R9", Peer::silent(&address(1)));
    hall[peer].connect();
    hall.settle();
    for nonce in [0u32, 1, 0xFFFF_FFFF] {
        hall[peer].send(kind::PONG, &nonce.to_le_bytes());
    }
    hall[peer].conduct.ping = true;
    assert_eq!(resends_after(&mut hall, peer), 300);
}

#[test]
fn r79_silent_client() {
    let mut hall = Hall::new(seed());
    let witness = hall.enter("witness", 1);
    let peer = hall.enter_silent("R9", 2);
    for kind in [kind::CONNECT, kind::DATA, kind::ACK] {
        hall.for_ms(9900);
        hall[peer].send(kind, &[]);
    }
    for kind in [kind::PING, kind::PONG] {
        hall.for_ms(9900);
        hall[peer].talk_mut().strict = false;
        hall[peer].send(kind, &[0; 4]);
    }
    hall.for_ms(9900);
    let chat = Event::chat("x").bytes(0);
    hall[peer].send(kind::EVENTS, &chat);
    let heard_at = hall.now() + 5;
    hall.until(11_000, |hall| hall[peer].end.is_some());
    let (at, said) = hall[peer].said[1];
    assert_eq!(said, Said::Logout(left::TIMED_OUT));
    let took = at - 5 - heard_at;
    assert!((10_000..10_010).contains(&took), "{took} ms");
    let event = Event::left(1, left::TIMED_OUT);
    hall.settle();
    assert_eq!(hall[witness].events().last(), Some(&event));
    assert_eq!(hall.count("ended-timed-out"), 1);
}

#[test]
fn r79_what_is_not_valid_keeps_nobody_alive() {
    let mut hall = Hall::new(seed());
    let peer = hall.enter_silent("R9", 1);
    let last = hall[peer].send(kind::DATA, b"last");
    let heard_at = hall.now() + 5;
    for round in 0..99u16 {
        hall.for_ms(100);
        // Repeated, too old, of another token, of another version, torn, from elsewhere.
        hall[peer].raw(&last.bytes());
        let old = last.sequence.wrapping_sub(100 + round);
        hall[peer].raw(&last.clone().sequence(old).bytes());
        let mut foreign = last.clone().sequence(last.sequence + 1 + round);
        foreign.session = Token::Shared(hall[peer].token() ^ 1);
        hall[peer].raw(&foreign.bytes());
        let mut second = last.clone().sequence(last.sequence + 1 + round);
        second.version = 2;
        hall[peer].raw(&second.bytes());
        hall[peer].raw(&last.bytes()[..17]);
        let fresh = last.clone().sequence(last.sequence + 1 + round).bytes();
        let elsewhere = "10.0.0.1:5001".parse().expect("an address");
        hall[peer].raw_from(elsewhere, &fresh);
    }
    hall.until(1000, |hall| hall[peer].end.is_some());
    let took = hall.now() - 5 - heard_at;
    assert!((10_000..10_010).contains(&took), "{took} ms");
}

#[test]
fn r79_an_honest_one_lives_for_ever_and_costs_little() {
    let mut hall = Hall::new(seed());
    let peer = hall.enter("R9", 1);
    hall.for_ms(3_600_000);
    assert!(hall[peer].is_bound());
    let tally = hall.tally(SERVICE, hall[peer].udp);
    assert!(tally.out_datagrams < 2 * 3600, "{tally:?}");
    hall[peer].event(Event::new(event::CUSTOM, b"x"));
    hall.settle();
    assert_eq!(hall[peer].talk().unacknowledged(), 0);
    hall[peer].conduct = Conduct::SILENT;
    hall.for_ms(11_000);
    assert!(hall[peer].end.is_some());
    // Nobody is there: nothing is to be done.
    assert_eq!(hall.deadline(SERVICE), None);
}
