//! Planes of a result that are made of codes alone: nothing of them is ever a number. The rest is walked.
//! Invariant: the codes are those of the passes; scaled ones at most one away (`fixed.rs`).

use std::ops::Range;

use plimsoll_core::{Fault, MemoryMoment};

use super::fixed::Scaler;
use super::moves::moved;
use super::zeros::zeros;
use crate::frames::format::{Colour, Format};
use crate::frames::graph::{AnyPass, Graph, Move, Node, OnCodes, Plane, Rows, RowsMut, Windows};
use crate::frames::plan::Program;
use crate::frames::samples::{narrow, widen};
use crate::image::Size;

/// The deepest codes that are looked up in a table: that of deeper ones would leave the nearest caches.
const TABLE_DEPTH_MAX: u8 = 12;

/// The ways of all planes of a result, where there are some.
pub(super) struct Routes {
    /// For each result; for interleaved frames, the first is that of whole pixels.
    each: Vec<Option<Route>>,
    is_interleaved: bool,
    /// Whether a frame comes out as it goes in.
    is_idle: bool,
    /// What lies between two steps, and what the next one makes of it, once it is open.
    between: [Vec<u8>; 2],
    between_bytes: usize,
}

/// The way of one plane from a frame to a frame.
struct Route {
    /// The plane it comes from.
    source: usize,
    steps: Vec<Step>,
}

/// One thing done to a whole plane.
struct Step {
    from: Size,
    to: Size,
    what: What,
}

enum What {
    /// Codes go elsewhere; what is left of the plane are these, one for each channel of a pixel.
    Move {
        how: Move,
        fills: [u16; 3],
    },
    /// A code for each code.
    Map(Vec<u16>),
    /// The rows of a pass, only these.
    Rows {
        node: usize,
        rows: Range<u32>,
    },
    Scale(Box<Scaler>),
}

impl Routes {
    /// Finds the ways of a program.
    pub(super) fn find(program: &Program) -> Self {
        let is_interleaved = |format: Format| format.colour() == Colour::Rgb;
        let mut routes = Self {
            each: Vec::new(),
            is_interleaved: false,
            is_idle: false,
            between: Default::default(),
            between_bytes: 0,
        };
        routes.each.resize_with(program.results.len(), || None);
        let (Some(from), Some(to)) = (program.from, program.to) else { return routes };
        if from.depth() != to.depth() || is_interleaved(from) != is_interleaved(to) {
            return routes;
        }
        routes.each = program.results.iter().map(|plane| Route::find(&program.graph, *plane, from)).collect();
        routes.is_interleaved = is_interleaved(from);
        if routes.is_interleaved {
            routes.each = vec![Route::of_pixels(std::mem::take(&mut routes.each))];
        }
        let stays = |(plane, route): (usize, &Option<Route>)| {
            route.as_ref().is_some_and(|route| route.source == plane && route.steps.is_empty())
        };
        routes.is_idle = from.frame_bytes() == to.frame_bytes() && routes.each.iter().enumerate().all(stays);
        let inner = |route: &Route| route.steps.iter().rev().skip(1).map(|step| step.to.pixels()).max().unwrap_or(0);
        let most = routes.each.iter().flatten().map(inner).max().unwrap_or(0);
        routes.between_bytes = most as usize * routes.pixel_bytes(from);
        routes
    }

    /// Takes the memory for what lies between steps.
    pub(super) fn open(&mut self) -> Result<(), Fault> {
        for between in &mut self.between {
            *between = zeros(self.between_bytes, MemoryMoment::Open)?;
        }
        Ok(())
    }

    fn pixel_bytes(&self, format: Format) -> usize {
        format.sample_bytes() * if self.is_interleaved { 3 } else { 1 }
    }

    /// Whether this result has a way.
    pub(super) fn lead_to(&self, result: usize) -> bool {
        self.each[if self.is_interleaved { 0 } else { result }].is_some()
    }

