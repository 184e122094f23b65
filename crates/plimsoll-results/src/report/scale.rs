//! Axes: which values an axis spans, where a value lies on it, and where its ticks are.
//! Never draws. Invariant: every value that an axis was made for lies on it, between 0 and 1.

/// How values spread along an axis.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Spread {
    Linear,
    Logarithmic,
}

/// The values that an axis spans.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(crate) struct Scale {
    pub(crate) spread: Spread,
    low: f64,
    high: f64,
}

/// Largest over smallest from which a linear axis would press the small values together.
const RATIO_FOR_LOGARITHMIC: f64 = 8.0;

/// Room between the outermost values and the ends of the axis, of its length.
const MARGIN: f64 = 0.06;

/// Ticks beyond this many write over each other on a small plot.
const TICKS_MAX: usize = 8;

impl Scale {
    /// An axis for sizes and rates, which are positive: logarithmic when they differ by much.
    pub(crate) fn for_rates(values: impl Iterator<Item = f64>) -> Option<Self> {
        let (low, high) = ends(values)?;
        let is_wide = low > 0.0 && high / low >= RATIO_FOR_LOGARITHMIC;
        Some(if is_wide { Self::logarithmic(low, high) } else { Self::linear(low, high).not_below_zero() })
    }

    /// An axis for scores. Distances run over decades when files are good; similarities never do.
    pub(crate) fn for_scores(values: impl Iterator<Item = f64>, better_higher: bool) -> Option<Self> {
        let (low, high) = ends(values)?;
        let is_wide = !better_higher && low > 0.0 && high / low >= 4.0 * RATIO_FOR_LOGARITHMIC;
        Some(if is_wide { Self::logarithmic(low, high) } else { Self::linear(low, high) })
    }

    fn linear(low: f64, high: f64) -> Self {
        let spare = match (high - low) * MARGIN {
            spare if spare > high.abs().max(low.abs()) * 1e-9 => spare,
            // All the same: the value in the middle, with a neighbourhood of its own size.
            _ => (high.abs() * 0.1).max(1e-3),
        };
        Self { spread: Spread::Linear, low: low - spare, high: high + spare }
    }

    fn logarithmic(low: f64, high: f64) -> Self {
        let spare = (high / low).powf(MARGIN);
        Self { spread: Spread::Logarithmic, low: low / spare, high: high * spare }
    }

    fn not_below_zero(self) -> Self {
        Self { low: self.low.max(0.0), ..self }
    }

    /// Where a value lies: 0 at the low end, 1 at the high one.
    pub(crate) fn place(&self, value: f64) -> f64 {
        let along = |value: f64| match self.spread {
            Spread::Linear => value,
            Spread::Logarithmic => value.ln(),
        };
        (along(value) - along(self.low)) / (along(self.high) - along(self.low))
    }

    /// Round values on the axis, with the text of each.
    pub(crate) fn ticks(&self) -> Vec<(f64, String)> {
        let (values, step) = match self.spread {
            Spread::Logarithmic => (self.decade_ticks(), None),
            Spread::Linear => {
                let step = round_step((self.high - self.low) / 5.0);
                (self.even_ticks(step), Some(step))
            }
        };
        values.into_iter().map(|value| (value, tick_text(value, step))).collect()
    }

    fn even_ticks(&self, step: f64) -> Vec<f64> {
        let first = (self.low / step).ceil();
        let count = ((self.high / step).floor() - first) as usize + 1;
        (0..count).map(|at| (first + at as f64) * step).collect()
    }

    /// 1, 2 and 5 of every decade, or fewer where they would not have room.
    fn decade_ticks(&self) -> Vec<f64> {
        let decades = self.low.log10().floor() as i32..=self.high.log10().ceil() as i32;
        let of = |mantissas: &[f64], every: i32| -> Vec<f64> {
            let decades = decades.clone().filter(|decade| decade.rem_euclid(every) == 0);
            let all = decades.flat_map(|decade| mantissas.iter().map(move |mantissa| mantissa * 10f64.powi(decade)));
            all.filter(|value| (self.low..=self.high).contains(value)).collect()
        };
        let choices = [of(&[1.0, 2.0, 5.0], 1), of(&[1.0, 3.0], 1), of(&[1.0], 1), of(&[1.0], 2), of(&[1.0], 4)];
        choices.into_iter().find(|ticks| ticks.len() <= TICKS_MAX).unwrap_or_else(|| of(&[1.0], 16))
    }
}

