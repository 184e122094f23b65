//! From a safetensors file to a file of fragments: which pieces there are, what becomes of each, where it goes.
//! Never runs anything side by side: whoever packs does.
//! Invariant: the file depends on the input and the bits alone.

use std::fs::File;
use std::path::{Path, PathBuf};

use crate::data_type::Float;
use crate::digest::{Checksum, Digest};
use crate::error::FragmentError;
use crate::file::FileHead;
use crate::index::{Fragment, Index, Tensor, elements, piece_elements, quantised};
use crate::limits::INDEX_BYTES_MAX;
use crate::positioned::{read_at, write_at};
use crate::quant::{Bits, LevelLayout, Sums, encode};
use crate::safetensors::{Safetensors, TensorInfo};

/// What is wanted of packing.
#[derive(Clone, Debug)]
pub struct PackSpec {
    /// Bits of the levels.
    pub bits: Bits,
    /// Whether the very bytes are to come back at quality 1.
    pub exact: bool,
}

impl Default for PackSpec {
    fn default() -> Self {
        Self { bits: Bits::default(), exact: true }
    }
}

/// One piece to be packed.
#[derive(Clone, Debug)]
pub struct PackPiece {
    tensor: usize,
    piece: usize,
    /// Where its bytes begin in the input.
    offset: u64,
    /// How many they are.
    pub bytes: usize,
    float: Option<Float>,
}

/// What became of a piece.
#[derive(Debug)]
pub struct PackedPiece {
    tensor: usize,
    piece: usize,
    /// Bytes of the input.
    pub raw: usize,
    levels: Vec<Vec<u8>>,
    sums: Vec<Sums>,
}

impl PackPiece {
    /// Bytes of memory that packing it takes at most: the input, its floats, codes and levels.
    pub fn memory(&self) -> u64 {
        let weights = self.float.map_or(0, |float| self.bytes / float.bytes()) as u64;
        3 * self.bytes as u64 + 12 * weights
    }

    /// Reads and packs it.
    ///
    /// # Errors
    /// If the input cannot be read.
    pub fn pack(&self, input: &File, path: &Path, spec: &PackSpec) -> Result<PackedPiece, FragmentError> {
        let mut bytes = vec![0; self.bytes];
        read_at(input, &mut bytes, self.offset).map_err(|error| FragmentError::reading(path, error))?;
        let (tensor, piece, raw) = (self.tensor, self.piece, self.bytes);
        Ok(match self.float {
            None => PackedPiece { tensor, piece, raw, levels: vec![bytes], sums: Vec::new() },
            Some(float) => {
                let encoded = encode(&bytes, float, &spec.bits, spec.exact);
                let levels = encoded.levels.into_iter().chain(encoded.exact).collect();
                PackedPiece { tensor, piece, raw, levels, sums: encoded.sums }
            }
        })
    }
}

/// The pieces of a file, in the order of its data.
pub fn pieces(input: &Safetensors) -> Vec<PackPiece> {
    let of_tensor = |(tensor, info): (usize, &TensorInfo)| {
        let (all, each, width) = (elements(info), piece_elements(info) as u64, info.data_type.bytes());
        let (begins, float) = (input.data_begins + info.offset, quantised(info));
        (0..all.div_ceil(each)).map(move |piece| PackPiece {
            tensor,
            piece: piece as usize,
            offset: begins + piece * each * width,
            bytes: (each.min(all - piece * each) * width) as usize,
            float,
        })
    };
    input.tensors.iter().enumerate().flat_map(of_tensor).collect()
}

/// A file of fragments on its way.
#[derive(Debug)]
pub struct PackWriter {
    path: PathBuf,
    file: File,
    index: Index,
    sums: Vec<Vec<Sums>>,
    /// Where the next fragment goes whose size was not known before.
    end: u64,
}

const NOTHING: Fragment = Fragment { offset: 0, bytes: 0, digest: Digest([0; 32]), checksum: Checksum(0) };

