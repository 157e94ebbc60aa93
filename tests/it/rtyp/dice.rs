//! Dice that fall as a test wants.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use anteroom::engine::{Entropy, NoEntropy, Seeded};

/// Gives the words it was told, one by one, then seeded ones.
#[derive(Debug, Clone)]
pub struct Rigged {
    words: Arc<Mutex<VecDeque<u32>>>,
    broken: Arc<AtomicBool>,
    rest: Seeded,
}

impl Rigged {
    /// Gives these words first.
    pub fn new(words: &[u32]) -> Self {
        Self {
            words: Arc::new(Mutex::new(words.iter().copied().collect())),
            broken: Arc::default(),
            rest: Seeded::new(1),
        }
    }

    /// Gives these words next.
    pub fn next(&self, words: &[u32]) {
        self.words.lock().expect("not poisoned").extend(words);
    }

    /// Works, or does not.
    pub fn breaks(&self, broken: bool) {
        self.broken.store(broken, Ordering::Relaxed);
    }
}

impl Entropy for Rigged {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), NoEntropy> {
        if self.broken.load(Ordering::Relaxed) {
            return Err(NoEntropy);
        }
        let mut words = self.words.lock().expect("not poisoned");
        for chunk in bytes.chunks_mut(4) {
            match words.pop_front() {
                Some(word) => chunk.copy_from_slice(&word.to_le_bytes()[..chunk.len()]),
                None => self.rest.fill(chunk)?,
            }
        }
        Ok(())
    }
}
