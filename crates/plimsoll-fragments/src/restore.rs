//! From fragments back to a piece of a safetensors file, at the quality that was asked for.

use crate::error::FragmentError;
use crate::file::Model;
use crate::index::{Fragment, Index, Level, Tensor};
use crate::quant::{decode, decode_exact};

/// Where fragments come from: a file, a store, a server behind it.
pub trait Fragments: Send + Sync {
    /// The bytes of a fragment, checked.
    ///
    /// # Errors
    /// If they cannot be had, or are damaged.
    fn fragment(&self, fragment: &Fragment) -> Result<std::sync::Arc<Vec<u8>>, FragmentError>;
}

impl Fragments for crate::file::FragmentFile {
    fn fragment(&self, fragment: &Fragment) -> Result<std::sync::Arc<Vec<u8>>, FragmentError> {
        self.read(fragment).map(std::sync::Arc::new)
    }
}

/// One piece of one tensor.
#[derive(Copy, Clone, Debug)]
pub struct PieceOf {
    /// The number of the tensor.
    pub tensor: usize,
    /// The number of the piece.
    pub piece: usize,
}

/// All pieces, in the order of the safetensors file.
pub fn pieces(index: &Index) -> Vec<PieceOf> {
    let of_tensor =
        |(tensor, each): (usize, &Tensor)| (0..each.pieces.len()).map(move |piece| PieceOf { tensor, piece });
    index.tensors.iter().enumerate().flat_map(of_tensor).collect()
}

/// Bytes of memory that restoring a piece takes at most.
pub fn memory(index: &Index, at: PieceOf, level: Level) -> u64 {
    let tensor = &index.tensors[at.tensor];
    let elements = tensor.piece_elements(at.piece) as u64;
    let fragments: u64 = tensor.pieces[at.piece].iter().take(level + 1).map(|fragment| fragment.bytes).sum();
    fragments + elements * (8 + 2 * tensor.info.data_type.bytes())
}

/// The elements of a piece at a level, in the type of the tensor.
///
/// # Errors
/// If fragments cannot be had, or are damaged.
pub fn piece(from: &dyn Fragments, index: &Index, at: PieceOf, level: Level) -> Result<Vec<u8>, FragmentError> {
    let tensor = &index.tensors[at.tensor];
    let fragments = &tensor.pieces[at.piece];
    let bytes: Vec<_> =
        fragments.iter().take(level + 1).map(|fragment| from.fragment(fragment)).collect::<Result<_, _>>()?;
    let slices: Vec<&[u8]> = bytes.iter().map(|bytes| bytes.as_slice()).collect();
    let elements = tensor.piece_elements(at.piece);
    let Some(float) = tensor.float() else { return Ok(slices[0].to_vec()) };
    if tensor.is_exact(level) {
        let (rest, planes) = slices.split_last().expect("an exact level stands behind levels of planes");
        return decode_exact(planes, rest, &index.bits, float, elements);
    }
    let mut weights = vec![0.0; elements];
    decode(&slices, &index.bits, &mut weights)?;
    let mut restored = vec![0; elements * float.bytes()];
    float.from_f32(&weights, &mut restored);
    Ok(restored)
}

/// All elements of a tensor at the coarsest level that is at least so good, in its type.
///
/// # Errors
/// If there is no such tensor, or its fragments cannot be had or are damaged.
pub fn tensor(from: &dyn Fragments, model: &Model, name: &str, quality: f64) -> Result<Vec<u8>, FragmentError> {
    let index = &model.index;
    let at = index.tensors.iter().position(|tensor| tensor.info.name == name);
    let at = at.ok_or_else(|| FragmentError::NoSuchTensor { name: name.to_owned(), model: model.name.clone() })?;
    let (tensor, level) = (&index.tensors[at], index.tensors[at].level_for(quality));
    let mut all = Vec::new();
    // An index may claim more than there is memory, and than its file has: then it grows as bytes come, if any do.
    let _ = all.try_reserve_exact(tensor.info.bytes as usize);
    for number in 0..tensor.pieces.len() {
        all.extend(piece(from, index, PieceOf { tensor: at, piece: number }, level)?);
    }
    Ok(all)
}
