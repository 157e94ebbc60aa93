//! Section 6.3: words, keys and entities.

use anteroom::engine::{Entity, Refusal};

use super::super::bytes::{Ask, Said, kind};
use super::super::hall::{Hall, Told};
use crate::world::PeerId;
use crate::world::seeds::seed;

/// Two in a room, everything said, and their logs empty. They do nothing by themselves.
fn two() -> (Hall, PeerId, PeerId) {
    let mut hall = Hall::new(seed());
    let [a, b] = [("a", 1), ("b", 2)].map(|(name, host)| hall.silent_user(name, host));
    hall.create(a, "den", 4);
    hall.join(b, "den");
    hall.for_ms(1000);
    hall[a].forget();
    hall[b].forget();
    hall.told();
    (hall, a, b)
}

#[test]
fn r58_chat() {
    let (mut hall, a, b) = two();
    let outside = hall.user("c", 3);
    let text = "x".repeat(200);
    let line = Said::Chat {
        user: "a".into(),
        text: text.clone(),
    };
    assert_eq!(hall.ask(a, &Ask::chat(&text)), line);
    hall.for_ms(1000);
    assert_eq!(hall[a].came(kind::CHAT).len(), 1);
    assert_eq!(hall[b].came(kind::CHAT).len(), 4);
    assert_eq!(hall[b].heard(kind::CHAT), [&line]);
    assert!(hall[outside].came(kind::CHAT).is_empty());
    // The same text again is another line.
    hall.ask(a, &Ask::chat(&text));
    hall.settle();
    assert_eq!(hall[b].lines().len(), 2);
}

#[test]
fn r59_key() {
    let (mut hall, a, b) = two();
    for (peer, key) in [(a, 65), (b, i32::MIN), (b, -1), (a, i32::MAX)] {
        hall.send(peer, &Ask::key(key));
    }
    let [a, b] = ["a", "b"].map(|name| hall.handle(name));
    let key = |player, key| Told::Key { player, key };
    let expected = [key(a, 65), key(b, i32::MIN), key(b, -1), key(a, i32::MAX)];
    assert_eq!(hall.told(), expected);
    assert_eq!((a.number(), b.number()), (0, 1));
}

#[test]
fn r60_key_budget() {
    let (mut hall, a, _) = two();
    for _ in 0..100 {
        hall[a].send(&Ask::key(0));
    }
    hall.settle();
    assert_eq!(hall.told().len(), 60);
    assert_eq!(hall.count("ignored-keys"), 40);
    hall.for_ms(950);
    hall.told();
    for _ in 0..1000 {
        hall[a].send(&Ask::key(0));
        hall.for_ms(4);
    }
    let count = hall.told().len();
    assert!((299..=301).contains(&count), "{count} in 4 s, and 60");
    // Leaving and coming back fills nothing.
    hall.ask(a, &Ask::leave());
    hall.join(a, "den");
    hall.told();
    for _ in 0..100 {
        hall[a].send(&Ask::key(0));
    }
    hall.settle();
    assert!(hall.told().len() < 15);
}

#[test]
fn r61_init() {
    let (mut hall, a, b) = two();
    hall.send(b, &Ask::key(262));
    hall.for_ms(1000);
    hall[a].forget();
    let start = hall.now();
    for _ in 0..6 {
        hall.send(a, &Ask::init());
        hall.for_ms(989);
    }
    let created: Vec<(u64, &Said)> = hall[a]
        .came(kind::CREATE_ENTITY)
        .iter()
        .map(|got| (got.at - start, &got.said))
        .collect();
    let ship = |entity, owner| Said::Create {
        entity,
        kind: 1,
        owner,
    };
    let [first, second] = [ship(1, 0), ship(2, 1)];
    let expected = [(10, &first), (10, &second), (5010, &first), (5010, &second)];
    assert_eq!(created, expected, "once each, every 5 s");
    let updates = hall[a].heard(kind::UPDATE);
    assert_eq!(updates.len(), 2);
    assert_eq!(updates[0], updates[1]);
    let Said::Update(positions) = updates[0] else {
        unreachable!();
    };
    let positions: Vec<_> = positions.iter().map(|it| (it.entity, it.x, it.y)).collect();
    assert_eq!(positions, [(1, 100.0, 100.0), (2, 210.0, 100.0)]);
    // Outside of a room it draws nothing.
    hall.ask(a, &Ask::leave());
    hall.for_ms(6000);
    hall[a].forget();
    hall.send(a, &Ask::init());
    hall.settle();
    assert!(hall[a].log.is_empty());
}

