//! Version 1: a client that hears nothing any more logs in again by itself.

use std::io;

use anteroom::protocol::rtyp::wire::Reason;
use anteroom::protocol::rtyp::{Client, End, State};

use super::super::bytes::{Event, Token, kind, login_rejected, logout};
use super::super::hall::server;
use super::super::host::{Host, Hosting};
use super::super::peer::SERVER;
use super::super::talk::Talk;
use super::party::{Party, SERVICE};
use super::{CLIENT, Player, TOKEN, Table, address};
use crate::world::link::Weather;
use crate::world::machine::Shared;
use crate::world::pipe::Ending;
use crate::world::seeds::seed;

/// The port of the second connection's socket.
const OWN_2: &str = "10.0.0.1:5001";
/// The token of the second session.
const TOKEN_2: u32 = 0x0BAD_CAFE;

const LOGIN: [u8; 6] = [1, 1, 2, 0, 0x52, 0x39];

impl Table {
    /// The client plays and knows somebody, and nothing is heard from now on.
    fn deaf() -> Self {
        let mut table = Self::new(Host::new(SERVER, TOKEN));
        let client = Client::rejoining("R9").expect("a good name");
        *table.player.get() = Player::of(client);
        table.world.machine_has(CLIENT, address(OWN_2));
        table.dial();
        table.until(1_000, |player| player.count("Joined") == 1);
        table.host().event(Event::joined(1, "Luke"));
        table.world.for_ms(200);
        assert!(table.player.get().client.is_present(1));
        table.host().hosting = Hosting::SILENT;
        table.host().send(kind::ACK, &[]);
        table.world.for_ms(5);
        table
    }

    /// It wants to log in again.
    fn wanting() -> Self {
        let mut table = Self::deaf();
        table.world.for_ms(5_999);
        assert!(!table.wants());
        table.world.for_ms(1);
        assert!(table.wants());
        table
    }

    /// It has asked to log in again.
    fn asking() -> Self {
        let mut table = Self::wanting();
        table.ask();
        table
    }

    fn ask(&mut self) {
        let before = self.host().messages.len();
        self.dial();
        self.world.for_ms(15);
        assert_eq!(self.host().messages.len(), before + 1);
        assert_eq!(self.last_message(), LOGIN);
        assert!(!self.wants());
    }

    /// The host accepts the login, and the endpoint that comes.
    fn accept_again(&mut self) {
        self.accept_as(TOKEN_2);
    }

    fn accept_as(&mut self, token: u32) {
        let host = self.host();
        host.session = token;
        host.player = 2;
        host.talk = Talk::new(token, 0, 0);
        host.client = None;
        host.hosting = Hosting::HONEST;
        host.accept_login();
        let before = self.player.get().count("Joined");
        self.until(50, |player| player.count("Joined") == before + 1);
    }

    fn wants(&self) -> bool {
        self.player.get().client.wants_connection()
    }

    /// How the client has ended the connection of this index, if it has.
    fn ended(&mut self, index: usize) -> Option<Ending> {
        self.host().streams[index].1
    }

    fn reject(&mut self, reason: u8) {
        self.host().write(&login_rejected(reason));
        self.world.for_ms(10);
    }
}

#[test]
fn r127_after_6_s_without_a_word_it_wants_another_connection_and_says_no_logout() {
    let mut table = Table::asking();
    table.world.for_ms(1_000);
    assert_eq!(table.state(), State::Playing, "the first is not given up");
    assert_eq!(table.ended(0), None);
    assert_eq!(table.host().messages.len(), 2);
    let pings = table.host().came(kind::PING).len();
    assert!((7..=9).contains(&pings), "{pings}");
}

#[test]
fn who_does_not_rejoin_wants_none() {
    let mut table = Table::playing();
    table.host().hosting = Hosting::SILENT;
    table.world.for_ms(29_000);
    assert!(!table.wants() && !table.player.get().client.rejoins());
    assert_eq!(table.state(), State::Playing);
}

