//! What is answered, at once or later, and what never is.

use std::collections::HashSet;

use super::super::*;
use crate::engine::{Entropy, NoEntropy};
use crate::guard::limits::Limits;

const WINDOW_MS: u64 = 60_000;

#[test]
fn an_account_logs_in_with_its_password_alone() {
    let mut desk = Desk::new(Store::in_memory());
    assert!(!desk.accounts.store().is_file() && desk.accounts.store().is_empty());
    assert_eq!(desk.login("axel", "password"), Answer::Wrong);
    assert_eq!(desk.register("axel", "password"), Answer::Registered);
    assert_eq!(desk.register("axel", "passwort"), Answer::Taken);
    assert_eq!(desk.login("axel", "password"), Answer::LoggedIn);
    assert_eq!(desk.login("axel", "passwort"), Answer::Wrong);
    assert_eq!(desk.login("Axel", "password"), Answer::Wrong);
    assert_eq!(desk.accounts.store().len(), 1);
}

#[test]
fn names_and_passwords_have_their_shape() {
    let mut desk = Desk::new(Store::in_memory());
    let long = "ä".repeat(8);
    let too_long = format!("{long}x");
    for name in ["", &too_long, "a\nb", "a\0", "a\x7F"] {
        assert_eq!(desk.ask(register(name, "password")), Some(Answer::BadName));
        assert_eq!(desk.ask(login(name, "password")), Some(Answer::Wrong));
    }
    let (least, most) = ("1234567", "x".repeat(65));
    for password in ["", least, &most] {
        let answer = desk.ask(register("axel", password));
        assert_eq!(answer, Some(Answer::BadPassword), "{password}");
    }
    for password in ["", &most] {
        assert_eq!(desk.ask(login("axel", password)), Some(Answer::Wrong));
    }
    assert_eq!(desk.register(&long, "12345678"), Answer::Registered);
    assert_eq!(desk.register("x", &most[..64]), Answer::Registered);
    assert_eq!(desk.login("x", &most[..64]), Answer::LoggedIn);
    assert_eq!(desk.login("x", least), Answer::Wrong);
    assert_eq!(desk.stat("accounts-bad-name"), 5);
    assert_eq!(desk.stat("accounts-bad-password"), 3);
    assert_eq!(desk.stat("accounts-wrong"), 8);
    assert_eq!(desk.stat("accounts-wrong-unseen"), 7);
}

#[test]
fn r74_an_unknown_user_costs_the_hash_of_a_wrong_password() {
    let mut desk = Desk::new(Store::in_memory());
    let cost = |desk: &mut Desk, question| {
        let before = desk.stat("accounts-hashes");
        let answer = desk.answer(question);
        (answer, desk.stat("accounts-hashes") - before)
    };
    let registered = cost(&mut desk, register("axel", "password"));
    assert_eq!(registered, (Answer::Registered, 1));
    let wrong = cost(&mut desk, login("axel", "passwort"));
    let unknown = cost(&mut desk, login("nobody", "passwort"));
    assert_eq!((wrong, unknown), ((Answer::Wrong, 1), (Answer::Wrong, 1)));
    assert_eq!(
        cost(&mut desk, login("axel", "password")),
        (Answer::LoggedIn, 1)
    );
}

#[test]
fn r76_five_failures_later_the_right_password_is_wrong_unseen_for_a_minute() {
    let mut desk = Desk::new(Store::in_memory());
    desk.register("axel", "password");
    desk.register("eve", "password");
    for _ in 0..5 {
        assert_eq!(desk.login("axel", "passwort"), Answer::Wrong);
    }
    let hashes = desk.stat("accounts-hashes");
    assert_eq!(desk.ask(login("axel", "password")), Some(Answer::Wrong));
    assert_eq!(desk.stat("accounts-hashes"), hashes);
    assert_eq!(desk.stat("accounts-wrong-unseen"), 1);
    // Others are not locked out, here or there.
    assert_eq!(desk.login("eve", "password"), Answer::LoggedIn);
    let elsewhere = login_from("192.0.2.2", "axel", "password");
    assert_eq!(desk.answer(elsewhere), Answer::LoggedIn);
    desk.now = desk.now + (WINDOW_MS - 1);
    assert_eq!(desk.ask(login("axel", "password")), Some(Answer::Wrong));
    desk.now = desk.now + 1;
    assert_eq!(desk.login("axel", "password"), Answer::LoggedIn);
}

#[test]
fn r77_thirty_failures_of_an_address_count_for_every_user() {
    let mut desk = Desk::new(Store::in_memory());
    desk.register("axel", "password");
    for n in 0..30 {
        let ip = format!("2001:db8::{n}");
        let answer = desk.answer(login_from(&ip, &format!("user{}", n % 10), "passwort"));
        assert_eq!(answer, Answer::Wrong);
    }
    assert_eq!(desk.stat("accounts-wrong-unseen"), 0);
    let axel = login_from("2001:db8::99", "axel", "password");
    assert_eq!(desk.ask(axel), Some(Answer::Wrong));
    desk.now = desk.now + WINDOW_MS;
    assert_eq!(desk.answer(axel), Answer::LoggedIn);
}

