//! The kernels of DSSIM and their twins. The twins work row by row, with the arithmetic of the CPU rung.
//! Never decides what is launched on which rows: that is `device`.

use bytemuck::{Pod, Zeroable};
use plimsoll_runtime::Access::{Read, Write};
use plimsoll_runtime::{Kernel, Twin};

use super::rows::{self, Blurred, BlurredReference, REACH, Three};
use super::scales;
use super::stream::{Blur, Window};

/// Means of squares of pixels: red, green and blue in, red, green and blue out.
pub(super) static SHRINK: Kernel = Kernel {
    name: "shrink",
    wgsl: include_str!("shrink.wgsl"),
    entry: "shrink",
    bindings: &[Read, Read, Read, Write, Write, Write],
    params: size_of::<ShrinkParams>(),
    twin: shrink,
};

/// Linear light in; lightness and smoothed chroma out.
pub(super) static LAB: Kernel = Kernel {
    name: "lab_planes",
    wgsl: include_str!("lab.wgsl"),
    entry: "lab_planes",
    bindings: &[Read, Read, Read, Write, Write, Write],
    params: size_of::<BandParams>(),
    twin: lab_planes,
};

/// The reference's Lab and the image's in; the losses and their sum in each workgroup out.
pub(super) static LOSSES: Kernel = Kernel {
    name: "losses",
    wgsl: include_str!("losses.wgsl"),
    entry: "losses",
    bindings: &[Read, Read, Read, Read, Read, Read, Write, Write],
    params: size_of::<BandParams>(),
    twin: losses,
};

/// The sums of losses in; the level out.
pub(super) static LEVEL: Kernel = Kernel {
    name: "level",
    wgsl: include_str!("pool.wgsl"),
    entry: "level",
    bindings: &[Read, Write],
    params: size_of::<PoolParams>(),
    twin: level,
};

/// The losses and the levels in; sums of distances out, one for every [`DISTANCES_RUN`] losses begun.
pub(super) static DISTANCES: Kernel = Kernel {
    name: "distances",
    wgsl: include_str!("pool.wgsl"),
    entry: "distances",
    bindings: &[Read, Read, Write],
    params: size_of::<PoolParams>(),
    twin: distances,
};

/// Losses that one workgroup of [`DISTANCES`] takes.
pub(super) const DISTANCES_RUN: u32 = 8192;
/// Pixels of one workgroup of [`LOSSES`] in each direction.
pub(super) const TILE: u32 = 16;

/// The uniform of [`SHRINK`]; the WGSL says what each field means.
#[repr(C)]
#[derive(Copy, Clone, Pod, Zeroable)]
pub(super) struct ShrinkParams {
    pub(super) width: u32,
    pub(super) width_out: u32,
    pub(super) rows_out: u32,
    pub(super) first_out: u32,
    pub(super) side: u32,
    pub(super) unused: [u32; 3],
}

/// The uniform of [`LAB`] and [`LOSSES`]; the WGSL says what each field means.
#[repr(C)]
#[derive(Copy, Clone, Pod, Zeroable)]
pub(super) struct BandParams {
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) first_in: u32,
    pub(super) rows_in: u32,
    pub(super) first_out: u32,
    pub(super) rows_out: u32,
    pub(super) unused: [u32; 2],
}

impl BandParams {
    /// The rows of the scale that blurring the target's rows looks at, each once.
    fn rows_looked_at(&self) -> std::ops::Range<usize> {
        let (first, last) = (self.first_out as usize, (self.first_out + self.rows_out) as usize);
        first.saturating_sub(REACH)..(last + REACH).min(self.height as usize)
    }

    /// Where a row of the scale lies in a source.
    fn row<'a>(&self, plane: &'a [f32], y: usize) -> &'a [f32] {
        &plane[(y - self.first_in as usize) * self.width as usize..][..self.width as usize]
    }

    fn rows<'a>(&self, planes: &[&'a [f32]], y: usize) -> Three<'a> {
        [0, 1, 2].map(|channel| self.row(planes[channel], y))
    }
}

/// The uniform of [`LEVEL`] and [`DISTANCES`]; the WGSL says what each field means.
#[repr(C)]
#[derive(Copy, Clone, Pod, Zeroable)]
pub(super) struct PoolParams {
    pub(super) count: u32,
    pub(super) first_out: u32,
    pub(super) scale: u32,
    pub(super) pixels: f32,
}

fn shrink(twin: &mut Twin<'_>) {
    let params: ShrinkParams = twin.params();
    let (width, width_out, side) = (params.width as usize, params.width_out as usize, params.side as usize);
    let (reads, writes) = twin.reads_and_writes();
    let share = 1.0 / (side * side) as f32;
    for (source, target) in reads.into_iter().zip(writes) {
        let target = &mut target[params.first_out as usize * width_out..];
        for (y, out) in target.chunks_exact_mut(width_out).take(params.rows_out as usize).enumerate() {
            out.fill(0.0);
            for row in source[y * side * width..].chunks_exact(width).take(side) {
                for (out, square) in out.iter_mut().zip(row.chunks_exact(side)) {
                    *out += square.iter().sum::<f32>();
                }
            }
            out.iter_mut().for_each(|out| *out *= share);
        }
    }
}

