//! Packed input as pieces, in order: whole frames and members that can be unpacked by themselves, and parts of those that
//! cannot. Finds where frames end without unpacking them.
//! Never takes a length in the file for granted: what is held at once is bounded by [`WHOLE_PACKED_MAX`] and, for what a
//! piece gives, by [`WHOLE_RAW_MAX`], whatever the file says.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Deref;
use std::sync::Arc;

use crate::draft::{Draft, Placed};
use crate::error::{DamageError, UnpackError};
use crate::extent::{Extent, PlacedFile};
use crate::filter::{self, Filter};
use crate::gzip::header::{self as member, BGZF_RAW_MAX, MemberSize, TRAILER};
use crate::gzip::member::raw_said;
use crate::pool::{Pool, PooledBytes};
use crate::zstd::frame::{self, BLOCK_HEADER, CHECKSUM, FrameKind, SKIPPABLE_HEADER, u32_at};
use crate::zstd::seekable::{self, FrameSize};

/// Packed bytes of a frame that is unpacked as a whole, at the most. Larger ones go through in parts.
pub const WHOLE_PACKED_MAX: usize = 48 << 20;
/// What such a frame may give at the most.
pub const WHOLE_RAW_MAX: u64 = 48 << 20;
/// Packed bytes of a part.
const PART: usize = 256 << 10;
/// What a part of a zstd frame gives at the most, roughly.
const PART_RAW: u64 = 4 << 20;
/// Packed bytes of BGZF members that are unpacked by one task: enough that a task is worth its while.
const BGZF_RUN: usize = 128 << 10;
/// What they give at the most, roughly: so much stays in a core's cache until it is written, and buffers that were never used
/// before, which cost more than to fill them, are soon at hand again.
const BGZF_RUN_RAW: usize = 256 << 10;
/// Deflate makes no more than this of a byte.
const DEFLATE_RATIO_MAX: u64 = 1032;
/// Bytes that are read at once at the most.
const READ: usize = 256 << 10;
/// At first: most small files are no longer, and memory that was never used before costs more than to unpack them.
const READ_FIRST: usize = 16 << 10;
/// And at the least: what is read of the next piece is copied into a buffer of its own.
const READ_LEAST: usize = 64 << 10;
/// Pieces that are smaller are copied: that is cheaper than a buffer for what comes after them.
const COPIED_MAX: usize = 32 << 10;
/// The buffer after one that was handed over is as large, up to this: the next piece is likely to be like the last.
const NEXT_ROOM_MAX: usize = 512 << 10;
/// Room for a piece that is only begun, by the bytes that are there of it. It is not touched before there is something to put
/// into it.
const ROOM_RATIO_MAX: usize = 64;
/// What a frame of a file gives at the least to be left there, to be read by who unpacks it: less is read in no time.
const LEFT_MIN: u64 = 1 << 20;
/// What a frame gives at the least to be read and written beside: a thread for that, and a window apart from what comes out,
/// cost more than they gain at 1 MiB.
const LONE_MIN: u64 = 4 << 20;
/// Frames that are remembered to be compared with a seek table. A file with more is not compared.
const FRAMES_REMEMBERED: usize = 1 << 20;

/// A piece of packed input.
#[derive(Debug)]
pub enum Piece {
    /// It can be unpacked by itself.
    Whole(Whole),
    /// It goes on where the part before it ended.
    Part(Part),
}

/// Frames or members that can be unpacked by themselves.
#[derive(Debug)]
pub struct Whole {
    /// Where it begins in the file.
    pub at: u64,
    pub(crate) bytes: Packed,
    pub(crate) content: Content,
    /// What it gives at the most.
    pub(crate) raw_max: usize,
    /// What was done to the bytes before they were packed.
    pub(crate) filter: Option<Filter>,
    /// Where its bytes go, if not to who asked for it.
    pub(crate) placed: Option<Arc<Placed>>,
}

