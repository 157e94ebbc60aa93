//! Clients of version 2 and the service: both ends are ours.

use anteroom::protocol::rtyp::wire::{Reason, Reject};
use anteroom::protocol::rtyp::{Client, End, State};

use super::super::hall::server;
use super::party::{Party, SERVICE};
use super::{Player, address};
use crate::world::link::Weather;
use crate::world::seeds::{seed, seeds};

/// A third is lost, a third comes twice, and a third out of order.
fn bad() -> Weather {
    Weather {
        loss: 300,
        double: 300,
        reorder: 300,
        reorder_span: 8,
        delay_ms: 40,
        jitter_ms: 20,
    }
}

/// The only bytes of a datagram that a filter lets pass are of other types than this.
fn loses_first(kind: u8) -> impl FnMut(&[u8]) -> bool {
    let mut has_lost = false;
    move |bytes| bytes[5] != kind || std::mem::replace(&mut has_lost, true)
}

#[test]
fn four_players_of_both_versions_hear_of_each_other_through_bad_weather() {
    seeds(10, |seed| {
        let mut party = Party::new(seed, bad());
        for name in ["Leia", "Luke", "Han"] {
            party.enter_by_hello(name);
        }
        party.enter("R9");
        // Who was not heard for 3 s has come twice.
        party.until(60_000, |all| {
            all.iter().all(|it| {
                let client = &it.get().client;
                let others = (0..4).filter(|number| client.is_present(*number));
                others.count() == 3 && client.rtt_ms().is_some()
            })
        });
        for round in 0..20 {
            for place in 0..4 {
                party.act(place, |client| {
                    client.chat(&format!("{place}: {round}")).expect("room");
                    client.custom(&[round; 300]).expect("room");
                });
            }
            party.world.for_ms(100);
        }
        party.act(2, |client| client.start().expect("room"));
        party.until(180_000, |all| {
            all.iter().all(|it| {
                let player = it.get();
                let heard = ["Chat", "Custom", "GameStarted"].map(|it| player.count(it));
                heard == [60, 60, 1] && player.client.is_all_acknowledged()
            })
        });
        party.leave(1);
        // That it left, or, if all three of its farewells are lost, that it timed out.
        party.until(60_000, |all| {
            let left = "PlayerLeft { player: 1, ";
            [0, 2, 3].iter().all(|it| all[*it].get().count(left) > 0)
        });
    });
}

#[test]
fn it_is_in_after_two_round_trips() {
    let mut party = Party::new(seed(), Weather::clear(30));
    let place = party.greet("R9");
    party.world.for_ms(119);
    assert_eq!(party.state(place), State::LoggingIn);
    party.world.for_ms(1);
    assert_eq!(party.state(place), State::Playing);
}

/// The handshake is over when the service has answered the first Ping.
#[test]
fn a_service_that_restarts_within_the_handshake_has_the_player_within_5_s() {
    for ms in 0..150 {
        let mut party = Party::new(seed(), Weather::clear(30));
        let place = party.greet("R9");
        party.world.for_ms(ms);
        party.restart();
        party.until_known(place, 5_000 - ms);
    }
}

#[test]
fn a_service_that_restarts_within_the_handshake_in_bad_weather_has_the_player_too() {
    seeds(50, |seed| {
        let mut party = Party::new(seed, bad());
        let place = party.greet("R9");
        party.world.for_ms(seed * 7 % 600);
        if party.state(place) == State::LoggingIn {
            party.restart();
        }
        party.until_playing(place, 8_000);
        party.until_known(place, 60_000);
    });
}

#[test]
fn who_is_killed_and_comes_again_from_the_same_port_is_in_at_once() {
    for ms in [0, 100, 1_000, 3_500, 9_900] {
        let mut party = Party::new(seed(), Weather::default());
        party.enter_by_hello("Luke");
        let place = party.enter_by_hello("R9");
        party.world.for_ms(2_000);
        party.cut(address("10.0.0.2:5000"));
        party.world.for_ms(ms);
        let link = |from, to| (from, to);
        for (from, to) in [
            link(address("10.0.0.2:5000"), server()),
            link(server(), address("10.0.0.2:5000")),
        ] {
            party.world.net.link(from, to).weather = Weather::default();
        }
        party.restart_client(place, "R9");
        party.until_playing(place, 100);
        party.until(1_000, |all| all[0].get().count("PlayerJoined") == 2);
        assert_eq!(party.players[0].get().count("PlayerLeft"), 1);
        party.world.for_ms(20_000);
        assert_eq!(party.state(place), State::Playing, "after {ms} ms");
        assert_eq!(party.players[place].get().count("Accepted"), 1);
    }
}

#[test]
fn who_is_killed_and_comes_again_from_the_same_port_in_bad_weather_is_in_within_8_s() {
    seeds(30, |seed| {
        let mut party = Party::new(seed, bad());
        let place = party.greet("R9");
        party.until_known(place, 60_000);
        party.world.for_ms(seed * 97 % 3_000);
        party.restart_client(place, "R9");
        party.until_playing(place, 8_000);
        party.until_known(place, 60_000);
        party.world.for_ms(30_000);
        party.until_known(place, 0);
    });
}

