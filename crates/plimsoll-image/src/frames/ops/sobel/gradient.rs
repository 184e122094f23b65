//! The pass that finds how steep a plane is.

use std::ops::Range;

use archmage::autoversion;
use bytemuck::{Pod, Zeroable};
use plimsoll_runtime::{Access, Kernel};

use crate::frames::graph::{Pass, Rows, RowsMut, twin};
use crate::frames::ops::edges::{Padded, rows_around};
use crate::image::Size;

static KERNEL: Kernel = Kernel {
    name: "gradient",
    wgsl: include_str!("gradient.wgsl"),
    entry: "gradient",
    bindings: &[Access::Read, Access::Write],
    params: size_of::<GradientPass>(),
    twin: twin::<GradientPass>,
};

/// The uniform; the WGSL says what each field means.
#[repr(C)]
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
pub(super) struct GradientPass {
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) black: f32,
    pub(super) white: f32,
}

impl Pass for GradientPass {
    fn kernel() -> &'static Kernel {
        &KERNEL
    }

    fn output(&self) -> Size {
        Size { width: self.width, height: self.height }
    }

    fn reach(&self, _: &[f32], rows: Range<u32>) -> Range<u32> {
        rows_around(rows, 1, self.height)
    }

    fn rows(&self, _: &[f32], rows: Range<u32>, inputs: &[Rows<'_>], outputs: &mut [RowsMut<'_>]) {
        let padded = Padded::new(&inputs[0], self.input(), rows.clone(), (1, 1));
        for y in rows {
            let seen = [-1, 0, 1].map(|down| padded.seen(y, (-1, down)));
            steepness(seen, [self.black, self.white], outputs[0].row(y));
        }
    }
}

/// Each row has one sample more on both sides than `out`.
#[autoversion(v4, v3)]
fn steepness([top, middle, bottom]: [&[f32]; 3], [black, white]: [f32; 2], out: &mut [f32]) {
    let count = out.len();
    let [[a, b, c], [d, _, f], [g, h, i]] =
        [top, middle, bottom].map(|row| [0, 1, 2].map(|first| &row[first..][..count]));
    for (x, out) in out.iter_mut().enumerate() {
        let across = (c[x] - a[x]) + 2.0 * (f[x] - d[x]) + (i[x] - g[x]);
        let down = (g[x] - a[x]) + 2.0 * (h[x] - b[x]) + (i[x] - c[x]);
        let steep = 0.25 * (across * across + down * down).sqrt();
        *out = (black + steep).min(white);
    }
}
