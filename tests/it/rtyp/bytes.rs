//! The bytes of RTYP, put together and taken apart by hand, from the documents.
//!
//! Nothing of the library's codec is used: a codec tested only against itself agrees with its own
//! mistakes.

/// Datagram types.
pub mod kind {
    pub const CONNECT: u8 = 1;
    pub const ACCEPT: u8 = 2;
    pub const PING: u8 = 3;
    pub const PONG: u8 = 4;
    pub const DATA: u8 = 5;
    pub const EVENTS: u8 = 6;
    pub const ACK: u8 = 7;
    pub const CLIENT_HELLO: u8 = 16;
    pub const CONNECT_CHALLENGE: u8 = 17;
    pub const SERVER_HELLO: u8 = 18;
    pub const HELLO_REJECTED: u8 = 19;
    pub const CLIENT_BYE: u8 = 20;
    pub const SERVER_BYE: u8 = 21;
}

/// Event kinds.
pub mod event {
    pub const PLAYER_JOINED: u8 = 1;
    pub const PLAYER_LEFT: u8 = 2;
    pub const GAME_STARTED: u8 = 3;
    pub const CHAT: u8 = 4;
    pub const CUSTOM: u8 = 5;
    pub const START: u8 = 6;
}

/// Reasons of a LoginRejected and of a HelloRejected.
pub mod rejected {
    pub const SERVER_FULL: u8 = 1;
    pub const BAD_VERSION: u8 = 2;
    pub const BAD_NAME: u8 = 3;
    pub const NAME_TAKEN: u8 = 4;
    pub const GAME_STARTED: u8 = 5;
    pub const TOO_MANY: u8 = 6;
    pub const NO_SUCH_GAME: u8 = 7;
    pub const REFUSED: u8 = 8;
}

/// Reasons of a Logout and of the byes, which are also those of a PlayerLeft.
pub mod left {
    pub const LEFT: u8 = 0;
    pub const SHUTDOWN: u8 = 1;
    pub const TIMED_OUT: u8 = 2;
    pub const PROTOCOL_ERROR: u8 = 3;
    pub const KICKED: u8 = 4;
}

pub const MAGIC: [u8; 4] = [0x52, 0x54, 0x59, 0x50];
pub const HEADER: usize = 18;
/// The header of a client of version 2.
pub const HEADER_2: usize = 22;
pub const DATAGRAM_MAX: usize = 1200;
pub const PAYLOAD_MAX: usize = DATAGRAM_MAX - HEADER;

/// What stands in the session field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Token {
    /// Version 1, both ways.
    Shared(u32),
    /// Version 2, to the server.
    Secret(u64),
    /// Version 2, to the client.
    Public(u32),
}

impl Token {
    fn version(self) -> u8 {
        match self {
            Self::Shared(_) => 1,
            Self::Secret(_) | Self::Public(_) => 2,
        }
    }

    /// How long a header is that has it.
    pub fn header(self) -> usize {
        match self {
            Self::Shared(_) | Self::Public(_) => HEADER,
            Self::Secret(_) => HEADER_2,
        }
    }
}

/// A datagram, header and payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Datagram {
    pub version: u8,
    pub kind: u8,
    pub sequence: u16,
    pub ack: u16,
    pub ack_bits: u32,
    pub session: Token,
    pub payload: Vec<u8>,
}

impl Datagram {
    /// A datagram of version 1, of a session that has received nothing yet.
    pub fn new(kind: u8, session: u32, payload: &[u8]) -> Self {
        Self::with(kind, Token::Shared(session), payload)
    }

    /// The same of a client of version 2.
    pub fn secret(kind: u8, session: u64, payload: &[u8]) -> Self {
        Self::with(kind, Token::Secret(session), payload)
    }

    /// The same of anybody.
    pub fn with(kind: u8, session: Token, payload: &[u8]) -> Self {
        Self {
            version: session.version(),
            kind,
            sequence: 0,
            ack: 0xFFFF,
            ack_bits: 0,
            session,
            payload: payload.to_vec(),
        }
    }

    /// A ClientHello.
    pub fn hello(cookie: u64, room: &[u8], name: &[u8]) -> Self {
        let mut payload = cookie.to_le_bytes().to_vec();
        payload.extend(string(room));
        payload.extend(string(name));
        Self::secret(kind::CLIENT_HELLO, 0, &payload)
    }

    /// The same with another sequence.
    pub fn sequence(mut self, sequence: u16) -> Self {
        self.sequence = sequence;
        self
    }

    /// On the wire.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.push(self.version);
        bytes.push(self.kind);
        bytes.extend(self.sequence.to_le_bytes());
        bytes.extend(self.ack.to_le_bytes());
        bytes.extend(self.ack_bits.to_le_bytes());
        match self.session {
            Token::Shared(token) | Token::Public(token) => bytes.extend(token.to_le_bytes()),
            Token::Secret(token) => bytes.extend(token.to_le_bytes()),
        }
        bytes.extend(&self.payload);
        bytes
    }

    /// What a server sent, or a client of version 1, from the wire; fails the test if it is none.
    #[track_caller]
    pub fn parse(bytes: &[u8]) -> Self {
        Self::parse_with(bytes, |field| {
            let token = u32::from_le_bytes(field[..4].try_into().expect("four bytes"));
            match bytes[4] {
                1 => Token::Shared(token),
                2 => Token::Public(token),
                version => panic!("version {version}"),
            }
        })
    }

    #[track_caller]
    fn parse_with(bytes: &[u8], session: impl Fn(&[u8]) -> Token) -> Self {
        assert!(bytes.len() >= HEADER, "a datagram of {}", bytes.len());
        assert!(bytes.len() <= DATAGRAM_MAX, "a datagram of {}", bytes.len());
        assert_eq!(bytes[..4], MAGIC, "wrong magic");
        let session = session(&bytes[14..]);
        Self {
            version: bytes[4],
            kind: bytes[5],
            sequence: u16::from_le_bytes([bytes[6], bytes[7]]),
            ack: u16::from_le_bytes([bytes[8], bytes[9]]),
            ack_bits: u32::from_le_bytes([bytes[10], bytes[11], bytes[12], bytes[13]]),
            session,
            payload: bytes[session.header()..].to_vec(),
        }
    }
}

