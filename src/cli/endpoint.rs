//! HOST:PORT as addresses, tried in their order.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};

use anteroom::driver::{Door, Driver, End, rooms};

/// The addresses of a server, which of them is tried now, and by which door.
#[derive(Debug)]
pub struct Endpoint {
    addresses: Vec<SocketAddr>,
    current: usize,
    door: Door<'static>,
}

impl Endpoint {
    /// Asks the system for the addresses behind HOST:PORT; this may wait. Players will speak
    /// version 2, or version 1 and log in again by themselves.
    ///
    /// # Errors
    /// The system's, or [`io::ErrorKind::NotFound`].
    pub fn resolve(server: &str, v2: bool) -> io::Result<Self> {
        let addresses: Vec<SocketAddr> = server.to_socket_addrs()?.collect();
        if addresses.is_empty() {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(Self {
            addresses,
            current: 0,
            door: match v2 {
                true => Door::Hello { room: "" },
                false => Door::Login { rejoins: true },
            },
        })
    }

    /// Begins to connect a player, to the first address where the system knows a way.
    ///
    /// # Errors
    /// The system's for the last address.
    pub fn connect(&mut self, name: &str) -> io::Result<Driver> {
        let door = self.door;
        self.connect_with(|address| Driver::enter(address, name, door))
    }

    /// As [`Endpoint::connect`], with a player of rooms.
    ///
    /// # Errors
    /// The system's for the last address.
    pub fn connect_to_rooms(&mut self) -> io::Result<rooms::Driver> {
        self.connect_with(rooms::Driver::connect)
    }

    fn connect_with<D>(&mut self, connect: impl Fn(SocketAddr) -> io::Result<D>) -> io::Result<D> {
        loop {
            let connecting = connect(self.addresses[self.current]);
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
        let may_pass = match self.door {
            Door::Login { .. } => matches!(end, End::Unconnected(_)),
            Door::Hello { .. } => matches!(end, End::Unconnected(_) | End::Unreachable),
        };
        may_pass && self.moves_on(attempt)
    }

    /// As [`Endpoint::has_another`], of a player of rooms.
    pub fn has_another_for_rooms(&mut self, attempt: usize, end: rooms::End) -> bool {
        matches!(end, rooms::End::Unconnected(_)) && self.moves_on(attempt)
    }

    fn moves_on(&mut self, attempt: usize) -> bool {
        attempt < self.current || self.advance()
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
            door: Door::Login { rejoins: true },
        };
        let refused = End::Unconnected(ErrorKind::ConnectionRefused);
        assert!(!endpoint.has_another(0, End::NoAnswer));
        assert!(!endpoint.has_another(0, End::Unreachable));
        assert!(endpoint.has_another(0, refused));
        assert!(endpoint.has_another(0, refused), "it was at the first");
        assert_eq!(endpoint.attempt(), 1);
        assert!(endpoint.has_another(1, refused));
        assert!(!endpoint.has_another(2, refused));
        assert!(endpoint.has_another(1, refused));
        assert_eq!(endpoint.attempt(), 2);
    }

    #[test]
    fn a_hello_that_nobody_answers_goes_to_the_next_address() {
        let endpoint = Endpoint::resolve("[::1]:4242", true);
        let mut endpoint = endpoint.expect("an address");
        assert!(!endpoint.has_another(0, End::Unreachable));
        endpoint.addresses.push(endpoint.addresses[0]);
        assert!(!endpoint.has_another(0, End::NoAnswer));
        assert!(endpoint.has_another(0, End::Unreachable));
        assert_eq!(endpoint.attempt(), 1);
    }

    #[test]
    fn an_address_is_taken_as_it_is() {
        let endpoint = Endpoint::resolve("[::1]:4242", false).expect("an address");
        let expected: SocketAddr = "[::1]:4242".parse().expect("an address");
        assert_eq!(endpoint.addresses, [expected]);
    }
}
