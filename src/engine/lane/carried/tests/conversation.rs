use std::collections::VecDeque;

use super::super::*;
use super::{Carried, HEAD, ROOM, body};
use crate::engine::seq::{Arrival, Numbering, Window};
use crate::engine::{Seeded, Time};

/// How the link treats datagrams.
#[derive(Clone, Copy)]
struct Link {
    /// Of a hundred datagrams, so many are lost, and so many doubled.
    lost: u64,
    doubled: u64,
    /// Each is delayed by `delay_ms` and up to `jitter_ms` more, so they overtake one another.
    delay_ms: u64,
    jitter_ms: u64,
}

/// A datagram under way: when it arrives, and what it says.
struct Flying<T> {
    arrives: u64,
    said: T,
}

struct Wire<T> {
    link: Link,
    flying: Vec<Flying<T>>,
}

impl<T: Clone> Wire<T> {
    fn new(link: Link) -> Self {
        let flying = Vec::new();
        Self { link, flying }
    }

    fn send(&mut self, now: u64, dice: &mut Seeded, said: T) {
        let copies = match dice.below(100) {
            roll if roll < self.link.lost => 0,
            roll if roll < self.link.lost + self.link.doubled => 2,
            _ => 1,
        };
        for _ in 0..copies {
            let arrives = now + self.link.delay_ms + dice.below(self.link.jitter_ms + 1);
            let said = said.clone();
            self.flying.push(Flying { arrives, said });
        }
    }

    fn arrived(&mut self, now: u64) -> Vec<T> {
        let due = self.flying.extract_if(.., |flying| flying.arrives <= now);
        due.map(|flying| flying.said).collect()
    }
}

/// One direction of events, with the acknowledgements that come back.
struct World {
    dice: Seeded,
    now: u64,
    sender: Sender,
    numbering: Numbering,
    events: Wire<(u16, Vec<Carried>)>,
    acks: Wire<(u16, u32)>,
    window: Window,
    receiver: Receiver,
    /// Whether the other end owes an acknowledgement.
    owes: bool,
    pushed: VecDeque<(u8, Vec<u8>)>,
    delivered: usize,
    refused: usize,
}

impl World {
    fn new(seed: u64, there: Link, back: Link) -> Self {
        let mut dice = Seeded::new(seed);
        let first_id = 65_400 + dice.below(136) as u16;
        let mut numbering = Numbering::new();
        for _ in 0..65_400 + dice.below(136) {
            numbering.take();
        }
        Self {
            dice,
            now: 1_000,
            sender: Sender::new(first_id, HEAD),
            numbering,
            events: Wire::new(there),
            acks: Wire::new(back),
            window: Window::new(),
            receiver: Receiver::new(first_id),
            owes: false,
            pushed: VecDeque::new(),
            delivered: 0,
            refused: 0,
        }
    }

    fn push(&mut self, count: u64, len_max: u64) {
        for _ in 0..count {
            let len = self.dice.below(len_max + 1) as usize;
            let body = body(self.dice.below(1 << 20) as usize, len);
            let (head, tail) = body.split_at(len / 3);
            let kind = self.dice.below(256) as u8;
            match self.sender.push(kind, &[head, tail]) {
                Ok(()) => self.pushed.push_back((kind, body)),
                Err(Full) => self.refused += 1,
            }
        }
    }

    /// Everything that happens in one millisecond.
    fn step(&mut self, resend_ms: u64) {
        self.now += 1;
        let now = Time::from_ms(self.now);
        for (ack, bits) in self.acks.arrived(self.now) {
            if self.numbering.was_sent(ack) {
                self.sender.acknowledged(now, ack, bits);
            }
        }
        for (seq, events) in self.events.arrived(self.now) {
            self.receive(seq, &events);
        }
        if self.owes && self.now.is_multiple_of(20) {
            self.owes = false;
            self.acks.send(self.now, &mut self.dice, self.window.ack());
        }
        self.send(now, resend_ms);
    }

    fn send(&mut self, now: Time, resend_ms: u64) {
        if self.dice.below(10) == 0 {
            // A datagram without events has a number, too.
            let seq = self.numbering.take();
            self.events.send(self.now, &mut self.dice, (seq, vec![]));
        }
        let mut resent_or_new = 0;
        while self.sender.next_due(now) <= now {
            let mut events: Vec<Carried> = Vec::new();
            let seq = self.numbering.upcoming();
            let each = |id, kind, a: &[u8], b: &[u8]| events.push((id, kind, [a, b].concat()));
            let count = self.sender.pack(now, resend_ms, seq, ROOM, each);
            assert!((1..=32).contains(&count), "due, so it packs something");
            let bytes: usize = events.iter().map(|(_, _, body)| HEAD + body.len()).sum();
            assert!(bytes <= ROOM);
            self.numbering.take();
            self.events.send(self.now, &mut self.dice, (seq, events));
            resent_or_new += 1;
        }
        assert!(resent_or_new <= 256 + 32, "one turn, one bounded burst");
        assert!(self.sender.next_due(now) > now);
    }

