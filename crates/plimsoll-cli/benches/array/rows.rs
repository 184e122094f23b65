//! The rows: what is written.

use serde::{Deserialize, Serialize};

/// One array, or several beside each other.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) data_type: String,
    /// Of one step; the first dimension grows.
    pub(crate) step: Vec<u64>,
    pub(crate) chunk: Vec<u64>,
    pub(crate) shard: Vec<u64>,
    pub(crate) codec: String,
    pub(crate) has_levels: bool,
    /// Bytes of an append; a step if none.
    pub(crate) append: Option<u64>,
    pub(crate) arrays: usize,
}

impl Row {
    pub(crate) fn name(&self) -> String {
        let step: Vec<String> = self.step.iter().map(u64::to_string).collect();
        let levels = if self.has_levels { " levels" } else { "" };
        let append = self.append.map_or_else(String::new, |bytes| format!(" by {} KiB", bytes >> 10));
        let arrays = if self.arrays > 1 { format!(" × {}", self.arrays) } else { String::new() };
        format!("{} {} {}{levels}{append}{arrays}", self.data_type, step.join("x"), self.codec)
    }
}

const TYPES: [&str; 5] = ["uint8", "uint16", "int32", "float32", "float64"];
const CODECS: [&str; 4] = ["none", "zstd", "blosc-lz4", "gzip"];

/// A volume, a camera's frame, and a small tile.
fn shapes() -> [(Vec<u64>, Vec<u64>, Vec<u64>); 3] {
    [
        (vec![256, 256, 256], vec![1, 64, 64, 64], vec![2, 256, 256, 256]),
        (vec![2048, 2304], vec![1, 256, 256], vec![8, 2048, 2304]),
        (vec![128, 128], vec![32, 64, 64], vec![256, 128, 128]),
    ]
}

/// Every row, or one of each kind.
pub(crate) fn all(is_quick: bool) -> Vec<Row> {
    let row = |data_type: &str, shape: usize, codec: &str, has_levels| {
        let (step, chunk, shard) = shapes()[shape].clone();
        let (data_type, codec) = (data_type.to_owned(), codec.to_owned());
        Row { data_type, step, chunk, shard, codec, has_levels, append: None, arrays: 1 }
    };
    let mut rows = Vec::new();
    for (shape, data_type) in (0..3).flat_map(|shape| TYPES.map(|data_type| (shape, data_type))) {
        if is_quick && data_type != "uint16" {
            continue;
        }
        rows.extend(
            CODECS.into_iter().flat_map(|codec| [false, true].map(|levels| row(data_type, shape, codec, levels))),
        );
    }
    let appends = [4 << 10, 128 << 10, 1 << 20, 64 << 20];
    rows.extend(appends.map(|bytes| Row { append: Some(bytes), ..row("uint16", 1, "none", false) }));
    rows.extend(["none", "blosc-lz4"].map(|codec| Row { arrays: 4, ..row("uint16", 1, codec, false) }));
    rows
}
