//! Section 3.6: games, placement, and the game's own word.

use std::sync::{Arc, Mutex};

use anteroom::engine::{Game, Gone, Refusal, Replies, Time, Verdict};

use super::super::bytes::{Event, Said, frame, kind, login_request, logout, rejected};
use super::super::hall::{Answer, Hall, Told, address};
use super::super::peer::Peer;
use crate::world::PeerId;
use crate::world::pipe::Ending;
use crate::world::seeds::seed;

/// A login of this name, answered.
fn log_in(hall: &mut Hall, name: &str) -> PeerId {
    log_in_from(hall, 9, name)
}

/// The same from another address: one address may try only so often.
fn log_in_from(hall: &mut Hall, host: u8, name: &str) -> PeerId {
    hall.greet(host, &login_request(1, name.as_bytes()))
}

fn started(hall: &Hall, peer: PeerId) -> usize {
    let events = hall[peer].events().iter();
    events.filter(|event| **event == Event::started()).count()
}

#[test]
fn r35_lowest_free_number() {
    let mut hall = Hall::with_games(seed(), 2);
    let guests = [(1, "a"), (2, "b"), (3, "c"), (4, "d"), (5, "e")];
    let peers = guests.map(|(host, name)| log_in_from(&mut hall, host, name));
    let numbers = peers.map(|peer| hall[peer].player());
    assert_eq!(numbers, [0, 1, 2, 3, 0]);
    for leaver in [2, 0] {
        hall[peers[leaver]].leave();
        hall.settle();
    }
    for (host, name, number) in [(6, "f", 0), (7, "g", 2), (8, "h", 1)] {
        let peer = log_in_from(&mut hall, host, name);
        assert_eq!(hall[peer].player(), number, "{name}");
    }
}

#[test]
fn r35_held_from_the_question_on_and_free_when_refused() {
    let mut hall = Hall::new(seed());
    hall.shelf.open().answer = Answer::Wait;
    let asked = log_in(&mut hall, "R9");
    let taken = log_in(&mut hall, "R9");
    assert_eq!(hall[taken].rejected(), Some(rejected::NAME_TAKEN));
    let second = log_in(&mut hall, "b");
    let told = hall.told();
    let [
        Told::Connecting { player: first, .. },
        Told::Connecting { player: next, .. },
    ] = told[..]
    else {
        panic!("{told:?}")
    };
    assert_eq!((first.number(), next.number()), (0, 1));
    let tickets = hall.shelf.open().tickets.clone();
    assert_eq!(hall.answer(tickets[0], Verdict::Refuse), Ok(()));
    hall.settle();
    assert_eq!(hall[asked].rejected(), Some(rejected::REFUSED));
    hall.shelf.open().answer = Answer::Admit;
    let again = log_in(&mut hall, "R9");
    assert_eq!(hall[again].player(), 0);
    assert_eq!(hall.answer(tickets[1], Verdict::Admit), Ok(()));
    hall.settle();
    assert_eq!(hall[second].player(), 1);
}

#[test]
fn r36_placement() {
    let mut hall = Hall::with_games(seed(), 3);
    let games = |hall: &Hall| -> Vec<u32> {
        let told = hall.told();
        let connecting = told.iter().filter_map(|told| match told {
            Told::Connecting { player, .. } => Some(player.game()),
            _ => None,
        });
        connecting.collect()
    };
    // The same name three times: three games. Then the first again, for anybody else.
    for (host, name) in ["a", "a", "a", "b", "c", "d", "e", "a"].iter().enumerate() {
        log_in_from(&mut hall, host as u8, name);
    }
    assert_eq!(games(&hall), [0, 1, 2, 0, 0, 0, 1]);
}

