//! Sequence numbers: 16 bits that wrap, compared by distance (RFC 1982).
//!
//! [`Window`] says what was received and what the acknowledgement of it reads; [`Numbering`] says
//! what was sent, so that an acknowledgement of what never was is recognised.

/// How many sequences behind the newest an acknowledgement still names, one bit each.
pub const WINDOW: u16 = 32;

/// How far it is from `from` to `to`: positive if `to` is ahead (by at most 32767), negative if
/// it is behind (by at most 32768).
pub const fn distance(from: u16, to: u16) -> i16 {
    to.wrapping_sub(from).cast_signed()
}

/// Whether an acknowledgement header acknowledges `seq`: it is `ack` itself, or bit n of `bits`
/// is set and it is `ack - 1 - n`.
///
/// Whether `ack` was ever sent is another question: [`Numbering::was_sent`].
pub const fn acks(ack: u16, bits: u32, seq: u16) -> bool {
    match ack.wrapping_sub(seq) {
        0 => true,
        behind @ 1..=WINDOW => bits >> (behind - 1) & 1 == 1,
        _ => false,
    }
}

/// What a sequence is to a [`Window`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// It is the first, or ahead of the newest, or at most 32 behind it and not yet received.
    New,
    /// It was received already.
    Repeated,
    /// It is more than 32 behind the newest: whether it was received is no longer known.
    Old,
}

/// The newest sequence received, and which of the 32 before it were.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Window {
    newest: Option<u16>,
    bits: u32,
}

impl Window {
    /// Nothing was received yet: any first sequence is new.
    pub const fn new() -> Self {
        Self {
            newest: None,
            bits: 0,
        }
    }

    /// What `seq` is, were it to arrive now. Changes nothing: what is not to count as received
    /// is judged and never noted.
    pub fn judge(&self, seq: u16) -> Arrival {
        let Some(newest) = self.newest else {
            return Arrival::New;
        };
        if acks(newest, self.bits, seq) {
            Arrival::Repeated
        } else if distance(newest, seq) >= -WINDOW.cast_signed() {
            Arrival::New
        } else {
            Arrival::Old
        }
    }

    /// Marks `seq` as received. One that is too old is not kept.
    pub fn note(&mut self, seq: u16) {
        let Some(newest) = self.newest else {
            self.newest = Some(seq);
            return;
        };
        let ahead = distance(newest, seq);
        if ahead > 0 {
            self.move_ahead(seq, u32::from(ahead.unsigned_abs()));
        } else if ahead < 0 {
            let bit = u32::from(ahead.unsigned_abs()) - 1;
            self.bits |= 1_u32.checked_shl(bit).unwrap_or(0);
        }
    }

    /// Makes `seq`, which is `ahead` (above 0) of the newest, the newest.
    fn move_ahead(&mut self, seq: u16, ahead: u32) {
        let older = self.bits.checked_shl(ahead).unwrap_or(0);
        let former = 1_u32.checked_shl(ahead - 1).unwrap_or(0);
        self.bits = older | former;
        self.newest = Some(seq);
    }

    /// The acknowledgement of all that was noted: the newest sequence, and bits of which bit n
    /// says that the one `n + 1` before it was received. Before anything: `(0xFFFF, 0)`.
    pub fn ack(&self) -> (u16, u32) {
        (self.newest.unwrap_or(u16::MAX), self.bits)
    }
}

/// Which of the last 1024 ids were received: for a peer that repeats itself late.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct History {
    newest: Option<u16>,
    /// A bit for each id, at its place modulo 1024.
    bits: [u64; HISTORY as usize / 64],
}

/// How many ids a [`History`] knows, the newest included.
pub const HISTORY: u16 = 1024;

impl Default for History {
    fn default() -> Self {
        Self {
            newest: None,
            bits: [0; HISTORY as usize / 64],
        }
    }
}

impl History {
    /// What `id` is, were it to arrive now. Changes nothing.
    pub fn judge(&self, id: u16) -> Arrival {
        let Some(newest) = self.newest else {
            return Arrival::New;
        };
        let ahead = distance(newest, id);
        if ahead > 0 {
            Arrival::New
        } else if ahead <= -HISTORY.cast_signed() {
            Arrival::Old
        } else if self.has(id) {
            Arrival::Repeated
        } else {
            Arrival::New
        }
    }

