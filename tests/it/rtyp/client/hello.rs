//! Version 2: from the first hello to the first ServerHello.

use anteroom::protocol::rtyp::{BadHello, Client, End, State};

use super::super::bytes::{Datagram, Event, Token};
use super::super::peer::SERVER;
use super::greeted::{Greeted, PUBLIC, SECRET};
use super::greeter::{Greeter, kind, outside};
use super::{CLIENT, OWN, address};

/// A ServerHello of a session of these tokens.
fn server_hello(token: u64, player_token: u32, player: u8) -> Datagram {
    let payload = [&token.to_le_bytes()[..], &[player]].concat();
    let mut hello = outside(kind::SERVER_HELLO, &payload);
    hello.session = Token::Public(player_token);
    hello
}

/// The example of the protocol's page.
#[test]
fn r129_the_handshake_is_the_bytes_of_the_example() {
    let mut host = Greeter::new(SERVER, 0x1122_3344_5566_7788, 0xCAFE_F00D);
    host.cookie = u64::from_le_bytes(*b"\x30\x2C\x3C\x04\xC7\x01\xA2\x5D");
    let mut table = Greeted::into_room(host, "1");
    assert_eq!(table.state(), State::LoggingIn);
    table.until(100, |player| player.client.rtt_ms().is_some());
    let zero = [0; 8];
    let cookie = table.host().cookie.to_le_bytes();
    let hello = |cookie: [u8; 8]| [HELLO_HEAD, &cookie, b"\x01\x001\x02\0R9"].concat();
    let ping = b"RTYP\x02\x03\0\0\0\0\0\0\0\0\x88\x77\x66\x55\x44\x33\x22\x11";
    let raw = &table.host().raw;
    assert_eq!(raw[..2], [hello(zero), hello(cookie)]);
    assert_eq!(raw[2][..22], *ping);
    let player = table.player.get();
    assert_eq!(player.notices()[..2], ["Accepted { player: 0 }", "Joined"]);
    assert_eq!(player.client.state(), State::Playing);
    assert_eq!(player.client.player(), Some(0));
}

/// The header of every hello.
const HELLO_HEAD: &[u8] = b"RTYP\x02\x10\0\0\xFF\xFF\0\0\0\0\0\0\0\0\0\0\0\0";

#[test]
fn r122_hello_is_said_every_250_ms_for_5_s_to_nobody() {
    let mut table = Greeted::unanswered();
    let start = table.world.now();
    table.world.for_ms(4_994);
    assert_eq!(table.state(), State::LoggingIn);
    table.world.for_ms(1);
    table.assert_ended(End::Unreachable, 0);
    let times = table.host().times(kind::CLIENT_HELLO);
    let expected: Vec<u64> = (0..20).map(|number| start + number * 250).collect();
    assert_eq!(times, expected);
}

#[test]
fn r122_the_first_cookie_is_said_back_at_once_and_the_newest_ever_after() {
    let mut table = Greeted::unanswered();
    table.world.for_ms(95);
    let start = table.world.now();
    table.host().challenge(7);
    table.world.for_ms(10);
    assert_eq!(table.newest().cookie(), 7);
    // A forger's flood of others draws no more than time does.
    for cookie in 100..200 {
        table.host().challenge(cookie);
        table.world.for_ms(9);
    }
    table.world.for_ms(100);
    let hellos = table.host().of(kind::CLIENT_HELLO);
    let said: Vec<(u64, u64)> = hellos[1..]
        .iter()
        .map(|(at, hello)| (at - start, hello.cookie()))
        .collect();
    assert_eq!(said[0], (10, 7));
    let times: Vec<u64> = said.iter().map(|(at, _)| *at).collect();
    assert_eq!(times, [10, 260, 510, 760, 1010]);
    assert!(said[1..].windows(2).all(|two| two[0].1 < two[1].1));
    assert_eq!(said[4].1, 199);
}

#[test]
fn r122_a_server_that_only_gives_cookies_does_not_answer() {
    let mut host = Greeter::new(SERVER, SECRET, PUBLIC);
    host.greeting.admit = false;
    let mut table = Greeted::by(host);
    table.world.for_ms(5_000);
    table.assert_ended(End::NoAnswer, 0);
}

#[test]
fn r48_whatever_code_rejects_a_hello_ends_it() {
    for code in [0, 1, 4, 6, 7, 8, 9, 255] {
        let mut table = Greeted::unanswered();
        let rejected = outside(kind::HELLO_REJECTED, &[code]);
        table.host().send_raw(&rejected.bytes());
        table.world.for_ms(5);
        table.assert_ended(End::Rejected(code), 0);
        assert_eq!(table.host().came.len(), 1);
    }
}

