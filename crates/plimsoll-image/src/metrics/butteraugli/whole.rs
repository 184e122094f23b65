//! Butteraugli of an image that lies on the device whole, where its reference stays prepared.

use plimsoll_core::Fault;
use plimsoll_runtime::Buffer;

use super::kernels::halve_three;
use super::kernels::norms::{Reduction, Rows};
use super::scale::{Desk, ReferenceScale};
use super::{half_size, score};
use crate::feed::{Feed, Source};
use crate::image::{Shape, Size};
use crate::metrics::device_metric::DeviceMetric;
use crate::metrics::workload::Score;
use crate::planes::Planes;
use crate::run::Run;
use crate::transfer::Transfer;

/// The image as a whole.
#[derive(Copy, Clone)]
pub(super) struct ButteraugliWhole;

/// A reference at both resolutions.
pub(super) struct WholeReference {
    full: ReferenceScale,
    half: Option<ReferenceScale>,
}

/// Planes for images of one shape: eight of their size, and four at half the resolution. Half the resolution comes
/// first, and borrows what the full one does not need yet.
pub(super) struct WholeWork {
    feed: Feed,
    colour: Planes,
    spare: Planes,
    detail: Buffer,
    map: Buffer,
    colour_half: Planes,
    map_half: Buffer,
    reduction: Reduction,
}

impl DeviceMetric for ButteraugliWhole {
    type Work = WholeWork;
    type Reference = WholeReference;

    fn open(&self, run: &mut Run<'_>, shape: Shape) -> Result<WholeWork, Fault> {
        let pixels = shape.size.pixels();
        let pixels_half = half_size(shape.size).map_or(1, Size::pixels);
        Ok(WholeWork {
            feed: Feed::open(run, shape, Transfer::Linear)?,
            colour: Planes::open(run, pixels)?,
            spare: Planes::open(run, pixels)?,
            detail: run.allocate(pixels)?,
            map: run.allocate(pixels)?,
            colour_half: Planes::open(run, pixels_half)?,
            map_half: run.allocate(pixels_half)?,
            reduction: Reduction::open(run, pixels)?,
        })
    }

    fn prepare(&self, run: &mut Run<'_>, work: &mut WholeWork, reference: Source<'_>) -> Result<WholeReference, Fault> {
        let size = reference.shape().size;
        let full = ReferenceScale::open(run, size.pixels())?;
        Feed::open(run, reference.shape(), Transfer::Linear)?.rows(
            run,
            reference,
            0..size.height,
            full.colour.each(),
        )?;
        let half = match half_size(size) {
            None => None,
            Some(size_half) => {
                let half = ReferenceScale::open(run, size_half.pixels())?;
                halve_three::halve(run, sides(size), full.colour.each(), half.colour.each(), 0)?;
                half.prepare(run, sides(size_half), work.spare.each())?;
                Some(half)
            }
        };
        full.prepare(run, sides(size), work.spare.each())?;
        Ok(WholeReference { full, half })
    }

    fn score(
        &self,
        run: &mut Run<'_>,
        work: &mut WholeWork,
        reference: &WholeReference,
        distorted: Source<'_>,
    ) -> Result<Score, Fault> {
        let size = distorted.shape().size;
        let desk = Desk { colour: work.colour.each(), spare: work.spare.each(), detail: &work.detail, map: &work.map };
        work.feed.rows(run, distorted, 0..size.height, desk.colour)?;
        if let (Some(half), Some(size_half)) = (&reference.half, half_size(size)) {
            let desk_half = Desk { colour: work.colour_half.each(), map: &work.map_half, ..desk };
            halve_three::halve(run, sides(size), desk.colour, desk_half.colour, 0)?;
            half.compare(run, sides(size_half), desk_half)?;
        }
        reference.full.compare(run, sides(size), desk)?;
        let first_half = reference.half.as_ref().map(|_| 0);
        let rows = Rows { width: size.width, first: 0, count: size.height, first_half };
        Ok(score(size, &work.reduction.norms(run, &work.map, &work.map_half, rows)?))
    }
}

fn sides(size: Size) -> [u32; 2] {
    [size.width, size.height]
}
