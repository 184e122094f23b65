//! How staged work runs: how deep, and whether a slot is drained before or after a kick. Selected once, from facts.
//! Never changes while the work runs: another depth is another rung, hence another session.

use std::fmt;
use std::sync::Arc;

use super::declare::{Count, EdgeKind, Memory, Stages};
use super::ids::{EdgeId, PoolId};
use crate::Bytes;

/// What the way to run staged work depends on.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Items under way at once, as the rung says.
    pub depth: usize,
    /// How many pieces of staged work share the device, this one included.
    pub sharers: usize,
    /// Whether the device can wait for a counter that the host raises later.
    pub has_gates: bool,
}

impl Facts {
    /// Alone, on a device whose queue waits for nothing that the host does later.
    pub fn depth(depth: usize) -> Self {
        Self { depth, sharers: 1, has_gates: false }
    }
}

/// When an item is drained.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Only when its slot is about to be filled again.
    Pipelined,
    /// Before the next is kicked: one slot, and the host prepares the next item beside the device.
    DrainBeforeKick,
    /// Right after it was kicked: nothing of it stays on a device that others wait for.
    DrainAfterKick,
}

/// Why it is not pipelined, or that it is.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Reason {
    Deep,
    DepthOne,
    NoGates(&'static str),
    Shared(usize),
}

/// Checked stages and the way to run them.
#[derive(Clone, Debug)]
pub struct Plan {
    stages: Arc<Stages>,
    mode: Mode,
    depth: usize,
    reason: Reason,
}

impl Plan {
    /// Selects the way. A depth above what the stages allow counts as the deepest allowed.
    pub fn select(stages: &Arc<Stages>, facts: Facts) -> Self {
        let depth = facts.depth.clamp(1, stages.depth_max());
        let gate = stages.gate().filter(|_| !facts.has_gates && depth > 1);
        let (mode, depth, reason) = match gate {
            None if depth > 1 => (Mode::Pipelined, depth, Reason::Deep),
            _ if facts.sharers > 1 => (Mode::DrainAfterKick, 1, Reason::Shared(facts.sharers)),
            Some(gate) => (Mode::DrainBeforeKick, 1, Reason::NoGates(gate.name)),
            None => (Mode::DrainBeforeKick, 1, Reason::DepthOne),
        };
        Self { stages: Arc::clone(stages), mode, depth, reason }
    }

    /// What is run.
    pub fn stages(&self) -> &Arc<Stages> {
        &self.stages
    }

    /// When an item is drained.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Items under way at once.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// How many buffers a pool has.
    pub fn count(&self, pool: PoolId) -> usize {
        match self.stages[pool].count {
            Count::PerDepth => self.depth,
            Count::Fixed(count) => count,
        }
    }

    /// How many items after that of `from` the one of `to` comes.
    pub fn lag(&self, edge: EdgeId) -> u64 {
        let edge = &self.stages[edge];
        if edge.is_to_later_item() { self.count(edge.guards) as u64 } else { 0 }
    }

    /// Whether the edge is recorded and waited for here. An item that is drained already has left its buffers, so nobody
    /// waits for one as many items ago as are under way.
    pub fn records(&self, edge: EdgeId) -> bool {
        match self.stages[edge].kind {
            EdgeKind::Event => self.lag(edge) < self.depth as u64,
            EdgeKind::Generation => self.mode == Mode::Pipelined,
            EdgeKind::StreamOrder | EdgeKind::AliasOf(_) | EdgeKind::HostRule => false,
        }
    }

    /// Bytes of the device that it takes while as many items are under way as can be, readbacks included.
    pub fn footprint(&self) -> Bytes {
        self.bytes(Memory::Device) + self.bytes(Memory::Readback)
    }

    /// Bytes of all pools that lie there.
    pub fn bytes(&self, memory: Memory) -> Bytes {
        let pools = self.stages.pool_ids().filter(|pool| self.stages[*pool].memory == memory);
        pools.map(|pool| Bytes(self.stages[pool].bytes.0.saturating_mul(self.count(pool) as u64))).sum()
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.mode {
            Mode::Pipelined => {
                write!(f, "pipelined, depth {}: a slot is drained only when it is about to be filled again", self.depth)
            }
            Mode::DrainBeforeKick => write!(f, "each item is drained before the next is kicked: {}", self.reason),
            Mode::DrainAfterKick => write!(f, "each item is drained right after it was kicked: {}", self.reason),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Deep => f.write_str("there are several slots"),
            Self::DepthOne => f.write_str("there is one slot"),
            Self::NoGates(edge) => write!(f, "this device cannot wait for '{edge}', which the host raises"),
            Self::Shared(sharers) => write!(f, "there is one slot, and {sharers} share the device"),
        }
    }
}
