//! PSNR with kernels: a plane of squared differences, and its sum.

use std::ops::Range;

use bytemuck::{Pod, Zeroable};
use plimsoll_core::Fault;
use plimsoll_runtime::{Access, Buffer, Kernel, Twin};

use super::score;
use crate::feed::{Feed, Source};
use crate::image::Shape;
use crate::kernels::total::Totals;
use crate::metrics::device_metric::DeviceMetric;
use crate::metrics::strips::StripReference;
use crate::metrics::workload::Score;
use crate::planes::Planes;
use crate::run::Run;
use crate::transfer::Transfer;

static SQUARES: Kernel = Kernel {
    name: "squares",
    wgsl: include_str!("squares.wgsl"),
    entry: "squares",
    bindings: &[Access::Read, Access::Read, Access::Read, Access::Read, Access::Read, Access::Read, Access::Write],
    params: size_of::<Params>(),
    twin: squares,
};

#[repr(C)]
#[derive(Copy, Clone, Pod, Zeroable)]
struct Params {
    width: u32,
    rows: u32,
    unused: [u32; 2],
}

/// The image as a whole.
#[derive(Copy, Clone)]
pub(super) struct PsnrWhole;

/// The buffers for images, or bands, of one shape.
pub(super) struct Work {
    feed: Feed,
    distorted: Planes,
    squares: Buffer,
    totals: Totals,
}

impl Work {
    fn open(run: &mut Run<'_>, shape: Shape, rows: u32) -> Result<Self, Fault> {
        let words = u64::from(shape.size.width) * u64::from(rows);
        Ok(Self {
            feed: Feed::open(run, shape, Transfer::Coded)?,
            distorted: Planes::open(run, words)?,
            squares: run.allocate(words)?,
            totals: Totals::open(run, [words])?,
        })
    }

    /// The sum of squared differences between rows of the image and the same rows of its reference.
    fn compare(
        &mut self,
        run: &mut Run<'_>,
        reference: &Planes,
        distorted: Source<'_>,
        rows: Range<u32>,
    ) -> Result<f64, Fault> {
        let (width, count) = (distorted.shape().size.width, rows.len() as u32);
        self.feed.rows(run, distorted, rows, self.distorted.each())?;
        let [[a, b, c], [d, e, f]] = [reference.each(), self.distorted.each()];
        let params = Params { width, rows: count, unused: [0; 2] };
        run.over(&SQUARES, &[a, b, c, d, e, f, &self.squares], &params, width, count)?;
        self.totals.begin(run)?;
        self.totals.add(run, &self.squares, 0..width * count)?;
        Ok(self.totals.read(run)?.iter().sum())
    }
}

impl DeviceMetric for PsnrWhole {
    type Work = Work;
    type Reference = Planes;

    fn open(&self, run: &mut Run<'_>, shape: Shape) -> Result<Work, Fault> {
        Work::open(run, shape, shape.size.height)
    }

    fn prepare(&self, run: &mut Run<'_>, _: &mut Work, reference: Source<'_>) -> Result<Planes, Fault> {
        let Shape { size, .. } = reference.shape();
        let feed = Feed::open(run, reference.shape(), Transfer::Coded)?;
        let planes = Planes::open(run, size.pixels())?;
        feed.rows(run, reference, 0..size.height, planes.each())?;
        Ok(planes)
    }

    fn score(
        &self,
        run: &mut Run<'_>,
        work: &mut Work,
        reference: &Planes,
        distorted: Source<'_>,
    ) -> Result<Score, Fault> {
        let size = distorted.shape().size;
        let squares = work.compare(run, reference, distorted, 0..size.height)?;
        Ok(score(size, squares))
    }
}

/// Bands of rows, one after the other in the same buffers.
#[derive(Copy, Clone)]
pub(super) struct PsnrStrips;

pub(super) struct StripWork {
    work: Work,
    reference: Planes,
    rows: u32,
}

impl DeviceMetric for PsnrStrips {
    type Work = StripWork;
    type Reference = StripReference;

    fn open(&self, run: &mut Run<'_>, shape: Shape) -> Result<StripWork, Fault> {
        let rows = shape.size.height.div_ceil(8).clamp(1, 256);
        let words = u64::from(shape.size.width) * u64::from(rows);
        Ok(StripWork { work: Work::open(run, shape, rows)?, reference: Planes::open(run, words)?, rows })
    }

    fn prepare(&self, run: &mut Run<'_>, _: &mut StripWork, reference: Source<'_>) -> Result<StripReference, Fault> {
        StripReference::open(run, reference, Transfer::Coded)
    }

    fn score(
        &self,
        run: &mut Run<'_>,
        work: &mut StripWork,
        reference: &StripReference,
        distorted: Source<'_>,
    ) -> Result<Score, Fault> {
        let size = distorted.shape().size;
        let mut squares = 0.0;
        for first in (0..size.height).step_by(work.rows as usize) {
            let rows = first..size.height.min(first + work.rows);
            reference.rows(run, rows.clone(), &work.reference)?;
            squares += work.work.compare(run, &work.reference, distorted, rows)?;
        }
        Ok(score(size, squares))
    }
}

fn squares(twin: &mut Twin<'_>) {
    let params: Params = twin.params();
    let count = (params.width * params.rows) as usize;
    let (reads, mut writes) = twin.reads_and_writes();
    let square = |at: usize, channel: usize| {
        let difference = reads[channel][at] - reads[channel + 3][at];
        difference * difference
    };
    for (at, out) in writes[0][..count].iter_mut().enumerate() {
        *out = square(at, 0) + square(at, 1) + square(at, 2);
    }
}
