//! The sides: how each packs a file into another, and back.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A program that packs.
#[derive(Copy, Clone)]
pub(crate) struct Side {
    pub(crate) name: &'static str,
    /// Words with blanks between: `IN`, `OUT`, `LEVEL` and `CORES` stand for what they say; what names no `IN` or `OUT` has
    /// it as its standard input or output. `plimsoll` is the binary under test and `libdeflate` this benchmark.
    pack: &'static str,
    unpack: &'static str,
    /// The level that it takes if none is given.
    pub(crate) usual_level: i32,
}

const UNPACK: &str = "plimsoll unpack -q --force -o OUT IN";

pub(crate) const OURS: Side =
    Side { name: "plimsoll", pack: "plimsoll pack -q --force -l LEVEL -o OUT IN", unpack: UNPACK, usual_level: 3 };
pub(crate) const OUR_GZIP: Side = Side {
    name: "plimsoll gzip",
    pack: "plimsoll pack -q --force -f gzip -l LEVEL -o OUT IN",
    unpack: UNPACK,
    usual_level: 6,
};
pub(crate) const OUR_BGZF: Side = Side {
    name: "plimsoll bgzf",
    pack: "plimsoll pack -q --force --bgzf -l LEVEL -o OUT IN",
    unpack: UNPACK,
    usual_level: 6,
};
pub(crate) const ZSTD_T0: Side = Side {
    name: "zstd -T0",
    pack: "zstd -q -f -T0 -LEVEL --check -o OUT IN",
    unpack: "zstd -q -f -d -o OUT IN",
    usual_level: 3,
};
const PZSTD: Side =
    Side { name: "pzstd", pack: "pzstd -q -f -LEVEL -o OUT IN", unpack: "pzstd -q -f -d -o OUT IN", usual_level: 3 };
const PIGZ: Side = Side { name: "pigz", pack: "pigz -c -LEVEL IN", unpack: "pigz -dc", usual_level: 6 };
pub(crate) const GZIP_ALONE: Side =
    Side { name: "gzip", pack: "gzip -c -LEVEL IN", unpack: "gzip -dc", usual_level: 6 };
pub(crate) const BGZIP: Side =
    Side { name: "bgzip", pack: "bgzip -@ CORES -c -l LEVEL IN", unpack: "bgzip -@ CORES -dc", usual_level: 6 };
const LIBDEFLATE: Side = Side {
    name: "libdeflate",
    pack: "libdeflate --as-libdeflate pack LEVEL IN OUT",
    unpack: "libdeflate --as-libdeflate unpack 0 IN OUT",
    usual_level: 6,
};

pub(crate) const ZSTD: &[Side] = &[OURS, ZSTD_T0, PZSTD];
pub(crate) const GZIP: &[Side] = &[OUR_GZIP, PIGZ, LIBDEFLATE, OUR_BGZF, BGZIP];
/// Whose files are unpacked by us, and by whom else: the stock tool. Ours come first.
pub(crate) const READERS: &[(Side, Side)] = &[
    (OURS, ZSTD_T0),
    (OUR_GZIP, GZIP_ALONE),
    (OUR_BGZF, BGZIP),
    (ZSTD_T0, ZSTD_T0),
    (PZSTD, PZSTD),
    (GZIP_ALONE, GZIP_ALONE),
    (PIGZ, PIGZ),
    (BGZIP, BGZIP),
];

impl Side {
    pub(crate) fn pack(&self, input: &Path, output: &Path, level: i32) -> Command {
        command(self.pack, input, output, level)
    }

    pub(crate) fn unpack(&self, input: &Path, output: &Path) -> Command {
        command(self.unpack, input, output, 0)
    }
}

/// No shell between: its own start would hide that of small files.
fn command(words: &str, input: &Path, output: &Path, level: i32) -> Command {
    let mut words = words.split(' ');
    let mut command = Command::new(program(words.next().expect("a program")));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let (mut from, mut to) = (true, true);
    for word in words {
        match word {
            "IN" => {
                from = false;
                command.arg(input)
            }
            "OUT" => {
                to = false;
                command.arg(output)
            }
            word => command.arg(word.replace("LEVEL", &level.to_string()).replace("CORES", &cores.to_string())),
        };
    }
    command.stdin(if from { File::open(input).expect("it is there").into() } else { Stdio::null() });
    command.stdout(if to { File::create(output).expect("it can be written").into() } else { Stdio::null() });
    command
}

fn program(word: &str) -> PathBuf {
    match word {
        // The binary under test, as cargo built it for this benchmark.
        "plimsoll" => PathBuf::from(env!("CARGO_BIN_EXE_plimsoll")),
        "libdeflate" => std::env::current_exe().expect("this benchmark is a file"),
        word => PathBuf::from(word),
    }
}
