//! Section 6.2: rooms, seats and owners.

use super::super::bytes::{Ask, Listed, Page, Said, kind};
use super::super::hall::{Hall, SERVICE, Told};
use crate::world::PeerId;
use crate::world::seeds::seed;

fn users<const N: usize>(hall: &mut Hall) -> [PeerId; N] {
    std::array::from_fn(|number| hall.user(&format!("u{number}"), number as u16 + 1))
}

#[test]
fn r49_create_room() {
    let mut hall = Hall::with(seed(), |settings| {
        settings.limits.set("rooms-rooms", 2).expect("in range");
    });
    let [a, b, c] = users(&mut hall);
    let stranger = hall.enter(9);
    let long = "x".repeat(65);
    hall.create(a, "taken", 4);
    // Each with all faults that its order names behind the first.
    let cases = [
        (stranger, Ask::create("", &long, 0), 5),
        (a, Ask::create("", &long, 0), 6),
        (b, Ask::create("", &long, 0), 2),
        (b, Ask::create("taken", &long, 0), 7),
        (b, Ask::create("taken", "\n", 1), 7),
        (b, Ask::create("taken", "", 0), 4),
        (b, Ask::create("taken", "", 17), 4),
        (b, Ask::create("taken", "", 255), 4),
        (b, Ask::create("taken", "", 16), 1),
        (b, Ask::create("second", "pw", 1), 0),
        (c, Ask::create("taken", "", 16), 1),
        (c, Ask::create("third", "", 16), 3),
    ];
    for (peer, ask, reason) in cases {
        let answer = hall.ask(peer, &ask);
        assert_eq!(answer, Said::CreateRoom(reason == 0, reason), "{ask:02X?}");
    }
    assert_eq!(hall.count("rooms"), 2);
}

#[test]
fn r50_join_room() {
    let mut hall = Hall::new(seed());
    let [a, b, c, d] = users(&mut hall);
    let stranger = hall.enter(9);
    let no = |name: &str| Said::Join(false, 255, name.into());
    let create = |name, pw, max| Ask::create(name, pw, max);
    assert_eq!(
        hall.ask(a, &create("den", "pw", 2)),
        Said::CreateRoom(true, 0)
    );
    assert_eq!(
        hall.ask(b, &create("open", "", 2)),
        Said::CreateRoom(true, 0)
    );
    assert_eq!(hall.ask(stranger, &Ask::join("open", "")), no("open"));
    assert_eq!(hall.ask(b, &Ask::join("den", "pw")), no("den"));
    assert_eq!(hall.ask(b, &Ask::join("none", "")), no("none"));
    // In this one already: whatever the password.
    let seat = |seat, name: &str| Said::Join(true, seat, name.into());
    assert_eq!(hall.ask(a, &Ask::join("den", "wrong")), seat(0, "den"));
    assert_eq!(hall.ask(c, &Ask::join("none", "")), no("none"));
    for wrong in ["", "p", "pw ", "PW"] {
        assert_eq!(hall.ask(c, &Ask::join("den", wrong)), Said::WrongPassword);
    }
    assert_eq!(hall.ask(c, &Ask::join("den", "pw")), seat(1, "den"));
    assert_eq!(hall.ask(d, &Ask::join("den", "wrong")), Said::WrongPassword);
    assert_eq!(hall.ask(d, &Ask::join("den", "pw")), Said::FullRoom);
    // A public room takes any password.
    assert_eq!(hall.ask(d, &Ask::join("open", "any\n")), seat(1, "open"));
    let [high, low] = [a, c].map(|peer| hall[peer].came(kind::JOIN_ROOM).len());
    assert_eq!((high, low), (1, 2));
}

#[test]
fn r51_seats() {
    let mut hall = Hall::new(seed());
    let peers: [PeerId; 5] = users(&mut hall);
    hall.create(peers[0], "den", 4);
    let seats = [1, 2, 3].map(|number| hall.join(peers[number], "den"));
    assert_eq!(seats, [1, 2, 3]);
    for (leaves, seat) in [(1, 1), (2, 2), (0, 0)] {
        hall.ask(peers[leaves], &Ask::leave());
        assert_eq!(hall.join(peers[4], "den"), seat);
        hall.ask(peers[4], &Ask::leave());
        assert_eq!(hall.join(peers[leaves], "den"), seat);
    }
    let joined = hall.told().into_iter().filter_map(|told| match told {
        Told::Joined { player, .. } => Some(player.number()),
        _ => None,
    });
    let expected = [0, 1, 2, 3, 1, 1, 2, 2, 0, 0];
    assert_eq!(joined.collect::<Vec<u8>>(), expected, "as the game is told");
}

#[test]
fn r52_names_in_answers() {
    let mut hall = Hall::new(seed());
    let [a] = users(&mut hall);
    let long = "x".repeat(33);
    for (name, answered) in [("none", "none"), ("", ""), ("\n", ""), (&long, "")] {
        let answer = hall.ask(a, &Ask::join(name, ""));
        assert_eq!(answer, Said::Join(false, 255, answered.into()));
        let answer = hall.ask(a, &Ask::delete(name));
        assert_eq!(answer, Said::DeleteRoom(false, answered.into()));
    }
}

