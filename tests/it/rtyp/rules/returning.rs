//! A client that was killed comes back.

use super::super::bytes::Event;
use super::super::hall::{Hall, address};
use super::super::peer::Peer;
use super::ghosts::{Scene, port};
use super::knock;
use crate::world::seeds::seed;

#[test]
fn a_client_that_was_killed_comes_back() {
    for version in [1, 2] {
        for scene in [Scene::Open, Scene::Full, Scene::Running] {
            for (from, after_ms, within_ms) in [
                (port(1, 5000), 4000, 1000),
                (port(1, 6000), 4000, 1000),
                (port(1, 5000), 0, 8000),
            ] {
                // In a game that runs there is no way back for whose session ended: in version 1 by
                // TCP, in version 2 because it says bye to the old one (R124).
                if scene == Scene::Running && (version == 1 || after_ms == 0) {
                    continue;
                }
                let mut hall = Hall::new(seed());
                let witness = hall.enter("witness", 9);
                let mut peer = Peer::new(&port(1, 5000));
                peer.version = version;
                let killed = hall.enter_as("R9", peer);
                let more = if scene == Scene::Full { 2 } else { 0 };
                for host in 2..2 + more {
                    hall.enter(&format!("p{host}"), host);
                }
                if scene == Scene::Running {
                    hall[witness].event(Event::start());
                }
                hall.for_ms(2000);
                hall[killed].die();
                hall.for_ms(after_ms);
                let mut peer = Peer::new(&from);
                peer.version = version;
                let back = hall.add(peer);
                hall[back].login("R9");
                hall.until(within_ms, |world| world[back].is_bound());
                assert_eq!(
                    hall[back].player(),
                    1,
                    "{version} {scene:?} {from} {after_ms}"
                );
                hall[back].say("here again");
                hall.settle();
                let said = Event::said(1, "here again");
                assert_eq!(hall[witness].events().last(), Some(&said));
                hall.for_ms(20_000);
                assert!(hall[back].is_bound() && hall[witness].is_bound());
            }
        }
    }
}

#[test]
fn a_client_that_was_killed_and_knows_nothing_of_old_sessions_comes_back_too() {
    // It takes the first ServerHello for its own, cannot make itself heard (its numbers are old),
    // and says hello again when its Pings stay unanswered: by then the session is a ghost.
    let mut hall = Hall::new(seed());
    let killed = hall.enter_2("R9", 1);
    let other = hall.enter_2("other", 2);
    hall[other].event(Event::start());
    hall.for_ms(2000);
    hall[killed].die();
    let died_at = hall.now();
    let mut back = knock(&mut hall, &address(1), b"", b"R9");
    assert_eq!(hall[back].secret(), hall[killed].secret());
    while hall.count("ghosts-ended") == 0 {
        assert!(hall.now() - died_at < 8000, "locked out");
        hall.for_ms(500);
        back = knock(&mut hall, &address(1), b"", b"R9");
    }
    assert_ne!(hall[back].secret(), hall[killed].secret());
    assert_eq!(hall[back].player(), 0);
}
