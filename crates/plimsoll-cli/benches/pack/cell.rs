//! One input at one level on every side, both ways.

use std::fs;
use std::path::{Path, PathBuf};

use crate::options::Options;
use crate::process::{self, Measured};
use crate::sides::Side;
use crate::summary::{Cell, Summary, What};

/// Where it is measured, and with what.
pub(crate) struct Place<'a> {
    pub(crate) folder: &'a Path,
    pub(crate) input: &'a Path,
    pub(crate) kind: &'static str,
    pub(crate) size: usize,
}

#[derive(Clone, Default)]
struct Best {
    packed: u64,
    pack: Option<Measured>,
    unpack: Option<Measured>,
}

pub(crate) fn measure(place: &Place<'_>, level: i32, sides: &[Side], options: &Options, summary: &mut Summary) {
    let mut best = vec![Best::default(); sides.len()];
    for _ in options.rounds(place.size, level) {
        for (side, best) in sides.iter().zip(&mut best) {
            best.round(place, side, level);
        }
    }
    println!("{}, {} bytes, level {level}", place.kind, place.size);
    println!(
        "  {:<14} {:>9} {:>10} {:>10} {:>9} {:>12} {:>10} {:>9}",
        "SIDE", "RATIO", "PACK MB/S", "MB/CPU S", "PEAK MIB", "UNPACK MB/S", "MB/CPU S", "PEAK MIB"
    );
    for (side, best) in sides.iter().zip(&best) {
        best.print(place, side.name);
        best.add(place, side.name, level, summary);
    }
}

impl Best {
    fn round(&mut self, place: &Place<'_>, side: &Side, level: i32) {
        let (packed, back) = (new_name(place.folder, "packed"), new_name(place.folder, "back"));
        Measured::best(&mut self.pack, process::measure(side.pack(place.input, &packed, level)));
        Measured::best(&mut self.unpack, process::measure(side.unpack(&packed, &back)));
        assert!(is_same(&back, place.input), "{} gives other bytes", side.name);
        self.packed = fs::metadata(&packed).map_or(1, |file| file.len());
    }

    fn ratio(&self, size: usize) -> f64 {
        size as f64 / self.packed.max(1) as f64
    }

    fn print(&self, place: &Place<'_>, name: &str) {
        let (Some(pack), Some(unpack)) = (&self.pack, &self.unpack) else { return };
        let mb = place.size as f64 / 1e6;
        let mib = |measured: &Measured| measured.peak_bytes as f64 / f64::from(1 << 20);
        println!(
            "  {name:<14} {:>9.3} {:>10.1} {:>10.1} {:>9.1} {:>12.1} {:>10.1} {:>9.1}",
            self.ratio(place.size),
            mb / pack.seconds,
            mb / pack.cpu_seconds,
            mib(pack),
            mb / unpack.seconds,
            mb / unpack.cpu_seconds,
            mib(unpack)
        );
    }

    fn add(&self, place: &Place<'_>, name: &'static str, level: i32, summary: &mut Summary) {
        let (Some(pack), Some(unpack)) = (&self.pack, &self.unpack) else { return };
        let cell = Cell { kind: place.kind, size: place.size, level };
        let mb = place.size as f64 / 1e6;
        summary.add(name, cell, What::Ratio, self.ratio(place.size));
        summary.add(name, cell, What::Pack, mb / pack.seconds);
        summary.add(name, cell, What::PackCpu, mb / pack.cpu_seconds);
        summary.add(name, cell, What::Unpack, mb / unpack.seconds);
        summary.add(name, cell, What::UnpackCpu, mb / unpack.cpu_seconds);
        // Less is better: turned round, more is.
        summary.add(name, cell, What::PackPeak, 1.0 / pack.peak_bytes.max(1) as f64);
    }
}

/// A place where no file is. One that is replaced has to reach the disk first on some file systems, and only those pay for
/// it who replace it in one step.
pub(crate) fn new_name(folder: &Path, name: &str) -> PathBuf {
    let place = folder.join(name);
    // Mostly it is there; if it is not, that is what was wanted.
    let _ = fs::remove_file(&place);
    place
}

pub(crate) fn is_same(one: &Path, other: &Path) -> bool {
    matches!((fs::read(one), fs::read(other)), (Ok(one), Ok(other)) if one == other)
}
