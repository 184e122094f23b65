//! The sides: how each packs a file into another, and back.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A program that packs.
pub(crate) struct Side {
    pub(crate) name: &'static str,
    /// Words of the shell: `$1` is the input, `$2` the output, `$3` the level, `$0` the binary under test.
    pack: &'static str,
    unpack: &'static str,
}

pub(crate) const ZSTD: &[Side] = &[
    Side {
        name: "plimsoll",
        pack: "\"$0\" pack -q --force -l $3 -o \"$2\" \"$1\"",
        unpack: "\"$0\" unpack -q --force -o \"$2\" \"$1\"",
    },
    Side {
        name: "zstd -T0",
        pack: "zstd -q -f -T0 -$3 --check -o \"$2\" \"$1\"",
        unpack: "zstd -q -f -d -o \"$2\" \"$1\"",
    },
    Side { name: "pzstd", pack: "pzstd -q -f -$3 -o \"$2\" \"$1\"", unpack: "pzstd -q -f -d -o \"$2\" \"$1\"" },
];

pub(crate) const GZIP: &[Side] = &[
    Side {
        name: "plimsoll gzip",
        pack: "\"$0\" pack -q --force -f gzip -l $3 -o \"$2\" \"$1\"",
        unpack: "\"$0\" unpack -q --force -o \"$2\" \"$1\"",
    },
    Side { name: "pigz", pack: "pigz -c -$3 \"$1\" > \"$2\"", unpack: "pigz -dc \"$1\" > \"$2\"" },
    Side { name: "gzip", pack: "gzip -c -$3 \"$1\" > \"$2\"", unpack: "gzip -dc < \"$1\" > \"$2\"" },
    Side {
        name: "plimsoll bgzf",
        pack: "\"$0\" pack -q --force --bgzf -l $3 -o \"$2\" \"$1\"",
        unpack: "\"$0\" unpack -q --force -o \"$2\" \"$1\"",
    },
    Side {
        name: "bgzip",
        pack: "bgzip -@ $(nproc) -c -l $3 \"$1\" > \"$2\"",
        unpack: "bgzip -@ $(nproc) -dc < \"$1\" > \"$2\"",
    },
];

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
    command
}

/// The binary under test, as cargo built it for this benchmark.
fn plimsoll() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_plimsoll"))
}
