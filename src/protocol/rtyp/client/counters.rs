//! What a client counts: each refusal under a name of its own.

/// One counter; the order is that of [`NAMES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    Received,
    IgnoredSource,
    IgnoredShort,
    IgnoredLong,
    IgnoredMagic,
    IgnoredVersion,
    IgnoredWrongToken,
    IgnoredUnbound,
    IgnoredRepeated,
    IgnoredOld,
    IgnoredMalformed,
    IgnoredEventsHeld,
    SkippedEvents,
}

/// The counters' names.
pub const NAMES: [&str; COUNTERS] = [
    "received",
    "ignored-source",
    "ignored-short",
    "ignored-long",
    "ignored-magic",
    "ignored-version",
    "ignored-wrong-token",
    "ignored-unbound",
    "ignored-repeated",
    "ignored-old",
    "ignored-malformed",
    "ignored-events-held",
    "skipped-events",
];

const COUNTERS: usize = Count::SkippedEvents as usize + 1;

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
