//! Sockets for a service: one per address, all on the same port.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use socket2::{Domain, Protocol, Socket, Type};

/// How often another port is tried when the system's choice for the first address is taken on
/// another.
const TRIES: usize = 16;

/// The addresses that `asked` stands for: itself, or all there are if it is empty.
pub(super) fn addresses(asked: &[IpAddr]) -> Vec<IpAddr> {
    if !asked.is_empty() {
        return asked.iter().map(IpAddr::to_canonical).collect();
    }
    let mut all = vec![IpAddr::V4(Ipv4Addr::UNSPECIFIED)];
    if has_ipv6() {
        all.push(IpAddr::V6(Ipv6Addr::UNSPECIFIED));
    }
    all
}

/// Whether this host has IPv6 at all.
fn has_ipv6() -> bool {
    let address = SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0));
    socket(address, Type::DGRAM, Protocol::UDP)
        .and_then(|socket| socket.bind(&address.into()))
        .is_ok()
}

/// Binds `port` on each of `ips` with `bind`, which is told the index and returns the port it got. Port 0: the first
/// address chooses, the others get the same; if one of them has it no more, all begin again.
///
/// # Errors
/// The address that could not be bound, and why.
pub(super) fn same_port<S>(
    ips: &[IpAddr],
    port: u16,
    mut bind: impl FnMut(SocketAddr, u8) -> io::Result<(S, u16)>,
) -> Result<Vec<S>, (SocketAddr, io::Error)> {
    let mut tries = if port == 0 { TRIES } else { 1 };
    loop {
        tries -= 1;
        match bind_all(ips, port, &mut bind) {
            Err((address, error))
                if tries > 0 && address.port() != 0 && error.kind() == io::ErrorKind::AddrInUse => {
            }
            done => return done,
        }
    }
}

fn bind_all<S>(
    ips: &[IpAddr],
    mut port: u16,
    bind: &mut impl FnMut(SocketAddr, u8) -> io::Result<(S, u16)>,
) -> Result<Vec<S>, (SocketAddr, io::Error)> {
    let mut bound = Vec::with_capacity(ips.len());
    for (index, ip) in (0..).zip(ips) {
        let address = SocketAddr::new(*ip, port);
        let (socket, got) = bind(address, index).map_err(|error| (address, error))?;
        bound.push(socket);
        port = got;
    }
    Ok(bound)
}

/// A socket for `address`, not yet bound to it, that never blocks.
pub(super) fn socket(address: SocketAddr, kind: Type, protocol: Protocol) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), kind, Some(protocol))?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_nonblocking(true)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ips() -> Vec<IpAddr> {
        addresses(&[[127, 0, 0, 1].into(), [127, 0, 0, 2].into()])
    }

    fn in_use() -> io::Error {
        io::ErrorKind::AddrInUse.into()
    }

    #[test]
    fn the_first_address_chooses_the_port_of_all() {
        let bound = same_port(&ips(), 0, |address, _| {
            let port = if address.port() == 0 {
                5_000
            } else {
                address.port()
            };
            Ok((address, port))
        });
        let ports: Vec<u16> = bound.expect("bound").iter().map(SocketAddr::port).collect();
        assert_eq!(ports, [0, 5_000]);
    }

    #[test]
    fn a_chosen_port_that_is_taken_elsewhere_is_given_up_for_another() {
        let mut chosen = 5_000;
        let bound = same_port(&ips(), 0, |address, _| match address.port() {
            0 => {
                chosen += 1;
                Ok((chosen, chosen))
            }
            5_003 => Ok((5_003, 5_003)),
            _ => Err(in_use()),
        });
        assert_eq!(bound.expect("bound"), [5_003, 5_003]);
    }

    #[test]
    fn sixteen_tries_are_enough() {
        let mut tries = 0;
        let refused = same_port(&ips(), 0, |address, _| match address.port() {
            0 => {
                tries += 1;
                Ok(((), 5_000))
            }
            _ => Err(in_use()),
        });
        let (address, error) = refused.expect_err("never bound");
        assert_eq!(address, "127.0.0.2:5000".parse().expect("an address"));
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        assert_eq!(tries, TRIES);
    }

    #[test]
    fn another_failure_or_a_given_port_is_tried_once() {
        for (port, kind) in [
            (0, io::ErrorKind::PermissionDenied),
            (4_242, io::ErrorKind::AddrInUse),
        ] {
            let mut calls = 0;
            let refused = same_port(&ips(), port, |address, _| {
                calls += 1;
                if calls == 1 {
                    return Ok(((), if port == 0 { 5_000 } else { address.port() }));
                }
                Err(io::Error::from(kind))
            });
            assert_eq!(refused.expect_err("refused").1.kind(), kind);
            assert_eq!(calls, 2);
        }
    }

    #[test]
    fn mapped_addresses_are_bound_as_ipv4() {
        let mapped = "::ffff:127.0.0.1".parse().expect("an address");
        assert_eq!(addresses(&[mapped]), [IpAddr::from([127, 0, 0, 1])]);
    }

    #[test]
    fn no_address_stands_for_all() {
        let all = addresses(&[]);
        assert_eq!(all[0], IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        assert_eq!(all.len() == 2, has_ipv6());
    }
}
