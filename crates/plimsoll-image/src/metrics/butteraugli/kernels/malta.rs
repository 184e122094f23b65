//! The Malta filter: differences of a band count by how well they line up, along lines in sixteen directions through
//! each pixel. Squared differences of the pixel itself are added on the way.

use bytemuck::{Pod, Zeroable};
use plimsoll_core::Fault;
use plimsoll_runtime::{Access, Buffer, Kernel, Twin};

use crate::run::Run;

static FINE: Kernel = Kernel {
    name: "malta_fine",
    wgsl: include_str!("malta.wgsl"),
    entry: "malta_fine",
    bindings: &[Access::Read, Access::Read, Access::Write],
    params: size_of::<Params>(),
    twin: malta_fine,
};

static SPARSE: Kernel = Kernel {
    name: "malta_sparse",
    wgsl: include_str!("malta.wgsl"),
    entry: "malta_sparse",
    bindings: &[Access::Read, Access::Read, Access::Write],
    params: size_of::<Params>(),
    twin: malta_sparse,
};

#[repr(C)]
#[derive(Copy, Clone, Pod, Zeroable)]
struct Params {
    width: u32,
    rows: u32,
    norm: f32,
    scale: f32,
    penalty: f32,
    square: f32,
    square_beyond: f32,
    unused: u32,
}

/// How a band of frequencies is compared.
pub(in super::super) struct Band {
    /// Lines of nine or seven pixels; otherwise of five, with gaps.
    fine: bool,
    weight: f64,
    norm: f64,
    /// What a squared difference counts, and what one beyond the reference's own value counts besides.
    square: f32,
    square_beyond: f32,
}

pub(in super::super) const MIDDLE_X: Band = Band::plain(8_246.753_213_53, 1_009_002.705_82, 2150.0);
pub(in super::super) const MIDDLE_Y: Band = Band::plain(37.081_987_039_9, 130_262_059.556, 10.619_543);
pub(in super::super) const HIGH_X: Band = Band::lopsided(6_923.994_761_09, 8_051.158_332_47, 400.0);
pub(in super::super) const HIGH_Y: Band = Band::lopsided(18.723_741_438_7, 4_498_534.452_32, 1.508_157);
pub(in super::super) const FINEST_X: Band = Band::fine(173.5, 5.0);
pub(in super::super) const FINEST_Y: Band = Band::fine(1.100_390_325_55, 71.780_027_516_9);

/// How far a line reaches.
const REACH: usize = 4;

impl Band {
    const fn plain(weight: f64, norm: f64, square: f32) -> Self {
        Self { fine: false, weight, norm, square, square_beyond: 0.0 }
    }

    /// What the image has too much or too little of counts besides.
    const fn lopsided(weight: f64, norm: f64, square: f32) -> Self {
        Self { fine: false, weight, norm, square: square * 0.8, square_beyond: square * 0.8 }
    }

    const fn fine(weight: f64, norm: f64) -> Self {
        Self { fine: true, weight, norm, square: 0.0, square_beyond: 0.0 }
    }

    fn params(&self, [width, rows]: [u32; 2]) -> Params {
        let level = if self.fine { 0.399_058_176_37 } else { 0.611_612_573_796 };
        let scale = |share: f64| (level * (share * self.weight).sqrt() / 8.5 * self.norm) as f32;
        Params {
            width,
            rows,
            norm: self.norm as f32,
            scale: scale(0.5),
            penalty: scale(0.33),
            square: self.square,
            square_beyond: self.square_beyond,
            unused: 0,
        }
    }

    /// Adds how far two planes of this band are apart.
    pub(in super::super) fn add_difference(
        &self,
        run: &mut Run<'_>,
        size: [u32; 2],
        reference: &Buffer,
        image: &Buffer,
        to: &Buffer,
    ) -> Result<(), Fault> {
        let kernel = if self.fine { &FINE } else { &SPARSE };
        run.over(kernel, &[reference, image, to], &self.params(size), size[0], size[1])
    }
}

