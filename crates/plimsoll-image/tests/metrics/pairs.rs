//! Made images: what a metric may meet. The same on every machine.

use plimsoll_image::{Image, Size};

/// A size from its sides.
pub(crate) fn size(width: u32, height: u32) -> Size {
    Size { width, height }
}

/// A pair by the name of what sets the second apart.
pub(crate) struct Pair {
    pub(crate) name: &'static str,
    pub(crate) reference: Image,
    pub(crate) distorted: Image,
}

/// Every kind of pair at one size.
pub(crate) fn of_every_kind(size: Size) -> Vec<Pair> {
    let scene = scene(size);
    let flat = vec![120_u8; scene.len()];
    let brighter = vec![124_u8; scene.len()];
    let pair = |name, reference: &[u8], distorted: Vec<u8>| Pair {
        name,
        reference: Image::rgb8(size, reference).expect("as many samples as it has"),
        distorted: Image::rgb8(size, distorted).expect("as many samples as it has"),
    };
    vec![
        pair("noise", &scene, noisy(&scene, 12)),
        pair("blur", &scene, blurred(&scene, size)),
        pair("blocks", &scene, blocky(&scene, size)),
        pair("flat", &flat, brighter),
        pair("inverted", &scene, scene.iter().map(|sample| 255 - sample).collect()),
        pair("identical", &scene, scene.clone()),
    ]
}

/// Pairs in which variances vanish and everything is as bright as it can be, or as dark.
pub(crate) fn of_extremes(size: Size) -> Vec<Pair> {
    let count = size.pixels() as usize;
    let flat = |colour: [u8; 3]| colour.repeat(count);
    let chequered = |first: u8| -> Vec<u8> {
        let places = (0..size.height).flat_map(|y| (0..size.width).map(move |x| x + y));
        places.flat_map(|place| [if place % 2 == 0 { first } else { 255 - first }; 3]).collect()
    };
    let mut one_white = flat([0; 3]);
    one_white[count / 2 * 3..][..3].fill(255);
    let pair = |name, reference: Vec<u8>, distorted: Vec<u8>| Pair {
        name,
        reference: Image::rgb8(size, reference).expect("as many samples as it has"),
        distorted: Image::rgb8(size, distorted).expect("as many samples as it has"),
    };
    vec![
        pair("red for blue", flat([255, 0, 0]), flat([0, 0, 255])),
        pair("green for magenta", flat([0, 255, 0]), flat([255, 0, 255])),
        pair("white for black", flat([255; 3]), flat([0; 3])),
        pair("one code", flat([255; 3]), flat([254, 255, 255])),
        pair("nearly black", flat([0; 3]), flat([1; 3])),
        pair("a white pixel", flat([0; 3]), one_white),
        pair("a chequered board inverted", chequered(0), chequered(255)),
    ]
}

/// Gradients, edges, fine lines, colour and texture: something for every part of a metric.
pub(crate) fn scene(Size { width, height }: Size) -> Vec<u8> {
    let mut dice = 0x2545_f491_u32;
    let mut samples = Vec::with_capacity((width * height * 3) as usize);
    for y in 0..height {
        for x in 0..width {
            let (u, v) = (x as f32 / width as f32, y as f32 / height as f32);
            let disc = ((u - 0.35).powi(2) + (v - 0.4).powi(2)).sqrt() < 0.22;
            let lines = (x / 3 + y / 5) % 4 == 0 && u > 0.6;
            let wave = (u * 40.0).sin() * (v * 31.0).cos() * 40.0;
            let base = [u * 200.0 + 20.0, v * 180.0 + 40.0, (1.0 - u) * 150.0 + v * 60.0];
            for (channel, base) in base.into_iter().enumerate() {
                let painted = match (disc, lines) {
                    (true, _) => [220.0, 90.0, 60.0][channel],
                    (false, true) => base * 0.4,
                    (false, false) => base + wave,
                };
                samples.push((painted + (random(&mut dice) % 9) as f32 - 4.0).clamp(0.0, 255.0) as u8);
            }
        }
    }
    samples
}

/// Every sample moved by up to `most`.
pub(crate) fn noisy(samples: &[u8], most: i32) -> Vec<u8> {
    let mut dice = 0x9e37_79b9_u32;
    let moved = |&sample: &u8| {
        let by = (random(&mut dice) % (2 * most as u32 + 1)) as i32 - most;
        (i32::from(sample) + by).clamp(0, 255) as u8
    };
    samples.iter().map(moved).collect()
}

/// The mean of 3 x 3.
pub(crate) fn blurred(samples: &[u8], Size { width, height }: Size) -> Vec<u8> {
    let sample = |x: i64, y: i64, channel: u32| {
        let (x, y) = (x.clamp(0, i64::from(width) - 1), y.clamp(0, i64::from(height) - 1));
        u32::from(samples[((y * i64::from(width) + x) * 3 + i64::from(channel)) as usize])
    };
    let around = |x: u32, y: u32, channel: u32| {
        let reach = (-1..=1).flat_map(|dy| (-1..=1).map(move |dx| (dx, dy)));
        (reach.map(|(dx, dy)| sample(i64::from(x) + dx, i64::from(y) + dy, channel)).sum::<u32>() / 9) as u8
    };
    let pixels = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
    pixels.flat_map(|(x, y)| (0..3).map(move |channel| (x, y, channel))).map(|(x, y, c)| around(x, y, c)).collect()
}

/// Each 8 x 8 block drawn towards its mean, as strong compression does.
pub(crate) fn blocky(samples: &[u8], Size { width, height }: Size) -> Vec<u8> {
    let mut out = samples.to_vec();
    for (top, left) in (0..height).step_by(8).flat_map(|top| (0..width).step_by(8).map(move |left| (top, left))) {
        for channel in 0..3 {
            let rows = top..height.min(top + 8);
            let at =
                rows.flat_map(|y| (left..width.min(left + 8)).map(move |x| ((y * width + x) * 3 + channel) as usize));
            let block: Vec<usize> = at.collect();
            let mean = block.iter().map(|&at| u32::from(samples[at])).sum::<u32>() / block.len() as u32;
            block.iter().for_each(|&at| out[at] = ((u32::from(samples[at]) + 2 * mean) / 3) as u8);
        }
    }
    out
}

pub(crate) fn random(state: &mut u32) -> u32 {
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    *state >> 8
}
