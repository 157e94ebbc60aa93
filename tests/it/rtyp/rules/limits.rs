//! Section 7: the limits of an address, of who guesses, and of what is written about both.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use super::super::bare::Bare;
use super::super::bytes::{Datagram, kind, left, login_request, rejected};
use super::super::hall::{Answer, Hall, Told};
use super::super::peer::Peer;
use crate::world::PeerId;
use crate::world::seeds::seed;

mod guesses;
mod warnings;

const VERSIONS: [u8; 2] = [1, 2];

/// The address that most come from.
const HERE: &str = "10.0.0.1";

/// An honest player of this version, the `number`th of its address.
#[track_caller]
fn comer(version: u8, ip: &str, number: u16) -> Peer {
    let ip: IpAddr = ip.parse().expect("an address");
    let endpoint = SocketAddr::new(ip, 5000 + number).to_string();
    match version {
        1 => Peer::new(&endpoint),
        _ => Peer::v2(&endpoint),
    }
}

/// That player comes, under a name of its own: it is in, or was told why not.
#[track_caller]
fn come(hall: &mut Hall, version: u8, ip: &str, number: u16) -> Result<PeerId, u8> {
    let peer = hall.add(comer(version, ip, number));
    hall[peer].login(&format!("n{number}"));
    hall.for_ms(30);
    match hall[peer].is_in() {
        true => Ok(peer),
        false => Err(hall[peer].rejected().expect("an answer")),
    }
}

/// Leaves, and the server knows.
fn go(hall: &mut Hall, peer: PeerId) {
    hall[peer].leave();
    hall.for_ms(10);
}

/// Twenty games, and some limits by their names.
fn limited(limits: &[(&str, u64)]) -> Hall {
    Hall::with(seed(), |settings| {
        settings.games = 20;
        for (name, value) in limits {
            settings.limits.set(name, *value).expect("in range");
        }
    })
}

const TOO_MANY: Result<PeerId, u8> = Err(rejected::TOO_MANY);

#[test]
fn r130_hosts_of_one_network_share_its_limits() {
    for version in VERSIONS {
        let mut hall = limited(&[]);
        for number in 0..5 {
            let host = ["2001:db8::1", "2001:db8::8000:0:0:2"][usize::from(number % 2)];
            assert!(come(&mut hall, version, host, number).is_ok());
        }
        for host in ["2001:db8::1", "2001:db8::8000:0:0:2", "2001:db8::3"] {
            assert_eq!(come(&mut hall, version, host, 9), TOO_MANY);
        }
        assert_eq!(hall.addresses.tracked(), 1);
        // The next one is another address, and so is each that differs before its 64th bit.
        for other in ["2001:db8:0:1::1", "2001:db8:0:8000::1", "2001:db9::1"] {
            assert!(come(&mut hall, version, other, 9).is_ok(), "{other}");
        }
    }
}

/// An address in the `number`th /64 of a /48.
fn network(number: u16) -> String {
    format!("2001:db8:7:{number:x}::1")
}

#[test]
fn r130_whole_sites() {
    for version in VERSIONS {
        let mut hall = limited(&[("attempts", 100)]);
        let peers: Vec<PeerId> = (0..20)
            .map(|number| come(&mut hall, version, &network(number), number))
            .map(|peer| peer.expect("one of twenty"))
            .collect();
        for number in 20..23 {
            assert_eq!(come(&mut hall, version, &network(number), number), TOO_MANY);
        }
        // One that plays there gets no second session either, and nobody else is touched.
        assert_eq!(come(&mut hall, version, &network(3), 90), TOO_MANY);
        assert!(come(&mut hall, version, "2001:db8:8::1", 91).is_ok());
        assert!(come(&mut hall, version, HERE, 92).is_ok());
        go(&mut hall, peers[7]);
        assert!(come(&mut hall, version, &network(20), 93).is_ok());
        assert_eq!(come(&mut hall, version, &network(7), 94), TOO_MANY);
        hall.for_ms(20_000);
        assert_eq!(hall.count("sessions"), 22);
    }
}

