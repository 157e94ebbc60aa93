//! Section 6.4: how sessions of version 2 end.

use anteroom::engine::{Input, Verdict};

use super::super::bytes::{Datagram, Event, kind, left};
use super::super::hall::{Answer, Hall, SERVICE, Told, address};
use super::super::peer::Peer;
use super::knock;
use crate::world::PeerId;
use crate::world::seeds::seed;

fn two() -> (Hall, PeerId, PeerId) {
    let mut hall = Hall::new(seed());
    let witness = hall.enter("witness", 1);
    let leaver = hall.enter_2("leaver", 2);
    hall.settle();
    hall.told();
    (hall, witness, leaver)
}

#[test]
fn r119_client_bye() {
    for reason in [0, 1, 4, 200] {
        let (mut hall, witness, leaver) = two();
        hall[leaver].fall_silent();
        let out = hall.tally(SERVICE, hall[leaver].udp).out_datagrams;
        for _ in 0..3 {
            hall[leaver].send(kind::CLIENT_BYE, &[reason]);
            hall.for_ms(100);
        }
        hall.for_ms(3000);
        assert_eq!(
            hall[witness].events().last(),
            Some(&Event::left(1, left::LEFT))
        );
        assert!(matches!(hall.told()[..], [Told::Left { reason: 0, .. }]));
        assert_eq!(hall.count("ended-left"), 1);
        assert_eq!(hall.tally(SERVICE, hall[leaver].udp).out_datagrams, out);
        // All is free again at once: name, number, endpoint.
        let again = hall.enter_2("leaver", 2);
        assert_eq!(hall[again].player(), 1);
    }
    // One of them is enough, and one that is forged is nothing.
    let (mut hall, _, leaver) = two();
    hall[leaver].fall_silent();
    let next = hall[leaver].talk().numbers_used() as u16;
    let secret = hall[leaver].secret();
    let bye = |token: u64, sequence: u16| {
        Datagram::secret(kind::CLIENT_BYE, token, &[0])
            .sequence(sequence)
            .bytes()
    };
    hall[leaver].raw(&bye(secret ^ 1, next));
    hall[leaver].raw(&bye(secret, next.wrapping_sub(1)));
    hall[leaver].raw_from(
        "10.9.9.9:9".parse().expect("an address"),
        &bye(secret, next),
    );
    hall.settle();
    assert_eq!(hall.count("sessions"), 2);
    hall[leaver].raw(&bye(secret, next));
    hall.settle();
    assert_eq!(hall.count("sessions"), 1);
}

/// The ServerByes that came: when, and their numbers.
fn byes(hall: &Hall, peer: PeerId) -> (Vec<u64>, Vec<u16>) {
    let log = hall[peer].talk().log.iter();
    let byes = log.filter(|got| got.datagram.kind == kind::SERVER_BYE);
    byes.map(|got| (got.at, got.datagram.sequence)).unzip()
}

#[test]
fn r120_server_bye() {
    type Way = fn(&mut Hall, PeerId);
    let ways: [(u8, Way); 2] = [
        (left::KICKED, |hall, _| {
            let player = hall.handle("leaver");
            hall.act(move |replies| replies.kick(player))
                .expect("it is there");
        }),
        (left::PROTOCOL_ERROR, |hall, leaver| {
            hall[leaver].send(99, &[]);
            hall.for_ms(5);
        }),
    ];
    for (reason, way) in ways {
        let (mut hall, witness, leaver) = two();
        let numbers = hall[leaver].talk().log.len() as u16;
        way(&mut hall, leaver);
        let now = hall.now();
        hall.for_ms(3000);
        let (times, sequences) = byes(&hall, leaver);
        assert_eq!(times, [now + 5, now + 105, now + 205]);
        assert!(sequences[0] >= numbers && sequences.windows(2).all(|two| two[1] == two[0] + 1));
        let said: Vec<u8> = hall[leaver]
            .byes
            .iter()
            .map(|(_, reason)| *reason)
            .collect();
        assert_eq!(said, [reason; 3]);
        assert_eq!(hall[witness].events().last(), Some(&Event::left(1, reason)));
    }
    // By time, too: it acknowledges nothing, and answers Pings.
    let (mut hall, witness, leaver) = two();
    let player = hall.handle("leaver");
    hall[leaver].talk_mut().deaf = true;
    hall.act(move |replies| replies.custom(player, &[b"x"]))
        .expect("it is there");
    hall.for_ms(17_000);
    assert_eq!(hall[leaver].logged_out(), Some(left::TIMED_OUT));
    assert_eq!(
        hall[witness].events().last(),
        Some(&Event::left(1, left::TIMED_OUT))
    );
    assert_eq!(byes(&hall, leaver).0.len(), 3);
}

