//! Y4M: a line of text about the stream, then each frame after a line of its own. What ffmpeg calls `yuv4mpegpipe`.
//!
//! | file | what it owns |
//! |---|---|
//! | `header.rs` | what a stream's first line says |
//! | `colour_space.rs` | the names of colour spaces in it |
//! | `reader.rs`, `writer.rs` | frames out of a stream and into one |

mod colour_space;
mod header;
mod reader;
mod writer;

pub(super) use self::header::LINE_BYTES_MAX;
pub use self::header::{Guessed, Interlacing, NoRateError, Ratio, StreamHeader, likely_matrix};
pub use self::reader::Y4mReader;
pub use self::writer::Y4mWriter;
