//! The pass of `warp`: each output sample is interpolated where the map puts it. Positions are whole parts and rests,
//! from the map as it is seen from the middle of each tile of 16 x 16 samples.
//!
//! In `f32`, a position so found is off by at most `L * 10 * 2^-24` samples, where `L` is how far a tile's corner lies
//! from its middle in the input: about 11.4 times the magnification. (Two products, a sum, the depth's two products and
//! two sums, a division of up to 2.5 units in the last place, and the sum with the rest.) With bilinear
//! interpolation a sample changes by at most 1 for each step across and down, so at a magnification of 1 a GPU is within
//! `2 * 11.4 * 10 * 2^-24`, 1.4e-5 of the range, of the same formula in `f64`; bicubic slopes are up to 1.5 times as
//! steep in each direction and overshoot by a quarter in the other, which makes 2.6e-5.

use std::ops::Range;

use archmage::autoversion;
use bytemuck::{Pod, Zeroable};
use plimsoll_runtime::{Access, Kernel};

use super::quad::{Map, Near};
use crate::frames::graph::{Pass, Rows, RowsMut, twin};
use crate::image::Size;

/// Samples of a tile in each direction: those of a workgroup.
const TILE: u32 = 16;
/// Figures that the table holds for each tile.
const FIGURES: usize = 10;

static KERNEL: Kernel = Kernel {
    name: "warp",
    wgsl: include_str!("warp.wgsl"),
    entry: "warp",
    bindings: &[Access::Read, Access::Read, Access::Write],
    params: size_of::<WarpPass>(),
    twin: twin::<WarpPass>,
};

/// The uniform; the WGSL says what each field means.
#[repr(C)]
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
pub(super) struct WarpPass {
    input_width: u32,
    input_height: u32,
    width: u32,
    height: u32,
    cubic: u32,
    edge: u32,
    fill: f32,
    tiles: u32,
}

impl WarpPass {
    /// A pass from planes of one size to planes of another; `fill` is what surrounds them, or `None` if they go on as
    /// their edge does.
    pub(super) fn new(input: Size, output: Size, cubic: bool, fill: Option<f32>) -> Self {
        Self {
            input_width: input.width,
            input_height: input.height,
            width: output.width,
            height: output.height,
            cubic: cubic.into(),
            edge: fill.is_none().into(),
            fill: fill.unwrap_or_default(),
            tiles: output.width.div_ceil(TILE),
        }
    }

    /// The table of a map between the numbers of samples.
    pub(super) fn table(&self, map: &Map) -> Vec<f32> {
        let rows = 0..self.height.div_ceil(TILE);
        let tiles = rows.flat_map(|down| (0..self.tiles).map(move |across| (across, down)));
        let near = |(across, down)| map.near(middle(across, self.width).into(), middle(down, self.height).into());
        tiles.flat_map(|tile| figures(near(tile))).collect()
    }
}

/// The middle of a tile in one direction. It lies in the plane, for outside it there may be no map.
fn middle(tile: u32, side: u32) -> u32 {
    (tile * TILE + TILE / 2).min(side - 1)
}

/// How far a sample is from a tile's middle. The difference is small, so it is exact.
fn away(from: u32, middle: u32) -> f32 {
    (from as i32 - middle as i32) as f32
}

fn figures(near: Near) -> [f32; FIGURES] {
    let Near { value: [x, y], across, down, depth } = near;
    let figures = [
        x.floor(),
        y.floor(),
        x - x.floor(),
        y - y.floor(),
        across[0],
        across[1],
        down[0],
        down[1],
        depth[0],
        depth[1],
    ];
    figures.map(|figure| figure as f32)
}

