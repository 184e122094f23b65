//! The index of a model: its tensors, their pieces and levels, where each fragment lies and how to tell it from any other.
//! Never reads a fragment. What is read from outside is checked against itself before anybody uses it.
//! Invariant: an [`Index`] that exists has the sizes, counts and ranges that its tensors and bits ask for.

use serde::{Deserialize, Serialize};

use crate::data_type::Float;
use crate::digest::{Checksum, Digest};
use crate::error::FragmentError;
use crate::limits::{FRAGMENT_BYTES_MAX, PIECE_WEIGHTS, QUANTISED_WEIGHTS_MIN, RAW_PIECE_BYTES};
use crate::quant::{Bits, LevelLayout};
use crate::safetensors::{self, TensorInfo};

/// The number of this format.
const FORMAT: u32 = 1;

/// One level of one piece of a tensor: bytes somewhere in the file.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fragment {
    /// Where it begins in the file.
    pub offset: u64,
    /// Bytes.
    pub bytes: u64,
    /// Its name in a store.
    pub digest: Digest,
    /// What it is checked by on every hop.
    pub checksum: Checksum,
}

impl Fragment {
    /// The byte behind its last one.
    pub fn end(&self) -> u64 {
        self.offset + self.bytes
    }
}

/// A tensor in pieces.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// Its name, type and shape, and where it lies in the safetensors file.
    pub info: TensorInfo,
    /// The measured error of each level of bit planes; empty for a tensor that is kept as it is.
    pub errors: Vec<f64>,
    /// The fragments of each piece, coarsest level first.
    pub pieces: Vec<Vec<Fragment>>,
}

/// The number of a level of a tensor: the coarsest is 0.
pub type Level = usize;

impl Tensor {
    /// Levels there are.
    pub fn levels(&self) -> usize {
        self.pieces.first().map_or(1, Vec::len)
    }

    /// The float type of its weights, if it is quantised.
    pub fn float(&self) -> Option<Float> {
        quantised(&self.info)
    }

    /// The measured error of a level: the root mean square of what is wrong over that of the weights.
    pub fn error(&self, level: Level) -> f64 {
        self.errors.get(level).copied().unwrap_or(0.0)
    }

    /// How good a level is: 1 less its error.
    pub fn quality(&self, level: Level) -> f64 {
        (1.0 - self.error(level)).max(0.0)
    }

    /// The coarsest level that is at least so good, or the finest there is.
    pub fn level_for(&self, quality: f64) -> Level {
        (0..self.levels()).find(|level| self.quality(*level) >= quality).unwrap_or(self.levels() - 1)
    }

    /// Whether a level gives back the very bytes.
    pub fn is_exact(&self, level: Level) -> bool {
        self.errors.len() <= level
    }

    /// Elements of a piece.
    pub fn piece_elements(&self, piece: usize) -> usize {
        let (each, all) = (piece_elements(&self.info), elements(&self.info));
        (all - (piece * each) as u64).min(each as u64) as usize
    }

    /// Elements before a piece.
    pub fn piece_begins(&self, piece: usize) -> u64 {
        piece as u64 * piece_elements(&self.info) as u64
    }

    /// Bytes of all its fragments up to a level.
    pub fn bytes_to(&self, level: Level) -> u64 {
        self.pieces.iter().flat_map(|piece| piece.iter().take(level + 1)).map(|fragment| fragment.bytes).sum()
    }
}

/// The float type of a tensor that is quantised.
pub(crate) fn quantised(info: &TensorInfo) -> Option<Float> {
    info.data_type.float().filter(|_| elements(info) >= QUANTISED_WEIGHTS_MIN)
}

pub(crate) fn elements(info: &TensorInfo) -> u64 {
    info.bytes / info.data_type.bytes()
}

/// Elements of every piece but the last.
pub(crate) fn piece_elements(info: &TensorInfo) -> usize {
    match quantised(info) {
        Some(_) => PIECE_WEIGHTS,
        None => RAW_PIECE_BYTES / info.data_type.bytes() as usize,
    }
}

/// What a model is made of.
#[derive(Clone, Debug, PartialEq)]
pub struct Index {
    /// Bits of the levels.
    pub bits: Bits,
    /// Whether there is a level that gives back the very bytes.
    pub exact: bool,
    /// The header of the safetensors file.
    pub header: String,
    /// The tensors, in the order of that file.
    pub tensors: Vec<Tensor>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    format: u32,
    bits: Bits,
    exact: bool,
    header: String,
    tensors: Vec<WrittenTensor>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenTensor {
    errors: Vec<f64>,
    pieces: Vec<WrittenPiece>,
}

type WrittenFragment = (u64, u64, Digest, Checksum);

/// The fragments of a piece. One without any is refused as it is read: 64 MiB of them would take half a gigabyte.
#[derive(Serialize, Deserialize)]
#[serde(try_from = "Vec<WrittenFragment>")]
struct WrittenPiece(Vec<WrittenFragment>);

impl TryFrom<Vec<WrittenFragment>> for WrittenPiece {
    type Error = &'static str;