    /// Whether a frame comes out as it goes in.
    pub(super) fn are_idle(&self) -> bool {
        self.is_idle
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> u64 {
        let of = |step: &Step| match &step.what {
            What::Map(table) => size_of_val(&table[..]) as u64,
            What::Scale(scaler) => scaler.bytes(),
            What::Move { .. } | What::Rows { .. } => 0,
        };
        let steps = self.each.iter().flatten().flat_map(|route| &route.steps);
        steps.map(of).sum::<u64>() + 2 * self.between_bytes as u64
    }

    /// Makes all planes that have a way, from a frame of one format to a frame of another.
    pub(super) fn run(&mut self, graph: &Graph, from: (Format, &[u8]), to: (Format, &mut [u8])) {
        let pixel_bytes = self.pixel_bytes(from.0);
        let (places, sizes) = (places(from.0, pixel_bytes), to.0.plane_sizes());
        let (mut rest, [here, there]) = (to.1, &mut self.between);
        for (route, size) in self.each.iter_mut().zip(sizes) {
            let out;
            (out, rest) = rest.split_at_mut(size.pixels() as usize * pixel_bytes);
            let Some(route) = route else { continue };
            let plane = &from.1[places[route.source].clone()];
            let Some((last, steps)) = route.steps.split_last_mut() else {
                out.copy_from_slice(plane);
                continue;
            };
            // What lies between steps is as long as the largest plane there: a step sees no more than its own.
            let bytes_of = |size: Size| size.pixels() as usize * pixel_bytes;
            for (at, step) in steps.iter_mut().enumerate() {
                let seen = if at == 0 { plane } else { &here[..bytes_of(step.from)] };
                step.run(graph, from.0, seen, &mut there[..bytes_of(step.to)]);
                std::mem::swap(here, there);
            }
            let seen = if steps.is_empty() { plane } else { &here[..bytes_of(last.from)] };
            last.run(graph, from.0, seen, out);
        }
    }
}

/// Where each plane of a frame lies, or all pixels of an interleaved one.
fn places(format: Format, pixel_bytes: usize) -> Vec<Range<usize>> {
    let mut end = 0;
    let next = |size: &Size| {
        let first = end;
        end += size.pixels() as usize * pixel_bytes;
        first..end
    };
    format.plane_sizes().iter().map(next).collect()
}

impl Route {
    /// The way of a plane: each pass must say what it does to codes. What a pass gives is not rounded to codes before the
    /// next, so once there are numbers that are no codes, samples may only move.
    fn find(graph: &Graph, mut plane: Plane, format: Format) -> Option<Self> {
        let mut nodes = Vec::new();
        while let Node::Pass { inputs, outputs: 1, .. } = &graph.nodes()[plane.node] {
            let [input] = inputs[..] else { return None };
            nodes.push(plane.node);
            plane = input;
        }
        let (source, mut steps, mut are_codes) = (plane.node, Vec::new(), true);
        matches!(graph.nodes()[source], Node::Source { .. }).then_some(())?;
        nodes.reverse();
        let mut rest = nodes.as_slice();
        while let Some((step, count)) = Step::first_of(graph, rest, graph.size_of(plane), format) {
            plane = Plane { node: rest[count - 1], output: 0 };
            if step.computes() && !are_codes {
                return None;
            }
            are_codes &= step.gives_codes(graph, &rest[..count], format);
            rest = &rest[count..];
            if !step.is_idle() {
                steps.push(step);
            }
        }
        rest.is_empty().then_some(Self { source, steps })
    }

