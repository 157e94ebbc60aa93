//! What the server says no with: the numbers by which a peer is limited, and how its words are
//! made harmless. Like the engine, the guard sees no protocol, no socket, no clock and no dice.

pub mod escape;
pub mod limits;
pub mod network;
pub mod pending;
