//! What an array is to be, as the user typed it. Nothing here is checked against anything else: that is `layout`.

use std::fmt;
use std::str::FromStr;

use serde_json::{Map, Value};

use crate::codec::Codec;
use crate::data_type::DataType;
use crate::fill::Fill;
use crate::levels::Reduction;

/// An array as the user describes it.
///
/// ```
/// use plimsoll_arrays::{ArraySpec, DataType, Layout, Levels};
///
/// let spec = ArraySpec {
///     shard: Some(vec![8, 256, 256]),
///     codec: "zstd:3".parse()?,
///     levels: Levels::Auto,
///     ..ArraySpec::new(vec![0, 2048, 2304], DataType::U16, vec![1, 128, 128])
/// };
/// let layout = Layout::new(&spec)?;
/// assert_eq!(layout.levels().len(), 6);
/// assert_eq!(layout.levels()[1].grid.shape, [0, 1024, 1152]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct ArraySpec {
    /// Elements along each dimension; 0 for a first dimension that grows as data are appended.
    pub shape: Vec<u64>,
    /// What the elements are.
    pub data_type: DataType,
    /// Elements of a chunk along each dimension.
    pub chunk: Vec<u64>,
    /// Elements of a shard along each dimension, a multiple of the chunk's; none for a file for each chunk.
    pub shard: Option<Vec<u64>>,
    /// How chunks are packed.
    pub codec: Codec,
    /// What elements are that nobody wrote.
    pub fill: Fill,
    /// How many resolutions there are.
    pub levels: Levels,
    /// How one resolution is made from the one before it.
    pub reduction: Reduction,
    /// What the dimensions are; those usual for the rank unless given.
    pub axes: Option<Vec<Axis>>,
    /// The order in which a chunk's dimensions are stored, slowest first; the first dimension stays first.
    pub order: Option<Vec<usize>>,
    /// What the user wants to keep with the array.
    pub attributes: Map<String, Value>,
}

impl ArraySpec {
    /// A plain array: one resolution, no shards, nothing packed.
    pub fn new(shape: Vec<u64>, data_type: DataType, chunk: Vec<u64>) -> Self {
        Self {
            shape,
            data_type,
            chunk,
            shard: None,
            codec: Codec::None,
            fill: Fill::default(),
            levels: Levels::default(),
            reduction: Reduction::default(),
            axes: None,
            order: None,
            attributes: Map::new(),
        }
    }
}

/// How many resolutions an array has.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Levels {
    /// As many as it takes until what is halved fits into one chunk.
    Auto,
    /// So many, the full one included.
    Count(u32),
}

impl Default for Levels {
    fn default() -> Self {
        Self::Count(1)
    }
}

/// A number of levels that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is no number of levels; write auto, none, or how many there are with the full resolution, such as 4")]
pub struct ParseLevelsError {
    text: String,
}

impl FromStr for Levels {
    type Err = ParseLevelsError;

    fn from_str(text: &str) -> Result<Self, ParseLevelsError> {
        match (text, text.parse()) {
            ("auto", _) => Ok(Self::Auto),
            ("none", _) => Ok(Self::Count(1)),
            (_, Ok(count)) if count > 0 => Ok(Self::Count(count)),
            _ => Err(ParseLevelsError { text: text.to_owned() }),
        }
    }
}

/// What a dimension is.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum AxisKind {
    /// Moments.
    Time,
    /// Colours, stains, detectors.
    Channel,
    /// Places; only these are halved from level to level.
    Space,
}

impl AxisKind {
    /// Its name in OME metadata.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::Channel => "channel",
            Self::Space => "space",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        [Self::Time, Self::Channel, Self::Space].into_iter().find(|kind| kind.name() == name)
    }
}

/// One dimension: its name, and how far apart its elements are.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Its name, such as `z`.
    pub name: String,
    /// What it is.
    pub kind: AxisKind,
    /// What it is measured in, such as `micrometer`.
    pub unit: Option<String>,
    /// From one element to the next, in that unit.
    pub scale: f64,
}

impl Axis {
    /// An axis by its name, one apart; `t` is time, `c` channels, every other one space.
    pub fn named(name: &str) -> Self {
        let kind = match name {
            "t" => AxisKind::Time,
            "c" => AxisKind::Channel,
            _ => AxisKind::Space,
        };
        Self { name: name.to_owned(), kind, unit: None, scale: 1.0 }
    }

    /// Those that are usual for a rank; none above five, where nothing is usual.
    pub fn usual(rank: usize, grows: bool) -> Option<Vec<Self>> {
        let names: &[&str] = match (rank, grows) {
            (2, _) => &["y", "x"],
            (3, true) => &["t", "y", "x"],
            (3, false) => &["z", "y", "x"],
            (4, _) => &["t", "z", "y", "x"],
            (5, _) => &["t", "c", "z", "y", "x"],
            _ => return None,
        };
        Some(names.iter().map(|name| Self::named(name)).collect())
    }
}

/// An axis that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is no axis; write its name, unit and scale as z, z:micrometer or z:micrometer:0.5")]
pub struct ParseAxisError {
    text: String,
}

impl FromStr for Axis {
    type Err = ParseAxisError;

    fn from_str(text: &str) -> Result<Self, ParseAxisError> {
        let refused = || ParseAxisError { text: text.to_owned() };
        let mut parts = text.split(':');
        let axis = Self::named(parts.next().filter(|name| !name.is_empty()).ok_or_else(refused)?);
        let unit = parts.next().filter(|unit| !unit.is_empty()).map(str::to_owned);
        let scale = parts.next().map_or(Ok(1.0), |scale| scale.parse().map_err(|_| refused()))?;
        if parts.next().is_some() {
            return Err(refused());
        }
        Ok(Self { unit, scale, ..axis })
    }
}

impl fmt::Display for Axis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.name)?;
        if self.unit.is_some() || self.scale != 1.0 {
            write!(f, ":{}", self.unit.as_deref().unwrap_or_default())?;
        }
        if self.scale == 1.0 { Ok(()) } else { write!(f, ":{}", self.scale) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_read() {
        assert_eq!("auto".parse(), Ok(Levels::Auto));
        assert_eq!("none".parse(), Ok(Levels::Count(1)));
        assert_eq!("4".parse(), Ok(Levels::Count(4)));
        for wrong in ["", "0", "-1", "all"] {
            assert!(wrong.parse::<Levels>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn axes_are_read_and_written() {
        for text in ["z", "z:micrometer", "t:second:0.1", "x::2"] {
            let axis: Axis = text.parse().unwrap();
            assert_eq!(axis.to_string(), text);
        }
        assert_eq!("c".parse::<Axis>().unwrap().kind, AxisKind::Channel);
        for wrong in ["", ":micrometer", "z:micrometer:wide", "z:micrometer:1:2"] {
            assert!(wrong.parse::<Axis>().is_err(), "{wrong}");
        }
    }
}
