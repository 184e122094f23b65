//! Better, worse, missing. Pure: figures in, verdicts out.
//! Invariant: what one side cannot give is never counted as a zero or as well.

use std::fmt;

use super::record::Record;

/// A drop of throughput by more than this share is worse.
const THROUGHPUT_DROP_MAX: f64 = 0.04;
/// Overhead is a share of the work, or the whole by the ideal; it may rise by this much.
const OVERHEAD_RISE_MAX: f64 = 0.02;
/// Memory may rise by this share.
const PEAK_RISE_MAX: f64 = 0.10;
/// A compression ratio that differs by less is the same, written with other digits.
const RATIO_SLACK: f64 = 1e-6;

/// What a figure says.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Figure {
    /// Units in a second: more is better.
    Throughput,
    /// What is spent beside the work: less is better.
    Overhead,
    /// Unpacked bytes for one that is packed: more is better.
    Ratio,
    /// Bytes at the peak: less is better.
    Peak,
}

/// A figure of a row on both sides, round by round.
#[derive(Clone, Debug)]
pub(crate) struct Compared {
    pub(crate) row: String,
    pub(crate) figure: Figure,
    /// Empty if that revision cannot do the row.
    pub(crate) base: Vec<f64>,
    pub(crate) this: Vec<f64>,
    /// Somebody else's, measured in the same rounds.
    pub(crate) peer: Option<(&'static str, Vec<f64>)>,
}

/// What came of a figure of a row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Verdict {
    Same,
    /// The other revision cannot do it.
    New,
    Worse(String),
}

impl Figure {
    pub(crate) const ALL: [Self; 4] = [Self::Throughput, Self::Overhead, Self::Ratio, Self::Peak];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::Overhead => "overhead",
            Self::Ratio => "ratio",
            Self::Peak => "peak",
        }
    }

    /// Whether it is the same on every machine.
    fn travels(self, row: &str) -> bool {
        self == Self::Ratio || row.starts_with("schedule")
    }

    /// Whether the change is too much, as [`Compared::change`] gives it.
    fn is_worse(self, change: f64) -> bool {
        match self {
            Self::Throughput => change < -THROUGHPUT_DROP_MAX,
            Self::Overhead => change > OVERHEAD_RISE_MAX,
            Self::Ratio => change < -RATIO_SLACK,
            Self::Peak => change > PEAK_RISE_MAX,
        }
    }

    fn change(self, base: f64, this: f64) -> f64 {
        match self {
            Self::Overhead => this - base,
            _ => this / base - 1.0,
        }
    }

    fn shown(self, value: f64) -> String {
        match self {
            Self::Throughput => format!("{value:.1}/s"),
            Self::Overhead | Self::Ratio => format!("{value:.4}"),
            Self::Peak => format!("{:.1} MiB", value / f64::from(1 << 20)),
        }
    }

    fn shown_change(self, change: f64) -> String {
        match self {
            Self::Overhead => format!("{change:+.4}"),
            _ => format!("{:+.2} %", change * 100.0),
        }
    }
}

impl Compared {
    /// The median of the rounds' changes: what slows a whole round down slows both sides.
    pub(crate) fn change(&self) -> Option<f64> {
        let pairs = self.base.iter().zip(&self.this);
        median(&pairs.map(|(base, this)| self.figure.change(*base, *this)).collect::<Vec<f64>>())
    }

    pub(crate) fn verdict(&self) -> Verdict {
        let name = format!("{} {}", self.row, self.figure.name());
        match (self.this.is_empty(), self.base.is_empty(), self.change()) {
            (true, _, _) => Verdict::Worse(format!("{name}: missing, this revision does not give it")),
            (false, true, _) => Verdict::New,
            (false, false, Some(change)) if self.figure.is_worse(change) => {
                Verdict::Worse(format!("{name}: {}", self.figure.shown_change(change)))
            }
            _ => Verdict::Same,
        }
    }

    pub(crate) fn print(&self) {
        println!("{self}");
    }
}

impl fmt::Display for Compared {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |values: &[f64]| median(values).map_or("-".to_owned(), |value| self.figure.shown(value));
        let change = self.change().map_or("-".to_owned(), |change| self.figure.shown_change(change));
        let (row, figure) = (&self.row, self.figure.name());
        write!(out, "{row:<24} {figure:<10} {:>12} {:>12} {change:>10}", shown(&self.base), shown(&self.this))?;
        if let Some((peer, values)) = self.peer.as_ref().filter(|(_, values)| !values.is_empty()) {
            write!(out, "   {peer} {}", shown(values))?;
        }
        match self.verdict() {
            Verdict::Same => Ok(()),
            Verdict::New => write!(out, "   new"),
            Verdict::Worse(_) => write!(out, "   WORSE"),
        }
    }
}

