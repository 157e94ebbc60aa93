//! Section 6.4: the built-in game.

use super::super::bytes::{Ask, Position, Said, kind};
use super::super::hall::Hall;
use crate::world::PeerId;
use crate::world::seeds::seed;

/// One alone in a room, at rest.
fn alone() -> (Hall, PeerId) {
    let mut hall = Hall::new(seed());
    let peer = hall.silent_user("a", 1);
    hall.create(peer, "den", 16);
    hall.for_ms(1000);
    hall[peer].forget();
    (hall, peer)
}

/// The updates that came, and when.
fn updates(hall: &Hall, peer: PeerId) -> Vec<(u64, Vec<Position>)> {
    let came = hall[peer].came(kind::UPDATE).into_iter();
    came.map(|got| match &got.said {
        Said::Update(positions) => (got.at, positions.clone()),
        _ => unreachable!(),
    })
    .collect()
}

/// Where an entity was last.
#[track_caller]
fn place(hall: &Hall, peer: PeerId, entity: u32) -> (f32, f32) {
    let updates = updates(hall, peer);
    let (_, last) = updates.last().expect("an update came");
    let position = last.iter().find(|it| it.entity == entity);
    let position = position.expect("it was named");
    (position.x, position.y)
}

#[test]
fn r66_ships() {
    let mut hall = Hall::new(seed());
    let peers: Vec<PeerId> = (0..16)
        .map(|seat| hall.user(&format!("u{seat}"), seat + 1))
        .collect();
    hall.create(peers[0], "den", 16);
    for peer in &peers[1..] {
        hall.join(*peer, "den");
    }
    hall.for_ms(6000);
    for peer in peers {
        let seen = &hall[peer].picture.as_ref().expect("in a room").seen;
        assert_eq!(seen.len(), 16);
        for ship in seen.values() {
            let seat = f32::from(ship.owner);
            let x = 100.0 + 100.0 * (seat % 4.0);
            let y = 100.0 + 200.0 * (seat / 4.0).floor();
            assert_eq!((ship.kind, ship.at), (1, Some((x, y))));
        }
    }
}

#[test]
fn r67_moving() {
    let (mut hall, peer) = alone();
    let (mut x, mut y) = (100.0, 100.0);
    let keys = [
        (262, 10.0, 0.0),
        (263, -10.0, 0.0),
        (264, 0.0, 10.0),
        (265, 0.0, -10.0),
        (68, 10.0, 0.0),
        (65, -10.0, 0.0),
        (83, 0.0, 10.0),
        (87, 0.0, -10.0),
    ];
    for (key, right, down) in keys {
        for _ in 0..2 {
            hall.send(peer, &Ask::key(key));
            hall.for_ms(100);
            (x, y) = (x + right, y + down);
            assert_eq!(place(&hall, peer, 1), (x, y), "{key}");
        }
    }
    for (key, x, y) in [
        (263, 0.0, 100.0),
        (265, 0.0, 0.0),
        (262, 1920.0, 0.0),
        (264, 1920.0, 1080.0),
    ] {
        for _ in 0..210 {
            hall.send(peer, &Ask::key(key));
            hall.for_ms(9);
        }
        assert_eq!(place(&hall, peer, 1), (x, y), "the border");
    }
}

#[test]
fn r68_shots() {
    for (key, from) in [(32, 0), (501, 5)] {
        let (mut hall, peer) = alone();
        for _ in 0..from {
            hall.send(peer, &Ask::key(262));
        }
        hall.for_ms(1000);
        hall[peer].forget();
        let start = hall.now() + 5;
        hall.send(peer, &Ask::key(key));
        let shot = Said::Create {
            entity: 2,
            kind: 2,
            owner: 0,
        };
        assert_eq!(hall[peer].heard(kind::CREATE_ENTITY), [&shot]);
        hall.for_ms(4000);
        let x = 100.0 + 10.0 * from as f32;
        for (at, positions) in updates(&hall, peer) {
            let flown = (at - 5 - start) as f32 * 0.6;
            if let Some(shot) = positions.iter().find(|it| it.entity == 2) {
                assert!((shot.x - x - flown).abs() < 0.1, "{shot:?} after {flown}");
                assert_eq!(shot.y, 100.0);
            } else {
                assert!(x + flown >= 1920.0);
            }
        }
        let gone = hall[peer].came(kind::DELETE_ENTITY);
        assert_eq!(gone.len(), 4);
        assert_eq!(gone[0].said, Said::Delete(2));
        let flight = ((1920.0 - x) / 0.6) as u64;
        let late = gone[0].at - 5 - start - flight;
        assert!(late <= 34, "{late} ms late");
    }
}

