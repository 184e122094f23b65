//! How long files take to read, beside the plain call of the image crate.
//!
//! `cargo run --release -p plimsoll-image --example decode_speed`
//!
//! Draws a picture of 2048 x 2048 in memory, encodes it, and prints the shortest of several turns of each way, in
//! milliseconds. Turns alternate, so that a busy machine treats both alike.

use std::hint::black_box;
use std::io::Cursor;
use std::time::{Duration, Instant};

use image::{ImageFormat, Rgb, RgbImage};
use plimsoll_image::decode::{DecodeOptions, decode};

const SIDE: u32 = 2048;
const TURNS: u32 = 9;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let picture = RgbImage::from_fn(SIDE, SIDE, |x, y| {
        let grain = (x.wrapping_mul(0x9e37_79b1) ^ y.wrapping_mul(0x85eb_ca77)).wrapping_mul(0xc2b2_ae35) >> 28;
        Rgb([(x / 9 + grain) as u8, (y / 9 + grain) as u8, ((x ^ y) / 11 + grain) as u8])
    });
    for format in [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::WebP] {
        let mut file = Cursor::new(Vec::new());
        picture.write_to(&mut file, format)?;
        let file = file.into_inner();
        let (mut plain, mut ours) = (Duration::MAX, Duration::MAX);
        for _ in 0..TURNS {
            let start = Instant::now();
            black_box(image::load_from_memory_with_format(&file, format)?.into_rgb8());
            plain = plain.min(start.elapsed());
            let start = Instant::now();
            black_box(decode(&file, &DecodeOptions::default())?);
            ours = ours.min(start.elapsed());
        }
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        println!("{format:?}: {} bytes, image crate {:.1} ms, decode {:.1} ms", file.len(), ms(plain), ms(ours));
    }
    Ok(())
}
