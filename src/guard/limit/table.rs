//! The bounded table behind the entrances.

use std::collections::{BTreeSet, HashMap};
use std::net::{IpAddr, Ipv6Addr};

use super::Refused;
use crate::engine::Time;
use crate::engine::bucket::{Bucket, Rate};

/// An address, or a whole /48, as one service counts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Address {
    pub(super) service: u32,
    pub(super) network: IpAddr,
}

impl Address {
    /// The /48 it is a part of, if it is an IPv6 address.
    fn site(self) -> Option<Self> {
        let IpAddr::V6(ip) = self.network else {
            return None;
        };
        let prefix = ip.to_bits() >> 80 << 80;
        let network = IpAddr::V6(Ipv6Addr::from_bits(prefix));
        Some(Self { network, ..self })
    }
}

/// What an address, or a /48, may do.
#[derive(Debug, Clone, Copy)]
pub(super) struct Allowance {
    pub(super) sessions_max: u64,
    pub(super) attempts: Rate,
}

impl Allowance {
    pub(super) fn times(self, factor: u64) -> Self {
        Self {
            sessions_max: self.sessions_max.saturating_mul(factor),
            attempts: self.attempts.times(factor),
        }
    }
}

/// Addresses and, beside them, their /48s. Both kinds come and go by the same rules; they are kept
/// apart so that a /48 takes no address's place.
#[derive(Debug)]
pub(super) struct Table {
    services: u32,
    addresses: Tracked,
    sites: Tracked,
}

impl Table {
    /// At most `max` addresses, and as many /48s.
    pub(super) fn new(max: usize) -> Self {
        Self {
            services: 0,
            addresses: Tracked::new(max),
            sites: Tracked::new(max),
        }
    }

    /// A number for one more service.
    pub(super) fn next_service(&mut self) -> u32 {
        self.services += 1;
        self.services
    }

    /// How many addresses are tracked.
    pub(super) fn len(&self) -> usize {
        self.addresses.entries.len()
    }

    /// One more visit of `address`, as a session or not yet, which takes an attempt.
    pub(super) fn admit(
        &mut self,
        now: Time,
        address: Address,
        allowances: &[Allowance; 2],
        is_session: bool,
    ) -> Result<(), Refused> {
        let parts = self.parts(address, allowances);
        let refusals = parts.filter_map(|(tracked, address, allowance)| {
            tracked.refusal(now, address, allowance, is_session)
        });
        if let Some(first) = refusals.min() {
            return Err(first);
        }
        for (tracked, address, allowance) in self.parts(address, allowances) {
            tracked.admit(now, address, allowance, is_session);
        }
        Ok(())
    }

    /// Whether one session more would be too many.
    pub(super) fn is_at_session_limit(
        &mut self,
        address: Address,
        allowances: &[Allowance; 2],
    ) -> bool {
        self.parts(address, allowances)
            .any(|(tracked, address, allowance)| tracked.is_at_limit(address, allowance))
    }

    /// A visit becomes a session.
    pub(super) fn settle(
        &mut self,
        address: Address,
        allowances: &[Allowance; 2],
    ) -> Result<(), Refused> {
        if self.is_at_session_limit(address, allowances) {
            return Err(Refused::Sessions);
        }
        for (tracked, address, _) in self.parts(address, allowances) {
            tracked.settle(address);
        }
        Ok(())
    }

    /// A visit is over.
    pub(super) fn leave(&mut self, address: Address, is_session: bool) {
        self.addresses.leave(address, is_session);
        if let Some(site) = address.site() {
            self.sites.leave(site, is_session);
        }
    }

    /// What an address is a part of, with what each may do: itself and its /48.
    fn parts<'a>(
        &'a mut self,
        address: Address,
        [own, whole]: &'a [Allowance; 2],
    ) -> impl Iterator<Item = (&'a mut Tracked, Address, &'a Allowance)> {
        let site = address.site().map(|site| (&mut self.sites, site, whole));
        [(&mut self.addresses, address, own)]
            .into_iter()
            .chain(site)
    }

    /// Panics if the table contradicts itself.
    #[cfg(test)]
    pub(super) fn check(&self) {
        self.addresses.check();
        self.sites.check();
    }
}

