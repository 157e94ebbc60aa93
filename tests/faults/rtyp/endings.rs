//! Connections end in good order: what was said last arrives, whatever else was on its way.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::time::{Duration, Instant};

use crate::bytes::{LOGIN_ACCEPTED, REJECTED_BAD_NAME, left, login_request, logout};
use crate::player::{Login, Player, closed_without_a_word, connect, read_all};
use crate::program::{Program, until};

const BAD_NAME: &[u8] = b"a\nb";

#[test]
fn r23_a_rejection_arrives_whatever_else_was_sent() {
    let server = Program::start(&[]);
    for round in 0..200 {
        let mut stream = connect(server.tcp());
        let mut bytes = login_request(BAD_NAME);
        bytes.resize(bytes.len() + round * 200, 0xA5);
        stream.write_all(&bytes).expect("the server reads");
        assert_eq!(read_all(&mut stream), REJECTED_BAD_NAME, "round {round}");
    }
}

#[test]
fn r23_a_rejected_client_may_go_on_talking() {
    let server = Program::start(&[]);
    for round in 0..50 {
        let mut stream = connect(server.tcp());
        let request = login_request(BAD_NAME);
        stream.write_all(&request).expect("the server reads");
        let mut rejected = REJECTED_BAD_NAME.map(|_| 0);
        stream.read_exact(&mut rejected).expect("an answer");
        assert_eq!(rejected, REJECTED_BAD_NAME);
        for _ in 0..10 {
            stream.write_all(&[0xA5; 1000]).expect("still drained");
        }
        assert_eq!(read_all(&mut stream), b"", "round {round}");
    }
}

#[test]
fn r23_who_does_not_close_is_closed_after_a_second() {
    let server = Program::start(&[]);
    let before = server.descriptors_below(u32::MAX);
    let mut stream = connect(server.tcp());
    let request = login_request(BAD_NAME);
    stream.write_all(&request).expect("the server reads");
    assert_eq!(read_all(&mut stream), REJECTED_BAD_NAME);
    let rejected = Instant::now();
    let is_closed = || server.descriptors_below(u32::MAX) == before;
    assert!(!is_closed(), "it drains");
    until("the connection is closed", is_closed);
    let after = rejected.elapsed();
    println!("closed after {after:?}");
    assert!((Duration::from_millis(800)..Duration::from_millis(2500)).contains(&after));
}

#[test]
fn two_logins_in_one_segment_are_answered_once_and_closed() {
    let server = Program::start(&[]);
    for _ in 0..50 {
        let mut stream = connect(server.tcp());
        let twice = [login_request(b"one"), login_request(b"two")].concat();
        stream.write_all(&twice).expect("the server reads");
        assert_is_accepted(&read_all(&mut stream));
    }
}

#[test]
fn a_login_and_a_logout_in_one_segment_are_a_short_stay() {
    let server = Program::start(&[]);
    let mut witness = Player::enter(server.tcp(), "witness");
    for _ in 0..50 {
        let mut stream = connect(server.tcp());
        let both = [login_request(b"hasty"), logout(left::LEFT)].concat();
        stream.write_all(&both).expect("the server reads");
        assert_is_accepted(&read_all(&mut stream));
    }
    // Who never bound was never announced; the next one who stays is.
    let stays = Player::enter(server.tcp(), "stays");
    witness.hear_until("a join", |player| {
        player.events.first().filter(|event| event.is_join())?;
        Some(())
    });
    assert_eq!((stays.number, witness.events.len()), (1, 1));
}

#[test]
fn what_follows_a_bad_message_is_not_looked_at() {
    let server = Program::start(&[]);
    let mut stream = connect(server.tcp());
    let bytes = [logout(left::LEFT), login_request(b"late")].concat();
    stream.write_all(&bytes).expect("the server reads");
    closed_without_a_word(&mut stream);
}

#[test]
fn a_half_closed_connection_is_a_player_who_left() {
    let server = Program::start(&[]);
    let mut witness = Player::enter(server.tcp(), "witness");
    let mut leaver = Player::enter(server.tcp(), "leaver");
    let half = leaver.stream.shutdown(Shutdown::Write);
    half.expect("half-closed");
    witness.hears_left(leaver.number, left::LEFT);
    assert_eq!(read_all(&mut leaver.stream), b"");
    let follower = Player::enter(server.tcp(), "leaver");
    assert_eq!(follower.number, leaver.number, "number and name are free");
}

#[test]
fn a_login_that_is_half_closed_behind_its_request_is_answered() {
    let server = Program::start(&[]);
    for _ in 0..50 {
        let mut stream = connect(server.tcp());
        let request = login_request(b"brief");
        stream.write_all(&request).expect("the server reads");
        let half = stream.shutdown(Shutdown::Write);
        half.expect("half-closed");
        assert_is_accepted(&read_all(&mut stream));
    }
    let stays = Login::new(server.tcp(), "brief");
    assert_eq!(stays.number, 0, "nobody else is there");
}

#[test]
fn a_malformed_stream_ends_the_session_for_everybody() {
    let server = Program::start(&[]);
    let mut witness = Player::enter(server.tcp(), "witness");
    let mut garbled = Player::enter(server.tcp(), "garbled");
    let garbage = [0xA5; 5000];
    garbled.stream.write_all(&garbage).expect("it reads");
    witness.hears_left(garbled.number, left::PROTOCOL_ERROR);
    assert_eq!(read_all(&mut garbled.stream), b"", "and no reset");
}

/// A LoginAccepted, and nothing behind it.
#[track_caller]
fn assert_is_accepted(bytes: &[u8]) {
    assert_eq!(bytes.len(), LOGIN_ACCEPTED, "{bytes:02X?}");
    assert_eq!(bytes[..3], [8, 0, 2]);
}