#[test]
fn r130_attempts_of_a_whole_site() {
    for version in VERSIONS {
        let mut hall = limited(&[("sessions-per-ip", 100)]);
        // All at once, so that nothing comes back meanwhile.
        let peers: Vec<PeerId> = (0..21)
            .map(|number| hall.add(comer(version, &network(number), number)))
            .collect();
        for (number, peer) in peers.iter().enumerate() {
            hall[*peer].login(&format!("n{number}"));
        }
        let began = hall.now();
        hall.for_ms(30);
        let let_in = peers.iter().filter(|peer| hall[**peer].is_in()).count();
        assert_eq!((let_in, hall.count("rejected-too-many")), (20, 1));
        // Four times as fast as an address: one each 500 ms.
        let mut successes = Vec::new();
        for number in 30..66 {
            let rest = began + 100 * u64::from(number - 29) - hall.now();
            hall.for_ms(rest);
            let now = hall.now();
            if come(&mut hall, version, &network(number), number).is_ok() {
                successes.push(now - began);
            }
        }
        assert_eq!(successes, [500, 1000, 1500, 2000, 2500, 3000, 3500]);
    }
}

/// Fifty come from one address at once, each in the version that is next.
fn fifty(hall: &mut Hall, ip: &str, versions: &[u8]) -> Vec<PeerId> {
    let peers: Vec<PeerId> = (0..50)
        .zip(versions.iter().cycle())
        .map(|(number, version)| hall.add(comer(*version, ip, number)))
        .collect();
    for (number, peer) in peers.iter().enumerate() {
        hall[*peer].login(&format!("n{number}"));
    }
    hall.for_ms(1000);
    peers
}

#[test]
fn r131_fifty_at_once() {
    for versions in [&[1][..], &[2], &[1, 2]] {
        let mut hall = limited(&[]);
        let peers = fifty(&mut hall, HERE, versions);
        let (winners, others): (Vec<PeerId>, Vec<PeerId>) =
            peers.iter().partition(|peer| hall[**peer].is_in());
        assert_eq!((winners.len(), others.len()), (5, 45));
        for other in others {
            assert_eq!(hall[other].rejected(), Some(rejected::TOO_MANY));
            assert_eq!(hall[other].end.is_some(), hall[other].version == 1);
        }
        assert_eq!(hall.count("rejected-too-many"), 45);
        let told = hall.told();
        let asked = told
            .iter()
            .filter(|it| matches!(it, Told::Connecting { .. }));
        assert_eq!(asked.count(), 5, "the game hears of no other");
        // The winners keep speaking.
        for round in 0..30 {
            for winner in &winners {
                hall[*winner].say(&format!("line {round}"));
            }
            hall.for_ms(1000);
        }
        assert!(winners.iter().all(|winner| hall[*winner].is_bound()));
        assert_eq!((hall.count("sessions"), hall.count("logins")), (5, 5));
        let heard = hall.told();
        let lines = heard.iter().filter(|it| matches!(it, Told::Chat { .. }));
        assert_eq!(lines.count(), 150);
    }
}

#[test]
fn r131_from_the_question_to_the_end() {
    for version in VERSIONS {
        let mut hall = limited(&[("sessions-per-ip", 2), ("attempts", 100)]);
        hall.shelf.open().answer = Answer::Wait;
        let asked: Vec<PeerId> = (0..2)
            .map(|number| hall.add(comer(version, HERE, number)))
            .collect();
        for peer in &asked {
            hall[*peer].login("R9");
            hall.for_ms(30);
        }
        assert_eq!(hall.told().len(), 2, "the game is asked about both");
        assert_eq!(come(&mut hall, version, HERE, 2), TOO_MANY);
        // Whoever is not let in leaves its place, and so does whoever ends in any way.
        let ticket = hall.shelf.open().tickets[0];
        let refuse = anteroom::engine::Verdict::Refuse;
        hall.answer(ticket, refuse).expect("it waits");
        hall.shelf.open().answer = Answer::Admit;
        let third = come(&mut hall, version, HERE, 3).expect("a place");
        assert_eq!(come(&mut hall, version, HERE, 4), TOO_MANY);
        go(&mut hall, third);
        let fourth = come(&mut hall, version, HERE, 5).expect("a place");
        assert_eq!(come(&mut hall, version, HERE, 6), TOO_MANY);
        let handle = hall.handle("n5");
        hall.act(move |replies| replies.kick(handle))
            .expect("it is there");
        hall.for_ms(10);
        assert_eq!(hall[fourth].logged_out(), Some(left::KICKED));
        assert!(come(&mut hall, version, HERE, 7).is_ok());
        assert_eq!(come(&mut hall, version, HERE, 8), TOO_MANY);
        assert!(come(&mut hall, version, "10.0.0.2", 9).is_ok());
    }
}

