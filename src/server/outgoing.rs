//! Bytes that a connection could not take yet. The system call is a closure, so that each refusal
//! of the system is a test.

use std::io;

/// How much may wait for a connection; whoever reads so slowly is dropped.
pub(super) const QUEUE_MAX: usize = 64 * 1024;

/// Bytes waiting for a connection. Owns memory only while some wait.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    queue: Vec<u8>,
    sent: usize,
}

/// How far writing came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Written {
    /// Everything is written.
    All,
    /// Some bytes wait until the connection can take more.
    Waiting,
    /// More would wait than may: none of the new bytes is kept.
    Full,
    /// The connection is broken.
    Failed,
}

impl Outgoing {
    /// Writes `bytes` behind what waits.
    pub(super) fn write(
        &mut self,
        bytes: &[u8],
        send: impl FnMut(&[u8]) -> io::Result<usize>,
    ) -> Written {
        let mut rest = bytes;
        if self.is_empty() {
            match send_all(bytes, send) {
                Ok(count) if count == bytes.len() => return Written::All,
                Ok(count) => rest = &bytes[count..],
                Err(_) => return Written::Failed,
            }
        }
        if self.waiting() + rest.len() > QUEUE_MAX {
            return Written::Full;
        }
        self.queue.drain(..self.sent);
        self.sent = 0;
        self.queue.extend_from_slice(rest);
        Written::Waiting
    }

    /// Writes what waits, as far as the connection takes it.
    pub(super) fn flush(&mut self, send: impl FnMut(&[u8]) -> io::Result<usize>) -> Written {
        match send_all(&self.queue[self.sent..], send) {
            Err(_) => Written::Failed,
            Ok(count) if self.sent + count < self.queue.len() => {
                self.sent += count;
                Written::Waiting
            }
            Ok(_) => {
                *self = Self::default();
                Written::All
            }
        }
    }

    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting() == 0
    }

    /// How many bytes wait.
    pub(super) fn waiting(&self) -> usize {
        self.queue.len() - self.sent
    }
}

/// Sends `bytes` until the system takes no more; returns how many it took.
fn send_all(bytes: &[u8], mut send: impl FnMut(&[u8]) -> io::Result<usize>) -> io::Result<usize> {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A system that takes so many bytes, at most 3 at once, and then no more.
    fn takes<'a>(
        room: &'a mut usize,
        taken: &'a mut Vec<u8>,
    ) -> impl FnMut(&[u8]) -> io::Result<usize> + 'a {
        |bytes| {
            let count = bytes.len().min(3).min(*room);
            if count == 0 {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            *room -= count;
            taken.extend_from_slice(&bytes[..count]);
            Ok(count)
        }
    }

    fn fails(kind: io::ErrorKind) -> impl FnMut(&[u8]) -> io::Result<usize> {
        move |_| Err(kind.into())
    }

    #[test]
    fn what_the_system_takes_at_once_needs_no_memory() {
        let mut outgoing = Outgoing::default();
        let (mut room, mut taken) = (100, Vec::new());
        let written = outgoing.write(b"0123456789", takes(&mut room, &mut taken));
        assert_eq!(written, Written::All);
        assert_eq!(taken, b"0123456789");
        assert_eq!(outgoing.queue.capacity(), 0);
    }

    #[test]
    fn bytes_keep_their_order_through_every_refusal() {
        let mut outgoing = Outgoing::default();
        let mut taken = Vec::new();
        let written = outgoing.write(b"01234", takes(&mut 2, &mut taken));
        assert_eq!(written, Written::Waiting);
        let written = outgoing.write(b"56", fails(io::ErrorKind::NotConnected));
        assert_eq!(written, Written::Waiting, "behind what waits, unasked");
        let written = outgoing.flush(takes(&mut 2, &mut taken));
        assert_eq!(written, Written::Waiting);
        outgoing.write(b"789", takes(&mut 100, &mut Vec::new()));
        assert!(!outgoing.is_empty());
        let written = outgoing.flush(takes(&mut 100, &mut taken));
        assert_eq!(written, Written::All);
        assert_eq!(taken, b"0123456789");
        assert!(outgoing.is_empty());
        assert_eq!(outgoing.queue.capacity(), 0, "the memory is given back");
    }

    #[test]
    fn so_much_may_wait_and_no_byte_more() {
        let mut outgoing = Outgoing::default();
        let refuse = || fails(io::ErrorKind::WouldBlock);
        let written = outgoing.write(&[0; QUEUE_MAX], refuse());
        assert_eq!(written, Written::Waiting);
        assert_eq!(outgoing.write(&[0], refuse()), Written::Full);
        let mut taken = Vec::new();
        outgoing.flush(takes(&mut 1, &mut taken));
        assert_eq!(outgoing.write(&[0], refuse()), Written::Waiting);
        assert!(outgoing.queue.len() <= QUEUE_MAX);
    }

    #[test]
    fn an_interruption_is_no_refusal() {
        let mut outgoing = Outgoing::default();
        let mut calls = 0;
        let written = outgoing.write(b"abc", |bytes| {
            calls += 1;
            match calls {
                1 => Err(io::ErrorKind::Interrupted.into()),
                _ => Ok(bytes.len()),
            }
        });
        assert_eq!((written, calls), (Written::All, 2));
    }

    #[test]
    fn a_broken_connection_is_told_at_once_or_later() {
        let mut outgoing = Outgoing::default();
        let broken = || fails(io::ErrorKind::ConnectionReset);
        assert_eq!(outgoing.write(b"abc", broken()), Written::Failed);
        let zero = outgoing.write(b"abc", |_| Ok(0));
        assert_eq!(zero, Written::Failed, "or it would be tried for ever");
        outgoing.write(b"abc", fails(io::ErrorKind::WouldBlock));
        assert_eq!(outgoing.flush(broken()), Written::Failed);
    }
}