#[test]
fn r127_the_first_is_closed_when_the_second_is_accepted_which_plays_from_a_new_port() {
    let mut table = Table::asking();
    let said = table.host().datagrams.len();
    table.accept_again();
    table.world.for_ms(100);
    assert_eq!(table.ended(0), Some(Ending::Reset));
    assert_eq!(table.ended(1), None);
    assert_eq!(table.host().messages.len(), 2, "nothing but the logins");
    {
        let player = table.player.get();
        let told = player.notices();
        assert_eq!(told[3..], ["Accepted { player: 2 }", "Joined"]);
        assert_eq!(player.client.player(), Some(2));
        assert!(!player.client.is_present(1), "nobody is known any more");
    }
    assert_eq!(table.host().client, Some(address(OWN_2)));
    let (_, connect) = &table.host().datagrams[said];
    assert_eq!(
        (connect.kind, connect.session),
        (kind::CONNECT, Token::Shared(TOKEN_2))
    );
    assert_eq!((connect.sequence, connect.ack), (0, 0xFFFF));
    // And so again.
    table.host().hosting = Hosting::SILENT;
    table.world.for_ms(6_100);
    table.ask();
    table.accept_as(TOKEN);
    assert_eq!(table.state(), State::Playing);
    assert_eq!(table.ended(1), Some(Ending::Reset));
}

#[test]
fn r127_anything_valid_on_the_first_gives_the_second_up() {
    for (kind, payload) in [
        (kind::ACK, &b""[..]),
        (kind::DATA, b"\x01x"),
        (kind::PING, b"\0\0\0\0"),
    ] {
        let mut table = Table::asking();
        table.host().talk.strict = false;
        table.host().send(kind, payload);
        table.world.for_ms(10);
        assert_eq!(table.ended(1), Some(Ending::Reset));
        assert_eq!(table.ended(0), None);
        let mut table = Table::wanting();
        table.host().talk.strict = false;
        table.host().send(kind, payload);
        table.world.for_ms(5);
        assert!(!table.wants());
        // One that stands too late is closed, and all goes on as before.
        table.dial();
        table.host().hosting = Hosting::HONEST;
        table.world.for_ms(60_000);
        assert_eq!(table.ended(1), Some(Ending::Reset));
        assert_eq!(table.host().messages.len(), 1);
        assert_eq!(table.state(), State::Playing);
        assert_eq!(
            table.player.get().told.len(),
            3 + usize::from(kind == kind::DATA)
        );
    }
}

#[test]
fn r127_what_is_not_valid_does_not() {
    let mut table = Table::asking();
    let mut stale = table.host().talk.datagram(kind::ACK, &[]);
    stale.session = Token::Shared(TOKEN + 1);
    table.host().raw(&stale.bytes());
    stale.session = Token::Shared(TOKEN);
    stale.sequence = 0;
    table.host().raw(&stale.bytes());
    table.world.for_ms(10);
    assert_eq!(table.ended(1), None);
    table.accept_again();
}

#[test]
fn r127_attempts_come_one_by_one_2_s_apart_until_30_s_are_over() {
    let mut table = Table::asking();
    let mut attempts = 1;
    while table.state() == State::Playing {
        table.reject(6);
        table.world.for_ms(1_900);
        assert!(!table.wants());
        table.world.for_ms(100);
        if table.state() == State::Playing {
            table.ask();
            attempts += 1;
        }
    }
    table.world.for_ms(50);
    assert_eq!(table.state(), State::Ended(End::Silent));
    assert!((11..=12).contains(&attempts), "{attempts}");
    assert_eq!(table.host().streams.len(), attempts + 1);
    assert_eq!(table.ended(0), Some(Ending::Fin));
    let ended = |table: &mut Table, it| table.ended(it) == Some(Ending::Reset);
    assert!((1..=attempts).all(|it| ended(&mut table, it)));
    assert!(!table.wants());
}

#[test]
fn its_logout_at_the_end_goes_to_the_first_and_the_second_is_closed() {
    let mut table = Table::asking();
    table.world.stop(CLIENT);
    table.world.for_ms(50);
    assert_eq!(table.state(), State::Ended(End::Left));
    assert_eq!(table.ended(0), Some(Ending::Fin));
    assert_eq!(table.ended(1), Some(Ending::Reset));
}

