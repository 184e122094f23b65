//! The weights of `convolve` as they are written: `0 -1 0/-1 5 -1/0 -1 0`.
//! Invariant: as many rows as columns, an odd number of them.

use std::str::FromStr;

use crate::frames::operation::OperationError;
use crate::frames::ops::taps::Tap;

/// Rows and columns that a matrix may have.
const SIDES: [usize; 3] = [3, 5, 7];
/// What a weight may be at most.
const WEIGHT_MAX: f64 = 1e6;

#[derive(Debug)]
pub(super) struct Matrix {
    weights: Vec<f64>,
    side: usize,
}

impl FromStr for Matrix {
    type Err = OperationError;

    fn from_str(text: &str) -> Result<Self, OperationError> {
        let rows: Vec<Vec<f64>> = text.split('/').map(row).collect::<Result<_, _>>()?;
        let side = rows.len();
        if !SIDES.contains(&side) || rows.iter().any(|row| row.len() != side) {
            return Err(OperationError::because(format_args!(
                "'{text}' is not 3, 5 or 7 rows of as many weights, rows separated by /, weights by blanks"
            )));
        }
        Ok(Self { weights: rows.concat(), side })
    }
}

fn row(text: &str) -> Result<Vec<f64>, OperationError> {
    let refused = |weight| OperationError::because(format_args!("'{weight}' is no weight from -1000000 to 1000000"));
    let weight = |text: &str| text.parse().ok().filter(|weight: &f64| weight.abs() <= WEIGHT_MAX);
    text.split_whitespace().map(|text| weight(text).ok_or_else(|| refused(text))).collect()
}

impl Matrix {
    /// All weights together.
    pub(super) fn sum(&self) -> f64 {
        self.weights.iter().sum()
    }

    /// The taps, row by row, times `gain`. Those that count nothing are left out, but for the middle.
    pub(super) fn taps(&self, gain: f64) -> Vec<Tap> {
        let middle = (self.side / 2) as i32;
        let tap = |(at, weight): (usize, &f64)| Tap {
            right: (at % self.side) as i32 - middle,
            down: (at / self.side) as i32 - middle,
            weight: (weight * gain) as f32,
        };
        let counts = |tap: &Tap| tap.weight != 0.0 || (tap.right, tap.down) == (0, 0);
        self.weights.iter().enumerate().map(tap).filter(counts).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taps_lie_where_they_are_written() {
        let matrix: Matrix = "0 2 0/0 0 0/-1 0 0".parse().unwrap();
        let tap = |right, down, weight| Tap { right, down, weight };
        assert_eq!(matrix.taps(2.0), [tap(0, -1, 4.0), tap(0, 0, 0.0), tap(-1, 1, -2.0)]);
        assert!((matrix.sum() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn what_is_no_matrix_is_refused() {
        for wrong in ["", "1", "1 2/3 4", "1 1 1/1 1 1/1 1", "1 1 1/1 x 1/1 1 1", "1 1 1/1 inf 1/1 1 1"] {
            assert!(wrong.parse::<Matrix>().is_err(), "{wrong}");
        }
    }
}
