//! Sixteen rows of codes side by side: a lane group holds one column of them. To turn a plane, and to sum along rows with
//! whole vectors, is then to read lanes instead of columns.
//! Invariant: turning rows to lanes and back changes no sample.

use archmage::prelude::*;

/// Rows side by side.
pub(super) const LANES: usize = 16;
/// Rows and columns of squares of 16-bit samples that are turned in registers.
const SQUARE: usize = 8;

/// Turns columns of some rows of bytes, from the `first` on, into lanes.
pub(super) fn bytes_to_lanes(rows: &[&[u8]; LANES], first: usize, lanes: &mut [[u8; LANES]]) {
    incant!(bytes_to_lanes(rows, first, lanes), [v3, scalar]);
}

/// As [`bytes_to_lanes`], for samples of 16 bits.
pub(super) fn words_to_lanes(rows: &[&[i16]; LANES], first: usize, lanes: &mut [[i16; LANES]]) {
    incant!(words_to_lanes(rows, first, lanes), [v3, scalar]);
}

/// Turns lanes back into columns of some rows, from the `first` on.
pub(super) fn lanes_to_words(lanes: &[[i16; LANES]], first: usize, rows: &mut [&mut [i16]; LANES]) {
    incant!(lanes_to_words(lanes, first, rows), [v3, scalar]);
}

fn bytes_to_lanes_scalar(_: ScalarToken, rows: &[&[u8]; LANES], first: usize, lanes: &mut [[u8; LANES]]) {
    columns(rows, first, lanes);
}

fn words_to_lanes_scalar(_: ScalarToken, rows: &[&[i16]; LANES], first: usize, lanes: &mut [[i16; LANES]]) {
    columns(rows, first, lanes);
}

fn lanes_to_words_scalar(_: ScalarToken, lanes: &[[i16; LANES]], first: usize, rows: &mut [&mut [i16]; LANES]) {
    columns_back(lanes, first, rows);
}

fn columns<T: Copy>(rows: &[&[T]; LANES], first: usize, lanes: &mut [[T; LANES]]) {
    for (column, lanes) in (first..).zip(lanes) {
        *lanes = std::array::from_fn(|lane| rows[lane][column]);
    }
}

fn columns_back(lanes: &[[i16; LANES]], first: usize, rows: &mut [&mut [i16]; LANES]) {
    for (lane, row) in rows.iter_mut().enumerate() {
        row[first..].iter_mut().zip(lanes).for_each(|(out, lanes)| *out = lanes[lane]);
    }
}

#[arcane(import_intrinsics)]
fn bytes_to_lanes_v3(_: X64V3Token, rows: &[&[u8]; LANES], first: usize, lanes: &mut [[u8; LANES]]) {
    let (squares, rest) = lanes.as_chunks_mut::<LANES>();
    let done = first + squares.len() * LANES;
    for (at, square) in squares.iter_mut().enumerate() {
        let mut turning: [__m128i; LANES] =
            std::array::from_fn(|row| _mm_loadu_si128(part::<u8, LANES>(&rows[row][first + at * LANES..])));
        // To shuffle both halves into each other as often as a number of a row has bits exchanges rows and columns.
        for _ in 0..LANES.ilog2() {
            turning = std::array::from_fn(|to| match to % 2 {
                0 => _mm_unpacklo_epi8(turning[to / 2], turning[to / 2 + LANES / 2]),
                _ => _mm_unpackhi_epi8(turning[to / 2], turning[to / 2 + LANES / 2]),
            });
        }
        square.iter_mut().zip(turning).for_each(|(lanes, turned)| _mm_storeu_si128(lanes, turned));
    }
    columns(rows, done, rest);
}

