//! From an image in memory to planes on a device: packed rows go up in chunks, and a kernel spreads them.
//! Never holds more than one chunk on the device.

use std::ops::Range;

use plimsoll_core::{Bytes, Fault};
use plimsoll_runtime::Buffer;

use crate::image::{Image, SampleKind, Samples, Shape};
use crate::kernels::unpack;
use crate::run::Run;
use crate::transfer::{self, Transfer};

/// Bytes of packed rows on the device at once: enough for an efficient copy, little beside a plane.
const CHUNK_BYTES: u64 = 2 << 20;

/// Where pixels come from.
#[derive(Copy, Clone)]
pub(crate) enum Source<'a> {
    /// An image.
    Pixels(&'a Image),
    /// No image: what counts is how much memory one of this shape would take.
    Blank(Shape),
}

impl Source<'_> {
    /// The image's shape.
    pub(crate) fn shape(&self) -> Shape {
        match self {
            Self::Pixels(image) => image.shape(),
            Self::Blank(shape) => *shape,
        }
    }
}

/// The way of images of one shape onto a device.
pub(crate) struct Feed {
    shape: Shape,
    transfer: Transfer,
    packed: Buffer,
    table: Buffer,
}

impl Feed {
    /// A way for images of this shape. `transfer` says what the planes are to hold.
    pub(crate) fn open(run: &mut Run<'_>, shape: Shape, transfer: Transfer) -> Result<Self, Fault> {
        let packed = run.allocate(words_of_rows(shape, chunk_rows(shape)))?;
        let values = table(shape.kind, transfer);
        let table = run.allocate(values.len() as u64)?;
        run.backend.write(&table, Bytes::ZERO, bytemuck::cast_slice(&values))?;
        Ok(Self { shape, transfer, packed, table })
    }

    /// Brings rows of an image of this shape to the device: red, green and blue, the first of the rows at the start of
    /// each plane.
    ///
    /// # Errors
    /// As the backend's; [`Fault::WorkFailed`] if the image is of another shape.
    pub(crate) fn rows(
        &self,
        run: &mut Run<'_>,
        source: Source<'_>,
        rows: Range<u32>,
        to: [&Buffer; 3],
    ) -> Result<(), Fault> {
        if source.shape() != self.shape {
            return Err(Fault::work(format!("an image of {:?} came where {:?} was due", source.shape(), self.shape)));
        }
        let step = chunk_rows(self.shape);
        for first in rows.clone().step_by(step as usize) {
            let chunk = first..rows.end.min(first + step);
            if let Source::Pixels(image) = source {
                let words = packed(image, self.transfer, chunk.clone());
                run.backend.write(&self.packed, Bytes::ZERO, bytemuck::cast_slice(&words))?;
            }
            let params = unpack::Params {
                width: self.shape.size.width,
                rows: chunk.len() as u32,
                first_out: first - rows.start,
                words: words_per_pixel(self.shape.kind),
            };
            let buffers = [&self.packed, &self.table, to[0], to[1], to[2]];
            run.over(&unpack::UNPACK, &buffers, &params, params.width, params.rows)?;
        }
        Ok(())
    }
}

fn words_per_pixel(kind: SampleKind) -> u32 {
    match kind {
        SampleKind::Rgb8 => 1,
        SampleKind::Rgb16 => 2,
        SampleKind::Linear => 3,
    }
}

fn words_of_rows(shape: Shape, rows: u32) -> u64 {
    u64::from(shape.size.width) * u64::from(rows) * u64::from(words_per_pixel(shape.kind))
}

fn chunk_rows(shape: Shape) -> u32 {
    let rows = CHUNK_BYTES / (words_of_rows(shape, 1) * 4);
    (rows.max(1) as u32).min(shape.size.height)
}

/// What each sample stands for; one unused word for images that are stored as floats.
fn table(kind: SampleKind, transfer: Transfer) -> Vec<f32> {
    match (kind, transfer) {
        (SampleKind::Rgb8, Transfer::Linear) => transfer::linear_of_8_bit().to_vec(),
        (SampleKind::Rgb16, Transfer::Linear) => transfer::linear_of_16_bit().to_vec(),
        (SampleKind::Rgb8, Transfer::Coded) => transfer::coded_of(1 << 8),
        (SampleKind::Rgb16, Transfer::Coded) => transfer::coded_of(1 << 16),
        (SampleKind::Linear, _) => vec![0.0],
    }
}

/// Rows of an image as the kernel takes them: see `unpack.wgsl`.
fn packed(image: &Image, transfer: Transfer, rows: Range<u32>) -> Vec<u32> {
    let width = image.size().width as usize;
    let pixels = rows.start as usize * width..rows.end as usize * width;
    match image.samples() {
        Samples::Rgb8(samples) => {
            let (all, _) = samples.as_chunks::<3>();
            all[pixels].iter().map(|&[red, green, blue]| u32::from_le_bytes([red, green, blue, 0])).collect()
        }
        Samples::Rgb16(samples) => {
            let (all, _) = samples.as_chunks::<3>();
            let pair = |&[red, green, blue]: &[u16; 3]| [u32::from(red) | u32::from(green) << 16, u32::from(blue)];
            all[pixels].iter().flat_map(pair).collect()
        }
        Samples::Linear(planes) => {
            let plane = planes.len() / 3;
            let value = |light: f32| if transfer == Transfer::Coded { transfer::coded(light) } else { light };
            pixels.flat_map(|at| [0, 1, 2].map(|channel| value(planes[channel * plane + at]).to_bits())).collect()
        }
    }
}
