//! Every level of an image, row by row as the image's rows come in: an image is never held whole.
//! Never keeps more than two rows of a level.

use archmage::autoversion;

use super::colour::colours_of_row;
use super::score::Level;
use crate::image::{Image, Samples};
use crate::transfer;

/// One row each of three planes.
pub(super) type RowOfThree = [Vec<f32>; 3];

/// The rows of each level that are at hand.
pub(super) struct Pyramid {
    levels: Vec<LevelRows>,
}

struct LevelRows {
    height: u32,
    /// The row that came last, in linear light.
    light: RowOfThree,
    /// The row above it, when that waits to be halved with it.
    above: RowOfThree,
    /// The row that came last, in the colours that are compared.
    colours: RowOfThree,
}

impl Pyramid {
    /// For images with these levels.
    pub(super) fn open(levels: &[Level]) -> Self {
        let rows = |width: u32| [0, 1, 2].map(|_| vec![0.0; width as usize]);
        let level = |&Level { size, .. }: &Level| LevelRows {
            height: size.height,
            light: rows(size.width),
            above: rows(size.width),
            colours: rows(size.width),
        };
        Self { levels: levels.iter().map(level).collect() }
    }

    /// Bytes that it holds for images with these levels.
    pub(super) fn bytes(levels: &[Level]) -> u64 {
        levels.iter().map(|level| 9 * 4 * u64::from(level.size.width)).sum()
    }

    /// Calls `row(level, y, colours)` for every row of every level, each level's from top to bottom.
    pub(super) fn rows_of(&mut self, image: &Image, mut row: impl FnMut(usize, u32, &RowOfThree)) {
        for y in 0..image.size().height {
            light_of_row(image, y, &mut self.levels[0].light);
            self.pass_down(y, &mut row);
        }
    }

    /// Hands on the row that has come in at the top, and each row that it completes further down.
    fn pass_down(&mut self, mut y: u32, row: &mut impl FnMut(usize, u32, &RowOfThree)) {
        for at in 0..self.levels.len() {
            let (upper, lower) = self.levels.split_at_mut(at + 1);
            let level = &mut upper[at];
            let [x, luma, b] = &mut level.colours;
            colours_of_row(level.light.each_ref().map(|row| &row[..]), [x, luma, b]);
            row(at, y, &level.colours);
            let Some(next) = lower.first_mut() else { return };
            let odd = y % 2 == 1;
            if !odd && y + 1 < level.height {
                std::mem::swap(&mut level.light, &mut level.above);
                return;
            }
            // The last row of an odd number of rows counts twice.
            let above = if odd { &level.above } else { &level.light };
            for ((above, below), out) in above.iter().zip(&level.light).zip(&mut next.light) {
                halve(above, below, out);
            }
            y /= 2;
        }
    }
}

/// A row in linear light.
fn light_of_row(image: &Image, y: u32, light: &mut RowOfThree) {
    let width = image.size().width as usize;
    let first = y as usize * width;
    match image.samples() {
        Samples::Rgb8(samples) => {
            let table = transfer::linear_of_8_bit();
            spread(&samples[first * 3..][..width * 3], light, |sample| table[usize::from(sample)]);
        }
        Samples::Rgb16(samples) => {
            let table = transfer::linear_of_16_bit();
            spread(&samples[first * 3..][..width * 3], light, |sample| table[usize::from(sample)]);
        }
        Samples::Linear(planes) => {
            for (row, plane) in light.iter_mut().zip(planes.chunks_exact(planes.len() / 3)) {
                row.copy_from_slice(&plane[first..][..width]);
            }
        }
    }
}

fn spread<T: Copy>(samples: &[T], light: &mut RowOfThree, value: impl Fn(T) -> f32) {
    let (pixels, _) = samples.as_chunks::<3>();
    let [red, green, blue] = light;
    for (((pixel, red), green), blue) in pixels.iter().zip(red).zip(green).zip(blue) {
        [*red, *green, *blue] = pixel.map(&value);
    }
}

/// The mean of 2 x 2 pixels, the last column counting twice where their number is odd: as the kernel `shrink` does it.
#[autoversion(v3)]
fn halve(above: &[f32], below: &[f32], out: &mut [f32]) {
    let ((pairs_above, rest_above), (pairs_below, rest_below)) = (above.as_chunks::<2>(), below.as_chunks::<2>());
    for ((above, below), out) in pairs_above.iter().zip(pairs_below).zip(out.iter_mut()) {
        *out = ((above[0] + above[1]) + (below[0] + below[1])) * 0.25;
    }
    if let ([above], [below], Some(out)) = (rest_above, rest_below, out.last_mut()) {
        *out = ((above + above) + (below + below)) * 0.25;
    }
}
