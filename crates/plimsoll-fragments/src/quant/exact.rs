//! What the finest level of bit planes leaves out: for each weight, how many numbers of its type lie between it and what the
//! level says. Most are small, so each byte of them is compressed by itself.

use crate::data_type::Float;
use crate::error::FragmentError;

/// Strong enough for bytes with a skewed distribution; more gains nothing on them.
const ZSTD_LEVEL: i32 = 1;

/// The differences of `bytes` to `decoded`.
pub(super) fn encode(bytes: &[u8], float: Float, decoded: &[f32]) -> Vec<u8> {
    let width = float.bytes();
    let mut planes = vec![Vec::with_capacity(decoded.len()); width];
    for (element, x) in bytes.chunks_exact(width).zip(decoded) {
        let off = zigzag(float, float.rank(word(element)).wrapping_sub(float.rank(float.bits_of(*x))));
        for (at, plane) in planes.iter_mut().enumerate() {
            plane.push((off >> (8 * at)) as u8);
        }
    }
    let packed: Vec<Vec<u8>> = planes.into_iter().map(packed).collect();
    let mut all: Vec<u8> = packed.iter().flat_map(|plane| (plane.len() as u32).to_le_bytes()).collect();
    packed.iter().for_each(|plane| all.extend_from_slice(plane));
    all
}

fn word(element: &[u8]) -> u32 {
    element.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte))
}

/// Small numbers of either sign as small numbers.
fn zigzag(float: Float, off: u32) -> u32 {
    let bits = 8 * float.bytes() as u32;
    let signed = (off << (32 - bits)) as i32 >> (32 - bits);
    ((signed << 1) ^ (signed >> 31)) as u32
}

fn unzigzag(off: u32) -> u32 {
    (off >> 1) ^ (off & 1).wrapping_neg()
}

/// A plane of bytes: compressed if that makes it smaller, which its length says.
fn packed(plane: Vec<u8>) -> Vec<u8> {
    let mut smaller = Vec::with_capacity(zstd_safe::compress_bound(plane.len()));
    match zstd_safe::compress(&mut smaller, &plane, ZSTD_LEVEL) {
        Ok(bytes) if bytes < plane.len() => smaller,
        _ => plane,
    }
}

/// The bytes that were packed, from the differences and what the levels say.
pub(super) fn decode(rest: &[u8], float: Float, decoded: &[f32]) -> Result<Vec<u8>, FragmentError> {
    let mut bytes = differences(rest, float, decoded.len())?;
    match float {
        Float::F32 => restore::<4>(&mut bytes, float, decoded),
        Float::F16 | Float::BF16 => restore::<2>(&mut bytes, float, decoded),
    }
    Ok(bytes)
}

/// Puts elements in the place of their differences.
fn restore<const WIDTH: usize>(bytes: &mut [u8], float: Float, decoded: &[f32]) {
    let mask = u32::MAX >> (32 - 8 * WIDTH as u32);
    for (element, x) in bytes.as_chunks_mut::<WIDTH>().0.iter_mut().zip(decoded) {
        let rank = float.rank(float.bits_of(*x)).wrapping_add(unzigzag(word(element)));
        element.copy_from_slice(&float.of_rank(rank & mask).to_le_bytes()[..WIDTH]);
    }
}

/// Puts the very weights, as bits of floats that hold them, in the place of those that the levels say.
pub(crate) fn moved_on(float: Float, differences: &[u8], weights: &mut [u32]) {
    let mask = u32::MAX >> (32 - 8 * float.bytes() as u32);
    for (difference, x) in differences.chunks_exact(float.bytes()).zip(weights) {
        let rank = float.rank(float.bits_of(f32::from_bits(*x))).wrapping_add(unzigzag(word(difference)));
        *x = float.widened(float.of_rank(rank & mask) & mask);
    }
}

/// The difference of each weight in as many bytes as an element has, as a device gets them.
///
/// # Errors
/// [`FragmentError::Damaged`] if they have not the sizes that they should have.
pub fn differences(rest: &[u8], float: Float, weights: usize) -> Result<Vec<u8>, FragmentError> {
    let width = float.bytes();
    let wrong =
        || FragmentError::damaged("the exact level of a tensor", "its parts have not the sizes they should have");
    let (lengths, mut packed) = rest.split_at_checked(4 * width).ok_or_else(wrong)?;
    let mut bytes = vec![0; weights * width];
    for (at, length) in lengths.as_chunks::<4>().0.iter().enumerate() {
        let (plane, behind) = packed.split_at_checked(u32::from_le_bytes(*length) as usize).ok_or_else(wrong)?;
        let plane = unpacked(plane, weights).ok_or_else(wrong)?;
        bytes[at..].iter_mut().step_by(width).zip(plane).for_each(|(to, byte)| *to = byte);
        packed = behind;
    }
    if packed.is_empty() { Ok(bytes) } else { Err(wrong()) }
}

fn unpacked(plane: &[u8], weights: usize) -> Option<Vec<u8>> {
    if plane.len() == weights {
        return Some(plane.to_vec());
    }
    let mut bytes = Vec::with_capacity(weights);
    zstd_safe::decompress(&mut bytes, plane).ok().filter(|count| *count == weights)?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sixteen_bit_number_comes_back() {
        let bytes: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
        for float in [Float::F16, Float::BF16] {
            for guess in [0.0, -0.0, 1.5, -3e-7, f32::MAX] {
                let decoded = vec![guess; 1 << 16];
                let rest = encode(&bytes, float, &decoded);
                assert!(decode(&rest, float, &decoded).unwrap() == bytes, "{float:?} {guess}");
            }
        }
    }

    #[test]
    fn odd_floats_come_back() {
        let odd = [0.0, -0.0, f32::NAN, f32::INFINITY, f32::MIN, 1e-45, -1e-40, 3.25, f32::from_bits(0xffc0_1234)];
        let bytes: Vec<u8> = odd.iter().flat_map(|x| x.to_le_bytes()).collect();
        let decoded = [1.0; 9];
        let rest = encode(&bytes, Float::F32, &decoded);
        assert_eq!(decode(&rest, Float::F32, &decoded).unwrap(), bytes);
        for cut in 0..rest.len() {
            assert!(decode(&rest[..cut], Float::F32, &decoded).is_err());
        }
    }
}