impl Whole {
    /// Lets who unpacks it write its bytes, from this place of a draft on; the task gives none then. `None` if nobody knows yet
    /// how many they are.
    pub fn place(&mut self, draft: &Arc<dyn Draft>, at: u64) -> Option<Arc<Placed>> {
        let is_exact = match &self.content {
            Content::Frame { raw, .. } => raw.is_some(),
            Content::Members(_) => true,
        };
        self.placed = (is_exact && self.filter.is_none()).then(|| Arc::new(Placed::new(draft, at)));
        self.placed.clone()
    }

    /// Its bytes, packed.
    pub fn packed(&self) -> usize {
        match &self.bytes {
            Packed::Taken(bytes) => bytes.len(),
            Packed::Left(extent) => extent.length,
        }
    }

    /// How many bytes it gives at the most.
    pub fn raw_max(&self) -> usize {
        self.raw_max
    }
}

/// Where the packed bytes of a whole piece are.
#[derive(Debug)]
pub(crate) enum Packed {
    /// In memory.
    Taken(Taken),
    /// Where they were.
    Left(Extent),
}

/// The packed bytes of a piece: the beginning of a buffer. It stays as long as it was, so that who has it next need not clear
/// the rest of it.
#[derive(Debug)]
pub(crate) struct Taken {
    buffer: PooledBytes,
    length: usize,
}

#[cfg(test)]
impl Packed {
    /// Flips a bit of it.
    pub(crate) fn flip(&mut self, at: usize) {
        match self {
            Self::Taken(taken) => taken.buffer.vec_mut()[at] ^= 16,
            Self::Left(extent) => panic!("it is not here: {extent:?}"),
        }
    }
}

impl Deref for Taken {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.buffer[..self.length]
    }
}

/// What a whole piece is made of.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    /// A zstd frame, what it says it gives, and how far back it refers at the most.
    Frame { raw: Option<u64>, window: u64 },
    /// Gzip members: the bytes of each header and of each member, and what it gives.
    Members(Vec<MemberPlace>),
}

#[derive(Copy, Clone, Debug)]
pub(crate) struct MemberPlace {
    pub(crate) header: usize,
    pub(crate) packed: usize,
    pub(crate) raw: usize,
}

/// A part of a frame, or of members whose ends nobody knows.
#[derive(Debug)]
pub struct Part {
    /// Where it begins in the file.
    pub at: u64,
    pub(crate) bytes: Taken,
    pub(crate) kind: PartKind,
    /// How far back it refers at the most, and so what it takes to unpack it.
    pub(crate) window: u64,
    /// It begins a frame, or a run of members.
    pub is_first: bool,
    /// It ends it.
    pub is_last: bool,
}

impl Part {
    /// Its bytes, packed.
    pub fn packed(&self) -> usize {
        self.bytes.len()
    }

    /// How far back its frame or member refers at the most.
    pub fn window(&self) -> u64 {
        self.window
    }
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum PartKind {
    Zstd,
    Gzip,
}

/// Which format a file is of.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// Zstd frames.
    Zstd,
    /// Gzip members.
    Gzip,
}

/// Reads pieces.
pub struct Scanner<R> {
    source: Source<R>,
    found: Option<Found>,
    filter: Option<Filter>,
    /// Zstd: the frame whose parts are under way, and what is left to remember of it.
    within: Option<Within>,
    /// Gzip: everything from here on goes through in parts.
    in_parts: bool,
    frames: Frames,
    /// Pieces stop before this place.
    until: Option<u64>,
    over: bool,
}

struct Within {
    /// Where the frame began.
    began: u64,
    has_checksum: bool,
    ended: bool,
    said: Option<u64>,
    window: u64,
}

impl Within {
    fn new(began: u64, header: &frame::FrameHeader) -> Self {
        Self { began, has_checksum: header.has_checksum, ended: false, said: header.content, window: header.window }
    }
}

/// Frames since the last seek table, to be compared with the next.
#[derive(Default)]
struct Frames {
    sizes: VecDeque<(u64, Option<u64>)>,
    too_many: bool,
}

impl Frames {
    fn add(&mut self, packed: u64, raw: Option<u64>) {
        if self.sizes.len() >= FRAMES_REMEMBERED {
            self.sizes.clear();
            self.too_many = true;
        }
        self.sizes.push_back((packed, raw));
    }

