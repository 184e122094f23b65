//! IW-SSIM with kernels in bands of rows, one scale after the other. What the device needs of the coarser scales goes
//! up again from host memory, which keeps them: a third of the luma of each image. Invariant: nothing on the device
//! grows with the height of an image.

use std::ops::Range;

use plimsoll_core::{Bytes, Fault};
use plimsoll_runtime::{Buffer, read_floats};

use super::model::{MEMBERS_MAX, Model};
use super::neighbours::{self, Family, Products, energy_to, pairs_of};
use super::pyramid::{Part, enlarge_to, reduce_to, rows_to_enlarge, rows_to_expand, rows_to_reduce, subtract_from};
use super::{PEAK, members, nothing, terms, weigh, weighted_mean};
use crate::feed::Source;
use crate::image::Shape;
use crate::kernels::total::Totals;
use crate::metrics::device_metric::DeviceMetric;
use crate::metrics::structure::device::{Comparison, Described, pixels_of, places_of};
use crate::metrics::structure::luma::{LumaFeed, StripLuma};
use crate::metrics::structure::scales::{extents, product_to_one};
use crate::metrics::structure::window::REACH;
use crate::metrics::workload::Score;
use crate::run::Run;

/// Bands of rows, one after the other in the same buffers.
#[derive(Copy, Clone)]
pub(super) struct IwssimStrips;

/// Where the luma of an image comes from.
#[derive(Copy, Clone)]
enum Luma<'a> {
    Reference(&'a StripLuma),
    Distorted(&'a LumaFeed, Source<'a>),
}

impl Luma<'_> {
    fn rows(&self, run: &mut Run<'_>, rows: Range<u32>, to: &Buffer) -> Result<(), Fault> {
        match self {
            Self::Reference(luma) => luma.rows(run, rows, to, 0),
            Self::Distorted(feed, source) => feed.rows(run, *source, rows, to, 0),
        }
    }
}

/// The coarser scales of an image before their differences are taken, in host memory; none of them while bytes are only
/// counted.
type Coarser = Vec<Vec<f32>>;

/// An image as bands of its pyramid.
struct Pyramid<'a> {
    luma: Luma<'a>,
    coarser: &'a Coarser,
    extents: &'a [[u32; 2]],
}

impl Pyramid<'_> {
    /// Rows of a scale before its difference is taken.
    fn plain_rows(&self, run: &mut Run<'_>, scale: usize, rows: &Range<u32>, to: &Buffer) -> Result<(), Fault> {
        if scale == 0 {
            return self.luma.rows(run, rows.clone(), to);
        }
        let Some(plane) = self.coarser.get(scale - 1) else { return Ok(()) };
        let width = self.extents[scale][0] as usize;
        let values = &plane[rows.start as usize * width..rows.end as usize * width];
        run.backend.write(to, Bytes::ZERO, bytemuck::cast_slice(values))
    }

    /// Rows of a scale.
    fn rows(
        &self,
        run: &mut Run<'_>,
        scale: usize,
        rows: &Range<u32>,
        to: &Buffer,
        aside: &Buffer,
    ) -> Result<(), Fault> {
        self.plain_rows(run, scale, rows, to)?;
        let Some(&coarser) = self.extents.get(scale + 1) else { return Ok(()) };
        let needed = rows_to_expand(coarser[1], rows);
        self.plain_rows(run, scale + 1, &needed, aside)?;
        let coarse = (aside, Part::from(coarser, needed.start));
        subtract_from(run, coarse, (to, Part::rows_of(self.extents[scale], rows)))
    }

    /// The parents of rows of a scale.
    fn parents(&self, run: &mut Run<'_>, scale: usize, rows: &Range<u32>, band: &Band) -> Result<(), Fault> {
        let coarser = self.extents[scale + 1];
        let needed = rows_to_enlarge(coarser[1], rows);
        self.rows(run, scale + 1, &needed, &band.coarse, &band.coarser)?;
        let coarse = (&band.coarse, Part::from(coarser, needed.start));
        enlarge_to(run, coarse, (&band.parent, Part::rows_of(self.extents[scale], rows)))
    }
}

/// Buffers for a band of the reference with what belongs to it.
struct Band {
    rows: u32,
    reference: Described,
    parent: Buffer,
    coarse: Buffer,
    coarser: Buffer,
}

