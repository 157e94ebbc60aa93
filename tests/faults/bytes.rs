//! The few bytes of RTYP that are needed here, put together by hand from its document. Nothing of
//! the library's codec is used.

/// Datagram types.
pub mod kind {
    pub const CONNECT: u8 = 1;
    pub const ACCEPT: u8 = 2;
    pub const PING: u8 = 3;
    pub const PONG: u8 = 4;
    pub const DATA: u8 = 5;
    pub const EVENTS: u8 = 6;
    pub const ACK: u8 = 7;
}

/// Reasons of a Logout, and of a PlayerLeft.
pub mod left {
    pub const LEFT: u8 = 0;
    pub const SHUTDOWN: u8 = 1;
    pub const TIMED_OUT: u8 = 2;
    pub const PROTOCOL_ERROR: u8 = 3;
}

/// LoginRejected for a bad name, with its prefix.
pub const REJECTED_BAD_NAME: [u8; 4] = [2, 0, 3, 3];

pub const MAGIC: [u8; 4] = *b"RTYP";
const HEADER: usize = 18;

/// A LoginRequest with its prefix.
pub fn login_request(name: &[u8]) -> Vec<u8> {
    let mut message = vec![1, 1];
    message.extend((name.len() as u16).to_le_bytes());
    message.extend(name);
    frame(&message)
}

/// A Logout with its prefix.
pub fn logout(reason: u8) -> Vec<u8> {
    frame(&[4, reason])
}

fn frame(message: &[u8]) -> Vec<u8> {
    let mut bytes = (message.len() as u16).to_le_bytes().to_vec();
    bytes.extend(message);
    bytes
}

/// How many bytes a LoginAccepted has, its prefix included.
pub const LOGIN_ACCEPTED: usize = 10;

/// Token, player number and UDP port of a LoginAccepted; fails the test if it is none.
#[track_caller]
pub fn login_accepted(bytes: &[u8; LOGIN_ACCEPTED]) -> (u32, u8, u16) {
    let [8, 0, 2, a, b, c, d, player, low, high] = *bytes else {
        panic!("no LoginAccepted: {bytes:02X?}");
    };
    let token = u32::from_le_bytes([a, b, c, d]);
    (token, player, u16::from_le_bytes([low, high]))
}

/// A datagram, header and payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Datagram {
    pub kind: u8,
    pub sequence: u16,
    pub ack: u16,
    pub ack_bits: u32,
    pub session: u32,
    pub payload: Vec<u8>,
}

impl Datagram {
    /// On the wire.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend([1, self.kind]);
        bytes.extend(self.sequence.to_le_bytes());
        bytes.extend(self.ack.to_le_bytes());
        bytes.extend(self.ack_bits.to_le_bytes());
        bytes.extend(self.session.to_le_bytes());
        bytes.extend(&self.payload);
        bytes
    }

    /// From the wire; fails the test if it is none.
    #[track_caller]
    pub fn parse(bytes: &[u8]) -> Self {
        let (header, payload) = bytes.split_at_checked(HEADER).expect("a header");
        assert_eq!(header[..4], MAGIC);
        assert_eq!(header[4], 1, "the version");
        let u16_at = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
        let u32_at = |at: usize| u32::from(u16_at(at)) | u32::from(u16_at(at + 2)) << 16;
        Self {
            kind: header[5],
            sequence: u16_at(6),
            ack: u16_at(8),
            ack_bits: u32_at(10),
            session: u32_at(14),
            payload: payload.to_vec(),
        }
    }
}

/// A reliable event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub kind: u8,
    pub body: Vec<u8>,
}

impl Event {
    /// What the others hear when somebody leaves.
    pub fn left(player: u8, reason: u8) -> Self {
        Self {
            kind: 2,
            body: vec![player, reason],
        }
    }

    /// Whether it says that somebody joined.
    pub fn is_join(&self) -> bool {
        self.kind == 1
    }

    /// The events of a payload with their ids; fails the test if one is torn.
    #[track_caller]
    pub fn parse_all(mut payload: &[u8]) -> Vec<(u16, Self)> {
        let mut events = Vec::new();
        while !payload.is_empty() {
            let (head, rest) = payload.split_at_checked(5).expect("the head of an event");
            let len = usize::from(u16::from_le_bytes([head[3], head[4]]));
            let (body, rest) = rest.split_at_checked(len).expect("a whole body");
            let event = Self {
                kind: head[2],
                body: body.to_vec(),
            };
            events.push((u16::from_le_bytes([head[0], head[1]]), event));
            payload = rest;
        }
        events
    }
}
