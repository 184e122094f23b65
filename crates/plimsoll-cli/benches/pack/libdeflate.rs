//! libdeflate as a program: a whole file at once, on one thread, as its own `libdeflate-gzip` does.

use std::fs;

use libdeflater::{CompressionLvl, Compressor, Decompressor};

/// `pack LEVEL IN OUT` or `unpack 0 IN OUT`.
pub(crate) fn run(words: &[String]) {
    let [what, level, input, output] = words else { panic!("pack or unpack, a level, two files") };
    let bytes = fs::read(input).expect("the input can be read");
    let made = match what.as_str() {
        "pack" => packed(&bytes, level.parse().expect("a level")),
        _ => unpacked(&bytes),
    };
    fs::write(output, made).expect("the output can be written");
}

fn packed(bytes: &[u8], level: i32) -> Vec<u8> {
    let mut compressor = Compressor::new(CompressionLvl::new(level).expect("a level that it has"));
    let mut made = vec![0; compressor.gzip_compress_bound(bytes.len())];
    let length = compressor.gzip_compress(bytes, &mut made).expect("there is room");
    made.truncate(length);
    made
}

/// The length is at the end of the only member.
fn unpacked(bytes: &[u8]) -> Vec<u8> {
    let length = bytes.last_chunk::<4>().map_or(0, |length| u32::from_le_bytes(*length));
    let mut made = vec![0; length as usize];
    Decompressor::new().gzip_decompress(bytes, &mut made).expect("it was packed here");
    made
}
