//! Sections 3.2 and 3.3: the messages over TCP, and how a connection and a session end.

use std::collections::HashSet;

use anteroom::engine::Input;

use super::super::bytes::{
    Event, Said, frame, kind, left, login_accepted, login_rejected, login_request, logout, rejected,
};
use super::super::dice::Rigged;
use super::super::hall::{Answer, Hall, SERVICE, Told, address};
use super::super::peer::{Conduct, Peer};
use crate::world::PeerId;
use crate::world::pipe::Ending;
use crate::world::seeds::seed;

/// The token of somebody who logs in now.
#[track_caller]
fn token(hall: &mut Hall, name: &str, host: u8) -> u32 {
    let peer = hall.enter_as(name, Peer::silent(&address(host)));
    hall[peer].token()
}

/// What a login with these bytes is answered; `None` if it is closed without a word.
fn verdict(hall: &mut Hall, request: &[u8]) -> Option<Said> {
    let peer = hall.greet(9, request);
    let said = hall[peer].said.first().map(|said| said.1);
    assert!(said.is_some() || hall[peer].closed_without_a_word());
    said
}

/// A way to leave.
type Way = fn(&mut Peer);

#[test]
fn r14_token_never_zero_and_never_a_live_one() {
    let dice = Rigged::new(&[0, 0, 7, 7, 0, 8]);
    let mut hall = Hall::with_dice(seed(), Box::new(dice.clone()));
    assert_eq!(token(&mut hall, "a", 1), 7);
    assert_eq!(token(&mut hall, "b", 2), 8);
    // Once its session is over a token is as good as any other.
    hall.for_ms(11_000);
    assert_eq!(hall.count("sessions"), 0);
    dice.next(&[7]);
    assert_eq!(token(&mut hall, "c", 3), 7);
}

#[test]
fn r14_no_token_is_made_up() {
    let dice = Rigged::new(&[]);
    let mut hall = Hall::with_dice(seed(), Box::new(dice.clone()));
    dice.breaks(true);
    let refused = Some(Said::Rejected(rejected::REFUSED));
    assert_eq!(verdict(&mut hall, &login_request(1, b"R9")), refused);
    assert_eq!(hall.count("no-entropy"), 1);
    dice.breaks(false);
    // A generator that gives nothing but zeroes is broken too.
    dice.next(&[0; 64]);
    assert_eq!(verdict(&mut hall, &login_request(1, b"R9")), refused);
    assert_eq!(hall.told(), [], "the game is asked last");
    assert_eq!(hall.count("sessions"), 0);
    dice.next(&[5]);
}

#[test]
fn r14_tokens_differ_and_use_all_bits() {
    let mut hall = Hall::with_games(seed(), 200);
    let tokens: Vec<u32> = (0..200)
        .map(|number| token(&mut hall, &format!("n{number}"), number))
        .collect();
    assert_eq!(tokens.iter().collect::<HashSet<_>>().len(), 200);
    assert_eq!(tokens.iter().fold(0, |all, token| all | token), u32::MAX);
    assert_eq!(tokens.iter().fold(u32::MAX, |all, token| all & token), 0);
}

#[test]
fn r15_login_accepted() {
    let dice = Rigged::new(&[0x0403_0201, 9]);
    let mut hall = Hall::with_dice(seed(), Box::new(dice));
    let first = hall.greet(1, &login_request(1, b"a"));
    let second = hall.greet(2, &login_request(1, b"b"));
    assert_eq!(hall[first].stream, login_accepted(0x0403_0201, 0, 4242));
    assert_eq!(hall[second].stream, login_accepted(9, 1, 4242));

    let mut hall = Hall::with(seed(), |settings| settings.udp_port = 65_000);
    let peer = hall.greet(1, &login_request(1, b"a"));
    assert_eq!(hall[peer].accepted().map(|it| it.2), Some(65_000));
}

