//! Frames from streams and files, and back: Y4M, raw frames, image files.
//! Never starts a thread, never converts samples, never opens a stream by itself: callers bring a [`Read`](std::io::Read)
//! or [`Write`](std::io::Write). Invariant: a frame is given out only when it is whole, and all whole frames before an
//! error are given out before it.
//!
//! Readers and writers need no buffering around them: headers are read in small steps and frames in large ones, straight
//! into their memory. (Standard output is better opened as a [`File`](std::fs::File): `Stdout` searches for lines.)
//!
//! ```
//! use plimsoll_image::frames::stream::{Y4mReader, Y4mWriter};
//! let stream = b"YUV4MPEG2 W2 H2 F25:1 C444\nFRAME\nYYYYUUUUVVVVFRAME\nyyyyuuuuvvvv";
//! let reader = Y4mReader::open(&stream[..])?;
//! let mut writer = Y4mWriter::new(Vec::new(), *reader.header())?;
//! for frame in reader {
//!     writer.write(&frame?)?;
//! }
//! assert!(writer.finish()?.ends_with(b"FRAME\nyyyyuuuuvvvv"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;
#[cfg(all(feature = "decode", feature = "encode"))]
mod images;
mod pixel_format;
mod raw;
mod raw_format;
mod selection;
mod source;
mod y4m;

pub use self::error::{HeaderError, StreamError, WriteError};
#[cfg(all(feature = "decode", feature = "encode"))]
pub use self::images::{ReadImageError, is_transparent, read_image, write_image};
pub use self::pixel_format::{ParsePixelFormatError, pixel_format};
pub use self::raw::{RawReader, RawWriter};
pub use self::raw_format::RawFormat;
pub use self::selection::{SELECTIONS, Selection, SelectionError};
pub use self::y4m::{Guessed, Interlacing, NoRateError, Ratio, StreamHeader, Y4mReader, Y4mWriter, likely_matrix};
