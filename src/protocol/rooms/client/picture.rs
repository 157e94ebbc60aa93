//! What there is in the room, as far as the server has told.

use super::super::wire::Component;
use crate::engine::{Time, seq};

/// The kind of entities that fly: a shot that no Update named for a while is gone.
pub const SHOT: u16 = 2;
/// For so long.
const SHOT_MS: u64 = 1_000;
/// So many entities are known at a time; more than any game of 16 needs.
const ENTITIES_MAX: usize = 4_096;
/// So many are kept that were updated before they were told; of a game of 16 with its shots.
const EARLY_MAX: usize = 64;
/// So many deleted ids are remembered: more than can be on the way.
const DELETED_MAX: usize = 1_024;

/// An entity as it was told last.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Seen {
    /// Its number in the room.
    pub id: u32,
    /// What it is, as the game numbers kinds.
    pub kind: u16,
    /// The seat of its owner, if it has one.
    pub owner: Option<u8>,
    /// To the right and downwards, in the game's units, once it was told.
    pub position: Option<(f32, f32)>,
    /// Its points, once they were told.
    pub health: Option<i32>,
    /// When it was named last.
    named_at: Time,
}

/// The entities of one room.
#[derive(Debug)]
pub struct Picture {
    /// By their ids.
    entities: Vec<Seen>,
    /// Ids of the deleted, as a ring.
    deleted: Vec<u32>,
    deleted_next: usize,
    /// What Updates said of entities that were not told yet, by their ids: the first Update may
    /// come before, and there may be no other.
    early: Vec<Seen>,
    newest_update: Option<u16>,
    /// No shot is gone before.
    shots_until: Time,
}

/// What became of something that was told about an entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// It is new, or has changed.
    News,
    /// It was known.
    Known,
    /// It was deleted, and stays so.
    Deleted,
    /// Nothing is known of it.
    Unknown,
    /// There are too many.
    Full,
}

impl Default for Picture {
    /// An empty one.
    fn default() -> Self {
        Self {
            entities: Vec::new(),
            deleted: Vec::new(),
            deleted_next: 0,
            early: Vec::new(),
            newest_update: None,
            shots_until: Time::NEVER,
        }
    }
}

impl Picture {
    /// All there is, by id.
    pub fn entities(&self) -> &[Seen] {
        &self.entities
    }

    /// Whether an Update of this id tells anything new; it is the newest then.
    pub fn take_update(&mut self, id: u16) -> bool {
        let is_news = self
            .newest_update
            .is_none_or(|newest| seq::distance(newest, id) > 0);
        if is_news {
            self.newest_update = Some(id);
        }
        is_news
    }

    /// There is an entity.
    pub fn created(&mut self, now: Time, id: u32, kind: u16, owner: Option<u8>) -> Told {
        if self.deleted.contains(&id) {
            return Told::Deleted;
        }
        let at = match self.place(id) {
            Ok(at) => {
                let entity = &mut self.entities[at];
                (entity.kind, entity.owner, entity.named_at) = (kind, owner, now);
                return Told::Known;
            }
            Err(_) if self.entities.len() >= ENTITIES_MAX => return Told::Full,
            Err(at) => at,
        };
        let mut entity = Seen::new(now, id);
        if let Ok(early) = place(&self.early, id) {
            entity = self.early.remove(early);
        }
        (entity.kind, entity.owner, entity.named_at) = (kind, owner, now);
        self.entities.insert(at, entity);
        if kind == SHOT {
            self.shots_until = self.shots_until.min(now + SHOT_MS);
        }
        Told::News
    }

    /// This is how an entity is now.
    pub fn updated(&mut self, now: Time, component: &Component<'_>) -> Told {
        let (Component::Position { entity, .. } | Component::Health { entity, .. }) = component
        else {
            return Told::News;
        };
        if self.deleted.contains(entity) {
            return Told::Deleted;
        }
        let Ok(at) = self.place(*entity) else {
            self.updated_early(now, *entity, component);
            return Told::Unknown;
        };
        self.entities[at].take(now, component);
        Told::News
    }