#[test]
fn r37_no_place() {
    // Three games, each in one of these conditions, and what a newcomer called "a" is told:
    // worked out here from the document, independently of any order of checks in the code.
    #[derive(Clone, Copy, PartialEq, Debug)]
    struct Condition {
        players: u8,
        running: bool,
        has_name: bool,
    }
    let mut conditions = Vec::new();
    for players in [0, 2, 4] {
        for running in [false, true] {
            for has_name in [false, true] {
                if players > 0 || !running && !has_name {
                    conditions.push(Condition {
                        players,
                        running,
                        has_name,
                    });
                }
            }
        }
    }
    for a in &conditions {
        for b in &conditions {
            for c in &conditions {
                let games = [*a, *b, *c];
                let mut hall = Hall::with_games(seed(), 3);
                let expected = model(&games.map(|it| (it.players, it.running, it.has_name)));
                for (number, game) in games.iter().enumerate() {
                    fill(&mut hall, number as u32, game.players, game.has_name);
                }
                for (number, game) in games.iter().enumerate() {
                    if game.running {
                        hall.act(move |replies| replies.start(number as u32));
                    }
                    empty(&mut hall, number, game.players);
                }
                hall.told();
                let newcomer = log_in(&mut hall, "a");
                let placed = match hall.told()[..] {
                    [Told::Connecting { player, .. }] => Ok((player.game(), player.number())),
                    _ => Err(hall[newcomer].rejected().expect("rejected")),
                };
                assert_eq!(placed, expected, "{games:?}");
            }
        }
    }
}

/// Fills a game up: its players are called by game and number, or "a" if one has to.
fn fill(hall: &mut Hall, game: u32, players: u8, has_name: bool) {
    for number in 0..4 {
        let name = match number {
            0 if has_name && players > 0 => "a".to_owned(),
            _ => format!("{game}.{number}"),
        };
        let host = (game * 4 + number) as u8;
        let peer = hall.add(Peer::silent(&address(host)));
        hall[peer].login(&name);
        hall.for_ms(15);
        assert_eq!(u32::from(hall[peer].player()), number);
    }
}

/// Lets the highest numbers leave until only so many players are there.
fn empty(hall: &mut Hall, game: usize, players: u8) {
    for number in players..4 {
        hall[PeerId(game * 4 + usize::from(number))].leave();
    }
    hall.for_ms(15);
}

/// What the document says of a newcomer called "a", given players, running and has_name of each.
fn model(games: &[(u8, bool, bool)]) -> Result<(u32, u8), u8> {
    let free = |game: &&(u8, bool, bool)| game.0 < 4;
    for (number, game) in games.iter().enumerate() {
        if free(&game) && !game.1 && !game.2 {
            return Ok((number as u32, game.0));
        }
    }
    let any = |running| games.iter().filter(free).any(|game| game.1 == running);
    Err(if any(false) {
        rejected::NAME_TAKEN
    } else if any(true) {
        rejected::GAME_STARTED
    } else {
        rejected::SERVER_FULL
    })
}

#[test]
fn r38_running_until_the_last_session_has_ended() {
    let mut hall = Hall::new(seed());
    let first = hall.enter("a", 1);
    let second = hall.enter("b", 2);
    let unbound = log_in(&mut hall, "c");
    hall[first].event(Event::start());
    hall.settle();
    assert_eq!((started(&hall, first), started(&hall, second)), (1, 1));
    let late = log_in(&mut hall, "d");
    assert_eq!(hall[late].rejected(), Some(rejected::GAME_STARTED));
    hall[first].leave();
    hall[second].leave();
    hall.settle();
    // One that never bound still holds the game.
    let late = log_in(&mut hall, "d");
    assert_eq!(hall[late].rejected(), Some(rejected::GAME_STARTED));
    hall[unbound].leave();
    let next = hall.add(Peer::new(&address(5)));
    hall[next].login("a");
    hall.settle();
    assert!(hall[next].is_bound());
    assert_eq!(hall[next].player(), 0);
    assert_eq!(hall[next].events(), [], "nothing of the old game remains");
}

