//! Which entries of a trace an event makes.
//! Never fails: a file that cannot be written swallows entries until `finish` tells why.
//! Invariant: entries of one lane never overlap; every run that gave a result is drawn once.

use plimsoll_core::event::{End, Event, FaultKind, What};
use plimsoll_core::{Bytes, DeviceId, DeviceSet, Moment, Nanos, TaskId};

use super::file::ArrayFile;
use super::lanes::{Laid, Lanes};
use super::whereabouts::{Run, Started, Whereabouts};
use super::wire::{Args, Entry, Named, RunArgs, StartArgs};
use super::{Summary, TraceError};

/// Lanes for the runs of one device: more slots than any device here has.
const RUN_LANES_MAX: usize = 1024;
/// Lanes for waiting tasks of one device. Of a longer queue the viewer shows the depth, and each run its own wait.
const WAIT_LANES_MAX: usize = 64;
/// The number of the first track. To viewers 0 is the idle thread, and the process's own number its main thread.
const FIRST_TRACK: u32 = 100;
/// Tracks of one device: first the decisions, then the lanes of runs, then those of waits.
const TRACKS: u32 = 1 + (RUN_LANES_MAX + WAIT_LANES_MAX) as u32;

pub(super) struct Recorder {
    /// Gone once the trace has ended.
    file: Option<ArrayFile>,
    names: Vec<String>,
    devices: Vec<Tracks>,
    tasks: Whereabouts,
    latest: Moment,
    summary: Summary,
}

/// One device in the viewer.
struct Tracks {
    device: DeviceId,
    label: String,
    runs: Lanes,
    waits: Lanes,
    /// Tracks whose name was written.
    introduced: [usize; 2],
    depth_told: u64,
    promised: Bytes,
    line: Option<Bytes>,
    memory_changed: bool,
}

/// A kind of lane.
#[derive(Copy, Clone)]
enum Kind {
    Run,
    Wait,
}

impl Recorder {
    pub(super) fn new(mut file: ArrayFile, names: Vec<String>) -> Self {
        file.put(&Entry::process_name("plimsoll"));
        let tasks = Whereabouts::new();
        let mut recorder = Self {
            file: Some(file),
            names,
            devices: Vec::new(),
            tasks,
            latest: Moment::START,
            summary: Summary::default(),
        };
        recorder.introduce_devices(recorder.names.len().min(DeviceSet::LIMIT));
        recorder
    }

    pub(super) fn hear(&mut self, events: &[Event]) {
        if self.file.as_ref().is_none_or(ArrayFile::has_failed) {
            return;
        }
        for event in events {
            self.latest = self.latest.max(event.at);
            if self.knows_devices_of(&event.what) {
                self.draw(event.at, event.what);
            } else {
                self.summary.left_out += 1;
            }
        }
        self.tell_figures();
    }

    /// Ends the trace: what is still under way is cut off here.
    pub(super) fn finish(&mut self) -> Result<Summary, TraceError> {
        if self.file.is_some() {
            let under_way = self.tasks.running();
            under_way.into_iter().for_each(|(task, run)| self.cut(self.latest, task, run, None));
        }
        let Some(file) = self.file.take() else { return Ok(self.summary) };
        let written = file.finish()?;
        let left_out = self.summary.left_out + written.left_out;
        self.summary = Summary { entries: written.entries, bytes: written.bytes, left_out, ..self.summary };
        Ok(self.summary)
    }

    fn draw(&mut self, at: Moment, what: What) {
        match what {
            // What was put back is placed anew, which ends its run.
            // A grant is on several devices, or on none yet: it has no track of its own.
            What::Submitted { .. } | What::PutBack { .. } | What::Grant { .. } => {}
            What::Placed { task, rung, device, finish } => self.placed(at, task, rung, device, finish),
            What::Moved { task, from, to } => self.instant("moved", at, to, Args::Moved { task: Named(task), from }),
            What::Started { task, rung, device, waited, bytes, promised, warm, hits, misses } => {
                self.promised(device, promised);
                let run = Run { device, lane: None, at, rung, waited, bytes, warm, hits, misses };
                self.started(task, run);
            }
            What::Ran { task, rung, device, units, bring, open, run, peak, .. } => {
                let (start, times) = (self.tasks.attempt_over(task, at), Times { open, bring, run });
                self.ran(at, task, device, rung, times, RunEnd { units, peak, start });
            }
            What::AttemptFailed { task, rung, device, fault } => self.attempt_failed(at, task, rung, device, fault),
            What::Ended { task, end } => {
                if let Some(run) = self.tasks.ended(task) {
                    self.cut(at, task, run, Some(end));
                }
            }
            What::Evicted { device, sessions, references } => {
                self.instant("evicted", at, device, Args::Evicted { sessions, references });
            }
            What::Quarantined { device, ailment } => {
                self.tasks.queue_emptied(device, at);
                self.instant("quarantined", at, device, Args::Quarantined { ailment });
            }
            What::Returned { device } => self.instant("returned", at, device, Args::None {}),
            What::Gone { device } => self.instant("gone", at, device, Args::None {}),
            What::WidthChanged { device, slots } => self.instant("width", at, device, Args::Width { slots }),
            What::LineMoved { device, line, promised } => {
                self.devices[device.index()].line = Some(line);
                self.promised(device, promised);
                self.instant("line moved", at, device, Args::Memory { promised, line });
            }
        }
    }

