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
        let append = self.append.map_or_else(String::new, |bytes| match bytes >> 20 {
            0 => format!(" by {} KiB", bytes >> 10),
            mib => format!(" by {mib} MiB"),
        });
        let arrays = if self.arrays > 1 { format!(" × {}", self.arrays) } else { String::new() };
        format!("{} {} {}{levels}{append}{arrays}", self.data_type, step.join("x"), self.codec)
    }

    /// Bytes of an element.
    pub(crate) fn element(&self) -> u64 {
        let bits = self.data_type.trim_start_matches(|letter: char| letter.is_alphabetic());
        bits.parse::<u64>().expect("bits") / 8
    }

    /// Bytes of a step.
    pub(crate) fn step_bytes(&self) -> u64 {
        self.step.iter().product::<u64>() * self.element()
    }
}

const TYPES: [&str; 5] = ["uint8", "uint16", "int32", "float32", "float64"];
const CODECS: [&str; 4] = ["none", "zstd", "blosc-lz4", "gzip"];
/// Bytes of an append: from a network packet to several frames.
const APPENDS: [u64; 5] = [4 << 10, 64 << 10, 1 << 20, 8 << 20, 64 << 20];
/// Bytes of a shard that are aimed at; a step at the least.
const SHARD_BYTES: u64 = 32 << 20;

/// A volume, a camera's frame, and a small tile: a step, and a chunk of it.
fn shapes() -> [(Vec<u64>, Vec<u64>); 3] {
    [
        (vec![256, 256, 256], vec![1, 64, 64, 64]),
        (vec![2048, 2304], vec![1, 256, 256]),
        (vec![128, 128], vec![32, 64, 64]),
    ]
}

fn row(data_type: &str, shape: usize, codec: &str, has_levels: bool) -> Row {
    let (step, chunk) = shapes()[shape].clone();
    let (data_type, codec) = (data_type.to_owned(), codec.to_owned());
    let mut row = Row { data_type, step, chunk, shard: Vec::new(), codec, has_levels, append: None, arrays: 1 };
    let steps = (SHARD_BYTES / row.step_bytes()).max(1) / row.chunk[0] * row.chunk[0];
    row.shard = [&[steps], &row.step[..]].concat();
    row
}

/// Every row.
pub(crate) fn all() -> Vec<Row> {
    let kinds = (0..3).flat_map(|shape| TYPES.map(|data_type| (shape, data_type)));
    let of_kind = |(shape, data_type): (usize, &'static str)| {
        CODECS.into_iter().flat_map(move |codec| [false, true].map(|levels| row(data_type, shape, codec, levels)))
    };
    let mut rows: Vec<Row> = kinds.flat_map(of_kind).collect();
    for codec in ["none", "blosc-lz4"] {
        rows.extend(APPENDS.map(|bytes| Row { append: Some(bytes), ..row("uint16", 1, codec, false) }));
    }
    let several = CODECS.into_iter().flat_map(|codec| [false, true].map(|levels| (codec, levels)));
    rows.extend(several.map(|(codec, levels)| Row { arrays: 4, ..row("uint16", 1, codec, levels) }));
    rows
}

/// Bytes of each array of a row: whole shards, so that nobody pays for a ragged end, and two at the least.
pub(crate) fn bytes(row: &Row, mib: u64) -> u64 {
    let shard = row.step_bytes() * row.shard[0];
    ((mib << 20) / row.arrays as u64 / shard).max(2) * shard
}
