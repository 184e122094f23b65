//! What a file says of itself before it is decoded: its size, and the memory that it will take. From its first bytes where
//! that is enough; never reads a pixel, and never waits for a pipe or a device.
//! Invariant: decoding holds at most `decode_bytes` beside the image (`tests/heap.rs`).

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use ::tiff::decoder::Decoder as TiffReader;

use crate::Size;

use super::error::DecodeError;
use super::format::Format;
use super::limits::Limits;
use super::raster::Channels;
use super::sniff;
use super::{FILE_BYTES_MAX, jxl};

/// Bytes that are looked at first. Headers of files with large profiles or previews before them need more.
const FIRST: u64 = 64 << 10;

/// What a file will take.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Outlook {
    /// How the file is coded.
    pub format: Format,
    /// The size of the image as it is stored: upright it may be turned by a quarter.
    pub size: Size,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Bytes of the image that it holds.
    pub image_bytes: u64,
    /// Bytes that decoding it takes beside that, the file's own included.
    pub decode_bytes: u64,
}

/// The header as far as it matters here.
struct Stored {
    size: Size,
    wide: bool,
    /// Bytes of a pixel that the decoder holds for itself, beside samples as they are stored.
    own_bytes_a_pixel: u64,
}

/// Looks at a file.
///
/// # Errors
/// [`DecodeError`] if it cannot be read, is no plain file, or its header makes no sense.
pub fn look(path: &Path) -> Result<Outlook, DecodeError> {
    let (mut file, file_bytes) = open_plain(path)?;
    let unreadable = |reason| DecodeError::Unreadable { path: path.to_owned(), reason };
    let mut bytes = Vec::new();
    file.by_ref().take(FIRST).read_to_end(&mut bytes).map_err(unreadable)?;
    let format = sniff::known(&bytes)?;
    let mut stored = stored(format, &bytes, &mut file);
    if matches!(stored, Err(DecodeError::Truncated { .. })) && file_bytes > FIRST {
        file.seek(SeekFrom::Start(FIRST)).map_err(unreadable)?;
        file.by_ref().take(FILE_BYTES_MAX).read_to_end(&mut bytes).map_err(unreadable)?;
        stored = self::stored(format, &bytes, &mut file);
    }
    let Stored { size, wide, own_bytes_a_pixel } = stored?;
    let bits = if wide { 16 } else { 8 };
    Limits { format, file: file_bytes, bytes_max: u64::MAX }.check(size, Channels::Rgba, bits)?;
    let each = if wide { 2 } else { 1 };
    // Samples as they are stored and once more converted, both with alpha, less the image itself.
    let samples = (4 + 4 - 3) * each;
    let decode_bytes = file_bytes + size.pixels() * (samples + own_bytes_a_pixel);
    Ok(Outlook { format, size, file_bytes, image_bytes: size.pixels() * 3 * each, decode_bytes })
}

/// Opens a file that can be read to its end: what a pipe or a device gives, nobody knows before it has.
pub(super) fn open_plain(path: &Path) -> Result<(File, u64), DecodeError> {
    let unreadable = |reason| DecodeError::Unreadable { path: path.to_owned(), reason };
    // Asked before it is opened: opening a pipe waits for its other end.
    let kind = path.metadata().map_err(unreadable)?;
    if !kind.is_file() && !kind.is_dir() {
        return Err(DecodeError::NoFile { path: path.to_owned() });
    }
    let file = File::open(path).map_err(unreadable)?;
    match kind.len() {
        too_many if too_many > FILE_BYTES_MAX => Err(DecodeError::FileTooLarge { path: path.to_owned() }),
        bytes => Ok((file, bytes)),
    }
}

fn stored(format: Format, bytes: &[u8], file: &mut File) -> Result<Stored, DecodeError> {
    let short = || DecodeError::Truncated { format };
    match format {
        Format::Png => png(bytes).ok_or_else(short),
        Format::Jpeg => jpeg(bytes).ok_or_else(short),
        Format::Gif => plain(le_16(bytes, 6), le_16(bytes, 8), GIF_OWN).ok_or_else(short),
        Format::Bmp => bmp(bytes).ok_or_else(short),
        Format::Qoi => plain(be_32(bytes, 4), be_32(bytes, 8), 0).ok_or_else(short),
        Format::WebP => webp(bytes).ok_or_else(short),
        Format::Pnm => pnm(bytes).ok_or_else(short),
        Format::Tiff => tiff(file),
        Format::Jxl => jxl::stored_size(bytes).map(|(size, wide)| Stored { size, wide, own_bytes_a_pixel: JXL_OWN }),
    }
}

/// A canvas with alpha beside the frame.
const GIF_OWN: u64 = 5;
/// Coefficients of 16 bits for all components, which a progressive file fills scan by scan.
const PROGRESSIVE_OWN: u64 = 8;
/// Planes of floats, before and after the filters.
const JXL_OWN: u64 = 40;
/// Planes of luma and chroma, or pixels before they are transformed back.
const WEBP_OWN: u64 = 6;
/// The whole image as one strip.
const TIFF_OWN: u64 = 8;
/// Rows before their filter is undone, and passes of an interlaced file.
const PNG_OWN: u64 = 1;

