//! Section 5.7: who vanished does not lock its owner out.

use anteroom::engine::{Gone, Verdict};

use super::super::bytes::{Datagram, Event, kind, left, login_request, rejected};
use super::super::hall::{Answer, Hall, SERVICE, Told};
use super::super::peer::Peer;
use super::knock;
use crate::world::PeerId;
use crate::world::seeds::seed;

/// More than a ghost is silent at least.
pub(super) const GHOSTLY_MS: u64 = 3_100;

/// The first address of a host, or another port of it.
pub(super) fn port(host: u8, port: u16) -> String {
    format!("10.0.0.{host}:{port}")
}

/// A player of either version from this address, alive for a while and then silent; of version 1
/// its connection stands.
pub(super) fn vanished(hall: &mut Hall, version: u8, name: &str, address: &str) -> PeerId {
    let mut peer = Peer::new(address);
    peer.version = version;
    let peer = hall.enter_as(name, peer);
    hall.settle();
    hall[peer].fall_silent();
    peer
}

/// Somebody of either version who wants in: its number, or why not.
pub(super) fn come(hall: &mut Hall, version: u8, name: &str, from: &str) -> Result<u8, u8> {
    let peer = newcomer(hall, version, name, from);
    answered(hall, peer).expect("an answer")
}

pub(super) fn newcomer(hall: &mut Hall, version: u8, name: &str, from: &str) -> PeerId {
    if version == 2 {
        return knock(hall, from, b"", name.as_bytes());
    }
    let peer = hall.add(Peer::silent(from));
    hall[peer].login(name);
    hall.for_ms(22);
    peer
}

pub(super) fn answered(hall: &Hall, peer: PeerId) -> Option<Result<u8, u8>> {
    let peer = &hall[peer];
    let is_in = peer.is_in().then(|| Ok(peer.player()));
    is_in.or_else(|| peer.rejected().map(Err))
}

/// What is in the game beside the ghost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scene {
    Open,
    Full,
    Running,
}

#[test]
fn r95_a_ghost_of_the_same_name() {
    for scene in [Scene::Open, Scene::Full, Scene::Running] {
        for (old, new) in [(1, 1), (1, 2), (2, 1), (2, 2)] {
            for from in [port(1, 5000), port(1, 6000)] {
                if (old, new, &from) == (1, 2, &port(1, 5000)) {
                    // From an endpoint of version 1 no hello is heard (R118).
                    continue;
                }
                let mut hall = Hall::new(seed());
                let witness = hall.enter("witness", 9);
                let ghost = vanished(&mut hall, old, "R9", &port(1, 5000));
                let more = if scene == Scene::Full { 2 } else { 0 };
                for host in 2..2 + more {
                    hall.enter(&format!("p{host}"), host);
                }
                if scene == Scene::Running {
                    hall[witness].event(Event::start());
                }
                hall.for_ms(4000);
                hall.told();
                let number = come(&mut hall, new, "R9", &from);
                assert_eq!(number, Ok(1), "{scene:?} from {old} to {new} at {from}");
                hall.settle();
                assert_eq!(hall.count("ghosts-ended"), 1);
                assert_eq!(hall.count("ended-timed-out"), 1);
                // Where the newcomer is nobody hears the bye.
                let hears = old == 1 || from == port(1, 6000);
                let said = hall[ghost].logged_out();
                assert_eq!(said, hears.then_some(left::TIMED_OUT));
                let events = hall[witness].events();
                assert!(events.contains(&Event::left(1, left::TIMED_OUT)));
                let joins = events.iter().filter(|it| **it == Event::joined(1, "R9"));
                assert_eq!(joins.count(), if new == 2 { 2 } else { 1 });
                let told = hall.told();
                let Some(Told::Connecting { player, .. }) = told.first() else {
                    panic!("{told:?}")
                };
                assert_eq!(player.number(), 1);
            }
        }
    }
}

