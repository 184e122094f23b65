//! What many rows say of each label (an encoder, say): how its scores spread, and how many more bits than the first label
//! it needs for the same score (the Bjøntegaard delta of the rate).
//! Never extrapolates: two curves are compared where both have scores.

/// One scored file.
#[derive(Clone, Debug, PartialEq)]
pub struct LabelledScore {
    /// What it belongs to.
    pub label: String,
    /// What it was compared with: curves are those of one label and one reference.
    pub reference: String,
    /// Bits for each pixel.
    pub rate: f64,
    /// Its score.
    pub score: f64,
}

/// What there is to say of a label.
#[derive(Clone, Debug, PartialEq)]
pub struct LabelFigures {
    /// Which.
    pub label: String,
    /// How many scores it has.
    pub count: usize,
    /// Their mean.
    pub mean: f64,
    /// One in twenty is at most this.
    pub p5: f64,
    /// Half are at most this.
    pub p50: f64,
    /// Nineteen in twenty are at most this.
    pub p95: f64,
    /// How many more bits than the first label it needs for the same score, as a share: -0.2 is a fifth less. `None` for
    /// the first label, and where no reference has two scores of both that overlap.
    pub bd_rate: Option<f64>,
}

/// The figures of each label, in the order in which they first appear; the first is what the others are compared with.
///
/// ```
/// use plimsoll_results::labels::{LabelledScore, figures};
/// let score = |label: &str, rate: f64, score: f64| LabelledScore {
///     label: label.to_owned(),
///     reference: "a".to_owned(),
///     rate,
///     score,
/// };
/// let curve = |label: &str, factor: f64| [(0.5, 50.0), (1.0, 70.0), (2.0, 85.0)].map(|(rate, at)| score(label, rate * factor, at));
/// let rows: Vec<_> = curve("old", 1.0).into_iter().chain(curve("new", 0.8)).collect();
/// let figures = figures(&rows, true);
/// assert!((figures[1].bd_rate.unwrap() + 0.2).abs() < 1e-9, "a fifth fewer bits everywhere");
/// ```
pub fn figures(rows: &[LabelledScore], better_higher: bool) -> Vec<LabelFigures> {
    let rows: Vec<&LabelledScore> = rows.iter().filter(|row| row.score.is_finite()).collect();
    let labels = distinct(rows.iter().map(|row| row.label.as_str()));
    let Some(first) = labels.first().copied() else { return Vec::new() };
    let of = |label: &str| {
        let mut scores: Vec<f64> = rows.iter().filter(|row| row.label == label).map(|row| row.score).collect();
        scores.sort_by(f64::total_cmp);
        // The least that so many are at most.
        let at = |share: f64| scores[((scores.len() as f64 * share).ceil() as usize).clamp(1, scores.len()) - 1];
        LabelFigures {
            label: label.to_owned(),
            count: scores.len(),
            mean: scores.iter().sum::<f64>() / scores.len() as f64,
            p5: at(0.05),
            p50: at(0.5),
            p95: at(0.95),
            bd_rate: (label != first).then(|| bd_rate(&rows, first, label, better_higher)).flatten(),
        }
    };
    labels.into_iter().map(of).collect()
}

fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut known: Vec<&str> = Vec::new();
    for name in names {
        if !known.contains(&name) {
            known.push(name);
        }
    }
    known
}

/// The mean over all references that both have curves for; of logarithms, so that twice and half balance.
fn bd_rate(rows: &[&LabelledScore], first: &str, label: &str, better_higher: bool) -> Option<f64> {
    let references = distinct(rows.iter().filter(|row| row.label == label).map(|row| row.reference.as_str()));
    let curve = |label: &str, reference: &str| {
        let of_it = rows.iter().filter(|row| row.label == label && row.reference == reference);
        Curve::through(of_it.map(|row| (if better_higher { row.score } else { -row.score }, row.rate)))
    };
    let difference = |reference: &&str| curve(label, reference)?.mean_above(&curve(first, reference)?);
    let differences: Vec<f64> = references.iter().filter_map(difference).collect();
    let mean = differences.iter().sum::<f64>() / differences.len() as f64;
    (!differences.is_empty()).then(|| mean.exp() - 1.0)
}

/// The logarithm of the rate as a function of the score: a cubic between each two points that never overshoots.
struct Curve {
    points: Vec<(f64, f64)>,
    slopes: Vec<f64>,
}

impl Curve {
    fn through(points: impl Iterator<Item = (f64, f64)>) -> Option<Self> {
        let mut points: Vec<(f64, f64)> =
            points.filter(|(_, rate)| *rate > 0.0).map(|(score, rate)| (score, rate.ln())).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
        // Of equal scores the one with fewer bits.
        points.dedup_by(|later, earlier| later.0 == earlier.0);
        let slopes = slopes(&points)?;
        Some(Self { points, slopes })
    }

    fn span(&self) -> (f64, f64) {
        (self.points[0].0, self.points[self.points.len() - 1].0)
    }

