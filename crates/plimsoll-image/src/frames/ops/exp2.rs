//! Two to a power, as weights that fall off need it millions of times a frame: a polynomial, written the same in
//! `exp2.wgsl`, so that a GPU's answer is close to the CPU's and the CPU computes many at once.

/// The shader's function; kernels that use it begin with it.
macro_rules! wgsl {
    () => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/frames/ops/exp2.wgsl"))
    };
}
pub(super) use wgsl;

/// The polynomial of degree 4 with the least relative error from -1/2 to 1/2: 2.6e-6.
const POLYNOMIAL: [f32; 5] = [0.999_999_3, 0.693_121_8, 0.240_247_45, 0.055_917_86, 0.009_570_102];

/// Two to the power of a number up to 0, within 3e-6 of itself.
#[inline(always)]
pub(super) fn power_of_two(exponent: f32) -> f32 {
    /// Added to a number, it leaves the nearest whole number (the even one of two) in the low bits. A cast would look
    /// for what does not fit, one number at a time.
    const WHOLE: f32 = 12_582_912.0;
    let bounded = exponent.max(-100.0);
    let shifted = bounded + WHOLE;
    let part = bounded - (shifted - WHOLE);
    let [c0, c1, c2, c3, c4] = POLYNOMIAL;
    let power = (((c4 * part + c3) * part + c2) * part + c1) * part + c0;
    f32::from_bits(power.to_bits().wrapping_add(shifted.to_bits() << 23))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_close_everywhere() {
        for step in 0..=1_000_000_u32 {
            let exponent = -(f64::from(step) / 10_000.0) as f32;
            let (got, wanted) = (f64::from(power_of_two(exponent)), f64::from(exponent).exp2());
            assert!((got / wanted - 1.0).abs() < 3e-6, "2^{exponent} is {wanted}, not {got}");
        }
        assert!(power_of_two(-1e30) > 0.0 && power_of_two(-1e30) < 1e-30);
    }
}
