//! What ffmpeg's filters make of a frame, to hold ours against. It must be installed (Debian's `ffmpeg`).

use std::io::{Read, Write};
use std::process::{Command, Stdio};

use plimsoll_image::frames::{Colour, Frame, Sampling};

use crate::made::yuv;

/// What a filter makes of an 8-bit 4:2:0 frame that keeps its size.
pub(super) fn filtered(filter: &str, frame: &Frame) -> Frame {
    let format = frame.format();
    assert_eq!((format.colour(), format.depth()), (yuv(Sampling::S420), 8), "the only format this helper writes");
    through("yuv420p", filter, frame)
}

/// What a filter makes of a 16-bit RGB frame that keeps its size.
pub(super) fn rgb_filtered(filter: &str, frame: &Frame) -> Frame {
    let format = frame.format();
    assert_eq!((format.colour(), format.depth()), (Colour::Rgb, 16), "the only format this helper writes");
    through("rgb48le", filter, frame)
}

fn through(pixels: &str, filter: &str, frame: &Frame) -> Frame {
    let (format, size) = (frame.format(), frame.format().size());
    let raw = ["-f", "rawvideo", "-pix_fmt", pixels];
    let mut ffmpeg = Command::new("ffmpeg")
        .args(["-v", "error"])
        .args(raw)
        .args(["-s", &size.to_string(), "-i", "-", "-vf", filter])
        .args(raw)
        .arg("-")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("ffmpeg is installed");
    // Dropped at once, so that ffmpeg sees the end; a frame is smaller than a pipe.
    ffmpeg.stdin.take().expect("a pipe").write_all(frame.bytes()).expect("ffmpeg reads");
    let mut bytes = Vec::new();
    ffmpeg.stdout.take().expect("a pipe").read_to_end(&mut bytes).expect("ffmpeg writes");
    assert!(ffmpeg.wait().expect("ffmpeg ends").success(), "{filter}");
    Frame::new(format, bytes).expect("a frame of the same size")
}
