//! The pass of `overlay`: a plane with a patch blended over a rectangle of it.
//!
//! A GPU may fuse a product and a sum; with at most four roundings of numbers up to 2, it is within 5e-7 of the twin.

use std::ops::Range;

use archmage::autoversion;
use bytemuck::{Pod, Zeroable};
use plimsoll_runtime::{Access, Kernel};

use super::patch::Patch;
use crate::frames::graph::{OnCodes, Pass, Rows, RowsMut, twin};
use crate::image::Size;

/// What becomes of a sample where a layer covers it wholly. The numbers are the kernel's.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Normal = 0,
    Multiply = 1,
    Screen = 2,
    Add = 3,
    Subtract = 4,
    Darken = 5,
    Lighten = 6,
    Difference = 7,
    Overlay = 8,
}

impl Mode {
    pub(super) const WORDS: [(&str, Self); 9] = [
        ("normal", Self::Normal),
        ("multiply", Self::Multiply),
        ("screen", Self::Screen),
        ("add", Self::Add),
        ("subtract", Self::Subtract),
        ("darken", Self::Darken),
        ("lighten", Self::Lighten),
        ("difference", Self::Difference),
        ("overlay", Self::Overlay),
    ];
}

static KERNEL: Kernel = Kernel {
    name: "overlay",
    wgsl: include_str!("overlay.wgsl"),
    entry: "overlay",
    bindings: &[Access::Read, Access::Read, Access::Write],
    params: size_of::<OverlayPass>(),
    twin: twin::<OverlayPass>,
};

/// The uniform; the WGSL says what each field means.
#[repr(C)]
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
pub(super) struct OverlayPass {
    width: u32,
    height: u32,
    left: u32,
    top: u32,
    patch_width: u32,
    patch_height: u32,
    mode: u32,
    differences: u32,
}

impl OverlayPass {
    pub(super) fn new(plane: Size, patch: &Patch, mode: Mode) -> Self {
        Self {
            width: plane.width,
            height: plane.height,
            left: patch.left,
            top: patch.top,
            patch_width: patch.size.width,
            patch_height: patch.size.height,
            mode: mode as u32,
            differences: 0,
        }
    }

    /// What the patch adds to the plane, and nothing outside it.
    pub(super) fn differences(plane: Size, patch: &Patch, mode: Mode) -> Self {
        Self { differences: 1, ..Self::new(plane, patch, mode) }
    }
}

impl Pass for OverlayPass {
    fn kernel() -> &'static Kernel {
        &KERNEL
    }

    fn output(&self) -> Size {
        Size { width: self.width, height: self.height }
    }

    fn on_codes<'a>(&self, _: &'a [f32]) -> Option<OnCodes<'a>> {
        // Differences are nought outside the patch, not what was there.
        (self.differences == 0).then(|| OnCodes::Rows(self.top..self.top + self.patch_height))
    }

    fn rows(&self, table: &[f32], rows: Range<u32>, inputs: &[Rows<'_>], outputs: &mut [RowsMut<'_>]) {
        let (patch, _) = table.as_chunks::<2>();
        for y in rows {
            let (below, out) = (inputs[0].row(y), outputs[0].row(y));
            out.copy_from_slice(below);
            if let Some(down) = y.checked_sub(self.top).filter(|down| *down < self.patch_height) {
                let width = self.patch_width as usize;
                blend(&mut out[self.left as usize..][..width], &patch[down as usize * width..][..width], self.mode);
            }
            if self.differences == 1 {
                subtract(out, below);
            }
        }
    }
}

#[autoversion(v3)]
fn subtract(out: &mut [f32], below: &[f32]) {
    for (out, below) in out.iter_mut().zip(below) {
        *out -= below;
    }
}

#[autoversion(v3)]
fn blend(below: &mut [f32], patch: &[[f32; 2]], mode: u32) {
    match mode {
        1 => each(below, patch, |below, above| below * above),
        2 => each(below, patch, |below, above| below + above - below * above),
        3 => each(below, patch, |below, above| (below + above).min(1.0)),
        4 => each(below, patch, |below, above| (below - above).max(0.0)),
        5 => each(below, patch, f32::min),
        6 => each(below, patch, f32::max),
        7 => each(below, patch, |below, above| (below - above).abs()),
        8 => each(below, patch, contrast),
        _ => each(below, patch, |_, above| above),
    }
}

/// `multiply` where it is dark, `screen` where it is light.
#[inline(always)]
fn contrast(below: f32, above: f32) -> f32 {
    if below < 0.5 { 2.0 * below * above } else { 1.0 - 2.0 * (1.0 - below) * (1.0 - above) }
}

#[inline(always)]
fn each(below: &mut [f32], patch: &[[f32; 2]], mixed: impl Fn(f32, f32) -> f32) {
    for (below, [above, cover]) in below.iter_mut().zip(patch) {
        *below += (mixed(*below, *above) - *below) * cover;
    }
}
