//! Weights from the levels of a piece that are there. One product of two floats makes a weight, so every device rounds alike.

use super::bits::Bits;
use super::exact;
use super::groups::{class_of, scale_of};
use super::layout::LevelLayout;
use super::planes::join;
use crate::data_type::Float;
use crate::error::FragmentError;
use crate::limits::GROUP;

/// Weights from codes: what the encoder measures and every decoder gives.
#[inline]
pub(super) fn dequantise(codes: &[u8], headers: &[u16], table: &[f32], bits: u8, weights: &mut [f32]) {
    for ((group, header), codes) in weights.chunks_mut(GROUP).zip(headers).zip(codes.chunks_exact(GROUP)) {
        let (scale, entries) = entries(table, *header, bits);
        for (x, code) in group.iter_mut().zip(codes) {
            *x = scale * entries[usize::from(code >> (8 - bits))];
        }
    }
}

fn entries(table: &[f32], header: u16, bits: u8) -> (f32, &[f32]) {
    // A class that is not in the table can only come from damage that checksums missed; no reason to panic.
    let begin = (class_of(header) << bits).min(table.len() - (1 << bits));
    (scale_of(header), &table[begin..begin + (1 << bits)])
}

/// Decodes the first levels of a piece of `weights.len()` weights.
///
/// # Errors
/// [`FragmentError::Damaged`] if a level has not the bytes that it should have.
pub fn decode(levels: &[&[u8]], bits: &Bits, weights: &mut [f32]) -> Result<(), FragmentError> {
    let wrong = |why: &str| FragmentError::damaged("a piece of a tensor", why);
    if levels.is_empty() || levels.len() > bits.levels() {
        return Err(wrong("it has no levels, or too many"));
    }
    let layouts: Vec<LevelLayout> = (0..levels.len()).map(|at| LevelLayout::new(weights.len(), bits, at)).collect();
    if levels.iter().zip(&layouts).any(|(level, layout)| level.len() as u64 != layout.bytes()) {
        return Err(wrong("a level has another size than it should have"));
    }
    let finest = layouts[layouts.len() - 1];
    let table: Vec<f32> = words(&levels[levels.len() - 1][..4 * finest.table]).map(f32::from_bits).collect();
    let scales = &levels[0][4 * layouts[0].table..4 * layouts[0].planes_begin()];
    let headers = scales.as_chunks::<2>().0.iter().map(|pair| u16::from_le_bytes(*pair));
    let planes: Vec<(&[u8], usize)> = levels
        .iter()
        .zip(&layouts)
        .map(|(level, layout)| (&level[4 * layout.planes_begin()..], layout.added.into()))
        .collect();
    for (at, (group, header)) in weights.chunks_mut(GROUP).zip(headers).enumerate() {
        let (scale, entries) = entries(&table, header, finest.bits);
        for (half, group) in group.chunks_mut(32).enumerate() {
            let codes = join(&gathered(&planes, 2 * at + half));
            for (x, code) in group.iter_mut().zip(codes) {
                *x = scale * entries[usize::from(code >> (8 - finest.bits))];
            }
        }
    }
    Ok(())
}

/// The plane words of the `at`-th 32 weights, from every level that is there.
#[inline]
fn gathered(planes: &[(&[u8], usize)], at: usize) -> [u32; 8] {
    let mut all = [0; 8];
    let mut next = 0;
    for (bytes, added) in planes {
        for word in words(&bytes[4 * at * added..4 * (at + 1) * added]) {
            all[next] = word;
            next += 1;
        }
    }
    all
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u32> {
    bytes.as_chunks::<4>().0.iter().map(|four| u32::from_le_bytes(*four))
}

/// Decodes a piece to the very bytes that were packed: `levels` are all levels of bit planes.
///
/// # Errors
/// [`FragmentError::Damaged`].
pub fn decode_exact(
    levels: &[&[u8]],
    rest: &[u8],
    bits: &Bits,
    float: Float,
    weights: usize,
) -> Result<Vec<u8>, FragmentError> {
    let mut decoded = vec![0.0; weights];
    decode(levels, bits, &mut decoded)?;
    exact::decode(rest, float, &decoded)
}
