//! Where to begin reading for a range of the unpacked bytes.
//! Never trusts a seek table alone: each frame before the end of the range has to say the same of itself. Where a file does
//! not tell, it is read from its beginning.

use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;

use crate::error::{DamageError, UnpackError};
use crate::filter::{Filter, record};
use crate::gzip::header::{self as member, OUR_HEADER};
use crate::pool::Pool;
use crate::scan::Scanner;
use crate::zstd::frame::{self, FrameKind, SKIPPABLE_HEADER, u32_at};
use crate::zstd::seekable::{self, FOOTER, FrameSize, TABLE_BYTES_MAX};

/// Where a range of the unpacked bytes is to be found.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct RangePlan {
    /// The frame or member to begin with.
    at: u64,
    /// Where the pieces that hold the range end, if that is known.
    until: Option<u64>,
    filter: Option<Filter>,
    /// Unpacked bytes to pass over.
    pub skip: u64,
    /// Unpacked bytes that are wanted.
    pub take: u64,
}

impl RangePlan {
    /// Finds out where to begin.
    ///
    /// # Errors
    /// [`UnpackError`] if the file cannot be read, or its seek table is damaged.
    pub fn new<R: Read + Seek>(file: &mut R, range: &Range<u64>) -> Result<Self, UnpackError> {
        let from_start =
            Self { at: 0, until: None, filter: None, skip: range.start, take: range.end.saturating_sub(range.start) };
        let found = match by_table(file, range)? {
            Some(found) => Some(found),
            None => by_members(file, range)?,
        };
        Ok(found.map_or(from_start, |place| place.plan(range)))
    }

    /// Reads the pieces that hold the range.
    ///
    /// # Errors
    /// [`UnpackError`] if there is no such place in the file.
    pub fn scanner<R: Read + Seek>(&self, mut file: R, pool: &Pool) -> Result<Scanner<R>, UnpackError> {
        seek(&mut file, SeekFrom::Start(self.at))?;
        Ok(Scanner::from_place(file, self.at, self.until, pool).with_filter(self.filter))
    }
}

/// Whether a file says of itself that it gives so many bytes. Only a guide to how it is best unpacked: it may be wrong, and
/// nothing is said of what is wrong with it. Of frames without a table, the first is asked.
pub fn says_it_gives<R: Read + Seek>(file: &mut R, bytes: u64) -> bool {
    match table(file) {
        Ok(Some(sizes)) => sizes.iter().map(|size| u64::from(size.raw)).sum::<u64>() >= bytes,
        _ if first_frame_gives(file).is_some_and(|content| content >= bytes) => true,
        _ => matches!(by_members(file, &(0..bytes)), Ok(Some(found)) if found.raw >= bytes),
    }
}

/// What the frame gives that a file begins with, if it says.
fn first_frame_gives<R: Read + Seek>(file: &mut R) -> Option<u64> {
    let header = bytes_at(file, 0, frame::HEADER_MAX).ok()?;
    let is_frame = u32_at(&header, 0).and_then(frame::kind_of) == Some(FrameKind::Zstd);
    let is_whole = header.len() > 4 && header.len() >= frame::header_length(header[4]);
    if is_frame && is_whole { frame::header(&header, 0).ok()?.content } else { None }
}

/// A place in both the packed and the unpacked bytes.
#[derive(Default)]
struct Found {
    /// The frame that holds the first byte: where it begins in the file, and in the unpacked bytes.
    first: Option<(u64, u64)>,
    at: u64,
    raw: u64,
    filter: Option<Filter>,
}

impl Found {
    /// Goes past a frame; `true` once it holds the end of the range.
    fn pass(&mut self, packed: u64, raw: u64, range: &Range<u64>) -> bool {
        if self.first.is_none() && self.raw + raw > range.start {
            self.first = Some((self.at, self.raw));
        }
        (self.at, self.raw) = (self.at + packed, self.raw + raw);
        self.raw >= range.end
    }

    fn plan(&self, range: &Range<u64>) -> RangePlan {
        let (at, raw) = self.first.unwrap_or((self.at, self.raw));
        let take = range.end.min(self.raw).saturating_sub(range.start);
        RangePlan { at, until: Some(self.at), filter: self.filter, skip: range.start.saturating_sub(raw), take }
    }
}

fn by_table<R: Read + Seek>(file: &mut R, range: &Range<u64>) -> Result<Option<Found>, UnpackError> {
    let Some(table) = table(file)? else { return Ok(None) };
    let mut found = Found::default();
    for size in table {
        let wrong = UnpackError::damaged(found.at, DamageError::SeekTable);
        let header = bytes_at(file, found.at, frame::HEADER_MAX.min(size.packed as usize))?;
        let said = match u32_at(&header, 0).and_then(frame::kind_of) {
            Some(FrameKind::Zstd) if header.len() > 4 && header.len() >= frame::header_length(header[4]) => {
                match frame::header(&header, found.at)?.content {
                    Some(content) => content,
                    // It does not say: only unpacking tells.
                    None => return Ok(None),
                }
            }
            Some(FrameKind::Skippable(kind)) => {
                let length = (size.packed as usize).min(SKIPPABLE_HEADER + 4096);
                let payload =
                    bytes_at(file, found.at + SKIPPABLE_HEADER as u64, length.saturating_sub(SKIPPABLE_HEADER))?;
                if let Some(filter) = record::read(kind, &payload, found.at)? {
                    found.filter = Some(filter);
                }
                0
            }
            _ => return Err(wrong),
        };
        if said != u64::from(size.raw) {
            return Err(wrong);
        }
        if found.pass(u64::from(size.packed), said, range) {
            break;
        }
    }
    Ok(Some(found))
}

