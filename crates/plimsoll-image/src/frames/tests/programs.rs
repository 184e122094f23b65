//! Programs made up from a seed.

use std::ops::Range;

use bytemuck::{Pod, Zeroable};
use plimsoll_runtime::{Access, Kernel};

use crate::frames::format::{Colour, Format, Matrix, Sampling, Siting, Yuv};
use crate::frames::graph::{Graph, Node, Pass, Plane, PlaneList, Rows, RowsMut, twin};
use crate::frames::plan::Program;
use crate::image::Size;

const FULL: crate::frames::format::Range = crate::frames::format::Range::Full;

/// Numbers from a seed.
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below this one.
    pub(super) fn below(&mut self, end: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 33) % u64::from(end)) as u32
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u32) as usize]
    }
}

/// Which input rows an output row is made of.
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Look {
    input_width: u32,
    input_height: u32,
    width: u32,
    height: u32,
    /// 0 the row in proportion, 1 the same from below, 2 all rows, 3 a row anywhere, 4 as 0 but none for some rows.
    kind: u32,
    before: u32,
    after: u32,
    padding: u32,
}

impl Look {
    fn made_up(dice: &mut Dice, input: Size, output: Size) -> Self {
        Self {
            input_width: input.width,
            input_height: input.height,
            width: output.width,
            height: output.height,
            kind: dice.one_of(&[0, 0, 0, 1, 2, 3, 4]),
            before: dice.one_of(&[0, 0, 1, 5, 40]),
            after: dice.one_of(&[0, 0, 2, 7, 33]),
            padding: 0,
        }
    }

    fn input(&self) -> Size {
        Size { width: self.input_width, height: self.input_height }
    }

    fn output(&self) -> Size {
        Size { width: self.width, height: self.height }
    }

    fn reach_of(&self, y: u32) -> Range<u32> {
        let middle = y * self.input_height / self.height;
        let middle = match self.kind {
            1 => self.input_height - 1 - middle,
            2 => return 0..self.input_height,
            3 => y * 7919 % self.input_height,
            4 if y < self.before || y > self.height * 3 / 4 => return 0..0,
            _ => middle,
        };
        middle.saturating_sub(self.before)..(middle + self.after + 1).min(self.input_height)
    }

    fn reach(&self, rows: Range<u32>) -> Range<u32> {
        let each = rows.map(|y| self.reach_of(y)).filter(|reach| !reach.is_empty());
        each.reduce(|all, reach| all.start.min(reach.start)..all.end.max(reach.end)).unwrap_or(0..0)
    }

    /// From the last row to the first, because a pass may.
    fn rows(&self, rows: Range<u32>, inputs: &[Rows<'_>], outputs: &mut [RowsMut<'_>]) {
        for y in rows.rev() {
            for (number, output) in outputs.iter_mut().enumerate() {
                for (x, out) in output.row(y).iter_mut().enumerate() {
                    let samples = inputs.iter().flat_map(|input| self.reach_of(y).map(|y| input.row(y)));
                    let sum = samples.fold(0.1 * (number + 1) as f32, |sum, row| sum * 0.7 + row[x % row.len()] * 0.3);
                    *out = sum;
                }
            }
        }
    }
}

/// From one plane.
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
#[repr(transparent)]
struct One(Look);

/// From three planes to two.
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
#[repr(transparent)]
struct Three(Look);

/// Computes nothing.
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
#[repr(transparent)]
pub(super) struct Idle(pub(super) Look);

macro_rules! pass {
    ($type:ident, $inputs:expr, $outputs:expr, $bindings:expr, $twin:expr) => {
        impl Pass for $type {
            const INPUTS: usize = $inputs;
            const OUTPUTS: usize = $outputs;

            fn kernel() -> &'static Kernel {
                static KERNEL: Kernel = Kernel {
                    name: stringify!($type),
                    wgsl: "@compute @workgroup_size(16, 16) fn idle() {}",
                    entry: "idle",
                    bindings: $bindings,
                    params: size_of::<$type>(),
                    twin: $twin,
                };
                &KERNEL
            }

            fn input(&self) -> Size {
                self.0.input()
            }

            fn output(&self) -> Size {
                self.0.output()
            }

            fn reach(&self, _: &[f32], rows: Range<u32>) -> Range<u32> {
                self.0.reach(rows)
            }

            fn rows(&self, _: &[f32], rows: Range<u32>, inputs: &[Rows<'_>], outputs: &mut [RowsMut<'_>]) {
                self.0.rows(rows, inputs, outputs);
            }
        }
    };
}

