//! Datagram sockets: batches in, single datagrams out, and never anything fatal.

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr, SocketAddrV6};

use mio::net::UdpSocket;
use mio::{Interest, Registry, Token};
use quinn_udp::{RecvMeta, Transmit, UdpSockRef, UdpSocketState};
use socket2::{Protocol, SockRef, Type};

use super::bind;
use super::counters::Counters;
use super::readiness::Readiness;
use crate::engine::Path;

/// How many buffers one system call fills, and after how many datagrams their effects are
/// performed.
pub(super) const BATCH: usize = 32;

/// More than a datagram, or the datagrams the system has joined to one, can have: nothing is ever
/// cut. And no power of two, or the heads of all buffers would compete for the same few cache
/// lines.
const BUFFER_BYTES: usize = 65_536 + 21 * 64;

/// After so many failures in a row a socket counts as dry until the poll tells otherwise.
const FAILURES_MAX: usize = 32;

/// A system call that returned fewer datagrams than it had room for found no more. Elsewhere the
/// call returns one at a time.
const SHORT_IS_DRY: bool = cfg!(any(target_os = "linux", target_os = "android"));

/// One datagram socket of a service.
pub(super) struct Datagrams {
    socket: UdpSocket,
    pub(super) readiness: Readiness,
    state: UdpSocketState,
    index: u8,
    local: SocketAddr,
    receive_buffer: usize,
}

impl Datagrams {
    /// The socket number `index` of its service, bound to `address`, with a receive buffer of
    /// `buffer` bytes or as many of them as the system grants.
    pub(super) fn bind(address: SocketAddr, index: u8, buffer: usize) -> io::Result<Self> {
        let socket = bind::socket(address, Type::DGRAM, Protocol::UDP)?;
        // A wish: a smaller buffer loses datagrams earlier, and nothing else.
        let _ = socket.set_recv_buffer_size(buffer);
        socket.bind(&address.into())?;
        let socket = UdpSocket::from_std(socket.into());
        Ok(Self {
            state: UdpSocketState::new(UdpSockRef::from(&socket))?,
            receive_buffer: granted(&socket)?,
            local: socket.local_addr()?,
            socket,
            readiness: Readiness::default(),
            index,
        })
    }

    /// Has the poll tell of what comes.
    pub(super) fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        registry.register(&mut self.socket, token, Interest::READABLE)
    }

    /// Where it is bound.
    pub(super) fn local(&self) -> SocketAddr {
        self.local
    }

    /// The size of its receive buffer, in bytes that can be asked for.
    pub(super) fn receive_buffer(&self) -> usize {
        self.receive_buffer
    }

    /// Fills `batch` with what has come; returns how many of its buffers were filled. After 0 the
    /// socket has run dry.
    pub(super) fn receive(&mut self, batch: &mut Batch, counters: &mut Counters) -> usize {
        let (mut buffers, meta) = batch.split();
        let receive = || {
            self.socket.try_io(|| {
                let socket = UdpSockRef::from(&self.socket);
                self.state.recv(socket, &mut buffers, meta)
            })
        };
        let count = first_success(counters, receive);
        if count == 0 || (SHORT_IS_DRY && count < BATCH) {
            self.readiness.run_dry();
        }
        count
    }

    /// The way by which what is in the buffer of `meta` came.
    pub(super) fn path(&self, meta: &RecvMeta) -> Path {
        let local = match meta.dst_ip {
            Some(ip) => SocketAddr::new(ip.to_canonical(), self.local.port()),
            None => self.local,
        };
        Path {
            socket: self.index,
            local,
            remote: folded(meta.addr),
        }
    }

    /// Sends `bytes` by `path`, or counts why not. Nothing is queued: datagrams may get lost, and
    /// a queue would only make them late.
    pub(super) fn send(&self, path: &Path, bytes: &[u8], counters: &mut Counters) {
        let transmit = Transmit {
            destination: path.remote,
            ecn: None,
            contents: bytes,
            segment_size: None,
            src_ip: self.source(path.local.ip()),
        };
        let send = || {
            self.socket.try_io(|| {
                self.state
                    .try_send(UdpSockRef::from(&self.socket), &transmit)
            })
        };
        count_sent(counters, bytes.len(), send);
    }

    /// The address to send from, where the system has a choice: the one that was asked, so that
    /// whoever waits for its answer knows it. Nobody can send from a group's address.
    fn source(&self, asked: IpAddr) -> Option<IpAddr> {
        let single = match asked {
            IpAddr::V4(ip) => !(ip.is_unspecified() || ip.is_multicast() || ip.is_broadcast()),
            IpAddr::V6(ip) => !(ip.is_unspecified() || ip.is_multicast()),
        };
        (self.local.ip().is_unspecified() && single).then_some(asked)
    }
}

