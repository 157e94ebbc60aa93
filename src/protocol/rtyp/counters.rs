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
    RejectedTooMany,
    RejectedNoSuchGame,
    RejectedRefused,
    Challenges,
    ChallengesDropped,
    GhostsEnded,
    Moves,
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
    IgnoredGuess,
    IgnoredHello,
    IgnoredWaiting,
    IgnoredCandidate,
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
    "rejected-too-many",
    "rejected-no-such-game",
    "rejected-refused",
    "challenges",
    "challenges-dropped",
    "ghosts-ended",
    "moves",
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
    "ignored-guess",
    "ignored-hello",
    "ignored-waiting",
    "ignored-candidate",
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

impl Count {
    /// Whether an operator may want to know who did it. What happens to honest players on a bad
    /// line or at the end of their session, or is told to the peer itself, is only counted.
    pub fn is_warning(self) -> bool {
        matches!(
            self,
            Self::EndedProtocolError
                | Self::EndedMalformedStream
                | Self::RejectedTooMany
                | Self::LoginLate
                | Self::LoginMalformed
                | Self::NoEntropy
                | Self::IgnoredSource
                | Self::IgnoredShort
                | Self::IgnoredLong
                | Self::IgnoredMagic
                | Self::IgnoredVersion
                | Self::IgnoredUnknownToken
                | Self::IgnoredBoundElsewhere
                | Self::IgnoredWrongToken
                | Self::IgnoredGuess
                | Self::IgnoredHello
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
