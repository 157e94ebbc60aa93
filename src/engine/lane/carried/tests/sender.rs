use super::super::*;
use super::{Carried, HEAD, ROOM, body};
use crate::engine::Time;

const R: u64 = 300;

/// A sender and the number of its next datagram.
struct Side {
    lane: Sender,
    seq: u16,
}

impl Side {
    fn new(first_id: u16, seq: u16) -> Self {
        let lane = Sender::new(first_id, HEAD);
        Self { lane, seq }
    }

    fn push(&mut self, count: usize, len: usize) {
        for number in 0..count {
            self.lane.push(7, &[&body(number, len)]).unwrap();
        }
    }

    /// Packs one datagram; its number if anything went in, and the events.
    fn pack(&mut self, ms: u64) -> Option<(u16, Vec<Carried>)> {
        self.pack_into(ms, R, ROOM)
    }

    fn pack_into(&mut self, ms: u64, r: u64, room: usize) -> Option<(u16, Vec<Carried>)> {
        let (seq, mut events) = (self.seq, Vec::new());
        let now = Time::from_ms(ms);
        let count = self.lane.pack(now, r, seq, room, |id, kind, a, b| {
            events.push((id, kind, [a, b].concat()));
        });
        assert_eq!(count, events.len());
        self.seq = self.seq.wrapping_add(u16::from(count > 0));
        (count > 0).then_some((seq, events))
    }

    /// All that may go out now, as the ids of each datagram.
    fn flush(&mut self, ms: u64) -> Vec<(u16, Vec<u16>)> {
        let ids = |events: Vec<Carried>| events.into_iter().map(|event| event.0).collect();
        std::iter::from_fn(|| self.pack(ms))
            .map(|(seq, events)| (seq, ids(events)))
            .collect()
    }

    fn due(&self, ms: u64) -> Time {
        self.lane.next_due(Time::from_ms(ms))
    }

    fn ack(&mut self, ms: u64, ack: u16, bits: u32) -> bool {
        self.lane.acknowledged(Time::from_ms(ms), ack, bits)
    }
}

fn at(ms: u64) -> Time {
    Time::from_ms(ms)
}

#[test]
fn an_empty_lane_wants_nothing() {
    let mut side = Side::new(0, 0);
    assert!(side.lane.is_empty());
    assert_eq!(side.due(5), Time::NEVER);
    assert_eq!(side.lane.stuck_at(), Time::NEVER);
    assert_eq!(side.pack(5), None);
    assert!(!side.ack(5, 0xFFFF, 0));
}

#[test]
fn events_go_out_at_once_in_order_with_ids_that_wrap() {
    let mut side = Side::new(65534, 65535);
    side.lane.push(1, &[b"ab", b"", b"c"]).unwrap();
    side.lane.push(2, &[]).unwrap();
    side.lane.push(3, &[b"z"]).unwrap();
    assert_eq!(side.due(5), at(5));
    assert_eq!(side.lane.stuck_at(), Time::NEVER, "nothing is in flight");
    let events = vec![
        (65534, 1, b"abc".to_vec()),
        (65535, 2, vec![]),
        (0, 3, b"z".to_vec()),
    ];
    assert_eq!(side.pack(5), Some((65535, events)));
    assert_eq!(side.pack(5), None);
    assert!(side.ack(50, 65535, 0));
    assert!(side.lane.is_empty());
    assert!(!side.ack(51, 65535, 0), "nothing new in that");
    assert_eq!(side.due(51), Time::NEVER);
}

#[test]
fn a_datagram_carries_up_to_32_events_and_what_fits() {
    let mut side = Side::new(0, 0);
    side.push(33, 0);
    let sizes = |sent: Vec<(u16, Vec<u16>)>| -> Vec<usize> {
        sent.into_iter().map(|(_, ids)| ids.len()).collect()
    };
    assert_eq!(sizes(side.flush(0)), [32, 1]);
    side.push(3, 1024);
    assert_eq!(sizes(side.flush(0)), [1, 1, 1]);
    side.push(2, 586);
    assert_eq!(sizes(side.flush(0)), [2], "exactly the room there is");
    side.push(1, 586);
    side.push(1, 587);
    assert_eq!(sizes(side.flush(0)), [1, 1], "one byte too many");
    side.push(1, 20);
    assert_eq!(side.pack_into(0, R, 24), None);
    assert_eq!(side.due(0), at(0), "it still wants to go");
    assert!(side.pack_into(0, R, 25).is_some());
}

