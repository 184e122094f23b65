//! Contrasts as the eye weighs them: detail against the luminance around it, times the sensitivity there.

use bytemuck::{Pod, Zeroable};
use plimsoll_core::Fault;
use plimsoll_runtime::{Access, Buffer, Kernel, Twin};

use super::castle::{LUMINANCE, STEPS};
use super::model::{CONTRAST_MAX, DARKEST, halved};
use super::window::Window;
use crate::planes::Planes;
use crate::power::{exp2, log2};
use crate::run::Run;

static BACKGROUND: Kernel = Kernel {
    name: "background",
    wgsl: include_str!("background.wgsl"),
    entry: "background",
    bindings: &[Access::Read, Access::Write],
    params: size_of::<Params>(),
    twin: background,
};

static CONTRAST: Kernel = Kernel {
    name: "contrast",
    wgsl: include_str!("contrast.wgsl"),
    entry: "contrast",
    bindings: &[Access::Read, Access::Read, Access::Read, Access::Write],
    params: size_of::<Params>(),
    twin: contrast,
};

static SENSITIVITY: Kernel = Kernel {
    name: "sensitivity",
    wgsl: include_str!("sensitivity.wgsl"),
    entry: "sensitivity",
    bindings: &[Access::Read, Access::Read, Access::Write, Access::Write, Access::Write],
    params: size_of::<SensitivityParams>(),
    twin: sensitivity,
};

#[repr(C)]
#[derive(Copy, Clone, Pod, Zeroable)]
struct Params {
    width: u32,
    first: u32,
    from: u32,
    rows: u32,
    width_coarse: u32,
    height_coarse: u32,
    first_coarse: i32,
    limit: f32,
}

#[repr(C)]
#[derive(Copy, Clone, Pod, Zeroable)]
struct SensitivityParams {
    width: u32,
    first: u32,
    from: u32,
    rows: u32,
    low: f32,
    per_step: f32,
    steps: u32,
    unused: u32,
}

/// A plane of the next coarser level: the buffer, and the row of that level that it begins with, below zero where the
/// buffer has others before.
#[derive(Copy, Clone)]
pub(super) struct Coarse<'a> {
    pub(super) plane: &'a Buffer,
    pub(super) first: i32,
}

impl Coarse<'_> {
    fn params(self, window: Window, limit: f32) -> Params {
        let Window { size, first, from, rows } = window;
        let coarse = halved(size);
        Params {
            width: size.width,
            first,
            from,
            rows,
            width_coarse: coarse.width,
            height_coarse: coarse.height,
            first_coarse: self.first,
            limit,
        }
    }
}

/// The luminance around each pixel, from the achromatic channel's next coarser level.
pub(super) fn background_of(
    run: &mut Run<'_>,
    window: Window,
    coarse: Coarse<'_>,
    luminance: &Buffer,
) -> Result<(), Fault> {
    let params = coarse.params(window, DARKEST);
    run.over(&BACKGROUND, &[coarse.plane, luminance], &params, window.size.width, window.rows)
}

/// The sensitivity of each channel at each pixel, by a level's table.
pub(super) fn sensitivities_of(
    run: &mut Run<'_>,
    window: Window,
    table: &Buffer,
    luminance: &Buffer,
    to: &Planes,
) -> Result<(), Fault> {
    let Window { size, first, from, rows } = window;
    let [low, high] = LUMINANCE.map(f64::log2);
    let per_step = ((STEPS - 1) as f64 / (high - low)) as f32;
    let [a, b, c] = to.each();
    let (width, steps) = (size.width, STEPS as u32);
    let params = SensitivityParams { width, first, from, rows, low: low as f32, per_step, steps, unused: 0 };
    run.over(&SENSITIVITY, &[luminance, table, a, b, c], &params, width, rows)
}

/// Turns a channel into its weighed contrasts.
pub(super) fn to_contrast(
    run: &mut Run<'_>,
    window: Window,
    coarse: Coarse<'_>,
    [luminance, sensitivity]: [&Buffer; 2],
    channel: &Buffer,
) -> Result<(), Fault> {
    let params = coarse.params(window, CONTRAST_MAX);
    let buffers = [coarse.plane, luminance, sensitivity, channel];
    run.over(&CONTRAST, &buffers, &params, window.size.width, window.rows)
}

