//! Damaged files: refused with a place, or the right bytes; never wrong bytes, a panic or a hang.

use std::io::Cursor;

use plimsoll::Bytes;
use plimsoll::pack::{Format, PackOptions, PackWatch, Packer, UnpackError, UnpackOptions};
use plimsoll_core::rng::Rng;

use crate::data::{FORMATS, mixed, of, pack, packer, unpack};

/// Mutated files in the test; `cargo xtask campaign pack` asks for more of them.
const MUTATIONS: u64 = 200;
/// Bytes of a block of the samples.
const BLOCK: usize = 128 << 10;
/// Bytes of a block of BGZF, as bgzip cuts them.
const BGZF_BLOCK: usize = 0xff00;

fn samples(packer: &Packer) -> Vec<(String, Vec<u8>, Vec<u8>)> {
    let raw = mixed(500_000, 21);
    let block = Some(Bytes(BLOCK as u64));
    let mut samples: Vec<_> = FORMATS
        .iter()
        .map(|format| {
            let block = block.filter(|_| *format != Format::Bgzf);
            (format.to_string(), pack(packer, &PackOptions { block, ..of(*format) }, &raw), raw.clone())
        })
        .collect();
    let filtered = PackOptions { filter: "delta:u32,shuffle:u32".parse().ok(), block, ..PackOptions::default() };
    samples.push(("filtered".to_owned(), pack(packer, &filtered, &raw), raw));
    samples
}

/// Whatever comes of it must be an error that says where, or the right bytes. Says whether it was refused.
fn refused_or_right(packer: &Packer, what: &str, damaged: &[u8], raw: &[u8]) -> bool {
    match unpack(packer, damaged) {
        Ok(bytes) => {
            assert!(bytes == raw, "{what} gave wrong bytes");
            false
        }
        Err(error) => {
            let damage = error.damage().unwrap_or_else(|| panic!("{what}: {error}"));
            let has_place = !matches!(damage, UnpackError::OverLimit { .. } | UnpackError::Unreadable { .. });
            assert!(has_place, "{what}: {damage}");
            true
        }
    }
}

#[test]
fn a_flipped_bit_is_refused() {
    let packer = packer(2);
    for (name, packed, raw) in samples(&packer) {
        let mut rng = Rng::new(40);
        let mut right = 0;
        for _ in 0..200 {
            let (byte, bit) = (rng.below(packed.len()), rng.below(8));
            let mut damaged = packed.clone();
            damaged[byte] ^= 1 << bit;
            let what = format!("{name} with bit {bit} of byte {byte} flipped");
            right += usize::from(!refused_or_right(&packer, &what, &damaged, &raw));
        }
        // Times and the like in headers of gzip members mean nothing to the content.
        assert!(right <= 2, "{name}: {right} of 200 were not noticed");
    }
}

#[test]
fn every_bit_of_the_first_and_last_hundred_bytes_is_refused_or_harmless() {
    let packer = packer(2);
    for (name, packed, raw) in samples(&packer) {
        for byte in (0..100).chain(packed.len() - 100..packed.len()) {
            let mut damaged = packed.clone();
            damaged[byte] ^= 1 << (byte % 8);
            refused_or_right(&packer, &format!("{name} with a bit of byte {byte} flipped"), &damaged, &raw);
        }
    }
}

#[test]
fn a_file_that_is_cut_off_is_refused() {
    let packer = packer(2);
    for (name, packed, raw) in samples(&packer) {
        let mut rng = Rng::new(41);
        for _ in 0..60 {
            let length = rng.below(packed.len());
            match unpack(&packer, &packed[..length]) {
                // Whole members or frames without what ends the file are a file too.
                Ok(bytes) => assert!(raw.starts_with(&bytes), "{name} cut to {length}"),
                Err(error) => assert!(error.damage().is_some(), "{name} cut to {length}: {error}"),
            }
        }
    }
}

/// Bytes changed, taken out, put in, doubled; whole and by ranges. Frames and members that were doubled or dropped whole
/// are right by themselves, so what comes out is made of whole blocks, and a range is a part of that.
#[test]
fn mutated_files_end_in_an_error_or_in_whole_blocks() {
    let packer = packer(2);
    let samples = samples(&packer);
    for seed in 0..rounds(MUTATIONS) {
        let mut rng = Rng::new(seed);
        let (name, packed, raw) = &samples[rng.below(samples.len())];
        let mutated = mutated(packed, &mut rng);
        let what = format!("{name}, seed {seed}");
        let blocks = Blocks::of(raw, name);
        let whole = unpack(&packer, &mutated);
        match &whole {
            Ok(bytes) => assert!(blocks.make(bytes, 0), "{what} gave wrong bytes"),
            Err(error) => assert!(error.damage().is_some(), "{what}: {error}"),
        }
        let from = rng.below(raw.len()) as u64;
        let range = from..from + 1 + rng.below(200_000) as u64;
        let (mut part, input) = (Vec::new(), Cursor::new(mutated));
        let done = packer.unpack_range(input, &mut part, &range, &UnpackOptions::default(), &PackWatch::default());
        match (&done, &whole) {
            (Ok(_), Ok(whole)) => {
                let [from, to] = [range.start, range.end].map(|place| (place as usize).min(whole.len()));
                assert!(part == whole[from..to], "{what}, {range:?}: another range");
            }
            (Ok(_), Err(_)) => assert!(blocks.hold(&part), "{what}, {range:?}: wrong bytes"),
            (Err(error), _) => assert!(error.damage().is_some(), "{what}, {range:?}: {error}"),
        }
    }
}