#[test]
fn the_lane_is_full_at_1024_events() {
    let mut side = Side::new(0, 0);
    side.push(1024, 1);
    assert_eq!(side.lane.push(7, &[]), Err(Full));
    let sent = side.flush(0);
    assert_eq!(
        side.lane.push(7, &[]),
        Err(Full),
        "in flight is waiting too"
    );
    // The second datagram arrived, the first did not: its 32 events wait no more.
    assert!(side.ack(1, sent[1].0, 0));
    side.push(32, 1);
    assert_eq!(side.lane.push(7, &[]), Err(Full));
}

#[test]
fn the_lane_is_full_at_512_kib_or_a_body_above_1024_bytes() {
    let mut side = Side::new(0, 0);
    assert_eq!(side.lane.push(7, &[&[0; 1000], &[0; 25]]), Err(Full));
    assert!(side.lane.is_empty());
    side.push(511, 1024);
    side.push(2, 512);
    assert_eq!(side.lane.push(7, &[&[0]]), Err(Full));
    side.push(1, 0);
}

#[test]
fn at_most_256_ids_are_in_flight_from_the_oldest_on() {
    let mut side = Side::new(65400, 65530);
    side.push(300, 1);
    let sent = side.flush(0);
    let count: usize = sent.iter().map(|(_, ids)| ids.len()).sum();
    assert_eq!(count, 256);
    assert_eq!(side.due(1), at(300), "only a resend is due");
    // All but the first datagram arrive: the oldest id still holds everything back.
    assert!(side.ack(1, 1, 0x3F));
    assert!(side.lane.stuck_at() < Time::NEVER);
    assert_eq!(side.flush(1), []);
    let first = sent[0].1.clone();
    assert_eq!(side.flush(300), [(2, first)]);
    assert!(side.ack(301, 2, 0));
    let ids: Vec<u16> = side
        .flush(301)
        .into_iter()
        .flat_map(|(_, ids)| ids)
        .collect();
    assert_eq!(ids, (120..164).collect::<Vec<u16>>());
}

#[test]
fn at_most_32_kib_of_bodies_are_in_flight() {
    let mut side = Side::new(0, 0);
    side.push(31, 1024);
    side.push(1, 1023);
    side.push(2, 1);
    side.push(1, 0);
    let sent = side.flush(0);
    let ids: Vec<u16> = sent.iter().flat_map(|(_, ids)| ids.clone()).collect();
    assert_eq!(ids, (0..33).collect::<Vec<u16>>());
    assert!(side.ack(1, 3, 0), "one of them is acknowledged");
    assert_eq!(side.flush(1), [(32, vec![33, 34])]);
}

/// The other end holds 64 KiB while the oldest event is missing there, and would refuse more.
#[test]
fn no_more_is_sent_than_the_other_end_can_hold() {
    let mut side = Side::new(0, 0);
    side.push(200, 1024);
    let mut receiver = Receiver::new(0);
    let mut carried = 0;
    for ms in 0..100 {
        while let Some((seq, events)) = side.pack(ms) {
            for (id, kind, body) in &events {
                if *id == 0 {
                    continue;
                }
                let admission = receiver.admits([(*id, body.len())].into_iter());
                assert!(matches!(admission, Admission::Take { fresh: 1, .. }));
                receiver.take(*id, *kind, body, &mut |_, _| panic!("0 is missing"));
                assert!(side.ack(ms, seq, 0));
                carried += 1;
            }
        }
    }
    assert_eq!(carried, 63, "64 KiB, less the one that is missing");
    assert_eq!(side.due(100), at(300));
}

#[test]
fn waits_are_doubled_up_to_a_second() {
    for (r, sends) in [
        (100, vec![100, 300, 700, 1500, 2500, 3500, 4500]),
        (300, vec![300, 900, 1900, 2900, 3900]),
        (1000, vec![1000, 2000, 3000]),
        (1700, vec![1700, 3400, 5100, 6800]),
    ] {
        let mut side = Side::new(9, 9);
        side.push(1, 4);
        assert!(side.pack_into(0, r, ROOM).is_some());
        for ms in sends {
            assert_eq!(side.due(ms - 1), at(ms), "r = {r}");
            assert_eq!(side.pack_into(ms - 1, r, ROOM), None);
            assert!(side.pack_into(ms, r, ROOM).is_some());
        }
    }
}

