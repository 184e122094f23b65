//! The two passes of a blur: along rows, and down columns. Each has its weights by distance as its table.

use std::ops::Range;

use bytemuck::{Pod, Zeroable};
use plimsoll_runtime::{Access, Kernel};

use super::weigh::{BLOCK, weigh_across, weigh_down};
use crate::frames::graph::{Pass, Rows, RowsMut, twin};
use crate::frames::ops::edges::{pad_into, row_seen, rows_around};
use crate::image::Size;

static ACROSS: Kernel = Kernel {
    name: "blur_across",
    wgsl: include_str!("across.wgsl"),
    entry: "blur_across",
    bindings: &[Access::Read, Access::Read, Access::Write],
    params: size_of::<AcrossPass>(),
    twin: twin::<AcrossPass>,
};

static DOWN: Kernel = Kernel {
    name: "blur_down",
    wgsl: include_str!("down.wgsl"),
    entry: "blur_down",
    bindings: &[Access::Read, Access::Read, Access::Write],
    params: size_of::<DownPass>(),
    twin: twin::<DownPass>,
};

/// Samples that a band sees at once: few enough that they stay in the first cache, though each is read many times.
const SEEN_MAX: usize = 8192;

/// The uniform of `blur_across`; the WGSL says what each field means.
#[repr(C)]
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
pub(super) struct AcrossPass {
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) reach: u32,
    pub(super) padding: u32,
}

/// The uniform of `blur_down`; the WGSL says what each field means.
#[repr(C)]
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
pub(super) struct DownPass {
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) reach: u32,
    pub(super) padding: u32,
}

impl Pass for AcrossPass {
    fn kernel() -> &'static Kernel {
        &ACROSS
    }

    fn output(&self) -> Size {
        Size { width: self.width, height: self.height }
    }

    fn rows(&self, weights: &[f32], rows: Range<u32>, inputs: &[Rows<'_>], outputs: &mut [RowsMut<'_>]) {
        let reach = self.reach as usize;
        let mut padded = Vec::with_capacity(self.width as usize + 2 * reach);
        for y in rows {
            pad_into(&mut padded, inputs[0].row(y), reach);
            weigh_across(weights, &padded, outputs[0].row(y));
        }
    }
}

impl Pass for DownPass {
    fn kernel() -> &'static Kernel {
        &DOWN
    }

    fn output(&self) -> Size {
        Size { width: self.width, height: self.height }
    }

    fn reach(&self, _: &[f32], rows: Range<u32>) -> Range<u32> {
        rows_around(rows, self.reach, self.height)
    }

    fn rows(&self, weights: &[f32], rows: Range<u32>, inputs: &[Rows<'_>], outputs: &mut [RowsMut<'_>]) {
        let (width, reach) = (self.width as usize, self.reach as i32);
        let taps = 2 * self.reach as usize + 1;
        let seen = |at: i32| inputs[0].row(row_seen(rows.start, at - reach, self.height));
        let seen: Vec<&[f32]> = (0..(rows.len() + taps - 1) as i32).map(seen).collect();
        let count = (SEEN_MAX / seen.len() / BLOCK).max(1) * BLOCK;
        for first in (0..width).step_by(count) {
            let columns = first..(first + count).min(width);
            for (y, seen) in rows.clone().zip(seen.windows(taps)) {
                weigh_down(weights, seen, columns.clone(), outputs[0].row(y));
            }
        }
    }
}
