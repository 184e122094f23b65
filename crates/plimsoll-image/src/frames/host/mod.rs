//! A program on the CPU: rows are pulled through all passes at once, so that they stay in the core's cache. What is made
//! of codes alone (`routes.rs`) never becomes numbers.
//! Never starts a thread: one frame, one core. Invariant: the rows are those of the kernels' twins, bit for bit; scaled
//! codes of 8 to 10 bits are at most one away (`sums.rs`).

mod fixed;
mod lanes;
mod moves;
mod routes;
mod sums;
mod walk;
mod zeros;

use std::borrow::Cow;
use std::ops::Range;

use archmage::autoversion;
use plimsoll_core::{Bytes, Fault, MemoryMoment};
use plimsoll_runtime::Cancellation;
use smallvec::SmallVec;

use self::routes::Routes;
use self::walk::{Visit, Walk, rows_held};
use self::zeros::zeros;
use super::format::{Colour, Format};
use super::graph::{Node, Plane, Rows, RowsMut};
use super::plan::Program;
use super::samples::{narrow, widen};
use crate::image::Size;

/// Planes of numbers, as a frame's first part leaves them.
pub(super) type HostPlanes = Vec<Vec<f32>>;

/// A program's memory on the CPU: for each node a ring of rows for each plane it gives, but for those on the way to
/// planes that are made of codes.
pub(super) struct HostWork {
    routes: Routes,
    /// Results that are made of numbers.
    walked: Vec<usize>,
    rings: Vec<Vec<Vec<f32>>>,
}

/// How much memory a program takes on the CPU: that of its rings and tables, and that of its result. Tables lie in the
/// plan, which all sessions of a format share; counting them with each never promises too little.
pub(super) fn bytes(program: &Program) -> (Bytes, Bytes) {
    let routes = Routes::find(program);
    let samples = ring_samples(program, &walked(program, &routes));
    let rings: u64 = samples.iter().map(|(planes, samples)| *planes as u64 * *samples as u64 * 4).sum();
    let result = match program.to {
        Some(_) if routes.are_idle() => 0,
        Some(format) => format.frame_bytes() as u64,
        None => program.results.iter().map(|plane| program.graph.size_of(*plane).pixels() * 4).sum(),
    };
    (Bytes(rings + routes.bytes() + program.graph.table_bytes()), Bytes(result))
}

/// The results that are made of numbers.
fn walked(program: &Program, routes: &Routes) -> Vec<usize> {
    (0..program.results.len()).filter(|result| !routes.lead_to(*result)).collect()
}

/// For each node, how many planes it gives and how many samples a ring of each holds.
fn ring_samples(program: &Program, walked: &[usize]) -> Vec<(usize, usize)> {
    let is_given = |node: &Node| matches!(node, Node::Source { .. }) && program.from.is_none();
    let nodes = program.graph.nodes().iter().zip(rows_held(program, walked));
    let samples = nodes.map(|(node, held)| {
        let Size { width, height } = node.size();
        let rows = if is_given(node) { 0 } else { held.min(height) };
        (node.outputs(), rows as usize * width as usize)
    });
    samples.collect()
}

impl HostWork {
    pub(super) fn open(program: &Program) -> Result<Self, Fault> {
        let ring = |(planes, samples)| (0..planes).map(|_| zeros(samples, MemoryMoment::Open)).collect();
        let mut routes = Routes::find(program);
        routes.open()?;
        let walked = walked(program, &routes);
        let rings = ring_samples(program, &walked).into_iter().map(ring).collect::<Result<_, _>>()?;
        Ok(Self { routes, walked, rings })
    }

    /// Whether a frame comes out as it goes in.
    pub(super) fn leaves(&self, format: Format, frame: &[u8]) -> bool {
        self.routes.are_idle() && !has_codes_above(format, frame)
    }

    /// Whether every plane is made of codes alone.
    #[cfg(test)]
    pub(super) fn walks_nothing(&self) -> bool {
        self.walked.is_empty()
    }

    /// Leaves nothing useful in the rings.
    #[cfg(test)]
    pub(super) fn spoil(&mut self) {
        self.rings.iter_mut().flatten().for_each(|ring| ring.fill(f32::NAN));
    }

    /// Runs a program that ends in a frame; gives its bytes, in the memory that it was given, if there is some.
    pub(super) fn frame(
        &mut self,
        program: &Program,
        frame: Option<&[u8]>,
        given: &[&[f32]],
        room: Option<Vec<u8>>,
        cancellation: Cancellation<'_>,
    ) -> Result<Vec<u8>, Fault> {
        let to = program.to.ok_or_else(|| Fault::work("this part of the chain ends in planes"))?;
        // Every byte of it is written.
        let room = room.filter(|room| room.len() == to.frame_bytes());
        let bytes = room.map_or_else(|| zeros(to.frame_bytes(), MemoryMoment::Run), Ok)?;
        let mut taker = ToFrame { format: to, bytes, firsts: first_bytes(to) };
        if let (Some(from), Some(frame)) = (program.from, frame)
            && self.walked.len() < program.results.len()
        {
            cancellation.check()?;
            self.routes.run(&program.graph, (from, &bounded(from, frame)), (to, &mut taker.bytes));
        }
        self.run(program, frame, given, cancellation, &mut taker)?;
        Ok(taker.bytes)
    }

    /// Runs a program that ends in planes; gives them.
    pub(super) fn planes(
        &mut self,
        program: &Program,
        frame: Option<&[u8]>,
        cancellation: Cancellation<'_>,
    ) -> Result<HostPlanes, Fault> {
        let sizes = program.results.iter().map(|plane| program.graph.size_of(*plane).pixels() as usize);
        let planes = sizes.map(|samples| zeros(samples, MemoryMoment::Run));
        let mut taker = ToPlanes(planes.collect::<Result<_, _>>()?);
        self.run(program, frame, &[], cancellation, &mut taker)?;
        Ok(taker.0)
    }

