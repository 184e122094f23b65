//! Outputs that are thrown away if it ends with an error: frames are written while they are unpacked, and nothing else about
//! it is different.

use std::io::Cursor;

use plimsoll::Bytes;
use plimsoll::pack::{Format, PackError, PackOptions, PackSummary, PackWatch, Packer, UnpackError, UnpackOptions};
use plimsoll_core::rng::Rng;

use crate::data::{mixed, of, pack, packer, unpack};

const DRAFT: UnpackOptions = UnpackOptions { limit: None, is_draft: true };

fn draft(packer: &Packer, packed: &[u8], into: &mut Vec<u8>) -> Result<PackSummary, PackError> {
    packer.unpack(Cursor::new(packed.to_vec()), into, &DRAFT, &PackWatch::default())
}

fn frames_of(bytes: u64) -> PackOptions {
    PackOptions { block: Some(Bytes(bytes)), ..of(Format::Zstd) }
}

#[test]
fn a_draft_gets_the_same_bytes_at_every_number_of_threads() {
    for (bytes, block) in [(7_000_000, 4 << 20), (3_000_001, 1 << 20), (9_000_000, 32 << 20), (500_000, 64 << 10)] {
        let raw = mixed(bytes, 5);
        let packed = pack(&packer(2), &frames_of(block), &raw);
        for threads in [1, 2, 8] {
            let mut back = Vec::new();
            let summary = draft(&packer(threads), &packed, &mut back).unwrap();
            assert!(back == raw, "{bytes} bytes in frames of {block}, {threads} threads");
            let pieces = bytes.div_ceil(block as usize) as u64;
            assert_eq!((summary.raw, summary.blocks), (bytes as u64, pieces), "a frame is one piece");
        }
    }
}

/// What a draft is for: a frame whose checksum is wrong was written by then. Nobody else gets a byte of it.
#[test]
fn only_a_draft_gets_bytes_of_a_frame_that_is_not_whole() {
    let (packer, raw) = (packer(2), mixed(6_000_000, 9));
    let mut packed = pack(&packer, &frames_of(32 << 20), &raw);
    // The checksum is the end of the frame; the table of one frame comes after it.
    let checksum = packed.len() - (8 + 8 + 9) - 1;
    packed[checksum] ^= 1;
    let mut early = Vec::new();
    let error = draft(&packer, &packed, &mut early).unwrap_err();
    assert!(matches!(error.damage(), Some(UnpackError::Damaged { at: 0, .. })), "{error}");
    assert!(early.len() > 1 << 20 && raw.starts_with(&early), "{} bytes came early", early.len());
    let mut late = Vec::new();
    let input = Cursor::new(packed);
    let error = packer.unpack(input, &mut late, &UnpackOptions::default(), &PackWatch::default()).unwrap_err();
    assert!(matches!(error.damage(), Some(UnpackError::Damaged { at: 0, .. })) && late.is_empty(), "{error}");
}

#[test]
fn ranges_and_limits_hold_for_drafts() {
    let (packer, raw) = (packer(2), mixed(6_000_000, 3));
    let packed = pack(&packer, &frames_of(2 << 20), &raw);
    for range in [0..1, 2_000_000..2_200_000, 100..5_900_000, 5_999_999..7_000_000] {
        let (mut part, input) = (Vec::new(), Cursor::new(packed.clone()));
        packer.unpack_range(input, &mut part, &range, &DRAFT, &PackWatch::default()).unwrap();
        let [from, to] = [range.start, range.end].map(|place| (place as usize).min(raw.len()));
        assert!(part == raw[from..to], "{range:?}");
    }
    let limited = UnpackOptions { limit: Some(Bytes(3_000_000)), ..DRAFT };
    let (mut back, input) = (Vec::new(), Cursor::new(packed));
    let error = packer.unpack(input, &mut back, &limited, &PackWatch::default()).unwrap_err();
    assert!(matches!(error.damage(), Some(UnpackError::OverLimit { .. })) && back.len() <= 3_000_000, "{error}");
}

/// Whatever is done to a file, a draft ends as any other output does, and with the same place.
#[test]
fn damage_is_found_in_a_draft_as_it_is_elsewhere() {
    let (packer, raw) = (packer(2), mixed(4_000_000, 11));
    let packed = pack(&packer, &frames_of(2 << 20), &raw);
    for seed in 0..60 {
        let (mut rng, mut damaged) = (Rng::new(seed), packed.clone());
        match rng.below(3) {
            0 => damaged.truncate(rng.below(packed.len())),
            _ => damaged[rng.below(packed.len())] ^= 1 << rng.below(8),
        }
        let mut early = Vec::new();
        match (draft(&packer, &damaged, &mut early), unpack(&packer, &damaged)) {
            (Ok(_), Ok(bytes)) => assert!(early == bytes, "seed {seed}"),
            (Err(early), Err(late)) => {
                let place = |error: &PackError| match error.damage() {
                    Some(UnpackError::Damaged { at, .. }) => Some(*at),
                    _ => None,
                };
                assert_eq!(place(&early), place(&late), "seed {seed}: {early} and {late}");
            }
            (early, late) => panic!("seed {seed}: {early:?} and {:?}", late.map(|bytes| bytes.len())),
        }
    }
}
