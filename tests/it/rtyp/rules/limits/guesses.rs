//! Section 5.6: what guessing tokens wins.

use super::super::super::bytes::{Datagram, kind};
use super::super::super::hall::{Hall, address};
use super::super::super::peer::Peer;
use super::limited;
use crate::world::PeerId;

/// Where those play whose stream comes from elsewhere.
const ELSEWHERE: &str = "10.7.7.7:7000";

/// So many Connects under tokens that nobody has, each from an endpoint of its own.
fn guess(hall: &mut Hall, guesser: PeerId, count: u16) {
    for number in 0..count {
        let from = format!("203.0.113.{}:{}", number % 256, 1000 + number);
        let from = from.parse().expect("an address");
        let connect = Datagram::new(kind::CONNECT, 1 + u32::from(number), &[]);
        hall[guesser].raw_from(from, &connect.bytes());
    }
}

/// One guess each millisecond, for so long.
fn flood(hall: &mut Hall, guesser: PeerId, ms: u64) {
    for _ in 0..ms {
        guess(hall, guesser, 1);
        hall.for_ms(1);
    }
}

/// Who does the guessing, and needs no session for it.
fn guesser(hall: &mut Hall) -> PeerId {
    hall.add(Peer::silent(&address(99)))
}

#[test]
fn r94_guessing_wins_nothing() {
    let mut hall = limited(&[]);
    let guesser = guesser(&mut hall);
    let playing = [2, 3].map(|host| hall.enter(&format!("p{host}"), host));
    guess(&mut hall, guesser, 200);
    // Every 5 ms one comes back, and the flood takes it: whatever comes now comes in between.
    flood(&mut hall, guesser, 102);
    // Two log in from one address and play from another: one does so now, one keeps trying.
    let own = hall.enter_as("own", Peer::silent(&address(4)).udp_at(ELSEWHERE));
    let honest = hall.add(Peer::new(&address(5)).udp_at("10.7.7.8:7000"));
    hall[honest].login("honest");
    flood(&mut hall, guesser, 100);
    hall[own].connect();
    flood(&mut hall, guesser, 1000);
    assert!(hall[honest].accepted().is_some());
    assert!(!hall[own].is_bound() && !hall[honest].is_bound());
    assert_eq!(hall.count("ignored-guess"), 6, "one, and five repetitions");
    assert!(hall.count("ignored-unknown-token") > 1300);
    // From the address of its TCP connection it binds, from whatever port.
    let connect = hall[own].talk_mut().datagram(kind::CONNECT, &[]);
    let from = "10.0.0.4:9".parse().expect("an address");
    hall[own].raw_from(from, &connect.bytes());
    flood(&mut hall, guesser, 20);
    assert_eq!(
        hall.net.strays[&from].first().map(|it| it[5]),
        Some(kind::ACCEPT)
    );
    assert_eq!(hall.count("bindings"), 3);
    // Nobody who is bound notices, and a hello proves its address by itself.
    hall[playing[0]].send(kind::DATA, b"move");
    let late = hall.add(Peer::v2("10.0.0.6:1"));
    hall[late].login("late");
    flood(&mut hall, guesser, 50);
    assert_eq!(hall[playing[1]].payloads(kind::DATA), [b"\0move"]);
    assert!(hall[late].is_bound());
    // When the flood ends the next repetition succeeds.
    assert!(!hall[honest].is_bound());
    hall.until(260, |hall| hall[honest].is_bound());
    assert!(playing.iter().all(|peer| hall[*peer].is_bound()));
}

#[test]
fn r94_two_hundred_and_as_many_back_each_second() {
    for (guesses, waited_ms, binds) in [
        (199, 0, true),
        (200, 0, false),
        (200, 4, false),
        (200, 5, true),
        (50_000, 0, false),
        (50_000, 5, true),
    ] {
        let mut hall = limited(&[]);
        let guesser = guesser(&mut hall);
        let peer = hall.enter_as("R9", Peer::silent(&address(1)).udp_at(ELSEWHERE));
        let next = hall.enter_as("next", Peer::silent(&address(2)).udp_at("10.7.7.8:1"));
        guess(&mut hall, guesser, guesses);
        hall.for_ms(waited_ms);
        hall[peer].connect();
        hall.for_ms(11);
        let is_bound = hall[peer].is_bound();
        assert_eq!(is_bound, binds, "{guesses} and {waited_ms} ms");
        // A second later it is as if nothing had been.
        hall.for_ms(1000);
        guess(&mut hall, guesser, 199);
        hall[next].connect();
        hall.for_ms(11);
        assert!(hall[next].is_bound());
    }
}

#[test]
fn r94_what_is_no_guess_is_not_counted() {
    let mut hall = limited(&[("wrong-tokens", 5)]);
    let guesser = guesser(&mut hall);
    let bound = hall.enter("bound", 1);
    let peer = hall.enter_as("R9", Peer::silent(&address(2)).udp_at(ELSEWHERE));
    // No Connect, one with a payload, one for a session that is bound, one from its endpoint.
    let right = hall[bound].token();
    for _ in 0..50 {
        let others = [
            Datagram::new(kind::DATA, 1, b"x"),
            Datagram::new(kind::CONNECT, 1, b"x"),
            Datagram::new(kind::CONNECT, right, &[]),
            Datagram::secret(kind::CONNECT, 1 << 40, &[]),
        ];
        for datagram in others {
            hall[guesser].raw(&datagram.bytes());
        }
        hall[bound].raw(&Datagram::new(kind::CONNECT, right ^ 1, &[]).bytes());
    }
    hall[peer].connect();
    hall.for_ms(11);
    assert!(hall[peer].is_bound());
    assert_eq!(hall.count("ignored-unknown-token"), 0);
    // And five are five.
    let next = hall.enter_as("next", Peer::silent(&address(3)).udp_at("10.7.7.8:1"));
    guess(&mut hall, guesser, 5);
    hall[next].connect();
    hall.for_ms(11);
    assert!(!hall[next].is_bound());
    hall.for_ms(200);
    hall[next].connect();
    hall.for_ms(11);
    assert!(hall[next].is_bound());
}
