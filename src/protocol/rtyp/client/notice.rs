//! What a client tells its user, and how a session can end.

use std::ops::Range;
use std::{fmt, io};

use super::super::wire::{FromServer, Reason, Reject};

/// Something that happened to a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notice<'a> {
    /// The login was accepted; in version 1 the UDP endpoint is not bound yet. Told again if a new
    /// session takes the place of one that was lost: then nobody else is known to be there until
    /// told anew, and events that were not acknowledged are lost.
    Accepted {
        /// The own number in the game, 0 to 3.
        player: u8,
    },
    /// The endpoint is bound: the client plays. Told once behind every [`Notice::Accepted`].
    Joined,
    /// Another player is in the game: was there already, or has come.
    PlayerJoined {
        /// Its number, 0 to 3.
        player: u8,
        /// Its name, 1 to 16 bytes. Whoever prints it escapes it ([`escaped`]).
        ///
        /// [`escaped`]: crate::guard::escape::escaped
        name: &'a str,
    },
    /// Another player is gone.
    PlayerLeft {
        /// Its number, 0 to 3.
        player: u8,
        /// Why; a reason still unknown is told as [`Reason::Left`].
        reason: Reason,
    },
    /// The game runs.
    GameStarted,
    /// A line of chat.
    Chat {
        /// Who said it; the game may use a number that is no player's.
        player: u8,
        /// 1 to 200 bytes without control characters. Whoever prints it escapes it.
        text: &'a str,
    },
    /// The game's own event, reliable and in order with all of the above.
    Custom {
        /// At most 1024 bytes; from the relay, the sender's number and what it sent.
        body: &'a [u8],
    },
    /// The game's own bytes, unreliable. They are not ordered with the events: from the relay
    /// they start with the sender's number, and are to be ignored if
    /// [`Client::is_present`](super::Client::is_present) knows no such player.
    Data {
        /// At most 1182 bytes.
        bytes: &'a [u8],
    },
    /// The session is over. Told once, and nothing after it.
    Ended(End),
}

/// Why a client's session is over, or never was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The TCP connection could not be made.
    Unconnected(io::ErrorKind),
    /// The server did not answer the login or the hello in time.
    NoAnswer,
    /// The server rejected the login for this reason: a [`Reject`], or a number still unknown.
    Rejected(u8),
    /// No Accept, or nothing at all to a hello, came within 5 s: UDP does not reach the server, or
    /// not back.
    Unreachable,
    /// Nothing valid was heard for 30 s.
    Silent,
    /// The server ended the session; a reason still unknown is told as [`Reason::Shutdown`].
    Logout(Reason),
    /// The server closed the connection, or it broke.
    Closed,
    /// The server sent something malformed or unexpected over TCP.
    Malformed,
    /// This side left.
    Left,
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unconnected(kind) => write!(f, "cannot connect to the server: {kind}"),
            Self::NoAnswer => f.write_str("the server does not answer"),
            Self::Rejected(code) => match Reject::from_code(*code) {
                Some(reject) => reject.fmt(f),
                None => write!(f, "the server refused (reason {code})"),
            },
            Self::Unreachable => {
                f.write_str("the server cannot be reached over UDP (a firewall, usually)")
            }
            Self::Silent => f.write_str("nothing was heard from the server for 30 s"),
            Self::Logout(reason) => f.write_str(match reason {
                Reason::Left => "the server says that we left",
                Reason::Shutdown => "the server is stopping",
                Reason::TimedOut => "the server heard nothing from us for too long",
                Reason::ProtocolError => "the server says that we sent something invalid",
                Reason::Kicked => "the game put us out",
            }),
            Self::Closed => f.write_str("the server closed the connection"),
            Self::Malformed => f.write_str("the server does not keep to the protocol"),
            Self::Left => f.write_str("left"),
        }
    }
}

impl std::error::Error for End {}

/// The notices of one call, in order; a reusable arena.
///
/// Bounded by what one call can bring: a stream's piece, or one datagram and the events that were
/// held for it.
#[derive(Debug, Default)]
pub(super) struct Notices {
    entries: Vec<Entry>,
    text: String,
    bytes: Vec<u8>,
}

#[derive(Debug, Clone)]
enum Entry {
    Accepted { player: u8 },
    Joined,
    PlayerJoined { player: u8, name: Range<usize> },
    PlayerLeft { player: u8, reason: Reason },
    GameStarted,
    Chat { player: u8, text: Range<usize> },
    Custom { body: Range<usize> },
    Data { bytes: Range<usize> },
    Ended(End),
}

/// Above this, a cleared arena gives its memory back.
const KEEP_BYTES: usize = 8 * 1024;

