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
    /// Which of its stays in games this is; a session may have several.
    pub(crate) stay: u32,
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
    /// Which of the session's questions this is.
    pub(crate) question: u32,
}

/// The answer to a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The player may enter; the name and password are right; the account is made.
    Admit,
    /// The player may not; they are wrong; the name is taken.
    Refuse,
    /// It cannot be worked out now. Who asked may ask again.
    Busy,
}

/// A password, which does not print itself.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Secret<'a>(pub(crate) &'a str);

impl<'a> Secret<'a> {
    /// The password itself.
    pub fn reveal(self) -> &'a str {
        self.0
    }
}

impl fmt::Debug for Secret<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// What happens in a game. A protocol says some of it; a game ignores what it does not expect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event<'a> {
    /// Somebody passed everything else and is about to enter. The game answers the ticket;
    /// unanswered for 4 s is a no. Who is asked about and never joins is not heard of again.
    /// Its number may still be that of a vanished player, who leaves for it when it is admitted.
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
    /// Somebody says who it is. The game answers the ticket, at once or later; it must not take
    /// the time to look a password up here.
    Login {
        /// To be answered. Unanswered for 4 s it is as good as [`Verdict::Busy`].
        ticket: Ticket,
        /// 1 to 16 bytes without control characters.
        user: &'a str,
        /// 1 to 64 bytes.
        password: Secret<'a>,
        /// The address it comes from.
        ip: IpAddr,
    },
    /// Somebody wants an account. As for a Login, with a password of at least 8 bytes.
    Register {
        /// To be answered.
        ticket: Ticket,
        /// The name.
        user: &'a str,
        /// The password.
        password: Secret<'a>,
        /// The address it comes from.
        ip: IpAddr,
    },
    /// The player pressed a key.
    Key {
        /// Who.
        player: Player,
        /// The key's number, or a mouse button's.
        key: i32,
    },
    /// The player asks to be shown everything there is in its game.
    Refresh {
        /// Who.
        player: Player,
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
    /// There are so many of them already.
    TooMany {
        /// The most there may be.
        max: usize,
    },
    /// The text is empty or has control characters.
    BadText,
    /// A number is not finite.
    BadNumber,
    /// The protocol has no such thing.
    NotSpoken,
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
            Self::TooMany { max } => write!(f, "too many: there may be {max}"),
            Self::BadNumber => f.write_str("a number is not finite"),
            Self::NotSpoken => f.write_str("the player's protocol has no such thing"),
            Self::BadText => f.write_str("the text is empty or has control characters"),
        }
    }
}

impl std::error::Error for Refusal {}

/// Something in a game that its players see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Entity {
    /// Its number, never used again in its game.
    pub id: u32,
    /// What it is, as the game numbers kinds.
    pub kind: u16,
    /// The number of the player it belongs to.
    pub owner: Option<u8>,
}

/// How an entity is now.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Component<'a> {
    /// Where it is.
    Position {
        /// The entity.
        entity: u32,
        /// Finite.
        x: f32,
        /// Finite.
        y: f32,
    },
    /// How well it is.
    Health {
        /// The entity.
        entity: u32,
        /// Any number.
        points: i32,
    },
    /// The game's own.
    Custom {
        /// From 256 on.
        component: u16,
        /// At most 1184 bytes.
        bytes: &'a [u8],
    },
}

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
    /// [`Refusal::Gone`]; [`Refusal::TooLong`] above the protocol's largest payload.
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

    /// Shows an entity.
    ///
    /// # Errors
    /// [`Refusal::Gone`]; [`Refusal::NotSpoken`] where a protocol has no entities;
    /// [`Refusal::TooMany`] for a new one beyond 256 in its game.
    fn show(&mut self, to: Player, entity: Entity) -> Result<(), Refusal> {
        let _ = (to, entity);
        Err(Refusal::NotSpoken)
    }

    /// Takes an entity away again.
    ///
    /// # Errors
    /// [`Refusal::Gone`]; [`Refusal::NotSpoken`].
    fn hide(&mut self, to: Player, entity: u32) -> Result<(), Refusal> {
        let _ = (to, entity);
        Err(Refusal::NotSpoken)
    }

    /// Tells how entities are now, unreliable, in as many datagrams as it takes.
    ///
    /// # Errors
    /// [`Refusal::Gone`]; [`Refusal::NotSpoken`]; [`Refusal::TooLong`] for one of the game's own that fits none.
    fn update(&mut self, to: Player, components: &[Component<'_>]) -> Result<(), Refusal> {
        let _ = (to, components);
        Err(Refusal::NotSpoken)
    }

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
