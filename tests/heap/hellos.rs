//! What hellos cost: nothing is kept for one without a right cookie, and little for one that plays.

use allocation_counter::measure;
use anteroom::engine::{Effect, Machine, Path};
use anteroom::game::Relay;
use anteroom::guard::limits::Limits;

use crate::bytes::kind;
use crate::machine::{Driven, path};

/// The header of a client of version 2, up to its token.
const HEAD: [u8; 14] = *b"RTYP\x02\x10\0\0\xFF\xFF\0\0\0\0";
const CONNECT_CHALLENGE: u8 = 17;
const SERVER_HELLO: u8 = 18;
const CLIENT_BYE: u8 = 20;

/// A ClientHello as `R9`.
fn hello(cookie: [u8; 8]) -> Vec<u8> {
    [&HEAD[..], &[0; 8], &cookie, b"\0\0\x02\0R9"].concat()
}

/// A datagram of a session of version 2.
fn said(kind: u8, sequence: u16, token: [u8; 8], payload: &[u8]) -> Vec<u8> {
    let mut bytes = [&HEAD[..], &token, payload].concat();
    bytes[5] = kind;
    bytes[6..8].copy_from_slice(&sequence.to_le_bytes());
    bytes
}

/// The payload of the first datagram of this type that was sent for the last input.
fn heard(driven: &Driven, kind: u8) -> Option<Vec<u8>> {
    driven.out.effects().find_map(|effect| match effect {
        Effect::Datagram { bytes, .. } if bytes[5] == kind => Some(bytes[18..].to_vec()),
        _ => None,
    })
}

/// The cookie of an endpoint.
fn cookie(driven: &mut Driven, path: Path) -> [u8; 8] {
    driven.datagram(path, &hello([0; 8]));
    let cookie = heard(driven, CONNECT_CHALLENGE).expect("a challenge");
    cookie.try_into().expect("eight bytes")
}

/// Says hello with the right cookie; returns the session's token.
fn enter(driven: &mut Driven, path: Path) -> [u8; 8] {
    let cookie = cookie(driven, path);
    driven.datagram(path, &hello(cookie));
    let greeting = heard(driven, SERVER_HELLO).expect("a ServerHello");
    greeting[..8].try_into().expect("eight bytes")
}

#[test]
fn a_flood_of_first_hellos_takes_no_memory() {
    const ADDRESSES: u32 = 50_000;
    for per_ms in [20, 400] {
        let mut driven = Driven::new(Box::new(Relay::new()), 1, Limits::default());
        let flood = |driven: &mut Driven, ms: u32| {
            for number in 0..ms * per_ms {
                let mut from = path(number % ADDRESSES);
                from.remote.set_port(1_024 + (number / ADDRESSES) as u16);
                driven.datagram(from, &FIRST);
                if number % per_ms == 0 {
                    driven.pass(1, &mut []);
                }
            }
        };
        // The first hello of all draws the key of cookies.
        flood(&mut driven, 1);
        let spent = measure(|| flood(&mut driven, 200_000 / 20));
        assert_eq!(spent.count_total, 0, "{spent:?} at {per_ms} a millisecond");
        let answered = driven.count("challenges");
        assert!(answered >= 190_000, "{answered}");
        assert_eq!(driven.count("sessions"), 0);
        assert_eq!(driven.service.deadline(), None);
    }
}

/// A first hello, made when the program was: putting it together takes memory.
const FIRST: [u8; 36] =
    *b"RTYP\x02\x10\0\0\xFF\xFF\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x02\0R9";

#[test]
fn what_a_hello_is_refused_for_takes_no_memory() {
    let mut driven = Driven::new(Box::new(Relay::new()), 1, Limits::default());
    let (here, elsewhere) = (path(1), path(2));
    let token = enter(&mut driven, here);
    let again = hello(cookie(&mut driven, here));
    let mut nameless = hello(cookie(&mut driven, elsewhere));
    nameless.truncate(nameless.len() - 2);
    nameless[32] = 0;
    let mut torn = hello([0; 8]);
    torn.pop();
    let stale = hello([7; 8]);
    let old = said(kind::DATA, 0, token, b"x");
    driven.datagram(here, &old);
    let wrong = said(kind::DATA, 9, [9; 8], b"x");
    let cases: [(&str, Path, &[u8]); 7] = [
        ("ignored-hello", elsewhere, &torn),
        ("challenges", elsewhere, &stale),
        ("rejected-bad-name", elsewhere, &nameless),
        ("ignored-candidate", elsewhere, &old),
        ("ignored-unbound", elsewhere, &wrong),
        ("ignored-wrong-token", here, &wrong),
        ("logins", here, &again),
    ];
    for (counter, from, bytes) in cases {
        driven.datagram(from, bytes);
        let before = driven.count(counter);
        let spent = measure(|| (0..100).for_each(|_| driven.datagram(from, bytes)));
        // A hello that comes again is no login.
        let more = if counter == "logins" { 0 } else { 100 };
        assert_eq!(driven.count(counter) - before, more, "{counter}");
        assert_eq!(spent.count_total, 0, "{counter}: {spent:?}");
    }
}

#[test]
fn who_said_hello_and_bye_leaves_nothing_behind() {
    const WAVE: u32 = 40;
    let mut driven = Driven::new(Box::new(Relay::new()), WAVE, Limits::default());
    let wave = |driven: &mut Driven| {
        for number in 0..WAVE {
            let (home, roaming) = (path(number), path(1_000 + number));
            let token = enter(driven, home);
            driven.datagram(home, &said(kind::DATA, 0, token, b"here"));
            // Another endpoint becomes its candidate; every other one leaves, the others are
            // ended, and told so three times.
            driven.datagram(roaming, &said(kind::DATA, 1, token, b"there"));
            if number % 2 == 0 {
                driven.datagram(home, &said(CLIENT_BYE, 2, token, &[0]));
            }
        }
        driven.pass(20_000, &mut []);
    };
    wave(&mut driven);
    let spent = measure(|| (1..100).for_each(|_| wave(&mut driven)));
    assert_eq!(driven.count("logins"), 4_000);
    assert_eq!(driven.count("sessions"), 0);
    assert_eq!(driven.service.deadline(), None, "nothing is due any more");
    assert!(spent.bytes_current <= 16 * 1_024, "{spent:?}");
}