#[test]
fn r123_strangers_let_nobody_in_and_send_nobody_away() {
    let mut table = Greeted::unanswered();
    let datagrams = [
        outside(kind::CONNECT_CHALLENGE, &[7; 8]),
        outside(kind::HELLO_REJECTED, &[1]),
        server_hello(1, 2, 0),
    ];
    for stranger in [
        "198.51.100.1:4243",
        "198.51.100.2:4242",
        "[2001:db8::1]:4242",
    ] {
        for datagram in &datagrams {
            let bytes = datagram.bytes();
            table.host().send_raw_from(address(stranger), &bytes);
        }
    }
    table.world.for_ms(300);
    assert_eq!(table.state(), State::LoggingIn);
    assert_eq!(table.stat("ignored-source"), 9);
    assert_eq!(table.newest().cookie(), 0);
    assert_eq!(table.host().came.len(), 2);
}

#[test]
fn r123_before_the_first_server_hello_all_else_is_dropped() {
    let mut table = Greeted::unanswered();
    let events = Event::joined(1, "Luke").bytes(0);
    for (kind, payload) in [
        (kind::CONNECT, &b""[..]),
        (kind::ACCEPT, b""),
        (kind::PING, b"\x01\x02\x03\x04"),
        (kind::PONG, b"\x01\x02\x03\x04"),
        (kind::DATA, b"\x01own"),
        (kind::EVENTS, &events),
        (kind::ACK, b""),
        (kind::CLIENT_HELLO, b""),
        (kind::CLIENT_BYE, b"\0"),
        (kind::SERVER_BYE, b"\x01"),
        (22, b""),
    ] {
        table.host().send(kind, payload);
    }
    // Of version 1, that is not ours.
    let accept = Datagram::new(kind::ACCEPT, PUBLIC, &[]).bytes();
    table.host().send_raw(&accept);
    table.world.for_ms(200);
    assert_eq!(table.state(), State::LoggingIn);
    assert_eq!(table.stat("ignored-unbound"), 11);
    assert_eq!(table.stat("ignored-version"), 1);
    assert_eq!(table.player.get().told.len(), 0);
    assert_eq!(table.host().came.len(), 1);
    // None of it was noted: the ServerHello is the first that is acknowledged.
    let hello = table.host().hello();
    table.world.for_ms(10);
    assert_eq!(table.state(), State::Playing);
    let ping = table.newest();
    assert_eq!((ping.kind, ping.ack), (kind::PING, hello.sequence));
    assert_eq!(ping.ack_bits, 0);
}

#[test]
fn r89_what_is_malformed_lets_nobody_in_and_sends_nobody_away() {
    let mut table = Greeted::unanswered();
    for (kind, payload) in [
        (kind::CONNECT_CHALLENGE, &[7; 7][..]),
        (kind::CONNECT_CHALLENGE, &[7; 9]),
        (kind::HELLO_REJECTED, b""),
        (kind::HELLO_REJECTED, b"\x01\0"),
        (kind::SERVER_HELLO, &[1; 8]),
        (kind::SERVER_HELLO, &[1; 10]),
    ] {
        table.host().send_raw(&outside(kind, payload).bytes());
    }
    for bad in [
        server_hello(0, 2, 0),
        server_hello(1, 0, 0),
        server_hello(1, 2, 4),
    ] {
        table.host().send_raw(&bad.bytes());
    }
    table.world.for_ms(10);
    assert_eq!(table.stat("ignored-malformed"), 9);
    // What stands outside of sessions names none.
    for kind in [kind::CONNECT_CHALLENGE, kind::HELLO_REJECTED] {
        let mut named = outside(kind, &[7; 8]);
        named.session = Token::Public(PUBLIC);
        table.host().send_raw(&named.bytes());
    }
    table.world.for_ms(285);
    assert_eq!(table.stat("ignored-wrong-token"), 2);
    assert_eq!(table.state(), State::LoggingIn);
    assert_eq!(table.newest().cookie(), 0);
}

