//! IW-SSIM on the CPU: the pyramid as planes, then similarity and weights row by row.

use plimsoll_core::{Bytes, Fault, Footprint};

use super::model::Model;
use super::neighbours::{add_products, energy_row, pairs_of};
use super::pyramid::{enlarged_row, reduce_plane, subtract_plane};
use super::weigh;
use super::{PEAK, members, nothing, terms, weighted_mean};
use crate::image::{Image, Shape};
use crate::metrics::host_metric::HostMetric;
use crate::metrics::structure::luma::luma_of_row;
use crate::metrics::structure::rows::{Compare, sum_of};
use crate::metrics::structure::scales::{extents, product_to_one};
use crate::metrics::structure::still::Still;
use crate::metrics::structure::window::REACH;
use crate::metrics::workload::Score;

#[derive(Copy, Clone)]
pub(super) struct IwssimHost;

/// A reference: its pyramid with statistics, and at each scale that is weighed the model and the energy at every place.
pub(super) struct Reference {
    scales: Vec<Still>,
    weighing: Vec<(weigh::Scale, Vec<f32>)>,
}

pub(super) struct Scratch {
    extents: Vec<[u32; 2]>,
    planes: Vec<Vec<f32>>,
    compares: Vec<Compare>,
    weights: Vec<f32>,
}

fn planes_of(extents: &[[u32; 2]]) -> Vec<Vec<f32>> {
    extents.iter().map(|&[width, rows]| vec![0.0; width as usize * rows as usize]).collect()
}

/// Fills the planes of a pyramid from an image.
fn build(image: &Image, extents: &[[u32; 2]], planes: &mut [Vec<f32>]) {
    let widths: Vec<usize> = extents.iter().map(|&[width, _]| width as usize).collect();
    for (y, row) in planes[0].chunks_exact_mut(widths[0]).enumerate() {
        luma_of_row(image, y, PEAK, row);
    }
    for at in 1..planes.len() {
        let (fine, coarse) = planes.split_at_mut(at);
        reduce_plane(widths[at - 1], &fine[at - 1], &mut coarse[0]);
    }
    for at in 1..planes.len() {
        let (fine, coarse) = planes.split_at_mut(at);
        subtract_plane(widths[at - 1], &coarse[0], &mut fine[at - 1]);
    }
}

/// A scale and the one that holds its parents.
struct Family<'a> {
    width: usize,
    plane: &'a [f32],
    coarser: Option<&'a [f32]>,
}

impl<'a> Family<'a> {
    fn of(planes: &'a [Vec<f32>], extents: &[[u32; 2]], scale: usize) -> Self {
        let coarser = (members(scale, planes.len()) == 10).then(|| &planes[scale + 1][..]);
        Self { width: extents[scale][0] as usize, plane: &planes[scale], coarser }
    }

    /// Calls `each` with the three rows around each row but the outermost, the parents of the middle one, and its
    /// number.
    fn for_each_row(&self, mut each: impl FnMut([&[f32]; 3], Option<&[f32]>, usize)) {
        let mut parents = vec![0.0; self.width];
        for (above, three) in self.plane.windows(3 * self.width).step_by(self.width).enumerate() {
            let row = |at: usize| &three[at * self.width..][..self.width];
            let parents = self.coarser.map(|coarser| {
                enlarged_row(above + 1, self.width, coarser, &mut parents);
                &parents[..]
            });
            each([row(0), row(1), row(2)], parents, above + 1);
        }
    }

    fn model(&self, members: usize, nothing: f32) -> Model {
        let mut sums = vec![0.0; pairs_of(members)];
        self.for_each_row(|rows, parents, _| add_products(rows, parents, &mut sums));
        let count = (self.width - 2) * (self.plane.len() / self.width - 2);
        Model::new(members, &sums, count as f64, nothing.into())
    }

    fn energy(&self, model: &Model) -> Vec<f32> {
        let (places, rows) = (self.width - REACH as usize, self.plane.len() / self.width - REACH as usize);
        let mut energy = vec![0.0; places * rows];
        self.for_each_row(|three, parents, middle| {
            if (5..rows + 5).contains(&middle) {
                energy_row(three, parents, &model.whitening, &mut energy[(middle - 5) * places..][..places]);
            }
        });
        energy
    }
}

