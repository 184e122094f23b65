//! The probe kernels as workloads, so that measuring a machine takes the path that all work takes.
//! Never used to compute anything for a user.

use std::sync::Arc;

use plimsoll_core::task::SessionShape;
use plimsoll_core::{Bytes, DeviceKind, Fault, Footprint, Ladder, Place, Rung};

use super::{Blur, blur_full, blur_strip, sum, sum_bytes};
use crate::backend::Backend;
use crate::workload::{Context, Session, Workload};

/// The rung that holds the whole input on a GPU.
pub const GPU_FULL: &str = "gpu-full";
/// The rung that takes the input through a GPU in bands.
pub const GPU_STRIP: &str = "gpu-strip";
/// The rung that runs on the CPU.
pub const CPU: &str = "cpu";

/// Rows in one band of the strip rung: an eighth of the image, within reason.
fn strip_rows(height: usize) -> usize {
    (height / 8).clamp(16, 256).min(height)
}

/// An image to blur.
#[derive(Clone, Debug)]
pub struct BlurInput {
    blur: Blur,
    height: usize,
    pixels: Arc<[f32]>,
}

impl BlurInput {
    /// A blur of `width` x `height` pixels with this radius.
    ///
    /// # Errors
    /// Why such a blur cannot be done.
    pub fn new(
        width: usize,
        height: usize,
        radius: usize,
        pixels: impl Into<Arc<[f32]>>,
    ) -> Result<Self, super::blur::BlurError> {
        let (blur, pixels) = (Blur::new(width, height, radius)?, pixels.into());
        if pixels.len() != width * height {
            return Err(super::blur::BlurError::Pixels { wanted: width * height, got: pixels.len() });
        }
        Ok(Self { blur, height, pixels })
    }
}

/// A separable Gaussian blur: whole on a GPU, in bands on a GPU, on the CPU. All give the same answer.
#[derive(Copy, Clone, Debug, Default)]
pub struct BlurWork;

struct BlurSession {
    strips: bool,
}

impl Workload for BlurWork {
    type Input = BlurInput;
    type Reference = ();
    type Prepared = ();
    type Output = Vec<f32>;

    fn name(&self) -> &str {
        "probe-blur"
    }

    fn units(&self, input: &BlurInput) -> u64 {
        input.pixels.len() as u64
    }

    fn ladder(&self, input: &BlurInput) -> Ladder {
        let full = Footprint::task(input.blur.full_bytes());
        let strip = Footprint::task(input.blur.strip_bytes(strip_rows(input.height)));
        Ladder::from(vec![
            Rung::new(GPU_FULL, Place::On(DeviceKind::Gpu), full),
            Rung::new(GPU_STRIP, Place::On(DeviceKind::Gpu), strip),
            Rung::new(CPU, Place::On(DeviceKind::Cpu), full),
        ])
    }

    /// Opening compiles the kernels: one pixel goes through all of them.
    fn open(&self, rung: &Rung, _: &BlurInput, backend: &mut dyn Backend) -> Result<Box<dyn Session<Self>>, Fault> {
        let pixel = Blur::new(1, 1, 1).map_err(Fault::work)?;
        blur_full(backend, pixel, &[1.0])?;
        Ok(Box::new(BlurSession { strips: rung.name == GPU_STRIP }))
    }
}

impl Session<BlurWork> for BlurSession {
    fn run(&mut self, input: &BlurInput, context: &mut Context<'_, BlurWork>) -> Result<Vec<f32>, Fault> {
        if self.strips {
            blur_strip(context.backend, input.blur, &input.pixels, strip_rows(input.height))
        } else {
            blur_full(context.backend, input.blur, &input.pixels)
        }
    }
}

/// The sum of many numbers, on a GPU or the CPU. Both add in the same order.
#[derive(Copy, Clone, Debug, Default)]
pub struct SumWork;

struct SumSession;

impl Workload for SumWork {
    type Input = Arc<[f32]>;
    type Reference = ();
    type Prepared = ();
    type Output = f32;

    fn name(&self) -> &str {
        "probe-sum"
    }

    fn units(&self, input: &Arc<[f32]>) -> u64 {
        input.len() as u64
    }

    fn ladder(&self, input: &Arc<[f32]>) -> Ladder {
        let bytes: Bytes = sum_bytes(input.len());
        Ladder::from(vec![
            Rung::new(GPU_FULL, Place::On(DeviceKind::Gpu), Footprint::task(bytes)),
            Rung::new(CPU, Place::On(DeviceKind::Cpu), Footprint::task(bytes)),
        ])
    }

    fn shape(&self, _: &Arc<[f32]>) -> SessionShape {
        SessionShape::default()
    }

    fn open(&self, _: &Rung, _: &Arc<[f32]>, backend: &mut dyn Backend) -> Result<Box<dyn Session<Self>>, Fault> {
        sum(backend, &[1.0, 2.0])?;
        Ok(Box::new(SumSession))
    }
}

impl Session<SumWork> for SumSession {
    fn run(&mut self, input: &Arc<[f32]>, context: &mut Context<'_, SumWork>) -> Result<f32, Fault> {
        sum(context.backend, input)
    }
}
