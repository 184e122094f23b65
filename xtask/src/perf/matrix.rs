//! The rows: what is measured. A new one is one more line here.

use super::inputs::Input;
use super::judge::Figure;
use super::options::Options;

/// One command on one input, on either side.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    /// Takes so little time that a quick look has it too.
    pub(crate) is_quick: bool,
    pub(crate) program: Program,
    pub(crate) input: Input,
    /// `{in}` and `{out}` are its files.
    pub(crate) words: &'static [&'static str],
    pub(crate) reads: &'static [Reads],
    /// Rounds at the most, for what is always the same or makes rounds of its own.
    pub(crate) rounds_max: usize,
    /// Somebody else's program that does the same, if it is installed.
    pub(crate) peer: Option<Peer>,
}

/// Which of a revision's programs.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    /// `plimsoll`.
    Cli,
    /// The bench `small_tasks`.
    SmallTasks,
}

/// Somebody else's way.
#[derive(Copy, Clone)]
pub(crate) struct Peer {
    pub(crate) name: &'static str,
    /// The program and its words.
    pub(crate) command: &'static [&'static str],
}

/// Where a figure comes from.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(crate) enum Reads {
    /// The row's units by the time of the process.
    Throughput,
    /// The process's memory.
    Peak,
    /// Bytes in by bytes out.
    Ratio,
    /// What the scheduler spent by all time of slots, out of `--json`.
    Administration,
    /// An overhead that it prints: the n-th word of the line that begins so.
    Word { line: &'static str, word: usize },
    /// An overhead that it prints as JSON, under this name.
    Json(&'static str),
}

impl Reads {
    pub(crate) fn figure(self) -> Figure {
        match self {
            Self::Throughput => Figure::Throughput,
            Self::Peak => Figure::Peak,
            Self::Ratio => Figure::Ratio,
            Self::Administration | Self::Word { .. } | Self::Json(_) => Figure::Overhead,
        }
    }
}

const SPEED: &[Reads] = &[Reads::Throughput, Reads::Peak];
const PACKS: &[Reads] = &[Reads::Throughput, Reads::Peak, Reads::Ratio, Reads::Administration];
/// The makespan by the lower bound.
const REPLAYS: &[Reads] = &[Reads::Json("ratio")];
/// Wall time by rayon's.
const OF_200_US: &[Reads] = &[Reads::Word { line: "2000 of 200", word: 5 }];
const OF_20_US: &[Reads] = &[Reads::Word { line: "10000 of 20", word: 5 }];

const ZSTD_1: Peer = Peer { name: "zstd -T0", command: &["zstd", "-qf", "-T0", "-1", "{in}", "-o", "{out}"] };
const ZSTD_3: Peer = Peer { name: "zstd -T0", command: &["zstd", "-qf", "-T0", "-3", "{in}", "-o", "{out}"] };
const ZSTD_9: Peer = Peer { name: "zstd -T0", command: &["zstd", "-qf", "-T0", "-9", "{in}", "-o", "{out}"] };
const ZSTD_19: Peer = Peer { name: "zstd -T0", command: &["zstd", "-qf", "-T0", "-19", "{in}", "-o", "{out}"] };
const UNZSTD: Peer = Peer { name: "zstd -d", command: &["zstd", "-qfd", "{in}", "-o", "{out}"] };
const PIGZ: Peer = Peer { name: "pigz", command: &["pigz", "-6", "-kf", "-S", ".pigz", "{in}"] };
const FFMPEG: Peer = Peer {
    name: "ffmpeg",
    command: &[
        "ffmpeg",
        "-v",
        "error",
        "-y",
        "-i",
        "{in}",
        "-vf",
        "scale=320:180:flags=bicubic,gblur=sigma=2",
        "-f",
        "yuv4mpegpipe",
        "{out}",
    ],
};

macro_rules! pack {
    ($name:literal, $input:expr, $quick:expr, $peer:expr, $($word:literal),+) => {
        Row {
            name: $name,
            is_quick: $quick,
            program: Program::Cli,
            input: $input,
            words: &["pack", "--json", "--force", $($word,)+ "-o", "{out}", "{in}"],
            reads: PACKS,
            rounds_max: usize::MAX,
            peer: $peer,
        }
    };
}

macro_rules! runs {
    ($name:literal, $input:expr, $quick:expr, $peer:expr, $($word:literal),+) => {
        Row {
            name: $name,
            is_quick: $quick,
            program: Program::Cli,
            input: $input,
            words: &[$($word,)+],
            reads: SPEED,
            rounds_max: usize::MAX,
            peer: $peer,
        }
    };
}

macro_rules! schedule {
    ($name:literal, $graph:literal, $cpu:literal, $gpu:literal) => {
        Row {
            name: $name,
            is_quick: true,
            program: Program::Cli,
            input: Input::Kept(concat!("crates/plimsoll-testkit/graphs/", $graph, ".tsv")),
            words: &["sim", "replay", "--json", "--graph", "{in}", "--cpu", $cpu, "--gpu", $gpu],
            reads: REPLAYS,
            rounds_max: 1,
            peer: None,
        }
    };
}

macro_rules! overhead {
    ($name:literal, $quick:expr, $reads:expr) => {
        Row {
            name: $name,
            is_quick: $quick,
            program: Program::SmallTasks,
            input: Input::Nothing,
            words: &[],
            reads: $reads,
            rounds_max: 3,
            peer: None,
        }
    };
}

/// Every row. At least 64 blocks or tasks each: fewer, and the ends are what is measured.
pub(crate) const ALL: &[Row] = &[
    pack!("pack/text/zstd-1", Input::Text(64), true, Some(ZSTD_1), "-l", "1", "--block", "1MiB"),
    pack!("pack/text/zstd-3", Input::Text(64), false, Some(ZSTD_3), "-l", "3", "--block", "1MiB"),
    pack!("pack/text/zstd-9", Input::Text(64), false, Some(ZSTD_9), "-l", "9", "--block", "1MiB"),
    pack!("pack/text/zstd-19", Input::Text(16), false, Some(ZSTD_19), "-l", "19", "--block", "256KiB"),
    pack!("pack/text/gzip-6", Input::Text(64), true, Some(PIGZ), "-f", "gzip", "-l", "6"),
    pack!("pack/text/bgzf-6", Input::Text(16), false, None, "-f", "bgzf", "-l", "6"),
    pack!("pack/text/staged", Input::Text(16), false, None, "--method", "staged", "--block", "256KiB"),
    pack!("pack/numeric/shuffle", Input::Numeric(64), false, None, "--filter", "shuffle:f32", "--block", "1MiB"),
    pack!("pack/noise/zstd-3", Input::Noise(64), false, Some(ZSTD_3), "-l", "3", "--block", "1MiB"),
    runs!(
        "unpack/text/zstd",
        Input::Packed(64, "zstd"),
        true,
        Some(UNZSTD),
        "unpack",
        "-q",
        "--force",
        "-o",
        "{out}",
        "{in}"
    ),
    runs!("unpack/text/gzip", Input::Packed(64, "gzip"), false, None, "unpack", "-q", "--force", "-o", "{out}", "{in}"),
    runs!(
        "score/ssim2",
        Input::Pictures(64),
        true,
        None,
        "score",
        "-m",
        "ssim2",
        "{in}/reference.ppm",
        "{in}/variants"
    ),
    runs!(
        "score/butteraugli",
        Input::Pictures(64),
        false,
        None,
        "score",
        "-m",
        "butteraugli",
        "{in}/reference.ppm",
        "{in}/variants"
    ),
    runs!(
        "frames/scale-blur",
        Input::Film(256),
        true,
        Some(FFMPEG),
        "frames",
        "--overwrite",
        "--op",
        "scale=320x180:bicubic,blur=2",
        "{in}",
        "{out}.y4m"
    ),
    runs!(
        "frames/denoise",
        Input::Film(64),
        false,
        None,
        "frames",
        "--overwrite",
        "--op",
        "denoise=bilateral",
        "{in}",
        "{out}.y4m"
    ),
    runs!(
        "array/zstd-levels",
        Input::Numeric(64),
        true,
        None,
        "array",
        "write",
        "-q",
        "--overwrite",
        "--shape",
        "0,512,512",
        "--dtype",
        "f32",
        "--chunk",
        "1,128,128",
        "--shard",
        "16,512,512",
        "--levels",
        "auto",
        "-i",
        "{in}",
        "{out}.zarr"
    ),
    overhead!("overhead/200us", true, OF_200_US),
    overhead!("overhead/20us", false, OF_20_US),
    schedule!("schedule/cholesky10/2+3", "cholesky10", "2", "3"),
    schedule!("schedule/indep_mix/9+3", "indep_mix", "9", "3"),
    schedule!("schedule/layered/9+3", "layered", "9", "3"),
    schedule!("schedule/pipeline5/2+3", "pipeline5", "2", "3"),
];

/// The rows that were asked for.
pub(crate) fn choose(options: &Options) -> Result<Vec<&'static Row>, String> {
    let is_meant = |row: &&Row| {
        let is_named = options.rows.is_empty() || options.rows.iter().any(|part| row.name.contains(part.as_str()));
        is_named && (row.is_quick || !options.quick)
    };
    let rows: Vec<&Row> = ALL.iter().filter(is_meant).collect();
    if rows.is_empty() {
        let names: Vec<&str> = ALL.iter().map(|row| row.name).collect();
        return Err(format!("no row is called so; the rows are {}", names.join(", ")));
    }
    Ok(rows)
}

