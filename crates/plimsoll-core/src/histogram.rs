//! A fixed-size histogram of spans of time, for percentiles.
//! Never allocates after it is made; its error is at most one part in sixteen.

use crate::Nanos;

/// Sub-buckets per doubling: 16 keeps the error of a percentile under 6.25 %.
const STEPS: usize = 16;
/// Doublings covered: up to 2^43 ns, about two hours and a half; longer spans count in the last bucket.
const DOUBLINGS: usize = 40;

/// Counts of spans by size.
#[derive(Clone, Debug)]
pub struct Histogram {
    counts: Box<[u32; STEPS * DOUBLINGS]>,
    total: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: Box::new([0; STEPS * DOUBLINGS]), total: 0 }
    }
}

impl Histogram {
    /// Counts one span.
    pub fn record(&mut self, span: Nanos) {
        self.record_many(span, 1);
    }

    /// Counts so many equal spans.
    pub fn record_many(&mut self, span: Nanos, times: u64) {
        let count = &mut self.counts[bucket(span)];
        *count = count.saturating_add(u32::try_from(times).unwrap_or(u32::MAX));
        self.total += times;
    }

    /// Spans counted.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The span that this share of all spans does not exceed; `None` if nothing was counted.
    pub fn percentile(&self, share: f64) -> Option<Nanos> {
        let rank = ((self.total as f64 * share).ceil() as u64).max(1);
        let mut seen = 0;
        self.counts.iter().enumerate().find_map(|(at, &count)| {
            seen += u64::from(count);
            (seen >= rank).then(|| upper_edge(at))
        })
    }
}

fn bucket(span: Nanos) -> usize {
    let value = span.0;
    if value < STEPS as u64 {
        return value as usize;
    }
    let doubling = value.ilog2() as usize - 3;
    let step = (value >> (doubling - 1)) as usize - STEPS;
    (doubling * STEPS + step).min(STEPS * DOUBLINGS - 1)
}

fn upper_edge(bucket: usize) -> Nanos {
    let (doubling, step) = (bucket / STEPS, bucket % STEPS);
    match doubling {
        0 => Nanos(step as u64),
        _ => Nanos((((STEPS + step + 1) as u64) << (doubling - 1)) - 1),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn percentiles_of_a_known_series() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.percentile(0.5), None);
        (1..=1000).for_each(|ms| histogram.record(Nanos::millis(ms)));
        for (share, exact) in [(0.5, 500.0), (0.95, 950.0), (0.99, 990.0)] {
            let found = histogram.percentile(share).unwrap().as_secs_f64() * 1e3;
            assert!((found / exact - 1.0).abs() < 0.0625, "p{share}: {found} beside {exact}");
        }
    }

    #[test]
    fn half_of_two_is_the_first_and_the_longest_counts_as_two_hours_and_a_half() {
        let mut histogram = Histogram::default();
        [Nanos(9), Nanos::MAX].into_iter().for_each(|span| histogram.record(span));
        assert_eq!((histogram.total(), histogram.percentile(0.5)), (2, Some(Nanos(9))));
        assert_eq!(histogram.percentile(1.0), Some(Nanos((1 << 43) - 1)));
    }

    proptest! {
        #[test]
        fn a_bucket_holds_its_spans(span in 0..1_u64 << 42) {
            let edge = upper_edge(bucket(Nanos(span))).0;
            prop_assert!(edge >= span);
            prop_assert!(edge as f64 <= span as f64 * (1.0 + 1.0 / STEPS as f64) + 1.0);
        }

        #[test]
        fn larger_spans_never_count_lower(a in any::<u64>(), b in any::<u64>()) {
            prop_assert!(bucket(Nanos(a.min(b))) <= bucket(Nanos(a.max(b))));
        }
    }
}
