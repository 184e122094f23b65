//! The passes that look colours up.

use std::ops::Range;

use bytemuck::{Pod, Zeroable};
use plimsoll_runtime::{Access, Kernel};

use super::Between;
use super::cube::Cube;
use crate::frames::graph::{Pass, Rows, RowsMut, twin};
use crate::image::Size;

const BINDINGS: &[Access] =
    &[Access::Read, Access::Read, Access::Read, Access::Read, Access::Write, Access::Write, Access::Write];

static SOLID: Kernel = Kernel {
    name: "solid",
    wgsl: include_str!("solid.wgsl"),
    entry: "solid",
    bindings: BINDINGS,
    params: size_of::<SolidPass>(),
    twin: twin::<SolidPass>,
};

static LINE: Kernel = Kernel {
    name: "line",
    wgsl: include_str!("line.wgsl"),
    entry: "line",
    bindings: BINDINGS,
    params: size_of::<LinePass>(),
    twin: twin::<LinePass>,
};

/// The uniform; the WGSL says what each field means.
#[repr(C)]
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
pub(super) struct SolidPass {
    width: u32,
    height: u32,
    points: u32,
    between: u32,
    lowest: [f32; 4],
    scale: [f32; 4],
}

/// The uniform; the WGSL says what each field means.
#[repr(C)]
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
pub(super) struct LinePass {
    width: u32,
    height: u32,
    points: u32,
    padding: u32,
    lowest: [f32; 4],
    scale: [f32; 4],
}

/// The codes of the first points, and points for each unit of a code.
fn places(cube: &Cube) -> ([f32; 4], [f32; 4]) {
    let [[red, green, blue], highest] = cube.domain;
    let last = (cube.points - 1) as f32;
    let scale = [0, 1, 2].map(|channel| last / (highest[channel] - cube.domain[0][channel]));
    ([red, green, blue, 0.0], [scale[0], scale[1], scale[2], 0.0])
}

impl SolidPass {
    pub(super) fn new(size: Size, cube: &Cube, between: Between) -> Self {
        let (lowest, scale) = places(cube);
        let (points, between) = (cube.points as u32, between as u32);
        Self { width: size.width, height: size.height, points, between, lowest, scale }
    }
}

impl LinePass {
    pub(super) fn new(size: Size, cube: &Cube) -> Self {
        let (lowest, scale) = places(cube);
        Self { width: size.width, height: size.height, points: cube.points as u32, padding: 0, lowest, scale }
    }
}

/// The point before a code, and how far the code lies on the way to the next. What is not a number lies at the first.
#[inline(always)]
fn place(code: f32, lowest: f32, scale: f32, points: u32) -> (usize, f32) {
    let last = (points - 1) as f32;
    let place = ((code - lowest) * scale).max(0.0).min(last);
    let low = place.floor().min(last - 1.0);
    (low as usize, place - low)
}

impl Pass for SolidPass {
    const INPUTS: usize = 3;
    const OUTPUTS: usize = 3;

    fn kernel() -> &'static Kernel {
        &SOLID
    }

    fn output(&self) -> Size {
        Size { width: self.width, height: self.height }
    }

    fn rows(&self, table: &[f32], rows: Range<u32>, inputs: &[Rows<'_>], outputs: &mut [RowsMut<'_>]) {
        let (points, _) = table.as_chunks::<3>();
        let [red, green, blue] = outputs else { unreachable!("three planes are written") };
        for y in rows {
            let inputs = [0, 1, 2].map(|plane| inputs[plane].row(y));
            let (red, green, blue) = (red.row(y), green.row(y), blue.row(y));
            for x in 0..self.width as usize {
                [red[x], green[x], blue[x]] = self.found(points, inputs.map(|row| row[x]));
            }
        }
    }
}

impl SolidPass {
    #[inline(always)]
    fn found(&self, points: &[[f32; 3]], codes: [f32; 3]) -> [f32; 3] {
        let places = [0, 1, 2].map(|at| place(codes[at], self.lowest[at], self.scale[at], self.points));
        let strides = [1, self.points as usize, (self.points * self.points) as usize];
        let low = places[0].0 + places[1].0 * strides[1] + places[2].0 * strides[2];
        let parts = places.map(|(_, part)| part);
        match self.between {
            0 => tetrahedral(points, low, strides, parts),
            _ => trilinear(points, low, strides, parts),
        }
    }
}

/// From the corner at `low` along the direction of the largest part first, and of the smallest last.
#[inline(always)]
fn tetrahedral(points: &[[f32; 3]], low: usize, strides: [usize; 3], parts: [f32; 3]) -> [f32; 3] {
    let [x, y, z] = parts;
    let order = match (x >= y, y >= z, x >= z) {
        (true, true, _) => [0, 1, 2],
        (true, false, true) => [0, 2, 1],
        (true, false, false) => [2, 0, 1],
        (false, _, _) if z >= y => [2, 1, 0],
        (false, _, _) if z >= x => [1, 2, 0],
        (false, _, _) => [1, 0, 2],
    };
    let [a, b, c] = order.map(|direction| parts[direction]);
    let first = low + strides[order[0]];
    let second = first + strides[order[1]];
    let high = low + strides[0] + strides[1] + strides[2];
    let corners = [points[low], points[first], points[second], points[high]];
    [0, 1, 2]
        .map(|at| corners[0][at] * (1.0 - a) + corners[1][at] * (a - b) + corners[2][at] * (b - c) + corners[3][at] * c)
}

#[inline(always)]
fn trilinear(points: &[[f32; 3]], low: usize, [x, y, z]: [usize; 3], parts: [f32; 3]) -> [f32; 3] {
    let mix = |a: [f32; 3], b: [f32; 3], part: f32| [0, 1, 2].map(|at| a[at] * (1.0 - part) + b[at] * part);
    let along = |corner: usize| mix(points[corner], points[corner + x], parts[0]);
    let near = mix(along(low), along(low + y), parts[1]);
    let far = mix(along(low + z), along(low + y + z), parts[1]);
    mix(near, far, parts[2])
}

impl Pass for LinePass {
    const INPUTS: usize = 3;
    const OUTPUTS: usize = 3;

    fn kernel() -> &'static Kernel {
        &LINE
    }

    fn output(&self) -> Size {
        Size { width: self.width, height: self.height }
    }

    fn rows(&self, table: &[f32], rows: Range<u32>, inputs: &[Rows<'_>], outputs: &mut [RowsMut<'_>]) {
        let (points, _) = table.as_chunks::<3>();
        for y in rows {
            for (channel, output) in outputs.iter_mut().enumerate() {
                let (lowest, scale) = (self.lowest[channel], self.scale[channel]);
                for (out, code) in output.row(y).iter_mut().zip(inputs[channel].row(y)) {
                    let (low, part) = place(*code, lowest, scale, self.points);
                    *out = points[low][channel] * (1.0 - part) + points[low + 1][channel] * part;
                }
            }
        }
    }
}