    /// The way of whole pixels, if all channels go the same.
    fn of_pixels(channels: Vec<Option<Self>>) -> Option<Self> {
        let channels: Vec<Self> = channels.into_iter().collect::<Option<_>>()?;
        let is_in_place = channels.iter().enumerate().all(|(at, route)| route.source == at);
        let is_alike = channels.iter().all(|route| route.steps.len() == channels[0].steps.len());
        let steps = is_in_place && is_alike;
        let steps = steps.then(|| (0..channels[0].steps.len()).map(|at| Step::of_pixels(&channels, at)));
        Some(Self { source: 0, steps: steps?.collect::<Option<_>>()? })
    }
}

/// The pass of a node.
fn pass_of(graph: &Graph, node: usize) -> Option<&dyn AnyPass> {
    match &graph.nodes()[node] {
        Node::Pass { pass, .. } => Some(&**pass),
        Node::Source { .. } => None,
    }
}

impl Step {
    /// What the first of some passes do to codes of a plane, and how many of them it takes.
    fn first_of(graph: &Graph, nodes: &[usize], from: Size, format: Format) -> Option<(Self, usize)> {
        let on_codes = |node: &usize| pass_of(graph, *node)?.on_codes();
        let (what, count) = match on_codes(nodes.first()?)? {
            OnCodes::Move { how, fill } => (What::Move { how, fills: [code_of(fill, format); 3] }, 1),
            OnCodes::Rows(rows) => (What::Rows { node: nodes[0], rows }, 1),
            OnCodes::Map => {
                let maps: Vec<usize> =
                    nodes.iter().take_while(|node| on_codes(node) == Some(OnCodes::Map)).copied().collect();
                let is_small = format.depth() <= TABLE_DEPTH_MAX;
                (What::Map(is_small.then(|| table(graph, &maps, format))?), maps.len())
            }
            OnCodes::Windows(_) => {
                let windows = nodes.iter().map_while(|node| match on_codes(node) {
                    Some(OnCodes::Windows(windows)) => Some(windows),
                    _ => None,
                });
                let windows: Vec<Windows<'_>> = windows.collect();
                let to = graph.nodes()[nodes[windows.len() - 1]].size();
                let scaler = Scaler::new(format.depth(), from, to, &windows)?;
                (What::Scale(Box::new(scaler)), windows.len())
            }
        };
        Some((Self { from, to: graph.nodes()[nodes[count - 1]].size(), what }, count))
    }

    /// One step of all channels, if it is the same.
    fn of_pixels(channels: &[Route], at: usize) -> Option<Self> {
        let step = &channels[0].steps[at];
        let what = match &step.what {
            What::Move { how, .. } => {
                let fill = |route: &Route| match &route.steps[at].what {
                    What::Move { how: other, fills } if other == how => Some(fills[0]),
                    _ => None,
                };
                let fills: Vec<u16> = channels.iter().map(fill).collect::<Option<_>>()?;
                What::Move { how: *how, fills: fills.try_into().ok()? }
            }
            What::Map(table) => {
                let is_same = |route: &Route| matches!(&route.steps[at].what, What::Map(other) if other == table);
                What::Map(channels.iter().all(is_same).then(|| table.clone())?)
            }
            What::Rows { .. } | What::Scale(_) => return None,
        };
        Some(Self { from: step.from, to: step.to, what })
    }

    /// Whether it makes samples of samples, rather than moving them.
    fn computes(&self) -> bool {
        !matches!(self.what, What::Move { .. })
    }

    /// Whether its passes, given numbers that are codes, give such numbers again.
    fn gives_codes(&self, graph: &Graph, nodes: &[usize], format: Format) -> bool {
        let is_code = |fill: f32| number_of(code_of(fill, format), format) == fill;
        let fills = nodes.iter().filter_map(|node| match pass_of(graph, *node)?.on_codes()? {
            OnCodes::Move { fill, .. } => Some(fill),
            _ => None,
        });
        !self.computes() && fills.into_iter().all(is_code)
    }

    /// Whether it leaves everything where it is.
    fn is_idle(&self) -> bool {
        let whole = Move::Window { from: (0, 0), to: (0, 0), size: self.from };
        matches!(&self.what, What::Move { how, .. } if *how == whole && self.from == self.to)
    }

