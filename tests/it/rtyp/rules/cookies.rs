//! Section 6.3: cookies, and what a service spends on them.

use std::net::{Ipv4Addr, SocketAddr};

use super::super::bare::{Bare, Drawn};
use super::super::bytes::{Datagram, kind};
use super::super::dice::Rigged;
use super::super::hall::{Hall, address};
use super::super::peer::Peer;
use super::super::siphash;
use crate::world::seeds::seed;

fn at(text: &str) -> SocketAddr {
    text.parse().expect("an endpoint")
}

/// Whether a cookie is right: a hello with an empty name is rejected then, and challenged else.
fn is_right(bare: &mut Bare, endpoint: SocketAddr, cookie: u64) -> bool {
    bare.hear(endpoint, &Datagram::hello(cookie, b"", b"").bytes());
    match bare.answer().expect("an answer").kind {
        kind::HELLO_REJECTED => true,
        kind::CONNECT_CHALLENGE => false,
        kind => panic!("type {kind}"),
    }
}

const HERE: &str = "192.0.2.7:5000";

#[test]
fn r110_cookie() {
    let key = [0xDEAD_BEEF, 1, 0x8000_0000, 0x7654_3210];
    for (endpoint, window) in [
        (HERE, 0),
        (HERE, 1),
        (HERE, 100),
        ("192.0.2.7:5001", 0x0001_0203),
        ("[2001:db8::9]:511", 0x0001_0203),
        ("[::ffff:192.0.2.7]:65535", 7),
    ] {
        let mut hall = Hall::with_dice(seed(), Box::new(Rigged::new(&key)));
        hall.net.now = window * 10_000 + 3_000;
        let peer = hall.add(Peer::v2_silent(endpoint));
        // The service answers IPv4-mapped endpoints as what they are.
        let mapped = at(endpoint);
        let folded = SocketAddr::new(mapped.ip().to_canonical(), mapped.port());
        hall.net.own(folded, crate::world::net::Owner::Peer(peer.0));
        hall[peer].hello("R9");
        hall.settle();
        let expected = siphash::cookie(key, mapped, window);
        assert_eq!(hall[peer].cookie(), expected, "{endpoint} in {window}");
    }
}

#[test]
fn r110_right_in_its_window_and_the_next_only() {
    let mut bare = Bare::new(seed());
    for made_ms in [0, 1, 9_999] {
        let start = (bare.now / 10_000 + 10) * 10_000;
        bare.now = start + made_ms;
        let cookie = bare.cookie(at(HERE));
        for (ms, is) in [
            (made_ms, true),
            (9_999, true),
            (10_000, true),
            (19_999, true),
            (20_000, false),
            (29_999, false),
            (1_000_000, false),
        ] {
            bare.now = start + ms;
            assert_eq!(
                is_right(&mut bare, at(HERE), cookie),
                is,
                "{made_ms} at {ms}"
            );
        }
    }
}

#[test]
fn r110_of_one_endpoint_only() {
    let mut bare = Bare::new(seed());
    let cookie = bare.cookie(at(HERE));
    for other in [
        "192.0.2.7:5001",
        "192.0.2.7:34835",
        "192.0.2.8:5000",
        "7.2.0.192:5000",
        "[2001:db8::c000:207]:5000",
        "[::192.0.2.7]:5000",
    ] {
        assert!(!is_right(&mut bare, at(other), cookie), "{other}");
        assert_ne!(bare.cookie(at(other)), cookie, "{other}");
    }
    let mapped = at("[::ffff:192.0.2.7]:5000");
    assert!(is_right(&mut bare, mapped, cookie));
    assert_eq!(bare.cookie(mapped), cookie);
}

#[test]
fn r110_each_bit_counts() {
    let mut bare = Bare::new(seed());
    let cookie = bare.cookie(at(HERE));
    for later in [0, 10_000] {
        bare.now += later;
        assert!(is_right(&mut bare, at(HERE), cookie));
        for bit in 0..64 {
            assert!(
                !is_right(&mut bare, at(HERE), cookie ^ 1 << bit),
                "bit {bit}"
            );
        }
    }
}

