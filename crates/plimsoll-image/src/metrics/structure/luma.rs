//! Luma of the coded samples (BT.601), on a device and on the CPU.
//! Never holds more than a few rows of red, green and blue.

use std::ops::Range;

use bytemuck::{Pod, Zeroable};
use plimsoll_core::Fault;
use plimsoll_runtime::{Access, Buffer, Kernel, Twin};

use crate::feed::{Feed, Source};
use crate::image::{Image, Samples, Shape};
use crate::planes::Planes;
use crate::run::Run;
use crate::transfer::{self, Transfer};

/// How much red, green and blue weigh.
const WEIGHTS: [f32; 3] = [0.299, 0.587, 0.114];

/// Pixels of red, green and blue on the device at once: 1 MiB a plane.
const CHUNK_PIXELS: u32 = 1 << 18;

static LUMA: Kernel = Kernel {
    name: "luma",
    wgsl: include_str!("luma.wgsl"),
    entry: "luma",
    bindings: &[Access::Read, Access::Read, Access::Read, Access::Write],
    params: size_of::<Params>(),
    twin: luma,
};

#[repr(C)]
#[derive(Copy, Clone, Pod, Zeroable)]
struct Params {
    width: u32,
    rows: u32,
    first_out: u32,
    peak: f32,
}

/// The way of images of one shape to luma on a device.
pub(in crate::metrics) struct LumaFeed {
    feed: Feed,
    planes: Planes,
    width: u32,
    step: u32,
    peak: f32,
}

impl LumaFeed {
    /// A way for images of this shape. White becomes `peak`.
    pub(in crate::metrics) fn open(run: &mut Run<'_>, shape: Shape, peak: f32) -> Result<Self, Fault> {
        let width = shape.size.width;
        let step = (CHUNK_PIXELS / width).clamp(1, shape.size.height);
        let feed = Feed::open(run, shape, Transfer::Coded)?;
        let planes = Planes::open(run, u64::from(width) * u64::from(step))?;
        Ok(Self { feed, planes, width, step, peak })
    }

    /// Brings the luma of some rows to a plane, from its row `first_out` on.
    pub(in crate::metrics) fn rows(
        &self,
        run: &mut Run<'_>,
        source: Source<'_>,
        rows: Range<u32>,
        to: &Buffer,
        first_out: u32,
    ) -> Result<(), Fault> {
        let [red, green, blue] = self.planes.each();
        for first in rows.clone().step_by(self.step as usize) {
            let chunk = first..rows.end.min(first + self.step);
            let (width, count) = (self.width, chunk.len() as u32);
            self.feed.rows(run, source, chunk, self.planes.each())?;
            let params = Params { width, rows: count, first_out: first_out + first - rows.start, peak: self.peak };
            run.over(&LUMA, &[red, green, blue, to], &params, width, count)?;
        }
        Ok(())
    }
}

/// A reference that stays in host memory and comes to the device as luma, some rows at a time.
pub(in crate::metrics) struct StripLuma {
    image: Option<Image>,
    shape: Shape,
    feed: LumaFeed,
}

impl StripLuma {
    /// Keeps a reference. White becomes `peak`.
    pub(in crate::metrics) fn open(run: &mut Run<'_>, reference: Source<'_>, peak: f32) -> Result<Self, Fault> {
        let shape = reference.shape();
        let image = if let Source::Pixels(image) = reference { Some(image.clone()) } else { None };
        Ok(Self { image, shape, feed: LumaFeed::open(run, shape, peak)? })
    }

    /// Brings the luma of some rows to a plane, from its row `first_out` on.
    pub(in crate::metrics) fn rows(
        &self,
        run: &mut Run<'_>,
        rows: Range<u32>,
        to: &Buffer,
        first_out: u32,
    ) -> Result<(), Fault> {
        let source = self.image.as_ref().map_or(Source::Blank(self.shape), Source::Pixels);
        self.feed.rows(run, source, rows, to, first_out)
    }
}

/// The luma of one row of an image. White becomes `peak`.
pub(in crate::metrics) fn luma_of_row(image: &Image, row: usize, peak: f32, out: &mut [f32]) {
    let first = row * out.len();
    match image.samples() {
        Samples::Rgb8(samples) => weigh_pixels(&samples.as_chunks().0[first..], peak / 255.0, f32::from, out),
        Samples::Rgb16(samples) => weigh_pixels(&samples.as_chunks().0[first..], peak / 65535.0, f32::from, out),
        Samples::Linear(planes) => {
            let plane = planes.len() / 3;
            let coded = |channel: usize, at: usize| transfer::coded(planes[channel * plane + first + at]);
            for (at, out) in out.iter_mut().enumerate() {
                *out = weigh_channels([coded(0, at), coded(1, at), coded(2, at)]) * peak;
            }
        }
    }
}

fn weigh_pixels<T: Copy>(pixels: &[[T; 3]], unit: f32, value: impl Fn(T) -> f32, out: &mut [f32]) {
    for (out, pixel) in out.iter_mut().zip(pixels) {
        *out = weigh_channels(pixel.map(&value)) * unit;
    }
}

fn weigh_channels([red, green, blue]: [f32; 3]) -> f32 {
    WEIGHTS[0] * red + WEIGHTS[1] * green + WEIGHTS[2] * blue
}

fn luma(twin: &mut Twin<'_>) {
    let params: Params = twin.params();
    let count = (params.width * params.rows) as usize;
    let first_out = (params.first_out * params.width) as usize;
    let (reads, mut writes) = twin.reads_and_writes();
    let [red, green, blue] = [0, 1, 2].map(|channel: usize| &reads[channel][..count]);
    for (at, out) in writes[0][first_out..][..count].iter_mut().enumerate() {
        *out = weigh_channels([red[at], green[at], blue[at]]) * params.peak;
    }
}
