//! SSIMULACRA 2 as it is defined, in double precision and the published order of operations: what the rungs are held
//! to. Never fast; only tests use it.

use super::score::{Sums, levels};
use crate::image::Image;
use crate::transfer;

/// A plane, row by row.
type Plane = Vec<f64>;

/// The sums of each level's channels.
pub(super) fn sums(reference: &Image, distorted: &Image) -> Vec<[Sums; 3]> {
    let [mut light_1, mut light_2] = [reference, distorted].map(light);
    let of_level = |level: &super::score::Level| {
        let [width, height] = [level.size.width as usize, level.size.height as usize];
        let (one, two) = (colours(&light_1), colours(&light_2));
        light_1 = light_1.each_ref().map(|plane| halved(plane, width, height));
        light_2 = light_2.each_ref().map(|plane| halved(plane, width, height));
        [0, 1, 2].map(|channel| compared(&one[channel], &two[channel], width, height))
    };
    levels(reference.size()).iter().map(of_level).collect()
}

fn light(image: &Image) -> [Plane; 3] {
    let coded = image.coded_planes();
    let samples: Vec<f64> = coded.iter().map(|&sample| transfer::linear(f64::from(sample))).collect();
    let plane = |at: usize| samples[at * samples.len() / 3..(at + 1) * samples.len() / 3].to_vec();
    [plane(0), plane(1), plane(2)]
}

fn colours(light: &[Plane; 3]) -> [Plane; 3] {
    const BIAS: f64 = 0.003_793_073_255_275_449_3;
    const SHORT: [f64; 2] = [0.243_422_689_245_478_2, 0.204_767_444_244_968_2];
    let cones = [[0.3, 0.622, 0.078], [0.23, 0.692, 0.078], [SHORT[0], SHORT[1], 1.0 - SHORT[0] - SHORT[1]]];
    let seen = |at: usize| {
        let seen = cones.map(|cone| (0..3).map(|channel| cone[channel] * light[channel][at]).sum::<f64>() + BIAS);
        seen.map(|seen| seen.max(0.0).cbrt() - BIAS.cbrt())
    };
    let pixels: Vec<[f64; 3]> = (0..light[0].len()).map(seen).collect();
    let luma = |[long, medium, _]: &[f64; 3]| (long + medium) / 2.0;
    [
        pixels.iter().map(|[long, medium, _]| (long - medium) / 2.0 * 14.0 + 0.42).collect(),
        pixels.iter().map(|pixel| luma(pixel) + 0.01).collect(),
        pixels.iter().map(|pixel| pixel[2] - luma(pixel) + 0.55).collect(),
    ]
}

fn halved(plane: &Plane, width: usize, height: usize) -> Plane {
    let mean = |x: usize, y: usize| {
        let ([left, right], [upper, lower]) = ([x, (x + 1).min(width - 1)], [y, (y + 1).min(height - 1)]);
        let around = [(left, upper), (right, upper), (left, lower), (right, lower)];
        around.map(|(x, y)| plane[y * width + x]).iter().sum::<f64>() / 4.0
    };
    (0..height).step_by(2).flat_map(|y| (0..width).step_by(2).map(move |x| (x, y))).map(|(x, y)| mean(x, y)).collect()
}

fn compared(one: &Plane, two: &Plane, width: usize, height: usize) -> Sums {
    const C2: f64 = 0.0009;
    let blurred_product = |a: &Plane, b: &Plane| {
        let product: Plane = a.iter().zip(b).map(|(a, b)| a * b).collect();
        blurred(&product, width, height)
    };
    let [mean_1, mean_2] = [one, two].map(|plane| blurred(plane, width, height));
    let (square_1, square_2, product) =
        (blurred_product(one, one), blurred_product(two, two), blurred_product(one, two));
    let mut sums = Sums::default();
    for at in 0..width * height {
        let (m1, m2) = (mean_1[at], mean_2[at]);
        let similar = (1.0 - (m1 - m2) * (m1 - m2)) * (2.0 * (product[at] - m1 * m2) + C2)
            / ((square_1[at] - m1 * m1) + (square_2[at] - m2 * m2) + C2);
        let edge = (1.0 + (two[at] - m2).abs()) / (1.0 + (one[at] - m1).abs()) - 1.0;
        for (term, value) in [1.0 - similar, edge, -edge].into_iter().enumerate() {
            sums[term] += value.max(0.0);
            sums[term + 3] += value.max(0.0).powi(4);
        }
    }
    sums
}

fn blurred(plane: &Plane, width: usize, height: usize) -> Plane {
    let along: Plane = plane.chunks_exact(width).flat_map(recursive_blur).collect();
    let column = |x: usize| recursive_blur(&(0..height).map(|y| along[y * width + x]).collect::<Plane>());
    let columns: Vec<Plane> = (0..width).map(column).collect();
    (0..height).flat_map(|y| columns.iter().map(move |column| column[y])).collect()
}

/// The tool's filter as it stands there: three oscillators, each started and stopped by the samples five pixels away.
/// With the tool's single precision their rounding errors never fade; here they are too small to matter.
fn recursive_blur(row: &[f64]) -> Plane {
    const RADIUS: isize = 5;
    const STRENGTHS: [f64; 3] = [0.178_939_141_641_491_33, 0.072_726_144_736_190_2, 0.012_955_819_110_517_089];
    let sample = |at: isize| if at < 0 { 0.0 } else { row.get(at as usize).copied().unwrap_or(0.0) };
    let mut out = vec![0.0; row.len()];
    for (strength, harmonic) in STRENGTHS.into_iter().zip([1.0, 3.0, 5.0]) {
        let omega = harmonic * std::f64::consts::PI / (2 * RADIUS) as f64;
        let drive = -strength * (omega * (RADIUS + 1) as f64).cos();
        let (mut last, mut before) = (0.0, 0.0);
        for at in 1 - RADIUS..row.len() as isize {
            let driven = drive * (sample(at - RADIUS - 1) + sample(at + RADIUS - 1));
            (last, before) = (driven + 2.0 * omega.cos() * last - before, last);
            if at >= 0 {
                out[at as usize] += last;
            }
        }
    }
    out
}
