//! What a service counts: each refusal under a name of its own.

/// One counter; the order is that of [`NAMES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    Logins,
    Bindings,
    EndedLeft,
    EndedShutdown,
    EndedTimedOut,
    EndedProtocolError,
    EndedKicked,
    EndedMalformedStream,
    RejectedServerFull,
    RejectedBadVersion,
    RejectedBadName,
    RejectedNameTaken,
    RejectedGameStarted,
    RejectedRefused,
    LoginLate,
    LoginMalformed,
    LoginAbandoned,
    NoEntropy,
    IgnoredSource,
    IgnoredShort,
    IgnoredLong,
    IgnoredMagic,
    IgnoredVersion,
    IgnoredUnbound,
    IgnoredUnknownToken,
    IgnoredBoundElsewhere,
    IgnoredWrongToken,
    IgnoredRepeated,
    IgnoredOld,
    IgnoredSessionRate,
    IgnoredEventsRate,
    IgnoredEventsHeld,
    UnsentUnproven,
    UnsentTooLong,
}

/// The counters' names, as an operator sees them.
pub const NAMES: [&str; COUNTERS] = [
    "logins",
    "bindings",
    "ended-left",
    "ended-shutdown",
    "ended-timed-out",
    "ended-protocol-error",
    "ended-kicked",
    "ended-malformed-stream",
    "rejected-server-full",
    "rejected-bad-version",
    "rejected-bad-name",
    "rejected-name-taken",
    "rejected-game-started",
    "rejected-refused",
    "login-late",
    "login-malformed",
    "login-abandoned",
    "no-entropy",
    "ignored-source",
    "ignored-short",
    "ignored-long",
    "ignored-magic",
    "ignored-version",
    "ignored-unbound",
    "ignored-unknown-token",
    "ignored-bound-elsewhere",
    "ignored-wrong-token",
    "ignored-repeated",
    "ignored-old",
    "ignored-session-rate",
    "ignored-events-rate",
    "ignored-events-held",
    "unsent-unproven",
    "unsent-too-long",
];

const COUNTERS: usize = Count::UnsentTooLong as usize + 1;

/// How often each thing has happened since the start.
#[derive(Debug, Clone)]
pub struct Counters([u64; COUNTERS]);

impl Default for Counters {
    fn default() -> Self {
        Self([0; COUNTERS])
    }
}

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
