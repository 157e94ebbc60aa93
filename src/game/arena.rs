//! The arena: every player flies a ship over a field and shoots.

use std::collections::BTreeMap;

use crate::engine::{Component, Entity, Event, Game, Player, Refusal, Replies, Time};

/// The field, in units; x to the right, y down.
const WIDTH: f32 = 1920.0;
const HEIGHT: f32 = 1080.0;
/// Units a ship moves by each key.
const STEP: f32 = 10.0;
/// Units a shot flies each second.
const SHOT_SPEED: f32 = 600.0;
/// Shots a ship may have alive.
const SHOTS_MAX: usize = 2;
/// Rounds of updates a second while something moves.
const ROUNDS_PER_SECOND: u64 = 30;
/// Rounds after the last movement: a lost one must not leave a wrong picture.
const ROUNDS_AFTER: u8 = 5;

const SHIP: u16 = 1;
const SHOT: u16 = 2;

/// Ships and shots in every room.
#[derive(Debug, Default)]
pub struct Arena {
    rooms: BTreeMap<u32, Room>,
}

#[derive(Debug, Default)]
struct Room {
    ships: BTreeMap<u8, Ship>,
    shots: Vec<Shot>,
    /// Entities made so far; none is ever used again.
    entities: u32,
    /// Rounds still to be told.
    rounds_left: u8,
    /// When the next round is due.
    round_at: Time,
    /// When the last one was told: shots have flown until then.
    flown_until: Time,
    /// Rounds since movement began, for a rhythm that does not drift.
    round: u64,
    began: Time,
}

#[derive(Debug)]
struct Ship {
    player: Player,
    entity: u32,
    x: f32,
    y: f32,
}

#[derive(Debug, Clone, Copy)]
struct Shot {
    entity: u32,
    owner: u8,
    x: f32,
    y: f32,
}

/// What a key does.
enum Order {
    Move(f32, f32),
    Shoot,
}

impl Order {
    fn of(key: i32) -> Option<Self> {
        Some(match key {
            262 | 68 => Self::Move(STEP, 0.0),
            263 | 65 => Self::Move(-STEP, 0.0),
            264 | 83 => Self::Move(0.0, STEP),
            265 | 87 => Self::Move(0.0, -STEP),
            32 | 501 => Self::Shoot,
            _ => return None,
        })
    }
}

impl Arena {
    /// An arena nobody is in.
    pub fn new() -> Self {
        Self::default()
    }

    fn joined(&mut self, now: Time, player: Player, out: &mut dyn Replies) {
        let room = self.rooms.entry(player.game()).or_default();
        let entity = room.next_entity();
        let number = player.number();
        let ship = Ship {
            player,
            entity,
            x: 100.0 + 100.0 * f32::from(number % 4),
            y: 100.0 + 200.0 * f32::from(number / 4),
        };
        let shown = ship.shown();
        room.everyone(|other| out.show(other, shown));
        room.ships.insert(number, ship);
        room.moved(now);
    }

    fn left(&mut self, player: Player, out: &mut dyn Replies) {
        let Some(room) = self.rooms.get_mut(&player.game()) else {
            return;
        };
        let number = player.number();
        let Some(ship) = room.ships.remove(&number) else {
            return;
        };
        let shots = room.shots.extract_if(.., |shot| shot.owner == number);
        let gone: Vec<u32> = shots.map(|shot| shot.entity).chain([ship.entity]).collect();
        for entity in gone {
            room.everyone(|other| out.hide(other, entity));
        }
        if room.ships.is_empty() {
            self.rooms.remove(&player.game());
        }
    }

    fn key(&mut self, now: Time, player: Player, key: i32, out: &mut dyn Replies) {
        let Some(room) = self.rooms.get_mut(&player.game()) else {
            return;
        };
        let Some(ship) = room.ships.get_mut(&player.number()) else {
            return;
        };
        match Order::of(key) {
            Some(Order::Move(right, down)) => {
                ship.x = (ship.x + right).clamp(0.0, WIDTH);
                ship.y = (ship.y + down).clamp(0.0, HEIGHT);
                room.moved(now);
            }
            Some(Order::Shoot) => room.shoot(now, player.number(), out),
            None => {}
        }
    }

