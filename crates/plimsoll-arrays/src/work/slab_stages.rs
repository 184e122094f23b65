//! Making levels as staged work: its declaration, and what its stages record.
//! Never waits: the order is `plimsoll_core::staged`'s. Invariant: what comes out of a slab are the bytes that
//! [`super::LevelsWork`] gives.

use std::sync::Arc;

use plimsoll_blocks::pool::Pool;
use plimsoll_core::staged::{
    Count, Draft, EdgeDecl, EdgeKind, HOST, Memory, PoolDecl, StageDecl, Stages, StagesError, Usage,
};
use plimsoll_core::{Bytes, Fault};
use plimsoll_runtime::Backend;
use plimsoll_runtime::staged::{Acquired, Payload};

use super::Slab;
use super::kernels::{ReduceStep, buffer_bytes};
use crate::layout::Layout;
use crate::limits::LEVELS_MAX;

/// Items under way at once at most.
pub(super) const DEPTH_MAX: usize = 3;

/// The pools of the levels, by level; the first is the slab itself.
const POOLS: [&str; LEVELS_MAX as usize] = [
    "slab", "level1", "level2", "level3", "level4", "level5", "level6", "level7", "level8", "level9", "level10",
    "level11", "level12", "level13", "level14", "level15", "level16", "level17", "level18", "level19", "level20",
    "level21", "level22", "level23", "level24", "level25", "level26", "level27", "level28", "level29", "level30",
    "level31",
];
const READBACK: &str = "readback";

/// Bytes of a slab of so many steps at each level, the full resolution first.
pub(super) fn level_bytes(layout: &Layout, steps: u64) -> Vec<u64> {
    let bytes = |level: &crate::LevelLayout| steps.div_ceil(level.factor[0]) * level.grid.step_bytes();
    layout.levels().iter().map(bytes).collect()
}

/// The declaration for slabs of so many steps at most.
pub(super) fn declared(layout: &Layout, steps: u64) -> Result<Arc<Stages>, StagesError> {
    let bytes: Vec<Bytes> = level_bytes(layout, steps).into_iter().map(buffer_bytes).collect();
    let levels = &POOLS[1..bytes.len()];
    let read_back: Bytes = bytes[1..].iter().copied().sum();
    let device = |(&name, &bytes): (&&'static str, &Bytes)| PoolDecl {
        name,
        bytes,
        count: Count::Fixed(1),
        memory: Memory::Device,
    };
    let readback = PoolDecl { name: READBACK, bytes: read_back, count: Count::PerDepth, memory: Memory::Readback };
    let reduced = levels.iter().map(|level| (*level, Usage::Writes));
    let reduce_uses = [("slab", Usage::Reads), (READBACK, Usage::Writes)].into_iter().chain(reduced).collect();
    // All of it lies on one stream: the next slab's level overwrites this one's only after its copy.
    let level_used = |&name: &&'static str| EdgeDecl {
        name,
        from: "reduce",
        to: "reduce",
        guards: name,
        kind: EdgeKind::StreamOrder,
    };
    let edge = |name, from, to, guards, kind| EdgeDecl { name, from, to, guards, kind };
    let edges = [
        edge("slab there", "upload", "reduce", "slab", EdgeKind::StreamOrder),
        edge("slab used", "reduce", "upload", "slab", EdgeKind::StreamOrder),
        edge("levels there", "reduce", "collect", READBACK, EdgeKind::Event),
        edge("readback free", "collect", "reduce", READBACK, EdgeKind::HostRule),
    ];
    Stages::check(Draft {
        streams: vec!["queue"],
        stages: vec![
            StageDecl { name: "upload", stream: "queue", uses: vec![("slab", Usage::Writes)] },
            StageDecl { name: "reduce", stream: "queue", uses: reduce_uses },
        ],
        drain: vec![StageDecl { name: "collect", stream: HOST, uses: vec![(READBACK, Usage::Reads)] }],
        pools: POOLS.iter().zip(&bytes).map(device).chain([readback]).collect(),
        edges: edges.into_iter().chain(levels.iter().map(level_used)).collect(),
        depth_max: DEPTH_MAX,
    })
}

