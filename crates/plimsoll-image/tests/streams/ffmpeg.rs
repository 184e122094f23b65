//! The same frames through ffmpeg: what it writes we read, what we write it reads, sample for sample.

use std::io::Write;
use std::process::{Command, Stdio};
use std::thread;

use plimsoll_image::Size;
use plimsoll_image::encode::JpegQuality;
use plimsoll_image::frames::stream::{
    Interlacing, Ratio, RawReader, RawWriter, StreamHeader, Y4mReader, pixel_format, read_image, write_image,
};
use plimsoll_image::frames::{Colour, Format, Frame, Range, Siting};

use crate::made::{frames, read, y4m};

const SIZE: Size = Size { width: 161, height: 91 };

/// Where ffmpeg writes two bytes a sample and fewer chroma samples: of odd widths it writes half a sample too little in
/// each row of chroma, which it does not read again itself.
const EVEN_WIDTH: Size = Size { width: 162, height: 91 };

fn size_for(pixel_format: &str) -> Size {
    let is_deep_with_fewer_chroma = pixel_format.ends_with("le") && ["yuv420", "yuv422"].contains(&&pixel_format[..6]);
    if is_deep_with_fewer_chroma { EVEN_WIDTH } else { SIZE }
}

/// Everything that Debian's ffmpeg writes into Y4M and we have a name for.
const PIXEL_FORMATS: [&str; 23] = [
    "gray",
    "gray9le",
    "gray10le",
    "gray12le",
    "gray16le",
    "yuv420p",
    "yuv422p",
    "yuv444p",
    "yuv420p9le",
    "yuv422p9le",
    "yuv444p9le",
    "yuv420p10le",
    "yuv422p10le",
    "yuv444p10le",
    "yuv420p12le",
    "yuv422p12le",
    "yuv444p12le",
    "yuv420p14le",
    "yuv422p14le",
    "yuv444p14le",
    "yuv420p16le",
    "yuv422p16le",
    "yuv444p16le",
];

/// What ffmpeg gives out for these arguments and this input.
fn ffmpeg(arguments: &[&str], input: Vec<u8>) -> Vec<u8> {
    let mut command = Command::new("ffmpeg");
    command.args(["-nostdin", "-v", "error"]).args(arguments);
    let started = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = started.unwrap_or_else(|error| {
        panic!("ffmpeg does not start ({error}); install it with `apt-get install ffmpeg`, or run `cargo xtask test`")
    });
    let mut stdin = child.stdin.take().expect("a pipe");
    // In a thread, since ffmpeg may write before it has read all; if it stops reading, its own message says why.
    let feeder = thread::spawn(move || drop(stdin.write_all(&input)));
    let ended = child.wait_with_output().expect("ffmpeg ends");
    feeder.join().expect("nothing here panics");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "ffmpeg {}: {said}", arguments.join(" "));
    ended.stdout
}

/// Three frames of ffmpeg's test picture at an odd size, as this muxer writes them.
fn drawn(pixel_format: &str, more: &[&str], muxer: &str) -> Vec<u8> {
    let Size { width, height } = size_for(pixel_format);
    let scale = format!("scale={width}:{height},setsar=64/45");
    let source = ["-f", "lavfi", "-i", "testsrc2=size=320x180:rate=30000/1001", "-frames:v", "3", "-vf", &scale];
    let target = ["-pix_fmt", pixel_format, "-strict", "-1", "-f", muxer, "-"];
    ffmpeg(&[&source, more, &target].concat(), Vec::new())
}

fn raw(format: Format, stream: &[u8]) -> Vec<Frame> {
    RawReader::new(stream, format).map(|frame| frame.expect("a frame")).collect()
}

#[test]
fn what_ffmpeg_writes_we_read() {
    for name in PIXEL_FORMATS {
        let (header, frames) = read(&drawn(name, &[], "yuv4mpegpipe"));
        let named = pixel_format(name, size_for(name)).expect("a format");
        assert_eq!((header.format.size(), header.format.depth()), (named.size(), named.depth()), "{name}");
        assert_eq!(header.rate, Some(Ratio { numerator: 30_000, denominator: 1001 }), "{name}");
        assert_eq!(header.aspect, Some(Ratio { numerator: 64, denominator: 45 }), "{name}");
        assert_eq!(header.interlacing, Interlacing::Progressive, "{name}");
        let expected = raw(header.format, &drawn(name, &[], "rawvideo"));
        assert_eq!(expected.len(), 3, "{name}");
        assert!(frames == expected, "{name}");
    }
}

