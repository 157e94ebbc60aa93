//! RTYP, from outside: a peer and a host written by hand, and what is tested with them.

pub mod bare;
pub mod books;
pub mod bytes;
pub mod client;
mod conversation;
pub mod dice;
mod floods;
pub mod hall;
pub mod host;
pub mod peer;
mod rules;
mod selftest;
mod simulation;
pub mod siphash;
pub mod talk;
