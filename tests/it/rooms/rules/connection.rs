//! Section 3: the connection, the token, and the ways in which a session ends.

use super::super::bytes::{Ask, Packet, Said, kind};
use super::super::hall::{Hall, SERVICE, Told, address};
use super::super::peer::Peer;
use crate::rtyp::dice::Rigged;
use crate::world::PeerId;
use crate::world::seeds::seed;

#[test]
fn r15_assign_token() {
    let mut hall = Hall::new(seed());
    let peer = hall.open(Peer::silent(address(1)));
    let (at, packet) = hall[peer].said[0].clone();
    assert_eq!(at, hall.now() - 50 + 10, "at once");
    let Said::Assign { token, udp_port } = Said::parse(&packet) else {
        panic!("{packet:?}");
    };
    assert_eq!((packet.id, udp_port), (1, 4243));
    assert_eq!(packet.payload[..4], token.to_be_bytes());
    assert_eq!((hall.count("sessions"), hall.count("connections")), (1, 1));
}

#[test]
fn r16_token() {
    let dice = Rigged::new(&[7, 0, u32::MAX, 0x2112_A442, 8]);
    let mut hall = Hall::with_dice(seed(), Box::new(dice.clone()));
    let tokens = [1, 2].map(|host| {
        let peer = hall.enter(host);
        hall[peer].token()
    });
    assert_eq!(tokens, [7, 8]);
    // Not one that is live, but one that was.
    dice.next(&[7, 8, 9]);
    let peer = hall.enter(3);
    assert_eq!(hall[peer].token(), 9);
    hall[peer].send(&Ask::logout());
    hall.settle();
    dice.next(&[9]);
    let peer = hall.enter(4);
    assert_eq!(hall[peer].token(), 9);
    // None is made up.
    dice.breaks(true);
    let peer = hall.open(Peer::silent(address(5)));
    assert_eq!(hall[peer].assigned(), None);
    assert_eq!(hall[peer].logged_out(), Some(2));
    assert_eq!(hall.count("no-entropy"), 1);
}

#[test]
fn r17_silent_to_the_end() {
    for bound in [false, true] {
        let mut hall = Hall::new(seed());
        let peer = match bound {
            true => hall.silent(1),
            false => hall.open(Peer::silent(address(1))),
        };
        hall[peer].write(&[1]);
        hall.settle();
        assert_eq!(hall[peer].logged_out(), Some(4));
        assert!(hall[peer].end.is_some());
        assert_eq!(hall.count("ended-protocol-error"), 1);
        assert_eq!(hall.count("sessions"), 0);
    }
}

#[test]
fn r18_the_client_leaves() {
    for reason in [0, 6, 255] {
        let mut hall = Hall::new(seed());
        let peer = hall.silent_user("Axel", 1);
        hall.create(peer, "den", 4);
        hall[peer].send(&Ask::new(kind::LOGOUT, &[reason]));
        hall.settle();
        assert_eq!(hall[peer].logged_out(), Some(0));
        assert_eq!((hall.count("sessions"), hall.count("rooms")), (0, 0));
    }
    for leave in [Peer::fin, Peer::abort] {
        let mut hall = Hall::new(seed());
        let peer = hall.silent_user("Axel", 1);
        hall.create(peer, "den", 4);
        leave(&mut hall[peer]);
        hall.settle();
        assert_eq!(hall[peer].said.len(), 1, "a word was said");
        assert_eq!((hall.count("sessions"), hall.count("rooms")), (0, 0));
        assert_eq!(hall.count("ended-left"), 1);
    }
}

/// A session in a room and in the ways of the server to end it.
fn ended_by_server(end: impl FnOnce(&mut Hall, PeerId)) -> (Hall, PeerId) {
    let mut hall = Hall::new(seed());
    let peer = hall.silent_user("Axel", 1);
    hall.create(peer, "den", 4);
    end(&mut hall, peer);
    hall.settle();
    (hall, peer)
}

fn kick(hall: &mut Hall, _: PeerId) {
    let player = hall.handle("Axel");
    assert_eq!(hall.act(move |replies| replies.kick(player)), Ok(()));
    assert!(hall.act(move |replies| replies.kick(player)).is_err());
}

