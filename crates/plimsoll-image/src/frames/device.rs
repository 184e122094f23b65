//! A program on a device: one launch for each pass, over whole planes. On the CPU backend the same code runs the
//! kernels' twins.
//! Invariant: a plane's buffer is given to another plane only after its last reader; result planes are poisoned before
//! they are computed, so what was never computed is never taken for an answer. A source that nothing reads has no home.

use plimsoll_core::{Bytes, Fault};
use plimsoll_runtime::Buffer;
use smallvec::SmallVec;

use super::graph::{Node, Plane};
use super::packed::Packed;
use super::plan::Program;
use crate::image::Size;
use crate::run::{Run, SIDE_MAX};

/// Where a plane lies.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Home {
    /// In a buffer of the session.
    Own(usize),
    /// In a buffer handed in with the task.
    Given(usize),
    /// In a buffer that becomes the result.
    Result(usize),
}

/// Whether every plane of a program is one that a launch covers. A frame of few, very long rows is not.
pub(super) fn can_launch(program: &Program) -> bool {
    let mut sizes = program.graph.nodes().iter().map(Node::size);
    sizes.all(|size| size.width <= SIDE_MAX && size.height <= SIDE_MAX)
}

/// A program's buffers on a device.
pub(super) struct DeviceWork {
    from: Option<Packed>,
    to: Option<Packed>,
    tables: Vec<Option<Buffer>>,
    own: Vec<Buffer>,
    homes: Vec<SmallVec<[Home; 3]>>,
}

impl DeviceWork {
    pub(super) fn open(run: &mut Run<'_>, program: &Program) -> Result<Self, Fault> {
        let (homes, words) = place(program);
        Ok(Self {
            from: program.from.map(|format| Packed::open(run, format)).transpose()?,
            to: program.to.map(|format| Packed::open(run, format)).transpose()?,
            tables: program.graph.nodes().iter().map(|node| table(run, node)).collect::<Result<_, _>>()?,
            own: words.into_iter().map(|words| run.allocate(words)).collect::<Result<_, _>>()?,
            homes,
        })
    }

    /// Runs a program that ends in a frame; gives its bytes. `frame` is what a program that begins with one reads,
    /// `given` what others read.
    pub(super) fn frame(
        &self,
        run: &mut Run<'_>,
        program: &Program,
        frame: Option<&[u8]>,
        given: &[&Buffer],
    ) -> Result<Vec<u8>, Fault> {
        self.compute(run, program, frame, given, &[])?;
        let to = self.to.as_ref().ok_or_else(|| Fault::work("this part of the chain ends in planes"))?;
        let planes: SmallVec<[&Buffer; 3]> =
            program.results.iter().map(|plane| self.buffer(*plane, given, &[])).collect();
        to.pack(run, &planes)?;
        to.download(run)
    }

    /// Runs a program that ends in planes; gives them.
    pub(super) fn planes(
        &self,
        run: &mut Run<'_>,
        program: &Program,
        frame: Option<&[u8]>,
    ) -> Result<Vec<Buffer>, Fault> {
        let sizes = program.results.iter().map(|plane| program.graph.size_of(*plane).pixels());
        let results = sizes.map(|words| run.allocate(words)).collect::<Result<Vec<_>, _>>()?;
        self.compute(run, program, frame, &[], &results.iter().collect::<Vec<_>>())?;
        Ok(results)
    }

    fn compute(
        &self,
        run: &mut Run<'_>,
        program: &Program,
        frame: Option<&[u8]>,
        given: &[&Buffer],
        results: &[&Buffer],
    ) -> Result<(), Fault> {
        if let Some(from) = &self.from {
            from.upload(run, frame)?;
        }
        let nodes = program.graph.nodes().iter().enumerate();
        for (at, node) in nodes.filter(|(at, _)| !self.homes[*at].is_empty()) {
            let outputs: SmallVec<[&Buffer; 3]> =
                (0..node.outputs()).map(|output| self.buffer(Plane { node: at, output }, given, results)).collect();
            self.poison_results(run, program, at, &outputs)?;
            match node {
                Node::Source { .. } => {
                    if let Some(from) = &self.from {
                        from.unpack(run, at, outputs[0])?;
                    }
                }
                Node::Pass { pass, inputs, .. } => {
                    let inputs = inputs.iter().map(|plane| self.buffer(*plane, given, results));
                    let table = self.tables[at].as_ref();
                    let buffers: SmallVec<[&Buffer; 8]> = inputs.chain(table).chain(outputs).collect();
                    let Size { width, height } = pass.output();
                    run.over_bytes(pass.kernel(), &buffers, pass.params(), width, height)?;
                }
            }
        }
        Ok(())
    }

