//! The session server of small multiplayer games, as a library.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod bytes;
pub mod driver;
pub mod engine;
pub mod game;
pub mod guard;
pub mod protocol;
pub mod server;

pub use driver::Driver;
pub use engine::{Event, Game, Gone, Player, Refusal, Replies, Ticket, Time, Verdict};
pub use guard::limits::Limits;
pub use server::{Addresses, Config, Error, Remote, RemoteError, Rtyp, Server, Stats};
