//! Made pictures. `made/README.md` names them: their formulas stay as they are.

use plimsoll_image::Size;

pub(crate) const SIZE: Size = Size { width: 24, height: 16 };

/// Samples by position and channel, channels side by side.
pub(crate) fn samples<T>(channels: u32, sample: impl Fn(u32, u32, u32) -> T) -> Vec<T> {
    let mut samples = Vec::new();
    for y in 0..SIZE.height {
        for x in 0..SIZE.width {
            samples.extend((0..channels).map(|channel| sample(x, y, channel)));
        }
    }
    samples
}

/// Every sample unlike its neighbours: nothing may be mixed up.
pub(crate) fn checked(x: u32, y: u32, channel: u32) -> u8 {
    ((x * 13 + y * 29 + channel * 71) % 256) as u8
}

/// The same with 16 bits, the low ones in use.
pub(crate) fn checked_16(x: u32, y: u32, channel: u32) -> u16 {
    u16::from(checked(x, y, channel)) * 251 + x as u16
}

/// Gradients: what lossy codecs keep well.
pub(crate) fn smooth(x: u32, y: u32, channel: u32) -> u8 {
    (match channel {
        0 => x * 9,
        1 => y * 14,
        _ => 255 - x * 5 - y * 6,
    }) as u8
}
