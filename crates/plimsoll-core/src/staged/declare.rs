//! Staged work as data: stages on streams, pools of buffers, and the edges that order the stages.
//! Never runs anything and knows no device.
//! Invariant: the edges of a [`Stages`] keep every two uses of a buffer that must not meet apart, at every depth that it
//! allows, and none of its waits can be left out (`prove.rs`).

use std::ops::Index;
use std::sync::Arc;

use super::error::StagesError;
use super::ids::{EdgeId, PoolId, StageId, StreamId};
use super::prove;
use crate::Bytes;

/// The stream that is always there: the thread that carries out the steps. What it does is done when the next step begins.
pub const HOST: &str = "host";

/// Items under way at once at most. Two keep a device busy and three a slow host; more only hold memory.
pub const DEPTH_LIMIT: usize = 8;

/// Staged work as its author writes it down.
#[derive(Clone, Debug, Default)]
pub struct Draft {
    /// The device's streams. What lies on one is done in order; what lies on two is done in any order that edges allow.
    pub streams: Vec<&'static str>,
    /// What is done to an item when it is kicked, in order.
    pub stages: Vec<StageDecl>,
    /// What is done when it is drained, in order. The last one is on the host: there the item leaves.
    pub drain: Vec<StageDecl>,
    /// The memory that stages share.
    pub pools: Vec<PoolDecl>,
    /// What keeps the users of a pool apart.
    pub edges: Vec<EdgeDecl>,
    /// The deepest that it may run.
    pub depth_max: usize,
}

/// A stage: payload only. It says what it uses, and waits for nothing by itself.
#[derive(Clone, Debug)]
pub struct StageDecl {
    /// Its name.
    pub name: &'static str,
    /// The stream it runs on, or [`HOST`].
    pub stream: &'static str,
    /// The pools that it uses, each once.
    pub uses: Vec<(&'static str, Usage)>,
}

/// What a stage does with a buffer.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Usage {
    /// Only reads it.
    Reads,
    /// Fills it anew.
    Writes,
    /// Goes on from what lies in it.
    Updates,
}

/// A pool of equal buffers. The item of number `n` uses buffer `n` modulo their count.
#[derive(Clone, Debug)]
pub struct PoolDecl {
    /// Its name.
    pub name: &'static str,
    /// Bytes of each buffer.
    pub bytes: Bytes,
    /// How many there are.
    pub count: Count,
    /// Where they lie.
    pub memory: Memory,
}

/// How many buffers a pool has.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Count {
    /// One for each item under way.
    PerDepth,
    /// So many at every depth.
    Fixed(usize),
}

/// Where the buffers of a pool lie.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Memory {
    /// On the device.
    Device,
    /// On the device where the host can reach it: bytes on their way out.
    Readback,
    /// With the host, who keeps them himself.
    Host,
}

/// Who waits for whom, and for the sake of which pool. If `to` does not come after `from` it is a later item's: the next
/// one to use the same buffer.
#[derive(Clone, Debug)]
pub struct EdgeDecl {
    /// Its name.
    pub name: &'static str,
    /// The stage that comes first.
    pub from: &'static str,
    /// The stage that waits.
    pub to: &'static str,
    /// The pool for whose sake.
    pub guards: &'static str,
    /// By what means.
    pub kind: EdgeKind<&'static str>,
}

/// By what means an edge holds. `E` names another edge.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum EdgeKind<E> {
    /// `from` records an event when it is done, and the stream of `to` waits for it.
    Event,
    /// Both lie on one stream.
    StreamOrder,
    /// Whatever waits for that edge's event comes before `to`.
    AliasOf(E),
    /// The host raises a counter, and the stream of `to` waits until it is high enough: also when the wait is queued before
    /// the host gets there. Where a device cannot wait so, the item is drained before the next kick.
    Generation,
    /// The host's own order: an item is drained before its slot is filled again, and what the host did is done.
    HostRule,
}

/// A stage of checked work.
#[derive(Clone, Debug)]
pub struct Stage {
    /// Its name.
    pub name: &'static str,
    /// Where it runs.
    pub stream: StreamId,
    /// What it uses.
    pub uses: Vec<(PoolId, Usage)>,
    /// Whether it belongs to the drain of an item, and not to its kick.
    pub is_drain: bool,
}

