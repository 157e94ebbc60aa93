//! Connections that have not logged in: how many may wait, per address and in all.
//!
//! One address may not hold more than a few, and all together not more than the process can
//! bear; when it is full, the *oldest* makes room, so that a crowd of silent connections cannot
//! lock out whoever comes now and logs in at once.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

use super::limits::{Limit, Limits};
use super::network::network;
use crate::engine::Conn;

/// The connections that have not logged in.
#[derive(Debug)]
pub struct Pending {
    per_ip_max: u64,
    total_max: usize,
    limit_loopback: bool,
    next: u64,
    /// By order of arrival.
    waiting: BTreeMap<u64, Waiting>,
    per_ip: HashMap<IpAddr, u64>,
}

#[derive(Debug)]
struct Waiting {
    conn: Conn,
    /// What it is counted under; `None` if it is exempt.
    network: Option<IpAddr>,
}

/// A connection's place among those that wait. Never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place(u64);

/// What becomes of a new connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// It may log in.
    Admitted {
        /// To be handed back with [`Pending::leave`] when it has logged in or is closed.
        place: Place,
        /// The oldest connection, which must be closed for it and has left already.
        evicted: Option<Conn>,
    },
    /// Its address has enough of them: it is to be closed without a word.
    Refused,
}

impl Pending {
    /// Nobody waits yet. Loopback addresses are exempt from the limit per address, but not from
    /// the limit in all, unless `limit_loopback`.
    pub fn new(limits: &Limits, limit_loopback: bool) -> Self {
        Self {
            per_ip_max: limits.get(Limit::PendingPerIp),
            total_max: usize::try_from(limits.get(Limit::Pending)).unwrap_or(usize::MAX),
            limit_loopback,
            next: 0,
            waiting: BTreeMap::new(),
            per_ip: HashMap::new(),
        }
    }

    /// Takes in the connection `conn` from `ip`, unless that address has too many already.
    pub fn admit(&mut self, ip: IpAddr, conn: Conn) -> Admission {
        let exempt = ip.to_canonical().is_loopback() && !self.limit_loopback;
        let network = (!exempt).then(|| network(ip));
        if network.is_some_and(|network| self.count(network) >= self.per_ip_max) {
            return Admission::Refused;
        }
        let evicted = self.make_room();
        if let Some(network) = network {
            *self.per_ip.entry(network).or_default() += 1;
        }
        let place = Place(self.next);
        self.next += 1;
        self.waiting.insert(place.0, Waiting { conn, network });
        Admission::Admitted { place, evicted }
    }

    /// The connection at `place` has logged in or is closed. Does nothing if it has left.
    pub fn leave(&mut self, place: Place) {
        if let Some(waiting) = self.waiting.remove(&place.0) {
            self.uncount(waiting.network);
        }
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether nobody waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    fn count(&self, network: IpAddr) -> u64 {
        self.per_ip.get(&network).copied().unwrap_or(0)
    }

    fn make_room(&mut self) -> Option<Conn> {
        if self.waiting.len() < self.total_max {
            return None;
        }
        let (_, oldest) = self.waiting.pop_first()?;
        self.uncount(oldest.network);
        Some(oldest.conn)
    }

    fn uncount(&mut self, network: Option<IpAddr>) {
        let Some(network) = network else { return };
        if let Some(count) = self.per_ip.get_mut(&network) {
            *count -= 1;
            if *count == 0 {
                self.per_ip.remove(&network);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pending(per_ip: u64, total: u64, limit_loopback: bool) -> Pending {
        let mut limits = Limits::default();
        limits.set("pending-per-ip", per_ip).expect("in range");
        limits.set("pending", total).expect("in range");
        Pending::new(&limits, limit_loopback)
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    fn conn(slot: u32) -> Conn {
        Conn {
            slot,
            generation: 0,
        }
    }

    fn admitted(admission: Admission) -> (Place, Option<Conn>) {
        match admission {
            Admission::Admitted { place, evicted } => (place, evicted),
            Admission::Refused => panic!("refused"),
        }
    }

    #[test]
    fn an_address_holds_so_many_and_one_more_when_one_left() {
        let mut pending = pending(2, 100, false);
        let (first, _) = admitted(pending.admit(ip("192.0.2.1"), conn(0)));
        admitted(pending.admit(ip("192.0.2.1"), conn(1)));
        assert_eq!(
            pending.admit(ip("192.0.2.1"), conn(2)),
            Admission::Refused,
            "the third"
        );
        admitted(pending.admit(ip("192.0.2.2"), conn(3)));
        pending.leave(first);
        pending.leave(first);
        admitted(pending.admit(ip("192.0.2.1"), conn(4)));
        assert_eq!(pending.admit(ip("192.0.2.1"), conn(5)), Admission::Refused);
        assert_eq!(pending.len(), 3);
    }

    #[test]
    fn ipv6_counts_by_its_64_and_mapped_ipv4_as_ipv4() {
        let mut pending = pending(1, 100, false);
        admitted(pending.admit(ip("2001:db8::1"), conn(0)));
        assert_eq!(
            pending.admit(ip("2001:db8::2"), conn(1)),
            Admission::Refused
        );
        admitted(pending.admit(ip("2001:db8:0:1::1"), conn(2)));
        admitted(pending.admit(ip("192.0.2.1"), conn(3)));
        let mapped = pending.admit(ip("::ffff:192.0.2.1"), conn(4));
        assert_eq!(mapped, Admission::Refused);
    }

    #[test]
    fn the_oldest_makes_room_and_its_address_is_free_again() {
        let mut pending = pending(1, 2, false);
        let (oldest, _) = admitted(pending.admit(ip("192.0.2.1"), conn(0)));
        admitted(pending.admit(ip("192.0.2.2"), conn(1)));
        let (_, evicted) = admitted(pending.admit(ip("192.0.2.3"), conn(2)));
        assert_eq!(evicted, Some(conn(0)));
        pending.leave(oldest);
        let (_, evicted) = admitted(pending.admit(ip("192.0.2.1"), conn(3)));
        assert_eq!(evicted, Some(conn(1)));
        assert_eq!(pending.len(), 2);
    }

    #[test]
    fn who_is_refused_evicts_nobody() {
        let mut pending = pending(1, 1, false);
        admitted(pending.admit(ip("192.0.2.1"), conn(0)));
        assert_eq!(pending.admit(ip("192.0.2.1"), conn(1)), Admission::Refused);
        assert_eq!(pending.len(), 1);
    }

    #[test]
    fn loopback_is_exempt_per_address_but_not_in_all() {
        for address in ["127.0.0.1", "::1", "::ffff:127.0.0.1"] {
            let mut pending = pending(1, 2, false);
            admitted(pending.admit(ip(address), conn(0)));
            admitted(pending.admit(ip(address), conn(1)));
            let (_, evicted) = admitted(pending.admit(ip(address), conn(2)));
            assert_eq!(evicted, Some(conn(0)));
        }
        let mut pending = pending(1, 2, true);
        admitted(pending.admit(ip("127.0.0.1"), conn(0)));
        assert_eq!(pending.admit(ip("127.0.0.1"), conn(1)), Admission::Refused);
    }

    #[test]
    fn nothing_is_kept_of_who_left() {
        let mut pending = pending(5, 50, false);
        for round in 0..200_u32 {
            let address = IpAddr::from([192, 0, 2, (round % 7) as u8]);
            let (place, _) = admitted(pending.admit(address, conn(round)));
            pending.leave(place);
        }
        assert!(pending.is_empty());
        assert!(pending.per_ip.is_empty());
    }
}