impl Pass for WarpPass {
    fn kernel() -> &'static Kernel {
        &KERNEL
    }

    fn input(&self) -> Size {
        Size { width: self.input_width, height: self.input_height }
    }

    fn output(&self) -> Size {
        Size { width: self.width, height: self.height }
    }

    /// A projective map takes lines to lines, so what lies farthest up and down comes from the corners of these rows.
    fn reach(&self, table: &[f32], rows: Range<u32>) -> Range<u32> {
        let (maps, _) = table.as_chunks::<FIGURES>();
        let corners = [rows.start, rows.end - 1].into_iter().flat_map(|y| [(0, y), (self.width - 1, y)]);
        let heights = corners.map(|(x, y)| {
            let map = &maps[(y / TILE * self.tiles + x / TILE) as usize];
            let (p, q) = (away(x, middle(x / TILE, self.width)), away(y, middle(y / TILE, self.height)));
            map[1] + map[3] + (map[5] * p + map[7] * q) / (1.0 + (map[8] * p + map[9] * q))
        });
        let (top, bottom) = heights.fold((f32::MAX, f32::MIN), |(top, bottom), y| (top.min(y), bottom.max(y)));
        // Bicubic looks one row before and two behind; one more is for what f32 leaves of a place.
        let inside = |row: f32| row.clamp(0.0, (self.input_height - 1) as f32) as u32;
        inside(top.floor() - 2.0)..inside(bottom.floor() + 3.0) + 1
    }

    fn rows(&self, table: &[f32], rows: Range<u32>, inputs: &[Rows<'_>], outputs: &mut [RowsMut<'_>]) {
        let (maps, _) = table.as_chunks::<FIGURES>();
        let reach = self.reach(table, rows.clone());
        let starts = reach.clone().map(|y| inputs[0].start_of(y)).collect();
        let around = Around { rows: inputs[0], pass: self, first: reach.start as i32, starts };
        for y in rows {
            let maps = &maps[(y / TILE * self.tiles) as usize..][..self.tiles as usize];
            let q = away(y, middle(y / TILE, self.height));
            match self.cubic == 1 {
                true => fill_bicubic(&around, maps, q, outputs[0].row(y)),
                false => fill_bilinear(&around, maps, q, outputs[0].row(y)),
            }
        }
    }
}

#[autoversion(v3)]
fn fill_bilinear(around: &Around<'_>, maps: &[[f32; FIGURES]], q: f32, out: &mut [f32]) {
    around.fill(maps, q, out, 0, bilinear);
}

#[autoversion(v3)]
fn fill_bicubic(around: &Around<'_>, maps: &[[f32; FIGURES]], q: f32, out: &mut [f32]) {
    around.fill(maps, q, out, 1, bicubic);
}

/// Where the samples of one row of a tile come from: the sample before, and how far beyond it.
#[derive(Default)]
struct Places {
    x: [i32; TILE as usize],
    y: [i32; TILE as usize],
    part_x: [f32; TILE as usize],
    part_y: [f32; TILE as usize],
}

/// A whole number as an integer; one that is far outside of any plane as another that is. A cast would look for what does
/// not fit, one number at a time.
#[inline(always)]
fn whole(number: f32) -> i32 {
    /// Added to a whole number, it leaves it in the low bits.
    const WHOLE: f32 = 12_582_912.0;
    const OUTSIDE: f32 = 4e6;
    (number.clamp(-OUTSIDE, OUTSIDE) + WHOLE).to_bits().wrapping_sub(WHOLE.to_bits()) as i32
}

#[inline(always)]
fn places(map: &[f32; FIGURES], first_p: f32, q: f32) -> Places {
    let mut places = Places::default();
    for at in 0..TILE as usize {
        let p = first_p + at as f32;
        let depth = 1.0 + (map[8] * p + map[9] * q);
        let rest_x = map[2] + (map[4] * p + map[6] * q) / depth;
        let rest_y = map[3] + (map[5] * p + map[7] * q) / depth;
        places.x[at] = whole(map[0] + rest_x.floor());
        places.y[at] = whole(map[1] + rest_y.floor());
        places.part_x[at] = rest_x - rest_x.floor();
        places.part_y[at] = rest_y - rest_y.floor();
    }
    places
}

/// For each of `N` x `N` samples that one is made of, those of a row of a tile.
type Samples<const N: usize> = [[[f32; TILE as usize]; N]; N];

/// A plane and what surrounds it.
struct Around<'a> {
    rows: Rows<'a>,
    pass: &'a WarpPass,
    /// The first row that is there, and where each begins: to find one takes a division.
    first: i32,
    starts: Vec<usize>,
}

impl<'a> Around<'a> {
    /// One row. Each sample is made by `interpolate` of `N` x `N` samples, `before` of them before its place in each
    /// direction, and how far it is beyond it.
    #[inline(always)]
    fn fill<const N: usize>(
        &self,
        maps: &[[f32; FIGURES]],
        q: f32,
        out: &mut [f32],
        before: i32,
        interpolate: impl Fn([[f32; N]; N], f32, f32) -> f32,
    ) {
        for ((out, map), tile) in out.chunks_mut(TILE as usize).zip(maps).zip(0..) {
            let places = places(map, away(tile * TILE, middle(tile, self.pass.width)), q);
            if self.is_inside::<N>(&places, before) {
                let samples: Samples<N> = self.gathered(&places, before);
                let mut made = [0.0; TILE as usize];
                for (at, made) in made.iter_mut().enumerate() {
                    let samples = std::array::from_fn(|row| std::array::from_fn(|column| samples[row][column][at]));
                    *made = interpolate(samples, places.part_x[at], places.part_y[at]);
                }
                out.copy_from_slice(&made[..out.len()]);
                continue;
            }
            for (at, out) in out.iter_mut().enumerate() {
                let rows = self.rows_from(places.y[at] - before);
                let samples = rows.map(|row| self.samples(row, places.x[at] - before));
                *out = interpolate(samples, places.part_x[at], places.part_y[at]);
            }
        }
    }

