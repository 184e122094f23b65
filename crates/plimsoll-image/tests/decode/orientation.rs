//! Images that are stored lying or mirrored come out upright.

use image::metadata::Orientation;
use image::{DynamicImage, ImageFormat};
use plimsoll_image::decode::header;

use crate::files::{decoded, exif, picture_8, picture_16, rgb8, rgb16, with_metadata};
use crate::pictures::{SIZE, smooth};

/// What the image crate makes of it: written by others.
fn upright(mut picture: DynamicImage, orientation: u8) -> DynamicImage {
    picture.apply_orientation(Orientation::from_exif(orientation).expect("1 to 8"));
    picture
}

#[test]
fn every_orientation_of_exif() {
    for orientation in 1..=8 {
        let expected = upright(picture_8(3), orientation);
        for format in [ImageFormat::Png, ImageFormat::WebP] {
            let bytes = with_metadata(&picture_8(3), format, None, Some(&exif(orientation)));
            let image = decoded(&bytes);
            assert_eq!(rgb8(&image), expected.as_bytes(), "{format:?}, orientation {orientation}");
            assert_eq!(image.image.size().width, expected.width());
            assert_eq!(header(&bytes).unwrap().size, image.image.size());
        }
        let image = decoded(&with_metadata(&picture_16(3), ImageFormat::Png, None, Some(&exif(orientation))));
        assert_eq!(rgb16(&image), upright(picture_16(3), orientation).into_rgb16().into_raw());
    }
}

#[test]
fn exif_may_name_itself() {
    let named = [b"Exif\0\0", &exif(6)[..]].concat();
    let image = decoded(&with_metadata(&picture_8(3), ImageFormat::WebP, None, Some(&named)));
    assert_eq!(rgb8(&image), upright(picture_8(3), 6).as_bytes());
}

#[test]
fn jpeg_turns_as_png_does() {
    let lying = with_metadata(&picture_8(3), ImageFormat::Jpeg, None, None);
    let stored = decoded(&lying);
    let stored = image::RgbImage::from_raw(SIZE.width, SIZE.height, rgb8(&stored).to_vec()).unwrap();
    let turned = decoded(&with_metadata(&picture_8(3), ImageFormat::Jpeg, None, Some(&exif(6))));
    assert_eq!(rgb8(&turned), upright(DynamicImage::ImageRgb8(stored), 6).as_bytes());
}

#[test]
fn tiff_keeps_its_orientation_in_a_tag() {
    let mut bytes = std::io::Cursor::new(Vec::new());
    let mut encoder = tiff::encoder::TiffEncoder::new(&mut bytes).unwrap();
    let mut page = encoder.new_image::<tiff::encoder::colortype::RGB8>(SIZE.width, SIZE.height).unwrap();
    page.encoder().write_tag(tiff::tags::Tag::Orientation, 8_u16).unwrap();
    page.write_data(picture_8(3).as_bytes()).unwrap();
    assert_eq!(rgb8(&decoded(&bytes.into_inner())), upright(picture_8(3), 8).as_bytes());
}

#[test]
fn jpeg_xl_turns_by_itself() {
    let image = decoded(include_bytes!("made/turned.jxl"));
    let (width, height) = (image.image.size().width, image.image.size().height);
    assert_eq!((width, height), (SIZE.height, SIZE.width));
    // Turned clockwise, what was at the bottom left is now at the top left; the file was a JPEG before.
    for (x, y) in [(0, 0), (width - 1, 0), (0, height - 1), (3, 8)] {
        for channel in 0..3 {
            let got = rgb8(&image)[((y * width + x) * 3 + channel) as usize];
            let was = smooth(y, SIZE.height - 1 - x, channel);
            assert!(got.abs_diff(was) < 16, "channel {channel} at {x}, {y} is {got}, and was {was}");
        }
    }
    assert_eq!(header(include_bytes!("made/turned.jxl")).unwrap().size, image.image.size());
}
