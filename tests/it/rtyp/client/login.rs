//! The client's TCP side: the login, what it takes from the server, how it closes.

use std::io;

use anteroom::protocol::rtyp::wire::Reason;
use anteroom::protocol::rtyp::{BadName, Client, End, State};

use super::super::bytes::{kind, login_accepted, login_rejected, logout};
use super::super::host::Host;
use super::super::peer::SERVER;
use super::{CLIENT, OWN, TOKEN, Table, address};
use crate::world::pipe::{Ending, Pieces};

const LOGOUT_LEFT: [u8; 2] = [4, 0];

#[test]
fn r34_login_and_first_connect_are_the_bytes_of_the_example() {
    let mut host = Host::new(SERVER, TOKEN);
    host.player = 2;
    let mut table = Table::playing_at(host);
    assert_eq!(table.host().messages[0].1, [1, 1, 2, 0, 0x52, 0x39]);
    assert_eq!(
        table.host().datagrams[0].1.bytes(),
        [
            0x52, 0x54, 0x59, 0x50, 1, 1, 0, 0, 0xFF, 0xFF, 0, 0, 0, 0, 0xEF, 0xBE, 0xAD, 0xDE
        ]
    );
    assert_eq!(
        table.player.get().notices()[..2],
        ["Accepted { player: 2 }", "Joined"]
    );
    assert_eq!(table.player.get().client.player(), Some(2));
}

#[test]
fn r1_messages_are_taken_in_pieces_of_any_size() {
    for pieces in [Pieces::Whole, Pieces::Of(1), Pieces::Of(3)] {
        let mut table = Table::new(Host::silent(SERVER, TOKEN));
        table.world.net.pieces = pieces;
        table.dial();
        table.world.for_ms(100);
        assert_eq!(table.host().messages.len(), 1);
        let both = [login_accepted(TOKEN, 3, 4242), logout(1)].concat();
        table.host().write(&both);
        table.world.for_ms(100);
        table.assert_ended(End::Logout(Reason::Shutdown));
        let player = table.player.get();
        assert_eq!(player.notices()[0], "Accepted { player: 3 }");
    }
}

#[test]
fn r2_a_wrong_length_ends_it_before_the_body() {
    for prefix in [&b"\0\0"[..], b"\x01\x02", b"\xFF\xFF"] {
        let mut table = Table::logging_in(Host::silent(SERVER, TOKEN));
        table.host().write(prefix);
        table.assert_ended(End::Malformed);
    }
    let mut table = Table::logging_in(Host::silent(SERVER, TOKEN));
    table.host().write(b"\0\x02");
    table.world.for_ms(1000);
    assert_eq!(table.state(), State::LoggingIn, "512 bytes are awaited");
}

/// Bodies that no message to a client has.
const MALFORMED: [&[u8]; 12] = [
    b"\0",
    b"\x01\x01\x02\0R9",
    b"\x05\0",
    b"\xFF",
    b"\x02\x01\0\0\0\0\x92",
    b"\x02\x01\0\0\0\0\x92\x10\0",
    b"\x02\0\0\0\0\0\x92\x10",
    b"\x02\x01\0\0\0\x04\x92\x10",
    b"\x02\x01\0\0\0\0\0\0",
    b"\x03",
    b"\x03\x01\0",
    b"\x04",
];

#[test]
fn r3_what_is_malformed_closes_without_a_word() {
    for body in MALFORMED {
        let frame = [&(body.len() as u16).to_le_bytes(), body].concat();
        for mut table in [
            Table::logging_in(Host::silent(SERVER, TOKEN)),
            Table::binding(),
            Table::playing(),
        ] {
            table.host().write(&frame);
            table.assert_ended(End::Malformed);
            assert_eq!(table.host().messages.len(), 1, "only the login was said");
        }
    }
}

#[test]
fn r49_what_is_unexpected_closes_without_a_word() {
    let accepted = login_accepted(7, 0, 4242);
    for mut table in [Table::binding(), Table::playing()] {
        table.host().write(&accepted);
        table.assert_ended(End::Malformed);
        assert_eq!(table.host().messages.len(), 1);
    }
    let mut table = Table::playing();
    table.host().write(&login_rejected(1));
    table.assert_ended(End::Malformed);
    let mut table = Table::logging_in(Host::silent(SERVER, TOKEN));
    table.host().write(&logout(1));
    table.assert_ended(End::Malformed);
}

