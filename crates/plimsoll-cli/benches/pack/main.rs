//! `plimsoll pack` and `unpack` beside zstd, pzstd, pigz, gzip and bgzip: ratio, speed, processor time and memory.
//!
//!     cargo bench -p plimsoll-cli --bench pack -- [--sizes 4096,1048576,16777216] [--rounds 3] [--levels 1,3,9,19] [--gzip-levels 1,6,9]
//!
//! Every side runs in a process of its own from file to file, one after the other, round by round; the best round of each
//! counts. Every output is unpacked again and compared. Add 268435456 to the sizes for the whole table.

mod corpus;
mod process;
mod sides;
mod summary;

use std::path::Path;

use corpus::KINDS;
use process::Measured;
use sides::Side;
use summary::Summary;

struct Options {
    sizes: Vec<usize>,
    rounds: usize,
    levels: Vec<i32>,
    gzip_levels: Vec<i32>,
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let options = Options::parse(&words);
    let folder = tempfile::tempdir().expect("a folder for files");
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    println!("{cores} cores, best of {} rounds; MB/s of unpacked bytes, from file to file\n", options.rounds);
    let mut summary = Summary::default();
    for kind in KINDS {
        for size in &options.sizes {
            let input = folder.path().join("input");
            std::fs::write(&input, kind.bytes(*size)).expect("written");
            for (sides, levels) in [(sides::ZSTD, &options.levels), (sides::GZIP, &options.gzip_levels)] {
                for level in levels {
                    cell(folder.path(), &input, kind.name, *size, *level, sides, options.rounds, &mut summary);
                }
            }
        }
    }
    summary.print();
}

#[expect(clippy::too_many_arguments, reason = "a cell of a table has that many coordinates")]
fn cell(
    folder: &Path,
    input: &Path,
    kind: &str,
    size: usize,
    level: i32,
    sides: &[Side],
    rounds: usize,
    summary: &mut Summary,
) {
    println!("{kind}, {size} bytes, level {level}");
    println!(
        "  {:<16} {:>8} {:>10} {:>12} {:>9} {:>12} {:>9}",
        "SIDE", "RATIO", "PACK MB/S", "MB/CPU S", "PEAK MIB", "UNPACK MB/S", "PEAK MIB"
    );
    let mut best: Vec<[Option<Measured>; 2]> = sides.iter().map(|_| [None, None]).collect();
    let mut ratios = vec![0.0; sides.len()];
    for _ in 0..rounds {
        for (at, side) in sides.iter().enumerate() {
            let (packed, back) = (folder.join("packed"), folder.join("back"));
            let measured =
                [process::measure(side.pack(input, &packed, level)), process::measure(side.unpack(&packed, &back))];
            assert!(std::fs::read(&back).ok() == std::fs::read(input).ok(), "{} gives other bytes", side.name);
            ratios[at] = size as f64 / std::fs::metadata(&packed).map_or(1, |file| file.len()) as f64;
            for (best, measured) in best[at].iter_mut().zip(measured) {
                if best.as_ref().is_none_or(|best| measured.seconds < best.seconds) {
                    *best = Some(measured);
                }
            }
        }
    }
    for ((side, best), ratio) in sides.iter().zip(&best).zip(&ratios) {
        let [Some(pack), Some(unpack)] = best else { continue };
        let speed = |measured: &Measured| size as f64 / 1e6 / measured.seconds;
        let mib = |measured: &Measured| measured.peak_bytes as f64 / f64::from(1 << 20);
        println!(
            "  {:<16} {ratio:>8.3} {:>10.1} {:>12.1} {:>9.1} {:>12.1} {:>9.1}",
            side.name,
            speed(pack),
            size as f64 / 1e6 / pack.cpu_seconds.max(1e-3),
            mib(pack),
            speed(unpack),
            mib(unpack)
        );
        summary.add(side.name, kind, size, level, *ratio, speed(pack), speed(unpack));
    }
}

impl Options {
    fn parse(words: &[String]) -> Self {
        let value = |flag: &str| words.iter().position(|word| word == flag).and_then(|at| words.get(at + 1));
        let list = |flag: &str, usual: &str| -> Vec<i64> {
            let text = value(flag).map_or(usual, |text| text.as_str());
            text.split(',').map(|number| number.parse().expect("numbers with commas between")).collect()
        };
        let levels = |flag, usual| list(flag, usual).into_iter().map(|level| level as i32).collect();
        Self {
            sizes: list("--sizes", "4096,1048576,16777216").into_iter().map(|size| size as usize).collect(),
            rounds: list("--rounds", "3")[0].max(1) as usize,
            levels: levels("--levels", "1,3,9,19"),
            gzip_levels: levels("--gzip-levels", "1,6,9"),
        }
    }
}