#[test]
fn r19_the_servers_logout() {
    type End = fn(&mut Hall, PeerId);
    let ends: [(u8, End); 5] = [
        (1, |hall, _| hall.stop(SERVICE)),
        (3, |hall, _| hall.for_ms(10_000)),
        (4, |hall, peer| hall[peer].write(b"x")),
        (5, |hall, _| {
            hall.user("Axel", 2);
        }),
        (6, kick),
    ];
    for (reason, end) in ends {
        let (hall, peer) = ended_by_server(end);
        let said: Vec<&Packet> = hall[peer].said.iter().map(|(_, packet)| packet).collect();
        assert_eq!(said.len(), 2, "{reason}: {said:?}");
        assert_eq!(Said::parse(said[1]), Said::Logout(reason));
        let last = hall[peer].log.last().expect("answers came").packet.id;
        assert_eq!(said[1].id, last + 1, "numbered with the others");
        let end = hall[peer].end.expect("closed").1;
        assert_eq!(end, crate::world::pipe::Ending::Fin);
    }
}

#[test]
fn r20_free_at_once() {
    let dice = Rigged::new(&[7]);
    let mut hall = Hall::with_dice(seed(), Box::new(dice.clone()));
    let peer = hall.silent_user("Axel", 1);
    hall.create(peer, "den", 1);
    hall[peer].send(&Ask::logout());
    hall.for_ms(6);
    // Its connection drains still; everything else is somebody else's already.
    dice.next(&[7]);
    let mut next = Peer::silent(address(1));
    next.tcp.set_port(6000);
    let next = hall.enter_as(next);
    assert_eq!(hall[next].token(), 7);
    hall.log_in(next, "Axel");
    hall.create(next, "den", 1);
    assert_eq!(hall.count("bindings"), 2);
}

#[test]
fn r26_silent_client() {
    // From the accept, and from the last valid datagram.
    let mut hall = Hall::new(seed());
    let peer = hall.add(Peer::silent(address(1)));
    let start = hall.now();
    hall[peer].open();
    hall.until(11_000, |hall| hall[peer].end.is_some());
    assert_eq!(hall.now() - start, 5 + 10_000 + 5);
    assert_eq!(hall[peer].logged_out(), Some(3));

    let peer = hall.silent(2);
    for _ in 0..5 {
        hall.for_ms(9900);
        hall[peer].send(&Ask::init());
    }
    let last = hall.now();
    let mut next = 0;
    while hall[peer].end.is_none() && next < 30 {
        // None of this is valid.
        next += 1;
        hall[peer].send_as(&Ask::init(), 1);
        let wrong = Ask::init().packet(9, 1);
        hall[peer].raw(&wrong.bytes());
        if next < 9 {
            hall.send(peer, &Ask::new(kind::INIT, &[0]));
        }
        hall.for_ms(400);
    }
    let (at, _) = hall[peer].end.expect("timed out");
    assert_eq!(at - last, 5 + 10_000 + 5);
    assert_eq!(hall[peer].logged_out(), Some(3));
    assert_eq!(hall.count("ended-timed-out"), 2);
}

#[test]
fn r26_a_remembered_answer_keeps_nobody_alive() {
    let mut hall = Hall::new(seed());
    let peer = hall.silent_user("Axel", 1);
    let id = hall.send(peer, &Ask::rooms(0));
    let last = hall.now() - 11;
    for _ in 0..14 {
        hall.for_ms(1000);
        hall[peer].send_as(&Ask::rooms(0), id);
    }
    let (at, _) = hall[peer].end.expect("timed out");
    assert_eq!(at - last, 5 + 10_000 + 5);
}

#[test]
fn r28_stop() {
    let mut hall = Hall::new(seed());
    let peers: Vec<PeerId> = (1..=50)
        .map(|host| hall.user(&format!("u{host}"), host))
        .collect();
    for pair in peers.chunks(2) {
        let name = format!("{}", pair[0].0);
        hall.create(pair[0], &name, 4);
        hall.join(pair[1], &name);
    }
    hall.told();
    let start = hall.now();
    hall.stop(SERVICE);
    hall.settle();
    for peer in peers {
        assert_eq!(hall[peer].logged_out(), Some(1));
        assert!(hall[peer].said[1].0 - start <= 100);
    }
    let left = |told: &Told| matches!(told, Told::Left { reason: 1, .. });
    let told = hall.told();
    assert!(told.len() == 50 && told.iter().all(left), "{told:?}");
    let late = hall.open(Peer::silent(address(99)));
    assert!(hall[late].said.is_empty() && hall[late].end.is_some());
    assert_eq!(hall.deadline(SERVICE), None, "nothing is left to do");
}
