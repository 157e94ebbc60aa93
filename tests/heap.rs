//! What the machine keeps on the heap, and when it allocates: every allocation of a test's thread
//! is counted.
//!
//! The allocator that counts is that of a package (it takes `unsafe`, which is nowhere in this
//! crate); it is linked into this test and nothing else.
#![forbid(unsafe_code)]

#[path = "../benches/common/bytes.rs"]
#[allow(dead_code, reason = "shared with the benches")]
mod bytes;
#[path = "../benches/common/machine.rs"]
#[allow(dead_code, reason = "shared with the benches")]
mod machine;

#[path = "heap/clients.rs"]
mod clients;
#[path = "heap/hellos.rs"]
mod hellos;
#[path = "heap/server.rs"]
mod server;

use std::net::Ipv4Addr;

use allocation_counter::measure;
use anteroom::engine::{Event, Game, Machine, Path, Replies, Time, Verdict};
use anteroom::game::Relay;
use anteroom::guard::limit::Addresses;
use anteroom::guard::limits::Limits;

use bytes::{PAYLOAD, Speaker, event, event_kind, kind, login_request};
use machine::{Driven, Echo, Peer, strangers};

/// What an idle session may take, with its part in every table.
const IDLE_SESSION_BYTES: usize = 1_536;
/// What a connection that says nothing may take.
const SILENT_CONNECTION_BYTES: usize = 256;

/// A relay with a number of full games, whose players have heard of each other.
fn full_games(games: u32) -> (Driven, Vec<Peer>) {
    let mut driven = Driven::new(Box::new(Relay::new()), games, Limits::default());
    let mut peers = Vec::new();
    for number in 0..games * 4 {
        peers.push(driven.join(number, &format!("P{number}")));
        driven.converse(&mut peers);
    }
    driven.pass(100, &mut peers);
    (driven, peers)
}

/// Everybody plays for so many seconds: Data thirty times a second, one Ping, one chat and one
/// Custom event. What is to be said is in `events`, since putting it together takes memory.
fn play(driven: &mut Driven, peers: &mut [Peer], seconds: u32, events: &[Vec<u8>]) {
    for tick in 0..seconds * 30 {
        for index in 0..peers.len() {
            let peer = &mut peers[index];
            let data = peer.speaker.say(kind::DATA, &PAYLOAD);
            driven.datagram(peer.path, data);
            driven.converse(peers);
            let said = match tick % 30 {
                7 => (kind::PING, &[1, 2, 3, 4][..]),
                15 => (kind::EVENTS, &events[(tick / 30) as usize][..]),
                _ => continue,
            };
            let peer = &mut peers[index];
            let datagram = peer.speaker.say(said.0, said.1);
            driven.datagram(peer.path, datagram);
            driven.converse(peers);
        }
        driven.pass(33, peers);
    }
}

/// The payload of the Events datagram of each second.
fn events(seconds: std::ops::Range<u32>) -> Vec<Vec<u8>> {
    let payload = |second: u32| {
        let id = second as u16 * 2;
        let chat = event(id, event_kind::CHAT, b"\x05\0hello");
        let custom = event(id + 1, event_kind::CUSTOM, &[second as u8; 40]);
        [chat, custom].concat()
    };
    seconds.map(payload).collect()
}

#[test]
fn steady_traffic_allocates_nothing() {
    let (mut driven, mut peers) = full_games(2);
    play(&mut driven, &mut peers, 30, &events(0..30));
    let (later, before) = (events(30..90), driven.service.stats());
    let spent = measure(|| play(&mut driven, &mut peers, 60, &later));
    assert_eq!(spent.count_total, 0, "{spent:?}");
    assert_eq!(before, driven.service.stats(), "all of it was welcome");
}

