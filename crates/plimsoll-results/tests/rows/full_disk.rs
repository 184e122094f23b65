//! No more room: an error, nothing lost, and the output as it was. A limit on the size of files stands for a full disk,
//! since every system that has `ulimit` can set one without rights; the writer cannot tell the difference.
#![cfg(unix)]

use std::fs;

use plimsoll_results::rows::{Existing, Format};

use crate::table::*;
use crate::writer::{UNTIL_FULL, noted, start};

/// Without the signal that would end the process, a write past the limit is an error like that of a full disk.
const LITTLE_ROOM: &str = "trap '' XFSZ; ulimit -f 40;";

#[test]
fn a_full_disk_loses_no_row_and_leaves_the_output() {
    for format in [Format::Json, Format::JsonLines] {
        let (_folder, path) = place(format);
        finished(&path, (0..20).map(good));
        let output = fs::read(&path).expect("there");

        let ended = start(&path, 20, UNTIL_FULL, LITTLE_ROOM).0.wait().expect("ours");
        assert!(ended.success(), "{format}: {ended:?}");
        assert_eq!(fs::read(&path).expect("there"), output, "{format}: the output is as it was");
        assert!(!draft_of(&path).exists(), "{format}: no room is taken by a draft");

        let taken = noted(&path);
        assert!(taken.len() > 50, "{format}: {} rows were taken before it was full", taken.len());
        let file = open(&path, Existing::Resume).expect("ours");
        assert_eq!((file.found().torn_bytes, file.found().damaged_lines), (0, 0), "what was refused left nothing");
        file.finish().expect("there is room again");
        let wanted: Vec<Seen> = (0..20).chain(taken).map(seen_good).collect();
        assert_eq!(seen(&path), wanted, "{format}");
    }
}