    /// Whether the last frames are those of the table; what a frame does not say of itself is not compared.
    fn are(&self, table: &[FrameSize]) -> bool {
        let Some(first) = self.sizes.len().checked_sub(table.len()) else { return self.too_many };
        self.sizes.iter().skip(first).zip(table).all(|((packed, raw), said)| {
            *packed == u64::from(said.packed) && raw.is_none_or(|raw| raw == u64::from(said.raw))
        })
    }
}

impl Scanner<io::Empty> {
    /// Reads a file whose large frames it leaves where they are: who unpacks one reads it, side by side with others.
    pub fn of_file(file: File, pool: &Pool) -> Self {
        let mut scanner = Self::new(io::empty(), pool);
        scanner.source.file = Some(PlacedFile::new(file));
        scanner
    }

    /// Packed bytes that were not made into pieces yet.
    pub fn left(&self) -> u64 {
        let length = self.source.file.as_ref().and_then(PlacedFile::length);
        length.map_or(0, |length| length.saturating_sub(self.source.at))
    }
}

impl<R: Read> Scanner<R> {
    /// Reads from the beginning of a file.
    pub fn new(reader: R, pool: &Pool) -> Self {
        Self::from_place(reader, 0, None, pool)
    }

    /// Reads from this place of a file, where a frame or member begins, and stops before `until`.
    pub(crate) fn from_place(reader: R, at: u64, until: Option<u64>, pool: &Pool) -> Self {
        Self {
            source: Source::new(reader, at, pool),
            found: None,
            filter: None,
            within: None,
            in_parts: false,
            frames: Frames::default(),
            until,
            over: false,
        }
    }

    /// The same, with what is known of the bytes before.
    pub(crate) fn with_filter(mut self, filter: Option<Filter>) -> Self {
        self.filter = filter;
        self
    }

    fn next_piece(&mut self) -> Result<Option<Piece>, UnpackError> {
        if self.within.is_some() {
            return self.frame_part(None).map(Some);
        }
        if self.in_parts {
            return self.member_part(false).map(Some);
        }
        loop {
            if self.until.is_some_and(|until| self.source.at >= until) || !self.source.has(1)? {
                return self.at_the_end();
            }
            let found = match self.found {
                Some(found) => found,
                None => {
                    let found = self.sniff()?;
                    *self.found.insert(found)
                }
            };
            let piece = match found {
                Found::Zstd => self.frame()?,
                Found::Gzip => Some(self.member()?),
            };
            if piece.is_some() {
                return Ok(piece);
            }
        }
    }

    fn at_the_end(&self) -> Result<Option<Piece>, UnpackError> {
        match (self.found, self.source.at) {
            (None, 0) => Err(UnpackError::NotPacked { begins: "nothing: it is empty".to_owned() }),
            _ => Ok(None),
        }
    }

    fn sniff(&mut self) -> Result<Found, UnpackError> {
        self.source.has(4)?;
        let bytes = self.source.bytes();
        if bytes.len() >= 3 && bytes[..3] == member::MAGIC {
            return Ok(Found::Gzip);
        }
        if u32_at(bytes, 0).is_some_and(|magic| frame::kind_of(magic).is_some()) {
            return Ok(Found::Zstd);
        }
        let first: Vec<String> = bytes.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
        match self.source.at {
            0 => Err(UnpackError::NotPacked { begins: first.join(" ") }),
            at => Err(UnpackError::damaged(at, DamageError::NoBeginning("frame"))),
        }
    }

    /// A zstd frame; none if it was one to skip.
    fn frame(&mut self) -> Result<Option<Piece>, UnpackError> {
        let at = self.source.at;
        self.source.need(5, "a frame's header")?;
        let magic = u32_at(self.source.bytes(), 0).unwrap_or_default();
        match frame::kind_of(magic) {
            None => Err(UnpackError::damaged(at, DamageError::NoBeginning("zstd frame"))),
            Some(FrameKind::Skippable(kind)) => self.skip(kind, at).map(|()| None),
            Some(FrameKind::Zstd) => self.zstd_frame(at).map(Some),
        }
    }

