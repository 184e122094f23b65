//! Outputs that are thrown away if it ends with an error: who unpacks a frame writes it meanwhile, and nothing else about it is
//! different.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Cursor, Seek, SeekFrom, Write};
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;
use std::time::Duration;

use plimsoll::pack::{
    Draft, Format, PackError, PackOptions, PackSummary, PackWatch, Packer, SmallPacker, UnpackError, UnpackOptions,
};
use plimsoll::{Bytes, StopSign};
use plimsoll_core::rng::Rng;

use crate::data::{mixed, of, pack, packer, unpack};

/// A draft in memory that has room for so many bytes.
struct Kept {
    bytes: Mutex<Vec<u8>>,
    room: usize,
}

impl Kept {
    fn new(room: usize) -> Arc<Self> {
        Arc::new(Self { bytes: Mutex::default(), room })
    }
}

impl Draft for Kept {
    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        let (mut kept, start) = (self.bytes.lock().unwrap(), at as usize);
        let end = start + bytes.len();
        if end > self.room {
            return Err(io::ErrorKind::StorageFull.into());
        }
        if kept.len() < end {
            kept.resize(end, 0);
        }
        kept[start..end].copy_from_slice(bytes);
        Ok(())
    }
}

/// From memory and from a file, which end alike, and so by a few threads without a scheduler.
fn draft(packer: &Packer, packed: &[u8], into: &mut Vec<u8>) -> Result<PackSummary, PackError> {
    let (kept, of_file) = (Kept::new(usize::MAX), Kept::new(usize::MAX));
    let input = Cursor::new(packed.to_vec());
    let done = packer.unpack_draft(input, kept.clone(), &UnpackOptions::default(), &PackWatch::default());
    let from_file =
        packer.unpack_file(file_of(packed), of_file.clone(), &UnpackOptions::default(), &PackWatch::default());
    match (&done, &from_file) {
        (Ok(one), Ok(other)) => {
            assert_eq!((one.raw, one.packed), (other.raw, other.packed));
            assert!(*kept.bytes.lock().unwrap() == *of_file.bytes.lock().unwrap());
        }
        (Err(one), Err(other)) => assert_eq!(one.to_string(), other.to_string()),
        (one, other) => panic!("{one:?} from memory and {other:?} from a file"),
    }
    for threads in [1, 2, 4] {
        let (few, ended) = by_few(threads, packed, &UnpackOptions::default());
        match (&from_file, ended) {
            (Ok(one), Ok(other)) => {
                assert_eq!((one.raw, one.packed), (other.raw, other.packed), "{threads} threads");
                assert!(*few == *of_file.bytes.lock().unwrap(), "{threads} threads");
            }
            (Err(one), Err(other)) => assert_eq!(end(one), end(&other), "{threads} threads"),
            (one, other) => panic!("{one:?} by a scheduler and {other:?} by {threads} threads"),
        }
    }
    into.extend_from_slice(&kept.bytes.lock().unwrap());
    done
}

/// What somebody is told of an error, whoever tells it.
fn end(error: &PackError) -> String {
    error.damage().map_or_else(|| error.to_string(), ToString::to_string)
}

/// What so many threads without a scheduler make of a file.
fn by_few(threads: usize, packed: &[u8], options: &UnpackOptions) -> (Vec<u8>, Result<PackSummary, PackError>) {
    let (kept, watch) = (Kept::new(usize::MAX), PackWatch::default());
    let ended = SmallPacker::default().unpack_file(file_of(packed), kept.clone(), threads, options, &watch);
    let bytes = std::mem::take(&mut *kept.bytes.lock().unwrap());
    if let Ok(summary) = &ended {
        assert_eq!(watch.done(), (summary.raw, summary.packed), "who watches it sees the same");
    }
    (bytes, ended)
}

/// A frame of another program: no table behind it, and a checksum at its end.
fn frame_alone(raw: &[u8]) -> Vec<u8> {
    let mut context = zstd_safe::CCtx::create();
    context.set_parameter(zstd_safe::CParameter::ChecksumFlag(true)).unwrap();
    let mut frame = Vec::with_capacity(zstd_safe::compress_bound(raw.len()));
    context.compress2(&mut frame, raw).unwrap();
    frame
}

