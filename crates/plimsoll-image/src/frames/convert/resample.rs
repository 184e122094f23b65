//! The pass that makes a plane twice, once or half as fine in one direction. Beyond an edge, its last sample goes on.

use std::ops::Range;

use archmage::autoversion;
use bytemuck::{Pod, Zeroable};
use plimsoll_runtime::{Access, Kernel};

use crate::frames::graph::{Pass, Rows, RowsMut, twin};
use crate::image::Size;

static KERNEL: Kernel = Kernel {
    name: "resample",
    wgsl: include_str!("resample.wgsl"),
    entry: "resample",
    bindings: &[Access::Read, Access::Write],
    params: size_of::<ResamplePass>(),
    twin: twin::<ResamplePass>,
};

/// In which direction.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Axis {
    Across,
    Down,
}

/// The weights of four samples, from one before to two after.
pub(super) type Weights = [f32; 4];

/// How fine, and from what.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) enum Step {
    /// Two samples from each: weights for the first and for the second.
    Double(Weights, Weights),
    /// As many samples, elsewhere.
    Move(Weights),
    /// One sample from each two.
    Halve(Weights),
}

/// The uniform; the WGSL says what each field means.
#[repr(C)]
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
pub(super) struct ResamplePass {
    input_width: u32,
    input_height: u32,
    width: u32,
    height: u32,
    vertical: u32,
    double: u32,
    halve: u32,
    padding: u32,
    even: Weights,
    odd: Weights,
}

impl ResamplePass {
    /// From planes of one size to planes of another, which the step leads to.
    pub(super) fn new(input: Size, output: Size, axis: Axis, step: Step) -> Self {
        let (double, halve, even, odd) = match step {
            Step::Double(even, odd) => (0, 1, even, odd),
            Step::Move(weights) => (0, 0, weights, weights),
            Step::Halve(weights) => (1, 0, weights, weights),
        };
        Self {
            input_width: input.width,
            input_height: input.height,
            width: output.width,
            height: output.height,
            vertical: u32::from(axis == Axis::Down),
            double,
            halve,
            padding: 0,
            even,
            odd,
        }
    }

    /// The input sample that an output sample stands at.
    fn centre(&self, at: u32) -> u32 {
        (at << self.double) >> self.halve
    }

    fn weights(&self, at: u32) -> Weights {
        if at & self.halve == 1 { self.odd } else { self.even }
    }

    /// The four input samples of an output sample.
    fn taps(&self, at: u32, side: u32) -> [u32; 4] {
        let centre = self.centre(at);
        [centre.saturating_sub(1), centre, centre + 1, centre + 2].map(|tap| tap.min(side - 1))
    }

    fn along(&self, input: &[f32], out: &mut [f32]) {
        match (self.double, self.halve) {
            (0, 1) => double(&self.even, &self.odd, input, out),
            (1, _) => halve(&self.even, input, out),
            _ => shift(&self.even, input, out),
        }
        // Near both ends samples are missing: those come one by one.
        let inside = self.inside(input.len(), out.len());
        for at in (0..inside.start).chain(inside.end..out.len()) {
            let taps = self.taps(at as u32, self.input_width).map(|tap| input[tap as usize]);
            out[at] = weigh(&self.weights(at as u32), taps);
        }
    }

    /// The output samples of a row that have all their input samples, as the three functions below fill them.
    fn inside(&self, input: usize, output: usize) -> Range<usize> {
        let windows = input.saturating_sub(3);
        let (first, count) = match (self.double, self.halve) {
            (0, 1) => (2, 2 * windows),
            (1, _) => (1, windows / 2),
            _ => (1, windows),
        };
        let first = first.min(output);
        first..(first + count).min(output)
    }
}

impl Pass for ResamplePass {
    fn kernel() -> &'static Kernel {
        &KERNEL
    }

    fn input(&self) -> Size {
        Size { width: self.input_width, height: self.input_height }
    }

    fn output(&self) -> Size {
        Size { width: self.width, height: self.height }
    }

    fn reach(&self, _: &[f32], rows: Range<u32>) -> Range<u32> {
        if self.vertical == 0 {
            return rows;
        }
        let (first, last) = (self.taps(rows.start, self.input_height), self.taps(rows.end - 1, self.input_height));
        first[0]..last[3] + 1
    }

    fn rows(&self, _: &[f32], rows: Range<u32>, inputs: &[Rows<'_>], outputs: &mut [RowsMut<'_>]) {
        for y in rows {
            if self.vertical == 0 {
                self.along(inputs[0].row(y), outputs[0].row(y));
            } else {
                let [above, here, below, after] = self.taps(y, self.input_height).map(|tap| inputs[0].row(tap));
                down(&self.weights(y), above, here, below, after, outputs[0].row(y));
            }
        }
    }
}

#[inline(always)]
fn weigh(weights: &Weights, taps: [f32; 4]) -> f32 {
    weights[0] * taps[0] + weights[1] * taps[1] + weights[2] * taps[2] + weights[3] * taps[3]
}

#[autoversion(v4, v3)]
fn down(weights: &Weights, above: &[f32], here: &[f32], below: &[f32], after: &[f32], out: &mut [f32]) {
    let taps = above.iter().zip(here).zip(below).zip(after);
    for (out, (((above, here), below), after)) in out.iter_mut().zip(taps) {
        *out = weigh(weights, [*above, *here, *below, *after]);
    }
}

#[autoversion(v3)]
fn double(even: &Weights, odd: &Weights, input: &[f32], out: &mut [f32]) {
    let pairs = out.get_mut(2..).unwrap_or_default().as_chunks_mut::<2>().0;
    for (pair, taps) in pairs.iter_mut().zip(input.array_windows()) {
        *pair = [weigh(even, *taps), weigh(odd, *taps)];
    }
}

#[autoversion(v3)]
fn halve(weights: &Weights, input: &[f32], out: &mut [f32]) {
    let windows = input.get(1..).unwrap_or_default().array_windows().step_by(2);
    for (out, taps) in out.get_mut(1..).unwrap_or_default().iter_mut().zip(windows) {
        *out = weigh(weights, *taps);
    }
}

#[autoversion(v3)]
fn shift(weights: &Weights, input: &[f32], out: &mut [f32]) {
    for (out, taps) in out.get_mut(1..).unwrap_or_default().iter_mut().zip(input.array_windows()) {
        *out = weigh(weights, *taps);
    }
}
