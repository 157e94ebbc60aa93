//! A slab whose keys carry a generation, so that a key kept for too long finds nothing.

use slab::Slab;

/// A table that has run empty gives its memory back if it had room for more values than this.
pub(super) const KEEP_EMPTY: usize = 2_048;

/// A slot, and how often it was used before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    pub(crate) slot: u32,
    pub(crate) generation: u32,
}

/// Values under small keys that are never valid twice (until a slot was reused 2^32 times).
#[derive(Debug)]
pub struct Slots<T> {
    values: Slab<T>,
    /// How often each slot was given back.
    generations: Vec<u32>,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self {
            values: Slab::new(),
            generations: Vec::new(),
        }
    }
}

impl<T> Slots<T> {
    /// Stores `value` and returns its key.
    pub fn insert(&mut self, value: T) -> Key {
        let slot = self.values.insert(value);
        if slot == self.generations.len() {
            self.generations.push(0);
        }
        let generation = self.generations[slot];
        Key {
            slot: u32::try_from(slot).expect("fewer than 2^32 values fit in memory"),
            generation,
        }
    }

    /// Takes the value out; `None` if the key is stale.
    pub fn remove(&mut self, key: Key) -> Option<T> {
        self.get(key)?;
        let slot = key.slot as usize;
        self.generations[slot] = self.generations[slot].wrapping_add(1);
        let value = self.values.try_remove(slot);
        if self.values.is_empty() && self.values.capacity() > KEEP_EMPTY {
            self.values = Slab::new();
        }
        value
    }

    /// The value; `None` if the key is stale.
    pub fn get(&self, key: Key) -> Option<&T> {
        let slot = key.slot as usize;
        let value = self.values.get(slot)?;
        (self.generations.get(slot) == Some(&key.generation)).then_some(value)
    }

    /// The value; `None` if the key is stale.
    pub fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        let slot = key.slot as usize;
        let value = self.values.get_mut(slot)?;
        (self.generations.get(slot) == Some(&key.generation)).then_some(value)
    }

    /// How many values there are.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// All of them, by slot.
    pub fn iter(&self) -> impl Iterator<Item = (Key, &T)> {
        self.values.iter().map(|(slot, value)| {
            let key = Key {
                slot: slot as u32,
                generation: self.generations[slot],
            };
            (key, value)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stale_key_finds_nothing_even_when_its_slot_is_used_again() {
        let mut slots = Slots::default();
        let first = slots.insert("a");
        assert_eq!(slots.remove(first), Some("a"));
        let second = slots.insert("b");
        assert_eq!(first.slot, second.slot);
        assert_eq!((slots.get(first), slots.get(second)), (None, Some(&"b")));
        assert_eq!(slots.get_mut(first), None);
        assert_eq!(slots.remove(first), None);
        assert_eq!(slots.iter().collect::<Vec<_>>(), [(second, &"b")]);
        assert_eq!((slots.len(), slots.is_empty()), (1, false));
    }

    #[test]
    fn a_large_table_that_ran_empty_keeps_its_generations_and_no_memory() {
        let mut slots = Slots::default();
        let keys: Vec<Key> = (0..=KEEP_EMPTY).map(|n| slots.insert(n)).collect();
        assert!(keys.iter().all(|key| slots.remove(*key).is_some()));
        assert_eq!(slots.values.capacity(), 0);
        let again = slots.insert(7);
        assert_eq!(again.slot, 0);
        assert_eq!((slots.get(again), slots.get(keys[0])), (Some(&7), None));
    }
}