    /// Marks `id` as received. One that is too old is not kept.
    pub fn note(&mut self, id: u16) {
        match self.judge(id) {
            Arrival::Old => return,
            Arrival::Repeated | Arrival::New => {}
        }
        let ahead = self.newest.map_or(1, |newest| distance(newest, id));
        if ahead > 0 {
            let skipped = u16::min(ahead.unsigned_abs(), HISTORY);
            for back in 0..skipped {
                self.set(id.wrapping_sub(back), false);
            }
            self.newest = Some(id);
        }
        self.set(id, true);
    }

    /// Takes the mark off `id` again: it counts as never seen.
    pub fn forget(&mut self, id: u16) {
        if self.judge(id) == Arrival::Repeated {
            self.set(id, false);
        }
    }

    fn has(&self, id: u16) -> bool {
        let (word, bit) = place(id);
        self.bits[word] >> bit & 1 == 1
    }

    fn set(&mut self, id: u16, is_set: bool) {
        let (word, bit) = place(id);
        self.bits[word] = self.bits[word] & !(1 << bit) | u64::from(is_set) << bit;
    }
}

fn place(id: u16) -> (usize, u32) {
    let place = id % HISTORY;
    (usize::from(place / 64), u32::from(place % 64))
}

/// The numbers of what we send: one by one from 0, wrapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Numbering {
    upcoming: u16,
    /// How many were taken, up to 65535 (from 32768 on it makes no difference).
    taken: u16,
}

impl Numbering {
    /// Nothing was sent yet; the first number is 0.
    pub const fn new() -> Self {
        Self {
            upcoming: 0,
            taken: 0,
        }
    }

    /// The number that [`Numbering::take`] will give next.
    pub const fn upcoming(&self) -> u16 {
        self.upcoming
    }

    /// Takes the next number: from now on it counts as sent.
    pub fn take(&mut self) -> u16 {
        let seq = self.upcoming;
        self.upcoming = seq.wrapping_add(1);
        self.taken = self.taken.saturating_add(1);
        seq
    }

