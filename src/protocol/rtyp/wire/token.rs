//! Tokens: what names a session in a datagram. They have different types so that the secret one
//! cannot stand where the public one goes, no `Display`, and a `Debug` that reveals nothing.

use std::fmt;

/// Version 1: the token of a session, both ways.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SharedToken(pub u32);

/// Version 2, client to server: the secret.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SessionToken(pub u64);

/// Version 2, server to client: public, it identifies and proves nothing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PlayerToken(pub u32);

/// The session field of a datagram, and with it the version and the direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Session {
    /// Version 1, both ways.
    Shared(SharedToken),
    /// Version 2, client to server.
    Secret(SessionToken),
    /// Version 2, server to client.
    Public(PlayerToken),
}

impl Session {
    /// The version of the datagram.
    pub fn version(self) -> u8 {
        match self {
            Self::Shared(_) => super::VERSION,
            Self::Secret(_) | Self::Public(_) => super::VERSION_2,
        }
    }
}

impl fmt::Debug for SharedToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedToken(..)")
    }
}

impl fmt::Debug for SessionToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionToken(..)")
    }
}

impl fmt::Debug for PlayerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PlayerToken(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_does_not_print_itself() {
        let shared = Session::Shared(SharedToken(7_654_321));
        let secret = Session::Secret(SessionToken(7_654_321));
        let public = Session::Public(PlayerToken(7_654_321));
        for session in [shared, secret, public] {
            let text = format!("{session:?} {session:#?} {session:x?}");
            assert!(
                !text.contains("7654321") && !text.contains("74cbb1"),
                "{text}"
            );
        }
    }
}
