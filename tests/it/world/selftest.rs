//! The world itself: what its machines see of streams, and what it refuses to overlook.

use std::net::SocketAddr;

use anteroom::engine::outbox::{Close, Credit};
use anteroom::engine::{Conn, Env, Input, Machine, Seeded, Time};

use super::link::{Link, Weather};
use super::machine::Shared;
use super::pipe::{Ending, Pieces};
use super::seeds::{seed, seeds};
use super::{Action, Actor, Arrival, World};

/// A machine that keeps what it saw, and does as told by the bytes: `d` drains, `n` closes now.
#[derive(Default)]
struct Mirror {
    saw: Vec<String>,
    deadline: Option<Time>,
    ticked: Vec<u64>,
    /// After a tick the deadline is this much later.
    again_ms: Option<u64>,
}

impl Machine for Mirror {
    fn handle(&mut self, env: &mut Env<'_>, input: Input<'_>) {
        match input {
            Input::Opened { conn, peer } => self.saw(conn, &format!("opened by {peer}")),
            Input::Stream { conn, bytes } => {
                self.saw(conn, &String::from_utf8_lossy(bytes));
                env.out.stream(conn, |w| w.bytes(bytes));
                match bytes {
                    b"d" => env.out.close(conn, Close::Drain),
                    b"n" => env.out.close(conn, Close::Now),
                    _ => {}
                }
            }
            Input::Closed { conn } => self.saw(conn, "closed"),
            Input::Datagram { path, bytes } => {
                env.out.datagram(path, Credit::Proven, |w| w.bytes(bytes));
            }
            Input::Tick => {
                self.ticked.push(env.now.ms());
                self.deadline = self.again_ms.map(|ms| env.now + ms);
            }
            Input::Command(_) | Input::Stop => {}
        }
    }

    fn deadline(&self) -> Option<Time> {
        self.deadline
    }

    fn stats(&self) -> Vec<(&'static str, u64)> {
        vec![("ticks", self.ticked.len() as u64)]
    }
}

impl Mirror {
    fn saw(&mut self, conn: Conn, what: &str) {
        let Conn { slot, generation } = conn;
        self.saw.push(format!("{slot}.{generation} {what}"));
    }
}

/// An actor that only does what a test makes it do.
struct Puppet {
    address: SocketAddr,
    heard: Vec<u8>,
    ended: Option<Ending>,
    datagrams: usize,
    actions: Vec<Action>,
}

impl Puppet {
    fn new(address: &str) -> Self {
        Self {
            address: address.parse().expect("an address"),
            heard: Vec::new(),
            ended: None,
            datagrams: 0,
            actions: Vec::new(),
        }
    }

    fn connect(&mut self, name: u32) {
        self.actions.push(Action::Connect {
            name,
            from: self.address,
            to: server(),
        });
    }

    fn write(&mut self, name: u32, bytes: &[u8]) {
        self.actions.push(Action::Write(name, bytes.to_vec()));
    }

    fn datagram(&mut self, from: SocketAddr, bytes: &[u8]) {
        self.actions.push(Action::Datagram {
            from,
            to: server(),
            bytes: bytes.to_vec(),
        });
    }
}

impl Actor for Puppet {
    fn addresses(&self) -> Vec<SocketAddr> {
        vec![self.address]
    }

    fn clock(&mut self, _now: u64) {}

    fn arrival(&mut self, arrival: Arrival<'_>) {
        match arrival {
            Arrival::Opened(_) => {}
            Arrival::Stream(_, bytes) => self.heard.extend(bytes),
            Arrival::Ended(_, how) => self.ended = Some(how),
            Arrival::Datagram { .. } => self.datagrams += 1,
        }
    }

    fn wake(&self) -> Option<u64> {
        None
    }

    fn tick(&mut self) {}

    fn actions(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.actions)
    }
}

fn server() -> SocketAddr {
    "198.51.100.1:4242".parse().expect("an address")
}

fn mirror() -> (World<Puppet>, Shared<Mirror>) {
    let mut world = World::new(seed());
    let mirror = Shared::new(Mirror::default());
    world.machine(Box::new(mirror.clone()), &[server()]);
    (world, mirror)
}

#[test]
fn a_machine_sees_a_connection_in_pieces_and_its_slot_again_under_a_new_generation() {
    let (mut world, mirror) = mirror();
    world.net.pieces = Pieces::Of(2);
    let puppet = world.add(Puppet::new("10.0.0.1:5000"));
    world[puppet].connect(0);
    world[puppet].write(0, b"abc");
    world[puppet].actions.push(Action::Fin(0));
    world.for_ms(100);
    world[puppet].connect(1);
    world[puppet].actions.push(Action::Abort(1));
    world[puppet].connect(2);
    world[puppet].write(2, b"x");
    world.for_ms(100);
    world[puppet].actions.push(Action::Abort(2));
    world.for_ms(100);
    assert_eq!(
        mirror.get().saw,
        [
            "0.0 opened by 10.0.0.1:5000",
            "0.0 ab",
            "0.0 c",
            "0.0 closed",
            "0.1 opened by 10.0.0.1:5000",
            "0.1 x",
            "0.1 closed",
        ]
    );
    assert_eq!(world[puppet].heard, b"abcx");
}

