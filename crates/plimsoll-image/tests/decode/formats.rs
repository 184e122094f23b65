//! Every format and depth: what goes in comes out, transparency over white.

use std::path::Path;

use image::{DynamicImage, ImageFormat};
use plimsoll_image::decode::{Background, DecodeOptions, Format, Profiles, decode, header, read};
use plimsoll_image::{Image, Samples, Size};

use crate::files::{JXL, decoded, few_colours, picture_8, picture_16, rgb8, rgb16, with_chunk, written};
use crate::pictures::{SIZE, checked, checked_16, samples, smooth};

/// Pixels of 1 to 4 channels as RGB over a background, by the formula, in floats.
fn over(samples: &[f64], channels: usize, full: f64, background: [f64; 3]) -> Vec<f64> {
    let pixel = |pixel: &[f64]| {
        let alpha = if channels.is_multiple_of(2) { pixel[channels - 1] / full } else { 1.0 };
        let colour = if channels < 3 { [pixel[0]; 3] } else { [pixel[0], pixel[1], pixel[2]] };
        [0, 1, 2].map(|at| (colour[at] * alpha + background[at] * (1.0 - alpha)).round())
    };
    samples.chunks(channels).flat_map(pixel).collect()
}

fn expected_8(channels: u32) -> Vec<u8> {
    let given: Vec<f64> = samples(channels, |x, y, channel| f64::from(checked(x, y, channel)));
    over(&given, channels as usize, 255.0, [255.0; 3]).into_iter().map(|sample| sample as u8).collect()
}

fn expected_16(channels: u32) -> Vec<u16> {
    let given: Vec<f64> = samples(channels, |x, y, channel| f64::from(checked_16(x, y, channel)));
    over(&given, channels as usize, 65535.0, [65535.0; 3]).into_iter().map(|sample| sample as u16).collect()
}

#[test]
fn eight_bits_come_back() {
    let kept = [
        (ImageFormat::Png, Format::Png, &[1, 2, 3, 4][..]),
        (ImageFormat::WebP, Format::WebP, &[3, 4]),
        (ImageFormat::Tiff, Format::Tiff, &[1, 3, 4]),
        (ImageFormat::Pnm, Format::Pnm, &[1, 3]),
        (ImageFormat::Qoi, Format::Qoi, &[3, 4]),
        (ImageFormat::Bmp, Format::Bmp, &[1, 3, 4]),
    ];
    for (writer, format, channels) in kept {
        for &channels in channels {
            let bytes = written(&picture_8(channels), writer);
            let image = decoded(&bytes);
            assert_eq!(rgb8(&image), expected_8(channels), "{format} with {channels} channels");
            assert_eq!((image.format, image.bits, image.converted), (format, 8, false));
            assert_eq!(image.decoder, format.decoder());
            let header = header(&bytes).unwrap();
            assert_eq!((header.format, header.size, header.bits), (format, SIZE, 8));
            assert_eq!((header.alpha, image.alpha), (channels == 2 || channels == 4, header.alpha));
        }
    }
}

#[test]
fn sixteen_bits_stay_sixteen() {
    for (writer, format, channels) in
        [(ImageFormat::Png, Format::Png, &[1, 2, 3, 4][..]), (ImageFormat::Tiff, Format::Tiff, &[1, 3, 4])]
    {
        for &channels in channels {
            let bytes = written(&picture_16(channels), writer);
            assert_eq!(rgb16(&decoded(&bytes)), expected_16(channels), "{format} with {channels} channels");
            assert_eq!(header(&bytes).unwrap().bits, 16);
        }
    }
}

#[test]
fn portable_maps_are_scaled_to_their_depth() {
    assert_eq!(rgb8(&decoded(b"P1\n# two pixels\n2 1\n1 0\n")), [0, 0, 0, 255, 255, 255]);
    assert_eq!(rgb8(&decoded(b"P4 2 1 \x80")), [0, 0, 0, 255, 255, 255]);
    assert_eq!(rgb8(&decoded(b"P2 2 1 15 0 5")), [0, 0, 0, 85, 85, 85]);
    assert_eq!(rgb16(&decoded(b"P5 2 1 1023 \x00\x00\x03\xff")), [0, 0, 0, 65535, 65535, 65535]);
    let pam = b"P7\nWIDTH 1\nHEIGHT 1\nDEPTH 4\nMAXVAL 255\nTUPLTYPE RGB_ALPHA\nENDHDR\n\x00\x80\xff\x00";
    assert_eq!(rgb8(&decoded(pam)), [255, 255, 255]);
}