    fn poison_results(
        &self,
        run: &mut Run<'_>,
        program: &Program,
        node: usize,
        outputs: &[&Buffer],
    ) -> Result<(), Fault> {
        let results = program.results.iter().filter(|plane| plane.node == node && self.to.is_some());
        for plane in results.filter(|plane| !matches!(self.homes[node][plane.output], Home::Given(_))) {
            run.backend.poison(outputs[plane.output])?;
        }
        Ok(())
    }

    fn buffer<'a>(&'a self, plane: Plane, given: &[&'a Buffer], results: &[&'a Buffer]) -> &'a Buffer {
        match self.homes[plane.node][plane.output] {
            Home::Own(at) => &self.own[at],
            Home::Given(at) => given[at],
            Home::Result(at) => results[at],
        }
    }
}

fn table(run: &mut Run<'_>, node: &Node) -> Result<Option<Buffer>, Fault> {
    let Node::Pass { pass, .. } = node else { return Ok(None) };
    if pass.table().is_empty() {
        return Ok(None);
    }
    let buffer = run.allocate(pass.table().len() as u64)?;
    run.backend.write(&buffer, Bytes::ZERO, bytemuck::cast_slice(pass.table()))?;
    Ok(Some(buffer))
}

/// A home for every plane, and the words of each buffer of the session.
fn place(program: &Program) -> (Vec<SmallVec<[Home; 3]>>, Vec<u64>) {
    let last_read = last_read(program);
    let mut words: Vec<u64> = Vec::new();
    let mut vacant: Vec<usize> = Vec::new();
    let mut homes: Vec<SmallVec<[Home; 3]>> = Vec::new();
    for (at, node) in program.graph.nodes().iter().enumerate() {
        if !program.graph.is_needed(at, &program.results) {
            homes.push(SmallVec::new());
            continue;
        }
        let pixels = node.size().pixels();
        let home = |output: usize| home_outside(program, Plane { node: at, output });
        let of_node = (0..node.outputs())
            .map(|output| home(output).unwrap_or_else(|| Home::Own(take_vacant(&mut vacant, &mut words, pixels))));
        homes.push(of_node.collect());
        vacant.extend(last_read[at].iter().filter_map(|plane| match homes[plane.node][plane.output] {
            Home::Own(buffer) => Some(buffer),
            Home::Given(_) | Home::Result(_) => None,
        }));
    }
    (homes, words)
}

/// For each node, the planes that it is the last to read. What is a result is read after all of them.
fn last_read(program: &Program) -> Vec<Vec<Plane>> {
    let nodes = program.graph.nodes();
    let mut last_read = vec![Vec::new(); nodes.len()];
    for (node, of) in nodes.iter().enumerate() {
        let planes = (0..of.outputs()).map(|output| Plane { node, output });
        for plane in planes.filter(|plane| !program.results.contains(plane)) {
            let last = nodes.iter().rposition(|node| node.inputs().contains(&plane));
            last_read[last.unwrap_or(node)].push(plane);
        }
    }
    last_read
}

fn home_outside(program: &Program, plane: Plane) -> Option<Home> {
    let is_source = matches!(program.graph.nodes()[plane.node], Node::Source { .. });
    if is_source && program.from.is_none() {
        return Some(Home::Given(plane.node));
    }
    let result = program.results.iter().position(|result| *result == plane)?;
    program.to.is_none().then_some(Home::Result(result))
}

/// A buffer of just this size that nobody needs any more, or a new one.
fn take_vacant(vacant: &mut Vec<usize>, words: &mut Vec<u64>, wanted: u64) -> usize {
    match vacant.iter().position(|&buffer| words[buffer] == wanted) {
        Some(at) => vacant.swap_remove(at),
        None => {
            words.push(wanted);
            words.len() - 1
        }
    }
}