#[test]
fn r124_a_session_of_somebody_before_us_is_ended_first() {
    for (ack, sequence) in [(0, 1), (41, 42), (0xFFFE, 0xFFFF)] {
        let mut table = Greeted::unanswered();
        let mut old = server_hello(77, 78, 1).sequence(500);
        (old.ack, old.ack_bits) = (ack, 1);
        table.host().token = 77;
        table.host().talk.strict = false;
        table.host().send_raw(&old.bytes());
        table.world.for_ms(10);
        let [.., (_, bye), (_, hello)] = &table.host().came[..] else {
            panic!("a bye and a hello");
        };
        assert_eq!((bye.kind, bye.token), (kind::CLIENT_BYE, 77));
        assert_eq!((bye.sequence, bye.ack), (sequence, 500));
        assert_eq!((hello.kind, hello.cookie()), (kind::CLIENT_HELLO, 0));
        assert_eq!(table.state(), State::LoggingIn);
        // The farewell may be lost: it is said as often as the old session comes.
        for _ in 0..3 {
            table.host().send_raw(&old.bytes());
        }
        table.world.for_ms(10);
        assert_eq!(table.host().of(kind::CLIENT_BYE).len(), 4);
        assert_eq!(table.host().of(kind::CLIENT_HELLO).len(), 2);
        table.world.for_ms(250);
        assert_eq!(table.host().of(kind::CLIENT_HELLO).len(), 3);
        // Our own is another.
        table.host().restart(SECRET, PUBLIC);
        table.host().hello();
        table.world.for_ms(10);
        assert_eq!(table.state(), State::Playing);
        assert_eq!((table.newest().token, table.newest().sequence), (SECRET, 0));
    }
}

#[test]
fn r124_an_old_session_whose_newest_number_is_ffff_is_known_by_its_bits() {
    let mut table = Greeted::unanswered();
    let mut old = server_hello(77, 78, 1);
    (old.ack, old.ack_bits) = (0xFFFF, 1);
    table.host().talk.strict = false;
    table.host().send_raw(&old.bytes());
    table.world.for_ms(10);
    assert_eq!(table.state(), State::LoggingIn);
    let byes = table.host().of(kind::CLIENT_BYE);
    assert_eq!((byes[0].1.token, byes[0].1.sequence), (77, 0));
}

#[test]
fn who_leaves_before_it_has_a_session_says_nothing() {
    let mut table = Greeted::unanswered();
    table.world.stop(CLIENT);
    table.assert_ended(End::Left, 0);
    assert_eq!(table.host().came.len(), 1);
}

#[test]
fn a_server_that_restarts_within_the_handshake_lets_it_in_at_once() {
    // Before it has answered, and when the cookie that it gave is on its way back.
    for ms in [0, 5, 10, 15, 249, 1_000] {
        let mut host = Greeter::new(SERVER, SECRET, PUBLIC);
        host.greeting.admit = false;
        let mut table = Greeted::by(host);
        table.world.for_ms(ms);
        table.host().restart(SECRET + 1, PUBLIC + 1);
        table.host().greeting.admit = true;
        table.until(600, |player| player.count("Joined") == 1);
        table.until(50, |player| player.client.rtt_ms().is_some());
        let newest = table.newest();
        assert_eq!(newest.token, SECRET + 1, "after {ms} ms");
    }
}

#[test]
fn a_long_load_goes_on_saying_hello() {
    let client = Client::v2(address(SERVER), "R9", "").expect("a good name");
    assert_eq!(client.state(), State::LoggingIn);
    let mut table = Greeted::unanswered();
    for _ in 0..20 {
        table.world.net.now += 50;
        table.act(|client, env| client.keep_alive(env));
    }
    table.world.for_ms(5);
    assert_eq!(table.host().came.len(), 5);
}

#[test]
fn it_wants_no_connection_and_closes_any() {
    let mut table = Greeted::unanswered();
    assert!(!table.player.get().client.wants_connection());
    assert!(!table.player.get().client.rejoins());
    table
        .world
        .dial(CLIENT, address(OWN), address("198.51.100.9:1"));
    table.world.for_ms(50);
    assert_eq!(table.world.connections(CLIENT), (0, 0));
    assert_eq!(table.state(), State::LoggingIn);
}

#[test]
fn a_name_or_room_outside_its_rule_is_refused_before_anything_is_sent() {
    let client = |name, room| Client::v2(address(SERVER), name, room).err();
    for bad in ["", "seventeen bytes..", "a\nb", "\u{7F}"] {
        assert_eq!(client(bad, ""), Some(BadHello::Name));
    }
    assert_eq!(client("R9", "seventeen bytes.."), Some(BadHello::Room));
    for good in ["", "1", "sixteen bytes ok"] {
        assert_eq!(client("R9", good), None);
    }
}
