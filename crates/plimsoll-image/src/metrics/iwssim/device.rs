//! IW-SSIM with kernels on the image as a whole. A reference keeps its pyramid, statistics and energy on the device, so
//! that a comparison is one pyramid, one pass of similarity and weights, and one read.

use plimsoll_core::Fault;
use plimsoll_runtime::Buffer;

use super::model::{MEMBERS_MAX, Model};
use super::neighbours::{self, Family, Products, energy_to};
use super::pyramid::{Part, enlarge_to, reduce_to, subtract_from};
use super::{PEAK, members, nothing, terms, weigh, weighted_mean};
use crate::feed::Source;
use crate::image::Shape;
use crate::kernels::total::Totals;
use crate::metrics::device_metric::DeviceMetric;
use crate::metrics::structure::device::{Comparison, Described, pixels_of, places_of};
use crate::metrics::structure::luma::LumaFeed;
use crate::metrics::structure::scales::{extents, product_to_one};
use crate::metrics::workload::Score;
use crate::run::Run;

/// The image as a whole.
#[derive(Copy, Clone)]
pub(super) struct IwssimWhole;

pub(super) struct Work {
    feed: LumaFeed,
    planes: Vec<Buffer>,
    comparison: Comparison,
    weights: Buffer,
    weighed: Buffer,
    totals: Totals,
}

/// A reference: its pyramid with statistics, and at each scale that is weighed the model and the energy at every place.
pub(super) struct Reference {
    scales: Vec<Described>,
    weighing: Vec<(weigh::Scale, Buffer)>,
}

/// Makes a pyramid of the plane that lies in the first of these buffers.
fn build(run: &mut Run<'_>, extents: &[[u32; 2]], planes: &[&Buffer]) -> Result<(), Fault> {
    let part = |at: usize| (planes[at], Part::whole(extents[at]));
    (1..planes.len()).try_for_each(|at| reduce_to(run, part(at - 1), part(at)))?;
    (1..planes.len()).try_for_each(|at| subtract_from(run, part(at), part(at - 1)))
}

/// Calls `each` for every scale that is weighed, with its parents in `parent`.
fn for_each_family(
    run: &mut Run<'_>,
    extents: &[[u32; 2]],
    scales: &[Described],
    parent: &Buffer,
    mut each: impl FnMut(&mut Run<'_>, usize, Family<'_>) -> Result<(), Fault>,
) -> Result<(), Fault> {
    for at in 0..extents.len() - 1 {
        let members = members(at, extents.len());
        if members == MEMBERS_MAX {
            let coarser = (&scales[at + 1].plane, Part::whole(extents[at + 1]));
            enlarge_to(run, coarser, (parent, Part::whole(extents[at])))?;
        }
        each(run, at, Family { plane: &scales[at].plane, parent, members })?;
    }
    Ok(())
}

/// The models of all scales that are weighed, and the energy they see at every place.
fn weighing_of(
    run: &mut Run<'_>,
    extents: &[[u32; 2]],
    scales: &[Described],
) -> Result<Vec<(weigh::Scale, Buffer)>, Fault> {
    let weighed = &extents[..extents.len() - 1];
    if weighed.is_empty() {
        return Ok(Vec::new());
    }
    let parent = run.allocate(pixels_of(extents[0]))?;
    let mut products = Products::open(run, weighed)?;
    products.begin(run)?;
    for_each_family(run, extents, scales, &parent, |run, at, family| products.add(run, extents[at], family))?;
    let models: Vec<Model> = products
        .read(run)?
        .iter()
        .enumerate()
        .map(|(at, sums)| {
            let count = pixels_of(extents[at].map(|side| side - 2));
            Model::new(members(at, extents.len()), sums, count as f64, nothing(at).into())
        })
        .collect();
    let whitening = run.allocate((MEMBERS_MAX * MEMBERS_MAX) as u64)?;
    let mut weighing = Vec::new();
    for_each_family(run, extents, scales, &parent, |run, at, family| {
        let energy = run.allocate(places_of(extents[at]))?;
        neighbours::upload(run, &models[at], &whitening)?;
        energy_to(run, extents[at], family, &whitening, &energy)?;
        weighing.push((weigh::Scale::new(&models[at], nothing(at)), energy));
        Ok(())
    })?;
    Ok(weighing)
}

impl DeviceMetric for IwssimWhole {
    type Work = Work;
    type Reference = Reference;

    fn open(&self, run: &mut Run<'_>, shape: Shape) -> Result<Work, Fault> {
        let extents = extents(shape.size);
        let feed = LumaFeed::open(run, shape, PEAK)?;
        let planes = extents.iter().map(|&extent| run.allocate(pixels_of(extent))).collect::<Result<_, _>>()?;
        let comparison = Comparison::open(run, extents[0])?;
        let (weights, weighed) = (run.allocate(places_of(extents[0]))?, run.allocate(places_of(extents[0]))?);
        let totals = Totals::open(run, extents.iter().flat_map(|&extent| [places_of(extent); 2]))?;
        Ok(Work { feed, planes, comparison, weights, weighed, totals })
    }

    fn prepare(&self, run: &mut Run<'_>, work: &mut Work, reference: Source<'_>) -> Result<Reference, Fault> {
        let size = reference.shape().size;
        let extents = extents(size);
        let feed = LumaFeed::open(run, reference.shape(), PEAK)?;
        let scales: Vec<_> = extents.iter().map(|&extent| Described::open(run, extent)).collect::<Result<_, _>>()?;
        feed.rows(run, reference, 0..size.height, &scales[0].plane, 0)?;
        let planes: Vec<&Buffer> = scales.iter().map(|scale| &scale.plane).collect();
        build(run, &extents, &planes)?;
        for (at, (scale, &extent)) in scales.iter().zip(&extents).enumerate() {
            work.comparison.describe(run, extent, scale, terms(at, extents.len()))?;
        }
        let weighing = weighing_of(run, &extents, &scales)?;
        Ok(Reference { scales, weighing })
    }

    fn score(
        &self,
        run: &mut Run<'_>,
        work: &mut Work,
        reference: &Reference,
        distorted: Source<'_>,
    ) -> Result<Score, Fault> {
        let size = distorted.shape().size;
        let extents = extents(size);
        let Work { feed, planes, comparison, weights, weighed, totals } = work;
        feed.rows(run, distorted, 0..size.height, &planes[0], 0)?;
        build(run, &extents, &planes.iter().collect::<Vec<_>>())?;
        totals.begin(run)?;
        for (at, (plane, &extent)) in planes.iter().zip(&extents).enumerate() {
            let (scale, places) = (&reference.scales[at], 0..places_of(extent) as u32);
            comparison.compare(run, extent, scale, plane, terms(at, extents.len()))?;
            if let Some((weighing, energy)) = reference.weighing.get(at) {
                let from = [&scale.plane, plane, energy, comparison.similarity()];
                weighing.weigh(run, extent, from, [weights, weighed])?;
                totals.add(run, weighed, places.clone())?;
                totals.add(run, weights, places)?;
            } else {
                totals.add(run, comparison.similarity(), places)?;
            }
        }
        let mut sums = totals.read(run)?;
        sums.push(extents.last().map_or(0.0, |&extent| places_of(extent) as f64));
        let means = sums.chunks_exact(2).map(|pair| weighted_mean(pair[0], pair[1]));
        Ok(Score::of(product_to_one(&means.collect::<Vec<f64>>())))
    }
}