#[test]
fn a_drained_end_delivers_its_last_words_and_a_sudden_one_destroys_them() {
    for (word, heard, ended) in [
        (&b"d"[..], &b"d"[..], Ending::Fin),
        (b"n", b"", Ending::Reset),
    ] {
        let (mut world, _) = mirror();
        let puppet = world.add(Puppet::new("10.0.0.1:5000"));
        world[puppet].connect(0);
        world[puppet].write(0, word);
        world[puppet].write(0, b"more, which nobody reads");
        world.for_ms(100);
        assert_eq!(world[puppet].heard, heard);
        assert_eq!(world[puppet].ended, Some(ended));
        assert_eq!(world.connections(0), (0, 0));
    }
}

#[test]
fn a_drained_end_is_gone_after_a_second() {
    let (mut world, _) = mirror();
    let puppet = world.add(Puppet::new("10.0.0.1:5000"));
    world[puppet].connect(0);
    world[puppet].write(0, b"d");
    world.for_ms(900);
    world[puppet].write(0, b"x");
    world.for_ms(50);
    assert_eq!(world[puppet].ended, Some(Ending::Fin));
    world.for_ms(100);
    world[puppet].write(0, b"x");
    world.for_ms(50);
    assert_eq!(world[puppet].ended, Some(Ending::Reset));
}

#[test]
fn nobody_listens() {
    let mut world = World::<Puppet>::new(seed());
    let puppet = world.add(Puppet::new("10.0.0.1:5000"));
    world[puppet].connect(0);
    world.for_ms(50);
    assert_eq!(world[puppet].ended, Some(Ending::Reset));
}

#[test]
fn the_clock_jumps_to_the_deadline_exactly() {
    let (mut world, mirror) = mirror();
    let now = world.now();
    mirror.get().deadline = Some(Time::from_ms(now + 777));
    mirror.get().again_ms = Some(100_000);
    world.for_ms(1_000_000);
    assert_eq!(mirror.get().ticked.len(), 10);
    assert_eq!(mirror.get().ticked[..2], [now + 777, now + 100_777]);
    assert_eq!(world.now(), now + 1_000_000);
}

#[test]
#[should_panic(expected = "spins")]
fn a_machine_that_spins_is_found_out() {
    let (mut world, mirror) = mirror();
    mirror.get().deadline = Some(Time::from_ms(world.now()));
    mirror.get().again_ms = Some(0);
    world.for_ms(1);
}

#[test]
fn a_forged_source_gets_the_answer_and_the_books_show_it() {
    let (mut world, _) = mirror();
    let victim: SocketAddr = "10.6.6.6:1".parse().expect("an address");
    let puppet = world.add(Puppet::new("10.0.0.1:5000"));
    world.echo_only(0, victim);
    world[puppet].datagram(victim, b"twelve bytes");
    world.for_ms(100);
    assert_eq!(world.net.strays[&victim], [b"twelve bytes".to_vec()]);
    assert_eq!(world[puppet].datagrams, 0);
    let tally = world.tally(0, victim);
    assert_eq!((tally.in_bytes, tally.out_bytes), (12, 12));
}

#[test]
#[should_panic(expected = "got 12 bytes for 0")]
fn more_than_an_echo_is_found_out() {
    let (mut world, _) = mirror();
    let puppet = world.add(Puppet::new("10.0.0.1:5000"));
    let address = world[puppet].address;
    world[puppet].datagram(address, b"twelve bytes");
    world.for_ms(4);
    let node = &mut world;
    node.until(10, |world| world.tally(0, address).in_bytes == 12);
    node.echo_only(0, address);
    node.call(0, |env| {
        let path = anteroom::engine::Path {
            socket: 0,
            local: server(),
            remote: address,
        };
        env.out
            .datagram(path, Credit::Proven, |w| w.bytes(b"twelve bytes"));
    });
}

#[test]
fn a_link_loses_doubles_and_reorders_as_much_as_it_says() {
    seeds(3, |seed| {
        let mut dice = Seeded::new(seed);
        let mut link = Link::new(Weather::storm());
        let mut arrivals = Vec::new();
        for number in 0..10_000u32 {
            let now = u64::from(number) * 10;
            arrivals.extend(link.let_go(now, &mut dice));
            let carried = link.carry(now, &number.to_le_bytes(), &mut dice);
            arrivals.extend(carried.arrivals);
        }
        arrivals.extend(link.let_go(u64::MAX / 2, &mut dice));
        // 7000 of 10000 arrive, and 3 of 10 of these twice.
        assert!((8800..9400).contains(&arrivals.len()), "{}", arrivals.len());
        arrivals.sort_by_key(|(at, _)| *at);
        let number = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().expect("four bytes"));
        let mut newest = 0;
        let mut furthest = 0;
        for (_, bytes) in &arrivals {
            newest = newest.max(number(bytes));
            furthest = furthest.max(newest - number(bytes));
        }
        assert!((32..=100).contains(&furthest), "{furthest}");
    });
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let run = |seed| {
        let (mut world, mirror) = mirror();
        world.net.dice = Seeded::new(seed);
        world.net.pieces = Pieces::Random(5);
        let puppet = world.add(Puppet::new("10.0.0.1:5000"));
        world[puppet].connect(0);
        world[puppet].write(0, b"something that is cut into pieces");
        world.for_ms(100);
        std::mem::take(&mut mirror.get().saw)
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}
