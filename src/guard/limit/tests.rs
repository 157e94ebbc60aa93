use std::collections::HashMap;

use super::*;
use crate::engine::Seeded;

fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

fn limits(values: &[(&str, u64)]) -> Limits {
    let mut limits = Limits::default();
    for (name, value) in values {
        limits.set(name, *value).expect("in range");
    }
    limits
}

fn entrance(values: &[(&str, u64)]) -> Entrance {
    let limits = limits(values);
    Addresses::new(&limits).entrance(&limits, false)
}

/// What came of one attempt after another, all kept.
fn enter_all<'a>(
    entrance: &'a Entrance,
    now: Time,
    ips: impl IntoIterator<Item = &'a str>,
) -> Vec<Result<Visit, Refused>> {
    ips.into_iter()
        .map(|text| entrance.enter(now, ip(text)))
        .collect()
}

fn passed(results: &[Result<Visit, Refused>]) -> usize {
    results.iter().filter(|result| result.is_ok()).count()
}

#[test]
fn five_sessions_and_one_more_when_one_has_ended() {
    let entrance = entrance(&[("attempts", 100)]);
    let now = Time::ZERO;
    let mut visits = enter_all(&entrance, now, ["192.0.2.1"; 5]);
    assert_eq!(passed(&visits), 5);
    assert!(entrance.is_at_session_limit(ip("192.0.2.1")));
    assert!(!entrance.is_at_session_limit(ip("192.0.2.2")));
    let refused = entrance.enter(now, ip("::ffff:192.0.2.1"));
    assert_eq!(refused.unwrap_err(), Refused::Sessions);
    let other = entrance.enter(now, ip("192.0.2.2"));
    assert!(other.is_ok());
    visits.pop();
    assert!(!entrance.is_at_session_limit(ip("192.0.2.1")));
    assert!(entrance.enter(now, ip("192.0.2.1")).is_ok());
}

#[test]
fn five_attempts_at_once_then_one_every_two_seconds() {
    let entrance = entrance(&[]);
    let attempt = |ms| entrance.enter(Time::from_ms(ms), ip("192.0.2.1")).map(drop);
    assert!((0..5).all(|_| attempt(1_000).is_ok()));
    assert_eq!(attempt(1_000), Err(Refused::Attempts));
    assert_eq!(
        attempt(2_999),
        Err(Refused::Attempts),
        "a refusal costs none"
    );
    assert_eq!(attempt(3_000), Ok(()));
    assert_eq!(attempt(3_000), Err(Refused::Attempts));
    assert!(
        (0..5).all(|_| attempt(1_000_000).is_ok()),
        "after a long time"
    );
    assert_eq!(attempt(1_000_000), Err(Refused::Attempts));
}

#[test]
fn a_refusal_for_sessions_costs_no_attempt() {
    let entrance = entrance(&[("sessions-per-ip", 1), ("attempts", 2)]);
    let first = entrance
        .enter(Time::ZERO, ip("192.0.2.1"))
        .expect("the first");
    for _ in 0..10 {
        let refused = entrance.enter(Time::ZERO, ip("192.0.2.1"));
        assert_eq!(refused.unwrap_err(), Refused::Sessions);
    }
    drop(first);
    let second = entrance
        .enter(Time::ZERO, ip("192.0.2.1"))
        .expect("an attempt is left");
    let refused = entrance.enter(Time::ZERO, ip("192.0.2.1"));
    assert_eq!(
        refused.unwrap_err(),
        Refused::Sessions,
        "sessions come first"
    );
    drop(second);
    let refused = entrance.enter(Time::ZERO, ip("192.0.2.1"));
    assert_eq!(refused.unwrap_err(), Refused::Attempts);
}

