//! The system's random generator: the only place that draws from it.

use std::fmt;

use crate::engine::{Entropy, NoEntropy};

/// How many bytes are drawn at once, to spare a system call for each token and nonce.
const SPARE_BYTES: usize = 256;

/// Random bytes of the system.
pub(crate) struct Dice {
    draw: fn(&mut [u8]) -> Result<(), NoEntropy>,
    spare: [u8; SPARE_BYTES],
    used: usize,
}

impl Dice {
    /// Dice that have drawn nothing yet.
    pub(crate) fn new() -> Self {
        Self::from_source(|bytes| getrandom::fill(bytes).map_err(|_| NoEntropy))
    }

    fn from_source(draw: fn(&mut [u8]) -> Result<(), NoEntropy>) -> Self {
        Self {
            draw,
            spare: [0; SPARE_BYTES],
            used: SPARE_BYTES,
        }
    }

    fn refill(&mut self) -> Result<(), NoEntropy> {
        self.used = SPARE_BYTES;
        (self.draw)(&mut self.spare)?;
        self.used = 0;
        Ok(())
    }
}

impl Entropy for Dice {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), NoEntropy> {
        if bytes.len() > SPARE_BYTES {
            return (self.draw)(bytes);
        }
        if bytes.len() > SPARE_BYTES - self.used {
            self.refill()?;
        }
        let handed = &mut self.spare[self.used..self.used + bytes.len()];
        bytes.copy_from_slice(handed);
        // What became somebody's secret is kept nowhere else.
        handed.fill(0);
        self.used += bytes.len();
        Ok(())
    }
}

impl fmt::Debug for Dice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Dice")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::engine::entropy;

    #[test]
    fn no_bytes_are_handed_out_twice() {
        let mut dice = Dice::new();
        let drawn: HashSet<u64> = (0..1_000)
            .map(|_| entropy::u64(&mut dice).expect("the system has entropy"))
            .collect();
        assert_eq!(drawn.len(), 1_000);
    }

    #[test]
    fn what_was_handed_out_is_forgotten() {
        let mut dice = Dice::from_source(|bytes| {
            bytes.fill(7);
            Ok(())
        });
        let mut bytes = [0; 100];
        dice.fill(&mut bytes).expect("drawn");
        assert_eq!(bytes, [7; 100]);
        assert_eq!(dice.spare[..100], [0; 100]);
        assert_eq!(dice.spare[100..], [7; 156]);
    }

    #[test]
    fn more_than_is_in_store_is_drawn_directly() {
        let mut dice = Dice::from_source(|bytes| {
            bytes.fill(7);
            Ok(())
        });
        let mut bytes = [0; 1_000];
        dice.fill(&mut bytes).expect("drawn");
        assert_eq!(bytes, [7; 1_000]);
    }

    #[test]
    fn a_failure_is_told_and_the_next_draw_tries_again() {
        static FAILS: AtomicBool = AtomicBool::new(true);
        let mut dice = Dice::from_source(|bytes| {
            // A failing source may have written rubbish.
            bytes.fill(9);
            if FAILS.load(Ordering::Relaxed) {
                return Err(NoEntropy);
            }
            bytes.fill(7);
            Ok(())
        });
        assert_eq!(entropy::u32(&mut dice), Err(NoEntropy));
        assert_eq!(entropy::u32(&mut dice), Err(NoEntropy));
        FAILS.store(false, Ordering::Relaxed);
        assert_eq!(entropy::u32(&mut dice), Ok(0x0707_0707));
    }
}
