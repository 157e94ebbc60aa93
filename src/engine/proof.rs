//! Whether an endpoint has proven that it is where it says, and what may be sent to it until then.

use super::{Credit, Time};

/// The proof of one endpoint.
///
/// While there is none, no more bytes are sent to the endpoint than came from it, counted from its
/// binding or from the moment its proof ran out.
#[derive(Debug, Clone)]
pub struct Proof {
    /// Proven for as long as the session lives: the address is that of its stream connection.
    by_address: bool,
    /// Proven until then by an answered question; `ZERO` once that has been noticed to be over.
    until: Time,
    /// Bytes that came and were not answered yet.
    unanswered: u32,
}

impl Proof {
    /// An endpoint that was just bound; `by_address` if its address is that of the session's
    /// stream connection.
    pub fn new(by_address: bool) -> Self {
        Self {
            by_address,
            until: Time::ZERO,
            unanswered: 0,
        }
    }

    /// Whether the endpoint is proven now.
    pub fn holds(&self, now: Time) -> bool {
        self.by_address || now < self.until
    }

    /// An answer came that only the endpoint could give: proven until then at least.
    pub fn renew(&mut self, until: Time) {
        self.until = self.until.max(until);
    }

    /// `bytes` came from the endpoint.
    pub fn heard(&mut self, now: Time, bytes: usize) {
        self.lapse(now);
        if !self.holds(now) {
            let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
            self.unanswered = self.unanswered.saturating_add(bytes);
        }
    }

    /// What pays for a datagram to the endpoint.
    pub fn credit(&mut self, now: Time) -> Credit<'_> {
        self.lapse(now);
        if self.holds(now) {
            Credit::Proven
        } else {
            Credit::Echo(&mut self.unanswered)
        }
    }

    /// How many bytes may be sent to the endpoint.
    pub fn room(&mut self, now: Time) -> usize {
        match self.credit(now) {
            Credit::Proven => usize::MAX,
            Credit::Echo(left) => *left as usize,
        }
    }

    /// Starts counting anew once a proof has run out.
    fn lapse(&mut self, now: Time) {
        if self.until != Time::ZERO && now >= self.until {
            self.until = Time::ZERO;
            self.unanswered = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unproven_endpoint_gets_what_it_sent_and_counts_anew_when_its_proof_runs_out() {
        let at = Time::from_ms;
        let mut proof = Proof::new(false);
        assert_eq!((proof.holds(at(0)), proof.room(at(0))), (false, 0));
        proof.heard(at(1), 18);
        assert_eq!(proof.room(at(1)), 18);
        proof.renew(at(100));
        assert_eq!(proof.room(at(99)), usize::MAX);
        proof.heard(at(99), 1000);
        assert_eq!((proof.holds(at(100)), proof.room(at(100))), (false, 0));
        proof.heard(at(101), 20);
        assert_eq!(proof.room(at(101)), 20);
    }

    #[test]
    fn the_address_of_the_stream_connection_is_proof_enough() {
        let mut proof = Proof::new(true);
        assert!(matches!(
            proof.credit(Time::from_ms(1 << 40)),
            Credit::Proven
        ));
    }
}