pass!(One, 1, 1, &[Access::Read, Access::Write], twin::<One>);
pass!(Three, 3, 2, &[Access::Read, Access::Read, Access::Read, Access::Write, Access::Write], twin::<Three>);
pass!(Idle, 1, 1, &[Access::Read, Access::Write], |_| {});

/// A frame's format, of any kind.
pub(super) fn format(dice: &mut Dice) -> Format {
    let sampling = dice.one_of(&[Sampling::S420, Sampling::S422, Sampling::S444]);
    let yuv = Colour::Yuv(Yuv { matrix: Matrix::Bt709, range: FULL, sampling, siting: Siting::Left });
    let size = Size { width: 1 + dice.below(7), height: 1 + dice.below(120) };
    let colour = dice.one_of(&[yuv, yuv, Colour::Rgb, Colour::Mono(FULL)]);
    Format::new(size, 8 + dice.below(9) as u8, colour).unwrap()
}

/// A program: from a frame or from planes, to a frame or to planes.
pub(super) fn program(dice: &mut Dice) -> Program {
    let (from, to) = (format(dice), format(dice));
    let mut graph = Graph::default();
    let mut planes: Vec<Plane> = from.plane_sizes().into_iter().map(|size| graph.source(size)).collect();
    for _ in 0..dice.below(9) {
        let more = pass(dice, &mut graph, &planes);
        planes.extend(more);
    }
    let to = (dice.below(3) > 0).then_some(to);
    let results = match to {
        Some(to) => {
            let last = |size| {
                let input = dice.one_of(&planes);
                let look = Look::made_up(dice, graph.size_of(input), size);
                graph.pass(One(look), input)
            };
            to.plane_sizes().into_iter().map(last).collect()
        }
        None => (0..1 + dice.below(3)).map(|_| dice.one_of(&planes)).collect::<PlaneList>(),
    };
    let mut results: PlaneList = results;
    if to.is_none() {
        results.sort_by_key(|plane| (plane.node, plane.output));
        results.dedup();
    }
    Program { graph, from: (dice.below(4) > 0 || to.is_none()).then_some(from), results, to }
}

fn pass(dice: &mut Dice, graph: &mut Graph, planes: &[Plane]) -> Vec<Plane> {
    let input = dice.one_of(planes);
    let (size, same) = (graph.size_of(input), dice.below(2) == 0);
    // Few sizes, so that buffers are used again and planes can be joined.
    let other = Size { width: size.width, height: dice.one_of(&[1, 9, 50, 100]) };
    let look = Look::made_up(dice, size, if same { size } else { other });
    let joinable: Vec<Plane> = planes.iter().copied().filter(|plane| graph.size_of(*plane) == size).collect();
    if dice.below(2) == 0 {
        return vec![graph.pass(One(look), input)];
    }
    let inputs = [input, dice.one_of(&joinable), dice.one_of(&joinable)];
    graph.pass_with(Three(look), Vec::new(), &inputs).to_vec()
}

/// A program whose only pass computes nothing, to frames of this format.
pub(super) fn idle(format: Format) -> Program {
    let mut graph = Graph::default();
    let planes: Vec<Plane> = format.plane_sizes().into_iter().map(|size| graph.source(size)).collect();
    let mut results: PlaneList = planes.iter().copied().collect();
    let size = graph.size_of(planes[planes.len() - 1]);
    let look = Look::made_up(&mut Dice::new(1), size, size);
    let last = results.len() - 1;
    results[last] = graph.pass(Idle(look), planes[last]);
    Program { graph, from: Some(format), results, to: Some(format) }
}

/// A frame of this format.
pub(super) fn frame(dice: &mut Dice, format: Format) -> Vec<u8> {
    let samples = format.frame_bytes() / format.sample_bytes();
    let mut code = |_| (dice.below(u32::from(format.code_max()) + 1) as u16).to_le_bytes();
    (0..samples).flat_map(|at| code(at)[..format.sample_bytes()].to_vec()).collect()
}

/// A format whose planes are those that a program is given.
pub(super) fn format_of_sources(program: &Program) -> Format {
    let sizes = program.graph.nodes().iter().take_while(|node| matches!(node, Node::Source { .. })).map(Node::size);
    let sizes: Vec<Size> = sizes.collect();
    let yuv = |sampling| Colour::Yuv(Yuv { matrix: Matrix::Bt709, range: FULL, sampling, siting: Siting::Left });
    let samplings = [Sampling::S420, Sampling::S422, Sampling::S444].map(yuv);
    let all = samplings.into_iter().chain([Colour::Mono(FULL)]);
    let formats = all.map(|colour| Format::new(sizes[0], 16, colour).unwrap());
    formats.into_iter().find(|format| format.plane_sizes() == sizes).unwrap()
}