fn lab_planes(twin: &mut Twin<'_>) {
    let params: BandParams = twin.params();
    let (width, height) = (params.width as usize, params.height as usize);
    let (reads, mut writes) = twin.reads_and_writes();
    let mut windows: [Window; 3] = std::array::from_fn(|_| Window::new(width));
    let mut blur = Blur::new(width);
    let mut coming = params.rows_looked_at();
    for at in 0..params.rows_out as usize {
        let y = params.first_out as usize + at;
        while coming.start < coming.end.min(y + REACH + 1) {
            let row = coming.start;
            let [lightness, red_green, blue_yellow] = windows.each_mut().map(|window| window.row_mut(row));
            rows::lab(params.rows(&reads, row), lightness, red_green, blue_yellow);
            coming.start += 1;
        }
        let out = at * width..(at + 1) * width;
        writes[0][out.clone()].copy_from_slice(windows[0].row(y));
        for channel in 1..3 {
            blur.row(&windows[channel], y, height, &mut writes[channel][out.clone()]);
        }
    }
}

fn losses(twin: &mut Twin<'_>) {
    let params: BandParams = twin.params();
    let groups = twin.groups[0] as usize;
    let width = params.width as usize;
    let (reads, mut writes) = twin.reads_and_writes();
    let [losses, partials] = &mut writes[..] else { unreachable!("the kernel has two outputs") };
    let mut work = LossWork::new(width);
    let mut coming = params.rows_looked_at();
    for at in 0..params.rows_out as usize {
        let y = params.first_out as usize + at;
        while coming.start < coming.end.min(y + REACH + 1) {
            work.take(&params, &reads, coming.start);
            coming.start += 1;
        }
        let losses = &mut losses[at * width..][..width];
        work.losses(&params, &reads, y, losses);
        let partials = &mut partials[at / TILE as usize * groups..][..groups];
        if at % TILE as usize == 0 {
            partials.fill(0.0);
        }
        for (partial, losses) in partials.iter_mut().zip(losses.chunks(TILE as usize)) {
            *partial += losses.iter().sum::<f32>();
        }
    }
}

/// The rows that the twin of [`LOSSES`] keeps.
struct LossWork {
    /// Squares of the reference, squares of the image, and squared distances.
    squares: [Window; 3],
    blur: Blur,
    /// The blurred: channels of the reference, channels of the image, and the squares.
    blurred: [Vec<f32>; 9],
    means_squared: Vec<f32>,
    variances: Vec<f32>,
}

impl LossWork {
    fn new(width: usize) -> Self {
        Self {
            squares: std::array::from_fn(|_| Window::new(width)),
            blur: Blur::new(width),
            blurred: std::array::from_fn(|_| vec![0.0; width]),
            means_squared: vec![0.0; width],
            variances: vec![0.0; width],
        }
    }

    /// The squares of a row.
    fn take(&mut self, params: &BandParams, reads: &[&[f32]], y: usize) {
        let (reference, distorted) = (params.rows(&reads[..3], y), params.rows(&reads[3..], y));
        let [squares, squares_distorted, distances] = self.squares.each_mut().map(|window| window.row_mut(y));
        rows::squares(reference, squares);
        rows::squares(distorted, squares_distorted);
        rows::squared_distances(distorted, reference, distances);
    }

    fn losses(&mut self, params: &BandParams, reads: &[&[f32]], y: usize, out: &mut [f32]) {
        let height = params.height as usize;
        let around = |plane| [-2, -1, 0, 1, 2].map(|away| params.row(plane, rows::mirrored(y as isize + away, height)));
        let (channels, squares) = self.blurred.split_at_mut(6);
        for (plane, out) in reads.iter().zip(channels) {
            self.blur.of(around(plane), out);
        }
        for (window, out) in self.squares.iter().zip(squares) {
            self.blur.row(window, y, height, out);
        }
        let [a, b, c, d, e, f, squares, squares_distorted, distances] = self.blurred.each_ref().map(Vec::as_slice);
        rows::variances([a, b, c], squares, &mut self.means_squared, &mut self.variances);
        let (means_squared, variances) = (&self.means_squared, &self.variances);
        let image = Blurred { means: [d, e, f], squares: squares_distorted, distances };
        rows::losses(&image, &BlurredReference { means: [a, b, c], means_squared, variances }, out);
    }
}

fn level(twin: &mut Twin<'_>) {
    let params: PoolParams = twin.params();
    let (partials, levels) = twin.floats_from_to(0, 1);
    let sum = rows::sum(&partials[..params.count as usize]);
    levels[params.first_out as usize] = scales::level(params.scale as usize, sum / f64::from(params.pixels)) as f32;
}

fn distances(twin: &mut Twin<'_>) {
    let params: PoolParams = twin.params();
    let (reads, mut writes) = twin.reads_and_writes();
    let (losses, level) = (&reads[0][..params.count as usize], reads[1][params.scale as usize]);
    let sums = &mut writes[0][params.first_out as usize..];
    for (sum, losses) in sums.iter_mut().zip(losses.chunks(DISTANCES_RUN as usize)) {
        *sum = rows::sum_of_distances(losses, level) as f32;
    }
}