#[test]
fn r110_not_after_a_restart_nor_at_another_service() {
    let cookie = Bare::new(1).cookie(at(HERE));
    assert!(!is_right(&mut Bare::new(2), at(HERE), cookie));
    assert_eq!(
        Bare::new(1).cookie(at(HERE)),
        cookie,
        "dice that fall alike"
    );
}

#[test]
fn without_dice_no_cookie_is_made_up() {
    let dice = Rigged::new(&[]);
    let mut hall = Hall::with_dice(seed(), Box::new(dice.clone()));
    dice.breaks(true);
    let peer = hall.add(Peer::v2_silent(&address(1)));
    hall[peer].hello("R9");
    hall.settle();
    assert_eq!((hall[peer].challenges(), hall.count("no-entropy")), (0, 1));
    dice.breaks(false);
    hall[peer].say_hello();
    hall.settle();
    assert_eq!(hall[peer].challenges(), 1);
}

/// Somebody whom nobody has seen before.
fn stranger(number: u32) -> SocketAddr {
    SocketAddr::from((
        Ipv4Addr::from_bits(0x0B00_0000 + number / 4),
        1000 + (number % 4) as u16,
    ))
}

/// So many first hellos at once: how many were answered.
fn crowd(bare: &mut Bare, count: u32) -> u64 {
    let hello = Datagram::hello(0, b"", b"R9").bytes();
    let answers = (0..count).map(|number| bare.hear(stranger(number), &hello).datagrams);
    answers.sum()
}

#[test]
fn r111_budget_of_challenges() {
    let mut bare = Bare::new(seed());
    let cookie = bare.cookie(at(HERE));
    bare.pass(1000);
    // A crowd of half a second's worth is answered whole.
    assert_eq!(crowd(&mut bare, 10_000), 10_000);
    // Of a flood no more than a second's worth, and then what comes back.
    bare.pass(1000);
    let answered = crowd(&mut bare, 200_000);
    assert!((19_000..=20_000).contains(&answered), "{answered}");
    assert_eq!(bare.count("challenges-dropped"), 200_000 - answered);
    for _ in 0..1000 {
        // By the clock, and never by asking for the time.
        bare.pass(0);
    }
    assert!(crowd(&mut bare, 1000) <= 20_000 - answered);
    bare.pass(10);
    let answered = crowd(&mut bare, 20_000);
    assert!((150..=240).contains(&answered), "{answered}");
    // A right cookie never depends on it.
    let hello = Datagram::hello(cookie, b"", b"R9").bytes();
    assert!(bare.hear(at(HERE), &hello).datagrams > 0);
    assert_eq!(bare.answer().map(|it| it.kind), Some(kind::SERVER_HELLO));
    assert_eq!(bare.count("sessions"), 1);
}

#[test]
fn r111_a_random_part_is_dropped_whoever_comes_first() {
    let mut bare = Bare::new(seed());
    let hello = Datagram::hello(0, b"", b"R9").bytes();
    crowd(&mut bare, 100_000);
    // 200 a millisecond, ten times the budget, and somebody honest behind all of them.
    let (mut flood, mut honest) = (0, 0);
    for _ in 0..5_000 {
        bare.pass(1);
        flood += crowd(&mut bare, 200);
        honest += bare.hear(at(HERE), &hello).datagrams;
    }
    let budget = 5 * 20_000;
    assert!(
        (flood + honest).abs_diff(budget) < budget / 50,
        "{flood} and {honest}"
    );
    // Its fair share of 5000 asked is one in ten.
    assert!((400..600).contains(&honest), "{honest}");
}

#[test]
fn r111_the_budget_has_a_name() {
    let mut bare = Bare::with(seed(), |settings| {
        settings.limits.set("challenges", 100).expect("in range");
    });
    let answered = crowd(&mut bare, 10_000);
    assert!((90..=100).contains(&answered), "{answered}");
    bare.pass(1000);
    let hello = Datagram::hello(0, b"", b"R9").bytes();
    let one = Drawn {
        datagrams: 1,
        bytes: 26,
    };
    assert_eq!(bare.hear(at(HERE), &hello), one);
}