#[test]
fn r16_order_of_a_login() {
    let said = |reason| Some(Said::Rejected(reason));
    let mut hall = Hall::new(seed());
    hall.shelf.open().answer = Answer::Refuse;
    // Another version, whatever is behind it.
    for version in [0, 2, 3, 255] {
        for rest in [
            &b""[..],
            b"\0",
            b"\xFF\xFF",
            b"\x02\0R9",
            b"\x02\0R9 and more",
        ] {
            let request = frame(&[&[1, version], rest].concat());
            assert_eq!(verdict(&mut hall, &request), said(rejected::BAD_VERSION));
        }
    }
    // The shape goes before the name, the name before the place, the place before the game.
    let cut = frame(&[1, 1, 5, 0, 0xFF]);
    assert_eq!(verdict(&mut hall, &cut), None);
    let refused = login_request(1, b"a");
    assert_eq!(verdict(&mut hall, &refused), said(rejected::REFUSED));
    assert_eq!(hall.told().len(), 1);
    hall.shelf.open().answer = Answer::Admit;
    for number in 0..4 {
        hall.greet(number, &login_request(1, &[b'a' + number]));
    }
    hall.told();
    hall.shelf.open().answer = Answer::Refuse;
    assert_eq!(
        verdict(&mut hall, &login_request(1, b"")),
        said(rejected::BAD_NAME)
    );
    assert_eq!(verdict(&mut hall, &refused), said(rejected::SERVER_FULL));
    assert_eq!(
        verdict(&mut hall, &login_request(2, b"")),
        said(rejected::BAD_VERSION)
    );
    assert_eq!(hall.told(), []);
}

#[test]
fn r17_rejected_then_closed() {
    let mut hall = Hall::new(seed());
    // Unread input behind the request must not destroy the answer.
    let mut request = login_request(1, b"");
    request.extend(login_request(1, b"R9"));
    request.extend([0; 5000]);
    let peer = hall.greet(1, &request);
    assert_eq!(hall[peer].stream, login_rejected(rejected::BAD_NAME));
    assert!(matches!(hall[peer].end, Some((_, Ending::Fin))));
    assert_eq!(hall.connections(SERVICE), (0, 0));
    assert_eq!(hall.count("rejected-bad-name"), 1);
}

#[test]
fn r18_login_first() {
    let connect = super::super::bytes::Datagram::new(kind::CONNECT, 1, &[]).bytes();
    for first in [
        logout(0),
        logout(9),
        login_accepted(1, 0, 1),
        frame(&connect),
    ] {
        let mut hall = Hall::new(seed());
        let mut bytes = first;
        bytes.extend(login_request(1, b"R9"));
        let peer = hall.greet(1, &bytes);
        assert!(hall[peer].closed_without_a_word());
        assert!(hall[peer].stream.is_empty());
        assert_eq!(hall.count("login-malformed"), 1);
        assert_eq!(hall.connections(SERVICE), (0, 0));
    }
}

#[test]
fn r19_login_deadline() {
    let request = login_request(1, b"0123456789abcdef");
    // One that says nothing, one that drips, one that is just in time.
    let mut hall = Hall::new(seed());
    let silent = hall.add(Peer::silent(&address(1)));
    let dripping = hall.add(Peer::silent(&address(2)));
    let in_time = hall.add(Peer::silent(&address(3)));
    let delay = hall.net.stream_delay_ms;
    let accepted_at = hall.now() + delay;
    for peer in [silent, dripping, in_time] {
        hall[peer].open();
    }
    for byte in &request[..request.len() - 1] {
        hall[dripping].write(&[*byte]);
        hall[in_time].write(&[*byte]);
        hall.for_ms(200);
    }
    let last = &request[request.len() - 1..];
    let now = hall.now();
    hall.for_ms(accepted_at + 4990 - delay - now);
    hall[in_time].write(last);
    hall.for_ms(40);
    hall[dripping].write(last);
    hall.for_ms(40);
    assert!(hall[in_time].accepted().is_some());
    for peer in [silent, dripping] {
        let Some((at, _)) = hall[peer].end else {
            panic!("it was not closed")
        };
        let late = at - delay - accepted_at;
        assert!((5000..5020).contains(&late), "after {late} ms");
        assert!(hall[peer].stream.is_empty());
    }
    assert_eq!(hall.count("login-late"), 2);
}

