//! A block's bytes rearranged, on any device. On a GPU the kernels do it, on the CPU their twins' own code: the same bytes.

use std::sync::Arc;

use plimsoll_core::{Bytes, DeviceKind, Fault, Footprint, Ladder, Place, Rung};
use plimsoll_runtime::{Backend, Context, Session, Workload};

use super::Block;
use crate::faults;
use crate::filter::{Filter, kernels};
use crate::pool::{Pool, PooledBytes};

/// Filters blocks.
pub struct FilterWork {
    filter: Filter,
    pool: Pool,
}

impl FilterWork {
    /// Does this filter to blocks.
    pub fn new(filter: Filter, pool: &Pool) -> Self {
        Self { filter, pool: pool.clone() }
    }
}

impl Workload for FilterWork {
    type Input = Block;
    type Reference = ();
    type Prepared = ();
    type Output = Block;

    fn name(&self) -> &str {
        "pack-filter"
    }

    fn units(&self, block: &Block) -> u64 {
        block.bytes.len() as u64
    }

    fn ladder(&self, block: &Block) -> Ladder {
        let two = Bytes(kernels::buffer_bytes(block.bytes.len()).0 * 2);
        Ladder::from(vec![
            Rung::new("gpu", Place::On(DeviceKind::Gpu), Footprint::task(two)),
            Rung::new("cpu", Place::On(DeviceKind::Cpu), Footprint::task(two)),
        ])
    }

    fn open(&self, rung: &Rung, _: &Block, _: &mut dyn Backend) -> Result<Box<dyn Session<Self>>, Fault> {
        let on_device = rung.place == Place::On(DeviceKind::Gpu);
        Ok(Box::new(FilterSession { filter: self.filter, pool: self.pool.clone(), on_device }))
    }
}

struct FilterSession {
    filter: Filter,
    pool: Pool,
    on_device: bool,
}

impl Session<FilterWork> for FilterSession {
    fn run(&mut self, block: &Block, context: &mut Context<'_, FilterWork>) -> Result<Block, Fault> {
        faults::point("filter");
        let bytes = if self.on_device {
            on_device(context.backend, &self.filter, &block.bytes, &self.pool)?
        } else {
            self.pool.adopt(self.filter.apply(&block.bytes))
        };
        Ok(Block { bytes: Arc::new(bytes) })
    }
}

fn on_device(backend: &mut dyn Backend, filter: &Filter, block: &[u8], pool: &Pool) -> Result<PooledBytes, Fault> {
    let room = kernels::buffer_bytes(block.len());
    let (from, scratch) = (backend.allocate(room)?, backend.allocate(room)?);
    let mut bytes = pool.take(room.0 as usize);
    bytes.vec_mut().extend_from_slice(block);
    bytes.filled_to(room.0 as usize);
    backend.write(&from, Bytes::ZERO, &bytes)?;
    let filtered = kernels::apply(backend, filter, block.len(), from, scratch)?;
    backend.read(&filtered, Bytes::ZERO, bytes.filled_to(room.0 as usize))?;
    bytes.vec_mut().truncate(block.len());
    // Filtered bytes look like any others: nothing after this would notice that they are wrong.
    if filter.undo(&bytes) != block {
        return Err(Fault::WrongAnswer { detail: "the filtered block does not give the block again".to_owned() });
    }
    Ok(bytes)
}