#[test]
fn many_guesses_at_once_are_no_way_round_the_budget() {
    let mut desk = Desk::new(Store::in_memory());
    desk.register("axel", "password");
    let store = desk.accounts.workers.store().clone();
    let disk = store.file();
    // Both workers wait, so nothing is judged before everything is asked.
    assert_eq!(desk.ask(register("user0", "password")), None);
    assert_eq!(desk.ask(register("user1", "password")), None);
    let guesses = (0..60).map(|_| desk.ask(login("axel", "passwort")));
    let answers: Vec<_> = guesses.collect();
    assert_eq!(answers[..5], [None; 5]);
    assert_eq!(answers[5..], [Some(Answer::Busy); 55], "never called wrong");
    drop(disk);
    let told: Vec<Answer> = (0..7).map(|_| desk.told().1).collect();
    assert_eq!(told.iter().filter(|it| **it == Answer::Wrong).count(), 5);
    assert_eq!(desk.ask(login("axel", "password")), Some(Answer::Wrong));
}

/// A disk that hangs: whoever registers waits for it, but neither who asks nor who logs in.
#[test]
fn r72_the_queue_is_bounded_and_nothing_else_waits_for_the_disk() {
    let settings = Settings {
        queue: 3,
        ..SETTINGS
    };
    let mut desk = Desk::with_settings(Store::in_memory(), settings);
    desk.register("axel", "password");
    let store = desk.accounts.workers.store().clone();
    let disk = store.file();
    assert_eq!(desk.ask(register("user0", "password")), None);
    assert_eq!(desk.login("axel", "password"), Answer::LoggedIn);
    for n in 1..5 {
        let user = format!("user{n}");
        assert_eq!(desk.ask(register(&user, "password")), None, "{user}");
    }
    // Two run and three wait.
    assert_eq!(desk.ask(register("user5", "password")), Some(Answer::Busy));
    assert_eq!(desk.ask(login("axel", "password")), Some(Answer::Busy));
    assert_eq!(desk.told.try_iter().count(), 0);
    drop(disk);
    for _ in 0..5 {
        assert_eq!(desk.told().1, Answer::Registered);
    }
    assert_eq!(desk.login("axel", "password"), Answer::LoggedIn);
    assert_eq!(desk.register("user5", "password"), Answer::Registered);
    assert_eq!(desk.stat("accounts-busy"), 2);
    assert_eq!(desk.stat("accounts-registered"), 7);
}

#[test]
fn of_two_who_register_a_name_at_once_one_gets_it() {
    let mut desk = Desk::new(Store::in_memory());
    let store = desk.accounts.workers.store().clone();
    let disk = store.file();
    assert_eq!(desk.ask(register("axel", "password")), None);
    assert_eq!(desk.ask(register("axel", "passwort")), None);
    drop(disk);
    let answers = HashSet::from([desk.told().1 as u8, desk.told().1 as u8]);
    assert_eq!(
        answers,
        HashSet::from([Answer::Registered as u8, Answer::Taken as u8])
    );
    assert_eq!(desk.accounts.store().len(), 1);
}

#[test]
fn beyond_the_limit_of_accounts_nobody_registers() {
    let settings = Settings {
        accounts_max: 2,
        ..SETTINGS
    };
    let mut desk = Desk::with_settings(Store::in_memory(), settings);
    assert_eq!(desk.register("user0", "password"), Answer::Registered);
    assert_eq!(desk.register("user1", "password"), Answer::Registered);
    let hashes = desk.stat("accounts-hashes");
    assert_eq!(desk.register("user2", "password"), Answer::Busy);
    assert_eq!(desk.register("user1", "password"), Answer::Taken);
    assert_eq!(desk.stat("accounts-hashes"), hashes);
    assert_eq!(desk.stat("accounts-failures"), 1);
    assert_eq!(desk.login("user1", "password"), Answer::LoggedIn);
}

#[test]
fn without_entropy_nobody_registers_and_all_log_in() {
    struct Broken;
    impl Entropy for Broken {
        fn fill(&mut self, _: &mut [u8]) -> Result<(), NoEntropy> {
            Err(NoEntropy)
        }
    }
    let mut desk = Desk::new(Store::in_memory());
    desk.register("axel", "password");
    let mut ask = |question| {
        let accounts = &mut desk.accounts;
        accounts.ask(desk.now, &mut Broken, ticket(0), question)
    };
    assert_eq!(ask(register("eve", "password")), Some(Answer::Busy));
    assert_eq!(ask(login("axel", "password")), None);
    assert_eq!(desk.told().1, Answer::LoggedIn);
}

#[test]
fn debug_tells_no_password() {
    let mut desk = Desk::new(Store::in_memory());
    desk.register("axel", "geheimnis");
    let question = login("axel", "geheimnis");
    let text = format!("{question:?} {:?}", desk.accounts);
    assert!(text.contains("axel") && !text.contains("geheim"), "{text}");
    assert!(!text.contains("argon2"), "{text}");
}

/// With the real cost, and as many workers as the machine allows.
#[test]
fn r71_the_defaults_are_the_documents() {
    let (teller, told) = channel();
    let tell = move |_, answer| teller.send(answer).expect("the test");
    let mut limits = Limits::default();
    limits.set("hash-queue", 1).expect("in range");
    let mut accounts = Accounts::new(Store::in_memory(), &limits, tell).expect("threads");
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let workers = (cores - 1).max(1);
    let mut dice = Seeded::new(1);
    let mut ask = |user: &str| {
        let question = register(user, "password");
        accounts.ask(Time::ZERO, &mut dice, ticket(0), question)
    };
    for n in 0..=workers {
        assert_eq!(ask(&format!("user{n}")), None);
    }
    assert_eq!(ask("one too many"), Some(Answer::Busy));
    for _ in 0..=workers {
        let answer = told.recv_timeout(PATIENCE);
        assert_eq!(answer, Ok(Answer::Registered));
    }
    let phc = accounts.store().get("user0").expect("registered");
    assert!(phc.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{phc}");
    let other = accounts.store().get("user1").expect("registered");
    assert_ne!(phc, other, "each has a salt of its own");
}
