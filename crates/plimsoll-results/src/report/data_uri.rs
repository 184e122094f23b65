//! Pictures as a part of the page: PNG in base64.

use super::Picture;

/// A picture in full colour.
pub(crate) fn picture(picture: &Picture) -> String {
    png_uri(picture.width, picture.height, &picture.rgb, |encoder| encoder.set_color(png::ColorType::Rgb))
}

/// A picture of colours from a list: `codes` are places in `palette`.
pub(crate) fn indexed(width: u32, height: u32, codes: &[u8], palette: &[u8]) -> String {
    png_uri(width, height, codes, |encoder| {
        encoder.set_color(png::ColorType::Indexed);
        encoder.set_palette(palette.to_owned());
    })
}

fn png_uri(width: u32, height: u32, data: &[u8], colours: impl Fn(&mut png::Encoder<'_, &mut Vec<u8>>)) -> String {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width, height);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_compression(png::Compression::Balanced);
    colours(&mut encoder);
    let written = encoder.write_header().and_then(|mut image| {
        image.write_image_data(data)?;
        image.finish()
    });
    written.expect("sides above 0 and data of their length, written to memory");
    format!("data:image/png;base64,{}", base64(&file))
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