/// The size of the receive buffer of `socket`, in bytes that can be asked for.
fn granted(socket: &UdpSocket) -> io::Result<usize> {
    let size = SockRef::from(socket).recv_buffer_size()?;
    // Linux doubles what it is asked for, and tells the double.
    let doubled = cfg!(any(target_os = "linux", target_os = "android"));
    Ok(if doubled { size / 2 } else { size })
}

/// The result of `receive`: 0 if there is nothing. A failure is that of one peer, whose refusal
/// has come back, and says nothing about what others have sent: it is counted, and what is behind
/// it received.
fn first_success(counters: &mut Counters, mut receive: impl FnMut() -> io::Result<usize>) -> usize {
    for _ in 0..FAILURES_MAX {
        match receive() {
            Ok(count) => return count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return 0,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => counters.receive_failed += 1,
        }
    }
    0
}

/// Calls `send` for a datagram of `len` bytes. If the refusal of an earlier one comes back
/// instead, that has cost this one nothing, and it is sent once more.
fn count_sent(counters: &mut Counters, len: usize, mut send: impl FnMut() -> io::Result<()>) {
    let mut sent = send();
    if let Err(error) = &sent
        && is_refusal(error)
    {
        sent = send();
    }
    match sent {
        Ok(()) => {
            counters.datagrams_out += 1;
            counters.datagram_bytes_out += len as u64;
        }
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => counters.send_refused += 1,
        Err(_) => counters.send_failed += 1,
    }
}

fn is_refusal(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::Interrupted
    )
}

/// `address` in the one form that everybody compares: IPv4 as IPv4, no flow label. The scope
/// stays, since a link-local address is nothing without it.
pub(super) fn folded(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V4(_) => address,
        SocketAddr::V6(v6) => match v6.ip().to_ipv4_mapped() {
            Some(ip) => SocketAddr::from((ip, v6.port())),
            None => SocketAddrV6::new(*v6.ip(), v6.port(), 0, v6.scope_id()).into(),
        },
    }
}

/// The buffers into which sockets receive, one call at a time. Large, but only those parts of it
/// that were ever written to are resident.
pub(super) struct Batch {
    memory: Box<[u8]>,
    meta: [RecvMeta; BATCH],
}

impl Batch {
    pub(super) fn new() -> Self {
        Self {
            memory: vec![0; BATCH * BUFFER_BYTES].into_boxed_slice(),
            meta: [RecvMeta::default(); BATCH],
        }
    }

