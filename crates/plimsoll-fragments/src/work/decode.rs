//! Weights from the levels that lie on a device: to host memory, or as a value that stays there.
//!
//! The rungs are ways to need less room beside the levels: the result whole, in parts, or none at all: then the levels are read
//! back and decoded in host memory. The last always fits, so a device that is full to the line can still be read.

use std::sync::{Arc, Weak};

use plimsoll_core::{Bytes, DeviceKind, Fault, Footprint, Ladder, Place, Rung};
use plimsoll_runtime::{Backend, Buffer, Context, POISON, Session, Value, Workload, read_floats};

use super::kernels::{self, Part};
use crate::data_type::Float;
use crate::quant::{Bits, decode as decode_bytes, moved_on};

/// Weights of a part: a quarter of a MiB of them, and the first of a group each.
const PART_WEIGHTS: usize = 1 << 16;

/// A piece whose levels lie on a device.
#[derive(Clone, Debug)]
pub struct DecodeInput {
    /// The levels that are there, coarsest first. Whoever asks holds them: a task that is over may be kept for a while, and
    /// must not keep their bytes.
    pub levels: Vec<Weak<Buffer>>,
    /// Bits of all levels of the model. One level more than they name is the exact one.
    pub bits: Bits,
    /// What the tensor is made of.
    pub float: Float,
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

const PARTS: &str = "gpu-parts";
const READ_BACK: &str = "gpu-read-back";

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
        let rung = |name, kind, bytes| Rung::new(name, Place::On(kind), Footprint::task(bytes));
        let kept = |name, kind| Rung::new(name, Place::On(kind), Footprint::default()).with_value(bytes);
        if input.keeps {
            return Ladder::from(vec![kept("gpu", DeviceKind::Gpu), kept("cpu", DeviceKind::Cpu)]);
        }
        let mut rungs = vec![rung("gpu", DeviceKind::Gpu, bytes)];
        if input.weights > PART_WEIGHTS {
            rungs.push(rung(PARTS, DeviceKind::Gpu, kernels::result_bytes(PART_WEIGHTS)));
        }
        rungs.push(rung(READ_BACK, DeviceKind::Gpu, Bytes::ZERO));
        rungs.push(rung("cpu", DeviceKind::Cpu, bytes));
        Ladder::from(rungs)
    }

    fn open(&self, rung: &Rung, _: &DecodeInput, _: &mut dyn Backend) -> Result<Box<dyn Session<Self>>, Fault> {
        Ok(Box::new(match rung.name {
            PARTS => Way::InParts,
            READ_BACK => Way::ReadBack,
            _ => Way::Whole,
        }))
    }
}

/// How a rung does it.
#[derive(Copy, Clone)]
enum Way {
    Whole,
    InParts,
    ReadBack,
}

impl Session<DecodeWork> for Way {
    fn run(&mut self, input: &DecodeInput, context: &mut Context<'_, DecodeWork>) -> Result<Decoded, Fault> {
        let held: Option<Vec<Arc<Buffer>>> = input.levels.iter().map(Weak::upgrade).collect();
        let held = held.ok_or_else(|| Fault::work("the levels were dropped before they were decoded"))?;
        let levels: Vec<&Buffer> = held.iter().map(|level| &**level).collect();
        let levels = Levels::of(&levels, input);
        let weights = match self {
            Self::ReadBack => levels.read_back(context.backend),
            Self::InParts => levels.in_parts(context),
            Self::Whole => {
                let result = context.backend.allocate(kernels::result_bytes(input.weights))?;
                levels.decode(context.backend, levels.whole(), &result)?;
                if input.keeps {
                    return context.keep(vec![result]).map(Decoded::Kept);
                }
                read_floats(context.backend, &result, input.weights)
            }
        };
        match weights {
            // A weight that was packed may itself look like what nothing has written.
            Err(wrong @ Fault::WrongAnswer { .. }) if levels.exact.is_some() => {
                let weights = levels.read_back(context.backend)?;
                let has_one = weights.iter().any(|x| x.to_bits() == POISON);
                if has_one { Ok(Decoded::Host(weights)) } else { Err(wrong) }
            }
            weights => weights.map(Decoded::Host),
        }
    }
}

/// The levels of a piece, and how to read them.
struct Levels<'a> {
    planes: &'a [&'a Buffer],
    exact: Option<&'a Buffer>,
    input: &'a DecodeInput,
}

impl<'a> Levels<'a> {
    fn of(levels: &'a [&'a Buffer], input: &'a DecodeInput) -> Self {
        let planes = levels.len().min(input.bits.levels());
        Self { planes: &levels[..planes], exact: levels.get(planes).copied(), input }
    }

    fn decode(&self, backend: &mut dyn Backend, part: Part, result: &Buffer) -> Result<(), Fault> {
        kernels::decode(backend, self.planes, &self.input.bits, part, result)?;
        match self.exact {
            Some(differences) => kernels::exact(backend, differences, self.input.float, part, result),
            None => Ok(()),
        }
    }

    fn whole(&self) -> Part {
        Part { all: self.input.weights, begin: 0, weights: self.input.weights }
    }

    fn in_parts(&self, context: &mut Context<'_, DecodeWork>) -> Result<Vec<f32>, Fault> {
        let result = context.backend.allocate(kernels::result_bytes(PART_WEIGHTS))?;
        let all = self.input.weights;
        let mut weights = Vec::with_capacity(all);
        for begin in (0..all).step_by(PART_WEIGHTS) {
            context.check_cancelled()?;
            let part = Part { begin, weights: PART_WEIGHTS.min(all - begin), ..self.whole() };
            self.decode(context.backend, part, &result)?;
            weights.extend(read_floats(context.backend, &result, part.weights)?);
        }
        Ok(weights)
    }

    /// Decodes in host memory what is read back from the device.
    fn read_back(&self, backend: &mut dyn Backend) -> Result<Vec<f32>, Fault> {
        let mut bytes = |buffer: &Buffer| -> Result<Vec<u8>, Fault> {
            let mut bytes = vec![0; buffer.bytes().0 as usize];
            backend.read(buffer, Bytes::ZERO, &mut bytes)?;
            Ok(bytes)
        };
        let planes = self.planes.iter().map(|level| bytes(level)).collect::<Result<Vec<_>, Fault>>()?;
        let slices: Vec<&[u8]> = planes.iter().map(Vec::as_slice).collect();
        let mut weights = vec![0.0; self.input.weights];
        decode_bytes(&slices, &self.input.bits, &mut weights).map_err(Fault::work)?;
        if let Some(exact) = self.exact {
            moved_on(self.input.float, &bytes(exact)?, bytemuck::cast_slice_mut(&mut weights));
        }
        Ok(weights)
    }
}
