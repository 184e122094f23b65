//! Made pictures of one megapixel: the same on every machine.

use plimsoll::image::{Image, Size};

/// Pixels in each direction.
pub(crate) const SIDE: u32 = 1024;

/// Gradients, edges, lines and texture.
pub(crate) fn reference() -> Vec<u8> {
    let mut rng = 0x2545_f491_u32;
    let mut samples = Vec::with_capacity((SIDE * SIDE * 3) as usize);
    for (y, x) in (0..SIDE).flat_map(|y| (0..SIDE).map(move |x| (y, x))) {
        let (u, v) = (x as f32 / SIDE as f32, y as f32 / SIDE as f32);
        let wave = (u * 40.0).sin() * (v * 31.0).cos() * 40.0;
        let dark = if (x / 3 + y / 5) % 4 == 0 && u > 0.6 { 0.4 } else { 1.0 };
        for base in [u * 200.0 + 20.0, v * 180.0 + 40.0, (1.0 - u) * 150.0 + v * 60.0] {
            let grain = (random(&mut rng) % 9) as f32 - 4.0;
            samples.push(((base + wave) * dark + grain).clamp(0.0, 255.0) as u8);
        }
    }
    samples
}

/// The reference with noise that differs in strength and place from variant to variant.
pub(crate) fn variant(reference: &[u8], number: usize) -> Vec<u8> {
    let mut rng = 0x9e37_79b9_u32.wrapping_mul(number as u32 + 1) | 1;
    let most = 3 + (number % 20) as u32;
    let moved = |&sample: &u8| {
        let by = (random(&mut rng) % (2 * most + 1)) as i32 - most as i32;
        (i32::from(sample) + by).clamp(0, 255) as u8
    };
    reference.iter().map(moved).collect()
}

pub(crate) fn image(samples: Vec<u8>) -> Image {
    Image::rgb8(Size { width: SIDE, height: SIDE }, samples).expect("as many samples as it has")
}

fn random(state: &mut u32) -> u32 {
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    *state >> 8
}