#[test]
fn r131_counted_where_its_hello_came_from() {
    let mut hall = limited(&[]);
    let peers: Vec<PeerId> = (0..5)
        .map(|number| come(&mut hall, 2, HERE, number).expect("one of five"))
        .collect();
    hall.rebind(peers[0], "10.0.0.2:7000");
    hall.for_ms(10_000);
    assert_eq!((hall.count("moves"), hall.count("sessions")), (1, 5));
    assert_eq!(come(&mut hall, 2, HERE, 5), TOO_MANY);
    for number in 0..5 {
        assert!(come(&mut hall, 2, "10.0.0.2", number).is_ok());
    }
    assert_eq!(come(&mut hall, 2, "10.0.0.2", 5), TOO_MANY);
    go(&mut hall, peers[0]);
    assert!(come(&mut hall, 2, HERE, 6).is_ok());
}

#[test]
fn r132_attempts() {
    for version in VERSIONS {
        let mut hall = limited(&[]);
        let peers = fifty(&mut hall, HERE, &[version]);
        let began = hall.now() - 1000;
        // All five leave within a second of joining.
        for peer in peers {
            if hall[peer].is_in() {
                hall[peer].leave();
            }
        }
        let mut successes = Vec::new();
        for tenth in 11..=150 {
            let rest = began + 100 * u64::from(tenth) - hall.now();
            hall.for_ms(rest);
            let now = hall.now();
            match come(&mut hall, version, HERE, 100 + tenth) {
                Ok(_) => successes.push(now - began),
                Err(reason) => assert_eq!(reason, rejected::TOO_MANY),
            }
            if tenth == 25 {
                assert!(come(&mut hall, version, "10.0.0.2", 0).is_ok());
            }
        }
        // What was refused cost nothing.
        assert_eq!(successes, [2000, 4000, 6000, 8000, 10_000]);
    }
}

#[test]
fn r132_the_limits_have_names() {
    for version in VERSIONS {
        let mut hall = limited(&[("attempts", 2), ("attempt-ms", 500)]);
        let began = hall.now();
        let mut successes = Vec::new();
        for tenth in 0..20 {
            let rest = began + 100 * u64::from(tenth) - hall.now();
            hall.for_ms(rest);
            if let Ok(peer) = come(&mut hall, version, HERE, tenth) {
                successes.push(tenth);
                go(&mut hall, peer);
            }
        }
        assert_eq!(successes, [0, 1, 5, 10, 15]);
    }
}

/// What a login or a hello of the test's choice is told: the number, or the reason.
fn verdict(hall: &mut Hall, version: u8, number: u16, room: &[u8], name: &[u8]) -> Result<u8, u8> {
    let peer = hall.add(comer(version, HERE, number));
    match version {
        2 => hall[peer].hello_to(room, name),
        _ => {
            hall[peer].open();
            hall[peer].write(&login_request(1, name));
        }
    }
    hall.for_ms(30);
    match hall[peer].is_in() {
        true => Ok(hall[peer].player()),
        false => Err(hall[peer].rejected().expect("an answer")),
    }
}

