//! Samples of a plane that only move, as codes: bytes are copied, and nothing is computed. A sample is `N` bytes: of one
//! plane, or of all channels of a pixel.

use archmage::autoversion;

use super::lanes::{LANES, bytes_to_lanes};
use crate::frames::graph::Move;
use crate::image::Size;

/// Rows and columns that are turned together: as many bytes as a cache line has are then read and written at once.
const TURNED: usize = 64;

/// Moves a plane of one size to one of another; what nothing comes to is `fill`.
pub(super) fn moved<const N: usize>(
    how: Move,
    fill: [u8; N],
    (from, from_size): (&[u8], Size),
    (to, to_size): (&mut [u8], Size),
) {
    let (from, to) = (from.as_chunks::<N>().0, to.as_chunks_mut::<N>().0);
    let (from_width, to_width) = (from_size.width as usize, to_size.width as usize);
    let source = |y: usize| &from[y * from_width..][..from_width];
    match how {
        Move::Window { from: place, to: at, size } => {
            let inside = at.1 as usize..(at.1 + size.height) as usize;
            for (y, row) in to.chunks_exact_mut(to_width).enumerate() {
                if !inside.contains(&y) {
                    row.fill(fill);
                    continue;
                }
                let (before, rest) = row.split_at_mut(at.0 as usize);
                let (window, after) = rest.split_at_mut(size.width as usize);
                let seen = &source(y - inside.start + place.1 as usize)[place.0 as usize..];
                before.fill(fill);
                window.copy_from_slice(&seen[..window.len()]);
                after.fill(fill);
            }
        }
        Move::Mirror { across, down } => {
            for (y, row) in to.chunks_exact_mut(to_width).enumerate() {
                let seen = source(if down { from_size.height as usize - 1 - y } else { y });
                match across {
                    true => reverse(seen, row),
                    false => row.copy_from_slice(seen),
                }
            }
        }
        Move::Turn { clockwise } => turn(clockwise, from, to, from_size),
    }
}

fn reverse<const N: usize>(from: &[[u8; N]], to: &mut [[u8; N]]) {
    match N {
        1 => reverse_bytes(from.as_flattened(), to.as_flattened_mut()),
        2 => reverse_pairs(from.as_flattened().as_chunks().0, to.as_flattened_mut().as_chunks_mut().0),
        _ => to.iter_mut().zip(from.iter().rev()).for_each(|(to, from)| *to = *from),
    }
}

#[autoversion(v3)]
fn reverse_bytes(from: &[u8], to: &mut [u8]) {
    to.iter_mut().zip(from.iter().rev()).for_each(|(to, from)| *to = *from);
}

#[autoversion(v3)]
fn reverse_pairs(from: &[[u8; 2]], to: &mut [[u8; 2]]) {
    to.iter_mut().zip(from.iter().rev()).for_each(|(to, from)| *to = *from);
}

/// A quarter turn, square by square; in each, sixteen input rows at a time become sixteen columns.
fn turn<const N: usize>(clockwise: bool, from: &[[u8; N]], to: &mut [[u8; N]], size: Size) {
    let (width, height) = (size.width as usize, size.height as usize);
    let row_of = |x: usize| &from[if clockwise { height - 1 - x } else { x } * width..][..width];
    let y_of = |column: usize| if clockwise { column } else { width - 1 - column };
    let mut lanes = [[[0; N]; LANES]; TURNED];
    for square in (0..height).step_by(TURNED) {
        for first in (0..width).step_by(TURNED) {
            let columns = first..width.min(first + TURNED);
            let (whole, end) = (height / LANES * LANES, height.min(square + TURNED));
            for x in (square..end.min(whole)).step_by(LANES) {
                let rows: [&[[u8; N]]; LANES] = std::array::from_fn(|lane| row_of(x + lane));
                let lanes = &mut lanes[..columns.len()];
                to_lanes(&rows, first, lanes);
                for (column, lanes) in columns.clone().zip(lanes) {
                    to[y_of(column) * height + x..][..LANES].copy_from_slice(lanes);
                }
            }
            for x in end.min(whole).max(square)..end {
                columns.clone().for_each(|column| to[y_of(column) * height + x] = row_of(x)[column]);
            }
        }
    }
}

fn to_lanes<const N: usize>(rows: &[&[[u8; N]]; LANES], first: usize, lanes: &mut [[[u8; N]; LANES]]) {
    if N == 1 {
        let lanes = lanes.as_flattened_mut().as_flattened_mut().as_chunks_mut().0;
        return bytes_to_lanes(&rows.map(<[_]>::as_flattened), first, lanes);
    }
    for (column, lanes) in (first..).zip(lanes) {
        *lanes = std::array::from_fn(|lane| rows[lane][column]);
    }
}