#[test]
fn r53_delete_room() {
    let mut hall = Hall::new(seed());
    let [a, b, c, d] = users(&mut hall);
    hall.create(a, "den", 4);
    hall.join(b, "den");
    hall.join(c, "den");
    hall.create(d, "other", 4);
    let no = Said::DeleteRoom(false, "den".into());
    let yes = Said::DeleteRoom(true, "den".into());
    for peer in [b, d] {
        assert_eq!(hall.ask(peer, &Ask::delete("den")), no);
    }
    let none = Said::DeleteRoom(false, "none".into());
    assert_eq!(hall.ask(a, &Ask::delete("none")), none);
    assert_eq!(
        hall.ask(a, &Ask::delete("other")).clone(),
        Said::DeleteRoom(false, "other".into())
    );
    hall.told();
    assert_eq!(hall.ask(a, &Ask::delete("den")), yes);
    hall.settle();
    for peer in [b, c] {
        assert!(hall[peer].heard(kind::DELETE_ROOM).contains(&&yes));
    }
    assert!(
        hall[d]
            .heard(kind::DELETE_ROOM)
            .iter()
            .all(|said| **said == no)
    );
    let told = hall.told();
    let left = |told: &Told| matches!(told, Told::Left { reason: 0, .. });
    assert!(told.len() == 3 && told.iter().all(left), "{told:?}");
    // Still logged in, and free.
    for peer in [a, b, c] {
        assert_eq!(hall.ask(peer, &Ask::leave()), Said::Leave(false));
    }
    hall.create(c, "den", 1);
    assert_eq!(hall.count("rooms"), 2);
}

#[test]
fn r54_get_room() {
    let mut hall = Hall::new(seed());
    let [a, b, c] = users(&mut hall);
    let stranger = hall.enter(9);
    hall.create(a, "first", 4);
    hall.ask(b, &Ask::create("second", "pw", 2));
    hall.create(c, "third", 16);
    hall.ask(a, &Ask::leave());
    hall.join(a, "third");
    hall.settle();
    let listed = |name: &str, private, players, max_players| Listed {
        name: name.into(),
        private,
        players,
        max_players,
    };
    let all = [listed("second", true, 1, 2), listed("third", false, 2, 16)];
    for first in [0, 1, 2, 3, 65_535] {
        let page = Page {
            total: 2,
            first,
            rooms: all.get(usize::from(first)..).unwrap_or(&[]).to_vec(),
        };
        assert_eq!(hall.ask(a, &Ask::rooms(first)), Said::Page(page));
    }
    let nothing = Page {
        total: 0,
        first: 1,
        rooms: vec![],
    };
    assert_eq!(hall.ask(stranger, &Ask::rooms(1)), Said::Page(nothing));
}

#[test]
fn r55_leave_room() {
    let mut hall = Hall::new(seed());
    let [a, b] = users(&mut hall);
    assert_eq!(hall.ask(a, &Ask::leave()), Said::Leave(false));
    hall.create(a, "den", 4);
    hall.join(b, "den");
    for peer in [a, b] {
        assert_eq!(hall.ask(peer, &Ask::leave()), Said::Leave(true));
        assert_eq!(hall.ask(peer, &Ask::leave()), Said::Leave(false));
    }
    assert_eq!(hall.count("rooms"), 0);
}

#[test]
fn r56_owner_leaves() {
    let mut hall = Hall::new(seed());
    let [a, b, c, d] = users(&mut hall);
    hall.create(a, "den", 4);
    for peer in [b, c, d] {
        hall.join(peer, "den");
    }
    let is_owner = |hall: &mut Hall, peer| {
        // Only told by what it may do; a no changes nothing.
        let answer = hall.ask(peer, &Ask::delete("den"));
        matches!(answer, Said::DeleteRoom(true, _))
    };
    // Who leaves and comes back is no owner any more, though it has the lowest seat.
    hall.ask(a, &Ask::leave());
    assert_eq!(hall.join(a, "den"), 0);
    for peer in [a, c, d] {
        assert!(!is_owner(&mut hall, peer));
    }
    // A member that is no owner leaves: nothing changes. Then the owner: now seat 0 it is.
    hall.ask(c, &Ask::leave());
    assert!(!is_owner(&mut hall, a));
    hall.ask(b, &Ask::leave());
    assert!(!is_owner(&mut hall, d));
    assert!(is_owner(&mut hall, a));
    // A room without members is gone, and its name is free.
    hall.create(b, "den", 1);
    hall.ask(b, &Ask::leave());
    hall.create(c, "den", 2);
    assert_eq!(hall.count("rooms"), 1);
}

#[test]
fn r57_ending_is_leaving() {
    type End = fn(&mut Hall, PeerId);
    let ends: [(u8, End); 7] = [
        (0, |hall, peer| {
            hall[peer].send(&Ask::logout());
        }),
        (0, |hall, peer| hall[peer].fin()),
        (0, |hall, peer| hall[peer].abort()),
        (2, |hall, _| hall.for_ms(10_000)),
        (3, |hall, peer| hall[peer].write(b"x")),
        (4, |hall, _| {
            let player = hall.handle("owner");
            hall.act(move |replies| replies.kick(player)).expect("here");
        }),
        (0, |hall, _| {
            hall.user("owner", 9);
        }),
    ];
    for (reason, end) in ends {
        let mut hall = Hall::new(seed());
        let owner = hall.silent_user("owner", 1);
        hall.create(owner, "den", 2);
        let other = hall.user("other", 2);
        hall.join(other, "den");
        hall.told();
        end(&mut hall, owner);
        hall.settle();
        let told = hall.told();
        let left: Vec<_> = told
            .iter()
            .filter_map(|told| match told {
                Told::Left { player, reason } => Some((player.number(), *reason)),
                _ => None,
            })
            .collect();
        assert_eq!(left, [(0, reason)]);
        let answer = hall.ask(other, &Ask::delete("den"));
        assert_eq!(answer, Said::DeleteRoom(true, "den".into()));
        assert!(hall.count("sessions") <= 2 && hall.stat(SERVICE, "rooms") == 0);
    }
}
