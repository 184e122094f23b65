//! Powers and logarithms of floats in a few operations without branches, so that loops over them vectorise.
//! The library's `powf` is a call for each value.
//! Invariant: relative errors stay below 1e-5 over the range of those who use them (tested here).

use std::f32::consts::LN_2;

/// 1.5 * 2^23: adding it rounds a small float to an integer, which then stands in the low bits.
const ROUND: f32 = 12_582_912.0;

/// The binary logarithm of a positive, normal float.
#[inline(always)]
pub(crate) fn log2(x: f32) -> f32 {
    // x = 2^exponent * mantissa, with the mantissa between sqrt(1/2) and sqrt(2).
    let bits = x.to_bits().wrapping_sub(0x3f35_04f3);
    let exponent = (bits as i32) >> 23;
    let mantissa = f32::from_bits((bits & 0x007f_ffff).wrapping_add(0x3f35_04f3));
    // log2(m) = 2/ln2 * artanh(t), whose series in t = (m-1)/(m+1), |t| < 0.172, needs five terms.
    let t = (mantissa - 1.0) / (mantissa + 1.0);
    let s = t * t;
    let series = 2.885_39 + s * (0.961_796_7 + s * (0.577_078 + s * (0.412_198_6 + s * 0.320_598_9)));
    exponent as f32 + t * series
}

/// Two to the power of `x`, for `x` between -126 and 127.
#[inline(always)]
pub(crate) fn exp2(x: f32) -> f32 {
    let x = x.clamp(-126.0, 127.0);
    let rounded = x + ROUND;
    let whole = rounded.to_bits().wrapping_sub(ROUND.to_bits());
    let f = x - (rounded - ROUND);
    f32::from_bits(exp2_near_zero(f).to_bits().wrapping_add(whole << 23))
}

/// As [`exp2`], to the bit, for `x` between -1/2 and 1/2; beyond, less and less exact.
#[inline(always)]
pub(crate) fn exp2_near_zero(x: f32) -> f32 {
    1.0 + x
        * (LN_2 + x * (0.240_226_5 + x * (0.055_504_11 + x * (0.009_618_13 + x * (0.001_333_36 + x * 0.000_154_03)))))
}

/// A positive float to a power.
#[inline(always)]
pub(crate) fn pow(x: f32, power: f32) -> f32 {
    exp2(power * log2(x))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_are_close_to_the_librarys() {
        for power in [1.302_622_7_f32, 2.264_355_2, 2.888_590_8, 3.680_771_4] {
            let mut x = 1e-5_f32;
            while x < 1e5 {
                let (got, wanted) = (f64::from(pow(x, power)), f64::from(x).powf(f64::from(power)));
                assert!((got / wanted - 1.0).abs() < 1e-5, "{x} to the power of {power}: {got}, not {wanted}");
                x *= 1.0137;
            }
        }
    }

    #[test]
    fn powers_of_transfer_functions_are_close_too() {
        // PQ's, each over the numbers it is taken of there; a gamma's there and back.
        let powers = [(78.843_75_f32, 0.83_f32), (6.277_395, 1e-5), (0.159_301_76, 1e-9), (0.012_683_3, 1e-5)];
        for (power, lowest) in powers.into_iter().chain([(2.4, 1e-5), (1.0 / 2.4, 1e-6), (10.0, 1e-3), (0.1, 4e-6)]) {
            let mut x = lowest;
            while x <= 1.0 {
                let (got, wanted) = (f64::from(pow(x, power)), f64::from(x).powf(f64::from(power)));
                assert!((got / wanted - 1.0).abs() < 1e-5, "{x} to the power of {power}: {got}, not {wanted}");
                x *= 1.000_37;
            }
        }
    }

    #[test]
    fn near_zero_it_is_the_same_power_of_two() {
        for step in -5000..=5000 {
            let x = step as f32 / 10_000.0;
            assert_eq!(exp2_near_zero(x), exp2(x), "2^{x}");
        }
    }

    #[test]
    fn logarithms_are_close_to_the_librarys() {
        let mut x = 1e-3_f32;
        while x < 1e5 {
            assert!((f64::from(log2(x)) - f64::from(x).log2()).abs() < 2e-6, "{x}: {}", log2(x));
            x *= 1.000_37;
        }
        assert_eq!(log2(1.0), 0.0);
        assert_eq!(exp2(3.0), 8.0);
    }
}
