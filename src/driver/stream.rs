//! The TCP connection of a driver: made, written, read and closed without waiting.

use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Shutdown, SocketAddr};

use mio::event::Source as _;
use mio::net::TcpStream;
use mio::{Interest, Registry, Token};

use crate::engine::{Close, Time};

/// How long a connection that was left is kept, so that the last bytes arrive.
const DRAIN_MS: u64 = 1_000;

/// A connection, as far as it is one.
#[derive(Debug)]
pub(super) struct Stream {
    /// `None` once it is closed.
    socket: Option<TcpStream>,
    phase: Phase,
    /// What the system had no room for: a login and a Logout at most.
    unsent: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Connecting,
    Open,
    /// The writing side is to be shut down, or is; what comes is thrown away.
    Draining {
        until: Time,
        is_shut: bool,
    },
}

/// What has become of the connection.
#[derive(Debug)]
pub(super) enum Progress {
    /// Nothing that is news.
    None,
    /// It stands, and this is its other end.
    Established(SocketAddr),
    /// It could not be made.
    Failed(io::ErrorKind),
}

/// What one attempt to read came to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Read {
    /// So many bytes.
    Bytes(usize),
    /// None now.
    Nothing,
    /// None any more: its end was read, or it broke.
    Over,
}

impl Stream {
    /// Begins to connect.
    pub(super) fn connect(server: SocketAddr) -> io::Result<Self> {
        Ok(Self {
            socket: Some(TcpStream::connect(server)?),
            phase: Phase::Connecting,
            unsent: Vec::new(),
        })
    }

    /// The own address of the connection, where the system has chosen one already.
    pub(super) fn local_ip(&self) -> Option<IpAddr> {
        let local = self.socket.as_ref()?.local_addr().ok()?;
        Some(local.ip()).filter(|ip| !ip.is_unspecified())
    }

    pub(super) fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        let interests = Interest::READABLE | Interest::WRITABLE;
        match &mut self.socket {
            Some(socket) => socket.register(registry, token, interests),
            None => Ok(()),
        }
    }

    pub(super) fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
        match &mut self.socket {
            Some(socket) => socket.deregister(registry),
            None => Ok(()),
        }
    }

    /// Does what can be done without being asked: looks whether it stands, writes what waits,
    /// closes what has drained.
    pub(super) fn advance(&mut self, now: Time) -> Progress {
        let Some(socket) = &mut self.socket else {
            return Progress::None;
        };
        match self.phase {
            Phase::Connecting => match established(socket) {
                Ok(None) => Progress::None,
                Ok(Some(peer)) => {
                    self.phase = Phase::Open;
                    Progress::Established(peer)
                }
                Err(error) => {
                    self.socket = None;
                    Progress::Failed(error.kind())
                }
            },
            Phase::Open => {
                self.flush();
                Progress::None
            }
            Phase::Draining { until, .. } => {
                self.drain();
                if until <= now {
                    self.socket = None;
                }
                Progress::None
            }
        }
    }

    /// When [`Stream::advance`] has something to do, whatever comes.
    pub(super) fn deadline(&self) -> Option<Time> {
        match self.phase {
            Phase::Draining { until, .. } if self.socket.is_some() => Some(until),
            _ => None,
        }
    }

    /// Writes, or keeps what cannot be written yet.
    pub(super) fn write(&mut self, bytes: &[u8]) {
        self.unsent.extend_from_slice(bytes);
        self.flush();
    }

    /// Reads what has come.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> Read {
        match (&mut self.socket, self.phase) {
            (Some(socket), Phase::Open) => {
                let read = read(buffer, |buffer| socket.read(buffer));
                if read == Read::Over {
                    self.socket = None;
                }
                read
            }
            _ => Read::Nothing,
        }
    }

    /// Closes, in this way.
    pub(super) fn close(&mut self, how: Close, now: Time) {
        match how {
            Close::Now => self.socket = None,
            Close::Drain => {
                let until = now + DRAIN_MS;
                let is_shut = false;
                self.phase = Phase::Draining { until, is_shut };
                self.drain();
            }
        }
    }

    /// Closes what nobody has closed with care.
    pub(super) fn abandon(&mut self) {
        if !matches!(self.phase, Phase::Draining { .. }) {
            self.socket = None;
        }
    }

    pub(super) fn is_connecting(&self) -> bool {
        self.socket.is_some() && self.phase == Phase::Connecting
    }

    pub(super) fn is_closed(&self) -> bool {
        self.socket.is_none()
    }

    /// Writes what waits. A broken connection is found by reading, which gets what the other end
    /// said before.
    fn flush(&mut self) {
        let Some(socket) = &mut self.socket else {
            return self.unsent.clear();
        };
        match write(&self.unsent, |bytes| socket.write(bytes)) {
            Ok(count) => drop(self.unsent.drain(..count)),
            Err(_) => self.unsent.clear(),
        }
    }

    /// Says the last bytes, then nothing more, and throws away what comes until the other end
    /// closes too.
    fn drain(&mut self) {
        self.flush();
        let Some(socket) = &mut self.socket else {
            return;
        };
        if let Phase::Draining { is_shut, .. } = &mut self.phase
            && !*is_shut
            && self.unsent.is_empty()
        {
            // It fails for a connection that is over, and then there is nothing to be done.
            let _ = socket.shutdown(Shutdown::Write);
            *is_shut = true;
        }
        let mut buffer = [0; 512];
        let mut reads = (0..super::READS_PER_POLL).map(|_| read(&mut buffer, |b| socket.read(b)));
        if reads.any(|read| read == Read::Over) {
            self.socket = None;
        }
    }
}

