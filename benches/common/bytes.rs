//! The bytes of RTYP as its document lays them out, by hand: a load that is made by the
//! library's own codec would become faster with it.

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

/// Event kinds of a client.
pub mod event_kind {
    pub const CHAT: u8 = 4;
    pub const CUSTOM: u8 = 5;
}

/// The UDP header.
pub const HEADER: usize = 18;
/// A datagram of a game: what the limits on datagrams are about.
pub const DATAGRAM: usize = 64;
/// The payload that makes it one.
pub const PAYLOAD: [u8; DATAGRAM - HEADER] = [0xA5; DATAGRAM - HEADER];

/// A LoginRequest of version 1 with its length prefix.
pub fn login_request(name: &str) -> Vec<u8> {
    let mut bytes = vec![4 + name.len() as u8, 0, 1, 1, name.len() as u8, 0];
    bytes.extend_from_slice(name.as_bytes());
    bytes
}

/// A ClientHello of version 2 with this cookie.
pub fn client_hello(cookie: u64) -> Vec<u8> {
    let mut bytes = b"RTYP\x02\x10\0\0\xFF\xFF\0\0\0\0".to_vec();
    bytes.extend_from_slice(&0_u64.to_le_bytes());
    bytes.extend_from_slice(&cookie.to_le_bytes());
    bytes.extend_from_slice(b"\0\0\x08\0somebody");
    bytes
}

/// An event as it stands in an Events datagram.
pub fn event(id: u16, kind: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = id.to_le_bytes().to_vec();
    bytes.extend_from_slice(&[kind, body.len() as u8, 0]);
    bytes.extend_from_slice(body);
    bytes
}

/// The token in a LoginAccepted with its length prefix.
///
/// # Panics
/// If it is none.
pub fn accepted_token(bytes: &[u8]) -> u32 {
    assert!(
        matches!(bytes, [8, 0, 2, _, _, _, _, _, _, _]),
        "not a LoginAccepted: {bytes:02X?}"
    );
    u32::from_le_bytes([bytes[3], bytes[4], bytes[5], bytes[6]])
}

/// A client's side of a session: what it says is numbered, what it heard is acknowledged.
#[derive(Debug, Clone)]
pub struct Speaker {
    token: u32,
    sequence: u16,
    /// The newest sequence heard, and bits for the 32 before it.
    ack: u16,
    ack_bits: u32,
    heard: bool,
    buffer: [u8; 256],
}

impl Speaker {
    /// Nothing was said yet.
    pub fn new(token: u32) -> Self {
        Self {
            token,
            sequence: 0,
            ack: u16::MAX,
            ack_bits: 0,
            heard: false,
            buffer: [0; 256],
        }
    }

    /// The next datagram.
    pub fn say(&mut self, kind: u8, payload: &[u8]) -> &[u8] {
        let end = HEADER + payload.len();
        let buffer = &mut self.buffer;
        buffer[..6].copy_from_slice(&[b'R', b'T', b'Y', b'P', 1, kind]);
        buffer[6..8].copy_from_slice(&self.sequence.to_le_bytes());
        buffer[8..10].copy_from_slice(&self.ack.to_le_bytes());
        buffer[10..14].copy_from_slice(&self.ack_bits.to_le_bytes());
        buffer[14..HEADER].copy_from_slice(&self.token.to_le_bytes());
        buffer[HEADER..end].copy_from_slice(payload);
        self.sequence = self.sequence.wrapping_add(1);
        &self.buffer[..end]
    }

    /// The last datagram once more.
    pub fn again(&self, len: usize) -> &[u8] {
        &self.buffer[..len]
    }

    /// Takes a datagram of the server, which comes in order: its sequence will be acknowledged.
    /// Returns its type and payload.
    pub fn hear<'a>(&mut self, datagram: &'a [u8]) -> (u8, &'a [u8]) {
        let sequence = u16::from_le_bytes([datagram[6], datagram[7]]);
        if self.heard {
            let ahead = u32::from(sequence.wrapping_sub(self.ack));
            let older = self.ack_bits.checked_shl(ahead).unwrap_or(0);
            let former = 1_u32.checked_shl(ahead.wrapping_sub(1)).unwrap_or(0);
            self.ack_bits = older | former;
        }
        self.heard = true;
        self.ack = sequence;
        (datagram[5], &datagram[HEADER..])
    }
}
