//! Some rows side by side: a row of lanes holds one column of them. What must look up samples along a row can then work
//! on all of them with whole vectors, which it could not on a single row without gathering.
//! Invariant: turning rows to lanes and back changes no sample.

use archmage::prelude::*;

/// Rows side by side: those of a band.
pub(super) const LANES: usize = 16;
/// Columns turned back into rows at a time.
pub(super) const BLOCK: usize = 64;
/// Rows and columns of the squares that are turned in registers.
const SQUARE: usize = 8;

/// One column of the rows.
pub(super) type Lanes = [f32; LANES];

/// Turns columns of some rows, from the `first` on, into lanes.
pub(super) fn to_lanes(rows: &[&[f32]; LANES], first: usize, lanes: &mut [Lanes]) {
    incant!(to_lanes(rows, first, lanes), [v3, scalar]);
}

/// Turns lanes into rows.
pub(super) fn to_rows(lanes: &[Lanes; BLOCK], rows: &mut [[f32; BLOCK]; LANES]) {
    incant!(to_rows(lanes, rows), [v3, scalar]);
}

fn to_lanes_scalar(_: ScalarToken, rows: &[&[f32]; LANES], first: usize, lanes: &mut [Lanes]) {
    columns_to_lanes(rows, first, lanes);
}

fn columns_to_lanes(rows: &[&[f32]; LANES], first: usize, lanes: &mut [Lanes]) {
    for (column, lanes) in (first..).zip(lanes) {
        *lanes = std::array::from_fn(|lane| rows[lane][column]);
    }
}

fn to_rows_scalar(_: ScalarToken, lanes: &[Lanes; BLOCK], rows: &mut [[f32; BLOCK]; LANES]) {
    for (lane, row) in rows.iter_mut().enumerate() {
        *row = std::array::from_fn(|column| lanes[column][lane]);
    }
}

#[arcane(import_intrinsics)]
fn to_lanes_v3(token: X64V3Token, rows: &[&[f32]; LANES], first: usize, lanes: &mut [Lanes]) {
    let (squares, rest) = lanes.as_chunks_mut::<SQUARE>();
    let done = first + squares.len() * SQUARE;
    for (at, square) in squares.iter_mut().enumerate() {
        for half in [0, SQUARE] {
            let from = std::array::from_fn(|k| _mm256_loadu_ps(eight(&rows[half + k][first + at * SQUARE..])));
            for (lanes, turned) in square.iter_mut().zip(transposed(token, from)) {
                _mm256_storeu_ps(eight_mut(&mut lanes[half..]), turned);
            }
        }
    }
    columns_to_lanes(rows, done, rest);
}

#[arcane(import_intrinsics)]
fn to_rows_v3(token: X64V3Token, lanes: &[Lanes; BLOCK], rows: &mut [[f32; BLOCK]; LANES]) {
    for half in [0, SQUARE] {
        for first in (0..BLOCK).step_by(SQUARE) {
            let from = std::array::from_fn(|k| _mm256_loadu_ps(eight(&lanes[first + k][half..])));
            for (row, turned) in rows[half..].iter_mut().zip(transposed(token, from)) {
                _mm256_storeu_ps(eight_mut(&mut row[first..]), turned);
            }
        }
    }
}

#[inline(always)]
fn eight(samples: &[f32]) -> &[f32; SQUARE] {
    samples.first_chunk().expect("squares lie inside the rows")
}

#[inline(always)]
fn eight_mut(samples: &mut [f32]) -> &mut [f32; SQUARE] {
    samples.first_chunk_mut().expect("squares lie inside the rows")
}

/// A square with its rows as columns: neighbours interleaved, then pairs, then halves.
#[rite(import_intrinsics)]
fn transposed(_: X64V3Token, rows: [__m256; SQUARE]) -> [__m256; SQUARE] {
    let low = |a: usize| _mm256_unpacklo_ps(rows[a], rows[a + 1]);
    let high = |a: usize| _mm256_unpackhi_ps(rows[a], rows[a + 1]);
    let twos = [low(0), high(0), low(2), high(2), low(4), high(4), low(6), high(6)];
    let low = |a: usize| _mm256_shuffle_ps::<0x44>(twos[a], twos[a + 2]);
    let high = |a: usize| _mm256_shuffle_ps::<0xee>(twos[a], twos[a + 2]);
    let fours = [low(0), high(0), low(1), high(1), low(4), high(4), low(5), high(5)];
    let low = |a: usize| _mm256_permute2f128_ps::<0x20>(fours[a], fours[a + 4]);
    let high = |a: usize| _mm256_permute2f128_ps::<0x31>(fours[a], fours[a + 4]);
    [low(0), low(1), low(2), low(3), high(0), high(1), high(2), high(3)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(row: usize, column: usize) -> f32 {
        (row * 1000 + column) as f32
    }

    #[test]
    fn columns_become_lanes_and_lanes_rows() {
        for columns in [1, 7, 8, 9, BLOCK] {
            let rows: Vec<Vec<f32>> =
                (0..LANES).map(|row| (0..columns + 3).map(|column| sample(row, column)).collect()).collect();
            let mut lanes = vec![[0.0; LANES]; columns];
            to_lanes(&std::array::from_fn(|row| rows[row].as_slice()), 3, &mut lanes);
            for (column, lanes) in (3..).zip(&lanes) {
                assert_eq!(*lanes, std::array::from_fn(|row| sample(row, column)), "{columns} columns");
            }
        }
        let lanes: [Lanes; BLOCK] = std::array::from_fn(|column| std::array::from_fn(|row| sample(row, column)));
        let mut rows = [[0.0; BLOCK]; LANES];
        to_rows(&lanes, &mut rows);
        for (row, of) in rows.iter().enumerate() {
            assert_eq!(*of, std::array::from_fn(|column| sample(row, column)));
        }
    }

    #[test]
    fn every_version_gives_the_same() {
        let rows: Vec<Vec<f32>> =
            (0..LANES).map(|row| (0..BLOCK).map(|column| sample(row, column)).collect()).collect();
        let rows = std::array::from_fn(|row| rows[row].as_slice());
        let (mut lanes, mut plain) = ([[0.0; LANES]; BLOCK], [[0.0; LANES]; BLOCK]);
        to_lanes(&rows, 0, &mut lanes);
        to_lanes_scalar(ScalarToken, &rows, 0, &mut plain);
        assert_eq!(lanes, plain);
        let (mut back, mut plain_back) = ([[0.0; BLOCK]; LANES], [[0.0; BLOCK]; LANES]);
        to_rows(&lanes, &mut back);
        to_rows_scalar(ScalarToken, &lanes, &mut plain_back);
        assert_eq!(back, plain_back);
    }
}
