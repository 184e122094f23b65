//! What is drawn of a pair for people to look at: small pictures with a map of where they differ, a part of both at full
//! size where they differ most, and a map of every pixel. Never part of a score; a pair keeps its scores without it.

use std::sync::Arc;

use plimsoll_core::Fault;
use plimsoll_image::metrics::{HeatMap, heat_map};
use plimsoll_image::{Image, Size};
use plimsoll_runtime::workload;

use super::load::LoadedReference;

/// Of which pairs there are pictures and heat maps, and how large.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Pictures {
    /// The first so many pairs have them.
    pub first: usize,
    /// No side is longer. Images are made small before they are compared: a map of a large image takes longer than its
    /// score, and nobody sees the difference on a page.
    pub side_max: u32,
    /// The sides of the part that is kept pixel by pixel; none if 0.
    pub detail_side: u32,
}

/// A pair made small, to look at.
#[derive(Clone, Debug)]
pub struct Drawn {
    /// The distorted image.
    pub picture: Image,
    /// The reference.
    pub reference: Image,
    /// Where they differ.
    pub heat_map: HeatMap,
    /// Where they differ most, pixel by pixel, if that was asked for.
    pub detail: Option<Detail>,
}

/// A part of a pair, pixel by pixel.
#[derive(Clone, Debug)]
pub struct Detail {
    /// The first column of it.
    pub left: u32,
    /// The first row of it.
    pub top: u32,
    /// That part of the distorted image.
    pub picture: Image,
    /// That part of the reference.
    pub reference: Image,
}

/// The pair, and what is wanted of it.
pub(super) type ToDraw = (Arc<LoadedReference>, Image, Pictures);
pub(super) type DrawWork = workload::Function<ToDraw, Drawn>;
/// The pair whose pixels are compared.
pub(super) type ToMap = (Arc<LoadedReference>, Image);
pub(super) type MapWork = workload::Function<ToMap, HeatMap>;

pub(super) fn draw_work() -> DrawWork {
    workload::function("draw", draw)
}

/// Beside its score, a map takes a comparison's memory, which is promised first.
pub(super) fn map_work() -> MapWork {
    let map = |(reference, distorted): &ToMap| heat_map(&reference.file.image, distorted).map_err(Fault::work);
    workload::function("heat-map", map)
        .units(|(_, distorted)| distorted.size().pixels())
        .bytes(|(_, distorted)| HeatMap::bytes_needed(distorted.size()))
}

fn draw((reference, distorted, pictures): &ToDraw) -> Result<Drawn, Fault> {
    let original = reference.small.get_or_init(|| reference.file.image.shrunk(pictures.side_max));
    let picture = distorted.shrunk(pictures.side_max);
    let heat_map = heat_map(original, &picture).map_err(Fault::work)?;
    let detail = detail(&reference.file.image, distorted, &heat_map, pictures.detail_side);
    Ok(Drawn { picture, reference: original.clone(), heat_map, detail })
}

fn detail(reference: &Image, distorted: &Image, map: &HeatMap, side: u32) -> Option<Detail> {
    let (left, top) = corner(distorted.size(), map, side)?;
    let of = |image: &Image| image.part(left, top, Size { width: side, height: side });
    Some(Detail { left, top, picture: of(distorted)?, reference: of(reference)? })
}

/// Where a square of this side begins that has the largest distance in its middle, as far as the image goes.
fn corner(whole: Size, map: &HeatMap, side: u32) -> Option<(u32, u32)> {
    let hottest = map.distances.iter().enumerate().max_by(|(_, a), (_, b)| a.total_cmp(b));
    let (at, width) = (hottest.filter(|_| side > 0)?.0 as u64, u64::from(map.width));
    let first = |place: u64, small: u32, large: u32| {
        let middle = (2 * place + 1) * u64::from(large) / (2 * u64::from(small));
        (middle as u32).saturating_sub(side / 2).min(large.saturating_sub(side))
    };
    Some((first(at % width, map.width, whole.width), first(at / width, map.height, whole.height)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_detail_lies_where_the_difference_is_and_within_the_image() {
        let mut distances = vec![0.0; 50];
        distances[23] = 2.0;
        let map = HeatMap { width: 10, height: 5, distances };
        let whole = Size { width: 1000, height: 500 };
        assert_eq!(corner(whole, &map, 100), Some((300, 200)), "around 350, 250");
        assert_eq!(corner(whole, &map, 600), Some((50, 0)), "no further than the edges");
        assert_eq!(corner(whole, &map, 2000), Some((0, 0)));
        assert_eq!(corner(whole, &map, 0), None, "not asked for");
    }
}