/// A line through a pixel: what its sum counts squared, and its pixels on one side; the other side mirrors them.
type Line = (f32, &'static [(isize, isize)]);

const LINES_FINE: [Line; 12] = [
    (1.0, &[(1, 0), (2, 0), (3, 0), (4, 0)]),
    (1.0, &[(0, 1), (0, 2), (0, 3), (0, 4)]),
    (1.0, &[(1, 1), (2, 2), (3, 3)]),
    (1.0, &[(-1, 1), (-2, 2), (-3, 3)]),
    (2.0, &[(0, 1), (-1, 2), (-1, 3), (-1, 4)]),
    (2.0, &[(0, 1), (1, 2), (1, 3), (1, 4)]),
    (2.0, &[(1, 0), (2, 1), (3, 1), (4, 1)]),
    (2.0, &[(1, 0), (2, -1), (3, -1), (4, -1)]),
    (1.0, &[(1, 1), (1, 2), (2, 3)]),
    (1.0, &[(-1, 1), (-1, 2), (-2, 3)]),
    (1.0, &[(1, 1), (2, 1), (3, 2)]),
    (1.0, &[(-1, 1), (-2, 1), (-3, 2)]),
];

const LINES_SPARSE: [Line; 16] = [
    (1.0, &[(2, 0), (4, 0)]),
    (1.0, &[(0, 2), (0, 4)]),
    (1.0, &[(2, 2), (3, 3)]),
    (1.0, &[(-2, 2), (-3, 3)]),
    (1.0, &[(-1, 2), (-1, 4)]),
    (1.0, &[(1, 2), (1, 4)]),
    (1.0, &[(2, 1), (4, 1)]),
    (1.0, &[(2, -1), (4, -1)]),
    (1.0, &[(1, 2), (2, 3)]),
    (1.0, &[(-1, 2), (-2, 3)]),
    (1.0, &[(2, 1), (3, 2)]),
    (1.0, &[(-2, 1), (-3, 2)]),
    (1.0, &[(2, -1), (4, -2)]),
    (1.0, &[(2, 1), (4, 2)]),
    (1.0, &[(1, 2), (2, 4)]),
    (1.0, &[(-1, 2), (-2, 4)]),
];

fn malta_fine(twin: &mut Twin<'_>) {
    malta(twin, &LINES_FINE);
}

fn malta_sparse(twin: &mut Twin<'_>) {
    malta(twin, &LINES_SPARSE);
}

/// Pixels that are summed side by side: the sums stay in registers.
const ABREAST: usize = 32;
/// Rows of differences in use at once.
const ROWS: usize = 2 * REACH + 1;

fn malta(twin: &mut Twin<'_>, lines: &[Line]) {
    let params: Params = twin.params();
    let (width, rows) = (params.width as usize, params.rows as usize);
    let (reads, mut writes) = twin.reads_and_writes();
    let row = |plane: usize, y: usize| &reads[plane][y * width..][..width];
    // Nothing lies beyond the edges. Each row ends in room for a last run of pixels.
    let mut differences: [Vec<f32>; ROWS] = std::array::from_fn(|_| vec![0.0; width + 2 * REACH + ABREAST]);
    for y in 0..rows + REACH {
        let newest = &mut differences[y % ROWS][REACH..REACH + width];
        if y < rows {
            scaled(newest, row(0, y), row(1, y), &params);
        } else {
            newest.fill(0.0);
        }
        let Some(y) = y.checked_sub(REACH) else { continue };
        let out = &mut writes[0][y * width..][..width];
        add_lines(out, lines, |dy| &differences[(y + ROWS).strict_add_signed(dy) % ROWS]);
        add_squares(out, row(0, y), row(1, y), &params);
    }
}

/// Differences in proportion to what is there; what the image has too much or too little of counts besides.
fn scaled(out: &mut [f32], reference: &[f32], image: &[f32], params: &Params) {
    for ((out, &reference), &image) in out.iter_mut().zip(reference).zip(image) {
        let share = 1.0 / (params.norm + 0.5 * (reference.abs() + image.abs()));
        let sign = 1.0_f32.copysign(reference);
        let (size, along) = (reference.abs(), image * sign);
        let beyond = (0.55 * size - along).max(0.0) - (along - 1.05 * size).max(0.0);
        *out = params.scale * share * (reference - image) + sign * (params.penalty * share * beyond);
    }
}

fn add_lines<'a>(out: &mut [f32], lines: &[Line], row: impl Fn(isize) -> &'a Vec<f32>) {
    for (run, out) in out.chunks_mut(ABREAST).enumerate() {
        let x = run * ABREAST + REACH;
        let pixels = |dx: isize, dy: isize| row(dy)[x.strict_add_signed(dx)..].first_chunk::<ABREAST>();
        let mut total = [0.0_f32; ABREAST];
        for (weight, line) in lines {
            let mut sum = *pixels(0, 0).expect("rows end in room for it");
            for &(dx, dy) in *line {
                let [one, other] = [pixels(dx, dy), pixels(-dx, -dy)].map(|run| run.expect("rows end in room for it"));
                for k in 0..ABREAST {
                    sum[k] += one[k] + other[k];
                }
            }
            for k in 0..ABREAST {
                total[k] += weight * sum[k] * sum[k];
            }
        }
        out.iter_mut().zip(total).for_each(|(out, total)| *out += total);
    }
}

fn add_squares(out: &mut [f32], reference: &[f32], image: &[f32], params: &Params) {
    if params.square == 0.0 {
        return;
    }
    for ((out, &reference), &image) in out.iter_mut().zip(reference).zip(image) {
        let (size, along) = (reference.abs(), image * 1.0_f32.copysign(reference));
        let difference = reference - image;
        let beyond = (0.4 * size - along).max(0.0) + (along - size).max(0.0);
        *out += difference * difference * params.square + beyond * beyond * params.square_beyond;
    }
}
