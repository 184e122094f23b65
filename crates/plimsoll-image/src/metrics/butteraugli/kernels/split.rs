//! From a plane and its blurred self to the bands of frequencies between them, and what the eye leaves of each.

use plimsoll_core::Fault;
use plimsoll_runtime::{Access, Buffer, Kernel, Twin};

use super::Extent;
use crate::run::Run;

static SUBTRACT: Kernel = Kernel {
    name: "subtract",
    wgsl: include_str!("subtract.wgsl"),
    entry: "subtract",
    bindings: &[Access::Write, Access::Read],
    params: size_of::<Extent>(),
    twin: subtract,
};

static SPLIT_MIDDLE: Kernel = Kernel {
    name: "split_middle",
    wgsl: include_str!("split_middle.wgsl"),
    entry: "split_middle",
    bindings: &[Access::Write, Access::Write, Access::Write, Access::Write],
    params: size_of::<Extent>(),
    twin: split_middle,
};

static SPLIT_HIGH: Kernel = Kernel {
    name: "split_high",
    wgsl: include_str!("split_high.wgsl"),
    entry: "split_high",
    bindings: &[Access::Write, Access::Write, Access::Write, Access::Write, Access::Write],
    params: size_of::<Extent>(),
    twin: split_high,
};

/// Middle frequencies of X below this count for nothing.
const MIDDLE_X_IGNORED: f32 = 0.29;
/// Middle frequencies of Y gain up to this much.
const MIDDLE_Y_GAIN: f32 = 0.1;
/// High and finest frequencies of X below these count for nothing.
const HIGH_X_IGNORED: f32 = 1.5;
const FINEST_X_IGNORED: f32 = 0.04;
/// High and finest frequencies of Y: where they begin to saturate, and how much they weigh.
const HIGH_Y_LIMIT: f32 = 28.469_181;
const FINEST_Y_LIMIT: f32 = 5.191_753;
const HIGH_Y_WEIGHT: f32 = 2.155;
const FINEST_Y_WEIGHT: f32 = 2.693_137_6;
/// What is left of each step beyond the limit.
const SATURATED: f32 = 0.724_216_16;
/// High frequencies of Y gain up to this much.
const HIGH_Y_GAIN: f32 = 0.132;
/// How much of X is left however strong Y is, and the strength of Y that hides half of the rest.
const SHOWN: f32 = 0.653_020_56;
const HIDING: f32 = 46.0;
/// What goes into the mask: both bands of X, the finest of Y and the high of Y.
const MASK_X: f32 = 2.5;
const MASK_Y: f32 = 0.4;
/// The curve of the mask.
const MASK_SLOPE: f32 = 6.194_240_6;
const MASK_BIAS: f32 = 12.610_506;

/// Takes `blurred` from `plane`: what was slow goes, what was fast stays.
pub(in super::super) fn take_away(
    run: &mut Run<'_>,
    size: [u32; 2],
    plane: &Buffer,
    blurred: &Buffer,
) -> Result<(), Fault> {
    run.over(&SUBTRACT, &[plane, blurred], &Extent::of(size), size[0], size[1])
}

/// Splits what is faster than low frequencies of X and Y. Before: all of it, and blurred. After: what is faster than
/// middle frequencies, and the middle ones.
pub(in super::super) fn middle(
    run: &mut Run<'_>,
    size: [u32; 2],
    fast: [&Buffer; 2],
    blurred: [&Buffer; 2],
) -> Result<(), Fault> {
    let buffers = [fast[0], blurred[0], fast[1], blurred[1]];
    run.over(&SPLIT_MIDDLE, &buffers, &Extent::of(size), size[0], size[1])
}

/// Splits what is faster than middle frequencies of X and Y. Before: all of it, and blurred. After: the finest
/// frequencies, and the high ones. `activity` becomes what both say about how much they hide.
pub(in super::super) fn high(
    run: &mut Run<'_>,
    size: [u32; 2],
    fast: [&Buffer; 2],
    blurred: [&Buffer; 2],
    activity: &Buffer,
) -> Result<(), Fault> {
    let buffers = [fast[0], blurred[0], fast[1], blurred[1], activity];
    run.over(&SPLIT_HIGH, &buffers, &Extent::of(size), size[0], size[1])
}

fn subtract(twin: &mut Twin<'_>) {
    let count = twin.params::<Extent>().pixels();
    let (blurred, plane) = twin.floats_from_to(1, 0);
    for (plane, blurred) in plane.iter_mut().zip(blurred).take(count) {
        *plane -= blurred;
    }
}

fn split_middle(twin: &mut Twin<'_>) {
    let count = twin.params::<Extent>().pixels();
    let [fast_x, middle_x, fast_y, middle_y] = written(twin, count);
    for at in 0..count {
        let y = fast_y[at] - middle_y[at];
        let shown = HIDING / (y * y + HIDING) * (1.0 - SHOWN) + SHOWN;
        fast_y[at] = y;
        fast_x[at] = (fast_x[at] - middle_x[at]) * shown;
        middle_x[at] = less(middle_x[at], MIDDLE_X_IGNORED);
        middle_y[at] = more(middle_y[at], MIDDLE_Y_GAIN);
    }
}

fn split_high(twin: &mut Twin<'_>) {
    let count = twin.params::<Extent>().pixels();
    let [fast_x, high_x, fast_y, high_y, activity] = written(twin, count);
    for at in 0..count {
        let finest_x = less(fast_x[at] - high_x[at], FINEST_X_IGNORED);
        let slow_x = less(high_x[at], HIGH_X_IGNORED);
        let slow = saturated(high_y[at], HIGH_Y_LIMIT);
        let finest_y = saturated(fast_y[at] - slow, FINEST_Y_LIMIT) * FINEST_Y_WEIGHT;
        let slow_y = more(slow * HIGH_Y_WEIGHT, HIGH_Y_GAIN);
        let (x, y) = ((finest_x + slow_x) * MASK_X, finest_y * MASK_Y + slow_y * MASK_Y);
        let bias = MASK_SLOPE * MASK_BIAS;
        activity[at] = (MASK_SLOPE * (x * x + y * y).sqrt() + bias).sqrt() - bias.sqrt();
        (fast_x[at], high_x[at], fast_y[at], high_y[at]) = (finest_x, slow_x, finest_y, slow_y);
    }
}

/// All buffers of a kernel that writes every one, cut to the same length so that loops over them need no checks.
fn written<'a, const N: usize>(twin: &'a mut Twin<'_>, count: usize) -> [&'a mut [f32]; N] {
    let (_, writes) = twin.reads_and_writes();
    let planes: [&mut [f32]; N] = writes.try_into().expect("as many as its bindings");
    planes.map(|plane| &mut plane[..count])
}

fn less(value: f32, by: f32) -> f32 {
    (value.abs() - by).max(0.0).copysign(value)
}

fn more(value: f32, by: f32) -> f32 {
    value + value.clamp(-by, by)
}

fn saturated(value: f32, limit: f32) -> f32 {
    let within = value.clamp(-limit, limit);
    (value - within) * SATURATED + within
}