    fn run(&mut self, graph: &Graph, format: Format, from: &[u8], to: &mut [u8]) {
        let (from_size, to_size) = (self.from, self.to);
        match &mut self.what {
            What::Move { how, fills } => {
                let (from, to) = ((from, from_size), (to, to_size));
                let low = fills.map(|fill| fill.to_le_bytes()[0]);
                match (from.0.len() / from_size.pixels() as usize, fills.map(u16::to_le_bytes)) {
                    (1, _) => moved(*how, [low[0]], from, to),
                    (2, [fill, ..]) => moved(*how, fill, from, to),
                    (3, _) => moved(*how, low, from, to),
                    (_, [[a, b], [c, d], [e, f]]) => moved(*how, [a, b, c, d, e, f], from, to),
                }
            }
            What::Map(table) => map(table, format.sample_bytes(), from, to),
            What::Rows { node, rows } => {
                to.copy_from_slice(from);
                let pass = pass_of(graph, *node).expect("a route leads through passes");
                change_rows(pass, rows.clone(), format, from, to);
            }
            What::Scale(scaler) => scaler.run(from, to),
        }
    }
}

/// The code of a number.
fn code_of(number: f32, format: Format) -> u16 {
    let mut bytes = [0; 2];
    narrow(&[number], f32::from(format.code_max()), format.sample_bytes(), 1, &mut bytes);
    u16::from_le_bytes(bytes)
}

/// The number that a code stands for, as passes see it.
fn number_of(code: u16, format: Format) -> f32 {
    f32::from(code) * (1.0 / f32::from(format.code_max()))
}

/// What passes make of every code.
fn table(graph: &Graph, nodes: &[usize], format: Format) -> Vec<u16> {
    let (max, count) = (f32::from(format.code_max()), usize::from(format.code_max()) + 1);
    let mut numbers: Vec<f32> = (0..=format.code_max()).map(|code| number_of(code, format)).collect();
    for pass in nodes.iter().filter_map(|node| pass_of(graph, *node)) {
        let mut made = vec![0.0; count];
        pass.rows(0..1, &[Rows::new(&numbers, count as u32)], &mut [RowsMut::new(&mut made, count as u32)]);
        numbers = made;
    }
    let mut codes = vec![0; count * 2];
    narrow(&numbers, max, 2, 1, &mut codes);
    codes.as_chunks().0.iter().map(|code| u16::from_le_bytes(*code)).collect()
}

fn map(table: &[u16], sample_bytes: usize, from: &[u8], to: &mut [u8]) {
    if sample_bytes == 1 {
        let table: [u8; 256] = std::array::from_fn(|code| table[code] as u8);
        return to.iter_mut().zip(from).for_each(|(to, code)| *to = table[usize::from(*code)]);
    }
    // Codes above the highest are none; they count as that, as numbers above 1 do.
    for (to, code) in to.as_chunks_mut().0.iter_mut().zip(from.as_chunks().0) {
        let code = usize::from(u16::from_le_bytes(*code)).min(table.len() - 1);
        *to = table[code].to_le_bytes();
    }
}

/// Computes some rows of a pass in numbers.
fn change_rows(pass: &dyn AnyPass, rows: Range<u32>, format: Format, from: &[u8], to: &mut [u8]) {
    let (width, bytes, max) = (pass.output().width, format.sample_bytes(), f32::from(format.code_max()));
    let (mut seen, mut made) = (vec![0.0; width as usize], vec![0.0; width as usize]);
    for y in rows {
        let first = y as usize * width as usize * bytes;
        widen(&from[first..], 1, bytes, 1.0 / max, &mut seen);
        pass.rows(y..y + 1, &[Rows::new(&seen, width)], &mut [RowsMut::new(&mut made, width)]);
        narrow(&made, max, bytes, 1, &mut to[first..]);
    }
}
