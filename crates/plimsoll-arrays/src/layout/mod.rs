//! The checked plan of an array: every level with its shape, chunks and shards, made once from what the user typed.
//! Never touched again: only the plan travels inward. Invariant: a plan that exists can be written and read.
//!
//! | file | what it owns |
//! |---|---|
//! | `axes.rs` | which axes OME metadata take |
//! | `error.rs` | why a description is refused |

mod axes;
mod error;

pub use error::SpecError;

use serde_json::{Map, Value};

use crate::codec::{ChunkCodec, Codec};
use crate::data_type::DataType;
use crate::fill::FillValue;
use crate::grid::Grid;
use crate::levels::Reduction;
use crate::limits::{ATTRIBUTES_BYTES_MAX, BLOSC_BYTES_MAX, LEVELS_MAX};
use crate::metadata;
use crate::order::StorageOrder;
use crate::spec::{ArraySpec, Axis, AxisKind, Levels};

/// The attribute that holds the metadata of levels and axes.
pub(crate) const OME: &str = "ome";

/// The checked plan of an array.
#[derive(Clone, Debug)]
pub struct Layout {
    data_type: DataType,
    codec: Codec,
    fill: FillValue,
    reduction: Reduction,
    order: StorageOrder,
    axes: Option<Vec<Axis>>,
    attributes: Map<String, Value>,
    levels: Vec<LevelLayout>,
}

/// One resolution of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LevelLayout {
    /// Where it lies in the store; empty if the root is the array.
    pub path: String,
    /// Its shape and how it is cut. The first dimension is 0 if it grows: see [`Layout::grid_at`].
    pub grid: Grid,
    /// Which dimensions are half as long as at the level before.
    pub halved: Vec<bool>,
    /// How many elements of level 0 make one, along each dimension.
    pub factor: Vec<u64>,
}

impl LevelLayout {
    /// The key of an object of this level, by its coordinates among objects.
    pub fn object_key(&self, object: &[u64]) -> String {
        let root = if self.path.is_empty() { "c".to_owned() } else { format!("{}/c", self.path) };
        object.iter().fold(root, |key, at| format!("{key}/{at}"))
    }

    /// Elements along the first dimension when level 0 has so many.
    pub fn length_at(&self, base: u64) -> u64 {
        base.div_ceil(self.factor[0])
    }
}

impl Layout {
    /// Checks a description, and plans every level.
    pub fn new(spec: &ArraySpec) -> Result<Self, SpecError> {
        let ArraySpec { shape, chunk, shard, data_type, .. } = spec;
        let base = Grid::new(shape.clone(), chunk.clone(), shard.clone(), *data_type)?;
        check_codec(spec.codec, &base)?;
        let is_multiscale = spec.axes.is_some() || spec.levels != Levels::Count(1);
        let axes = match is_multiscale {
            true => Some(axes::checked(spec.axes.as_deref(), base.rank(), shape[0] == 0)?),
            false => None,
        };
        check_attributes(&spec.attributes, is_multiscale)?;
        Ok(Self {
            data_type: *data_type,
            codec: spec.codec,
            fill: FillValue::new(spec.fill, *data_type)?,
            reduction: spec.reduction,
            order: StorageOrder::new(spec.order.as_deref(), base.rank())?,
            levels: levels(base, axes.as_deref(), spec.levels)?,
            axes,
            attributes: spec.attributes.clone(),
        })
    }

    /// What the elements are.
    pub fn data_type(&self) -> DataType {
        self.data_type
    }

    /// How chunks are packed.
    pub fn codec(&self) -> Codec {
        self.codec
    }

    /// The codec with all that it must know of the chunks.
    pub fn chunk_codec(&self) -> ChunkCodec {
        ChunkCodec::new(self.codec, self.data_type, self.levels[0].grid.chunk_bytes())
    }

    /// What elements are that nobody wrote.
    pub fn fill(&self) -> FillValue {
        self.fill
    }

    /// How one level is made from the one before it.
    pub fn reduction(&self) -> Reduction {
        self.reduction
    }

    /// The order in which a chunk's dimensions are stored.
    pub fn order(&self) -> &StorageOrder {
        &self.order
    }

    /// What the dimensions are, if OME metadata say it. The root is a group then, and an array otherwise.
    pub fn axes(&self) -> Option<&[Axis]> {
        self.axes.as_deref()
    }

