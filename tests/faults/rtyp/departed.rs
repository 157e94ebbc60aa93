//! Players who vanish: their processes are killed, their sockets closed, their streams reset.
//! Whoever stays hears of it at once, or notices nothing at all.

use std::io::Write;
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anteroom::{Config, Rtyp, Server};

use crate::bytes::{Event, left, login_request};
use crate::player::{Login, Player, connect, exchange, reset_on_close};
use crate::program::Program;

/// Long before the timeout of a silent player.
const AT_ONCE: Duration = Duration::from_secs(3);

/// Rounds in each of which two datagrams go each way.
const ROUNDS: u32 = 1000;

#[test]
fn a_player_whose_process_is_killed_has_left_at_once() {
    let server = Program::start(&[]);
    let mut witness = Player::enter(server.tcp(), "witness");
    let killed = Player::enter(server.tcp(), "killed");
    let number = killed.number;
    // From now on this process has the one and only descriptor of the connection.
    let mut process = Command::new("cat")
        .stdin(Stdio::from(OwnedFd::from(killed.stream)))
        .stdout(Stdio::null())
        .spawn()
        .expect("it starts");
    drop(killed.socket);
    witness.play_until(Instant::now() + Duration::from_millis(300));
    witness.assert_undisturbed();
    let began = Instant::now();
    process.kill().expect("it runs");
    witness.hears_left(number, left::LEFT);
    assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
    process.wait().expect("killed");
}

#[test]
fn r91_a_reset_connection_ends_its_own_session_at_once_and_no_other() {
    let server = Program::start(&[]);
    let mut witness = Player::enter(server.tcp(), "witness");
    let mut friend = Player::enter(server.tcp(), "friend");
    for round in 0..50 {
        reset(connect(server.tcp()));
        let mut stream = connect(server.tcp());
        let request = login_request(b"cut short");
        stream.write_all(&request[..5]).expect("it reads");
        reset(stream);
        reset(Login::new(server.tcp(), "reset").stream);
        let bound = Player::enter(server.tcp(), &format!("bound {round}"));
        reset(bound.stream);
        let left = Event::left(bound.number, left::LEFT);
        let began = Instant::now();
        witness.hear_until("that it left", |player| {
            let count = player.events.iter().filter(|it| **it == left).count();
            (count == round + 1).then_some(())
        });
        assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
        exchange(&mut witness, &mut friend, round as u32);
    }
}

fn reset(stream: TcpStream) {
    reset_on_close(&stream);
    drop(stream);
}

#[test]
fn r91_a_departed_endpoint_costs_nobody_else_a_datagram() {
    let mut config = Config {
        bind: vec![[127, 0, 0, 1].into()],
        rtyp: Some(Rtyp {
            port: 0,
            ..Rtyp::default()
        }),
        ..Config::default()
    };
    config.limits.set("session-rate", 0).expect("in range");
    let server = Server::bind(config).expect("bound");
    let (remote, thread) = server.spawn().expect("a thread");
    let tcp = remote.addresses()[0].tcp[0];
    let enter = |name| Player::enter(tcp, name);
    let (mut one, mut two) = (enter("one"), enter("two"));
    let departed = [enter("three"), enter("four")].map(|player| player.stream);
    for round in 0..ROUNDS {
        exchange(&mut one, &mut two, round);
    }
    one.assert_undisturbed();
    two.assert_undisturbed();
    let stats = remote.stats().expect("it runs");
    let count = |name| stats.get("rtyp", name).expect("a counter");
    // To each of the two, and to each endpoint that is gone, went all that was said.
    assert!(count("datagrams-out") >= u64::from(ROUNDS) * 2 * 3);
    assert_eq!((count("sessions"), count("send-refused")), (4, 0));
    drop(departed);
    remote.stop().expect("it runs");
    thread.join().expect("no panic").expect("no error");
}
