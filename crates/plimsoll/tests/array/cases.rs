//! Arrays to write: shapes, codecs and levels that differ in what can go wrong.

use std::sync::Arc;

use plimsoll::Orchestrator;
use plimsoll::array::read::Store;
use plimsoll::array::sink::{Memory, Sink};
use plimsoll::array::{ArrayOptions, ArraySpec, ArrayWriter, DataType, Layout, Levels, Reduction};

pub(crate) fn orchestrator(slots: usize) -> Arc<Orchestrator> {
    Arc::new(Orchestrator::builder().cpu(slots).build())
}

/// Frames that grow, in shards, with levels.
pub(crate) fn frames() -> ArraySpec {
    ArraySpec {
        shard: Some(vec![4, 32, 32]),
        codec: "zstd:1".parse().unwrap(),
        levels: Levels::Count(3),
        ..ArraySpec::new(vec![0, 50, 37], DataType::U16, vec![2, 16, 16])
    }
}

/// One of each kind.
pub(crate) fn all() -> Vec<(&'static str, ArraySpec, u64)> {
    let new = |shape: &[u64], data_type, chunk: &[u64]| ArraySpec::new(shape.to_vec(), data_type, chunk.to_vec());
    let axes = |names: &[&str]| Some(names.iter().map(|name| name.parse().unwrap()).collect());
    vec![
        ("frames in shards with levels", frames(), 11),
        ("a file for each chunk", ArraySpec { shard: None, ..frames() }, 7),
        ("one dimension", ArraySpec { codec: "gzip:6".parse().unwrap(), ..new(&[0], DataType::F64, &[100]) }, 1_234),
        (
            "halved along the first dimension",
            ArraySpec { axes: axes(&["z", "y", "x"]), reduction: Reduction::Median, ..frames() },
            21,
        ),
        (
            "chunks of many steps, stored in another order",
            ArraySpec {
                shard: Some(vec![24, 16, 20]),
                order: Some(vec![0, 2, 1]),
                codec: "blosc:lz4:5:bitshuffle".parse().unwrap(),
                ..new(&[0, 30, 40], DataType::I32, &[12, 8, 10])
            },
            31,
        ),
        (
            "five dimensions of a known length",
            ArraySpec {
                levels: Levels::Count(2),
                codec: "none".parse().unwrap(),
                shard: Some(vec![2, 2, 4, 8, 8]),
                ..new(&[6, 3, 5, 9, 10], DataType::U8, &[1, 1, 4, 4, 8])
            },
            6,
        ),
        ("nothing at all", frames(), 0),
    ]
}

/// Bytes that no two places share, with stretches of the fill value.
pub(crate) fn elements(spec: &ArraySpec, steps: u64) -> Vec<u8> {
    let bytes = steps * spec.shape[1..].iter().product::<u64>() * spec.data_type.bytes() as u64;
    let mixed = |at: u64| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8;
    // Small exponents, so that no element of a float is a NaN.
    (0..bytes).map(|at| if at / 4_096 % 5 == 3 { 0 } else { mixed(at) & 0x3f }).collect()
}

/// Appends in pieces of this size, and closes.
pub(crate) fn write(spec: &ArraySpec, bytes: &[u8], slots: usize, piece: usize) -> Arc<Memory> {
    let store = Arc::new(Memory::default());
    let sink: Arc<dyn Sink> = store.clone();
    let layout = Layout::new(spec).unwrap();
    let mut writer = ArrayWriter::new(orchestrator(slots), layout, sink, ArrayOptions::default()).unwrap();
    for piece in bytes.chunks(piece) {
        writer.append(piece).unwrap();
    }
    writer.close().unwrap();
    store
}

/// What a store holds at a level.
pub(crate) fn read(store: &Arc<Memory>, level: usize) -> (Vec<u64>, Vec<u8>) {
    let store = Store::open(store.clone()).unwrap();
    (store.levels()[level].metadata.grid.shape.clone(), store.read_level(level).unwrap())
}