#[test]
fn r132_refusals_for_anything_else_cost_none() {
    for version in VERSIONS {
        let mut hall = Hall::with(seed(), |settings| {
            settings.limits.set("sessions-per-ip", 1).expect("in range");
        });
        let began = hall.now();
        let first = come(&mut hall, version, HERE, 0).expect("the first of all");
        let others = [2, 3, 4].map(|host| hall.enter(&format!("p{host}"), host));
        for number in 10..20 {
            let mut told =
                |room: &[u8], name: &[u8]| verdict(&mut hall, version, number, room, name);
            assert_eq!(told(b"", b""), Err(rejected::BAD_NAME));
            assert_eq!(told(b"", b"new"), Err(rejected::SERVER_FULL));
            if version == 2 {
                assert_eq!(told(b"9", b"new"), Err(rejected::NO_SUCH_GAME));
            }
            let peer = hall.greet(1, &login_request(3, b"new"));
            assert_eq!(hall[peer].rejected(), Some(rejected::BAD_VERSION));
        }
        go(&mut hall, others[0]);
        for number in 20..30 {
            let taken = verdict(&mut hall, version, number, b"", b"p3");
            assert_eq!(taken, Err(rejected::NAME_TAKEN));
            assert_eq!(come(&mut hall, version, HERE, number), TOO_MANY);
        }
        // What came back meanwhile aside, the other four are there.
        let saved_ms = hall.now() - began;
        go(&mut hall, first);
        let mut passed = 0;
        while let Ok(peer) = come(&mut hall, version, HERE, 30 + passed) {
            passed += 1;
            go(&mut hall, peer);
        }
        assert_eq!((saved_ms / 2000, passed), (1, 5));
    }
}

/// Each of them is there, and in each game of four everybody hears everybody.
#[track_caller]
fn play_on(hall: &mut Hall, peers: &[PeerId]) {
    let heard = |hall: &Hall| -> usize {
        let peers = peers.iter().map(|peer| &hall[*peer]);
        peers.map(|peer| peer.payloads(kind::DATA).len()).sum()
    };
    let before = heard(hall);
    for peer in peers {
        assert!(hall[*peer].is_bound() && hall[*peer].end.is_none());
        hall[*peer].send(kind::DATA, b"move");
    }
    hall.for_ms(11);
    assert_eq!(heard(hall) - before, peers.len() * 3);
}

#[test]
fn r133_tracked() {
    for version in VERSIONS {
        let mut hall = limited(&[("tracked-ips", 8)]);
        let host = |number: u16| format!("10.0.0.{number}");
        let peers: Vec<PeerId> = (0..8)
            .map(|number| come(&mut hall, version, &host(number), number).expect("a place"))
            .collect();
        // One more is refused, whatever it speaks, and the players play on.
        for newcomer in VERSIONS {
            for number in 8..20 {
                let number = number + 20 * u16::from(newcomer);
                assert_eq!(come(&mut hall, newcomer, &host(number), 0), TOO_MANY);
            }
        }
        assert_eq!((hall.addresses.tracked(), hall.count("sessions")), (8, 8));
        play_on(&mut hall, &peers);
        hall.for_ms(60_000);
        play_on(&mut hall, &peers);
        assert_eq!(come(&mut hall, version, &host(100), 0), TOO_MANY);
        // Who is tracked may come again; who is exempt needs no place.
        assert!(come(&mut hall, version, &host(3), 1).is_ok());
        assert!(come(&mut hall, version, "127.0.0.1", 0).is_ok());
        assert_eq!(hall.addresses.tracked(), 8);
        // An address that has a session yet keeps its place; one with none makes room.
        go(&mut hall, peers[3]);
        assert_eq!(come(&mut hall, version, &host(101), 0), TOO_MANY);
        go(&mut hall, peers[4]);
        assert!(come(&mut hall, version, &host(102), 0).is_ok());
        assert_eq!(come(&mut hall, version, &host(103), 0), TOO_MANY);
        assert_eq!(hall.addresses.tracked(), 8);
    }
}

#[test]
fn r133_not_forgotten_before_it_has_all_its_attempts_again() {
    for version in VERSIONS {
        let mut hall = limited(&[("tracked-ips", 1)]);
        let began = hall.now();
        for number in 0..3 {
            let peer = come(&mut hall, version, HERE, number).expect("a place");
            go(&mut hall, peer);
        }
        // Otherwise leaving and coming back would give new ones.
        let came = (2..100).find(|tenth| {
            let rest = began + 100 * u64::from(*tenth) - hall.now();
            hall.for_ms(rest);
            come(&mut hall, version, "10.0.0.2", *tenth).is_ok()
        });
        assert_eq!(came, Some(60));
    }
}

