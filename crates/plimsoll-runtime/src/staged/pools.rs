//! The buffers of staged work, and the only way to one of them.
//! Never hands out a buffer that its stage has not acquired.
//! Invariant: what lies in a pool is reached through [`Acquired`] alone, which ends before the release.

use std::sync::Arc;

use plimsoll_core::staged::{Memory, Plan, PoolId, Stages, Use};
use plimsoll_core::{Bytes, Fault};

use crate::backend::{Backend, Buffer};
use crate::readback::Readback;

/// All buffers of a plan.
pub(super) struct Pools {
    stages: Arc<Stages>,
    /// For each pool; none where its memory is not a buffer's.
    buffers: Vec<Vec<Buffer>>,
}

impl Pools {
    pub(super) fn open(plan: &Plan, backend: &mut dyn Backend) -> Result<Self, Fault> {
        let stages = Arc::clone(plan.stages());
        let mut buffers = Vec::new();
        for pool in stages.pool_ids() {
            let count = if stages[pool].memory == Memory::Device { plan.count(pool) } else { 0 };
            buffers.push((0..count).map(|_| backend.allocate(stages[pool].bytes)).collect::<Result<_, _>>()?);
        }
        Ok(Self { stages, buffers })
    }

    /// What a stage has acquired.
    pub(super) fn acquired<'a>(&'a self, uses: &'a [Use], readbacks: &'a mut Readbacks) -> Acquired<'a> {
        Acquired { pools: self, uses, readbacks }
    }
}

/// The bytes that one item reads back, in the order in which they were asked for.
#[derive(Debug, Default)]
pub(super) struct Readbacks(Vec<(PoolId, Readback)>);

impl Readbacks {
    fn bytes_of(&self, pool: PoolId) -> Bytes {
        self.0.iter().filter(|(of, _)| *of == pool).map(|(_, readback)| readback.bytes()).sum()
    }

    /// How many bytes [`Readbacks::collect`] gives.
    pub(super) fn bytes(&self) -> Bytes {
        self.0.iter().map(|(_, readback)| readback.bytes()).sum()
    }

    /// Copies all of them out, one behind the other.
    pub(super) fn collect(self, mut into: &mut [u8], backend: &mut dyn Backend) -> Result<(), Fault> {
        for (_, readback) in self.0 {
            let (piece, rest) = into.split_at_mut(readback.bytes().0 as usize);
            backend.collect(readback, piece)?;
            into = rest;
        }
        Ok(())
    }
}

/// The buffers that a stage has acquired, until it is released.
///
/// There is no other way to a pool's buffer: a session's are private,
///
/// ```compile_fail,E0616
/// # use plimsoll_runtime::staged::{Payload, StagedSession};
/// fn peek<P: Payload>(session: &StagedSession<P>) {
///     let _ = &session.pools;
/// }
/// ```
///
/// and what a stage was lent it cannot keep:
///
/// ```compile_fail,E0621
/// # use plimsoll_core::Fault;
/// # use plimsoll_runtime::staged::Acquired;
/// # use plimsoll_runtime::Buffer;
/// struct Keeps<'k>(Vec<&'k Buffer>);
/// impl<'k> Keeps<'k> {
///     fn keep(&mut self, buffers: &mut Acquired<'_>) -> Result<(), Fault> {
///         self.0.push(buffers.buffer("chunks")?); // it would outlive the release
///         Ok(())
///     }
/// }
/// ```
pub struct Acquired<'a> {
    pools: &'a Pools,
    uses: &'a [Use],
    readbacks: &'a mut Readbacks,
}

impl std::fmt::Debug for Acquired<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Acquired").field("uses", &self.uses).finish_non_exhaustive()
    }
}

impl Acquired<'_> {
    /// The item's buffer of this pool.
    ///
    /// # Errors
    /// [`Fault::WorkFailed`] if the stage did not declare that it uses the pool, or if the pool has no buffers on the
    /// device.
    pub fn buffer(&self, pool: &str) -> Result<&Buffer, Fault> {
        let stages = &self.pools.stages;
        let found = self.uses.iter().find(|of| stages[of.pool].name == pool);
        let buffer = found.and_then(|of| self.pools.buffers[of.pool.index()].get(of.buffer));
        buffer.ok_or_else(|| Fault::work(format!("the stage has acquired no buffer of pool '{pool}'")))
    }

    /// Records that bytes of the item's buffer of a pool are read back into the readback pool that the stage writes. They
    /// are at hand when the item is drained, behind those that were asked for before.
    ///
    /// # Errors
    /// As [`Backend::stage_read`]; [`Fault::WorkFailed`] if the stage writes no readback pool, or it is full.
    pub fn stage_read(
        &mut self,
        pool: &str,
        offset: Bytes,
        bytes: Bytes,
        backend: &mut dyn Backend,
    ) -> Result<(), Fault> {
        let stages = &self.pools.stages;
        let mut pools = self.uses.iter().map(|of| of.pool);
        let into = pools.find(|pool| stages[*pool].memory == Memory::Readback);
        let into = into.ok_or_else(|| Fault::work("the stage has acquired no buffer of a readback pool"))?;
        let free = stages[into].bytes - self.readbacks.bytes_of(into);
        if bytes > free {
            let name = stages[into].name;
            return Err(Fault::work(format!("{bytes} to be read back, and {free} left in pool '{name}'")));
        }
        let readback = backend.stage_read(self.buffer(pool)?, offset, bytes)?;
        self.readbacks.0.push((into, readback));
        Ok(())
    }
}