#[test]
fn r20_silent_after_login() {
    for bytes in [
        login_request(1, b"R9"),
        login_accepted(1, 0, 1),
        login_rejected(1),
        frame(&[0]),
        frame(&[5, 0]),
        frame(&[4]),
        frame(&[4, 0, 0]),
        vec![0, 0],
        vec![1, 2],
    ] {
        let mut hall = Hall::new(seed());
        let witness = hall.enter("witness", 1);
        let speaker = hall.enter("speaker", 2);
        hall[speaker].write(&bytes);
        hall.settle();
        assert!(hall[speaker].closed_without_a_word(), "{bytes:02X?}");
        let told = hall[witness].events().last();
        assert_eq!(told, Some(&Event::left(1, left::PROTOCOL_ERROR)));
        assert_eq!(hall.count("ended-malformed-stream"), 1);
    }
}

#[test]
fn r21_the_player_leaves() {
    let ways: [(&str, Way); 6] = [
        ("logout", |peer| peer.write(&logout(0))),
        ("shutdown", |peer| peer.write(&logout(1))),
        ("unknown reason", |peer| peer.write(&logout(200))),
        ("logout and close", Peer::leave),
        ("half-close", Peer::fin),
        ("reset", Peer::abort),
    ];
    for (way, leave) in ways {
        let mut hall = Hall::new(seed());
        let witness = hall.enter("witness", 1);
        let leaver = hall.enter("leaver", 2);
        hall.settle();
        hall.told();
        leave(&mut hall[leaver]);
        hall.settle();
        let told = hall[witness].events().last();
        assert_eq!(told, Some(&Event::left(1, left::LEFT)), "{way}");
        let told = hall.told();
        assert!(matches!(told[..], [Told::Left { reason: 0, .. }]), "{way}");
        assert_eq!(hall.count("ended-left"), 1, "{way}");
        assert_eq!(hall.connections(SERVICE), (1, 1), "{way}");
        if way != "reset" {
            assert!(hall[leaver].closed_without_a_word(), "{way}");
        }
    }
}

/// Two players, of whom one is ended by the server; returns the hall, the other and the ended.
fn two() -> (Hall, PeerId, PeerId) {
    let mut hall = Hall::new(seed());
    let witness = hall.enter("witness", 1);
    let ended = hall.enter("ended", 2);
    hall.settle();
    (hall, witness, ended)
}

#[test]
fn r22_the_servers_logout() {
    let told_why = |hall: &Hall, peer: PeerId, reason: u8| {
        let logouts = [(0, Said::Logout(reason))];
        let said: Vec<_> = hall[peer].said[1..].iter().map(|it| (0, it.1)).collect();
        assert_eq!(said, logouts);
        assert!(matches!(hall[peer].end, Some((_, Ending::Fin))));
    };

    let (mut hall, witness, ended) = two();
    let player = hall.handle("ended");
    hall.act(move |replies| replies.kick(player))
        .expect("it is there");
    hall.settle();
    told_why(&hall, ended, left::KICKED);
    assert_eq!(
        hall[witness].events().last(),
        Some(&Event::left(1, left::KICKED))
    );

    let (mut hall, witness, ended) = two();
    hall[ended].send(99, &[]);
    hall.settle();
    told_why(&hall, ended, left::PROTOCOL_ERROR);
    let event = Event::left(1, left::PROTOCOL_ERROR);
    assert_eq!(hall[witness].events().last(), Some(&event));

    let (mut hall, witness, ended) = two();
    hall[ended].fall_silent();
    hall.for_ms(11_000);
    told_why(&hall, ended, left::TIMED_OUT);
    let event = Event::left(1, left::TIMED_OUT);
    assert_eq!(hall[witness].events().last(), Some(&event));

    let (mut hall, witness, ended) = two();
    hall.stop(SERVICE);
    hall.settle();
    told_why(&hall, ended, left::SHUTDOWN);
    told_why(&hall, witness, left::SHUTDOWN);
}