/// The seek table, if the file ends with one that covers all of it.
fn table<R: Read + Seek>(file: &mut R) -> Result<Option<Vec<FrameSize>>, UnpackError> {
    let length = seek(file, SeekFrom::End(0))?;
    let Some(at) = length.checked_sub(FOOTER as u64) else { return Ok(None) };
    let footer = bytes_at(file, at, FOOTER)?;
    let Some(bytes) = seekable::bytes_from_footer(&footer).filter(|bytes| *bytes <= length.min(TABLE_BYTES_MAX as u64))
    else {
        return Ok(None);
    };
    let at = length - bytes;
    let table = bytes_at(file, at, bytes as usize)?;
    let is_one = u32_at(&table, 0) == Some(frame::SKIPPABLE | u32::from(seekable::KIND))
        && u32_at(&table, 4).is_some_and(|said| u64::from(said) + SKIPPABLE_HEADER as u64 == bytes);
    if !is_one {
        return Ok(None);
    }
    let sizes = seekable::read(&table[SKIPPABLE_HEADER..], at)?;
    let covered: u64 = sizes.iter().map(|size| u64::from(size.packed)).sum();
    Ok((covered == at).then_some(sizes))
}

/// Our members say in their headers, with a check, how large they are.
fn by_members<R: Read + Seek>(file: &mut R, range: &Range<u64>) -> Result<Option<Found>, UnpackError> {
    let mut found = Found::default();
    loop {
        let header = bytes_at(file, found.at, OUR_HEADER)?;
        if header.is_empty() {
            return Ok((found.at > 0).then_some(found));
        }
        if header.len() < OUR_HEADER || header[..3] != member::MAGIC {
            return Ok(None);
        }
        let member::Read::Whole(member::MemberHeader { sized: member::MemberSize::Ours { packed, raw }, .. }) =
            member::read(&header, found.at)?
        else {
            return Ok(None);
        };
        if found.pass(u64::from(packed), u64::from(raw), range) {
            return Ok(Some(found));
        }
    }
}

fn seek<R: Seek>(file: &mut R, to: SeekFrom) -> Result<u64, UnpackError> {
    file.seek(to).map_err(|reason| UnpackError::Unreadable { at: 0, reason })
}

/// Bytes from here on; fewer if the file ends.
fn bytes_at<R: Read + Seek>(file: &mut R, at: u64, count: usize) -> Result<Vec<u8>, UnpackError> {
    seek(file, SeekFrom::Start(at))?;
    let mut bytes = Vec::with_capacity(count);
    let read: io::Result<usize> = file.take(count as u64).read_to_end(&mut bytes);
    read.map(|_| bytes).map_err(|reason| UnpackError::Unreadable { at, reason })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{Format, PackOptions};
    use crate::workloads::BlockPacker;

    /// A file of so many blocks of 64 KiB, as we write it.
    fn packed(format: Format, blocks: usize) -> io::Cursor<Vec<u8>> {
        let recipe = PackOptions { format, ..PackOptions::default() }.recipe(None).unwrap();
        let mut packer = BlockPacker::new(&recipe, &Pool::default()).unwrap();
        let (mut file, mut sizes) = (Vec::new(), Vec::new());
        for _ in 0..blocks {
            let packed = packer.pack(&[7; 64 << 10]).unwrap();
            sizes.push(FrameSize { packed: packed.bytes.len() as u32, raw: 64 << 10 });
            file.extend_from_slice(&packed.bytes);
        }
        if format == Format::Zstd {
            file.extend(seekable::table(&sizes));
        }
        io::Cursor::new(file)
    }

    #[test]
    fn a_file_says_how_much_it_gives() {
        for format in [Format::Zstd, Format::Gzip] {
            let mut four = packed(format, 4);
            assert!(says_it_gives(&mut four, 4 << 16), "{format}");
            assert!(!says_it_gives(&mut four, (4 << 16) + 1), "{format}");
        }
        let mut frame = packed(Format::Zstd, 1).into_inner();
        frame.truncate(frame.len() - seekable::table(&[FrameSize { packed: 1, raw: 1 }]).len());
        assert!(says_it_gives(&mut io::Cursor::new(frame.clone()), 1 << 16), "one frame and no table");
        assert!(!says_it_gives(&mut io::Cursor::new(frame), (1 << 16) + 1));
        assert!(!says_it_gives(&mut packed(Format::Bgzf, 4), 1), "it does not say");
        assert!(!says_it_gives(&mut io::Cursor::new(b"no packed file".to_vec()), 1));
    }
}
