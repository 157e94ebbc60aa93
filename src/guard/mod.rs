//! What the server says no with: the numbers by which a peer is limited, the proof of an address,
//! the limits of each and the budgets of all, how much is logged because of strangers, and how
//! their words are made harmless. Like the engine, the guard sees no protocol, no socket, no clock
//! and no dice.

pub mod budget;
pub mod cookie;
pub mod escape;
mod keyed;
pub mod limit;
pub mod limits;
pub mod network;
pub mod pending;
pub mod quiet;
