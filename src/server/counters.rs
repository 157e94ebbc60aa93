//! What the shell counts for a service: all it took in, sent out, and refused.

/// The counters of one service's sockets. They only grow.
#[derive(Debug, Default)]
pub(super) struct Counters {
    /// Connections accepted, the refused ones included.
    pub(super) accepted: u64,
    /// Connections that vanished before they were accepted.
    pub(super) accept_vanished: u64,
    /// Times that accepting was paused because descriptors ran out.
    pub(super) accept_paused: u64,
    /// Connections closed because their address had enough that had not logged in.
    pub(super) pending_refused: u64,
    /// Connections, of whichever service, closed to make room for one of this.
    pub(super) pending_evicted: u64,
    /// Connections the poll could not take.
    pub(super) unwatched: u64,
    /// Connections dropped because they did not read what was sent to them.
    pub(super) slow_readers: u64,
    /// Connections dropped while they were being closed, because too many were.
    pub(super) closing_dropped: u64,
    /// Bytes read from connections.
    pub(super) stream_bytes_in: u64,
    /// Bytes for connections, taken by the system or queued.
    pub(super) stream_bytes_out: u64,
    /// Datagrams received.
    pub(super) datagrams_in: u64,
    /// Their bytes.
    pub(super) datagram_bytes_in: u64,
    /// Datagrams sent.
    pub(super) datagrams_out: u64,
    /// Their bytes.
    pub(super) datagram_bytes_out: u64,
    /// Datagrams dropped because the system had no room for them.
    pub(super) send_refused: u64,
    /// Datagrams the system would not send for another reason.
    pub(super) send_failed: u64,
    /// Failures to receive; each is a peer's affair.
    pub(super) receive_failed: u64,
    /// Warnings about peers that were logged.
    pub(super) warnings: u64,
    /// Those that were not, because too much was logged already.
    pub(super) warnings_suppressed: u64,
}

impl Counters {
    /// All of them by name, in a fixed order.
    pub(super) fn list(&self) -> [(&'static str, u64); 19] {
        [
            ("accepted", self.accepted),
            ("accept-vanished", self.accept_vanished),
            ("accept-paused", self.accept_paused),
            ("pending-refused", self.pending_refused),
            ("pending-evicted", self.pending_evicted),
            ("unwatched", self.unwatched),
            ("slow-readers", self.slow_readers),
            ("closing-dropped", self.closing_dropped),
            ("stream-bytes-in", self.stream_bytes_in),
            ("stream-bytes-out", self.stream_bytes_out),
            ("datagrams-in", self.datagrams_in),
            ("datagram-bytes-in", self.datagram_bytes_in),
            ("datagrams-out", self.datagrams_out),
            ("datagram-bytes-out", self.datagram_bytes_out),
            ("send-refused", self.send_refused),
            ("send-failed", self.send_failed),
            ("receive-failed", self.receive_failed),
            ("warnings", self.warnings),
            ("warnings-suppressed", self.warnings_suppressed),
        ]
    }
}
