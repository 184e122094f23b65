//! A layer in the terms of a picture: for each plane a rectangle of samples, and how much each covers. Made on the host
//! while planning, in `f64`.

use std::ops::Range;

use crate::frames::convert::Affine;
use crate::frames::format::Format;
use crate::image::Size;

use super::layer::Layer;

/// A rectangle of a plane.
#[derive(Debug, PartialEq)]
pub(super) struct Patch {
    pub(super) left: u32,
    pub(super) top: u32,
    pub(super) size: Size,
    /// For each sample what it is, and how much it covers.
    pub(super) samples: Vec<[f32; 2]>,
}

impl Patch {
    /// Its columns and rows.
    pub(super) fn covers(&self) -> (Range<u32>, Range<u32>) {
        (self.left..self.left + self.size.width, self.top..self.top + self.size.height)
    }
}

/// Part of a line of pixels of the picture: from the first to before the last.
type Span = (i64, i64);

/// The patch of each plane of a picture, for a layer whose first pixel lies here. `None` if nothing of what is drawn
/// lies in the picture.
pub(super) fn patches(layer: &Layer, (left, top): (i64, i64), opacity: f64, format: Format) -> Option<Vec<Patch>> {
    let inside = |first: i64, drawn: &Range<u32>, side: u32| {
        let span = ((first + i64::from(drawn.start)).max(0), (first + i64::from(drawn.end)).min(side.into()));
        (span.0 < span.1).then_some(span)
    };
    let across = inside(left, &layer.drawn.0, format.size().width)?;
    let down = inside(top, &layer.drawn.1, format.size().height)?;
    let view = View { layer, left, top, across, down, opacity, format, coded: Affine::from_rgb(format) };
    Some((0..format.plane_sizes().len()).map(|plane| view.patch(plane)).collect())
}

struct View<'a> {
    layer: &'a Layer,
    left: i64,
    top: i64,
    across: Span,
    down: Span,
    opacity: f64,
    format: Format,
    /// Colours as the picture's planes hold them.
    coded: Affine,
}

impl View<'_> {
    fn patch(&self, plane: usize) -> Patch {
        let (step_x, step_y) = self.format.steps(plane);
        let samples_of = |(first, end): Span, step: u32| (first as u32 / step, (end as u32).div_ceil(step));
        let ((left, right), (top, bottom)) = (samples_of(self.across, step_x), samples_of(self.down, step_y));
        let places = (top..bottom).flat_map(|y| (left..right).map(move |x| (x, y)));
        let Size { width, height } = self.format.size();
        let block = |at: u32, step: u32, side: u32| (i64::from(at * step), i64::from(((at + 1) * step).min(side)));
        let samples = places.map(|(x, y)| self.sample(plane, block(x, step_x, width), block(y, step_y, height)));
        Patch { left, top, samples: samples.collect(), size: Size { width: right - left, height: bottom - top } }
    }

    /// One sample that stands for a block of the picture's pixels: the mean of those that the layer covers, each
    /// counted as much as it covers.
    fn sample(&self, plane: usize, columns: Span, rows: Span) -> [f32; 2] {
        let (mut value, mut cover) = (0.0, 0.0);
        for y in rows.0.max(self.down.0)..rows.1.min(self.down.1) {
            for x in columns.0.max(self.across.0)..columns.1.min(self.across.1) {
                let [red, green, blue, alpha] = self.layer.pixel((x - self.left) as u32, (y - self.top) as u32);
                value += alpha * self.coded.of([red, green, blue])[plane];
                cover += alpha;
            }
        }
        let pixels = (columns.1 - columns.0) * (rows.1 - rows.0);
        let value = if cover > 0.0 { value / cover } else { 0.0 };
        [value as f32, (cover / pixels as f64 * self.opacity) as f32]
    }
}
