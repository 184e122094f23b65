//! Half as many pixels in each direction, each the mean of four.

use bytemuck::{Pod, Zeroable};
use plimsoll_core::Fault;
use plimsoll_runtime::{Access, Buffer, Kernel, Twin};

use crate::run::Run;

static HALVE: Kernel = Kernel {
    name: "halve",
    wgsl: include_str!("halve.wgsl"),
    entry: "halve",
    bindings: &[Access::Read, Access::Write],
    params: size_of::<Params>(),
    twin: halve,
};

#[repr(C)]
#[derive(Copy, Clone, Pod, Zeroable)]
struct Params {
    width: u32,
    rows: u32,
    width_out: u32,
    rows_out: u32,
}

/// Halves a plane of `width` x `rows`. The result has `width_out` x `rows_out` pixels: half as many, rounded up or down
/// as the metric wants it; where it is rounded up, the last row or column counts twice.
pub(crate) fn halve_plane(
    run: &mut Run<'_>,
    [width, rows]: [u32; 2],
    [width_out, rows_out]: [u32; 2],
    from: &Buffer,
    to: &Buffer,
) -> Result<(), Fault> {
    let params = Params { width, rows, width_out, rows_out };
    run.over(&HALVE, &[from, to], &params, width_out, rows_out)
}

fn halve(twin: &mut Twin<'_>) {
    let params: Params = twin.params();
    let (width, width_out) = (params.width as usize, params.width_out as usize);
    let (source, target) = twin.floats_from_to(0, 1);
    for (y, out) in target.chunks_exact_mut(width_out).take(params.rows_out as usize).enumerate() {
        let upper = &source[2 * y * width..][..width];
        let lower = &source[(2 * y + 1).min(params.rows as usize - 1) * width..][..width];
        for (x, out) in out.iter_mut().enumerate() {
            let (left, right) = (2 * x, (2 * x + 1).min(width - 1));
            *out = ((upper[left] + upper[right]) + (lower[left] + lower[right])) * 0.25;
        }
    }
}
