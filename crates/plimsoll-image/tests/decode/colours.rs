//! Colour profiles: converted values are checked against the formulas, sRGB against its own bits.

use image::{DynamicImage, ImageFormat, RgbImage};
use moxcms::ColorProfile;
use plimsoll_image::decode::{DecodeError, DecodeOptions, Profiles, decode};

use crate::files::{cmyk_jpeg, decoded, picture_8, picture_16, rgb8, rgb16, with_chunk, with_metadata, written};
use crate::pictures::{SIZE, checked, checked_16, samples, smooth};

const IGNORE: DecodeOptions = DecodeOptions {
    background: plimsoll_image::decode::Background::WHITE,
    profiles: Profiles::Ignore,
    bytes_max: 1 << 30,
};

fn light(coded: f64) -> f64 {
    if coded <= 0.04045 { coded / 12.92 } else { ((coded + 0.055) / 1.055).powf(2.4) }
}

fn coded(light: f64) -> f64 {
    let light = light.clamp(0.0, 1.0);
    if light <= 0.003_130_8 { light * 12.92 } else { 1.055 * light.powf(1.0 / 2.4) - 0.055 }
}

/// Display P3 to sRGB: both have the same white and the same curve, so that one matrix of light is all.
fn srgb_of_p3(pixel: [f64; 3]) -> [f64; 3] {
    const ROWS: [[f64; 3]; 3] = [
        [1.224_940_2, -0.224_940_2, 0.0],
        [-0.042_056_95, 1.042_056_95, 0.0],
        [-0.019_637_55, -0.078_636_05, 1.098_273_6],
    ];
    let light = pixel.map(light);
    ROWS.map(|row| coded(row[0] * light[0] + row[1] * light[1] + row[2] * light[2]))
}

fn assert_near<T: Copy + Into<f64>>(got: &[T], expected: &[f64], full: f64, tolerance: f64, name: &str) {
    assert_eq!(got.len(), expected.len());
    for (at, (&got, &expected)) in got.iter().zip(expected).enumerate() {
        let got: f64 = got.into();
        assert!((got - expected * full).abs() <= tolerance, "{name}: sample {at} is {got}, not {}", expected * full);
    }
}

fn p3_values(sample: impl Fn(u32, u32, u32) -> f64) -> Vec<f64> {
    let given = samples(3, sample);
    given.as_chunks::<3>().0.iter().flat_map(|&pixel| srgb_of_p3(pixel)).collect()
}

#[test]
fn display_p3_is_converted() {
    let icc = ColorProfile::new_display_p3().encode().unwrap();
    let expected = p3_values(|x, y, channel| f64::from(checked(x, y, channel)) / 255.0);
    for format in [ImageFormat::Png, ImageFormat::WebP, ImageFormat::Tiff] {
        let image = decoded(&with_metadata(&picture_8(3), format, Some(&icc), None));
        assert!(image.converted, "{format:?}");
        // Half a step of rounding, and the 16 bits in which a profile keeps its primaries.
        assert_near(rgb8(&image), &expected, 255.0, 0.75, &format!("{format:?}"));
    }
    let expected = p3_values(|x, y, channel| f64::from(checked_16(x, y, channel)) / 65535.0);
    let image = decoded(&with_metadata(&picture_16(3), ImageFormat::Png, Some(&icc), None));
    assert_near(rgb16(&image), &expected, 65535.0, 24.0, "16 bits");
}

#[test]
fn a_profile_in_a_jpeg_is_converted() {
    let icc = ColorProfile::new_display_p3().encode().unwrap();
    let picture = RgbImage::from_raw(SIZE.width, SIZE.height, samples(3, smooth)).map(DynamicImage::ImageRgb8).unwrap();
    let bytes = with_metadata(&picture, ImageFormat::Jpeg, Some(&icc), None);
    let (image, stored) = (decoded(&bytes), decode(&bytes, &IGNORE).unwrap());
    let stored = rgb8(&stored).as_chunks::<3>().0;
    let expected: Vec<f64> =
        stored.iter().flat_map(|pixel| srgb_of_p3(pixel.map(|sample| f64::from(sample) / 255.0))).collect();
    assert_near(rgb8(&image), &expected, 255.0, 0.75, "JPEG");
}

