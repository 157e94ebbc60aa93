//! Section 5: ids, and what happens when a packet comes again.

use std::collections::BTreeMap;

use super::super::bytes::{Ask, Said, kind};
use super::super::hall::{Answer, Hall, PASSWORD, Told};
use super::super::peer::Peer;
use crate::world::PeerId;
use crate::world::seeds::seed;

#[test]
fn r39_own_numbering() {
    let mut hall = Hall::new(seed());
    let peer = hall.silent_user("Axel", 1);
    hall.create(peer, "den", 4);
    let other = hall.silent_user("b", 2);
    hall.join(other, "den");
    hall.ask(other, &Ask::chat("hi"));
    hall.for_ms(1000);
    hall[peer].send(&Ask::logout());
    hall.settle();
    let mut ids: Vec<u16> = hall[peer].said.iter().map(|(_, it)| it.id).collect();
    let new = hall[peer].log.iter().filter(|got| got.new);
    ids.extend(new.map(|got| got.packet.id));
    ids.sort_unstable();
    assert_eq!(ids, (1..=ids.len() as u16).collect::<Vec<_>>());
}

#[test]
fn r39_ids_of_the_server_wrap_through_0() {
    let mut hall = Hall::new(seed());
    let peer = hall.silent_user("Axel", 1);
    hall.create(peer, "den", 4);
    hall.settle();
    let player = hall.handle("Axel");
    hall[peer].forget();
    for _ in 0..66 {
        hall.act(move |replies| {
            let health = |points| anteroom::engine::Component::Position {
                entity: 1,
                x: points as f32,
                y: 0.0,
            };
            for points in 0..1000 {
                assert_eq!(replies.update(player, &[health(points)]), Ok(()));
            }
        });
        hall.for_ms(20);
        hall.send(peer, &Ask::init());
    }
    let ids: Vec<u16> = hall[peer].log.iter().map(|got| got.packet.id).collect();
    assert!(ids.len() > 65_536 && ids.contains(&0));
    for pair in ids.windows(2) {
        assert_eq!(pair[1], pair[0].wrapping_add(1));
    }
    assert!(hall[peer].log.iter().all(|got| got.new));
}

#[test]
fn r39_the_first_id_of_a_client_may_be_any() {
    for first in [0, 1, 2, 32_767, 32_768, 65_535] {
        let mut hall = Hall::new(seed());
        let mut peer = Peer::silent(super::super::hall::address(1));
        peer.next_id = first;
        let peer = hall.enter_as(peer);
        for _ in 0..3 {
            assert!(matches!(hall.ask(peer, &Ask::rooms(0)), Said::Page(_)));
        }
    }
}

/// What becomes of a packet with this id: a Key outside of a room.
fn judged(hall: &mut Hall, peer: PeerId, id: u16) -> &'static str {
    const NAMES: [&str; 3] = ["ignored-outside-room", "ignored-repeated", "ignored-old"];
    let before = NAMES.map(|name| hall.count(name));
    hall[peer].send_as(&Ask::key(1), id);
    hall.for_ms(6);
    let grown = NAMES.into_iter().zip(before);
    let mut grown = grown.filter(|(name, before)| hall.count(name) > *before);
    let (name, _) = grown.next().expect("counted");
    assert!(grown.next().is_none());
    match name {
        "ignored-outside-room" => "new",
        "ignored-repeated" => "repeated",
        _ => "old",
    }
}

#[test]
fn r40_new_or_not() {
    for first in [1_u16, 5000, 65_500, 65_535, 0] {
        let mut hall = Hall::new(seed());
        let peer = hall.enter_as(Peer::silent(super::super::hall::address(1)));
        let cases: [(u16, &str); 14] = [
            (0, "new"),
            (0, "repeated"),
            (1, "new"),
            (1023, "new"),
            (0, "repeated"),
            (1024, "new"),
            (0, "old"),
            (1, "repeated"),
            (2, "new"),
            (1 + 1024, "new"),
            (1, "old"),
            (1025 + 32_767, "new"),
            (1024, "old"),
            (1025 + 32_767 - 1023, "new"),
        ];
        for (step, (id, expected)) in cases.into_iter().enumerate() {
            let id = first.wrapping_add(id);
            let judged = judged(&mut hall, peer, id);
            assert_eq!(judged, expected, "step {step}, from {first}");
        }
    }
}

#[test]
fn r40_a_malformed_payload_has_been_seen() {
    let mut hall = Hall::new(seed());
    let peer = hall.silent(1);
    let id = hall.send(peer, &Ask::new(kind::KEY, &[1]));
    assert_eq!(judged(&mut hall, peer, id), "repeated");
    assert_eq!(hall.count("ignored-malformed"), 1);
}

