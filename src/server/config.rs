//! What a server is to be.

use std::net::IpAddr;

use crate::guard::limits::Limits;
use crate::protocol::{Plan, Rtyp};

/// What a server is to be: where it listens, and how it limits its peers.
///
/// By default nothing is served: each protocol has a field, and is a service if that is set.
#[derive(Debug, Default)]
pub struct Config {
    /// The addresses to bind, at most 64. Empty, which is the default, stands for all of them:
    /// `0.0.0.0`, and `[::]` where the host has IPv6. IPv6 sockets take IPv6 alone.
    pub bind: Vec<IpAddr>,
    /// The numbers by which peers are limited.
    pub limits: Limits,
    /// Whether loopback addresses are limited like others.
    pub limit_loopback: bool,
    /// The rtyp service.
    pub rtyp: Option<Rtyp>,
}

impl Config {
    /// The services it names, in the order in which they are told to users: the one list of
    /// protocols.
    pub(super) fn plans(&mut self) -> Vec<Plan> {
        [self.rtyp.take().map(Rtyp::plan)]
            .into_iter()
            .flatten()
            .collect()
    }
}
