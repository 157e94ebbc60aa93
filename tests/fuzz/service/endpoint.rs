//! Where datagrams come from and go to, and the account of their bytes.

use std::collections::VecDeque;

use anteroom::engine::Path;

/// The server's endpoint.
const SERVER: &str = "198.51.100.1:4242";
/// Two at one address, two more of one network, one for which limits do not hold, and at last two
/// that nobody can be at.
pub const ADDRESSES: [&str; 8] = [
    "192.0.2.1:5000",
    "192.0.2.1:5001",
    "192.0.2.2:5000",
    "[2001:db8::1]:5000",
    "[2001:db8::2]:5000",
    "127.0.0.1:5000",
    "192.0.2.3:0",
    SERVER,
];

/// Which of them limits do not hold for.
pub const UNLIMITED: usize = 5;

/// The longest datagram, and the header of the server's.
const DATAGRAM_MAX: usize = 1200;
const HEADER: usize = 18;
/// So many Pings are remembered.
const NONCES: usize = 4;

const PING: u8 = 3;
const PONG: u8 = 4;
const CONNECT_CHALLENGE: u8 = 17;
const SERVER_HELLO: u8 = 18;

/// An endpoint, and what whoever is there knows.
pub struct Endpoint {
    pub path: Path,
    /// The last that came.
    pub cookie: u64,
    /// The number of the last datagram that came.
    pub heard: u16,
    /// The last that a ServerHello was about.
    pub session: Option<Session>,
    /// Bytes that were said here.
    said: usize,
    /// Bytes that came here while nothing was proven.
    unproven: usize,
    /// It was shown once that what is sent here is heard here: by a cookie, or a Pong.
    is_proven: bool,
    /// Of the last Pings, the newest first.
    nonces: VecDeque<[u8; 4]>,
}

impl Endpoint {
    /// One of [`ADDRESSES`].
    pub fn new(address: &str) -> Self {
        Self {
            path: Path {
                socket: 0,
                local: SERVER.parse().expect("an address"),
                remote: address.parse().expect("an address"),
            },
            cookie: 0,
            heard: 0xFFFF,
            session: None,
            said: 0,
            unproven: 0,
            is_proven: false,
            nonces: VecDeque::new(),
        }
    }

    /// A datagram is sent from here.
    pub fn says(&mut self, bytes: &[u8]) {
        self.said += bytes.len();
        let is_pong = bytes.get(5) == Some(&PONG);
        // Be it of this session or another: who knows a nonce has heard the Ping.
        let knows = |nonce: &[u8; 4]| bytes.ends_with(nonce);
        self.is_proven |= is_pong && self.nonces.iter().any(knows);
    }

    /// A datagram comes here. Whoever has a stream from this address is known to be at it.
    ///
    /// # Panics
    /// If it is longer than one may be, or more than whoever is here has paid for.
    pub fn hears(&mut self, bytes: &[u8], has_stream: bool) {
        assert!(bytes.len() <= DATAGRAM_MAX, "{} bytes", bytes.len());
        let (header, payload) = bytes.split_at(HEADER);
        self.heard = u16::from_le_bytes([header[6], header[7]]);
        match (header[5], payload) {
            (PING, nonce) => {
                self.nonces.truncate(NONCES - 1);
                self.nonces.push_front(nonce.try_into().expect("a nonce"));
            }
            (CONNECT_CHALLENGE, cookie) => {
                self.cookie = u64::from_le_bytes(cookie.try_into().expect("a cookie"));
            }
            (SERVER_HELLO, [token @ .., _number]) => {
                self.is_proven = true;
                if self.session.as_ref().is_none_or(|it| it.token != token) {
                    self.session = Some(Session::new(2, token));
                }
            }
            _ => {}
        }
        if !(self.is_proven || has_stream) {
            self.unproven += bytes.len();
            let (got, said) = (self.unproven, self.said);
            assert!(got <= said, "{got} bytes to somebody who said {said}");
        }
    }

    /// Of the last Ping that came; zeros if none did.
    pub fn nonce(&self) -> [u8; 4] {
        self.nonces.front().copied().unwrap_or_default()
    }
}

/// What a client knows of its session.
pub struct Session {
    version: u8,
    /// Of 4 bytes in version 1, of 8 in version 2.
    token: Vec<u8>,
    /// Its next number.
    next: u16,
}

impl Session {
    /// One in which nothing was said.
    pub fn new(version: u8, token: &[u8]) -> Self {
        Self {
            version,
            token: token.to_vec(),
            next: 0,
        }
    }

    /// One that is not there.
    pub fn unknown() -> Self {
        Self::new(1, &[0xDE, 0xAD, 0xBE, 0xEF])
    }

    /// Its next datagram, as if so many had been lost before; all up to `heard` is acknowledged.
    pub fn datagram(&mut self, kind: u8, ahead: i8, heard: u16, payload: &[u8]) -> Vec<u8> {
        let sequence = self.next.wrapping_add_signed(ahead.into());
        self.next = self.next.wrapping_add(1);
        let mut bytes = b"RTYP".to_vec();
        bytes.extend([self.version, kind]);
        bytes.extend(sequence.to_le_bytes());
        bytes.extend(heard.to_le_bytes());
        bytes.extend([0xFF; 4]);
        bytes.extend(&self.token);
        bytes.extend(payload);
        bytes
    }
}
