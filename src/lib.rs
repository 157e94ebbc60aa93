//! The session server of small multiplayer games, as a library.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod bytes;
pub mod engine;
pub mod game;
pub mod guard;
pub mod protocol;
pub mod server;
