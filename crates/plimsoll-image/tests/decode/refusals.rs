//! What is no image, or too much of one: a typed error each, and nothing allocated for it.

use image::{DynamicImage, ImageFormat};
use plimsoll_image::MakeImageError;
use plimsoll_image::decode::{DecodeError, DecodeOptions, decode, header, read};

use crate::files::{JXL, few_colours, picture_8, with_size, written};

const SOURCES: [ImageFormat; 8] = [
    ImageFormat::Png,
    ImageFormat::Jpeg,
    ImageFormat::WebP,
    ImageFormat::Tiff,
    ImageFormat::Gif,
    ImageFormat::Bmp,
    ImageFormat::Pnm,
    ImageFormat::Qoi,
];

fn error(bytes: &[u8]) -> DecodeError {
    match decode(bytes, &DecodeOptions::default()) {
        Err(error) => error,
        Ok(image) => panic!("{image:?} from {} bytes", bytes.len()),
    }
}

#[test]
fn what_is_no_image_is_said_so() {
    assert!(matches!(error(b""), DecodeError::Empty));
    assert!(matches!(error(b"Dear diary, today I painted"), DecodeError::Unrecognised));
    assert!(matches!(error(&[0; 64]), DecodeError::Unrecognised));
    for (bytes, name, how) in [
        (&b"\0\0\0\x1cftypavif\0\0\0\0avifmif1miaf"[..], "AVIF", "avifdec --depth 16 FILE"),
        (b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", "HEIC", "heif-convert"),
        (b"\x76\x2f\x31\x01\x02\0\0\0", "OpenEXR", "ffmpeg -apply_trc iec61966_2_1 -i FILE"),
    ] {
        let message = error(bytes).to_string();
        assert!(message.contains(name) && message.contains(how) && message.contains("PNG"), "{message}");
    }
}

#[test]
fn folders_and_missing_files_are_unreadable() {
    let folder = std::env::temp_dir().join("plimsoll-decode-folder.png");
    std::fs::create_dir_all(&folder).unwrap();
    assert!(matches!(read(&folder), Err(DecodeError::Unreadable { .. })));
    std::fs::remove_dir(&folder).unwrap();
    let message = read(&folder).unwrap_err().to_string();
    assert!(message.contains("plimsoll-decode-folder.png"), "{message}");
}

#[test]
fn a_huge_header_in_a_tiny_file_costs_nothing() {
    let png = written(&picture_8(3), ImageFormat::Png);
    assert!(matches!(error(&with_size(&png, 1 << 30, 1 << 30)), DecodeError::Refused(MakeImageError::TooLarge(_))));
    assert!(matches!(error(&with_size(&png, 16384, 16384)), DecodeError::Truncated { .. }));
    assert!(matches!(error(&with_size(&png, 0, 5)), DecodeError::Damaged { .. }));
    assert!(matches!(error(b"P6 16384 16384 255 xyz"), DecodeError::Truncated { .. }));
    assert!(matches!(error(b"P6 99999999 99999999 255 xyz"), DecodeError::Refused(_)));
    let mut qoi = written(&picture_8(3), ImageFormat::Qoi);
    qoi[4..12].copy_from_slice(&[0, 0, 0x40, 0, 0, 0, 0x40, 0]);
    assert!(matches!(error(&qoi), DecodeError::Truncated { .. }));
    let mut jpeg = written(&picture_8(1), ImageFormat::Jpeg);
    let frame = jpeg.windows(2).position(|pair| pair == [0xff, 0xc0]).unwrap();
    jpeg[frame + 5..frame + 7].copy_from_slice(&[0xff, 0xff]);
    assert!(matches!(error(&jpeg), DecodeError::Truncated { .. }));
    let mut gif = written(&few_colours(), ImageFormat::Gif);
    gif[6..10].copy_from_slice(&[0, 0x40, 0, 0x40]);
    assert!(matches!(error(&gif), DecodeError::Truncated { .. }));
}

#[test]
fn the_limit_is_for_samples_of_both_ends() {
    let bytes = written(&picture_8(4), ImageFormat::Png);
    let needed = 24 * 16 * (4 + 3);
    let options = |bytes_max| DecodeOptions { bytes_max, ..DecodeOptions::default() };
    match decode(&bytes, &options(needed - 1)) {
        Err(DecodeError::TooLarge { needed: said, allowed, .. }) => assert_eq!((said, allowed), (needed, needed - 1)),
        other => panic!("{other:?}"),
    }
    // A decoder needs some bytes of its own.
    assert!(decode(&bytes, &options(needed + (1 << 20))).is_ok());
}

#[test]
fn a_file_that_ends_early_is_refused() {
    for format in SOURCES {
        let picture = if format == ImageFormat::Gif { few_colours() } else { picture_8(3) };
        let whole = written(&picture, format);
        for part in [0.25, 0.5, 0.75, 0.9] {
            let bytes = &whole[..(whole.len() as f64 * part) as usize];
            let error = error(bytes);
            let known = matches!(error, DecodeError::Truncated { .. } | DecodeError::Damaged { .. });
            assert!(known, "{format:?} cut to {} of {} bytes: {error}", bytes.len(), whole.len());
        }
    }
    for (name, whole) in JXL {
        let error = error(&whole[..whole.len() * 3 / 4]);
        assert!(matches!(error, DecodeError::Truncated { .. } | DecodeError::Damaged { .. }), "{name}: {error}");
    }
}

#[test]
fn floats_are_refused() {
    let floats = DynamicImage::ImageRgb32F(image::Rgb32FImage::from_raw(1, 1, vec![0.5, 1.5, 0.0]).unwrap());
    assert!(matches!(error(&written(&floats, ImageFormat::Tiff)), DecodeError::Unsupported { .. }));
}

#[test]
fn animations_are_refused() {
    let frame = || image::Frame::new(few_colours().into_rgba8());
    let mut gif = Vec::new();
    let mut encoder = image::codecs::gif::GifEncoder::new(&mut gif);
    encoder.encode_frames([frame(), frame()]).unwrap();
    drop(encoder);
    assert!(matches!(error(&gif), DecodeError::Animated { .. }));

    let mut apng = Vec::new();
    let mut encoder = png::Encoder::new(&mut apng, 1, 1);
    encoder.set_animated(2, 0).unwrap();
    let mut writer = encoder.write_header().unwrap();
    writer.write_image_data(&[1]).unwrap();
    writer.write_image_data(&[2]).unwrap();
    writer.finish().unwrap();
    assert!(matches!(error(&apng), DecodeError::Animated { .. }));
    assert!(matches!(header(&apng), Err(DecodeError::Animated { .. })));
}

/// Data that are missing in the middle, while the end marker is there.
#[test]
fn a_jpeg_that_lacks_data_in_its_middle_is_refused() {
    let quality = |quality| {
        let mut bytes = Vec::new();
        let mut encoder = image::codecs::jpeg::JpegEncoder::new_with_quality(&mut bytes, quality);
        encoder
            .encode_image(&DynamicImage::ImageRgb8(image::RgbImage::from_fn(160, 120, |x, y| {
                image::Rgb([(x * 7 + y * y) as u8, (x * y) as u8, (x ^ y) as u8])
            })))
            .unwrap();
        bytes
    };
    let files = [
        quality(90),
        quality(30),
        include_bytes!("made/progressive.jpg").to_vec(),
        include_bytes!("made/restarts.jpg").to_vec(),
    ];
    for (file, whole) in files.iter().enumerate() {
        let mut passed = 0;
        assert!(decode(whole, &DecodeOptions::default()).is_ok(), "file {file} is whole");
        let scan = whole.windows(2).position(|pair| pair == [0xff, 0xda]).unwrap() + 14;
        let end = whole.len() - 2;
        for part in 1..8 {
            let at = scan + (end - scan) * part / 8;
            for cut in [(end - at) / 2, end - at] {
                let bytes = [&whole[..at], &whole[at + cut..]].concat();
                let outcome = decode(&bytes, &DecodeOptions::default());
                // What refines coefficients can go on with other bits by chance.
                passed += usize::from(outcome.is_ok());
                assert!(file == 2 || passed == 0, "file {file}: {cut} bytes missing from {at} of {end}");
            }
        }
        assert!(passed <= 2, "file {file}: {passed} of 14");
    }
}

/// Nobody waits for a pipe, and a device has no end.
#[cfg(unix)]
#[test]
fn pipes_and_devices_are_refused_at_once() {
    use plimsoll_image::decode::look;
    for device in ["/dev/zero", "/dev/null"] {
        assert!(matches!(read(device.as_ref()), Err(DecodeError::NoFile { .. })), "{device}");
        assert!(matches!(look(device.as_ref()), Err(DecodeError::NoFile { .. })), "{device}");
    }
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe.png");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let message = look(&pipe).unwrap_err().to_string();
    assert!(message.contains("pipe.png") && message.contains("save"), "{message}");
}
