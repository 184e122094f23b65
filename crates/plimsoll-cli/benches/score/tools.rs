//! Published command-line tools, run once for each image as their users do, two at a time; and `plimsoll score` once
//! for all of them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use rayon::prelude::*;

use crate::{Options, pictures};

/// A tool, the crate it comes in, and how it is called.
struct Tool {
    metric: &'static str,
    package: &'static str,
    version: &'static str,
    binary: &'static str,
    words: &'static [&'static str],
    /// How many times as fast `plimsoll score` must be.
    target: f64,
}

const TOOLS: [Tool; 3] = [
    Tool {
        metric: "ssim2",
        package: "ssimulacra2_rs",
        version: "0.5.2",
        binary: "ssimulacra2_rs",
        words: &["image"],
        target: 4.0,
    },
    Tool {
        metric: "butteraugli",
        package: "butteraugli-cli",
        version: "0.9.3",
        binary: "butteraugli",
        words: &[],
        target: 1.0,
    },
    Tool { metric: "dssim", package: "dssim", version: "3.5.1", binary: "dssim", words: &[], target: 1.0 },
];

/// Compares with each tool that can be had.
pub(crate) fn compare(options: &Options, cores: usize) {
    let folder = tempfile::tempdir().expect("a folder for pictures");
    let (reference, variants) = write_pictures(folder.path(), options.variants);
    println!("\n{:<12} {:<28} {:>9} {:>7}   PNG files, decoding included", "METRIC", "SIDE", "IMAGES/S", "RATIO");
    for tool in TOOLS.iter().filter(|tool| options.metrics.iter().any(|metric| metric == tool.metric)) {
        let binary = match tool.installed() {
            Ok(binary) => binary,
            Err(why) => {
                println!("{:<12} {:<28} not measured: {why}", tool.metric, tool.package);
                continue;
            }
        };
        let theirs = fastest(options.rounds, || tool.run_on(&binary, &reference, &variants, cores));
        let ours = fastest(options.rounds, || run_plimsoll(tool.metric, &reference, &variants));
        let (count, ratio) = (variants.len() as f64, theirs / ours);
        println!("{:<12} {:<28} {:>9.2}", tool.metric, format!("{} {}", tool.binary, tool.version), count / theirs);
        let verdict = if ratio >= tool.target { "" } else { "  (below)" };
        let shown = format!("{ratio:.2}x of {}x{verdict}", tool.target);
        println!("{:<12} {:<28} {:>9.2} {shown:>7}", tool.metric, "plimsoll score", count / ours);
    }
}

fn fastest(rounds: usize, mut run: impl FnMut() -> f64) -> f64 {
    (0..rounds).map(|_| run()).fold(f64::INFINITY, f64::min)
}

impl Tool {
    /// The tool's program, built into the target folder the first time.
    fn installed(&self) -> Result<PathBuf, String> {
        let root = peers_folder();
        let binary = root.join("bin").join(self.binary);
        if binary.is_file() {
            return Ok(binary);
        }
        println!("installing {} {} into {}", self.package, self.version, root.display());
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo
            .args(["install", "--quiet", "--locked", "--version", self.version, "--root"])
            .arg(&root)
            .arg(self.package);
        // Video input wants libraries that few machines have; images need none.
        cargo.arg("--no-default-features");
        let output = cargo.output().map_err(|error| error.to_string())?;
        let told = String::from_utf8_lossy(&output.stderr);
        let reason = || told.lines().find(|line| line.starts_with("error")).unwrap_or("it does not build").to_owned();
        if output.status.success() && binary.is_file() { Ok(binary) } else { Err(reason()) }
    }

    /// Seconds for all variants, one process each, as many at a time as there are cores. The first failure ends it.
    fn run_on(&self, binary: &Path, reference: &Path, variants: &[PathBuf], cores: usize) -> f64 {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(cores).build().expect("threads");
        let start = Instant::now();
        let run = |variant: &PathBuf| {
            let output = Command::new(binary)
                .args(self.words)
                .args([reference, variant])
                // One image per core, so one thread per image.
                .env("RAYON_NUM_THREADS", "1")
                .output()
                .expect("it starts");
            let said = || format!("{}: {}", self.binary, String::from_utf8_lossy(&output.stderr));
            if output.status.success() { Ok(()) } else { Err(said()) }
        };
        pool.install(|| variants.par_iter().try_for_each(run)).expect("the tool compares what we do");
        start.elapsed().as_secs_f64()
    }
}

fn run_plimsoll(metric: &str, reference: &Path, variants: &[PathBuf]) -> f64 {
    let start = Instant::now();
    let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
    command.args(["score", "--device", "cpu", "--rung", "cpu", "--format", "csv", "--metric", metric]);
    let output = command.arg(reference).args(variants).output().expect("it starts");
    assert!(output.status.success(), "plimsoll: {}", String::from_utf8_lossy(&output.stderr));
    start.elapsed().as_secs_f64()
}

fn peers_folder() -> PathBuf {
    let target = Path::new(env!("CARGO_BIN_EXE_plimsoll")).ancestors().nth(2).expect("it lies in a target folder");
    target.join("peers")
}

fn write_pictures(folder: &Path, variants: usize) -> (PathBuf, Vec<PathBuf>) {
    let samples = pictures::reference();
    let write = |name: String, samples: &[u8]| {
        let path = folder.join(name);
        let side = pictures::SIDE;
        image::save_buffer(&path, samples, side, side, image::ExtendedColorType::Rgb8).expect("room for pictures");
        path
    };
    let reference = write("reference.png".to_owned(), &samples);
    let variant = |number: usize| write(format!("variant-{number}.png"), &pictures::variant(&samples, number));
    (reference, (0..variants).map(variant).collect())
}
