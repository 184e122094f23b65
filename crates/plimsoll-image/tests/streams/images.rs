//! Frames as image files: what is written is read again, whole or not at all.

use std::fs;
use std::io::Cursor;
use std::path::Path;

use plimsoll_image::encode::{EncodeError, Encoding, JpegQuality, encode};
use plimsoll_image::frames::stream::{ReadImageError, read_image, write_image};
use plimsoll_image::frames::{Colour, MakeFrameError, Range};

use crate::made::{format, frame};

fn names(folder: &Path) -> Vec<String> {
    let files = fs::read_dir(folder).expect("a folder").map(|file| file.expect("a file"));
    files.map(|file| file.file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn files_keep_every_sample() {
    let folder = tempfile::tempdir().expect("a folder");
    for encoding in Encoding::ALL.into_iter().filter(|encoding| *encoding != Encoding::Jpeg) {
        for ending in encoding.endings() {
            for depth in [8, 16].into_iter().filter(|depth| *depth == 8 || encoding.holds_16_bits()) {
                let path = folder.path().join(format!("frame{depth}.{}", ending.to_uppercase()));
                let frame = frame(format(depth, Colour::Rgb), u64::from(depth));
                write_image(&path, &frame, JpegQuality::default()).expect("written");
                assert!(read_image(&path).expect("read") == frame, "{encoding}, {depth} bits");
            }
        }
    }
    assert!(names(folder.path()).iter().all(|name| !name.ends_with(".new")));
}

#[test]
fn jpeg_comes_near() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("frame.jpg");
    let format = format(8, Colour::Rgb);
    let slope = (0..format.frame_bytes()).map(|at| (at * 2) as u8).collect();
    let slope = plimsoll_image::frames::Frame::new(format, slope).expect("a frame");
    write_image(&path, &slope, JpegQuality::default()).expect("written");
    let again = read_image(&path).expect("read");
    let furthest = again.bytes().iter().zip(slope.bytes()).map(|(a, b)| a.abs_diff(*b)).max();
    assert!(furthest <= Some(8), "{furthest:?}");
}

/// Columns of red and of blue are told apart only by a file that keeps colour as fine as brightness.
#[test]
fn jpeg_keeps_the_colour_of_a_column() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("columns.jpg");
    let format = format(8, Colour::Rgb);
    let columns = [[254, 0, 0], [0, 0, 254]].into_iter().cycle().flatten().take(format.frame_bytes());
    let columns = plimsoll_image::frames::Frame::new(format, columns.collect()).expect("a frame");
    write_image(&path, &columns, JpegQuality::default()).expect("written");
    let again = read_image(&path).expect("read");
    let furthest = again.bytes().iter().zip(columns.bytes()).map(|(a, b)| a.abs_diff(*b)).max();
    assert!(furthest <= Some(24), "{furthest:?}");
}

#[test]
fn what_no_jpeg_can_hold_is_told_with_its_side() {
    let folder = tempfile::tempdir().expect("a folder");
    let wide = plimsoll_image::Size { width: 65_536, height: 1 };
    let format = plimsoll_image::frames::Format::new(wide, 8, Colour::Rgb).expect("a format");
    let error = write_image(&folder.path().join("wide.jpg"), &frame(format, 1), JpegQuality::default());
    let error = error.expect_err("too wide").to_string();
    assert_eq!(error, "no JPEG file can be made (65536 pixels are more than 65535); choose another format");
    assert_eq!(names(folder.path()), Vec::<String>::new());
}

#[test]
fn what_is_no_image_is_refused_before_a_file_is_begun() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, depth, colour| {
        write_image(&folder.path().join(name), &frame(format(depth, colour), 1), JpegQuality::default())
            .expect_err("refused")
    };
    let grey = write("grey.png", 8, Colour::Mono(Range::Full));
    assert!(matches!(grey, EncodeError::Frame(MakeFrameError::NoImage(_))));
    let ten = write("ten.png", 10, Colour::Rgb);
    assert!(matches!(ten, EncodeError::Frame(MakeFrameError::NoImage(_))));
    let deep = write("deep.qoi", 16, Colour::Rgb);
    assert_eq!(
        deep.to_string(),
        "QOI files hold samples of 8 bits; end the chain with depth=8, or write PNG, PPM or TIFF"
    );
    let nameless = write("frame.gif", 8, Colour::Rgb).to_string();
    assert!(
        nameless.ends_with(
            "frame.gif: the name does not tell a format; end it with .png, .ppm, .tiff, .webp, .qoi, .bmp or .jpg"
        ),
        "{nameless}"
    );
    assert_eq!(names(folder.path()), Vec::<String>::new());
}

#[test]
fn a_file_that_cannot_be_written_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("no/such/folder/frame.png");
    let error = write_image(&path, &frame(format(8, Colour::Rgb), 1), JpegQuality::default()).expect_err("no folder");
    assert!(matches!(&error, EncodeError::Unwritable { path: named, .. } if *named == path), "{error}");
}

#[test]
fn a_file_that_gives_no_frame_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("frame.png");
    let shown = path.display().to_string();
    let missing = read_image(&path).expect_err("no file");
    assert!(matches!(missing, ReadImageError::File(_)) && missing.to_string().matches(&shown).count() == 1);
    let mut png = Cursor::new(Vec::new());
    encode(&frame(format(8, Colour::Rgb), 1), Encoding::Png, JpegQuality::default(), &mut png).expect("written");
    fs::write(&path, &png.get_ref()[..60]).expect("written");
    let cut = read_image(&path).expect_err("half a file");
    assert!(matches!(&cut, ReadImageError::Decode { path: named, .. } if *named == path));
    assert!(cut.to_string().starts_with(&format!("{shown}: this PNG file ")), "{cut}");
}
