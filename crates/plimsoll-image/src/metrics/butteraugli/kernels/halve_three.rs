//! Three planes with half as many pixels in each direction, each the mean of four. Unlike the kernel for one plane it
//! can begin anywhere in its target, so that bands can be halved in pieces.

use bytemuck::{Pod, Zeroable};
use plimsoll_core::Fault;
use plimsoll_runtime::{Access, Buffer, Kernel, Twin};

use crate::run::Run;

static HALVE_THREE: Kernel = Kernel {
    name: "halve_three",
    wgsl: include_str!("halve_three.wgsl"),
    entry: "halve_three",
    bindings: &[Access::Read, Access::Read, Access::Read, Access::Write, Access::Write, Access::Write],
    params: size_of::<Params>(),
    twin: halve_three,
};

#[repr(C)]
#[derive(Copy, Clone, Pod, Zeroable)]
struct Params {
    width: u32,
    rows: u32,
    width_out: u32,
    first_out: u32,
}

/// Halves planes of `width` x `rows` into rows of three others from `first_out` on. Where a side is odd, its last row or
/// column counts twice.
pub(in super::super) fn halve(
    run: &mut Run<'_>,
    [width, rows]: [u32; 2],
    from: [&Buffer; 3],
    to: [&Buffer; 3],
    first_out: u32,
) -> Result<(), Fault> {
    let params = Params { width, rows, width_out: width.div_ceil(2), first_out };
    let [[a, b, c], [d, e, f]] = [from, to];
    run.over(&HALVE_THREE, &[a, b, c, d, e, f], &params, params.width_out, rows.div_ceil(2))
}

fn halve_three(twin: &mut Twin<'_>) {
    let params: Params = twin.params();
    let (width, width_out) = (params.width as usize, params.width_out as usize);
    let (reads, writes) = twin.reads_and_writes();
    for (source, target) in reads.into_iter().zip(writes) {
        let target = &mut target[params.first_out as usize * width_out..];
        let rows_out = params.rows.div_ceil(2) as usize;
        for (y, out) in target.chunks_exact_mut(width_out).take(rows_out).enumerate() {
            let upper = &source[2 * y * width..][..width];
            let lower = &source[(2 * y + 1).min(params.rows as usize - 1) * width..][..width];
            for ((out, upper), lower) in out.iter_mut().zip(upper.chunks(2)).zip(lower.chunks(2)) {
                let (last_upper, last_lower) = (upper[upper.len() - 1], lower[lower.len() - 1]);
                *out = ((upper[0] + last_upper) + (lower[0] + last_lower)) * 0.25;
            }
        }
    }
}
