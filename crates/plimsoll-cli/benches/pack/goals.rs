//! What was aimed at, and where it is missed, with the reason.

use crate::summary::{Cell, Summary, What, mean, worst};

/// Ours by a peer's is to be at least so much in every cell that it holds for.
struct Goal {
    says: &'static str,
    ours: &'static str,
    peer: &'static str,
    what: What,
    holds: fn(&Cell) -> bool,
    least: f64,
    /// Why cells are below, where they are.
    reason: &'static str,
}

const ALL: fn(&Cell) -> bool = |_| true;
const SMALL: fn(&Cell) -> bool = |cell| cell.size <= 64 << 10;
const LARGER: fn(&Cell) -> bool = |cell| cell.size > 64 << 10;
const MIDDLE: fn(&Cell) -> bool = |cell| (2 << 20..=16 << 20).contains(&cell.size);

const fn goal(says: &'static str, sides: (&'static str, &'static str), what: What, least: f64) -> Goal {
    Goal { says, ours: sides.0, peer: sides.1, what, holds: ALL, least, reason: "" }
}

const fn of(holds: fn(&Cell) -> bool, goal: Goal) -> Goal {
    Goal { holds, ..goal }
}

const fn because(reason: &'static str, goal: Goal) -> Goal {
    Goal { reason, ..goal }
}

const START: &str = "our program is 35 MB with 41,700 relocations: the loader writes 250 of its pages before our first line, and it starts \
     0.9 ms later than zstd, which has 1 MiB unpacked after 2 to 3";
const WHOLE: &str = "at 1 MiB the start; of 16 MiB we make two frames, and one thread starts, looks for the second and ends, while two \
     unpack";
const ONE_FRAME: &str = "one frame, which nothing can be unpacked beside: it is read and written beside as by stock tools, and started later";
const LITTLE: &str = "the seek table, 26 bytes, and the beginning of each frame or member weigh in a few KB; zlib at 9 looks further back";

const ZSTD: (&str, &str) = ("plimsoll", "zstd -T0");
const PZSTD: (&str, &str) = ("plimsoll", "pzstd");
const PIGZ: (&str, &str) = ("plimsoll gzip", "pigz");
const STOCK: (&str, &str) = ("plimsoll", "stock");

const GOALS: &[Goal] = &[
    because(LITTLE, goal("gzip packs better than pigz", PIGZ, What::Ratio, 1.0)),
    because(START, of(LARGER, goal("gzip packs faster than pigz", PIGZ, What::Pack, 1.0))),
    because(LITTLE, goal("zstd within 1 % of zstd -T0's ratio", ZSTD, What::Ratio, 0.99)),
    because(START, of(LARGER, goal("zstd as fast as zstd -T0", ZSTD, What::Pack, 1.0))),
    of(MIDDLE, goal("the same from 2 to 16 MiB", ZSTD, What::Pack, 1.0)),
    because(LITTLE, of(LARGER, goal("zstd within 1 % of pzstd's ratio", PZSTD, What::Ratio, 0.99))),
    because(START, of(LARGER, goal("zstd as fast as pzstd", PZSTD, What::Pack, 1.0))),
    because(WHOLE, of(LARGER, goal("our zstd files, 1.6 x zstd -d", STOCK, What::FileOf("plimsoll"), 1.6))),
    because(ONE_FRAME, of(LARGER, goal("files of zstd as fast as zstd -d", STOCK, What::FileOf("zstd -T0"), 1.0))),
    because(WHOLE, of(LARGER, goal("files of pzstd as fast as pzstd -d", STOCK, What::FileOf("pzstd"), 1.0))),
    because(START, of(LARGER, goal("files of gzip as fast as gzip -d", STOCK, What::FileOf("gzip"), 1.0))),
    because(START, of(LARGER, goal("files of pigz as fast as pigz -d", STOCK, What::FileOf("pigz"), 1.0))),
    because(WHOLE, of(LARGER, goal("files of bgzip as fast as bgzip -d", STOCK, What::FileOf("bgzip"), 1.0))),
    because(START, of(SMALL, goal("4 KiB: no more time than zstd", ZSTD, What::Pack, 1.0))),
    because(START, of(SMALL, goal("4 KiB: no more processor time than zstd", ZSTD, What::PackCpu, 1.0))),
    because(START, of(SMALL, goal("4 KiB unpacked: no more than zstd", ZSTD, What::Unpack, 1.0))),
    because(START, of(SMALL, goal("4 KiB: no more time than pigz", PIGZ, What::Pack, 1.0))),
];

pub(crate) fn print(summary: &Summary) {
    println!("\n{:<42} {:>5} {:>6} {:>8} {:>6}  {:<50} PROCESSOR", "GOAL", "AIM", "CELLS", "MEAN", "BELOW", "WORST");
    for goal in GOALS {
        let shares = goal.shares(summary, goal.what);
        if shares.is_empty() {
            continue;
        }
        let below = shares.iter().filter(|(share, _)| *share < goal.least).count();
        let (says, least, mean_of, worst_of) = (goal.says, goal.least, mean(&shares), worst(&shares));
        // The same in processor time, which says something on a busy machine too.
        let processor = goal.what.in_processor_time().map_or(String::new(), |what| {
            let shares = goal.shares(summary, what);
            format!("{:.3}x, {}", mean(&shares), worst(&shares))
        });
        println!("{says:<42} {least:>5.2} {:>6} {mean_of:>7.3}x {below:>6}  {worst_of:<50} {processor}", shares.len());
        if below > 0 && !goal.reason.is_empty() {
            println!("    {}", goal.reason);
        }
    }
}

impl Goal {
    fn shares(&self, summary: &Summary, what: What) -> Vec<(f64, Cell)> {
        let mut shares = summary.shares(self.ours, self.peer, what);
        shares.retain(|(_, cell)| (self.holds)(cell));
        shares
    }
}
