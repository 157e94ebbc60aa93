//! Sizes, seats and owners after any order of coming and going, held against a model.

use std::collections::BTreeMap;

use anteroom::engine::Seeded;

use super::bytes::{Ask, Said};
use super::hall::{Hall, SERVICE, Told, address};
use super::peer::Peer;
use crate::world::PeerId;
use crate::world::seeds::seeds;

/// A room as it must be.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Room {
    name: String,
    password: &'static str,
    max_players: u8,
    owner: usize,
    seats: BTreeMap<u8, usize>,
}

/// All rooms in their order, and who has a session.
#[derive(Debug, Default)]
struct Model {
    rooms: Vec<Room>,
    there: BTreeMap<usize, PeerId>,
    /// Everybody comes from an address of its own.
    hosts: u16,
}

impl Model {
    fn room_of(&self, who: usize) -> Option<usize> {
        let is_in = |room: &Room| room.seats.values().any(|there| *there == who);
        self.rooms.iter().position(is_in)
    }

    fn leave(&mut self, who: usize) -> bool {
        let Some(index) = self.room_of(who) else {
            return false;
        };
        let room = &mut self.rooms[index];
        room.seats.retain(|_, there| *there != who);
        match room.seats.values().next() {
            None => drop(self.rooms.remove(index)),
            Some(lowest) if room.owner == who => room.owner = *lowest,
            Some(_) => {}
        }
        true
    }

    fn create(&mut self, who: usize, name: &str, password: &'static str, size: u8) -> Said {
        let reason = if self.room_of(who).is_some() {
            6
        } else if size == 0 || size > 16 {
            4
        } else if self.rooms.iter().any(|room| room.name == name) {
            1
        } else {
            self.rooms.push(Room {
                name: name.to_owned(),
                password,
                max_players: size,
                owner: who,
                seats: BTreeMap::from([(0, who)]),
            });
            0
        };
        Said::CreateRoom(reason == 0, reason)
    }

    fn join(&mut self, who: usize, name: &str, password: &str) -> Said {
        let mine = self.room_of(who);
        let wanted = self.rooms.iter().position(|room| room.name == name);
        let no = Said::Join(false, 255, name.to_owned());
        let (Some(index), true) = (wanted, mine.is_none() || mine == wanted) else {
            return no;
        };
        let room = &mut self.rooms[index];
        if mine.is_some() {
            let held = room.seats.iter().find(|(_, there)| **there == who);
            let (seat, _) = held.expect("it is in the room");
            return Said::Join(true, *seat, name.to_owned());
        }
        if !room.password.is_empty() && room.password != password {
            return Said::WrongPassword;
        }
        let free = (0..room.max_players).find(|seat| !room.seats.contains_key(seat));
        let Some(seat) = free else {
            return Said::FullRoom;
        };
        room.seats.insert(seat, who);
        Said::Join(true, seat, name.to_owned())
    }

    fn delete(&mut self, who: usize, name: &str) -> Said {
        let is_mine = |room: &Room| room.name == name && room.owner == who;
        let index = self.rooms.iter().position(is_mine);
        if let Some(index) = index {
            self.rooms.remove(index);
        }
        Said::DeleteRoom(index.is_some(), name.to_owned())
    }
}

/// What somebody does.
fn step(hall: &mut Hall, model: &mut Model, dice: &mut Seeded, who: usize) {
    let Some(peer) = model.there.get(&who).copied() else {
        model.hosts += 1;
        let peer = hall.enter_as(Peer::new(address(model.hosts)));
        hall.log_in(peer, &format!("u{who}"));
        model.there.insert(who, peer);
        return;
    };
    let name = format!("room {}", dice.below(4));
    let password = ["", "pw", "other"][dice.below(3) as usize];
    let size = dice.below(6) as u8;
    match dice.below(14) {
        0..3 => {
            let expected = model.create(who, &name, password, size);
            let ask = Ask::create(&name, password, size);
            assert_eq!(hall.ask(peer, &ask), expected, "{ask:02X?}");
        }
        3..8 => {
            let expected = model.join(who, &name, password);
            let answer = hall.ask(peer, &Ask::join(&name, password));
            assert_eq!(answer, expected, "{who} joins {name} with {password}");
        }
        8..10 => {
            let expected = Said::Leave(model.leave(who));
            assert_eq!(hall.ask(peer, &Ask::leave()), expected);
        }
        10 => {
            let expected = model.delete(who, &name);
            assert_eq!(hall.ask(peer, &Ask::delete(&name)), expected);
        }
        other => drop_out(hall, model, who, peer, other),
    }
}

/// Its session ends, in one way or another.
fn drop_out(hall: &mut Hall, model: &mut Model, who: usize, peer: PeerId, how: u64) {
    model.leave(who);
    model.there.remove(&who);
    match how {
        11 => {
            hall[peer].send(&Ask::logout());
        }
        12 => hall[peer].abort(),
        _ => {
            // It comes back while its ghost is still there.
            model.hosts += 1;
            let next = hall.enter_as(Peer::new(address(model.hosts)));
            hall.log_in(next, &format!("u{who}"));
            hall.settle();
            assert_eq!(hall[peer].logged_out(), Some(5));
            model.there.insert(who, next);
        }
    }
    hall.settle();
}

/// The list of the rooms is the model's.
fn check(hall: &mut Hall, model: &Model) {
    assert_eq!(hall.stat(SERVICE, "rooms"), model.rooms.len() as u64);
    let Some(peer) = model.there.values().next() else {
        return;
    };
    let Said::Page(page) = hall.ask(*peer, &Ask::rooms(0)) else {
        panic!("no page");
    };
    assert_eq!(usize::from(page.total), model.rooms.len());
    for (listed, room) in page.rooms.iter().zip(&model.rooms) {
        assert_eq!(listed.name, room.name);
        assert_eq!(usize::from(listed.players), room.seats.len());
        assert_eq!(listed.max_players, room.max_players);
        assert_eq!(listed.private, !room.password.is_empty());
    }
}

/// What the game was told leads to the same seats.
fn check_told(told: &[Told], model: &Model) {
    let mut there = BTreeMap::new();
    for told in told {
        match told {
            Told::Joined { player, name } => {
                let seat = (player.game(), player.number());
                let before = there.insert(seat, (*player, name.clone()));
                assert_eq!(before, None, "two on seat {seat:?}");
            }
            Told::Left { player, .. } => {
                let seat = (player.game(), player.number());
                let (who, _) = there.remove(&seat).expect("who left was there");
                assert_eq!(who, *player, "another one left");
            }
            _ => {}
        }
    }
    let mut seats: Vec<(u8, String)> = there
        .into_iter()
        .map(|((_, seat), (_, name))| (seat, name))
        .collect();
    let expected = model.rooms.iter().flat_map(|room| &room.seats);
    let mut expected: Vec<_> = expected
        .map(|(seat, who)| (*seat, format!("u{who}")))
        .collect();
    seats.sort();
    expected.sort();
    assert_eq!(seats, expected);
}

#[test]
fn sizes_seats_and_owners_are_right_after_any_order() {
    seeds(30, |seed| {
        let mut hall = Hall::new(seed);
        let (mut model, mut dice) = (Model::default(), Seeded::new(seed));
        let mut told = Vec::new();
        for _ in 0..150 {
            let who = dice.below(8) as usize;
            step(&mut hall, &mut model, &mut dice, who);
            check(&mut hall, &model);
            told.extend(hall.told());
            check_told(&told, &model);
            // Within everybody's budget of requests.
            hall.for_ms(60);
        }
    });
}