#[test]
fn r62_entities() {
    let (mut hall, a, b) = two();
    let mut seen = vec![1, 2];
    for _ in 0..3 {
        hall.ask(b, &Ask::leave());
        hall.join(b, "den");
        hall.send(a, &Ask::key(32));
        hall.for_ms(4000);
        hall.send(b, &Ask::init());
    }
    for said in hall[a].heard(kind::CREATE_ENTITY) {
        if let Said::Create { entity, .. } = said {
            seen.push(*entity);
        }
    }
    assert_eq!(seen, (1..=8).collect::<Vec<u32>>(), "none twice");
    // Another room numbers its own.
    hall.ask(a, &Ask::leave());
    hall.create(a, "other", 4);
    hall.for_ms(1000);
    hall[a].forget();
    hall.send(a, &Ask::init());
    hall.settle();
    let first = Said::Create {
        entity: 1,
        kind: 1,
        owner: 0,
    };
    assert_eq!(hall[a].heard(kind::CREATE_ENTITY), [&first]);
}

#[test]
fn r62_at_most_256() {
    let (mut hall, a, b) = two();
    let [one, two] = ["a", "b"].map(|name| hall.handle(name));
    let show = move |hall: &mut Hall, player, id| {
        let entity = Entity {
            id,
            kind: 9,
            owner: None,
        };
        hall.act(move |replies| replies.show(player, entity))
    };
    // Two ships are there, and both were shown.
    hall.send(a, &Ask::init());
    for id in 3..=256 {
        assert_eq!(show(&mut hall, one, id), Ok(()));
        assert_eq!(show(&mut hall, two, id), Ok(()), "the same for another");
    }
    let full = Err(Refusal::TooMany { max: 256 });
    assert_eq!(show(&mut hall, one, 257), full);
    assert_eq!(show(&mut hall, one, 256), Ok(()), "it is there already");
    let hidden = hall.act(move |replies| replies.hide(one, 3));
    assert_eq!(hidden, Ok(()));
    assert_eq!(show(&mut hall, one, 257), Ok(()));
    assert_eq!(show(&mut hall, two, 258), full);
    // Other rooms are not concerned, nor is the next of this name.
    hall.ask(a, &Ask::delete("den"));
    hall.create(b, "den", 4);
    let two = hall.handle("b");
    assert_eq!(show(&mut hall, two, 258), Ok(()));
}

#[test]
fn r63_entities_come() {
    let (mut hall, a, b) = two();
    let c = hall.silent_user("c", 3);
    hall.join(c, "den");
    hall.send(a, &Ask::key(32));
    let entities = |hall: &Hall, peer: PeerId| -> Vec<u32> {
        let created = hall[peer].heard(kind::CREATE_ENTITY).into_iter();
        created
            .map(|said| match said {
                Said::Create { entity, .. } => *entity,
                _ => unreachable!(),
            })
            .collect()
    };
    for peer in [a, b] {
        assert_eq!(entities(&hall, peer), [3, 4]);
    }
    assert_eq!(entities(&hall, c), [4], "not its own ship");
    hall.send(c, &Ask::init());
    assert_eq!(entities(&hall, c), [4, 1, 2, 3, 4]);
}

#[test]
fn r64_entities_go() {
    let (mut hall, a, b) = two();
    for key in [32, 501] {
        hall.send(b, &Ask::key(key));
    }
    hall.ask(b, &Ask::leave());
    hall.for_ms(1000);
    let gone = |hall: &Hall, peer: PeerId| -> Vec<u32> {
        let deleted = hall[peer].heard(kind::DELETE_ENTITY).into_iter();
        deleted
            .map(|said| match said {
                Said::Delete(entity) => *entity,
                _ => unreachable!(),
            })
            .collect()
    };
    assert_eq!(gone(&hall, a), [3, 4, 2], "its shots and its ship");
    assert_eq!(gone(&hall, b), []);
    hall.join(b, "den");
    hall[b].forget();
    hall[a].forget();
    hall.ask(a, &Ask::delete("den"));
    hall.for_ms(1000);
    for peer in [a, b] {
        assert_eq!(gone(&hall, peer), [], "nobody is told of a deleted room's");
        assert!(hall[peer].came(kind::UPDATE).len() <= 6);
    }
}

#[test]
fn r65_outside_of_a_room() {
    let mut hall = Hall::new(seed());
    let stranger = hall.silent(1);
    let user = hall.silent_user("a", 2);
    hall.told();
    for peer in [stranger, user] {
        hall[peer].forget();
        hall.send(peer, &Ask::chat("hi"));
        hall.send(peer, &Ask::key(65));
        assert!(hall[peer].log.is_empty());
    }
    assert_eq!(hall.count("ignored-outside-room"), 4);
    let other = hall.silent_user("b", 3);
    hall.create(user, "den", 4);
    hall.join(other, "den");
    hall.for_ms(1000);
    hall.told();
    for peer in [user, other] {
        hall[peer].forget();
    }
    let bad = [
        Ask::chat(""),
        Ask::chat("\u{1B}[2J"),
        Ask::chat(&"x".repeat(201)),
        Ask::new(kind::CHAT, b"\0\x01\xFF"),
    ];
    for ask in &bad {
        for _ in 0..3 {
            hall.send(user, ask);
        }
    }
    assert_eq!(hall.count("ignored-text"), 12);
    assert_eq!(hall.count("ignored-malformed"), 0);
    assert!(hall[user].log.is_empty() && hall[other].log.is_empty());
    assert_eq!(hall.told(), []);
}
