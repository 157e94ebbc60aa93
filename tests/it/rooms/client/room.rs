//! The picture of a room.

use super::Table;
use super::host::{Said, entity, position, string};

/// What an entity prints as, of those that are known.
fn place(table: &Table, id: u32) -> Option<(f32, f32)> {
    let player = table.player.get();
    let seen = player.client.entities().iter().find(|seen| seen.id == id);
    seen.and_then(|seen| seen.position)
}

#[test]
fn what_is_told_of_entities_is_kept() {
    let mut table = Table::in_room();
    table.say(4, &entity(7, 1, 3));
    table.say(4, &entity(2, 1, 255));
    let health = [&[0, 2, 0, 0, 0, 7][..], &(-5_i32).to_be_bytes()].concat();
    let own = b"\x01\x00game";
    let update = [&position(7, 1.5, 2.0)[..], &health, own].concat();
    table.say(5, &update);
    let player = table.player.get();
    let seen = player.client.entities();
    let about = |at: usize| (seen[at].id, seen[at].kind, seen[at].owner, seen[at].health);
    assert_eq!(about(0), (2, 1, None, None));
    assert_eq!(about(1), (7, 1, Some(3), Some(-5)));
    assert_eq!(seen[1].position, Some((1.5, 2.0)));
    assert_eq!((player.count("Created"), player.count("Updated")), (2, 1));
    let custom = "Custom { component: 256, bytes: [103, 97, 109, 101] }";
    assert_eq!(player.count(custom), 1);
}

#[test]
fn r87_an_older_update_is_late() {
    let mut table = Table::in_room();
    table.say(4, &entity(1, 1, 0));
    let late = Said {
        kind: 5,
        id: table.host().next_id,
        token: 0xFFFF_FFFF,
        payload: position(1, 1.0, 1.0),
    };
    table.host().next_id += 1;
    table.say(5, &position(1, 2.0, 2.0));
    table.raw(&late.bytes());
    assert_eq!(place(&table, 1), Some((2.0, 2.0)));
    assert_eq!(table.stat("ignored-late-update"), 1);
    assert_eq!(table.count("Updated"), 1);
}

#[test]
fn r87_a_deleted_entity_stays_deleted() {
    let mut table = Table::in_room();
    table.say(4, &entity(1, 1, 0));
    table.say(6, &1_u32.to_be_bytes());
    assert_eq!(table.count("Gone { entity: 1 }"), 1);
    // Its 04, said once more, and an Update.
    table.say(4, &entity(1, 1, 0));
    table.say(5, &position(1, 2.0, 2.0));
    // And one whose 06 came first.
    table.say(6, &9_u32.to_be_bytes());
    table.say(4, &entity(9, 1, 0));
    assert_eq!(table.entities(), []);
    assert_eq!(table.stat("ignored-deleted"), 3);
    assert_eq!(table.stat("ignored-unknown-entity"), 0);
    assert_eq!(table.count("Gone"), 1);
}

#[test]
fn r88_an_unknown_entity_draws_an_init_once_a_second() {
    let mut table = Table::in_room();
    table.world.for_ms(500);
    table.host().came.clear();
    let begin = table.world.now();
    for _ in 0..60 {
        table.say(5, &position(5, 2.0, 2.0));
        table.world.for_ms(45);
    }
    let inits = table.host().times(0x0F);
    let after: Vec<u64> = inits.iter().map(|at| (at - begin) / 100).collect();
    // The one on entering was half a second before.
    assert_eq!(after, [5, 15, 25], "{inits:?} since {begin}");
    table.say(4, &entity(5, 1, 0));
    table.world.for_ms(300);
    table.host().came.clear();
    for _ in 0..16 {
        table.say(5, &position(5, 2.0, 2.0));
        table.world.for_ms(45);
    }
    assert!(table.host().of(0x0F).len() <= 1, "a sign of life");
    assert_eq!(place(&table, 5), Some((2.0, 2.0)));
}