#[test]
fn r23_last_bytes_arrive() {
    // A stream thrown away would destroy what is under way; whatever was said must arrive.
    let garbage = vec![0; 100_000];
    let mut hall = Hall::new(seed());
    let mut bytes = login_request(1, b"R9");
    bytes.extend(login_request(1, b"R9"));
    bytes.extend(&garbage);
    let peer = hall.greet(1, &bytes);
    assert!(matches!(hall[peer].said[..], [(_, Said::Accepted { .. })]));
    assert!(matches!(hall[peer].end, Some((_, Ending::Fin))));

    let peer = hall.enter_silent("R9", 2);
    hall[peer].send(99, &[]);
    hall[peer].write(&garbage);
    hall.settle();
    assert_eq!(hall[peer].logged_out(), Some(left::PROTOCOL_ERROR));
    assert!(matches!(hall[peer].end, Some((_, Ending::Fin))));
}

#[test]
fn r24_free_at_once() {
    let dice = Rigged::new(&[]);
    let mut hall = Hall::with_dice(seed(), Box::new(dice.clone()));
    dice.next(&[0xAAAA]);
    let old = hall.enter_silent("R9", 1);
    let others: Vec<PeerId> = (2..5).map(|n| hall.enter(&format!("n{n}"), n)).collect();
    assert_eq!(hall[old].token(), 0xAAAA);
    hall.settle();
    // Everything in the same millisecond: it leaves, and another takes its number, its name, its
    // token and its endpoint. The old connection stays open at the client's side.
    dice.next(&[0xAAAA]);
    let new = hall.add(Peer::silent(&address(1)));
    hall[old].write(&logout(0));
    hall[new].login("R9");
    hall.for_ms(10);
    assert_eq!(hall[new].accepted(), Some((0xAAAA, 0, 4242)));
    hall[new].connect();
    hall.settle();
    assert!(hall[new].is_bound());
    let events = hall[others[0]].events();
    let [.., left, joined] = events else {
        panic!("{events:?}")
    };
    assert_eq!(
        [left, joined],
        [&Event::left(0, left::LEFT), &Event::joined(0, "R9")]
    );
}

#[test]
fn r25_binding_deadline() {
    let mut hall = Hall::new(seed());
    let witness = hall.enter("witness", 1);
    let slow = hall.enter_as("slow", Peer::silent(&address(2)));
    let accepted_at = hall[slow].said[0].0;
    hall.until(11_000, |hall| hall[slow].end.is_some());
    let (at, said) = hall[slow].said[1];
    assert_eq!(said, Said::Logout(left::TIMED_OUT));
    let took = at - accepted_at;
    assert!((10_000..10_020).contains(&took), "{took} ms");
    assert_eq!(hall[witness].events(), []);
    // Just in time is in time.
    let slow = hall.enter_as("slow", Peer::silent(&address(2)));
    hall[slow].conduct = Conduct {
        connect: false,
        ..Conduct::HONEST
    };
    hall.for_ms(9980);
    hall[slow].connect();
    hall.for_ms(1000);
    assert!(hall[slow].is_bound());
}

#[test]
fn r28_stop() {
    let mut hall = Hall::new(seed());
    let bound = hall.enter("bound", 1);
    let unbound = hall.enter_as("unbound", Peer::silent(&address(2)));
    let pending = hall.greet(3, &login_request(1, b"half")[..5]);
    hall.shelf.open().answer = Answer::Wait;
    let asked = hall.greet(5, &login_request(1, b"asked"));
    let now = hall.now();
    hall.input(SERVICE, Input::Stop);
    let late = hall.add(Peer::new(&address(4)));
    hall[late].login("late");
    hall.settle();
    let by = now + hall.net.stream_delay_ms;
    for peer in [bound, unbound] {
        let said = hall[peer].said.last().copied();
        assert_eq!(said, Some((by, Said::Logout(left::SHUTDOWN))));
        assert!(matches!(hall[peer].end, Some((_, Ending::Fin))));
    }
    for peer in [pending, late, asked] {
        assert!(hall[peer].end.is_some());
        assert!(hall[peer].stream.is_empty());
    }
    assert_eq!(hall.connections(SERVICE), (0, 0));
    assert_eq!(hall.count("sessions"), 0);
    // Nothing is left to be done.
    assert_eq!(hall.deadline(SERVICE), None);
}
