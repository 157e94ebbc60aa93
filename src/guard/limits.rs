//! Every number by which a peer is limited, in one table: `--limit NAME=VALUE` sets it, `--help`
//! prints it.

use std::fmt;

/// One line of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line {
    /// The name, as `--limit` takes it.
    pub name: &'static str,
    /// The value unless another is set.
    pub default: u64,
    /// The smallest value allowed.
    pub min: u64,
    /// The largest value allowed.
    pub max: u64,
    /// What it limits, with its unit.
    pub meaning: &'static str,
}

/// A line of the table, as code names it; in the table's order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// `sessions-per-ip`
    SessionsPerIp,
    /// `attempts`
    Attempts,
    /// `attempt-ms`
    AttemptMs,
    /// `tracked-ips`
    TrackedIps,
    /// `challenges`
    Challenges,
    /// `wrong-tokens`
    WrongTokens,
    /// `pending-per-ip`
    PendingPerIp,
    /// `pending`
    Pending,
    /// `session-rate`; 0 means that there is no such limit.
    SessionRate,
    /// `events-rate`
    EventsRate,
    /// `rooms-sessions`
    RoomsSessions,
    /// `rooms-rooms`
    RoomsRooms,
    /// `hash-queue`
    HashQueue,
    /// `accounts`
    Accounts,
    /// `recv-buffer`
    RecvBuffer,
}

/// All limits, in the order in which `--help` prints them.
pub const TABLE: [Line; 15] = [
    line(
        "sessions-per-ip",
        5,
        1,
        "sessions of an IP at a service; of a /48 four times as many",
    ),
    line(
        "attempts",
        5,
        1,
        "attempts of an IP at once; of a /48 four times as many",
    ),
    line(
        "attempt-ms",
        2000,
        10,
        "ms in which an IP gets one attempt back, a /48 four",
    ),
    line(
        "tracked-ips",
        16_384,
        1,
        "IPs tracked for these; if none can go, a new one is refused",
    ),
    line(
        "challenges",
        20_000,
        1,
        "cookies sent a second; the excess is dropped at random",
    ),
    line(
        "wrong-tokens",
        200,
        1,
        "wrong Connects a second; beyond, only the TCP peer's IP binds",
    ),
    line(
        "pending-per-ip",
        10,
        1,
        "TCP connections not yet logged in, per IP; more are closed",
    ),
    line(
        "pending",
        1024,
        1,
        "TCP connections not yet logged in, in all; the oldest makes room",
    ),
    line(
        "session-rate",
        512,
        0,
        "Data, Ping and Pong a second taken from a session; 0: no limit",
    ),
    line(
        "events-rate",
        20,
        1,
        "reliable events a second taken from a session",
    ),
    line(
        "rooms-sessions",
        100,
        1,
        "clients of the rooms service, logged in or not",
    ),
    line("rooms-rooms", 1_000, 1, "rooms in all"),
    line(
        "hash-queue",
        64,
        1,
        "logins and registrations waiting for a worker; more are put off",
    ),
    line(
        "accounts",
        100_000,
        1,
        "accounts in all, some 200 bytes each; more are not registered",
    ),
    line(
        "recv-buffer",
        1_048_576,
        1,
        "bytes asked of the system for a UDP socket's receive buffer",
    ),
];

// The table holds the lines in the order of the names that code uses.
const _: () = assert!(Limit::RecvBuffer as usize + 1 == TABLE.len());

const fn line(name: &'static str, default: u64, min: u64, meaning: &'static str) -> Line {
    Line {
        name,
        default,
        min,
        max: default * 100,
        meaning,
    }
}

/// The limits in force: the table's defaults, and what was set since.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    values: [u64; TABLE.len()],
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            values: TABLE.map(|line| line.default),
        }
    }
}

impl Limits {
    /// The value in force, within its line's range.
    pub fn get(&self, limit: Limit) -> u64 {
        self.values[limit as usize]
    }

    /// Sets the limit called `name`.
    ///
    /// # Errors
    /// [`LimitError::Unknown`] if there is none of that name; [`LimitError::OutOfRange`] if its
    /// line does not allow `value`. Nothing is set then.
    pub fn set(&mut self, name: &str, value: u64) -> Result<(), LimitError> {
        let index = TABLE
            .iter()
            .position(|line| line.name == name)
            .ok_or_else(|| LimitError::Unknown(name.to_owned()))?;
        let line = &TABLE[index];
        if !(line.min..=line.max).contains(&value) {
            return Err(LimitError::OutOfRange(line));
        }
        self.values[index] = value;
        Ok(())
    }
}