#[arcane(import_intrinsics)]
fn words_to_lanes_v3(token: X64V3Token, rows: &[&[i16]; LANES], first: usize, lanes: &mut [[i16; LANES]]) {
    let (squares, rest) = lanes.as_chunks_mut::<SQUARE>();
    let done = first + squares.len() * SQUARE;
    for (at, square) in squares.iter_mut().enumerate() {
        for half in [0, SQUARE] {
            let column = first + at * SQUARE;
            let from = std::array::from_fn(|row| _mm_loadu_si128(part::<i16, SQUARE>(&rows[half + row][column..])));
            for (lanes, turned) in square.iter_mut().zip(turned(token, from)) {
                _mm_storeu_si128(part_mut::<SQUARE>(&mut lanes[half..]), turned);
            }
        }
    }
    columns(rows, done, rest);
}

#[arcane(import_intrinsics)]
fn lanes_to_words_v3(token: X64V3Token, lanes: &[[i16; LANES]], first: usize, rows: &mut [&mut [i16]; LANES]) {
    let (squares, rest) = lanes.as_chunks::<SQUARE>();
    for (at, square) in squares.iter().enumerate() {
        for half in [0, SQUARE] {
            let from = std::array::from_fn(|row| _mm_loadu_si128(part::<i16, SQUARE>(&square[row][half..])));
            for (row, turned) in rows[half..].iter_mut().zip(turned(token, from)) {
                _mm_storeu_si128(part_mut::<SQUARE>(&mut row[first + at * SQUARE..]), turned);
            }
        }
    }
    columns_back(rest, first + squares.len() * SQUARE, rows);
}

/// A square of 16-bit samples with its rows as columns.
#[rite(import_intrinsics)]
fn turned(_: X64V3Token, mut turning: [__m128i; SQUARE]) -> [__m128i; SQUARE] {
    for _ in 0..SQUARE.ilog2() {
        turning = std::array::from_fn(|to| match to % 2 {
            0 => _mm_unpacklo_epi16(turning[to / 2], turning[to / 2 + SQUARE / 2]),
            _ => _mm_unpackhi_epi16(turning[to / 2], turning[to / 2 + SQUARE / 2]),
        });
    }
    turning
}

#[inline(always)]
fn part<T, const N: usize>(samples: &[T]) -> &[T; N] {
    samples.first_chunk().expect("squares lie inside the rows")
}

#[inline(always)]
fn part_mut<const N: usize>(samples: &mut [i16]) -> &mut [i16; N] {
    samples.first_chunk_mut().expect("squares lie inside the rows")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_become_lanes_and_come_back() {
        for count in [1, 7, 16, 33] {
            let bytes: Vec<Vec<u8>> =
                (0..LANES).map(|row| (0..count + 3).map(|at| (row * 40 + at) as u8).collect()).collect();
            let mut lanes = vec![[0; LANES]; count];
            bytes_to_lanes(&std::array::from_fn(|row| bytes[row].as_slice()), 3, &mut lanes);
            for (column, lanes) in (3..).zip(&lanes) {
                assert_eq!(*lanes, std::array::from_fn(|row| (row * 40 + column) as u8), "{count} columns");
            }
            let mut words: Vec<Vec<i16>> =
                (0..LANES).map(|row| (0..count + 3).map(|at| (row * 999 + at) as i16).collect()).collect();
            let mut lanes = vec![[0; LANES]; count];
            words_to_lanes(&std::array::from_fn(|row| words[row].as_slice()), 3, &mut lanes);
            for (column, lanes) in (3..).zip(&lanes) {
                assert_eq!(*lanes, std::array::from_fn(|row| (row * 999 + column) as i16), "{count} columns");
            }
            let before = words.clone();
            words.iter_mut().for_each(|row| row[3..].fill(0));
            let mut rows = words.iter_mut().map(Vec::as_mut_slice);
            let mut rows: [&mut [i16]; LANES] = std::array::from_fn(|_| rows.next().expect("as many rows as lanes"));
            lanes_to_words(&lanes, 3, &mut rows);
            assert_eq!(words, before, "{count} columns");
        }
    }
}
