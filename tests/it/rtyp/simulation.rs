//! Long and rough conversations with the service: bad links, long silences, numbers that wrap.

use std::collections::HashMap;

use super::bytes::{Event, event, kind, left, login_request};
use super::hall::{Hall, SERVICE, Told, address, server};
use super::peer::{Conduct, Peer};
use crate::world::PeerId;
use crate::world::link::Weather;
use crate::world::seeds::{seed, seeds};

/// Changes the weather for one player, both ways.
fn set_weather(hall: &mut Hall, peer: PeerId, weather: Weather) {
    let udp = hall[peer].udp;
    hall.net.link(udp, server()).weather = weather;
    hall.net.link(server(), udp).weather = weather;
}

/// An event that shows its number.
fn numbered(number: u32) -> Event {
    Event::new(event::CUSTOM, &number.to_le_bytes())
}

/// The numbers of the events that a player heard from the one with this number.
fn heard_from(hall: &Hall, peer: PeerId, speaker: u8) -> Vec<u32> {
    let events = hall[peer].events().iter();
    let customs = events.filter(|it| it.kind == event::CUSTOM && it.body[0] == speaker);
    customs
        .map(|it| u32::from_le_bytes(it.body[1..].try_into().expect("four bytes")))
        .collect()
}

fn up_to(count: u32) -> Vec<u32> {
    (0..count).collect()
}

#[test]
fn numbers_wrap_both_ways_on_a_link_that_loses_a_fifth() {
    let mut hall = Hall::new(seed());
    hall.net.weather = Weather {
        loss: 200,
        ..Weather::clear(20)
    };
    let pinger = hall.enter_as("pinger", Peer::new(&address(1)).first(30_000));
    let other = hall.enter_as("other", Peer::new(&address(2)).first(65_500));
    // Every Ping that arrives draws a Pong: the server's numbers wrap too.
    let rounds = 1100;
    for round in 0..rounds {
        for _ in 0..80 {
            hall[pinger].ping();
        }
        hall[pinger].event(numbered(round));
        hall[other].event(numbered(round));
        hall.for_ms(200);
    }
    hall.for_ms(5000);
    let newest = hall[pinger].talk().log.len();
    assert!(hall[pinger].talk().numbers_used() > 80_000);
    assert!(newest > 50_000);
    let wrapped = hall[pinger]
        .talk()
        .log
        .windows(2)
        .any(|two| two[0].datagram.sequence > 65_000 && two[1].datagram.sequence < 500);
    assert!(wrapped, "the server's numbers did not wrap");
    assert_eq!(heard_from(&hall, other, 0), up_to(rounds));
    assert_eq!(heard_from(&hall, pinger, 1), up_to(rounds));
}

#[test]
fn after_a_hundred_thousand_quiet_seconds_an_event_arrives() {
    let mut hall = Hall::new(seed());
    let first = hall.enter("first", 1);
    let second = hall.enter("second", 2);
    hall.settle();
    hall.for_ms(100_000_000);
    assert!(hall[first].talk().numbers_used() > 100_000);
    hall[first].say("still here");
    hall[second].say("so am I");
    hall.settle();
    let said = Event::said(0, "still here");
    assert_eq!(hall[second].events().last(), Some(&said));
    assert_eq!(
        hall[first].events().last(),
        Some(&Event::said(1, "so am I"))
    );
    for peer in [first, second] {
        assert_eq!(hall[peer].talk().unacknowledged(), 0);
    }
}

#[test]
fn event_ids_wrap_both_ways() {
    let mut hall = Hall::with(seed(), |settings| {
        settings.limits.set("events-rate", 2000).expect("in range");
    });
    let speaker = hall.enter("speaker", 1);
    let listener = hall.enter("listener", 2);
    hall.settle();
    let weather = Weather {
        loss: 50,
        double: 50,
        ..Weather::clear(5)
    };
    set_weather(&mut hall, speaker, weather);
    set_weather(&mut hall, listener, weather);
    let count = 66_000;
    let mut next = 0;
    while next < count {
        while next < count && hall[speaker].talk().unacknowledged() < 200 {
            hall[speaker].event(numbered(next));
            next += 1;
        }
        hall.for_ms(20);
    }
    hall.for_ms(10_000);
    // The speaker's lane to the server and the server's to the listener have both gone past 65535.
    assert_eq!(heard_from(&hall, listener, 0), up_to(count));
    assert_eq!(hall[speaker].talk().unacknowledged(), 0);
    let own = hall[speaker].events();
    assert_eq!(own, [Event::joined(1, "listener")]);
}

