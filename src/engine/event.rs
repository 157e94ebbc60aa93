//! What a game is told, and what it may do: the public API that every protocol serves.

use std::fmt;
use std::net::IpAddr;

use super::{Key, Time};

/// A player as a game knows it. It stays valid until the player's [`Event::Left`]; afterwards it
/// affects nobody, even when another player has its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Player {
    pub(crate) service: u8,
    pub(crate) key: Key,
    pub(crate) game: u32,
    pub(crate) number: u8,
}

impl Player {
    /// The game (or room) the player is in, counted from 0.
    pub fn game(self) -> u32 {
        self.game
    }

    /// The player's number in its game, from 0.
    pub fn number(self) -> u8 {
        self.number
    }
}

/// A question that waits for an answer, for at most 4 s. Answered through [`Replies::answer`], at
/// once or later from any thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket {
    pub(crate) service: u8,
    pub(crate) key: Key,
}

/// The answer to a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The player may enter.
    Admit,
    /// The player may not.
    Refuse,
}

/// What happens in a game.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'a> {
    /// Somebody passed everything else and is about to enter. The game answers the ticket;
    /// unanswered for 4 s is a no. Who is asked about and never joins is not heard of again.
    Connecting {
        /// To be answered.
        ticket: Ticket,
        /// The game and number held for them.
        player: Player,
        /// The name they gave, 1 to 16 bytes without control characters.
        name: &'a str,
        /// The address they come from.
        ip: IpAddr,
    },
    /// The player is in the game. Every `Joined` is followed by exactly one `Left`.
    Joined {
        /// Who.
        player: Player,
        /// The name.
        name: &'a str,
    },
    /// The player is gone; the handle affects nobody from now on.
    Left {
        /// Who it was.
        player: Player,
        /// Why, as the other players are told: 0 left, 1 shutdown, 2 timed out, 3 protocol
        /// error, 4 kicked.
        reason: u8,
    },
    /// The game's own bytes, unreliable.
    Data {
        /// From whom.
        player: Player,
        /// At most 1182 bytes.
        bytes: &'a [u8],
    },
    /// A line of chat, reliable.
    Chat {
        /// From whom.
        player: Player,
        /// 1 to 200 bytes without control characters.
        text: &'a str,
    },
    /// The game's own event, reliable.
    Custom {
        /// From whom.
        player: Player,
        /// At most 1023 bytes.
        body: &'a [u8],
    },
    /// The player asks for the game to start.
    Start {
        /// Who.
        player: Player,
    },
}

/// The player or the ticket is no longer there: nothing was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gone;

impl fmt::Display for Gone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the player is gone")
    }
}

impl std::error::Error for Gone {}

/// Why something was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The player is no longer there.
    Gone,
    /// It does not fit: at most this many bytes do.
    TooLong {
        /// Bytes.
        max: usize,
    },
    /// The text is empty or has control characters.
    BadText,
}

impl From<Gone> for Refusal {
    fn from(Gone: Gone) -> Self {
        Self::Gone
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone => Gone.fmt(f),
            Self::TooLong { max } => write!(f, "too long: at most {max} bytes fit"),
            Self::BadText => f.write_str("the text is empty or has control characters"),
        }
    }
}

impl std::error::Error for Refusal {}

/// What a game may do. Everything acts at once; a handle of somebody who left does nothing and
/// says so.
pub trait Replies {
    /// Answers a question.
    ///
    /// # Errors
    /// [`Gone`] if who asked is gone, or was answered already.
    fn answer(&mut self, ticket: Ticket, verdict: Verdict) -> Result<(), Gone>;

    /// Sends the game's own bytes, unreliable and unordered, `parts` one behind the other. They
    /// may be dropped on the way, also here while the player's endpoint is not proven.
    ///
    /// # Errors
    /// [`Refusal::Gone`]; [`Refusal::TooLong`] above the protocol's payload (rtyp: 1182 bytes).
    fn send(&mut self, to: Player, parts: &[&[u8]]) -> Result<(), Refusal>;

    /// Passes on a line of chat, reliably, as said by player number `from`.
    ///
    /// # Errors
    /// [`Refusal::Gone`]; [`Refusal::TooLong`] above 200 bytes; [`Refusal::BadText`].
    fn chat(&mut self, to: Player, from: u8, text: &str) -> Result<(), Refusal>;

    /// Sends the game's own event, reliably and in order, `parts` one behind the other.
    ///
    /// # Errors
    /// [`Refusal::Gone`]; [`Refusal::TooLong`] above 1024 bytes.
    fn custom(&mut self, to: Player, parts: &[&[u8]]) -> Result<(), Refusal>;

    /// Starts a game: it takes no new players until the last of its players has left. Everyone
    /// in it is told, once; a game that runs already is left alone.
    fn start(&mut self, game: u32);

    /// Ends the player's session.
    ///
    /// # Errors
    /// [`Gone`] if it is over already.
    fn kick(&mut self, player: Player) -> Result<(), Gone>;
}

/// The code of a game: one for all games (or rooms) of a service. Called on the server's thread,
/// so it must not block.
pub trait Game {
    /// Something happened; `out` acts on the players.
    fn event(&mut self, now: Time, event: Event<'_>, out: &mut dyn Replies);

    /// When [`Game::tick`] is due next; `None` costs nothing. Not asked any more when the server
    /// stops: everybody has left then.
    fn wake(&self) -> Option<Time> {
        None
    }

    /// The time that [`Game::wake`] named has come.
    fn tick(&mut self, now: Time, out: &mut dyn Replies) {
        let _ = (now, out);
    }
}
