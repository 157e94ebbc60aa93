//! Streams: how they are accepted, and what a connection can do.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::time::Duration;

use mio::net::{TcpListener, TcpStream};
use mio::{Interest, Registry, Token};
use socket2::{Protocol, SockRef, TcpKeepalive, Type};

use super::bind;
use super::counters::Counters;
use super::readiness::Readiness;
use super::udp::folded;
use crate::engine::Time;

/// Connections the system may hold until they are accepted.
const BACKLOG: i32 = 1024;

/// A connection has the options of its listener, so that they are set once. Elsewhere nobody
/// promises it, and they are set for each.
const INHERITED: bool = cfg!(any(target_os = "linux", target_os = "android"));

/// How long accepting pauses when descriptors have run out. Nothing tells when there are some
/// again.
const PAUSE_MS: u64 = 250;

/// How long no pause is logged after one was.
const QUIET_MS: u64 = 60_000;

/// One listener of a service.
pub(super) struct Listener {
    socket: TcpListener,
    pub(super) readiness: Readiness,
    local: SocketAddr,
    paused_until: Option<Time>,
    /// Pauses before this time are not logged.
    quiet_until: Time,
}

/// What one attempt to accept came to.
#[derive(Debug)]
pub(super) enum Accepted<S> {
    /// A connection, and its other end.
    One(S, SocketAddr),
    /// Nobody, but others may be waiting.
    Vanished,
    /// Nobody is waiting, or nobody can be let in now.
    Nobody,
}

impl Listener {
    /// Listens at `address`.
    pub(super) fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = bind::socket(address, Type::STREAM, Protocol::TCP)?;
        // The connections of a server that ended a moment ago must not keep the port from its
        // successor. (Windows means something else by this option.)
        #[cfg(unix)]
        socket.set_reuse_address(true)?;
        if INHERITED {
            set_options(SockRef::from(&socket));
        }
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        let socket = TcpListener::from_std(socket.into());
        Ok(Self {
            local: socket.local_addr()?,
            socket,
            readiness: Readiness::default(),
            paused_until: None,
            quiet_until: Time::ZERO,
        })
    }

    /// Has the poll tell of who waits.
    pub(super) fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        registry.register(&mut self.socket, token, Interest::READABLE)
    }

    /// Where it listens.
    pub(super) fn local(&self) -> SocketAddr {
        self.local
    }

    /// Whether there may be somebody to accept now.
    pub(super) fn is_ready(&self) -> bool {
        self.readiness.is_ready() && self.paused_until.is_none()
    }

    /// Whether others have to wait until nobody does here; not for a pause.
    pub(super) fn is_owed(&self) -> bool {
        self.readiness.is_owed() && self.paused_until.is_none()
    }

    /// When a pause ends.
    pub(super) fn deadline(&self) -> Option<Time> {
        self.paused_until
    }

    /// Ends a pause that is over at `now`. Who waited before it still waits, so the listener is as
    /// ready as it was.
    pub(super) fn resume(&mut self, now: Time) {
        if self.paused_until.is_some_and(|until| until <= now) {
            self.paused_until = None;
        }
    }

    /// Accepts one connection.
    pub(super) fn accept(&mut self, now: Time, counters: &mut Counters) -> Accepted<Connection> {
        let accepted = self.socket.accept();
        let result = accepted.map(|(socket, peer)| (Connection { socket }, peer));
        self.judge(result, now, counters)
    }

    fn judge<S>(
        &mut self,
        result: io::Result<(S, SocketAddr)>,
        now: Time,
        counters: &mut Counters,
    ) -> Accepted<S> {
        let error = match result {
            Ok((socket, peer)) => {
                counters.accepted += 1;
                return Accepted::One(socket, folded(peer));
            }
            Err(error) => error,
        };
        match Refusal::of(&error) {
            Refusal::Nobody => {
                self.readiness.run_dry();
                Accepted::Nobody
            }
            Refusal::Vanished => {
                counters.accept_vanished += 1;
                Accepted::Vanished
            }
            Refusal::Interrupted => Accepted::Vanished,
            Refusal::Exhausted => {
                counters.accept_paused += 1;
                self.pause(now, &error);
                Accepted::Nobody
            }
        }
    }

    fn pause(&mut self, now: Time, error: &io::Error) {
        self.paused_until = Some(now + PAUSE_MS);
        if self.quiet_until <= now {
            self.quiet_until = now + QUIET_MS;
            log::warn!("{}: accepting pauses: {error}", self.local);
        }
    }
}

