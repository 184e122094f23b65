//! Why a stream gave no frame, or took none. Variants are named, and messages written, by what to do next.

use std::io;

use crate::frames::format::{Format, FormatError, Siting};

/// Why a stream cannot be begun: what its header says, or does not say.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HeaderError {
    /// Not a byte came: look at the program before this one.
    #[error("the stream is empty; the program that writes it may have failed")]
    Empty,
    /// Something else: have the other program write Y4M.
    #[error(
        "the stream begins with '{found}' and not with YUV4MPEG2; it is no Y4M (ffmpeg writes it with -f yuv4mpegpipe)"
    )]
    NotY4m {
        /// The first bytes.
        found: String,
    },
    /// The header line has no end: the stream is damaged.
    #[error("the Y4M header does not end within {max} bytes; the stream is damaged", max = super::y4m::LINE_BYTES_MAX)]
    Endless,
    /// The stream ends within its header: look at the program before this one.
    #[error("the stream ends in the middle of its header; the program that writes it may have failed")]
    Truncated,
    /// A part of the header cannot be read: have it written anew.
    #[error("'{tag}' in the Y4M header is not {wanted}")]
    Malformed {
        /// The part.
        tag: String,
        /// What it should be.
        wanted: &'static str,
    },
    /// The header lacks something: have it written anew.
    #[error("the Y4M header has no {what}")]
    Missing {
        /// What it lacks.
        what: &'static str,
    },
    /// A colour space that is not read: have the other program convert it.
    #[error("frames of the colour space '{tag}' are not read; {advice}")]
    ColourSpace {
        /// The colour space.
        tag: String,
        /// What to do.
        advice: &'static str,
    },
    /// Frames like that cannot be held.
    #[error(transparent)]
    Format(#[from] FormatError),
}

/// Why a stream gave no further frame. Frames are counted from 1.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StreamError {
    /// There is no stream of frames.
    #[error(transparent)]
    Header(#[from] HeaderError),
    /// The stream ends within a frame: what wrote it was stopped.
    #[error("the stream ends in the middle of frame {frame} ({got} of {wanted} bytes); {}", kept(*frame))]
    FrameTruncated {
        /// Which frame.
        frame: u64,
        /// Bytes of it that came.
        got: usize,
        /// Bytes that it has.
        wanted: usize,
    },
    /// The stream ends within the line before a frame: what wrote it was stopped.
    #[error("the stream ends in the header of frame {frame}; {}", kept(*frame))]
    FrameHeaderTruncated {
        /// Which frame.
        frame: u64,
    },
    /// Something else lies where a frame should begin: the header tells another size, or bytes were lost.
    #[error(
        "frame {frame} begins with '{found}' and not with FRAME: bytes are lost, or the stream's header tells another \
         size or depth; {}", kept(*frame)
    )]
    FrameHeader {
        /// Which frame.
        frame: u64,
        /// What lies there.
        found: String,
    },
    /// The system could not read on.
    #[error("{} cannot be read ({reason}); {}", place(*frame), kept(*frame))]
    Unreadable {
        /// Which frame; 0 is the stream's header.
        frame: u64,
        /// What the system said.
        reason: io::Error,
    },
    /// The system has no memory left: hold fewer frames at once.
    #[error("no memory for the {bytes} bytes of frame {frame}; {}", kept(*frame))]
    OutOfMemory {
        /// Which frame.
        frame: u64,
        /// What it needs.
        bytes: usize,
    },
}

/// Why a frame was not written. Frames are counted from 1.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// Y4M has no RGB: convert, or write another kind of stream.
    #[error("Y4M holds no frames of {0}; end the chain with yuv=709, or write images or raw frames")]
    NotYuv(Format),
    /// A depth that other programs would take for another one: convert.
    #[error("Y4M holds no frames of {format} that other programs read; end the chain with depth={next}")]
    Depth {
        /// What was to be written.
        format: Format,
        /// The next depth that they read.
        next: u8,
    },
    /// Chroma lies where the header for this sampling and depth cannot say: convert.
    #[error(
        "Y4M cannot say that the chroma of frames of {format} lies {siting}, and readers take it to lie {means}; end the \
         chain with yuv={means}"
    )]
    Siting {
        /// What was to be written.
        format: Format,
        /// Where chroma lies.
        siting: Siting,
        /// Where the header says that it lies.
        means: Siting,
    },
    /// A frame unlike the stream.
    #[error("frame {frame} is {got}, in a stream of {wanted}")]
    OtherFormat {
        /// Which frame.
        frame: u64,
        /// The stream's format.
        wanted: Format,
        /// The frame's.
        got: Format,
    },
    /// The system could not write: the disk is full, or the reader is gone.
    #[error("{} cannot be written ({reason})", place(*frame))]
    Unwritable {
        /// Which frame; 0 is the stream's header.
        frame: u64,
        /// What the system said.
        reason: io::Error,
    },
}

fn place(frame: u64) -> String {
    match frame {
        0 => "the stream's header".to_owned(),
        frame => format!("frame {frame}"),
    }
}

/// What is left, for the reader of a message.
fn kept(frame: u64) -> &'static str {
    match frame {
        0 | 1 => "there is no frame before it",
        2 => "the frame before it is whole",
        _ => "the frames before it are whole",
    }
}

/// Bytes from outside, safe to print: escaped, and not many.
pub(super) fn quoted(bytes: &[u8]) -> String {
    const SHOWN: usize = 32;
    let shown = bytes[..bytes.len().min(SHOWN)].escape_ascii().to_string();
    if bytes.len() > SHOWN { shown + "…" } else { shown }
}