#[test]
fn r41_remembered_answer() {
    let mut hall = Hall::new(seed());
    let [a, b] = [("a", 1), ("b", 2)].map(|(name, host)| hall.silent_user(name, host));
    hall.create(b, "other", 1);
    let asks = [
        Ask::login("a", PASSWORD),
        Ask::login("a", "wrong"),
        Ask::register("c", "long enough"),
        Ask::join("other", ""),
        Ask::create("den", "pw", 4),
        Ask::chat("hi"),
        Ask::join("den", "pw"),
        Ask::rooms(0),
        Ask::delete("den"),
        Ask::create("den", "", 4),
        Ask::leave(),
    ];
    for ask in asks {
        hall[a].forget();
        hall.told();
        let id = hall.send(a, &ask);
        let answers = |hall: &Hall| -> Vec<(u16, Said)> {
            let log = hall[a].log.iter();
            log.filter(|got| Said::answers(&got.packet) == ask.kind)
                .map(|got| (got.packet.id, got.said.clone()))
                .collect()
        };
        let first = answers(&hall);
        assert_eq!(first.len(), 1, "{ask:02X?}");
        let (told, rooms) = (hall.told(), hall.count("rooms"));
        // Other requests between do not matter.
        hall.send(a, &Ask::init());
        for again in 1..=3 {
            hall[a].send_as(&ask, id);
            hall.for_ms(11);
            let all = answers(&hall);
            assert_eq!(all.len(), 1 + again, "{ask:02X?}");
            assert_eq!(all[again].1, first[0].1, "{ask:02X?}");
            assert_ne!(all[again].0, all[again - 1].0, "in a new packet");
        }
        let again = hall.told();
        assert!(told.len() <= 2, "{told:?}");
        let acts = again
            .iter()
            .filter(|it| !matches!(it, Told::Refresh { .. }));
        assert_eq!(acts.count(), 0, "{ask:02X?} acted twice");
        assert_eq!(hall.count("rooms"), rooms, "{ask:02X?} acted twice");
        hall.for_ms(700);
    }
    assert_eq!(hall.count("ignored-repeated"), 0);
}

#[test]
fn r41_however_late_but_only_the_last_of_its_type() {
    let mut hall = Hall::new(seed());
    let peer = hall.silent(1);
    let old = hall.send(peer, &Ask::rooms(1));
    let last = hall.send(peer, &Ask::rooms(2));
    hall[peer].next_id += 5000;
    hall.send(peer, &Ask::init());
    hall[peer].forget();
    hall[peer].send_as(&Ask::rooms(1), old);
    hall.settle();
    assert_eq!((hall[peer].log.len(), hall.count("ignored-old")), (0, 1));
    hall[peer].send_as(&Ask::rooms(2), last);
    hall.settle();
    let [Said::Page(page)] = &hall[peer].heard(kind::GET_ROOMS)[..] else {
        panic!("no answer");
    };
    assert_eq!(page.first, 2);
    // Nor for another type under that id, nor for a malformed one.
    hall[peer].send_as(&Ask::leave(), last);
    hall[peer].send_as(&Ask::new(kind::GET_ROOMS, &[1]), last);
    hall.settle();
    assert_eq!((hall[peer].log.len(), hall.count("ignored-old")), (1, 3));
}

#[test]
fn r41_while_it_is_worked_out_it_is_dropped() {
    let mut hall = Hall::new(seed());
    let peer = hall.silent(1);
    hall.answers(Answer::Wait);
    let id = hall.send(peer, &Ask::login("a", "b"));
    let ticket = hall.ticket();
    for _ in 0..3 {
        hall[peer].send_as(&Ask::login("a", "b"), id);
    }
    hall.settle();
    assert_eq!(hall.told().len(), 1, "asked once");
    assert_eq!(hall.count("ignored-repeated"), 3);
    assert!(hall[peer].log.is_empty());
    let admit = anteroom::engine::Verdict::Admit;
    assert_eq!(hall.answer(ticket, admit), Ok(()));
    hall[peer].send_as(&Ask::login("a", "b"), id);
    hall.settle();
    let answers = hall[peer].heard(kind::LOGIN);
    assert_eq!(answers, [&Said::Login(true), &Said::Login(true)]);
}

#[test]
fn r42_unanswered_is_unseen() {
    let mut hall = Hall::new(seed());
    let peer = hall.silent_user("a", 1);
    // Chat that came before its Join.
    let id = hall.send(peer, &Ask::chat("hi"));
    assert_eq!(hall.count("ignored-outside-room"), 1);
    hall.create(peer, "den", 4);
    hall[peer].send_as(&Ask::chat("hi"), id);
    hall.settle();
    assert_eq!(hall[peer].lines().len(), 1);
    assert_eq!(hall.count("ignored-repeated"), 0);
    // A Login while the accounts are busy.
    let mut hall = Hall::new(seed());
    let peer = hall.silent(1);
    hall.answers(Answer::Busy);
    let login = Ask::login("a", PASSWORD);
    let id = hall.send(peer, &login);
    hall[peer].send_as(&login, id);
    hall.settle();
    assert_eq!(hall.told().len(), 2);
    assert!(hall[peer].log.is_empty());
    hall.answers(Answer::Honest);
    hall[peer].send_as(&login, id);
    hall.settle();
    assert_eq!(hall[peer].heard(kind::LOGIN), [&Said::Login(false)]);
}

