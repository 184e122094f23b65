//! Zensim through its crate, on one thread, with the reference's colours and scales worked out once.
//! The crate goes over each scale in strips of rows; what it holds whole are the XYB planes of both images.

use plimsoll_core::{Bytes, Fault, Footprint};
use zensim::{PrecomputedReference, Zensim, ZensimProfile, ZensimScratch};

use super::PERFECT;
use super::packed::{packed, words_per_pixel};
use crate::image::{Image, SampleKind, Samples, Shape, Size};
use crate::metrics::host_metric::HostMetric;
use crate::metrics::workload::Score;

/// Rows of a strip with its surroundings, and the planes that the crate keeps of one.
const STRIP_ROWS: u64 = 16 + 2 * 5;
const STRIP_PLANES: u64 = 7;

pub(super) struct ZensimHost {
    zensim: Zensim,
}

impl Default for ZensimHost {
    /// The profile is named, not "the latest": a new release of the crate must not change old scores.
    fn default() -> Self {
        Self { zensim: Zensim::new(ZensimProfile::PreviewV0_2).with_parallel(false) }
    }
}

#[derive(Default)]
pub(super) struct Scratch {
    planes: ZensimScratch,
    packed: Vec<u32>,
}

pub(super) struct Reference {
    image: Image,
    scales: PrecomputedReference,
}

impl HostMetric for ZensimHost {
    type Reference = Reference;
    type Scratch = Scratch;

    fn footprint(&self, Shape { size, kind }: Shape) -> Footprint {
        let padded = padded_width(size);
        let plane = 4 * padded * u64::from(size.height);
        // A reference may need moving even where the images do not.
        let moved = 4 * words_per_pixel(kind).max(words_per_pixel(SampleKind::Rgb16)) * size.pixels();
        Footprint {
            session: Bytes(3 * plane + moved),
            task: Bytes(4 * padded * STRIP_ROWS * STRIP_PLANES),
            // Four scales: 1 + 1/4 + 1/16 + 1/64.
            reference: Bytes(3 * plane * 85 / 64),
        }
    }

    fn open(&self, _: Shape) -> Scratch {
        Scratch::default()
    }

    fn prepare(&self, scratch: &mut Scratch, reference: &Image) -> Result<Reference, Fault> {
        let scales = match reference.samples() {
            Samples::Linear(planes) => {
                let (width, height) = (reference.size().width as usize, reference.size().height as usize);
                let plane = |channel: usize| &planes[channel * width * height..][..width * height];
                let planes = [plane(0), plane(1), plane(2)];
                self.zensim.precompute_reference_linear_planar(planes, width, height, width)
            }
            _ => self.zensim.precompute_reference(&packed(reference, &mut scratch.packed)),
        };
        Ok(Reference { image: reference.clone(), scales: scales.map_err(|error| Fault::work(error.to_string()))? })
    }

    fn score(&self, scratch: &mut Scratch, reference: &Reference, distorted: &Image) -> Result<Score, Fault> {
        // As the crate's plain call does; sums of rounding errors need not be zero.
        if reference.image == *distorted {
            return Ok(Score::of(PERFECT));
        }
        let Scratch { planes, packed: room } = scratch;
        let result = self.zensim.compute_with_ref_into(&reference.scales, &packed(distorted, room), planes);
        Ok(Score::of(result.map_err(|error| Fault::work(error.to_string()))?.score()))
    }
}

/// Floats in a row of the crate's planes: whole vectors, and from 512 on an odd number of them.
fn padded_width(size: Size) -> u64 {
    let vectors = u64::from(size.width).div_ceil(16);
    16 * if vectors >= 32 && vectors.is_multiple_of(2) { vectors + 1 } else { vectors }
}
