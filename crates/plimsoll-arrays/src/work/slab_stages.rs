//! What a device does to a slab as staged work: its declaration, and what its stages record.
//! Never waits: the order is `plimsoll_core::staged`'s. Invariant: what comes out of a slab packs to the bytes that the slab
//! itself and the levels of [`super::LevelsWork`] pack to.

use std::fmt;
use std::sync::Arc;

use plimsoll_blocks::pool::{Pool, PooledBytes};
use plimsoll_core::staged::{
    Count, Draft, EdgeDecl, EdgeKind, HOST, Memory, PoolDecl, StageDecl, Stages, StagesError, Usage,
};
use plimsoll_core::{Bytes, Fault};
use plimsoll_runtime::Backend;
use plimsoll_runtime::staged::{Acquired, Payload};

use super::kernels::{ReduceStep, buffer_bytes, runs_on_gpu};
use super::levels::all_levels;
use super::scatter::{ScatterStep, chunks_bytes, is_scattered};
use super::shuffle::{ShuffleStep, is_shuffled};
use super::{Form, Slab};
use crate::layout::Layout;
use crate::limits::LEVELS_MAX;

/// Items under way at once at most.
pub(super) const DEPTH_MAX: usize = 3;

/// A name for each level, with something behind it.
macro_rules! of_levels {
    ($behind:literal) => {
        of_levels!(@ $behind, "slab" "level1" "level2" "level3" "level4" "level5" "level6" "level7" "level8" "level9"
            "level10" "level11" "level12" "level13" "level14" "level15" "level16" "level17" "level18" "level19" "level20"
            "level21" "level22" "level23" "level24" "level25" "level26" "level27" "level28" "level29" "level30" "level31")
    };
    (@ $behind:literal, $($name:literal)*) => { [$(concat!($name, $behind)),*] };
}

/// The pools of the levels, by level; the first is the slab itself.
const POOLS: [&str; LEVELS_MAX as usize] = of_levels!("");
/// The edges that say that a level is there, and that it was used.
const THERE: [&str; LEVELS_MAX as usize] = of_levels!(" there");
const USED: [&str; LEVELS_MAX as usize] = of_levels!(" used");
const CHUNKS: &str = "chunks";
const SHUFFLED: &str = "shuffled";
const READBACK: &str = "readback";

/// Which stages run on the device; those that do not run on the CPU.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceStages {
    /// Making every coarser level.
    pub levels: bool,
    /// Cutting slabs into chunks.
    pub scatter: bool,
    /// Shuffling the blocks of chunks. Only what was cut there can be shuffled there.
    pub shuffle: bool,
}

impl DeviceStages {
    /// All that a device can do to slabs of so many steps and give the bytes of the CPU.
    pub fn possible(layout: &Layout, slab_steps: u64) -> Self {
        let scatter = is_scattered(layout, 0, slab_steps);
        Self { levels: runs_on_gpu(layout), scatter, shuffle: scatter && is_shuffled(layout) }
    }

    /// Every choice of stages among these, the empty one included.
    pub fn choices(self) -> impl Iterator<Item = Self> {
        let all = (0..8).map(|bits| Self { levels: bits & 1 > 0, scatter: bits & 2 > 0, shuffle: bits & 4 > 0 });
        let is_among = move |of: &Self| {
            let is_possible = of.levels <= self.levels && of.scatter <= self.scatter && of.shuffle <= self.shuffle;
            is_possible && of.shuffle <= of.scatter
        };
        all.filter(is_among)
    }

    /// Whether all of it is done on the CPU.
    pub fn is_none(self) -> bool {
        self == Self::default()
    }

    /// In which form slabs of the full resolution come out.
    pub fn form(self) -> Form {
        if self.scatter { Form::Chunks { is_shuffled: self.shuffle } } else { Form::Steps }
    }

    /// The last stage on the device: there everything is read back.
    fn last(self) -> &'static str {
        match self {
            Self { shuffle: true, .. } => "shuffle",
            Self { scatter: true, .. } => "scatter",
            _ => "reduce",
        }
    }
}

impl fmt::Display for DeviceStages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [(self.levels, "levels"), (self.scatter, "scatter"), (self.shuffle, "shuffle")];
        let chosen: Vec<&str> = names.into_iter().filter(|(is, _)| *is).map(|(_, name)| name).collect();
        f.write_str(&if chosen.is_empty() { "nothing".to_owned() } else { chosen.join(", ") })
    }
}

