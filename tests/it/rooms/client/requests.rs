//! Requests: repeated, answered, given up, one of a type at a time.

use anteroom::protocol::rooms::{Ask, SendError};

use super::Table;
use super::host::string;

#[test]
fn r82_a_request_goes_five_times_under_one_id_and_then_fails() {
    let mut table = Table::open();
    table.ask(|client| client.login("R9", "password"));
    table.world.for_ms(2_480);
    assert_eq!(table.count("NoAnswer"), 0);
    table.world.for_ms(40);
    assert_eq!(table.count("NoAnswer(Login)"), 1);
    table.world.for_ms(2_000);
    let logins = table.host().of(0);
    let at = logins[0].0;
    let times: Vec<u64> = logins.iter().map(|(time, _)| time - at).collect();
    assert_eq!(times, [0, 500, 1_000, 1_500, 2_000]);
    assert!(logins.iter().all(|(_, said)| *said == logins[0].1));
    let payload = [string("R9"), string("password")].concat();
    assert_eq!(logins[0].1.payload, payload);
    // What comes now is not waited for.
    table.say(0, &[1]);
    assert_eq!(table.count("LoggedIn"), 0);
    assert_eq!(table.stat("ignored-unasked"), 1);
}

#[test]
fn r82_every_request_with_an_answer_is_repeated_and_key_is_not() {
    let mut table = Table::in_room();
    {
        let mut player = table.player.get();
        let client = &mut player.client;
        client.register("R9", "password").expect("it may");
        client.login("R9", "password").expect("it may");
        client.chat("hi").expect("it may");
        client.create_room("x", "", 4).expect("it may");
        client.delete_room("den").expect("it may");
        client.join_room("x", "").expect("it may");
        client.rooms(0).expect("it may");
        client.leave_room().expect("it may");
    }
    table.host().came.clear();
    let player = table.player.clone();
    let key = |env: &mut anteroom::engine::Env<'_>| player.get().client.key(env, 65);
    table
        .world
        .call(super::CLIENT, key)
        .expect("it is in a room");
    table.world.for_ms(2_600);
    for kind in [0, 1, 3, 7, 8, 9, 0x0A, 0x0B] {
        assert_eq!(table.host().of(kind).len(), 5, "{kind}");
    }
    let keys = table.host().of(0x0C);
    assert_eq!(keys.len(), 1);
    assert_eq!(keys[0].1.payload, [0, 0, 0, 65]);
    assert_eq!(table.count("NoAnswer"), 8);
}

#[test]
fn r82_an_answer_ends_the_repetition() {
    let mut table = Table::open();
    table.ask(|client| client.register("R9", "password"));
    table.world.for_ms(600);
    table.say(1, &[0, 1]);
    assert_eq!(table.count("NotRegistered(Taken)"), 1);
    table.world.for_ms(3_000);
    assert_eq!(table.host().of(1).len(), 2);
    assert_eq!(table.count("NoAnswer"), 0);
}

#[test]
fn r83_a_second_request_of_a_type_is_refused_and_one_of_another_type_is_not() {
    let mut table = Table::open();
    table.ask(|client| client.login("R9", "password"));
    let again = table.player.get().client.login("R9", "password");
    assert_eq!(again, Err(SendError::Waiting));
    assert!(table.player.get().client.is_asking(Ask::Login));
    table.ask(|client| client.register("R9", "password"));
    table.say(0, &[0]);
    assert_eq!(table.count("NotLoggedIn"), 1);
    assert!(!table.player.get().client.is_asking(Ask::Login));
    // It had not to be repeated: the next goes at once.
    table.ask(|client| client.login("R9", "password"));
    assert_eq!(table.host().of(0).len(), 2);
}

#[test]
fn r83_after_a_repeated_request_the_type_rests_for_a_second() {
    let mut table = Table::open();
    table.ask(|client| client.login("R9", "wrong word"));
    table.world.for_ms(600);
    assert_eq!(table.host().of(0).len(), 2);
    table.say(0, &[0]);
    let answered = table.world.now();
    table.ask(|client| client.login("R9", "password"));
    // The late second answer to the first is not taken for one to this.
    table.say(0, &[1]);
    assert_eq!(table.count("LoggedIn"), 0);
    table.world.for_ms(1_100);
    let logins = table.host().times(0);
    assert_eq!(logins.len(), 3);
    assert!(
        (990..=1_005).contains(&(logins[2] - answered)),
        "{logins:?}"
    );
    table.say(0, &[1]);
    assert_eq!(table.count("LoggedIn"), 1);
}

#[test]
fn r84_a_line_is_the_answer_only_with_the_own_user_and_text() {
    let mut table = Table::in_room();
    table.ask(|client| client.chat("hi"));
    let line = |user: &str, text: &str| [string(user), string(text)].concat();
    for (user, text) in [("Leia", "hi"), ("R9", "ho")] {
        table.say(3, &line(user, text));
    }
    assert_eq!((table.count("Said"), table.count("Chat")), (0, 1));
    table.say(3, &line("R9", "hi"));
    table.say(3, &line("R9", "hi"));
    assert_eq!((table.count("Said"), table.count("Chat")), (1, 1));
    assert_eq!(table.stat("ignored-unasked"), 2);
}

#[test]
fn r84_answers_of_another_name_or_page_are_not_waited_for() {
    let mut table = Table::open();
    table.ask(|client| client.join_room("den", "pw"));
    table.say(9, &[&[1, 0][..], &string("lair")].concat());
    assert_eq!(table.count("InRoom"), 0);
    table.say(0x0D, &[]);
    assert_eq!(table.count("NotJoined(WrongPassword)"), 1);
    table.say(0x0E, &[]);
    assert_eq!(table.count("NotJoined"), 1);
    table.ask(|client| client.rooms(7));
    table.say(0x0A, &[0, 9, 0, 0, 0]);
    assert_eq!(table.count("Rooms"), 0);
    let room = [&[0, 9, 0, 7, 1][..], &string("den"), &[1, 2, 16]].concat();
    table.say(0x0A, &room);
    assert_eq!(table.count("Rooms(Rooms { total: 9, first: 7"), 1);
    assert_eq!(table.stat("ignored-unasked"), 3);
}

#[test]
fn r86_what_is_outside_its_rule_is_refused_here() {
    let table = Table::open();
    let mut player = table.player.get();
    let client = &mut player.client;
    let long = |count: usize| "x".repeat(count);
    assert_eq!(client.login("", "pw"), Err(SendError::BadName));
    assert_eq!(client.login(&long(17), "pw"), Err(SendError::BadName));
    assert_eq!(client.login("R9", ""), Err(SendError::BadPassword));
    assert_eq!(
        client.register("R9", &long(65)),
        Err(SendError::BadPassword)
    );
    assert_eq!(client.create_room("a\nb", "", 4), Err(SendError::BadName));
    assert_eq!(client.join_room(&long(33), ""), Err(SendError::BadName));
    assert_eq!(client.join_room("den", "\t"), Err(SendError::BadPassword));
    assert_eq!(client.delete_room(""), Err(SendError::BadName));
    assert_eq!(client.chat(""), Err(SendError::BadText));
    assert_eq!(client.chat(&long(201)), Err(SendError::BadText));
    assert_eq!(client.chat("hi"), Err(SendError::NotInRoom));
}
