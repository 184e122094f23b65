//! The arithmetic of DSSIM on rows of pixels. Each function is compiled for wider vectors too, and the widest that the
//! processor has is taken when it runs. Never allocates.
//! Invariant: the same numbers come out on every processor, because no step is ever fused with another.

use archmage::autoversion;

/// Weights of the 3 x 3 filter that everything is blurred with, twice: by distance, along one direction.
const CENTRE: f32 = 0.382_482_8;
const SIDE: f32 = 0.308_758_86;
/// The same, applied twice at once. Seen from an edge, the plane then goes on as its mirror image.
const BLUR: [f32; 3] = [2.0 * SIDE * SIDE + CENTRE * CENTRE, 2.0 * SIDE * CENTRE, SIDE * SIDE];
/// Pixels that the blur reaches to each side.
pub(super) const REACH: usize = 2;

/// What keeps the two quotients of structural similarity defined; for three channels together.
const STEADY_MEANS: f32 = 3.0 * 0.01 * 0.01;
const STEADY_VARIANCES: f32 = 3.0 * 0.03 * 0.03;

/// What a plane of ones is after the blur, less one: the filter's weights do not quite add up to 1.
const GAIN: f64 = {
    let along = BLUR[0] as f64 + 2.0 * BLUR[1] as f64 + 2.0 * BLUR[2] as f64;
    along * along - 1.0
};
/// What is left out of lightness and chroma, so that they lie about zero: variances, which are small differences of
/// large squares, then keep more of their digits. Chroma has been blurred once more.
const CENTRES: [f64; 3] = [0.5, 86.2 / 220.0 * (1.0 + GAIN), 107.9 / 220.0 * (1.0 + GAIN)];
/// Values that are added up in single precision before they join a sum in double precision.
const RUN: usize = 4096;
/// Sums that grow side by side, so that additions need not wait for each other.
const LANES: usize = 16;

/// Three planes' rows, or one plane's three.
pub(super) type Three<'a> = [&'a [f32]; 3];

/// The index that lies at `at` when a side of `count` goes on as its mirror image: … 1 0 | 0 1 2 …
pub(super) fn mirrored(at: isize, count: usize) -> usize {
    let round = at.rem_euclid(2 * count as isize) as usize;
    if round < count { round } else { 2 * count - 1 - round }
}

/// The cube root of a number from 1e-3 to 10, within 5e-7 of itself: a guess from the bits, improved twice without
/// dividing. (`cbrt` of the standard library is exact, and takes most of the metric's time.)
#[inline(always)]
fn cube_root(x: f32) -> f32 {
    let bits = x.to_bits();
    // A third of the bits, as 5/16 * 17/16 * 257/256: the exponent, and with it nearly all of the logarithm.
    let third = (bits >> 2) + (bits >> 4);
    let third = third + (third >> 4);
    let third = third + (third >> 8);
    let mut inverse = f32::from_bits(0x54a2_1d2a_u32.wrapping_sub(third));
    let error = 1.0 - x * inverse * inverse * inverse;
    inverse += inverse * error * (1.0 / 3.0 + error * (2.0 / 9.0));
    let error = 1.0 - x * inverse * inverse * inverse;
    inverse += inverse * error * (1.0 / 3.0);
    x * inverse * inverse
}

/// The curve of Lab, less its constant.
#[inline(always)]
fn lab_curve(x: f32) -> f32 {
    let (root, line) = (cube_root(x) - 16.0 / 116.0, 24389.0 / (27.0 * 116.0) * x);
    if x > 216.0 / 24389.0 { root } else { line }
}

/// Lightness and the two chroma planes of Lab (D65), each scaled to a range of about 1, less [`CENTRES`].
#[autoversion]
pub(super) fn lab(light: [&[f32]; 3], lightness: &mut [f32], red_green: &mut [f32], blue_yellow: &mut [f32]) {
    let count = lightness.len();
    let [red, green, blue] = light.map(|row| &row[..count]);
    let (red_green, blue_yellow) = (&mut red_green[..count], &mut blue_yellow[..count]);
    for at in 0..count {
        let (r, g, b) = (red[at], green[at], blue[at]);
        let x = lab_curve(0.4124 / 0.9505 * r + 0.3576 / 0.9505 * g + 0.1805 / 0.9505 * b);
        let y = lab_curve(0.2126 * r + 0.7152 * g + 0.0722 * b);
        let z = lab_curve(0.0193 / 1.089 * r + 0.1192 / 1.089 * g + 0.9505 / 1.089 * b);
        lightness[at] = 1.05 * y - CENTRES[0] as f32;
        red_green[at] = 500.0 / 220.0 * (x - y);
        blue_yellow[at] = 200.0 / 220.0 * (y - z);
    }
}

