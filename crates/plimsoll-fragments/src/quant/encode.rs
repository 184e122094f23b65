//! A piece of a tensor to the bytes of its levels. Depends on the weights and the bits alone: the same bytes everywhere.

use super::bits::Bits;
use super::decode::dequantise;
use super::exact;
use super::groups::{CLASSES, class_of, classes_of, header_of, scale_of};
use super::layout::LevelLayout;
use super::measure::Sums;
use super::planes::split;
use crate::data_type::Float;
use crate::limits::GROUP;

/// Cells at eight bits.
const CELLS: usize = 256;

/// The levels of a piece.
#[derive(Clone, Debug)]
pub struct Encoded {
    /// Bytes of each level of bit planes, coarsest first.
    pub levels: Vec<Vec<u8>>,
    /// What the finest of them leaves out.
    pub exact: Option<Vec<u8>>,
    /// How far each level of bit planes is from the weights.
    pub sums: Vec<Sums>,
}

/// Encodes a piece, given as the bytes of its tensor's type.
pub fn encode(bytes: &[u8], float: Float, bits: &Bits, with_exact: bool) -> Encoded {
    let weights = float.to_f32(bytes);
    let classes = classes_of(weights.len());
    let headers: Vec<u16> = weights.chunks(GROUP).map(|group| header_of(group, classes)).collect();
    let codes = codes(&weights, &headers);
    let means = Means::of(&weights, &codes, &headers);
    let mut decoded = vec![0.0; weights.len()];
    let (mut levels, mut sums) = (Vec::new(), Vec::new());
    for level in 0..bits.levels() {
        let layout = LevelLayout::new(weights.len(), bits, level);
        let table = means.table(layout.bits, classes);
        dequantise(&codes, &headers, &table, layout.bits, &mut decoded);
        sums.push(Sums::of(&weights, &decoded));
        levels.push(level_bytes(&layout, &table, if level == 0 { &headers } else { &[] }, &codes));
    }
    let exact = with_exact.then(|| exact::encode(bytes, float, &decoded));
    Encoded { levels, exact, sums }
}

/// The cell of each weight, groups filled up with the middle.
fn codes(weights: &[f32], headers: &[u16]) -> Vec<u8> {
    let mut codes = vec![128; headers.len() * GROUP];
    for ((group, header), codes) in weights.chunks(GROUP).zip(headers).zip(codes.chunks_exact_mut(GROUP)) {
        let scale = scale_of(*header);
        let cells = if scale > 0.0 { 128.0 / scale } else { 0.0 };
        for (x, code) in group.iter().zip(codes) {
            // What is no number has no scale: it becomes the middle, not a panic.
            *code = (x * cells + 128.0) as u8;
        }
    }
    codes
}

/// What the weights of each class and cell add up to, in units of their scales.
struct Means(Vec<[(f64, f64); CELLS]>);

impl Means {
    fn of(weights: &[f32], codes: &[u8], headers: &[u16]) -> Self {
        let mut all = vec![[(0.0, 0.0); CELLS]; CLASSES];
        for ((group, header), codes) in weights.chunks(GROUP).zip(headers).zip(codes.chunks_exact(GROUP)) {
            let scale = f64::from(scale_of(*header));
            if scale == 0.0 {
                continue;
            }
            // An error counts by the square of its scale, so the mean does too.
            let (of_class, weight) = (&mut all[class_of(*header)], scale * scale);
            for (x, code) in group.iter().zip(codes) {
                let (sum, count) = &mut of_class[usize::from(*code)];
                *sum += scale * f64::from(*x);
                *count += weight;
            }
        }
        Self(all)
    }

    /// What each cell of so many bits stands for: the mean of what lies in it, or its middle.
    fn table(&self, bits: u8, classes: usize) -> Vec<f32> {
        let width = CELLS >> bits;
        let cells = |class: usize| {
            let sums = &self.0[class];
            (0..CELLS / width).map(move |cell| {
                let within = sums[cell * width..(cell + 1) * width].iter();
                let (sum, count) = within.fold((0.0, 0.0), |(sum, count), each| (sum + each.0, count + each.1));
                let middle = (cell as f64 + 0.5) * width as f64 / 128.0 - 1.0;
                (if count > 0.0 { sum / count } else { middle }) as f32
            })
        };
        (0..classes).flat_map(cells).collect()
    }
}

fn level_bytes(layout: &LevelLayout, table: &[f32], headers: &[u16], codes: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(layout.bytes() as usize);
    bytes.extend(table.iter().flat_map(|entry| entry.to_le_bytes()));
    bytes.extend(headers.iter().flat_map(|header| header.to_le_bytes()));
    bytes.resize(4 * layout.planes_begin(), 0);
    let first = usize::from(layout.bits - layout.added);
    for codes in codes.as_chunks::<32>().0 {
        let words = split(codes);
        for word in &words[first..usize::from(layout.bits)] {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
    }
    debug_assert_eq!(bytes.len() as u64, layout.bytes());
    bytes
}
