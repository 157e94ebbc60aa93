//! The driver of a client that logs in again: it has two connections meanwhile.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use anteroom::driver::Door;

use super::super::rtyp::bytes::{Datagram, kind, logout};
use super::{Host, PATIENCE, Player, TOKEN};

/// It takes its 6 s: so long nothing is heard.
#[test]
fn who_hears_nothing_logs_in_again_from_another_port() {
    let host = Host::new();
    let address = host.listener.local_addr().expect("its address");
    let mut player = Player::enter(address, "R9", Door::Login { rejoins: true });
    let (mut first, client) = host.accept(&mut player, TOKEN);
    host.listener.set_nonblocking(true).expect("set");
    let mut second = None;
    let start = Instant::now();
    player.until(|_| {
        second = host.listener.accept().ok().map(|(stream, _)| stream);
        second.is_some()
    });
    assert!(start.elapsed() > Duration::from_millis(5_900));
    let mut second = second.expect("a connection");
    second.set_nonblocking(false).expect("set");
    second.set_read_timeout(Some(PATIENCE)).expect("set");
    let again = host.admit(&mut player, &mut second, TOKEN + 1);
    assert_ne!(again, client);
    assert_eq!(
        player.told.iter().filter(|told| *told == "Joined").count(),
        2
    );
    let mut rest = Vec::new();
    // It may have been reset.
    let _ = first.read_to_end(&mut rest);
    assert_eq!(rest, b"", "no Logout");
    // What comes by the new sockets is waited for.
    let data = Datagram::new(kind::DATA, TOKEN + 1, b"x").sequence(1);
    host.send(again, data);
    player.until(|it| it.heard("Data { bytes: [120] }"));
    let stats = player.driver.stats();
    let count = |name: &str| stats.iter().find(|it| it.0 == name).map(|it| it.1);
    assert!(count("datagrams-out") > Some(7), "{stats:?}");
    second.write_all(&logout(1)).expect("written");
    player.until(|it| it.driver.is_closed());
}
