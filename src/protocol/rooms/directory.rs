//! The rooms there are, who sits in them, and whose they are.

use super::wire::PLAYERS_MAX;
use crate::engine::Key;

/// So many entities may be in a room.
pub const ENTITIES_MAX: usize = 256;

/// A room.
#[derive(Debug)]
pub struct Room {
    pub name: Box<str>,
    /// Empty: anybody may join.
    password: Box<str>,
    seats: Vec<Option<Key>>,
    owner: Key,
    /// What its game has shown and not taken away again, in order.
    entities: Vec<u32>,
}

impl Room {
    /// Whether it asks for a password.
    pub fn is_private(&self) -> bool {
        !self.password.is_empty()
    }

    /// Whether this password opens it; a public room takes any.
    pub fn takes(&self, password: &[u8]) -> bool {
        !self.is_private() || self.password.as_bytes() == password
    }

    /// How many are in it.
    pub fn players(&self) -> u8 {
        self.members().count() as u8
    }

    /// How many it is for.
    pub fn max_players(&self) -> u8 {
        self.seats.len() as u8
    }

    /// Whose it is.
    pub fn owner(&self) -> Key {
        self.owner
    }

    /// Who is in it, by seat.
    pub fn members(&self) -> impl Iterator<Item = Key> {
        self.seats.iter().flatten().copied()
    }

    /// Whether the entity may be shown: there is room for it, or it is there already.
    pub fn show(&mut self, entity: u32) -> bool {
        let Err(place) = self.entities.binary_search(&entity) else {
            return true;
        };
        let has_room = self.entities.len() < ENTITIES_MAX;
        if has_room {
            self.entities.insert(place, entity);
        }
        has_room
    }

    /// The entity is gone.
    pub fn hide(&mut self, entity: u32) {
        if let Ok(place) = self.entities.binary_search(&entity) {
            self.entities.remove(place);
        }
    }

    /// Takes the lowest free seat; `None` if the room is full.
    fn sit(&mut self, key: Key) -> Option<u8> {
        let seat = self.seats.iter().position(Option::is_none)?;
        self.seats[seat] = Some(key);
        Some(seat as u8)
    }

    /// Frees the seat of `key`. Returns whether anybody is left; the room then belongs to the
    /// lowest seat if it was that of `key`.
    fn stand_up(&mut self, key: Key) -> bool {
        for seat in &mut self.seats {
            seat.take_if(|there| *there == key);
        }
        let Some(lowest) = self.members().next() else {
            return false;
        };
        if self.owner == key {
            self.owner = lowest;
        }
        true
    }
}

/// All rooms.
#[derive(Debug, Default)]
pub struct Directory {
    /// By the number under which a game knows them, which is used again.
    rooms: Vec<Option<Room>>,
    /// Those numbers, in the order in which the rooms were created.
    order: Vec<u32>,
}

impl Directory {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// The room of this number.
    pub fn get(&self, number: u32) -> Option<&Room> {
        self.rooms.get(number as usize)?.as_ref()
    }

    /// As [`Directory::get`].
    pub fn get_mut(&mut self, number: u32) -> Option<&mut Room> {
        self.rooms.get_mut(number as usize)?.as_mut()
    }

    /// The number of the room of this name.
    pub fn named(&self, name: &[u8]) -> Option<u32> {
        let is_it = |number: &&u32| {
            self.get(**number)
                .is_some_and(|it| it.name.as_bytes() == name)
        };
        self.order.iter().find(is_it).copied()
    }

    /// In order of creation.
    pub fn iter(&self) -> impl Iterator<Item = &Room> {
        self.order.iter().filter_map(|number| self.get(*number))
    }

