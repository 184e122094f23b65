//! Samples that may be contaminated: a window of the latest, its median, and what to do with one that is far off.
//! Never knows what was measured, nor when.
//! Invariant: fewer than [`AGREEMENT`] wrong samples in a row do not move a window that has settled
//! (`a_burst_of_outliers_moves_nothing`), and [`AGREEMENT`] that agree always do (`a_new_level_is_learnt`).

use crate::Nanos;

/// Samples a window holds. Odd, so that the median is one of them; nine outvote four bad ones.
pub const WINDOW: usize = 9;

/// Samples before a window judges the next one: with fewer there is no telling which of them is the odd one.
pub const SETTLED: usize = 3;

/// Far-off samples in a row that must agree with each other before they are believed.
pub const AGREEMENT: usize = 5;

/// Far-off samples in a row after which the window gives way even if they do not agree: whatever it remembers is
/// not what happens now.
pub const PATIENCE: u32 = 32;

/// The longest time worth learning: seven days. Longer is a clock that jumped.
pub const TIME_MAX: Nanos = Nanos::seconds(7 * 24 * 3600);

/// A sample is off beyond this many median absolute deviations: about four standard deviations of a normal spread.
const TOLERATED_DEVIATIONS: u64 = 6;

/// One part in this many of the median is never off, however calm the window: cores change their clock that much.
const TOLERATED_PART: u64 = 4;

/// Nor is this little: timers and wake-ups jitter by it.
const TOLERATED_FLOOR_NS: u64 = 250;

/// A spread above this share of the median is not worth keeping while it can be measured again.
const NOISY_SPREAD: f64 = 0.1;

/// Fills the places of a window that hold no sample yet: it sorts behind every sample.
const EMPTY: u64 = u64::MAX;

/// Makes the median absolute deviation comparable with a standard deviation.
const DEVIATION_SCALE: f64 = 1.4826;

/// What a window made of a sample.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Reception {
    /// It is in the window.
    Taken,
    /// It is far off: set aside, the median did not move.
    Quarantined,
    /// It and those set aside before it are the window now: the level has changed.
    Shifted,
}

/// The latest samples of one thing and their median. Fixed size; learning allocates nothing.
///
/// The median is the lower one of an even number: a busy machine only ever adds time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// In order of arrival; once full, `next` is the oldest.
    latest: [u64; WINDOW],
    /// By rising time, then [`EMPTY`].
    sorted: [u64; WINDOW],
    len: u8,
    next: u8,
    /// The tolerated range, kept so that the usual sample costs two comparisons.
    low: u64,
    high: u64,
    learnt: u64,
    quarantine: Quarantine,
}

impl Window {
    /// A window with its first sample.
    pub fn new(first: Nanos) -> Self {
        let mut window = Self {
            latest: [EMPTY; WINDOW],
            sorted: [EMPTY; WINDOW],
            len: 0,
            next: 0,
            low: 0,
            high: 0,
            learnt: 0,
            quarantine: Quarantine::EMPTY,
        };
        window.take(bounded(first));
        window
    }

    /// A window as it was saved: its samples in order of arrival (the last [`WINDOW`] count) and how many it had
    /// learnt in all. `None` without samples.
    pub fn restore(times: &[Nanos], learnt: u64) -> Option<Self> {
        let (first, rest) = times.split_first()?;
        let mut window = Self::new(*first);
        for &time in rest {
            window.take(bounded(time));
        }
        window.learnt = learnt.max(times.len() as u64);
        Some(window)
    }

    /// Takes a sample in, or sets it aside.
    #[inline]
    pub fn learn(&mut self, sample: Nanos) -> Reception {
        let sample = bounded(sample);
        if usize::from(self.len) < SETTLED || (self.low..=self.high).contains(&sample) {
            self.quarantine.clear();
            self.take(sample);
            return Reception::Taken;
        }
        self.doubt(sample)
    }

    /// The lower median of the window.
    #[inline]
    pub fn median(&self) -> Nanos {
        Nanos(lower_median(self.sorted()))
    }

    /// How far the samples lie apart, as a share of the median.
    pub fn spread(&self) -> f64 {
        spread(self.sorted())
    }

    /// How many samples were ever taken in.
    pub fn learnt(&self) -> u64 {
        self.learnt
    }

