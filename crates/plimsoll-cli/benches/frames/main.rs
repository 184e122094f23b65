//! Speed of `plimsoll frames` on the CPU beside ffmpeg's filters, operation by operation; one chain beside a plain loop,
//! too; its memory over a long stream, and how close several devices together come to the sum of them.
//!
//!     cargo bench -p plimsoll-cli --bench frames -- [--frames 120] [--rounds 3] [--long 10000] [--rows blur,crop]
//!
//! Every side runs in a process of its own, one after the other, round by round; the best round of each counts. What the
//! sides make of the frames is compared: who computes something else is no peer. With `--rows` only rows whose names
//! begin so are run, and nothing else.

mod alike;
mod child;
mod long;
mod peers;
mod rows;
mod table;
mod together;

use std::path::{Path, PathBuf};

use child::Measured;
use peers::{Chains, Side};

/// The chain that a plain loop runs too.
const CHAINS: Chains =
    Chains { ours: "scale=1280x720:bicubic,blur=2", theirs: "scale=1280:720:flags=bicubic,gblur=sigma=2" };
/// Below this the sides do not do the same.
const PSNR_MIN: f64 = 34.0;
/// What our side must reach against ffmpeg.
pub(crate) const TARGET: f64 = 1.0;

pub(crate) struct Options {
    pub(crate) frames: usize,
    pub(crate) rounds: usize,
    long: usize,
    pub(crate) rows: Vec<String>,
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    if let [flag, chain, input] = words.as_slice()
        && flag == "--plain-loop"
    {
        return peers::plain_loop(chain, Path::new(input));
    }
    let options = Options::parse(&words);
    let folder = tempfile::tempdir().expect("a folder for frames");
    let inputs = table::Input::ALL.map(|input| peers::make_input(folder.path(), input, options.frames));
    peers::make_logo(folder.path());
    rows::show(&options, &inputs);
    if options.rows.is_empty() {
        compare(&options, &inputs[0]);
        together::show();
        long::show(options.long);
    }
}

fn compare(options: &Options, input: &Path) {
    let Options { frames, rounds, .. } = options;
    println!("\n{}; best of {rounds} rounds", CHAINS.ours);
    let mut best: [Option<Measured>; Side::ALL.len()] = Default::default();
    for _ in 0..*rounds {
        for (side, best) in Side::ALL.iter().zip(&mut best) {
            let measured = side.measure(CHAINS, input);
            if best.as_ref().is_none_or(|best| measured.seconds < best.seconds) {
                *best = Some(measured);
            }
        }
    }
    let best: Vec<Measured> = best.into_iter().flatten().collect();
    let ffmpeg = best[0].seconds;
    println!("{:<34} {:>9} {:>9} {:>10} {:>14}", "SIDE", "FRAMES/S", "CPU MS", "PEAK", "BESIDE FFMPEG");
    for (side, measured) in Side::ALL.iter().zip(&best) {
        let rate = *frames as f64 / measured.seconds;
        let each = 1e3 * measured.cpu_seconds / *frames as f64;
        let peak = measured.peak_bytes as f64 / f64::from(1 << 20);
        println!("{:<34} {rate:>9.1} {each:>9.2} {peak:>6.0} MiB {:>13.2}x", side.name(), ffmpeg / measured.seconds);
    }
    let worst = alike::worst_psnr(&best[0].output, &best[2].output, false);
    assert!(worst >= PSNR_MIN, "the sides make different frames: {worst:.1} dB apart");
}

impl Options {
    fn parse(words: &[String]) -> Self {
        let value = |flag: &str| words.iter().position(|word| word == flag).and_then(|at| words.get(at + 1));
        let number = |flag: &str, usual: usize| value(flag).map_or(usual, |text| text.parse().expect("a number"));
        let rows = value("--rows").map(|text| text.split(',').map(str::to_owned).collect());
        Self {
            frames: number("--frames", 120),
            rounds: number("--rounds", 3),
            long: number("--long", 10_000),
            rows: rows.unwrap_or_default(),
        }
    }
}

/// The binary under test, as cargo built it for this benchmark.
pub(crate) fn plimsoll() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_plimsoll"))
}
