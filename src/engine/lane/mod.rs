//! Lanes: reliable, ordered events over datagrams that get lost, doubled and swapped.
//!
//! A lane knows ids, kinds and bodies; how they look on the wire, and how a datagram is
//! acknowledged, is the protocol's. Every lane is bounded in events, in bytes and in age.

pub mod carried;
