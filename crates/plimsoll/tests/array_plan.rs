//! The plan of a writer is what it takes when its store is slower than whoever writes: no less, or the machine is short of
//! memory where it was told that there is enough; not much more, or arrays are refused that would fit. A program of its own,
//! so that nobody else's memory counts.

use std::env;
use std::ops::Range;
use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use plimsoll::Orchestrator;
use plimsoll::array::sink::{Filesystem, Listed, Object, Sink, SinkError, WriteLock};
use plimsoll::array::{ArrayOptions, ArraySpec, ArrayWriter, DataType, Layout, Levels};

/// How far the most that was held may be from what was planned.
const OFF_MAX: f64 = 0.10;
/// What is held besides: threads, tables, and what the allocator rounds up.
const BASE: u64 = 4 << 20;
/// How often all places for slabs are filled.
const FILLED: u64 = 2;

/// A store that takes its time for each batch of chunks, so that everything before it fills up.
struct Slow(Filesystem);

struct SlowObject(Box<dyn Object>);

impl Object for SlowObject {
    fn append(&mut self, bytes: &[u8]) -> Result<(), SinkError> {
        thread::sleep(Duration::from_millis(40));
        self.0.append(bytes)
    }

    fn finish(self: Box<Self>) -> Result<(), SinkError> {
        self.0.finish()
    }
}

impl Sink for Slow {
    fn put(&self, key: &str, bytes: &[u8]) -> Result<(), SinkError> {
        self.0.put(key, bytes)
    }

    fn begin(&self, key: &str) -> Result<Box<dyn Object>, SinkError> {
        Ok(Box::new(SlowObject(self.0.begin(key)?)))
    }

    fn get(&self, key: &str, range: Range<u64>) -> Result<Vec<u8>, SinkError> {
        self.0.get(key, range)
    }

    fn size(&self, key: &str) -> Result<Option<u64>, SinkError> {
        self.0.size(key)
    }

    fn list(&self, prefix: &str) -> Result<Vec<Listed>, SinkError> {
        self.0.list(prefix)
    }

    fn delete(&self, key: &str) -> Result<(), SinkError> {
        self.0.delete(key)
    }

    fn lock(&self) -> Result<Box<dyn WriteLock>, SinkError> {
        self.0.lock()
    }
}

/// Bytes that no codec makes smaller, other ones for each step.
fn fill_with_noise(frame: &mut [u8], step: u64) {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(2 * step + 1);
    for word in frame.as_chunks_mut::<8>().0 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        *word = state.to_le_bytes();
    }
}

/// The most that a writer held beyond what was there before, and what was planned.
fn held_and_planned(spec: &ArraySpec) -> (u64, u64) {
    let folder = tempfile::tempdir().unwrap();
    let sink: Arc<dyn Sink> = Arc::new(Slow(Filesystem::new(folder.path().join("a.zarr")).without_sync()));
    let layout = Layout::new(spec).unwrap();
    let mut frame = vec![0; layout.levels()[0].grid.step_bytes() as usize];
    let orchestrator = Arc::new(Orchestrator::builder().cpu(2).build());
    let before = forget_peak();
    let mut writer = ArrayWriter::new(orchestrator, layout, sink, ArrayOptions::default()).unwrap();
    let plan = writer.plan();
    for step in 0..FILLED * plan.slab_count as u64 * plan.slab_steps {
        fill_with_noise(&mut frame, step);
        writer.append(&frame).unwrap();
    }
    writer.close().unwrap();
    let held = memory("VmHWM:") - before;
    (held, plan.memory().0)
}

/// From now on the peak is that of what comes. Gives what is held now.
fn forget_peak() -> u64 {
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    memory("VmHWM:")
}

fn memory(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

/// Which array a process of this test is to write.
const CASE: &str = "PLAN_CASE";

fn cases() -> [ArraySpec; 4] {
    let camera = ArraySpec {
        shard: Some(vec![16, 512, 512]),
        codec: "zstd:1".parse().unwrap(),
        ..ArraySpec::new(vec![0, 512, 512], DataType::U16, vec![4, 128, 128])
    };
    let with_levels = ArraySpec { levels: Levels::Count(3), ..camera.clone() };
    let unpacked = ArraySpec { codec: "none".parse().unwrap(), ..camera.clone() };
    // More comes before a shard is whole than one slab holds.
    let of_large_shards = ArraySpec { shard: Some(vec![48, 512, 512]), ..with_levels.clone() };
    [camera, with_levels, unpacked, of_large_shards]
}

/// A process for each: what the allocator keeps of one array is used again by the next, and would not count as held by it.
#[test]
fn a_slow_store_fills_what_was_planned() {
    if let Ok(case) = env::var(CASE) {
        return fills_its_plan(&cases()[case.parse::<usize>().unwrap()]);
    }
    for case in 0..cases().len() {
        let mut again = Command::new(env::current_exe().unwrap());
        let again = again.args(["--exact", "a_slow_store_fills_what_was_planned"]).env(CASE, case.to_string());
        let ended = again.output().unwrap();
        let said = String::from_utf8_lossy(&ended.stdout);
        assert!(ended.status.success() && said.contains("1 passed"), "case {case}: {said}");
    }
}

fn fills_its_plan(spec: &ArraySpec) {
    let (held, planned) = held_and_planned(spec);
    let share = |bytes: u64| bytes as f64 / planned as f64;
    assert!(share(held.saturating_sub(BASE)) < 1.0 + OFF_MAX, "{held} held, {planned} planned: {spec:?}");
    assert!(share(held + BASE) > 1.0 - OFF_MAX, "{held} held, {planned} planned: {spec:?}");
}