    /// What a row of a tile is made of, where all of it lies in the plane.
    #[inline(always)]
    fn gathered<const N: usize>(&self, places: &Places, before: i32) -> Samples<N> {
        let (mut samples, held) = ([[[0.0; TILE as usize]; N]; N], self.rows.held());
        for at in 0..TILE as usize {
            let (x, y) = ((places.x[at] - before) as usize, (places.y[at] - before - self.first) as usize);
            let starts: &[usize; N] = self.starts[y..].first_chunk().expect("inside");
            for (samples, start) in samples.iter_mut().zip(starts) {
                let seen: &[f32; N] = held[start + x..].first_chunk().expect("inside");
                samples.iter_mut().zip(seen).for_each(|(samples, seen)| samples[at] = *seen);
            }
        }
        samples
    }

    /// Whether all samples that a row of a tile is made of lie in the plane, and are held.
    #[inline(always)]
    fn is_inside<const N: usize>(&self, places: &Places, before: i32) -> bool {
        let (width, rows) = (self.pass.input_width as i32, self.starts.len() as i32);
        let is_within = |at: i32, count: i32| (at >= 0) & (at <= count - N as i32);
        (0..TILE as usize).fold(true, |all, at| {
            // Beyond the plane's last column there may be no place at all.
            let (x, y) = (places.x[at].wrapping_sub(before), places.y[at].wrapping_sub(before + self.first));
            all & is_within(x, width) & is_within(y, rows)
        })
    }

    /// `N` rows from `y` on; `None` for those that hold only what surrounds the plane.
    #[inline(always)]
    fn rows_from<const N: usize>(&self, y: i32) -> [Option<&'a [f32]>; N] {
        std::array::from_fn(|at| {
            let row = y + at as i32;
            let inside = row.clamp(0, self.pass.input_height as i32 - 1);
            (self.pass.edge == 1 || row == inside).then(|| self.rows.row(inside as u32))
        })
    }

    /// `N` samples of a row from `x` on.
    #[inline(always)]
    fn samples<const N: usize>(&self, row: Option<&[f32]>, x: i32) -> [f32; N] {
        let Some(row) = row else { return [self.pass.fill; N] };
        // What lies before the row wraps around to far behind it.
        if let Some(samples) = row.get(x as usize..).and_then(|rest| rest.first_chunk()) {
            return *samples;
        }
        std::array::from_fn(|at| {
            let x = x + at as i32;
            let inside = x.clamp(0, self.pass.input_width as i32 - 1);
            if self.pass.edge == 1 || x == inside { row[inside as usize] } else { self.pass.fill }
        })
    }
}

#[inline(always)]
fn bilinear([above, below]: [[f32; 2]; 2], part_x: f32, part_y: f32) -> f32 {
    let mix = |[a, b]: [f32; 2], part: f32| a + (b - a) * part;
    mix([mix(above, part_x), mix(below, part_x)], part_y)
}

#[inline(always)]
fn bicubic(samples: [[f32; 4]; 4], part_x: f32, part_y: f32) -> f32 {
    let (across, down) = (weights(part_x), weights(part_y));
    let sum = |samples: [f32; 4], weights: [f32; 4]| {
        samples[0] * weights[0] + samples[1] * weights[1] + samples[2] * weights[2] + samples[3] * weights[3]
    };
    sum(samples.map(|row| sum(row, across)), down)
}

/// Catmull and Rom's: through the samples, with their slopes.
#[inline(always)]
fn weights(t: f32) -> [f32; 4] {
    [
        ((2.0 - t) * t - 1.0) * t * 0.5,
        ((3.0 * t - 5.0) * t * t + 2.0) * 0.5,
        ((4.0 - 3.0 * t) * t + 1.0) * t * 0.5,
        (t - 1.0) * t * t * 0.5,
    ]
}