#[test]
fn r69_ignored_keys() {
    let (mut hall, peer) = alone();
    let names = [262, 263, 264, 265, 68, 65, 83, 87, 32, 501];
    for key in (-5..600).filter(|key| !names.contains(key)) {
        hall[peer].send(&Ask::key(key));
        hall.for_ms(17);
    }
    assert!(hall[peer].log.is_empty(), "nothing moved");
    for _ in 0..4 {
        hall.send(peer, &Ask::key(32));
    }
    assert_eq!(hall[peer].heard(kind::CREATE_ENTITY).len(), 2);
    // One more when one of them is gone; each ship has two of its own.
    let other = hall.silent_user("b", 2);
    hall.join(other, "den");
    for _ in 0..4 {
        hall.send(other, &Ask::key(501));
    }
    hall.for_ms(200);
    assert_eq!(hall[other].heard(kind::CREATE_ENTITY).len(), 2);
    hall.for_ms(3000);
    hall[peer].forget();
    hall.send(peer, &Ask::key(32));
    assert_eq!(hall[peer].heard(kind::CREATE_ENTITY).len(), 1);
}

#[test]
fn r70_rounds() {
    let (mut hall, peer) = alone();
    let other = hall.silent_user("b", 2);
    hall.join(other, "den");
    hall.for_ms(1000);
    for peer in [peer, other] {
        hall[peer].forget();
    }
    // One step: the round that shows it, and five more.
    hall.send(peer, &Ask::key(262));
    hall.for_ms(2000);
    for peer in [peer, other] {
        let updates = updates(&hall, peer);
        assert_eq!(updates.len(), 6);
        for (_, positions) in &updates {
            let places: Vec<_> = positions.iter().map(|it| (it.entity, it.x)).collect();
            assert_eq!(places, [(1, 110.0), (2, 200.0)]);
        }
        let times: Vec<u64> = updates.iter().map(|(at, _)| at - updates[0].0).collect();
        assert_eq!(times, [0, 33, 66, 100, 133, 166]);
    }
    // Two seconds of steps: 30 a second, and five more.
    hall[peer].forget();
    for _ in 0..100 {
        hall[peer].send(&Ask::key(262));
        hall.for_ms(20);
    }
    let last = hall.now() - 20 + 5;
    hall.for_ms(2000);
    let updates = updates(&hall, peer);
    let (moving, after): (Vec<_>, Vec<_>) = updates.iter().partition(|(at, _)| at - 5 <= last);
    assert!((59..=61).contains(&moving.len()), "{}", moving.len());
    assert!((5..=6).contains(&after.len()), "{}", after.len());
    for pair in updates.windows(2) {
        assert!((33..=34).contains(&(pair[1].0 - pair[0].0)));
    }
    assert_eq!(place(&hall, peer, 1), (1110.0, 100.0));
}

#[test]
fn r70_a_rest_after_the_last_shot() {
    let (mut hall, peer) = alone();
    hall.send(peer, &Ask::key(32));
    hall.for_ms(10_000 - 500);
    let updates = updates(&hall, peer);
    let last_with = updates.iter().rposition(|(_, all)| all.len() == 2);
    let after = updates.len() - 1 - last_with.expect("it flew");
    assert_eq!(after, 6, "the one without the shot, and five more");
    let (first, last) = (updates[0].0, updates[updates.len() - 1].0);
    let rounds = (last - first) * 30 / 1000;
    assert!(rounds.abs_diff(updates.len() as u64 - 1) <= 1, "{rounds}");
}
