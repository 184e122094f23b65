//! Scale and class of a group of weights, in 16 bits: a bfloat16 of which the sign and the last two bits say the class.
//! Invariant: a scale is zero or at least 2⁻¹⁰⁰, so that no product with a table's entry is denormal: devices may flush those.

use crate::limits::GROUP;

/// Classes of groups: by how far their largest weight stands out.
pub(super) const CLASSES: usize = 8;

/// A group belongs to the first class whose bound its other weights reach: their root mean square over the largest weight.
const CLASS_BOUNDS: [f32; CLASSES - 1] = [0.42, 0.32, 0.23, 0.15, 0.09, 0.045, 0.018];

/// Smaller scales count as zero.
const SCALE_MIN: f32 = f32::from_bits((127 - 100) << 23);
/// Groups with larger weights are left to the exact level: their scale could overflow when it is rounded up.
const SCALE_MAX: f32 = f32::from_bits((127 + 120) << 23);

/// Scale and class of a group, of so many classes. Groups with a weight that is no number get the scale zero.
pub(super) fn header_of(group: &[f32], classes: usize) -> u16 {
    let largest = group.iter().fold(0_f32, |largest, x| largest.max(x.abs()));
    let is_finite = group.iter().all(|x| x.is_finite());
    if !is_finite || !(SCALE_MIN..=SCALE_MAX).contains(&largest) {
        return 0;
    }
    // Rounded up to five bits behind the leading one: nothing lies outside the cells.
    let scale = ((largest.to_bits() + 0x3_ffff) >> 18 << 2) as u16;
    let rest: f32 = group.iter().map(|x| (x / largest) * (x / largest)).sum::<f32>() - 1.0;
    let rest = (rest.max(0.0) / (GROUP - 1) as f32).sqrt();
    let class = CLASS_BOUNDS.iter().take_while(|bound| rest < **bound).count() * classes / CLASSES;
    scale | ((class as u16 & 4) << 13) | (class as u16 & 3)
}

/// The scale in a group's 16 bits.
pub fn scale_of(header: u16) -> f32 {
    f32::from_bits(u32::from(header & 0x7ffc) << 16)
}

/// The class in a group's 16 bits.
pub fn class_of(header: u16) -> usize {
    usize::from(header >> 13 & 4 | header & 3)
}

/// Classes of a piece of so many weights: small pieces have few, so that their tables stay small beside them.
pub(super) fn classes_of(weights: usize) -> usize {
    match weights / (1 << 15) {
        0 => 1,
        1 => 2,
        2..8 => 4,
        _ => CLASSES,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scale_covers_its_group_and_carries_the_class() {
        for (at, outlier) in [0.0, 4.0, 15.0, 3e10].into_iter().enumerate() {
            let mut group: Vec<f32> = (0..GROUP).map(|n| ((n * 37 % 64) as f32 - 31.5) / 40.0).collect();
            group[5] += outlier;
            let largest = group.iter().fold(0_f32, |a, x| a.max(x.abs()));
            let header = header_of(&group, CLASSES);
            assert!(scale_of(header) >= largest && scale_of(header) <= largest * 1.04, "{outlier}");
            assert_eq!(class_of(header), [0, 4, 6, 7][at], "{outlier}");
            assert_eq!(class_of(header_of(&group, 1)), 0);
        }
    }

    #[test]
    fn what_is_no_number_or_too_small_has_no_scale() {
        for odd in [f32::NAN, f32::INFINITY, f32::MAX, 1e-35] {
            let mut group = [0.0; GROUP];
            group[3] = odd;
            assert_eq!(header_of(&group, CLASSES), 0, "{odd}");
        }
    }
}
