//! Damaged files: bytes flipped, overwritten, cut out, doubled. Each gives an image or an error, never a panic, and never
//! more than the limit.

use image::ImageFormat;
use plimsoll_image::decode::{DecodeOptions, Profiles, decode, header};

use crate::files::{JXL, exif, few_colours, picture_8, picture_16, with_metadata, written};

/// Damaged copies of each file, unless a campaign asks for another number (`cargo xtask campaign decoders`).
const ROUNDS: u64 = 1500;

/// Those that take ten times as long (JPEG XL, and what is converted by a profile) get so many times fewer.
const SLOW: u64 = 4;

fn rounds() -> u64 {
    std::env::var("PLIMSOLL_CAMPAIGN_ROUNDS").map_or(ROUNDS, |rounds| rounds.parse().expect("a number of rounds"))
}

/// xorshift64*: the same on every machine.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % limit.max(1)
    }
}

fn damaged(whole: &[u8], dice: &mut Dice) -> Vec<u8> {
    let mut bytes = whole.to_vec();
    for _ in 0..=dice.below(4) {
        let at = dice.below(bytes.len());
        let length = dice.below(8).min(bytes.len() - at);
        match dice.below(6) {
            0 | 1 => bytes[at] ^= 1 << dice.below(8),
            2 => bytes[at] = [0, 0xff, 0x7f, 0x80][dice.below(4)],
            3 => bytes[at..at + length].fill(0xff),
            4 => drop(bytes.drain(at..at + length)),
            _ => {
                let part = bytes[at..at + length].to_vec();
                bytes.splice(at..at, part);
            }
        }
        if bytes.is_empty() {
            return bytes;
        }
    }
    if dice.below(8) == 0 {
        bytes.truncate(dice.below(bytes.len()));
    }
    bytes
}

fn survives(name: &str, whole: &[u8]) {
    survives_rounds(name, whole, rounds());
}

fn survives_rounds(name: &str, whole: &[u8], rounds: u64) {
    let options = DecodeOptions { bytes_max: 4 << 20, ..DecodeOptions::default() };
    let ignoring = DecodeOptions { profiles: Profiles::Ignore, ..options.clone() };
    let mut images = 0;
    for seed in 1..=rounds {
        let bytes = damaged(whole, &mut Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        let outcome = std::panic::catch_unwind(|| {
            let _ = header(&bytes);
            let _ = decode(&bytes, &ignoring);
            decode(&bytes, &options)
        });
        let Ok(outcome) = outcome else { panic!("{name}, seed {seed}: the decoder panicked") };
        if let Ok(decoded) = outcome {
            images += 1;
            assert!(decoded.image.size().pixels() * 4 <= options.bytes_max, "{name}, seed {seed}: {decoded:?}");
        }
    }
    assert!(images < rounds, "{name}: no damage was ever noticed");
}

#[test]
fn png_survives() {
    let icc = moxcms::ColorProfile::new_display_p3().encode().unwrap();
    survives("PNG", &written(&picture_8(4), ImageFormat::Png));
    survives_rounds(
        "PNG, profile",
        &with_metadata(&picture_16(3), ImageFormat::Png, Some(&icc), Some(&exif(6))),
        rounds() / SLOW,
    );
}

#[test]
fn jpeg_survives() {
    let icc = moxcms::ColorProfile::new_display_p3().encode().unwrap();
    survives("JPEG", &written(&picture_8(3), ImageFormat::Jpeg));
    survives("JPEG, progressive", include_bytes!("made/progressive.jpg"));
    survives("JPEG, restarts", include_bytes!("made/restarts.jpg"));
    survives("JPEG, grey", &written(&picture_8(1), ImageFormat::Jpeg));
    survives_rounds(
        "JPEG, profile",
        &with_metadata(&picture_8(3), ImageFormat::Jpeg, Some(&icc), Some(&exif(6))),
        rounds() / SLOW,
    );
}

#[test]
fn webp_survives() {
    survives("WebP", &written(&picture_8(4), ImageFormat::WebP));
    survives("WebP, lossy", include_bytes!("made/lossy.webp"));
    survives("WebP, exif", &with_metadata(&picture_8(3), ImageFormat::WebP, None, Some(&exif(3))));
}

#[test]
fn tiff_survives() {
    let icc = moxcms::ColorProfile::new_display_p3().encode().unwrap();
    survives("TIFF", &written(&picture_8(3), ImageFormat::Tiff));
    survives_rounds(
        "TIFF, profile",
        &with_metadata(&picture_16(4), ImageFormat::Tiff, Some(&icc), None),
        rounds() / SLOW,
    );
}

#[test]
fn small_formats_survive() {
    survives("GIF", &written(&few_colours(), ImageFormat::Gif));
    survives("BMP", &written(&picture_8(3), ImageFormat::Bmp));
    survives("BMP, grey", &written(&picture_8(1), ImageFormat::Bmp));
    survives("PPM", &written(&picture_8(3), ImageFormat::Pnm));
    survives("QOI", &written(&picture_8(4), ImageFormat::Qoi));
}

#[test]
fn jpeg_xl_survives() {
    for (name, whole) in JXL {
        survives_rounds(name, whole, rounds() / SLOW);
    }
}