    fn receive(&mut self, seq: u16, events: &[Carried]) {
        if self.window.judge(seq) != Arrival::New {
            return;
        }
        let lens = events.iter().map(|(id, _, body)| (*id, body.len()));
        let admission = self.receiver.admits(lens);
        assert!(matches!(admission, Admission::Take { .. }), "{admission:?}");
        for (id, kind, body) in events {
            let (pushed, delivered) = (&mut self.pushed, &mut self.delivered);
            self.receiver.take(*id, *kind, body, &mut |kind, body| {
                let expected = pushed.pop_front();
                assert_eq!(expected, Some((kind, body.to_vec())));
                *delivered += 1;
            });
        }
        self.window.note(seq);
        self.owes = true;
    }
}

fn link(lost: u64, doubled: u64, delay_ms: u64, jitter_ms: u64) -> Link {
    Link {
        lost,
        doubled,
        delay_ms,
        jitter_ms,
    }
}

#[test]
fn everything_arrives_in_order_through_loss_doubling_and_swapping() {
    for seed in 0..60 {
        let mut dice = Seeded::new(seed ^ 0xA11);
        let lost = [0, 5, 30, 30][dice.below(4) as usize];
        let rough = link(lost, dice.below(20), dice.below(120), dice.below(100));
        let mut world = World::new(seed, rough, rough);
        let resend_ms = 100 + dice.below(300);
        let len_max = [0, 40, 1024][dice.below(3) as usize];
        for _ in 0..4_000 {
            if world.dice.below(50) == 0 {
                let count = world.dice.below(12);
                world.push(count, len_max);
            }
            world.step(resend_ms);
            assert!(world.sender.stuck_at() > Time::from_ms(world.now), "{seed}");
        }
        for _ in 0..60_000 {
            if world.sender.is_empty() {
                break;
            }
            world.step(resend_ms);
            assert!(world.sender.stuck_at() > Time::from_ms(world.now), "{seed}");
        }
        assert!(
            world.sender.is_empty(),
            "seed {seed}: everything acknowledged"
        );
        assert!(world.pushed.is_empty(), "seed {seed}: everything delivered");
        assert!(world.delivered > 100 && world.refused == 0);
    }
}

#[test]
fn a_full_lane_drains_through_a_bad_link() {
    let bad = link(30, 10, 50, 50);
    let mut world = World::new(7, bad, bad);
    world.push(1_100, 500);
    assert_eq!((world.pushed.len(), world.refused), (1_024, 76));
    while !world.sender.is_empty() {
        world.step(225);
        assert!(world.sender.stuck_at() > Time::from_ms(world.now));
    }
    assert_eq!(world.delivered, 1_024);
    assert!(world.now < 60_000);
}

#[test]
fn if_only_the_acks_are_lost_it_is_stuck_after_15_s() {
    let mut world = World::new(1, link(0, 0, 20, 0), link(100, 0, 20, 0));
    world.push(3, 10);
    let start = world.now + 1;
    while world.sender.stuck_at() > Time::from_ms(world.now) {
        world.step(100);
    }
    assert_eq!(world.now - start, 15_000);
    assert_eq!(world.delivered, 3, "each was handed on, once");
}

#[test]
fn a_link_that_takes_two_seconds_is_slow_and_alive() {
    let slow = link(20, 0, 1_000, 300);
    let mut world = World::new(3, slow, slow);
    for second in 0..300 {
        world.push(20, 30);
        for _ in 0..1_000 {
            world.step(3_300);
            assert!(
                world.sender.stuck_at() > Time::from_ms(world.now),
                "{second}"
            );
        }
    }
    assert!(world.delivered > 5_000 && world.refused == 0);
}

/// Nothing arrives for 14 s, then everything does; again and again.
#[test]
fn an_outage_of_14_s_is_survived() {
    let mut world = World::new(4, link(0, 0, 10, 0), link(0, 0, 10, 0));
    for _ in 0..5 {
        world.push(50, 100);
        world.events.link.lost = 100;
        for _ in 0..14_000 {
            world.step(100);
            assert!(world.sender.stuck_at() > Time::from_ms(world.now));
        }
        world.events.link.lost = 0;
        for _ in 0..1_100 {
            world.step(100);
        }
        assert!(world.sender.is_empty());
    }
    assert_eq!(world.delivered, 250);
}
