//! The hello that comes again, or in vain, and the example of the page.

use anteroom::engine::Verdict;

use super::super::bytes::{Datagram, Token, kind};
use super::super::dice::Rigged;
use super::super::hall::{Answer, Hall, SERVICE, address, server};
use super::super::peer::Peer;
use super::knock;
use crate::world::seeds::seed;

#[test]
fn r117_the_hello_again() {
    let mut hall = Hall::new(seed());
    let peer = hall.enter_2_silent("R9", 1);
    let other = hall.enter("other", 2);
    hall.settle();
    let last = hall.now();
    hall[peer].send(kind::DATA, b"last");
    let (secret, public) = (hall[peer].secret(), hall[peer].public());
    let before = hall[peer].talk().log.len();
    let cookie = hall[peer].cookie();
    // 1000 within 2 s, whatever they bring.
    for round in 0..1000 {
        let hello = match round % 3 {
            0 => Datagram::hello(cookie, b"", b"R9"),
            1 => Datagram::hello(cookie, b"9", b""),
            _ => Datagram::hello(cookie, b"1", b"other"),
        };
        hall[peer].raw(&hello.bytes());
        hall.for_ms(2);
    }
    hall.settle();
    let log = &hall[peer].talk().log[before..];
    let again = log
        .iter()
        .filter(|got| got.datagram.kind == kind::SERVER_HELLO);
    let mut sequences = Vec::new();
    for got in again {
        let it = &got.datagram;
        assert_eq!(it.payload, [&secret.to_le_bytes()[..], &[0]].concat());
        assert_eq!(it.session, Token::Public(public));
        sequences.push(it.sequence);
    }
    assert_eq!(sequences.len(), 1000);
    assert!(sequences.is_sorted_by(|a, b| a < b));
    assert_eq!(hall.count("sessions"), 2);
    assert_eq!(hall.count("logins"), 2);
    // Its end is where it was.
    hall.until(11_000, |world| world.stat(SERVICE, "ended-timed-out") == 1);
    let took = hall.now() - 5 - last;
    assert!((10_000..10_020).contains(&took), "{took} ms");
    hall.settle();
    let joins = hall[other].events().iter().filter(|event| event.kind == 1);
    assert_eq!(joins.count(), 1, "it joined once");
}

#[test]
fn r118_the_hello_in_vain() {
    let mut hall = Hall::new(seed());
    hall.shelf.open().answer = Answer::Wait;
    let peer = knock(&mut hall, &address(1), b"", b"R9");
    for name in ["R9", "R9", "other"] {
        hall[peer].hello(name);
        hall.settle();
    }
    assert_eq!(hall.count("ignored-waiting"), 3);
    assert_eq!(hall.shelf.open().tickets.len(), 1);
    assert_eq!(hall.count("sessions"), 1);
    let ticket = hall.shelf.open().tickets[0];
    assert_eq!(hall.answer(ticket, Verdict::Admit), Ok(()));
    hall.settle();
    assert!(hall[peer].is_bound());
    // From an endpoint of version 1, with a right cookie or without.
    hall.shelf.open().answer = Answer::Admit;
    let before = hall.add(Peer::v2_silent(&address(2)));
    hall[before].hello("R9");
    hall.settle();
    let cookie = hall[before].cookie();
    let old = hall.enter_silent("old", 2);
    let out = hall.tally(SERVICE, hall[old].udp).out_datagrams;
    for cookie in [0, 5, cookie] {
        hall[old].raw(&Datagram::hello(cookie, b"", b"new").bytes());
    }
    hall.settle();
    assert_eq!(hall.count("ignored-hello"), 3);
    assert_eq!(hall.tally(SERVICE, hall[old].udp).out_datagrams, out);
    hall[old].send(kind::DATA, b"x");
    hall.settle();
    assert_eq!(hall[peer].count(kind::DATA), 1);
}

/// The bytes in a line of the document's example.
fn bytes(hex: &str) -> Vec<u8> {
    let digits = hex.split_whitespace();
    digits
        .map(|byte| u8::from_str_radix(byte, 16).expect("two digits"))
        .collect()
}

#[test]
fn r129_example_of_version_2() {
    let key = [0x0302_0100, 0x0706_0504, 0x0B0A_0908, 0x0F0E_0D0C];
    let secret = [0x5566_7788, 0x1122_3344];
    let dice = Rigged::new(&[&key[..], &secret, &[0xCAFE_F00D]].concat());
    let mut hall = Hall::with_dice(seed(), Box::new(dice));
    hall.net.now = 32_000;
    let peer = hall.add(Peer::v2_silent("192.0.2.7:5000"));
    let endpoint = hall[peer].udp;
    let rest = "01 00 31  02 00 52 39";
    let header = "52 54 59 50  02  10  00 00  FF FF  00 00 00 00  00 00 00 00 00 00 00 00";
    let mut say = |cookie: &str| {
        let sent = hall.tally(SERVICE, endpoint).out_datagrams;
        hall[peer].raw(&bytes(&format!("{header} {cookie} {rest}")));
        hall.for_ms(10);
        assert!(hall.tally(SERVICE, endpoint).out_datagrams > sent);
    };
    let cookie = "30 2C 3C 04 C7 01 A2 5D";
    say("00 00 00 00 00 00 00 00");
    say(cookie);
    let challenge = "52 54 59 50  02  11  00 00  FF FF  00 00 00 00  00 00 00 00";
    let challenge = bytes(&format!("{challenge} {cookie}"));
    assert_eq!(hall[peer].outside[0].1.bytes(), challenge);
    let greeting = bytes(
        "52 54 59 50  02  12  00 00  FF FF  00 00 00 00  0D F0 FE CA
         88 77 66 55 44 33 22 11  00",
    );
    assert_eq!(hall[peer].talk().log[0].datagram.bytes(), greeting);
    assert_eq!(server().port(), 4242);
}