/// An edge of checked work.
#[derive(Clone, Debug)]
pub struct Edge {
    /// Its name.
    pub name: &'static str,
    /// The stage that comes first.
    pub from: StageId,
    /// The stage that waits.
    pub to: StageId,
    /// The pool for whose sake.
    pub guards: PoolId,
    /// By what means.
    pub kind: EdgeKind<EdgeId>,
}

impl Edge {
    /// Whether `to` is a stage of a later item than `from`.
    pub fn is_to_later_item(&self) -> bool {
        self.to <= self.from
    }
}

/// Staged work that was checked.
#[derive(Clone, Debug)]
pub struct Stages {
    streams: Vec<&'static str>,
    stages: Vec<Stage>,
    pools: Vec<PoolDecl>,
    edges: Vec<Edge>,
    depth_max: usize,
}

impl Stages {
    /// Checks a draft, and proves that its edges are enough and none too many.
    ///
    /// # Errors
    /// [`StagesError`] names the part that has to change.
    pub fn check(draft: Draft) -> Result<Arc<Self>, StagesError> {
        if draft.depth_max == 0 || draft.depth_max > DEPTH_LIMIT {
            return Err(StagesError::Depth(draft.depth_max));
        }
        if draft.drain.last().is_none_or(|last| last.stream != HOST) {
            return Err(StagesError::NoWayOut);
        }
        let stages = Self::resolve(draft)?;
        stages.edges.iter().try_for_each(|edge| stages.check_edge(edge))?;
        stages.pool_ids().try_for_each(|pool| stages.check_pool(pool))?;
        let stages = Arc::new(stages);
        prove::at_every_depth(&stages)?;
        Ok(stages)
    }

    /// Names become places in lists.
    fn resolve(draft: Draft) -> Result<Self, StagesError> {
        let Draft { streams, stages, drain, pools, edges, depth_max } = draft;
        let kicked = stages.len();
        let streams: Vec<&'static str> = std::iter::once(HOST).chain(streams).collect();
        let stages: Vec<StageDecl> = stages.into_iter().chain(drain).collect();
        let names = Names {
            streams: unique(streams.iter().copied())?,
            stages: unique(stages.iter().map(|stage| stage.name))?,
            pools: unique(pools.iter().map(|pool| pool.name))?,
            edges: unique(edges.iter().map(|edge| edge.name))?,
        };
        let stages = stages.into_iter().enumerate().map(|(at, decl)| names.stage(decl, at >= kicked));
        let edges = edges.into_iter().map(|decl| names.edge(decl));
        Ok(Self {
            stages: stages.collect::<Result<_, _>>()?,
            edges: edges.collect::<Result<_, _>>()?,
            streams,
            pools,
            depth_max,
        })
    }

    fn check_pool(&self, pool: PoolId) -> Result<(), StagesError> {
        let decl = &self[pool];
        let is_word_sized = decl.bytes > Bytes::ZERO && decl.bytes.0.is_multiple_of(4);
        if decl.count == Count::Fixed(0) || (decl.memory != Memory::Host && !is_word_sized) {
            return Err(StagesError::NoBuffers(decl.name));
        }
        let users: Vec<Usage> = self.stages.iter().filter_map(|stage| stage.usage(pool)).collect();
        if users.iter().all(|usage| *usage == Usage::Reads) {
            return Err(StagesError::NeverWritten(decl.name));
        }
        if users[0] != Usage::Writes && decl.count != Count::Fixed(1) {
            return Err(StagesError::CarriedByMany(decl.name));
        }
        let mut guards = self.edges.iter().filter(|edge| edge.guards == pool);
        if users.len() > 1 && !guards.clone().any(|edge| !edge.is_to_later_item()) {
            return Err(StagesError::NoReadyEdge(decl.name));
        }
        if !guards.any(Edge::is_to_later_item) {
            return Err(StagesError::NoConsumedEdge(decl.name));
        }
        Ok(())
    }

    fn check_edge(&self, edge: &Edge) -> Result<(), StagesError> {
        let (from, to) = (&self[edge.from], &self[edge.to]);
        if let Some(stage) = [from, to].into_iter().find(|stage| stage.usage(edge.guards).is_none()) {
            return Err(StagesError::NoUser { edge: edge.name, stage: stage.name });
        }
        let is_hosts = from.stream == StreamId::HOST;
        match edge.kind {
            EdgeKind::Event if from.stream == to.stream => Err(StagesError::OneStream(edge.name)),
            EdgeKind::StreamOrder if from.stream != to.stream => Err(StagesError::TwoStreams(edge.name)),
            EdgeKind::Generation if !is_hosts => Err(StagesError::NotTheHosts(edge.name)),
            EdgeKind::HostRule if !is_hosts && !edge.is_to_later_item() => Err(StagesError::NotTheHosts(edge.name)),
            _ => Ok(()),
        }
    }