#[test]
fn an_ipv6_address_is_its_64_and_a_48_has_four_times_as_much() {
    let entrance = entrance(&[("attempts", 100)]);
    let own = enter_all(&entrance, Time::ZERO, ["2001:db8:1:1::1"; 3]);
    let neighbour = enter_all(&entrance, Time::ZERO, ["2001:db8:1:1:ffff::2"; 3]);
    assert_eq!((passed(&own), passed(&neighbour)), (3, 2));
    let nets = ["2001:db8:1:2::", "2001:db8:1:300::", "2001:db8:1:f000::"];
    let others = enter_all(&entrance, Time::ZERO, nets.iter().copied().cycle().take(15));
    assert_eq!(passed(&others), 15);
    let refused = entrance.enter(Time::ZERO, ip("2001:db8:1:5::1"));
    assert_eq!(refused.unwrap_err(), Refused::Sessions);
    assert!(entrance.is_at_session_limit(ip("2001:db8:1:5::1")));
    assert!(entrance.enter(Time::ZERO, ip("2001:db8:2:5::1")).is_ok());
    drop(own);
    assert!(entrance.enter(Time::ZERO, ip("2001:db8:1:5::1")).is_ok());
}

#[test]
fn a_48_has_twenty_attempts_and_one_more_every_half_second() {
    let entrance = entrance(&[]);
    let attempt = |ms, net: u64| {
        let address = format!("2001:db8:1:{net:x}::1");
        entrance.enter(Time::from_ms(ms), ip(&address)).map(drop)
    };
    let at_once = (0..40).filter(|net| attempt(0, *net).is_ok()).count();
    assert_eq!(at_once, 20);
    assert_eq!(attempt(499, 100), Err(Refused::Attempts));
    assert_eq!(attempt(500, 101), Ok(()));
    assert_eq!(attempt(500, 102), Err(Refused::Attempts));
    // What the whole refused has cost the parts nothing.
    assert_eq!(entrance.addresses.tracked(), 21);
}

#[test]
fn services_count_apart_and_share_the_table() {
    let limits = limits(&[("sessions-per-ip", 1), ("tracked-ips", 2)]);
    let addresses = Addresses::new(&limits);
    let [one, two] = [(); 2].map(|()| addresses.entrance(&limits, false));
    let visit = one
        .enter(Time::ZERO, ip("192.0.2.1"))
        .expect("a session of one");
    let _other = two
        .enter(Time::ZERO, ip("192.0.2.1"))
        .expect("a session of the other");
    assert_eq!(addresses.tracked(), 2);
    let refused = two.enter(Time::ZERO, ip("192.0.2.2"));
    assert_eq!(refused.unwrap_err(), Refused::TableFull);
    drop(visit);
    let now = Time::from_ms(2_000);
    assert!(
        two.enter(now, ip("192.0.2.2")).is_ok(),
        "the place was one's"
    );
}

#[test]
fn a_full_table_refuses_the_new_and_touches_nobody() {
    let entrance = entrance(&[("tracked-ips", 3)]);
    let mut visits = enter_all(
        &entrance,
        Time::ZERO,
        ["192.0.2.1", "192.0.2.2", "192.0.2.3"],
    );
    let new = |ms| entrance.enter(Time::from_ms(ms), ip("192.0.2.9"));
    assert_eq!(new(100_000).unwrap_err(), Refused::TableFull);
    assert!(
        entrance
            .enter(Time::from_ms(100_000), ip("192.0.2.1"))
            .is_ok()
    );
    // An address that tried just now stays, though nobody is there.
    visits.push(entrance.enter(Time::from_ms(100_001), ip("192.0.2.2")));
    visits.drain(1..);
    assert_eq!(passed(&visits), 1);
    let again = entrance.enter(Time::from_ms(100_001), ip("192.0.2.3"));
    drop(again.expect("it is tracked"));
    assert_eq!(new(102_000).unwrap_err(), Refused::TableFull);
    assert!(new(102_001).is_ok());
    assert!(entrance.addresses.tracked() <= 3);
}

#[test]
fn a_table_of_one_serves_an_ipv6_address() {
    let entrance = entrance(&[("tracked-ips", 1)]);
    let visit = entrance.enter(Time::ZERO, ip("2001:db8::1"));
    assert!(visit.is_ok());
    let refused = entrance.enter(Time::ZERO, ip("192.0.2.1"));
    assert_eq!(refused.unwrap_err(), Refused::TableFull);
}