    fn placed(&mut self, at: Moment, task: TaskId, rung: &'static str, device: DeviceId, finish: Moment) {
        if let Some(never_carried_out) = self.tasks.queued(task, device, at) {
            self.let_go(&never_carried_out);
        }
        let expected_us = finish.since(at).into();
        self.instant("placed", at, device, Args::Placed { task: Named(task), rung, expected_us });
    }

    fn started(&mut self, task: TaskId, mut run: Run) {
        self.wait(task, &run);
        run.lane = self.devices[run.device.index()].runs.hold(run.at);
        match self.tasks.started(task, run) {
            Started::Remembered { before: Some(never_carried_out) } => self.let_go(&never_carried_out),
            Started::Remembered { before: None } => {}
            Started::Forgotten => self.let_go(&run),
        }
    }

    fn wait(&mut self, task: TaskId, run: &Run) {
        if run.waited == Nanos::ZERO {
            return;
        }
        let tracks = &mut self.devices[run.device.index()];
        let begin = run.at - run.waited;
        match tracks.waits.lay(None, begin, run.at, run.at.since(begin)) {
            Some(laid) => self.span(Kind::Wait, run.device, laid, "wait", "wait", Args::Task { task: Named(task) }),
            None => self.summary.waits_left_out += 1,
        }
    }

    /// Draws a run in the order in which it went: the session opened, references brought, the work itself.
    fn ran(&mut self, at: Moment, task: TaskId, device: DeviceId, rung: &'static str, times: Times, end: RunEnd) {
        let RunEnd { units, peak, start } = end;
        let total = times.open + times.bring + times.run;
        let from = start.map_or(at - total, |start| start.at);
        let Some(laid) = self.lay(device, start, from, at, total) else { return };
        self.summary.runs += 1;
        let (open, rest) = laid.split(times.open);
        let (bring, run) = rest.split(times.bring);
        for (name, part) in [("open", open), ("bring", bring)] {
            if part.length > Nanos::ZERO {
                self.span(Kind::Run, device, part, name, name, Args::Task { task: Named(task) });
            }
        }
        let start = start.map(|start| start_args(&start));
        self.span(Kind::Run, device, run, "run", rung, Args::Run(RunArgs { task: Named(task), units, peak, start }));
    }

    fn attempt_failed(&mut self, at: Moment, task: TaskId, rung: &'static str, device: DeviceId, fault: FaultKind) {
        self.instant("attempt failed", at, device, Args::Failed { task: Named(task), rung, fault });
        let Some(run) = self.tasks.attempt_over(task, at) else { return };
        // How long it ran before it failed is not told: it had its lane all the while.
        let Some(laid) = self.lay(run.device, Some(run), run.at, at, Nanos::MAX) else { return };
        self.span(Kind::Run, run.device, laid, "failed", rung, Args::Failed { task: Named(task), rung, fault });
    }

    /// A task ended while it ran, or the trace did.
    fn cut(&mut self, at: Moment, task: TaskId, run: Run, end: Option<End>) {
        let Some(laid) = self.lay(run.device, Some(run), run.at, at, Nanos::MAX) else { return };
        self.span(Kind::Run, run.device, laid, "cut", run.rung, Args::Cut { task: Named(task), bytes: run.bytes, end });
    }

    fn lay(&mut self, device: DeviceId, run: Option<Run>, from: Moment, until: Moment, length: Nanos) -> Option<Laid> {
        run.iter().for_each(|run| self.let_go(run));
        let held = run.filter(|run| run.device == device).and_then(|run| run.lane);
        let lanes = &mut self.devices[device.index()].runs;
        // A span of no known length takes what is left of its time, behind those that were taken with it.
        let length = if length == Nanos::MAX { lanes.left(held, from, until) } else { length };
        let laid = lanes.lay(held, from, until, length);
        self.summary.left_out += u64::from(laid.is_none());
        laid
    }

    fn let_go(&mut self, run: &Run) {
        if let Some(lane) = run.lane {
            self.devices[run.device.index()].runs.let_go(lane);
        }
    }

    fn promised(&mut self, device: DeviceId, promised: Bytes) {
        let tracks = &mut self.devices[device.index()];
        tracks.promised = promised;
        tracks.memory_changed = true;
    }