/// Bytes of a slab of so many steps at each level, the full resolution first.
pub(super) fn level_bytes(layout: &Layout, steps: u64) -> Vec<u64> {
    let bytes = |level: &crate::LevelLayout| steps.div_ceil(level.factor[0]) * level.grid.step_bytes();
    layout.levels().iter().map(bytes).collect()
}

/// What is done to the slabs of one array.
#[derive(Clone, Debug)]
pub(super) struct Work {
    pub(super) layout: Arc<Layout>,
    pub(super) stages: DeviceStages,
    /// Steps of a slab at most.
    pub(super) steps: u64,
}

/// What is read back of a level.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Out {
    /// Nothing: it is there, or made on the CPU.
    Nothing,
    /// Its steps, so many bytes.
    Steps(u64),
    /// Its chunks: where they begin, and how many bytes they have.
    Chunks(u64, u64),
}

impl Work {
    /// What comes of each level of a slab of so many steps.
    fn outs(&self, steps: u64) -> Vec<Out> {
        let mut begin = 0;
        let levels = self.layout.levels().iter().zip(level_bytes(&self.layout, steps)).enumerate();
        let out = |(number, (level, bytes)): (usize, (&crate::LevelLayout, u64))| {
            let is_there = number == 0 || self.stages.levels;
            if is_there && self.stages.scatter && is_scattered(&self.layout, number, self.steps) {
                let bytes = chunks_bytes(&level.grid, steps.div_ceil(level.factor[0]));
                begin += buffer_bytes(bytes).0;
                return Out::Chunks(begin - buffer_bytes(bytes).0, bytes);
            }
            if is_there && number > 0 { Out::Steps(bytes) } else { Out::Nothing }
        };
        levels.map(out).collect()
    }

    /// Bytes of the chunks of all levels.
    fn chunks_bytes(outs: &[Out]) -> Bytes {
        let ends = outs.iter().map(|out| match out {
            Out::Chunks(begin, bytes) => begin + buffer_bytes(*bytes).0,
            _ => 0,
        });
        Bytes(ends.max().unwrap_or(0))
    }

    /// Levels that are made on the device, the slab itself included.
    fn on_device(&self) -> usize {
        if self.stages.levels { self.layout.levels().len() } else { 1 }
    }

