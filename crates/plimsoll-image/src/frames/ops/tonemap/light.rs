//! Codes as light and back: the transfer functions of SMPTE ST 2084 (PQ), ARIB STD-B67 (HLG) and a plain gamma.
//! Invariant: light is never negative and never not a number, whatever the code.

use crate::power::{exp2, exp2_near_zero, log2, pow};

/// What codes stand for.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Transfer {
    /// SMPTE ST 2084: light of 0 to 10 000 nits.
    Pq,
    /// ARIB STD-B67, with the OOTF of ITU-R BT.2100 for a display of the peak's brightness.
    Hlg,
    /// A display with a gamma of 2.4 and the peak's brightness (BT.1886 with perfect black).
    Gamma,
}

/// Nits of the highest code of PQ.
pub(super) const PQ_NITS: f64 = 10_000.0;
pub(super) const GAMMA: f64 = 2.4;

const M1: f64 = 2610.0 / 16384.0;
const M2: f64 = 2523.0 / 4096.0 * 128.0;
const C1: f64 = 3424.0 / 4096.0;
const C2: f64 = 2413.0 / 4096.0 * 32.0;
const C3: f64 = 2392.0 / 4096.0 * 32.0;

/// Below this a power counts as zero. It is far darker than anything that is shown, and far from the smallest float.
const POWER_MIN: f32 = 1e-20;

const HLG_A: f32 = 0.178_832_77;
const HLG_B: f32 = 0.284_668_92;
const HLG_C: f32 = 0.559_910_7;

/// The code of light from 0 to 1 (of 10 000 nits), in 64 bits: for planning.
pub(super) fn pq_of_light(light: f64) -> f64 {
    let power = light.powf(M1);
    ((C1 + C2 * power) / (1.0 + C3 * power)).powf(M2)
}

/// The same in 32 bits.
#[inline(always)]
pub(super) fn pq(light: f32) -> f32 {
    let power = power(light, M1 as f32);
    pow((C1 as f32 + C2 as f32 * power) / (1.0 + C3 as f32 * power), M2 as f32)
}

/// Light of a code of PQ from 0 to 1.
#[inline(always)]
pub(super) fn light_of_pq(code: f32) -> f32 {
    // What this power leaves of a code above black is more than C1, so its exponent is near zero; black only has to stay
    // below C1, which it does by far.
    let power_of_code = exp2_near_zero(log2(code.max(POWER_MIN)) * (1.0 / M2) as f32);
    let share = (power_of_code - C1 as f32).max(0.0) / (C2 as f32 - C3 as f32 * power_of_code);
    power(share, (1.0 / M1) as f32)
}

/// Light of the scene, from 0 to 1, of a code of HLG.
#[inline(always)]
pub(super) fn scene_of_hlg(code: f32) -> f32 {
    let bright = (exp2((code - HLG_C) * (std::f32::consts::LOG2_E / HLG_A)) + HLG_B) * (1.0 / 12.0);
    if code <= 0.5 { code * code * (1.0 / 3.0) } else { bright }
}

/// The exponent of HLG's OOTF for a display of this brightness: BT.2100's for those it means, BT.2390's for others.
pub(super) fn hlg_gamma(peak: f64) -> f64 {
    match (400.0..=2000.0).contains(&peak) {
        true => 1.2 + 0.42 * (peak / 1000.0).log10(),
        false => 1.2 * 1.111_f64.powf((peak / 1000.0).log2()),
    }
}

/// A power of what is not negative; nothing of nothing.
#[inline(always)]
pub(super) fn power(x: f32, exponent: f32) -> f32 {
    if x > POWER_MIN { pow(x.max(POWER_MIN), exponent) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pq_is_as_published() {
        // Three places of ITU-R BT.2408-7 and two of BT.2100: nits and their codes.
        for (nits, code) in [(0.0, 0.0), (100.0, 0.508), (203.0, 0.581), (1000.0, 0.752), (4000.0, 0.903), (1e4, 1.0)] {
            let got = pq_of_light(nits / PQ_NITS);
            assert!((got - code).abs() < 6e-4, "{nits} nits: {got}, not {code}");
        }
    }

    #[test]
    fn both_ways_agree_in_32_bits() {
        // A code at 16 bits: a power of 79 makes much of the last bit of a float.
        let close = 1.0 / 65535.0;
        for step in 0..=1000 {
            let code = step as f32 / 1000.0;
            let light = light_of_pq(code);
            assert!((pq(light) - code).abs() < close, "{code}: {light} and back {}", pq(light));
            let wanted = pq_of_light(f64::from(light));
            assert!((f64::from(pq(light)) - wanted).abs() < f64::from(close), "{light}: {}, not {wanted}", pq(light));
        }
    }

    #[test]
    fn hlg_is_as_published() {
        // BT.2408-7: on a display of 1000 nits, 75 % is the white of 203 nits and 38 % the grey card of 26.
        for (code, nits) in [(0.75, 203.0), (0.38, 26.0), (1.0, 1000.0), (0.0, 0.0)] {
            let got = 1000.0 * f64::from(scene_of_hlg(code)).powf(hlg_gamma(1000.0));
            assert!((got - nits).abs() < 0.5, "{code}: {got}, not {nits}");
        }
        assert!((scene_of_hlg(0.5) - 1.0 / 12.0).abs() < 1e-6);
    }
}
