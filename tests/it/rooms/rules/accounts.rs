//! Section 6.1 and what section 7 asks of the service: who somebody is.

use anteroom::engine::Verdict;

use super::super::bytes::{Ask, Page, Said, kind};
use super::super::hall::{Answer, Hall, PASSWORD, Told};
use crate::world::seeds::seed;

#[test]
fn r3_no_contradictions() {
    // The peer refuses them in whatever comes; here is every kind of no.
    let mut hall = Hall::new(seed());
    let peer = hall.silent(1);
    assert_eq!(hall.ask(peer, &Ask::login("a", "b")), Said::Login(false));
    let answer = hall.ask(peer, &Ask::create("den", "", 4));
    assert_eq!(answer, Said::CreateRoom(false, 5));
    let answer = hall.ask(peer, &Ask::join("den", ""));
    assert_eq!(answer, Said::Join(false, 255, "den".into()));
    let answer = hall.ask(peer, &Ask::delete("den"));
    assert_eq!(answer, Said::DeleteRoom(false, "den".into()));
    assert_eq!(hall.ask(peer, &Ask::leave()), Said::Leave(false));
}

#[test]
fn r46_login() {
    let mut hall = Hall::new(seed());
    let peer = hall.silent_user("a", 1);
    let mut diary = hall.shelf.open();
    diary.users.insert("b".into(), PASSWORD.into());
    drop(diary);
    hall.told();
    // Logged in, it stays so; another user is false unasked.
    assert_eq!(
        hall.ask(peer, &Ask::login("b", PASSWORD)),
        Said::Login(false)
    );
    assert_eq!(hall.told(), []);
    assert_eq!(
        hall.ask(peer, &Ask::login("a", "wrong")),
        Said::Login(false)
    );
    hall.create(peer, "den", 4);
    assert_eq!(
        hall.ask(peer, &Ask::login("a", PASSWORD)),
        Said::Login(true)
    );
    let answer = hall.ask(peer, &Ask::join("den", ""));
    assert_eq!(answer, Said::Join(true, 0, "den".into()), "nothing changes");
    assert_eq!(hall.count("sessions"), 1);
    // The password comes to the accounts as it was sent.
    let told = Told::Login {
        user: "a".into(),
        password: "wrong".into(),
    };
    assert!(hall.told().contains(&told));
    assert_eq!(hall.count("logins"), 2);
    assert_eq!(hall.count("logins-wrong"), 2);
}

#[test]
fn r47_logged_in_elsewhere() {
    let mut hall = Hall::new(seed());
    let old = hall.silent_user("a", 1);
    hall.create(old, "den", 4);
    let other = hall.user("b", 2);
    hall.join(other, "den");
    let new = hall.enter(3);
    assert_eq!(hall.ask(new, &Ask::login("a", "wrong")), Said::Login(false));
    assert_eq!(hall[old].end, None, "not by a wrong password");
    hall.told();
    assert_eq!(hall.ask(new, &Ask::login("a", PASSWORD)), Said::Login(true));
    hall.settle();
    assert_eq!(hall[old].logged_out(), Some(5));
    assert_eq!(hall.count("ended-elsewhere"), 1);
    let left = |told: &&Told| matches!(told, Told::Left { .. });
    assert_eq!(hall.told().iter().filter(left).count(), 1);
    assert_eq!(
        hall.ask(other, &Ask::delete("den")),
        Said::DeleteRoom(true, "den".into())
    );
}

