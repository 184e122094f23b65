//! Files made in memory, with the image crate's encoders or by hand.

use std::io::Cursor;

use image::codecs::jpeg::JpegEncoder;
use image::codecs::png::PngEncoder;
use image::codecs::tiff::TiffEncoder;
use image::codecs::webp::WebPEncoder;
use image::{DynamicImage, ImageBuffer, ImageEncoder, ImageFormat};
use plimsoll_image::Samples;
use plimsoll_image::decode::{DecodeOptions, Decoded, decode};

use crate::pictures::{SIZE, checked, checked_16, samples};

pub(crate) fn decoded(bytes: &[u8]) -> Decoded {
    decode(bytes, &DecodeOptions::default()).unwrap_or_else(|error| panic!("{error}"))
}

pub(crate) fn rgb8(decoded: &Decoded) -> &[u8] {
    let Samples::Rgb8(samples) = decoded.image.samples() else { panic!("{:?}", decoded.image) };
    samples
}

pub(crate) fn rgb16(decoded: &Decoded) -> &[u16] {
    let Samples::Rgb16(samples) = decoded.image.samples() else { panic!("{:?}", decoded.image) };
    samples
}

/// `checked` with 1 to 4 channels and 8 bits.
pub(crate) fn picture_8(channels: u32) -> DynamicImage {
    let samples = samples(channels, checked);
    let (width, height) = (SIZE.width, SIZE.height);
    let picture = match channels {
        1 => ImageBuffer::from_raw(width, height, samples).map(DynamicImage::ImageLuma8),
        2 => ImageBuffer::from_raw(width, height, samples).map(DynamicImage::ImageLumaA8),
        3 => ImageBuffer::from_raw(width, height, samples).map(DynamicImage::ImageRgb8),
        _ => ImageBuffer::from_raw(width, height, samples).map(DynamicImage::ImageRgba8),
    };
    picture.expect("as many samples as it has")
}

/// `checked_16` with 1 to 4 channels and 16 bits.
pub(crate) fn picture_16(channels: u32) -> DynamicImage {
    let samples = samples(channels, checked_16);
    let (width, height) = (SIZE.width, SIZE.height);
    let picture = match channels {
        1 => ImageBuffer::from_raw(width, height, samples).map(DynamicImage::ImageLuma16),
        2 => ImageBuffer::from_raw(width, height, samples).map(DynamicImage::ImageLumaA16),
        3 => ImageBuffer::from_raw(width, height, samples).map(DynamicImage::ImageRgb16),
        _ => ImageBuffer::from_raw(width, height, samples).map(DynamicImage::ImageRgba16),
    };
    picture.expect("as many samples as it has")
}

/// Few enough colours for a palette.
pub(crate) fn few_colours() -> DynamicImage {
    let samples = samples(3, |x, y, channel| (((x / 4 + y / 4 * 3 + channel * 2) % 5) * 60) as u8);
    DynamicImage::ImageRgb8(ImageBuffer::from_raw(SIZE.width, SIZE.height, samples).expect("as many samples"))
}

pub(crate) fn written(picture: &DynamicImage, format: ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    picture.write_to(&mut bytes, format).expect("it encodes");
    bytes.into_inner()
}

/// With an ICC profile and EXIF data where the format holds them.
pub(crate) fn with_metadata(
    picture: &DynamicImage,
    format: ImageFormat,
    icc: Option<&[u8]>,
    exif: Option<&[u8]>,
) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    match format {
        ImageFormat::Png => encode(PngEncoder::new(&mut bytes), picture, icc, exif),
        ImageFormat::Jpeg => encode(JpegEncoder::new_with_quality(&mut bytes, 100), picture, icc, exif),
        ImageFormat::WebP => encode(WebPEncoder::new_lossless(&mut bytes), picture, icc, exif),
        ImageFormat::Tiff => encode(TiffEncoder::new(&mut bytes), picture, icc, exif),
        other => panic!("{other:?} holds no metadata"),
    }
    bytes.into_inner()
}

fn encode(mut encoder: impl ImageEncoder, picture: &DynamicImage, icc: Option<&[u8]>, exif: Option<&[u8]>) {
    if let Some(icc) = icc {
        encoder.set_icc_profile(icc.to_vec()).expect("the format holds profiles");
    }
    if let Some(exif) = exif {
        encoder.set_exif_metadata(exif.to_vec()).expect("the format holds EXIF");
    }
    picture.write_with_encoder(encoder).expect("it encodes");
}

/// EXIF data with an orientation and nothing else.
pub(crate) fn exif(orientation: u8) -> Vec<u8> {
    let mut exif = b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0".to_vec();
    exif.extend([orientation, 0, 0, 0, 0, 0, 0]);
    exif
}

/// A PNG with one more chunk right after its header.
pub(crate) fn with_chunk(png: &[u8], kind: &[u8; 4], data: &[u8]) -> Vec<u8> {
    const HEADER: usize = 8 + 25;
    let mut chunk = kind.to_vec();
    chunk.extend(data);
    let mut bytes = png[..HEADER].to_vec();
    bytes.extend((data.len() as u32).to_be_bytes());
    bytes.extend(&chunk);
    bytes.extend(crc(&chunk).to_be_bytes());
    bytes.extend(&png[HEADER..]);
    bytes
}

/// The header of a PNG with another size, its checksum right.
pub(crate) fn with_size(png: &[u8], width: u32, height: u32) -> Vec<u8> {
    let mut bytes = png.to_vec();
    bytes[16..20].copy_from_slice(&width.to_be_bytes());
    bytes[20..24].copy_from_slice(&height.to_be_bytes());
    let checksum = crc(&bytes[12..29]);
    bytes[29..33].copy_from_slice(&checksum.to_be_bytes());
    bytes
}

fn crc(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |sum, &byte| {
        (0..8).fold(sum ^ u32::from(byte), |sum, _| (sum >> 1) ^ if sum & 1 == 1 { 0xedb8_8320 } else { 0 })
    })
}

/// The smallest CMYK JPEG: 8 x 8, four components, one code of one bit in each table.
pub(crate) fn cmyk_jpeg() -> Vec<u8> {
    let mut bytes = vec![0xff, 0xd8, 0xff, 0xdb, 0, 67, 0];
    bytes.extend([1; 64]);
    bytes.extend([0xff, 0xc0, 0, 20, 8, 0, 8, 0, 8, 4]);
    (1..=4).for_each(|component| bytes.extend([component, 0x11, 0]));
    for class in [0x00, 0x10] {
        bytes.extend([0xff, 0xc4, 0, 20, class, 1]);
        bytes.extend([0; 15]);
        bytes.push(0);
    }
    bytes.extend([0xff, 0xda, 0, 14, 4]);
    (1..=4).for_each(|component| bytes.extend([component, 0]));
    bytes.extend([0, 63, 0, 0, 0xff, 0xd9]);
    bytes
}

pub(crate) const JXL: [(&str, &[u8]); 6] = [
    ("rgb8", include_bytes!("made/rgb8.jxl")),
    ("container", include_bytes!("made/rgb8-container.jxl")),
    ("rgb16", include_bytes!("made/rgb16.jxl")),
    ("rgba8", include_bytes!("made/rgba8.jxl")),
    ("lossy", include_bytes!("made/lossy.jxl")),
    ("turned", include_bytes!("made/turned.jxl")),
];
