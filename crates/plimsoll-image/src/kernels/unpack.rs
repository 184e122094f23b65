//! Packed pixels into planes.

use bytemuck::{Pod, Zeroable};
use plimsoll_runtime::{Access, Kernel, Twin};

/// The kernel: packed pixels and the table of sample values in; red, green and blue out.
pub(crate) static UNPACK: Kernel = Kernel {
    name: "unpack",
    wgsl: include_str!("unpack.wgsl"),
    entry: "unpack",
    bindings: &[Access::Read, Access::Read, Access::Write, Access::Write, Access::Write],
    params: size_of::<Params>(),
    twin: unpack,
};

/// The uniform; the WGSL says what each field means.
#[repr(C)]
#[derive(Copy, Clone, Pod, Zeroable)]
pub(crate) struct Params {
    pub(crate) width: u32,
    pub(crate) rows: u32,
    pub(crate) first_out: u32,
    pub(crate) words: u32,
}

fn unpack(twin: &mut Twin<'_>) {
    let params: Params = twin.params();
    let (words, count) = (params.words as usize, (params.width * params.rows) as usize);
    let first_out = (params.first_out * params.width) as usize;
    let (reads, writes) = twin.reads_and_writes();
    let packed: &[u32] = bytemuck::cast_slice(reads[0]);
    let table = reads[1];
    for (channel, plane) in writes.into_iter().enumerate() {
        let plane = &mut plane[first_out..][..count];
        let pixels = packed.chunks_exact(words);
        match words {
            1 => spread(plane, pixels, |pixel| table[(pixel[0] >> (8 * channel) & 0xff) as usize]),
            2 => spread(plane, pixels, |pixel| table[(pixel[channel / 2] >> (16 * (channel % 2)) & 0xffff) as usize]),
            _ => spread(plane, pixels, |pixel| f32::from_bits(pixel[channel])),
        }
    }
}

fn spread<'a>(plane: &mut [f32], pixels: impl Iterator<Item = &'a [u32]>, value: impl Fn(&[u32]) -> f32) {
    for (out, pixel) in plane.iter_mut().zip(pixels) {
        *out = value(pixel);
    }
}
