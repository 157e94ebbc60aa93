//! The server stops: everybody is told in time, and nobody can hold it up.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::bytes::{kind, left, logout};
use crate::player::{Login, Player, closed_without_a_word, connect, read_all};
use crate::program::{Program, until};

/// The documents say 100 ms to the first Logout and 2 s to the end; this is for a busy machine.
const FIRST_WITHIN: Duration = Duration::from_millis(500);
const END_WITHIN: Duration = Duration::from_millis(3500);

const PLAYERS: usize = 100;
/// Enough games for them, and one more.
const GAMES: [&str; 2] = ["--games", "26"];

fn names() -> impl Iterator<Item = String> {
    (0..PLAYERS).map(|index| format!("player {index}"))
}

/// Reads on a thread of its own to the end; returns what came, and when the first byte did.
fn hear_farewell(mut stream: TcpStream) -> thread::JoinHandle<(Instant, Vec<u8>)> {
    thread::spawn(move || {
        let mut first = vec![0];
        stream.read_exact(&mut first).expect("a farewell");
        let at = Instant::now();
        first.extend(read_all(&mut stream));
        (at, first)
    })
}

#[test]
fn r28_a_signal_says_logout_to_everybody_at_once_and_the_server_ends_well() {
    let server = Program::start(&GAMES);
    let enter = |name: String| Player::enter(server.tcp(), &name);
    let players: Vec<Player> = names().map(enter).collect();
    let mut unbound = Login::new(server.tcp(), "unbound").stream;
    let mut stranger = connect(server.tcp());
    // Every fourth never reads, nor closes; the others are waited for by threads.
    let (deaf, hearing): (Vec<_>, Vec<_>) =
        (0..).zip(players).partition(|(index, _)| index % 4 == 0);
    let streams = hearing.into_iter().map(|(_, player)| player.stream);
    let hearing: Vec<_> = streams.map(hear_farewell).collect();
    let asked = Instant::now();
    server.signal("TERM");
    let heard = hearing.into_iter().map(|it| it.join().expect("no reset"));
    let (times, farewells): (Vec<Instant>, Vec<Vec<u8>>) = heard.unzip();
    let first = *times.iter().min().expect("somebody") - asked;
    let last = *times.iter().max().expect("somebody") - asked;
    assert_eq!(server.end(END_WITHIN), Some(0));
    let end = asked.elapsed();
    println!("first Logout {first:?}, last {last:?}, end {end:?}");
    assert!(first <= FIRST_WITHIN && end <= END_WITHIN);
    for farewell in farewells {
        assert_eq!(farewell, logout(left::SHUTDOWN));
    }
    assert_eq!(read_all(&mut unbound), logout(left::SHUTDOWN));
    closed_without_a_word(&mut stranger);
    drop(deaf);
}

#[test]
fn r28_everybody_hears_logout_though_they_were_talking() {
    let server = Program::start(&GAMES);
    let log_in = |name: String| Login::new(server.tcp(), &name).stream;
    let mut streams: Vec<TcpStream> = names().map(log_in).collect();
    // What they say reaches a process that does not read, and then is told to stop.
    server.signal("STOP");
    for stream in &mut streams {
        // The beginning of a message of 512 bytes: nothing wrong with it so far.
        let mut beginning = 512_u16.to_le_bytes().to_vec();
        beginning.resize(500, 4);
        stream.write_all(&beginning).expect("there is room");
    }
    server.signal("TERM");
    server.signal("CONT");
    for mut stream in streams {
        assert_eq!(read_all(&mut stream), logout(left::SHUTDOWN));
    }
    assert_eq!(server.end(END_WITHIN), Some(0));
}

#[test]
fn r28_a_flood_does_not_delay_the_farewell() {
    let _alone = crate::alone();
    let server = Program::start(&[]);
    let mut player = Player::enter(server.tcp(), "player");
    let flood = Flood::new(player.server);
    // It is in full flow when an answer has come through it.
    until("a Pong", || is_answered(&mut player));
    let asked = Instant::now();
    server.signal("TERM");
    let farewell = read_all(&mut player.stream);
    let after = asked.elapsed();
    drop((flood, player));
    println!("Logout after {after:?}");
    assert_eq!(farewell, logout(left::SHUTDOWN));
    assert!(after <= FIRST_WITHIN, "{after:?}");
    assert_eq!(server.end(END_WITHIN), Some(0));
}

/// Two threads that send as much as they can, until it is dropped.
struct Flood {
    is_over: Arc<AtomicBool>,
}

impl Flood {
    fn new(server: SocketAddr) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        for _ in 0..2 {
            let is_over = Arc::clone(&is_over);
            thread::spawn(move || {
                let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
                while !is_over.load(Ordering::Relaxed) {
                    // A server that has ended refuses it.
                    let _ = socket.send_to(b"RTYP and nothing else", server);
                }
            });
        }
        Self { is_over }
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

fn is_answered(player: &mut Player) -> bool {
    player.ping();
    let heard = player.hear(Instant::now() + Duration::from_millis(100));
    heard.is_some_and(|datagram| datagram.kind == kind::PONG)
}

#[test]
fn r28_nobody_gets_in_any_more() {
    let server = Program::start(&[]);
    let mut slow = Login::new(server.tcp(), "slow").stream;
    let address = server.tcp();
    server.signal("TERM");
    let mut farewell = vec![0; logout(left::SHUTDOWN).len()];
    slow.read_exact(&mut farewell).expect("a farewell");
    // It waits for this one, and listens no more.
    assert!(is_refused(address));
    assert_eq!(server.end(END_WITHIN), Some(0));
}

/// Whether nobody listens there, or whoever does closes without a word.
fn is_refused(address: SocketAddr) -> bool {
    match TcpStream::connect_timeout(&address, FIRST_WITHIN) {
        Ok(mut stream) => !matches!(stream.read(&mut [0]), Ok(1..)),
        Err(_) => true,
    }
}

#[test]
fn a_second_signal_waits_for_nobody() {
    let server = Program::start(&[]);
    let mut deaf = Login::new(server.tcp(), "deaf").stream;
    server.signal("TERM");
    let mut farewell = vec![0; logout(left::SHUTDOWN).len()];
    deaf.read_exact(&mut farewell).expect("a farewell");
    let asked = Instant::now();
    server.signal("TERM");
    assert_eq!(server.end(FIRST_WITHIN), Some(128 + 15));
    println!("ended {:?} after the second signal", asked.elapsed());
}

#[test]
fn an_idle_server_ends_at_once() {
    let server = Program::start(&[]);
    server.signal("INT");
    assert_eq!(server.end(FIRST_WITHIN), Some(0));
}