/// One more thing that is refused: its counter, and how it is done to the machine.
type Refusal = (&'static str, Box<dyn FnMut(&mut Driven)>);

/// A datagram that is refused.
fn datagram(counter: &'static str, path: Path, bytes: &[u8]) -> Refusal {
    let bytes = bytes.to_vec();
    (
        counter,
        Box::new(move |driven| driven.datagram(path, &bytes)),
    )
}

/// A connection that is refused for what it says first.
fn login(counter: &'static str, bytes: &[u8]) -> Refusal {
    let bytes = bytes.to_vec();
    let refused = move |driven: &mut Driven| {
        let conn = driven.open(99);
        driven.stream(conn, &bytes);
        driven.close(conn);
    };
    (counter, Box::new(refused))
}

/// What is refused while players 0 to 3 fill the only game.
fn refusals(peers: &mut [Peer]) -> Vec<Refusal> {
    let stranger = strangers(1)[0];
    let unspecified = Path {
        remote: "0.0.0.0:9".parse().expect("an address"),
        ..stranger
    };
    let data = Speaker::new(0xDEAD_BEEF).say(kind::DATA, &PAYLOAD).to_vec();
    let connect = Speaker::new(0xDEAD_BEEF).say(kind::CONNECT, &[]).to_vec();
    let changed = |at: usize, value: u8| {
        let mut bytes = data.clone();
        bytes[at] = value;
        bytes
    };
    let old = peers[0].speaker.say(kind::ACK, &[]).to_vec();
    let repeated = peers[1].speaker.say(kind::ACK, &[]).to_vec();
    let mut thief = peers[1].speaker.clone();
    vec![
        datagram("ignored-source", unspecified, &data),
        datagram("ignored-short", stranger, &data[..17]),
        datagram("ignored-short", stranger, &[]),
        datagram("ignored-long", stranger, &[0; 1201]),
        datagram("ignored-magic", stranger, &changed(0, b'r')),
        datagram("ignored-version", stranger, &changed(4, 3)),
        datagram("ignored-unbound", stranger, &data),
        datagram("ignored-unknown-token", stranger, &connect),
        datagram(
            "ignored-bound-elsewhere",
            stranger,
            thief.say(kind::CONNECT, &[]),
        ),
        datagram("ignored-wrong-token", peers[2].path, &data),
        datagram("ignored-repeated", peers[1].path, &repeated),
        datagram("ignored-old", peers[0].path, &old),
        login("rejected-bad-version", &[2, 0, 1, 9]),
        login("rejected-bad-name", &login_request("")),
        login("rejected-bad-name", &login_request("seventeen letters")),
        login("rejected-server-full", &login_request("R9")),
        login("login-malformed", &[0, 0]),
        login("login-malformed", &[1, 0, 4]),
        login("login-malformed", &[0xFF, 0xFF]),
        login("login-malformed", b"GET / HTTP/1.1\r\n\r\n"),
        login("login-abandoned", &[]),
    ]
}

#[test]
fn refusals_allocate_nothing() {
    let (mut driven, mut peers) = full_games(1);
    let mut refusals = refusals(&mut peers);
    for _ in 0..40 {
        let newer = peers[0].speaker.say(kind::ACK, &[]).to_vec();
        driven.datagram(peers[0].path, &newer);
    }
    // The first connection of all makes the tables.
    refusals
        .iter_mut()
        .for_each(|(_, refused)| refused(&mut driven));
    for (counter, refused) in &mut refusals {
        let before = driven.count(counter);
        let spent = measure(|| (0..100).for_each(|_| refused(&mut driven)));
        assert_eq!(driven.count(counter) - before, 100, "{counter}");
        assert_eq!(spent.count_total, 0, "{counter}: {spent:?}");
    }
    assert_eq!(driven.count("sessions"), 4);
}

#[test]
fn who_talks_too_much_is_refused_without_allocating() {
    let (mut driven, mut peers) = full_games(1);
    let chat = |id: u16| event(id, event_kind::CHAT, b"\x02\0hi");
    let mut say = |driven: &mut Driven, kind: u8, payload: &[u8]| {
        let peer = &mut peers[0];
        driven.datagram(peer.path, peer.speaker.say(kind, payload));
    };
    (0..600).for_each(|_| say(&mut driven, kind::DATA, &PAYLOAD));
    (0..40).for_each(|id| say(&mut driven, kind::EVENTS, &chat(id)));
    let next = chat(40);
    for (counter, kind, payload) in [
        ("ignored-session-rate", kind::DATA, &PAYLOAD[..]),
        ("ignored-events-rate", kind::EVENTS, &next[..]),
    ] {
        let before = driven.count(counter);
        let spent = measure(|| (0..100).for_each(|_| say(&mut driven, kind, payload)));
        assert_eq!(driven.count(counter) - before, 100, "{counter}");
        assert_eq!(spent.count_total, 0, "{counter}: {spent:?}");
    }
}

/// Sends so many events to everybody who joins, whatever comes of it.
struct Insistent(u32);

impl Game for Insistent {
    fn event(&mut self, _: Time, event: Event<'_>, out: &mut dyn Replies) {
        match event {
            Event::Connecting { ticket, .. } => {
                assert_eq!(out.answer(ticket, Verdict::Admit), Ok(()));
            }
            Event::Joined { player, .. } => {
                for _ in 0..self.0 {
                    assert_eq!(out.custom(player, &[]), Ok(()));
                }
            }
            _ => {}
        }
    }
}

#[test]
fn what_finds_no_room_in_a_full_lane_takes_no_memory() {
    let most = |events: u32| {
        let spent = measure(|| {
            let mut driven = Driven::new(Box::new(Insistent(events)), 1, Limits::default());
            driven.join(0, "P0");
            assert_eq!(driven.count("ended-timed-out"), 1);
        });
        spent.bytes_max
    };
    let (one_too_many, far_too_many) = (most(1_025), most(100_000));
    assert_eq!(one_too_many, far_too_many);
}

#[test]
fn an_idle_session_is_small() {
    const SESSIONS: usize = 10_000;
    let mut kept = None;
    let spent = measure(|| {
        let mut driven = Driven::new(Box::new(Echo), SESSIONS as u32 / 4, Limits::default());
        let mut peers = Vec::new();
        allocation_counter::opt_out(|| peers.reserve_exact(SESSIONS));
        for number in 0..SESSIONS {
            peers.push(driven.join(number as u32, &format!("P{number}")));
            driven.converse(&mut peers);
            driven.pass(1, &mut peers);
        }
        driven.pass(20_000, &mut peers);
        kept = Some((driven, peers));
    });
    let (driven, _) = kept.expect("just made");
    assert_eq!(driven.count("sessions"), SESSIONS as u64);
    let each = spent.bytes_current as usize / SESSIONS;
    println!("an idle session takes {each} bytes");
    assert!(each <= IDLE_SESSION_BYTES, "{each} bytes");
}

#[test]
fn a_silent_connection_holds_no_buffer() {
    const CONNECTIONS: u32 = 1_000;
    let mut driven = Driven::new(Box::new(Echo), 1, Limits::default());
    let spent = measure(|| {
        for number in 0..CONNECTIONS {
            driven.open(number);
        }
    });
    let each = spent.bytes_current as usize / CONNECTIONS as usize;
    println!("a silent connection takes {each} bytes");
    assert!(each <= SILENT_CONNECTION_BYTES, "{each} bytes");
}

#[test]
fn a_login_in_pieces_leaves_no_buffer_behind() {
    let mut driven = Driven::new(Box::new(Echo), 1, Limits::default());
    let request = login_request("R9");
    let drip = |driven: &mut Driven, number: u32, count: usize| {
        let conn = driven.open(number);
        for byte in &request[..count] {
            driven.stream(conn, &[*byte]);
        }
        conn
    };
    let whole = drip(&mut driven, 0, request.len());
    assert_eq!(driven.count("logins"), 1);
    driven.close(whole);
    let spent = measure(|| {
        for number in 0..100 {
            let conn = drip(&mut driven, number, request.len() - 1);
            driven.close(conn);
        }
    });
    assert_eq!(spent.bytes_current, 0, "{spent:?}");
}

#[test]
fn who_came_and_went_leaves_nothing_behind() {
    const WAVE: u32 = 100;
    let mut driven = Driven::new(Box::new(Relay::new()), WAVE / 4, Limits::default());
    let wave = |driven: &mut Driven| {
        let mut peers = Vec::new();
        for number in 0..WAVE {
            peers.push(driven.join(number, &format!("P{number}")));
            driven.converse(&mut peers);
        }
        driven.pass(1_000, &mut peers);
        for peer in peers {
            driven.close(peer.conn);
        }
        driven.pass(20_000, &mut []);
    };
    wave(&mut driven);
    let spent = measure(|| (1..100).for_each(|_| wave(&mut driven)));
    assert_eq!(driven.count("logins"), 10_000);
    assert_eq!(driven.count("sessions"), 0);
    assert_eq!(driven.service.deadline(), None, "nothing is due any more");
    assert!(spent.bytes_current <= 16 * 1_024, "{spent:?}");
}

/// What the table of addresses keeps of so many that came and went: it forgets them only when
/// others come.
fn table_bytes(crowd: u32) -> i64 {
    let limits = Limits::default();
    let addresses = Addresses::new(&limits);
    let entrance = addresses.entrance(&limits, false);
    let spent = measure(|| {
        let enter = |number: u32| entrance.enter(Time::ZERO, Ipv4Addr::from_bits(number).into());
        for number in 0..crowd {
            drop(enter((1 << 24) + number));
        }
    });
    spent.bytes_current
}

#[test]
fn the_table_of_addresses_is_bounded() {
    let full = table_bytes(16_384);
    println!("a full table takes {full} bytes");
    assert!(full <= 3 << 20, "{full} bytes");
    assert_eq!(table_bytes(200_000), full);
}

#[test]
fn a_crowd_leaves_little_behind() {
    const CROWD: u32 = 10_000;
    let mut driven = Driven::new(Box::new(Echo), CROWD / 4, Limits::default());
    let spent = measure(|| {
        let mut peers = Vec::new();
        for number in 0..CROWD {
            peers.push(driven.join(number, &format!("P{number}")));
            driven.converse(&mut peers);
            driven.pass(1, &mut peers);
        }
        for peer in peers {
            driven.close(peer.conn);
            driven.pass(1, &mut []);
        }
    });
    assert_eq!(driven.count("logins"), CROWD.into());
    assert_eq!(driven.count("sessions"), 0);
    let (most, table) = (spent.bytes_max, table_bytes(CROWD));
    let left = spent.bytes_current - table;
    println!("of {most} bytes {left} are left, and {table} in the table of addresses");
    assert!(left <= 256 * 1_024, "{spent:?}");
}
