//! Why a server cannot be, or cannot go on.

use std::fmt;
use std::io;
use std::net::SocketAddr;

/// The transport of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Transport {
    /// Streams.
    Tcp,
    /// Datagrams.
    Udp,
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
        })
    }
}

/// Why a server could not be bound, or stopped running by itself. A peer's failure is none.
#[derive(Debug)]
pub enum Error {
    /// No protocol is enabled: there is nothing to serve.
    NoService,
    /// A number of the configuration is outside its range.
    OutOfRange {
        /// Its field.
        argument: &'static str,
        /// What it was.
        value: u64,
        /// The smallest allowed.
        min: u64,
        /// The largest allowed.
        max: u64,
    },
    /// Two things have the same name.
    SameName {
        /// The field.
        argument: &'static str,
        /// The name.
        name: String,
    },
    /// Somebody else has the port.
    PortInUse {
        /// Whose port it was to be.
        service: &'static str,
        /// The transport.
        transport: Transport,
        /// The address and port.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// An address cannot be bound for another reason.
    Bind {
        /// Whose it was to be.
        service: &'static str,
        /// The transport.
        transport: Transport,
        /// The address and port.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The system's readiness queue cannot be made or waited for.
    Poll {
        /// What the system said.
        source: io::Error,
    },
    /// A thread for the server cannot be started.
    Thread {
        /// What the system said.
        source: io::Error,
    },
}

impl Error {
    pub(super) fn bind(
        service: &'static str,
        transport: Transport,
        address: SocketAddr,
        source: io::Error,
    ) -> Self {
        if source.kind() == io::ErrorKind::AddrInUse {
            Self::PortInUse {
                service,
                transport,
                address,
                source,
            }
        } else {
            Self::Bind {
                service,
                transport,
                address,
                source,
            }
        }
    }

    pub(super) fn poll(source: io::Error) -> Self {
        Self::Poll { source }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SameName { argument, name } => {
                write!(f, "`{argument}` has {name:?} twice")
            }
            Self::NoService => f.write_str("no protocol is enabled: there is nothing to serve"),
            Self::OutOfRange {
                argument,
                value,
                min,
                max,
            } => write!(f, "`{argument}` is from {min} to {max}, not {value}"),
            Self::PortInUse {
                service,
                transport,
                address,
                ..
            } => write!(
                f,
                "{service}: {transport} port {} is in use on {}",
                address.port(),
                address.ip()
            ),
            Self::Bind {
                service,
                transport,
                address,
                source,
            } => write!(f, "{service}: cannot bind {transport} {address}: {source}"),
            Self::Poll { source } => write!(f, "cannot wait for the sockets: {source}"),
            Self::Thread { source } => write!(f, "cannot start a thread: {source}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::SameName { .. } | Self::NoService | Self::OutOfRange { .. } => None,
            Self::PortInUse { source, .. }
            | Self::Bind { source, .. }
            | Self::Poll { source }
            | Self::Thread { source } => Some(source),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;

    #[test]
    fn a_port_in_use_is_named() {
        let address = "127.0.0.1:4242".parse().expect("an address");
        let source = io::Error::from(io::ErrorKind::AddrInUse);
        let error = Error::bind("rtyp", Transport::Udp, address, source);
        assert!(matches!(error, Error::PortInUse { .. }));
        assert_eq!(
            error.to_string(),
            "rtyp: UDP port 4242 is in use on 127.0.0.1"
        );
        assert!(error.source().is_some());
    }

    #[test]
    fn another_reason_names_the_address_and_itself() {
        let address = "192.0.2.1:4242".parse().expect("an address");
        let source = io::Error::from(io::ErrorKind::AddrNotAvailable);
        let error = Error::bind("rtyp", Transport::Tcp, address, source);
        let text = error.to_string();
        assert!(text.starts_with("rtyp: cannot bind TCP 192.0.2.1:4242: "));
    }
}