#[test]
fn r95_before_placement() {
    // There is room elsewhere, and lower numbers are free: it takes its own.
    let mut hall = Hall::with_games(seed(), 3);
    let others: Vec<PeerId> = (2..6)
        .map(|host| hall.enter(&format!("p{host}"), host))
        .collect();
    let first = hall.enter_2("first", 7);
    vanished(&mut hall, 2, "R9", &port(1, 5000));
    hall[others[0]].leave();
    hall[first].leave();
    hall.for_ms(GHOSTLY_MS);
    hall.told();
    assert_eq!(come(&mut hall, 2, "R9", &port(1, 6000)), Ok(1));
    let told = hall.told();
    let [Told::Connecting { player, .. }, ..] = told[..] else {
        panic!("{told:?}")
    };
    assert_eq!((player.game(), player.number()), (1, 1));
}

#[test]
fn r95_in_the_game_it_wants() {
    let mut hall = Hall::with_games(seed(), 3);
    vanished(&mut hall, 2, "R9", &port(1, 5000));
    hall.for_ms(GHOSTLY_MS);
    // Another game has no ghost of it: this one stays.
    let elsewhere = knock(&mut hall, &port(1, 6000), b"2", b"R9");
    assert!(hall[elsewhere].is_in());
    assert_eq!(hall.count("ghosts-ended"), 0);
    let back = knock(&mut hall, &port(1, 7000), b"1", b"R9");
    assert!(hall[back].is_in());
    assert_eq!(hall.count("ghosts-ended"), 1);
    assert_eq!(hall.count("sessions"), 2);
}

#[test]
fn r95_the_last_of_a_running_game() {
    // The game is open again, and its owner enters it without a start.
    let mut hall = Hall::new(seed());
    let other = hall.enter("other", 2);
    vanished(&mut hall, 2, "R9", &port(1, 5000));
    hall[other].event(Event::start());
    hall.settle();
    hall[other].leave();
    hall.for_ms(4000);
    let back = knock(&mut hall, &port(1, 6000), b"", b"R9");
    hall.settle();
    assert_eq!(hall[back].player(), 1);
    assert_eq!(hall[back].events(), []);
    let next = hall.enter("next", 3);
    hall.settle();
    assert_eq!(hall[next].events(), [Event::joined(1, "R9")]);
}

/// Sessions of one address in several games, entered one by one: "g0", "g1" and so on.
pub(super) fn family(hall: &mut Hall, count: u16) -> Vec<PeerId> {
    let enter = |number: u16| {
        let address = port(1, 5000 + number);
        let peer = hall.enter_as(&format!("g{number}"), Peer::v2(&address));
        hall.settle();
        peer
    };
    (0..count).map(enter).collect()
}

#[test]
fn r96_a_ghost_in_the_limit() {
    for version in [1, 2] {
        let mut hall = Hall::with_games(seed(), 3);
        let family = family(&mut hall, 5);
        assert_eq!(
            come(&mut hall, version, "new", &port(1, 6000)),
            Err(rejected::TOO_MANY)
        );
        hall.for_ms(4000);
        // Two are ghosts: g3 first, g1 later.
        hall[family[3]].fall_silent();
        hall.for_ms(1500);
        hall[family[1]].fall_silent();
        hall.for_ms(4000);
        hall.told();
        assert_eq!(come(&mut hall, version, "new", &port(1, 6000)), Ok(1));
        let told = hall.told();
        let left: Vec<_> = told
            .iter()
            .filter(|it| matches!(it, Told::Left { .. }))
            .collect();
        let [Told::Left { player, reason: 2 }] = left[..] else {
            panic!("{told:?}")
        };
        assert_eq!((player.game(), player.number()), (0, 3), "g3");
        assert_eq!(hall.count("sessions"), 5);
        assert_eq!(hall.count("ghosts-ended"), 1);
        // The others of it play on, and one more takes the other ghost.
        for member in [0, 2, 4] {
            assert!(hall[family[member]].is_bound());
        }
        assert_eq!(come(&mut hall, version, "newer", &port(1, 7000)), Ok(3));
        assert_eq!(hall.count("ghosts-ended"), 2);
        assert_eq!(
            come(&mut hall, version, "newest", &port(1, 8000)),
            Err(rejected::TOO_MANY)
        );
    }
}