/// Nothing can be unpacked beside it, but it can be read and written beside.
#[test]
fn a_frame_that_is_alone_in_its_file_goes_through_in_parts() {
    let (packer, raw) = (packer(2), mixed(9_000_000, 8));
    let (alone, mut back) = (frame_alone(&raw), Vec::new());
    draft(&packer, &alone, &mut back).unwrap();
    assert!(back == raw);
    let blocks = |packed: &[u8]| by_few(2, packed, &UnpackOptions::default()).1.unwrap().blocks;
    assert!(blocks(&alone) > 10, "{} steps", blocks(&alone));
    assert_eq!(blocks(&pack(&packer, &frames_of(32 << 20), &raw)), 1, "it has a table");
    let mut back = Vec::new();
    draft(&packer, &[&alone[..], &alone, &alone].concat(), &mut back).unwrap();
    assert!(back == [&raw[..], &raw, &raw].concat(), "others came after it");
}

#[test]
fn a_frame_that_is_alone_and_damaged_is_refused() {
    let alone = frame_alone(&mixed(5_000_000, 8));
    for seed in 0..40 {
        let (mut rng, mut damaged) = (Rng::new(seed), alone.clone());
        match rng.below(3) {
            0 => damaged.truncate(rng.below(alone.len())),
            _ => damaged[rng.below(alone.len())] ^= 1 << rng.below(8),
        }
        for threads in [1, 2, 4] {
            let ended = by_few(threads, &damaged, &UnpackOptions::default()).1;
            assert!(ended.is_err_and(|error| error.damage().is_some()), "seed {seed}, {threads} threads");
        }
    }
}

/// Notes who writes, and takes his time.
#[derive(Default)]
struct Slow(Mutex<HashSet<ThreadId>>);

impl Draft for Slow {
    fn write_at(&self, _: &[u8], _: u64) -> io::Result<()> {
        std::thread::sleep(Duration::from_millis(2));
        self.0.lock().unwrap().insert(std::thread::current().id());
        Ok(())
    }
}

#[test]
fn who_has_nothing_to_unpack_writes() {
    let (alone, slow) = (frame_alone(&mixed(9_000_000, 8)), Arc::new(Slow::default()));
    let (options, watch) = (UnpackOptions::default(), PackWatch::default());
    SmallPacker::default().unpack_file(file_of(&alone), slow.clone(), 3, &options, &watch).unwrap();
    assert!(slow.0.lock().unwrap().len() > 1);
}

#[test]
fn a_few_threads_keep_to_limits_and_end_when_they_are_told_to() {
    let (packer, raw) = (packer(2), mixed(6_000_000, 3));
    let files = [pack(&packer, &frames_of(2 << 20), &raw), pack(&packer, &of(Format::Bgzf), &raw), frame_alone(&raw)];
    for (packed, threads) in files.iter().flat_map(|packed| [(packed, 1), (packed, 2), (packed, 4)]) {
        let limited = |bytes| by_few(threads, packed, &UnpackOptions { limit: Some(Bytes(bytes)) });
        let (kept, error) = (limited(3_000_000).0, limited(3_000_000).1.unwrap_err());
        assert!(matches!(error.damage(), Some(UnpackError::OverLimit { .. })), "{error}");
        assert!(kept.len() <= 3_000_000);
        assert!(limited(6_000_000).0 == raw);
        let (small, options) = (SmallPacker::default(), UnpackOptions::default());
        let full = small.unpack_file(file_of(packed), Kept::new(3_000_000), threads, &options, &PackWatch::default());
        assert!(matches!(full, Err(PackError::Output(reason)) if reason.kind() == io::ErrorKind::StorageFull));
        let stop = StopSign::default();
        stop.raise();
        let watch = PackWatch::stopped_by(&stop);
        let stopped = small.unpack_file(file_of(packed), Kept::new(usize::MAX), threads, &options, &watch);
        assert!(matches!(stopped, Err(PackError::Stopped)));
    }
}