#[test]
fn r133_as_many_as_by_default() {
    let mut bare = Bare::with(seed(), |settings| settings.games = 5000);
    let endpoint = |number: u32| SocketAddr::from((Ipv4Addr::from_bits(0x0B00_0000 + number), 1));
    let come = |number: u32, bare: &mut Bare| {
        let cookie = bare.cookie(endpoint(number));
        let name = format!("n{number}");
        let hello = Datagram::hello(cookie, b"", name.as_bytes());
        bare.hear(endpoint(number), &hello.bytes());
        let answers = bare.sent().map(|(_, bytes)| Datagram::parse(bytes));
        let answer = answers
            .filter(|it| matches!(it.kind, kind::SERVER_HELLO | kind::HELLO_REJECTED))
            .map(|it| (it.kind, it.payload));
        let answer = answer.last().expect("an answer");
        if number.is_multiple_of(10) {
            bare.pass(1);
        }
        answer
    };
    for number in 0..16_384 {
        let (kind, _) = come(number, &mut bare);
        assert_eq!(kind, kind::SERVER_HELLO, "{number}");
    }
    for number in 16_384..16_400 {
        let refused = (kind::HELLO_REJECTED, vec![rejected::TOO_MANY]);
        assert_eq!(come(number, &mut bare), refused);
    }
    assert_eq!(bare.count("sessions"), 16_384);
}

/// Twenty games, and loopback is limited.
fn limiting_loopback() -> Hall {
    Hall::with(seed(), |settings| {
        settings.games = 20;
        settings.limit_loopback = true;
    })
}

#[test]
fn r134_loopback() {
    for versions in [&[1][..], &[2], &[1, 2]] {
        for ip in ["127.0.0.1", "127.9.9.9", "::1"] {
            let mut hall = limited(&[]);
            let peers = fifty(&mut hall, ip, versions);
            assert!(peers.iter().all(|peer| hall[*peer].is_in()), "{ip}");
            assert_eq!(hall.addresses.tracked(), 0);

            let mut hall = limiting_loopback();
            let peers = fifty(&mut hall, ip, versions);
            let let_in = peers.iter().filter(|peer| hall[**peer].is_in());
            assert_eq!(let_in.count(), 5, "{ip}");
            assert_eq!(hall.count("rejected-too-many"), 45);
            assert_eq!(hall.addresses.tracked(), 1);
        }
        // Whoever is nearly there is not.
        for ip in ["::2", "128.0.0.1", "126.255.255.255"] {
            let mut hall = limited(&[]);
            fifty(&mut hall, ip, versions);
            assert_eq!(hall.count("sessions"), 5, "{ip}");
        }
    }
}

#[test]
fn r134_what_is_limited_for_all_is_limited_for_loopback() {
    for is_limited in [false, true] {
        let mut hall = Hall::with(seed(), |settings| {
            settings.limit_loopback = is_limited;
            settings.limits.set("challenges", 10).expect("in range");
            settings.limits.set("wrong-tokens", 10).expect("in range");
        });
        // Challenges.
        let peer = hall.add(comer(2, "127.0.0.1", 0));
        for _ in 0..1000 {
            hall[peer].raw(&Datagram::hello(0, b"", b"R9").bytes());
        }
        hall.for_ms(10);
        let challenges = hall.count("challenges");
        assert!((5..=10).contains(&challenges), "{challenges}");
        assert_eq!(hall.count("challenges-dropped"), 1000 - challenges);
        // Wrong tokens, that of a session from loopback too.
        let player = Peer::silent("127.0.0.1:1").udp_at("127.0.0.2:2");
        let player = hall.enter_as("R9", player);
        for token in 1..=10 {
            let token = hall[player].token() ^ token;
            hall[peer].raw(&Datagram::new(kind::CONNECT, token, &[]).bytes());
        }
        hall[player].connect();
        hall.for_ms(11);
        assert!(!hall[player].is_bound());
        assert_eq!(hall.count("ignored-guess"), 1);
        // And numbers of a game.
        for number in 0..3 {
            assert!(come(&mut hall, 1, "127.0.0.1", 10 + number).is_ok());
        }
        let full = come(&mut hall, 1, "127.0.0.1", 20);
        assert_eq!(full, Err(rejected::SERVER_FULL));
    }
}
