//! What a service counts: each refusal under a name of its own.

/// One counter; the order is that of [`NAMES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    Connections,
    Bindings,
    Logins,
    LoginsWrong,
    LoginsBusy,
    Registers,
    RegistersRefused,
    RefusedFull,
    RefusedTooMany,
    EndedLeft,
    EndedShutdown,
    EndedTimedOut,
    EndedProtocolError,
    EndedElsewhere,
    EndedKicked,
    EndedForAnother,
    GhostsEnded,
    NoEntropy,
    IgnoredSource,
    IgnoredLong,
    IgnoredShort,
    IgnoredVersion,
    IgnoredLength,
    IgnoredChecksum,
    IgnoredToken,
    IgnoredEndpoint,
    IgnoredRepeated,
    IgnoredOld,
    IgnoredMalformed,
    IgnoredWaiting,
    IgnoredOutsideRoom,
    IgnoredText,
    IgnoredInit,
    IgnoredKeys,
    IgnoredRequests,
    UnsentTooMany,
}

/// The counters' names, as an operator sees them.
pub const NAMES: [&str; COUNTERS] = [
    "connections",
    "bindings",
    "logins",
    "logins-wrong",
    "logins-busy",
    "registers",
    "registers-refused",
    "refused-full",
    "refused-too-many",
    "ended-left",
    "ended-shutdown",
    "ended-timed-out",
    "ended-protocol-error",
    "ended-elsewhere",
    "ended-kicked",
    "ended-for-another",
    "ghosts-ended",
    "no-entropy",
    "ignored-source",
    "ignored-long",
    "ignored-short",
    "ignored-version",
    "ignored-length",
    "ignored-checksum",
    "ignored-token",
    "ignored-endpoint",
    "ignored-repeated",
    "ignored-old",
    "ignored-malformed",
    "ignored-waiting",
    "ignored-outside-room",
    "ignored-text",
    "ignored-init",
    "ignored-keys",
    "ignored-requests",
    "unsent-too-many",
];

const COUNTERS: usize = Count::UnsentTooMany as usize + 1;

/// How often each thing has happened since the start.
#[derive(Debug, Clone)]
pub struct Counters([u64; COUNTERS]);

impl Default for Counters {
    fn default() -> Self {
        Self([0; COUNTERS])
    }
}

impl Count {
    /// Whether an operator may want to know who did it.
    pub fn is_warning(self) -> bool {
        matches!(
            self,
            Self::RefusedTooMany
                | Self::EndedProtocolError
                | Self::LoginsWrong
                | Self::NoEntropy
                | Self::IgnoredSource
                | Self::IgnoredLong
                | Self::IgnoredShort
                | Self::IgnoredVersion
                | Self::IgnoredLength
                | Self::IgnoredChecksum
                | Self::IgnoredEndpoint
                | Self::IgnoredMalformed
        )
    }

    /// Its name, as an operator sees it.
    pub fn name(self) -> &'static str {
        NAMES[self as usize]
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