#[test]
fn r48_register() {
    let mut hall = Hall::new(seed());
    let peer = hall.silent(1);
    let register = Ask::register;
    let name = "sixteen bytes ok";
    let cases = [
        (register("", ""), 2),
        (register("x\u{7F}", "short"), 2),
        (register(name, "seven77"), 3),
        (register(name, &"x".repeat(65)), 3),
        (register(name, "control\u{1F}"), 3),
        (register(name, "eight888"), 0),
        (register(name, "another one"), 1),
        (register("b", &"x".repeat(64)), 0),
    ];
    for (ask, reason) in cases {
        let answer = hall.ask(peer, &ask);
        assert_eq!(answer, Said::Register(reason == 0, reason), "{ask:02X?}");
    }
    assert_eq!(hall.told().len(), 3, "nonsense is no question");
    // It logs nobody in.
    let none = Page {
        total: 0,
        first: 0,
        rooms: vec![],
    };
    assert_eq!(hall.ask(peer, &Ask::rooms(0)), Said::Page(none));
    let answer = hall.ask(peer, &Ask::create("den", "", 4));
    assert_eq!(answer, Said::CreateRoom(false, 5));
    assert_eq!(
        hall.ask(peer, &Ask::login(name, "eight888")),
        Said::Login(true)
    );
}

#[test]
fn r73_busy() {
    let mut hall = Hall::new(seed());
    let peer = hall.silent(1);
    hall.answers(Answer::Busy);
    let answer = hall.ask(peer, &Ask::register("a", "long enough"));
    assert_eq!(answer, Said::Register(false, 4));
    assert_eq!(hall.try_ask(peer, &Ask::login("a", "x")), None);
    assert_eq!(hall.count("logins-busy"), 1);
}

#[test]
fn r73_one_at_a_time_and_four_seconds() {
    let mut hall = Hall::new(seed());
    let peer = hall.silent(1);
    hall.answers(Answer::Wait);
    let id = hall.send(peer, &Ask::login("a", "x"));
    let ticket = hall.ticket();
    let asked = hall.now() - 6;
    for ask in [Ask::login("a", "y"), Ask::register("c", "long enough")] {
        hall.send(peer, &ask);
    }
    assert_eq!(hall.count("ignored-waiting"), 2);
    assert_eq!(hall.told().len(), 1);
    // Nonsense is answered meanwhile; and so is everything else.
    assert_eq!(hall.ask(peer, &Ask::login("", "")), Said::Login(false));
    assert_eq!(hall.ask(peer, &Ask::leave()), Said::Leave(false));
    hall[peer].forget();
    let left = asked + 4000 - hall.now();
    hall.for_ms(left - 1);
    hall[peer].send_as(&Ask::login("a", "x"), id);
    hall.for_ms(10);
    assert_eq!(hall.told().len(), 1, "over, and asked anew");
    let late = hall.answer(ticket, Verdict::Admit);
    assert!(late.is_err());
    hall.settle();
    assert!(hall[peer].log.is_empty(), "no answer at all");
    let answered = hall.answer(hall.ticket(), Verdict::Admit);
    assert_eq!(answered, Ok(()));
    let again = hall.answer(hall.ticket(), Verdict::Admit);
    assert!(again.is_err());
    hall.settle();
    assert_eq!(hall[peer].heard(kind::LOGIN), [&Said::Login(true)]);

    // Register is told that the accounts are busy.
    hall.send(peer, &Ask::register("c", "long enough"));
    hall.for_ms(3980);
    assert!(hall[peer].heard(kind::REGISTER).is_empty());
    hall.for_ms(20);
    let busy = Said::Register(false, 4);
    assert_eq!(hall[peer].heard(kind::REGISTER), [&busy]);
}

#[test]
fn r73_whose_session_is_gone_is_answered_nothing() {
    let mut hall = Hall::new(seed());
    let peer = hall.silent(1);
    hall.answers(Answer::Wait);
    hall.send(peer, &Ask::login("a", "x"));
    let ticket = hall.ticket();
    hall[peer].fin();
    hall.settle();
    assert!(hall.answer(ticket, Verdict::Admit).is_err());
    let next = hall.silent(2);
    assert!(hall.answer(ticket, Verdict::Admit).is_err());
    hall.settle();
    assert!(hall[next].log.is_empty());
}
