//! The server inside of another program.

use std::io::Read;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use anteroom::{
    Config, Error, Event, Game, Remote, RemoteError, Replies, Rtyp, Server, Time, Verdict,
};

use crate::bytes::{left, logout};
use crate::player::{Login, Player, exchange, read_all};

/// The documents say 100 ms to the first farewell and 2 s to the end; this is for a busy machine.
const FIRST_WITHIN: Duration = Duration::from_millis(500);
const END_WITHIN: Duration = Duration::from_millis(3500);

/// What the tests here serve.
pub fn config() -> Config {
    Config {
        bind: vec![[127, 0, 0, 1].into()],
        rtyp: Some(Rtyp {
            port: 0,
            games: 30,
            ..Rtyp::default()
        }),
        ..Config::default()
    }
}

/// A server of its own thread.
pub fn spawn(config: Config) -> (Remote, thread::JoinHandle<Result<(), Error>>) {
    let server = Server::bind(config).expect("bound");
    server.spawn().expect("a thread")
}

#[test]
fn two_servers_of_one_process_know_nothing_of_each_other() {
    let (one, one_thread) = spawn(config());
    let (two, two_thread) = spawn(config());
    let address = |remote: &Remote| remote.addresses()[0].tcp[0];
    let enter = |remote, name| Player::enter(address(remote), name);
    let (mut a, mut b) = (enter(&one, "a"), enter(&one, "b"));
    let (mut c, mut d) = (enter(&two, "a"), enter(&two, "b"));
    for round in 0..50 {
        exchange(&mut a, &mut b, round);
        exchange(&mut c, &mut d, round + 1000);
    }
    one.stop().expect("it runs");
    assert_eq!(read_all(&mut a.stream), logout(left::SHUTDOWN));
    drop((a, b));
    one_thread.join().expect("no panic").expect("no error");
    assert_eq!(one.stop(), Err(RemoteError::Gone));
    for round in 50..100 {
        exchange(&mut c, &mut d, round);
    }
    c.assert_undisturbed();
    let stats = two.stats().expect("it runs");
    assert_eq!(stats.get("rtyp", "logins"), Some(2));
    two.stop().expect("it runs");
    drop((c, d));
    two_thread.join().expect("no panic").expect("no error");
}

#[test]
fn a_loop_of_ones_own_serves_players() {
    let mut server = Server::bind(config()).expect("bound");
    let remote = server.remote();
    let address = server.addresses()[0].tcp[0];
    let (sender, played) = channel();
    let players = thread::spawn(move || {
        let mut one = Player::enter(address, "one");
        let mut two = Player::enter(address, "two");
        for round in 0..50 {
            exchange(&mut one, &mut two, round);
        }
        sender.send(()).expect("it is waited for");
        [one, two].map(|mut player| read_all(&mut player.stream))
    });
    let mut frames = 0;
    while played.try_recv().is_err() {
        assert!(server.turn(Some(Duration::from_millis(5))).expect("a turn"));
        // Whatever else the program does.
        frames += 1;
    }
    assert_eq!(server.stats().get("rtyp", "bindings"), Some(2));
    remote.stop().expect("it is there");
    while server.turn(Some(Duration::from_millis(5))).expect("a turn") {
        frames += 1;
    }
    println!("{frames} turns");
    for farewell in players.join().expect("they have played") {
        assert_eq!(farewell, logout(left::SHUTDOWN));
    }
}

#[test]
fn another_thread_stops_it_in_time() {
    let (remote, server) = spawn(config());
    let address = remote.addresses()[0].tcp[0];
    let mut logins: Vec<Login> = (0..100)
        .map(|index| Login::new(address, &format!("player {index}")))
        .collect();
    let asked = Instant::now();
    let stop = thread::spawn(move || remote.stop());
    logins[0].stream.read_exact(&mut [0]).expect("a farewell");
    let first = asked.elapsed();
    stop.join().expect("no panic").expect("it ran");
    // None of them closes.
    server.join().expect("no panic").expect("no error");
    let end = asked.elapsed();
    println!("first farewell {first:?}, end {end:?}");
    assert!(first <= FIRST_WITHIN && end <= END_WITHIN);
    for mut login in logins.drain(1..) {
        assert_eq!(read_all(&mut login.stream), logout(left::SHUTDOWN));
    }
}

/// A game that always has something to do soon.
struct Busy {
    due: Time,
}

impl Game for Busy {
    fn event(&mut self, _: Time, event: Event<'_>, out: &mut dyn Replies) {
        if let Event::Connecting { ticket, .. } = event {
            out.answer(ticket, Verdict::Admit).expect("it waits");
        }
    }

    fn wake(&self) -> Option<Time> {
        Some(self.due)
    }

    fn tick(&mut self, now: Time, _: &mut dyn Replies) {
        self.due = now + 20;
    }
}

#[test]
fn a_game_that_never_rests_does_not_hold_up_the_end() {
    let busy = Config {
        rtyp: Some(Rtyp {
            port: 0,
            game: Box::new(Busy { due: Time::ZERO }),
            ..Rtyp::default()
        }),
        ..config()
    };
    let (remote, server) = spawn(busy);
    let mut login = Login::new(remote.addresses()[0].tcp[0], "polite");
    let asked = Instant::now();
    remote.stop().expect("it runs");
    assert_eq!(read_all(&mut login.stream), logout(left::SHUTDOWN));
    drop(login);
    server.join().expect("no panic").expect("no error");
    println!("ended after {:?}", asked.elapsed());
    assert!(asked.elapsed() < Duration::from_millis(1500));
}

#[test]
fn a_server_that_is_dropped_frees_its_ports() {
    let server = Server::bind(config()).expect("bound");
    let address = server.addresses()[0].tcp[0];
    let mut login = {
        let turning = thread::spawn(move || {
            let mut server = server;
            while server.stats().get("rtyp", "logins") == Some(0) {
                server.turn(Some(Duration::from_millis(5))).expect("a turn");
            }
        });
        let login = Login::new(address, "left alone");
        turning.join().expect("no panic");
        login
    };
    assert_eq!(read_all(&mut login.stream), b"");
    let again = Config {
        rtyp: Some(Rtyp {
            port: address.port(),
            ..Rtyp::default()
        }),
        ..config()
    };
    let again = Server::bind(again).expect("its ports are free");
    assert_eq!(again.addresses()[0].tcp[0], address);
}
