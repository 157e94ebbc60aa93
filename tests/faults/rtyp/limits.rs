//! Connections that do not log in: how long they may stay, and how many there may be.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::bytes::login_request;
use crate::player::{
    Login, Player, closed_without_a_word, connect, connect_from, exchange, is_open_and_silent,
};
use crate::program::{Program, until};

#[test]
fn r26_one_address_may_have_ten_that_are_silent() {
    let server = Program::start(&["--limit-loopback", "--games", "2"]);
    let player = Player::enter(server.tcp(), "player");
    let mut silent: Vec<TcpStream> = (0..10).map(|_| connect(server.tcp())).collect();
    closed_without_a_word(&mut connect(server.tcp()));
    for stream in &silent {
        assert!(is_open_and_silent(stream));
    }
    let elsewhere = connect_from("127.0.0.2", server.tcp());
    Login::over(elsewhere, "elsewhere");
    // One of the ten logs in, and leaves its place to the next; and so does one that closes.
    let first = Login::over(silent.remove(0), "first");
    silent.push(connect(server.tcp()));
    closed_without_a_word(&mut connect(server.tcp()));
    drop(silent);
    until("a place that is free again", || is_let_in(&server));
    assert!(is_open_and_silent(&first.stream));
    player.assert_undisturbed();
}

/// Whether a connection can log in.
fn is_let_in(server: &Program) -> bool {
    let mut stream = connect(server.tcp());
    // Where it is closed at once, writing may fail before reading does.
    let _ = stream.write_all(&login_request(b"next"));
    matches!(stream.read(&mut [0]), Ok(1..))
}

#[test]
fn r26_loopback_is_exempt_unless_the_server_is_told_otherwise() {
    let server = Program::start(&[]);
    let silent: Vec<TcpStream> = (0..50).map(|_| connect(server.tcp())).collect();
    Login::new(server.tcp(), "one more");
    assert!(silent.iter().all(is_open_and_silent));
}

#[test]
fn r27_the_one_that_waits_longest_makes_room() {
    let server = Program::start(&["--limit", "pending=20"]);
    let (mut one, mut two) = (
        Player::enter(server.tcp(), "one"),
        Player::enter(server.tcp(), "two"),
    );
    let mut silent: Vec<TcpStream> = (0..20).map(|_| connect(server.tcp())).collect();
    for round in 0..30 {
        let newest = connect(server.tcp());
        closed_without_a_word(&mut silent.remove(0));
        silent.push(newest);
        assert!(silent.iter().all(is_open_and_silent));
        exchange(&mut one, &mut two, round);
    }
    // A crowd of them locks out nobody who logs in at once.
    Login::new(server.tcp(), "three");
    closed_without_a_word(&mut silent[0]);
    one.assert_undisturbed();
    two.assert_undisturbed();
}

#[test]
fn a_login_has_five_seconds_dripped_or_not() {
    let server = Program::start(&[]);
    let began = Instant::now();
    let mut silent = connect(server.tcp());
    let mut dripping = connect(server.tcp());
    let request = login_request(b"abcdefghijklmnop");
    dripping
        .set_read_timeout(Some(Duration::from_secs(1)))
        .expect("set");
    let closed = request.iter().any(|byte| {
        // Too late is no reason to fail: it was closed then.
        let _ = dripping.write_all(&[*byte]);
        match dripping.read(&mut [0]) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => false,
            Ok(1..) => panic!("an answer to a part"),
            _ => true,
        }
    });
    let after = began.elapsed();
    println!("closed after {after:?}");
    assert!(closed);
    // A turn may have begun just before the connection came.
    assert!((Duration::from_millis(4900)..Duration::from_millis(7000)).contains(&after));
    closed_without_a_word(&mut silent);
    assert!(began.elapsed() < Duration::from_millis(7000));
}
