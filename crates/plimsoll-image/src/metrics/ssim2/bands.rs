//! How the levels of an image are cut into bands of rows. Never touches a pixel.
//!
//! Three levels share a band, so that its rows are brought up once for all three: the image itself and its next two
//! halvings first, then the three small ones, whose light is made from the image chunk by chunk.
//!
//! Invariant: over all bands, every row of every level counts exactly once, and has all the rows that its blur reaches.

use std::ops::Range;

use super::filter::REACH;
use super::kernels::Area;
use super::score::Level;

/// Levels that share a band.
pub(super) const SHARING: usize = 3;
/// Pixels of a band's largest level that count. With 16 more rows on either side, and the planes of both images, this
/// keeps a band of a 4096 pixels wide image within 40 MiB.
const PIXELS: u32 = 96 * 4096;
/// Rows that count in a band, at least.
const ROWS_MIN: u32 = 32;
/// What a band's first row is a multiple of, so that it is the first of a row of each level that shares the band.
const ALIGNMENT: u32 = 1 << (SHARING - 1);
/// Rows of the largest level beyond those that count, so that the smallest has as many as its blur reaches.
const HALO: u32 = (REACH as u32) << (SHARING - 1);

/// Levels that share their bands.
#[derive(Clone, Debug)]
pub(super) struct Group {
    /// Where among all levels.
    pub(super) levels: Range<usize>,
    /// Rows of the first of them.
    height: u32,
    /// Rows of the first of them that count in a band, the last band aside.
    step: u32,
}

/// A band of rows: which rows of a group's first level count.
#[derive(Copy, Clone, Debug)]
pub(super) struct Band {
    first: u32,
    end: u32,
    height: u32,
}

/// The part of a band at one of its levels.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// Rows of light that the band has at this level.
    pub(super) light: u32,
    /// The row of that light where the area begins.
    pub(super) first: u32,
    /// The rows to compare, with those around them.
    pub(super) area: Area,
}

/// The groups of an image's levels.
pub(super) fn groups(levels: &[Level]) -> Vec<Group> {
    let group = |first: usize| {
        let size = levels[first].size;
        let step = (PIXELS / size.width).max(ROWS_MIN).min(size.height).next_multiple_of(ALIGNMENT);
        Group { levels: first..levels.len().min(first + SHARING), height: size.height, step }
    };
    (0..levels.len()).step_by(SHARING).map(group).collect()
}

impl Group {
    /// Its bands, from top to bottom.
    pub(super) fn bands(&self) -> impl Iterator<Item = Band> {
        let (height, step) = (self.height, self.step);
        (0..height).step_by(step as usize).map(move |first| Band { first, end: height.min(first + step), height })
    }

    /// A band that is as large as any of its bands, at each of its levels.
    pub(super) fn largest(&self, levels: &[Level]) -> Vec<Part> {
        let parts = |band: Band| self.levels.clone().map(move |at| band.part(at - self.levels.start, &levels[at]));
        let larger = |a: Part, b: Part| Part {
            light: a.light.max(b.light),
            first: 0,
            area: Area {
                width: a.area.width,
                rows: a.area.rows.max(b.area.rows),
                first: 0,
                count: a.area.count.max(b.area.count),
            },
        };
        let all = self.bands().map(|band| parts(band).collect::<Vec<_>>());
        all.reduce(|a, b| a.into_iter().zip(b).map(|(a, b)| larger(a, b)).collect()).unwrap_or_default()
    }
}

impl Band {
    /// The rows of the group's first level that it needs.
    pub(super) fn rows(&self) -> Range<u32> {
        self.first.saturating_sub(HALO)..self.height.min(self.end + HALO)
    }

    /// Its part at a level that was halved `halvings` times from the group's first.
    pub(super) fn part(&self, halvings: usize, level: &Level) -> Part {
        let (height, reach) = (level.size.height, REACH as u32);
        let (first, end) = (self.first >> halvings, self.end.div_ceil(1 << halvings));
        let rows = first.saturating_sub(reach)..height.min(end + reach);
        let light = self.rows().start >> halvings..self.rows().end.div_ceil(1 << halvings);
        Part {
            light: light.len() as u32,
            first: rows.start - light.start,
            area: Area {
                width: level.size.width,
                rows: rows.len() as u32,
                first: first - rows.start,
                count: end - first,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::score::levels;
    use super::*;
    use crate::image::Size;

    #[test]
    fn every_row_counts_once_and_has_its_neighbours() {
        for (width, height) in [(8, 8), (17, 31), (300, 257), (9000, 1001), (12_289, 4097), (64, 20_000)] {
            let levels = levels(Size { width, height });
            for group in groups(&levels) {
                for at in group.levels.clone() {
                    let (level, mut next) = (&levels[at], 0);
                    for band in group.bands() {
                        let Part { light, first, area } = band.part(at - group.levels.start, level);
                        let begin = (band.rows().start >> (at - group.levels.start)) + first;
                        assert_eq!(begin + area.first, next, "rows are left out or counted twice");
                        next += area.count;
                        assert!(first + area.rows <= light, "the area has all its light");
                        assert!(area.first >= REACH as u32 || begin == 0, "rows above are missing");
                        let below = area.rows - area.first - area.count;
                        assert!(below >= REACH as u32 || begin + area.rows == level.size.height, "and below");
                    }
                    assert_eq!(next, level.size.height);
                }
            }
        }
    }
}