#[test]
fn r39_start_told_once() {
    let mut hall = Hall::new(seed());
    let first = hall.enter("a", 1);
    let late = log_in(&mut hall, "late");
    let second = hall.enter("b", 2);
    hall[first].event(Event::start());
    hall[second].event(Event::start());
    hall.act(|replies| replies.start(0));
    hall.settle();
    hall.act(|replies| replies.start(0));
    hall.for_ms(2000);
    assert_eq!((started(&hall, first), started(&hall, second)), (1, 1));
    // Who binds after the start hears of everyone there, then of the start.
    hall[late].conduct = super::super::peer::Conduct::HONEST;
    hall[late].connect();
    hall.settle();
    assert_eq!(
        hall[late].events(),
        [
            Event::joined(0, "a"),
            Event::joined(2, "b"),
            Event::started()
        ]
    );
}

#[test]
fn r40_the_game_is_asked_last() {
    let mut hall = Hall::new(seed());
    hall.shelf.open().answer = Answer::Refuse;
    let peer = log_in(&mut hall, "R9");
    assert_eq!(hall[peer].rejected(), Some(rejected::REFUSED));
    assert!(matches!(hall[peer].end, Some((_, Ending::Fin))));
    let told = hall.told();
    let [Told::Connecting { player, name, ip }] = &told[..] else {
        panic!("{told:?}")
    };
    assert_eq!((player.game(), player.number(), &name[..]), (0, 0, "R9"));
    assert_eq!(ip.to_string(), "10.0.0.9");
    // Refused for anything else: it hears of nobody.
    log_in(&mut hall, "");
    hall.greet(9, &login_request(2, b"R9"));
    hall.greet(9, &frame(&[9]));
    assert_eq!(hall.told(), []);
}

#[test]
fn r41_no_answer_is_no() {
    let mut hall = Hall::new(seed());
    hall.shelf.open().answer = Answer::Wait;
    let asked_at = hall.now() + hall.net.stream_delay_ms;
    let peer = log_in(&mut hall, "R9");
    hall.until(5000, |hall| hall[peer].end.is_some());
    let (at, said) = hall[peer].said[0];
    assert_eq!(said, Said::Rejected(rejected::REFUSED));
    let took = at - hall.net.stream_delay_ms - asked_at;
    assert!((4000..4020).contains(&took), "{took} ms");
    let ticket = hall.shelf.open().tickets[0];
    assert_eq!(hall.answer(ticket, Verdict::Admit), Err(Gone));
    // Just in time is in time.
    let peer = log_in(&mut hall, "R9");
    hall.for_ms(3850);
    let ticket = hall.shelf.open().tickets[1];
    assert_eq!(hall.answer(ticket, Verdict::Admit), Ok(()));
    hall.for_ms(5000);
    assert!(hall[peer].accepted().is_some());
    assert_eq!(hall[peer].rejected(), None);
}

#[test]
fn r42_impatience() {
    let ways: [fn(&mut Peer); 5] = [
        |peer| peer.write(&login_request(1, b"R9")),
        |peer| peer.write(&logout(0)),
        |peer| peer.write(&[0, 0]),
        Peer::fin,
        Peer::abort,
    ];
    for (number, way) in ways.iter().enumerate() {
        let mut hall = Hall::new(seed());
        hall.shelf.open().answer = Answer::Wait;
        let peer = log_in(&mut hall, "R9");
        assert_eq!(hall[peer].end, None);
        way(&mut hall[peer]);
        hall.settle();
        assert!(hall[peer].stream.is_empty(), "way {number}");
        assert_eq!(hall.connections(0), (0, 0), "way {number}");
        let ticket = hall.shelf.open().tickets[0];
        assert_eq!(hall.answer(ticket, Verdict::Admit), Err(Gone));
        // The seat is free, and the answer did not reach who has it now.
        let next = log_in(&mut hall, "R9");
        assert_eq!(hall.answer(ticket, Verdict::Admit), Err(Gone));
        hall.settle();
        assert!(hall[next].stream.is_empty(), "way {number}");
    }
}

