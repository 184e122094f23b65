//! The table: each operation on both sides, in processor time and in time.

use std::path::PathBuf;

use crate::alike::worst_psnr;
use crate::child::Measured;
use crate::peers::{Chains, Side};
use crate::table::{Input, ROWS, Row};
use crate::{Options, TARGET};

/// How many times faster than ffmpeg a row is.
#[derive(Copy, Clone)]
struct Ratios {
    cpu: f64,
    wall: f64,
}

/// The best of some rounds: least processor time, and least time.
#[derive(Default)]
struct Best {
    cpu: Option<f64>,
    wall: Option<f64>,
    output: Vec<u8>,
}

impl Best {
    fn take(&mut self, measured: Measured) {
        let least = |best: Option<f64>, new: f64| Some(best.map_or(new, |best| best.min(new)));
        (self.cpu, self.wall) = (least(self.cpu, measured.cpu_seconds), least(self.wall, measured.seconds));
        self.output = measured.output;
    }
}

/// Prints the table and what it comes to.
pub(crate) fn show(options: &Options, inputs: &[PathBuf; Input::ALL.len()]) {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let Options { frames, rounds, .. } = options;
    println!("{frames} frames of 1920x1080 or as many pixels, yuv420; {cores} cores, best of {rounds} rounds\n");
    println!(
        "{:<17} {:>9} {:>9} {:>7} {:>9} {:>9} {:>7} {:>8} {:>6}",
        "ROW", "CPU MS", "FFMPEG", "RATIO", "WALL MS", "FFMPEG", "RATIO", "PSNR", "FLOOR"
    );
    let is_asked = |row: &&Row| options.rows.is_empty() || options.rows.iter().any(|name| row.name.starts_with(name));
    let ratios: Vec<(&str, Ratios)> =
        ROWS.iter().filter(is_asked).map(|row| (row.name, measure(options, inputs, row))).collect();
    let tell = |what: &str, of: fn(&Ratios) -> f64| {
        let mean = (ratios.iter().map(|(_, ratios)| of(ratios).ln()).sum::<f64>() / ratios.len() as f64).exp();
        let worst = ratios.iter().min_by(|(_, a), (_, b)| of(a).total_cmp(&of(b)));
        let (name, ratios) = worst.expect("there are rows");
        let verdict = if of(ratios) >= TARGET { "reached" } else { "BELOW" };
        println!("{what}: geometric mean {mean:.2}x, worst {:.2}x ({name}); aim {TARGET:.1}x: {verdict}", of(ratios));
    };
    println!();
    tell("processor time beside ffmpeg", |ratios| ratios.cpu);
    tell("time beside ffmpeg", |ratios| ratios.wall);
}

fn measure(options: &Options, inputs: &[PathBuf; Input::ALL.len()], row: &Row) -> Ratios {
    let chains = Chains { ours: row.ours, theirs: row.theirs };
    let (mut ours, mut theirs) = (Best::default(), Best::default());
    for _ in 0..options.rounds {
        theirs.take(Side::Ffmpeg.measure(chains, &inputs[row.input as usize]));
        ours.take(Side::Ours.measure(chains, &inputs[row.input as usize]));
    }
    let psnr = worst_psnr(&ours.output, &theirs.output, row.luma_only);
    let each = 1e3 / row.input.frames(options.frames) as f64;
    let figures = [ours.cpu, theirs.cpu, ours.wall, theirs.wall].map(|seconds| seconds.unwrap_or(f64::NAN) * each);
    let [our_cpu, their_cpu, our_wall, their_wall] = figures;
    let ratios = Ratios { cpu: their_cpu / our_cpu, wall: their_wall / our_wall };
    println!(
        "{:<17} {our_cpu:>9.2} {their_cpu:>9.2} {:>6.2}x {our_wall:>9.2} {their_wall:>9.2} {:>6.2}x {psnr:>8.1} {:>6.1}",
        row.name, ratios.cpu, ratios.wall, row.psnr_min
    );
    if ratios.cpu.min(ratios.wall) < TARGET && !row.reason.is_empty() {
        println!("{:<17} {}", "", row.reason);
    }
    assert!(psnr >= row.psnr_min, "{}: the sides make different frames", row.name);
    ratios
}