    /// The samples in order of arrival.
    pub fn times(&self) -> impl Iterator<Item = Nanos> + '_ {
        let (len, next) = (usize::from(self.len), usize::from(self.next));
        let oldest = if len == WINDOW { next } else { 0 };
        (0..len).map(move |i| Nanos(self.latest[(oldest + i) % WINDOW]))
    }

    fn sorted(&self) -> &[u64] {
        &self.sorted[..usize::from(self.len)]
    }

    #[cold]
    fn doubt(&mut self, sample: u64) -> Reception {
        let Some(believed) = self.quarantine.add(sample) else { return Reception::Quarantined };
        (self.latest, self.sorted) = ([EMPTY; WINDOW], [EMPTY; WINDOW]);
        (self.len, self.next) = (0, 0);
        for sample in believed {
            self.take(sample);
        }
        self.quarantine.clear();
        Reception::Shifted
    }

    #[inline]
    fn take(&mut self, sample: u64) {
        let place = &mut self.latest[usize::from(self.next)];
        replace(&mut self.sorted, std::mem::replace(place, sample), sample);
        self.next = if usize::from(self.next) + 1 == WINDOW { 0 } else { self.next + 1 };
        self.len = (self.len + 1).min(WINDOW as u8);
        self.learnt = self.learnt.saturating_add(1);
        let (median, tolerance) = tolerance(self.sorted());
        self.low = median.saturating_sub(tolerance);
        self.high = median + tolerance;
    }
}

/// Far-off samples in a row, latest last.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
struct Quarantine {
    samples: [u64; AGREEMENT],
    in_a_row: u32,
}

impl Quarantine {
    const EMPTY: Self = Self { samples: [0; AGREEMENT], in_a_row: 0 };

    #[inline]
    fn clear(&mut self) {
        self.in_a_row = 0;
    }

    /// Sets a sample aside. Returns the last ones once they are to be believed.
    fn add(&mut self, sample: u64) -> Option<[u64; AGREEMENT]> {
        self.samples.rotate_left(1);
        self.samples[AGREEMENT - 1] = sample;
        self.in_a_row += 1;
        let enough = self.in_a_row as usize >= AGREEMENT;
        (enough && (agree(self.samples) || self.in_a_row >= PATIENCE)).then_some(self.samples)
    }
}

/// Whether the samples could be one level with ordinary jitter.
fn agree(mut samples: [u64; AGREEMENT]) -> bool {
    samples.sort_unstable();
    let median = lower_median(&samples);
    let tolerance = ordinary_jitter(median);
    samples.iter().all(|&sample| sample.abs_diff(median) <= tolerance)
}

/// Takes `leaves` out of the sorted samples and puts `sample` in. Without a branch on the values: they are noise, and a
/// processor that guesses at noise guesses wrong every other time.
#[inline]
fn replace(sorted: &mut [u64; WINDOW], leaves: u64, sample: u64) {
    let mut rest = [EMPTY; WINDOW];
    for i in 0..WINDOW - 1 {
        rest[i] = if sorted[i] < leaves { sorted[i] } else { sorted[i + 1] };
    }
    sorted[0] = rest[0].min(sample);
    for i in 1..WINDOW {
        sorted[i] = rest[i].min(sample).max(rest[i - 1]);
    }
}

#[inline]
fn bounded(sample: Nanos) -> u64 {
    sample.0.clamp(1, TIME_MAX.0)
}

#[inline]
fn ordinary_jitter(median: u64) -> u64 {
    (median / TOLERATED_PART).max(TOLERATED_FLOOR_NS)
}

/// The median, and how far from it a sample may lie.
#[inline]
fn tolerance(sorted: &[u64]) -> (u64, u64) {
    let median = lower_median(sorted);
    let tolerance = (deviation(sorted, median) * TOLERATED_DEVIATIONS).max(ordinary_jitter(median));
    (median, tolerance)
}

#[inline]
fn lower_median(sorted: &[u64]) -> u64 {
    sorted[(sorted.len() - 1) / 2]
}

/// The median absolute deviation. The deviations below the median and those above it are each sorted already, so the
/// one in the middle of both is where the two, walked towards each other, meet.
#[inline]
fn deviation(sorted: &[u64], median: u64) -> u64 {
    let middle = (sorted.len() - 1) / 2;
    let meet = |below: usize| (median - sorted[middle - below]).max(sorted[2 * middle - below] - median);
    (0..=middle).map(meet).min().unwrap_or(0)
}

fn spread(sorted: &[u64]) -> f64 {
    let median = lower_median(sorted);
    deviation(sorted, median) as f64 * DEVIATION_SCALE / median as f64
}

