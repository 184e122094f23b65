//! Safetensors with zstd, and plain int8 and int4 files with a scale for 64 weights, each on all cores.

use std::fs;
use std::path::Path;

use rayon::prelude::*;

use crate::{best, gb_a_second, row};

const BLOCK: usize = 4 << 20;
const GROUP: usize = 64;

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks::<2>().0.iter().map(|pair| f32::from_bits(u32::from(u16::from_le_bytes(*pair)) << 16)).collect()
}

/// One byte, or half of one, a weight.
fn quantise(bytes: &[u8], bits: u32) -> Vec<u8> {
    let steps = ((1_u32 << (bits - 1)) - 1) as f32;
    let mut packed = Vec::new();
    for group in floats(bytes).chunks(GROUP) {
        let largest = group.iter().fold(0_f32, |a, x| a.max(x.abs()));
        packed.extend_from_slice(&((largest.to_bits() >> 16) as u16).to_le_bytes());
        let by = if largest > 0.0 { steps / largest } else { 0.0 };
        let codes = group.iter().map(|x| (x * by).round() as i8);
        if bits == 8 {
            packed.extend(codes.map(|code| code as u8));
        } else {
            let codes: Vec<u8> = codes.map(|code| code as u8 & 0xf).collect();
            packed.extend(codes.chunks(2).map(|pair| pair[0] | pair.get(1).unwrap_or(&0) << 4));
        }
    }
    packed
}

fn dequantise(packed: &[u8], bits: u32) -> Vec<u8> {
    let steps = ((1_u32 << (bits - 1)) - 1) as f32;
    let mut bytes = Vec::new();
    let mut put = |x: f32| bytes.extend_from_slice(&(((x.to_bits() + 0x8000) >> 16) as u16).to_le_bytes());
    for group in packed.chunks(2 + GROUP * bits as usize / 8) {
        let scale = f32::from_bits(u32::from(u16::from_le_bytes([group[0], group[1]])) << 16) / steps;
        for code in &group[2..] {
            if bits == 8 {
                put(f32::from(*code as i8) * scale);
            } else {
                put(f32::from((*code << 4) as i8 >> 4) * scale);
                put(f32::from(*code as i8 >> 4) * scale);
            }
        }
    }
    bytes
}

type Code = Box<dyn Fn(&[u8]) -> Vec<u8> + Sync>;

pub(crate) fn rows(input: &Path, folder: &Path, weights: usize, raw: u64) {
    let zstd = |level: i32| -> Code { Box::new(move |block| zstd_packed(block, level)) };
    let peers: Vec<(&str, Code, Code)> = vec![
        ("safetensors + zstd -3", zstd(3), Box::new(zstd_unpacked)),
        ("safetensors + zstd -1", zstd(1), Box::new(zstd_unpacked)),
        ("plain int8", Box::new(|block| quantise(block, 8)), Box::new(|packed| dequantise(packed, 8))),
        ("plain int4", Box::new(|block| quantise(block, 4)), Box::new(|packed| dequantise(packed, 4))),
    ];
    for (name, pack, unpack) in peers {
        let (packed_path, again) = (folder.join("peer"), folder.join("peer.again"));
        let mut blocks = Vec::new();
        let packing = best(|| {
            let bytes = fs::read(input).expect("the model is read");
            blocks = bytes.par_chunks(BLOCK).map(&pack).collect::<Vec<_>>();
            fs::write(&packed_path, blocks.concat()).expect("written");
        });
        let lengths: Vec<usize> = blocks.iter().map(Vec::len).collect();
        let restoring = best(|| {
            let bytes = fs::read(&packed_path).expect("read");
            let mut rest = &bytes[..];
            let pieces: Vec<&[u8]> =
                lengths.iter().map(|length| rest.split_off(..*length).expect("as long as it was")).collect();
            let restored: Vec<Vec<u8>> = pieces.par_iter().map(|piece| unpack(piece)).collect();
            fs::write(&again, restored.concat()).expect("written");
        });
        row(
            name,
            lengths.iter().sum::<usize>() as u64,
            weights,
            gb_a_second(raw, packing),
            gb_a_second(raw, restoring),
        );
    }
}

fn zstd_packed(block: &[u8], level: i32) -> Vec<u8> {
    let mut packed = Vec::with_capacity(zstd_safe::compress_bound(block.len()));
    zstd_safe::compress(&mut packed, block, level).expect("packed");
    packed
}

fn zstd_unpacked(packed: &[u8]) -> Vec<u8> {
    let mut block = Vec::with_capacity(BLOCK);
    zstd_safe::decompress(&mut block, packed).expect("unpacked");
    block
}
