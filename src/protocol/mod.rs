//! The protocols a server speaks: each a directory with its text, its codec and its policy.

use crate::engine::Machine;
use crate::guard::limits::Limits;

pub mod rtyp;

pub use rtyp::Rtyp;

/// A service to be: its ports, and how its machine is made once they are known.
pub(crate) struct Plan {
    /// The protocol's name.
    pub(crate) name: &'static str,
    /// The TCP port, 0 for any; `None` for a service without streams.
    pub(crate) tcp: Option<u16>,
    /// The UDP port, 0 for any.
    pub(crate) udp: u16,
    /// Makes the machine.
    pub(crate) build: Build,
}

/// Makes a service's machine.
pub(crate) type Build = Box<dyn FnOnce(&Seat) -> Box<dyn Machine + Send>>;

/// What a service's machine is told of its place when it is made.
#[derive(Debug, Clone)]
pub(crate) struct Seat {
    /// The number of the service in its server, which is in its handles and tickets.
    pub(crate) service: u8,
    /// The UDP port, the same on all addresses.
    pub(crate) udp_port: u16,
    /// The numbers by which peers are limited.
    pub(crate) limits: Limits,
}
