//! The library's contexts: whole frames in one call, and parts of a frame one after the other.
//! Never decodes more than it was given room for.

use zstd_safe::{CCtx, CParameter, DCtx, DParameter, InBuffer, OutBuffer, ResetDirective};
use zstd_sys::ZSTD_ErrorCode;

use crate::error::{DamageError, UnpackError};
use crate::extent::Feed;
use crate::options::Recipe;
use crate::zstd::frame::{self, BLOCK_HEADER};

/// The largest window that is decoded: what `zstd -d` takes without being told more.
pub(crate) const WINDOW_LOG_MAX: u32 = 27;
/// The smallest window there is.
const WINDOW_LOG_MIN: u32 = 10;

/// Packs whole frames.
pub(crate) struct FramePacker(CCtx<'static>);

impl FramePacker {
    pub(crate) fn new(recipe: &Recipe) -> Result<Self, String> {
        let mut context = CCtx::try_create().ok_or("no memory for a zstd context")?;
        let window = recipe.block.next_power_of_two().ilog2().clamp(WINDOW_LOG_MIN, WINDOW_LOG_MAX);
        let parameters =
            [CParameter::CompressionLevel(recipe.level), CParameter::ChecksumFlag(true), CParameter::WindowLog(window)];
        for parameter in parameters {
            context.set_parameter(parameter).map_err(name)?;
        }
        Ok(Self(context))
    }

    /// Bytes that a context takes, about: tables grow with the level and the window.
    pub(crate) fn context_bytes(recipe: &Recipe) -> usize {
        let window = recipe.block.next_power_of_two();
        match recipe.level {
            ..=2 => 2 << 20,
            3..=4 => 4 << 20,
            5..=8 => 8 << 20,
            9..=12 => 48 << 20,
            _ => (64 << 20) + window * 8,
        }
    }

    /// Packs a frame. Whatever comes of one frame does not depend on those before it.
    pub(crate) fn pack(&mut self, raw: &[u8], into: &mut Vec<u8>) -> Result<(), String> {
        into.clear();
        into.reserve(zstd_safe::compress_bound(raw.len()));
        self.0.compress2(into, raw).map(drop).map_err(name)
    }
}

/// Unpacks frames.
pub(crate) struct FrameUnpacker {
    context: DCtx<'static>,
}

impl FrameUnpacker {
    /// The one that is there, or a new one for the frame that begins here.
    pub(crate) fn opened(place: &mut Option<Self>, at: u64) -> Result<&mut Self, UnpackError> {
        match place {
            Some(opened) => Ok(opened),
            None => {
                let opened = Self::new().map_err(|needs| UnpackError::Unsupported { at, needs })?;
                Ok(place.insert(opened))
            }
        }
    }

    fn new() -> Result<Self, String> {
        let mut context = DCtx::try_create().ok_or("no memory for a zstd context")?;
        context.set_parameter(DParameter::WindowLogMax(WINDOW_LOG_MAX)).map_err(name)?;
        Ok(Self { context })
    }

    /// Unpacks one whole frame that gives at most `room` bytes into an empty buffer.
    pub(crate) fn whole(&mut self, frame: &[u8], at: u64, room: usize, into: &mut Vec<u8>) -> Result<(), UnpackError> {
        into.clear();
        into.reserve(room);
        self.context.decompress(into, frame).map(drop).map_err(|code| damage(at, code))
    }

    /// Unpacks one whole frame into an empty buffer that has room for it, block by block: what it gives lies where it refers
    /// back to, and is not copied. Tells after each block what is there; who is told says whether to go on. Gives whether the
    /// frame was read to its end, and nothing is behind it.
    pub(crate) fn block_by_block(
        &mut self,
        packed: &mut Feed<'_>,
        at: u64,
        into: &mut Vec<u8>,
        mut tell: impl FnMut(&[u8]) -> bool,
    ) -> Result<bool, UnpackError> {
        let begun = self.context.reset(ResetDirective::SessionOnly);
        let begun = begun.and_then(|_| self.context.set_parameter(DParameter::StableOutBuffer(true)));
        begun.map_err(|code| damage(at, code))?;
        let header = packed.peek(5)?.get(4).map_or(0, |descriptor| frame::header_length(*descriptor));
        let mut wanted = header + BLOCK_HEADER;
        while wanted > 0 && !packed.is_over() {
            // As much as it asks for, which is a block and the header of the next: then it keeps nothing back.
            let mut input = InBuffer::around(packed.peek(wanted)?);
            let filled = into.len();
            let mut output = OutBuffer::around_pos(into, filled);
            wanted = self.context.decompress_stream(&mut output, &mut input).map_err(|code| damage(at, code))?;
            let read = input.pos();
            if read == 0 && filled == into.len() {
                return Ok(false);
            }
            packed.pass(read);
            if !tell(into) {
                break;
            }
        }
        Ok(wanted == 0 && packed.is_over())
    }

    /// Goes on with a frame: reads from `part`, appends at most until `into` has `room` bytes. Gives how many were read, and
    /// whether the frame has ended.
    pub(crate) fn part(
        &mut self,
        part: &[u8],
        at: u64,
        room: usize,
        into: &mut Vec<u8>,
    ) -> Result<(usize, bool), UnpackError> {
        let mut input = InBuffer::around(part);
        loop {
            let before = into.len();
            if before >= room {
                return Ok((input.pos(), false));
            }
            let mut output = OutBuffer::around_pos(into, before);
            let read = input.pos();
            let left = self.context.decompress_stream(&mut output, &mut input);
            let left = left.map_err(|code| damage(at + read as u64, code))?;
            let written = output.pos();
            if left == 0 {
                return Ok((input.pos(), true));
            }
            if (read, before) == (input.pos(), written) {
                return Ok((input.pos(), false));
            }
        }
    }
}

fn name(code: usize) -> String {
    zstd_safe::get_error_name(code).to_owned()
}

fn damage(at: u64, code: usize) -> UnpackError {
    const CHECKSUM: usize = ZSTD_ErrorCode::ZSTD_error_checksum_wrong as usize;
    const WINDOW: usize = ZSTD_ErrorCode::ZSTD_error_frameParameter_windowTooLarge as usize;
    // The library counts its errors down from the largest number.
    match code.wrapping_neg() {
        CHECKSUM => UnpackError::damaged(at, DamageError::Checksum),
        WINDOW => UnpackError::Unsupported {
            at,
            needs: format!("a window of more than {} MiB", (1_u64 << WINDOW_LOG_MAX) >> 20),
        },
        _ => UnpackError::damaged(at, DamageError::Content(name(code))),
    }
}