    /// Shows a player everything there is.
    fn refresh(&self, player: Player, out: &mut dyn Replies) {
        let Some(room) = self.rooms.get(&player.game()) else {
            return;
        };
        let ships = room.ships.values().map(Ship::shown);
        let shots = room.shots.iter().map(Shot::shown);
        for entity in ships.chain(shots) {
            // Whoever asked is there still, or is told nothing.
            let _ = out.show(player, entity);
        }
        let _ = out.update(player, &room.positions());
    }
}

impl Room {
    fn next_entity(&mut self) -> u32 {
        self.entities += 1;
        self.entities
    }

    /// Does something to every player. What one of them cannot be sent is its own affair.
    fn everyone(&self, mut pass: impl FnMut(Player) -> Result<(), Refusal>) {
        for ship in self.ships.values() {
            let _ = pass(ship.player);
        }
    }

    /// Something moves: rounds are told from now on.
    fn moved(&mut self, now: Time) {
        if self.rounds_left == 0 {
            self.began = now;
            self.flown_until = now;
            self.round = 0;
            self.round_at = now;
        }
        // The one that shows this movement, and those after it.
        self.rounds_left = ROUNDS_AFTER + 1;
    }

    fn shoot(&mut self, now: Time, owner: u8, out: &mut dyn Replies) {
        if self.shots.iter().filter(|shot| shot.owner == owner).count() >= SHOTS_MAX {
            return;
        }
        let entity = self.next_entity();
        let Some(ship) = self.ships.get(&owner) else {
            return;
        };
        let shot = Shot {
            entity,
            owner,
            x: ship.x,
            y: ship.y,
        };
        self.everyone(|player| out.show(player, shot.shown()));
        self.shots.push(shot);
        self.moved(now);
    }

    /// One round: shots fly, and everybody is told where everything is.
    fn round(&mut self, now: Time, out: &mut dyn Replies) {
        let flown = now.since(self.flown_until) as f32 / 1_000.0 * SHOT_SPEED;
        self.flown_until = now;
        for shot in &mut self.shots {
            shot.x += flown;
        }
        let over: Vec<Shot> = self.shots.extract_if(.., |shot| shot.x >= WIDTH).collect();
        for shot in &over {
            self.everyone(|player| out.hide(player, shot.entity));
        }
        let positions = self.positions();
        self.everyone(|player| out.update(player, &positions));
        let is_moving = !self.shots.is_empty() || !over.is_empty();
        self.rounds_left = if is_moving {
            ROUNDS_AFTER
        } else {
            self.rounds_left - 1
        };
        let due = |round: u64| self.began + round * 1_000 / ROUNDS_PER_SECOND;
        self.round += 1;
        while due(self.round) <= now {
            self.round += 1;
        }
        self.round_at = due(self.round);
    }

    fn positions(&self) -> Vec<Component<'static>> {
        let ships = self
            .ships
            .values()
            .map(|ship| (ship.entity, ship.x, ship.y));
        let shots = self.shots.iter().map(|shot| (shot.entity, shot.x, shot.y));
        let all = ships.chain(shots);
        all.map(|(entity, x, y)| Component::Position { entity, x, y })
            .collect()
    }
}

impl Ship {
    fn shown(&self) -> Entity {
        Entity {
            id: self.entity,
            kind: SHIP,
            owner: Some(self.player.number()),
        }
    }
}

impl Shot {
    fn shown(&self) -> Entity {
        Entity {
            id: self.entity,
            kind: SHOT,
            owner: Some(self.owner),
        }
    }
}

impl Game for Arena {
    fn event(&mut self, now: Time, event: Event<'_>, out: &mut dyn Replies) {
        match event {
            Event::Joined { player, .. } => self.joined(now, player, out),
            Event::Left { player, .. } => self.left(player, out),
            Event::Key { player, key } => self.key(now, player, key, out),
            Event::Refresh { player } => self.refresh(player, out),
            _ => {}
        }
    }

    fn wake(&self) -> Option<Time> {
        let moving = self.rooms.values().filter(|room| room.rounds_left > 0);
        moving.map(|room| room.round_at).min()
    }

    fn tick(&mut self, now: Time, out: &mut dyn Replies) {
        for room in self.rooms.values_mut() {
            if room.rounds_left > 0 && room.round_at <= now {
                room.round(now, out);
            }
        }
    }
}
