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

/// Whether a table can be one: every entry is the mean of weights in units of their scale. Anything else could be made to look
/// like memory that a device never wrote, and cost it its trust.
fn is_sane(table: &[f32]) -> bool {
    table.iter().all(|entry| entry.abs() <= 1.0)
}

/// Checks what can be checked of a level before it goes to a device.
///
/// # Errors
/// [`FragmentError::Damaged`].
pub fn check_level(bytes: &[u8], bits: &Bits, level: usize, weights: usize) -> Result<(), FragmentError> {
    let layout = LevelLayout::new(weights, bits, level);
    let table: Option<Vec<f32>> = bytes.get(..4 * layout.table).map(|table| words(table).map(f32::from_bits).collect());
    if bytes.len() as u64 == layout.bytes() && table.is_some_and(|table| is_sane(&table)) {
        return Ok(());
    }
    Err(FragmentError::damaged("a level of a tensor", "its size or its table is not what weights give"))
}

/// Decodes the first levels of a piece of `weights.len()` weights.
///
/// # Errors
/// [`FragmentError::Damaged`] if a level has not the bytes that it should have.
pub fn decode(levels: &[&[u8]], bits: &Bits, weights: &mut [f32]) -> Result<(), FragmentError> {
    let all = weights.len();
    decode_from(levels, bits, all, 0, weights)
}

/// Decodes some weights of a piece of `all` weights: those from `begin`, which is the first of a group.
///
/// # Errors
/// As [`decode`].
pub fn decode_from(
    levels: &[&[u8]],
    bits: &Bits,
    all: usize,
    begin: usize,
    weights: &mut [f32],
) -> Result<(), FragmentError> {
    let wrong = |why: &str| FragmentError::damaged("a piece of a tensor", why);
    if levels.is_empty() || levels.len() > bits.levels() {
        return Err(wrong("it has no levels, or too many"));
    }
    let layouts: Vec<LevelLayout> = (0..levels.len()).map(|at| LevelLayout::new(all, bits, at)).collect();
    if levels.iter().zip(&layouts).any(|(level, layout)| level.len() as u64 != layout.bytes()) {
        return Err(wrong("a level has another size than it should have"));
    }
    if !begin.is_multiple_of(GROUP) || begin + weights.len() > all {
        return Err(wrong("it has no such part"));
    }
    let finest = layouts[layouts.len() - 1];
    let table: Vec<f32> = words(&levels[levels.len() - 1][..4 * finest.table]).map(f32::from_bits).collect();
    if !is_sane(&table) {
        return Err(wrong("its table has what no weights add up to"));
    }
    let scales = &levels[0][4 * layouts[0].table..4 * layouts[0].planes_begin()];
    let headers = scales.as_chunks::<2>().0.iter().map(|pair| u16::from_le_bytes(*pair));
    let planes: Vec<(&[u8], usize)> = levels
        .iter()
        .zip(&layouts)
        .map(|(level, layout)| (&level[4 * layout.planes_begin()..], layout.added.into()))
        .collect();
    let first = begin / GROUP;
    for (at, (group, header)) in weights.chunks_mut(GROUP).zip(headers.skip(first)).enumerate() {
        let (scale, entries) = entries(&table, header, finest.bits);
        for (half, group) in group.chunks_mut(32).enumerate() {
            let codes = join(&gathered(&planes, 2 * (first + at) + half));
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