/// The server hears it, and so holds its name.
#[test]
fn r128_refused_with_its_own_name_it_closes_the_first_before_it_asks_again() {
    let mut table = Table::asking();
    table.reject(4);
    assert_eq!(table.state(), State::Playing);
    assert_eq!(table.ended(0), None, "it may still be heard of");
    table.world.for_ms(2_000);
    assert_eq!(table.ended(0), Some(Ending::Reset));
    assert_eq!(table.state(), State::Connecting);
    assert!(table.wants());
    let said = table.host().datagrams.len();
    table.ask();
    assert_eq!(table.state(), State::LoggingIn);
    // Its own end may not have come there yet.
    table.reject(4);
    table.world.for_ms(2_000);
    table.ask();
    assert_eq!(table.host().datagrams.len(), said);
    table.accept_again();
    assert_eq!(table.state(), State::Playing);
    assert_eq!(table.player.get().count("Ended"), 0);
}

#[test]
fn r128_refused_with_its_own_name_and_then_heard_it_keeps_the_first() {
    let mut table = Table::asking();
    table.reject(4);
    table.host().hosting = Hosting::HONEST;
    table.host().send(kind::ACK, &[]);
    table.world.for_ms(30_000);
    assert_eq!(table.ended(0), None);
    assert_eq!(table.state(), State::Playing);
}

/// A ghost is ended in favour of its owner, and the two connections know no order.
#[test]
fn the_end_of_the_first_does_not_end_a_login_that_is_asked_for() {
    for says_so in [true, false] {
        let mut table = Table::asking();
        if says_so {
            table.host().write_to(0, &logout(2));
        }
        table.host().fin_of(0);
        table.world.for_ms(10);
        assert_eq!(table.state(), State::LoggingIn);
        table.accept_again();
        assert_eq!(table.state(), State::Playing);
        assert_eq!(table.player.get().count("Ended"), 0);
        // But a game that has no place any more is not asked for ever.
        let mut table = Table::asking();
        table.host().fin_of(0);
        table.world.for_ms(10);
        table.reject(5);
        table.assert_ended(End::Rejected(5));
    }
}

#[test]
fn a_login_that_is_asked_for_in_vain_ends_as_the_first_did() {
    let mut table = Table::asking();
    table.host().write_to(0, &logout(2));
    table.world.for_ms(10);
    while table.state() == State::LoggingIn {
        table.reject(6);
        table.world.for_ms(2_000);
        if table.wants() {
            table.ask();
        }
    }
    assert_eq!(table.state(), State::Ended(End::Logout(Reason::TimedOut)));
    let over = table.player.get().told.last().expect("its end").0;
    assert!(over < table.player.get().told[1].0 + 31_000);
}

#[test]
fn any_other_logout_of_the_server_is_final() {
    for (code, reason) in [
        (1, Reason::Shutdown),
        (3, Reason::ProtocolError),
        (4, Reason::Kicked),
    ] {
        let mut table = Table::asking();
        table.host().write_to(0, &logout(code));
        table.world.for_ms(10);
        table.assert_ended(End::Logout(reason));
        assert_eq!(table.ended(1), Some(Ending::Reset));
    }
}

#[test]
fn a_first_that_closes_while_none_is_asked_for_ends_it() {
    for mut table in [Table::deaf(), Table::wanting()] {
        table.host().fin_of(0);
        table.world.for_ms(10);
        assert_eq!(table.state(), State::Ended(End::Closed));
        assert!(!table.wants());
    }
}

#[test]
fn an_attempt_that_fails_in_whatever_way_is_followed_by_another() {
    let mut table = Table::wanting();
    // It cannot be made.
    table
        .player
        .get()
        .client
        .unconnected(io::ErrorKind::HostUnreachable);
    assert!(!table.wants());
    table.world.for_ms(2_000);
    assert!(table.wants());
    // It is not made in time.
    table.world.for_ms(6_000);
    assert!(!table.wants());
    table.world.for_ms(2_000);
    assert!(table.wants());
    // It says something malformed.
    table.ask();
    table.host().write(b"\x01\0\x09");
    table.world.for_ms(10);
    assert_eq!(table.ended(1), Some(Ending::Reset));
    table.world.for_ms(2_000);
    // It closes.
    table.ask();
    table.host().fin();
    table.world.for_ms(2_005);
    assert!(table.wants());
    // It is not answered; and then it is.
    table.ask();
    table.world.for_ms(6_000);
    assert_eq!(table.ended(3), Some(Ending::Reset));
    table.world.for_ms(2_000);
    assert_eq!(table.state(), State::Playing);
    table.ask();
    table.accept_again();
}

