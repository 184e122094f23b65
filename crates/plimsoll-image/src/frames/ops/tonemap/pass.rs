//! The pass that does all of it at once: codes of red, green and blue in, codes out.

use std::ops::Range;

use archmage::autoversion;
use bytemuck::{Pod, Zeroable};
use plimsoll_runtime::{Access, Kernel};

use super::light::{GAMMA, PQ_NITS, Transfer, hlg_gamma, light_of_pq, power, pq, pq_of_light, scene_of_hlg};
use super::{Curve, Displays, gamut};
use crate::frames::format::Matrix;
use crate::frames::graph::{Pass, Rows, RowsMut, twin};
use crate::image::Size;

static KERNEL: Kernel = Kernel {
    name: "tonemap",
    wgsl: concat!(include_str!("../../../power.wgsl"), include_str!("tonemap.wgsl")),
    entry: "tonemap",
    bindings: &[Access::Read, Access::Read, Access::Read, Access::Write, Access::Write, Access::Write],
    params: size_of::<TonemapPass>(),
    twin: twin::<TonemapPass>,
};

/// A channel below this share of the brightest goes straight to black instead of along the gamma, whose slope there has no
/// end: what other primaries leave of it is rounding, and would become codes. Dark pixels are as the gamma says.
const STRAIGHT_SHARE: f32 = 1e-5;

/// The uniform; the WGSL says what each field means.
#[repr(C)]
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
pub(super) struct TonemapPass {
    width: u32,
    height: u32,
    transfer: u32,
    curve: u32,
    gamut: [[f32; 4]; 3],
    luminance: [f32; 4],
    unit: f32,
    white: f32,
    hable_scale: f32,
    pq_unit: f32,
    pq_peak: f32,
    pq_target: f32,
    knee: f32,
    above_knee: f32,
}

impl TonemapPass {
    pub(super) fn new(
        size: Size,
        curve: Curve,
        transfer: Transfer,
        displays: Displays,
        changes_primaries: bool,
    ) -> Self {
        let Displays { peak, target } = displays;
        let gamut = if changes_primaries { gamut::bt709_of_bt2020() } else { gamut::NO_CHANGE };
        let (red, blue) = Matrix::Bt2020.red_and_blue();
        let white = peak / target;
        let pq_peak = pq_of_light(peak / PQ_NITS);
        let pq_target = pq_of_light(target / PQ_NITS) / pq_peak;
        // A target so dark that all of it would lie above the knee keeps its black.
        let knee = (1.5 * pq_target - 0.5).max(0.0);
        let unit = match transfer {
            Transfer::Pq => PQ_NITS / target,
            Transfer::Hlg | Transfer::Gamma => white,
        };
        Self {
            width: size.width,
            height: size.height,
            transfer: transfer as u32,
            curve: curve as u32,
            gamut: gamut.map(|[red, green, blue]| [red as f32, green as f32, blue as f32, 0.0]),
            luminance: [red, 1.0 - red - blue, blue, hlg_gamma(peak) - 1.0].map(|value| value as f32),
            unit: unit as f32,
            white: white as f32,
            hable_scale: (1.0 / f64::from(filmic(white as f32))) as f32,
            pq_unit: (target / PQ_NITS) as f32,
            pq_peak: pq_peak as f32,
            pq_target: pq_target as f32,
            knee: knee as f32,
            above_knee: if knee < 1.0 { (1.0 / (1.0 - knee)) as f32 } else { 0.0 },
        }
    }

    fn row(&self, inputs: [&[f32]; 3], outputs: [&mut [f32]; 3], shares: &mut [f32]) {
        let [red, green, blue] = outputs;
        for (input, light) in inputs.into_iter().zip([&mut *red, &mut *green, &mut *blue]) {
            match self.transfer {
                PQ => from_pq(self.unit, input, light),
                HLG => from_hlg(input, light),
                _ => from_gamma(self.unit, input, light),
            }
        }
        if self.transfer == HLG {
            shown(self, red, green, blue);
        }
        change_primaries(&self.gamut, red, green, blue, shares);
        match self.curve {
            REINHARD => reinhard(self, shares),
            HABLE => hable(self, shares),
            _ => bt2390(self, shares),
        }
        encode(shares, red, green, blue);
    }
}

const PQ: u32 = Transfer::Pq as u32;
const HLG: u32 = Transfer::Hlg as u32;
const REINHARD: u32 = Curve::Reinhard as u32;
const HABLE: u32 = Curve::Hable as u32;

impl Pass for TonemapPass {
    const INPUTS: usize = 3;
    const OUTPUTS: usize = 3;

    fn kernel() -> &'static Kernel {
        &KERNEL
    }

    fn output(&self) -> Size {
        Size { width: self.width, height: self.height }
    }

    fn rows(&self, _: &[f32], rows: Range<u32>, inputs: &[Rows<'_>], outputs: &mut [RowsMut<'_>]) {
        let [red, green, blue] = outputs else { unreachable!("three planes are written") };
        let mut shares = vec![0.0; self.width as usize];
        for y in rows {
            let inputs = [0, 1, 2].map(|plane| inputs[plane].row(y));
            self.row(inputs, [red.row(y), green.row(y), blue.row(y)], &mut shares);
        }
    }
}

