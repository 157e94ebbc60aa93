//! The stateless cookie by which an address proves that it hears what is sent to it.
//!
//! A cookie is a keyed hash of an endpoint and a window of 10 seconds, so nothing is stored for
//! whoever asks for one, and nobody else can make it: not for another address, not for another
//! port, not for another time, and not after a restart.

use std::hint::black_box;
use std::net::SocketAddr;

use super::keyed::{KeyedHash, octets};
use crate::engine::{Entropy, NoEntropy, Time};

/// A cookie is right in the window it was made in and in the next: for 10 to 20 seconds.
const WINDOW_MS: u64 = 10_000;
/// The address, the port and the window.
const HASHED_BYTES: usize = 16 + 2 + 8;

/// Makes cookies and knows them again, under a key of its own.
#[derive(Debug)]
pub struct Cookies {
    hash: KeyedHash,
}

impl Cookies {
    /// Draws a key: the cookies of any other `Cookies`, of another service or of the time before a
    /// restart, are wrong here.
    ///
    /// # Errors
    /// [`NoEntropy`] if the dice failed.
    pub fn new(dice: &mut dyn Entropy) -> Result<Self, NoEntropy> {
        let hash = KeyedHash::draw(dice)?;
        Ok(Self { hash })
    }

    /// The cookie of `endpoint`: right now, and for 10 to 20 seconds from now. Never 0, which
    /// stands for "none" in a hello. IPv4-mapped addresses have the cookies of their IPv4 ones.
    pub fn make(&self, now: Time, endpoint: SocketAddr) -> u64 {
        self.of_window(window(now), endpoint)
    }

    /// Whether `cookie` was made for `endpoint`, in this window or the one before. How long it
    /// takes does not depend on how much of it is right.
    pub fn check(&self, now: Time, endpoint: SocketAddr, cookie: u64) -> bool {
        let window = window(now);
        // Before the first window there is the very last one, in which nothing is ever made.
        let before = window.wrapping_sub(1);
        // Words are compared whole, in one instruction, and neither answer decides whether the
        // other is looked for: the compiler cannot see what it compares.
        let unlike_now = black_box(self.of_window(window, endpoint) ^ cookie);
        let unlike_before = black_box(self.of_window(before, endpoint) ^ cookie);
        (unlike_now == 0) | (unlike_before == 0)
    }

    fn of_window(&self, window: u64, endpoint: SocketAddr) -> u64 {
        let mut hashed = [0; HASHED_BYTES];
        hashed[..16].copy_from_slice(&octets(endpoint.ip()));
        hashed[16..18].copy_from_slice(&endpoint.port().to_le_bytes());
        hashed[18..].copy_from_slice(&window.to_le_bytes());
        some(self.hash.hash(&hashed))
    }
}

fn window(now: Time) -> u64 {
    now.ms() / WINDOW_MS
}

/// The hash as a cookie. 0 would say that there is none, so the one hash in 2^64 that is 0 shares
/// its cookie with the next.
fn some(hash: u64) -> u64 {
    hash | u64::from(hash == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Seeded;

    const HERE: &str = "192.0.2.7:5000";

    fn cookies(seed: u64) -> Cookies {
        Cookies::new(&mut Seeded::new(seed)).expect("seeded dice never fail")
    }

    fn at(text: &str) -> SocketAddr {
        text.parse().expect("an endpoint")
    }

    #[test]
    fn a_cookie_is_the_hash_of_address_port_and_window_in_this_order() {
        let cookies = cookies(1);
        let hashed = b"\0\0\0\0\0\0\0\0\0\0\xFF\xFF\xC0\x00\x02\x07\
            \x88\x13\
            \x03\x02\x01\0\0\0\0\0";
        let now = Time::from_ms(0x01_02_03 * 10_000 + 9_999);
        assert_eq!(cookies.make(now, at(HERE)), cookies.hash.hash(hashed));
        let hashed = b"\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x09\
            \xFF\x01\
            \0\0\0\0\0\0\0\0";
        let found = cookies.make(Time::ZERO, at("[2001:db8::9]:511"));
        assert_eq!(found, cookies.hash.hash(hashed));
    }

    #[test]
    fn it_is_right_in_its_window_and_the_next_only() {
        let cookies = cookies(2);
        for made_ms in [0, 1, 9_999, 10_000, 123_456, 129_999, 1 << 50] {
            let cookie = cookies.make(Time::from_ms(made_ms), at(HERE));
            let check = |ms| cookies.check(Time::from_ms(ms), at(HERE), cookie);
            let start = made_ms / 10_000 * 10_000;
            assert!(check(start) && check(made_ms) && check(start + 9_999));
            assert!(check(start + 10_000) && check(start + 19_999));
            assert!(!check(start + 20_000) && !check(start + 30_000));
            assert!(start == 0 || !check(start - 1), "from the future");
            assert!(start == 0 || !check(start - 10_000), "from the future");
        }
    }

    #[test]
    fn it_is_of_one_endpoint_only() {
        let cookies = cookies(3);
        let (now, mine) = (
            Time::from_ms(77_000),
            cookies.make(Time::from_ms(77_000), at(HERE)),
        );
        for other in [
            "192.0.2.7:5001",
            "192.0.2.7:34835",
            "192.0.2.8:5000",
            "7.2.0.192:5000",
            "[::192.0.2.7]:5000",
            "[2001:db8::c000:207]:5000",
        ] {
            assert!(!cookies.check(now, at(other), mine), "{other}");
            assert_ne!(cookies.make(now, at(other)), mine, "{other}");
        }
        let mapped = at("[::ffff:192.0.2.7]:5000");
        assert!(cookies.check(now, mapped, mine));
        assert_eq!(cookies.make(now, mapped), mine);
        assert!(cookies.check(now, at(HERE), mine));
    }

    #[test]
    fn each_bit_counts() {
        let cookies = cookies(4);
        for made_ms in [5_000, 15_000] {
            let now = Time::from_ms(15_000);
            let cookie = cookies.make(Time::from_ms(made_ms), at(HERE));
            assert!(cookies.check(now, at(HERE), cookie));
            for bit in 0..64 {
                assert!(
                    !cookies.check(now, at(HERE), cookie ^ 1 << bit),
                    "bit {bit}"
                );
            }
        }
    }

    #[test]
    fn after_a_restart_the_old_ones_are_wrong() {
        let now = Time::from_ms(1);
        let old = cookies(5).make(now, at(HERE));
        assert!(cookies(5).check(now, at(HERE), old), "the same key");
        assert!(!cookies(6).check(now, at(HERE), old), "another key");
    }

    #[test]
    fn zero_is_never_a_cookie() {
        assert_eq!(
            [some(0), some(1), some(2), some(u64::MAX)],
            [1, 1, 2, u64::MAX]
        );
        let cookies = cookies(7);
        for window in 0..1_000 {
            assert!(!cookies.check(Time::from_ms(window * WINDOW_MS), at(HERE), 0));
        }
    }

    #[test]
    fn the_key_is_not_shown() {
        let shown = format!("{:?}", cookies(8));
        assert_eq!(shown, "Cookies { hash: KeyedHash }");
    }

    #[test]
    fn without_entropy_there_are_no_cookies() {
        struct Broken;
        impl Entropy for Broken {
            fn fill(&mut self, _: &mut [u8]) -> Result<(), NoEntropy> {
                Err(NoEntropy)
            }
        }
        assert_eq!(Cookies::new(&mut Broken).err(), Some(NoEntropy));
    }
}
