//! The UDP socket of a driver.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use mio::event::Source as _;
use mio::net::UdpSocket;
use mio::{Interest, Registry, Token};

use crate::engine::Path;

/// So many failures to receive are passed over in one attempt; each is one datagram's affair.
const FAILURES_MAX: usize = 32;

/// A socket that talks to one server.
#[derive(Debug)]
pub(super) struct Datagrams {
    socket: UdpSocket,
    local: SocketAddr,
    /// Once it is known the system keeps all others out.
    server: Option<SocketAddr>,
    counts: Counts,
}

/// What has become of datagrams, by the system's word.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counts {
    sent: u64,
    send_failed: u64,
    received: u64,
    receive_failed: u64,
}

impl Counts {
    /// Adds those of another socket.
    pub(super) fn add(&mut self, other: Self) {
        self.sent += other.sent;
        self.send_failed += other.send_failed;
        self.received += other.received;
        self.receive_failed += other.receive_failed;
    }

    /// All of them by name.
    pub(super) fn named(&self) -> [(&'static str, u64); 4] {
        [
            ("datagrams-out", self.sent),
            ("send-failed", self.send_failed),
            ("datagrams-in", self.received),
            ("receive-failed", self.receive_failed),
        ]
    }
}

impl Datagrams {
    /// A socket on any port, at the address that the connection to `server` has, if it is known:
    /// the server trusts an endpoint whose address is that of the connection.
    pub(super) fn bind(ip: Option<IpAddr>, server: SocketAddr) -> io::Result<Self> {
        let any = match server.ip().to_canonical() {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        let at = |ip| UdpSocket::bind(SocketAddr::new(ip, 0));
        let socket = match ip.map(at) {
            Some(Ok(socket)) => socket,
            // As with an address that needs a scope.
            _ => at(any)?,
        };
        Ok(Self {
            local: socket.local_addr()?,
            socket,
            server: None,
            counts: Counts::default(),
        })
    }

    pub(super) fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        self.socket.register(registry, token, Interest::READABLE)
    }

    pub(super) fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
        self.socket.deregister(registry)
    }

    /// Sends, if the system has room; what it has not is lost, as on the way.
    pub(super) fn send(&mut self, server: SocketAddr, bytes: &[u8]) {
        // Where it fails, so does sending, which counts it.
        let _ = self.connect(server);
        let socket = &self.socket;
        match send(|| socket.send(bytes)) {
            Ok(()) => self.counts.sent += 1,
            Err(_) => self.counts.send_failed += 1,
        }
    }

    /// Takes the next datagram, if there is one: the way it came, and its length.
    pub(super) fn receive(&mut self, buffer: &mut [u8]) -> Option<(Path, usize)> {
        for _ in 0..FAILURES_MAX {
            match self.socket.recv_from(buffer) {
                Ok((len, from)) => {
                    self.counts.received += 1;
                    let path = Path {
                        socket: 0,
                        local: self.local,
                        remote: folded(from),
                    };
                    return Some((path, len));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
                // That nobody listens there, say: it proves nothing, and may be forged.
                Err(_) => self.counts.receive_failed += 1,
            }
        }
        None
    }

    pub(super) fn counts(&self) -> Counts {
        self.counts
    }

    /// Hears nobody but the server from now on.
    pub(super) fn connect(&mut self, server: SocketAddr) -> io::Result<()> {
        if self.server != Some(server) {
            self.socket.connect(server)?;
            self.server = Some(server);
        }
        Ok(())
    }
}

/// Sends once more if what failed was an earlier one: the system tells of it when it is asked
/// the next time, and does not send what it was asked for.
fn send(mut send: impl FnMut() -> io::Result<usize>) -> io::Result<()> {
    let is_about_an_earlier_one = |error: &io::Error| {
        use io::ErrorKind as Kind;
        matches!(
            error.kind(),
            Kind::ConnectionRefused
                | Kind::ConnectionReset
                | Kind::HostUnreachable
                | Kind::NetworkUnreachable
                | Kind::Interrupted
        )
    };
    match send() {
        Err(error) if is_about_an_earlier_one(&error) => send().map(drop),
        result => result.map(drop),
    }
}

/// An IPv4-mapped address as IPv4.
pub(super) fn folded(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        ip @ IpAddr::V4(_) => SocketAddr::new(ip, address.port()),
        IpAddr::V6(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_earlier_datagram_met_does_not_cost_this_one() {
        let mut calls = 0;
        let refused_once = send(|| {
            calls += 1;
            match calls {
                1 => Err(io::ErrorKind::ConnectionRefused.into()),
                _ => Ok(1),
            }
        });
        assert!(refused_once.is_ok());
        assert_eq!(calls, 2);
        let always = send(|| Err(io::ErrorKind::ConnectionRefused.into()));
        assert!(always.is_err());
        calls = 0;
        let full = send(|| {
            calls += 1;
            Err(io::ErrorKind::WouldBlock.into())
        });
        assert!(full.is_err());
        assert_eq!(calls, 1);
    }

    #[test]
    fn a_socket_speaks_the_family_of_its_server() {
        let server: SocketAddr = "[::ffff:127.0.0.1]:4242".parse().expect("an address");
        let datagrams = Datagrams::bind(None, server).expect("a socket");
        assert!(datagrams.local.is_ipv4());
        assert_eq!(
            folded(server),
            "127.0.0.1:4242".parse().expect("an address")
        );
    }
}
