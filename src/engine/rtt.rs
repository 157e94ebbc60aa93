//! The smoothed round trip time (RFC 6298), and how long to wait before sending again.

/// Fixed point: this many parts of a millisecond. With whole milliseconds an eighth of a small
/// difference would be nothing, and the value would stick beside the truth.
const PARTS: u64 = 1024;
/// A sample above this counts as this, in milliseconds.
const SAMPLE_MAX_MS: u64 = 60_000;

/// Before the first sample an event is sent again after this long, in milliseconds.
const RESEND_UNKNOWN_MS: u64 = 300;
/// An event is never sent again sooner than this, in milliseconds.
const RESEND_MIN_MS: u64 = 100;

/// The round trip time of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rtt {
    smoothed_parts: Option<u32>,
}

// The largest value, times the factor of `resend_ms`, fits.
const _: () = assert!(SAMPLE_MAX_MS * PARTS * 3 <= u32::MAX as u64);

impl Rtt {
    /// Takes a measured round trip in milliseconds. The first is the value; each later one moves
    /// it by an eighth of the difference.
    pub fn sample(&mut self, ms: u64) {
        let sample = (ms.min(SAMPLE_MAX_MS) * PARTS) as u32;
        self.smoothed_parts = Some(match self.smoothed_parts {
            None => sample,
            Some(old) if sample >= old => old + (sample - old) / 8,
            Some(old) => old - (old - sample) / 8,
        });
    }

    /// The smoothed value in whole milliseconds, rounded; `None` before the first sample.
    pub fn smoothed(&self) -> Option<u64> {
        self.smoothed_parts
            .map(|parts| (u64::from(parts) + PARTS / 2) / PARTS)
    }

    /// How long to wait in milliseconds before what was not acknowledged is sent again:
    /// one and a half times the smoothed value, at least 100; 300 before the first sample.
    pub fn resend_ms(&self) -> u64 {
        self.smoothed_parts.map_or(RESEND_UNKNOWN_MS, |parts| {
            (u64::from(parts) * 3)
                .div_ceil(PARTS * 2)
                .max(RESEND_MIN_MS)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_known_before_the_first_sample_which_is_the_value() {
        let mut rtt = Rtt::default();
        assert_eq!((rtt.smoothed(), rtt.resend_ms()), (None, 300));
        rtt.sample(200);
        assert_eq!((rtt.smoothed(), rtt.resend_ms()), (Some(200), 300));
    }

    #[test]
    fn each_sample_moves_it_by_an_eighth() {
        let mut rtt = Rtt::default();
        rtt.sample(800);
        rtt.sample(0);
        assert_eq!(rtt.smoothed(), Some(700));
        rtt.sample(1500);
        assert_eq!(rtt.smoothed(), Some(800));
        assert_eq!(rtt.resend_ms(), 1200);
    }

    #[test]
    fn small_values_do_not_stick() {
        let mut rtt = Rtt::default();
        for (from, to) in [(7, 0), (0, 7), (1, 0), (0, 1), (60_000, 1), (1, 60_000)] {
            for _ in 0..200 {
                rtt.sample(from);
            }
            assert_eq!(rtt.smoothed(), Some(from));
            for _ in 0..200 {
                rtt.sample(to);
            }
            assert_eq!(rtt.smoothed(), Some(to));
        }
    }

    #[test]
    fn waits_are_never_shorter_than_100_ms_and_samples_never_too_large() {
        let mut rtt = Rtt::default();
        rtt.sample(66);
        assert_eq!(rtt.resend_ms(), 100);
        rtt = Rtt::default();
        rtt.sample(67);
        assert_eq!(rtt.resend_ms(), 101);
        rtt.sample(u64::MAX);
        for _ in 0..1000 {
            rtt.sample(u64::MAX);
        }
        assert_eq!((rtt.smoothed(), rtt.resend_ms()), (Some(60_000), 90_000));
    }
}