/// The other end, once the connection stands.
fn established(socket: &TcpStream) -> io::Result<Option<SocketAddr>> {
    if let Some(error) = socket.take_error()? {
        return Err(error);
    }
    match socket.peer_addr() {
        Ok(peer) => {
            // A Logout is not to wait for anything. It would be late, not wrong.
            let _ = socket.set_nodelay(true);
            Ok(Some(peer))
        }
        // Not yet.
        Err(_) => Ok(None),
    }
}

/// Writes `bytes` until the system takes no more; returns how many it took.
fn write(bytes: &[u8], mut send: impl FnMut(&[u8]) -> io::Result<usize>) -> io::Result<usize> {
    let mut sent = 0;
    while sent < bytes.len() {
        match send(&bytes[sent..]) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => sent += count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(sent)
}

fn read(buffer: &mut [u8], mut receive: impl FnMut(&mut [u8]) -> io::Result<usize>) -> Read {
    loop {
        return match receive(buffer) {
            Ok(0) => Read::Over,
            Ok(len) => Read::Bytes(len),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Read::Nothing,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => Read::Over,
        };
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    fn scripted(
        script: impl IntoIterator<Item = io::Result<usize>>,
    ) -> impl FnMut(&[u8]) -> io::Result<usize> {
        let mut script: VecDeque<_> = script.into_iter().collect();
        move |_| script.pop_front().expect("asked once more than expected")
    }

    #[test]
    fn writing_stops_where_the_system_does_and_not_at_a_signal() {
        let would_block = || Err(io::ErrorKind::WouldBlock.into());
        let interrupted = || Err(io::ErrorKind::Interrupted.into());
        assert_eq!(write(b"", scripted([])).ok(), Some(0));
        assert_eq!(write(b"abc", scripted([Ok(3)])).ok(), Some(3));
        let script = [Ok(1), interrupted(), Ok(1), would_block()];
        assert_eq!(write(b"abc", scripted(script)).ok(), Some(2));
        assert!(write(b"abc", scripted([Ok(0)])).is_err());
        let broken = Err(io::ErrorKind::BrokenPipe.into());
        assert!(write(b"abc", scripted([Ok(1), broken])).is_err());
    }

    #[test]
    fn reading_tells_nothing_yet_from_nothing_any_more() {
        let once = |result: io::Result<usize>| {
            let mut script = VecDeque::from([Err(io::ErrorKind::Interrupted.into()), result]);
            read(&mut [0; 4], |_| script.pop_front().expect("once more"))
        };
        assert_eq!(once(Ok(3)), Read::Bytes(3));
        assert_eq!(once(Ok(0)), Read::Over);
        assert_eq!(once(Err(io::ErrorKind::WouldBlock.into())), Read::Nothing);
        assert_eq!(once(Err(io::ErrorKind::ConnectionReset.into())), Read::Over);
    }
}
