//! How many sessions one address may have at a service, and how often it may try to enter.
//!
//! Only addresses that have proven themselves come here, by a cookie or a TCP connection. One
//! table serves the whole process and is bounded; what it counts, it counts for each service
//! alone, each through an [`Entrance`] of its own. Whoever passes gets a [`Visit`], which counts
//! until it is dropped: so the count cannot outlive the session, whatever ended it.
//!
//! # Ghosts
//! A newcomer in whose favour a ghost will end must not be refused for the ghost's sake, and the
//! ghost must not end before the newcomer has passed everything. So: if
//! [`is_at_session_limit`](Entrance::is_at_session_limit), look for a ghost whose visit
//! [`is_of`](Visit::is_of) the newcomer's address; if there is one, let the newcomer
//! [`attempt`](Entrance::attempt), and when the game has said yes, end the ghost and
//! [`settle`](Entrance::settle) it. Everybody else simply [`enter`](Entrance::enter)s.

use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::limits::{Limit, Limits};
use super::network::network;
use crate::engine::Time;
use crate::engine::bucket::Rate;
use table::{Address, Allowance, Table};

mod table;
#[cfg(test)]
mod tests;

/// A whole /48 may have so many times what one of its addresses may.
const SITE_FACTOR: u64 = 4;

/// Why an address is refused; to the peer each is `TooMany`.
///
/// In the order of the checks. No refusal costs an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Refused {
    /// It, or its /48, has as many sessions as it may have.
    Sessions,
    /// It, or its /48, has no attempt left.
    Attempts,
    /// It is new, and the table is full of addresses that have a session or tried just now.
    TableFull,
}

/// The table of tracked addresses, one for all services of a process; a clone is the same table.
#[derive(Clone)]
pub struct Addresses {
    table: Arc<Mutex<Table>>,
}

impl Addresses {
    /// A table that tracks nobody yet, and at most `tracked-ips` addresses. An address is tracked
    /// once for each service it comes to, and forgotten when it has no visit there and all of its
    /// attempts again. The /48s of IPv6 addresses are tracked beside them, under the same bound.
    pub fn new(limits: &Limits) -> Self {
        let max = usize::try_from(limits.get(Limit::TrackedIps)).unwrap_or(usize::MAX);
        Self {
            table: Arc::new(Mutex::new(Table::new(max))),
        }
    }

    /// The entrance of one more service, with counts of its own. Loopback addresses may do as they
    /// please there unless `limit_loopback`.
    pub fn entrance(&self, limits: &Limits, limit_loopback: bool) -> Entrance {
        let address = Allowance {
            sessions_max: limits.get(Limit::SessionsPerIp),
            attempts: Rate::one_per_ms(limits.get(Limit::AttemptMs), limits.get(Limit::Attempts)),
        };
        Entrance {
            service: self.lock().next_service(),
            allowances: [address, address.times(SITE_FACTOR)],
            limit_loopback,
            addresses: self.clone(),
        }
    }

    /// How many addresses are tracked, those included that may go when room is needed.
    pub fn tracked(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        // No call leaves the table half changed, so what a panic elsewhere poisoned is whole.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Addresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tracked = self.tracked();
        f.debug_struct("Addresses")
            .field("tracked", &tracked)
            .finish()
    }
}

/// Where the peers of one service come in, each under the limits of its address.
#[derive(Debug)]
pub struct Entrance {
    service: u32,
    /// Of an address, and of a /48.
    allowances: [Allowance; 2],
    limit_loopback: bool,
    addresses: Addresses,
}

impl Entrance {
    /// A session for a peer at `ip` that has passed everything else and is about to reach the
    /// game: takes an attempt, and counts as a session of its address from now on.
    ///
    /// # Errors
    /// [`Refused`], in the order of its variants. Nothing is taken or counted then.
    pub fn enter(&self, now: Time, ip: IpAddr) -> Result<Visit, Refused> {
        self.admit(now, ip, true)
    }

    /// As [`enter`](Self::enter), for a newcomer in whose favour a ghost of its address will end:
    /// takes an attempt, but is no session before it is [`settle`](Self::settle)d.
    ///
    /// # Errors
    /// [`Refused::Attempts`] or [`Refused::TableFull`]. Nothing is taken then.
    pub fn attempt(&self, now: Time, ip: IpAddr) -> Result<Visit, Refused> {
        self.admit(now, ip, false)
    }

    /// Whether the limit of sessions, whatever the others say, would refuse one more at `ip`.
    pub fn is_at_session_limit(&self, ip: IpAddr) -> bool {
        let mut table = self.addresses.lock();
        !self.is_exempt(ip) && table.is_at_session_limit(self.address(ip), &self.allowances)
    }

    /// `visit` is a session from now on, if it was not yet. After a ghost of the same address has
    /// ended in its favour, and nobody else came since, there is room for it.
    ///
    /// # Errors
    /// [`Refused::Sessions`] if its address, or its /48, has as many sessions as it may have.
    pub fn settle(&self, visit: &mut Visit) -> Result<(), Refused> {
        if let Some(addresses) = visit.counted_in.as_ref().filter(|_| !visit.is_session) {
            let mut table = addresses.lock();
            table.settle(visit.address, &self.allowances)?;
        }
        visit.is_session = true;
        Ok(())
    }

    fn admit(&self, now: Time, ip: IpAddr, is_session: bool) -> Result<Visit, Refused> {
        let address = self.address(ip);
        let is_counted = !self.is_exempt(ip);
        if is_counted {
            let mut table = self.addresses.lock();
            table.admit(now, address, &self.allowances, is_session)?;
        }
        Ok(Visit {
            address,
            is_session,
            counted_in: is_counted.then(|| self.addresses.clone()),
        })
    }

    fn address(&self, ip: IpAddr) -> Address {
        let (service, network) = (self.service, network(ip));
        Address { service, network }
    }

    fn is_exempt(&self, ip: IpAddr) -> bool {
        ip.to_canonical().is_loopback() && !self.limit_loopback
    }
}

/// A peer's stay at a service, from its attempt on. Its address keeps its entry while this lives.
#[must_use = "what is dropped at once counts for nothing"]
pub struct Visit {
    address: Address,
    is_session: bool,
    /// `None` if its address is exempt.
    counted_in: Option<Addresses>,
}

impl Visit {
    /// Whether it counts for the address that `ip` is limited as: so a ghost is one of its own.
    pub fn is_of(&self, ip: IpAddr) -> bool {
        self.address.network == network(ip)
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        if let Some(addresses) = &self.counted_in {
            addresses.lock().leave(self.address, self.is_session);
        }
    }
}

impl fmt::Debug for Visit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut visit = f.debug_struct("Visit");
        visit.field("network", &self.address.network);
        visit.field("is_session", &self.is_session).finish()
    }
}
