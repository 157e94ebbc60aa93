//! What is known of a socket that accepts or receives. The poll tells of a change once, so whoever
//! stops early must remember that there is more.

/// Whether there may be something to take.
#[derive(Debug, Default)]
pub(super) struct Readiness {
    ready: bool,
    owed: bool,
}

impl Readiness {
    /// Whether there may be something to take.
    pub(super) fn is_ready(&self) -> bool {
        self.ready
    }

    /// Whether the socket was owed a complete reading and has not run dry since.
    pub(super) fn is_owed(&self) -> bool {
        self.owed
    }

    /// The poll says that there is something.
    pub(super) fn mark(&mut self) {
        self.ready = true;
    }

    /// There may be something, whatever the poll said; it has to be read until it runs dry.
    pub(super) fn owe(&mut self) {
        self.ready = true;
        self.owed = true;
    }

    /// There is nothing more; the poll will tell.
    pub(super) fn run_dry(&mut self) {
        self.ready = false;
        self.owed = false;
    }
}