/// Why a limit was not set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LimitError {
    /// There is no limit of this name.
    Unknown(String),
    /// The limit's line does not allow the value.
    OutOfRange(&'static Line),
}

impl fmt::Display for LimitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(name) => {
                let names = TABLE.map(|line| line.name).join(", ");
                write!(f, "there is no limit `{name}`; the limits are {names}")
            }
            Self::OutOfRange(line) => {
                write!(f, "`{}` is from {} to {}", line.name, line.min, line.max)
            }
        }
    }
}

impl std::error::Error for LimitError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_the_documents() {
        let limits = Limits::default();
        assert_eq!(limits.get(Limit::SessionsPerIp), 5);
        assert_eq!(limits.get(Limit::Attempts), 5);
        assert_eq!(limits.get(Limit::AttemptMs), 2000);
        assert_eq!(limits.get(Limit::TrackedIps), 16_384);
        assert_eq!(limits.get(Limit::Challenges), 20_000);
        assert_eq!(limits.get(Limit::WrongTokens), 200);
        assert_eq!(limits.get(Limit::PendingPerIp), 10);
        assert_eq!(limits.get(Limit::Pending), 1024);
        assert_eq!(limits.get(Limit::SessionRate), 512);
        assert_eq!(limits.get(Limit::EventsRate), 20);
        assert_eq!(limits.get(Limit::RoomsSessions), 100);
        assert_eq!(limits.get(Limit::RoomsRooms), 1_000);
        assert_eq!(limits.get(Limit::HashQueue), 64);
        assert_eq!(limits.get(Limit::Accounts), 100_000);
        assert_eq!(limits.get(Limit::RecvBuffer), 1_048_576);
    }

    #[test]
    fn each_name_sets_its_own_limit_and_no_other() {
        let all = [
            ("sessions-per-ip", Limit::SessionsPerIp),
            ("attempts", Limit::Attempts),
            ("attempt-ms", Limit::AttemptMs),
            ("tracked-ips", Limit::TrackedIps),
            ("challenges", Limit::Challenges),
            ("wrong-tokens", Limit::WrongTokens),
            ("pending-per-ip", Limit::PendingPerIp),
            ("pending", Limit::Pending),
            ("session-rate", Limit::SessionRate),
            ("events-rate", Limit::EventsRate),
            ("rooms-sessions", Limit::RoomsSessions),
            ("rooms-rooms", Limit::RoomsRooms),
            ("hash-queue", Limit::HashQueue),
            ("accounts", Limit::Accounts),
            ("recv-buffer", Limit::RecvBuffer),
        ];
        assert_eq!(TABLE.map(|line| line.name), all.map(|(name, _)| name));
        for (name, limit) in all {
            let mut limits = Limits::default();
            limits.set(name, 70).expect("70 is allowed everywhere");
            for (_, other) in all {
                let untouched = Limits::default().get(other);
                assert_eq!(
                    limits.get(other),
                    if other == limit { 70 } else { untouched }
                );
            }
        }
    }

    #[test]
    fn both_ends_of_each_range_are_allowed_and_nothing_beyond() {
        for line in &TABLE {
            let least = match line.name {
                "session-rate" => 0,
                "attempt-ms" => 10,
                _ => 1,
            };
            assert_eq!(line.min, least);
            assert_eq!(line.max, line.default * 100);
            let mut limits = Limits::default();
            assert_eq!(limits.set(line.name, line.min), Ok(()));
            assert_eq!(limits.set(line.name, line.max), Ok(()));
            let refused = limits.set(line.name, line.max + 1);
            assert_eq!(refused, Err(LimitError::OutOfRange(line)));
            if let Some(below) = line.min.checked_sub(1) {
                assert!(limits.set(line.name, below).is_err(), "{}", line.name);
            }
        }
    }

    #[test]
    fn a_refusal_names_the_limit_and_its_range_or_all_names() {
        let mut limits = Limits::default();
        let refused = limits.set("pending", 0).unwrap_err();
        assert_eq!(refused.to_string(), "`pending` is from 1 to 102400");
        let refused = limits.set("pendings", 1).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "there is no limit `pendings`; the limits are sessions-per-ip, attempts, attempt-ms, \
             tracked-ips, challenges, wrong-tokens, pending-per-ip, pending, session-rate, \
             events-rate, rooms-sessions, rooms-rooms, hash-queue, accounts, recv-buffer"
        );
        assert_eq!(limits, Limits::default());
    }
}