fn ends(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.filter(|value| value.is_finite()).fold(None, |ends, value| {
        let (low, high) = ends.unwrap_or((value, value));
        Some((value.min(low), value.max(high)))
    })
}

/// The next 1, 2, 2.5 or 5 of a decade.
fn round_step(at_least: f64) -> f64 {
    let decade = 10f64.powf(at_least.log10().floor());
    let steps = [1.0, 2.0, 2.5, 5.0].map(|mantissa| mantissa * decade);
    steps.into_iter().find(|step| *step >= at_least * (1.0 - 1e-9)).unwrap_or(10.0 * decade)
}

/// As many decimals as tell a tick from the next.
fn tick_text(value: f64, step: Option<f64>) -> String {
    let fits = |decimals: &usize| {
        let shift = 10f64.powi(i32::try_from(*decimals).expect("at most 9"));
        let smallest = step.unwrap_or(value) * shift;
        (smallest - smallest.round()).abs() < 1e-6 && smallest.round() != 0.0
    };
    let decimals = (0..9).find(fits).unwrap_or(9);
    // Not minus zero, and a minus as long as the digits are wide.
    let value = if value.abs() < step.unwrap_or(0.0) * 1e-6 { 0.0 } else { value };
    let text = if decimals > 4 { format!("{value:e}") } else { format!("{value:.decimals$}") };
    text.replace('-', "−")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(scale: Scale) -> Vec<String> {
        scale.ticks().into_iter().map(|(_, text)| text).collect()
    }

    fn rates(values: &[f64]) -> Scale {
        Scale::for_rates(values.iter().copied()).unwrap()
    }

    fn scores(values: &[f64]) -> Scale {
        Scale::for_scores(values.iter().copied(), true).unwrap()
    }

    #[test]
    fn the_data_choose_the_spread() {
        assert_eq!(rates(&[0.5, 2.0]).spread, Spread::Linear);
        assert_eq!(rates(&[0.1, 2.0]).spread, Spread::Logarithmic);
        assert_eq!(scores(&[0.001, 90.0]).spread, Spread::Linear);
        let distances = |values: [f64; 2]| Scale::for_scores(values.into_iter(), false).unwrap().spread;
        assert_eq!(distances([0.001, 0.1]), Spread::Logarithmic);
        assert_eq!(distances([0.0, 0.1]), Spread::Linear);
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(texts(rates(&[0.1, 6.0])), ["0.1", "0.2", "0.5", "1", "2", "5"]);
        assert_eq!(texts(rates(&[0.5, 2.0])), ["0.5", "1.0", "1.5", "2.0"]);
        assert_eq!(texts(scores(&[61.0, 92.0])), ["60", "70", "80", "90"]);
        assert_eq!(texts(scores(&[-20.0, 80.0])), ["−25", "0", "25", "50", "75"]);
    }

    #[test]
    fn many_decades_have_few_ticks() {
        for high in [1e2, 1e4, 1e8, 1e15, 1e60] {
            let ticks = rates(&[0.01, high]).ticks().len();
            assert!((2..=TICKS_MAX).contains(&ticks), "{ticks} ticks up to {high}");
        }
    }

    #[test]
    fn all_values_lie_on_the_axis_and_in_order() {
        let sets: [&[f64]; 7] =
            [&[0.5], &[2.0, 2.0], &[0.0], &[-3.0, -3.0], &[1e-9, 1e9], &[0.1, 0.2, 0.3], &[1e100, 1e-100]];
        for values in sets {
            let is_rate = values.iter().all(|&value| value >= 0.0);
            for scale in [scores(values)].into_iter().chain(is_rate.then(|| rates(values))) {
                let places: Vec<f64> = values.iter().map(|&value| scale.place(value)).collect();
                assert!(places.iter().all(|place| (0.0..=1.0).contains(place)), "{values:?} {places:?} {scale:?}");
                assert!(scale.ticks().iter().all(|(value, _)| (-1e-9..=1.0 + 1e-9).contains(&scale.place(*value))));
            }
        }
        assert!(scores(&[1.0, 2.0]).place(1.0) < scores(&[1.0, 2.0]).place(2.0));
    }

    #[test]
    fn one_value_lies_in_the_middle_with_ticks_around() {
        assert!((scores(&[80.0]).place(80.0) - 0.5).abs() < 1e-9);
        assert!(texts(scores(&[80.0])).len() >= 2);
    }

    #[test]
    fn nothing_finite_has_no_axis() {
        assert_eq!(Scale::for_rates([].into_iter()), None);
        assert_eq!(Scale::for_scores([f64::NAN, f64::INFINITY].into_iter(), true), None);
    }
}