/// Why accepting failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refusal {
    /// Nobody is waiting.
    Nobody,
    /// Who was waiting is gone, or its network is.
    Vanished,
    /// A signal came.
    Interrupted,
    /// There are no descriptors or no memory; or it is unknown, and then a pause does the least
    /// harm: no busy loop, and no end of accepting.
    Exhausted,
}

impl Refusal {
    fn of(error: &io::Error) -> Self {
        use io::ErrorKind as Kind;
        match error.kind() {
            Kind::WouldBlock => Self::Nobody,
            Kind::Interrupted => Self::Interrupted,
            Kind::ConnectionAborted
            | Kind::ConnectionReset
            | Kind::PermissionDenied
            | Kind::TimedOut
            | Kind::HostUnreachable
            | Kind::NetworkUnreachable
            | Kind::NetworkDown => Self::Vanished,
            _ => Self::Exhausted,
        }
    }
}

/// The socket of one connection.
pub(super) struct Connection {
    socket: TcpStream,
}

impl Connection {
    /// Has the poll tell of what comes.
    pub(super) fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        if !INHERITED {
            set_options(SockRef::from(&self.socket));
        }
        registry.register(&mut self.socket, token, Interest::READABLE)
    }

    /// Has the poll tell of room for more bytes, too, or no longer.
    pub(super) fn watch_room(
        &mut self,
        registry: &Registry,
        token: Token,
        on: bool,
    ) -> io::Result<()> {
        let interest = match on {
            true => Interest::READABLE | Interest::WRITABLE,
            false => Interest::READABLE,
        };
        registry.reregister(&mut self.socket, token, interest)
    }

    /// Reads what has come; `None` if there is nothing now.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        whatever_comes(|| self.socket.read(buffer))
    }

    /// Writes as much of `bytes` as there is room for.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.write(bytes)
    }

    /// Says to the other end that nothing more will come.
    pub(super) fn shut_down(&self) -> io::Result<()> {
        self.socket.shutdown(Shutdown::Write)
    }
}

/// What a connection needs. Without it messages are late, or a session that has lost its other end
/// lasts longer, and nothing else.
fn set_options(socket: SockRef<'_>) {
    // Messages are small and wait for nobody.
    let _ = socket.set_tcp_nodelay(true);
    // Nothing else finds out that the other end of a silent connection is gone.
    let keepalive = TcpKeepalive::new()
        .with_time(Duration::from_secs(30))
        .with_interval(Duration::from_secs(10))
        .with_retries(3);
    let _ = socket.set_tcp_keepalive(&keepalive);
}