/// Where the client comes from when Luke has the first address.
const NEXT: &str = "10.0.0.2:5000";
const NEXT_2: &str = "10.0.0.2:5001";

/// The service, Luke and a client that rejoins.
fn party() -> (Party, usize) {
    let mut party = Party::new(seed(), Weather::default());
    party.enter("Luke");
    let client = Client::rejoining("R9").expect("a good name");
    let player = Shared::new(Player::of(client));
    let own = [NEXT, NEXT_2].map(address);
    let machine = party.world.machine(Box::new(player.clone()), &own);
    party.players.push(player);
    party.world.dial(machine, own[0], server());
    party.until_playing(1, 100);
    party.world.for_ms(2_000);
    (party, machine)
}

/// Connects whenever the client wants it, until it plays again.
fn rejoin(party: &mut Party, machine: usize) {
    let player = party.players[1].clone();
    let joins = player.get().count("Joined");
    for _ in 0..10 {
        let is_next = |it: &Player| it.client.wants_connection() || it.count("Joined") > joins;
        party.world.until(20_000, |_| is_next(&player.get()));
        if player.get().count("Joined") > joins {
            return;
        }
        party.world.dial(machine, address(NEXT), server());
        party
            .world
            .until(1_000, |_| !player.get().client.wants_connection());
    }
    panic!("it logs in for ever");
}

#[test]
fn who_was_moved_by_its_router_is_back_in_its_place_of_a_running_game() {
    let (mut party, machine) = party();
    party.act(0, |client| client.start().expect("room"));
    party.world.for_ms(100);
    party.world.readdress(machine, 0, address("10.0.0.2:6000"));
    let moved_at = party.world.now();
    rejoin(&mut party, machine);
    assert!(party.world.now() - moved_at < 8_000);
    party.world.for_ms(1_000);
    let player = party.players[1].get();
    assert_eq!(player.client.player(), Some(1));
    assert_eq!(player.count("GameStarted"), 2);
    assert!(player.client.is_present(0));
    assert_eq!(player.count("Ended"), 0);
    drop(player);
    let luke = party.players[0].get();
    assert_eq!(luke.count("PlayerLeft { player: 1, reason: TimedOut }"), 1);
    assert_eq!(luke.count("PlayerJoined { player: 1"), 2);
    drop(luke);
    assert_eq!(party.world.stat(SERVICE, "sessions"), 2);
}

#[test]
fn who_is_heard_and_does_not_hear_gives_its_place_up_for_another() {
    let (mut party, machine) = party();
    let link = party.world.net.link(server(), address(NEXT));
    link.weather.loss = 1_000;
    let player = party.players[1].clone();
    let wants = || player.get().client.wants_connection();
    party.world.until(7_000, |_| wants());
    party.world.dial(machine, address(NEXT), server());
    party.world.until(1_000, |_| !wants());
    party.world.until(3_000, |_| wants());
    assert_eq!(player.get().client.state(), State::Connecting);
    // The socket of a connection is as new as that.
    party.world.readdress(machine, 0, address("10.0.0.2:5002"));
    rejoin(&mut party, machine);
    party.world.for_ms(1_000);
    let luke = party.players[0].get();
    assert_eq!(luke.count("PlayerLeft { player: 1, reason: Left }"), 1);
    drop(luke);
    let player = party.players[1].get();
    assert_eq!(player.client.state(), State::Playing);
    assert_eq!(player.count("Ended"), 0);
}

#[test]
fn a_line_that_was_dead_for_a_while_keeps_its_session() {
    let (mut party, machine) = party();
    party.cut(address(NEXT));
    party.world.for_ms(7_000);
    assert!(party.players[1].get().client.wants_connection());
    // The connection takes longer than the datagrams do.
    party.world.net.stream_delay_ms = 500;
    for (from, to) in [(address(NEXT), server()), (server(), address(NEXT))] {
        party.world.net.link(from, to).weather.loss = 0;
    }
    party.world.dial(machine, address(NEXT), server());
    party.world.for_ms(20_000);
    let player = party.players[1].get();
    assert_eq!(player.client.state(), State::Playing);
    assert_eq!(player.count("Accepted"), 1);
}