/// Cut to 0 to 1; what is not a number is 0.
#[inline(always)]
#[expect(clippy::manual_clamp, reason = "clamp would keep what is not a number")]
fn within(code: f32) -> f32 {
    code.max(0.0).min(1.0)
}

#[autoversion(v4, v3)]
fn from_pq(unit: f32, codes: &[f32], light: &mut [f32]) {
    for (light, code) in light.iter_mut().zip(codes) {
        *light = light_of_pq(within(*code)) * unit;
    }
}

#[autoversion(v4, v3)]
fn from_gamma(unit: f32, codes: &[f32], light: &mut [f32]) {
    for (light, code) in light.iter_mut().zip(codes) {
        *light = power(within(*code), GAMMA as f32) * unit;
    }
}

#[autoversion(v4, v3)]
fn from_hlg(codes: &[f32], light: &mut [f32]) {
    for (light, code) in light.iter_mut().zip(codes) {
        *light = scene_of_hlg(within(*code));
    }
}

/// HLG's OOTF: from light of the scene to light of the display.
#[autoversion(v4, v3)]
fn shown(pass: &TonemapPass, red: &mut [f32], green: &mut [f32], blue: &mut [f32]) {
    let [of_red, of_green, of_blue, exponent] = pass.luminance;
    for ((red, green), blue) in red.iter_mut().zip(green).zip(blue) {
        let luminance = *red * of_red + *green * of_green + *blue * of_blue;
        let factor = power(luminance, exponent) * pass.unit;
        *red *= factor;
        *green *= factor;
        *blue *= factor;
    }
}

/// Other primaries, without what lies outside them; and the brightest of the three.
#[autoversion(v4, v3)]
fn change_primaries(
    gamut: &[[f32; 4]; 3],
    red: &mut [f32],
    green: &mut [f32],
    blue: &mut [f32],
    brightest: &mut [f32],
) {
    for (((red, green), blue), brightest) in red.iter_mut().zip(green).zip(blue).zip(brightest) {
        let sum = |row: &[f32; 4]| (*red * row[0] + *green * row[1] + *blue * row[2]).max(0.0);
        let [to_red, to_green, to_blue] = [sum(&gamut[0]), sum(&gamut[1]), sum(&gamut[2])];
        *brightest = to_red.max(to_green).max(to_blue);
        *red = to_red;
        *green = to_green;
        *blue = to_blue;
    }
}

/// What the light of a pixel is multiplied with, if its brightest channel goes from `light` to `mapped`.
#[inline(always)]
fn share(light: f32, mapped: f32) -> f32 {
    mapped / light.max(1e-12)
}

#[autoversion(v4, v3)]
fn reinhard(pass: &TonemapPass, lights: &mut [f32]) {
    let per_white = 1.0 / (pass.white * pass.white);
    for light in lights {
        let x = light.min(pass.white);
        *light = share(*light, x * (1.0 + x * per_white) / (1.0 + x));
    }
}

#[autoversion(v4, v3)]
fn hable(pass: &TonemapPass, lights: &mut [f32]) {
    for light in lights {
        *light = share(*light, filmic(light.min(pass.white)) * pass.hable_scale);
    }
}

/// Hable's curve; its constants are shoulder 0.15, linear 0.5 at 0.1, toe 0.2 with 0.02 over 0.3. Written so that dark
/// is not the difference of two larger numbers.
#[inline(always)]
fn filmic(x: f32) -> f32 {
    // (x(0.15x + 0.05) + 0.004) / (x(0.15x + 0.5) + 0.06) - 1/15, over one denominator.
    x * (0.14 * x + 1.0 / 60.0) / (x * (0.15 * x + 0.5) + 0.06)
}

#[autoversion(v4, v3)]
fn bt2390(pass: &TonemapPass, lights: &mut [f32]) {
    let TonemapPass { knee, pq_target, .. } = *pass;
    for light in lights {
        let x = light.min(pass.white);
        let code = (pq(x * pass.pq_unit) / pass.pq_peak).min(1.0);
        let t = ((code - knee) * pass.above_knee).max(0.0);
        let (t2, t3) = (t * t, t * t * t);
        let bent =
            (2.0 * t3 - 3.0 * t2 + 1.0) * knee + (t3 - 2.0 * t2 + t) * (1.0 - knee) + (3.0 * t2 - 2.0 * t3) * pq_target;
        let mapped = light_of_pq(bent * pass.pq_peak) / pass.pq_unit;
        *light = share(*light, if code < knee { x } else { mapped });
    }
}

#[autoversion(v4, v3)]
fn encode(shares: &[f32], red: &mut [f32], green: &mut [f32], blue: &mut [f32]) {
    for (((red, green), blue), share) in red.iter_mut().zip(green).zip(blue).zip(shares) {
        let mapped = [within(*red * share), within(*green * share), within(*blue * share)];
        let straight_max = mapped[0].max(mapped[1]).max(mapped[2]) * STRAIGHT_SHARE;
        *red = encoded(mapped[0], straight_max);
        *green = encoded(mapped[1], straight_max);
        *blue = encoded(mapped[2], straight_max);
    }
}

/// The code of light: along the gamma, but straight to black below `straight_max`, where both meet.
#[inline(always)]
fn encoded(light: f32, straight_max: f32) -> f32 {
    let bent = power(light.max(straight_max), (1.0 / GAMMA) as f32);
    if light < straight_max { bent * (light / straight_max) } else { bent }
}
