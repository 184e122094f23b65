//! The kernels of SSIMULACRA 2 and their twins: what each takes, and how it is launched.
//! Never decides what is computed: that is the business of `device` and `strips`.

use bytemuck::{Pod, Zeroable};
use plimsoll_core::Fault;
use plimsoll_runtime::{Access, Buffer, Kernel, Twin};

use super::colour::colours_of_row;
use super::filter::{REACH, TAPS, WEIGHTS, blur_along, blur_down};
use super::score::Sums;
use super::terms::{Row, Spread, add_all, add_edges};
use crate::planes::Planes;
use crate::run::Run;

const READ: Access = Access::Read;
const WRITE: Access = Access::Write;

static SHRINK: Kernel = Kernel {
    name: "shrink",
    wgsl: include_str!("shrink.wgsl"),
    entry: "shrink",
    bindings: &[READ, READ, READ, WRITE, WRITE, WRITE],
    params: size_of::<ShrinkParams>(),
    twin: shrink,
};

static COLOURS: Kernel = Kernel {
    name: "colours",
    wgsl: include_str!("colours.wgsl"),
    entry: "colours",
    bindings: &[READ, READ, READ, WRITE, WRITE, WRITE],
    params: size_of::<ColoursParams>(),
    twin: colours,
};

static LEARN_ROWS: Kernel = Kernel {
    name: "learn_rows",
    wgsl: include_str!("learn_rows.wgsl"),
    entry: "learn_rows",
    bindings: &[READ, WRITE, WRITE],
    params: size_of::<BlurParams>(),
    twin: learn_rows,
};

static LEARN_COLUMNS: Kernel = Kernel {
    name: "learn_columns",
    wgsl: include_str!("learn_columns.wgsl"),
    entry: "learn_columns",
    bindings: &[READ, READ, WRITE, WRITE],
    params: size_of::<BlurParams>(),
    twin: learn_columns,
};

static COMPARE_ROWS: Kernel = Kernel {
    name: "compare_rows",
    wgsl: include_str!("compare_rows.wgsl"),
    entry: "compare_rows",
    bindings: &[READ, READ, WRITE, WRITE, WRITE],
    params: size_of::<BlurParams>(),
    twin: compare_rows,
};

static COMPARE_COLUMNS: Kernel = Kernel {
    name: "compare_columns",
    wgsl: include_str!("compare_columns.wgsl"),
    entry: "compare_columns",
    bindings: &[READ, READ, READ, READ, READ, READ, READ, WRITE],
    params: size_of::<CompareParams>(),
    twin: compare_columns,
};

#[repr(C)]
#[derive(Copy, Clone, Pod, Zeroable)]
struct ShrinkParams {
    width: u32,
    rows: u32,
    width_out: u32,
    rows_out: u32,
    first_out: u32,
    unused: [u32; 3],
}

#[repr(C)]
#[derive(Copy, Clone, Pod, Zeroable)]
struct ColoursParams {
    width: u32,
    rows: u32,
    first: u32,
    unused: u32,
}

#[repr(C)]
#[derive(Copy, Clone, Pod, Zeroable)]
struct BlurParams {
    width: u32,
    rows: u32,
    structure: u32,
    unused: u32,
    weights: [f32; 8],
}

#[repr(C)]
#[derive(Copy, Clone, Pod, Zeroable)]
struct CompareParams {
    width: u32,
    rows: u32,
    first: u32,
    count: u32,
    structure: u32,
    first_out: u32,
    unused: [u32; 2],
    weights: [f32; 8],
}

/// The pixels of a workgroup of `compare_columns` in each direction.
const TILE: [u32; 2] = [64, 32];
/// The words that such a workgroup writes.
const TILE_WORDS: u32 = 6;

/// A plane of one level, or a band of it, of which some rows count.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Area {
    pub(super) width: u32,
    pub(super) rows: u32,
    /// The first row that counts.
    pub(super) first: u32,
    /// The rows that count.
    pub(super) count: u32,
}

impl Area {
    fn tiles(self) -> [u32; 2] {
        [self.width.div_ceil(TILE[0]), self.count.div_ceil(TILE[1])]
    }

    /// Words that the sums of its terms take.
    pub(super) fn words(self) -> u32 {
        self.tiles().iter().product::<u32>() * TILE_WORDS
    }
}

/// The sums of terms from the words that [`compare`] wrote for an area.
pub(super) fn sums_of(words: &[f32]) -> Sums {
    let (tiles, _) = words.as_chunks::<{ TILE_WORDS as usize }>();
    let add = |sums: Sums, tile: &[f32; 6]| std::array::from_fn(|term| sums[term] + f64::from(tile[term]));
    tiles.iter().fold(Sums::default(), add)
}

/// Three planes that one channel's blurs go through.
pub(super) type Blurs<'a> = [&'a Buffer; 3];

/// One channel of a reference.
#[derive(Copy, Clone)]
pub(super) struct Learnt<'a> {
    pub(super) samples: &'a Buffer,
    pub(super) mean: &'a Buffer,
    /// Nothing where structure has no weight.
    pub(super) variance: Option<&'a Buffer>,
}

