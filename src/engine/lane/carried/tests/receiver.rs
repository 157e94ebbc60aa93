use std::collections::BTreeMap;

use super::super::*;
use super::{Carried, body};
use crate::engine::Seeded;

/// A receiver and all it has handed on.
struct Side {
    lane: Receiver,
    delivered: Vec<(u8, Vec<u8>)>,
}

impl Side {
    fn new(first_id: u16) -> Self {
        let (lane, delivered) = (Receiver::new(first_id), Vec::new());
        Self { lane, delivered }
    }

    fn admits(&self, events: &[Carried]) -> Admission {
        let lens = events.iter().map(|(id, _, body)| (*id, body.len()));
        self.lane.admits(lens)
    }

    /// Takes a datagram that must be admitted with `fresh` events.
    fn take(&mut self, fresh: usize, events: &[Carried]) {
        let Admission::Take { fresh: found, .. } = self.admits(events) else {
            panic!("{:?}", self.admits(events));
        };
        assert_eq!(found, fresh);
        self.take_all(events);
    }

    fn take_all(&mut self, events: &[Carried]) {
        let Self { lane, delivered } = self;
        for (id, kind, body) in events {
            lane.take(*id, *kind, body, &mut |kind, body| {
                delivered.push((kind, body.to_vec()));
            });
        }
    }

    /// The kinds handed on so far; the tests number their events by kind.
    fn kinds(&self) -> Vec<u8> {
        self.delivered.iter().map(|(kind, _)| *kind).collect()
    }
}

fn event(id: u16, kind: u8, len: usize) -> Carried {
    (id, kind, body(usize::from(kind), len))
}

#[test]
fn events_are_handed_on_in_order_and_once_each() {
    let mut side = Side::new(65534);
    side.take(1, &[event(65534, 0, 3)]);
    side.take(2, &[event(1, 3, 5), event(0, 2, 4)]);
    assert_eq!(side.kinds(), [0], "1 is missing");
    side.take(0, &[event(0, 2, 4), event(65534, 0, 3)]);
    side.take(2, &[event(65535, 1, 0), event(1, 3, 5), event(2, 4, 6)]);
    assert_eq!(side.kinds(), [0, 1, 2, 3, 4]);
    for (kind, bytes) in &side.delivered {
        let len = [3, 0, 4, 5, 6][usize::from(*kind)];
        assert_eq!(*bytes, body(usize::from(*kind), len));
    }
    side.take(0, &[event(65535, 1, 0), event(2, 4, 6)]);
    side.take(1, &[event(3, 5, 0)]);
    assert_eq!(side.kinds(), [0, 1, 2, 3, 4, 5]);
}

#[test]
fn held_up_to_255_ahead_and_malformed_beyond() {
    for first in [0, 65300, 65535] {
        let mut side = Side::new(first);
        let at = |offset: u16| first.wrapping_add(offset);
        side.take(1, &[event(at(255), 2, 9)]);
        assert_eq!(side.admits(&[event(at(256), 0, 0)]), Admission::TooFar);
        let mixed = [event(at(0), 1, 0), event(at(256), 0, 0)];
        assert_eq!(side.admits(&mixed), Admission::TooFar, "as a whole");
        assert_eq!(side.admits(&[event(at(32767), 0, 0)]), Admission::TooFar);
        side.take(0, &[event(at(32768), 0, 0), event(at(65535), 0, 0)]);
        // Should they be taken all the same, they affect nothing.
        side.take_all(&[event(at(256), 9, 0), event(at(32768), 9, 0)]);
        for offset in 0..255 {
            side.take(1, &[event(at(offset), 1, 0)]);
        }
        assert_eq!(side.kinds(), [vec![1; 255], vec![2]].concat());
    }
}

#[test]
fn at_most_64_kib_are_held() {
    let mut side = Side::new(0);
    for id in 2..66 {
        side.take(1, &[event(id, 1, 1024)]);
    }
    side.take(0, &[event(2, 1, 1024)]);
    side.take(1, &[event(66, 1, 0)]);
    assert_eq!(side.admits(&[event(67, 1, 1)]), Admission::Later);
    assert_eq!(side.admits(&[event(1, 1, 1)]), Admission::Later);
    let far = [event(67, 1, 1), event(256, 1, 1)];
    assert_eq!(
        side.admits(&far),
        Admission::TooFar,
        "malformed comes first"
    );
    assert_eq!(
        side.admits(&[event(0, 1, 9), event(67, 1, 1)]),
        Admission::Later,
        "the next one due releases nothing while 1 is missing"
    );
    assert_eq!(side.kinds(), [], "judging changes nothing");
    let fresh_bytes = 9 + 1 + 1000;
    assert_eq!(
        side.admits(&[event(0, 1, 9), event(1, 1, 1), event(68, 1, 1000)]),
        Admission::Take {
            fresh: 3,
            fresh_bytes
        },
        "what is released makes room"
    );
    side.take(1, &[event(0, 1, 9)]);
    side.take(1, &[event(1, 1, 1)]);
    assert_eq!(side.kinds().len(), 67);
    side.take(1, &[event(68, 1, 1024)]);
}

