//! The next coarser scale: half as many rows and columns, rounded up, each pixel the mean of four. At an odd edge the
//! last row or column counts twice, as in the authors' own program. Unlike `kernels::halve` this works on some rows of
//! a plane, which bands need.

use bytemuck::{Pod, Zeroable};
use plimsoll_core::Fault;
use plimsoll_runtime::{Access, Buffer, Kernel, Twin};

use crate::run::Run;

static HALVE_ROWS: Kernel = Kernel {
    name: "halve_rows",
    wgsl: include_str!("halve.wgsl"),
    entry: "halve_rows",
    bindings: &[Access::Read, Access::Write],
    params: size_of::<Rows>(),
    twin: halve_rows,
};

static COPY_ROWS: Kernel = Kernel {
    name: "copy_rows",
    wgsl: include_str!("halve.wgsl"),
    entry: "copy_rows",
    bindings: &[Access::Read, Access::Write],
    params: size_of::<Rows>(),
    twin: copy_rows,
};

/// Which rows of a plane, and where they go.
#[repr(C)]
#[derive(Copy, Clone, Pod, Zeroable)]
pub(in crate::metrics) struct Rows {
    /// Pixels of a row.
    pub(in crate::metrics) width: u32,
    /// How many rows.
    pub(in crate::metrics) rows: u32,
    /// The first of them.
    pub(in crate::metrics) first: u32,
    /// The first row of the other plane to write.
    pub(in crate::metrics) first_out: u32,
}

impl Rows {
    /// Halves these rows.
    pub(in crate::metrics) fn halve(&self, run: &mut Run<'_>, from: &Buffer, to: &Buffer) -> Result<(), Fault> {
        run.over(&HALVE_ROWS, &[from, to], self, self.width.div_ceil(2), self.rows.div_ceil(2))
    }

    /// Copies these rows.
    pub(in crate::metrics) fn copy(&self, run: &mut Run<'_>, from: &Buffer, to: &Buffer) -> Result<(), Fault> {
        run.over(&COPY_ROWS, &[from, to], self, self.width, self.rows)
    }
}

/// Two rows into one of half their width.
pub(in crate::metrics) fn halve_two(upper: &[f32], lower: &[f32], out: &mut [f32]) {
    let ([upper_pairs, lower_pairs], rest) = ([upper, lower].map(|row| row.as_chunks::<2>().0), upper.len() % 2);
    for ((out, upper), lower) in out.iter_mut().zip(upper_pairs).zip(lower_pairs) {
        *out = ((upper[0] + upper[1]) + (lower[0] + lower[1])) * 0.25;
    }
    if let ([.., upper], [.., lower], [.., out], 1) = (upper, lower, out, rest) {
        *out = ((upper + upper) + (lower + lower)) * 0.25;
    }
}

/// A whole plane, halved.
pub(in crate::metrics) fn halve_plane(width: usize, plane: &[f32]) -> Vec<f32> {
    let (rows, width_out) = (plane.len() / width, width.div_ceil(2));
    let mut out = vec![0.0; width_out * rows.div_ceil(2)];
    for (pair, out) in plane.chunks(2 * width).zip(out.chunks_exact_mut(width_out)) {
        halve_two(&pair[..width], &pair[pair.len() - width..], out);
    }
    out
}

fn halve_rows(twin: &mut Twin<'_>) {
    let params: Rows = twin.params();
    let (width, width_out) = (params.width as usize, params.width.div_ceil(2) as usize);
    let (source, target) = twin.floats_from_to(0, 1);
    let source = &source[params.first as usize * width..][..params.rows as usize * width];
    let target = target[params.first_out as usize * width_out..].chunks_exact_mut(width_out);
    for (pair, out) in source.chunks(2 * width).zip(target) {
        halve_two(&pair[..width], &pair[pair.len() - width..], out);
    }
}

fn copy_rows(twin: &mut Twin<'_>) {
    let params: Rows = twin.params();
    let [first, first_out, count] =
        [params.first, params.first_out, params.rows].map(|rows| (rows * params.width) as usize);
    let (source, target) = twin.floats_from_to(0, 1);
    target[first_out..][..count].copy_from_slice(&source[first..][..count]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_row_and_column_count_twice_where_they_are_odd() {
        let plane = [1.0, 3.0, 10.0, 5.0, 7.0, 20.0, 2.0, 4.0, 6.0];
        assert_eq!(halve_plane(3, &plane), [4.0, 15.0, 3.0, 6.0]);
    }
}
