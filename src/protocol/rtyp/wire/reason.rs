//! Why a login is rejected, and why a session ends.

use std::fmt;

/// Why a login was rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reject {
    /// No game has a free number.
    ServerFull = 1,
    /// The server does not speak the client's version.
    BadVersion = 2,
    /// The name is empty, too long, not UTF-8 or has control characters.
    BadName = 3,
    /// Another player has the name.
    NameTaken = 4,
    /// The game runs and takes no new players.
    GameStarted = 5,
    /// A limit of the client's address.
    TooMany = 6,
    /// There is no game of the wanted name.
    NoSuchGame = 7,
    /// The game itself refused.
    Refused = 8,
}

impl Reject {
    /// The reason on the wire.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The reason with this number; `None` if there is none (to be taken like any other).
    pub const fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            1 => Self::ServerFull,
            2 => Self::BadVersion,
            3 => Self::BadName,
            4 => Self::NameTaken,
            5 => Self::GameStarted,
            6 => Self::TooMany,
            7 => Self::NoSuchGame,
            8 => Self::Refused,
            _ => return None,
        })
    }
}

impl fmt::Display for Reject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ServerFull => "the server is full",
            Self::BadVersion => "the server does not speak this version of the protocol",
            Self::BadName => "the name must be 1 to 16 bytes of text without control characters",
            Self::NameTaken => "another player has this name",
            Self::GameStarted => "the game has started and takes no new players",
            Self::TooMany => "too many players or attempts from this address",
            Self::NoSuchGame => "there is no game of this name",
            Self::Refused => "the game refused",
        })
    }
}

/// Why a session ended: in Logout, and in PlayerLeft for the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The player quit, or its connection closed.
    Left = 0,
    /// The server is stopping.
    Shutdown = 1,
    /// Nothing valid came for too long.
    TimedOut = 2,
    /// The client sent something invalid.
    ProtocolError = 3,
    /// The game put the player out.
    Kicked = 4,
}

impl Reason {
    /// The reason on the wire.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The reason with this number; `None` if there is none.
    pub const fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            0 => Self::Left,
            1 => Self::Shutdown,
            2 => Self::TimedOut,
            3 => Self::ProtocolError,
            4 => Self::Kicked,
            _ => return None,
        })
    }

    /// What a Logout of the server with this number means: an unknown one is a Shutdown.
    pub fn of_server_logout(code: u8) -> Self {
        Self::from_code(code).unwrap_or(Self::Shutdown)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Left => "left",
            Self::Shutdown => "the server is stopping",
            Self::TimedOut => "timed out",
            Self::ProtocolError => "sent something invalid",
            Self::Kicked => "was put out of the game",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_their_numbers() {
        for code in 0..=255 {
            assert_eq!(
                Reject::from_code(code).map(Reject::code),
                (1..=8).contains(&code).then_some(code)
            );
            assert_eq!(
                Reason::from_code(code).map(Reason::code),
                (code <= 4).then_some(code)
            );
        }
        assert_eq!(Reason::of_server_logout(5), Reason::Shutdown);
        assert_eq!(Reason::of_server_logout(2), Reason::TimedOut);
    }
}
