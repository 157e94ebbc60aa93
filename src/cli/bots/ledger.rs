//! What should have arrived, and what did.
//!
//! A datagram is expected by a bot only if, when it was sent, both bots knew of each other (so
//! the server has both in one game), and both were still there a while later. So in a correct run
//! exactly nothing is lost, however the bots come and go.

use super::histogram::Histogram;

/// A datagram has at least this long to arrive, and what was sent so shortly before one of the
/// two left is not judged.
const GRACE_US: u64 = 1_000_000;

/// The sums of a run.
#[derive(Debug)]
pub struct Ledger {
    /// Data datagrams that bots sent.
    pub sent: u64,
    /// Data datagrams that bots received from bots of this run.
    pub received: u64,
    /// Those that were to be received, and have been judged.
    expected: u64,
    /// Those of them that were.
    heard: u64,
    /// From one bot's sending to another's receipt, in microseconds.
    pub delay_us: Histogram,
}

impl Ledger {
    /// An empty one.
    pub fn new() -> Self {
        Self {
            sent: 0,
            received: 0,
            expected: 0,
            heard: 0,
            delay_us: Histogram::new(),
        }
    }

    /// How many were lost, of those that were judged.
    pub fn lost(&self) -> u64 {
        self.expected - self.heard
    }
}

/// One bot as another one knows it, and what should come from it.
#[derive(Debug, Clone)]
pub struct Peer {
    /// Which bot.
    pub bot: usize,
    /// The first of its datagrams that is expected.
    first: Option<u32>,
    /// What was sent in this span of time and in the one before; older ones are judged.
    spans: [Span; 2],
}

/// What was sent in one span of the length of [`GRACE_US`].
#[derive(Debug, Clone, Copy, Default)]
struct Span {
    number: u64,
    expected: u64,
    heard: u64,
}

impl Peer {
    /// A bot that has just become known.
    pub fn new(bot: usize) -> Self {
        Self {
            bot,
            first: None,
            spans: [Span::default(); 2],
        }
    }

    /// It has sent a datagram at `sent_us`, which is to arrive.
    pub fn expect(&mut self, sequence: u32, sent_us: u64, ledger: &mut Ledger) {
        self.first.get_or_insert(sequence);
        let number = sent_us / GRACE_US;
        let span = &mut self.spans[(number % 2) as usize];
        if span.number != number {
            span.judge(ledger);
            span.number = number;
        }
        span.expected += 1;
    }

    /// The datagram has arrived.
    pub fn hear(&mut self, sequence: u32, sent_us: u64) {
        let number = sent_us / GRACE_US;
        let span = &mut self.spans[(number % 2) as usize];
        let is_expected = self.first.is_some_and(|first| first <= sequence);
        if is_expected && span.number == number {
            span.heard += 1;
        }
    }

    /// How many are still to arrive.
    pub fn outstanding(&self) -> u64 {
        self.spans
            .iter()
            .map(|span| span.expected - span.heard)
            .sum()
    }

    /// The run is over, and both are still there: all is judged.
    pub fn judge(&mut self, ledger: &mut Ledger) {
        self.spans.iter_mut().for_each(|span| span.judge(ledger));
    }
}

impl Span {
    fn judge(&mut self, ledger: &mut Ledger) {
        ledger.expected += self.expected;
        ledger.heard += self.heard;
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000;

    #[test]
    fn what_does_not_arrive_is_lost_once_it_is_judged() {
        let (mut ledger, mut peer) = (Ledger::new(), Peer::new(1));
        for sequence in 0..10 {
            peer.expect(sequence, SECOND + u64::from(sequence), &mut ledger);
            if sequence != 3 {
                peer.hear(sequence, SECOND + u64::from(sequence));
            }
        }
        assert_eq!((peer.outstanding(), ledger.lost()), (1, 0));
        peer.expect(10, 2 * SECOND, &mut ledger);
        assert_eq!((peer.outstanding(), ledger.lost()), (2, 0));
        peer.expect(11, 3 * SECOND, &mut ledger);
        assert_eq!((peer.outstanding(), ledger.lost()), (2, 1));
        peer.judge(&mut ledger);
        assert_eq!((peer.outstanding(), ledger.lost()), (0, 3));
    }

    #[test]
    fn what_was_sent_before_both_knew_is_not_expected_and_does_not_make_up_for_a_loss() {
        let (mut ledger, mut peer) = (Ledger::new(), Peer::new(1));
        peer.hear(6, SECOND);
        peer.expect(7, SECOND, &mut ledger);
        peer.hear(5, SECOND);
        assert_eq!(peer.outstanding(), 1);
        peer.judge(&mut ledger);
        assert_eq!(ledger.lost(), 1);
    }

    #[test]
    fn what_comes_after_it_was_judged_stays_lost() {
        let (mut ledger, mut peer) = (Ledger::new(), Peer::new(1));
        peer.expect(0, SECOND, &mut ledger);
        peer.expect(1, 3 * SECOND, &mut ledger);
        peer.hear(0, SECOND);
        peer.hear(1, 3 * SECOND);
        peer.judge(&mut ledger);
        assert_eq!(ledger.lost(), 1);
    }
}