#[test]
fn jpeg_xl_converts_by_itself() {
    let expected = p3_values(|x, y, channel| f64::from(checked(x, y, channel)) / 255.0);
    let image = decoded(include_bytes!("made/p3.jxl"));
    assert_near(rgb8(&image), &expected, 255.0, 0.75, "P3 without loss");
    assert!(image.converted && !decoded(include_bytes!("made/rgb8.jxl")).converted);
    let ignored = decode(include_bytes!("made/p3.jxl"), &IGNORE).unwrap();
    assert_eq!(rgb8(&ignored), samples(3, checked));
    let expected = p3_values(|x, y, channel| f64::from(smooth(x, y, channel)) / 255.0);
    let image = decoded(include_bytes!("made/p3-lossy.jxl"));
    let distance: f64 =
        rgb8(&image).iter().zip(&expected).map(|(&got, value)| (f64::from(got) - value * 255.0).abs()).sum();
    assert!(distance / (expected.len() as f64) < 4.0, "{}", distance / expected.len() as f64);
}

#[test]
fn srgb_is_left_alone() {
    let icc = ColorProfile::new_srgb().encode().unwrap();
    for format in [ImageFormat::Png, ImageFormat::WebP, ImageFormat::Tiff] {
        let image = decoded(&with_metadata(&picture_8(3), format, Some(&icc), None));
        assert_eq!((rgb8(&image), image.converted), (&samples(3, checked)[..], false), "{format:?}");
    }
    let image = decoded(&with_metadata(&picture_16(3), ImageFormat::Png, Some(&icc), None));
    assert_eq!(rgb16(&image), samples(3, checked_16));

    let plain = written(&picture_8(3), ImageFormat::Png);
    let gamma = with_chunk(&plain, b"gAMA", &45_455_u32.to_be_bytes());
    let primaries = [31270_u32, 32900, 64000, 33000, 30000, 60000, 15000, 6000].map(u32::to_be_bytes).concat();
    let both = with_chunk(&gamma, b"cHRM", &primaries);
    let said = with_chunk(&with_chunk(&plain, b"gAMA", &100_000_u32.to_be_bytes()), b"sRGB", &[0]);
    for (name, bytes) in
        [("gAMA", gamma), ("cHRM", both), ("sRGB", said), ("cICP", with_chunk(&plain, b"cICP", &[1, 13, 0, 1]))]
    {
        let image = decoded(&bytes);
        assert_eq!((rgb8(&image), image.converted), (&samples(3, checked)[..], false), "{name}");
    }
}

#[test]
fn short_descriptions_count() {
    let plain = written(&picture_8(3), ImageFormat::Png);
    let linear: Vec<f64> = samples(3, |x, y, channel| coded(f64::from(checked(x, y, channel)) / 255.0));
    let image = decoded(&with_chunk(&plain, b"gAMA", &100_000_u32.to_be_bytes()));
    assert_near(rgb8(&image), &linear, 255.0, 0.75, "a gAMA of 1");
    let mut qoi = written(&picture_8(3), ImageFormat::Qoi);
    qoi[13] = 1;
    assert_near(rgb8(&decoded(&qoi)), &linear, 255.0, 0.75, "QOI, linear");

    let mac: Vec<f64> = samples(3, |x, y, channel| coded((f64::from(checked(x, y, channel)) / 255.0).powf(1.8)));
    let image = decoded(&with_chunk(&plain, b"gAMA", &55_556_u32.to_be_bytes()));
    assert_near(rgb8(&image), &mac, 255.0, 0.75, "a gAMA of 1/1.8");

    let p3 = p3_values(|x, y, channel| f64::from(checked(x, y, channel)) / 255.0);
    let image = decoded(&with_chunk(&plain, b"cICP", &[12, 13, 0, 1]));
    assert_near(rgb8(&image), &p3, 255.0, 0.75, "cICP");
    let primaries = [31270_u32, 32900, 68000, 32000, 26500, 69000, 15000, 6000].map(u32::to_be_bytes).concat();
    assert_near(rgb8(&decoded(&with_chunk(&plain, b"cHRM", &primaries))), &p3, 255.0, 0.75, "cHRM");
}