#[test]
fn r96_no_other_limit() {
    // The attempts are used up: no ghost ends for that.
    let mut hall = Hall::with_games(seed(), 3);
    hall.shelf.open().answer = Answer::Refuse;
    for _ in 0..4 {
        assert_eq!(
            come(&mut hall, 2, "x", &port(1, 6000)),
            Err(rejected::REFUSED)
        );
    }
    hall.shelf.open().answer = Answer::Admit;
    vanished(&mut hall, 2, "R9", &port(1, 5000));
    hall.for_ms(900);
    hall.shelf.open().answer = Answer::Refuse;
    assert_eq!(
        come(&mut hall, 2, "x", &port(1, 6000)),
        Err(rejected::TOO_MANY)
    );
    hall.for_ms(GHOSTLY_MS);
    for _ in 0..2 {
        assert_eq!(
            come(&mut hall, 2, "x", &port(1, 6000)),
            Err(rejected::REFUSED)
        );
    }
    assert_eq!(
        come(&mut hall, 2, "x", &port(1, 6000)),
        Err(rejected::TOO_MANY)
    );
    assert_eq!(
        come(&mut hall, 2, "R9", &port(1, 6000)),
        Err(rejected::TOO_MANY)
    );
    assert_eq!((hall.count("sessions"), hall.count("ghosts-ended")), (1, 0));
    // Another address at its limit has no use for this one's ghost.
    let mut hall = Hall::with_games(seed(), 3);
    vanished(&mut hall, 2, "R9", "10.0.0.2:5000");
    family(&mut hall, 5);
    hall.for_ms(GHOSTLY_MS);
    assert_eq!(
        come(&mut hall, 2, "new", &port(1, 6000)),
        Err(rejected::TOO_MANY)
    );
    assert_eq!(hall.count("ghosts-ended"), 0);
}

#[test]
fn r97_a_ghost_at_the_endpoint() {
    // Under its own name it is let in where it was; under another it is as new as anybody.
    for (name, number) in [("R9", 1), ("other", 2)] {
        let mut hall = Hall::new(seed());
        let witness = hall.enter("witness", 9);
        let ghost = vanished(&mut hall, 2, "R9", &port(1, 5000));
        hall.for_ms(GHOSTLY_MS);
        let secret = hall[ghost].secret();
        let peer = newcomer(&mut hall, 2, name, &port(1, 5000));
        assert_eq!(answered(&hall, peer), Some(Ok(number)));
        assert_ne!(hall[peer].secret(), secret);
        hall.settle();
        assert_eq!(hall[witness].events().len(), 3, "joined, left, joined");
        assert_eq!(hall.count("ghosts-ended"), 1);
        assert_eq!(hall.count("sessions"), 2);
        // The old secret is nothing any more.
        hall[peer].raw(
            &Datagram::secret(kind::DATA, secret, b"x")
                .sequence(90)
                .bytes(),
        );
        hall.settle();
        assert_eq!(hall.count("ignored-wrong-token"), 1);
    }
    // In a full game there is no number for another name, and the ghost stays.
    let mut hall = Hall::new(seed());
    vanished(&mut hall, 2, "R9", &port(1, 5000));
    for host in 2..5 {
        hall.enter(&format!("p{host}"), host);
    }
    hall.for_ms(GHOSTLY_MS);
    assert_eq!(
        come(&mut hall, 2, "other", &port(1, 5000)),
        Err(rejected::SERVER_FULL)
    );
    assert_eq!(hall.count("ghosts-ended"), 0);
    assert_eq!(come(&mut hall, 2, "R9", &port(1, 5000)), Ok(0));
}

#[test]
fn r97_who_speaks_is_no_ghost() {
    let mut hall = Hall::new(seed());
    let peer = hall.enter_2_silent("R9", 1);
    let secret = hall[peer].secret();
    for _ in 0..4 {
        hall[peer].send(kind::ACK, &[]);
        hall.for_ms(2990);
        // It is the session's own hello again.
        let again = Datagram::hello(hall[peer].cookie(), b"", b"other");
        hall[peer].raw(&again.bytes());
        hall.for_ms(10);
        hall[peer].hello("R9");
        hall.for_ms(10);
    }
    assert_eq!(hall[peer].secret(), secret);
    assert_eq!((hall.count("logins"), hall.count("ghosts-ended")), (1, 0));
}

