//! Files of other programs, unpacked by us and by them.

use crate::cell::{Place, is_same, keep_best};
use crate::process;
use crate::sides::{FOREIGN, OURS};
use crate::summary::{Cell, Summary};

pub(crate) fn measure(place: &Place<'_>, rounds: usize, summary: &mut Summary) {
    println!("{}, {} bytes, files of other programs, unpacked", place.kind, place.size);
    println!("  {:<14} {:>14} {:>14}", "FILE OF", "PLIMSOLL MB/S", "ITS OWN MB/S");
    for side in FOREIGN {
        let (packed, back) = (place.folder.join("packed"), place.folder.join("back"));
        process::measure(side.pack(place.input, &packed, side.usual_level));
        let (mut ours, mut theirs) = (None, None);
        for _ in 0..rounds {
            keep_best(&mut ours, process::measure(OURS.unpack(&packed, &back)));
            assert!(is_same(&back, place.input), "a file of {} comes out wrong", side.name);
            keep_best(&mut theirs, process::measure(side.unpack(&packed, &back)));
        }
        let (Some(ours), Some(theirs)) = (ours, theirs) else { continue };
        let [ours, theirs] = [ours, theirs].map(|measured| place.size as f64 / 1e6 / measured.seconds);
        println!("  {:<14} {ours:>14.1} {theirs:>14.1}", side.name);
        let cell = Cell { kind: place.kind, size: place.size, level: side.usual_level };
        summary.add("plimsoll on its", cell, side.name, ours);
        summary.add("stock", cell, side.name, theirs);
    }
}
