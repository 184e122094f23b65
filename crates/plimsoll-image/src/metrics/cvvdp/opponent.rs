//! From linear samples to the opponent channels that the eye compares.

use bytemuck::{Pod, Zeroable};
use plimsoll_core::Fault;
use plimsoll_runtime::{Access, Kernel, Twin};

use super::display::{Display, Light};
use crate::planes::Planes;
use crate::run::Run;

static OPPONENT: Kernel = Kernel {
    name: "opponent",
    wgsl: include_str!("opponent.wgsl"),
    entry: "opponent",
    bindings: &[Access::Write, Access::Write, Access::Write],
    params: size_of::<Params>(),
    twin: opponent,
};

#[repr(C)]
#[derive(Copy, Clone, Pod, Zeroable)]
struct Params {
    count: u32,
    width: u32,
    unused: [u32; 2],
    light: [f32; 4],
    channels: [[f32; 4]; 3],
}

/// From RGB with the primaries of sRGB to XYZ, to the cones' LMS (CIE 2006), and to DKL around D65.
const RGB_TO_XYZ: Matrix = [
    [0.412_456_4, 0.357_576_1, 0.180_437_5],
    [0.212_672_9, 0.715_152_2, 0.072_175],
    [0.019_333_9, 0.119_192, 0.950_304_1],
];
const XYZ_TO_LMS: Matrix = [
    [0.187_596_268_556_126, 0.585_168_649_077_728, -0.026_384_263_306_304],
    [-0.133_397_430_663_221, 0.405_505_777_260_049, 0.034_502_127_690_364],
    [0.000_244_379_021_663, -0.000_542_995_890_619, 0.019_406_849_066_323],
];
const LMS_TO_DKL: Matrix = [[1.0, 1.0, 0.0], [1.0, -2.311_130_179_947_035, 0.0], [-1.0, -1.0, 50.977_571_328_718_78]];

type Matrix = [[f64; 3]; 3];

fn product(left: Matrix, right: Matrix) -> Matrix {
    left.map(|row| std::array::from_fn(|column| (0..3).map(|k| row[k] * right[k][column]).sum()))
}

/// Turns rows of linear samples into the opponent channels of their light on a display.
pub(super) fn to_opponent(
    run: &mut Run<'_>,
    display: Display,
    planes: &Planes,
    width: u32,
    rows: u32,
) -> Result<(), Fault> {
    let Light { gain, low, high, offset } = display.light();
    let channels = product(LMS_TO_DKL, product(XYZ_TO_LMS, RGB_TO_XYZ));
    let channels = channels.map(|[red, green, blue]| [red as f32, green as f32, blue as f32, 0.0]);
    let params = Params { count: width * rows, width, unused: [0; 2], light: [gain, low, high, offset], channels };
    run.over(&OPPONENT, &planes.each(), &params, width, rows)
}

fn opponent(twin: &mut Twin<'_>) {
    let Params { count, light: [gain, low, high, offset], channels, .. } = twin.params();
    let (_, mut planes) = twin.reads_and_writes();
    let [red, green, blue] = &mut planes[..] else { panic!("three planes") };
    let planes = red.iter_mut().zip(green.iter_mut()).zip(blue.iter_mut());
    for ((red, green), blue) in planes.take(count as usize) {
        let light = [*red, *green, *blue].map(|sample| (sample * gain).clamp(low, high) + offset);
        let channel = |weights: [f32; 4]| light[0] * weights[0] + light[1] * weights[1] + light[2] * weights[2];
        (*red, *green, *blue) = (channel(channels[0]), channel(channels[1]), channel(channels[2]));
    }
}
