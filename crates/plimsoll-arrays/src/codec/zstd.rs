//! The zstd library's contexts, made when first needed and used again.
//! Never decodes more than it was given room for.

use std::io::Cursor;

use zstd_safe::{CCtx, CParameter, DCtx};

use super::{CodecError, reserve};

const NAME: &str = "zstd";

/// One context for each direction.
#[derive(Default)]
pub(super) struct Contexts {
    encoder: Option<Encoder>,
    decoder: Option<DCtx<'static>>,
}

struct Encoder {
    context: CCtx<'static>,
    level: i32,
    has_checksum: bool,
}

/// What a context that packs so many bytes at a time takes, as the library itself reckons it.
#[expect(unsafe_code, reason = "there is no safe call for it")]
pub(super) fn context_bytes(level: i32, bytes: usize) -> u64 {
    use zstd_safe::zstd_sys::{ZSTD_estimateCCtxSize_usingCParams, ZSTD_getCParams};
    // SAFETY: both only calculate.
    unsafe { ZSTD_estimateCCtxSize_usingCParams(ZSTD_getCParams(level, bytes as u64, 0)) as u64 }
}

impl Encoder {
    fn new(level: i32, has_checksum: bool) -> Result<Self, CodecError> {
        let mut context = CCtx::try_create().ok_or(CodecError::NoMemory { what: "a zstd context" })?;
        for parameter in [CParameter::CompressionLevel(level), CParameter::ChecksumFlag(has_checksum)] {
            context.set_parameter(parameter).map_err(refused)?;
        }
        Ok(Self { context, level, has_checksum })
    }
}

impl Contexts {
    /// Appends a frame.
    pub(super) fn encode(
        &mut self,
        chunk: &[u8],
        level: i32,
        has_checksum: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), CodecError> {
        let fits = |encoder: &Encoder| encoder.level == level && encoder.has_checksum == has_checksum;
        let encoder = match self.encoder.take().filter(fits) {
            Some(encoder) => self.encoder.insert(encoder),
            None => self.encoder.insert(Encoder::new(level, has_checksum)?),
        };
        reserve(out, zstd_safe::compress_bound(chunk.len()), "an encoded chunk")?;
        let end = out.len() as u64;
        let mut behind = Cursor::new(out);
        behind.set_position(end);
        encoder.context.compress2(&mut behind, chunk).map(drop).map_err(refused)
    }

    /// Appends what frames hold, which must be exactly so many bytes.
    pub(super) fn decode(&mut self, frames: &[u8], expected: usize, out: &mut Vec<u8>) -> Result<(), CodecError> {
        // Of others' frames some do not say how much they hold; of those that do, no memory is taken for a wrong number.
        if let Ok(Some(said)) = zstd_safe::get_frame_content_size(frames) {
            CodecError::check_length(expected, said)?;
        }
        let context = match &mut self.decoder {
            Some(context) => context,
            none => none.insert(DCtx::try_create().ok_or(CodecError::NoMemory { what: "a zstd context" })?),
        };
        reserve(out, expected, "a chunk")?;
        let end = out.len();
        let got = {
            let mut behind = Cursor::new(&mut *out);
            behind.set_position(end as u64);
            let got = context.decompress(&mut behind, frames);
            got.map_err(|code| CodecError::damaged(NAME, zstd_safe::get_error_name(code)))?
        };
        CodecError::check_length(expected, got as u64)
    }
}

fn refused(code: usize) -> CodecError {
    CodecError::Refused { codec: NAME, why: zstd_safe::get_error_name(code).to_owned() }
}