    /// The stages in the order in which an item passes through them.
    pub fn stage_ids(&self) -> impl DoubleEndedIterator<Item = StageId> + use<> {
        (0..self.stages.len()).map(StageId)
    }

    /// The pools.
    pub fn pool_ids(&self) -> impl Iterator<Item = PoolId> + use<> {
        (0..self.pools.len()).map(PoolId)
    }

    /// The edges.
    pub fn edge_ids(&self) -> impl Iterator<Item = EdgeId> + use<> {
        (0..self.edges.len()).map(EdgeId)
    }

    /// The names of the streams, the host's first.
    pub fn streams(&self) -> &[&'static str] {
        &self.streams
    }

    /// The deepest that it may run.
    pub fn depth_max(&self) -> usize {
        self.depth_max
    }

    /// An edge whose counter the host raises, if there is one.
    pub fn gate(&self) -> Option<&Edge> {
        self.edges.iter().find(|edge| edge.kind == EdgeKind::Generation)
    }
}

impl Stage {
    /// What it does with a pool, if anything.
    pub fn usage(&self, pool: PoolId) -> Option<Usage> {
        self.uses.iter().find(|(used, _)| *used == pool).map(|(_, usage)| *usage)
    }
}

impl Index<StageId> for Stages {
    type Output = Stage;
    fn index(&self, stage: StageId) -> &Stage {
        &self.stages[stage.0]
    }
}

impl Index<PoolId> for Stages {
    type Output = PoolDecl;
    fn index(&self, pool: PoolId) -> &PoolDecl {
        &self.pools[pool.0]
    }
}

impl Index<EdgeId> for Stages {
    type Output = Edge;
    fn index(&self, edge: EdgeId) -> &Edge {
        &self.edges[edge.0]
    }
}

/// Everything that a declaration can name.
struct Names {
    streams: Vec<&'static str>,
    stages: Vec<&'static str>,
    pools: Vec<&'static str>,
    edges: Vec<&'static str>,
}

fn unique(names: impl Iterator<Item = &'static str>) -> Result<Vec<&'static str>, StagesError> {
    names.into_iter().try_fold(Vec::new(), |mut known, name| {
        if known.contains(&name) {
            return Err(StagesError::Twice(name));
        }
        known.push(name);
        Ok(known)
    })
}

fn place(what: &'static str, names: &[&'static str], name: &'static str) -> Result<usize, StagesError> {
    names.iter().position(|known| *known == name).ok_or(StagesError::Unknown { what, name })
}

impl Names {
    fn stage(&self, decl: StageDecl, is_drain: bool) -> Result<Stage, StagesError> {
        let StageDecl { name, stream, uses } = decl;
        if let Err(StagesError::Twice(pool)) = unique(uses.iter().map(|(pool, _)| *pool)) {
            return Err(StagesError::UsedTwice { stage: name, pool });
        }
        let uses = uses.into_iter().map(|(pool, usage)| Ok((PoolId(place("pool", &self.pools, pool)?), usage)));
        let stream = StreamId(place("stream", &self.streams, stream)?);
        Ok(Stage { name, stream, uses: uses.collect::<Result<_, _>>()?, is_drain })
    }

    fn edge(&self, decl: EdgeDecl) -> Result<Edge, StagesError> {
        let EdgeDecl { name, from, to, guards, kind } = decl;
        let kind = match kind {
            EdgeKind::AliasOf(of) => EdgeKind::AliasOf(EdgeId(place("edge", &self.edges, of)?)),
            EdgeKind::Event => EdgeKind::Event,
            EdgeKind::StreamOrder => EdgeKind::StreamOrder,
            EdgeKind::Generation => EdgeKind::Generation,
            EdgeKind::HostRule => EdgeKind::HostRule,
        };
        let stage = |name| place("stage", &self.stages, name).map(StageId);
        Ok(Edge { name, from: stage(from)?, to: stage(to)?, guards: PoolId(place("pool", &self.pools, guards)?), kind })
    }
}