impl Band {
    fn open(run: &mut Run<'_>, width: u32, rows: u32) -> Result<Self, Fault> {
        // Half as many rows, and a few on either side for filters and for what lies between pixels.
        let half = pixels_of([width.div_ceil(2), rows / 2 + 6]);
        Ok(Self {
            rows,
            reference: Described::open(run, [width, rows])?,
            parent: run.allocate(pixels_of([width, rows]))?,
            coarse: run.allocate(half)?,
            coarser: run.allocate(half)?,
        })
    }

    /// Brings rows of a scale of the reference to the device, with their parents.
    fn family(
        &self,
        run: &mut Run<'_>,
        pyramid: &Pyramid<'_>,
        scale: usize,
        rows: &Range<u32>,
    ) -> Result<Family<'_>, Fault> {
        let members = members(scale, pyramid.extents.len());
        if members == MEMBERS_MAX {
            pyramid.parents(run, scale, rows, self)?;
        }
        pyramid.rows(run, scale, rows, &self.reference.plane, &self.coarse)?;
        Ok(Family { plane: &self.reference.plane, parent: &self.parent, members })
    }

    /// The coarser scales of an image, made band by band and read back.
    fn reduce(&self, run: &mut Run<'_>, luma: Luma<'_>, extents: &[[u32; 2]], blank: bool) -> Result<Coarser, Fault> {
        let mut coarser = Coarser::new();
        let step = (self.rows - 3) / 2;
        for (scale, pair) in extents.windows(2).enumerate() {
            let [fine, coarse] = [pair[0], pair[1]];
            let mut plane = Vec::with_capacity(if blank { 0 } else { pixels_of(coarse) as usize });
            for first in (0..coarse[1]).step_by(step as usize) {
                let rows = first..coarse[1].min(first + step);
                let needed = rows_to_reduce(fine[1], &rows);
                let pyramid = Pyramid { luma, coarser: &coarser, extents };
                pyramid.plain_rows(run, scale, &needed, &self.reference.plane)?;
                run.backend.poison(&self.coarse)?;
                let from = (&self.reference.plane, Part::from(fine, needed.start));
                reduce_to(run, from, (&self.coarse, Part::rows_of(coarse, &rows)))?;
                if !blank {
                    plane.extend(read_floats(run.backend, &self.coarse, coarse[0] as usize * rows.len())?);
                }
            }
            if !blank {
                coarser.push(plane);
            }
        }
        Ok(coarser)
    }
}

pub(super) struct Work {
    feed: LumaFeed,
    bands: Bands,
}

/// The buffers that every band goes through.
struct Bands {
    band: Band,
    distorted: Buffer,
    comparison: Comparison,
    whitening: Buffer,
    energy: Buffer,
    weights: Buffer,
    weighed: Buffer,
    products: Products,
    totals: Totals,
}

pub(super) struct Reference {
    luma: StripLuma,
    coarser: Coarser,
    models: Vec<Model>,
}

impl Bands {
    fn open(run: &mut Run<'_>, extent: [u32; 2]) -> Result<Self, Fault> {
        Ok(Self {
            band: Band::open(run, extent[0], extent[1])?,
            distorted: run.allocate(pixels_of(extent))?,
            comparison: Comparison::open(run, extent)?,
            whitening: run.allocate((MEMBERS_MAX * MEMBERS_MAX) as u64)?,
            energy: run.allocate(places_of(extent))?,
            weights: run.allocate(places_of(extent))?,
            weighed: run.allocate(places_of(extent))?,
            products: Products::open(run, &[extent])?,
            totals: Totals::open(run, [places_of(extent); 2])?,
        })
    }

    /// The model of one scale of a reference.
    fn model(&mut self, run: &mut Run<'_>, pyramid: &Pyramid<'_>, scale: usize) -> Result<Model, Fault> {
        let [width, height] = pyramid.extents[scale];
        let members = members(scale, pyramid.extents.len());
        let mut sums = vec![0.0; pairs_of(members)];
        for first in (0..height - 2).step_by(self.band.rows as usize - 2) {
            let rows = first..height.min(first + self.band.rows);
            let family = self.band.family(run, pyramid, scale, &rows)?;
            self.products.begin(run)?;
            self.products.add(run, [width, rows.len() as u32], family)?;
            let of_band = self.products.read(run)?;
            sums.iter_mut().zip(of_band.iter().flatten()).for_each(|(sum, of_band)| *sum += of_band);
        }
        let count = pixels_of([width - 2, height - 2]);
        Ok(Model::new(members, &sums, count as f64, nothing(scale).into()))
    }

