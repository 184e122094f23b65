//! Where an image differs from its reference: butteraugli's distance at each pixel, to be shown.
//! Never part of a score: scores need no map.

use butteraugli::{ButteraugliParams, ButteraugliReference};

use plimsoll_core::{Bytes, Footprint};

use super::ABOUT;
use super::host::{ButteraugliHost, planes};
use crate::image::{Image, SampleKind, Shape, Size};
use crate::metrics::host_metric::HostMetric;
use crate::metrics::workload::SizesDifferError;

/// Butteraugli's distance at each pixel.
#[derive(Clone, Debug, PartialEq)]
pub struct HeatMap {
    /// Pixels in a row.
    pub width: u32,
    /// Rows.
    pub height: u32,
    /// The distance at each pixel, row by row. Differences below 1 are not visible; the largest is the score.
    pub distances: Vec<f32>,
}

impl HeatMap {
    /// The most memory that making one takes, beside the images.
    pub fn bytes_needed(size: Size) -> Bytes {
        let seen = size.at_least(ABOUT.side_min);
        let Footprint { session, task, reference } =
            ButteraugliHost.footprint(Shape { size: seen, kind: SampleKind::Linear });
        // Both images as light, where a session has one; and the map as it is cut out.
        let light = Bytes(3 * 4 * seen.pixels());
        session + task + reference + light + Bytes(4 * size.pixels())
    }
}

/// Why there is no heat map.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HeatMapError {
    /// The images are not of the same size.
    #[error(transparent)]
    SizesDiffer(#[from] SizesDifferError),
    /// The light of an image is so strong that the distance has no number.
    #[error("the light of an image is too strong to be compared")]
    TooBright,
}

/// Butteraugli's distance between two images at each pixel. Images smaller than it can compare are extended by repeating
/// their last row and column, as they are for scores.
///
/// ```
/// use plimsoll_image::metrics::heat_map;
/// use plimsoll_image::{Image, Size};
/// let size = Size { width: 20, height: 10 };
/// let grey = Image::rgb8(size, vec![100; 600])?;
/// let mut pixels = vec![100; 600];
/// pixels[3 * (5 * 20 + 7)] = 200;
/// let map = heat_map(&grey, &Image::rgb8(size, pixels)?)?;
/// assert!(map.distances[5 * 20 + 7] > map.distances[5 * 20 + 17]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`HeatMapError`] if the images cannot be compared.
pub fn heat_map(reference: &Image, distorted: &Image) -> Result<HeatMap, HeatMapError> {
    let size = reference.size();
    if size != distorted.size() {
        return Err(SizesDifferError { reference: size, distorted: distorted.size() }.into());
    }
    let seen = size.at_least(ABOUT.side_min);
    let distances = distances(&reference.at_least(ABOUT.side_min), &distorted.at_least(ABOUT.side_min))
        .ok_or(HeatMapError::TooBright)?;
    Ok(HeatMap { width: size.width, height: size.height, distances: cropped(&distances, seen, size) })
}

/// Sizes are equal and large enough and samples are finite, so the only thing to go wrong is light without measure.
fn distances(reference: &Image, distorted: &Image) -> Option<Vec<f32>> {
    let (width, height) = (reference.size().width as usize, reference.size().height as usize);
    let [reference, distorted] = [reference.linear_planes(), distorted.linear_planes()];
    let [red, green, blue] = planes(&reference);
    let params = ButteraugliParams::default();
    let prepared = ButteraugliReference::new_linear_planar(red, green, blue, width, height, width, params).ok()?;
    let [red, green, blue] = planes(&distorted);
    let mut distances = Vec::new();
    prepared.compare_linear_planar_into(red, green, blue, width, &mut distances).ok()?;
    Some(distances)
}

fn cropped(distances: &[f32], from: Size, to: Size) -> Vec<f32> {
    let rows = distances.chunks_exact(from.width as usize).take(to.height as usize);
    rows.flat_map(|row| &row[..to.width as usize]).copied().collect()
}
