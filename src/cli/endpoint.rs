//! HOST:PORT as addresses, tried in their order.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};

use anteroom::driver::{Driver, End};

/// The addresses of a server, and which of them is tried now.
#[derive(Debug)]
pub struct Endpoint {
    addresses: Vec<SocketAddr>,
    current: usize,
}

impl Endpoint {
    /// Asks the system for the addresses behind HOST:PORT; this may wait.
    ///
    /// # Errors
    /// The system's, or [`io::ErrorKind::NotFound`].
    pub fn resolve(server: &str) -> io::Result<Self> {
        let addresses: Vec<SocketAddr> = server.to_socket_addrs()?.collect();
        if addresses.is_empty() {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(Self {
            addresses,
            current: 0,
        })
    }

    /// Begins to connect a player, to the first address where the system knows a way.
    ///
    /// # Errors
    /// The system's for the last address.
    pub fn connect(&mut self, name: &str) -> io::Result<Driver> {
        loop {
            let connecting = Driver::connect(self.addresses[self.current], name);
            if connecting.is_ok() || !self.advance() {
                return connecting;
            }
        }
    }

    /// Which address is tried now, counted from 0.
    pub fn attempt(&self) -> usize {
        self.current
    }

    /// Whether who ended like this in that attempt should connect again, since there is another
    /// address.
    pub fn has_another(&mut self, attempt: usize, end: End) -> bool {
        matches!(end, End::Unconnected(_)) && (attempt < self.current || self.advance())
    }

    fn advance(&mut self) -> bool {
        let there_is_one = self.current + 1 < self.addresses.len();
        if there_is_one {
            self.current += 1;
        }
        there_is_one
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use super::*;

    #[test]
    fn every_address_is_tried_once_by_whomever() {
        let address = "127.0.0.1:9".parse().expect("an address");
        let mut endpoint = Endpoint {
            addresses: vec![address; 3],
            current: 0,
        };
        let refused = End::Unconnected(ErrorKind::ConnectionRefused);
        assert!(!endpoint.has_another(0, End::NoAnswer));
        assert!(endpoint.has_another(0, refused));
        assert!(endpoint.has_another(0, refused), "it was at the first");
        assert_eq!(endpoint.attempt(), 1);
        assert!(endpoint.has_another(1, refused));
        assert!(!endpoint.has_another(2, refused));
        assert!(endpoint.has_another(1, refused));
        assert_eq!(endpoint.attempt(), 2);
    }

    #[test]
    fn an_address_is_taken_as_it_is() {
        let endpoint = Endpoint::resolve("[::1]:4242").expect("an address");
        let expected: SocketAddr = "[::1]:4242".parse().expect("an address");
        assert_eq!(endpoint.addresses, [expected]);
    }
}
