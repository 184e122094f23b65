//! Small files on the caller's thread: the same bytes, the same ends.

use std::io::{self, Cursor, Read};

use plimsoll::pack::{Format, Method, PackError, PackOptions, PackWatch, SmallPacker, UnpackOptions};
use plimsoll::{Bytes, StopSign};
use plimsoll_core::rng::Rng;

use crate::data::{FORMATS, mixed, of, pack, packer, unpack};

fn small_pack(options: &PackOptions, raw: &[u8]) -> Vec<u8> {
    let recipe = options.recipe(Some(raw.len() as u64)).unwrap();
    let mut packed = Vec::new();
    let summary = SmallPacker::default().pack(raw, &mut packed, &recipe, &PackWatch::default()).unwrap();
    assert_eq!((summary.raw, summary.packed), (raw.len() as u64, packed.len() as u64));
    packed
}

fn small_unpack(packed: &[u8]) -> Result<Vec<u8>, PackError> {
    let mut raw = Vec::new();
    let done = SmallPacker::default().unpack(packed, &mut raw, &UnpackOptions::default(), &PackWatch::default());
    done.map(|_| raw)
}

#[test]
fn the_bytes_are_those_of_a_scheduler() {
    let many = packer(2);
    let filtered = PackOptions { filter: "delta:u32,shuffle:u32".parse().ok(), ..PackOptions::default() };
    let cut = PackOptions { block: Some(Bytes(64 << 10)), ..PackOptions::default() };
    for bytes in [0, 1, 4_096, 65_536, 1 << 20, 2_500_000] {
        let raw = mixed(bytes, bytes as u64);
        for options in FORMATS.map(of).iter().chain([&filtered, &cut]) {
            let packed = small_pack(options, &raw);
            assert!(packed == pack(&many, options, &raw), "{bytes} bytes, {options:?}");
            assert!(small_unpack(&packed).unwrap() == raw, "{bytes} bytes, {options:?}");
        }
    }
}

/// What other programs write goes through in parts.
#[test]
fn members_and_frames_without_a_size_are_unpacked() {
    let raw = mixed(3_000_000, 4);
    let packed = small_pack(&of(Format::Gzip), &raw);
    // Without the field that says how large they are, members have to be unpacked to find their ends.
    let plain = without_sizes(&packed);
    assert!(small_unpack(&plain).unwrap() == raw && unpack(&packer(2), &plain).unwrap() == raw);
    let mut large = raw.repeat(20);
    large.truncate(50_000_000);
    let mut frame = vec![0; zstd_safe::compress_bound(large.len())];
    let length = zstd_safe::compress(&mut frame[..], &large, 1).expect("there is room");
    assert!(small_unpack(&frame[..length]).unwrap() == large, "a frame that is too large to be held whole");
}

/// Members as gzip writes them: ours have one extra field of so many bytes behind the ten of every header.
fn without_sizes(packed: &[u8]) -> Vec<u8> {
    let (mut plain, mut rest) = (Vec::new(), packed);
    while !rest.is_empty() {
        let extra = usize::from(u16::from_le_bytes([rest[10], rest[11]]));
        let length = u32::from_le_bytes([rest[16], rest[17], rest[18], rest[19]]) as usize;
        let (member, behind) = rest.split_at(length);
        plain.extend([&member[..3], &[0], &member[4..10], &member[12 + extra..]].concat());
        rest = behind;
    }
    plain
}

#[test]
fn ranges_are_those_of_a_scheduler() {
    let raw = mixed(1_500_000, 6);
    for format in FORMATS {
        let packed = small_pack(&of(format), &raw);
        for range in [0..1, 700_000..900_000, 1_499_999..9_000_000] {
            let (mut part, input) = (Vec::new(), Cursor::new(&packed));
            let (options, watch) = (UnpackOptions::default(), PackWatch::default());
            SmallPacker::default().unpack_range(input, &mut part, &range, &options, &watch).unwrap();
            let [from, to] = [range.start, range.end].map(|place| (place as usize).min(raw.len()));
            assert!(part == raw[from..to], "{format} {range:?}");
        }
    }
}

#[test]
fn damage_is_found_where_a_scheduler_finds_it() {
    let (many, raw) = (packer(2), mixed(300_000, 7));
    for format in FORMATS {
        let packed = small_pack(&of(format), &raw);
        for seed in 0..60 {
            let (mut rng, mut damaged) = (Rng::new(seed), packed.clone());
            match rng.below(3) {
                0 => damaged.truncate(rng.below(packed.len())),
                _ => damaged[rng.below(packed.len())] ^= 1 << rng.below(8),
            }
            match (small_unpack(&damaged), unpack(&many, &damaged)) {
                (Ok(small), Ok(large)) => assert!(small == large, "{format}, seed {seed}"),
                (Err(small), Err(large)) => {
                    let told = |error: &PackError| error.damage().map(ToString::to_string);
                    assert_eq!(told(&small), told(&large), "{format}, seed {seed}");
                    assert!(small.damage().is_some(), "{format}, seed {seed}: {small}");
                }
                (small, large) => panic!("{format}, seed {seed}: {:?}, {:?}", small.err(), large.err()),
            }
        }
    }
}

/// An input that panics.
struct Panics;

impl Read for Panics {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        panic!("the input panics on purpose");
    }
}

#[test]
fn every_end_is_an_error_that_says_why() {
    let (small, recipe) = (SmallPacker::default(), PackOptions::default().recipe(None).unwrap());
    let panicked = small.pack(Panics, &mut Vec::new(), &recipe, &PackWatch::default()).unwrap_err();
    assert!(matches!(&panicked, PackError::InputPanicked(told) if told.contains("on purpose")), "{panicked}");
    let sign = StopSign::default();
    sign.note();
    let stopped = small.pack(&b"x"[..], &mut Vec::new(), &recipe, &PackWatch::stopped_by(&sign)).unwrap_err();
    assert!(matches!(stopped, PackError::Stopped), "{stopped}");
    let staged = PackOptions { method: Some(Method::Staged), ..PackOptions::default() }.recipe(None).unwrap();
    let refused = small.pack(&b"x"[..], &mut Vec::new(), &staged, &PackWatch::default()).unwrap_err();
    assert!(matches!(refused, PackError::NeedsScheduler), "{refused}");
    let limit = UnpackOptions { limit: Some(Bytes(10)) };
    let (packed, mut raw) = (small_pack(&PackOptions::default(), &[7; 1_000]), Vec::new());
    let over = small.unpack(&packed[..], &mut raw, &limit, &PackWatch::default()).unwrap_err();
    assert!(raw.is_empty() && over.to_string().contains("more than 10 B"), "{over}");
}
