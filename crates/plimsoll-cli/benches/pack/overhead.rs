//! What the scheduler itself takes of the slots' time while a file is packed.

use std::path::Path;
use std::process::Command;

use crate::corpus::KINDS;
use crate::options::Options;

/// Blocks of a MiB. The goal is for 64 and more of them.
const BLOCKS: [usize; 2] = [64, 256];
/// The most that it may take.
const SHARE_MAX: f64 = 0.01;

pub(crate) fn measure(folder: &Path, options: &Options) {
    println!("\nscheduler's share of the slots' time, text in blocks of 1 MiB, level 1 (the least work a block)");
    for blocks in BLOCKS.iter().filter(|blocks| options.sizes.iter().any(|size| *size >= **blocks << 20)) {
        let (input, output) = (folder.join("input"), folder.join("packed"));
        std::fs::write(&input, KINDS[0].bytes(blocks << 20)).expect("written");
        let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
        command.args(["pack", "--json", "--force", "-l", "1", "--block", "1MiB", "-o"]).arg(&output).arg(&input);
        let ran = command.output().expect("it starts");
        assert!(ran.status.success(), "{command:?} failed");
        let said = String::from_utf8_lossy(&ran.stderr);
        let of = |name: &str| number(&said, name).unwrap_or_else(|| panic!("no {name} in {said}"));
        let all = of("slots") * of("elapsed_seconds");
        let (administration, handoff) = (of("administration_seconds") / all, of("handoff_seconds") / all);
        let verdict = if administration <= SHARE_MAX { "reached" } else { "MISSED" };
        println!(
            "  {blocks:>4} blocks: administration {:.3} %, opening and bringing {:.3} %; aim {:.0} %: {verdict}",
            administration * 100.0,
            handoff * 100.0,
            SHARE_MAX * 100.0
        );
    }
}

/// The number under this name.
fn number(said: &str, name: &str) -> Option<f64> {
    let (_, rest) = said.split_once(&format!("\"{name}\":"))?;
    rest[..rest.find([',', '}']).unwrap_or(rest.len())].trim().parse().ok()
}