#[test]
fn loopback_may_do_as_it_pleases_unless_it_is_limited() {
    let limits = limits(&[("tracked-ips", 1)]);
    for address in ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"] {
        let addresses = Addresses::new(&limits);
        let free = addresses.entrance(&limits, false);
        let visits = enter_all(&free, Time::ZERO, [address; 100]);
        assert_eq!(passed(&visits), 100);
        assert!(!free.is_at_session_limit(ip(address)));
        assert_eq!(addresses.tracked(), 0);
        let limited = addresses.entrance(&limits, true);
        let visits = enter_all(&limited, Time::ZERO, [address; 100]);
        assert_eq!(passed(&visits), 5);
        assert!(limited.is_at_session_limit(ip(address)));
    }
}

#[test]
fn a_newcomer_takes_the_place_of_a_ghost_when_it_has_ended() {
    let entrance = entrance(&[("sessions-per-ip", 2), ("attempts", 10)]);
    let home = ip("2001:db8::1");
    let _stays = entrance.enter(Time::ZERO, home).expect("the first");
    let ghost = entrance.enter(Time::ZERO, home).expect("the second");
    assert!(entrance.is_at_session_limit(home));
    assert!(ghost.is_of(ip("2001:db8::2")) && !ghost.is_of(ip("2001:db8:0:1::1")));
    let mut newcomer = entrance.attempt(Time::ZERO, home).expect("an attempt");
    assert_eq!(entrance.settle(&mut newcomer), Err(Refused::Sessions));
    drop(ghost);
    assert_eq!(entrance.settle(&mut newcomer), Ok(()));
    assert_eq!(entrance.settle(&mut newcomer), Ok(()), "it is settled");
    assert!(entrance.is_at_session_limit(home));
    drop(newcomer);
    assert!(!entrance.is_at_session_limit(home));
}

#[test]
fn who_comes_first_has_the_place_of_a_ghost_that_ended_by_itself() {
    let entrance = entrance(&[("sessions-per-ip", 1)]);
    let home = ip("192.0.2.1");
    let ghost = entrance.enter(Time::ZERO, home).expect("the first");
    let mut newcomer = entrance.attempt(Time::ZERO, home).expect("an attempt");
    drop(ghost);
    let first = entrance.enter(Time::ZERO, home).expect("there is room");
    assert_eq!(entrance.settle(&mut newcomer), Err(Refused::Sessions));
    drop(newcomer);
    drop(first);
    assert!(entrance.enter(Time::ZERO, home).is_ok());
}

#[test]
fn an_attempt_keeps_its_entry_while_the_game_is_asked() {
    let entrance = entrance(&[("tracked-ips", 1)]);
    let mut slow = entrance
        .attempt(Time::ZERO, ip("192.0.2.1"))
        .expect("an attempt");
    let refused = entrance.enter(Time::from_ms(60_000), ip("192.0.2.2"));
    assert_eq!(refused.unwrap_err(), Refused::TableFull);
    assert_eq!(entrance.settle(&mut slow), Ok(()));
}

#[test]
fn a_ghost_on_loopback_is_known_as_one_of_its_own() {
    let entrance = entrance(&[]);
    let mut visit = entrance
        .attempt(Time::ZERO, ip("127.0.0.1"))
        .expect("exempt");
    assert_eq!(entrance.settle(&mut visit), Ok(()));
    assert!(visit.is_of(ip("::ffff:127.0.0.1")) && !visit.is_of(ip("127.0.0.2")));
    assert!(visit.is_session);
}

