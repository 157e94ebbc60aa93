//! What the benches share.
//!
//! - [`report`] options, limits, the lines that are printed, the exit code;
//! - [`pairs`] how a number is measured: CPU time, floor and subject in turn;
//! - [`descriptors`] how many sockets there may be, [`priority`] who runs first;
//! - [`bytes`] RTYP by hand, [`machine`] a service without sockets and its peers;
//! - [`queue`] the cost of receiving, [`floor`] the bare mio loop, [`served`] the server as such a
//!   loop, [`players`] those who load either through real sockets, in step with it;
//! - [`talkers`] those who load it from a thread of their own.
#![allow(dead_code, reason = "each bench uses a part of it")]

pub mod bytes;
pub mod descriptors;
pub mod floor;
pub mod machine;
pub mod pairs;
pub mod players;
pub mod priority;
pub mod queue;
pub mod report;
pub mod served;
pub mod talkers;