    fn zstd_frame(&mut self, at: u64) -> Result<Piece, UnpackError> {
        self.source.need(frame::header_length(self.source.bytes()[4]), "a frame's header")?;
        let header = frame::header(self.source.bytes(), at)?;
        if header.dictionary {
            return Err(UnpackError::Unsupported { at, needs: "the dictionary it was packed with".to_owned() });
        }
        if self.is_lone(at, &header) {
            self.within = Some(Within::new(at, &header));
            return self.frame_part(Some(header.length));
        }
        if let Some(piece) = self.left_frame(at, &header) {
            return Ok(piece);
        }
        self.source.expect(header.content.unwrap_or(0).min(WHOLE_PACKED_MAX as u64))?;
        let mut walk = Walk { length: header.length, gives_max: 0, ended: false };
        while !walk.ended {
            // A block may give 128 KiB, and many give a few KiB: what the frame says of itself is less, and all it is given room for.
            let raw_max = header.content.unwrap_or(walk.gives_max);
            if walk.length > WHOLE_PACKED_MAX || raw_max > WHOLE_RAW_MAX {
                if self.filter.is_some() {
                    return Err(UnpackError::damaged(
                        at,
                        DamageError::Field("a filtered frame is too large to be one of ours"),
                    ));
                }
                self.within = Some(Within::new(at, &header));
                return self.frame_part(Some(header.length));
            }
            self.source.walk_block(&mut walk, at)?;
        }
        let length = walk.length + if header.has_checksum { CHECKSUM } else { 0 };
        self.source.need(length, "a zstd frame")?;
        let raw_max = header.content.map_or(walk.gives_max, |content| content.min(walk.gives_max));
        if header.content.is_some_and(|content| content > walk.gives_max) {
            let said = header.content.unwrap_or_default();
            return Err(UnpackError::damaged(at, DamageError::Length { said, got: walk.gives_max }));
        }
        self.frames.add(length as u64, header.content);
        let bytes = Packed::Taken(self.source.take(length));
        let content = Content::Frame { raw: header.content, window: header.window };
        let (raw_max, filter) = (raw_max as usize, self.filter);
        Ok(Piece::Whole(Whole { at, bytes, content, raw_max, filter, placed: None }))
    }

    /// Whether a large frame is likely all that its file holds: it is the first, and no table at the end tells of others. Nothing
    /// could be unpacked beside it, but it can be written beside: it goes through in parts. Where frames do come after it,
    /// those are unpacked side by side. To walk to its end first would take as long as to unpack a twentieth of it.
    fn is_lone(&self, at: u64, header: &frame::FrameHeader) -> bool {
        let Some(file) = self.source.file.as_ref().filter(|_| at == 0) else { return false };
        header.content.is_some_and(|content| content >= LONE_MIN)
            && !file.ends_in(&seekable::FOOTER_MAGIC.to_le_bytes())
    }

    /// A frame that stays in its file. None if it is small, too large, or there is anything wrong with it: who reads it as every
    /// other finds out what.
    fn left_frame(&mut self, at: u64, header: &frame::FrameHeader) -> Option<Piece> {
        let file = self.source.file.clone()?;
        let raw = header.content.filter(|content| (LEFT_MIN..=WHOLE_RAW_MAX).contains(content))?;
        let mut walk = Walk { length: header.length, gives_max: 0, ended: false };
        while !walk.ended && walk.length <= WHOLE_PACKED_MAX {
            let mut bytes = [0; BLOCK_HEADER];
            let place = at + walk.length as u64;
            file.fill(place, &mut bytes).ok().filter(|is_there| *is_there)?;
            walk.pass(&frame::block(bytes, place).ok()?);
        }
        let length = walk.length + if header.has_checksum { CHECKSUM } else { 0 };
        let is_there = file.fill(at + length as u64 - 1, &mut [0]).ok()?;
        if !is_there || length > WHOLE_PACKED_MAX || raw > walk.gives_max {
            return None;
        }
        self.frames.add(length as u64, Some(raw));
        self.source.jump(length);
        let bytes = Packed::Left(Extent { file, at, length });
        let content = Content::Frame { raw: Some(raw), window: header.window };
        Some(Piece::Whole(Whole { at, bytes, content, raw_max: raw as usize, filter: self.filter, placed: None }))
    }