#[test]
fn a_crowd_of_addresses_leaves_the_table_as_large_as_it_may_be() {
    let max = 512;
    let entrance = entrance(&[("tracked-ips", max)]);
    let mut now = Time::ZERO;
    let mut refused = 0;
    for number in 0..200_000_u32 {
        // 512 addresses in 2 s, each with one attempt, are just as many as fit.
        now = now + u64::from(number % 50 == 0) * 100;
        let from = IpAddr::from(number.to_be_bytes());
        refused += u32::from(entrance.enter(now, from).is_err());
    }
    let tracked = entrance.addresses.tracked() as u64;
    assert!(tracked <= max);
    assert!((80_000..100_000).contains(&refused), "{refused}");
    entrance.addresses.lock().check();
}

#[test]
fn a_table_that_was_full_once_does_not_stay_so() {
    let entrance = entrance(&[("tracked-ips", 100)]);
    let from = |number| IpAddr::from([10, 0, 0, number]);
    assert!((0..100).all(|number| entrance.enter(Time::ZERO, from(number)).is_ok()));
    assert_eq!(entrance.addresses.tracked(), 100);
    // Each newcomer makes room for two.
    let later = Time::from_ms(2_000);
    assert!((100..140).all(|number| entrance.enter(later, from(number)).is_ok()));
    assert_eq!(entrance.addresses.tracked(), 60);
}

/// The rules by the simplest of means: every visit in a list, every attempt left in a number.
struct Model {
    max: usize,
    visits: Vec<(u32, IpAddr, bool)>,
    /// Milliseconds saved up for attempts, and when that was right.
    saved: HashMap<(u32, IpAddr), (u64, u64)>,
}

const SESSIONS: u64 = 2;
const ATTEMPTS: u64 = 3;
const ATTEMPT_MS: u64 = 200;

impl Model {
    fn is_site(ip: IpAddr) -> bool {
        matches!(ip, IpAddr::V6(ip) if ip.segments()[3] == 0xFFFF)
    }

    /// An address and its /48, which is written as its part FFFF.
    fn parts(ip: IpAddr) -> Vec<IpAddr> {
        match ip.to_canonical() {
            IpAddr::V4(ip) => vec![IpAddr::V4(ip)],
            IpAddr::V6(ip) => {
                let [a, b, c, d, ..] = ip.segments();
                let part = |d| IpAddr::from([a, b, c, d, 0, 0, 0, 0]);
                vec![part(d), part(0xFFFF)]
            }
        }
    }

    fn factor(part: IpAddr) -> u64 {
        if Self::is_site(part) { 4 } else { 1 }
    }

    fn saved_ms(&self, now: u64, service: u32, part: IpAddr) -> u64 {
        let full = ATTEMPTS * ATTEMPT_MS;
        let (saved, then) = *self.saved.get(&(service, part)).unwrap_or(&(full, now));
        full.min(saved + now - then)
    }

    fn count(&self, service: u32, part: IpAddr, sessions_only: bool) -> u64 {
        let is_meant = |visit: &&(u32, IpAddr, bool)| {
            visit.0 == service
                && Self::parts(visit.1).contains(&part)
                && (visit.2 || !sessions_only)
        };
        self.visits.iter().filter(is_meant).count() as u64
    }

    fn is_live(&self, now: u64, service: u32, part: IpAddr) -> bool {
        let is_full = self.saved_ms(now, service, part) == ATTEMPTS * ATTEMPT_MS;
        !is_full || self.count(service, part, false) > 0
    }

    fn is_at_limit(&self, service: u32, ip: IpAddr) -> bool {
        Self::parts(ip)
            .iter()
            .any(|part| self.count(service, *part, true) >= SESSIONS * Self::factor(*part))
    }