impl PackWriter {
    /// Writes into a file, from its beginning. `path` is its name in errors.
    pub fn new(path: &Path, file: File, input: &Safetensors, spec: &PackSpec) -> Self {
        let bits = &spec.bits;
        let tensors: Vec<Tensor> = input.tensors.iter().map(|info| empty(info, spec)).collect();
        let sums = tensors.iter().map(|tensor| vec![Sums::default(); tensor.errors.len()]).collect();
        let index = Index { bits: bits.clone(), exact: spec.exact, header: input.header.clone(), tensors };
        let mut writer = Self { path: path.to_owned(), file, index, sums, end: FileHead::BYTES };
        writer.place();
        writer
    }

    /// Gives every fragment of known size its place: what is kept as it is first, then level by level.
    fn place(&mut self) {
        for level in 0..self.index.bits.levels() {
            for tensor in &mut self.index.tensors {
                let is_quantised = tensor.float().is_some();
                if !is_quantised && level > 0 {
                    continue;
                }
                for piece in 0..tensor.pieces.len() {
                    let elements = tensor.piece_elements(piece);
                    let bytes = match is_quantised {
                        true => LevelLayout::new(elements, &self.index.bits, level).bytes(),
                        false => elements as u64 * tensor.info.data_type.bytes(),
                    };
                    tensor.pieces[piece][level] = Fragment { offset: self.end, bytes, ..NOTHING };
                    self.end += bytes;
                }
            }
        }
    }

    /// Writes a piece. Pieces come in order.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn add(&mut self, packed: PackedPiece) -> Result<(), FragmentError> {
        let writing = |error| FragmentError::writing(&self.path, error);
        let fragments = &mut self.index.tensors[packed.tensor].pieces[packed.piece];
        for (fragment, bytes) in fragments.iter_mut().zip(&packed.levels) {
            if fragment.offset == 0 {
                (fragment.offset, fragment.bytes) = (self.end, bytes.len() as u64);
                self.end += fragment.bytes;
            }
            debug_assert_eq!(fragment.bytes, bytes.len() as u64);
            (fragment.digest, fragment.checksum) = (Digest::of(bytes), Checksum::of(bytes));
            write_at(&self.file, bytes, fragment.offset).map_err(writing)?;
        }
        for (all, piece) in self.sums[packed.tensor].iter_mut().zip(packed.sums) {
            *all = all.and(piece);
        }
        Ok(())
    }

    /// Writes the index and, last of all, the head: until then it is no file of fragments.
    ///
    /// # Errors
    /// If the file cannot be written, or its index is too long.
    pub fn finish(mut self) -> Result<Index, FragmentError> {
        for (tensor, sums) in self.index.tensors.iter_mut().zip(&self.sums) {
            tensor.errors = sums.iter().map(Sums::error).collect();
        }
        let index = self.index.to_bytes();
        if index.len() as u64 > INDEX_BYTES_MAX {
            let size = index.len() as u64;
            return Err(FragmentError::TooLarge { what: "the index".to_owned(), size, limit: INDEX_BYTES_MAX });
        }
        let head =
            FileHead { index_offset: self.end, index_bytes: index.len() as u64, index_digest: Digest::of(&index) };
        let written = write_at(&self.file, &index, self.end)
            .and_then(|()| self.file.sync_data())
            .and_then(|()| write_at(&self.file, &head.to_bytes(), 0))
            .and_then(|()| self.file.sync_all());
        written.map_err(|error| FragmentError::writing(&self.path, error))?;
        Ok(self.index)
    }
}

/// A tensor whose fragments have no places yet.
fn empty(info: &TensorInfo, spec: &PackSpec) -> Tensor {
    let count = elements(info).div_ceil(piece_elements(info) as u64) as usize;
    let (levels, errors) = match quantised(info) {
        Some(_) => (spec.bits.levels() + usize::from(spec.exact), spec.bits.levels()),
        None => (1, 0),
    };
    Tensor { info: info.clone(), errors: vec![0.0; errors], pieces: vec![vec![NOTHING; levels]; count] }
}
