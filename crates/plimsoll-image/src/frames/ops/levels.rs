//! `levels`: which values become black and white, and how fast it gets brighter between them.

use std::ops::Range;

use archmage::autoversion;
use bytemuck::{Pod, Zeroable};
use plimsoll_runtime::{Access, Kernel};

use super::planes::is_chroma;
use crate::frames::chain::{Args, number};
use crate::frames::convert::Coding;
use crate::frames::graph::{Graph, OnCodes, Pass, Rows, RowsMut, twin};
use crate::frames::operation::{About, Operation, OperationError};
use crate::frames::picture::Picture;
use crate::image::Size;
use crate::power::pow;

pub(super) const ABOUT: About = About {
    name: "levels",
    usage: "levels=IN_BLACK:IN_WHITE[:GAMMA[:OUT_BLACK:OUT_WHITE]]",
    what: "black, white and gamma from 0 to 1 of the nominal range; luma alone, if there is chroma",
    parse,
};

static KERNEL: Kernel = Kernel {
    name: "levels",
    wgsl: concat!(include_str!("../../power.wgsl"), include_str!("levels.wgsl")),
    entry: "levels",
    bindings: &[Access::Read, Access::Write],
    params: size_of::<LevelsPass>(),
    twin: twin::<LevelsPass>,
};

/// Values at most this are black when a power is taken: a quarter of a code at 16 bits. What rounding leaves of black
/// would else be a thousandth of white after a power of 0.4.
const BLACK_MAX: f32 = 4e-6;

/// What becomes of values from 0 to 1. A gamma above 1 makes it brighter.
#[derive(Debug)]
pub(super) struct Levels {
    pub(super) input: (f64, f64),
    pub(super) gamma: f64,
    pub(super) output: (f64, f64),
}

fn parse(args: &mut Args<'_>) -> Result<Box<dyn Operation>, OperationError> {
    let input = (required(args, "in_black")?, required(args, "in_white")?);
    if input.0 >= input.1 {
        return Err(OperationError::because("in_black is below in_white"));
    }
    let gamma = parse_gamma(args)?.unwrap_or(1.0);
    let output = (args.number("out_black", 0.0..=1.0, 0.0)?, args.number("out_white", 0.0..=1.0, 1.0)?);
    Ok(Box::new(Levels { input, gamma, output }))
}

fn required(args: &mut Args<'_>, name: &str) -> Result<f64, OperationError> {
    number(name, args.require(name)?, 0.0..=1.0)
}

/// A gamma, if one was written.
pub(super) fn parse_gamma(args: &mut Args<'_>) -> Result<Option<f64>, OperationError> {
    args.take("gamma").map(|text| number("gamma", text, 0.1..=10.0)).transpose()
}

impl Operation for Levels {
    fn plan(&self, graph: &mut Graph, picture: Picture) -> Result<Picture, OperationError> {
        let format = picture.format;
        Ok(picture.each(graph, format, |graph, plane, input| match is_chroma(format, plane) {
            true => input,
            false => graph.pass(LevelsPass::new(graph.size_of(input), self, Coding::of(format, plane)), input),
        }))
    }
}

/// The uniform; the WGSL says what each field means.
#[repr(C)]
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
struct LevelsPass {
    width: u32,
    height: u32,
    black: f32,
    scale: f32,
    exponent: f32,
    out_gain: f32,
    out_offset: f32,
    padding: u32,
}

impl LevelsPass {
    fn new(size: Size, levels: &Levels, coding: Coding) -> Self {
        let Levels { input: (black, white), gamma, output: (out_black, out_white) } = levels;
        Self {
            width: size.width,
            height: size.height,
            black: (black * coding.gain + coding.offset) as f32,
            scale: (1.0 / ((white - black) * coding.gain)) as f32,
            exponent: (1.0 / gamma) as f32,
            out_gain: ((out_white - out_black) * coding.gain) as f32,
            out_offset: (out_black * coding.gain + coding.offset) as f32,
            padding: 0,
        }
    }
}

impl Pass for LevelsPass {
    fn kernel() -> &'static Kernel {
        &KERNEL
    }

    fn output(&self) -> Size {
        Size { width: self.width, height: self.height }
    }

    fn on_codes<'a>(&self, _: &'a [f32]) -> Option<OnCodes<'a>> {
        Some(OnCodes::Map)
    }

    fn rows(&self, _: &[f32], rows: Range<u32>, inputs: &[Rows<'_>], outputs: &mut [RowsMut<'_>]) {
        for y in rows {
            match self.exponent == 1.0 {
                true => straight(self, inputs[0].row(y), outputs[0].row(y)),
                false => bent(self, inputs[0].row(y), outputs[0].row(y)),
            }
        }
    }
}

#[autoversion(v4, v3)]
fn straight(pass: &LevelsPass, input: &[f32], out: &mut [f32]) {
    for (out, input) in out.iter_mut().zip(input) {
        *out = ((input - pass.black) * pass.scale).clamp(0.0, 1.0) * pass.out_gain + pass.out_offset;
    }
}

#[autoversion(v4, v3)]
fn bent(pass: &LevelsPass, input: &[f32], out: &mut [f32]) {
    for (out, input) in out.iter_mut().zip(input) {
        let value = ((input - pass.black) * pass.scale).clamp(0.0, 1.0);
        let bent = if value > BLACK_MAX { pow(value.max(BLACK_MAX), pass.exponent) } else { 0.0 };
        *out = bent * pass.out_gain + pass.out_offset;
    }
}
