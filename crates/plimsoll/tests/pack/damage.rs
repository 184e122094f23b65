//! Damaged files: refused with a place, or the right bytes; never wrong bytes, a panic or a hang.

use std::io::Cursor;

use plimsoll::Bytes;
use plimsoll::pack::{Format, PackOptions, PackWatch, Packer, UnpackError, UnpackOptions};
use plimsoll_core::rng::Rng;

use crate::data::{FORMATS, mixed, of, pack, packer, unpack};

/// Mutated files in the test; the same with other seeds is the long campaign.
const MUTATIONS: u64 = 300;

fn samples(packer: &Packer) -> Vec<(String, Vec<u8>, Vec<u8>)> {
    let raw = mixed(500_000, 21);
    let block = Some(Bytes(128 << 10));
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

/// Bytes changed, taken out, put in, doubled; whole and by ranges.
#[test]
fn mutated_files_end_in_an_error_or_in_what_their_checksums_say() {
    let packer = packer(2);
    let samples = samples(&packer);
    for seed in 0..MUTATIONS {
        let mut rng = Rng::new(seed);
        let (name, packed, raw) = &samples[rng.below(samples.len())];
        let mutated = mutated(packed, &mut rng);
        let what = format!("{name}, seed {seed}");
        if let Ok(bytes) = unpack(&packer, &mutated) {
            // Frames and members that were doubled or dropped whole are right by themselves.
            assert!(bytes == *raw || bytes.len() != raw.len(), "{what} gave wrong bytes");
        }
        let range = 100_000..200_000;
        let (mut part, input) = (Vec::new(), Cursor::new(mutated));
        let done = packer.unpack_range(input, &mut part, &range, &UnpackOptions::default(), &PackWatch::default());
        assert!(done.is_ok() || done.is_err_and(|error| error.damage().is_some()), "{what}");
    }
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
