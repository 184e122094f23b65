//! Why a frame gave no image file. Variants are named, and messages written, by what to do next.

use std::io;
use std::path::PathBuf;

use super::encoding::Encoding;
use crate::frames::MakeFrameError;

/// Why a frame gave no image file, and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// The name does not say which format: give it another ending.
    #[error("{}: the name does not tell a format; end it with {}", .0.display(), endings())]
    Ending(PathBuf),
    /// The frame is no image: end the chain with RGB.
    #[error(transparent)]
    Frame(#[from] MakeFrameError),
    /// The format is too small for the samples: convert them, or choose another.
    #[error("{0} files hold samples of 8 bits; end the chain with depth=8, or write PNG, PPM or TIFF")]
    EightBitsOnly(Encoding),
    /// The format is too small for the frame in another way: choose another.
    #[error("no {encoding} file can be made ({reason}); choose another format")]
    Encoder {
        /// How it was to be coded.
        encoding: Encoding,
        /// What the encoder said.
        reason: String,
    },
    /// The bytes could not be written.
    #[error("cannot be written ({0})")]
    Write(io::Error),
    /// The file could not be written: check the folder, its rights and its room.
    #[error("{}: cannot be written ({reason})", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        reason: io::Error,
    },
}

fn endings() -> String {
    let usual = Encoding::ALL.map(|encoding| format!(".{}", encoding.endings()[0]));
    let (last, others) = usual.split_last().expect("there are formats");
    format!("{} or {last}", others.join(", "))
}
