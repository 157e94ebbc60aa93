//! SipHash-2-4 (64 bits) under a key that nobody else knows: who cannot read the key can neither
//! compute a hash nor choose inputs that collide.

use std::fmt;
use std::net::IpAddr;

use siphasher::sip::SipHasher24;

use crate::engine::{Entropy, NoEntropy};

/// The keyed hash.
pub(super) struct KeyedHash(SipHasher24);

impl KeyedHash {
    /// Draws a fresh key of 128 bits.
    pub(super) fn draw(dice: &mut dyn Entropy) -> Result<Self, NoEntropy> {
        let mut key = [0; 16];
        dice.fill(&mut key)?;
        Ok(Self::with_key(&key))
    }

    fn with_key(key: &[u8; 16]) -> Self {
        Self(SipHasher24::new_with_key(key))
    }

    /// The hash of `bytes`; as bytes it is written little-endian.
    pub(super) fn hash(&self, bytes: &[u8]) -> u64 {
        self.0.hash(bytes)
    }
}

impl fmt::Debug for KeyedHash {
    /// Says nothing of the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyedHash")
    }
}

/// The 16 bytes of an address, IPv4 as IPv4-mapped: so an IPv4 peer is the same peer on a socket
/// of either family.
pub(super) fn octets(ip: IpAddr) -> [u8; 16] {
    match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
        IpAddr::V6(ip) => ip.octets(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Seeded;

    fn bytes(hex: &str) -> Vec<u8> {
        let digits: Vec<u32> = hex.chars().map(|c| c.to_digit(16).unwrap()).collect();
        digits
            .chunks(2)
            .map(|two| (two[0] << 4 | two[1]) as u8)
            .collect()
    }

    /// The vectors that its authors published: the key is 00 to 0F, the input 00, 01, 02 and so
    /// on; 26 bytes are as many as a cookie is made of.
    #[test]
    fn it_is_siphash_2_4_as_published() {
        let input: Vec<u8> = (0..64).collect();
        let hash = KeyedHash::with_key(input[..16].try_into().unwrap());
        for (len, expected) in [
            (0, "310e0edd47db6f72"),
            (1, "fd67dc93c539f874"),
            (2, "5a4fa9d909806c0d"),
            (3, "2d7efbd796666785"),
            (4, "b7877127e09427cf"),
            (5, "8da699cd64557618"),
            (6, "cee3fe586e46c9cb"),
            (7, "37d1018bf50002ab"),
            (8, "6224939a79f5f593"),
            (15, "e545be4961ca29a1"),
            (16, "db9bc2577fcc2a3f"),
            (26, "f315bb5bb835d817"),
            (63, "724506eb4c328a95"),
        ] {
            let found = hash.hash(&input[..len]).to_le_bytes();
            assert_eq!(found[..], bytes(expected), "of {len} bytes");
        }
    }

    /// RFC 9018, appendix A: client cookie, version, reserved, timestamp and address, hashed under
    /// the server's secret.
    #[test]
    fn it_makes_the_server_cookies_of_rfc_9018() {
        let v4 = |ip: &str| ip.parse::<std::net::Ipv4Addr>().unwrap().octets().to_vec();
        let v6 = |ip: &str| octets(ip.parse().unwrap()).to_vec();
        let one = "e5e973e5a6b2a43f48e7dc849e37bfcf";
        let (old, new) = (
            "dd3bdf9344b678b185a6f5cb60fca715",
            "445536bcd2513298075a5d379663c962",
        );
        let here = "2001:db8:220:1:59de:d0f4:8769:82b8";
        for (secret, hashed, ip, expected) in [
            (
                one,
                "2464c4abcf10c957010000005cf79f11",
                v4("198.51.100.100"),
                "1f8130c3eee29480",
            ),
            (
                one,
                "2464c4abcf10c957010000005cf7a871",
                v4("198.51.100.100"),
                "d4a564a1442aca77",
            ),
            (
                one,
                "fc93fc62807ddb8601abcdef5cf78f71",
                v4("203.0.113.203"),
                "a314227b6679ebf5",
            ),
            (
                one,
                "fc93fc62807ddb86010000005cf7a9ac",
                v4("203.0.113.203"),
                "f73a7810aca2381e",
            ),
            (
                old,
                "22681ab97d52c298010000005cf7c579",
                v6(here),
                "26556bd0934c72f8",
            ),
            (
                new,
                "22681ab97d52c298010000005cf7c609",
                v6(here),
                "a6bb79d16625507a",
            ),
        ] {
            let hash = KeyedHash::with_key(&bytes(secret).try_into().unwrap());
            let found = hash.hash(&[bytes(hashed), ip].concat()).to_le_bytes();
            assert_eq!(found[..], bytes(expected), "of {hashed}");
        }
    }

    #[test]
    fn each_draw_is_another_key_and_none_is_shown() {
        let mut dice = Seeded::new(1);
        let first = KeyedHash::draw(&mut dice).expect("seeded dice never fail");
        let second = KeyedHash::draw(&mut dice).expect("seeded dice never fail");
        assert_ne!(first.hash(b"x"), second.hash(b"x"));
        assert_eq!(format!("{first:?} {second:#?}"), "KeyedHash KeyedHash");
    }

    #[test]
    fn an_ipv4_address_has_the_bytes_of_its_mapped_one() {
        let of = |ip: &str| octets(ip.parse().unwrap());
        assert_eq!(of("192.0.2.7"), of("::ffff:192.0.2.7"));
        assert_ne!(of("192.0.2.7"), of("::192.0.2.7"));
    }
}
