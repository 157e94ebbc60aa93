//! Sections 4.4 and 4.5: telling the other players, and the built-in game.

use super::super::bytes::{Event, PAYLOAD_MAX, event, frame, kind, left};
use super::super::hall::{Hall, SERVICE, address};
use super::super::peer::Peer;
use crate::world::PeerId;
use crate::world::link::Weather;
use crate::world::seeds::{seed, seeds};

/// Four players of one game and one of another.
fn full() -> (Hall, [PeerId; 5]) {
    let mut hall = Hall::with_games(seed(), 2);
    let peers = [1, 2, 3, 4, 5].map(|host| hall.enter(&format!("p{host}"), host));
    hall.settle();
    (hall, peers)
}

/// A way to leave.
type Way = fn(&mut Peer);

#[test]
fn r64_joining() {
    let mut hall = Hall::with_games(seed(), 2);
    let logged_in: Vec<PeerId> = (1..6)
        .map(|host| hall.enter_as(&format!("p{host}"), Peer::silent(&address(host))))
        .collect();
    // They bind in another order than that of their numbers.
    for index in [2, 0, 3, 4, 1] {
        hall[logged_in[index]].connect();
        hall.settle();
    }
    let events = |index: usize| hall[logged_in[index]].events();
    let joined = |number: u8| Event::joined(number, &format!("p{}", number + 1));
    assert_eq!(events(2), [joined(0), joined(3), joined(1)]);
    assert_eq!(events(0), [joined(2), joined(3), joined(1)]);
    assert_eq!(events(3), [joined(0), joined(2), joined(1)]);
    assert_eq!(events(1), [joined(0), joined(2), joined(3)]);
    assert_eq!(events(4), [], "it is alone in its game");
}

#[test]
fn r65_leaving() {
    let ways: [(u8, Way); 7] = [
        (left::LEFT, Peer::leave),
        (left::LEFT, Peer::fin),
        (left::LEFT, Peer::abort),
        (left::TIMED_OUT, Peer::fall_silent),
        (left::PROTOCOL_ERROR, |peer| {
            peer.send(99, &[]);
        }),
        (left::PROTOCOL_ERROR, |peer| peer.write(&frame(&[9]))),
        (left::PROTOCOL_ERROR, |peer| peer.write(&[0, 0])),
    ];
    for (reason, way) in ways {
        let (mut hall, peers) = full();
        way(&mut hall[peers[1]]);
        hall.for_ms(12_000);
        for index in [0, 2, 3] {
            let events = hall[peers[index]].events();
            let lefts = events.iter().filter(|it| it.kind == event::PLAYER_LEFT);
            assert_eq!(lefts.collect::<Vec<_>>(), [&Event::left(1, reason)]);
        }
        assert_eq!(hall[peers[4]].events(), []);
    }
    let (mut hall, peers) = full();
    let player = hall.handle("p2");
    hall.act(move |replies| replies.kick(player))
        .expect("it is there");
    hall.settle();
    let event = Event::left(1, left::KICKED);
    assert_eq!(hall[peers[0]].events().last(), Some(&event));
}

#[test]
fn r65_who_never_bound_is_not_missed() {
    let mut hall = Hall::new(seed());
    let witness = hall.enter("witness", 1);
    let never = hall.enter_as("never", Peer::silent(&address(2)));
    hall[never].leave();
    hall.settle();
    let never = hall.enter_as("never", Peer::silent(&address(2)));
    hall.for_ms(11_000);
    assert!(hall[never].end.is_some());
    assert_eq!(hall[witness].events(), []);
}

#[test]
fn r66_one_order() {
    seeds(10, |seed| {
        let mut hall = Hall::new(seed);
        let witnesses = [1, 2].map(|host| hall.enter(&format!("w{host}"), host));
        hall.settle();
        hall.net.weather = Weather {
            loss: 200,
            reorder: 200,
            ..Weather::clear(20)
        };
        for witness in witnesses {
            let udp = hall[witness].udp;
            let weather = hall.net.weather;
            hall.net.link(super::super::hall::server(), udp).weather = weather;
        }
        for round in 0..20 {
            let host = 3 + round % 2;
            let guest = hall.add(Peer::new(&address(host)));
            hall[guest].login(&format!("g{round}"));
            hall.for_ms(400);
            for witness in witnesses {
                hall[witness].say(&format!("{round}"));
            }
            if hall[guest].is_bound() {
                hall[guest].say("hello");
                if round == 10 {
                    hall[guest].event(Event::start());
                }
            }
            hall.for_ms(300);
            hall[guest].leave();
        }
        hall.for_ms(20_000);
        // Each sees what both see in the same order: all but what it said itself, and each
        // other's joining.
        let shared = |peer: PeerId| -> Vec<Event> {
            let events = hall[peer].events().iter();
            let both = events.filter(|it| it.kind == event::GAME_STARTED || it.body[0] >= 2);
            both.cloned().collect()
        };
        let [first, second] = witnesses.map(shared);
        assert!(first.len() > 20);
        assert_eq!(first, second);
    });
}

