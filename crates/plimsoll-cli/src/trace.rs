//! `--trace FILE`: what happened when, written while it happens.

use std::path::Path;

use plimsoll::Builder;
use plimsoll::machine::DeviceName;
use plimsoll_runtime::telemetry::{TraceHandle, TraceWriter};

use crate::stop::{Ended, Stop};

/// A trace being written, or none.
#[derive(Default)]
#[must_use = "a trace is whole only after `finish`"]
pub(crate) struct Trace(Option<TraceHandle>);

/// Lets a trace hear what happens, if one is asked for.
pub(crate) fn start(builder: Builder, to: Option<&Path>, names: &[DeviceName]) -> Result<(Builder, Trace), Stop> {
    let Some(to) = to else { return Ok((builder, Trace(None))) };
    let (writer, handle) = TraceWriter::create(to, names.iter().map(ToString::to_string)).map_err(Stop::failed)?;
    Ok((builder.listener(writer), Trace(Some(handle))))
}

impl Trace {
    /// Writes the end of it.
    pub(crate) fn finish(self) -> Ended {
        self.0.map_or(Ok(()), |handle| handle.finish().map(drop).map_err(Stop::failed))
    }
}