/// What the stages do.
#[derive(Debug)]
pub(super) struct SlabStages {
    layout: Arc<Layout>,
    pool: Pool,
    /// What was read back last, to be filled again.
    read_back: Vec<u8>,
}

impl SlabStages {
    pub(super) fn new(layout: &Arc<Layout>, pool: &Pool) -> Self {
        Self { layout: Arc::clone(layout), pool: pool.clone(), read_back: Vec::new() }
    }

    /// Makes every coarser level, and has it read back, before the next slab can overwrite it.
    fn reduce(&self, slab: &Slab, buffers: &mut Acquired<'_>, backend: &mut dyn Backend) -> Result<(), Fault> {
        let levels = self.layout.levels();
        let bytes = level_bytes(&self.layout, slab.steps);
        let mut shape: Vec<usize> = levels[0].grid.shape.iter().map(|size| *size as usize).collect();
        shape[0] = slab.steps as usize;
        for (number, level) in levels.iter().enumerate().skip(1) {
            let (data_type, reduction) = (self.layout.data_type(), self.layout.reduction());
            let step = ReduceStep { data_type, reduction, shape: &shape, halved: &level.halved };
            let [finer, coarser] = [POOLS[number - 1], POOLS[number]];
            step.launch(buffers.buffer(finer)?, buffers.buffer(coarser)?, backend)?;
            buffers.stage_read(coarser, Bytes::ZERO, buffer_bytes(bytes[number]), backend)?;
            shape = step.reduced_shape();
        }
        Ok(())
    }
}

impl Payload for SlabStages {
    type Item = Arc<Slab>;
    type Output = Vec<Arc<Slab>>;

    fn run(
        &mut self,
        stage: &'static str,
        slab: &Arc<Slab>,
        buffers: &mut Acquired<'_>,
        backend: &mut dyn Backend,
    ) -> Result<(), Fault> {
        match stage {
            "upload" => upload(&slab.elements, buffers, backend),
            _ => self.reduce(slab, buffers, backend),
        }
    }

    fn drained(&mut self, slab: &Arc<Slab>, read_back: Vec<u8>) -> Result<Vec<Arc<Slab>>, Fault> {
        let mut slabs = vec![Arc::clone(slab)];
        let mut rest = &read_back[..];
        let levels = self.layout.levels().iter().zip(level_bytes(&self.layout, slab.steps)).skip(1);
        for (level, bytes) in levels {
            let (this, behind) = rest.split_at(buffer_bytes(bytes).0 as usize);
            let mut elements = self.pool.take(bytes as usize);
            elements.vec_mut().extend_from_slice(&this[..bytes as usize]);
            let (first, steps) = (slab.first / level.factor[0], slab.steps.div_ceil(level.factor[0]));
            slabs.push(Arc::new(Slab { first, steps, elements, place: None }));
            rest = behind;
        }
        self.read_back = read_back;
        Ok(slabs)
    }

    fn host_buffer(&mut self, _: Bytes) -> Vec<u8> {
        std::mem::take(&mut self.read_back)
    }
}

/// Buffers are whole words; the last elements may not be.
fn upload(elements: &[u8], buffers: &Acquired<'_>, backend: &mut dyn Backend) -> Result<(), Fault> {
    let buffer = buffers.buffer("slab")?;
    let (words, rest) = elements.split_at(elements.len() / 4 * 4);
    backend.write(buffer, Bytes::ZERO, words)?;
    if rest.is_empty() {
        return Ok(());
    }
    let mut last = [0; 4];
    last[..rest.len()].copy_from_slice(rest);
    backend.write(buffer, Bytes(words.len() as u64), &last)
}