#[test]
fn r49_its_own_logout_is_the_last_it_says() {
    for mut table in [Table::binding(), Table::playing()] {
        table.act(|client, env| client.logout(env));
        table.world.for_ms(50);
        assert_eq!(table.state(), State::Ended(End::Left));
        assert_eq!(table.last_message(), LOGOUT_LEFT);
        assert!(matches!(table.host().end, Some((_, Ending::Fin))));
        let said = table.host().datagrams.len();
        table.act(|client, env| client.logout(env));
        table.act(|client, env| client.keep_alive(env));
        table.world.for_ms(10_000);
        assert_eq!(table.host().datagrams.len(), said);
        assert_eq!(table.host().messages.len(), 2);
    }
}

#[test]
fn before_the_login_is_accepted_it_leaves_without_a_word() {
    let mut table = Table::logging_in(Host::silent(SERVER, TOKEN));
    table.world.stop(CLIENT);
    table.assert_ended(End::Left);
    assert_eq!(table.host().messages.len(), 1);
}

#[test]
fn r48_a_rejection_is_told_and_an_unknown_one_taken_alike() {
    for reason in [1, 4, 8, 9, 255] {
        let mut table = Table::logging_in(Host::silent(SERVER, TOKEN));
        table.host().write(&login_rejected(reason));
        table.assert_ended(End::Rejected(reason));
        assert_eq!(table.host().messages.len(), 1);
    }
}

#[test]
fn r48_a_logout_is_told_and_an_unknown_one_is_a_shutdown() {
    for (code, reason) in [
        (0, Reason::Left),
        (2, Reason::TimedOut),
        (3, Reason::ProtocolError),
        (4, Reason::Kicked),
        (5, Reason::Shutdown),
        (255, Reason::Shutdown),
    ] {
        for mut table in [Table::binding(), Table::playing()] {
            table.host().write(&logout(code));
            table.assert_ended(End::Logout(reason));
            assert_eq!(table.host().messages.len(), 1, "it answers nothing");
        }
    }
}

#[test]
fn a_connection_that_ends_ends_it_and_its_port_is_silent() {
    for reset in [false, true] {
        for mut table in [
            Table::logging_in(Host::silent(SERVER, TOKEN)),
            Table::binding(),
            Table::playing(),
        ] {
            if reset {
                table.host().abort();
            } else {
                table.host().fin();
            }
            table.world.for_ms(50);
            assert_eq!(table.state(), State::Ended(End::Closed));
            let said = table.host().datagrams.len();
            table.world.for_ms(10_000);
            assert_eq!(table.host().datagrams.len(), said);
        }
    }
}

#[test]
fn nobody_listens() {
    let mut table = Table::new(Host::new("198.51.100.1:9", TOKEN));
    table.dial();
    table.world.for_ms(100);
    let refused = End::Unconnected(io::ErrorKind::ConnectionRefused);
    assert_eq!(table.state(), State::Ended(refused));
}

#[test]
fn connection_and_answer_have_10_s_together() {
    let mut table = Table::new(Host::silent(SERVER, TOKEN));
    table.world.for_ms(9_999);
    assert_eq!(table.state(), State::Connecting);
    table.world.for_ms(1);
    let late = End::Unconnected(io::ErrorKind::TimedOut);
    assert_eq!(table.state(), State::Ended(late));
    // A connection that stands too late is closed.
    table.dial();
    table.world.for_ms(100);
    assert!(table.host().messages.is_empty());
    assert_eq!(table.world.connections(CLIENT), (0, 0));

    let mut table = Table::new(Host::silent(SERVER, TOKEN));
    table.world.for_ms(6_000);
    table.dial();
    table.world.for_ms(3_999);
    assert_eq!(table.state(), State::LoggingIn);
    table.world.for_ms(1);
    table.assert_ended(End::NoAnswer);
    assert_eq!(table.host().messages.len(), 1);
}

#[test]
fn a_second_connection_is_not_its_own() {
    let mut table = Table::playing();
    let own = table.world.dial(CLIENT, address(OWN), address(SERVER));
    table.host().hosting.log_in = false;
    table.world.for_ms(50);
    assert_eq!(table.state(), State::Playing);
    assert_eq!(table.world.connections(CLIENT).0, 1);
    assert_eq!(table.host().messages.len(), 1);
    assert_eq!(own.side, 0);
}

#[test]
fn r4_a_name_outside_its_rule_is_refused_before_anything_is_sent() {
    for bad in ["", "seventeen bytes..", "a\nb", "\u{7F}"] {
        assert_eq!(Client::new(bad).err(), Some(BadName));
    }
    for good in ["R", "sixteen bytes ok", "J\u{FC}rgen", "\u{85}"] {
        assert!(Client::new(good).is_ok(), "{good}");
    }
    assert_eq!(kind::CONNECT, 1);
}
