//! Datagrams that cannot have come from a peer.

use std::net::IpAddr;

use super::Path;

/// Whether the source of a datagram can be a peer: not unspecified, multicast or broadcast, not
/// port 0, and not the very socket the datagram came to.
pub fn is_plausible(path: &Path) -> bool {
    let remote = path.remote;
    let broadcast = matches!(remote.ip(), IpAddr::V4(ip) if ip.is_broadcast());
    !(remote.port() == 0
        || remote.ip().is_unspecified()
        || remote.ip().is_multicast()
        || broadcast
        || (remote.port() == path.local.port() && remote.ip() == path.local.ip()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_nobody_can_have_is_not_plausible() {
        let judge = |remote: &str| {
            let local = "10.0.0.1:4242".parse().unwrap();
            is_plausible(&Path {
                socket: 0,
                local,
                remote: remote.parse().unwrap(),
            })
        };
        for remote in [
            "10.0.0.1:4241",
            "10.0.0.2:4242",
            "127.0.0.1:9",
            "[2001:db8::1]:4242",
        ] {
            assert!(judge(remote), "{remote}");
        }
        for remote in [
            "10.0.0.1:4242",
            "10.0.0.2:0",
            "0.0.0.0:5",
            "[::]:5",
            "224.0.0.1:5",
            "[ff02::1]:5",
            "255.255.255.255:5",
        ] {
            assert!(!judge(remote), "{remote}");
        }
    }
}