/// Coarse rows that these fine rows are expanded from.
pub(super) fn reach_of(fine: std::ops::Range<u32>, coarse_height: u32) -> std::ops::Range<u32> {
    (fine.start / 2).saturating_sub(1)..((fine.end - 1) / 2 + 2).min(coarse_height)
}

/// Rows of a plane of twice the size, one at a time.
struct Expanding<'a> {
    coarse: &'a [f32],
    params: Params,
    /// A coarse row between two others, its first and last value repeated.
    between: Vec<f32>,
    row: Vec<f32>,
}

impl<'a> Expanding<'a> {
    fn new(coarse: &'a [f32], params: Params) -> Self {
        let width = params.width_coarse as usize;
        Self { coarse, params, between: vec![0.0; width + 2], row: vec![0.0; 2 * width] }
    }

    fn row(&mut self, y: u32) -> &[f32] {
        let Params { width, width_coarse, height_coarse, first_coarse, .. } = self.params;
        let count = width_coarse as usize;
        let coarse = |y: u32| &self.coarse[(y as i32 - first_coarse) as usize * count..][..count];
        let middle = y / 2;
        let rows = [middle.saturating_sub(1), middle, (middle + 1).min(height_coarse - 1)].map(coarse);
        let weights = if y.is_multiple_of(2) { [0.1, 0.8, 0.1] } else { [0.0, 0.5, 0.5] };
        let values = self.between[1..].iter_mut().zip(rows[0]).zip(rows[1]).zip(rows[2]);
        for (((out, upper), here), lower) in values {
            *out = weights[0] * upper + weights[1] * here + weights[2] * lower;
        }
        self.between[0] = self.between[1];
        self.between[count + 1] = self.between[count];
        let (pairs, _) = self.row.as_chunks_mut::<2>();
        for (pair, taps) in pairs.iter_mut().zip(self.between.windows(3)) {
            *pair = [0.1 * taps[0] + 0.8 * taps[1] + 0.1 * taps[2], 0.5 * taps[1] + 0.5 * taps[2]];
        }
        &self.row[..width as usize]
    }
}

fn background(twin: &mut Twin<'_>) {
    let params: Params = twin.params();
    let (coarse, luminance) = twin.floats_from_to(0, 1);
    let mut expanding = Expanding::new(coarse, params);
    let (width, first) = (params.width as usize, (params.from - params.first) as usize);
    let rows = luminance[first * width..].chunks_exact_mut(width);
    for (y, out) in (params.from..params.from + params.rows).zip(rows) {
        for (out, value) in out.iter_mut().zip(expanding.row(y)) {
            *out = value.max(params.limit);
        }
    }
}

fn contrast(twin: &mut Twin<'_>) {
    let params: Params = twin.params();
    let (reads, mut writes) = twin.reads_and_writes();
    let mut expanding = Expanding::new(reads[0], params);
    let (width, start) = (params.width as usize, (params.from - params.first) as usize * params.width as usize);
    let rows = writes[0][start..].chunks_exact_mut(width);
    let rows = rows.zip(reads[1][start..].chunks_exact(width)).zip(reads[2][start..].chunks_exact(width));
    for (y, ((channel, luminance), sensitivity)) in (params.from..params.from + params.rows).zip(rows) {
        let values = channel.iter_mut().zip(expanding.row(y)).zip(luminance).zip(sensitivity);
        for (((value, blurred), luminance), sensitivity) in values {
            *value = ((*value - blurred) / luminance).min(params.limit) * sensitivity;
        }
    }
}

fn sensitivity(twin: &mut Twin<'_>) {
    let SensitivityParams { width, first, from, rows, low, per_step, steps, .. } = twin.params();
    let (reads, mut writes) = twin.reads_and_writes();
    let (steps, start, count) = (steps as usize, ((from - first) * width) as usize, (width * rows) as usize);
    let tables: [&[f32]; 3] = std::array::from_fn(|channel| &reads[1][channel * steps..][..steps]);
    for (at, luminance) in reads[0][start..][..count].iter().enumerate() {
        let step = ((log2(*luminance) - low) * per_step).clamp(0.0, (steps - 1) as f32);
        let (below, share) = (step as usize, step.fract());
        let above = (below + 1).min(steps - 1);
        for (plane, table) in writes.iter_mut().zip(tables) {
            plane[start + at] = exp2(table[below] * (1.0 - share) + table[above] * share);
        }
    }
}
