//! The sides: how each packs a file into another, and back.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A program that packs.
pub(crate) struct Side {
    pub(crate) name: &'static str,
    /// Words of the shell: `$1` is the input, `$2` the output, `$3` the level, `$4` this benchmark, `$0` the binary under
    /// test.
    pack: &'static str,
    unpack: &'static str,
    /// The level that it takes if none is given.
    pub(crate) usual_level: i32,
}

const UNPACK: &str = "\"$0\" unpack -q --force -o \"$2\" \"$1\"";

pub(crate) const OURS: Side =
    Side { name: "plimsoll", pack: "\"$0\" pack -q --force -l $3 -o \"$2\" \"$1\"", unpack: UNPACK, usual_level: 3 };
const OUR_GZIP: Side = Side {
    name: "plimsoll gzip",
    pack: "\"$0\" pack -q --force -f gzip -l $3 -o \"$2\" \"$1\"",
    unpack: UNPACK,
    usual_level: 6,
};
const OUR_BGZF: Side = Side {
    name: "plimsoll bgzf",
    pack: "\"$0\" pack -q --force --bgzf -l $3 -o \"$2\" \"$1\"",
    unpack: UNPACK,
    usual_level: 6,
};
const ZSTD_T0: Side = Side {
    name: "zstd -T0",
    pack: "zstd -q -f -T0 -$3 --check -o \"$2\" \"$1\"",
    unpack: "zstd -q -f -d -o \"$2\" \"$1\"",
    usual_level: 3,
};
const PZSTD: Side = Side {
    name: "pzstd",
    pack: "pzstd -q -f -$3 -o \"$2\" \"$1\"",
    unpack: "pzstd -q -f -d -o \"$2\" \"$1\"",
    usual_level: 3,
};
const PIGZ: Side =
    Side { name: "pigz", pack: "pigz -c -$3 \"$1\" > \"$2\"", unpack: "pigz -dc \"$1\" > \"$2\"", usual_level: 6 };
const GZIP_ALONE: Side =
    Side { name: "gzip", pack: "gzip -c -$3 \"$1\" > \"$2\"", unpack: "gzip -dc < \"$1\" > \"$2\"", usual_level: 6 };
const BGZIP: Side = Side {
    name: "bgzip",
    pack: "bgzip -@ $(nproc) -c -l $3 \"$1\" > \"$2\"",
    unpack: "bgzip -@ $(nproc) -dc < \"$1\" > \"$2\"",
    usual_level: 6,
};
const LIBDEFLATE: Side = Side {
    name: "libdeflate",
    pack: "\"$4\" --as-libdeflate pack $3 \"$1\" \"$2\"",
    unpack: "\"$4\" --as-libdeflate unpack 0 \"$1\" \"$2\"",
    usual_level: 6,
};

pub(crate) const ZSTD: &[Side] = &[OURS, ZSTD_T0, PZSTD];
pub(crate) const GZIP: &[Side] = &[OUR_GZIP, PIGZ, LIBDEFLATE, OUR_BGZF, BGZIP];
/// Whose files we unpack too.
pub(crate) const FOREIGN: &[Side] = &[ZSTD_T0, PZSTD, GZIP_ALONE, PIGZ, BGZIP];

impl Side {
    pub(crate) fn pack(&self, input: &Path, output: &Path, level: i32) -> Command {
        shell(self.pack, input, output, level)
    }

    pub(crate) fn unpack(&self, input: &Path, output: &Path) -> Command {
        shell(self.unpack, input, output, 0)
    }
}

fn shell(words: &str, input: &Path, output: &Path, level: i32) -> Command {
    let mut command = Command::new("bash");
    command.args(["-c", &format!("exec {words}")]).arg(plimsoll()).args([input, output]).arg(level.to_string());
    command.arg(std::env::current_exe().expect("this benchmark is a file"));
    command
}

/// The binary under test, as cargo built it for this benchmark.
fn plimsoll() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_plimsoll"))
}