/// The mean similarity of one scale, weighted where there are weights.
fn mean_of_scale(
    reference: &Still,
    weighing: Option<&(weigh::Scale, Vec<f32>)>,
    distorted: &[f32],
    (compare, weights): (&mut Compare, &mut [f32]),
    width: usize,
) -> f64 {
    compare.begin();
    let (mut weighed_sum, mut weights_sum) = (0.0, 0.0);
    let weights = &mut weights[..width - REACH as usize];
    for (y, row) in distorted.chunks_exact(width).enumerate() {
        let Some(similarity) = compare.push(reference.row(y), row, |place| reference.known(place)) else { continue };
        let Some((scale, energy)) = weighing else {
            weighed_sum += sum_of(similarity);
            weights_sum += similarity.len() as f64;
            continue;
        };
        let above = y - 6;
        let three = [0, 1, 2].map(|by: usize| &distorted[(above + by) * width..][..width]);
        let three_reference = [0, 1, 2].map(|by: usize| reference.row(above + by));
        scale.weigh_row(three_reference, three, &energy[(y - REACH as usize) * weights.len()..], weights);
        weights_sum += sum_of(weights);
        weights.iter_mut().zip(similarity).for_each(|(weight, similarity)| *weight *= similarity);
        weighed_sum += sum_of(weights);
    }
    weighted_mean(weighed_sum, weights_sum)
}

impl HostMetric for IwssimHost {
    type Reference = Reference;
    type Scratch = Scratch;

    fn footprint(&self, shape: Shape) -> Footprint {
        let extents = extents(shape.size);
        let plane = |&[width, rows]: &[u32; 2]| 4 * u64::from(width) * u64::from(rows);
        let energy = |&[width, rows]: &[u32; 2]| 4 * u64::from(width - REACH) * u64::from(rows - REACH);
        let session = extents.iter().map(|extent| plane(extent) + Compare::bytes(extent[0].into())).sum();
        let weighed = &extents[..extents.len() - 1];
        let stills: u64 = extents.iter().map(|&extent| Still::bytes(extent)).sum();
        let energies: u64 = weighed.iter().map(energy).sum();
        Footprint { session: Bytes(session), task: Bytes::ZERO, reference: Bytes(stills + energies) }
    }

    fn open(&self, shape: Shape) -> Scratch {
        let extents = extents(shape.size);
        let widths = extents.iter().map(|&[width, _]| width as usize);
        let compares = widths.enumerate().map(|(at, width)| Compare::new(width, terms(at, extents.len()))).collect();
        Scratch { planes: planes_of(&extents), compares, weights: vec![0.0; shape.size.width as usize], extents }
    }

    fn prepare(&self, _: &mut Scratch, reference: &Image) -> Result<Reference, Fault> {
        let extents = extents(reference.size());
        let mut planes = planes_of(&extents);
        build(reference, &extents, &mut planes);
        let weigh = |scale: usize| {
            let family = Family::of(&planes, &extents, scale);
            let model = family.model(members(scale, extents.len()), nothing(scale));
            (weigh::Scale::new(&model, nothing(scale)), family.energy(&model))
        };
        let weighing = (0..extents.len() - 1).map(weigh).collect();
        let still = |(at, plane): (usize, Vec<f32>)| {
            Still::of_plane(extents[at][0] as usize, plane, terms(at, extents.len()).middle)
        };
        Ok(Reference { weighing, scales: planes.into_iter().enumerate().map(still).collect() })
    }

    fn score(&self, scratch: &mut Scratch, reference: &Reference, distorted: &Image) -> Result<Score, Fault> {
        let Scratch { extents, planes, compares, weights } = scratch;
        build(distorted, extents, planes);
        let means = planes.iter().zip(compares).enumerate().map(|(at, (plane, compare))| {
            let weighing = reference.weighing.get(at);
            mean_of_scale(&reference.scales[at], weighing, plane, (compare, weights), extents[at][0] as usize)
        });
        Ok(Score::of(product_to_one(&means.collect::<Vec<f64>>())))
    }
}