#[test]
fn r43_never_bound_never_heard_of() {
    let mut hall = Hall::new(seed());
    let peer = log_in(&mut hall, "R9");
    hall[peer].leave();
    hall.settle();
    let peer = log_in(&mut hall, "R9");
    hall.for_ms(11_000);
    assert!(hall[peer].end.is_some());
    let told = hall.told();
    assert!(matches!(
        told[..],
        [Told::Connecting { .. }, Told::Connecting { .. }]
    ));
    // Each that binds joins once and leaves once, in whatever way.
    let ways: [fn(&mut Peer); 4] = [Peer::leave, Peer::abort, Peer::fall_silent, |peer| {
        peer.send(99, &[]);
        peer.send(99, &[]);
        peer.leave();
    }];
    for way in ways {
        let peer = hall.enter("R9", 1);
        way(&mut hall[peer]);
        hall.for_ms(11_000);
        let told = hall.told();
        let [
            Told::Connecting { player, .. },
            Told::Joined { player: joined, .. },
            Told::Left { player: left, .. },
        ] = told[..]
        else {
            panic!("{told:?}")
        };
        assert_eq!((player, joined), (joined, left));
    }
}

#[test]
fn r44_handles_go_stale() {
    let mut hall = Hall::new(seed());
    let old = hall.enter("R9", 1);
    let stale = hall.handle("R9");
    hall[old].leave();
    hall.settle();
    let new = hall.enter("R9", 1);
    hall.settle();
    let fresh = hall.handle("R9");
    assert_eq!(
        (stale.game(), stale.number()),
        (fresh.game(), fresh.number())
    );
    assert_ne!(stale, fresh);
    let results = hall.act(move |replies| {
        let sent = replies.send(stale, &[b"x"]);
        let said = replies.chat(stale, 0, "x");
        let custom = replies.custom(stale, &[b"x"]);
        assert_eq!(replies.kick(stale), Err(Gone));
        [sent, said, custom]
    });
    assert_eq!(results, [Err(Refusal::Gone); 3]);
    hall.settle();
    assert!(hall[new].is_bound());
    assert_eq!(hall[new].events(), []);
    assert_eq!(hall[new].count(kind::DATA), 0);
    // A handle of somebody who has not joined yet does nothing either, nor a ticket used twice.
    log_in(&mut hall, "late");
    let told = hall.told();
    let Some(Told::Connecting { player, .. }) = told.last().cloned() else {
        panic!("{told:?}")
    };
    assert_eq!(hall.act(move |replies| replies.kick(player)), Err(Gone));
    let tickets = hall.shelf.open().tickets.clone();
    for ticket in tickets {
        assert_eq!(hall.answer(ticket, Verdict::Refuse), Err(Gone));
    }
    assert!(hall[new].is_bound());
}

#[test]
fn r44_a_handle_of_another_service_is_a_strangers() {
    let mut hall = Hall::new(seed());
    let mut other = Hall::with(seed(), |settings| settings.service += 1);
    hall.enter("R9", 1);
    other.enter("R9", 1);
    let (own, foreign) = (hall.handle("R9"), other.handle("R9"));
    let ticket = other.shelf.open().tickets[0];
    assert_eq!(hall.act(move |replies| replies.kick(foreign)), Err(Gone));
    assert_eq!(hall.answer(ticket, Verdict::Admit), Err(Gone));
    assert_eq!(hall.act(move |replies| replies.kick(own)), Ok(()));
}

