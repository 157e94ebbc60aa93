//! Clients and the service: both ends are ours.

use anteroom::engine::Machine;
use anteroom::protocol::rtyp::wire::{Reason, Reject};
use anteroom::protocol::rtyp::{End, State};

use super::super::hall::server;
use super::party::{Party, SERVICE, drizzle};
use super::{Player, address};
use crate::world::link::Weather;
use crate::world::machine::Shared;
use crate::world::seeds::{seed, seeds};

#[test]
fn four_players_hear_of_each_other_in_one_order_through_bad_weather() {
    seeds(10, |seed| {
        let mut party = Party::new(seed, drizzle());
        for name in ["Leia", "Luke", "Han", "R9"] {
            party.enter(name);
        }
        party.until(20_000, |all| {
            all.iter().all(|it| it.get().count("PlayerJoined") == 3)
        });
        for round in 0..20 {
            for place in 0..4 {
                party.act(place, |client| {
                    client.chat(&format!("{place}: {round}")).expect("room")
                });
                party.act(place, |client| client.custom(&[round; 300]).expect("room"));
            }
            party.world.for_ms(100);
        }
        party.act(2, |client| client.start().expect("room"));
        party.until(120_000, |all| {
            let is_done = |it: &Shared<Player>| {
                let player = it.get();
                let heard = (
                    player.count("Chat"),
                    player.count("Custom"),
                    player.count("GameStarted"),
                );
                heard == (60, 60, 1) && player.client.is_all_acknowledged()
            };
            all.iter().all(is_done)
        });
        // Who said it does not hear it: pairwise, the two that neither said came in one order.
        for (one, other) in [(0, 1), (0, 3), (2, 3)] {
            let foreign = |place: usize| {
                let player = party.players[place].get();
                let told = player.told.iter().map(|(_, notice)| notice.clone());
                let is_common = |notice: &String| {
                    let said_by = |place| notice.starts_with(&format!("Chat {{ player: {place},"));
                    notice.starts_with("Chat") && !said_by(one) && !said_by(other)
                };
                told.filter(is_common).collect::<Vec<String>>()
            };
            assert_eq!(foreign(one), foreign(other), "seed {seed}");
            assert_eq!(foreign(one).len(), 40);
        }
        party.leave(1);
        party.until(20_000, |all| {
            [0, 2, 3].iter().all(|it| {
                all[*it]
                    .get()
                    .count("PlayerLeft { player: 1, reason: Left }")
                    == 1
            })
        });
        assert!(!party.players[0].get().client.is_present(1));
        assert!(party.players[0].get().client.is_present(2));
    });
}

#[test]
fn data_goes_to_everyone_else_with_the_senders_number_in_front() {
    let mut party = Party::new(seed(), Weather::default());
    for name in ["Leia", "Luke", "Han"] {
        party.enter(name);
    }
    party.send(1, b"xy");
    party.world.for_ms(50);
    let data: Vec<usize> = party
        .players
        .iter()
        .map(|it| it.get().count("Data { bytes: [1, 120, 121] }"))
        .collect();
    assert_eq!(data, [1, 0, 1]);
}

#[test]
fn every_refusal_of_the_service_arrives_though_it_closes() {
    let mut party = Party::new(seed(), Weather::default());
    let reject = |party: &mut Party, name: &str| {
        let place = party.dial(name);
        party.world.for_ms(100);
        party.state(place)
    };
    party.enter("Leia");
    let taken = State::Ended(End::Rejected(Reject::NameTaken.code()));
    assert_eq!(reject(&mut party, "Leia"), taken);
    let luke = party.enter("Luke");
    party.act(0, |client| client.start().expect("room"));
    party.world.for_ms(100);
    let started = State::Ended(End::Rejected(Reject::GameStarted.code()));
    assert_eq!(reject(&mut party, "Han"), started);
    party.leave(0);
    party.leave(luke);
    party.world.for_ms(100);
    for name in ["a", "b", "c", "d"] {
        party.enter(name);
    }
    let full = State::Ended(End::Rejected(Reject::ServerFull.code()));
    assert_eq!(reject(&mut party, "e"), full);
}

#[test]
fn a_service_that_stops_says_so_to_everyone() {
    let mut party = Party::new(seed(), Weather::default());
    for name in ["Leia", "Luke"] {
        party.enter(name);
    }
    party.world.stop(SERVICE);
    party.world.for_ms(100);
    for place in 0..2 {
        assert_eq!(
            party.state(place),
            State::Ended(End::Logout(Reason::Shutdown))
        );
    }
}

#[test]
fn an_idle_session_lives_and_measures_its_round_trip() {
    let weather = Weather {
        loss: 100,
        ..Weather::clear(30)
    };
    let mut party = Party::new(seed(), weather);
    party.enter("R9");
    party.world.for_ms(3_600_000);
    assert_eq!(party.state(0), State::Playing);
    assert_eq!(party.players[0].get().client.rtt_ms(), Some(60));
    let stats = party.players[0].get().stats();
    assert!(stats.contains(&("ignored-malformed", 0)), "{stats:?}");
}

#[test]
fn a_dead_line_ends_both_ends() {
    let mut party = Party::new(seed(), Weather::default());
    party.enter("R9");
    let own = address("10.0.0.1:5000");
    for (from, to) in [(own, server()), (server(), own)] {
        party.world.net.link(from, to).weather.loss = 1_000;
    }
    party.world.for_ms(11_000);
    assert_eq!(party.state(0), State::Ended(End::Logout(Reason::TimedOut)));
    assert_eq!(party.world.stat(SERVICE, "sessions"), 0);
}
