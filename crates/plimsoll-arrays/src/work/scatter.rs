//! Steps of one level cut into chunks, as a kernel and its twin: the same bytes on every device.
//! Never cuts a chunk in two: only levels whose slabs hold whole rows of chunks are cut here. Invariant: a chunk that the
//! kernel cuts out has the bytes that packing it from the slab itself would give.

use bytemuck::{Pod, Zeroable};
use plimsoll_core::{Bytes, Fault};
use plimsoll_runtime::{Access, Backend, Buffer, Kernel, Launch, Twin};

use super::kernels::{GROUP, LEVEL_BYTES_MAX, RANK, ROW_GROUPS, padded};
use crate::copy::{Place, copy_box};
use crate::grid::Grid;
use crate::layout::Layout;

/// As the kernel has them; see there.
#[repr(C)]
#[derive(Copy, Clone, Pod, Zeroable)]
struct Params {
    steps: [u32; 4],
    chunk: [u32; 4],
    counts: [u32; 4],
    steps_last: u32,
    chunk_last: u32,
    counts_last: u32,
    width: u32,
    fill: [u32; 2],
    elements: u32,
    into: u32,
    row: u32,
    unused: [u32; 3],
}

static SCATTER: Kernel = Kernel {
    name: "array_scatter",
    wgsl: include_str!("scatter.wgsl"),
    entry: "array_scatter",
    bindings: &[Access::Read, Access::Write],
    params: size_of::<Params>(),
    twin: scatter_twin,
};

fn scatter_twin(twin: &mut Twin<'_>) {
    let params: Params = twin.params();
    let all = |first: [u32; 4], last: u32| [first[0], first[1], first[2], first[3], last].map(u64::from);
    let shape = all(params.steps, params.steps_last);
    let chunk = all(params.chunk, params.chunk_last);
    let counts = all(params.counts, params.counts_last);
    let width = params.width as usize;
    let (steps, chunks) = twin.words_from_to(0, 1);
    let steps: &[u8] = bytemuck::cast_slice(steps);
    let out = &mut bytemuck::cast_slice_mut::<u32, u8>(chunks)[4 * params.into as usize..];
    let bytes = chunk.iter().product::<u64>() as usize * width;
    let count = counts.iter().product::<u64>() as usize;
    // The kernel writes whole words.
    out[count * bytes..(count * bytes).next_multiple_of(4)].fill(0);
    for (number, out) in out[..count * bytes].chunks_exact_mut(bytes).enumerate() {
        for (at, element) in out.chunks_exact_mut(width).enumerate() {
            element.copy_from_slice(&params.fill[at % 2].to_le_bytes()[..width]);
        }
        let mut rest = number as u64;
        let mut start = [0; RANK];
        for dimension in (0..RANK).rev() {
            start[dimension] = rest % counts[dimension] * chunk[dimension];
            rest /= counts[dimension];
        }
        let extent: [u64; RANK] = std::array::from_fn(|at| shape[at].saturating_sub(start[at]).min(chunk[at]));
        let (from, into) = (Place { shape: &shape, start: &start }, Place { shape: &chunk, start: &[0; RANK] });
        copy_box(steps, from, out, into, &extent, width);
    }
}

/// Whether slabs of so many steps of the full resolution hold whole rows of a level's chunks, and the kernel can count
/// through them.
pub(super) fn is_scattered(layout: &Layout, level: usize, slab_steps: u64) -> bool {
    let level = &layout.levels()[level];
    let steps = slab_steps / level.factor[0];
    let is_whole = slab_steps.is_multiple_of(level.factor[0]) && steps > 0 && steps.is_multiple_of(level.grid.chunk[0]);
    is_whole && level.grid.rank() <= RANK && chunks_bytes(&level.grid, steps) <= LEVEL_BYTES_MAX
}

/// Bytes of so many steps as chunks: they reach over the ends of the array.
pub(super) fn chunks_bytes(grid: &Grid, steps: u64) -> u64 {
    let rows = steps.div_ceil(grid.chunk[0]);
    rows.saturating_mul(grid.chunks_in_row()).saturating_mul(grid.chunk_bytes() as u64)
}

/// Where a chunk that begins there lies among those of a slab that begins with step `first`.
pub(super) fn chunk_offset(grid: &Grid, first: u64, start: &[u64]) -> usize {
    let row = (start[0] - first) / grid.chunk[0];
    let inner = grid.chunk_counts()[1..]
        .iter()
        .zip(start[1..].iter().zip(&grid.chunk[1..]))
        .fold(0, |number, (count, (start, chunk))| number * count + start / chunk);
    (row * grid.chunks_in_row() + inner) as usize * grid.chunk_bytes()
}

/// One level's steps to be cut into chunks.
#[derive(Copy, Clone, Debug)]
pub struct ScatterStep<'a> {
    /// How the level is cut.
    pub grid: &'a Grid,
    /// How many steps there are.
    pub steps: u64,
    /// What is beyond them, as bytes of an element.
    pub fill: &'a [u8],
    /// Where the chunks begin in their buffer, in whole words.
    pub into: Bytes,
}

impl ScatterStep<'_> {
    /// Records that the steps in one buffer are cut into chunks in another.
    ///
    /// # Errors
    /// As [`Backend::launch`]; [`Fault::WorkFailed`] if there are more dimensions or bytes than the kernel counts.
    pub fn launch(&self, steps: &Buffer, chunks: &Buffer, backend: &mut dyn Backend) -> Result<(), Fault> {
        let mut params = self.params()?;
        let words = params.elements.div_ceil(4 / params.width);
        let groups = words.div_ceil(GROUP).max(1);
        let across = groups.min(ROW_GROUPS);
        params.row = across * GROUP;
        let (buffers, params) = (&[steps, chunks][..], bytemuck::bytes_of(&params));
        backend.launch(&Launch { kernel: &SCATTER, buffers, params, groups: [across, groups.div_ceil(across), 1] })
    }

    fn params(&self) -> Result<Params, Fault> {
        let Self { grid, steps, fill, into } = *self;
        if grid.rank() > RANK || chunks_bytes(grid, steps) > LEVEL_BYTES_MAX {
            return Err(Fault::work(format!("{steps} steps of {:?} are not for the kernel", grid.shape)));
        }
        // An element of eight bytes is two of four.
        let (width, halves) = if fill.len() == 8 { (4, 2) } else { (fill.len() as u32, 1) };
        let mut shape = padded(grid.shape.iter().map(|size| *size as u32), 1);
        shape[RANK - grid.rank()] = steps as u32;
        let mut chunk = padded(grid.chunk.iter().map(|size| *size as u32), 1);
        shape[RANK - 1] *= halves;
        chunk[RANK - 1] *= halves;
        let counts: [u32; RANK] = std::array::from_fn(|at| shape[at].div_ceil(chunk[at]));
        let word = |at: usize| {
            let mut word = [0; 4];
            word[..width as usize].copy_from_slice(&fill[at..at + width as usize]);
            u32::from_le_bytes(word)
        };
        let first = |all: [u32; RANK]| std::array::from_fn(|at| all[at]);
        Ok(Params {
            steps: first(shape),
            chunk: first(chunk),
            counts: first(counts),
            steps_last: shape[RANK - 1],
            chunk_last: chunk[RANK - 1],
            counts_last: counts[RANK - 1],
            width,
            fill: [word(0), word(fill.len() - width as usize)],
            elements: (chunks_bytes(grid, steps) / u64::from(width)) as u32,
            into: (into.0 / 4) as u32,
            row: 0,
            unused: [0; 3],
        })
    }
}
