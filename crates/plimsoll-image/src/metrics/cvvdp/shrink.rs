//! The next coarser level of a pyramid.

use bytemuck::{Pod, Zeroable};
use plimsoll_core::Fault;
use plimsoll_runtime::{Access, Buffer, Kernel, Twin};

use super::model::halved;
use super::window::Window;
use crate::run::Run;

static SHRINK: Kernel = Kernel {
    name: "shrink",
    wgsl: include_str!("shrink.wgsl"),
    entry: "shrink",
    bindings: &[Access::Read, Access::Write],
    params: size_of::<Params>(),
    twin: shrink,
};

#[repr(C)]
#[derive(Copy, Clone, Pod, Zeroable)]
struct Params {
    width: u32,
    height: u32,
    first: u32,
    width_out: u32,
    from: u32,
    rows: u32,
    first_out: i32,
    near: f32,
    far: f32,
    unused: [u32; 3],
}

/// Computes rows of the next coarser level. `fine` says which of its rows the source begins with; `coarse` which rows
/// are wanted; `first_out` is the coarse row that the target begins with, below zero where the target has others before.
pub(super) fn shrink_plane(
    run: &mut Run<'_>,
    fine: Window,
    coarse: Window,
    first_out: i32,
    from: &Buffer,
    to: &Buffer,
) -> Result<(), Fault> {
    let Window { size, first, .. } = fine;
    let width_out = halved(size).width;
    // At the right edge the published model looks at the height where the width is meant. Scores follow it there.
    let [near, far] = if size.height.is_multiple_of(2) { [0.05, 0.0] } else { [0.25, 0.05] };
    let params = Params {
        width: size.width,
        height: size.height,
        first,
        width_out,
        from: coarse.from,
        rows: coarse.rows,
        first_out,
        near,
        far,
        unused: [0; 3],
    };
    run.over(&SHRINK, &[from, to], &params, width_out, coarse.rows)
}

/// Fine rows that these coarse rows are made of.
pub(super) fn reach_of(coarse: std::ops::Range<u32>, fine_height: u32) -> std::ops::Range<u32> {
    (2 * coarse.start).saturating_sub(2)..(2 * coarse.end + 1).min(fine_height)
}

fn shrink(twin: &mut Twin<'_>) {
    let params: Params = twin.params();
    let (width, width_out) = (params.width as usize, params.width_out as usize);
    let (source, target) = twin.floats_from_to(0, 1);
    // Two columns on the left reflected, two on the right empty: then no column is a special case.
    let mut padded = vec![0.0; 2 * width_out + 3];
    for y in params.from..params.from + params.rows {
        let middle = 2 * y as i32;
        let row = |down: i32| {
            let y = reflected(middle + down, params.height as i32);
            &source[(y - params.first) as usize * width..][..width]
        };
        let [upper2, upper, here, lower, lower2] = [-2, -1, 0, 1, 2].map(row);
        let column = padded[2..].iter_mut().zip(upper2).zip(upper).zip(here).zip(lower).zip(lower2);
        for (((((out, upper2), upper), here), lower), lower2) in column {
            *out = 0.05 * (upper2 + lower2) + 0.25 * (upper + lower) + 0.4 * here;
        }
        (padded[0], padded[1]) = (padded[3], padded[2]);
        padded[width + 2..].fill(0.0);
        let out = &mut target[(y as i32 - params.first_out) as usize * width_out..][..width_out];
        for (out, taps) in out.iter_mut().zip(padded.windows(5).step_by(2)) {
            *out = 0.05 * (taps[0] + taps[4]) + 0.25 * (taps[1] + taps[3]) + 0.4 * taps[2];
        }
        out[width_out - 1] += params.near * padded[width + 1] + params.far * padded[width];
    }
}

fn reflected(y: i32, height: i32) -> u32 {
    let inside = if y < 0 { -1 - y } else { y };
    (if inside >= height { 2 * height - 1 - inside } else { inside }) as u32
}