#[test]
fn a_storm_delivers_every_event_once_and_in_order() {
    seeds(10, |seed| {
        let mut hall = Hall::new(seed);
        let peers = [1, 2, 3].map(|host| hall.enter(&format!("p{host}"), host));
        hall.settle();
        for peer in peers {
            set_weather(&mut hall, peer, Weather::storm());
        }
        let count = 100;
        for number in 0..count {
            for peer in peers {
                hall[peer].event(numbered(number));
                hall[peer].send(kind::DATA, b"data");
            }
            hall.for_ms(100);
        }
        hall.for_ms(120_000);
        for (listener, peer) in peers.into_iter().enumerate() {
            assert!(hall[peer].is_bound());
            assert_eq!(hall[peer].talk().unacknowledged(), 0);
            for speaker in (0..3).filter(|speaker| *speaker != listener) {
                let heard = heard_from(&hall, peer, speaker as u8);
                assert_eq!(heard, up_to(count));
            }
        }
        // The game was told each of them once, too.
        let mut told: HashMap<u8, Vec<u32>> = HashMap::new();
        for entry in hall.told() {
            if let Told::Custom { player, body } = entry {
                let number = u32::from_le_bytes(body.try_into().expect("four bytes"));
                told.entry(player.number()).or_default().push(number);
            }
        }
        for speaker in 0..3 {
            assert_eq!(told[&speaker], up_to(count));
        }
    });
}

#[test]
fn a_login_through_a_storm_binds() {
    seeds(30, |seed| {
        let mut hall = Hall::new(seed);
        hall.net.weather = Weather::storm();
        let peer = hall.add(Peer::new(&address(1)));
        hall[peer].login("R9");
        hall.until(6000, |hall| hall[peer].is_bound());
        assert_eq!(hall.count("bindings"), 1);
        hall.for_ms(20_000);
        assert!(hall[peer].is_bound());
    });
}

#[test]
fn events_among_many_datagrams_are_acknowledged_each_in_time() {
    // The server only listens: it has nothing to send but Pongs and Acks.
    let mut hall = Hall::new(seed());
    let peer = hall.enter("R9", 1);
    hall.settle();
    hall[peer].talk_mut().resend_ms = 60;
    for round in 0..6000 {
        // 180 a second of Data, and 16 events.
        if round % 10 != 0 {
            hall[peer].send(kind::DATA, b"move");
        }
        if round % 12 == 0 {
            hall[peer].event(numbered(round));
        }
        hall.for_ms(5);
        assert!(hall[peer].talk().oldest_sends() <= 1, "in round {round}");
    }
    hall.settle();
    assert_eq!(hall[peer].talk().unacknowledged(), 0);
}

#[test]
fn a_listener_among_many_datagrams_gets_each_event_once() {
    // The other way: 180 datagrams a second come to a player who sends Pings and Acks only.
    let mut hall = Hall::new(seed());
    let speaker = hall.enter("speaker", 1);
    let listener = hall.enter("listener", 2);
    hall.settle();
    for round in 0..3000 {
        if round % 10 != 0 {
            hall[speaker].send(kind::DATA, b"move");
        }
        if round % 12 == 0 {
            hall[speaker].event(numbered(round));
        }
        hall.for_ms(5);
    }
    hall.settle();
    assert_eq!(heard_from(&hall, listener, 0).len(), 250);
    assert_eq!(
        hall[listener].count(kind::EVENTS),
        1 + 250,
        "and the joining"
    );
}

#[test]
fn only_acknowledgements_are_lost() {
    let mut hall = Hall::new(seed());
    let speaker = hall.enter("speaker", 1);
    let listener = hall.enter("listener", 2);
    hall.settle();
    // From here on nothing that the listener sends acknowledges anything; all else is well.
    hall[listener].talk_mut().deaf = true;
    hall[speaker].say("hello");
    let said_at = hall.now();
    hall.until(20_000, |hall| hall[listener].end.is_some());
    let took = hall.now() - said_at;
    assert!((15_000..15_050).contains(&took), "{took} ms");
    assert_eq!(hall[listener].logged_out(), Some(left::TIMED_OUT));
    hall.settle();
    assert!(hall[speaker].is_bound());
    let event = Event::left(1, left::TIMED_OUT);
    assert_eq!(hall[speaker].events().last(), Some(&event));
}

#[test]
fn a_slow_link_that_moves_lives() {
    // 60 % lost each way and two seconds there and back: events crawl, and nobody is ended. (Its
    // Data keeps it alive: ten seconds without anything at all would end it.)
    seeds(5, |seed| {
        let mut hall = Hall::new(seed);
        let speaker = hall.enter("speaker", 1);
        let listener = hall.enter("listener", 2);
        hall.settle();
        let weather = Weather {
            loss: 600,
            ..Weather::clear(1000)
        };
        set_weather(&mut hall, listener, weather);
        hall[listener].talk_mut().resend_ms = 1000;
        for number in 0..300 {
            hall[speaker].event(numbered(number));
            for _ in 0..5 {
                hall[listener].send(kind::DATA, b"move");
                hall.for_ms(200);
            }
        }
        set_weather(&mut hall, listener, Weather::clear(1000));
        hall.for_ms(60_000);
        assert!(hall[listener].is_bound());
        assert_eq!(heard_from(&hall, listener, 0), up_to(300));
    });
}

