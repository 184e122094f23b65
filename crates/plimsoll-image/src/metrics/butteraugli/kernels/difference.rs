//! Differences that are weighed pixel by pixel: low frequencies, and middle frequencies of blue.

use plimsoll_core::Fault;
use plimsoll_runtime::{Access, Buffer, Kernel, Twin};

use super::Extent;
use crate::run::Run;

static LOW_DIFFERENCE: Kernel = Kernel {
    name: "low_difference",
    wgsl: include_str!("low_difference.wgsl"),
    entry: "low_difference",
    bindings: &[Access::Read, Access::Read, Access::Read, Access::Read, Access::Read, Access::Write],
    params: size_of::<Extent>(),
    twin: low_difference,
};

static BLUE_DIFFERENCE: Kernel = Kernel {
    name: "blue_difference",
    wgsl: include_str!("blue_difference.wgsl"),
    entry: "blue_difference",
    bindings: &[Access::Read, Access::Write],
    params: size_of::<Extent>(),
    twin: blue_difference,
};

/// From X, Y and B to steps that are equally visible, and how much a squared step of each counts.
const STEPS: [f32; 3] = [33.832_836, 14.458_268, 49.879_845];
const STEP_WEIGHTS: [f32; 3] = [29.235_38, 0.844_626_96, 0.703_646_6];
/// How much of Y blue is without.
const Y_IN_BLUE: f32 = -0.362_267_05;
/// How much a squared difference of blue's middle frequencies counts.
const BLUE_WEIGHT: f32 = 16.217_604;

/// Low frequencies: X and Y of the reference and of the image, and the blue of the image less that of the reference.
pub(in super::super) struct Low<'a> {
    pub(in super::super) reference: [&'a Buffer; 2],
    pub(in super::super) image: [&'a Buffer; 2],
    pub(in super::super) blue: &'a Buffer,
}

impl Low<'_> {
    /// Weighs the squared differences into a plane.
    pub(in super::super) fn differ(&self, run: &mut Run<'_>, size: [u32; 2], to: &Buffer) -> Result<(), Fault> {
        let buffers = [self.reference[0], self.image[0], self.reference[1], self.image[1], self.blue, to];
        run.over(&LOW_DIFFERENCE, &buffers, &Extent::of(size), size[0], size[1])
    }
}

/// Weighs the squared difference of blue's middle frequencies into a plane.
pub(in super::super) fn blue(run: &mut Run<'_>, size: [u32; 2], difference: &Buffer, to: &Buffer) -> Result<(), Fault> {
    run.over(&BLUE_DIFFERENCE, &[difference, to], &Extent::of(size), size[0], size[1])
}

fn low_difference(twin: &mut Twin<'_>) {
    let count = twin.params::<Extent>().pixels();
    let (reads, mut writes) = twin.reads_and_writes();
    let planes: [&[f32]; 5] = reads.try_into().expect("five planes are read");
    let [reference_x, image_x, reference_y, image_y, blue] = planes.map(|plane| &plane[..count]);
    for (at, out) in writes[0][..count].iter_mut().enumerate() {
        let (x, y) = (reference_x[at] - image_x[at], reference_y[at] - image_y[at]);
        let steps = [x * STEPS[0], y * STEPS[1], (Y_IN_BLUE * y - blue[at]) * STEPS[2]];
        *out = steps[0] * steps[0] * STEP_WEIGHTS[0]
            + steps[1] * steps[1] * STEP_WEIGHTS[1]
            + steps[2] * steps[2] * STEP_WEIGHTS[2];
    }
}

fn blue_difference(twin: &mut Twin<'_>) {
    let count = twin.params::<Extent>().pixels();
    let (difference, to) = twin.floats_from_to(0, 1);
    for (to, difference) in to.iter_mut().zip(difference).take(count) {
        *to = difference * difference * BLUE_WEIGHT;
    }
}