#[test]
fn palettes_become_colours() {
    let picture = few_colours();
    let gif = decoded(&written(&picture, ImageFormat::Gif));
    assert_eq!(rgb8(&gif), picture.as_bytes());
    assert_eq!((gif.format, gif.decoder), (Format::Gif, Format::Gif.decoder()));

    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, 4, 1);
    encoder.set_color(png::ColorType::Indexed);
    encoder.set_depth(png::BitDepth::Two);
    encoder.set_palette(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12][..]);
    encoder.set_trns(&[255, 255, 0][..]);
    encoder.write_header().and_then(|mut writer| writer.write_image_data(&[0b00_01_10_11])).unwrap();
    let image = decoded(&bytes);
    assert_eq!(rgb8(&image), [1, 2, 3, 4, 5, 6, 255, 255, 255, 10, 11, 12]);
    assert_eq!((image.bits, image.alpha), (2, true));
}

#[test]
fn lossy_formats_are_near() {
    let given = samples(3, smooth);
    let picture =
        image::RgbImage::from_raw(SIZE.width, SIZE.height, given.clone()).map(DynamicImage::ImageRgb8).unwrap();
    let mut jpeg = Vec::new();
    let encoder = image::codecs::jpeg::JpegEncoder::new_with_quality(&mut jpeg, 95);
    picture.write_with_encoder(encoder).unwrap();
    // What the codecs lose of gradients; a wrong matrix or mixed-up channels would be many times as far away.
    for (bytes, format) in [
        (&jpeg[..], Format::Jpeg),
        (include_bytes!("made/progressive.jpg"), Format::Jpeg),
        (include_bytes!("made/restarts.jpg"), Format::Jpeg),
        (include_bytes!("made/lossy.webp"), Format::WebP),
        (include_bytes!("made/lossy.jxl"), Format::Jxl),
    ] {
        let image = decoded(bytes);
        let distance: f64 = rgb8(&image).iter().zip(&given).map(|(&a, &b)| f64::from(a.abs_diff(b))).sum();
        let distance = distance / given.len() as f64;
        assert!(distance < 3.5, "{format} is {distance} away");
        assert_eq!((image.format, image.bits, image.decoder), (format, 8, format.decoder()));
    }
    let grey = decoded(&written(&picture_8(1), ImageFormat::Jpeg));
    assert!(rgb8(&grey).chunks(3).all(|pixel| pixel[0] == pixel[1] && pixel[1] == pixel[2]));
}

#[test]
fn jpeg_xl_without_loss_comes_back() {
    let rgb = expected_8(3);
    assert_eq!(rgb8(&decoded(include_bytes!("made/rgb8.jxl"))), rgb);
    assert_eq!(rgb8(&decoded(include_bytes!("made/rgb8-container.jxl"))), rgb);
    assert_eq!(rgb8(&decoded(include_bytes!("made/grey8.jxl"))), expected_8(1));
    assert_eq!(rgb8(&decoded(include_bytes!("made/rgba8.jxl"))), expected_8(4));
    assert_eq!(rgb16(&decoded(include_bytes!("made/rgb16.jxl"))), expected_16(3));
    let header = header(include_bytes!("made/rgba8.jxl")).unwrap();
    assert_eq!((header.format, header.size, header.bits, header.alpha), (Format::Jxl, SIZE, 8, true));
}

#[test]
fn transparency_shows_the_background() {
    let given: Vec<f64> = samples(4, |x, y, channel| f64::from(checked(x, y, channel)));
    for background in [Background::BLACK, Background::GREY, Background::rgb(255, 128, 0)] {
        let options = DecodeOptions { background, ..DecodeOptions::default() };
        let image = decode(&written(&picture_8(4), ImageFormat::Png), &options).unwrap();
        let expected = over(&given, 4, 255.0, background.channels().map(f64::from));
        assert_eq!(rgb8(&image), expected.into_iter().map(|sample| sample as u8).collect::<Vec<_>>(), "{background}");
    }
    let transparent = with_chunk(&written(&picture_16(3), ImageFormat::Png), b"tRNS", &[0; 6]);
    let options = DecodeOptions { background: Background::rgb(255, 128, 0), ..DecodeOptions::default() };
    let mut expected = samples(3, checked_16);
    expected.as_chunks_mut::<3>().0.iter_mut().filter(|pixel| **pixel == [0; 3]).for_each(|pixel| {
        *pixel = [65535, 128 * 257, 0];
    });
    assert_eq!(rgb16(&decode(&transparent, &options).unwrap()), expected);
}

