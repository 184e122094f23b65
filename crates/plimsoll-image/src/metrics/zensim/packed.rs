//! Images as the crate takes them: 8-bit ones as they are, others with a fourth sample that nobody looks at.
//! Invariant: the same picture gives the same light, whichever way its samples are stored.

use zensim::{AlphaMode, ImageSource, PixelFormat, StridedBytes};

use crate::image::{Image, SampleKind, Samples};

/// 32-bit words that a pixel takes beside the image itself.
pub(super) fn words_per_pixel(kind: SampleKind) -> u64 {
    match kind {
        SampleKind::Rgb8 => 0,
        SampleKind::Rgb16 => 2,
        SampleKind::Linear => 4,
    }
}

/// The image as the crate takes it; `room` is filled where its samples must be moved for that.
pub(super) fn packed<'a>(image: &'a Image, room: &'a mut Vec<u32>) -> impl ImageSource + 'a {
    room.clear();
    room.reserve_exact((image.size().pixels() * words_per_pixel(image.shape().kind)) as usize);
    let (bytes, format): (&[u8], _) = match image.samples() {
        Samples::Rgb8(samples) => (samples, PixelFormat::Srgb8Rgb),
        Samples::Rgb16(samples) => {
            let (pixels, _) = samples.as_chunks::<3>();
            let words = |&[red, green, blue]: &[u16; 3]| bytemuck::cast::<_, [u32; 2]>([red, green, blue, u16::MAX]);
            room.extend(pixels.iter().flat_map(words));
            (bytemuck::cast_slice(room), PixelFormat::Srgb16Rgba)
        }
        Samples::Linear(planes) => {
            let (red, rest) = planes.split_at(planes.len() / 3);
            let (green, blue) = rest.split_at(red.len());
            // A display shows nothing darker than black or brighter than white; the crate cuts a reference so too.
            let bits = |light: f32| light.clamp(0.0, 1.0).to_bits();
            let words = |((&red, &green), &blue)| [bits(red), bits(green), bits(blue), 1.0_f32.to_bits()];
            room.extend(red.iter().zip(green).zip(blue).flat_map(words));
            (bytemuck::cast_slice(room), PixelFormat::LinearF32Rgba)
        }
    };
    let (width, height) = (image.size().width as usize, image.size().height as usize);
    let stride = width * format.bytes_per_pixel();
    StridedBytes::with_alpha_mode(bytes, width, height, stride, format, AlphaMode::Opaque)
}
