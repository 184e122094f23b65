//! Between the codes of a frame and planes of numbers from 0 to 1: two kernels for each direction's layouts, their twins,
//! and the same for single rows.
//! Invariant: codes that go in and out unchanged are the same codes, at every depth.

use archmage::autoversion;
use bytemuck::{Pod, Zeroable};
use plimsoll_runtime::{Access, Kernel, Twin};

/// Codes of a frame to one plane.
pub(super) static UNPACK_SAMPLES: Kernel = Kernel {
    name: "unpack_samples",
    wgsl: include_str!("unpack_samples.wgsl"),
    entry: "unpack_samples",
    bindings: &[Access::Read, Access::Write],
    params: size_of::<Unpack>(),
    twin: unpack_samples,
};

/// One plane to codes that lie together.
pub(super) static PACK_PLANE: Kernel = Kernel {
    name: "pack_plane",
    wgsl: include_str!("pack_plane.wgsl"),
    entry: "pack_plane",
    bindings: &[Access::Read, Access::Write],
    params: size_of::<Pack>(),
    twin: pack_plane,
};

/// Three planes to interleaved codes.
pub(super) static PACK_RGB: Kernel = Kernel {
    name: "pack_rgb",
    wgsl: include_str!("pack_rgb.wgsl"),
    entry: "pack_rgb",
    bindings: &[Access::Read, Access::Read, Access::Read, Access::Write],
    params: size_of::<Pack>(),
    twin: pack_rgb,
};

/// Words that one row of invocations of a packing kernel writes: all planes are rectangles to a launch.
pub(super) const WORDS_ACROSS: u32 = 1024;

/// The uniform of `unpack_samples`; the WGSL says what each field means.
#[repr(C)]
#[derive(Copy, Clone, Pod, Zeroable)]
pub(super) struct Unpack {
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) first: u32,
    pub(super) step: u32,
    pub(super) sample_bytes: u32,
    pub(super) scale: f32,
    pub(super) padding: [u32; 2],
}

/// The uniform of `pack_plane` and `pack_rgb`; the WGSL says what each field means.
#[repr(C)]
#[derive(Copy, Clone, Pod, Zeroable)]
pub(super) struct Pack {
    pub(super) samples: u32,
    pub(super) first_word: u32,
    pub(super) sample_bytes: u32,
    pub(super) scale: f32,
    pub(super) flag: u32,
    pub(super) done: u32,
    pub(super) padding: [u32; 2],
}

fn unpack_samples(twin: &mut Twin<'_>) {
    let Unpack { width, height, first, step, sample_bytes, scale, .. } = twin.params();
    let (packed, plane) = twin.words_from_to(0, 1);
    let (first, count) = (first as usize * sample_bytes as usize, width as usize * height as usize);
    let plane: &mut [f32] = bytemuck::cast_slice_mut(plane);
    widen(&bytemuck::cast_slice(packed)[first..], step as usize, sample_bytes as usize, scale, &mut plane[..count]);
}

fn pack_plane(twin: &mut Twin<'_>) {
    let Pack { samples, first_word, sample_bytes, scale, flag, done, .. } = twin.params();
    let (plane, packed) = twin.words_from_to(0, 1);
    let plane: &[f32] = &bytemuck::cast_slice(plane)[..samples as usize];
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(packed);
    narrow(plane, scale, sample_bytes as usize, 1, &mut bytes[first_word as usize * 4..]);
    packed[flag as usize] |= u32::from(has_gaps(plane));
    packed[done as usize] = 1;
}

fn pack_rgb(twin: &mut Twin<'_>) {
    let Pack { samples, first_word, sample_bytes, scale, flag, done, .. } = twin.params();
    let (planes, mut packed) = twin.reads_and_writes();
    let packed: &mut [u32] = bytemuck::cast_slice_mut(packed.remove(0));
    for (channel, plane) in planes.into_iter().enumerate() {
        let (plane, bytes) = (&plane[..samples as usize / 3], bytemuck::cast_slice_mut::<u32, u8>(packed));
        let first = first_word as usize * 4 + channel * sample_bytes as usize;
        narrow(plane, scale, sample_bytes as usize, 3, &mut bytes[first..]);
        packed[flag as usize] |= u32::from(has_gaps(plane));
    }
    packed[done as usize] = 1;
}