    /// The declaration. All of it lies on one stream: the next slab overwrites a buffer of this one only after its last use.
    pub(super) fn declared(&self) -> Result<Arc<Stages>, StagesError> {
        let (outs, last) = (self.outs(self.steps), self.stages.last());
        let levels = self.on_device();
        let bytes = level_bytes(&self.layout, self.steps);
        let read_back: Bytes = outs
            .iter()
            .map(|out| match out {
                Out::Nothing => Bytes::ZERO,
                Out::Steps(bytes) | Out::Chunks(_, bytes) => buffer_bytes(*bytes),
            })
            .sum();
        let mut pools: Vec<(&'static str, Bytes)> =
            (0..levels).map(|level| (POOLS[level], buffer_bytes(bytes[level]))).collect();
        pools.extend(self.stages.scatter.then(|| (CHUNKS, Self::chunks_bytes(&outs))));
        pools.extend(self.stages.shuffle.then(|| (SHUFFLED, Self::chunks_bytes(&outs))));
        let device = |(name, bytes)| PoolDecl { name, bytes, count: Count::Fixed(1), memory: Memory::Device };
        let readback = PoolDecl { name: READBACK, bytes: read_back, count: Count::PerDepth, memory: Memory::Readback };
        let stages = self.stage_decls(&outs);
        let mut edges: Vec<EdgeDecl> = Vec::new();
        for (pool, _) in &pools {
            edges.extend(pool_edges(pool, &stages));
        }
        let edge = |name, from, to, kind| EdgeDecl { name, from, to, guards: READBACK, kind };
        edges.push(edge("readback there", last, "collect", EdgeKind::Event));
        edges.push(edge("readback free", "collect", last, EdgeKind::HostRule));
        Stages::check(Draft {
            streams: vec!["queue"],
            stages,
            drain: vec![StageDecl { name: "collect", stream: HOST, uses: vec![(READBACK, Usage::Reads)] }],
            pools: pools.into_iter().map(device).chain([readback]).collect(),
            edges,
            depth_max: DEPTH_MAX,
        })
    }

    fn stage_decls(&self, outs: &[Out]) -> Vec<StageDecl> {
        let stage = |name, uses| StageDecl { name, stream: "queue", uses };
        let reads = |is: &dyn Fn(&Out) -> bool| -> Vec<(&'static str, Usage)> {
            let levels = (0..self.on_device()).filter(|level| is(&outs[*level]));
            levels.map(|level| (POOLS[level], Usage::Reads)).collect()
        };
        let mut stages = vec![stage("upload", vec![(POOLS[0], Usage::Writes)])];
        if self.stages.levels {
            let made = POOLS[1..self.on_device()].iter().map(|level| (*level, Usage::Writes));
            stages.push(stage("reduce", [(POOLS[0], Usage::Reads)].into_iter().chain(made).collect()));
        }
        if self.stages.scatter {
            let mut uses = reads(&|out| matches!(out, Out::Chunks(..)));
            uses.push((CHUNKS, Usage::Writes));
            stages.push(stage("scatter", uses));
        }
        if self.stages.shuffle {
            stages.push(stage("shuffle", vec![(CHUNKS, Usage::Reads), (SHUFFLED, Usage::Writes)]));
        }
        // The last one has what was not cut read back as well.
        if let Some(last) = stages.last_mut() {
            if last.name != "reduce" {
                last.uses.extend(reads(&|out| matches!(out, Out::Steps(_))));
            }
            last.uses.push((READBACK, Usage::Writes));
        }
        stages
    }
}

/// A pool of the device is there once the first stage has written it, and used when the last has.
fn pool_edges(pool: &'static str, stages: &[StageDecl]) -> Vec<EdgeDecl> {
    let names = match POOLS.iter().position(|known| *known == pool) {
        Some(level) => (THERE[level], USED[level]),
        None if pool == CHUNKS => ("chunks there", "chunks used"),
        None => ("shuffled there", "shuffled used"),
    };
    let users: Vec<&'static str> = stages
        .iter()
        .filter(|stage| stage.uses.iter().any(|(used, _)| *used == pool))
        .map(|stage| stage.name)
        .collect();
    let edge = |name, from, to| EdgeDecl { name, from, to, guards: pool, kind: EdgeKind::StreamOrder };
    let (first, last) = (users[0], users[users.len() - 1]);
    let there = (users.len() > 1).then(|| edge(names.0, first, users[1]));
    there.into_iter().chain([edge(names.1, last, first)]).collect()
}

/// What the stages do.
#[derive(Debug)]
pub(super) struct SlabStages {
    work: Work,
    pool: Pool,
    /// What was read back last, to be filled again.
    read_back: Vec<u8>,
}

impl SlabStages {
    pub(super) fn new(work: &Work, pool: &Pool) -> Self {
        Self { work: work.clone(), pool: pool.clone(), read_back: Vec::new() }
    }

    /// Makes every coarser level.
    fn reduce(&self, slab: &Slab, buffers: &Acquired<'_>, backend: &mut dyn Backend) -> Result<(), Fault> {
        let layout = &self.work.layout;
        let levels = layout.levels();
        let mut shape: Vec<usize> = levels[0].grid.shape.iter().map(|size| *size as usize).collect();
        shape[0] = slab.steps as usize;
        for (number, level) in levels.iter().enumerate().skip(1) {
            let (data_type, reduction) = (layout.data_type(), layout.reduction());
            let step = ReduceStep { data_type, reduction, shape: &shape, halved: &level.halved };
            let [finer, coarser] = [POOLS[number - 1], POOLS[number]];
            step.launch(buffers.buffer(finer)?, buffers.buffer(coarser)?, backend)?;
            shape = step.reduced_shape();
        }
        Ok(())
    }

    fn scatter(&self, slab: &Slab, buffers: &Acquired<'_>, backend: &mut dyn Backend) -> Result<(), Fault> {
        let layout = &self.work.layout;
        let fill = layout.fill();
        for (number, out) in self.work.outs(slab.steps).into_iter().enumerate() {
            let Out::Chunks(begin, _) = out else { continue };
            let level = &layout.levels()[number];
            let steps = slab.steps.div_ceil(level.factor[0]);
            let step = ScatterStep { grid: &level.grid, steps, fill: fill.bytes(), into: Bytes(begin) };
            step.launch(buffers.buffer(POOLS[number])?, buffers.buffer(CHUNKS)?, backend)?;
        }
        Ok(())
    }

