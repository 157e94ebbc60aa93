//! Why something is refused, or over.

use std::fmt;

/// Why a session ended, as the server says over TCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The client logged out.
    Asked = 0,
    /// The server is stopping.
    Shutdown = 1,
    /// There is no place for another session, or a limit of the address.
    Full = 2,
    /// Nothing valid came for too long.
    TimedOut = 3,
    /// The client sent something invalid, too often or over TCP.
    ProtocolError = 4,
    /// The same user logged in in another session.
    LoggedInElsewhere = 5,
    /// The game put the player out.
    Kicked = 6,
}

impl Reason {
    /// The reason on the wire.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The reason with this number; `None` if there is none.
    pub const fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            0 => Self::Asked,
            1 => Self::Shutdown,
            2 => Self::Full,
            3 => Self::TimedOut,
            4 => Self::ProtocolError,
            5 => Self::LoggedInElsewhere,
            6 => Self::Kicked,
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
            Self::Asked => "logged out",
            Self::Shutdown => "the server is stopping",
            Self::Full => "the server is full, or this address has too many sessions or attempts",
            Self::TimedOut => "timed out",
            Self::ProtocolError => "sent something invalid",
            Self::LoggedInElsewhere => "the same user logged in elsewhere",
            Self::Kicked => "was put out of the game",
        })
    }
}

/// Why there is no new account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NotRegistered {
    /// Another account has the name.
    Taken = 1,
    /// The name breaks [`user_name`](super::user_name).
    BadName = 2,
    /// The password breaks [`password`](super::password), or has fewer than 8 bytes.
    BadPassword = 3,
    /// Too many passwords wait to be hashed.
    Busy = 4,
}

impl NotRegistered {
    /// The reason on the wire.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The reason with this number; `None` if there is none.
    pub const fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            1 => Self::Taken,
            2 => Self::BadName,
            3 => Self::BadPassword,
            4 => Self::Busy,
            _ => return None,
        })
    }
}

impl fmt::Display for NotRegistered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Taken => "another account has this name",
            Self::BadName => "the name must be 1 to 16 bytes of text without control characters",
            Self::BadPassword => {
                "the password must be 8 to 64 bytes of text without control characters"
            }
            Self::Busy => "the server is busy",
        })
    }
}

/// Why there is no new room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NotCreated {
    /// Another room has the name.
    Taken = 1,
    /// The name breaks [`room_name`](super::room_name).
    BadName = 2,
    /// There are as many rooms as there may be.
    TooManyRooms = 3,
    /// Not 1 to 16 players.
    BadSize = 4,
    /// The session is not logged in.
    LogInFirst = 5,
    /// The session is in a room.
    AlreadyInARoom = 6,
    /// The password is not empty and breaks [`password`](super::password).
    BadPassword = 7,
}

impl NotCreated {
    /// The reason on the wire.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The reason with this number; `None` if there is none.
    pub const fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            1 => Self::Taken,
            2 => Self::BadName,
            3 => Self::TooManyRooms,
            4 => Self::BadSize,
            5 => Self::LogInFirst,
            6 => Self::AlreadyInARoom,
            7 => Self::BadPassword,
            _ => return None,
        })
    }
}

impl fmt::Display for NotCreated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Taken => "another room has this name",
            Self::BadName => "the name must be 1 to 32 bytes of text without control characters",
            Self::TooManyRooms => "there are too many rooms",
            Self::BadSize => "a room is for 1 to 16 players",
            Self::LogInFirst => "log in first",
            Self::AlreadyInARoom => "leave your room first",
            Self::BadPassword => {
                "the password must be up to 64 bytes of text without control characters"
            }
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
                Reason::from_code(code).map(Reason::code),
                (code <= 6).then_some(code)
            );
            assert_eq!(
                NotRegistered::from_code(code).map(NotRegistered::code),
                (1..=4).contains(&code).then_some(code)
            );
            assert_eq!(
                NotCreated::from_code(code).map(NotCreated::code),
                (1..=7).contains(&code).then_some(code)
            );
        }
        assert_eq!(Reason::of_server_logout(7), Reason::Shutdown);
        assert_eq!(Reason::of_server_logout(5), Reason::LoggedInElsewhere);
    }

    #[test]
    fn reasons_are_those_of_the_document() {
        let reasons = [
            Reason::Asked,
            Reason::Shutdown,
            Reason::Full,
            Reason::TimedOut,
            Reason::ProtocolError,
            Reason::LoggedInElsewhere,
            Reason::Kicked,
        ];
        assert_eq!(reasons.map(Reason::code), [0, 1, 2, 3, 4, 5, 6]);
        let refusals = [
            NotRegistered::Taken,
            NotRegistered::BadName,
            NotRegistered::BadPassword,
            NotRegistered::Busy,
        ];
        assert_eq!(refusals.map(NotRegistered::code), [1, 2, 3, 4]);
        let refusals = [
            NotCreated::Taken,
            NotCreated::BadName,
            NotCreated::TooManyRooms,
            NotCreated::BadSize,
            NotCreated::LogInFirst,
            NotCreated::AlreadyInARoom,
            NotCreated::BadPassword,
        ];
        assert_eq!(refusals.map(NotCreated::code), [1, 2, 3, 4, 5, 6, 7]);
    }
}