/// Each pixel the mean of two of one row and two of the next; an odd last one is left out.
#[autoversion]
pub(super) fn halve(upper: &[f32], lower: &[f32], out: &mut [f32]) {
    let (upper, _) = upper.as_chunks::<2>();
    let (lower, _) = lower.as_chunks::<2>();
    for ((out, upper), lower) in out.iter_mut().zip(upper).zip(lower) {
        *out = ((upper[0] + upper[1]) + (lower[0] + lower[1])) * 0.25;
    }
}

/// The blur across rows.
#[autoversion]
pub(super) fn blur_down(rows: [&[f32]; 5], out: &mut [f32]) {
    let count = out.len();
    let [a, b, c, d, e] = rows.map(|row| &row[..count]);
    for at in 0..count {
        out[at] = BLUR[0] * c[at] + BLUR[1] * (b[at] + d[at]) + BLUR[2] * (a[at] + e[at]);
    }
}

/// The blur along a row that has its mirrored neighbours beside it: see [`mirror_ends`].
#[autoversion]
pub(super) fn blur_along(padded: &[f32], out: &mut [f32]) {
    let count = out.len();
    let [a, b, c, d, e] = [0, 1, 2, 3, 4].map(|from| &padded[from..][..count]);
    for at in 0..count {
        out[at] = BLUR[0] * c[at] + BLUR[1] * (b[at] + d[at]) + BLUR[2] * (a[at] + e[at]);
    }
}

/// Completes a row that lies between twice [`REACH`] free places.
pub(super) fn mirror_ends(padded: &mut [f32]) {
    let count = padded.len() - 2 * REACH;
    for beyond in 1..=REACH as isize {
        padded[(REACH as isize - beyond) as usize] = padded[REACH + mirrored(-beyond, count)];
        let end = count as isize - 1 + beyond;
        padded[(REACH as isize + end) as usize] = padded[REACH + mirrored(end, count)];
    }
}

/// The square of each pixel, all channels together.
#[autoversion]
pub(super) fn squares(pixels: [&[f32]; 3], out: &mut [f32]) {
    let count = out.len();
    let [a, b, c] = pixels.map(|row| &row[..count]);
    for at in 0..count {
        out[at] = a[at] * a[at] + b[at] * b[at] + c[at] * c[at];
    }
}

/// The squared distance of each pixel from another, all channels together.
#[autoversion]
pub(super) fn squared_distances(one: [&[f32]; 3], other: [&[f32]; 3], out: &mut [f32]) {
    let count = out.len();
    let [[a, b, c], [d, e, f]] = [one, other].map(|rows| rows.map(|row| &row[..count]));
    for at in 0..count {
        let (x, y, z) = (a[at] - d[at], b[at] - e[at], c[at] - f[at]);
        out[at] = x * x + y * y + z * z;
    }
}

/// The square of a blurred pixel, and its variance, as if nothing had been left out of it.
#[inline(always)]
fn moments(means: [f32; 3], squares: f32) -> (f32, f32) {
    const ALONG: [f32; 3] = [CENTRES[0] as f32, CENTRES[1] as f32, CENTRES[2] as f32];
    const CONSTANT: f64 = CENTRES[0] * CENTRES[0] + CENTRES[1] * CENTRES[1] + CENTRES[2] * CENTRES[2];
    const SQUARE: [f32; 2] = [(2.0 * (1.0 + GAIN)) as f32, ((1.0 + GAIN) * (1.0 + GAIN) * CONSTANT) as f32];
    const VARIANCE: [f32; 2] = [(-2.0 * GAIN) as f32, (-GAIN * (1.0 + GAIN) * CONSTANT) as f32];
    let [a, b, c] = means;
    let square = a * a + b * b + c * c;
    let along = ALONG[0] * a + ALONG[1] * b + ALONG[2] * c;
    (square + (SQUARE[0] * along + SQUARE[1]), (squares - square) + (VARIANCE[0] * along + VARIANCE[1]))
}

/// From blurred channels and their blurred squares: the squares of the blurred, and the variances.
#[autoversion]
pub(super) fn variances(means: [&[f32]; 3], squares: &[f32], means_squared: &mut [f32], variances: &mut [f32]) {
    let count = variances.len();
    let [a, b, c] = means.map(|row| &row[..count]);
    let (squares, means_squared) = (&squares[..count], &mut means_squared[..count]);
    for at in 0..count {
        (means_squared[at], variances[at]) = moments([a[at], b[at], c[at]], squares[at]);
    }
}

/// The blurred rows of an image, of its squares, and of its squared distances from the reference.
pub(super) struct Blurred<'a> {
    pub(super) means: Three<'a>,
    pub(super) squares: &'a [f32],
    pub(super) distances: &'a [f32],
}