    /// The sums of weighed similarities and of weights over a band of one scale.
    fn sums(
        &mut self,
        run: &mut Run<'_>,
        [reference, distorted]: [&Pyramid<'_>; 2],
        (scale, model): (usize, Option<&Model>),
        rows: &Range<u32>,
    ) -> Result<[f64; 2], Fault> {
        let extent = [reference.extents[scale][0], rows.len() as u32];
        let (terms, places) = (terms(scale, reference.extents.len()), 0..places_of(extent) as u32);
        distorted.rows(run, scale, rows, &self.distorted, &self.band.coarse)?;
        let family = self.band.family(run, reference, scale, rows)?;
        let described = &self.band.reference;
        self.comparison.describe(run, extent, described, terms)?;
        self.comparison.compare(run, extent, described, &self.distorted, terms)?;
        self.totals.begin(run)?;
        let Some(model) = model else {
            self.totals.add(run, self.comparison.similarity(), places.clone())?;
            return Ok([self.totals.read(run)?.iter().sum(), f64::from(places.end)]);
        };
        energy_to(run, extent, family, &self.whitening, &self.energy)?;
        let from = [family.plane, &self.distorted, &self.energy, self.comparison.similarity()];
        let weighing = weigh::Scale::new(model, nothing(scale));
        weighing.weigh(run, extent, from, [&self.weights, &self.weighed])?;
        self.totals.add(run, &self.weighed, places.clone())?;
        self.totals.add(run, &self.weights, places)?;
        let sums = self.totals.read(run)?;
        Ok([sums[0], sums[1]])
    }

    /// The mean of one scale.
    fn mean(
        &mut self,
        run: &mut Run<'_>,
        images: [&Pyramid<'_>; 2],
        (scale, model): (usize, Option<&Model>),
    ) -> Result<f64, Fault> {
        if let Some(model) = model {
            neighbours::upload(run, model, &self.whitening)?;
        }
        let height = images[0].extents[scale][1];
        let (mut weighed, mut weights) = (0.0, 0.0);
        for first in (0..height - REACH).step_by((self.band.rows - REACH) as usize) {
            let rows = first..height.min(first + self.band.rows);
            let of_band = self.sums(run, images, (scale, model), &rows)?;
            weighed += of_band[0];
            weights += of_band[1];
        }
        Ok(weighted_mean(weighed, weights))
    }
}

impl DeviceMetric for IwssimStrips {
    type Work = Work;
    type Reference = Reference;

    fn open(&self, run: &mut Run<'_>, shape: Shape) -> Result<Work, Fault> {
        let rows = (shape.size.height - REACH).div_ceil(8).clamp(1, 64) + REACH;
        let feed = LumaFeed::open(run, shape, PEAK)?;
        Ok(Work { feed, bands: Bands::open(run, [shape.size.width, rows])? })
    }

    fn prepare(&self, run: &mut Run<'_>, work: &mut Work, reference: Source<'_>) -> Result<Reference, Fault> {
        let extents = extents(reference.shape().size);
        let luma = StripLuma::open(run, reference, PEAK)?;
        let source = Luma::Reference(&luma);
        let coarser = work.bands.band.reduce(run, source, &extents, matches!(reference, Source::Blank(_)))?;
        let pyramid = Pyramid { luma: source, coarser: &coarser, extents: &extents };
        let scales = 0..extents.len() - 1;
        let models = scales.map(|scale| work.bands.model(run, &pyramid, scale)).collect::<Result<_, _>>()?;
        Ok(Reference { luma, coarser, models })
    }

    fn score(
        &self,
        run: &mut Run<'_>,
        work: &mut Work,
        reference: &Reference,
        distorted: Source<'_>,
    ) -> Result<Score, Fault> {
        let extents = extents(distorted.shape().size);
        let Work { feed, bands } = work;
        let luma = Luma::Distorted(feed, distorted);
        let coarser = bands.band.reduce(run, luma, &extents, matches!(distorted, Source::Blank(_)))?;
        let image = Pyramid { luma, coarser: &coarser, extents: &extents };
        let luma = Luma::Reference(&reference.luma);
        let reference_image = Pyramid { luma, coarser: &reference.coarser, extents: &extents };
        let mean = |scale: usize| bands.mean(run, [&reference_image, &image], (scale, reference.models.get(scale)));
        let means: Vec<f64> = (0..extents.len()).map(mean).collect::<Result<_, _>>()?;
        Ok(Score::of(product_to_one(&means)))
    }
}