    /// A new room in which `owner` has seat 0. Returns its number.
    pub fn create(&mut self, name: &str, password: &str, max_players: u8, owner: Key) -> u32 {
        debug_assert!((1..=PLAYERS_MAX).contains(&max_players));
        let mut seats = vec![None; usize::from(max_players)];
        seats[0] = Some(owner);
        let room = Room {
            name: name.into(),
            password: password.into(),
            seats,
            owner,
            entities: Vec::new(),
        };
        let free = self.rooms.iter().position(Option::is_none);
        let number = free.unwrap_or(self.rooms.len());
        if number == self.rooms.len() {
            self.rooms.push(None);
        }
        self.rooms[number] = Some(room);
        self.order.push(number as u32);
        number as u32
    }

    /// Gives `key` the lowest free seat; `None` if the room is full or there is none.
    pub fn join(&mut self, number: u32, key: Key) -> Option<u8> {
        self.get_mut(number)?.sit(key)
    }

    /// Takes `key` out of the room, which ends with its last member.
    pub fn leave(&mut self, number: u32, key: Key) {
        let room = self.get_mut(number);
        if room.is_some_and(|room| !room.stand_up(key)) {
            self.delete(number);
        }
    }

    /// The room is gone.
    pub fn delete(&mut self, number: u32) -> Option<Room> {
        self.order.retain(|there| *there != number);
        self.rooms.get_mut(number as usize)?.take()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::engine::Seeded;

    fn key(slot: u32) -> Key {
        Key {
            slot,
            generation: 0,
        }
    }

    /// The model: for each room its name, its size, its owner and who sits where.
    type Model = Vec<(String, u8, u32, BTreeMap<u8, u32>)>;

    #[test]
    fn sizes_seats_and_owners_are_right_after_any_order_of_coming_and_going() {
        for seed in 0..50 {
            let mut dice = Seeded::new(seed);
            let (mut directory, mut model) = (Directory::default(), Model::new());
            let mut whereabouts: BTreeMap<u32, String> = BTreeMap::new();
            for step in 0..400 {
                let who = dice.below(30) as u32;
                let name = format!("room {}", dice.below(6));
                match (whereabouts.get(&who).cloned(), dice.below(3)) {
                    (None, 0) if directory.named(name.as_bytes()).is_none() => {
                        let size = 1 + dice.below(16) as u8;
                        directory.create(&name, "", size, key(who));
                        model.push((name.clone(), size, who, BTreeMap::from([(0, who)])));
                        whereabouts.insert(who, name);
                    }
                    (None, _) => {
                        let number = directory.named(name.as_bytes());
                        let seat = number.and_then(|number| directory.join(number, key(who)));
                        let room = model.iter_mut().find(|(it, ..)| *it == name);
                        let expected = room.and_then(|(_, size, _, seats)| {
                            let free = (0..*size).find(|seat| !seats.contains_key(seat))?;
                            seats.insert(free, who);
                            Some(free)
                        });
                        assert_eq!(seat, expected, "seed {seed}, step {step}");
                        if seat.is_some() {
                            whereabouts.insert(who, name);
                        }
                    }
                    (Some(at), _) => {
                        let number = directory.named(at.as_bytes()).expect("it is there");
                        directory.leave(number, key(who));
                        whereabouts.remove(&who);
                        let room = model.iter_mut().find(|(it, ..)| *it == at).expect("there");
                        room.3.retain(|_, there| *there != who);
                        if room.2 == who {
                            room.2 = room.3.values().next().copied().unwrap_or(who);
                        }
                        model.retain(|(.., seats)| !seats.is_empty());
                    }
                }
                let told: Vec<_> = directory
                    .iter()
                    .map(|it| {
                        (
                            it.name.to_string(),
                            it.players(),
                            it.max_players(),
                            it.owner(),
                        )
                    })
                    .collect();
                let expected: Vec<_> = model
                    .iter()
                    .map(|(name, size, owner, seats)| {
                        (name.clone(), seats.len() as u8, *size, key(*owner))
                    })
                    .collect();
                assert_eq!(told, expected, "seed {seed}, step {step}");
            }
        }
    }
}