impl Notices {
    /// Appends one, and copies what it borrows.
    pub fn push(&mut self, notice: Notice<'_>) {
        let entry = match notice {
            Notice::Accepted { player } => Entry::Accepted { player },
            Notice::Joined => Entry::Joined,
            Notice::PlayerJoined { player, name } => {
                let name = self.keep_text(name);
                Entry::PlayerJoined { player, name }
            }
            Notice::PlayerLeft { player, reason } => Entry::PlayerLeft { player, reason },
            Notice::GameStarted => Entry::GameStarted,
            Notice::Chat { player, text } => {
                let text = self.keep_text(text);
                Entry::Chat { player, text }
            }
            Notice::Custom { body } => Entry::Custom {
                body: self.keep_bytes(body),
            },
            Notice::Data { bytes } => Entry::Data {
                bytes: self.keep_bytes(bytes),
            },
            Notice::Ended(end) => Entry::Ended(end),
        };
        self.entries.push(entry);
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = Notice<'_>> {
        self.entries.iter().map(|entry| match entry {
            Entry::Accepted { player } => Notice::Accepted { player: *player },
            Entry::Joined => Notice::Joined,
            Entry::PlayerJoined { player, name } => Notice::PlayerJoined {
                player: *player,
                name: &self.text[name.clone()],
            },
            Entry::PlayerLeft { player, reason } => Notice::PlayerLeft {
                player: *player,
                reason: *reason,
            },
            Entry::GameStarted => Notice::GameStarted,
            Entry::Chat { player, text } => Notice::Chat {
                player: *player,
                text: &self.text[text.clone()],
            },
            Entry::Custom { body } => Notice::Custom {
                body: &self.bytes[body.clone()],
            },
            Entry::Data { bytes } => Notice::Data {
                bytes: &self.bytes[bytes.clone()],
            },
            Entry::Ended(end) => Notice::Ended(*end),
        })
    }

    /// Forgets them all, and keeps the memory unless it has grown large.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.text.clear();
        self.bytes.clear();
        if self.text.capacity() + self.bytes.capacity() > KEEP_BYTES {
            *self = Self::default();
        }
    }

    fn keep_text(&mut self, text: &str) -> Range<usize> {
        let start = self.text.len();
        self.text.push_str(text);
        start..self.text.len()
    }

    fn keep_bytes(&mut self, bytes: &[u8]) -> Range<usize> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        start..self.bytes.len()
    }
}

impl<'a> From<FromServer<'a>> for Notice<'a> {
    fn from(event: FromServer<'a>) -> Self {
        match event {
            FromServer::PlayerJoined { player, name } => Self::PlayerJoined { player, name },
            FromServer::PlayerLeft { player, reason } => Self::PlayerLeft {
                player,
                reason: Reason::from_code(reason).unwrap_or(Reason::Left),
            },
            FromServer::GameStarted => Self::GameStarted,
            FromServer::Chat { player, text } => Self::Chat { player, text },
            FromServer::Custom(body) => Self::Custom { body },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notices_come_back_as_pushed_and_are_forgotten_at_once() {
        let all = [
            Notice::Accepted { player: 2 },
            Notice::Joined,
            Notice::PlayerJoined {
                player: 1,
                name: "Jürgen",
            },
            Notice::PlayerLeft {
                player: 1,
                reason: Reason::Kicked,
            },
            Notice::GameStarted,
            Notice::Chat {
                player: 255,
                text: "hi",
            },
            Notice::Custom { body: b"own" },
            Notice::Data { bytes: b"" },
            Notice::Data { bytes: b"\xFF\0" },
            Notice::Ended(End::Left),
        ];
        let mut notices = Notices::default();
        for _ in 0..2 {
            all.into_iter().for_each(|notice| notices.push(notice));
            assert!(notices.iter().eq(all));
            notices.clear();
            assert_eq!(notices.iter().count(), 0);
        }
    }

    #[test]
    fn steady_traffic_allocates_nothing_and_a_burst_is_given_back() {
        let mut notices = Notices::default();
        let bytes = [7; 1182];
        notices.push(Notice::Data { bytes: &bytes });
        let kept = notices.bytes.as_ptr();
        notices.clear();
        notices.push(Notice::Data { bytes: &bytes });
        assert_eq!(notices.bytes.as_ptr(), kept);
        (0..64).for_each(|_| notices.push(Notice::Custom { body: &bytes }));
        notices.clear();
        assert_eq!(notices.bytes.capacity(), 0);
    }

    #[test]
    fn every_end_is_a_sentence_of_its_own() {
        let ends = [
            End::Unconnected(io::ErrorKind::ConnectionRefused),
            End::NoAnswer,
            End::Rejected(1),
            End::Rejected(200),
            End::Unreachable,
            End::Silent,
            End::Logout(Reason::Left),
            End::Logout(Reason::Shutdown),
            End::Logout(Reason::TimedOut),
            End::Logout(Reason::ProtocolError),
            End::Logout(Reason::Kicked),
            End::Closed,
            End::Malformed,
            End::Left,
        ];
        let mut sentences: Vec<String> = ends.iter().map(End::to_string).collect();
        assert_eq!(sentences[2], "the server is full");
        assert_eq!(sentences[3], "the server refused (reason 200)");
        assert_eq!(
            sentences[4],
            "the server cannot be reached over UDP (a firewall, usually)"
        );
        sentences.sort();
        sentences.dedup();
        assert_eq!(sentences.len(), ends.len());
    }
}
