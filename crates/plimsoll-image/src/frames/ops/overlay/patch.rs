//! A layer in the terms of a picture: for each plane a rectangle of samples, and how much each covers. Made on the host
//! while planning, in `f64`.

use crate::frames::format::{Colour, Format, Matrix, Range, Yuv};
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

/// Part of a line of pixels of the picture: from the first to before the last.
type Span = (i64, i64);

/// The patch of each plane of a picture, for a layer whose first pixel lies here. `None` if nothing of what is drawn
/// lies in the picture.
pub(super) fn patches(layer: &Layer, (left, top): (i64, i64), opacity: f64, format: Format) -> Option<Vec<Patch>> {
    let inside = |first: i64, drawn: &std::ops::Range<u32>, side: u32| {
        let span = ((first + i64::from(drawn.start)).max(0), (first + i64::from(drawn.end)).min(side.into()));
        (span.0 < span.1).then_some(span)
    };
    let across = inside(left, &layer.drawn.0, format.size().width)?;
    let down = inside(top, &layer.drawn.1, format.size().height)?;
    let view = View { layer, left, top, across, down, opacity, format };
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
}

impl View<'_> {
    fn patch(&self, plane: usize) -> Patch {
        let (step_x, step_y) = match self.format.colour() {
            Colour::Yuv(yuv) if plane > 0 => yuv.sampling.steps(),
            _ => (1, 1),
        };
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
                value += alpha * coded(self.format, plane, [red, green, blue]);
                cover += alpha;
            }
        }
        let pixels = (columns.1 - columns.0) * (rows.1 - rows.0);
        let value = if cover > 0.0 { value / cover } else { 0.0 };
        [value as f32, (cover / pixels as f64 * self.opacity) as f32]
    }
}

/// What a plane of a picture holds where it has this colour. Grey pictures do not say how they were made of colours;
/// the shares of BT.709 are those of sRGB.
fn coded(format: Format, plane: usize, rgb: [f64; 3]) -> f64 {
    match format.colour() {
        Colour::Rgb => rgb[plane],
        Colour::Mono(range) => luma_code(format, range, luma(Matrix::Bt709, rgb)),
        Colour::Yuv(Yuv { matrix, range, .. }) => {
            let (light, (share_red, share_blue)) = (luma(matrix, rgb), matrix.red_and_blue());
            match plane {
                0 => luma_code(format, range, light),
                1 => chroma_code(format, range, (rgb[2] - light) / (2.0 * (1.0 - share_blue))),
                _ => chroma_code(format, range, (rgb[0] - light) / (2.0 * (1.0 - share_red))),
            }
        }
    }
}

fn luma(matrix: Matrix, [red, green, blue]: [f64; 3]) -> f64 {
    let (share_red, share_blue) = matrix.red_and_blue();
    share_red * red + (1.0 - share_red - share_blue) * green + share_blue * blue
}

/// Codes of eight bits as a share of the highest code at the format's depth.
fn share(format: Format, code: f64) -> f64 {
    code * f64::from(1_u32 << (format.depth() - 8)) / f64::from(format.code_max())
}

fn luma_code(format: Format, range: Range, value: f64) -> f64 {
    match range {
        Range::Full => value,
        Range::Limited => share(format, 16.0 + 219.0 * value),
    }
}

fn chroma_code(format: Format, range: Range, value: f64) -> f64 {
    match range {
        Range::Full => value + share(format, 128.0),
        Range::Limited => share(format, 128.0 + 224.0 * value),
    }
}