/// A ghost and somebody who comes in its place, about whom the game is asked.
fn asked(version: u8, name: &str, from: &str) -> (Hall, PeerId, PeerId) {
    let mut hall = Hall::with_games(seed(), 2);
    let ghost = vanished(&mut hall, 2, "R9", &port(1, 5000));
    hall.for_ms(GHOSTLY_MS);
    hall.shelf.open().answer = Answer::Wait;
    let newcomer = newcomer(&mut hall, version, name, from);
    assert_eq!(answered(&hall, newcomer), None);
    assert_eq!(hall.count("sessions"), 2);
    (hall, ghost, newcomer)
}

fn decide(hall: &mut Hall, verdict: Verdict) -> Result<(), Gone> {
    let ticket = *hall.shelf.open().tickets.last().expect("a question");
    let answered = hall.answer(ticket, verdict);
    hall.for_ms(11);
    answered
}

#[test]
fn r98_a_ghost_ends_last() {
    for version in [1, 2] {
        // The game's own refusal keeps the ghost.
        let (mut hall, ghost, new) = asked(version, "R9", &port(1, 6000));
        assert_eq!(decide(&mut hall, Verdict::Refuse), Ok(()));
        assert_eq!(answered(&hall, new), Some(Err(rejected::REFUSED)));
        assert_eq!((hall.count("sessions"), hall.count("ghosts-ended")), (1, 0));
        hall[ghost].send(kind::DATA, b"alive");
        hall.for_ms(9000);
        assert_eq!(hall.count("sessions"), 1);

        // It speaks while the game is asked, and is a ghost no more.
        let (mut hall, ghost, new) = asked(version, "R9", &port(1, 6000));
        hall[ghost].send(kind::DATA, b"alive");
        hall.settle();
        assert_eq!(decide(&mut hall, Verdict::Admit), Ok(()));
        assert_eq!(answered(&hall, new), Some(Err(rejected::NAME_TAKEN)));
        assert_eq!((hall.count("sessions"), hall.count("ghosts-ended")), (1, 0));
        hall[ghost].send(kind::DATA, b"still");
        hall.settle();
        assert_eq!(hall.count("ignored-unbound"), 0);
    }
}

#[test]
fn r98_in_the_limit_and_at_the_endpoint() {
    let mut hall = Hall::with_games(seed(), 3);
    let family = family(&mut hall, 5);
    hall[family[2]].fall_silent();
    hall.for_ms(8000);
    hall.shelf.open().answer = Answer::Wait;
    let new = newcomer(&mut hall, 2, "new", &port(1, 6000));
    assert_eq!(answered(&hall, new), None);
    hall[family[2]].send(kind::DATA, b"alive");
    hall.settle();
    assert_eq!(decide(&mut hall, Verdict::Admit), Ok(()));
    assert_eq!(answered(&hall, new), Some(Err(rejected::TOO_MANY)));
    assert_eq!(hall.count("sessions"), 5);

    // At the ghost's endpoint: the session that was there goes on there.
    for (name, why) in [("R9", rejected::NAME_TAKEN), ("new", rejected::TOO_MANY)] {
        let (mut hall, ghost, new) = asked(2, name, &port(1, 5000));
        let data = hall[ghost].talk_mut().datagram(kind::DATA, b"alive");
        hall[new].raw(&data.bytes());
        hall.settle();
        assert_eq!(decide(&mut hall, Verdict::Admit), Ok(()));
        assert_eq!(answered(&hall, new), Some(Err(why)));
        let more = hall[ghost].talk_mut().datagram(kind::DATA, b"more");
        hall[new].raw(&more.bytes());
        hall.settle();
        assert_eq!(
            hall.count("ignored-wrong-token") + hall.count("ignored-unbound"),
            0
        );
        assert_eq!((hall.count("sessions"), hall.count("ghosts-ended")), (1, 0));
    }
}

