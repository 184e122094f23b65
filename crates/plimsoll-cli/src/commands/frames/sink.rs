//! Where frames go, opened: a stream that is written in order, or image files that tasks write.
//! Invariant: a name holds all frames, or what it held before.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use plimsoll::frames::{Distributor, FrameDone, ImageFileError, ImageWriter};
use plimsoll::image::frames::stream::{RawFormat, RawWriter, StreamHeader, WriteError, Y4mWriter};

use super::args::Args;
use super::draft::{Draft, Ending};
use super::places::{ImageNames, OutputPlace, there_already};
use crate::stop::{Ended, Stop};

/// Where frames go.
pub(super) enum Sink<'a> {
    Stream { writer: Writer, ending: Ending },
    Images { writer: ImageWriter, names: &'a ImageNames, overwrite: bool },
}

/// Why a frame was not written.
pub(super) enum Unwritten {
    /// It does not belong there; those before it do.
    Frame(String),
    /// Nothing can be written there.
    Place(Stop),
}

/// A stream that is written.
pub(super) enum Writer {
    Y4m(Y4mWriter<File>),
    Raw(RawWriter<File>),
}

impl<'a> Sink<'a> {
    pub(super) fn open(
        distributor: &Distributor,
        place: &'a OutputPlace,
        header: StreamHeader,
        raw: RawFormat,
        args: &Args,
    ) -> Result<Self, Stop> {
        let overwrite = args.overwrite;
        match place {
            OutputPlace::Images(names) => {
                names.make_folders()?;
                let writer = distributor.image_writer().quality(args.quality.unwrap_or_default());
                Ok(Self::Images { writer, names, overwrite })
            }
            OutputPlace::Y4m(path) | OutputPlace::Raw(path) => {
                let (file, ending) = Draft::create(path.as_deref(), overwrite)?.split();
                let writer = match place {
                    OutputPlace::Raw(_) => Ok(Writer::Raw(RawWriter::new(file, raw))),
                    _ => Y4mWriter::new(file, header).map(Writer::Y4m),
                };
                match writer {
                    Ok(writer) => Ok(Self::Stream { writer, ending }),
                    Err(error) => {
                        ending.removed();
                        Err(unwritten(error))
                    }
                }
            }
        }
    }

    /// Writes the next frame. After an error nothing more can be written, but what is there may be [kept](Self::keep) if
    /// it is the frame that was wrong.
    pub(super) fn write(&mut self, done: FrameDone) -> Result<(), Unwritten> {
        let ended = match self {
            Self::Stream { writer: Writer::Y4m(writer), .. } => writer.write(&done.frame),
            Self::Stream { writer: Writer::Raw(writer), .. } => writer.write(&done.frame),
            Self::Images { writer, names, overwrite } => {
                let name = names.of(done.number);
                // Those of a stream whose length nobody knew were not looked for before.
                if !*overwrite && name.exists() {
                    return Err(Unwritten::Frame(there_already(&name)));
                }
                let written = writer.write(name, done.frame);
                return written.map_err(|error| Unwritten::Place(unsaved(error)));
            }
        };
        ended.map_err(|error| match error {
            WriteError::OtherFormat { wanted, .. } => Unwritten::Frame(format!(
                "{error}; bring all to one size and depth, as with scale={} in the chain",
                wanted.size()
            )),
            error => Unwritten::Place(unwritten(error)),
        })
    }

    /// All frames are written.
    pub(super) fn finish(self) -> Ended {
        match self {
            Self::Stream { writer, ending } => match writer.finish() {
                Ok(file) => ending.whole(file),
                Err(error) => {
                    ending.removed();
                    Err(unwritten(error))
                }
            },
            Self::Images { writer, .. } => writer.finish().map_err(unsaved),
        }
    }

    /// Not all frames came: what came is kept, and said.
    pub(super) fn keep(self, frames: u64) -> Result<Option<String>, Stop> {
        match self {
            Self::Stream { writer, ending } => {
                writer.finish().map_err(unwritten)?;
                Ok(ending.kept(frames))
            }
            Self::Images { writer, .. } => writer.finish().map(|()| None).map_err(unsaved),
        }
    }

    /// A frame could not be written.
    pub(super) fn abandon(self) {
        match self {
            Self::Stream { ending, .. } => ending.removed(),
            // Those that can still be written are whole files.
            Self::Images { writer, .. } => drop(writer.finish()),
        }
    }
}

impl Writer {
    fn finish(self) -> Result<File, WriteError> {
        match self {
            Self::Y4m(writer) => writer.finish(),
            Self::Raw(writer) => writer.finish(),
        }
    }
}

impl ImageNames {
    fn make_folders(&self) -> Ended {
        let make = |folder: &Path| {
            fs::create_dir_all(folder).map_err(|error| {
                Stop::failed(format_args!("the folder {} cannot be made ({error}); name another", folder.display()))
            })
        };
        match self {
            Self::Kept(names) => names.iter().filter_map(|name| name.parent()).try_for_each(make),
            Self::Numbered(numbered) => make(&numbered.folder()),
        }
    }
}

fn unwritten(error: WriteError) -> Stop {
    match error {
        WriteError::Unwritable { reason, .. } if reason.kind() == io::ErrorKind::BrokenPipe => Stop::ReaderLeft,
        WriteError::Unwritable { .. } => Stop::failed(format_args!("{error}; make room, or send the output elsewhere")),
        error => Stop::failed(error),
    }
}

fn unsaved(error: ImageFileError) -> Stop {
    Stop::failed(error)
}
