//! What the server says no with: the numbers by which a peer is limited. Like the engine, the
//! guard sees no protocol, no socket, no clock and no dice.

pub mod limits;