/// What is the same on every machine must not be worse than what was kept; and every row that was kept must be there.
pub(crate) fn against_kept(kept: &Record, now: &Record, is_whole: bool) -> Vec<Verdict> {
    let judge = |(row, figure, value): &(String, Figure, f64)| {
        let name = format!("{row} {}", figure.name());
        match now.value(row, *figure) {
            None if is_whole => Some(Verdict::Worse(format!("{name}: missing, and the baseline has it"))),
            Some(now) if figure.travels(row) && figure.is_worse(figure.change(*value, now)) => {
                Some(Verdict::Worse(format!("{name}: {now:.4}, and {value:.4} in the baseline")))
            }
            _ => None,
        }
    };
    kept.values.iter().filter_map(judge).collect()
}

/// All is well, or everything that is not.
pub(crate) fn sum_up(verdicts: &[Verdict]) -> Result<(), String> {
    let worse: Vec<&str> = verdicts.iter().filter_map(worse).collect();
    match worse.len() {
        0 => Ok(()),
        many => Err(format!("{many} of {} figures are worse:\n  {}", verdicts.len(), worse.join("\n  "))),
    }
}

fn worse(verdict: &Verdict) -> Option<&str> {
    match verdict {
        Verdict::Worse(what) => Some(what),
        Verdict::Same | Verdict::New => None,
    }
}

/// The middle one, or the mean of the two in the middle.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let upper = *sorted.get(middle)?;
    Some(if sorted.len().is_multiple_of(2) { f64::midpoint(sorted[middle - 1], upper) } else { upper })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compared(figure: Figure, base: f64, this: f64) -> Compared {
        let (base, this) = (vec![base; 5], vec![this; 5]);
        Compared { row: "pack/text".to_owned(), figure, base, this, peer: None }
    }

    fn is_worse(figure: Figure, base: f64, this: f64) -> bool {
        matches!(compared(figure, base, this).verdict(), Verdict::Worse(_))
    }

    #[test]
    fn a_drop_of_5_percent_fails_and_one_of_3_passes() {
        assert!(is_worse(Figure::Throughput, 100.0, 95.0));
        assert!(!is_worse(Figure::Throughput, 100.0, 97.0));
        assert!(!is_worse(Figure::Throughput, 100.0, 130.0));
    }

    #[test]
    fn overhead_ratio_and_memory_have_their_own_bounds() {
        assert!(is_worse(Figure::Overhead, 1.02, 1.05) && !is_worse(Figure::Overhead, 1.02, 1.03));
        assert!(is_worse(Figure::Ratio, 3.0, 2.999) && !is_worse(Figure::Ratio, 3.0, 3.0));
        assert!(is_worse(Figure::Peak, 100.0, 111.0) && !is_worse(Figure::Peak, 100.0, 109.0));
    }

    #[test]
    fn a_round_that_was_slow_for_both_changes_nothing() {
        let base = vec![100.0, 30.0, 100.0, 55.0, 100.0];
        let this = base.iter().map(|base| base * 0.99).collect();
        let compared = Compared { base, this, ..compared(Figure::Throughput, 1.0, 1.0) };
        assert_eq!(compared.verdict(), Verdict::Same);
        assert!((compared.change().unwrap() + 0.01).abs() < 1e-9);
    }

    #[test]
    fn a_row_that_is_missing_fails_and_one_that_is_new_passes() {
        let gone = Compared { this: Vec::new(), ..compared(Figure::Throughput, 1.0, 1.0) };
        assert!(matches!(gone.verdict(), Verdict::Worse(what) if what.contains("missing")));
        let new = Compared { base: Vec::new(), ..compared(Figure::Throughput, 1.0, 1.0) };
        assert_eq!(new.verdict(), Verdict::New);
    }

    fn record(values: &[(&str, Figure, f64)]) -> Record {
        let values = values.iter().map(|(row, figure, value)| ((*row).to_owned(), *figure, *value)).collect();
        Record { machine: Vec::new(), values }
    }

    #[test]
    fn the_baseline_holds_rows_and_what_is_the_same_everywhere() {
        let kept = record(&[("a", Figure::Throughput, 9.0), ("a", Figure::Ratio, 3.0), ("b", Figure::Peak, 1.0)]);
        let slower = record(&[("a", Figure::Throughput, 1.0), ("a", Figure::Ratio, 3.0), ("b", Figure::Peak, 2.0)]);
        assert_eq!(against_kept(&kept, &slower, true), []);
        let larger = record(&[("a", Figure::Throughput, 9.0), ("a", Figure::Ratio, 2.9)]);
        assert_eq!(against_kept(&kept, &larger, true).len(), 2);
        assert_eq!(against_kept(&kept, &larger, false).len(), 1);
    }

    #[test]
    fn the_sum_names_everything_that_is_worse() {
        let told = sum_up(&[Verdict::Same, Verdict::Worse("x: -9 %".to_owned()), Verdict::New]).unwrap_err();
        assert_eq!(told, "1 of 3 figures are worse:\n  x: -9 %");
        assert_eq!(sum_up(&[Verdict::Same]), Ok(()));
    }

    #[test]
    fn medians() {
        assert_eq!((median(&[]), median(&[3.0, 1.0, 2.0]), median(&[4.0, 1.0])), (None, Some(2.0), Some(2.5)));
    }
}
