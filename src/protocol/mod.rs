//! The protocols a server speaks: each a directory with its text, its codec and its policy.

use crate::engine::{Game, Machine};
use crate::guard::limit::Addresses;
use crate::guard::limits::Limits;

pub mod rooms;
pub mod rtyp;

/// The one list of protocols, and what each is made of besides its seat.
pub(crate) enum Kind {
    /// RTYP.
    Rtyp {
        /// How many games there are, 1 to 65536.
        games: u32,
        /// The UDP port that players are told, if not the one that is bound.
        advertise_udp: Option<u16>,
        /// By which a hello names the games; empty: by their numbers.
        names: Vec<String>,
        /// What is played.
        game: Box<dyn Game + Send>,
    },
    /// Rooms.
    Rooms {
        /// What is played, and who may log in.
        game: Box<dyn Game + Send>,
    },
}

/// What a service is told of its place in the server when it is made.
#[derive(Debug, Clone)]
pub(crate) struct Seat {
    /// The number of the service, which is in its handles and tickets.
    pub(crate) service: u8,
    /// The UDP port, the same on all addresses.
    pub(crate) udp_port: u16,
    /// The limits of a peer.
    pub(crate) limits: Limits,
    /// Whether loopback addresses are limited like others.
    pub(crate) limit_loopback: bool,
    /// The table of addresses, one for all services of a process.
    pub(crate) addresses: Addresses,
}

impl Kind {
    /// The protocol's name.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Rtyp { .. } => "rtyp",
            Self::Rooms { .. } => "rooms",
        }
    }

    /// The service itself.
    pub(crate) fn machine(self, seat: &Seat) -> Box<dyn Machine + Send> {
        match self {
            Self::Rtyp {
                games,
                advertise_udp,
                names,
                game,
            } => {
                let settings = rtyp::Settings {
                    service: seat.service,
                    udp_port: advertise_udp.unwrap_or(seat.udp_port),
                    games,
                    names,
                    limits: seat.limits.clone(),
                    limit_loopback: seat.limit_loopback,
                    addresses: seat.addresses.clone(),
                };
                Box::new(rtyp::Service::new(game, &settings))
            }
            Self::Rooms { game } => {
                let settings = rooms::Settings {
                    service: seat.service,
                    udp_port: seat.udp_port,
                    limits: seat.limits.clone(),
                    limit_loopback: seat.limit_loopback,
                    addresses: seat.addresses.clone(),
                };
                Box::new(rooms::Service::new(game, &settings))
            }
        }
    }
}
