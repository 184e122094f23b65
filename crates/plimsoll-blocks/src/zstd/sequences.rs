//! Zstd frames from sequences that somebody else found: the library's sequence interface, behind a safe type.
//! Invariant: the library validates every sequence before it believes it.

#![expect(
    unsafe_code,
    reason = "the library's sequence interface has no safe wrapper; this one is small and owns its context"
)]

use std::ffi::c_void;
use std::ptr::NonNull;

use zstd_sys::ZSTD_cParameter::{
    ZSTD_c_checksumFlag, ZSTD_c_compressionLevel, ZSTD_c_experimentalParam12, ZSTD_c_minMatch, ZSTD_c_windowLog,
};
use zstd_sys::{
    ZSTD_CCtx, ZSTD_CCtx_setParameter, ZSTD_Sequence, ZSTD_cParameter, ZSTD_compressSequences, ZSTD_createCCtx,
    ZSTD_freeCCtx, ZSTD_isError,
};

use crate::matches::parse::Sequence;
use crate::matches::{BLOCK_MAX, LENGTH_MIN};

/// Codes sequences as frames.
pub(crate) struct SequencePacker {
    context: NonNull<ZSTD_CCtx>,
}

// SAFETY: a context may be used by any thread, one at a time; `pack` takes it exclusively.
unsafe impl Send for SequencePacker {}

impl SequencePacker {
    pub(crate) fn new(level: i32) -> Result<Self, String> {
        // SAFETY: the function takes nothing and gives a context of its own, or null.
        let context = NonNull::new(unsafe { ZSTD_createCCtx() }).ok_or("no memory for a zstd context")?;
        let packer = Self { context };
        packer.set(ZSTD_c_compressionLevel, level)?;
        packer.set(ZSTD_c_checksumFlag, 1)?;
        packer.set(ZSTD_c_windowLog, BLOCK_MAX.ilog2() as i32)?;
        packer.set(ZSTD_c_minMatch, LENGTH_MIN as i32)?;
        // The library's name for it is ZSTD_c_validateSequences.
        packer.set(ZSTD_c_experimentalParam12, 1)?;
        Ok(packer)
    }

    fn set(&self, parameter: ZSTD_cParameter, value: i32) -> Result<(), String> {
        // SAFETY: the context is ours and not in use.
        let code = unsafe { ZSTD_CCtx_setParameter(self.context.as_ptr(), parameter, value) };
        checked(code).map(drop)
    }

    /// Packs a block whose sequences these are.
    pub(crate) fn pack(&mut self, block: &[u8], sequences: &[Sequence], into: &mut Vec<u8>) -> Result<(), String> {
        let theirs: Vec<ZSTD_Sequence> = sequences
            .iter()
            .filter(|sequence| sequence.length > 0)
            .map(|each| ZSTD_Sequence {
                offset: each.distance,
                litLength: each.literals,
                matchLength: each.length,
                rep: 0,
            })
            .collect();
        into.clear();
        into.resize(zstd_safe::compress_bound(block.len()), 0);
        // SAFETY: each pointer goes with the length of its own slice, and none of them overlap.
        let code = unsafe {
            ZSTD_compressSequences(
                self.context.as_ptr(),
                into.as_mut_ptr().cast::<c_void>(),
                into.len(),
                theirs.as_ptr(),
                theirs.len(),
                block.as_ptr().cast::<c_void>(),
                block.len(),
            )
        };
        let packed = checked(code)?;
        into.truncate(packed);
        Ok(())
    }
}

fn checked(code: usize) -> Result<usize, String> {
    // SAFETY: it only looks at the number.
    match unsafe { ZSTD_isError(code) } {
        0 => Ok(code),
        _ => Err(zstd_safe::get_error_name(code).to_owned()),
    }
}

impl Drop for SequencePacker {
    fn drop(&mut self) {
        // SAFETY: the context is ours, and nobody uses it any more.
        unsafe { ZSTD_freeCCtx(self.context.as_ptr()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matches::parse::sequences;
    use crate::matches::tables::Tables;
    use crate::matches::{Reach, sample_blocks};

    #[test]
    fn the_library_reads_what_is_coded() {
        let mut tables = Tables::new();
        let mut packer = SequencePacker::new(3).unwrap();
        for block in &sample_blocks() {
            let mut finder = tables.finder(block, Reach::BLOCK);
            let taken = sequences(block, true, |position| finder.at(position)).unwrap();
            let mut packed = Vec::new();
            packer.pack(block, &taken, &mut packed).unwrap();
            let mut out = Vec::with_capacity(block.len());
            zstd_safe::decompress(&mut out, &packed).unwrap();
            assert!(out == *block, "{} bytes", block.len());
        }
    }

    #[test]
    fn a_sequence_that_cannot_be_is_refused() {
        let mut packer = SequencePacker::new(3).unwrap();
        let wrong = [Sequence { literals: 1, length: 10, distance: 5000 }];
        assert!(packer.pack(&[7; 100], &wrong, &mut Vec::new()).is_err());
    }
}