#[test]
fn an_update_that_overtakes_its_entity_is_not_lost() {
    let mut table = Table::in_room();
    table.say(5, &position(3, 2.0, 4.0));
    assert_eq!(table.entities(), []);
    table.say(4, &entity(3, 1, 0));
    assert_eq!(place(&table, 3), Some((2.0, 4.0)));
    table.say(5, &position(8, 2.0, 4.0));
    table.say(6, &8_u32.to_be_bytes());
    table.say(4, &entity(8, 1, 0));
    assert_eq!(table.entities(), [3]);
}

#[test]
fn r89_a_shot_that_no_update_names_for_a_second_is_gone() {
    let mut table = Table::in_room();
    table.say(4, &entity(1, 1, 0));
    table.say(4, &entity(2, 2, 0));
    table.world.for_ms(700);
    table.say(5, &position(2, 10.0, 2.0));
    table.world.for_ms(900);
    assert_eq!(table.entities(), [1, 2]);
    table.world.for_ms(150);
    assert_eq!(table.entities(), [1], "a ship may lie still");
    assert_eq!(table.count("Gone { entity: 2 }"), 1);
    // It was only unheard of: it comes back when it is shown again.
    table.say(4, &entity(2, 2, 0));
    assert_eq!(table.entities(), [1, 2]);
}

#[test]
fn r90_entities_go_with_the_room_and_nothing_of_another_one_is_taken() {
    let mut table = Table::in_room();
    table.say(4, &entity(1, 1, 0));
    let late = Said {
        kind: 4,
        id: table.host().next_id,
        token: 0xFFFF_FFFF,
        payload: entity(2, 1, 0),
    };
    let late_line = Said {
        kind: 3,
        id: late.id + 1,
        token: 0xFFFF_FFFF,
        payload: [string("Leia"), string("bye")].concat(),
    };
    table.host().next_id += 2;
    table.ask(|client| client.leave_room());
    table.say(0x0B, &[1]);
    assert_eq!(table.count("OutOfRoom { is_over: false }"), 1);
    assert_eq!(table.entities(), []);
    table.say(4, &entity(3, 1, 0));
    table.say(5, &position(3, 1.0, 1.0));
    table.ask(|client| client.create_room("lair", "", 4));
    table.say(7, &[1, 0]);
    assert_eq!(table.count("InRoom { name: \"lair\", seat: 0 }"), 1);
    table.raw(&late.bytes());
    table.raw(&late_line.bytes());
    assert_eq!((table.entities(), table.count("Chat")), (vec![], 0));
    assert_eq!(table.stat("ignored-outside-room"), 4);
    table.say(4, &entity(1, 1, 0));
    assert_eq!(table.entities(), [1]);
}

#[test]
fn r90_a_long_stay_is_no_other_room() {
    let mut table = Table::in_room();
    table.say(4, &entity(1, 1, 0));
    // An arena at play takes half of all ids in less than twenty minutes.
    for step in 0..70 {
        let x = step as f32;
        for _ in 0..999 {
            table.host().say(5, &position(1, -1.0, 0.0));
        }
        table.say(5, &position(1, x, 0.0));
        assert_eq!(place(&table, 1), Some((x, 0.0)), "after {step} thousand");
    }
    assert_eq!(table.stat("ignored-outside-room"), 0);
}

#[test]
fn what_overtakes_the_answer_that_lets_in_is_taken_when_it_is_repeated() {
    let mut table = Table::open();
    table.ask(|client| client.join_room("den", ""));
    let id = table.host().next_id;
    let line = Said {
        kind: 3,
        id: id + 1,
        token: 0xFFFF_FFFF,
        payload: [string("Leia"), string("hi")].concat(),
    };
    table.raw(&line.bytes());
    assert_eq!(table.count("Chat"), 0);
    table.say(9, &[&[1, 1][..], &string("den")].concat());
    table.raw(&line.bytes());
    table.raw(&line.bytes());
    assert_eq!(table.count("Chat"), 1);
}

#[test]
fn a_room_ends_for_its_members_by_the_owners_word() {
    let mut table = Table::in_room();
    table.say(8, &[&[1][..], &string("lair")].concat());
    assert_eq!(table.count("OutOfRoom"), 0);
    table.say(8, &[&[1][..], &string("den")].concat());
    assert_eq!(table.count("OutOfRoom { is_over: true }"), 1);
    assert_eq!(table.player.get().client.room(), None);
}
