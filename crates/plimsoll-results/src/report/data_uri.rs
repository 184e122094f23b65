//! Pictures as a part of the page: JPEG in base64, a tenth of what PNG would take.

use jpeg_encoder::{ColorType, Encoder, SamplingFactor};

use super::Picture;

/// Of JPEG, from 1 to 100: for a glance, not to judge by.
const PICTURE_QUALITY: u8 = 75;
/// What is looked at closely hides nothing that can be seen.
const DETAIL_QUALITY: u8 = 90;
/// Colours that stand for numbers are to be told apart.
const MAP_QUALITY: u8 = 80;

/// A picture in full colour.
pub(crate) fn picture(picture: &Picture) -> String {
    jpeg_uri(picture.width, picture.height, &picture.rgb, PICTURE_QUALITY)
}

/// Pixels to judge by.
pub(crate) fn detail(picture: &Picture) -> String {
    jpeg_uri(picture.width, picture.height, &picture.rgb, DETAIL_QUALITY)
}

/// A picture of colours from a list: `codes` are places in `palette`.
pub(crate) fn indexed(width: u32, height: u32, codes: &[u8], palette: &[u8]) -> String {
    let (colours, _) = palette.as_chunks::<3>();
    let rgb: Vec<u8> = codes.iter().flat_map(|code| colours[usize::from(*code)]).collect();
    jpeg_uri(width, height, &rgb, MAP_QUALITY)
}

fn jpeg_uri(width: u32, height: u32, rgb: &[u8], quality: u8) -> String {
    let mut file = Vec::new();
    let mut encoder = Encoder::new(&mut file, quality);
    // Thin lines of one colour stay that colour.
    encoder.set_sampling_factor(SamplingFactor::R_4_4_4);
    let side = |pixels: u32| u16::try_from(pixels).unwrap_or(0);
    let encoded = encoder.encode(rgb, side(width), side(height), ColorType::Rgb);
    encoded.expect("sides from 1 to 65535 and data of their length, written to memory");
    format!("data:image/jpeg;base64,{}", base64(&file))
}

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            // n bytes fill n + 1 digits.
            let is_filled = digit <= group.len();
            let place = (bits >> (18 - 6 * digit) & 63) as usize;
            text.push(if is_filled { char::from(DIGITS[place]) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_as_in_its_rfc() {
        let known =
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("foobar", "Zm9vYmFy")];
        for (plain, encoded) in known {
            assert_eq!(base64(plain.as_bytes()), encoded);
        }
        assert_eq!(base64(&[0xfb, 0xff, 0xbf]), "+/+/");
    }
}
