//! The transfer curve of sRGB (IEC 61966-2-1), both ways, and as tables.

use std::sync::LazyLock;

/// What the numbers of a plane stand for.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Transfer {
    /// In proportion to light.
    Linear,
    /// As stored, with the transfer curve of sRGB.
    Coded,
}

/// The light of a coded sample, both 0 to 1.
pub(crate) fn linear(coded: f64) -> f64 {
    if coded <= 0.040_45 { coded / 12.92 } else { ((coded + 0.055) / 1.055).powf(2.4) }
}

/// The coded sample of some light; what is darker than black or brighter than white is cut off.
pub(crate) fn coded(light: f32) -> f32 {
    let light = f64::from(light).clamp(0.0, 1.0);
    let coded = if light <= 0.003_130_8 { light * 12.92 } else { 1.055 * light.powf(1.0 / 2.4) - 0.055 };
    coded as f32
}

/// The light of each 8-bit sample.
pub(crate) fn linear_of_8_bit() -> &'static [f32; 256] {
    static TABLE: LazyLock<[f32; 256]> = LazyLock::new(|| std::array::from_fn(|at| linear(at as f64 / 255.0) as f32));
    &TABLE
}

/// The light of each 16-bit sample.
pub(crate) fn linear_of_16_bit() -> &'static [f32] {
    static TABLE: LazyLock<Vec<f32>> =
        LazyLock::new(|| (0..=u16::MAX).map(|at| linear(f64::from(at) / 65535.0) as f32).collect());
    &TABLE
}

/// Each 8- or 16-bit sample as a coded number from 0 to 1.
pub(crate) fn coded_of(samples: u32) -> Vec<f32> {
    (0..samples).map(|at| at as f32 / (samples - 1) as f32).collect()
}