    fn try_from(fragments: Vec<WrittenFragment>) -> Result<Self, Self::Error> {
        if fragments.is_empty() { Err("a piece has no fragments") } else { Ok(Self(fragments)) }
    }
}

impl Index {
    /// The index as it stands in a file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let tensor = |tensor: &Tensor| WrittenTensor {
            errors: tensor.errors.clone(),
            pieces: tensor
                .pieces
                .iter()
                .map(|piece| WrittenPiece(piece.iter().map(|f| (f.offset, f.bytes, f.digest, f.checksum)).collect()))
                .collect(),
        };
        let tensors = self.tensors.iter().map(tensor).collect();
        let written = Written {
            format: FORMAT,
            bits: self.bits.clone(),
            exact: self.exact,
            header: self.header.clone(),
            tensors,
        };
        serde_json::to_vec(&written).expect("an index has nothing that JSON cannot say")
    }

    /// Reads an index whose fragments lie between these bytes of the file, and believes nothing of it.
    ///
    /// # Errors
    /// [`FragmentError::Malformed`] with what is wrong.
    pub fn parse(bytes: &[u8], what: &str, data: std::ops::Range<u64>) -> Result<Self, FragmentError> {
        parse(bytes, data).map_err(|why| FragmentError::malformed(what, "a file of fragments", why))
    }

    /// All fragments, with the tensor, piece and level that each is.
    pub fn fragments(&self) -> impl Iterator<Item = (usize, usize, Level, &Fragment)> {
        self.tensors.iter().enumerate().flat_map(|(tensor, each)| {
            each.pieces.iter().enumerate().flat_map(move |(piece, levels)| {
                levels.iter().enumerate().map(move |(level, fragment)| (tensor, piece, level, fragment))
            })
        })
    }

    /// The fragments that a quality needs, in the order of the file.
    pub fn fragments_for(&self, quality: f64) -> Vec<Fragment> {
        let levels: Vec<Level> = self.tensors.iter().map(|tensor| tensor.level_for(quality)).collect();
        let needed = self.fragments().filter(|(tensor, _, level, _)| *level <= levels[*tensor]);
        let mut needed: Vec<Fragment> = needed.map(|(.., fragment)| *fragment).collect();
        needed.sort_by_key(|fragment| fragment.offset);
        needed
    }

    /// The tensor of this name.
    pub fn tensor(&self, name: &str) -> Option<&Tensor> {
        self.tensors.iter().find(|tensor| tensor.info.name == name)
    }

    /// Bytes of the safetensors file.
    pub fn file_bytes(&self) -> u64 {
        8 + self.header.len() as u64 + self.tensors.iter().map(|tensor| tensor.info.bytes).sum::<u64>()
    }
}

fn parse(bytes: &[u8], data: std::ops::Range<u64>) -> Result<Index, String> {
    let written: Written =
        serde_json::from_slice(bytes).map_err(|error| format!("its index cannot be read: {error}"))?;
    let Written { format, bits, exact, header, tensors } = written;
    if format != FORMAT {
        return Err(format!("it is of format {format}, and this program reads {FORMAT}"));
    }
    let infos = safetensors::parse(&header)?;
    if infos.len() != tensors.len() {
        return Err(format!("it has {} tensors, and its header names {}", tensors.len(), infos.len()));
    }
    let tensors = infos.into_iter().zip(tensors).map(|(info, written)| tensor(info, written, &bits, exact));
    let index = Index { tensors: tensors.collect::<Result<_, String>>()?, bits, exact, header };
    check_ranges(&index, data)?;
    Ok(index)
}

fn tensor(info: TensorInfo, written: WrittenTensor, bits: &Bits, exact: bool) -> Result<Tensor, String> {
    let name = info.name.clone();
    let wrong = |why: &str| Err(format!("tensor {name:?}: {why}"));
    let is_quantised = quantised(&info).is_some();
    let WrittenTensor { errors, pieces } = written;
    let levels = if is_quantised { bits.levels() + usize::from(exact) } else { 1 };
    let errors_wanted = if is_quantised { bits.levels() } else { 0 };
    if errors.len() != errors_wanted || !errors.iter().all(|error| error.is_finite() && *error >= 0.0) {
        return wrong("its errors are not what its levels ask for");
    }
    if elements(&info).div_ceil(piece_elements(&info) as u64) != pieces.len() as u64 {
        return wrong("it has not the pieces that its size asks for");
    }
    let of = |(offset, bytes, digest, checksum)| Fragment { offset, bytes, digest, checksum };
    let pieces: Vec<Vec<Fragment>> = pieces.into_iter().map(|piece| piece.0.into_iter().map(of).collect()).collect();
    let tensor = Tensor { info, errors, pieces };
    for (at, piece) in tensor.pieces.iter().enumerate() {
        if piece.len() != levels {
            return wrong("a piece has not the levels that its bits ask for");
        }
        for (level, fragment) in piece.iter().enumerate() {
            if !has_right_size(&tensor, bits, at, level, fragment) {
                return wrong("a fragment has a size that it cannot have");
            }
        }
    }
    Ok(tensor)
}

fn has_right_size(tensor: &Tensor, bits: &Bits, piece: usize, level: Level, fragment: &Fragment) -> bool {
    let elements = tensor.piece_elements(piece);
    match tensor.float() {
        None => fragment.bytes == elements as u64 * tensor.info.data_type.bytes(),
        Some(_) if level < bits.levels() => fragment.bytes == LevelLayout::new(elements, bits, level).bytes(),
        Some(_) => fragment.bytes > 0 && fragment.bytes <= FRAGMENT_BYTES_MAX,
    }
}

/// Every fragment lies in the data, and no two overlap unless they are the same.
fn check_ranges(index: &Index, data: std::ops::Range<u64>) -> Result<(), String> {
    let mut all: Vec<&Fragment> = index.fragments().map(|(.., fragment)| fragment).collect();
    all.sort_by_key(|fragment| (fragment.offset, fragment.bytes));
    let mut end = data.start;
    for fragment in all {
        let until = fragment.offset.checked_add(fragment.bytes);
        if fragment.offset < end || until.is_none_or(|until| until > data.end) {
            return Err(format!(
                "a fragment of {} bytes at {} lies outside the data, or over another",
                fragment.bytes, fragment.offset
            ));
        }
        end = fragment.end();
    }
    Ok(())
}
