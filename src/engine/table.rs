//! Who exists.

/// A session: its slot, and how often the slot was used before. A key kept for too long finds
/// nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    pub(crate) slot: u32,
    pub(crate) generation: u32,
}