    /// Keeps what is said of an entity that was not told, as far as there is room.
    fn updated_early(&mut self, now: Time, id: u32, component: &Component<'_>) {
        let at = match place(&self.early, id) {
            Ok(at) => at,
            Err(_) if self.early.len() >= EARLY_MAX => return,
            Err(at) => {
                self.early.insert(at, Seen::new(now, id));
                at
            }
        };
        self.early[at].take(now, component);
    }

    /// An entity is gone for ever; whether it was known.
    pub fn deleted(&mut self, id: u32) -> Told {
        if !self.deleted.contains(&id) {
            match self.deleted.get_mut(self.deleted_next) {
                Some(oldest) => *oldest = id,
                None => self.deleted.push(id),
            }
            self.deleted_next = (self.deleted_next + 1) % DELETED_MAX;
        }
        if let Ok(early) = place(&self.early, id) {
            self.early.remove(early);
        }
        match self.place(id) {
            Ok(at) => {
                self.entities.remove(at);
                Told::News
            }
            Err(_) => Told::Unknown,
        }
    }

    /// When a shot may be gone.
    pub fn deadline(&self) -> Time {
        self.shots_until
    }

    /// Takes away a shot that no Update named for too long, if there is one. One that is named
    /// again was not gone: it is unknown then, not deleted.
    pub fn expire(&mut self, now: Time) -> Option<u32> {
        if now < self.shots_until {
            return None;
        }
        let is_gone = |shot: &Seen| shot.kind == SHOT && shot.named_at + SHOT_MS <= now;
        if let Some(at) = self.entities.iter().position(is_gone) {
            return Some(self.entities.remove(at).id);
        }
        let shots = self.entities.iter().filter(|entity| entity.kind == SHOT);
        let until = shots.map(|shot| shot.named_at + SHOT_MS).min();
        self.shots_until = until.unwrap_or(Time::NEVER);
        None
    }

    fn place(&self, id: u32) -> Result<usize, usize> {
        place(&self.entities, id)
    }
}

impl Seen {
    /// One of which nothing is known.
    fn new(now: Time, id: u32) -> Self {
        Self {
            id,
            kind: 0,
            owner: None,
            position: None,
            health: None,
            named_at: now,
        }
    }

    fn take(&mut self, now: Time, component: &Component<'_>) {
        self.named_at = now;
        match *component {
            Component::Position { x, y, .. } => self.position = Some((x.get(), y.get())),
            Component::Health { points, .. } => self.health = Some(points),
            Component::Custom(_) => {}
        }
    }
}

fn place(entities: &[Seen], id: u32) -> Result<usize, usize> {
    entities.binary_search_by_key(&id, |entity| entity.id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_the_deleted_are_remembered_up_to_a_bound() {
        let mut picture = Picture::default();
        for id in 0..3_000 {
            assert_eq!(picture.created(Time::ZERO, id, 1, None), Told::News);
            assert_eq!(picture.deleted(id), Told::News);
            assert_eq!(picture.deleted(id), Told::Unknown);
        }
        assert_eq!(picture.deleted.len(), DELETED_MAX);
        assert_eq!(picture.created(Time::ZERO, 2_999, 1, None), Told::Deleted);
        assert_eq!(picture.created(Time::ZERO, 1_976, 1, None), Told::Deleted);
        assert_eq!(picture.created(Time::ZERO, 1_975, 1, None), Told::News);
    }

    #[test]
    fn there_is_an_end_to_entities() {
        let mut picture = Picture::default();
        for id in 0..ENTITIES_MAX as u32 {
            assert_eq!(picture.created(Time::ZERO, id, 1, None), Told::News);
        }
        assert_eq!(picture.created(Time::ZERO, u32::MAX, 1, None), Told::Full);
        assert_eq!(picture.created(Time::ZERO, 0, 1, None), Told::Known);
        picture.deleted(7);
        assert_eq!(picture.created(Time::ZERO, u32::MAX, 1, None), Told::News);
    }

    #[test]
    fn updates_are_taken_in_order_across_the_wrap() {
        let mut picture = Picture::default();
        let taken = [65_530, 65_529, 65_535, 2, 65_535, 2, 3].map(|id| picture.take_update(id));
        assert_eq!(taken, [true, false, true, true, false, false, true]);
    }
}
