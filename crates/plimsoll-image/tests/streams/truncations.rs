//! A stream that ends too early: the whole frames come first, then an error that says where.

use std::io::{self, Read};

use plimsoll_image::frames::stream::{HeaderError, RawReader, StreamError, StreamHeader, Y4mReader};
use plimsoll_image::frames::{Colour, Format, Frame, Range, Sampling, Siting};

use crate::made::{format, frames, y4m, yuv};

fn stream() -> (Vec<Frame>, Vec<u8>, Format) {
    let format = format(10, yuv(Sampling::S420, Siting::Left, Range::Limited));
    let frames = frames(format, 3);
    let stream = y4m(StreamHeader::new(format), &frames);
    (frames, stream, format)
}

/// The frames before the end or an error; nothing may come after.
fn drained(mut reader: impl Iterator<Item = Result<Frame, StreamError>>) -> (Vec<Frame>, Option<StreamError>) {
    let mut frames = Vec::new();
    let fault = loop {
        match reader.next() {
            Some(Ok(frame)) => frames.push(frame),
            Some(Err(error)) => break Some(error),
            None => break None,
        }
    };
    assert!(reader.next().is_none() && reader.next().is_none(), "something after the end");
    (frames, fault)
}

#[test]
fn every_cut_of_a_y4m_gives_the_whole_frames_and_then_says_where() {
    let (whole, stream, format) = stream();
    let header = stream.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    let (lead, wanted) = (b"FRAME\n".len(), format.frame_bytes());
    for cut in 0..stream.len() {
        let opened = Y4mReader::open(&stream[..cut]);
        if cut < header {
            let refused = opened.map(|_| ()).unwrap_err();
            let expected = if cut == 0 { HeaderError::Empty } else { HeaderError::Truncated };
            // Four bytes in, it might still be anything.
            let too_few = cut < 4 && matches!(refused, StreamError::Header(HeaderError::NotY4m { .. }));
            assert!(
                too_few || matches!(&refused, StreamError::Header(header) if *header == expected),
                "{cut}: {refused}"
            );
            continue;
        }
        let (before, within) = ((cut - header) / (lead + wanted), (cut - header) % (lead + wanted));
        let (frames, fault) = drained(opened.unwrap());
        assert!(frames == whole[..before], "{cut}");
        let current = before as u64 + 1;
        match (within, fault) {
            (0, None) => {}
            (1..6, Some(StreamError::FrameHeaderTruncated { frame })) => assert_eq!(frame, current),
            (6.., Some(StreamError::FrameTruncated { frame, got, wanted: all })) => {
                assert_eq!((frame, got, all), (current, within - lead, wanted));
            }
            (_, fault) => panic!("{cut}: {fault:?}"),
        }
    }
}

#[test]
fn every_cut_of_a_raw_stream_gives_the_whole_frames_and_then_says_where() {
    let (whole, _, format) = stream();
    let stream: Vec<u8> = whole.iter().flat_map(|frame| frame.bytes().to_vec()).collect();
    for cut in 0..=stream.len() {
        let (before, within) = (cut / format.frame_bytes(), cut % format.frame_bytes());
        let (frames, fault) = drained(RawReader::new(&stream[..cut], format));
        assert!(frames == whole[..before], "{cut}");
        match (within, fault) {
            (0, None) => {}
            (1.., Some(StreamError::FrameTruncated { frame, got, .. })) => {
                assert_eq!((frame, got), (before as u64 + 1, within));
            }
            (_, fault) => panic!("{cut}: {fault:?}"),
        }
    }
}

#[test]
fn messages_say_where_and_what_is_left() {
    let (_, stream, _) = stream();
    let message = |bytes: &[u8]| drained(Y4mReader::open(bytes).unwrap()).1.unwrap().to_string();
    assert_eq!(
        message(&stream[..stream.len() - 1]),
        "the stream ends in the middle of frame 3 (117 of 118 bytes); the frames before it are whole"
    );
    assert_eq!(
        message(&stream[..stream.len() - 121]),
        "the stream ends in the header of frame 3; the frames before it are whole"
    );
    let mut lost = stream.clone();
    lost.remove(stream.len() - 200);
    assert_eq!(
        message(&lost),
        "frame 3 begins with 'RAME\\n\\xbf' and not with FRAME: bytes are lost, or the stream's header tells another \
         size or depth; the frames before it are whole"
    );
}

/// Gives a few bytes at a time, is interrupted now and then, and fails in the end.
struct Halting<'a> {
    rest: &'a [u8],
    calls: usize,
}

impl Read for Halting<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.calls += 1;
        if self.calls.is_multiple_of(3) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        match self.rest.is_empty() {
            true => Err(io::ErrorKind::ConnectionReset.into()),
            false => (&mut self.rest).take(5).read(buffer),
        }
    }
}

#[test]
fn short_reads_and_interruptions_are_no_ends_and_failures_no_truncations() {
    let (whole, stream, _) = stream();
    let reader = Y4mReader::open(Halting { rest: &stream, calls: 0 }).unwrap();
    let (frames, fault) = drained(reader);
    assert!(frames == whole);
    assert!(matches!(fault, Some(StreamError::Unreadable { frame: 4, .. })), "{fault:?}");
    let failed = Y4mReader::open(Halting { rest: &stream[..9], calls: 0 }).map(|_| ()).unwrap_err();
    assert_eq!(
        failed.to_string(),
        "the stream's header cannot be read (connection reset); there is no frame before it"
    );
}

#[test]
fn frames_larger_than_what_is_trusted_come_whole() {
    let size = plimsoll_image::Size { width: 8191, height: 8191 };
    let format = Format::new(size, 8, Colour::Mono(Range::Full)).unwrap();
    let body = |seed: u8| (0..format.frame_bytes()).map(move |at| (at >> 12) as u8 ^ seed);
    let stream: Vec<u8> = body(1).chain(body(2)).collect();
    let (frames, fault) = drained(RawReader::new(&stream[..], format));
    assert!(fault.is_none() && frames.len() == 2);
    assert!(frames[0].bytes() == &stream[..format.frame_bytes()]);
    assert!(frames[1].bytes() == &stream[format.frame_bytes()..]);
}
