//! Garbage on every port: whoever plays notices nothing, nothing is answered, nothing piles up.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use crate::bytes::{Datagram, MAGIC, login_request};
use crate::player::{Login, Player, connect, exchange, exchange_in_a_flood, is_open_and_silent};
use crate::program::{Program, until};

const LASTS: Duration = Duration::from_secs(5);

/// By how much the resident memory may grow, once the players are there: the buffers into which
/// datagrams are received are touched for the first time (2 MiB), and 50 connections more.
const GROWTH_KIB_MAX: u64 = 4 * 1024;

/// Half-open connections that are kept: more than may be.
const HALF_OPEN: usize = 60;
const PENDING: &str = "pending=50";

#[test]
fn garbage_on_every_port_disturbs_nobody() {
    let _alone = crate::alone();
    let server = Program::start(&["--limit", PENDING, "--games", "2"]);
    let tcp = server.tcp();
    let enter = |name| Player::enter(tcp, name);
    let (mut one, mut two, probe) = (enter("one"), enter("two"), enter("probe"));
    exchange(&mut one, &mut two, 0);
    let (before, descriptors) = (server.resident_kib(), server.descriptors_below(u32::MAX));

    let end = Instant::now() + LASTS;
    let datagrams = thread::spawn(move || garbage_datagrams(probe, end));
    let streams = thread::spawn(move || garbage_streams(tcp, end));
    let half_open = thread::spawn(move || half_open(tcp, end));
    let mut rounds = 1..;
    while Instant::now() < end {
        for round in rounds.by_ref().take(2) {
            exchange_in_a_flood(&mut one, &mut two, round);
        }
        one.play_until(Instant::now() + Duration::from_millis(10));
        two.play_until(Instant::now() + Duration::from_millis(10));
    }
    let probe = datagrams.join().expect("no answer to garbage");
    streams.join().expect("no answer to garbage");
    let half_open = half_open.join().expect("they stay open");
    let after = server.resident_kib();
    println!("{before} KiB resident before, {after} KiB after");

    for player in [&one, &two, &probe] {
        player.assert_undisturbed();
    }
    Login::new(tcp, "others get in");
    assert!(after <= before + GROWTH_KIB_MAX);
    drop(half_open);
    let is_clean = || server.descriptors_below(u32::MAX) == descriptors;
    until("all of it is gone", is_clean);
    server.signal("TERM");
    assert_eq!(server.end(Duration::from_secs(5)), Some(0));
}

/// Sends datagrams of all lengths, none of which may draw an answer. After so many the `probe`
/// asks for a Pong: what is on its way stays less than the server's socket has room for, so that
/// the players' own datagrams find room, too.
fn garbage_datagrams(mut probe: Player, end: Instant) -> Player {
    const BURST_BYTES: usize = 60_000;
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    socket.set_nonblocking(true).expect("set");
    let mut dice = Dice::new(1);
    let mut count = 0;
    while Instant::now() < end {
        let mut left = BURST_BYTES;
        // A small one takes more room than its bytes.
        while left > 0 {
            let bytes = garbage_datagram(&mut dice);
            socket.send_to(&bytes, probe.server).expect("sent");
            left = left.saturating_sub(bytes.len().max(1000));
            count += 1;
        }
        probe.data.clear();
        probe.is_heard_in_a_flood();
        assert!(socket.recv(&mut [0]).is_err(), "garbage was answered");
    }
    println!("{count} datagrams");
    probe
}

/// Anything from nothing to the largest datagram, more or less like one of the protocol.
fn garbage_datagram(dice: &mut Dice) -> Vec<u8> {
    let len = match dice.below(20) {
        0 => dice.below(65_507),
        1..10 => dice.below(64),
        _ => dice.below(1300),
    };
    let mut bytes: Vec<u8> = (0..len).map(|_| dice.next() as u8).collect();
    match dice.below(4) {
        0 => {}
        1 => overwrite(&mut bytes, &MAGIC),
        2 => overwrite(
            &mut bytes,
            &[&MAGIC[..], &[1, dice.below(9) as u8]].concat(),
        ),
        _ => bytes = unknown_session(dice).bytes(),
    }
    bytes
}

fn overwrite(bytes: &mut [u8], with: &[u8]) {
    let len = bytes.len().min(with.len());
    bytes[..len].copy_from_slice(&with[..len]);
}

fn unknown_session(dice: &mut Dice) -> Datagram {
    Datagram {
        kind: dice.below(9) as u8,
        sequence: dice.next() as u16,
        ack: dice.next() as u16,
        ack_bits: dice.next() as u32,
        session: dice.next() as u32,
        payload: vec![0; dice.below(8)],
    }
}

/// Streams of garbage, now and then behind a login, one behind the other.
fn garbage_streams(server: SocketAddr, end: Instant) {
    let mut dice = Dice::new(2);
    let mut count = 0;
    while Instant::now() < end {
        let mut stream = connect(server);
        let mut bytes: Vec<u8> = (0..dice.below(3000)).map(|_| dice.next() as u8).collect();
        if dice.below(4) == 0 {
            bytes.splice(..0, login_request(format!("stream {count}").as_bytes()));
        }
        // The server may have closed before it has everything.
        let _ = stream.write_all(&bytes);
        if bytes.len() > 600 {
            // Longer than any message: it is closed.
            while matches!(stream.read(&mut [0; 64]), Ok(1..)) {}
        }
        count += 1;
    }
    println!("{count} streams");
}

/// Connections that stay and say little or nothing, and always new ones: the oldest make room.
fn half_open(server: SocketAddr, end: Instant) -> Vec<TcpStream> {
    let mut dice = Dice::new(3);
    let mut streams = Vec::new();
    let mut count = 0;
    while Instant::now() < end {
        let mut stream = connect(server);
        let some = dice.below(5);
        let beginning = &login_request(b"never")[..some];
        stream.write_all(beginning).expect("it reads");
        streams.push(stream);
        if streams.len() > HALF_OPEN {
            streams.remove(dice.below(HALF_OPEN));
        }
        count += 1;
        let newest = streams.last().expect("one");
        assert!(is_open_and_silent(newest), "what is new stays");
    }
    println!("{count} half-open connections");
    streams
}

/// Numbers that look like chance and are the same every time.
struct Dice(u64);

impl Dice {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 16
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}