    /// Queue depth and memory once for all that was heard together, not once an event.
    fn tell_figures(&mut self) {
        let Some(file) = &mut self.file else { return };
        for tracks in &mut self.devices {
            let depth = self.tasks.depth(tracks.device);
            if depth != std::mem::replace(&mut tracks.depth_told, depth) {
                let name = format!("queue depth, {}", tracks.label);
                file.put(&Entry::counter(&name, self.latest, Args::Depth { tasks: depth }));
            }
            if std::mem::take(&mut tracks.memory_changed) {
                let promised = tracks.promised;
                let args = tracks.line.map_or(Args::Promised { promised }, |line| Args::Memory { promised, line });
                file.put(&Entry::counter(&format!("memory, {}", tracks.label), self.latest, args));
            }
        }
    }

    fn instant(&mut self, name: &str, at: Moment, device: DeviceId, args: Args<'_>) {
        let track = decisions(device);
        self.put(&Entry::instant(name, track, at, args));
    }

    fn span(&mut self, kind: Kind, device: DeviceId, laid: Laid, cat: &'static str, name: &str, args: Args<'_>) {
        self.introduce_lanes(kind, device);
        self.put(&Entry::span(cat, name, track(kind, device, laid.lane), laid.begin, laid.length, args));
    }

    fn put(&mut self, entry: &Entry<'_>) {
        if let Some(file) = &mut self.file {
            file.put(entry);
        }
    }

    /// Makes sure that the devices an event names have tracks; `false` if it names one that no scheduler can hold.
    fn knows_devices_of(&mut self, what: &What) -> bool {
        let last = match *what {
            What::Submitted { .. } | What::Ended { .. } | What::Grant { .. } => return true,
            What::Moved { from, to, .. } => from.max(to),
            What::Placed { device, .. }
            | What::Started { device, .. }
            | What::Ran { device, .. }
            | What::AttemptFailed { device, .. }
            | What::PutBack { device, .. }
            | What::Evicted { device, .. }
            | What::Quarantined { device, .. }
            | What::Returned { device }
            | What::Gone { device }
            | What::WidthChanged { device, .. }
            | What::LineMoved { device, .. } => device,
        };
        if last.index() >= DeviceSet::LIMIT {
            return false;
        }
        self.introduce_devices(last.index() + 1);
        true
    }

    fn introduce_devices(&mut self, count: usize) {
        for at in self.devices.len()..count {
            let device = DeviceId(at as u16);
            let label = self.names.get(at).map_or_else(|| device.to_string(), |name| format!("{at}: {name}"));
            self.introduce_track(decisions(device), &format!("{label}, decisions"));
            self.devices.push(Tracks::new(device, label));
        }
    }

    /// Names the lanes that have none yet.
    fn introduce_lanes(&mut self, kind: Kind, device: DeviceId) {
        let tracks = &mut self.devices[device.index()];
        let lanes = match kind {
            Kind::Run => &tracks.runs,
            Kind::Wait => &tracks.waits,
        };
        let known = std::mem::replace(&mut tracks.introduced[kind as usize], lanes.len());
        let new = known..lanes.len();
        if new.is_empty() {
            return;
        }
        let label = tracks.label.clone();
        for lane in new {
            let name = match kind {
                Kind::Run => format!("{label}, slot {}", lane + 1),
                Kind::Wait => format!("{label}, waiting {}", lane + 1),
            };
            self.introduce_track(track(kind, device, lane), &name);
        }
    }

    fn introduce_track(&mut self, track: u32, name: &str) {
        self.put(&Entry::track_name(track, name));
        self.put(&Entry::track_order(track));
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        // Nobody asked for the outcome.
        let _ = self.finish();
    }
}

impl Tracks {
    fn new(device: DeviceId, label: String) -> Self {
        Self {
            device,
            label,
            runs: Lanes::new(RUN_LANES_MAX),
            waits: Lanes::new(WAIT_LANES_MAX),
            introduced: [0; 2],
            depth_told: 0,
            promised: Bytes::ZERO,
            line: None,
            memory_changed: false,
        }
    }
}

/// How long the parts of a run took.
struct Times {
    open: Nanos,
    bring: Nanos,
    run: Nanos,
}

/// What is known of a run at its end.
struct RunEnd {
    units: u64,
    peak: Bytes,
    start: Option<Run>,
}

fn start_args(start: &Run) -> StartArgs {
    let Run { waited, bytes, warm, hits, misses, .. } = *start;
    StartArgs { waited_us: waited.into(), bytes, warm, hits, misses }
}

fn decisions(device: DeviceId) -> u32 {
    FIRST_TRACK + u32::from(device.0) * TRACKS
}

fn track(kind: Kind, device: DeviceId, lane: usize) -> u32 {
    let first = match kind {
        Kind::Run => 1,
        Kind::Wait => 1 + RUN_LANES_MAX,
    };
    decisions(device) + (first + lane) as u32
}