/// As many as the environment says, for a campaign; this many otherwise.
fn rounds(usual: u64) -> u64 {
    std::env::var("PLIMSOLL_CAMPAIGN_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(usual)
}

/// The blocks that a file was packed in.
struct Blocks<'a>(Vec<&'a [u8]>);

impl<'a> Blocks<'a> {
    fn of(raw: &'a [u8], format: &str) -> Self {
        let size = if format == Format::Bgzf.to_string() { BGZF_BLOCK } else { BLOCK };
        Self(raw.chunks(size).collect())
    }

    /// Whether bytes are these blocks in some order, the last one cut off at the most by `cut`.
    fn make(&self, bytes: &[u8], cut: usize) -> bool {
        let fits = |block: &&[u8]| {
            bytes.starts_with(block) || (cut > 0 && block.starts_with(bytes) && block.len() - bytes.len() <= cut)
        };
        bytes.is_empty()
            || self
                .0
                .iter()
                .filter(|block| fits(block))
                .any(|block| self.make(bytes.get(block.len()..).unwrap_or(&[]), cut))
    }

    /// Whether bytes are a part of what these blocks can make.
    fn hold(&self, part: &[u8]) -> bool {
        let begins = |block: &&[u8]| {
            (0..block.len()).any(|at| {
                let rest = &block[at..];
                rest.starts_with(part) || (part.starts_with(rest) && self.make(&part[rest.len()..], usize::MAX))
            })
        };
        part.is_empty() || self.0.iter().any(begins)
    }
}

#[test]
fn blocks_know_what_they_make() {
    let raw: Vec<u8> = (0..3 * BLOCK).map(|n| (n / 700) as u8).collect();
    let blocks = Blocks::of(&raw, "zstd");
    assert!(blocks.make(&raw, 0) && blocks.make(&raw[BLOCK..], 0) && !blocks.make(&raw[..100], 0));
    assert!(blocks.hold(&raw[BLOCK - 10..BLOCK + 10]) && blocks.hold(&[]));
    let mut wrong = raw[BLOCK - 10..2 * BLOCK + 10].to_vec();
    wrong[BLOCK / 2] ^= 1;
    assert!(!blocks.hold(&wrong));
}

fn mutated(packed: &[u8], rng: &mut Rng) -> Vec<u8> {
    let mut bytes = packed.to_vec();
    for _ in 0..=rng.below(4) {
        let at = rng.below(bytes.len());
        let length = rng.below(64).min(bytes.len() - at);
        match rng.below(5) {
            0 => bytes[at] = rng.below(256) as u8,
            1 => drop(bytes.drain(at..at + length)),
            2 => bytes[at..at + length].fill(rng.below(256) as u8),
            3 => {
                let piece = bytes[at..at + length].to_vec();
                let to = rng.below(bytes.len());
                bytes.splice(to..to, piece);
            }
            _ => {
                let word = (rng.roll() as u32).to_le_bytes();
                bytes.splice(at..(at + 4).min(bytes.len()), word);
            }
        }
        if bytes.is_empty() {
            bytes.push(0);
        }
    }
    bytes
}

#[test]
fn the_first_place_that_is_wrong_is_told_for_every_number_of_threads() {
    let raw = mixed(2_000_000, 9);
    let options = PackOptions { block: Some(Bytes(64 << 10)), ..PackOptions::default() };
    let mut packed = pack(&packer(1), &options, &raw);
    let (early, late) = (packed.len() / 3, packed.len() / 2);
    packed[early] ^= 1;
    packed[late] ^= 1;
    let messages: Vec<String> = [1, 2, 8]
        .into_iter()
        .map(|threads| {
            let error = unpack(&packer(threads), &packed).unwrap_err();
            error.damage().expect("it is damaged").to_string()
        })
        .collect();
    assert!(messages.iter().all(|message| *message == messages[0]), "{messages:?}");
}

#[test]
fn what_is_no_packed_file_is_said_so() {
    let packer = packer(1);
    for bytes in [&b""[..], b"x", b"plain text, nothing else", &[0; 100]] {
        let error = unpack(&packer, bytes).unwrap_err();
        assert!(matches!(error.damage(), Some(UnpackError::NotPacked { .. })), "{error}");
    }
}
