//! What a conversation waits for besides its sockets: what is typed, and signals.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError};

use mio::{Poll, Token, Waker};

use super::lines::{self, Line};
use crate::cli::signals;

const WAKER: Token = Token(2);

/// A poll that typed lines and signals wake.
pub struct Input {
    pub poll: Poll,
    lines: Receiver<Line>,
    is_stopped: Arc<AtomicBool>,
}

impl Input {
    /// From now on standard input is read, and a signal stops the conversation.
    pub fn new() -> io::Result<Self> {
        let poll = Poll::new()?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKER)?);
        let is_stopped = Arc::new(AtomicBool::new(false));
        let (flag, alarm) = (Arc::clone(&is_stopped), Arc::clone(&waker));
        signals::stop_with(move || {
            flag.store(true, Ordering::Relaxed);
            // It fails only for a poll that is gone, and then there is nobody to wake.
            let _ = alarm.wake();
        })?;
        let lines = lines::read(move || {
            let _ = waker.wake();
        })?;
        Ok(Self {
            poll,
            lines,
            is_stopped,
        })
    }

    /// The next line, if there is one; [`TryRecvError::Disconnected`] after the last.
    pub fn line(&self) -> Result<Line, TryRecvError> {
        self.lines.try_recv()
    }

    /// Whether a signal came.
    pub fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }
}