#[test]
fn r67_relayed_data() {
    let (mut hall, peers) = full();
    hall[peers[2]].send(kind::DATA, b"data");
    hall[peers[0]].send(kind::DATA, &[]);
    hall[peers[4]].send(kind::DATA, b"elsewhere");
    hall.settle();
    let data = |index: usize| hall[peers[index]].payloads(kind::DATA);
    assert_eq!(data(0), [&b"\x02data"[..]]);
    assert_eq!(
        data(1),
        [&b"\0"[..], b"\x02data"]
            .map(|it| it)
            .into_iter()
            .rev()
            .collect::<Vec<_>>()
    );
    assert_eq!(data(2), [b"\0"]);
    assert_eq!(data(4), [b""; 0]);
    // What does not fit with the number in front is not passed on, and counted.
    hall[peers[0]].send(kind::DATA, &[1; PAYLOAD_MAX - 1]);
    hall[peers[0]].send(kind::DATA, &[2; PAYLOAD_MAX]);
    hall.settle();
    let data = hall[peers[3]].payloads(kind::DATA);
    assert_eq!(data.len(), 3);
    assert_eq!(data[2].len(), PAYLOAD_MAX);
    assert_eq!(hall.count("unsent-too-long"), 3);
}

#[test]
fn r67_never_to_who_is_not_bound() {
    let mut hall = Hall::new(seed());
    let speaker = hall.enter("speaker", 1);
    let unbound = hall.enter_as("unbound", Peer::silent(&address(2)));
    hall[speaker].send(kind::DATA, b"x");
    hall[speaker].say("x");
    hall.settle();
    let endpoint = hall[unbound].udp;
    assert_eq!(hall.tally(SERVICE, endpoint).out_datagrams, 0);
    hall[unbound].connect();
    hall.settle();
    assert_eq!(hall[unbound].events(), [Event::joined(0, "speaker")]);
}

#[test]
fn r68_relayed_events() {
    let (mut hall, peers) = full();
    for witness in &peers {
        let known = hall[*witness].events().len();
        assert!(known <= 3);
    }
    hall[peers[1]].say("hello");
    hall[peers[1]].event(Event::new(event::CUSTOM, b"body"));
    hall[peers[1]].event(Event::new(event::CUSTOM, &[7; 1023]));
    hall.settle();
    let longest = [&[1][..], &[7; 1023]].concat();
    let expected = [
        Event::said(1, "hello"),
        Event::new(event::CUSTOM, b"\x01body"),
        Event::new(event::CUSTOM, &longest),
    ];
    for index in [0, 2, 3] {
        let events = hall[peers[index]].events();
        assert_eq!(events[events.len() - 3..], expected);
    }
    for index in [1, 4] {
        let events = hall[peers[index]].events();
        assert!(events.iter().all(|it| it.kind == event::PLAYER_JOINED));
    }
}

#[test]
fn r69_relays_start() {
    let mut hall = Hall::new(seed());
    let first = hall.enter("first", 1);
    let unbound = hall.enter_as("unbound", Peer::silent(&address(2)));
    hall[first].event(Event::start());
    hall.settle();
    assert_eq!(hall[first].events(), [], "one alone, bound, cannot start");
    hall[unbound].connect();
    hall.settle();
    hall[first].event(Event::start());
    hall.settle();
    hall[unbound].event(Event::start());
    hall.settle();
    let started = [Event::joined(1, "unbound"), Event::started()];
    assert_eq!(hall[first].events(), started);
    assert_eq!(
        hall[unbound].events(),
        [Event::joined(0, "first"), Event::started()]
    );
}
