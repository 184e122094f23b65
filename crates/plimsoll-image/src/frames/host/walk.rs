//! In which order rows are computed: bands of each pass, just when a later pass needs them.
//! Never computes a row: the same walk plans the rings and then fills them, so the plan cannot drift from the work.

use std::ops::Range;

use super::super::graph::{Graph, Node};
use super::super::plan::Program;

/// Rows computed at once: enough to be worth a call, few enough that the rows of a whole chain stay in a core's cache.
const BAND: u32 = 16;

/// How far each node and each result has come.
pub(super) struct Walk {
    /// Rows that each node has given: whole bands, or all.
    done: Vec<u32>,
    /// Rows of each result that were taken out.
    taken: Vec<u32>,
}

/// What a walk does.
pub(super) trait Visit {
    /// Computes these rows of a node; all they are made of is there.
    fn rows(&mut self, walk: &Walk, node: usize, rows: Range<u32>);
    /// Takes these rows of a result out.
    fn take(&mut self, result: usize, rows: Range<u32>);
    /// Whether to go on; asked once a band.
    fn goes_on(&self) -> bool;
}

impl Walk {
    /// Before the first row.
    pub(super) fn new(program: &Program) -> Self {
        Self { done: vec![0; program.graph.nodes().len()], taken: vec![0; program.results.len()] }
    }

    /// Walks to the last row of these results. All come on together, so that none has to wait long for its rows to be
    /// taken. Says whether it got there.
    pub(super) fn run(mut self, program: &Program, results: &[usize], visit: &mut impl Visit) -> bool {
        let height = |result: &usize| program.graph.size_of(program.results[*result]).height;
        let heights: Vec<(usize, u32)> = results.iter().map(|result| (*result, height(result))).collect();
        let steps = heights.iter().map(|(_, height)| height.div_ceil(BAND)).max().unwrap_or(0);
        for step in 1..=steps {
            if !visit.goes_on() {
                return false;
            }
            for (result, height) in heights.iter().copied() {
                let upto = (u64::from(height) * u64::from(step)).div_ceil(u64::from(steps)) as u32;
                self.advance(&program.graph, program.results[result].node, upto, visit);
                visit.take(result, self.taken[result]..upto);
                self.taken[result] = upto;
            }
        }
        true
    }

    fn advance(&mut self, graph: &Graph, node: usize, upto: u32, visit: &mut impl Visit) {
        let height = graph.nodes()[node].size().height;
        // A reach beyond the plane would never be come to.
        debug_assert!(upto <= height, "row {upto} of {height} is asked for");
        let upto = upto.min(height);
        while self.done[node] < upto {
            let rows = self.done[node]..(self.done[node] + BAND).min(height);
            if let Node::Pass { pass, inputs, .. } = &graph.nodes()[node] {
                let reach = pass.reach(rows.clone());
                for input in inputs {
                    self.advance(graph, input.node, reach.end, visit);
                }
            }
            self.done[node] = rows.end;
            visit.rows(self, node, rows);
        }
    }
}

/// The rows that a ring of each node has to hold for these results, found by walking without computing.
pub(super) fn rows_held(program: &Program, results: &[usize]) -> Vec<u32> {
    let nodes = program.graph.nodes();
    let mut rings = RingPlan {
        held: vec![0; nodes.len()],
        needs: nodes.iter().map(needs).collect(),
        readers: readers(program, results),
        program,
        results,
        taken: vec![0; program.results.len()],
    };
    Walk::new(program).run(program, results, &mut rings);
    rings.held
}

/// For each band of a node and all after it, the first input row that is still needed.
fn needs(node: &Node) -> Vec<u32> {
    let Node::Pass { pass, .. } = node else { return Vec::new() };
    let height = node.size().height;
    let bands = (0..height).step_by(BAND as usize).map(|first| first..(first + BAND).min(height));
    let first_of = |reach: Range<u32>| if reach.is_empty() { u32::MAX } else { reach.start };
    let mut needs: Vec<u32> = bands.map(|band| first_of(pass.reach(band))).collect();
    for at in (1..needs.len()).rev() {
        needs[at - 1] = needs[at - 1].min(needs[at]);
    }
    needs
}

/// For each node, those that read from it on the way to these results.
fn readers(program: &Program, results: &[usize]) -> Vec<Vec<usize>> {
    let nodes = program.graph.nodes();
    let (mut readers, mut is_needed) = (vec![Vec::new(); nodes.len()], vec![false; nodes.len()]);
    results.iter().for_each(|result| is_needed[program.results[*result].node] = true);
    for (reader, node) in nodes.iter().enumerate().rev() {
        if is_needed[reader] {
            for input in node.inputs() {
                is_needed[input.node] = true;
                readers[input.node].push(reader);
            }
        }
    }
    readers
}

struct RingPlan<'a> {
    program: &'a Program,
    results: &'a [usize],
    held: Vec<u32>,
    needs: Vec<Vec<u32>>,
    readers: Vec<Vec<usize>>,
    taken: Vec<u32>,
}

impl RingPlan<'_> {
    /// The first row of a node that somebody still needs.
    fn first_needed(&self, walk: &Walk, node: usize) -> u32 {
        let by_passes = self.readers[node].iter().filter_map(|reader| {
            // A band under way still needs its rows: its own start counts until the next visit. After the last band
            // there are no needs.
            let band = walk.done[*reader].div_ceil(BAND);
            self.needs[*reader].get(band as usize).copied()
        });
        let results = self.results.iter().filter(|result| self.program.results[**result].node == node);
        let by_results = results.map(|result| self.taken[*result]);
        by_passes.chain(by_results).min().unwrap_or(walk.done[node])
    }
}

impl Visit for RingPlan<'_> {
    fn rows(&mut self, walk: &Walk, node: usize, rows: Range<u32>) {
        // Everything up to now is there at once with what was needed before this band. Rows of this band that nobody
        // needs are there too: a pass may write its rows in any order.
        let first = self.first_needed(walk, node).min(rows.start);
        self.held[node] = self.held[node].max(walk.done[node] - first);
    }

    fn take(&mut self, result: usize, rows: Range<u32>) {
        self.taken[result] = rows.end;
    }

    fn goes_on(&self) -> bool {
        true
    }
}
