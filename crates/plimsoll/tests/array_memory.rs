//! Memory of a writer: as much as its plan says, whatever the number of appends. A program of its own, so that nobody
//! else's memory counts.

use std::sync::Arc;

use plimsoll::Orchestrator;
use plimsoll::array::sink::{Filesystem, Sink};
use plimsoll::array::{ArrayOptions, ArraySpec, ArrayWriter, DataType, Layout, Levels};

/// What a process has besides.
const BASE: u64 = 24 << 20;

#[test]
fn twenty_thousand_appends_take_what_the_plan_says() {
    let folder = tempfile::tempdir().unwrap();
    let sink: Arc<dyn Sink> = Arc::new(Filesystem::new(folder.path().join("a.zarr")).without_sync());
    let spec = ArraySpec {
        shard: Some(vec![128, 256, 256]),
        codec: "blosc:lz4:1:shuffle".parse().unwrap(),
        levels: Levels::Count(2),
        ..ArraySpec::new(vec![0, 256, 256], DataType::U8, vec![8, 64, 64])
    };
    let orchestrator = Arc::new(Orchestrator::builder().cpu(2).build());
    let options = ArrayOptions::default();
    let mut writer = ArrayWriter::new(orchestrator, Layout::new(&spec).unwrap(), sink, options).unwrap();
    let plan = writer.plan();
    let frame: Vec<u8> = (0..256_u32 * 256).map(|at| (at.wrapping_mul(2_654_435_761) >> 26) as u8).collect();
    let mut half = 0;
    for at in 0..20_000 {
        writer.append(&frame).unwrap();
        if at == 10_000 {
            half = peak();
        }
    }
    assert_eq!(writer.close().unwrap().steps, 20_000);
    let whole = peak();
    assert!(whole < half + (half >> 3), "{half} bytes after half of it, {whole} at the end");
    assert!(whole < plan.memory().0 + BASE, "{whole} bytes, and the plan says {plan:?}");
}

/// The most bytes that this process had in memory.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}