/// Whether a sample was never computed.
#[autoversion(v3)]
fn has_gaps(plane: &[f32]) -> bool {
    plane.iter().fold(false, |gaps, sample| gaps | sample.is_nan())
}

/// Every `step`-th code as a number: `scale` is that of one code.
pub(super) fn widen(bytes: &[u8], step: usize, sample_bytes: usize, scale: f32, out: &mut [f32]) {
    match (sample_bytes, step) {
        (1, 1) => widen_bytes(&bytes[..out.len()], scale, out),
        (1, _) => bytes.iter().step_by(step).zip(out).for_each(|(code, out)| *out = f32::from(*code) * scale),
        (_, 1) => widen_pairs(bytes.as_chunks().0, scale, out),
        _ => {
            let codes = bytes.as_chunks().0.iter().step_by(step);
            codes.zip(out).for_each(|(code, out)| *out = f32::from(u16::from_le_bytes(*code)) * scale);
        }
    }
}

#[autoversion(v4, v3)]
fn widen_bytes(codes: &[u8], scale: f32, out: &mut [f32]) {
    for (out, code) in out.iter_mut().zip(codes) {
        *out = f32::from(*code) * scale;
    }
}

#[autoversion(v4, v3)]
fn widen_pairs(codes: &[[u8; 2]], scale: f32, out: &mut [f32]) {
    for (out, code) in out.iter_mut().zip(codes) {
        *out = f32::from(u16::from_le_bytes(*code)) * scale;
    }
}

/// Numbers as codes, every `step`-th of the bytes' samples: `scale` is the highest code. What is below 0 or above 1 is
/// cut off.
pub(super) fn narrow(samples: &[f32], scale: f32, sample_bytes: usize, step: usize, bytes: &mut [u8]) {
    match (sample_bytes, step) {
        (1, 1) => narrow_bytes(samples, scale, bytes),
        (1, _) => {
            bytes.iter_mut().step_by(step).zip(samples).for_each(|(out, sample)| *out = code(*sample, scale) as u8);
        }
        (_, 1) => narrow_pairs(samples, scale, bytes.as_chunks_mut().0),
        _ => {
            let pairs = bytes.as_chunks_mut().0.iter_mut().step_by(step);
            pairs.zip(samples).for_each(|(out, sample)| *out = (code(*sample, scale) as u16).to_le_bytes());
        }
    }
}

/// The code in the low bits: a whole number added to 2^23 is there as it is. A cast would look for what does not fit,
/// one sample at a time: 720p took 1.2 ms longer.
#[inline(always)]
fn code(sample: f32, scale: f32) -> u32 {
    const WHOLE: f32 = 8_388_608.0;
    ((sample.clamp(0.0, 1.0) * scale + 0.5).floor() + WHOLE).to_bits()
}

#[autoversion(v4, v3)]
fn narrow_bytes(samples: &[f32], scale: f32, bytes: &mut [u8]) {
    for (out, sample) in bytes.iter_mut().zip(samples) {
        *out = code(*sample, scale) as u8;
    }
}

#[autoversion(v4, v3)]
fn narrow_pairs(samples: &[f32], scale: f32, bytes: &mut [[u8; 2]]) {
    for (out, sample) in bytes.iter_mut().zip(samples) {
        *out = (code(*sample, scale) as u16).to_le_bytes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_comes_back() {
        for depth in 8..=16_u32 {
            let max = (1_u32 << depth) - 1;
            let bytes = if depth > 8 { 2 } else { 1 };
            let codes: Vec<u8> = (0..=max).flat_map(|code| code.to_le_bytes()[..bytes].to_vec()).collect();
            let mut numbers = vec![0.0; max as usize + 1];
            widen(&codes, 1, bytes, 1.0 / max as f32, &mut numbers);
            let mut back = vec![0; codes.len()];
            narrow(&numbers, max as f32, bytes, 1, &mut back);
            assert_eq!(back, codes, "{depth} bits");
        }
    }

    #[test]
    fn what_is_out_of_range_is_cut_off() {
        let mut bytes = [7; 6];
        narrow(&[-3.0, 9.0], 255.0, 1, 3, &mut bytes);
        assert_eq!(bytes, [0, 7, 7, 255, 7, 7]);
    }
}
