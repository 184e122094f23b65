//! Models in fragments beside their peers, in one run: pack and restore in GB/s and bytes a weight beside safetensors with
//! zstd and plain int8 and int4 files; memory to a device as a share of memcpy, disk to memory as a share of `cat`.
//! `cargo bench -p plimsoll-cli --bench fragments [-- MILLION_WEIGHTS [moves]]`; `moves` leaves out all but the last two.

#[path = "../../../plimsoll-fragments/tests/weights/mod.rs"]
#[allow(dead_code, reason = "only what makes weights is of use here")]
mod weights;

mod moves;
mod peers;

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plimsoll::Orchestrator;
use plimsoll::fragments::{FragmentFile, Fragments, FragmentsWatch, PackSpec, pack_file, restore_file};
use plimsoll::machine::{GpuUse, Machine, MachineOptions};
use weights::Kind;

/// Rounds of each row; the best counts, so that a busy machine slows all alike.
const ROUNDS: usize = 7;

/// How long something took: by the clock, and of all processors together, which a busy machine changes less.
#[derive(Copy, Clone, Debug)]
struct Took {
    wall: Duration,
    processor: Duration,
}

/// What this process and its children spent so far.
#[expect(unsafe_code, reason = "there is no safe call for it among our dependencies")]
fn processor() -> Duration {
    let of = |who| {
        // SAFETY: a structure of plain numbers that the call fills.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: it is valid for writing.
        assert_eq!(unsafe { libc::getrusage(who, &raw mut usage) }, 0, "the kernel counts for its processes");
        let time = |time: libc::timeval| Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1_000);
        time(usage.ru_utime) + time(usage.ru_stime)
    };
    of(libc::RUSAGE_SELF) + of(libc::RUSAGE_CHILDREN)
}

fn once(work: &mut dyn FnMut()) -> Took {
    let (begun, before) = (Instant::now(), processor());
    work();
    Took { wall: begun.elapsed(), processor: processor() - before }
}

/// The best of a few rounds of each, in turns.
fn in_turns<const N: usize>(mut works: [&mut dyn FnMut(); N]) -> [Took; N] {
    let mut best = works.each_mut().map(|work| once(*work));
    for _ in 1..ROUNDS {
        for (best, work) in best.iter_mut().zip(&mut works) {
            let took = once(*work);
            *best = Took { wall: best.wall.min(took.wall), processor: best.processor.min(took.processor) };
        }
    }
    best
}

/// The best of a few rounds.
fn best(mut work: impl FnMut()) -> Took {
    in_turns([&mut work])[0]
}

/// By the clock, and for each second of a processor.
fn gb_a_second(bytes: u64, took: Took) -> [f64; 2] {
    [took.wall, took.processor].map(|time| bytes as f64 / time.as_secs_f64().max(1e-6) / 1e9)
}

/// A model of weights as language models have them, in bfloat16.
fn model(path: &Path, count: usize) -> u64 {
    let bytes: Vec<u8> = Kind::OutlierChannels
        .weights(count, 1)
        .iter()
        .flat_map(|x| ((x.to_bits() + 0x8000) >> 16).to_le_bytes()[..2].to_vec())
        .collect();
    let header = format!("{{\"w\":{{\"dtype\":\"BF16\",\"shape\":[{count}],\"data_offsets\":[0,{}]}}}}", bytes.len());
    let file = [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &bytes].concat();
    fs::write(path, &file).expect("the model is written");
    file.len() as u64
}

fn row(name: &str, bytes: u64, weights: usize, pack: [f64; 2], restore: [f64; 2]) {
    let both = |[wall, processor]: [f64; 2]| format!("{wall:>6.3} GB/s ({processor:>6.3})");
    println!(
        "{name:<22} {:>6.3} bytes a weight, pack {}, restore {}",
        bytes as f64 / weights as f64,
        both(pack),
        both(restore)
    );
}

fn main() {
    let count = std::env::args().skip(1).find_map(|word| word.parse::<usize>().ok()).unwrap_or(32) * 1_000_000;
    let folder = tempfile::tempdir().expect("a folder");
    let input = folder.path().join("model.safetensors");
    let raw = model(&input, count);
    let options = MachineOptions { gpus: GpuUse::WithSoftware, ..MachineOptions::default() };
    let orchestrator = Arc::new(Orchestrator::builder().devices(Machine::open(&options).devices).build());
    println!(
        "{count} weights in bfloat16, {} MB, best of {ROUNDS}; GB/s of the safetensors file (for each second of a processor)",
        raw / 1_000_000
    );

    let (packed, restored) = (folder.path().join("model.frags"), folder.path().join("again.safetensors"));
    let mut pack = || {
        drop(
            pack_file(&orchestrator, &input, &packed, &PackSpec::default(), true, &FragmentsWatch::default())
                .expect("packed"),
        )
    };
    let moves_alone = std::env::args().any(|word| word == "moves");
    let pack = if moves_alone { once(&mut pack) } else { best(pack) };
    let file = Arc::new(FragmentFile::open(&packed).expect("it is a file of fragments"));
    if moves_alone {
        return moves::rows(&orchestrator, &packed, &file);
    }
    let index = file.model().index.clone();
    let from: Arc<dyn Fragments> = Arc::clone(&file) as Arc<dyn Fragments>;
    for (name, quality) in [
        ("fragments, exact", 1.0),
        ("fragments, 8 bits", index.tensors[0].quality(4)),
        ("fragments, 4 bits", index.tensors[0].quality(2)),
    ] {
        let restore = best(|| {
            restore_file(&orchestrator, &from, &index, &restored, quality, true, &FragmentsWatch::default())
                .expect("restored");
        });
        let bytes = index.fragments_for(quality).iter().map(|fragment| fragment.bytes).sum();
        row(name, bytes, count, gb_a_second(raw, pack), gb_a_second(raw, restore));
    }
    peers::rows(&input, folder.path(), count, raw);
    moves::rows(&orchestrator, &packed, &file);
}
