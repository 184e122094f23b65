//! An entry of a trace as JSON: the Trace Event Format that Perfetto and Chrome read.
//! Never holds more than one entry, and borrows what it can.

use plimsoll_core::event::{End, FaultKind};
use plimsoll_core::{Ailment, Bytes, DeviceId, Moment, Nanos, TaskId};
use serde::{Serialize, Serializer};

/// The whole of Plimsoll is one process in the viewer; its tracks are the devices' lanes.
const PROCESS: u32 = 1;

/// One entry.
#[derive(Serialize)]
pub(super) struct Entry<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cat: Option<&'static str>,
    ph: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    ts: Option<Micros>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dur: Option<Micros>,
    pid: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    tid: Option<u32>,
    /// How wide an instant is drawn; `t` is as wide as its track.
    #[serde(skip_serializing_if = "Option::is_none")]
    s: Option<&'static str>,
    args: Args<'a>,
}

/// What the viewer shows of an entry that is clicked.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Args<'a> {
    Name { name: &'a str },
    SortIndex { sort_index: u32 },
    Depth { tasks: u64 },
    Memory { promised: Bytes, line: Bytes },
    Promised { promised: Bytes },
    Task { task: Named },
    Run(RunArgs),
    Failed { task: Named, rung: &'a str, fault: FaultKind },
    Cut { task: Named, bytes: Bytes, end: Option<End> },
    Placed { task: Named, rung: &'a str, expected_us: Micros },
    Moved { task: Named, from: DeviceId },
    Evicted { sessions: u16, references: u16 },
    Quarantined { ailment: Ailment },
    Width { slots: u16 },
    None {},
}

/// What is known of a run that gave a result. Without its start, only what its end told.
#[derive(Serialize)]
pub(super) struct RunArgs {
    pub(super) task: Named,
    pub(super) units: u64,
    pub(super) peak: Bytes,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub(super) start: Option<StartArgs>,
}

/// What a run's start told of it.
#[derive(Serialize)]
pub(super) struct StartArgs {
    pub(super) waited_us: Micros,
    pub(super) bytes: Bytes,
    pub(super) warm: bool,
    pub(super) hits: u16,
    pub(super) misses: u16,
}

/// A task by the name that errors and logs use. As a number it would be too long for a viewer in a browser.
pub(super) struct Named(pub(super) TaskId);

impl Serialize for Named {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

/// Time as the format wants it: microseconds, with nanoseconds behind the point.
#[derive(Copy, Clone)]
pub(super) struct Micros(u64);

impl From<Moment> for Micros {
    fn from(at: Moment) -> Self {
        Self(at.0)
    }
}

impl From<Nanos> for Micros {
    fn from(span: Nanos) -> Self {
        Self(span.0)
    }
}

impl Serialize for Micros {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.0 as f64 / 1e3)
    }
}

impl<'a> Entry<'a> {
    fn new(name: &'a str, ph: &'static str, args: Args<'a>) -> Self {
        Self { name, cat: None, ph, ts: None, dur: None, pid: PROCESS, tid: None, s: None, args }
    }

    /// Something that took time.
    pub(super) fn span(
        cat: &'static str,
        name: &'a str,
        track: u32,
        begin: Moment,
        length: Nanos,
        args: Args<'a>,
    ) -> Self {
        let (ts, dur) = (Some(begin.into()), Some(length.into()));
        Self { cat: Some(cat), ts, dur, tid: Some(track), ..Self::new(name, "X", args) }
    }

    /// Something that happened in a moment.
    pub(super) fn instant(name: &'a str, track: u32, at: Moment, args: Args<'a>) -> Self {
        let (cat, s) = (Some("decision"), Some("t"));
        Self { cat, s, ts: Some(at.into()), tid: Some(track), ..Self::new(name, "i", args) }
    }

    /// A figure from this moment on.
    pub(super) fn counter(name: &'a str, at: Moment, args: Args<'a>) -> Self {
        Self { ts: Some(at.into()), ..Self::new(name, "C", args) }
    }

    /// What the process is called.
    pub(super) fn process_name(name: &'a str) -> Self {
        Self::new("process_name", "M", Args::Name { name })
    }

    /// What a track is called.
    pub(super) fn track_name(track: u32, name: &'a str) -> Self {
        Self { tid: Some(track), ..Self::new("thread_name", "M", Args::Name { name }) }
    }

    /// Tracks are shown in the order of their numbers.
    pub(super) fn track_order(track: u32) -> Self {
        Self { tid: Some(track), ..Self::new("thread_sort_index", "M", Args::SortIndex { sort_index: track }) }
    }
}
