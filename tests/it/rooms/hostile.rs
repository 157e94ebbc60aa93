//! Random conversations with whoever means no good.

use std::cell::Cell;
use std::collections::HashSet;

use anteroom::engine::{Player, Seeded};

use super::bytes::{Ask, raw_text, summed};
use super::hall::{Answer, Hall, SERVICE, Told, address};
use super::peer::Peer;
use crate::world::link::Weather;
use crate::world::seeds::seeds;
use crate::world::{PeerId, pipe::Pieces};

/// Bytes of some length.
fn noise(dice: &mut Seeded, most: u64) -> Vec<u8> {
    let len = dice.below(most + 1);
    (0..len).map(|_| dice.below(256) as u8).collect()
}

/// A request: most are whole, and some even make sense.
fn random_ask(dice: &mut Seeded) -> Ask {
    let name = ["a", "b", "", "\n", "a very long name for a room, really"];
    let name = name[dice.below(5) as usize];
    let password = ["password", "", "pw"][dice.below(3) as usize];
    let user = format!("u{}", dice.below(4));
    match dice.below(48) {
        0..12 => Ask::login(&user, "password"),
        12 => Ask::login(&user, password),
        13..15 => Ask::register(&user, password),
        15..18 => Ask::chat(name),
        18..24 => Ask::create(name, password, dice.below(20) as u8),
        24..30 => Ask::join(name, password),
        30..32 => Ask::leave(),
        32 | 33 => Ask::delete(name),
        34 => Ask::rooms(dice.below(4) as u16),
        35..39 => Ask::key([262, 32, 501, -1][dice.below(4) as usize]),
        39..43 => Ask::init(),
        43 => Ask::logout(),
        44 => Ask::new(dice.below(256) as u8, &noise(dice, 40)),
        45 => Ask::new(dice.below(16) as u8, &raw_text(&noise(dice, 300))),
        _ => Ask::init(),
    }
}

/// One datagram of the peer: in order, again, out of order, damaged, forged or noise.
fn attack(hall: &mut Hall, peer: PeerId, dice: &mut Seeded) {
    let ask = random_ask(dice);
    let Some((token, _)) = hall[peer].assigned() else {
        return;
    };
    let next = hall[peer].next_id;
    match dice.below(40) {
        0 => hall[peer].send_as(&ask, next.wrapping_sub(dice.below(6) as u16)),
        // From then on most of what it says is late.
        1 if dice.below(8) == 0 => hall[peer].send_as(&ask, dice.below(65_536) as u16),
        2 => {
            let mut bytes = ask.packet(next, token).bytes();
            let at = dice.below(bytes.len() as u64) as usize;
            bytes[at] ^= 1 << dice.below(8);
            hall[peer].raw(&bytes);
        }
        3 => {
            let mut bytes = ask.packet(next, token).bytes();
            bytes.truncate(dice.below(bytes.len() as u64) as usize);
            hall[peer].raw(&summed(bytes));
        }
        4 => {
            let other = ask.packet(next, dice.below(1 << 32) as u32);
            hall[peer].raw(&other.bytes());
        }
        5 => {
            let from = address(dice.below(12) as u16);
            let bytes = ask.packet(next, token).bytes();
            hall[peer].raw_from(from, &bytes);
        }
        6 => {
            let bytes = noise(dice, 1300);
            hall[peer].raw(&bytes);
        }
        _ => {
            hall[peer].send(&ask);
        }
    }
}

/// Every Joined has its Left, and nothing is said of who is not there.
fn check_books(told: &[Told]) {
    let mut there: HashSet<Player> = HashSet::new();
    let mut seats = HashSet::new();
    for told in told {
        match told {
            Told::Joined { player, .. } => {
                assert!(there.insert(*player));
                assert!(seats.insert((player.game(), player.number())));
            }
            Told::Left { player, reason } => {
                assert!(there.remove(player), "{player:?} left twice");
                assert!(seats.remove(&(player.game(), player.number())));
                assert!(*reason <= 4);
            }
            Told::Key { player, .. } | Told::Refresh { player } => {
                assert!(there.contains(player), "{player:?} is not there");
            }
            Told::Login { .. } | Told::Register { .. } => {}
        }
    }
    assert!(there.is_empty(), "{there:?} never left");
}

#[test]
fn no_conversation_hurts() {
    let joined = Cell::new(0);
    seeds(30, |seed| {
        let mut hall = Hall::with(seed, |settings| {
            settings.limits.set("rooms-sessions", 8).expect("in range");
        });
        hall.net.weather = Weather::storm();
        hall.net.pieces = Pieces::Random(9);
        let users = (0..4).map(|number| (format!("u{number}"), "password".to_owned()));
        hall.shelf.open().users.extend(users);
        let mut dice = Seeded::new(seed);
        let mut peers: Vec<PeerId> = Vec::new();
        for round in 0..600 {
            if round % 30 == 0 {
                let host = dice.below(12) as u16 + 1;
                let mut peer = Peer::silent(address(host));
                peer.tcp.set_port(1000 + round);
                peer.udp.set_port(1000 + round);
                peer.next_id = dice.below(65_536) as u16;
                peers.push(hall.open(peer));
            }
            let recent = peers.len().min(8) as u64;
            for _ in 0..5 {
                let peer = peers[peers.len() - 1 - dice.below(recent) as usize];
                if !hall[peer].is_over() {
                    attack(&mut hall, peer, &mut dice);
                }
            }
            if dice.below(40) == 0 {
                let answers = [Answer::Honest, Answer::Busy, Answer::Wait];
                hall.answers(answers[dice.below(3) as usize]);
            }
            if dice.below(60) == 0 {
                let peer = peers[peers.len() - 1];
                if !hall[peer].is_over() {
                    let bytes = noise(&mut dice, 20);
                    hall[peer].write(&bytes);
                }
            }
            assert!(hall.count("sessions") <= 8 && hall.count("rooms") <= 8);
            hall.for_ms(dice.below(60));
        }
        // Left alone, everybody is gone, and nothing is left to do.
        hall.for_ms(30_000);
        assert_eq!((hall.count("sessions"), hall.count("rooms")), (0, 0));
        assert_eq!(hall.connections(SERVICE), (0, 0));
        assert_eq!(hall.deadline(SERVICE), None);
        let told = hall.told();
        check_books(&told);
        let came = told.iter().filter(|it| matches!(it, Told::Joined { .. }));
        joined.set(joined.get() + came.count());
        let opened = hall.count("connections");
        let ended: u64 = [
            "ended-left",
            "ended-shutdown",
            "ended-timed-out",
            "ended-protocol-error",
            "ended-elsewhere",
            "ended-kicked",
            "ended-for-another",
        ]
        .iter()
        .map(|name| hall.count(name))
        .sum();
        assert_eq!(opened, ended, "each session ended once");
    });
    assert!(joined.get() > 0, "nobody ever got anywhere");
}
