//! A client of version 2 that wants to come in, by hand and over a real socket.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// It says hello this often.
const HELLO_EVERY: Duration = Duration::from_millis(250);

const CONNECT_CHALLENGE: u8 = 17;
const SERVER_HELLO: u8 = 18;

/// The header from the server.
const HEADER: usize = 18;

/// Appends a ClientHello without a room.
pub fn write(bytes: &mut Vec<u8>, cookie: u64, name: &[u8]) {
    bytes.extend(b"RTYP\x02\x10\0\0\xFF\xFF\0\0\0\0");
    bytes.extend(0_u64.to_le_bytes());
    bytes.extend(cookie.to_le_bytes());
    bytes.extend([0, 0]);
    bytes.extend((name.len() as u16).to_le_bytes());
    bytes.extend(name);
}

/// Somebody who says hello until there is a ServerHello.
pub struct Newcomer {
    socket: UdpSocket,
    name: Vec<u8>,
    cookie: u64,
    /// How often it has said hello.
    pub tries: u32,
}

impl Newcomer {
    /// Somebody at this loopback address.
    pub fn new(ip: IpAddr, server: SocketAddr, name: &str) -> io::Result<Self> {
        let socket = UdpSocket::bind((ip, 0))?;
        socket.connect(server)?;
        Ok(Self {
            socket,
            name: name.into(),
            cookie: 0,
            tries: 0,
        })
    }

    /// Says hello every 250 ms, and at once when it has its cookie, until it is in or `deadline`
    /// has come. Returns whether it is in.
    pub fn enter(&mut self, deadline: Instant) -> bool {
        while Instant::now() < deadline {
            let mut hello = Vec::new();
            write(&mut hello, self.cookie, &self.name);
            // A refusal that comes back is that of an earlier one.
            let _ = self.socket.send(&hello);
            self.tries += 1;
            match self.hear(deadline.min(Instant::now() + HELLO_EVERY)) {
                Some((CONNECT_CHALLENGE, payload)) => {
                    let cookie = payload.try_into().expect("a cookie of 8 bytes");
                    self.cookie = u64::from_le_bytes(cookie);
                }
                Some((SERVER_HELLO, payload)) => {
                    assert_eq!(payload.len(), 9, "a token and a number");
                    return true;
                }
                Some(other) => panic!("neither a challenge nor a ServerHello: {other:?}"),
                None => {}
            }
        }
        false
    }

    /// The next datagram's type and payload, if it comes in time.
    fn hear(&self, until: Instant) -> Option<(u8, Vec<u8>)> {
        let mut buffer = [0; 2048];
        while let Some(left) = until.checked_duration_since(Instant::now()) {
            // Zero would stand for ever.
            let left = left.max(Duration::from_micros(1));
            self.socket.set_read_timeout(Some(left)).expect("set");
            match self.socket.recv(&mut buffer) {
                Ok(len) => {
                    let (header, payload) = buffer[..len].split_at_checked(HEADER)?;
                    assert_eq!(header[..5], *b"RTYP\x02", "of version 2");
                    return Some((header[5], payload.to_vec()));
                }
                Err(error) if is_nothing(error.kind()) => {}
                Err(error) => panic!("the endpoint fails: {error}"),
            }
        }
        None
    }
}

fn is_nothing(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::WouldBlock
            | ErrorKind::TimedOut
            | ErrorKind::Interrupted
            | ErrorKind::ConnectionRefused
    )
}
