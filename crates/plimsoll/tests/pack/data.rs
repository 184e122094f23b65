//! Bytes to pack, and short ways to pack and unpack them.

use std::io::{Cursor, Read};

use plimsoll::Orchestrator;
use plimsoll::pack::{Format, PackError, PackOptions, PackWatch, Packer, PackerOptions, UnpackOptions};
use plimsoll_core::rng::Rng;

pub(crate) const FORMATS: [Format; 3] = [Format::Zstd, Format::Gzip, Format::Bgzf];

pub(crate) fn packer(threads: usize) -> Packer {
    Packer::new(Orchestrator::builder().cpu(threads).build(), PackerOptions::default())
}

pub(crate) fn of(format: Format) -> PackOptions {
    PackOptions { format, ..PackOptions::default() }
}

pub(crate) fn pack(packer: &Packer, options: &PackOptions, bytes: &[u8]) -> Vec<u8> {
    let recipe = options.recipe(Some(bytes.len() as u64)).expect("options that can be meant");
    let mut packed = Vec::new();
    let input = Cursor::new(bytes.to_vec());
    let summary = packer.pack(input, &mut packed, &recipe, &PackWatch::default()).expect("it can be packed");
    assert_eq!((summary.raw, summary.packed), (bytes.len() as u64, packed.len() as u64));
    packed
}

pub(crate) fn unpack(packer: &Packer, packed: &[u8]) -> Result<Vec<u8>, PackError> {
    let mut raw = Vec::new();
    let input = Cursor::new(packed.to_vec());
    packer.unpack(input, &mut raw, &UnpackOptions::default(), &PackWatch::default()).map(|_| raw)
}

/// Words with some order, noise, zeros and a counter: something for every part of a packer.
pub(crate) fn mixed(bytes: usize, seed: u64) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    let mut made = Vec::with_capacity(bytes + 64);
    while made.len() < bytes {
        match rng.below(4) {
            0 => {
                (0..rng.below(2_000)).for_each(|n: usize| made.extend(format!("line {n} of {}\n", n * n % 97).bytes()))
            }
            1 => (0..rng.below(4_000)).for_each(|_| made.push(rng.below(256) as u8)),
            2 => made.extend(std::iter::repeat_n(0, rng.below(20_000))),
            _ => (0..rng.below(3_000) as u32).for_each(|n| made.extend((n * 3).to_le_bytes())),
        }
    }
    made.truncate(bytes);
    made
}

/// Bytes from nowhere, one value after the other.
pub(crate) struct Endless(pub(crate) u64);

impl Read for Endless {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        for byte in into.iter_mut() {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            *byte = (self.0 >> 40) as u8;
        }
        Ok(into.len())
    }
}