/// Whether a set of samples of one thing is worth keeping.
///
/// ```
/// # use plimsoll_core as plimsoll;
/// use plimsoll::Nanos;
/// use plimsoll::profile::Verdict;
///
/// let calm = [100, 101, 99, 100, 400].map(Nanos::micros);
/// assert_eq!(Verdict::of(&calm), Verdict::Clean { median: Nanos::micros(100) });
/// let busy = [100, 180, 260, 90, 400].map(Nanos::micros);
/// assert!(matches!(Verdict::of(&busy), Verdict::Noisy { .. }));
/// ```
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Verdict {
    /// Fewer than [`SETTLED`] samples: measure more.
    TooFew,
    /// The samples agree, but for a minority.
    Clean {
        /// The lower median.
        median: Nanos,
    },
    /// The machine was busy with something else: measure again.
    Noisy {
        /// The lower median, for want of better.
        median: Nanos,
        /// How far the samples lie apart, as a share of the median (comparable with a standard deviation).
        spread: f64,
    },
}

impl Verdict {
    /// Judges the samples, in any order.
    pub fn of(samples: &[Nanos]) -> Self {
        if samples.len() < SETTLED {
            return Self::TooFew;
        }
        let mut sorted: Vec<u64> = samples.iter().copied().map(bounded).collect();
        sorted.sort_unstable();
        let median = lower_median(&sorted);
        let spread = spread(&sorted);
        let jitter = deviation(&sorted, median) <= TOLERATED_FLOOR_NS;
        if jitter || spread <= NOISY_SPREAD {
            Self::Clean { median: Nanos(median) }
        } else {
            Self::Noisy { median: Nanos(median), spread }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn window(times: &[u64]) -> Window {
        let mut window = Window::new(Nanos(times[0]));
        for &time in &times[1..] {
            window.learn(Nanos(time));
        }
        window
    }

    /// A settled window at a level of 1 ms, with a jitter of up to 5 %.
    fn settled() -> impl Strategy<Value = Window> {
        prop::collection::vec(950_000_u64..1_050_000, SETTLED..30).prop_map(|times| window(&times))
    }

    #[test]
    fn the_first_sample_counts_and_a_slow_first_one_is_outvoted() {
        assert_eq!(window(&[900]).median(), Nanos(900));
        assert_eq!(window(&[900_000, 100_000]).median(), Nanos(100_000));
        assert_eq!(window(&[900_000, 100_000, 101_000]).median(), Nanos(101_000));
    }

    #[test]
    fn a_burst_of_outliers_moves_nothing() {
        let mut window = window(&[100_000; 4]);
        for factor in [10, 11, 10, 11] {
            assert_eq!(window.learn(Nanos(100_000 * factor)), Reception::Quarantined);
        }
        assert_eq!(window.median(), Nanos(100_000));
        assert_eq!(window.learn(Nanos(100_500)), Reception::Taken);
        for factor in [10, 11, 10, 11] {
            assert_eq!(window.learn(Nanos(100_000 * factor)), Reception::Quarantined, "the row began anew");
        }
    }

    #[test]
    fn a_new_level_is_learnt() {
        let mut window = window(&[100_000; WINDOW]);
        let receptions: Vec<_> = (0..AGREEMENT as u64).map(|i| window.learn(Nanos(300_000 + i * 5_000))).collect();
        assert_eq!(receptions.last(), Some(&Reception::Shifted));
        assert_eq!(window.median(), Nanos(310_000));
    }

    /// A quarter of their median is what samples of one level may differ by, in whatever order they come.
    #[test]
    fn a_new_level_may_jitter() {
        let receptions = |times: [u64; AGREEMENT]| {
            let mut window = window(&[10_000; WINDOW]);
            times.map(|time| window.learn(Nanos(time)))[AGREEMENT - 1]
        };
        assert_eq!(receptions([100_000, 100_000, 80_000, 120_000, 125_000]), Reception::Shifted);
        assert_eq!(receptions([100_000, 100_000, 80_000, 120_000, 125_001]), Reception::Quarantined);
    }

    /// Samples that lie apart make the next one less of a surprise: six times their deviation.
    #[test]
    fn a_noisy_window_tolerates_more() {
        let noisy = window(&[80_000, 120_000, 100_000, 120_000, 80_000]);
        assert_eq!(noisy.clone().learn(Nanos(220_000)), Reception::Taken);
        assert_eq!(noisy.clone().learn(Nanos(220_001)), Reception::Quarantined);
        assert!((noisy.spread() - 0.2 * DEVIATION_SCALE).abs() < 1e-9, "{}", noisy.spread());
        assert_eq!(noisy.learnt(), 5);
    }

    #[test]
    fn a_window_nobody_agrees_with_gives_way() {
        let mut window = window(&[100_000; WINDOW]);
        let wild = |i: u64| Nanos(1_000_000 * (1 + i % 4 * 3));
        let shifted = (0..u64::from(PATIENCE)).position(|i| window.learn(wild(i)) == Reception::Shifted);
        assert_eq!(shifted, Some(PATIENCE as usize - 1));
        assert_eq!(window.learn(Nanos::seconds(1_000)), Reception::Quarantined, "the row begins anew");
    }

    #[test]
    fn tiny_times_may_jitter() {
        let mut window = window(&[40; WINDOW]);
        assert_eq!(window.learn(Nanos(200)), Reception::Taken);
        assert_eq!(window.learn(Nanos(0)), Reception::Taken, "below the timer's grain");
    }

    #[test]
    fn a_clock_that_jumped_is_bounded() {
        assert_eq!(Window::new(Nanos::MAX).median(), TIME_MAX);
        assert_eq!(Window::new(Nanos::ZERO).median(), Nanos(1));
    }

    #[test]
    fn verdicts() {
        assert_eq!(Verdict::of(&[]), Verdict::TooFew);
        assert_eq!(Verdict::of(&[Nanos(30), Nanos(200), Nanos(90)]), Verdict::Clean { median: Nanos(90) });
        let jitter = |by: u64| Verdict::of(&[1_000, 1_000 + by, 1_000 + 2 * by].map(Nanos));
        assert_eq!(jitter(250), Verdict::Clean { median: Nanos(1_250) }, "no more than a timer's");
        assert!(matches!(jitter(251), Verdict::Noisy { .. }));
        let noisy = Verdict::of(&[Nanos::millis(1), Nanos::millis(2), Nanos::millis(3)]);
        assert!(matches!(noisy, Verdict::Noisy { median, spread } if median == Nanos::millis(2) && spread > 0.7));
    }

    proptest! {
        #[test]
        fn the_median_and_deviation_are_those_of_a_plain_sort(times in prop::collection::vec(1_u64..2_000_000, 1..40)) {
            let window = window(&times);
            let mut kept: Vec<u64> = window.times().map(|t| t.0).collect();
            kept.sort_unstable();
            prop_assert_eq!(&kept[..], window.sorted());
            let median = kept[(kept.len() - 1) / 2];
            prop_assert_eq!(window.median(), Nanos(median));
            let mut off: Vec<u64> = kept.iter().map(|t| t.abs_diff(median)).collect();
            off.sort_unstable();
            prop_assert_eq!(deviation(&kept, median), off[(off.len() - 1) / 2]);
        }

        #[test]
        fn few_outliers_never_move_a_settled_window(
            mut window in settled(),
            outliers in prop::collection::vec(prop_oneof![1_u64..400_000, 2_000_000..u64::MAX], 0..AGREEMENT),
        ) {
            let before = window.median();
            for outlier in outliers {
                window.learn(Nanos(outlier));
            }
            prop_assert_eq!(window.median(), before);
        }

        #[test]
        fn any_level_is_learnt_within_an_agreement(
            mut window in settled(),
            level in prop_oneof![10_000_u64..500_000, 2_000_000_u64..1_000_000_000],
            jitter in prop::collection::vec(0.95_f64..1.05, AGREEMENT),
        ) {
            for factor in jitter {
                window.learn(Nanos(level).scaled(factor));
            }
            let share = window.median().0 as f64 / level as f64;
            prop_assert!((0.94..1.06).contains(&share), "{share}");
        }

        #[test]
        fn a_restored_window_goes_on_as_before(times in prop::collection::vec(1_u64..2_000_000, 1..40), next: u64) {
            let mut before = window(&times);
            before.quarantine.clear();
            let kept: Vec<Nanos> = before.times().collect();
            let mut after = Window::restore(&kept, before.learnt()).expect("it has samples");
            prop_assert_eq!((after.median(), after.learnt()), (before.median(), before.learnt()));
            prop_assert_eq!(after.learn(Nanos(next)), before.learn(Nanos(next)));
            prop_assert_eq!(after.median(), before.median());
        }
    }
}
