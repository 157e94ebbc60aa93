//! The process is stopped or starved for a while: nobody is late for that.

use std::io::Write;
use std::thread;
use std::time::{Duration, Instant};

use anteroom::{Config, Rtyp, Server, Stats};

use crate::PATIENCE;
use crate::bytes::{kind, login_request};
use crate::player::{Login, Player, connect, exchange, is_open_and_silent};
use crate::program::{Program, pass};

#[test]
fn r81_nobody_is_dropped_when_the_server_stops_for_3_s() {
    stall(Duration::from_secs(3));
}

#[test]
fn r81_nobody_is_dropped_when_the_server_stops_for_20_s() {
    stall(Duration::from_secs(20));
}

/// Four players and some who are about to log in, while the server does nothing for so long.
fn stall(stalled: Duration) {
    let server = Program::start(&["--games", "2"]);
    let enter = |name| Player::enter(server.tcp(), name);
    let mut players = ["idle", "idler", "talker", "louder"].map(enter);
    // The first two speak only when they are spoken to.
    players[0].pings = false;
    players[1].pings = false;
    let began = Instant::now();
    let (stop, go_on) = (Duration::from_secs(1), Duration::from_secs(1) + stalled);
    let end = began + go_on + Duration::from_secs(2);
    let players = players.map(|player| thread::spawn(move || play(player, end)));

    pass(began + stop);
    let mut half = connect(server.tcp());
    let request = login_request(b"half");
    half.write_all(&request[..5]).expect("it reads");
    // It was accepted before this one, so the server knows it.
    let _unbound = Login::new(server.tcp(), "unbound");
    server.signal("STOP");
    let mut late = connect(server.tcp());
    let late_request = login_request(b"late");
    late.write_all(&late_request).expect("there is room");
    pass(began + go_on - Duration::from_millis(500));
    half.write_all(&request[5..]).expect("there is room");
    pass(began + go_on);
    server.signal("CONT");

    Login::answered(half);
    Login::answered(late);
    let mut players = players.map(|player| player.join().expect("undisturbed"));
    players.iter().for_each(Player::assert_undisturbed);
    for (round, pair) in (0..).zip([[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]) {
        let [one, two] = players.get_disjoint_mut(pair).expect("two of them");
        exchange(one, two, round);
    }
}

fn play(mut player: Player, end: Instant) -> Player {
    while Instant::now() < end {
        if player.pings {
            player.send(kind::DATA, b"still here");
        }
        player.play_until(Instant::now() + Duration::from_millis(50));
    }
    player
}

#[test]
fn r81_a_stop_of_the_server_is_not_counted_against_a_login() {
    let server = Program::start(&[]);
    let mut stranger = connect(server.tcp());
    // It was accepted before this one, so the server knows it.
    let unbound = Login::new(server.tcp(), "unbound");
    server.signal("STOP");
    pass(Instant::now() + Duration::from_secs(6));
    server.signal("CONT");
    // The server has listened for 2 s of the 5 that a login may take.
    pass(Instant::now() + Duration::from_secs(2));
    assert!(is_open_and_silent(&stranger));
    let request = login_request(b"stranger");
    stranger.write_all(&request).expect("the server reads");
    Login::answered(stranger);
    assert!(is_open_and_silent(&unbound.stream));
}

#[test]
fn r82_what_came_in_time_is_read_before_the_deadline_it_meets() {
    let mut server = Server::bind(Config {
        bind: vec![[127, 0, 0, 1].into()],
        rtyp: Some(Rtyp {
            port: 0,
            ..Rtyp::default()
        }),
        ..Config::default()
    })
    .expect("bound");
    let mut stream = connect(server.addresses()[0].tcp[0]);
    turn_until(&mut server, |stats| {
        stats.get("rtyp", "accepted") == Some(1)
    });
    let accepted = Instant::now();
    turn_until(&mut server, |_| {
        accepted.elapsed() >= Duration::from_millis(4800)
    });
    assert!(is_open_and_silent(&stream));
    let request = login_request(b"just in time");
    stream.write_all(&request).expect("there is room");
    // Not so long that it would not count, and longer than the deadline.
    pass(accepted + Duration::from_millis(5100));
    turn_until(&mut server, |stats| stats.get("rtyp", "logins") == Some(1));
    Login::answered(stream);
}

/// Turns until something is so; fails if it takes too long.
fn turn_until(server: &mut Server, mut done: impl FnMut(&Stats) -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !done(&server.stats()) {
        assert!(Instant::now() < deadline, "turned in vain");
        server
            .turn(Some(Duration::from_millis(10)))
            .expect("a turn");
    }
}