#[test]
fn r44_handles_of_either_version_go_stale_however_it_ended() {
    let ways: [fn(&mut Hall, PeerId); 4] = [
        |hall, peer| hall[peer].leave(),
        |hall, peer| drop(hall[peer].send(99, &[])),
        |hall, peer| {
            hall[peer].die();
            hall.for_ms(11_000);
        },
        |hall, _| {
            let player = hall.handle("R9");
            assert_eq!(hall.act(move |replies| replies.kick(player)), Ok(()));
        },
    ];
    for way in ways {
        for (old, new) in [(1, 2), (2, 1), (2, 2)] {
            let mut hall = Hall::new(seed());
            let enter = |hall: &mut Hall, version: u8, host: u8| match version {
                1 => hall.enter("R9", host),
                _ => hall.enter_2("R9", host),
            };
            let gone = enter(&mut hall, old, 1);
            let stale = hall.handle("R9");
            hall.settle();
            way(&mut hall, gone);
            hall.settle();
            let results = hall.act(move |replies| {
                assert_eq!(replies.kick(stale), Err(Gone));
                replies.send(stale, &[b"to nobody"])
            });
            assert_eq!(results, Err(Refusal::Gone), "when nobody has its number");
            let heir = enter(&mut hall, new, 2);
            hall.settle();
            assert_eq!(hall[heir].player(), stale.number());
            let results = hall.act(move |replies| {
                assert_eq!(replies.kick(stale), Err(Gone));
                let said = replies.chat(stale, 0, "x");
                [
                    replies.send(stale, &[b"x"]),
                    said,
                    replies.custom(stale, &[b"x"]),
                ]
            });
            assert_eq!(results, [Err(Refusal::Gone); 3]);
            hall.settle();
            assert!(hall[heir].is_bound());
            assert_eq!(hall[heir].events(), []);
            assert_eq!(hall[heir].count(kind::DATA), 0);
            let tickets = hall.shelf.open().tickets.clone();
            for ticket in tickets {
                assert_eq!(hall.answer(ticket, Verdict::Refuse), Err(Gone));
            }
        }
    }
}

#[test]
fn r44_the_ticket_of_a_hello_goes_stale() {
    let mut hall = Hall::new(seed());
    hall.shelf.open().answer = Answer::Wait;
    let peer = super::knock(&mut hall, &address(1), b"", b"R9");
    let ticket = hall.shelf.open().tickets[0];
    hall.for_ms(4100);
    assert_eq!(hall[peer].rejected(), Some(rejected::REFUSED));
    assert_eq!(hall.answer(ticket, Verdict::Admit), Err(Gone));
    // Somebody else waits in its place, with its name and from its endpoint.
    hall[peer].say_hello();
    hall.settle();
    assert_eq!(hall.answer(ticket, Verdict::Admit), Err(Gone));
    assert!(!hall[peer].is_in());
    let ticket = hall.shelf.open().tickets[1];
    assert_eq!(hall.answer(ticket, Verdict::Admit), Ok(()));
    assert_eq!(hall.answer(ticket, Verdict::Admit), Err(Gone));
    hall.settle();
    assert!(hall[peer].is_in());
}

/// A game that wants to be woken every 50 ms, and forgets once to say when next.
struct Clockwork {
    due: Time,
    stubborn: bool,
    ticks: Arc<Mutex<Vec<u64>>>,
}

impl Game for Clockwork {
    fn event(&mut self, _now: Time, _event: anteroom::engine::Event<'_>, _out: &mut dyn Replies) {}

    fn wake(&self) -> Option<Time> {
        Some(self.due)
    }

    fn tick(&mut self, now: Time, _out: &mut dyn Replies) {
        self.ticks.lock().expect("not poisoned").push(now.ms());
        if !self.stubborn {
            self.due = now + 50;
        }
    }
}

#[test]
fn a_game_is_woken_when_it_said_and_cannot_make_the_loop_spin() {
    for (stubborn, count) in [(false, 20), (true, 1000)] {
        let ticks = Arc::new(Mutex::new(Vec::new()));
        let game = Clockwork {
            due: Time::from_ms(1_000_050),
            stubborn,
            ticks: Arc::clone(&ticks),
        };
        let mut hall = Hall::with_game(seed(), Box::new(game));
        assert_eq!(hall.now(), 1_000_000);
        hall.for_ms(1049);
        let ticks = ticks.lock().expect("not poisoned");
        assert_eq!(ticks.first(), Some(&1_000_050));
        assert_eq!(ticks.len(), count);
    }
}