    fn at(&self, score: f64) -> f64 {
        let right = self.points.partition_point(|point| point.0 < score).clamp(1, self.points.len() - 1);
        let ((x0, y0), (x1, y1)) = (self.points[right - 1], self.points[right]);
        let (length, part) = (x1 - x0, (score - x0) / (x1 - x0));
        let (square, cube) = (part * part, part * part * part);
        (2.0 * cube - 3.0 * square + 1.0) * y0
            + (cube - 2.0 * square + part) * length * self.slopes[right - 1]
            + (3.0 * square - 2.0 * cube) * y1
            + (cube - square) * length * self.slopes[right]
    }

    /// By how much it lies above the other on average, where both have scores.
    fn mean_above(&self, other: &Self) -> Option<f64> {
        let (from, to) = (self.span().0.max(other.span().0), self.span().1.min(other.span().1));
        let knots = self.points.iter().chain(&other.points).map(|point| point.0);
        let mut knots: Vec<f64> = knots.filter(|knot| (from..=to).contains(knot)).chain([from, to]).collect();
        knots.sort_by(f64::total_cmp);
        let above = |score: f64| self.at(score) - other.at(score);
        // Simpson's rule is exact for the cubic between two knots.
        let piece = |ends: &[f64]| {
            let middle = f64::midpoint(ends[0], ends[1]);
            (ends[1] - ends[0]) / 6.0 * (above(ends[0]) + 4.0 * above(middle) + above(ends[1]))
        };
        (from < to).then(|| knots.windows(2).map(piece).sum::<f64>() / (to - from))
    }
}

/// Fritsch and Carlson: where neighbours rise and fall the curve is level, elsewhere the weighted harmonic mean of both.
fn slopes(points: &[(f64, f64)]) -> Option<Vec<f64>> {
    let steps: Vec<(f64, f64)> = points
        .windows(2)
        .map(|pair| (pair[1].0 - pair[0].0, (pair[1].1 - pair[0].1) / (pair[1].0 - pair[0].0)))
        .collect();
    let (first, last) = (steps.first()?, steps.last()?);
    let inner = steps.windows(2).map(|pair| {
        let ((h0, d0), (h1, d1)) = (pair[0], pair[1]);
        let (w0, w1) = (2.0 * h1 + h0, h1 + 2.0 * h0);
        if d0 * d1 <= 0.0 { 0.0 } else { (w0 + w1) / (w0 / d0 + w1 / d1) }
    });
    Some([first.1].into_iter().chain(inner).chain([last.1]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(label: &str, reference: &str, points: &[(f64, f64)]) -> Vec<LabelledScore> {
        let row = |&(rate, score): &(f64, f64)| LabelledScore {
            label: label.to_owned(),
            reference: reference.to_owned(),
            rate,
            score,
        };
        points.iter().map(row).collect()
    }

    const CURVE: [(f64, f64); 4] = [(0.25, 40.0), (0.5, 60.0), (1.0, 75.0), (2.0, 88.0)];

    #[test]
    fn twice_the_bits_everywhere_is_a_hundred_percent_more() {
        let twice = CURVE.map(|(rate, score)| (rate * 2.0, score));
        let all = [rows("a", "r", &CURVE), rows("b", "r", &twice), rows("c", "r", &CURVE)].concat();
        let found: Vec<Option<f64>> = figures(&all, true).iter().map(|figures| figures.bd_rate).collect();
        assert_eq!(found[0], None);
        assert!((found[1].unwrap() - 1.0).abs() < 1e-9 && found[2].unwrap().abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn a_distance_counts_the_other_way() {
        let curve = CURVE.map(|(rate, score)| (rate, 100.0 - score));
        let fewer = curve.map(|(rate, score)| (rate * 0.5, score));
        let all = [rows("a", "r", &curve), rows("b", "r", &fewer)].concat();
        assert!((figures(&all, false)[1].bd_rate.unwrap() + 0.5).abs() < 1e-9);
    }

    #[test]
    fn curves_that_share_no_score_are_not_compared() {
        let above = CURVE.map(|(rate, score)| (rate, score + 100.0));
        let all = [rows("a", "r", &CURVE), rows("b", "r", &above), rows("c", "other", &CURVE)].concat();
        assert!(figures(&all, true).iter().all(|figures| figures.bd_rate.is_none()));
    }

    #[test]
    fn references_are_averaged_by_ratio() {
        let by = |factor: f64| CURVE.map(|(rate, score)| (rate * factor, score));
        let all = [rows("a", "r", &CURVE), rows("a", "s", &CURVE), rows("b", "r", &by(2.0)), rows("b", "s", &by(0.5))];
        assert!(figures(&all.concat(), true)[1].bd_rate.unwrap().abs() < 1e-9, "twice and half balance");
    }

    #[test]
    fn means_and_percentiles_are_those_of_the_label() {
        let many: Vec<(f64, f64)> = (1..=100).map(|score| (1.0, f64::from(score))).collect();
        let found = figures(&[rows("a", "r", &many), rows("b", "r", &[(1.0, 7.0)])].concat(), true);
        let a = &found[0];
        assert_eq!((a.count, a.mean, a.p5, a.p50, a.p95), (100, 50.5, 5.0, 50.0, 95.0));
        assert_eq!((found[1].count, found[1].p50), (1, 7.0));
    }
}
