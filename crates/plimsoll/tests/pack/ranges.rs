//! Ranges of the unpacked bytes, from files that tell where to begin and from those that do not.

use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use plimsoll::Bytes;
use plimsoll::pack::{Format, PackError, PackOptions, PackWatch, Packer, UnpackOptions};

use crate::data::{FORMATS, mixed, of, pack, packer};

fn range(
    packer: &Packer,
    input: impl Read + Seek + Send + 'static,
    wanted: std::ops::Range<u64>,
) -> Result<Vec<u8>, PackError> {
    let mut part = Vec::new();
    packer.unpack_range(input, &mut part, &wanted, &UnpackOptions::default(), &PackWatch::default()).map(|_| part)
}

fn small_blocks(format: Format) -> PackOptions {
    let block = (format != Format::Bgzf).then_some(Bytes(64 << 10));
    PackOptions { block, ..of(format) }
}

#[test]
fn every_range_is_that_part_of_the_file() {
    let packer = packer(2);
    let raw = mixed(700_000, 31);
    let filtered = PackOptions { filter: "shuffle:u16".parse().ok(), ..small_blocks(Format::Zstd) };
    for options in FORMATS.map(small_blocks).into_iter().chain([filtered]) {
        let packed = pack(&packer, &options, &raw);
        for (from, to) in
            [(0, 0), (0, 1), (0, 700_000), (65_535, 65_537), (100_000, 500_001), (699_999, 700_000), (5, u64::MAX)]
        {
            let got = range(&packer, Cursor::new(packed.clone()), from..to).unwrap();
            assert!(got == raw[from as usize..(to as usize).min(raw.len())], "{from}..{to} of {:?}", options.format);
        }
        assert!(range(&packer, Cursor::new(packed), 800_000..900_000).unwrap().is_empty());
    }
}

/// A file that counts what is read of it.
struct Counting(Cursor<Vec<u8>>, Arc<AtomicU64>);

impl Read for Counting {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.0.read(into)?;
        self.1.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

impl Seek for Counting {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.0.seek(to)
    }
}

#[test]
fn only_what_holds_the_range_is_read() {
    let packer = packer(2);
    let raw = mixed(16_000_000, 32);
    for format in [Format::Zstd, Format::Gzip] {
        let packed = pack(&packer, &small_blocks(format), &raw);
        let (length, read) = (packed.len() as u64, Arc::new(AtomicU64::new(0)));
        let file = Counting(Cursor::new(packed), Arc::clone(&read));
        assert!(range(&packer, file, 15_000_000..15_000_010).unwrap() == raw[15_000_000..15_000_010]);
        let read = read.load(Ordering::Relaxed);
        assert!(read < length / 4, "{read} of {length} bytes of {format} were read");
    }
}

/// Whatever bit of a seek table is flipped, a range is right or refused.
#[test]
fn a_damaged_seek_table_never_gives_other_bytes() {
    let packer = packer(1);
    let raw = mixed(400_000, 33);
    let packed = pack(&packer, &small_blocks(Format::Zstd), &raw);
    let frames = raw.len().div_ceil(64 << 10);
    let table = packed.len() - (frames * 8 + 8 + 9);
    for bit in 0..(packed.len() - table) * 8 {
        let mut damaged = packed.clone();
        damaged[table + bit / 8] ^= 1 << (bit % 8);
        if let Ok(part) = range(&packer, Cursor::new(damaged), 300_000..300_100) {
            assert!(part == raw[300_000..300_100], "bit {bit} of the table");
        }
    }
}
