//! What kind of file this is, from its first bytes. Never looks at names; reads at most the first 64 bytes.

use super::error::DecodeError;
use super::format::Format;

/// What the first bytes of a file say.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Content {
    Known(Format),
    /// An image in a format that is known by name only.
    Foreign(&'static str),
    Empty,
    Unrecognised,
}

/// The format of a file, or why it is not read.
pub(super) fn known(bytes: &[u8]) -> Result<Format, DecodeError> {
    match content(bytes) {
        Content::Known(format) => Ok(format),
        Content::Foreign(name) => Err(DecodeError::ConvertFirst { name }),
        Content::Empty => Err(DecodeError::Empty),
        Content::Unrecognised => Err(DecodeError::Unrecognised),
    }
}

fn content(bytes: &[u8]) -> Content {
    if bytes.is_empty() {
        return Content::Empty;
    }
    let formats = [
        (bytes.starts_with(b"\x89PNG\r\n\x1a\n"), Format::Png),
        (bytes.starts_with(b"\xff\xd8\xff"), Format::Jpeg),
        (bytes.starts_with(b"\xff\x0a") || bytes.starts_with(b"\0\0\0\x0cJXL \r\n\x87\n"), Format::Jxl),
        (bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP"), Format::WebP),
        ([b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"].iter().any(|magic| bytes.starts_with(*magic)), Format::Tiff),
        (bytes.starts_with(b"GIF87a") || bytes.starts_with(b"GIF89a"), Format::Gif),
        (is_bmp(bytes), Format::Bmp),
        (is_pnm(bytes), Format::Pnm),
        (bytes.starts_with(b"qoif"), Format::Qoi),
    ];
    let known = formats.into_iter().find_map(|(matches, format)| matches.then_some(Content::Known(format)));
    known.or_else(|| foreign(bytes).map(Content::Foreign)).unwrap_or(Content::Unrecognised)
}

/// Two letters alone would take any text that starts with BM: the length of the second header must be one in use.
fn is_bmp(bytes: &[u8]) -> bool {
    let header = bytes.get(14..18).map(|length| [length[0], length[1], length[2], length[3]]);
    let header = header.map(u32::from_le_bytes);
    bytes.starts_with(b"BM") && matches!(header, Some(12 | 16 | 40 | 52 | 56 | 64 | 108 | 124))
}

fn is_pnm(bytes: &[u8]) -> bool {
    matches!(bytes, [b'P', b'1'..=b'7', b' ' | b'\t' | b'\r' | b'\n' | b'#', ..])
}

fn foreign(bytes: &[u8]) -> Option<&'static str> {
    if bytes.get(4..8) == Some(b"ftyp") {
        let end = bytes.len().min(64);
        let brands: Vec<&[u8]> = bytes[8..end].chunks_exact(4).collect();
        let brand = |names: &[&[u8]]| brands.iter().any(|brand| names.contains(brand));
        return match () {
            () if brand(&[b"avif", b"avis"]) => Some("AVIF"),
            () if brand(&[b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1"]) => Some("HEIC"),
            () => None,
        };
    }
    let magics: [(&[u8], &str); 4] =
        [(b"8BPS", "Photoshop"), (b"\x76\x2f\x31\x01", "OpenEXR"), (b"#?RADIANCE", "Radiance HDR"), (b"%PDF", "PDF")];
    magics.into_iter().find_map(|(magic, name)| bytes.starts_with(magic).then_some(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_decides() {
        assert_eq!(content(b""), Content::Empty);
        assert_eq!(content(b"BMW is a maker of cars, not a bitmap"), Content::Unrecognised);
        assert_eq!(content(b"P3x"), Content::Unrecognised);
        assert_eq!(content(b"P3#"), Content::Known(Format::Pnm));
        assert_eq!(content(b"\0\0\0\x1cftypmif1\0\0\0\0mif1avif"), Content::Foreign("AVIF"));
        assert_eq!(content(b"\0\0\0\x18ftypheic\0\0\0\0mif1heic"), Content::Foreign("HEIC"));
        assert_eq!(content(b"\0\0\0\x18ftypisom\0\0\0\0mp42"), Content::Unrecognised);
        assert_eq!(content(b"\0\0\0\x18ftyp"), Content::Unrecognised);
    }
}