#[test]
fn what_we_write_ffmpeg_reads() {
    for name in PIXEL_FORMATS {
        let format = pixel_format(name, SIZE).expect("a format");
        let frames = frames(format, 3);
        let stream = y4m(StreamHeader::new(format), &frames);
        // Without a pixel format ffmpeg gives out the one that it understood the stream to have.
        let understood = ffmpeg(&["-f", "yuv4mpegpipe", "-i", "-", "-f", "rawvideo", "-"], stream);
        assert!(raw(format, &understood) == frames, "{name}");
    }
}

#[test]
fn what_we_write_again_means_the_same_to_ffmpeg() {
    let about = ["-f", "yuv4mpegpipe", "-i", "-", "-strict", "-1", "-f", "yuv4mpegpipe", "-"];
    for (range, location) in [("tv", "left"), ("pc", "left"), ("tv", "topleft"), ("pc", "center")] {
        for name in ["yuv420p", "yuv422p", "yuv420p10le"] {
            let chosen = ["-color_range", range, "-chroma_sample_location", location, "-field_order", "tt"];
            let first = drawn(name, &chosen, "yuv4mpegpipe");
            let (header, frames) = read(&first);
            let again = ffmpeg(&about, y4m(header, &frames));
            assert_eq!(read(&again), (header, frames), "{name} {range} {location}");
        }
    }
}

#[test]
fn range_and_siting_are_understood_as_ffmpeg_means_them() {
    let colour = |location, range| {
        let chosen = ["-color_range", range, "-chroma_sample_location", location];
        let reader = drawn("yuv420p", &chosen, "yuv4mpegpipe");
        match Y4mReader::open(&reader[..]).expect("a header").header().format.colour() {
            Colour::Yuv(yuv) => (yuv.siting, yuv.range),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(colour("left", "tv"), (Siting::Left, Range::Limited));
    assert_eq!(colour("center", "pc"), (Siting::Centre, Range::Full));
    assert_eq!(colour("topleft", "tv"), (Siting::TopLeft, Range::Limited));
}

#[test]
fn raw_rgb_goes_both_ways() {
    for (name, other) in [("rgb24", "gbrp"), ("rgb48le", "gbrp16le")] {
        let format = pixel_format(name, SIZE).expect("a format");
        let drawn = raw(format, &drawn(name, &[], "rawvideo"));
        assert_eq!(drawn.len(), 3, "{name}");
        let mut writer = RawWriter::new(Vec::new(), format);
        drawn.iter().for_each(|frame| writer.write(frame).expect("room"));
        let size = SIZE.to_string();
        let source = ["-f", "rawvideo", "-pix_fmt", name, "-s", &size, "-i", "-"];
        // Through another order of the planes: a swap of red and blue would show.
        let planar = ffmpeg(
            &[&source[..], &["-pix_fmt", other, "-f", "rawvideo", "-"]].concat(),
            writer.finish().expect("room"),
        );
        let step = 3 * format.sample_bytes();
        for (at, frame) in drawn.iter().enumerate() {
            let green = &planar[at * format.frame_bytes()..][..format.frame_bytes() / 3];
            let pixels = frame.bytes().chunks(step);
            let expected: Vec<u8> = pixels.flat_map(|pixel| pixel[step / 3..2 * step / 3].to_vec()).collect();
            assert!(green == expected, "{name}");
        }
    }
}

#[test]
fn images_go_both_ways() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, pixel_format_of_file) in [("rgb24", "rgb24"), ("rgb48le", "rgb48be")] {
        let format = pixel_format(name, SIZE).expect("a format");
        let frame = &frames(format, 1)[0];
        for ending in ["png", "ppm"] {
            let ours = folder.path().join(format!("ours.{ending}"));
            write_image(&ours, frame, JpegQuality::default()).expect("written");
            let path = ours.to_str().expect("a plain name");
            let seen = ffmpeg(&["-i", path, "-pix_fmt", name, "-f", "rawvideo", "-"], Vec::new());
            assert!(seen == frame.bytes(), "{name} {ending}");
            let theirs = folder.path().join(format!("theirs.{ending}"));
            let path = theirs.to_str().expect("a plain name");
            let size = SIZE.to_string();
            let source = ["-f", "rawvideo", "-pix_fmt", name, "-s", &size, "-i", "-"];
            let target = ["-pix_fmt", pixel_format_of_file, "-y", path];
            ffmpeg(&[&source[..], &target].concat(), frame.bytes().to_vec());
            assert!(read_image(&theirs).expect("read") == *frame, "{name} {ending}");
        }
    }
}