    /// The next part of the frame that is under way: its header, if it is the first, and some blocks.
    fn frame_part(&mut self, header: Option<usize>) -> Result<Piece, UnpackError> {
        let at = self.source.at;
        let Some(mut within) = self.within.take() else {
            return Err(UnpackError::damaged(at, DamageError::NoBeginning("zstd frame")));
        };
        let mut walk = Walk { length: header.unwrap_or(0), gives_max: 0, ended: within.ended };
        while !walk.ended && walk.length < PART && walk.gives_max < PART_RAW {
            self.source.walk_block(&mut walk, at)?;
        }
        if walk.ended && within.has_checksum {
            walk.length += CHECKSUM;
        }
        self.source.need(walk.length, "a zstd frame")?;
        within.ended = walk.ended;
        let (is_last, window) = (walk.ended, within.window);
        let bytes = self.source.take(walk.length);
        if is_last {
            self.frames.add(self.source.at - within.began, within.said);
        } else {
            self.within = Some(within);
        }
        Ok(Piece::Part(Part { at, bytes, kind: PartKind::Zstd, window, is_first: header.is_some(), is_last }))
    }

    /// Passes over a skippable frame, but for those that mean something to us.
    fn skip(&mut self, kind: u8, at: u64) -> Result<(), UnpackError> {
        self.source.need(SKIPPABLE_HEADER, "a skippable frame")?;
        let length = u32_at(self.source.bytes(), 4).unwrap_or_default() as usize;
        let total = SKIPPABLE_HEADER + length;
        if total > seekable::TABLE_BYTES_MAX {
            // Too large to be of ours; nothing of it is kept.
            self.frames.add(total as u64, Some(0));
            return self.source.pass(total, "a skippable frame");
        }
        self.source.need(total, "a skippable frame")?;
        let payload = &self.source.bytes()[SKIPPABLE_HEADER..total];
        if kind == seekable::KIND {
            let table = seekable::read(payload, at)?;
            if !self.frames.are(&table) {
                return Err(UnpackError::damaged(at, DamageError::SeekTable));
            }
            self.frames = Frames::default();
            // What was packed together ends with its table.
            self.filter = None;
        } else if seekable::looks_like_one(payload) {
            return Err(UnpackError::damaged(at, DamageError::SeekTable));
        } else {
            if let Some(record) = filter::record::read(kind, payload, at)? {
                self.filter = Some(record);
            }
            self.frames.add(total as u64, Some(0));
        }
        self.source.pass(total, "a skippable frame")
    }

    fn member(&mut self) -> Result<Piece, UnpackError> {
        let at = self.source.at;
        let header = self.source.member_header(0)?;
        match header.map(|header| (header, header.sized)) {
            Some((header, MemberSize::Ours { packed, raw }))
                if packed as usize <= WHOLE_PACKED_MAX && u64::from(raw) <= WHOLE_RAW_MAX =>
            {
                if u64::from(raw) > u64::from(packed) * DEFLATE_RATIO_MAX {
                    return Err(UnpackError::damaged(
                        at,
                        DamageError::Field("a member says that it gives more than it can"),
                    ));
                }
                let (packed, raw) = (packed as usize, raw as usize);
                self.source.need(packed, "a gzip member")?;
                let bytes = Packed::Taken(self.source.take(packed));
                let content = Content::Members(vec![MemberPlace { header: header.length, packed, raw }]);
                Ok(Piece::Whole(Whole { at, bytes, content, raw_max: raw, filter: None, placed: None }))
            }
            Some((_, MemberSize::Bgzf { .. })) => self.bgzf_run(at),
            _ => {
                self.in_parts = true;
                self.member_part(true)
            }
        }
    }

