//! A chain as a graph of passes over planes: what both executors run. `device.rs` launches a kernel for each pass over
//! whole planes; `host/` pulls rows through all of them, so that the CPU keeps them in its cache.
//! Invariant: a pass stands after the passes it reads from.

mod codes;
mod pass;
mod rows;

use smallvec::SmallVec;

pub(crate) use self::codes::{Move, OnCodes, Windows};
use self::pass::WithTable;
pub(crate) use self::pass::{AnyPass, Pass, twin};
pub(crate) use self::rows::{Rows, RowsMut};
use crate::image::Size;

/// One plane in a graph: what a source or a pass gives.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Plane {
    /// The node that gives it.
    pub(crate) node: usize,
    /// Which of that node's planes it is.
    pub(crate) output: usize,
}

/// Planes of a picture: one or three.
pub(crate) type PlaneList = SmallVec<[Plane; 3]>;

/// Where planes come from.
#[derive(Debug)]
pub(crate) enum Node {
    /// From outside: the plane of this number among those handed in.
    Source {
        /// Its size.
        size: Size,
    },
    /// From a pass.
    Pass {
        /// What it does.
        pass: Box<dyn AnyPass>,
        /// What it reads.
        inputs: SmallVec<[Plane; 4]>,
        /// How many planes it gives.
        outputs: usize,
    },
}

impl Node {
    /// The size of each plane it gives.
    pub(crate) fn size(&self) -> Size {
        match self {
            Self::Source { size } => *size,
            Self::Pass { pass, .. } => pass.output(),
        }
    }

    /// How many planes it gives.
    pub(crate) fn outputs(&self) -> usize {
        match self {
            Self::Source { .. } => 1,
            Self::Pass { outputs, .. } => *outputs,
        }
    }

    /// The planes it reads.
    pub(crate) fn inputs(&self) -> &[Plane] {
        match self {
            Self::Source { .. } => &[],
            Self::Pass { inputs, .. } => inputs,
        }
    }
}

/// Passes over planes, each after those it reads from. The sources come first.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    nodes: Vec<Node>,
}

impl Graph {
    /// The nodes, each after those it reads from.
    pub(crate) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The size of a plane.
    pub(crate) fn size_of(&self, plane: Plane) -> Size {
        self.nodes[plane.node].size()
    }

    /// Bytes of all tables.
    pub(crate) fn table_bytes(&self) -> u64 {
        let of = |node: &Node| match node {
            Node::Source { .. } => 0,
            Node::Pass { pass, .. } => size_of_val(pass.table()) as u64,
        };
        self.nodes.iter().map(of).sum()
    }

    /// Whether a node gives something that a pass reads, or a result.
    pub(crate) fn is_needed(&self, node: usize, results: &[Plane]) -> bool {
        let mut read = self.nodes.iter().flat_map(Node::inputs).chain(results);
        read.any(|plane| plane.node == node)
    }

    /// Only what leads to results: passes that nothing reads are left out, as those of chroma are before `mono`. Sources
    /// stay, because they are told by their number.
    pub(crate) fn leading_to(self, results: &mut PlaneList) -> Self {
        let mut needed = vec![false; self.nodes.len()];
        results.iter().for_each(|plane| needed[plane.node] = true);
        for (at, node) in self.nodes.iter().enumerate().rev() {
            if needed[at] {
                node.inputs().iter().for_each(|plane| needed[plane.node] = true);
            }
        }
        let mut places = vec![0; self.nodes.len()];
        let mut kept = Vec::new();
        for (at, mut node) in self.nodes.into_iter().enumerate() {
            if needed[at] || matches!(node, Node::Source { .. }) {
                places[at] = kept.len();
                if let Node::Pass { inputs, .. } = &mut node {
                    inputs.iter_mut().for_each(|plane| plane.node = places[plane.node]);
                }
                kept.push(node);
            }
        }
        results.iter_mut().for_each(|plane| plane.node = places[plane.node]);
        Self { nodes: kept }
    }

    /// A plane that comes from outside.
    pub(crate) fn source(&mut self, size: Size) -> Plane {
        debug_assert!(self.nodes.iter().all(|node| matches!(node, Node::Source { .. })), "sources come first");
        self.nodes.push(Node::Source { size });
        Plane { node: self.nodes.len() - 1, output: 0 }
    }

    /// What a pass without a table makes of a plane.
    pub(crate) fn pass(&mut self, pass: impl Pass, input: Plane) -> Plane {
        self.pass_with(pass, Vec::new(), &[input])[0]
    }

    /// What a pass with a table (empty, if its kernel has none) makes of some planes.
    ///
    /// # Panics
    /// If the planes are not as many or as large as the pass says: an operation's own mistake.
    pub(crate) fn pass_with<P: Pass>(&mut self, pass: P, table: Vec<f32>, inputs: &[Plane]) -> PlaneList {
        assert_eq!(inputs.len(), P::INPUTS, "{pass:?} reads another number of planes");
        for input in inputs {
            assert_eq!(self.size_of(*input), pass.input(), "{pass:?} reads planes of another size");
        }
        let tables = usize::from(!table.is_empty());
        assert_eq!(P::kernel().bindings.len(), P::INPUTS + tables + P::OUTPUTS, "{pass:?} and its kernel disagree");
        let (inputs, outputs) = (SmallVec::from_slice(inputs), P::OUTPUTS);
        self.nodes.push(Node::Pass { pass: Box::new(WithTable { pass, table }), inputs, outputs });
        let node = self.nodes.len() - 1;
        (0..outputs).map(|output| Plane { node, output }).collect()
    }
}
