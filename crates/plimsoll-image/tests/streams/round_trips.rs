//! What is written and read again is the same: every kind of frame, at an odd size.

use plimsoll_image::frames::stream::{
    Guessed, Interlacing, Ratio, RawReader, RawWriter, StreamHeader, WriteError, Y4mWriter,
};
use plimsoll_image::frames::{Colour, Format, Range, Sampling, Siting};

use crate::made::{format, frame, frames, read, y4m, yuv};

const RANGES: [Range; 2] = [Range::Limited, Range::Full];

/// Depths that other programs know by name.
const DEPTHS: [u8; 6] = [8, 9, 10, 12, 14, 16];
const MONO_DEPTHS: [u8; 5] = [8, 9, 10, 12, 16];

/// Every format whose name in Y4M says all about it.
fn sayable() -> Vec<Format> {
    let mut formats = Vec::new();
    for range in RANGES {
        for siting in [Siting::Left, Siting::Centre, Siting::TopLeft] {
            formats.push(format(8, yuv(Sampling::S420, siting, range)));
        }
        for depth in DEPTHS {
            formats.extend(
                [Sampling::S420, Sampling::S422, Sampling::S444]
                    .map(|sampling| format(depth, yuv(sampling, Siting::Left, range))),
            );
        }
        formats.extend(MONO_DEPTHS.map(|depth| format(depth, Colour::Mono(range))));
    }
    formats
}

#[test]
fn y4m_keeps_formats_and_frames() {
    for format in sayable() {
        let written = frames(format, 3);
        let (mut header, frames) = read(&y4m(StreamHeader::new(format), &written));
        // The matrix alone is never said.
        let matrix = matches!(format.colour(), Colour::Yuv(_));
        assert_eq!(std::mem::take(&mut header.guessed), Guessed { matrix, range: false }, "{format}");
        assert_eq!(header, StreamHeader::new(format), "{format}");
        assert!(frames == written, "{format}");
    }
}

#[test]
fn y4m_keeps_what_else_a_header_says() {
    let format = format(8, yuv(Sampling::S420, Siting::Left, Range::Limited));
    let mut header = StreamHeader::new(format);
    header.guessed.matrix = true;
    header.rate = Some(Ratio { numerator: 30_000, denominator: 1001 });
    header.aspect = Some(Ratio { numerator: 64, denominator: 45 });
    for interlacing in [Interlacing::TopFirst, Interlacing::BottomFirst, Interlacing::Unknown] {
        header.interlacing = interlacing;
        assert_eq!(read(&y4m(header, &[])), (header, Vec::new()));
    }
}

#[test]
fn mixed_interlacing_is_written_as_unknown() {
    let mut header = StreamHeader::new(format(8, yuv(Sampling::S444, Siting::Left, Range::Full)));
    header.interlacing = Interlacing::Mixed;
    assert_eq!(read(&y4m(header, &[])).0.interlacing, Interlacing::Unknown);
}

#[test]
fn y4m_refuses_what_it_cannot_say() {
    let rgb = format(8, Colour::Rgb);
    let refused = Y4mWriter::new(Vec::new(), StreamHeader::new(rgb)).map(|_| ()).unwrap_err();
    assert!(matches!(refused, WriteError::NotYuv(_)));
    assert_eq!(
        refused.to_string(),
        "Y4M holds no frames of 7x5 rgb, 8 bit; end the chain with yuv=709, or write images or raw frames"
    );
    let next = |depth, colour| match Y4mWriter::new(Vec::new(), StreamHeader::new(format(depth, colour))) {
        Err(WriteError::Depth { next, .. }) => next,
        other => panic!("{depth}: {:?}", other.map(|_| ())),
    };
    let chroma = yuv(Sampling::S420, Siting::Left, Range::Limited);
    assert_eq!([11, 13, 15].map(|depth| next(depth, chroma)), [12, 14, 16]);
    assert_eq!([11, 13, 14, 15].map(|depth| next(depth, Colour::Mono(Range::Full))), [12, 16, 16, 16]);
}

/// A name that does not say where chroma lies is taken to mean the left, so nothing else is written under it.
#[test]
fn y4m_refuses_chroma_that_would_be_taken_to_lie_elsewhere() {
    let refused = |depth, sampling, siting| {
        let header = StreamHeader::new(format(depth, yuv(sampling, siting, Range::Limited)));
        Y4mWriter::new(Vec::new(), header).err().map(|error| error.to_string())
    };
    for (depth, sampling, siting) in [
        (10, Sampling::S420, Siting::Centre),
        (10, Sampling::S420, Siting::TopLeft),
        (8, Sampling::S422, Siting::Centre),
    ] {
        let error = refused(depth, sampling, siting).expect("it cannot be said");
        assert!(error.contains("end the chain with yuv=left"), "{error}");
    }
    for siting in [Siting::Left, Siting::Centre, Siting::TopLeft] {
        assert_eq!(refused(16, Sampling::S444, siting), None);
        assert_eq!(refused(8, Sampling::S420, siting), None);
    }
    assert_eq!(refused(8, Sampling::S422, Siting::TopLeft), None);
}

#[test]
fn a_frame_unlike_its_stream_is_refused_before_a_byte_is_written() {
    let of_stream = format(8, Colour::Mono(Range::Full));
    let other = frame(format(10, Colour::Mono(Range::Full)), 1);
    let mut writer = Y4mWriter::new(Vec::new(), StreamHeader::new(of_stream)).unwrap();
    writer.write(&frame(of_stream, 1)).unwrap();
    let refused = writer.write(&other).unwrap_err();
    assert_eq!(refused.to_string(), "frame 2 is 7x5 mono full, 10 bit, in a stream of 7x5 mono full, 8 bit");
    assert!(writer.finish().unwrap() == y4m(StreamHeader::new(of_stream), &[frame(of_stream, 1)]));
}

#[test]
fn raw_keeps_frames() {
    let mut formats = sayable();
    formats.extend((8..=16).map(|depth| format(depth, Colour::Rgb)));
    for format in formats {
        let frames = frames(format, 3);
        let mut writer = RawWriter::new(Vec::new(), format);
        frames.iter().for_each(|frame| writer.write(frame).expect("room"));
        let stream = writer.finish().expect("room");
        assert_eq!(stream.len(), 3 * format.frame_bytes(), "{format}");
        let again: Vec<_> = RawReader::new(&stream[..], format).map(|frame| frame.expect("a frame")).collect();
        assert!(again == frames, "{format}");
    }
}

/// A disk that is full from here on.
struct Full(usize);

impl std::io::Write for Full {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.0 == 0 {
            return Err(std::io::ErrorKind::StorageFull.into());
        }
        let taken = bytes.len().min(self.0);
        self.0 -= taken;
        Ok(taken)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_told_with_the_frame() {
    let header = StreamHeader::new(format(8, Colour::Mono(Range::Full)));
    let whole = y4m(header, &frames(header.format, 3)).len();
    let failed_at = |room| {
        let mut writer = Y4mWriter::new(Full(room), header)?;
        frames(header.format, 3).iter().try_for_each(|frame| writer.write(frame))
    };
    assert!(failed_at(whole).is_ok());
    for (room, at) in [(0, 0), (whole - 90, 1), (whole - 50, 2), (whole - 1, 3)] {
        assert!(matches!(failed_at(room), Err(WriteError::Unwritable { frame, .. }) if frame == at), "{room}");
    }
}
