//! Connections that come and go faster than their events are handled: each is accounted for.

use std::io::Write;
use std::net::{Shutdown, SocketAddr};
use std::thread;

use anteroom::Stats;

use crate::bytes::{left, login_request, logout};
use crate::embedding::{config, spawn};
use crate::player::{Login, Player, connect, exchange, is_open_and_silent, reset_on_close};
use crate::program::until;

const THREADS: usize = 4;
const CONNECTIONS: usize = 500;

/// Everything that can become of an accepted connection before it is a session.
const NEVER_LOGGED_IN: [&str; 11] = [
    "rejected-server-full",
    "rejected-bad-version",
    "rejected-bad-name",
    "rejected-name-taken",
    "rejected-game-started",
    "rejected-refused",
    "login-late",
    "login-malformed",
    "login-abandoned",
    "pending-refused",
    "unwatched",
];

/// Every way in which a session ends.
const ENDED: [&str; 6] = [
    "ended-left",
    "ended-shutdown",
    "ended-timed-out",
    "ended-protocol-error",
    "ended-kicked",
    "ended-malformed-stream",
];

#[test]
fn in_a_storm_of_connections_every_one_is_accounted_for() {
    let (remote, server) = spawn(config());
    let address = remote.addresses()[0].tcp[0];
    let enter = |name| Player::enter(address, name);
    let (mut one, mut two) = (enter("one"), enter("two"));
    let storms = [(); THREADS].map(|()| thread::spawn(move || storm(address)));
    for round in 0..500 {
        exchange(&mut one, &mut two, round);
    }
    for storm in storms {
        storm.join().expect("the server takes connections");
    }
    exchange(&mut one, &mut two, 500);
    let stats = || remote.stats().expect("it runs");
    until("only two are left", || count(&stats(), &["sessions"]) == 2);

    let stats = stats();
    println!("{stats:?}");
    let connected = (THREADS * CONNECTIONS + 2) as u64;
    let [accepted, logins] = ["accepted", "logins"].map(|name| count(&stats, &[name]));
    // One that was reset at once may never have been accepted.
    assert!(accepted + count(&stats, &["accept-vanished"]) <= connected);
    assert_eq!(logins - count(&stats, &ENDED), 2, "alive");
    assert_eq!(accepted, logins + count(&stats, &NEVER_LOGGED_IN));
    assert_eq!(count(&stats, &["ended-timed-out", "login-late"]), 0);
    assert!(logins > connected / 4);
    assert!(is_open_and_silent(&one.stream) && is_open_and_silent(&two.stream));
    remote.stop().expect("it runs");
    drop((one, two));
    server.join().expect("no panic").expect("no error");
}

fn count(stats: &Stats, names: &[&str]) -> u64 {
    let counts = names.iter().map(|name| stats.get("rtyp", name));
    counts.map(|count| count.expect("a counter")).sum()
}

/// Connections that end in every state and every way.
fn storm(server: SocketAddr) {
    for index in 0..CONNECTIONS {
        let mut stream = connect(server);
        if index % 3 == 0 {
            reset_on_close(&stream);
        }
        let id = format!("{:?}", thread::current().id());
        let name = format!("{} {index}", id.trim_start_matches("ThreadId"));
        let request = login_request(name.as_bytes());
        // The server may have closed first.
        let _ = match index % 8 {
            0 => Ok(()),
            1 => stream.write_all(&request[..4]),
            2 => stream.write_all(&request),
            3 => stream.write_all(&[&request[..], &logout(left::LEFT)].concat()),
            4 => stream.write_all(&[&request[..], &[0xA5; 700]].concat()),
            5 => stream.write_all(&[0xA5; 3000]),
            6 => stream
                .write_all(&request)
                .and(stream.shutdown(Shutdown::Write)),
            _ => {
                drop(Login::over(stream, &name).bind());
                continue;
            }
        };
    }
}