    fn run(
        &mut self,
        program: &Program,
        frame: Option<&[u8]>,
        given: &[&[f32]],
        cancellation: Cancellation<'_>,
        taker: &mut dyn Take,
    ) -> Result<(), Fault> {
        let mut working = Working { rings: &mut self.rings, program, frame, given, cancellation, taker };
        match Walk::new(program).run(program, &self.walked, &mut working) {
            true => Ok(()),
            false => Err(Fault::Cancelled),
        }
    }
}

/// A frame whose codes are all codes: above the highest there are none, and numbers above 1 are cut off too.
fn bounded(format: Format, frame: &[u8]) -> Cow<'_, [u8]> {
    if !has_codes_above(format, frame) {
        return Cow::Borrowed(frame);
    }
    let codes = frame.as_chunks().0.iter().map(|code| u16::from_le_bytes(*code).min(format.code_max()));
    Cow::Owned(codes.flat_map(u16::to_le_bytes).collect())
}

fn has_codes_above(format: Format, frame: &[u8]) -> bool {
    // Eight and sixteen bits hold nothing else.
    !format.depth().is_multiple_of(8) && highest(frame.as_chunks().0) > format.code_max()
}

#[autoversion(v4, v3)]
fn highest(codes: &[[u8; 2]]) -> u16 {
    codes.iter().fold(0, |highest, code| highest.max(u16::from_le_bytes(*code)))
}

/// Where rows of results go.
trait Take {
    fn take(&mut self, result: usize, y: u32, row: &[f32]);
}

struct ToFrame {
    format: Format,
    bytes: Vec<u8>,
    firsts: Vec<usize>,
}

impl Take for ToFrame {
    fn take(&mut self, result: usize, y: u32, row: &[f32]) {
        let (sample_bytes, step) = (self.format.sample_bytes(), step(self.format));
        let first = self.firsts[result] + y as usize * row.len() * step * sample_bytes;
        narrow(row, f32::from(self.format.code_max()), sample_bytes, step, &mut self.bytes[first..]);
    }
}

struct ToPlanes(HostPlanes);

impl Take for ToPlanes {
    fn take(&mut self, result: usize, y: u32, row: &[f32]) {
        self.0[result][y as usize * row.len()..][..row.len()].copy_from_slice(row);
    }
}

/// Samples from one pixel of a plane to the next.
fn step(format: Format) -> usize {
    if format.colour() == Colour::Rgb { 3 } else { 1 }
}

/// The first byte of each plane.
fn first_bytes(format: Format) -> Vec<usize> {
    let mut first = 0;
    let sizes = format.plane_sizes();
    let next = |size: &Size| {
        let this = first;
        first += if format.colour() == Colour::Rgb { 1 } else { size.pixels() as usize } * format.sample_bytes();
        this
    };
    sizes.iter().map(next).collect()
}

/// Where rows are read from.
struct Sources<'a> {
    rings: &'a [Vec<Vec<f32>>],
    program: &'a Program,
    given: &'a [&'a [f32]],
}

impl<'a> Sources<'a> {
    fn rows(&self, plane: Plane) -> Rows<'a> {
        match &self.program.graph.nodes()[plane.node] {
            Node::Source { size } if self.program.from.is_none() => Rows::new(self.given[plane.node], size.width),
            node => Rows::new(&self.rings[plane.node][plane.output], node.size().width),
        }
    }
}

struct Working<'a> {
    rings: &'a mut [Vec<Vec<f32>>],
    program: &'a Program,
    frame: Option<&'a [u8]>,
    given: &'a [&'a [f32]],
    cancellation: Cancellation<'a>,
    taker: &'a mut dyn Take,
}

impl Working<'_> {
    fn unpack(&mut self, node: usize, size: Size, rows: Range<u32>) {
        let (Some(format), Some(bytes)) = (self.program.from, self.frame) else { return };
        let (sample_bytes, step) = (format.sample_bytes(), step(format));
        let first = first_bytes(format)[node];
        let mut out = RowsMut::new(&mut self.rings[node][0], size.width);
        for y in rows {
            let at = first + y as usize * size.width as usize * step * sample_bytes;
            widen(&bytes[at..], step, sample_bytes, 1.0 / f32::from(format.code_max()), out.row(y));
        }
    }
}

impl Visit for Working<'_> {
    fn rows(&mut self, _: &Walk, node: usize, rows: Range<u32>) {
        match &self.program.graph.nodes()[node] {
            Node::Source { size } => self.unpack(node, *size, rows),
            Node::Pass { pass, inputs, .. } => {
                // A pass never reads what it writes.
                let mut own = std::mem::take(&mut self.rings[node]);
                let sources = Sources { rings: self.rings, program: self.program, given: self.given };
                let inputs: SmallVec<[Rows<'_>; 4]> = inputs.iter().map(|plane| sources.rows(*plane)).collect();
                let width = pass.output().width;
                let outputs = own.iter_mut().map(|ring| RowsMut::new(ring, width));
                pass.rows(rows, &inputs, &mut outputs.collect::<SmallVec<[_; 3]>>());
                drop(inputs);
                self.rings[node] = own;
            }
        }
    }

    fn take(&mut self, result: usize, rows: Range<u32>) {
        let sources = Sources { rings: self.rings, program: self.program, given: self.given };
        let plane = sources.rows(self.program.results[result]);
        rows.for_each(|y| self.taker.take(result, y, plane.row(y)));
    }

    fn goes_on(&self) -> bool {
        self.cancellation.check().is_ok()
    }
}
