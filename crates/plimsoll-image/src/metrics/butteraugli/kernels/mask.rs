//! Where differences hide: busy surroundings mask them, unless something calm is near. And how all differences at a
//! pixel become one distance.

use plimsoll_core::Fault;
use plimsoll_runtime::{Access, Buffer, Kernel, Twin};

use super::Extent;
use crate::run::Run;

static ERODE: Kernel = Kernel {
    name: "erode",
    wgsl: include_str!("erode.wgsl"),
    entry: "erode",
    bindings: &[Access::Read, Access::Write],
    params: size_of::<Extent>(),
    twin: erode,
};

static COMBINE: Kernel = Kernel {
    name: "combine",
    wgsl: include_str!("combine.wgsl"),
    entry: "combine",
    bindings: &[Access::Read, Access::Read, Access::Read, Access::Read, Access::Write],
    params: size_of::<Extent>(),
    twin: combine,
};

/// How far away calm is looked for.
pub(in super::super) const EROSION_REACH: u32 = 3;

/// How much a squared difference of activity counts.
const ACTIVITY_WEIGHT: f32 = 10.0;
/// One over the distance that counts as 1: 17.83, for a display of 80 nits.
const GLOBAL_SCALE: f32 = 1.0 / (17.83 * 0.790_799_14);
/// The curves of the mask: how much they fall, how fast, and where they begin. For detail, and for low frequencies.
const DETAIL: [f32; 3] = [2.548_594_5, 0.451_936_93, 0.829_591_75];
const LOW: [f32; 3] = [0.505_054_53, 3.874_494, 0.200_255_78];

/// What an image's activity hides: little where any of eight places around is calm.
pub(in super::super) fn erode_activity(
    run: &mut Run<'_>,
    size: [u32; 2],
    activity: &Buffer,
    mask: &Buffer,
) -> Result<(), Fault> {
    run.over(&ERODE, &[activity, mask], &Extent::of(size), size[0], size[1])
}

/// All differences of two images.
pub(in super::super) struct Differences<'a> {
    pub(in super::super) mask: &'a Buffer,
    pub(in super::super) activity: &'a Buffer,
    pub(in super::super) activity_image: &'a Buffer,
    pub(in super::super) detail: &'a Buffer,
}

impl Differences<'_> {
    /// Makes a distance of them. `low` holds the difference of low frequencies before.
    pub(in super::super) fn combine(&self, run: &mut Run<'_>, size: [u32; 2], low: &Buffer) -> Result<(), Fault> {
        let buffers = [self.mask, self.activity, self.activity_image, self.detail, low];
        run.over(&COMBINE, &buffers, &Extent::of(size), size[0], size[1])
    }
}

fn erode(twin: &mut Twin<'_>) {
    const REACH: usize = EROSION_REACH as usize;
    let params: Extent = twin.params();
    let (width, rows) = (params.width as usize, params.rows as usize);
    let (activity, mask) = twin.floats_from_to(0, 1);
    // Beyond the edges nothing is calm.
    let mut around = [(); 3].map(|()| vec![f32::INFINITY; width + 2 * REACH]);
    for (y, out) in mask.chunks_exact_mut(width).take(rows).enumerate() {
        for (row, y) in around.iter_mut().zip([y.wrapping_sub(REACH), y, y + REACH]) {
            let row = &mut row[REACH..REACH + width];
            match activity.get(y.wrapping_mul(width)..) {
                Some(from) if y < rows => row.copy_from_slice(&from[..width]),
                _ => row.fill(f32::INFINITY),
            }
        }
        let near = around.each_ref().map(|row| [0, REACH, 2 * REACH].map(|first| &row[first..first + width]));
        for (x, out) in out.iter_mut().enumerate() {
            let middle = near[1][1][x];
            let mut least = [middle, 2.0 * middle, 2.0 * middle];
            for (dy, dx) in [(0, 0), (0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1), (2, 2)] {
                least = with(least, near[dy][dx][x]);
            }
            *out = 0.45 * least[0] + 0.3 * least[1] + 0.25 * least[2];
        }
    }
}

/// The three least of four, in order.
fn with([a, b, c]: [f32; 3], value: f32) -> [f32; 3] {
    let (first, rest) = (a.min(value), a.max(value));
    let (second, rest) = (b.min(rest), b.max(rest));
    [first, second, c.min(rest)]
}

fn combine(twin: &mut Twin<'_>) {
    let count = twin.params::<Extent>().pixels();
    let (reads, mut writes) = twin.reads_and_writes();
    let planes: [&[f32]; 4] = reads.try_into().expect("four planes are read");
    let [mask, activity, activity_image, detail] = planes.map(|plane| &plane[..count]);
    for (at, low) in writes[0][..count].iter_mut().enumerate() {
        let difference = activity[at] - activity_image[at];
        let detail = detail[at] + difference * difference * ACTIVITY_WEIGHT;
        *low = (*low * shown(LOW, mask[at]) + detail * shown(DETAIL, mask[at])).sqrt();
    }
}

fn shown([fall, speed, start]: [f32; 3], mask: f32) -> f32 {
    let shown = GLOBAL_SCALE + GLOBAL_SCALE * (fall / (speed * mask + start));
    shown * shown
}