/// Calls `read` until it is not interrupted; `None` if there is nothing now.
fn whatever_comes(mut read: impl FnMut() -> io::Result<usize>) -> io::Result<Option<usize>> {
    loop {
        match read() {
            Ok(count) => return Ok(Some(count)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listener() -> Listener {
        Listener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).expect("a port")
    }

    fn judge(listener: &mut Listener, counters: &mut Counters, error: io::Error) -> Accepted<()> {
        listener.judge(Err(error), Time::from_ms(1_000), counters)
    }

    #[test]
    fn who_is_accepted_has_the_options_of_a_connection() {
        let mut listener = listener();
        let poll = mio::Poll::new().expect("a poll");
        let _peer = std::net::TcpStream::connect(listener.local()).expect("a connection");
        let accepted = listener.accept(Time::ZERO, &mut Counters::default());
        let Accepted::One(mut connection, _) = accepted else {
            panic!("nobody was there");
        };
        connection
            .register(poll.registry(), Token(0))
            .expect("registered");
        let socket = SockRef::from(&connection.socket);
        assert!(socket.tcp_nodelay().expect("an option"));
        assert!(socket.keepalive().expect("an option"));
        assert_eq!(
            socket.tcp_keepalive_time().expect("an option"),
            Duration::from_secs(30)
        );
    }

    #[test]
    fn each_failure_means_one_thing() {
        use io::ErrorKind as Kind;
        for (kind, refusal) in [
            (Kind::WouldBlock, Refusal::Nobody),
            (Kind::ConnectionAborted, Refusal::Vanished),
            (Kind::HostUnreachable, Refusal::Vanished),
            (Kind::PermissionDenied, Refusal::Vanished),
            (Kind::Interrupted, Refusal::Interrupted),
            (Kind::OutOfMemory, Refusal::Exhausted),
            (Kind::Other, Refusal::Exhausted),
        ] {
            assert_eq!(Refusal::of(&kind.into()), refusal, "{kind}");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_systems_own_numbers_mean_the_same() {
        let (emfile, enfile, enobufs, enomem) = (24, 23, 105, 12);
        for number in [emfile, enfile, enobufs, enomem] {
            let error = io::Error::from_raw_os_error(number);
            assert_eq!(Refusal::of(&error), Refusal::Exhausted, "{error}");
        }
        let (eagain, econnaborted, eintr) = (11, 103, 4);
        for (number, refusal) in [
            (eagain, Refusal::Nobody),
            (econnaborted, Refusal::Vanished),
            (eintr, Refusal::Interrupted),
        ] {
            let error = io::Error::from_raw_os_error(number);
            assert_eq!(Refusal::of(&error), refusal, "{error}");
        }
    }

    #[test]
    fn accepting_pauses_without_descriptors_and_goes_on_by_itself() {
        let (mut listener, mut counters) = (listener(), Counters::default());
        listener.readiness.mark();
        judge(
            &mut listener,
            &mut counters,
            io::ErrorKind::OutOfMemory.into(),
        );
        assert!(!listener.is_ready(), "or the loop would be busy");
        assert_eq!(listener.deadline(), Some(Time::from_ms(1_250)));
        listener.resume(Time::from_ms(1_249));
        assert!(!listener.is_ready());
        listener.resume(Time::from_ms(1_250));
        assert!(listener.is_ready());
        assert_eq!(listener.deadline(), None);
        assert_eq!(counters.accept_paused, 1);
    }

    #[test]
    fn who_vanished_does_not_end_accepting_and_nobody_does() {
        let (mut listener, mut counters) = (listener(), Counters::default());
        listener.readiness.mark();
        let gone = io::ErrorKind::ConnectionAborted.into();
        let accepted = judge(&mut listener, &mut counters, gone);
        assert!(matches!(accepted, Accepted::Vanished));
        assert!(listener.is_ready());
        let none = io::ErrorKind::WouldBlock.into();
        let accepted = judge(&mut listener, &mut counters, none);
        assert!(matches!(accepted, Accepted::Nobody));
        assert!(!listener.is_ready());
        assert_eq!((counters.accept_vanished, counters.accepted), (1, 0));
    }

    #[test]
    fn reading_tells_nothing_now_from_the_end_and_from_failure() {
        let kinds = |kinds: &[io::ErrorKind]| {
            let mut kinds = kinds.iter();
            whatever_comes(move || match kinds.next() {
                Some(kind) => Err((*kind).into()),
                None => Ok(0),
            })
        };
        use io::ErrorKind as Kind;
        let end = kinds(&[Kind::Interrupted, Kind::Interrupted]);
        assert!(matches!(end, Ok(Some(0))));
        assert!(matches!(kinds(&[Kind::WouldBlock]), Ok(None)));
        assert!(kinds(&[Kind::ConnectionReset]).is_err());
    }

    #[test]
    fn a_port_that_is_served_cannot_be_had_again() {
        let taken = listener();
        let refused = Listener::bind(taken.local()).err().expect("taken");
        assert_eq!(refused.kind(), io::ErrorKind::AddrInUse);
    }
}