/// A bounded map of addresses of one kind.
#[derive(Debug)]
struct Tracked {
    max: usize,
    entries: HashMap<Address, Entry>,
    /// Those without a visit, by the time from which they may be forgotten.
    idle: BTreeSet<(Time, Address)>,
}

#[derive(Debug, Default)]
struct Entry {
    attempts: Bucket,
    /// Those that keep the entry: sessions, and who is about to be one.
    visits: u32,
    sessions: u32,
}

impl Tracked {
    fn new(max: usize) -> Self {
        Self {
            max,
            entries: HashMap::new(),
            idle: BTreeSet::new(),
        }
    }

    /// Why one more visit is refused, if it is.
    fn refusal(
        &self,
        now: Time,
        address: Address,
        allowance: &Allowance,
        is_session: bool,
    ) -> Option<Refused> {
        if is_session && self.is_at_limit(address, allowance) {
            return Some(Refused::Sessions);
        }
        match self.entries.get(&address) {
            Some(entry) => {
                let none_left = entry.attempts.is_empty(now, allowance.attempts);
                none_left.then_some(Refused::Attempts)
            }
            None => (!self.has_room(now)).then_some(Refused::TableFull),
        }
    }

    fn is_at_limit(&self, address: Address, allowance: &Allowance) -> bool {
        let sessions = self.entries.get(&address).map_or(0, |entry| entry.sessions);
        u64::from(sessions) >= allowance.sessions_max
    }

    /// Whether a new address finds a place.
    fn has_room(&self, now: Time) -> bool {
        self.entries.len() < self.max || self.idle.first().is_some_and(|(at, _)| *at <= now)
    }

    /// One more visit, which nothing refuses.
    fn admit(&mut self, now: Time, address: Address, allowance: &Allowance, is_session: bool) {
        if !self.entries.contains_key(&address) {
            self.forget_idle(now);
        }
        let entry = self.entries.entry(address).or_default();
        if entry.visits == 0 {
            self.idle.remove(&(entry.attempts.full_at(), address));
        }
        let taken = entry.attempts.take(now, allowance.attempts);
        entry.visits += 1;
        entry.sessions += u32::from(is_session);
        debug_assert!(taken && self.entries.len() <= self.max);
    }

    /// Forgets up to two whose time has come: each newcomer makes room for itself and, step by
    /// step, for one more, so that a table that was full once does not stay so.
    fn forget_idle(&mut self, now: Time) {
        for _ in 0..2 {
            match self.idle.first() {
                Some(&(at, address)) if at <= now => {
                    self.idle.pop_first();
                    self.entries.remove(&address);
                }
                _ => return,
            }
        }
    }

    fn settle(&mut self, address: Address) {
        let entry = self.entries.get_mut(&address);
        debug_assert!(entry.is_some(), "a visit keeps its entry");
        if let Some(entry) = entry {
            entry.sessions += 1;
        }
    }

    fn leave(&mut self, address: Address, is_session: bool) {
        let entry = self.entries.get_mut(&address);
        debug_assert!(entry.is_some(), "a visit keeps its entry");
        let Some(entry) = entry else { return };
        debug_assert!(entry.visits > 0 && entry.sessions >= u32::from(is_session));
        entry.visits = entry.visits.saturating_sub(1);
        entry.sessions = entry.sessions.saturating_sub(u32::from(is_session));
        if entry.visits == 0 {
            self.idle.insert((entry.attempts.full_at(), address));
        }
    }

    #[cfg(test)]
    fn check(&self) {
        assert!(self.entries.len() <= self.max);
        let idle = self.entries.iter().filter(|(_, entry)| entry.visits == 0);
        let idle = idle.map(|(address, entry)| (entry.attempts.full_at(), *address));
        assert_eq!(idle.collect::<BTreeSet<_>>(), self.idle);
        let sound = |entry: &Entry| entry.sessions <= entry.visits;
        assert!(self.entries.values().all(sound));
    }
}