#[test]
fn r120_a_new_session_ends_the_repetition() {
    let (mut hall, _, leaver) = two();
    let cookie = hall[leaver].cookie();
    let player = hall.handle("leaver");
    hall.act(move |replies| replies.kick(player))
        .expect("it is there");
    hall[leaver].conduct.restart = false;
    hall.for_ms(50);
    assert_eq!(byes(&hall, leaver).0.len(), 1);
    hall[leaver].raw(&Datagram::hello(cookie, b"", b"again").bytes());
    hall.for_ms(3000);
    assert_eq!(byes(&hall, leaver).0.len(), 1);
    assert_eq!(hall.count("logins"), 3);
}

#[test]
fn r120_not_beyond_what_an_unproven_endpoint_pays_for() {
    // It answers no Ping, so that its proof runs out; each datagram of 22 bytes pays for one bye.
    for (datagrams, expected) in [(0, 0), (1, 1), (2, 2), (3, 3), (9, 3)] {
        let (mut hall, _, leaver) = two();
        hall[leaver].fall_silent();
        for _ in 0..12 {
            hall.for_ms(1000);
            hall[leaver].send(kind::ACK, &[]);
        }
        // All that it paid for before was spent on Pings, but for less than a bye.
        hall.for_ms(3000);
        let endpoint = hall[leaver].udp;
        hall.echo_only(SERVICE, endpoint);
        for _ in 0..datagrams {
            hall[leaver].send(kind::ACK, &[]);
        }
        hall.for_ms(10);
        let player = hall.handle("leaver");
        hall.act(move |replies| replies.kick(player))
            .expect("it is there");
        hall.for_ms(1000);
        assert_eq!(
            byes(&hall, leaver).0.len(),
            expected,
            "for {datagrams} datagrams"
        );
    }
}

#[test]
fn r121_stop_by_bye() {
    let mut hall = Hall::new(seed());
    let peers = [1, 2].map(|host| hall.enter_2(&format!("p{host}"), host));
    let old = hall.enter("old", 3);
    hall.shelf.open().answer = Answer::Wait;
    let asked = knock(&mut hall, &address(4), b"", b"asked");
    let late = hall.add(Peer::v2_silent(&address(5)));
    hall[late].hello("late");
    hall.settle();
    let now = hall.now();
    hall.input(SERVICE, Input::Stop);
    hall[late].say_hello();
    hall[late].raw(&Datagram::hello(0, b"", b"late").bytes());
    let out = hall.tally(SERVICE, hall[late].udp).out_datagrams;
    hall.for_ms(2000);
    for peer in peers {
        assert_eq!(byes(&hall, peer).0, [now + 5, now + 105, now + 205]);
        assert_eq!(hall[peer].logged_out(), Some(left::SHUTDOWN));
    }
    assert_eq!(hall[old].logged_out(), Some(left::SHUTDOWN));
    assert!(!hall[asked].is_in());
    let ticket = hall.shelf.open().tickets[3];
    assert!(hall.answer(ticket, Verdict::Admit).is_err());
    assert_eq!(
        hall.tally(SERVICE, hall[late].udp).out_datagrams,
        out,
        "not even a challenge"
    );
    assert_eq!(hall.count("sessions"), 0);
    assert_eq!(hall.deadline(SERVICE), None);
}
