//! The input, opened: what its frames are, how many there may be, and the frames themselves.
//! Never holds a frame of a stream; of images it reads the first one to know what they are.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use plimsoll::image::frames::stream::{
    RawReader, Selection, StreamError, StreamHeader, Y4mReader, is_transparent, read_image,
};
use plimsoll::image::frames::{Colour, Format, Frame, Yuv};

use super::args::{Args, with_rate};
use super::places::InputPlace;
use super::values::RawFrames;
use crate::stop::Stop;

/// Frames of a stream.
pub(super) type Frames = Box<dyn Iterator<Item = Result<Frame, StreamError>> + Send>;

/// The input.
pub(super) struct Input {
    /// What the frames are, and at what rate they follow one another.
    pub(super) header: StreamHeader,
    /// How many there are, if that can be told.
    pub(super) count: Option<u64>,
    /// What is not kept of it.
    pub(super) lost: Option<&'static str>,
    pub(super) from: From,
}

/// Said once, of raw frames and of images.
const ALPHA_PASSED_OVER: &str =
    "the frames' alpha is passed over: no operation keeps it, and what is written is opaque";
const ALPHA_ON_WHITE: &str =
    "the first image is transparent in places: it is laid on white, and what is written is opaque";

/// Where frames come from.
pub(super) enum From {
    Stream(Frames),
    Images(Vec<PathBuf>),
}

impl Input {
    pub(super) fn open(args: &Args, place: &InputPlace, selection: &Selection) -> Result<Self, Stop> {
        let mut input = match place {
            InputPlace::Stream(path) => Self::stream(args, path.as_deref())?,
            InputPlace::Images(files) => Self::images(files)?,
        };
        let rate = input.header.rate.or(args.rate);
        input.header.rate = selection.rate(rate).map_err(with_rate)?;
        if let From::Stream(frames) = input.from {
            input.count = input.count.map(|count| selection.count(count, rate));
            input.from = From::Stream(Box::new(selection.select(frames, rate)));
        }
        if let Some(most) = args.frames {
            input.count = input.count.map(|count| count.min(most));
            input.from = match input.from {
                From::Stream(frames) => From::Stream(Box::new(frames.take(most as usize))),
                From::Images(mut files) => {
                    files.truncate(most as usize);
                    input.count = Some(files.len() as u64);
                    From::Images(files)
                }
            };
        }
        Ok(input)
    }

    fn stream(args: &Args, path: Option<&Path>) -> Result<Self, Stop> {
        let file = match path {
            Some(path) => File::open(path).map_err(|error| {
                Stop::failed(format_args!("{} cannot be read ({error}); look at its name", path.display()))
            })?,
            None => stdin().map_err(|error| Stop::failed(format_args!("standard input cannot be read ({error})")))?,
        };
        let bytes = file.metadata().ok().filter(std::fs::Metadata::is_file).map(|metadata| metadata.len());
        let reader: Box<dyn Read + Send> = Box::new(file);
        let (mut header, frames, beside): (_, Frames, _) = match args.raw {
            Some(RawFrames(raw)) => {
                let beside = raw.stream_bytes() - raw.format().frame_bytes();
                (StreamHeader::guessed(raw.format()), Box::new(RawReader::new(reader, raw)), beside)
            }
            None => {
                let frames = Y4mReader::open(reader).map_err(|error| named(path, &error))?;
                (*frames.header(), Box::new(frames), "FRAME\n".len())
            }
        };
        let count = bytes.map(|bytes| bytes / (header.format.frame_bytes() + beside) as u64);
        header.format = as_told(args, header.format);
        header.guessed.matrix &= args.matrix.is_none();
        header.guessed.range &= args.range.is_none();
        let format = header.format;
        // The same samples, whatever they are said to stand for.
        let retold = move |frame: Frame| match frame.format() == format {
            true => frame,
            false => Frame::new(format, frame.into_bytes()).expect("as many bytes as before"),
        };
        let frames = frames.map(move |frame| frame.map(retold));
        let lost = args.raw.is_some_and(|RawFrames(raw)| raw.has_alpha()).then_some(ALPHA_PASSED_OVER);
        Ok(Self { header, count, lost, from: From::Stream(Box::new(frames)) })
    }

    fn images(files: &[PathBuf]) -> Result<Self, Stop> {
        let path = files.first().ok_or_else(|| Stop::usage("there are no images; name some"))?;
        let first = read_image(path).map_err(Stop::failed)?;
        let header = StreamHeader::new(first.format());
        let lost = is_transparent(path, &first).then_some(ALPHA_ON_WHITE);
        Ok(Self { header, count: Some(files.len() as u64), lost, from: From::Images(files.to_vec()) })
    }
}

/// What the flags say about the input's colours.
fn as_told(args: &Args, format: Format) -> Format {
    match format.colour() {
        Colour::Rgb => format,
        Colour::Mono(range) => format.with_colour(Colour::Mono(args.range.unwrap_or(range))),
        Colour::Yuv(yuv) => {
            let (matrix, range) = (args.matrix.unwrap_or(yuv.matrix), args.range.unwrap_or(yuv.range));
            format.with_colour(Colour::Yuv(Yuv { matrix, range, ..yuv }))
        }
    }
}

/// An error of the input, and which input.
pub(super) fn named(path: Option<&Path>, error: &StreamError) -> Stop {
    match path {
        Some(path) => Stop::failed(format_args!("{}: {error}", path.display())),
        None => Stop::failed(error),
    }
}

/// Without the buffer and the lock of `Stdin`: frames go straight into their memory.
#[cfg(unix)]
fn stdin() -> io::Result<File> {
    use std::os::fd::AsFd;
    Ok(File::from(io::stdin().as_fd().try_clone_to_owned()?))
}

#[cfg(windows)]
fn stdin() -> io::Result<File> {
    use std::os::windows::io::AsHandle;
    Ok(File::from(io::stdin().as_handle().try_clone_to_owned()?))
}