/// When each packet of this type came, by id, from the first on.
fn times(hall: &Hall, peer: PeerId, kind: u8) -> Vec<Vec<u64>> {
    let mut times: BTreeMap<u16, Vec<u64>> = BTreeMap::new();
    for got in hall[peer].came(kind) {
        times.entry(got.packet.id).or_default().push(got.at);
    }
    let from_first = |all: Vec<u64>| all.iter().map(|at| at - all[0]).collect();
    times.into_values().map(from_first).collect()
}

#[test]
fn r43_told_four_times() {
    let mut hall = Hall::new(seed());
    let [a, b] = [("a", 1), ("b", 2)].map(|(name, host)| hall.silent_user(name, host));
    hall.create(b, "den", 4);
    hall.for_ms(3000);
    hall[b].forget();
    hall.join(a, "den");
    hall.ask(a, &Ask::chat("hi"));
    hall.for_ms(1000);
    hall.ask(a, &Ask::leave());
    hall.for_ms(1000);
    for kind in [kind::CREATE_ENTITY, kind::CHAT, kind::DELETE_ENTITY] {
        assert_eq!(times(&hall, b, kind), [[0, 100, 250, 500]], "{kind}");
    }
    hall.join(a, "den");
    hall.for_ms(1000);
    hall[a].forget();
    hall.ask(b, &Ask::delete("den"));
    hall.for_ms(1000);
    assert_eq!(times(&hall, a, kind::DELETE_ROOM), [[0, 100, 250, 500]]);
    assert_eq!(hall[b].came(kind::DELETE_ROOM).len(), 1, "the answer once");
}

#[test]
fn r44_told_while_it_matters() {
    let mut hall = Hall::new(seed());
    let [a, b] = [("a", 1), ("b", 2)].map(|(name, host)| hall.user(name, host));
    hall.create(b, "den", 4);
    hall.join(a, "den");
    hall.for_ms(3000);
    hall[b].forget();
    hall[a].send(&Ask::chat("hi"));
    hall[a].send(&Ask::leave());
    hall.for_ms(120);
    assert_eq!(hall[b].came(kind::CHAT).len(), 2);
    hall.ask(b, &Ask::leave());
    hall.for_ms(1000);
    for kind in [kind::CHAT, kind::DELETE_ENTITY] {
        assert_eq!(hall[b].came(kind).len(), 2, "{kind}");
    }
}

#[test]
fn r44_at_most_256_wait() {
    let mut hall = Hall::new(seed());
    let peer = hall.user("a", 1);
    hall.create(peer, "den", 4);
    hall.for_ms(3000);
    hall[peer].forget();
    let player = hall.handle("a");
    hall.act(move |replies| {
        for number in 0..300 {
            let said = replies.chat(player, 0, &format!("{number}"));
            assert_eq!(said, Ok(()));
        }
    });
    hall.for_ms(1000);
    let counts: Vec<usize> = times(&hall, peer, kind::CHAT)
        .iter()
        .map(Vec::len)
        .collect();
    let expected = [vec![1; 44], vec![4; 256]].concat();
    assert_eq!(counts, expected, "the oldest go no more");
    assert_eq!(hall.count("unsent-too-many"), 44);
}

#[test]
fn r45_request_budget() {
    let mut hall = Hall::new(seed());
    let peer = hall.silent(1);
    let id = hall.send(peer, &Ask::rooms(0));
    hall.for_ms(3000);
    hall[peer].forget();
    // 32 at once, remembered answers included.
    let mut unanswered = 0;
    for number in 0..40 {
        match number % 2 {
            0 => hall[peer].send_as(&Ask::rooms(0), id),
            _ => unanswered = hall[peer].send(&Ask::leave()),
        }
    }
    hall.settle();
    assert_eq!(hall[peer].log.len(), 32);
    assert_eq!(hall.count("ignored-requests"), 8);
    // Then 20 a second; what was refused is unseen.
    hall[peer].send_as(&Ask::leave(), unanswered);
    hall.settle();
    assert_eq!(hall[peer].log.len(), 33);
    hall.for_ms(5000);
    hall[peer].forget();
    for _ in 0..400 {
        hall[peer].send(&Ask::rooms(0));
        hall.for_ms(10);
    }
    let count = hall[peer].log.len();
    assert!((111..=113).contains(&count), "{count} in 4 s");
    // These are not charged.
    for _ in 0..40 {
        hall[peer].send(&Ask::init());
        hall[peer].send(&Ask::key(1));
    }
    hall[peer].send(&Ask::logout());
    hall.settle();
    assert_eq!(hall[peer].logged_out(), Some(0));
}

#[test]
fn r45_the_rate_can_be_set() {
    let mut hall = Hall::with(seed(), |settings| {
        settings.limits.set("events-rate", 200).expect("in range");
    });
    let peer = hall.silent(1);
    for _ in 0..200 {
        hall[peer].send(&Ask::rooms(0));
        hall.for_ms(5);
    }
    hall.settle();
    assert_eq!(hall[peer].log.len(), 200);
}