#[test]
fn who_is_killed_and_comes_again_from_another_port_is_in_after_4_s() {
    let mut party = Party::new(seed(), Weather::default());
    party.enter_by_hello("R9");
    party.world.for_ms(2_000);
    party.cut(address("10.0.0.1:5000"));
    party.world.for_ms(1_000);
    let again = address("10.0.0.1:5001");
    let early = party.greet_from("R9", again);
    party.world.for_ms(100);
    let taken = End::Rejected(Reject::NameTaken.code());
    assert_eq!(party.state(early), State::Ended(taken));
    party.world.for_ms(2_900);
    let place = party.greet_from("R9", again);
    party.until_playing(place, 100);
    assert_eq!(party.world.stat(SERVICE, "sessions"), 1);
}

#[test]
fn a_player_whose_router_moves_it_keeps_its_session() {
    let mut party = Party::new(seed(), Weather::default());
    party.enter_by_hello("Luke");
    let place = party.enter_by_hello("R9");
    party.world.for_ms(1_000);
    for port in 6_000..6_005 {
        let own = address(&format!("10.0.0.2:{port}"));
        party.world.readdress(place + 1, 0, own);
        party.world.for_ms(4_000);
        party.act(0, |client| client.chat("from Luke").expect("room"));
        party.act(place, |client| client.chat("from R9").expect("room"));
        party.world.for_ms(1_000);
    }
    for place in [0, place] {
        let player = party.players[place].get();
        assert_eq!(player.client.state(), State::Playing);
        assert_eq!(player.count("Chat"), 5);
        assert_eq!(player.count("PlayerLeft") + player.count("Ended"), 0);
        assert_eq!(player.count("Accepted"), 1);
    }
    assert_eq!(party.world.stat(SERVICE, "moves"), 5);
}

#[test]
fn every_refusal_of_the_service_arrives() {
    let mut party = Party::new(seed(), Weather::default());
    let reject = |party: &mut Party, name: &str| {
        let place = party.greet(name);
        party.world.for_ms(100);
        party.state(place)
    };
    let rejected = |reason: Reject| State::Ended(End::Rejected(reason.code()));
    party.enter_by_hello("Leia");
    assert_eq!(reject(&mut party, "Leia"), rejected(Reject::NameTaken));
    let luke = party.enter_by_hello("Luke");
    party.act(0, |client| client.start().expect("room"));
    party.world.for_ms(100);
    assert_eq!(reject(&mut party, "Han"), rejected(Reject::GameStarted));
    party.leave(0);
    party.leave(luke);
    party.world.for_ms(100);
    for name in ["a", "b", "c", "d"] {
        party.enter_by_hello(name);
    }
    assert_eq!(reject(&mut party, "e"), rejected(Reject::ServerFull));
}

#[test]
fn a_room_is_entered_by_its_name() {
    let mut party = Party::new(seed(), Weather::default());
    let hello = |room| Client::v2(server(), "R9", room).expect("a good hello");
    let places = ["1", "2"].map(|room| {
        let place = party.greet("R9");
        *party.players[place].get() = Player::of(hello(room));
        party.world.for_ms(100);
        place
    });
    assert_eq!(party.state(places[0]), State::Playing);
    let nowhere = End::Rejected(Reject::NoSuchGame.code());
    assert_eq!(party.state(places[1]), State::Ended(nowhere));
}

#[test]
fn farewells_arrive_though_the_first_is_lost() {
    let mut party = Party::new(seed(), Weather::default());
    party.enter_by_hello("Luke");
    party.enter_by_hello("R9");
    let own = address("10.0.0.2:5000");
    party.world.net.link(own, server()).filter = Some(Box::new(loses_first(20)));
    party.leave(1);
    party.world.for_ms(120);
    let left = "PlayerLeft { player: 1, reason: Left }";
    assert_eq!(party.players[0].get().count(left), 1);
    let own = address("10.0.0.1:5000");
    party.world.net.link(server(), own).filter = Some(Box::new(loses_first(21)));
    party.world.stop(SERVICE);
    party.world.for_ms(120);
    let shutdown = End::Logout(Reason::Shutdown);
    assert_eq!(party.state(0), State::Ended(shutdown));
}

#[test]
fn an_idle_session_lives_and_measures_its_round_trip() {
    let weather = Weather {
        loss: 100,
        ..Weather::clear(30)
    };
    let mut party = Party::new(seed(), weather);
    party.enter_by_hello("R9");
    party.world.for_ms(3_600_000);
    assert_eq!(party.state(0), State::Playing);
    let player = party.players[0].get();
    assert_eq!(player.client.rtt_ms(), Some(60));
    assert_eq!(player.count("Accepted"), 1);
}

#[test]
fn a_dead_line_ends_both_ends() {
    let mut party = Party::new(seed(), Weather::default());
    let place = party.greet("R9");
    party.until_known(place, 5_000);
    party.cut(address("10.0.0.1:5000"));
    party.world.for_ms(11_000);
    assert_eq!(party.world.stat(SERVICE, "sessions"), 0);
    assert_eq!(party.state(0), State::Playing);
    party.world.for_ms(20_000);
    assert_eq!(party.state(0), State::Ended(End::Silent));
}