/// Halves planes of `width` x `rows`, both rounded up, to where row `first_out` begins.
pub(super) fn halve(
    run: &mut Run<'_>,
    [width, rows]: [u32; 2],
    from: &Planes,
    to: &Planes,
    first_out: u32,
) -> Result<(), Fault> {
    let [width_out, rows_out] = [width.div_ceil(2), rows.div_ceil(2)];
    let params = ShrinkParams { width, rows, width_out, rows_out, first_out, unused: [0; 3] };
    let ([a, b, c], [d, e, f]) = (from.each(), to.each());
    run.over(&SHRINK, &[a, b, c, d, e, f], &params, width_out, rows_out)
}

/// The colours of some rows of light, from row `first` on.
pub(super) fn colour(
    run: &mut Run<'_>,
    [width, rows]: [u32; 2],
    light: &Planes,
    first: u32,
    to: [&Buffer; 3],
) -> Result<(), Fault> {
    let ([a, b, c], [x, y, z]) = (light.each(), to);
    run.over(&COLOURS, &[a, b, c, x, y, z], &ColoursParams { width, rows, first, unused: 0 }, width, rows)
}

/// Works out the mean, and where wanted the variance, of one channel of a reference.
pub(super) fn learn(
    run: &mut Run<'_>,
    [width, rows]: [u32; 2],
    [blurred, squares, spare]: Blurs<'_>,
    learnt: Learnt<'_>,
) -> Result<(), Fault> {
    let structure = u32::from(learnt.variance.is_some());
    let params = BlurParams { width, rows, structure, unused: 0, weights: padded_weights() };
    run.over(&LEARN_ROWS, &[learnt.samples, blurred, squares], &params, width, rows)?;
    let buffers = [blurred, squares, learnt.mean, learnt.variance.unwrap_or(spare)];
    run.over(&LEARN_COLUMNS, &buffers, &params, width, rows)
}

