//! What a client counts: each refusal under a name of its own.

/// One counter; the order is that of [`NAMES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    Received,
    Answers,
    Updates,
    Told,
    Repeats,
    IgnoredSource,
    IgnoredLong,
    IgnoredShort,
    IgnoredVersion,
    IgnoredLength,
    IgnoredChecksum,
    IgnoredToken,
    IgnoredRepeated,
    IgnoredOld,
    IgnoredMalformed,
    IgnoredUnasked,
    IgnoredLateUpdate,
    IgnoredOutsideRoom,
    IgnoredEntitiesFull,
    IgnoredDeleted,
    IgnoredUnknown,
}

/// The counters' names.
pub const NAMES: [&str; COUNTERS] = [
    "received",
    "answers",
    "updates",
    "told",
    "repeats",
    "ignored-source",
    "ignored-long",
    "ignored-short",
    "ignored-version",
    "ignored-length",
    "ignored-checksum",
    "ignored-token",
    "ignored-repeated",
    "ignored-old",
    "ignored-malformed",
    "ignored-unasked",
    "ignored-late-update",
    "ignored-outside-room",
    "ignored-entities-full",
    "ignored-deleted",
    "ignored-unknown-entity",
];

const COUNTERS: usize = Count::IgnoredUnknown as usize + 1;

/// How often each thing has happened since the start.
#[derive(Debug, Clone, Default)]
pub struct Counters([u64; COUNTERS]);

impl Counters {
    /// It happened once more.
    pub fn add(&mut self, count: Count) {
        self.0[count as usize] += 1;
    }

    /// All of them by name, in a fixed order.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, u64)> {
        NAMES.into_iter().zip(self.0)
    }
}