    /// What the user keeps with the array.
    pub fn attributes(&self) -> &Map<String, Value> {
        &self.attributes
    }

    /// Every level, the full resolution first.
    pub fn levels(&self) -> &[LevelLayout] {
        &self.levels
    }

    /// Whether the first dimension grows as data are appended.
    pub fn grows(&self) -> bool {
        self.levels[0].grid.shape[0] == 0
    }

    /// How a level is cut when level 0 has so many elements along its first dimension.
    pub fn grid_at(&self, level: usize, base: u64) -> Result<Grid, SpecError> {
        let level = &self.levels[level];
        level.grid.with_length(level.length_at(base))
    }
}

fn check_codec(codec: Codec, grid: &Grid) -> Result<(), SpecError> {
    let got = grid.chunk_bytes() as u64;
    match codec {
        Codec::Blosc { .. } if got > BLOSC_BYTES_MAX => Err(SpecError::ChunkBytes { got, most: BLOSC_BYTES_MAX }),
        _ => Ok(()),
    }
}

fn check_attributes(attributes: &Map<String, Value>, is_multiscale: bool) -> Result<(), SpecError> {
    if is_multiscale && attributes.contains_key(OME) {
        return Err(SpecError::Attribute { name: OME.to_owned() });
    }
    let attributes = Value::Object(attributes.clone());
    let got = metadata::bytes_of(&attributes);
    if got <= ATTRIBUTES_BYTES_MAX { Ok(()) } else { Err(SpecError::Attributes { got }) }
}

fn levels(base: Grid, axes: Option<&[Axis]>, wanted: Levels) -> Result<Vec<LevelLayout>, SpecError> {
    let rank = base.rank();
    let Some(axes) = axes else {
        let whole = LevelLayout { path: String::new(), grid: base, halved: vec![false; rank], factor: vec![1; rank] };
        return Ok(vec![whole]);
    };
    let count = match wanted {
        Levels::Auto => levels_until_one_chunk(&base, axes),
        Levels::Count(got @ 1..=LEVELS_MAX) => got,
        Levels::Count(got) => return Err(SpecError::Levels { got }),
    };
    let mut levels =
        vec![LevelLayout { path: "0".to_owned(), grid: base, halved: vec![false; rank], factor: vec![1; rank] }];
    for level in 1..count {
        let finer = &levels[level as usize - 1];
        levels.push(coarser(finer, axes, level)?);
    }
    Ok(levels)
}

/// Levels until every dimension that is halved fits into one chunk, the first dimension left aside.
fn levels_until_one_chunk(base: &Grid, axes: &[Axis]) -> u32 {
    let inner = base.shape.iter().zip(&base.chunk).zip(axes).skip(1);
    let halvings = inner.filter(|(_, axis)| axis.kind == AxisKind::Space).map(|((&size, &chunk), _)| {
        let fits = |halvings: &u32| size.div_ceil(1 << halvings) <= chunk;
        (0..LEVELS_MAX).find(fits).unwrap_or(LEVELS_MAX - 1)
    });
    1 + halvings.max().unwrap_or(0).min(LEVELS_MAX - 1)
}