#[test]
fn the_waits_of_the_255th_transmission_are_a_second_too() {
    let mut side = Side::new(0, 0);
    side.push(1, 0);
    for second in 0..600 {
        assert!(side.pack_into(second * 1000, 1000, ROOM).is_some());
        assert_eq!(side.due(second * 1000), at(second * 1000 + 1000));
    }
}

#[test]
fn any_datagram_that_carried_it_acknowledges_an_event() {
    let mut side = Side::new(0, 65534);
    side.push(1, 0);
    for ms in [0, 300, 900] {
        assert!(side.pack(ms).is_some());
    }
    assert!(!side.ack(901, 65533, u32::MAX), "none of these carried it");
    assert!(!side.ack(901, 1, 0), "nor did this");
    assert!(side.ack(902, 31, 1 << 31), "the one before the last did");
    assert!(side.lane.is_empty());
}

#[test]
fn what_a_datagram_did_not_carry_is_not_acknowledged_by_it() {
    let mut side = Side::new(0, 0);
    side.push(3, 0);
    assert_eq!(side.flush(0), [(0, vec![0, 1, 2])]);
    side.push(1, 0);
    assert_eq!(side.flush(10), [(1, vec![3])]);
    assert!(side.ack(20, 1, 0));
    assert_eq!(side.due(20), at(300));
    assert_eq!(side.flush(310), [(2, vec![0, 1, 2])], "3 has arrived");
    assert!(side.ack(320, 2, 0));
    assert!(side.lane.is_empty());
}

#[test]
fn what_is_due_again_goes_before_what_is_new() {
    let mut side = Side::new(0, 0);
    side.push(2, 0);
    assert_eq!(side.flush(0), [(0, vec![0, 1])]);
    side.push(1, 0);
    assert_eq!(side.flush(200), [(1, vec![2])]);
    side.push(1, 0);
    assert_eq!(side.flush(300), [(2, vec![0, 1, 3])]);
}

#[test]
fn at_most_32_datagrams_are_resent_in_20_ms() {
    let mut side = Side::new(0, 0);
    for _ in 0..80 {
        side.push(1, 0);
        assert_eq!(side.flush(0).len(), 1);
    }
    // Full datagrams would carry them in three; small ones show the budget.
    let mut resend = |ms| {
        let mut count = 0;
        while side.pack_into(ms, R, HEAD).is_some() {
            count += 1;
        }
        (count, side.due(ms))
    };
    assert_eq!(resend(300), (32, at(320)));
    assert_eq!(resend(300), (0, at(320)));
    assert_eq!(resend(319), (0, at(320)));
    assert_eq!(resend(320), (32, at(340)));
    assert_eq!(resend(345), (16, at(900)));
    side.push(40, 0);
    assert_eq!(side.flush(345).len(), 2, "what is new needs no budget");
}

#[test]
fn what_is_new_goes_out_while_the_resend_budget_is_spent() {
    let mut side = Side::new(0, 0);
    side.push(33, 0);
    for _ in 0..33 {
        assert!(side.pack_into(0, R, HEAD).is_some());
    }
    for _ in 0..32 {
        assert!(side.pack_into(300, R, HEAD).is_some());
    }
    assert_eq!(side.due(300), at(320));
    side.push(1, 0);
    assert_eq!(side.due(300), at(300));
    assert_eq!(
        side.flush(300),
        [(65, vec![33])],
        "32 is due, but not paid for"
    );
    assert_eq!(side.flush(320), [(66, vec![32])]);
}

#[test]
fn without_any_ack_it_is_stuck_after_15_s() {
    let mut side = Side::new(0, 0);
    side.push(1, 0);
    assert_eq!(side.lane.stuck_at(), Time::NEVER, "not transmitted yet");
    side.flush(2_000);
    assert_eq!(side.lane.stuck_at(), at(17_000));
    for ms in (2_000..17_000).step_by(100) {
        side.push(1, 0);
        side.flush(ms);
        assert!(!side.ack(ms, 65535, 0));
    }
    assert_eq!(side.lane.stuck_at(), at(17_000));
}