/// A file of these bytes, to be read from its beginning.
fn file_of(bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file.rewind().unwrap();
    file
}

#[test]
fn a_file_that_was_read_from_already_is_unpacked_from_there() {
    let (packer, raw) = (packer(2), mixed(3_000_000, 4));
    let packed = pack(&packer, &frames_of(2 << 20), &raw);
    let mut file = file_of(&[b"before", &packed[..]].concat());
    file.seek(SeekFrom::Start(6)).unwrap();
    let kept = Kept::new(usize::MAX);
    packer.unpack_file(file, kept.clone(), &UnpackOptions::default(), &PackWatch::default()).unwrap();
    assert!(*kept.bytes.lock().unwrap() == raw);
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

/// Frames that tell how much they give, and others, members of all kinds, and frames that go through in parts.
#[test]
fn pieces_that_do_not_tell_their_length_stand_between_those_that_do() {
    let (packer, raw) = (packer(2), mixed(3_000_000, 21));
    let known = pack(&packer, &frames_of(1 << 20), &raw);
    // No content size, no checksum, a window of 1 MiB; a block of seven bytes as they are.
    let mut unknown = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 10 << 3];
    unknown.extend(&(7_u32 << 3 | 1).to_le_bytes()[..3]);
    unknown.extend(b"between");
    let large = {
        let mut context = zstd_safe::CCtx::create();
        let mut frame = Vec::with_capacity(zstd_safe::compress_bound(60_000_000));
        context.compress2(&mut frame, &vec![3; 60_000_000]).unwrap();
        frame
    };
    let packed = [&known[..], &unknown, &known, &large, &unknown, &unknown, &known].concat();
    let expected = [&raw[..], b"between", &raw, &vec![3; 60_000_000], b"between", b"between", &raw].concat();
    let mut back = Vec::new();
    assert_eq!(draft(&packer, &packed, &mut back).unwrap().raw, expected.len() as u64);
    assert!(back == expected);
    for format in [Format::Gzip, Format::Bgzf] {
        let (packed, mut back) = (pack(&packer, &of(format), &raw), Vec::new());
        draft(&packer, &packed, &mut back).unwrap();
        assert!(back == raw, "{format:?}");
    }
}

#[test]
fn limits_hold_for_drafts() {
    let (packer, raw) = (packer(2), mixed(6_000_000, 3));
    let packed = pack(&packer, &frames_of(2 << 20), &raw);
    let (limited, kept) = (UnpackOptions { limit: Some(Bytes(3_000_000)) }, Kept::new(usize::MAX));
    let input = Cursor::new(packed.clone());
    let error = packer.unpack_draft(input, kept.clone(), &limited, &PackWatch::default()).unwrap_err();
    assert!(matches!(error.damage(), Some(UnpackError::OverLimit { .. })), "{error}");
    assert!(kept.bytes.lock().unwrap().len() <= 3_000_000);
    let (enough, kept) = (UnpackOptions { limit: Some(Bytes(6_000_000)) }, Kept::new(usize::MAX));
    packer.unpack_draft(Cursor::new(packed), kept.clone(), &enough, &PackWatch::default()).unwrap();
    assert!(*kept.bytes.lock().unwrap() == raw);
}

#[test]
fn a_draft_that_cannot_be_written_says_why() {
    let (packer, raw) = (packer(2), mixed(6_000_000, 3));
    for options in [frames_of(1 << 20), of(Format::Gzip), of(Format::Bgzf)] {
        let input = Cursor::new(pack(&packer, &options, &raw));
        let kept = Kept::new(3_000_000);
        let error = packer.unpack_draft(input, kept, &UnpackOptions::default(), &PackWatch::default()).unwrap_err();
        let PackError::Output(reason) = &error else { panic!("{error}") };
        assert_eq!(reason.kind(), io::ErrorKind::StorageFull);
    }
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
