//! From linear light to the colours that SSIMULACRA 2 compares: XYB of JPEG XL, moved and stretched so that all three
//! channels are positive and matter alike.

use archmage::autoversion;

/// How much red, green and blue each kind of cone sees; the same three numbers as in the shader.
const CONES: [[f32; 3]; 3] = [[0.30, 0.622, 0.078], [0.23, 0.692, 0.078], [0.243_422_69, 0.204_767_45, 0.551_809_86]];
/// What a cone sees in the dark, and its cube root.
const BIAS: f32 = 0.003_793_073_4;
const BIAS_ROOT: f32 = 0.155_954_2;
/// Less light than this is as good as none, and its cube root still has a cube.
const LIGHT_MIN: f32 = 1e-24;

/// The colours of a row of linear light.
#[autoversion(v3)]
pub(super) fn colours_of_row(light: [&[f32]; 3], colours: [&mut [f32]; 3]) {
    let [x, y, b] = colours;
    let width = x.len();
    let ([red, green, blue], y, b) = (light.map(|row| &row[..width]), &mut y[..width], &mut b[..width]);
    for at in 0..width {
        [x[at], y[at], b[at]] = colour(red[at], green[at], blue[at]);
    }
}

#[inline(always)]
fn colour(red: f32, green: f32, blue: f32) -> [f32; 3] {
    let [long, medium, short] =
        CONES.map(|[r, g, b]| cube_root((r * red + (g * green + (b * blue + BIAS))).max(LIGHT_MIN)) - BIAS_ROOT);
    let luma = 0.5 * (long + medium);
    [(0.5 * (long - medium)) * 14.0 + 0.42, luma + 0.01, (short - luma) + 0.55]
}

/// The cube root of a positive number: a third of the exponent, then two of Halley's steps, each of which trebles the
/// right digits. `pow` of a shader would have too few.
#[inline(always)]
fn cube_root(value: f32) -> f32 {
    let mut root = f32::from_bits(value.to_bits() / 3 + 709_958_130);
    for _ in 0..2 {
        let cube = root * root * root;
        root *= (cube + 2.0 * value) / (2.0 * cube + value);
    }
    root
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cube_roots_are_right_to_the_last_digit_or_two() {
        for value in [LIGHT_MIN, 1e-9, BIAS, 0.01, 0.2, 1.0, 7.5, 1e4] {
            let (got, right) = (f64::from(cube_root(value)), f64::from(value).cbrt());
            assert!((got / right - 1.0).abs() < 2.5e-7, "{value}: {got}, not {right}");
        }
    }

    #[test]
    fn black_is_where_the_offsets_say() {
        for (got, wanted) in colour(0.0, 0.0, 0.0).into_iter().zip([0.42, 0.01, 0.55]) {
            assert!((got - wanted).abs() < 1e-6, "{got}, not {wanted}");
        }
    }
}