    /// As many members of BGZF as make a task worth its while.
    fn bgzf_run(&mut self, at: u64) -> Result<Piece, UnpackError> {
        let (mut length, mut raw_max, mut places) = (0, 0, Vec::new());
        while length < BGZF_RUN && raw_max < BGZF_RUN_RAW && self.source.has(length + 1)? {
            let Some(header) = self.source.member_header(length)? else { break };
            let MemberSize::Bgzf { packed } = header.sized else { break };
            let (start, packed) = (length, packed as usize);
            self.source.need(start + packed, "a BGZF member")?;
            if packed < header.length + TRAILER {
                break;
            }
            let raw = raw_said(&self.source.bytes()[start..start + packed]) as usize;
            if raw > BGZF_RAW_MAX {
                let wrong = DamageError::Field("a BGZF member says that it gives more than 64 KiB");
                return Err(UnpackError::damaged(at + start as u64, wrong));
            }
            places.push(MemberPlace { header: header.length, packed, raw });
            (length, raw_max) = (length + packed, raw_max + raw);
        }
        let bytes = Packed::Taken(self.source.take(length));
        let content = Content::Members(places);
        Ok(Piece::Whole(Whole { at, bytes, content, raw_max, filter: None, placed: None }))
    }

    fn member_part(&mut self, is_first: bool) -> Result<Piece, UnpackError> {
        let at = self.source.at;
        self.source.has(PART)?;
        let length = self.source.bytes().len().min(PART);
        let is_last = !self.source.has(length + 1)?;
        let bytes = self.source.take(length);
        self.over = is_last;
        Ok(Piece::Part(Part { at, bytes, kind: PartKind::Gzip, window: member::WINDOW, is_first, is_last }))
    }
}

impl<R: Read> Iterator for Scanner<R> {
    type Item = Result<Piece, UnpackError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        let piece = self.next_piece().transpose();
        self.over |= !matches!(piece, Some(Ok(_)));
        piece
    }
}

/// How far a frame was walked through.
struct Walk {
    length: usize,
    gives_max: u64,
    ended: bool,
}

impl Walk {
    /// Goes past a block.
    fn pass(&mut self, block: &frame::BlockHeader) {
        self.length += BLOCK_HEADER + block.length;
        self.gives_max += block.gives_max;
        self.ended = block.is_last;
    }
}

/// Bytes that were read and not yet taken. They are read into the very buffers that pieces are made of: what is as large as a
/// frame goes to whoever unpacks it without being copied.
struct Source<R> {
    reader: R,
    /// Is read instead, if there is one, from whatever place is next.
    file: Option<PlacedFile>,
    pool: Pool,
    /// Of whatever value but for `start..end`.
    buffer: PooledBytes,
    start: usize,
    end: usize,
    /// Where the first of them lies in the file.
    at: u64,
    ended: bool,
}

impl<R: Read> Source<R> {
    fn new(reader: R, at: u64, pool: &Pool) -> Self {
        let (buffer, pool) = (PooledBytes::default(), pool.clone());
        Self { reader, file: None, pool, buffer, start: 0, end: 0, at, ended: false }
    }

    fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Reads until so many bytes are there; `false` if the file ends before.
    fn has(&mut self, count: usize) -> Result<bool, UnpackError> {
        while self.end - self.start < count && !self.ended {
            let there = self.end - self.start;
            let least = if self.buffer.is_empty() { READ_FIRST } else { READ_LEAST };
            let wanted = (count - there).clamp(least, READ);
            self.make_room(there + wanted);
            let into = &mut self.buffer.vec_mut()[self.end..self.end + wanted];
            let read = match &self.file {
                Some(file) => file.read(self.at + there as u64, into),
                None => self.reader.read(into),
            };
            match read {
                Ok(read) => (self.end, self.ended) = (self.end + read, read == 0),
                Err(reason) if reason.kind() == io::ErrorKind::Interrupted => {}
                Err(reason) => return Err(UnpackError::Unreadable { at: self.at + there as u64, reason }),
            }
        }
        Ok(self.end - self.start >= count)
    }

    /// Makes the buffer large enough for so many bytes from the first that is there.
    fn make_room(&mut self, count: usize) {
        if self.start + count <= self.buffer.len() {
            return;
        }
        let there = self.end - self.start;
        if count <= self.buffer.len() {
            self.buffer.vec_mut().copy_within(self.start..self.end, 0);
        } else {
            self.move_to(count.max(2 * there));
        }
        (self.start, self.end) = (0, there);
    }