/// The features that a part of the rows needs; none for all rows, which measure the program as it is installed.
pub(crate) fn features(rows: &[&Row]) -> Option<String> {
    if rows.len() == ALL.len() {
        return None;
    }
    let feature = |row: &&Row| match row.name.split('/').next() {
        Some("pack" | "unpack") => Some("pack"),
        Some("score") => Some("score"),
        Some("frames") => Some("frames"),
        Some("array") => Some("array"),
        _ => None,
    };
    let mut features: Vec<&str> = rows.iter().filter_map(feature).collect();
    features.dedup();
    Some(features.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `frames` tells from the ending what to write, and does not replace a file unasked.
    #[test]
    fn rows_of_frames_name_what_frames_writes() {
        for row in ALL.iter().filter(|row| row.name.starts_with("frames/")) {
            assert!(row.words.contains(&"{out}.y4m") && row.words.contains(&"--overwrite"), "{}", row.name);
        }
    }

    #[test]
    fn every_part_of_the_product_has_a_row_and_a_quick_one() {
        for part in ["pack", "unpack", "score", "frames", "array", "overhead", "schedule"] {
            let quick = ALL.iter().filter(|row| row.name.starts_with(part) && row.is_quick).count();
            assert!(quick > 0, "{part}");
        }
    }

    #[test]
    fn a_part_of_the_rows_needs_a_part_of_the_program() {
        let of = |words: &[&str]| features(&choose(&Options::parse(words).unwrap()).unwrap());
        assert_eq!(of(&[]), None);
        assert_eq!(of(&["--rows", "pack"]).as_deref(), Some("pack"));
        assert_eq!(of(&["--quick"]).as_deref(), Some("pack,score,frames,array"));
        assert_eq!(of(&["--rows", "schedule"]).as_deref(), Some(""));
    }

    #[test]
    fn names_are_unique() {
        for (at, row) in ALL.iter().enumerate() {
            assert!(ALL[..at].iter().all(|other| other.name != row.name), "{}", row.name);
        }
    }

    #[test]
    fn rows_are_chosen_by_parts_of_their_names() {
        let of = |words: &[&str]| choose(&Options::parse(words).unwrap()).map(|rows| rows.len());
        assert_eq!(of(&[]), Ok(ALL.len()));
        assert_eq!(of(&["--rows", "schedule"]), Ok(4));
        assert_eq!(of(&["--rows", "schedule,score", "--quick"]), Ok(5));
        assert!(of(&["--rows", "nothing"]).unwrap_err().contains("pack/text/zstd-1"));
    }
}