    fn split(&mut self) -> ([IoSliceMut<'_>; BATCH], &mut [RecvMeta; BATCH]) {
        let mut buffers = self.memory.chunks_exact_mut(BUFFER_BYTES);
        let buffers = std::array::from_fn(|_| IoSliceMut::new(buffers.next().unwrap_or_default()));
        (buffers, &mut self.meta)
    }

    /// The first `count` buffers, each with the bytes in it.
    pub(super) fn filled(&self, count: usize) -> impl Iterator<Item = (&RecvMeta, &[u8])> {
        let buffers = self.memory.chunks_exact(BUFFER_BYTES);
        self.meta
            .iter()
            .zip(buffers)
            .take(count)
            .map(|(meta, buffer)| (meta, buffer.get(..meta.len).unwrap_or(buffer)))
    }
}

/// The datagrams in `bytes`: as many of `stride` bytes as there are, and what is left. One
/// without bytes is a datagram too.
pub(super) fn segments(bytes: &[u8], stride: usize) -> impl Iterator<Item = &[u8]> {
    let empty = bytes.is_empty().then_some(bytes);
    let stride = if stride == 0 { bytes.len() } else { stride };
    empty.into_iter().chain(bytes.chunks(stride.max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters() -> Counters {
        Counters::default()
    }

    fn error<T>(kind: io::ErrorKind) -> io::Result<T> {
        Err(kind.into())
    }

    fn address(text: &str) -> SocketAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn joined_datagrams_are_taken_apart() {
        let sizes = |bytes, stride| -> Vec<usize> {
            segments(&[0; 64][..bytes], stride)
                .map(<[u8]>::len)
                .collect()
        };
        assert_eq!(sizes(64, 20), [20, 20, 20, 4]);
        assert_eq!(sizes(40, 20), [20, 20]);
        assert_eq!(sizes(7, 7), [7]);
        assert_eq!(sizes(0, 0), [0]);
        assert_eq!(sizes(2, 0), [2], "no stride is no reason to panic");
    }

    #[test]
    fn endpoints_have_one_form() {
        let mapped = address("[::ffff:192.0.2.1]:7");
        assert_eq!(folded(mapped), address("192.0.2.1:7"));
        let ip = "fe80::1".parse().expect("an address");
        let labelled = SocketAddrV6::new(ip, 7, 99, 3);
        assert_eq!(
            folded(labelled.into()),
            SocketAddrV6::new(ip, 7, 0, 3).into()
        );
    }

    #[test]
    fn a_failure_to_receive_hides_nothing_behind_it() {
        let mut counters = counters();
        let mut results = vec![
            Ok(5),
            error(io::ErrorKind::ConnectionRefused),
            error(io::ErrorKind::Interrupted),
            error(io::ErrorKind::HostUnreachable),
        ];
        let count = first_success(&mut counters, || results.pop().expect("not asked again"));
        assert_eq!((count, counters.receive_failed), (5, 2));
    }

    #[test]
    fn a_socket_that_only_fails_does_not_hold_the_loop() {
        let mut counters = counters();
        let count = first_success(&mut counters, || error(io::ErrorKind::NetworkDown));
        assert_eq!((count, counters.receive_failed), (0, FAILURES_MAX as u64));
        assert_eq!(
            first_success(&mut counters, || error(io::ErrorKind::WouldBlock)),
            0
        );
    }

    #[test]
    fn an_earlier_refusal_costs_the_next_datagram_nothing() {
        let mut counters = counters();
        let mut results = vec![Ok(()), error(io::ErrorKind::ConnectionRefused)];
        count_sent(&mut counters, 9, || results.pop().expect("not asked again"));
        assert_eq!(
            (counters.datagrams_out, counters.datagram_bytes_out),
            (1, 9)
        );
        assert_eq!((counters.send_failed, counters.send_refused), (0, 0));
    }

    #[test]
    fn what_is_not_sent_is_counted_once() {
        let mut counters = counters();
        count_sent(&mut counters, 9, || error(io::ErrorKind::WouldBlock));
        count_sent(&mut counters, 9, || error(io::ErrorKind::ConnectionRefused));
        count_sent(&mut counters, 9, || {
            error(io::ErrorKind::NetworkUnreachable)
        });
        assert_eq!((counters.send_refused, counters.send_failed), (1, 2));
        assert_eq!(counters.datagrams_out, 0);
    }

    fn bound(local: &str) -> Datagrams {
        Datagrams::bind(address(local), 3, 65_536).expect("a port")
    }

    #[test]
    fn only_a_wildcard_socket_names_the_address_it_sends_from() {
        let asked = IpAddr::from([127, 0, 0, 2]);
        assert_eq!(bound("127.0.0.1:0").source(asked), None);
        let wildcard = bound("0.0.0.0:0");
        assert_eq!(wildcard.source(asked), Some(asked));
        for group in ["255.255.255.255", "224.0.0.1", "0.0.0.0", "::", "ff02::1"] {
            let group = group.parse().expect("an address");
            assert_eq!(wildcard.source(group), None, "{group}");
        }
    }

    #[test]
    fn the_path_names_the_address_that_was_asked_and_the_sockets_port() {
        let socket = bound("0.0.0.0:0");
        let mut meta = RecvMeta::default();
        meta.addr = address("[::ffff:192.0.2.1]:7");
        assert_eq!(socket.path(&meta).local, socket.local());
        meta.dst_ip = Some("::ffff:127.0.0.2".parse().expect("an address"));
        let path = socket.path(&meta);
        assert_eq!(path.socket, 3);
        assert_eq!(path.remote, address("192.0.2.1:7"));
        let local = SocketAddr::from(([127, 0, 0, 2], socket.local().port()));
        assert_eq!(path.local, local);
    }

    #[test]
    fn what_was_asked_for_is_granted_as_far_as_it_goes() {
        assert_eq!(bound("127.0.0.1:0").receive_buffer(), 65_536);
    }

    #[test]
    fn a_port_that_is_served_cannot_be_had_again() {
        let taken = bound("127.0.0.1:0");
        let refused = Datagrams::bind(taken.local(), 0, 65_536).err();
        let refused = refused.expect("taken");
        assert_eq!(refused.kind(), io::ErrorKind::AddrInUse);
    }
}
