//! `plimsoll pack` and `unpack` beside zstd, pzstd, pigz, bgzip and libdeflate: ratio, speed, processor time and memory.
//!
//!     cargo bench -p plimsoll-cli --bench pack -- [--quick | --all] [--kinds text,binary] [--sizes 4096,16777216]
//!         [--levels 1,3,9,19 | none] [--gzip-levels 1,6,9 | none] [--rounds 3] [--minutes 25]
//!
//! Every side runs in a process of its own from file to new file, one after the other, round by round; the least time and the
//! least processor time of each count, and smaller files get more rounds. Every output is unpacked again and compared.
//! `--all` adds 256 MiB at level 19, after everything else; `--quick` is text and noise of 1 MiB, at usual levels. After
//! `--minutes` no cell is begun, and no further round of one: small sizes come first, and what was left out is said. On a busy
//! machine only ratios, processor time and memory say something.
//!
//! | file | what it owns |
//! |---|---|
//! | `options.rs` | which cells, how many rounds |
//! | `corpus.rs` | bytes to pack |
//! | `sides.rs` | how each program is called |
//! | `libdeflate.rs` | libdeflate as a program |
//! | `cell.rs` | one input at one level on every side |
//! | `readers.rs` | files of every program, unpacked by us and by the stock tool |
//! | `process.rs` | a process to its end |
//! | `summary.rs` | geometric means and worst rows |
//! | `goals.rs` | what was aimed at, where it is missed, and why |
//! | `overhead.rs` | what the scheduler itself takes |

mod cell;
mod corpus;
mod goals;
mod libdeflate;
mod options;
mod overhead;
mod process;
mod readers;
mod sides;
mod summary;

use std::path::Path;

use corpus::Kind;
use options::Options;
use summary::Summary;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    if let Some(("--as-libdeflate", rest)) = words.split_first().map(|(first, rest)| (first.as_str(), rest)) {
        return libdeflate::run(rest);
    }
    let options = Options::parse(&words);
    let folder = tempfile::tempdir().expect("a folder for files");
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    println!("{cores} cores; MB/s of unpacked bytes, from file to file, the best round of each\n");
    let mut summary = Summary::default();
    overhead::measure(folder.path(), &options);
    for is_slow in [false, true] {
        for size in &options.sizes {
            for kind in options.kinds() {
                measure(kind, *size, is_slow, &options, folder.path(), &mut summary);
            }
        }
    }
    summary.print();
    goals::print(&summary);
    println!("\n{:.1} minutes", options.elapsed().as_secs_f64() / 60.0);
}

/// Every level of one input, those that take minutes or the others.
fn measure(kind: &Kind, size: usize, is_slow: bool, options: &Options, folder: &Path, summary: &mut Summary) {
    let levels = |levels: &[i32]| -> Vec<i32> {
        levels.iter().copied().filter(|level| options.takes(size, *level, is_slow)).collect()
    };
    let (zstd, gzip) = (levels(&options.levels), levels(&options.gzip_levels));
    if is_slow && zstd.is_empty() && gzip.is_empty() {
        return;
    }
    if options.is_over() {
        println!("{}, {size} bytes: LEFT OUT, the time is over\n", kind.name);
        return;
    }
    let input = folder.join("input");
    std::fs::write(&input, kind.bytes(size)).expect("written");
    let place = cell::Place { folder, input: &input, kind: kind.name, size };
    for (sides, levels) in [(sides::ZSTD, zstd), (sides::GZIP, gzip)] {
        for level in levels {
            match options.is_over() {
                true => println!("{}, {size} bytes, level {level}: LEFT OUT, the time is over\n", kind.name),
                false => cell::measure(&place, level, sides, options, summary),
            }
        }
    }
    if !is_slow && !options.is_over() {
        readers::measure(&place, options, summary);
    }
}
