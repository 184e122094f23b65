//! Scores of one reference and many variants at one megapixel on the CPU, beside the plain crates and published tools.
//!
//!     cargo bench -p plimsoll-cli --bench score -- [--variants 100] [--rounds 2] [--metric ssim2,…] [--no-tools]
//!
//! Every side runs in a process of its own, one after the other, round by round; the best round of each counts. Scores
//! of the crates are compared, and the largest difference is printed: who computes something else is no peer. The tools
//! print scores in forms of their own, which are not read.

mod peers;
mod pictures;
mod side;
mod tools;

use std::collections::BTreeMap;

use side::{Measured, Side};

/// What each metric must reach against a loop over the plain crate, one image per core.
const TARGETS: [(&str, f64); 4] = [("ssim2", 1.2), ("butteraugli", 2.0), ("dssim", 1.7), ("zensim", 1.1)];
/// Scores of two sides may differ by this much of the larger.
const ALIKE: f64 = 2e-3;
/// The same for ssim2: the crate adds up rounding errors over whole rows as the original tool does, see CORRECTNESS.md.
const ALIKE_SSIM2: f64 = 2e-2;

pub(crate) struct Options {
    variants: usize,
    rounds: usize,
    metrics: Vec<String>,
    tools: bool,
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    if let [flag, side, metric, variants] = words.as_slice()
        && flag == "--side"
    {
        return side::run_here(side, metric, variants.parse().expect("a number"));
    }
    let options = Options::parse(&words);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    println!(
        "1 reference x {} variants of 1024x1024, {cores} cores, best of {} rounds",
        options.variants, options.rounds
    );
    compare_with_crates(&options, cores);
    if options.tools {
        tools::compare(&options, cores);
    }
}

fn compare_with_crates(options: &Options, cores: usize) {
    println!("\n{:<12} {:<28} {:>9} {:>8} {:>10} {:>7}", "METRIC", "SIDE", "IMAGES/S", "BUSY", "PEAK", "RATIO");
    for metric in &options.metrics {
        let mut best: BTreeMap<Side, Measured> = BTreeMap::new();
        for _ in 0..options.rounds {
            for side in Side::ALL {
                let measured = side.measure(metric, options.variants);
                best.entry(side).and_modify(|best| best.keep_better(&measured)).or_insert(measured);
            }
        }
        let [plain, prepared, ours] = Side::ALL.map(|side| &best[&side]);
        let apart =
            [plain, prepared].map(|peer| largest_difference(metric, peer, ours)).into_iter().fold(0.0, f64::max);
        let target = TARGETS.iter().find(|(name, _)| name == metric).map_or(1.0, |(_, target)| *target);
        let print = |side: &str, measured, ratio: String| {
            print_side(metric, side, measured, options.variants, cores, ratio);
        };
        let name = peers::name(metric);
        print(&format!("rayon, {name}"), plain, format!("{:.2}x", plain.seconds / ours.seconds));
        print("the same, prepared once", prepared, format!("{:.2}x", prepared.seconds / ours.seconds));
        // The peer at its best: it is a question of the API alone which of its calls is used.
        let ratio = plain.seconds.min(prepared.seconds) / ours.seconds;
        let verdict = if ratio >= target { "" } else { "  (below)" };
        print("plimsoll, rung cpu", ours, format!("{ratio:.2}x of {target}x{verdict}"));
        println!("{metric:<12} largest difference of two scores, as a share of the larger: {apart:.6}");
    }
}

fn print_side(metric: &str, side: &str, measured: &Measured, variants: usize, cores: usize, ratio: String) {
    let rate = variants as f64 / measured.seconds;
    let busy = 100.0 * measured.cpu_seconds / (measured.seconds * cores as f64);
    let peak = measured.peak_bytes as f64 / f64::from(1 << 20);
    println!("{metric:<12} {side:<28} {rate:>9.2} {busy:>7.1}% {peak:>6.0} MiB {ratio:>7}");
}

/// How far the scores of the two sides are apart at most. Ends the benchmark if that is too far.
fn largest_difference(metric: &str, plain: &Measured, ours: &Measured) -> f64 {
    let mut largest = 0.0_f64;
    for (at, (a, b)) in plain.scores.iter().zip(&ours.scores).enumerate() {
        // Of the scores themselves: those of dssim are thousandths, and beside 1 anything would be alike.
        let apart = (a - b).abs() / a.abs().max(b.abs());
        let most = if metric == "ssim2" { ALIKE_SSIM2 } else { ALIKE };
        assert!(apart < most, "{metric} of variant {at}: {a} by the plain crate, {b} here");
        largest = largest.max(apart);
    }
    largest
}

impl Options {
    fn parse(words: &[String]) -> Self {
        let value = |flag: &str| words.iter().position(|word| word == flag).and_then(|at| words.get(at + 1));
        let number = |flag: &str, usual: usize| value(flag).map_or(usual, |text| text.parse().expect("a number"));
        let usual = TARGETS.map(|(name, _)| name).join(",");
        Self {
            variants: number("--variants", 100),
            rounds: number("--rounds", 2),
            metrics: value("--metric").unwrap_or(&usual).split(',').map(str::to_owned).collect(),
            tools: !words.iter().any(|word| word == "--no-tools"),
        }
    }
}
