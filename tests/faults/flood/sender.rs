//! One thread that sends datagrams to a port, each from another loopback address.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use quinn_udp::{Transmit, UdpSockRef, UdpSocketState};
use socket2::SockRef;

/// The first address a flood comes from; the others follow.
const FIRST: u32 = Ipv4Addr::new(127, 64, 0, 0).to_bits();
/// How many there are before it begins again: four million, up to 127.127.255.255.
const ADDRESSES: u32 = 1 << 22;
/// A sender that keeps to a rate looks at the clock this often.
const STEP: Duration = Duration::from_micros(200);
/// What it could not send in so much time, because others had the processor, it never sends: a
/// flood that was held up is no reason for a burst that no rate stands for.
const DEBT_MAX: Duration = Duration::from_millis(5);
/// A sender at its full rate looks at the clock after so many.
const BURST: u64 = 64;

/// Sends from any loopback address by one socket, which has no other: the system lets it name
/// the source of each datagram.
pub struct Sender {
    socket: UdpSocket,
    state: UdpSocketState,
    to: SocketAddr,
    /// The source of each datagram, by its number.
    from: fn(u64) -> IpAddr,
    sent: u64,
}

impl Sender {
    /// Floods this port of a loopback address, from a new address each time.
    pub fn new(to: SocketAddr) -> io::Result<Self> {
        Self::from(address, to)
    }

    /// Floods it from these addresses.
    pub fn from(from: fn(u64) -> IpAddr, to: SocketAddr) -> io::Result<Self> {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        // Nobody reads what comes back.
        SockRef::from(&socket).set_recv_buffer_size(1)?;
        let state = UdpSocketState::new(UdpSockRef::from(&socket))?;
        Ok(Self {
            socket,
            state,
            to,
            from,
            sent: 0,
        })
    }

    /// How many were sent so far.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Sends datagrams, `rate` a second or as many as it can, until `is_over`, which is asked now
    /// and then and told how many were sent. Each is what `next` makes of its number.
    pub fn flood(
        &mut self,
        rate: Option<u64>,
        mut is_over: impl FnMut(u64) -> bool,
        next: fn(u64, &mut Vec<u8>),
    ) {
        let mut pace = rate.map(Pace::new);
        let mut bytes = Vec::new();
        let first = self.sent;
        while !is_over(self.sent - first) {
            for _ in 0..pace.as_mut().map_or(BURST, Pace::due) {
                bytes.clear();
                next(self.sent, &mut bytes);
                self.send(&bytes);
            }
            if pace.is_some() {
                thread::park_timeout(STEP);
            }
        }
    }

    /// Sends `bytes` from the next address.
    fn send(&mut self, bytes: &[u8]) {
        let from = (self.from)(self.sent);
        let transmit = Transmit {
            destination: self.to,
            ecn: None,
            contents: bytes,
            segment_size: None,
            src_ip: Some(from),
        };
        match self
            .state
            .try_send(UdpSockRef::from(&self.socket), &transmit)
        {
            Ok(()) => self.sent += 1,
            // It is sent next time; or the other end is gone, and somebody else will say so.
            Err(error) if is_passing(&error) => {}
            Err(error) => panic!("cannot send from {from}: {error}"),
        }
    }
}

/// What a rate asks for as time goes by.
struct Pace {
    rate: u64,
    /// Up to when all was sent.
    paid: Instant,
}

impl Pace {
    fn new(rate: u64) -> Self {
        Self {
            rate,
            paid: Instant::now(),
        }
    }

    /// How many are due since the last call.
    fn due(&mut self) -> u64 {
        let now = Instant::now();
        if let Some(oldest) = now.checked_sub(DEBT_MAX) {
            self.paid = self.paid.max(oldest);
        }
        let owed = now - self.paid;
        let due = (u128::from(self.rate) * owed.as_nanos() / 1_000_000_000) as u64;
        self.paid += Duration::from_nanos(due * 1_000_000_000 / self.rate);
        due
    }
}

fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::ConnectionRefused
    )
}

/// The address of datagram number `number`.
pub fn address(number: u64) -> IpAddr {
    let offset = number % u64::from(ADDRESSES);
    Ipv4Addr::from_bits(FIRST + offset as u32).into()
}

/// A first hello: version 2, no cookie, no room, a name.
pub fn first_hello(_: u64, bytes: &mut Vec<u8>) {
    super::hello::write(bytes, 0, b"somebody");
}

/// Something nobody has asked for: noise, or as much like a datagram of the protocol as a stranger
/// can make it.
pub fn junk(number: u64, bytes: &mut Vec<u8>) {
    bytes.extend([0x5A; 46]);
    let head: &[u8] = match number % 4 {
        0 => b"",
        1 => b"RTYP\x09\x05",
        // Of a session that is not there.
        2 => b"RTYP\x01\x03\0\0\xFF\xFF\0\0\0\0\x01\x02\x03\x04",
        _ => b"RTYP\x02\x03\0\0\xFF\xFF\0\0\0\0\x01\x02\x03\x04\x05\x06\x07\x08",
    };
    bytes[..head.len()].copy_from_slice(head);
}