    fn shuffle(&self, slab: &Slab, buffers: &Acquired<'_>, backend: &mut dyn Backend) -> Result<(), Fault> {
        let codec = self.work.layout.chunk_codec();
        for out in self.work.outs(slab.steps) {
            let Out::Chunks(begin, bytes) = out else { continue };
            let step = ShuffleStep { codec, bytes, begin: Bytes(begin) };
            step.launch(buffers.buffer(CHUNKS)?, buffers.buffer(SHUFFLED)?, backend)?;
        }
        Ok(())
    }

    /// Has everything read back, level by level, before the next slab can overwrite it.
    fn read(&self, slab: &Slab, buffers: &mut Acquired<'_>, backend: &mut dyn Backend) -> Result<(), Fault> {
        let chunks = if self.work.stages.shuffle { SHUFFLED } else { CHUNKS };
        for (number, out) in self.work.outs(slab.steps).into_iter().enumerate() {
            let (pool, begin, bytes) = match out {
                Out::Nothing => continue,
                Out::Steps(bytes) => (POOLS[number], 0, bytes),
                Out::Chunks(begin, bytes) => (chunks, begin, bytes),
            };
            buffers.stage_read(pool, Bytes(begin), buffer_bytes(bytes), backend)?;
        }
        Ok(())
    }

    fn taken(&self, from: &[u8]) -> PooledBytes {
        let mut elements = self.pool.take(from.len());
        elements.vec_mut().extend_from_slice(from);
        elements
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
            "upload" => upload(&slab.elements, buffers, backend)?,
            "reduce" => self.reduce(slab, buffers, backend)?,
            "scatter" => self.scatter(slab, buffers, backend)?,
            _ => self.shuffle(slab, buffers, backend)?,
        }
        if stage == self.work.stages.last() { self.read(slab, buffers, backend) } else { Ok(()) }
    }

    fn drained(&mut self, slab: &Arc<Slab>, read_back: Vec<u8>) -> Result<Vec<Arc<Slab>>, Fault> {
        let layout = &self.work.layout;
        let mut slabs = Vec::with_capacity(layout.levels().len());
        let mut rest = &read_back[..];
        for (level, out) in layout.levels().iter().zip(self.work.outs(slab.steps)) {
            let (bytes, form) = match out {
                Out::Nothing if slabs.is_empty() => {
                    slabs.push(Arc::clone(slab));
                    continue;
                }
                Out::Nothing => continue,
                Out::Steps(bytes) => (bytes, Form::Steps),
                Out::Chunks(_, bytes) => (bytes, self.work.stages.form()),
            };
            let (this, behind) = rest.split_at(buffer_bytes(bytes).0 as usize);
            let elements = self.taken(&this[..bytes as usize]);
            let place = slab.place.clone().filter(|_| slabs.is_empty());
            let (first, steps) = (slab.first / level.factor[0], slab.steps.div_ceil(level.factor[0]));
            slabs.push(Arc::new(Slab { first, steps, elements, form, place }));
            rest = behind;
        }
        self.read_back = read_back;
        if slabs.len() < layout.levels().len() {
            // Levels that a device would round otherwise.
            slabs.extend(all_levels(layout, &self.pool, slab, || Ok(()))?.into_iter().skip(1));
        }
        Ok(slabs)
    }

    fn host_buffer(&mut self, _: Bytes) -> Vec<u8> {
        std::mem::take(&mut self.read_back)
    }
}

/// Buffers are whole words; the last elements may not be.
fn upload(elements: &[u8], buffers: &Acquired<'_>, backend: &mut dyn Backend) -> Result<(), Fault> {
    let buffer = buffers.buffer(POOLS[0])?;
    let (words, rest) = elements.split_at(elements.len() / 4 * 4);
    backend.write(buffer, Bytes::ZERO, words)?;
    if rest.is_empty() {
        return Ok(());
    }
    let mut last = [0; 4];
    last[..rest.len()].copy_from_slice(rest);
    backend.write(buffer, Bytes(words.len() as u64), &last)
}
