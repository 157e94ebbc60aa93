//! SipHash-2-4 as its authors describe it, written anew: the cookies of a server whose key a test
//! has chosen.

use std::net::{IpAddr, SocketAddr};

/// The cookie of an endpoint in a window.
pub fn cookie(key: [u32; 4], endpoint: SocketAddr, window: u64) -> u64 {
    let address = match endpoint.ip() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    };
    let mut bytes = address.octets().to_vec();
    bytes.extend(endpoint.port().to_le_bytes());
    bytes.extend(window.to_le_bytes());
    siphash(key, &bytes)
}

fn siphash(key: [u32; 4], bytes: &[u8]) -> u64 {
    let long = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
    let (k0, k1) = (long(key[0], key[1]), long(key[2], key[3]));
    let mut v = [
        k0 ^ u64::from_be_bytes(*b"somepseu"),
        k1 ^ u64::from_be_bytes(*b"dorandom"),
        k0 ^ u64::from_be_bytes(*b"lygenera"),
        k1 ^ u64::from_be_bytes(*b"tedbytes"),
    ];
    let mut padded = bytes.to_vec();
    padded.resize(bytes.len() / 8 * 8 + 7, 0);
    padded.push(bytes.len() as u8);
    for word in padded.chunks(8) {
        let word = u64::from_le_bytes(word.try_into().expect("eight bytes"));
        v[3] ^= word;
        (0..2).for_each(|_| round(&mut v));
        v[0] ^= word;
    }
    v[2] ^= 0xFF;
    (0..4).for_each(|_| round(&mut v));
    v[0] ^ v[1] ^ v[2] ^ v[3]
}

fn round(v: &mut [u64; 4]) {
    v[0] = v[0].wrapping_add(v[1]);
    v[2] = v[2].wrapping_add(v[3]);
    v[1] = v[1].rotate_left(13) ^ v[0];
    v[3] = v[3].rotate_left(16) ^ v[2];
    v[0] = v[0].rotate_left(32);
    v[2] = v[2].wrapping_add(v[1]);
    v[0] = v[0].wrapping_add(v[3]);
    v[1] = v[1].rotate_left(17) ^ v[2];
    v[3] = v[3].rotate_left(21) ^ v[0];
    v[2] = v[2].rotate_left(32);
}

#[test]
fn it_is_siphash_as_published() {
    let key = [0x0302_0100, 0x0706_0504, 0x0B0A_0908, 0x0F0E_0D0C];
    let bytes: Vec<u8> = (0..15).collect();
    assert_eq!(siphash(key, &bytes), 0xA129_CA61_49BE_45E5);
    assert_eq!(siphash(key, &[]), 0x726F_DB47_DD0E_0E31);
}