#[test]
fn who_floods_events_slows_only_himself() {
    let mut hall = Hall::new(seed());
    let flooder = hall.enter("flooder", 1);
    let talkers = [2, 3].map(|host| hall.enter(&format!("t{host}"), host));
    hall.settle();
    hall[flooder].talk_mut().resend_ms = 30;
    let mut flooded = 0;
    for round in 0..300 {
        for _ in 0..100 {
            hall[flooder].event(numbered(flooded));
            flooded += 1;
        }
        if round % 10 == 0 {
            let said_at = hall.now();
            hall[talkers[0]].event(numbered(round));
            hall.for_ms(100);
            let events = hall[talkers[1]].events().iter();
            let mut from_talker = events
                .zip(&hall[talkers[1]].talk().events_at)
                .filter(|(event, _)| event.kind == event::CUSTOM && event.body[0] == 1);
            let (event, at) = from_talker.next_back().expect("heard");
            assert_eq!(event.body[1..], round.to_le_bytes());
            assert!(at - said_at <= 10, "{} ms", at - said_at);
        } else {
            hall.for_ms(100);
        }
    }
    // 30 s: 32 at once and 20 a second, whatever he sends; in order, and he is not ended for it.
    let heard = heard_from(&hall, talkers[1], 0);
    assert_eq!(heard, up_to(heard.len() as u32));
    assert!((560..=660).contains(&heard.len()), "{}", heard.len());
    assert!(hall[flooder].is_bound());
    assert!(talkers.iter().all(|peer| hall[*peer].is_bound()));
}

#[test]
fn a_listener_who_reads_slowly_delays_nobody_else() {
    let mut hall = Hall::new(seed());
    let speaker = hall.enter("speaker", 1);
    let slow = hall.enter("slow", 2);
    let quick = hall.enter("quick", 3);
    hall.settle();
    set_weather(
        &mut hall,
        slow,
        Weather {
            loss: 900,
            ..Weather::clear(200)
        },
    );
    for number in 0..100 {
        hall[speaker].event(numbered(number));
        hall.for_ms(100);
        assert_eq!(heard_from(&hall, quick, 0).len() as u32, number + 1);
    }
}

#[test]
fn stale_timers_find_nobody() {
    // Each deadline of somebody who is gone passes while another is in the same slots.
    let mut hall = Hall::new(seed());
    // The login deadline of a connection that was closed.
    let silent = hall.add(Peer::silent(&address(1)));
    hall[silent].open();
    hall.for_ms(4900);
    hall[silent].fin();
    hall.for_ms(50);
    let next = hall.add(Peer::silent(&address(1)));
    hall[next].open();
    hall.for_ms(4000);
    assert_eq!(hall[next].end, None);
    hall[next].write(&login_request(1, b"a"));
    hall.settle();
    assert!(hall[next].accepted().is_some());
    // The binding deadline of a session that left.
    hall.for_ms(9800);
    hall[next].leave();
    hall.settle();
    let bound = hall.enter("b", 1);
    hall.for_ms(9000);
    assert!(hall[bound].is_bound());
    // Silence, Pings, resends and the stuck lane of a player that left.
    let player = hall.handle("b");
    hall[bound].talk_mut().deaf = true;
    hall.act(move |replies| replies.custom(player, &[b"x"]))
        .expect("it is there");
    hall.for_ms(14_900);
    hall[bound].leave();
    hall.for_ms(20);
    let fresh = hall.enter_silent("c", 1);
    let out = hall.tally(SERVICE, hall[fresh].udp).out_datagrams;
    hall.for_ms(3500);
    assert_eq!(hall[fresh].end, None);
    assert_eq!(hall[fresh].events(), []);
    assert_eq!(hall.tally(SERVICE, hall[fresh].udp).out_datagrams, out);
    hall[fresh].conduct = Conduct::HONEST;
    hall.for_ms(60_000);
    assert!(hall[fresh].is_bound());
}

#[test]
fn late_duplicates_in_mid_game_do_no_harm() {
    let mut hall = Hall::new(seed());
    let speaker = hall.enter("speaker", 1);
    let listener = hall.enter("listener", 2);
    hall.settle();
    let mut sent = Vec::new();
    for number in 0..100u32 {
        sent.push(
            hall[speaker]
                .send(kind::DATA, &number.to_le_bytes())
                .bytes(),
        );
        hall[speaker].event(numbered(number));
        hall.for_ms(60);
        // Everything that was ever sent comes again, the oldest Connect included.
        for bytes in &sent {
            hall[speaker].raw(bytes);
        }
    }
    hall.settle();
    assert_eq!(heard_from(&hall, listener, 0), up_to(100));
    assert_eq!(hall[listener].payloads(kind::DATA).len(), 100);
}