    /// Whether `seq` is among the last 32768 numbers taken. An acknowledgement of any other is
    /// bogus, or says that nothing was received yet (`0xFFFF` while 65535 was not sent).
    pub const fn was_sent(&self, seq: u16) -> bool {
        let newer = self.upcoming.wrapping_sub(1).wrapping_sub(seq);
        newer <= i16::MAX.cast_unsigned() && newer < self.taken
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::engine::Seeded;

    #[test]
    fn distance_is_signed_and_wraps() {
        assert_eq!(distance(5, 5), 0);
        assert_eq!(distance(65535, 0), 1);
        assert_eq!(distance(0, 65535), -1);
        assert_eq!(distance(1, 32768), 32767);
        assert_eq!(distance(1, 32769), -32768);
    }

    #[test]
    fn before_anything_the_ack_is_ffff_and_every_sequence_is_new() {
        let window = Window::new();
        assert_eq!(window.ack(), (0xFFFF, 0));
        for seq in 0..=u16::MAX {
            assert_eq!(window.judge(seq), Arrival::New);
        }
    }

    #[test]
    fn the_edges_of_the_window() {
        for newest in [0, 20, 40, 32767, 32768, 65535] {
            let mut window = Window::new();
            window.note(newest);
            let at = |offset: i32| (i32::from(newest) + offset).rem_euclid(65536) as u16;
            assert_eq!(window.judge(newest), Arrival::Repeated);
            assert_eq!(window.judge(at(1)), Arrival::New);
            assert_eq!(window.judge(at(32767)), Arrival::New);
            assert_eq!(window.judge(at(32768)), Arrival::Old);
            assert_eq!(window.judge(at(-1)), Arrival::New);
            assert_eq!(window.judge(at(-32)), Arrival::New);
            assert_eq!(window.judge(at(-33)), Arrival::Old);
            window.note(at(-32));
            assert_eq!(window.judge(at(-32)), Arrival::Repeated);
            assert_eq!(window.ack(), (newest, 1 << 31));
            window.note(at(-33));
            assert_eq!(window.ack(), (newest, 1 << 31), "too old is not kept");
        }
    }

    #[test]
    fn a_jump_ahead_keeps_what_the_bits_can_name() {
        for (ahead, bits) in [
            (1, 0b111),
            (30, 0b111 << 29),
            (31, 0b11 << 30),
            (32, 1 << 31),
            (33, 0),
            (64, 0),
            (32767, 0),
        ] {
            let mut window = Window::new();
            for seq in [65533, 65534, 65535] {
                window.note(seq);
            }
            let seq = 65535_u16.wrapping_add(ahead);
            window.note(seq);
            assert_eq!(window.ack(), (seq, bits), "{ahead} ahead");
        }
    }

    #[test]
    fn judging_does_not_note() {
        let mut window = Window::new();
        window.note(10);
        assert_eq!(window.judge(11), Arrival::New);
        assert_eq!(window.ack(), (10, 0));
        window.note(12);
        assert_eq!(window.judge(11), Arrival::New);
        assert_eq!(window.ack(), (12, 0b10), "11 is not acknowledged");
    }

    /// The window beside a set of plain numbers that do not wrap.
    #[test]
    fn the_window_agrees_with_a_set() {
        for seed in 0..200 {
            let mut dice = Seeded::new(seed);
            let mut window = Window::new();
            let mut newest = 65536 + 65500 + dice.below(60) as i64;
            let mut seen = BTreeSet::from([newest]);
            window.note(newest as u16);
            for _ in 0..600 {
                let at = newest
                    + match dice.below(20) {
                        0 => dice.below(32768) as i64,
                        1 => 25 + dice.below(16) as i64,
                        _ => dice.below(45) as i64 - 40,
                    };
                let expected = if seen.contains(&at) && at >= newest - 32 {
                    Arrival::Repeated
                } else if at >= newest - 32 {
                    Arrival::New
                } else {
                    Arrival::Old
                };
                assert_eq!(window.judge(at as u16), expected, "seed {seed}");
                if dice.below(4) > 0 {
                    window.note(at as u16);
                    seen.insert(at);
                    newest = newest.max(at);
                }
                let (ack, bits) = window.ack();
                assert_eq!(ack, newest as u16);
                for behind in 0..40 {
                    let acked = behind <= 32 && seen.contains(&(newest - behind));
                    let seq = (newest - behind) as u16;
                    assert_eq!(acks(ack, bits, seq), acked, "seed {seed}, {behind} behind");
                }
                assert!(!acks(ack, bits, ack.wrapping_add(1)));
            }
        }
    }

    #[test]
    fn an_ack_of_what_was_never_sent_is_bogus() {
        let mut numbering = Numbering::new();
        for seq in 0..=u16::MAX {
            assert!(!numbering.was_sent(seq), "nothing was sent yet");
        }
        assert_eq!((numbering.take(), numbering.take()), (0, 1));
        assert_eq!(numbering.upcoming(), 2);
        for seq in 0..=u16::MAX {
            assert_eq!(numbering.was_sent(seq), seq < 2);
        }
    }

    #[test]
    fn numbers_wrap_and_the_half_behind_counts_as_sent() {
        let mut numbering = Numbering::new();
        let mut sent = 0_u32;
        for total in [
            32767, 32768, 32769, 65535, 65536, 65537, 100_000, 131_072, 200_000,
        ] {
            while sent < total {
                assert_eq!(numbering.take(), sent as u16);
                sent += 1;
            }
            let newest = total - 1;
            for behind in 0..65536 {
                let seq = newest.wrapping_sub(behind) as u16;
                let expected = behind <= 32767 && behind <= newest;
                assert_eq!(numbering.was_sent(seq), expected, "{behind} of {total}");
            }
        }
    }

    #[test]
    fn ffff_counts_once_it_was_sent() {
        let mut numbering = Numbering::new();
        for _ in 0..65535 {
            numbering.take();
            assert!(!numbering.was_sent(0xFFFF));
        }
        assert_eq!(numbering.take(), 0xFFFF);
        assert!(numbering.was_sent(0xFFFF));
    }

    #[test]
    fn a_history_agrees_with_a_set_across_the_wrap() {
        for seed in 0..20 {
            let mut dice = Seeded::new(seed);
            let mut history = History::default();
            let start: i64 = 65_000;
            let (mut newest, mut seen) = (start, BTreeSet::new());
            for _ in 0..20_000 {
                let reach = if dice.below(50) == 0 { 5_000 } else { 40 };
                let id = newest - 1_100 * dice.below(2) as i64 + dice.below(reach) as i64 - 20;
                let wire = id.rem_euclid(65_536) as u16;
                let expected = if seen.is_empty() {
                    Arrival::New
                } else if id <= newest - i64::from(HISTORY) {
                    Arrival::Old
                } else if seen.contains(&id) {
                    Arrival::Repeated
                } else {
                    Arrival::New
                };
                assert_eq!(
                    history.judge(wire),
                    expected,
                    "seed {seed}, id {id}, newest {newest}"
                );
                if expected == Arrival::Repeated && dice.below(10) == 0 {
                    history.forget(wire);
                    seen.remove(&id);
                } else if expected == Arrival::New && dice.below(4) > 0 {
                    history.note(wire);
                    newest = if seen.is_empty() { id } else { newest.max(id) };
                    seen.insert(id);
                }
            }
        }
    }
}