#[test]
fn one_pixel_is_an_image() {
    let pixel = DynamicImage::ImageRgb8(image::RgbImage::from_raw(1, 1, vec![200, 100, 50]).unwrap());
    for format in [ImageFormat::Png, ImageFormat::WebP, ImageFormat::Tiff, ImageFormat::Qoi, ImageFormat::Bmp] {
        let image = decoded(&written(&pixel, format));
        assert_eq!(rgb8(&image), [200, 100, 50], "{format:?}");
    }
    assert_eq!(decoded(&written(&pixel, ImageFormat::Jpeg)).image.size().pixels(), 1);
}

#[test]
fn ignored_profiles_change_nothing_elsewhere() {
    let bytes = written(&picture_8(3), ImageFormat::Png);
    let options = DecodeOptions { profiles: Profiles::Ignore, ..DecodeOptions::default() };
    assert_eq!(decode(&bytes, &options).unwrap(), decoded(&bytes));
    let image = Image::rgb8(SIZE, samples(3, checked)).unwrap();
    assert!(matches!(image.samples(), Samples::Rgb8(_)));
    assert_eq!(decoded(&bytes).image, image);
}

#[test]
fn the_samples_are_one_picture() {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples");
    let reference = decoded(&read(&samples.join("harbour.png")).unwrap());
    let variants: Vec<_> = samples.join("variants").read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(variants.len(), 16);
    for path in variants {
        let variant = decoded(&read(&path).unwrap());
        assert_eq!(variant.image.shape(), reference.image.shape(), "{}", path.display());
        assert_ne!(variant.image, reference.image, "{}", path.display());
    }
}

/// What a file says of itself before it is decoded is what comes of it.
#[test]
fn a_look_tells_the_size_and_what_the_image_will_hold() {
    use plimsoll_image::decode::look;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("image");
    let eight = ["png", "jpg", "webp", "tiff", "bmp", "ppm", "qoi"].map(|name| (name, picture_8(3)));
    let more = [
        ("png", picture_16(4)),
        ("tiff", picture_16(3)),
        ("ppm", picture_16(3)),
        ("gif", few_colours()),
        ("png", picture_8(1)),
    ];
    let files = eight
        .into_iter()
        .chain(more)
        .map(|(name, picture)| written(&picture, ImageFormat::from_extension(name).unwrap()));
    let made: [&[u8]; 3] = [
        include_bytes!("made/lossy.webp"),
        include_bytes!("made/progressive.jpg"),
        include_bytes!("made/restarts.jpg"),
    ];
    let files = files.chain(made.map(<[u8]>::to_vec)).chain(JXL.iter().map(|(_, bytes)| bytes.to_vec()));
    for (at, bytes) in files.enumerate() {
        std::fs::write(&path, &bytes).unwrap();
        let (seen, decoded) = (look(&path).unwrap_or_else(|error| panic!("file {at}: {error}")), decoded(&bytes));
        assert_eq!(seen.format, decoded.format, "file {at}");
        let turned = Size { width: seen.size.height, height: seen.size.width };
        assert!([seen.size, turned].contains(&decoded.image.size()), "file {at}: {seen:?}");
        let held = match decoded.image.samples() {
            Samples::Rgb8(samples) => samples.len(),
            Samples::Rgb16(samples) => 2 * samples.len(),
            Samples::Linear(samples) => 4 * samples.len(),
        };
        assert_eq!((seen.image_bytes, seen.file_bytes), (held as u64, bytes.len() as u64), "file {at}");
    }
}

#[test]
fn a_header_behind_a_long_profile_is_found() {
    use plimsoll_image::decode::look;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("image.jpg");
    let whole = written(&picture_8(3), ImageFormat::Jpeg);
    let comment = [&[0xff, 0xfe, 0xff, 0xff][..], &[b'x'; 0xfffd]].concat();
    std::fs::write(&path, [&whole[..2], &comment, &comment, &whole[2..]].concat()).unwrap();
    assert_eq!(look(&path).unwrap().size, decoded(&whole).image.size());
    std::fs::write(&path, [&whole[..2], &comment].concat()).unwrap();
    assert!(look(&path).is_err());
}