/// The same rows of the reference, as far as they can be worked out without the image.
pub(super) struct BlurredReference<'a> {
    pub(super) means: Three<'a>,
    pub(super) means_squared: &'a [f32],
    pub(super) variances: &'a [f32],
}

/// What each pixel lacks to be like the reference's.
///
/// Structural similarity is `(1 - p) (1 - q)`, where `p` is the squared distance of the means over the sum of their
/// squares, and `q` the variance of the difference over the sum of the variances. The usual form takes a covariance
/// from products instead; its rounding moved the scores of flat images by a fifth, and equal images were not quite
/// equal.
#[autoversion]
pub(super) fn losses(image: &Blurred<'_>, reference: &BlurredReference<'_>, out: &mut [f32]) {
    let count = out.len();
    let [[a, b, c], [d, e, f]] = [image.means, reference.means].map(|rows| rows.map(|row| &row[..count]));
    let (squares, distances) = (&image.squares[..count], &image.distances[..count]);
    let (means_squared, variances) = (&reference.means_squared[..count], &reference.variances[..count]);
    for at in 0..count {
        let (own, variance) = moments([a[at], b[at], c[at]], squares[at]);
        let (x, y, z) = (a[at] - d[at], b[at] - e[at], c[at] - f[at]);
        let means_apart = x * x + y * y + z * z;
        let apart = distances[at] - means_apart;
        let means = own + means_squared[at] + STEADY_MEANS;
        let steadied = variance + variances[at] + STEADY_VARIANCES;
        out[at] = (means_apart * steadied + apart * (means - means_apart)) / (means * steadied);
    }
}

/// The sum of losses.
#[autoversion]
pub(super) fn sum(values: &[f32]) -> f64 {
    sum_of(values, |value| value)
}

/// The sum of the distances of losses from a level.
#[autoversion]
pub(super) fn sum_of_distances(values: &[f32], level: f32) -> f64 {
    sum_of(values, |value| (value - level).abs())
}

#[inline(always)]
fn sum_of(values: &[f32], term: impl Fn(f32) -> f32) -> f64 {
    let mut sum = 0.0;
    for run in values.chunks(RUN) {
        let mut lanes = [0.0_f32; LANES];
        let (whole, rest) = run.as_chunks::<LANES>();
        for values in whole {
            for lane in 0..LANES {
                lanes[lane] += term(values[lane]);
            }
        }
        lanes.iter_mut().zip(rest).for_each(|(lane, &value)| *lane += term(value));
        sum += lanes.iter().map(|&lane| f64::from(lane)).sum::<f64>();
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cube_roots_are_within_their_bound() {
        let worst = (0..4_000_000_u32).map(|step| 1e-3 * (step as f32 * (10_000.0_f32.ln() / 4e6)).exp());
        let worst = worst.map(|x| (f64::from(cube_root(x)) / f64::from(x).cbrt() - 1.0).abs()).fold(0.0, f64::max);
        assert!(worst < 5e-7, "{worst:e}");
    }

    /// The shaders have these numbers as text.
    #[test]
    fn the_shaders_use_the_same_numbers() {
        let blur = format!("array<f32, 5>({2}, {1}, {0}, {1}, {2})", BLUR[0], BLUR[1], BLUR[2]);
        for shader in [include_str!("lab.wgsl"), include_str!("losses.wgsl")] {
            assert!(shader.contains(&blur), "{blur}");
        }
        let gain = format!("GAIN_LESS_ONE = {GAIN:.7e};");
        assert!(include_str!("losses.wgsl").contains(&gain), "{gain}");
    }

    #[test]
    fn the_blur_is_the_small_filter_twice() {
        for count in 1..9 {
            let row: Vec<f32> = (0..count).map(|at| ((at * 7 + 3) % 5) as f32).collect();
            let repeated = |row: &[f32], at: isize| row[at.clamp(0, count as isize - 1) as usize];
            let once = |row: &[f32]| -> Vec<f32> {
                let filtered = |at| SIDE * (repeated(row, at - 1) + repeated(row, at + 1)) + CENTRE * repeated(row, at);
                (0..count as isize).map(filtered).collect()
            };
            let wanted = once(&once(&row));
            let mut padded = vec![0.0; count + 2 * REACH];
            padded[REACH..][..count].copy_from_slice(&row);
            mirror_ends(&mut padded);
            let mut blurred = vec![0.0; count];
            blur_along(&padded, &mut blurred);
            assert!(blurred.iter().zip(&wanted).all(|(a, b)| (a - b).abs() < 1e-5), "{blurred:?} {wanted:?}");
        }
    }
}
