//! A whole evening, from the first account to the last Logout.

use super::bytes::{Ask, Page, Said, kind};
use super::hall::{Hall, Told};
use crate::world::PeerId;
use crate::world::seeds::seed;

#[test]
fn a_whole_evening() {
    let mut hall = Hall::new(seed());
    let peers = [1, 2, 3].map(|host| hall.enter(host));
    accounts(&mut hall, peers);
    a_room_for_two(&mut hall, peers);
    the_owner_leaves(&mut hall, peers);
    out_and_in_again(&mut hall, peers);
    let told = hall.told();
    let joined = told.iter().filter(|it| matches!(it, Told::Joined { .. }));
    let left = told.iter().filter(|it| matches!(it, Told::Left { .. }));
    assert_eq!((joined.count(), left.count()), (3, 3));
}

fn login(user: &str) -> Ask {
    Ask::login(user, "long enough")
}

fn accounts(hall: &mut Hall, [axel, bea, carl]: [PeerId; 3]) {
    let register = |user| Ask::register(user, "long enough");
    for (peer, user) in [(axel, "Axel"), (bea, "Béa"), (carl, "Carl")] {
        assert_eq!(hall.ask(peer, &register(user)), Said::Register(true, 0));
    }
    assert_eq!(hall.ask(carl, &register("Axel")), Said::Register(false, 1));
    let wrong = Ask::login("Axel", "wrong");
    assert_eq!(hall.ask(axel, &wrong), Said::Login(false));
    for (peer, user) in [(axel, "Axel"), (bea, "Béa"), (carl, "Carl")] {
        let answer = hall.ask(peer, &login(user));
        assert_eq!(answer, Said::Login(true));
    }
}

/// It has a password; they fly and they talk.
fn a_room_for_two(hall: &mut Hall, [axel, bea, carl]: [PeerId; 3]) {
    let answer = hall.ask(axel, &Ask::create("den", "secret", 2));
    assert_eq!(answer, Said::CreateRoom(true, 0));
    let answer = hall.ask(bea, &Ask::join("den", "guess"));
    assert_eq!(answer, Said::WrongPassword);
    let answer = hall.ask(bea, &Ask::join("den", "secret"));
    assert_eq!(answer, Said::Join(true, 1, "den".into()));
    let answer = hall.ask(carl, &Ask::join("den", "secret"));
    assert_eq!(answer, Said::FullRoom);
    let answer = hall.ask(carl, &Ask::join("dne", "secret"));
    assert_eq!(answer, Said::Join(false, 255, "dne".into()));
    hall.settle();

    // Both see two ships, and one of them move.
    for peer in [axel, bea] {
        assert_eq!(hall[peer].picture.as_ref().unwrap().seen.len(), 2);
    }
    hall.send(axel, &Ask::key(262));
    hall.send(bea, &Ask::key(65));
    hall.for_ms(1000);
    for peer in [axel, bea] {
        let seen = &hall[peer].picture.as_ref().unwrap().seen;
        let at: Vec<_> = seen.values().map(|seen| (seen.owner, seen.at)).collect();
        let expected = [(0, Some((110.0, 100.0))), (1, Some((190.0, 100.0)))];
        assert_eq!(at, expected);
    }

    // Words.
    let line = Said::Chat {
        user: "Béa".into(),
        text: "salut".into(),
    };
    assert_eq!(hall.ask(bea, &Ask::chat("salut")), line);
    hall.for_ms(1000);
    assert_eq!(hall[axel].heard(kind::CHAT), [&line]);
    assert_eq!(hall[axel].came(kind::CHAT).len(), 4);
    assert_eq!(hall[bea].came(kind::CHAT).len(), 1);
}

/// The room is Béa's then, and she deletes it over Carl's head.
fn the_owner_leaves(hall: &mut Hall, [axel, bea, carl]: [PeerId; 3]) {
    assert_eq!(hall.ask(axel, &Ask::leave()), Said::Leave(true));
    let answer = hall.ask(carl, &Ask::join("den", "secret"));
    assert_eq!(answer, Said::Join(true, 0, "den".into()));
    let no = Said::DeleteRoom(false, "den".into());
    let yes = Said::DeleteRoom(true, "den".into());
    assert_eq!(hall.ask(carl, &Ask::delete("den")), no);
    assert_eq!(hall.ask(bea, &Ask::delete("den")), yes);
    hall.settle();
    assert!(hall[carl].heard(kind::DELETE_ROOM).contains(&&yes));
    assert!(hall[carl].picture.is_none() && hall[carl].end.is_none());
    let none = Page {
        total: 0,
        first: 0,
        rooms: vec![],
    };
    assert_eq!(hall.ask(carl, &Ask::rooms(0)), Said::Page(none));
}

fn out_and_in_again(hall: &mut Hall, [axel, bea, _]: [PeerId; 3]) {
    hall[axel].send(&Ask::logout());
    hall.settle();
    assert_eq!(hall[axel].logged_out(), Some(0));
    let elsewhere = hall.enter(4);
    let answer = hall.ask(elsewhere, &login("Béa"));
    assert_eq!(answer, Said::Login(true));
    hall.settle();
    assert_eq!(hall[bea].logged_out(), Some(5));
    assert_eq!(hall.count("sessions"), 2);
}

#[test]
fn five_hundred_rooms_in_pages() {
    let mut hall = Hall::with(seed(), |settings| {
        settings
            .limits
            .set("rooms-sessions", 600)
            .expect("in range");
    });
    let name = |number: u16| format!("room {number} {}", "x".repeat(usize::from(number % 20)));
    for number in 0..500 {
        let peer = hall.silent_user(&format!("u{number}"), number + 1);
        let password = if number % 3 == 0 { "pw" } else { "" };
        let size = (number % 16) as u8 + 1;
        let ask = Ask::create(&name(number), password, size);
        assert_eq!(hall.ask(peer, &ask), Said::CreateRoom(true, 0));
        // Nobody is kept alive here.
        hall.for_ms(0);
        if number % 25 == 24 {
            for host in 0..=number {
                let peer = PeerId(usize::from(host));
                hall[peer].send(&Ask::init());
            }
        }
    }
    let reader = hall.user("reader", 1000);
    let mut rooms = Vec::new();
    let mut pages = 0;
    while rooms.len() < 500 {
        let first = rooms.len() as u16;
        let Said::Page(page) = hall.ask(reader, &Ask::rooms(first)) else {
            panic!("no page");
        };
        assert_eq!((page.total, page.first), (500, first));
        assert!(!page.rooms.is_empty());
        rooms.extend(page.rooms);
        pages += 1;
        // Within the budget of requests.
        hall.for_ms(50);
    }
    assert!(pages < 20, "{pages} pages");
    for (number, room) in rooms.iter().enumerate() {
        assert_eq!(room.name, name(number as u16));
        assert_eq!(room.private, number % 3 == 0);
        assert_eq!(
            (room.players, room.max_players),
            (1, (number % 16) as u8 + 1)
        );
    }
}
