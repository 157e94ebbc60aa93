//! Randomness as data: whoever drives a machine lends it the dice.

use std::fmt;

/// The system's generator could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoEntropy;

impl fmt::Display for NoEntropy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the system's random generator failed")
    }
}

impl std::error::Error for NoEntropy {}

/// A source of random bytes: the system's generator, or a seeded one in tests.
pub trait Entropy {
    /// Fills `bytes` with random ones.
    ///
    /// # Errors
    /// [`NoEntropy`] if the source failed; `bytes` must not be used then.
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), NoEntropy>;
}

/// 32 random bits.
///
/// # Errors
/// [`NoEntropy`] if the source failed.
pub fn u32(dice: &mut dyn Entropy) -> Result<u32, NoEntropy> {
    let mut bytes = [0; 4];
    dice.fill(&mut bytes)?;
    Ok(u32::from_le_bytes(bytes))
}

/// 64 random bits.
///
/// # Errors
/// [`NoEntropy`] if the source failed.
pub fn u64(dice: &mut dyn Entropy) -> Result<u64, NoEntropy> {
    let mut bytes = [0; 8];
    dice.fill(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

/// A seeded generator (SplitMix64) for tests and simulations: the same seed, the same bytes.
/// It is predictable; no server may draw tokens from it.
#[derive(Debug, Clone)]
pub struct Seeded(u64);

impl Seeded {
    /// A generator that repeats itself for the same `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `bound` (above 0).
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next_u64() % bound
    }
}

impl Entropy for Seeded {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), NoEntropy> {
        for chunk in bytes.chunks_mut(8) {
            let word = self.next_u64().to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
        Ok(())
    }
}