fn coarser(finer: &LevelLayout, axes: &[Axis], level: u32) -> Result<LevelLayout, SpecError> {
    let is_halved = |(dimension, axis): (usize, &Axis)| {
        let size = finer.grid.shape[dimension];
        // A dimension of no elements yet is one that grows.
        axis.kind == AxisKind::Space && size != 1
    };
    let halved: Vec<bool> = axes.iter().enumerate().map(is_halved).collect();
    if !halved.contains(&true) {
        return Err(SpecError::NothingToHalve { level });
    }
    let half = |(size, halved): (&u64, &bool)| if *halved { size.div_ceil(2) } else { *size };
    let double = |(factor, halved): (&u64, &bool)| if *halved { factor * 2 } else { *factor };
    let mut grid = finer.grid.clone();
    grid.shape = grid.shape.iter().zip(&halved).map(half).collect();
    let factor = finer.factor.iter().zip(&halved).map(double).collect();
    Ok(LevelLayout { path: level.to_string(), grid, halved, factor })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> ArraySpec {
        ArraySpec {
            shard: Some(vec![8, 128, 128, 128]),
            levels: Levels::Auto,
            ..ArraySpec::new(vec![0, 256, 250, 65], DataType::U16, vec![1, 64, 64, 64])
        }
    }

    #[test]
    fn levels_are_halved_until_they_fit_a_chunk() {
        let layout = Layout::new(&spec()).unwrap();
        let shapes: Vec<&[u64]> = layout.levels().iter().map(|level| &level.grid.shape[..]).collect();
        assert_eq!(shapes, [[0, 256, 250, 65], [0, 128, 125, 33], [0, 64, 63, 17]]);
        assert_eq!(layout.levels()[2].factor, [1, 4, 4, 4]);
        assert_eq!(layout.levels()[2].path, "2");
        assert_eq!(layout.levels()[2].object_key(&[4, 0, 1, 0]), "2/c/4/0/1/0");
        assert!(layout.grows());
        assert_eq!(layout.grid_at(2, 5).unwrap().shape, [5, 64, 63, 17]);
    }

    /// A writer would otherwise publish metadata that it does not read itself.
    #[test]
    fn attributes_are_as_small_as_their_readers_want() {
        let with = |bytes: usize| {
            let attributes = Map::from_iter([("notes".to_owned(), Value::from("x".repeat(bytes)))]);
            Layout::new(&ArraySpec { attributes, ..spec() })
        };
        let fits = with(ATTRIBUTES_BYTES_MAX as usize - 100).unwrap();
        let files = metadata::files(&fits, 0).unwrap();
        assert!(files.iter().all(|(_, text)| metadata::Node::parse(text).is_ok()));
        let refused = with(ATTRIBUTES_BYTES_MAX as usize).unwrap_err();
        assert!(matches!(refused, SpecError::Attributes { .. }), "{refused}");
    }

    #[test]
    fn a_dimension_of_one_element_stays_and_a_growing_one_of_space_is_halved() {
        let axes = ["z", "y", "x"].map(Axis::named).to_vec();
        let spec = ArraySpec {
            levels: Levels::Count(3),
            axes: Some(axes),
            ..ArraySpec::new(vec![0, 2, 8], DataType::F32, vec![4, 2, 2])
        };
        let layout = Layout::new(&spec).unwrap();
        assert_eq!(layout.levels()[2].factor, [4, 2, 4]);
        assert_eq!(layout.levels()[2].halved, [true, false, true]);
        assert_eq!(layout.grid_at(2, 9).unwrap().shape, [3, 1, 2]);
    }

    #[test]
    fn one_level_without_axes_is_a_plain_array_of_any_rank() {
        let layout = Layout::new(&ArraySpec::new(vec![3; 9], DataType::I8, vec![2; 9])).unwrap();
        assert_eq!((layout.levels().len(), layout.levels()[0].path.as_str()), (1, ""));
        assert!(layout.axes().is_none());
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let refused = |change: fn(&mut ArraySpec)| {
            let mut spec = spec();
            change(&mut spec);
            Layout::new(&spec).unwrap_err()
        };
        assert_eq!(refused(|spec| spec.levels = Levels::Count(33)), SpecError::Levels { got: 33 });
        assert_eq!(refused(|spec| spec.levels = Levels::Count(20)), SpecError::NothingToHalve { level: 9 });
        assert!(matches!(refused(|spec| spec.order = Some(vec![1, 0, 2, 3])), SpecError::Order { .. }));
        assert!(matches!(refused(|spec| spec.fill = crate::Fill::Integer(-1)), SpecError::Fill(_)));
        let ome = refused(|spec| drop(spec.attributes.insert("ome".to_owned(), Value::Null)));
        assert_eq!(ome, SpecError::Attribute { name: "ome".to_owned() });
        assert!(matches!(refused(|spec| spec.chunk = vec![1 << 40; 4]), SpecError::ShardNotWhole { .. }));
    }

    #[test]
    fn a_blosc_chunk_has_room_for_its_header() {
        let mut spec = ArraySpec::new(vec![1 << 31], DataType::U8, vec![1 << 31]);
        assert!(Layout::new(&spec).is_ok());
        spec.codec = "blosc:lz4:5:shuffle".parse().unwrap();
        assert!(matches!(Layout::new(&spec), Err(SpecError::ChunkBytes { most: BLOSC_BYTES_MAX, .. })));
    }
}
