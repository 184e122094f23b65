//! The pass that adds differences to a plane, within a rectangle of it: what lies outside stays as it is, to the bit.

use std::ops::Range;

use archmage::autoversion;
use bytemuck::{Pod, Zeroable};
use plimsoll_runtime::{Access, Kernel};

use crate::frames::graph::{Pass, Rows, RowsMut, twin};
use crate::image::Size;

static KERNEL: Kernel = Kernel {
    name: "add",
    wgsl: include_str!("add.wgsl"),
    entry: "add",
    bindings: &[Access::Read, Access::Read, Access::Write],
    params: size_of::<AddPass>(),
    twin: twin::<AddPass>,
};

/// The uniform; the WGSL says what each field means.
#[repr(C)]
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
pub(super) struct AddPass {
    width: u32,
    height: u32,
    left: u32,
    top: u32,
    patch_width: u32,
    patch_height: u32,
    padding: [u32; 2],
}

impl AddPass {
    /// Within these columns and rows of a plane.
    pub(super) fn new(plane: Size, columns: Range<u32>, rows: Range<u32>) -> Self {
        Self {
            width: plane.width,
            height: plane.height,
            left: columns.start,
            top: rows.start,
            patch_width: columns.end - columns.start,
            patch_height: rows.end - rows.start,
            padding: [0; 2],
        }
    }
}

impl Pass for AddPass {
    const INPUTS: usize = 2;

    fn kernel() -> &'static Kernel {
        &KERNEL
    }

    fn output(&self) -> Size {
        Size { width: self.width, height: self.height }
    }

    fn rows(&self, _: &[f32], rows: Range<u32>, inputs: &[Rows<'_>], outputs: &mut [RowsMut<'_>]) {
        let columns = self.left as usize..(self.left + self.patch_width) as usize;
        for y in rows {
            let out = outputs[0].row(y);
            out.copy_from_slice(inputs[0].row(y));
            if (self.top..self.top + self.patch_height).contains(&y) {
                add(&mut out[columns.clone()], &inputs[1].row(y)[columns.clone()]);
            }
        }
    }
}

#[autoversion(v3)]
fn add(out: &mut [f32], differences: &[f32]) {
    for (out, difference) in out.iter_mut().zip(differences) {
        *out += difference;
    }
}
