//! How times are spread, in a fixed amount of memory.

/// Bits of a value that are kept below its highest: 64 steps for every power of two.
const BITS: u32 = 6;
const STEPS: usize = 1 << BITS;
const BUCKETS: usize = (u64::BITS - BITS + 1) as usize * STEPS;

/// Counts values in buckets that grow with them: exact below 64, within 1.6 % above.
#[derive(Debug)]
pub struct Histogram {
    counts: Box<[u64]>,
    total: u64,
}

impl Histogram {
    /// One that has counted nothing.
    pub fn new() -> Self {
        Self {
            counts: vec![0; BUCKETS].into_boxed_slice(),
            total: 0,
        }
    }

    /// Counts a value.
    pub fn add(&mut self, value: u64) {
        self.counts[bucket(value)] += 1;
        self.total += 1;
    }

    /// The value that this share of all values, in a thousand, does not exceed; `None` if there
    /// are none. Never too small.
    pub fn percentile(&self, per_mille: u64) -> Option<u64> {
        let wanted = (self.total * per_mille).div_ceil(1000).max(1);
        let mut below = 0;
        let reached = self.counts.iter().position(|count| {
            below += count;
            below >= wanted
        });
        reached.map(greatest)
    }
}

fn bucket(value: u64) -> usize {
    let shift = (u64::BITS - value.leading_zeros()).saturating_sub(BITS + 1);
    shift as usize * STEPS + (value >> shift) as usize
}

/// The greatest value in a bucket.
fn greatest(bucket: usize) -> u64 {
    let shift = (bucket / STEPS).saturating_sub(1);
    let step = (bucket - shift * STEPS) as u128 + 1;
    ((step << shift) - 1) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_in_its_bucket_and_near_its_end() {
        let mut values = vec![u64::MAX, u64::MAX / 3];
        values.extend(0..300);
        values.extend((6..64).flat_map(|bit| [(1 << bit) - 1, 1_u64 << bit, (1 << bit) + 1]));
        for value in values {
            let end = greatest(bucket(value));
            assert!(end >= value, "{value}");
            assert!(end - value <= value / 63, "{value} counts as {end}");
            if end < u64::MAX {
                assert_eq!(bucket(end) + 1, bucket(end + 1), "{value}");
            }
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn percentiles_are_of_what_was_counted() {
        let mut histogram = Histogram::new();
        assert_eq!(histogram.percentile(500), None);
        histogram.add(7);
        assert_eq!(histogram.percentile(0), Some(7));
        assert_eq!(histogram.percentile(1000), Some(7));
        let mut histogram = Histogram::new();
        (1..=60).for_each(|value| histogram.add(value));
        assert_eq!(histogram.percentile(500), Some(30));
        assert_eq!(histogram.percentile(990), Some(60));
        assert_eq!(histogram.percentile(999), Some(60));
    }
}
