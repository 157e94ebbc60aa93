//! The server as a loop that can be turned.

use std::net::SocketAddr;
use std::time::Duration;

use anteroom::{Config, Limits, Rtyp, Server};

use super::floor::Loop;
use super::machine::Echo;

/// A server on any ports of the loopback address, whose game sends Data back to its sender.
pub struct Served(pub Server);

impl Served {
    /// A server with so many games.
    pub fn bind(games: usize) -> Self {
        let mut limits = Limits::default();
        // A few players make the whole load here, each far more than a player does.
        limits.set("session-rate", 0).expect("0 is for no limit");
        let rtyp = Rtyp {
            port: 0,
            games: games as u32,
            game: Box::new(Echo),
            ..Rtyp::default()
        };
        let config = Config {
            bind: vec![[127, 0, 0, 1].into()],
            limits,
            rtyp: Some(rtyp),
            ..Config::default()
        };
        Self(Server::bind(config).expect("free ports"))
    }

    /// The counter of this name.
    pub fn count(&self, name: &str) -> u64 {
        let stats = self.0.stats();
        stats
            .get("rtyp", name)
            .unwrap_or_else(|| panic!("no counter {name}"))
    }
}

impl Loop for Served {
    fn turn(&mut self) {
        self.0.turn(Some(Duration::ZERO)).expect("the poll works");
    }

    fn tcp(&self) -> SocketAddr {
        self.0.addresses()[0].tcp[0]
    }

    fn udp(&self) -> SocketAddr {
        self.0.addresses()[0].udp[0]
    }
}
