//! What the client believes, and when it gives a sign of life.

use anteroom::engine::Seeded;
use anteroom::protocol::rooms::State;

use super::host::{Said, TOKEN, string};
use super::{Table, address};

#[test]
fn r81_init_goes_at_once_with_the_token_and_after_every_second_of_silence() {
    let mut table = Table::open();
    let first = table.host().came[0].clone();
    assert_eq!((first.1.kind, first.1.id, first.1.token), (0x0F, 1, TOKEN));
    assert_eq!(first.1.payload, b"");
    table.world.for_ms(3_100);
    let at = first.0;
    let expected = [at, at + 1_000, at + 2_000, at + 3_000];
    assert_eq!(table.host().times(0x0F), expected);
    // A request is a sign of life too.
    table.world.for_ms(500);
    table.ask(|client| client.rooms(0));
    table.say(0x0A, &[0, 0, 0, 0, 0]);
    table.world.for_ms(900);
    assert_eq!(table.host().times(0x0F).len(), 4);
    table.world.for_ms(200);
    assert_eq!(table.host().times(0x0F).len(), 5);
    assert_eq!(table.host().stream_bytes, 0, "it is silent over TCP");
}

#[test]
fn r81_entering_a_room_draws_an_init_at_once() {
    let mut table = Table::in_room();
    assert_eq!(table.host().of(0x0F).len(), 2);
    let ids: Vec<u16> = table.host().came.iter().map(|(_, said)| said.id).collect();
    assert_eq!(ids, [1, 2, 3, 4], "one by one from 1");
}

#[test]
fn r78_only_the_servers_address_port_and_token_are_believed() {
    let mut table = Table::open();
    table.ask(|client| client.login("R9", "password"));
    let yes = Said {
        kind: 0,
        id: 9,
        token: 0xFFFF_FFFF,
        payload: vec![1],
    };
    for from in ["10.9.9.9:4244", "10.9.9.8:4243"] {
        table.host().raw_from(address(from), &yes.bytes());
    }
    table.world.for_ms(5);
    assert_eq!(table.stat("ignored-source"), 2);
    let forged = Said {
        token: TOKEN,
        ..yes.clone()
    };
    table.raw(&forged.bytes());
    assert_eq!(table.stat("ignored-token"), 1);
    let mut damaged = yes.bytes();
    damaged[12] = 0;
    table.raw(&damaged);
    assert_eq!(table.stat("ignored-checksum"), 1);
    table.raw(&yes.bytes()[..13]);
    assert_eq!(table.stat("ignored-short"), 1);
    let malformed = Said {
        payload: vec![2],
        ..yes.clone()
    };
    table.raw(&malformed.bytes());
    let over_udp = Said {
        kind: 2,
        payload: vec![1],
        ..yes.clone()
    };
    table.raw(&over_udp.bytes());
    assert_eq!(table.stat("ignored-malformed"), 2);
    assert_eq!(table.count("LoggedIn"), 0);
    table.raw(&yes.bytes());
    assert_eq!(table.count("LoggedIn"), 1);
}

#[test]
fn r40_the_last_1024_ids_are_known_and_older_ones_are_dropped() {
    let mut table = Table::in_room();
    let line = |id: u16| {
        let payload = [string("Leia"), string(&format!("line {id}"))].concat();
        Said {
            kind: 3,
            id,
            token: 0xFFFF_FFFF,
            payload,
        }
        .bytes()
    };
    for id in [1_100, 1_100, 77, 76, 77, 2_000, 1_100] {
        table.raw(&line(id));
    }
    let player = table.player.get();
    let lines = player.told.iter().filter(|(_, it)| it.starts_with("Chat"));
    let lines: Vec<&str> = lines.map(|(_, it)| &it[28..it.len() - 3]).collect();
    assert_eq!(lines, ["line 1100", "line 77", "line 2000"]);
    drop(player);
    assert_eq!(table.stat("ignored-repeated"), 3);
    assert_eq!(table.stat("ignored-old"), 1);
}

#[test]
fn whatever_the_server_says_the_client_stands_and_keeps_bounds() {
    let mut table = Table::in_room();
    let mut dice = Seeded::new(7);
    for round in 0..20_000_u32 {
        let count = [0, 1, 2, 4, 7, 14, 14, 28][dice.below(8) as usize];
        let mut payload: Vec<u8> = (0..count).map(|_| dice.below(3) as u8).collect();
        let kind = dice.below(18) as u8;
        if kind == 4 {
            payload = super::host::entity(round, 1 + dice.below(2) as u16, 255);
        }
        if dice.below(4) == 0 {
            let player = table.player.clone();
            let client = &mut player.get().client;
            // Whether it may ask now is its affair.
            let _ = client.leave_room();
            let _ = client.join_room("den", "");
            let _ = client.rooms(0);
            let _ = client.chat("hi");
        }
        if dice.below(50) == 0 {
            payload = [&[1, 1], &string("den")[..]].concat();
            table.say(9, &payload);
        }
        table.say(kind, &payload);
        assert!(table.entities().len() <= 4_096);
    }
    assert_eq!(table.state(), State::Open);
    assert!(table.stat("ignored-malformed") > 1_000);
    assert!(table.stat("updates") > 0 && table.stat("answers") > 100);
}