#[test]
fn r98_a_ghost_that_ended_by_itself_stands_in_nobodys_way() {
    for from in [port(1, 5000), port(1, 6000)] {
        for version in [1, 2] {
            let mut hall = Hall::new(seed());
            for host in 2..5 {
                hall.enter(&format!("p{host}"), host);
            }
            vanished(&mut hall, 2, "R9", &port(1, 5000));
            hall.for_ms(8000);
            hall.shelf.open().answer = Answer::Wait;
            let new = newcomer(&mut hall, version, "R9", &from);
            hall.until(3000, |world| world.stat(SERVICE, "ended-timed-out") == 1);
            // Its number and name are the newcomer's, though others would like to have them.
            let thief = newcomer(&mut hall, 1, "R9", "10.0.0.77:5000");
            assert_eq!(answered(&hall, thief), Some(Err(rejected::SERVER_FULL)));
            if version == 2 {
                hall[new].say_hello();
                hall.settle();
                assert_eq!(hall.count("ignored-waiting"), 1);
            }
            assert_eq!(hall.shelf.open().tickets.len(), 5);
            assert_eq!(decide(&mut hall, Verdict::Admit), Ok(()));
            assert_eq!(answered(&hall, new), Some(Ok(3)));
            assert_eq!(hall.count("ghosts-ended"), 0);
            if version == 2 {
                hall[new].send(kind::DATA, b"x");
                hall.settle();
                assert_eq!(hall.count("ignored-unbound"), 0);
            }
        }
    }
}

#[test]
fn r98_a_ghost_has_one_heir() {
    let mut hall = Hall::new(seed());
    vanished(&mut hall, 2, "R9", &port(1, 5000));
    hall.for_ms(GHOSTLY_MS);
    hall.shelf.open().answer = Answer::Wait;
    newcomer(&mut hall, 2, "R9", &port(1, 6000));
    for version in [1, 2] {
        let second = newcomer(&mut hall, version, "R9", &port(1, 7000));
        assert_eq!(answered(&hall, second), Some(Err(rejected::NAME_TAKEN)));
    }
    // At its endpoint a hello waits with it.
    knock(&mut hall, &port(1, 5000), b"", b"new");
    assert_eq!(hall.count("ignored-waiting"), 1);
    assert_eq!(decide(&mut hall, Verdict::Admit), Ok(()));
    assert_eq!(hall.count("sessions"), 1);
}

#[test]
fn r98_each_is_an_attempt() {
    let mut hall = Hall::new(seed());
    vanished(&mut hall, 2, "R9", &port(1, 5000));
    hall.for_ms(9000);
    hall.shelf.open().answer = Answer::Refuse;
    for round in 0..6 {
        let expected = if round < 5 {
            rejected::REFUSED
        } else {
            rejected::TOO_MANY
        };
        let from = port(1, 6000 + round);
        assert_eq!(
            come(&mut hall, 2, "R9", &from),
            Err(expected),
            "round {round}"
        );
    }
}

#[test]
fn r99_nobody_else() {
    // From another address a name evicts nobody, however silent it is.
    for version in [1, 2] {
        for silent_ms in [0, 2000, 4000, 9000] {
            let mut hall = Hall::new(seed());
            vanished(&mut hall, 2, "R9", &port(1, 5000));
            hall.for_ms(silent_ms);
            assert_eq!(
                come(&mut hall, version, "R9", "10.0.0.2:5000"),
                Err(rejected::NAME_TAKEN)
            );
            assert_eq!(hall.count("sessions"), 1);
        }
    }
    // From its own none is ended who spoke in the last 3 s.
    for (silent_ms, is_ended) in [(2000, false), (3000, false), (3001, true)] {
        let mut hall = Hall::new(seed());
        let peer = hall.enter_2_silent("R9", 1);
        let new = hall.add(Peer::v2_silent(&port(1, 6000)));
        hall[new].hello("R9");
        hall.settle();
        hall[peer].send(kind::ACK, &[]);
        hall.for_ms(silent_ms);
        hall[new].say_hello();
        hall.for_ms(20);
        let expected = if is_ended {
            Ok(0)
        } else {
            Err(rejected::NAME_TAKEN)
        };
        assert_eq!(answered(&hall, new), Some(expected), "{silent_ms} ms");
    }
    // An unbound login is no ghost, nor is one about whom the game is asked.
    let mut hall = Hall::new(seed());
    hall.greet(1, &login_request(1, b"R9"));
    hall.for_ms(4000);
    assert_eq!(
        come(&mut hall, 2, "R9", &port(1, 6000)),
        Err(rejected::NAME_TAKEN)
    );
}
