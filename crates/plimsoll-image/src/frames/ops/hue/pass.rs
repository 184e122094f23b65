//! The pass that turns two chroma planes about their middle.

use std::ops::Range;

use archmage::autoversion;
use bytemuck::{Pod, Zeroable};
use plimsoll_runtime::{Access, Kernel};

use crate::frames::graph::{Pass, Rows, RowsMut, twin};
use crate::image::Size;

static KERNEL: Kernel = Kernel {
    name: "hue",
    wgsl: include_str!("hue.wgsl"),
    entry: "hue",
    bindings: &[Access::Read, Access::Read, Access::Write, Access::Write],
    params: size_of::<HuePass>(),
    twin: twin::<HuePass>,
};

/// The uniform; the WGSL says what each field means.
#[repr(C)]
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
pub(super) struct HuePass {
    width: u32,
    height: u32,
    cosine: f32,
    sine: f32,
    middle: f32,
    padding: [u32; 3],
}

impl HuePass {
    pub(super) fn new(size: Size, cosine: f64, sine: f64, middle: f64) -> Self {
        Self {
            width: size.width,
            height: size.height,
            cosine: cosine as f32,
            sine: sine as f32,
            middle: middle as f32,
            padding: [0; 3],
        }
    }
}

impl Pass for HuePass {
    const INPUTS: usize = 2;
    const OUTPUTS: usize = 2;

    fn kernel() -> &'static Kernel {
        &KERNEL
    }

    fn output(&self) -> Size {
        Size { width: self.width, height: self.height }
    }

    fn rows(&self, _: &[f32], rows: Range<u32>, inputs: &[Rows<'_>], outputs: &mut [RowsMut<'_>]) {
        let [blue, red] = outputs else { unreachable!("two planes are written") };
        for y in rows {
            turn(self, inputs[0].row(y), inputs[1].row(y), blue.row(y), red.row(y));
        }
    }
}

#[autoversion(v3)]
fn turn(pass: &HuePass, blue: &[f32], red: &[f32], out_blue: &mut [f32], out_red: &mut [f32]) {
    let HuePass { cosine, sine, middle, .. } = *pass;
    for (((blue, red), out_blue), out_red) in blue.iter().zip(red).zip(out_blue).zip(out_red) {
        let (u, v) = (blue - middle, red - middle);
        *out_blue = middle + cosine * u - sine * v;
        *out_red = middle + sine * u + cosine * v;
    }
}
