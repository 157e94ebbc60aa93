//! The token that names a client in its packets. It has no `Display`, and a `Debug` that reveals
//! nothing.

use std::fmt;

/// What the packets of one client carry, or those of the server ([`Token::SERVER`]).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Token(pub u32);

impl Token {
    /// In every packet of the server.
    pub const SERVER: Self = Self(0xFFFF_FFFF);

    /// Whether a client may have it: not 0, not [`Token::SERVER`], and not what a STUN message
    /// holds in its place, 2112A442.
    pub const fn is_for_clients(self) -> bool {
        !matches!(self.0, 0 | 0x2112_A442 | 0xFFFF_FFFF)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_does_not_print_itself() {
        let token = Token(7_654_321);
        assert_eq!(format!("{token:?} {token:x?}"), "Token(..) Token(..)");
    }

    #[test]
    fn some_tokens_no_client_has() {
        for token in [0, 0x2112_A442, u32::MAX] {
            assert!(!Token(token).is_for_clients());
        }
        for token in [1, 0x2112_A441, 0x2112_A443, u32::MAX - 1, 0xDEAD_BEEF] {
            assert!(Token(token).is_for_clients());
        }
    }
}
