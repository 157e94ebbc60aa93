//! What a client knows of its room: the entities and where they are.

use std::collections::{BTreeMap, BTreeSet};

use super::bytes::{Packet, Said, is_older};

/// An entity as the client knows it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Seen {
    pub kind: u16,
    pub owner: u8,
    /// Since the first Update.
    pub at: Option<(f32, f32)>,
}

/// The picture of one stay in a room.
#[derive(Debug)]
pub struct Picture {
    /// The id of the answer that let the client in, until nothing older can come any more.
    since: Option<u16>,
    pub seen: BTreeMap<u32, Seen>,
    gone: BTreeSet<u32>,
    newest_update: Option<u16>,
    /// When an Update last named a shot.
    named: BTreeMap<u32, u64>,
}

const SHOT: u16 = 2;
const LOST_MS: u64 = 1000;

impl Picture {
    /// Nothing is known yet.
    pub fn new(since: u16) -> Self {
        Self {
            since: Some(since),
            seen: BTreeMap::new(),
            gone: BTreeSet::new(),
            newest_update: None,
            named: BTreeMap::new(),
        }
    }

    /// Takes what is said of entities; returns whether one was named that is not known.
    pub fn take(&mut self, now: u64, packet: &Packet, said: &Said) -> bool {
        if let Some(since) = self.since {
            if is_older(packet.id, since) {
                return false;
            }
            let is_long_ago = packet.id.wrapping_sub(since) >= 2 * 1024;
            self.since = (!is_long_ago).then_some(since);
        }
        match said {
            Said::Create {
                entity,
                kind,
                owner,
            } if !self.gone.contains(entity) => {
                let new = Seen {
                    kind: *kind,
                    owner: *owner,
                    at: None,
                };
                self.seen.entry(*entity).or_insert(new);
                self.named.insert(*entity, now);
            }
            Said::Delete(entity) => {
                self.seen.remove(entity);
                self.gone.insert(*entity);
            }
            Said::Update(positions) => {
                let newest = self.newest_update;
                if newest.is_some_and(|newest| is_older(packet.id, newest)) {
                    return false;
                }
                self.newest_update = Some(packet.id);
                let mut is_unknown = false;
                for position in positions {
                    self.named.insert(position.entity, now);
                    match self.seen.get_mut(&position.entity) {
                        Some(seen) => seen.at = Some((position.x, position.y)),
                        None => is_unknown |= !self.gone.contains(&position.entity),
                    }
                }
                self.lose_shots(now);
                return is_unknown;
            }
            _ => {}
        }
        false
    }

    /// A shot that was not named for a second while others were is gone.
    fn lose_shots(&mut self, now: u64) {
        let named = &self.named;
        self.seen.retain(|entity, seen| {
            let last = named.get(entity).copied().unwrap_or(0);
            seen.kind != SHOT || now < last + LOST_MS
        });
    }
}
