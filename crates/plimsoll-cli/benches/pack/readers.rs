//! Files of every program, unpacked by us and by the stock tool: ours by theirs, theirs by ours.

use std::path::Path;

use crate::cell::{Place, is_same, new_name};
use crate::options::Options;
use crate::process::{self, Measured};
use crate::sides::{OURS, READERS, Side};
use crate::summary::{Cell, Summary, What};

pub(crate) fn measure(place: &Place<'_>, options: &Options, summary: &mut Summary) {
    println!("{}, {} bytes, unpacked by us and by the stock tool", place.kind, place.size);
    println!(
        "  {:<14} {:<10} {:>14} {:>10} {:>14} {:>10}",
        "FILE OF", "BESIDE", "PLIMSOLL MB/S", "MB/CPU S", "BESIDE MB/S", "MB/CPU S"
    );
    for (maker, stock) in READERS {
        let packed = new_name(place.folder, "packed");
        process::measure(maker.pack(place.input, &packed, maker.usual_level));
        let (mut ours, mut theirs) = (None, None);
        for _ in options.rounds(place.size, 1) {
            Measured::best(&mut ours, unpacked(&OURS, &packed, place));
            Measured::best(&mut theirs, unpacked(stock, &packed, place));
        }
        let (Some(ours), Some(theirs)) = (ours, theirs) else { continue };
        let mb = place.size as f64 / 1e6;
        println!(
            "  {:<14} {:<10} {:>14.1} {:>10.1} {:>14.1} {:>10.1}",
            maker.name,
            stock.name,
            mb / ours.seconds,
            mb / ours.cpu_seconds,
            mb / theirs.seconds,
            mb / theirs.cpu_seconds
        );
        let cell = Cell { kind: place.kind, size: place.size, level: maker.usual_level };
        for (side, measured) in [("plimsoll", ours), ("stock", theirs)] {
            summary.add(side, cell, What::FileOf(maker.name), mb / measured.seconds);
            summary.add(side, cell, What::FileOfCpu(maker.name), mb / measured.cpu_seconds);
        }
    }
}

fn unpacked(side: &Side, packed: &Path, place: &Place<'_>) -> Measured {
    let back = new_name(place.folder, "back");
    let measured = process::measure(side.unpack(packed, &back));
    assert!(is_same(&back, place.input), "{} gives other bytes", side.name);
    measured
}
