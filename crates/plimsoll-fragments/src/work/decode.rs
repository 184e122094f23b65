//! Weights from the levels that lie on a device: to host memory, or as a value that stays there.

use std::sync::{Arc, Weak};

use plimsoll_core::{DeviceKind, Fault, Footprint, Ladder, Place, Rung};
use plimsoll_runtime::{Backend, Buffer, Context, Session, Value, Workload, read_floats};

use super::kernels;
use crate::quant::Bits;

/// A piece whose levels lie on a device.
#[derive(Clone, Debug)]
pub struct DecodeInput {
    /// The levels that are there, coarsest first. Whoever asks holds them: a task that is over may be kept for a while, and
    /// must not keep their bytes.
    pub levels: Vec<Weak<Buffer>>,
    /// Bits of all levels of the model.
    pub bits: Bits,
    /// Weights of the piece.
    pub weights: usize,
    /// Whether the weights stay on the device, as a value.
    pub keeps: bool,
}

/// The weights of a piece.
#[derive(Debug)]
pub enum Decoded {
    /// In host memory.
    Host(Vec<f32>),
    /// On the device: 32-bit floats in one buffer.
    Kept(Value),
}

/// Decodes levels where they lie.
#[derive(Debug)]
pub struct DecodeWork;

impl Workload for DecodeWork {
    type Input = DecodeInput;
    type Reference = ();
    type Prepared = ();
    type Output = Decoded;

    fn name(&self) -> &str {
        "fragments-decode"
    }

    fn units(&self, input: &DecodeInput) -> u64 {
        input.weights as u64
    }

    fn ladder(&self, input: &DecodeInput) -> Ladder {
        let bytes = kernels::result_bytes(input.weights);
        let rung = |name, kind| {
            let rung = Rung::new(name, Place::On(kind), Footprint::task(bytes));
            if input.keeps { Rung::new(name, Place::On(kind), Footprint::default()).with_value(bytes) } else { rung }
        };
        Ladder::from(vec![rung("gpu", DeviceKind::Gpu), rung("cpu", DeviceKind::Cpu)])
    }

    fn open(&self, _: &Rung, _: &DecodeInput, _: &mut dyn Backend) -> Result<Box<dyn Session<Self>>, Fault> {
        Ok(Box::new(DecodeSession))
    }
}

struct DecodeSession;

impl Session<DecodeWork> for DecodeSession {
    fn run(&mut self, input: &DecodeInput, context: &mut Context<'_, DecodeWork>) -> Result<Decoded, Fault> {
        let result = context.backend.allocate(kernels::result_bytes(input.weights))?;
        let held: Option<Vec<Arc<Buffer>>> = input.levels.iter().map(Weak::upgrade).collect();
        let held = held.ok_or_else(|| Fault::work("the levels were dropped before they were decoded"))?;
        let levels: Vec<&Buffer> = held.iter().map(|level| &**level).collect();
        kernels::decode(context.backend, &levels, &input.bits, input.weights, &result)?;
        if input.keeps {
            return context.keep(vec![result]).map(Decoded::Kept);
        }
        read_floats(context.backend, &result, input.weights).map(Decoded::Host)
    }
}
