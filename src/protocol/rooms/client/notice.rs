//! What a client tells its user, and how a session can end.

use std::ops::Range;
use std::{fmt, io};

use super::super::wire::{Message, NotCreated, NotRegistered, Reason, Rooms};
use super::asking::Ask;
use crate::bytes::Writer;
use crate::engine::Entity;

/// Something that happened to a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice<'a> {
    /// The client has its token: from now on it may ask.
    Opened,
    /// The name and the password were right.
    LoggedIn,
    /// They were wrong, or the session is another user's already.
    NotLoggedIn,
    /// There is an account now; nobody is logged in by it.
    Registered,
    /// There is none; a number still unknown is told as [`NotRegistered::Busy`].
    NotRegistered(NotRegistered),
    /// The client is in this room, on this seat: as its owner, or because it joined.
    InRoom {
        /// The room.
        name: &'a str,
        /// 0 to 15.
        seat: u8,
    },
    /// There is no new room; a number still unknown is told as [`NotCreated::TooManyRooms`].
    NotCreated(NotCreated),
    /// The client is not in the room it asked for.
    NotJoined(NotJoined),
    /// The client is in no room any more: it left, or the room's owner ended it.
    OutOfRoom {
        /// Whether the room itself is over.
        is_over: bool,
    },
    /// The room was not ended: there is none of this name, or it is another's.
    NotDeleted,
    /// Which rooms there are, as many as fit.
    Rooms(Rooms<'a>),
    /// Another's line of chat.
    Chat {
        /// Who said it, 1 to 16 bytes. Whoever prints it escapes it ([`escaped`]).
        ///
        /// [`escaped`]: crate::guard::escape::escaped
        user: &'a str,
        /// 1 to 200 bytes without control characters. Whoever prints it escapes it.
        text: &'a str,
    },
    /// The own line of chat: the others get it too.
    Said {
        /// As it was said.
        text: &'a str,
    },
    /// There is an entity that was not known. (Its room's end takes it away without a word.)
    Created(Entity),
    /// Entities have changed, of one Update: [`Client::entities`](super::Client::entities).
    Updated,
    /// A component of the game's own.
    Custom {
        /// From 256 on.
        component: u16,
        /// At most 1184 bytes.
        bytes: &'a [u8],
    },
    /// An entity is gone.
    Gone {
        /// Its number.
        entity: u32,
    },
    /// The server did not answer, however often it was asked. What was asked may have happened.
    NoAnswer(Ask),
    /// The session is over. Told once, and nothing after it.
    Ended(End),
}

/// Why a client is not in the room it asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NotJoined {
    /// It is in another one, is not logged in, or there is no such room.
    Refused,
    /// The room has another password.
    WrongPassword,
    /// Every seat is taken.
    Full,
}

impl fmt::Display for NotJoined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Refused => "there is no such room, or we are in another one",
            Self::WrongPassword => "the room has another password",
            Self::Full => "the room is full",
        })
    }
}

/// Why a client's session is over, or never was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The TCP connection could not be made.
    Unconnected(io::ErrorKind),
    /// The server gave no token within 10 s.
    NoAnswer,
    /// The server heard nothing, and nothing was heard from it: UDP does not reach it, or not back.
    Unreachable,
    /// Nothing valid was heard for 30 s, though the server was asked.
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
            Self::Unreachable => {
                f.write_str("the server cannot be reached over UDP (a firewall, usually)")
            }
            Self::Silent => f.write_str("nothing was heard from the server for 30 s"),
            Self::Logout(reason) => f.write_str(match reason {
                Reason::Asked => "the server says that we left",
                Reason::Shutdown => "the server is stopping",
                Reason::Full => "the server is full, or has too many sessions of our address",
                Reason::TimedOut => "the server heard nothing from us for too long",
                Reason::ProtocolError => "the server says that we sent something invalid",
                Reason::LoggedInElsewhere => "the same user has logged in elsewhere",
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
/// Bounded by what one call can bring: a stream's piece, one datagram, or the shots that are gone.
#[derive(Debug, Default)]
pub(super) struct Notices {
    entries: Vec<Entry>,
    bytes: Vec<u8>,
}

#[derive(Debug, Clone)]
enum Entry {
    /// One that borrows nothing.
    Plain(Notice<'static>),
    InRoom {
        name: Range<usize>,
        seat: u8,
    },
    Rooms(Range<usize>),
    Chat {
        user: Range<usize>,
        text: Range<usize>,
    },
    Said {
        text: Range<usize>,
    },
    Custom {
        component: u16,
        bytes: Range<usize>,
    },
}

/// Above this, a cleared arena gives its memory back.
const KEEP_BYTES: usize = 8 * 1024;

impl Notices {
    /// Appends one that borrows nothing.
    pub fn push(&mut self, notice: Notice<'static>) {
        self.entries.push(Entry::Plain(notice));
    }

    pub fn in_room(&mut self, name: &str, seat: u8) {
        let name = self.keep(name.as_bytes());
        self.entries.push(Entry::InRoom { name, seat });
    }

    /// Appends a page of rooms, as its message's payload.
    pub fn rooms(&mut self, page: &Rooms<'_>) {
        let start = self.bytes.len();
        Message::Rooms(page.clone()).write_payload(&mut Writer::new(&mut self.bytes));
        self.entries.push(Entry::Rooms(start..self.bytes.len()));
    }

    pub fn chat(&mut self, user: &str, text: &str) {
        let (user, text) = (self.keep(user.as_bytes()), self.keep(text.as_bytes()));
        self.entries.push(Entry::Chat { user, text });
    }

    pub fn said(&mut self, text: &str) {
        let text = self.keep(text.as_bytes());
        self.entries.push(Entry::Said { text });
    }

    pub fn custom(&mut self, component: u16, bytes: &[u8]) {
        let bytes = self.keep(bytes);
        self.entries.push(Entry::Custom { component, bytes });
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = Notice<'_>> {
        self.entries.iter().filter_map(|entry| {
            Some(match entry {
                Entry::Plain(notice) => notice.clone(),
                Entry::InRoom { name, seat } => Notice::InRoom {
                    name: self.text(name),
                    seat: *seat,
                },
                Entry::Rooms(payload) => {
                    Notice::Rooms(Rooms::read(&self.bytes[payload.clone()]).ok()?)
                }
                Entry::Chat { user, text } => Notice::Chat {
                    user: self.text(user),
                    text: self.text(text),
                },
                Entry::Said { text } => Notice::Said {
                    text: self.text(text),
                },
                Entry::Custom { component, bytes } => Notice::Custom {
                    component: *component,
                    bytes: &self.bytes[bytes.clone()],
                },
            })
        })
    }

    /// Forgets them all, and keeps the memory unless it has grown large.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.bytes.clear();
        if self.bytes.capacity() > KEEP_BYTES {
            *self = Self::default();
        }
    }

    fn keep(&mut self, bytes: &[u8]) -> Range<usize> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        start..self.bytes.len()
    }

    /// What was kept of a text, whole.
    fn text(&self, range: &Range<usize>) -> &str {
        std::str::from_utf8(&self.bytes[range.clone()]).unwrap_or_default()
    }
}