/// Adds up the terms of one channel of a distorted image, as [`Area::words`] words from `first_out` on. `nothing` is
/// bound in place of a variance that nobody reads.
pub(super) fn compare(
    run: &mut Run<'_>,
    area: Area,
    [shift, squares, energy]: Blurs<'_>,
    (reference, nothing): (Learnt<'_>, &Buffer),
    distorted: &Buffer,
    (sums, first_out): (&Buffer, u32),
) -> Result<(), Fault> {
    let Area { width, rows, first, count } = area;
    let (structure, weights) = (u32::from(reference.variance.is_some()), padded_weights());
    let params = BlurParams { width, rows, structure, unused: 0, weights };
    run.over(&COMPARE_ROWS, &[reference.samples, distorted, shift, squares, energy], &params, width, rows)?;
    let params = CompareParams { width, rows, first, count, structure, first_out, unused: [0; 2], weights };
    let variance = reference.variance.unwrap_or(nothing);
    let buffers = [shift, squares, energy, reference.samples, distorted, reference.mean, variance, sums];
    let [across, down] = area.tiles();
    run.launch(&COMPARE_COLUMNS, &buffers, &params, [across, down, 1])
}

fn padded_weights() -> [f32; 8] {
    let mut padded = [0.0; 8];
    padded[..=REACH].copy_from_slice(&WEIGHTS);
    padded
}

fn shrink(twin: &mut Twin<'_>) {
    let params: ShrinkParams = twin.params();
    let (width, width_out) = (params.width as usize, params.width_out as usize);
    let (reads, writes) = twin.reads_and_writes();
    for (source, target) in reads.into_iter().zip(writes) {
        let target = &mut target[(params.first_out * params.width_out) as usize..];
        for (y, out) in target.chunks_exact_mut(width_out).take(params.rows_out as usize).enumerate() {
            let upper = &source[2 * y * width..][..width];
            let lower = &source[(2 * y + 1).min(params.rows as usize - 1) * width..][..width];
            for (x, out) in out.iter_mut().enumerate() {
                let (left, right) = (2 * x, (2 * x + 1).min(width - 1));
                *out = ((upper[left] + upper[right]) + (lower[left] + lower[right])) * 0.25;
            }
        }
    }
}

fn colours(twin: &mut Twin<'_>) {
    let params: ColoursParams = twin.params();
    let (first, count) = ((params.first * params.width) as usize, (params.rows * params.width) as usize);
    let (reads, writes) = twin.reads_and_writes();
    let mut writes = writes.into_iter().map(|plane| &mut plane[..count]);
    let planes = [(); 3].map(|()| writes.next().expect("three planes are written"));
    colours_of_row([0, 1, 2].map(|channel| &reads[channel][first..][..count]), planes);
}

fn learn_rows(twin: &mut Twin<'_>) {
    let params: BlurParams = twin.params();
    let (width, count) = (params.width as usize, (params.width * params.rows) as usize);
    let (reads, mut writes) = twin.reads_and_writes();
    let mut padded = Padded::new(width);
    for (y, samples) in reads[0][..count].chunks_exact(width).enumerate() {
        padded.blur(samples.iter().copied(), &mut writes[0][y * width..][..width]);
        if params.structure != 0 {
            padded.blur(samples.iter().map(|sample| sample * sample), &mut writes[1][y * width..][..width]);
        }
    }
}

fn learn_columns(twin: &mut Twin<'_>) {
    let params: BlurParams = twin.params();
    let (width, rows) = (params.width as usize, params.rows as usize);
    let (reads, mut writes) = twin.reads_and_writes();
    let zeros = vec![0.0; width];
    for y in 0..rows {
        let at = y * width..(y + 1) * width;
        blur_down(rows_around(reads[0], &zeros, y, rows), &mut writes[0][at.clone()]);
        if params.structure != 0 {
            blur_down(rows_around(reads[1], &zeros, y, rows), &mut writes[1][at.clone()]);
            let (mean, variance) = writes.split_at_mut(1);
            let pairs = variance[0][at.clone()].iter_mut().zip(&mean[0][at]);
            pairs.for_each(|(variance, mean)| *variance -= mean * mean);
        }
    }
}

fn compare_rows(twin: &mut Twin<'_>) {
    let params: BlurParams = twin.params();
    let (width, rows) = (params.width as usize, params.rows as usize);
    let (reads, mut writes) = twin.reads_and_writes();
    let mut padded = Padded::new(width);
    for at in (0..rows).map(|y| y * width..(y + 1) * width) {
        let (reference, distorted) = (&reads[0][at.clone()], &reads[1][at.clone()]);
        let differences = reference.iter().zip(distorted).map(|(reference, distorted)| reference - distorted);
        padded.blur(differences.clone(), &mut writes[0][at.clone()]);
        if params.structure != 0 {
            padded.blur(differences.map(|difference| difference * difference), &mut writes[1][at.clone()]);
            padded.blur(distorted.iter().map(|sample| sample * sample), &mut writes[2][at]);
        }
    }
}

fn compare_columns(twin: &mut Twin<'_>) {
    let params: CompareParams = twin.params();
    let (width, rows) = (params.width as usize, params.rows as usize);
    let tiles = params.width.div_ceil(TILE[0]) as usize;
    let (reads, mut writes) = twin.reads_and_writes();
    let zeros = vec![0.0; width];
    let mut smooth = [zeros.clone(), zeros.clone(), zeros.clone()];
    let mut differences = zeros.clone();
    let mut sums = vec![Sums::default(); tiles * params.count.div_ceil(TILE[1]) as usize];
    for counted in 0..params.count as usize {
        let y = params.first as usize + counted;
        for (plane, smooth) in smooth.iter_mut().enumerate().take(if params.structure == 0 { 1 } else { 3 }) {
            blur_down(rows_around(reads[plane], &zeros, y, rows), smooth);
        }
        let row = |plane: usize| &reads[plane][y * width..][..width];
        let ([reference, distorted, mean], variance) =
            ([3, 4, 5].map(row), if params.structure == 0 { &zeros[..] } else { row(6) });
        let pairs = reference.iter().zip(distorted);
        differences.iter_mut().zip(pairs).for_each(|(out, (reference, distorted))| *out = reference - distorted);
        for (tile, sums) in sums[counted / TILE[1] as usize * tiles..][..tiles].iter_mut().enumerate() {
            let at = tile * TILE[0] as usize..width.min((tile + 1) * TILE[0] as usize);
            let [shift, squares, energy] = smooth.each_ref().map(|row| &row[at.clone()]);
            let (reference, difference) = (&reference[at.clone()], &differences[at.clone()]);
            let row = Row { reference, mean: &mean[at.clone()], difference, shift };
            if params.structure == 0 {
                add_edges(row, sums);
            } else {
                add_all(row, Spread { variance: &variance[at], squares, energy }, sums);
            }
        }
    }
    let words = sums.iter().flatten().map(|&sum| sum as f32);
    writes[0][params.first_out as usize..].iter_mut().zip(words).for_each(|(out, word)| *out = word);
}

/// A row with zeros at its ends, to blur from.
struct Padded(Vec<f32>);

impl Padded {
    fn new(width: usize) -> Self {
        Self(vec![0.0; width + 2 * REACH])
    }

    fn blur(&mut self, row: impl Iterator<Item = f32>, out: &mut [f32]) {
        self.0[REACH..].iter_mut().zip(row).for_each(|(padded, value)| *padded = value);
        blur_along(&self.0, out);
    }
}

/// The nine rows around one, zeros beyond the edges.
fn rows_around<'a>(plane: &'a [f32], zeros: &'a [f32], y: usize, rows: usize) -> [&'a [f32]; TAPS] {
    std::array::from_fn(|tap| match (y + tap).checked_sub(REACH) {
        Some(row) if row < rows => &plane[row * zeros.len()..][..zeros.len()],
        _ => zeros,
    })
}
