//! Listeners: bounded accepting, and what each failure of it means.

use std::io;
use std::net::SocketAddr;

use mio::net::{TcpListener, TcpStream};

use super::counters::Counters;
use super::readiness::Readiness;
use super::udp::folded;
use crate::engine::Time;

/// How long accepting pauses when descriptors have run out. Nothing tells when there are some
/// again.
const PAUSE_MS: u64 = 250;

/// One listener of a service.
pub(super) struct Listener {
    pub(super) socket: TcpListener,
    pub(super) readiness: Readiness,
    local: SocketAddr,
    paused_until: Option<Time>,
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
    pub(super) fn new(socket: TcpListener, local: SocketAddr) -> Self {
        Self {
            socket,
            readiness: Readiness::default(),
            local,
            paused_until: None,
        }
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

    /// Ends a pause that is over at `now`. Whoever came before it is announced no more.
    pub(super) fn resume(&mut self, now: Time) {
        if self.paused_until.is_some_and(|until| until <= now) {
            self.paused_until = None;
            self.readiness.mark();
        }
    }

    /// Accepts one connection.
    pub(super) fn accept(&mut self, now: Time, counters: &mut Counters) -> Accepted<TcpStream> {
        let result = self.socket.accept();
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
                log::debug!("{}: accepting pauses: {error}", self.local);
                self.paused_until = Some(now + PAUSE_MS);
                Accepted::Nobody
            }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::bind;

    fn listener() -> Listener {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let (socket, local) = bind::tcp(any).expect("a port");
        Listener::new(socket, local)
    }

    fn judge(listener: &mut Listener, counters: &mut Counters, error: io::Error) -> Accepted<()> {
        listener.judge(Err(error), Time::from_ms(1_000), counters)
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
}
