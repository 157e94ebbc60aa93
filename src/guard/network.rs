//! What counts as one address when peers are limited.

use std::net::{IpAddr, Ipv6Addr};

/// The network that `ip` is limited as: an IPv4 address by itself (an IPv4-mapped one too), an
/// IPv6 address by its /64, since that is the least a single household holds.
pub fn network(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V4(ip) => IpAddr::V4(ip),
        IpAddr::V6(ip) => {
            let prefix = ip.to_bits() >> 64 << 64;
            IpAddr::V6(Ipv6Addr::from_bits(prefix))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn an_ipv4_address_is_its_own_network_mapped_or_not() {
        assert_eq!(network(ip("192.0.2.7")), ip("192.0.2.7"));
        assert_eq!(network(ip("::ffff:192.0.2.7")), ip("192.0.2.7"));
    }

    #[test]
    fn an_ipv6_address_counts_by_its_first_64_bits() {
        assert_eq!(network(ip("2001:db8:1:2:3:4:5:6")), ip("2001:db8:1:2::"));
        assert_eq!(network(ip("2001:db8:1:2::")), ip("2001:db8:1:2::"));
        assert_ne!(network(ip("2001:db8:1:3::")), ip("2001:db8:1:2::"));
    }
}
