//! The bytes of levels to a device, and back. The buffers go to whoever asked: his grant has promised their bytes, so the
//! tasks themselves need none.

use std::sync::{Arc, Weak};

use plimsoll_core::{Bytes, DeviceKind, Fault, Footprint, Ladder, Place, Rung};
use plimsoll_runtime::gauge::Gauge;
use plimsoll_runtime::{Backend, Buffer, Context, Session, Workload};

use crate::digest::Checksum;

/// Levels to be brought to a device: bytes and the checksum that they are checked by as they go.
#[derive(Debug)]
pub struct UploadInput {
    /// Whole words each.
    pub levels: Vec<(Arc<Vec<u8>>, Checksum)>,
    /// What their bytes are counted on while they lie there.
    pub gauge: Arc<Gauge>,
}

/// Brings bytes to a device.
#[derive(Debug)]
pub struct UploadWork;

fn ladder() -> Ladder {
    Ladder::from(vec![
        Rung::new("gpu", Place::On(DeviceKind::Gpu), Footprint::default()),
        Rung::new("cpu", Place::On(DeviceKind::Cpu), Footprint::default()),
    ])
}

impl Workload for UploadWork {
    type Input = UploadInput;
    type Reference = ();
    type Prepared = ();
    type Output = Vec<Buffer>;

    fn name(&self) -> &str {
        "fragments-upload"
    }

    fn units(&self, input: &UploadInput) -> u64 {
        input.levels.iter().map(|(bytes, _)| bytes.len() as u64).sum()
    }

    fn ladder(&self, _: &UploadInput) -> Ladder {
        ladder()
    }

    fn open(&self, _: &Rung, _: &UploadInput, _: &mut dyn Backend) -> Result<Box<dyn Session<Self>>, Fault> {
        Ok(Box::new(Copying))
    }
}

struct Copying;

impl Session<UploadWork> for Copying {
    fn run(&mut self, input: &UploadInput, context: &mut Context<'_, UploadWork>) -> Result<Vec<Buffer>, Fault> {
        let mut buffers = Vec::with_capacity(input.levels.len());
        for (bytes, checksum) in &input.levels {
            context.check_cancelled()?;
            let mut pieces = Checksum::checked(bytes);
            let mut buffer = context.backend.allocate_from(Bytes(bytes.len() as u64), &mut pieces)?;
            checksum.is(pieces.checksum(), || "a level in memory".to_owned()).map_err(Fault::work)?;
            buffer.charge_to(&input.gauge);
            buffers.push(buffer);
        }
        Ok(buffers)
    }
}

/// Takes the bytes of a buffer back from its device, and checks them.
#[derive(Debug)]
pub struct BringBackWork;

impl Workload for BringBackWork {
    type Input = (Weak<Buffer>, Checksum);
    type Reference = ();
    type Prepared = ();
    type Output = Vec<u8>;

    fn name(&self) -> &str {
        "fragments-bring-back"
    }

    fn units(&self, (buffer, _): &Self::Input) -> u64 {
        buffer.upgrade().map_or(1, |buffer| buffer.bytes().0)
    }

    fn ladder(&self, _: &Self::Input) -> Ladder {
        ladder()
    }

    fn open(&self, _: &Rung, _: &Self::Input, _: &mut dyn Backend) -> Result<Box<dyn Session<Self>>, Fault> {
        Ok(Box::new(Copying))
    }
}

impl Session<BringBackWork> for Copying {
    fn run(
        &mut self,
        (buffer, checksum): &(Weak<Buffer>, Checksum),
        context: &mut Context<'_, BringBackWork>,
    ) -> Result<Vec<u8>, Fault> {
        let buffer = buffer.upgrade().ok_or_else(|| Fault::work("the level was dropped before it was read"))?;
        let mut bytes = vec![0; buffer.bytes().0 as usize];
        context.backend.read(&buffer, Bytes::ZERO, &mut bytes)?;
        checksum.check(&bytes, || "a level on a device".to_owned()).map_err(Fault::work)?;
        Ok(bytes)
    }
}