#[test]
fn an_event_twice_in_a_datagram_is_fresh_once() {
    let mut side = Side::new(10);
    let twice = [
        event(12, 2, 7),
        event(12, 2, 7),
        event(11, 1, 3),
        event(12, 2, 7),
    ];
    let all = Admission::Take {
        fresh: 2,
        fresh_bytes: 10,
    };
    assert_eq!(side.admits(&twice), all);
    side.take(2, &twice);
    side.take(1, &[event(10, 0, 1), event(10, 0, 1), event(12, 2, 7)]);
    assert_eq!(side.kinds(), [0, 1, 2]);
}

/// What the rules say, event by event, with ids that do not wrap.
#[derive(Clone, Default)]
struct Model {
    next: i64,
    held: BTreeMap<i64, usize>,
}

impl Model {
    fn datagram(&mut self, events: &[(i64, usize)]) -> Admission {
        if events.iter().any(|(id, _)| id - self.next > 255) {
            return Admission::TooFar;
        }
        let before = self.clone();
        let (mut fresh, mut fresh_bytes) = (0, 0);
        for &(id, len) in events {
            if id < self.next || self.held.contains_key(&id) {
                continue;
            }
            self.held.insert(id, len);
            fresh += 1;
            fresh_bytes += len;
            while self.held.remove(&self.next).is_some() {
                self.next += 1;
            }
            if self.held.values().sum::<usize>() > HELD_BYTES {
                *self = before;
                return Admission::Later;
            }
        }
        Admission::Take { fresh, fresh_bytes }
    }
}

#[test]
fn the_receiver_agrees_with_a_map() {
    let (mut takes, mut laters, mut too_fars) = (0, 0, 0);
    for seed in 0..40 {
        let mut dice = Seeded::new(seed);
        let start = 65536 + 65300 + dice.below(300) as i64;
        let mut model = Model {
            next: start,
            ..Model::default()
        };
        let mut side = Side::new(start as u16);
        let len = |id: i64| (id * 577 % 1025) as usize;
        let eager = 1 + dice.below(30);
        for step in 0..600 {
            let events: Vec<i64> = (0..=dice.below(6))
                .map(|_| match dice.below(40) {
                    0 => model.next + dice.below(270) as i64,
                    1 => model.next - dice.below(400) as i64,
                    roll if roll < eager => model.next + dice.below(3) as i64,
                    _ => model.next + dice.below(200) as i64,
                })
                .collect();
            let plain: Vec<_> = events.iter().map(|&id| (id, len(id))).collect();
            let carried: Vec<_> = events
                .iter()
                .map(|&id| (id as u16, id as u8, body(id as usize, len(id))))
                .collect();
            let admission = side.admits(&carried);
            let expected = model.datagram(&plain);
            assert_eq!(admission, expected, "seed {seed}, step {step}");
            match admission {
                Admission::Take { .. } => {
                    takes += 1;
                    side.take_all(&carried);
                }
                Admission::Later => laters += 1,
                Admission::TooFar => too_fars += 1,
            }
            assert_eq!(side.delivered.len() as i64, model.next - start);
            assert!(side.lane.buffers().0 <= 6 * HELD_BYTES);
        }
        for (id, (kind, bytes)) in (start..).zip(&side.delivered) {
            assert_eq!((*kind, bytes), (id as u8, &body(id as usize, len(id))));
        }
    }
    assert!(takes > 1_000 && laters > 100 && too_fars > 100);
}

#[test]
fn memory_is_given_back_when_nothing_is_held_and_none_is_needed_in_order() {
    let mut side = Side::new(0);
    for id in 0..1_000 {
        side.take(1, &[event(id, 0, 1000)]);
    }
    assert_eq!(side.lane.buffers(), (0, 0));
    for id in 1_001..1_060 {
        side.take(1, &[event(id, 0, 1000)]);
    }
    assert!(side.lane.buffers().0 >= 59_000);
    side.take(1, &[event(1_000, 0, 1000)]);
    assert_eq!(side.lane.buffers().0, 0);
    let mut steady = None;
    for id in (1_060..9_000).step_by(3) {
        side.take(1, &[event(id + 2, 0, 300)]);
        side.take(1, &[event(id + 1, 0, 300)]);
        side.take(1, &[event(id, 0, 300)]);
        assert_eq!(
            *steady.get_or_insert(side.lane.buffers()),
            side.lane.buffers()
        );
    }
}
