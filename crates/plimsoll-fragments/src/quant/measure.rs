//! How far weights are from what was packed: sums that add up over the pieces of a tensor.
//! Invariant: whoever measures the same weights in the same pieces gets the same number, to the last bit.

use crate::limits::GROUP;

/// Sums of squares of a piece, or of several in order.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub struct Sums {
    /// Of the weights that are numbers.
    pub squares: f64,
    /// Of their differences.
    pub errors: f64,
}

impl Sums {
    /// Of these weights and what stands for them. Weights that are no numbers do not count: only the exact level has them.
    pub fn of(weights: &[f32], decoded: &[f32]) -> Self {
        let mut sums = Self::default();
        for (weights, decoded) in weights.chunks(GROUP).zip(decoded.chunks(GROUP)) {
            sums.add_group(weights, decoded);
        }
        sums
    }

    fn add_group(&mut self, weights: &[f32], decoded: &[f32]) {
        let (mut squares, mut errors) = ([0.0_f64; 4], [0.0_f64; 4]);
        for (at, (weight, decoded)) in weights.iter().zip(decoded).enumerate() {
            let (weight, decoded) = (f64::from(*weight), f64::from(*decoded));
            let counts = if weight.is_finite() { weight } else { 0.0 };
            let off = if weight.is_finite() { weight - decoded } else { 0.0 };
            squares[at % 4] += counts * counts;
            errors[at % 4] += off * off;
        }
        self.squares += squares.iter().sum::<f64>();
        self.errors += errors.iter().sum::<f64>();
    }

    /// The sums of both; the order of pieces counts.
    #[must_use]
    pub fn and(self, next: Self) -> Self {
        Self { squares: self.squares + next.squares, errors: self.errors + next.errors }
    }

    /// The root mean square of the differences over that of the weights: zero for what is exact.
    pub fn error(&self) -> f64 {
        if self.errors == 0.0 { 0.0 } else { (self.errors / self.squares.max(f64::MIN_POSITIVE)).sqrt() }
    }
}