/// A reliable event as it stands in an Events datagram.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub kind: u8,
    pub body: Vec<u8>,
}

impl Event {
    /// Puts it together.
    pub fn new(kind: u8, body: &[u8]) -> Self {
        Self {
            kind,
            body: body.to_vec(),
        }
    }

    /// What a client says in chat.
    pub fn chat(text: &str) -> Self {
        Self::new(event::CHAT, &string(text.as_bytes()))
    }

    /// The wish to start.
    pub fn start() -> Self {
        Self::new(event::START, &[])
    }

    /// What a server passes on of a chat.
    pub fn said(player: u8, text: &str) -> Self {
        let mut body = vec![player];
        body.extend(string(text.as_bytes()));
        Self::new(event::CHAT, &body)
    }

    /// Somebody joined.
    pub fn joined(player: u8, name: &str) -> Self {
        let mut body = vec![player];
        body.extend(string(name.as_bytes()));
        Self::new(event::PLAYER_JOINED, &body)
    }

    /// Somebody left.
    pub fn left(player: u8, reason: u8) -> Self {
        Self::new(event::PLAYER_LEFT, &[player, reason])
    }

    /// The game runs.
    pub fn started() -> Self {
        Self::new(event::GAME_STARTED, &[])
    }

    /// On the wire, under an id.
    pub fn bytes(&self, id: u16) -> Vec<u8> {
        let mut bytes = id.to_le_bytes().to_vec();
        bytes.push(self.kind);
        bytes.extend((self.body.len() as u16).to_le_bytes());
        bytes.extend(&self.body);
        bytes
    }

    /// All events of a payload; fails the test if it holds none, too many or a torn one.
    #[track_caller]
    pub fn parse_all(mut payload: &[u8]) -> Vec<(u16, Self)> {
        let mut events = Vec::new();
        while !payload.is_empty() {
            assert!(payload.len() >= 5, "a torn event");
            let id = u16::from_le_bytes([payload[0], payload[1]]);
            let len = usize::from(u16::from_le_bytes([payload[3], payload[4]]));
            assert!(len <= 1024, "a body of {len}");
            assert!(payload.len() >= 5 + len, "a torn event");
            events.push((id, Self::new(payload[2], &payload[5..5 + len])));
            payload = &payload[5 + len..];
        }
        assert!(!events.is_empty(), "an empty Events datagram");
        assert!(events.len() <= 32, "{} events in a datagram", events.len());
        events
    }
}

/// A string: its length, then its bytes.
pub fn string(bytes: &[u8]) -> Vec<u8> {
    let mut string = (bytes.len() as u16).to_le_bytes().to_vec();
    string.extend(bytes);
    string
}

/// A TCP message with its length prefix.
pub fn frame(message: &[u8]) -> Vec<u8> {
    string(message)
}

/// A LoginRequest with its prefix.
pub fn login_request(version: u8, name: &[u8]) -> Vec<u8> {
    let mut message = vec![1, version];
    message.extend(string(name));
    frame(&message)
}

/// A LoginAccepted with its prefix.
pub fn login_accepted(session: u32, player: u8, udp_port: u16) -> Vec<u8> {
    let mut message = vec![2];
    message.extend(session.to_le_bytes());
    message.push(player);
    message.extend(udp_port.to_le_bytes());
    frame(&message)
}

/// A LoginRejected with its prefix.
pub fn login_rejected(reason: u8) -> Vec<u8> {
    frame(&[3, reason])
}

/// A Logout with its prefix.
pub fn logout(reason: u8) -> Vec<u8> {
    frame(&[4, reason])
}

/// What a server says over TCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Said {
    Accepted {
        session: u32,
        player: u8,
        udp_port: u16,
    },
    Rejected(u8),
    Logout(u8),
}

impl Said {
    /// Takes a message apart; fails the test if a server must not say it.
    #[track_caller]
    pub fn parse(message: &[u8]) -> Self {
        match *message {
            [2, a, b, c, d, player, low, high] => Self::Accepted {
                session: u32::from_le_bytes([a, b, c, d]),
                player,
                udp_port: u16::from_le_bytes([low, high]),
            },
            [3, reason] => Self::Rejected(reason),
            [4, reason] => Self::Logout(reason),
            _ => panic!("no server says {message:02X?}"),
        }
    }
}

/// Collects a stream and cuts it into messages.
#[derive(Debug, Default)]
pub struct Frames(Vec<u8>);

impl Frames {
    /// Takes bytes; returns the messages that are whole now, without their prefixes.
    pub fn take(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
        self.0.extend(bytes);
        let mut messages = Vec::new();
        while self.0.len() >= 2 {
            let len = usize::from(u16::from_le_bytes([self.0[0], self.0[1]]));
            if self.0.len() < 2 + len {
                break;
            }
            messages.push(self.0[2..2 + len].to_vec());
            self.0.drain(..2 + len);
        }
        messages
    }

    /// Bytes of a message that is not whole.
    pub fn left(&self) -> usize {
        self.0.len()
    }
}