    /// The next piece has about so many bytes, the file says: room for it is made at once, so that nothing is moved later, but
    /// for no more than [`ROOM_RATIO_MAX`] times what the file has really given.
    fn expect(&mut self, count: u64) -> Result<(), UnpackError> {
        if count > self.buffer.len() as u64 {
            // What the first look gave would earn too little, and room that grows is filled anew each time.
            self.has(READ_LEAST)?;
        }
        let there = self.end - self.start;
        let count = usize::try_from(count).unwrap_or(usize::MAX).min(there * ROOM_RATIO_MAX);
        if count > self.buffer.len() {
            self.move_to(count + READ_LEAST);
            (self.start, self.end) = (0, there);
        }
        Ok(())
    }

    /// What is there goes to the beginning of a buffer of this size.
    fn move_to(&mut self, size: usize) {
        let mut larger = self.pool.take_filled(size);
        larger.vec_mut()[..self.end - self.start].copy_from_slice(&self.buffer[self.start..self.end]);
        self.buffer = larger;
    }

    fn need(&mut self, count: usize, inside: &'static str) -> Result<(), UnpackError> {
        match self.has(count)? {
            true => Ok(()),
            false => Err(UnpackError::CutOff { at: self.at + self.bytes().len() as u64, inside }),
        }
    }

    /// The first of them, which are there.
    fn take(&mut self, count: usize) -> Taken {
        let behind = self.start + count..self.end;
        if self.start > 0 || 2 * behind.len() > count || count < COPIED_MAX {
            let mut buffer = self.pool.take(count);
            buffer.vec_mut().extend_from_slice(&self.bytes()[..count]);
            self.forget(count);
            return Taken { buffer, length: count };
        }
        let mut next = self.pool.take_filled(self.buffer.len().min(NEXT_ROOM_MAX).max(behind.len() + READ_LEAST));
        next.vec_mut()[..behind.len()].copy_from_slice(&self.buffer[behind.clone()]);
        let buffer = std::mem::replace(&mut self.buffer, next);
        (self.start, self.end, self.at) = (0, behind.len(), self.at + count as u64);
        Taken { buffer, length: count }
    }

    fn forget(&mut self, count: usize) {
        self.start += count;
        self.at += count as u64;
    }

    /// Goes on behind so many bytes of a file, which nobody has to read here.
    fn jump(&mut self, count: usize) {
        if count <= self.end - self.start {
            return self.forget(count);
        }
        (self.start, self.end, self.at, self.ended) = (0, 0, self.at + count as u64, false);
    }

    /// Passes over so many bytes without keeping them.
    fn pass(&mut self, count: usize, inside: &'static str) -> Result<(), UnpackError> {
        let mut left = count;
        while left > 0 {
            let step = left.min(READ);
            self.need(step, inside)?;
            self.forget(step);
            left -= step;
        }
        Ok(())
    }

    /// Walks over one more block of the frame that begins `walk.length` bytes before it.
    fn walk_block(&mut self, walk: &mut Walk, at: u64) -> Result<(), UnpackError> {
        self.need(walk.length + BLOCK_HEADER, "a zstd frame")?;
        let bytes = &self.bytes()[walk.length..];
        let header = frame::block([bytes[0], bytes[1], bytes[2]], at + walk.length as u64)?;
        walk.pass(&header);
        Ok(())
    }

    /// The header of the member that begins `offset` bytes from here; none if it goes on further than headers do.
    fn member_header(&mut self, offset: usize) -> Result<Option<member::MemberHeader>, UnpackError> {
        let at = self.at + offset as u64;
        let mut count = offset + 64;
        loop {
            let is_there = self.has(count)?;
            match member::read(&self.bytes()[offset..], at)? {
                member::Read::Whole(header) => return Ok(Some(header)),
                member::Read::NeedsMore if is_there && count < offset + member::HEADER_MAX => count += READ,
                // Cut off, or very long: the stream says which.
                member::Read::NeedsMore => return Ok(None),
            }
        }
    }
}

#[cfg(test)]
mod tests;