    fn enter(&mut self, now: u64, service: u32, ip: IpAddr, session: bool) -> Result<(), Refused> {
        let parts = Self::parts(ip);
        if session && self.is_at_limit(service, ip) {
            return Err(Refused::Sessions);
        }
        let price = |part| ATTEMPT_MS / Self::factor(part);
        if parts
            .iter()
            .any(|part| self.saved_ms(now, service, *part) < price(*part))
        {
            return Err(Refused::Attempts);
        }
        for part in &parts {
            let alike = |key: &&(u32, IpAddr)| Self::is_site(key.1) == Self::is_site(*part);
            let keys = self.saved.keys().filter(alike);
            let live = keys.filter(|key| self.is_live(now, key.0, key.1)).count();
            if live >= self.max && !self.is_live(now, service, *part) {
                return Err(Refused::TableFull);
            }
        }
        for part in parts {
            let left = self.saved_ms(now, service, part) - price(part);
            self.saved.insert((service, part), (left, now));
        }
        self.visits.push((service, ip, session));
        Ok(())
    }
}

fn some_ip(dice: &mut Seeded) -> IpAddr {
    match dice.below(3) {
        0 => IpAddr::from([192, 0, 2, dice.below(4) as u8]),
        1 => IpAddr::from([0, 0, 0, 0, 0, 0xFFFF, 0xC000, 0x0200 + dice.below(4) as u16]),
        _ => {
            let mut below = |bound| dice.below(bound) as u16;
            let (site, net, host) = (below(3), below(6) * 0x2111, below(3));
            IpAddr::from([0x2001, 0xDB8, site, net, 0, 0, 0, host])
        }
    }
}

#[test]
fn it_does_what_the_rules_say_whatever_happens() {
    let mut refusals = HashMap::new();
    for seed in 0..40 {
        let mut dice = Seeded::new(seed);
        let max = 1 + dice.below(48);
        let pace_ms = [4, 40, 400][seed as usize % 3];
        let limits = limits(&[
            ("sessions-per-ip", SESSIONS),
            ("attempts", ATTEMPTS),
            ("attempt-ms", ATTEMPT_MS),
            ("tracked-ips", max),
        ]);
        let addresses = Addresses::new(&limits);
        let entrances = [(); 2].map(|()| addresses.entrance(&limits, false));
        let mut model = Model {
            max: max as usize,
            visits: Vec::new(),
            saved: HashMap::new(),
        };
        // As the model's list, in its order.
        let mut visits = Vec::new();
        let mut ms = 0;
        for step in 0..1_500 {
            ms += dice.below(2) * dice.below(pace_ms);
            let (now, ip, which) = (Time::from_ms(ms), some_ip(&mut dice), dice.below(2) as u32);
            let entrance = &entrances[which as usize];
            let context = format!("seed {seed}, step {step}, {ip}");
            match dice.below(8) {
                0..=3 => {
                    let session = dice.below(4) > 0;
                    let result = match session {
                        true => entrance.enter(now, ip),
                        false => entrance.attempt(now, ip),
                    };
                    let expected = model.enter(ms, which, ip, session);
                    assert_eq!(
                        result.as_ref().map(drop),
                        expected.as_ref().map(drop),
                        "{context}"
                    );
                    if let Err(refused) = result {
                        *refusals.entry(refused).or_insert(0) += 1;
                    }
                    visits.extend(result);
                }
                4 | 5 if !visits.is_empty() => {
                    let gone = dice.below(visits.len() as u64) as usize;
                    drop(visits.swap_remove(gone));
                    model.visits.swap_remove(gone);
                }
                6 if !visits.is_empty() => {
                    let settled = dice.below(visits.len() as u64) as usize;
                    let (service, ip, session) = model.visits[settled];
                    let expected = match session || !model.is_at_limit(service, ip) {
                        true => Ok(()),
                        false => Err(Refused::Sessions),
                    };
                    model.visits[settled].2 |= expected.is_ok();
                    let result = entrances[service as usize].settle(&mut visits[settled]);
                    assert_eq!(result, expected, "{context}");
                }
                _ => {
                    let expected = model.is_at_limit(which, ip);
                    assert_eq!(entrance.is_at_session_limit(ip), expected, "{context}");
                }
            }
            addresses.lock().check();
        }
    }
    for refused in [Refused::Sessions, Refused::Attempts, Refused::TableFull] {
        assert!(
            refusals[&refused] > 500,
            "{refusals:?}: too few to mean anything"
        );
    }
}