#[test]
fn one_ack_every_14_s_holds_nothing_for_longer_than_60_s() {
    let mut side = Side::new(0, 0);
    side.push(1, 0);
    side.flush(1_000);
    for round in 1..=4 {
        let ms = 1_000 + u64::from(round) * 14_000;
        assert!(side.lane.stuck_at() > at(ms));
        side.flush(ms);
        side.push(1, 0);
        let sent = side.flush(ms);
        assert_eq!(sent, [(sent[0].0, vec![round])], "the oldest went before");
        assert!(side.ack(ms, sent[0].0, 0));
        let moving = at(ms + 15_000);
        assert_eq!(side.lane.stuck_at(), moving.min(at(61_000)));
    }
    assert_eq!(side.lane.stuck_at(), at(61_000));
}

#[test]
fn slow_is_alive_as_long_as_it_moves() {
    let mut side = Side::new(0, 0);
    let mut ms = 0;
    side.push(2, 0);
    side.flush(ms);
    while ms < 600_000 {
        assert!(side.lane.stuck_at() > at(ms + 14_000));
        ms += 14_000;
        side.push(1, 0);
        let sent = side.flush(ms);
        assert!(side.ack(ms, sent[0].0, 0));
        side.push(1, 0);
        side.flush(ms);
    }
}

#[test]
fn age_counts_from_the_first_transmission_of_what_is_oldest_now() {
    let mut side = Side::new(0, 0);
    side.push(1, 0);
    side.flush(0);
    side.push(1, 0);
    side.flush(200);
    assert!(side.ack(250, 0, 0));
    assert_eq!(side.lane.stuck_at(), at(15_250));
    side.push(1, 0);
    assert!(side.ack(260, 1, 0));
    assert_eq!(side.lane.stuck_at(), Time::NEVER, "the next waits here");
    side.flush(9_000);
    assert_eq!(side.lane.stuck_at(), at(24_000));
}

#[test]
fn only_the_last_datagrams_are_remembered() {
    let mut side = Side::new(0, 0);
    side.push(1, 0);
    let mut last = 0;
    for ms in (0..4_000_000).step_by(1_000) {
        last = side.pack_into(ms, 1_000, ROOM).unwrap().0;
    }
    assert!(!side.ack(0, last - 2048, 0), "forgotten");
    assert!(side.ack(0, last - 2047, 0));
}

#[test]
fn a_sequence_that_comes_round_again_acknowledges_nothing_of_before() {
    let mut side = Side::new(0, 0);
    side.push(1, 0);
    side.flush(0);
    side.seq = 16_390;
    side.push(1, 0);
    side.flush(10);
    assert!(!side.ack(20, 0, 0));
    assert!(!side.ack(20, 16_391, 0));
    assert!(side.ack(20, 16_390, 0));
    assert!(!side.lane.is_empty());
}

#[test]
fn memory_is_given_back_after_a_burst_and_kept_in_steady_traffic() {
    let mut side = Side::new(0, 0);
    assert_eq!(side.lane.buffers(), (0, 0, 0));
    side.push(500, 1024);
    let mut ms = 0;
    while !side.lane.is_empty() {
        for (seq, _) in side.flush(ms) {
            side.ack(ms, seq, 0);
        }
        ms += 1;
    }
    assert_eq!(side.lane.buffers().0, 0);
    let mut steady = None;
    for _ in 0..1_000 {
        side.push(3, 300);
        for (seq, _) in side.flush(ms) {
            side.ack(ms, seq, 0);
        }
        ms += 50;
        assert_eq!(
            *steady.get_or_insert(side.lane.buffers()),
            side.lane.buffers()
        );
    }
    let (bodies, events, carriers) = side.lane.buffers();
    assert!((900..=8192).contains(&bodies));
    assert!((3..=128).contains(&events) && (1..=128).contains(&carriers));
    side.lane.rest();
    assert_eq!(
        side.lane.buffers().0,
        bodies,
        "it was used since the last rest"
    );
    side.lane.rest();
    assert_eq!(side.lane.buffers(), (0, 0, 0));
    side.push(1, 10);
    side.lane.rest();
    side.lane.rest();
    assert_eq!(side.flush(ms).len(), 1, "what waits is kept");
}