fn plain(width: Option<u32>, height: Option<u32>, own_bytes_a_pixel: u64) -> Option<Stored> {
    Some(Stored { size: Size { width: width?, height: height? }, wide: false, own_bytes_a_pixel })
}

fn be_16(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 2).map(|two| u32::from(u16::from_be_bytes([two[0], two[1]])))
}

fn le_16(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 2).map(|two| u32::from(u16::from_le_bytes([two[0], two[1]])))
}

fn le_24(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 3).map(|three| u32::from_le_bytes([three[0], three[1], three[2], 0]))
}

fn be_32(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4).map(|four| u32::from_be_bytes([four[0], four[1], four[2], four[3]]))
}

fn le_32(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4).map(|four| u32::from_le_bytes([four[0], four[1], four[2], four[3]]))
}

fn png(bytes: &[u8]) -> Option<Stored> {
    let stored = plain(be_32(bytes, 16), be_32(bytes, 20), PNG_OWN)?;
    Some(Stored { wide: *bytes.get(24)? > 8, ..stored })
}

/// Walks the segments to the one that begins a frame.
fn jpeg(bytes: &[u8]) -> Option<Stored> {
    let mut at = 2;
    loop {
        match *bytes.get(at..at + 2)? {
            [0xff, 0xff] => at += 1,
            [0xff, 0x01 | 0xd0..=0xd8] => at += 2,
            [0xff, marker @ (0xc0..=0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf)] => {
                let own = if matches!(marker, 0xc0 | 0xc1) { 0 } else { PROGRESSIVE_OWN };
                return plain(be_16(bytes, at + 7), be_16(bytes, at + 5), own);
            }
            [0xff, _] => at += 2 + be_16(bytes, at + 2)?.max(2) as usize,
            _ => return None,
        }
    }
}

fn bmp(bytes: &[u8]) -> Option<Stored> {
    match le_32(bytes, 14)? {
        12 => plain(le_16(bytes, 18), le_16(bytes, 20), 0),
        // A negative height means that rows run downwards.
        _ => plain(le_32(bytes, 18), le_32(bytes, 22).map(|height| (height as i32).unsigned_abs()), 0),
    }
}

fn webp(bytes: &[u8]) -> Option<Stored> {
    let fourteen = |at: usize, shift: u32| Some((le_32(bytes, at)? >> shift) & 0x3fff);
    match bytes.get(12..16)? {
        b"VP8X" => plain(le_24(bytes, 24).map(|width| width + 1), le_24(bytes, 27).map(|height| height + 1), WEBP_OWN),
        b"VP8L" => plain(fourteen(21, 0).map(|width| width + 1), fourteen(21, 14).map(|height| height + 1), WEBP_OWN),
        _ => plain(fourteen(26, 0), fourteen(28, 0).or_else(|| le_16(bytes, 28)), WEBP_OWN),
    }
}

/// Numbers in text, with comments between them; PAM names its fields.
fn pnm(bytes: &[u8]) -> Option<Stored> {
    let mut header = Words(bytes.get(2..)?);
    if bytes[1] == b'7' {
        let (mut width, mut height, mut most) = (None, None, 255);
        loop {
            match header.next()? {
                b"WIDTH" => width = Some(number(header.next()?)?),
                b"HEIGHT" => height = Some(number(header.next()?)?),
                b"MAXVAL" => most = number(header.next()?)?,
                b"ENDHDR" => break,
                _ => {}
            }
        }
        return Some(Stored { wide: most > 255, ..plain(width, height, 0)? });
    }
    let stored = plain(Some(number(header.next()?)?), Some(number(header.next()?)?), 0)?;
    let has_most = !matches!(bytes[1], b'1' | b'4');
    let most = if has_most { number(header.next()?)? } else { 1 };
    Some(Stored { wide: most > 255, ..stored })
}

fn number(word: &[u8]) -> Option<u32> {
    std::str::from_utf8(word).ok()?.parse().ok()
}

/// Words between blanks, without comments.
struct Words<'a>(&'a [u8]);

impl<'a> Iterator for Words<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        loop {
            self.0 = self.0.trim_ascii_start();
            match self.0.first()? {
                b'#' => self.0 = &self.0[self.0.iter().position(|byte| *byte == b'\n')?..],
                _ => break,
            }
        }
        let end = self.0.iter().position(u8::is_ascii_whitespace)?;
        let (word, rest) = self.0.split_at(end);
        self.0 = rest;
        Some(word)
    }
}

/// The directory of a TIFF may lie anywhere in it.
fn tiff(file: &mut File) -> Result<Stored, DecodeError> {
    let failed = |error: ::tiff::TiffError| DecodeError::of_decoder(Format::Tiff, &error);
    file.seek(SeekFrom::Start(0)).map_err(|_| DecodeError::Truncated { format: Format::Tiff })?;
    let mut reader = TiffReader::new(BufReader::new(file)).map_err(failed)?;
    let (width, height) = reader.dimensions().map_err(failed)?;
    let wide = reader.colortype().map_err(failed)?.bit_depth() > 8;
    Ok(Stored { size: Size { width, height }, wide, own_bytes_a_pixel: TIFF_OWN })
}

impl Outlook {
    /// Whether an image of this file can have the size of the other's, turned or not.
    pub fn may_match(&self, other: &Self) -> bool {
        let turned = Size { width: self.size.height, height: self.size.width };
        self.size == other.size || turned == other.size
    }
}
