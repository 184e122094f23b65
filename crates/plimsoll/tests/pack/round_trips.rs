//! What goes in comes out, in every format, for every number of threads, and the bytes between are always the same.

use plimsoll::Bytes;
use plimsoll::pack::{Format, PackOptions};
use plimsoll_core::rng::Rng;

use crate::data::{FORMATS, mixed, of, pack, packer, unpack};

/// Sizes around the edges of blocks, members and nothing at all.
const SIZES: [usize; 9] = [0, 1, 3, 65_279, 65_280, 65_281, (1 << 20) - 1, (1 << 20) + 1, 3_500_000];

#[test]
fn every_size_in_every_format_comes_back() {
    let packer = packer(2);
    for format in FORMATS {
        for size in SIZES {
            let raw = mixed(size, 7 + size as u64);
            let packed = pack(&packer, &of(format), &raw);
            assert!(unpack(&packer, &packed).unwrap() == raw, "{size} bytes as {format}");
        }
    }
}

#[test]
fn the_bytes_are_the_same_for_1_2_and_8_threads_ten_times() {
    let raw = mixed(3_000_000, 11);
    let packers = [packer(1), packer(2), packer(8)];
    for format in FORMATS {
        let block = (format != Format::Bgzf).then_some(Bytes(256 << 10));
        let options = PackOptions { block, ..of(format) };
        let expected = pack(&packers[0], &options, &raw);
        for packer in &packers {
            for _ in 0..10 {
                assert!(pack(packer, &options, &raw) == expected, "{format} differs");
            }
        }
    }
}

#[test]
fn every_level_and_filter_comes_back() {
    let packer = packer(2);
    let raw = mixed(400_001, 5);
    for format in FORMATS {
        let (lowest, highest) = format.levels();
        for level in lowest..=highest {
            let packed = pack(&packer, &PackOptions { level: Some(level), ..of(format) }, &raw);
            assert!(unpack(&packer, &packed).unwrap() == raw, "{format} level {level}");
        }
    }
    for filter in ["shuffle:f32", "bitshuffle:u16", "delta:u64", "delta:u16,shuffle:u16", "delta:u32,bitshuffle:u32"] {
        let options =
            PackOptions { filter: filter.parse().ok(), block: Some(Bytes(100_000)), ..PackOptions::default() };
        let packed = pack(&packer, &options, &raw);
        assert!(unpack(&packer, &packed).unwrap() == raw, "{filter}");
    }
}

#[test]
fn a_filter_makes_a_counter_small() {
    let packer = packer(2);
    let counter: Vec<u8> = (0..250_000_u32).flat_map(|n| (n * 7).to_le_bytes()).collect();
    let plain = pack(&packer, &PackOptions::default(), &counter).len();
    let filtered = PackOptions { filter: "delta:u32".parse().ok(), ..PackOptions::default() };
    assert!(pack(&packer, &filtered, &counter).len() * 100 < plain);
}

#[test]
fn noise_is_stored_and_costs_next_to_nothing() {
    let packer = packer(2);
    let mut rng = Rng::new(3);
    let noise: Vec<u8> = (0..2_500_000).map(|_| rng.below(256) as u8).collect();
    for format in FORMATS {
        let packed = pack(&packer, &of(format), &noise);
        assert!(packed.len() < noise.len() + noise.len() / 500, "{format}: {} of {}", packed.len(), noise.len());
        assert!(unpack(&packer, &packed).unwrap() == noise, "{format}");
    }
}

#[test]
fn files_behind_each_other_are_one_file() {
    let packer = packer(2);
    let (one, other) = (mixed(300_000, 1), mixed(1_500_000, 2));
    for format in FORMATS {
        let both = [pack(&packer, &of(format), &one), pack(&packer, &of(format), &other)].concat();
        assert!(unpack(&packer, &both).unwrap() == [&one[..], &other].concat(), "{format}");
    }
    let filtered = PackOptions { filter: "shuffle:u32".parse().ok(), ..PackOptions::default() };
    let both = [pack(&packer, &filtered, &one), pack(&packer, &of(Format::Zstd), &other)].concat();
    assert!(unpack(&packer, &both).unwrap() == [&one[..], &other].concat(), "a filter ends with its file");
}