#[test]
fn grey_profiles_are_for_grey() {
    let icc = ColorProfile::new_gray_with_gamma(1.8).encode().unwrap();
    let expected: Vec<f64> = samples(1, |x, y, _| coded((f64::from(checked(x, y, 0)) / 255.0).powf(1.8)));
    let expected: Vec<f64> = expected.into_iter().flat_map(|sample| [sample; 3]).collect();
    let image = decoded(&with_metadata(&picture_8(1), ImageFormat::Png, Some(&icc), None));
    assert_near(rgb8(&image), &expected, 255.0, 0.75, "grey");
    refused(&with_metadata(&picture_8(3), ImageFormat::Png, Some(&icc), None));
}

fn refused(bytes: &[u8]) {
    match decode(bytes, &DecodeOptions::default()) {
        Err(error @ DecodeError::Colour { .. }) => assert!(error.to_string().contains("ignore profiles")),
        other => panic!("{other:?}"),
    }
    assert!(decode(bytes, &IGNORE).is_ok());
}

/// Scored as if it were SDR, it would be another picture.
#[test]
fn hdr_is_refused_with_the_command_that_maps_its_tones() {
    let plain = written(&picture_8(3), ImageFormat::Png);
    let icc =
        |profile: ColorProfile| with_metadata(&picture_8(3), ImageFormat::Png, Some(&profile.encode().unwrap()), None);
    for (file, command) in [
        (
            with_chunk(&plain, b"cICP", &[9, 16, 0, 1]),
            "ffmpeg -i FILE -vf setparams=color_primaries=bt2020:color_trc=smpte2084",
        ),
        (with_chunk(&plain, b"cICP", &[9, 18, 0, 1]), "color_trc=arib-std-b67"),
        (with_chunk(&plain, b"cICP", &[12, 16, 0, 1]), "color_trc=smpte2084"),
        (icc(ColorProfile::new_bt2020_pq()), "color_trc=smpte2084"),
        (icc(ColorProfile::new_bt2020_hlg()), "color_trc=arib-std-b67"),
        (include_bytes!("made/pq.jxl").to_vec(), "color_trc=smpte2084"),
    ] {
        let error = decode(&file, &DecodeOptions::default()).unwrap_err();
        let message = error.to_string();
        assert!(matches!(error, DecodeError::MadeForHdr { .. }), "{message}");
        assert!(message.contains(command) && message.ends_with("out.png"), "{message}");
        assert!(decode(&file, &IGNORE).is_ok());
    }
}

#[test]
fn what_cannot_be_honoured_is_refused_or_ignored() {
    let plain = written(&picture_8(3), ImageFormat::Png);
    refused(&cmyk_jpeg());
    refused(&with_chunk(&plain, b"cICP", &[1, 13, 0, 0]));
    refused(&with_chunk(&plain, b"iCCP", b"name\0\0not deflated"));
    for format in [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::WebP, ImageFormat::Tiff] {
        refused(&with_metadata(&picture_8(3), format, Some(b"this is not a profile"), None));
    }
    let icc = ColorProfile::new_display_p3().encode().unwrap();
    let jpeg = with_metadata(&picture_8(3), ImageFormat::Jpeg, Some(&icc), None);
    let at = jpeg.windows(12).position(|part| part == b"ICC_PROFILE\0").unwrap();
    let mut second_of_one = jpeg;
    second_of_one[at + 12] = 2;
    refused(&second_of_one);
}
