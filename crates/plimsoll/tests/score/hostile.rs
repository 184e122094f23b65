//! Hostile files through a sweep: damaged, truncated, lying about their size, changed under our feet, no files at all. Each
//! gives one row, the good ones among them their score, and no memory beyond the line is promised. CI runs a few with fixed
//! seeds; `cargo xtask campaign score` runs as many as one likes.

use std::fs;
use std::path::{Path, PathBuf};

use plimsoll::Bytes;
use plimsoll::image::metrics::Metric;
use plimsoll::score::SweepOptions;

use crate::made::{Folder, cores, pixmap, scored};

/// Files of one run.
const ROUNDS: u64 = 400;
/// Files of one sweep: a good one stands among so many.
const SWEEP: u64 = 40;
/// Enough for the good ones many times over; far less than the lying ones ask for.
const MEMORY: Bytes = Bytes::mib(64);

fn rounds() -> u64 {
    std::env::var("PLIMSOLL_CAMPAIGN_ROUNDS").map_or(ROUNDS, |rounds| rounds.parse().expect("a number of rounds"))
}

/// xorshift64*: the same on every machine.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % limit.max(1)
    }
}

/// One file of each format that the repository has, all of one picture.
fn samples() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples/variants");
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).expect("the sample images").map(|entry| entry.expect("readable").path()).collect();
    paths.sort();
    let mut kinds = Vec::new();
    paths.retain(|path| {
        let kind = path.extension().map(ToOwned::to_owned);
        let is_new = !kinds.contains(&kind);
        kinds.push(kind);
        is_new
    });
    let made = pixmap((48, 32), 5);
    paths.iter().map(|path| fs::read(path).expect("readable")).chain([made]).collect()
}

/// A file made worse in one of the ways that files are.
fn hostile(samples: &[Vec<u8>], dice: &mut Dice) -> Vec<u8> {
    let mut bytes = samples[dice.below(samples.len())].clone();
    match dice.below(7) {
        0 => bytes.truncate(dice.below(bytes.len())),
        // Damage in the header weighs most, so it is hit most.
        1 | 2 => (0..=dice.below(6)).for_each(|_| {
            let at = dice.below(bytes.len().min(600));
            bytes[at] = dice.below(256) as u8;
        }),
        3 => (0..=dice.below(20)).for_each(|_| {
            let at = dice.below(bytes.len());
            bytes[at] ^= 1 << dice.below(8);
        }),
        4 => {
            let at = dice.below(bytes.len());
            let end = (at + 1 + dice.below(4096)).min(bytes.len());
            bytes.drain(at..end);
        }
        5 => {
            let other = &samples[dice.below(samples.len())];
            let (at, from) = (dice.below(bytes.len()), dice.below(other.len()));
            bytes.truncate(at);
            bytes.extend_from_slice(&other[from..]);
        }
        // A header that asks for far more than there is.
        _ => {
            let side = [0_u32, 1, 0x7fff_ffff, 60_000, 16_384][dice.below(5)];
            bytes = [format!("P6\n{side} {}\n255\n", dice.below(1 << 20)).into_bytes(), bytes].concat();
        }
    }
    bytes
}

#[test]
fn a_sweep_survives_hostile_files_and_scores_the_good_ones_among_them() {
    let folder = Folder::new();
    let samples = samples();
    let reference = folder.write("reference", &samples[samples.len() - 1]);
    let good = folder.picture("good", (48, 32), 9);
    let orchestrator = cores(MEMORY);
    for sweep in 0..rounds().div_ceil(SWEEP) {
        let seeds = sweep * SWEEP..(sweep + 1) * SWEEP;
        let mut files: Vec<PathBuf> = seeds
            .clone()
            .map(|seed| {
                let mut dice = Dice((seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
                folder.write(&format!("hostile-{}", seed % SWEEP), &hostile(&samples, &mut dice))
            })
            .collect();
        files.push(good.clone());
        files.extend([folder.at("missing"), folder.at("."), PathBuf::from("/dev/zero")]);
        let all = scored(&orchestrator, SweepOptions::of([Metric::Psnr, Metric::Ssim]), &reference, &files);
        assert_eq!(all.len(), files.len(), "seeds {seeds:?}: a row for each file, once");
        for (at, scored) in all.iter().enumerate() {
            let told = scored.outcome.as_ref().map_or_else(ToString::to_string, |_| String::from("scored"));
            assert!(!told.contains("panicked"), "seed {}: {told}", seeds.start + at as u64);
        }
        let scores = all[SWEEP as usize].outcome.as_ref();
        let scores = scores.unwrap_or_else(|error| panic!("seeds {seeds:?}: the good file failed: {error}"));
        assert!(scores.failures().is_none(), "seeds {seeds:?}: {:?}", scores.failures());
        drop(all);
        let peak = orchestrator.reports()[0].promised_peak;
        assert!(peak <= MEMORY, "seeds {seeds:?}: {peak} promised");
    }
}
