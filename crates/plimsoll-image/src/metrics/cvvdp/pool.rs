//! What is seen of the differences, summed up: workgroups add up 16 x 16 pixels, the host the rest in double precision.
//! Invariant: a sum that the device did not compute is an error, never a number.

use bytemuck::{Pod, Zeroable};
use plimsoll_core::Fault;
use plimsoll_runtime::{Access, Buffer, Kernel, Twin, read_floats};

use super::model::{DIFFERENCE_MAX, EPSILON, MASKED_BY};
use super::window::Window;
use crate::image::Size;
use crate::planes::Planes;
use crate::run::Run;

static POOL: Kernel = Kernel {
    name: "pool",
    wgsl: include_str!("pool.wgsl"),
    entry: "pool",
    bindings: &[Access::Read, Access::Read, Access::Read, Access::Read, Access::Read, Access::Read, Access::Write],
    params: size_of::<Params>(),
    twin: pool,
};

#[repr(C)]
#[derive(Copy, Clone, Pod, Zeroable)]
struct Params {
    width: u32,
    first: u32,
    from: u32,
    rows: u32,
    first_out: u32,
    highest: f32,
    epsilon: f32,
    unused: u32,
    masked_by: [[f32; 4]; 3],
}

/// Pixels of a workgroup in each direction.
const GROUP: usize = 16;

/// Sums of squared differences of three channels, asked for one by one and read together.
pub(super) struct Pools {
    sums: Buffer,
    ends: Vec<u32>,
}

impl Pools {
    /// Room for sums over windows of these sizes.
    pub(super) fn open(run: &mut Run<'_>, sizes: impl IntoIterator<Item = Size>) -> Result<Self, Fault> {
        let words = sizes.into_iter().map(|size| u64::from(words_of(size))).sum();
        Ok(Self { sums: run.allocate(words)?, ends: Vec::new() })
    }

    /// Forgets all sums, to begin anew.
    pub(super) fn begin(&mut self, run: &mut Run<'_>) -> Result<(), Fault> {
        self.ends.clear();
        run.backend.poison(&self.sums)
    }

    /// Asks for the sums over a window.
    pub(super) fn add(
        &mut self,
        run: &mut Run<'_>,
        window: Window,
        masks: &Planes,
        apart: [&Buffer; 3],
    ) -> Result<(), Fault> {
        let Window { size, first, from, rows } = window;
        let first_out = self.ends.last().copied().unwrap_or(0);
        let params = Params {
            width: size.width,
            first,
            from,
            rows,
            first_out,
            highest: 10.0_f32.powf(DIFFERENCE_MAX),
            epsilon: EPSILON as f32,
            unused: 0,
            masked_by: MASKED_BY.map(|[a, b, c]| [a.exp2(), b.exp2(), c.exp2(), 0.0]),
        };
        let ([a, b, c], [d, e, f]) = (masks.each(), apart);
        run.over(&POOL, &[a, b, c, d, e, f, &self.sums], &params, size.width, rows)?;
        self.ends.push(first_out + words_of(Size { height: rows, ..size }));
        Ok(())
    }

    /// The sums of each window, in the order in which they were asked for.
    pub(super) fn read(&mut self, run: &mut Run<'_>) -> Result<Vec<[f64; 3]>, Fault> {
        let words = read_floats(run.backend, &self.sums, self.ends.last().copied().unwrap_or(0) as usize)?;
        let mut first = 0;
        let sums = |&end: &u32| {
            let (groups, _) = words[first..end as usize].as_chunks::<3>();
            first = end as usize;
            std::array::from_fn(|channel| groups.iter().map(|group| f64::from(group[channel])).sum())
        };
        Ok(self.ends.iter().map(sums).collect())
    }
}

fn words_of(Size { width, height }: Size) -> u32 {
    3 * width.div_ceil(GROUP as u32) * height.div_ceil(GROUP as u32)
}

fn pool(twin: &mut Twin<'_>) {
    let params: Params = twin.params();
    let width = params.width as usize;
    let (reads, mut writes) = twin.reads_and_writes();
    let sums_in_row = 3 * width.div_ceil(GROUP);
    let sums = &mut writes[0][params.first_out as usize..];
    let mut squares = vec![0.0; width];
    for row in 0..params.rows as usize {
        let sums = &mut sums[row / GROUP * sums_in_row..][..sums_in_row];
        if row % GROUP == 0 {
            sums.fill(0.0);
        }
        let at = ((params.from - params.first) as usize + row) * width;
        let planes: [&[f32]; 6] = std::array::from_fn(|plane| &reads[plane][at..][..width]);
        let [masks, apart] = [[planes[0], planes[1], planes[2]], [planes[3], planes[4], planes[5]]];
        for (channel, apart) in apart.into_iter().enumerate() {
            square(&mut squares, &params, channel, masks, apart);
            for (sum, pixels) in sums[channel..].iter_mut().step_by(3).zip(squares.chunks(GROUP)) {
                *sum += pixels.iter().sum::<f32>();
            }
        }
    }
}

/// The squares of a row of one channel.
fn square(out: &mut [f32], params: &Params, channel: usize, masks: [&[f32]; 3], apart: &[f32]) {
    let weights = params.masked_by.map(|weights| weights[channel]);
    let values = out.iter_mut().zip(apart).zip(masks[0]).zip(masks[1]).zip(masks[2]);
    for ((((out, apart), a), b), c) in values {
        let seen = apart / (1.0 + (a * weights[0] + b * weights[1] + c * weights[2]));
        let difference = params.highest * seen / (params.highest + seen);
        *out = difference * (difference + 2.0 * params.epsilon);
    }
}
