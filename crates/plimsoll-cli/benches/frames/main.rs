//! Frames per second of `plimsoll frames` on the CPU beside ffmpeg's filters and a plain loop, its memory over a long
//! stream, and how close several devices together come to the sum of them.
//!
//!     cargo bench -p plimsoll-cli --bench frames -- [--frames 150] [--rounds 3] [--long 10000]
//!
//! Every side runs in a process of its own, one after the other, round by round; the best round of each counts. What the
//! sides make of the frames is compared: who computes something else is no peer.

mod alike;
mod child;
mod long;
mod peers;
mod together;

use std::path::{Path, PathBuf};

use child::Measured;
use peers::Side;

/// The chain, as we write it and as ffmpeg does.
pub(crate) const CHAIN: &str = "scale=1280x720:bicubic,blur=2";
pub(crate) const CHAIN_OF_FFMPEG: &str = "scale=1280:720:flags=bicubic,gblur=sigma=2";
/// What our side must reach against ffmpeg.
const TARGET: f64 = 1.0;

struct Options {
    frames: usize,
    rounds: usize,
    long: usize,
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    if let [flag, input] = words.as_slice()
        && flag == "--plain-loop"
    {
        return peers::plain_loop(Path::new(input));
    }
    let options = Options::parse(&words);
    let folder = tempfile::tempdir().expect("a folder for frames");
    let input = peers::make_input(folder.path(), options.frames);
    compare(&options, &input);
    together::show();
    long::show(options.long);
}

fn compare(options: &Options, input: &Path) {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let Options { frames, rounds, .. } = options;
    println!("{frames} frames of 1920x1080 yuv420, 8 bit, {CHAIN}; {cores} cores, best of {rounds} rounds\n");
    let mut best: Vec<Option<Measured>> = vec![None; Side::ALL.len()];
    for _ in 0..*rounds {
        for (side, best) in Side::ALL.iter().zip(&mut best) {
            let measured = side.measure(input);
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
    let ratio = ffmpeg / best[2].seconds;
    let verdict = if ratio >= TARGET { "reached" } else { "BELOW" };
    println!("\naim: at least {TARGET:.1}x ffmpeg: {ratio:.2}x, {verdict}");
    println!("{}", alike::compare(&best[0].output, &best[2].output));
}

impl Options {
    fn parse(words: &[String]) -> Self {
        let value = |flag: &str| words.iter().position(|word| word == flag).and_then(|at| words.get(at + 1));
        let number = |flag: &str, usual: usize| value(flag).map_or(usual, |text| text.parse().expect("a number"));
        Self { frames: number("--frames", 150), rounds: number("--rounds", 3), long: number("--long", 10_000) }
    }
}

/// The binary under test, as cargo built it for this benchmark.
pub(crate) fn plimsoll() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_plimsoll"))
}
