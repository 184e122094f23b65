//! Counts and histograms of what happened, by task, device and rung.
//! Never remembers a task: every event says all that is counted from it.
//! Invariant: at most [`ROWS_MAX`] rows; what finds no row is counted as left out.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::sync::Arc;

use plimsoll_core::event::{End, Event, FaultKind, GrantEdge, GrantEnd, What};
use plimsoll_core::histogram::Histogram;
use plimsoll_core::{DeviceId, DeviceSet, Ladder, Nanos};
use serde::Serialize;

use crate::shared::Listener;
use crate::sync::{Mutex, lock};

/// Rows of device × rung, about 5 KiB each: every device a scheduler can hold with the longest ladder. Workloads with
/// more names for rungs than that share what is left.
pub const ROWS_MAX: usize = DeviceSet::LIMIT * Ladder::LIMIT;

/// Counts what happens; a handle that is cheap to clone.
///
/// ```
/// # mod plimsoll { pub use plimsoll_core::*; pub use plimsoll_runtime::*; }
/// use plimsoll::{Orchestrator, Shutdown, Task, telemetry::Counters, workload};
/// let counters = Counters::new();
/// let orchestrator = Orchestrator::builder().cpu(2).listener(counters.listener()).build();
/// let square = orchestrator.register(workload::function("square", |n: &u64| Ok::<_, std::io::Error>(n * n)));
/// orchestrator.run(&square, Task::new(12))?;
/// orchestrator.shutdown(Shutdown::Cancel);
/// assert_eq!(counters.snapshot().tasks.done, 1);
/// # Ok::<(), plimsoll::RunError>(())
/// ```
#[derive(Clone, Default)]
pub struct Counters(Arc<Mutex<Totals>>);

impl fmt::Debug for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Counters").field("tasks", &self.snapshot().tasks).finish_non_exhaustive()
    }
}

impl Counters {
    /// All at zero.
    pub fn new() -> Self {
        Self::default()
    }

    /// The half that hears events, for `Builder::listener`. Several orchestrators may count into one handle, but their
    /// devices share ids.
    pub fn listener(&self) -> impl Listener + use<> {
        let totals = Arc::clone(&self.0);
        move |events: &[Event]| {
            let mut totals = lock(&totals);
            events.iter().for_each(|event| totals.count(event.what));
        }
    }

    /// The counts as they stand.
    pub fn snapshot(&self) -> Snapshot {
        lock(&self.0).snapshot()
    }
}

/// All counts at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Snapshot {
    /// Tasks, by how they ended.
    pub tasks: TaskCounts,
    /// How long tasks waited before they started.
    pub queue_wait: Spans,
    /// How long successful runs took, without opening and bringing.
    pub run_time: Spans,
    /// By device and rung, in that order.
    pub rungs: Vec<RungCounts>,
    /// By device.
    pub devices: Vec<DeviceCounts>,
    /// Grants, by what happened to them.
    pub grants: GrantCounts,
    /// Events that found no row because [`ROWS_MAX`] was reached.
    pub left_out: u64,
}

/// Tasks taken in, and how they ended.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TaskCounts {
    /// Taken in.
    pub submitted: u64,
    /// Ended with a result.
    pub done: u64,
    /// Ended without one.
    pub failed: u64,
    /// Stopped by the caller.
    pub cancelled: u64,
    /// Ended because their deadline passed.
    pub deadline_passed: u64,
}

/// Percentiles of a number of spans of time; each at most one part in sixteen too long.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Spans {
    /// How many there were.
    pub count: u64,
    /// Half were at most this.
    pub p50: Option<Nanos>,
    /// 95 % were at most this.
    pub p95: Option<Nanos>,
    /// 99 % were at most this.
    pub p99: Option<Nanos>,
}

/// What one rung did on one device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RungCounts {
    /// The device.
    pub device: DeviceId,
    /// The rung.
    pub rung: &'static str,
    /// Attempts started.
    pub started: u64,
    /// Of these, how many found a warm session.
    pub warm: u64,
    /// Attempts that gave a result.
    pub ran: u64,
    /// Attempts that failed, by kind; kinds that never happened are not listed.
    pub failed: Vec<FaultCount>,
    /// Units done.
    pub units: u64,
    /// Time spent preparing references for runs that gave a result.
    pub bring: Nanos,
    /// Time spent opening sessions for them.
    pub open: Nanos,
    /// Time spent running them.
    pub run: Nanos,
    /// References found prepared.
    pub reference_hits: u64,
    /// References that had to be prepared.
    pub reference_misses: u64,
    /// How long its tasks waited before they started.
    pub queue_wait: Spans,
    /// How long its successful runs took.
    pub run_time: Spans,
}

/// How often attempts failed in one way.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FaultCount {
    /// The way.
    pub fault: FaultKind,
    /// How often.
    pub count: u64,
}

/// What happened to one device.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeviceCounts {
    /// Which.
    pub device: DeviceId,
    /// Tasks it took over from another.
    pub moved_here: u64,
    /// How often something idle was evicted to free memory.
    pub evictions: u64,
    /// Sessions closed for that.
    pub sessions_closed: u64,
    /// References evicted for that.
    pub references_evicted: u64,
    /// How often it was put into quarantine.
    pub quarantined: u64,
    /// How often it proved itself, the first time included.
    pub returned: u64,
    /// Whether it was given up on.
    pub gone: bool,
}

impl DeviceCounts {
    fn new(device: DeviceId) -> Self {
        Self {
            device,
            moved_here: 0,
            evictions: 0,
            sessions_closed: 0,
            references_evicted: 0,
            quarantined: 0,
            returned: 0,
            gone: false,
        }
    }
}

/// What happened to grants.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct GrantCounts {
    /// Asked for.
    pub asked: u64,
    /// Given.
    pub given: u64,
    /// Not given: refused, or no longer wanted.
    pub not_given: u64,
    /// How often an owner was asked to step down.
    pub recalled: u64,
    /// How often one had not in time.
    pub overdue: u64,
    /// How often one that did not leave was to be stopped.
    pub stopped: u64,
    /// How often one went to another rung.
    pub stepped: u64,
    /// How often bytes that a program gave back were not seen to be free in time.
    pub unseen: u64,
    /// Held, and free again.
    pub returned: u64,
}

impl GrantCounts {
    fn count(&mut self, edge: GrantEdge) {
        let counter = match edge {
            GrantEdge::Asked { .. } => &mut self.asked,
            GrantEdge::Given { .. } => &mut self.given,
            GrantEdge::Recalled { .. } => &mut self.recalled,
            GrantEdge::Overdue => &mut self.overdue,
            GrantEdge::Stop { .. } => &mut self.stopped,
            GrantEdge::Stepped { .. } => &mut self.stepped,
            GrantEdge::Unseen { .. } => &mut self.unseen,
            GrantEdge::Ended(GrantEnd::Returned) => &mut self.returned,
            GrantEdge::Ended(GrantEnd::Refused | GrantEnd::Cancelled) => &mut self.not_given,
            GrantEdge::MayRise { .. } | GrantEdge::Left => return,
        };
        *counter += 1;
    }
}

#[derive(Default)]
struct Totals {
    tasks: TaskCounts,
    grants: GrantCounts,
    queue_wait: Histogram,
    run_time: Histogram,
    rows: BTreeMap<(DeviceId, &'static str), Row>,
    devices: BTreeMap<DeviceId, DeviceCounts>,
    left_out: u64,
}

#[derive(Default)]
struct Row {
    started: u64,
    warm: u64,
    ran: u64,
    /// As long as there are kinds at the most: nine.
    failed: Vec<FaultCount>,
    units: u64,
    bring: Nanos,
    open: Nanos,
    run: Nanos,
    hits: u64,
    misses: u64,
    queue_wait: Histogram,
    run_time: Histogram,
}

impl Totals {
    fn count(&mut self, what: What) {
        match what {
            What::Submitted { .. } => self.tasks.submitted += 1,
            What::Ended { end, .. } => self.tasks.ended(end),
            What::Started { rung, device, waited, warm, hits, misses, .. } => {
                self.queue_wait.record(waited);
                self.row(device, rung, |row| row.started(waited, warm, hits, misses));
            }
            What::PutBack { rung, device, hits, .. } => self.row(device, rung, |row| row.put_back(hits)),
            What::Ran { rung, device, units, bring, open, run, .. } => {
                self.run_time.record(run);
                self.row(device, rung, |row| row.ran(units, bring, open, run));
            }
            What::AttemptFailed { rung, device, fault, .. } => self.row(device, rung, |row| row.failed(fault)),
            What::Moved { to, .. } => self.device(to, |counts| counts.moved_here += 1),
            What::Evicted { device, sessions, references } => self.device(device, |counts| {
                counts.evictions += 1;
                counts.sessions_closed += u64::from(sessions);
                counts.references_evicted += u64::from(references);
            }),
            What::Quarantined { device, .. } => self.device(device, |counts| counts.quarantined += 1),
            What::Returned { device } => self.device(device, |counts| counts.returned += 1),
            What::Gone { device } => self.device(device, |counts| counts.gone = true),
            What::Grant { edge, .. } => self.grants.count(edge),
            What::Placed { .. } | What::LineMoved { .. } | What::WidthChanged { .. } => {}
        }
    }

    fn row(&mut self, device: DeviceId, rung: &'static str, count: impl FnOnce(&mut Row)) {
        let full = self.rows.len() >= ROWS_MAX;
        match self.rows.entry((device, rung)) {
            Entry::Occupied(row) => count(row.into_mut()),
            Entry::Vacant(row) if !full => count(row.insert(Row::default())),
            Entry::Vacant(_) => self.left_out += 1,
        }
    }

    fn device(&mut self, device: DeviceId, count: impl FnOnce(&mut DeviceCounts)) {
        if device.index() >= DeviceSet::LIMIT {
            self.left_out += 1;
            return;
        }
        count(self.devices.entry(device).or_insert_with(|| DeviceCounts::new(device)));
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot {
            tasks: self.tasks,
            queue_wait: spans(&self.queue_wait),
            run_time: spans(&self.run_time),
            rungs: self.rows.iter().map(|(&(device, rung), row)| row.snapshot(device, rung)).collect(),
            devices: self.devices.values().copied().collect(),
            grants: self.grants,
            left_out: self.left_out,
        }
    }
}

impl TaskCounts {
    fn ended(&mut self, end: End) {
        let count = match end {
            End::Done => &mut self.done,
            End::Failed => &mut self.failed,
            End::Cancelled => &mut self.cancelled,
            End::DeadlinePassed => &mut self.deadline_passed,
        };
        *count += 1;
    }
}

impl Row {
    fn started(&mut self, waited: Nanos, warm: bool, hits: u16, misses: u16) {
        self.started += 1;
        self.warm += u64::from(warm);
        self.hits += u64::from(hits);
        self.misses += u64::from(misses);
        self.queue_wait.record(waited);
    }

    /// It was not started after all. It stood behind another run, so its session was warm.
    fn put_back(&mut self, hits: u16) {
        self.started = self.started.saturating_sub(1);
        self.warm = self.warm.saturating_sub(1);
        self.hits = self.hits.saturating_sub(u64::from(hits));
    }

    fn ran(&mut self, units: u64, bring: Nanos, open: Nanos, run: Nanos) {
        self.ran += 1;
        self.units = self.units.saturating_add(units);
        self.bring += bring;
        self.open += open;
        self.run += run;
        self.run_time.record(run);
    }

    fn failed(&mut self, fault: FaultKind) {
        match self.failed.iter_mut().find(|known| known.fault == fault) {
            Some(known) => known.count += 1,
            None => self.failed.push(FaultCount { fault, count: 1 }),
        }
    }

    fn snapshot(&self, device: DeviceId, rung: &'static str) -> RungCounts {
        RungCounts {
            device,
            rung,
            started: self.started,
            warm: self.warm,
            ran: self.ran,
            failed: self.failed.clone(),
            units: self.units,
            bring: self.bring,
            open: self.open,
            run: self.run,
            reference_hits: self.hits,
            reference_misses: self.misses,
            queue_wait: spans(&self.queue_wait),
            run_time: spans(&self.run_time),
        }
    }
}

fn spans(histogram: &Histogram) -> Spans {
    Spans {
        count: histogram.total(),
        p50: histogram.percentile(0.50),
        p95: histogram.percentile(0.95),
        p99: histogram.percentile(0.99),
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_core::{Ailment, Bytes, MemoryMoment, Moment, TaskId, WorkloadId};

    use super::*;

    const CARD: DeviceId = DeviceId(1);
    const TASK: TaskId = TaskId(7);

    fn counted(facts: &[What]) -> Snapshot {
        let counters = Counters::new();
        let events: Vec<Event> = facts.iter().map(|&what| Event { at: Moment(5), what }).collect();
        counters.listener().hear(&events);
        counters.snapshot()
    }

    fn started(rung: &'static str, device: DeviceId, waited: Nanos) -> What {
        let (bytes, promised) = (Bytes(64), Bytes(128));
        What::Started { task: TASK, rung, device, waited, bytes, promised, warm: true, hits: 2, misses: 1 }
    }

    fn ran(rung: &'static str, device: DeviceId, run: Nanos) -> What {
        let (bring, open, peak) = (Nanos(3), Nanos(4), Bytes(60));
        What::Ran { task: TASK, workload: WorkloadId(0), rung, device, units: 10, bring, open, run, peak }
    }

    #[test]
    fn every_edge_of_a_grant_has_its_counter() {
        use plimsoll_core::{GrantId, GrantOwner};
        let (bytes, device) = (Bytes(5), CARD);
        let edges = [
            GrantEdge::Asked { owner: GrantOwner::Caller },
            GrantEdge::Given { rung: 0, bytes },
            GrantEdge::Recalled { to: None, until: Moment(9) },
            GrantEdge::Overdue,
            GrantEdge::Stop { until: Moment(9) },
            GrantEdge::Stepped { rung: 1 },
            GrantEdge::MayRise { rung: 0 },
            GrantEdge::Left,
            GrantEdge::Unseen { device, bytes },
            GrantEdge::Ended(GrantEnd::Returned),
            GrantEdge::Ended(GrantEnd::Refused),
            GrantEdge::Ended(GrantEnd::Cancelled),
        ];
        let counted = counted(&edges.map(|edge| What::Grant { grant: GrantId(3), edge })).grants;
        let (asked, given, recalled, overdue, stepped, unseen, returned) = (1, 1, 1, 1, 1, 1, 1);
        let expected =
            GrantCounts { asked, given, not_given: 2, recalled, overdue, stopped: 1, stepped, unseen, returned };
        assert_eq!(counted, expected);
    }

    #[test]
    fn a_task_that_steps_down_counts_on_both_rungs() {
        let out_of_memory = FaultKind::OutOfMemory(MemoryMoment::Run);
        let snapshot = counted(&[
            What::Submitted { task: TASK, workload: WorkloadId(0), units: 10 },
            started("full", CARD, Nanos::micros(1)),
            What::AttemptFailed { task: TASK, rung: "full", device: CARD, fault: out_of_memory },
            started("strip", CARD, Nanos::micros(9)),
            ran("strip", CARD, Nanos::millis(2)),
            What::Ended { task: TASK, end: End::Done },
        ]);
        assert_eq!(snapshot.tasks, TaskCounts { submitted: 1, done: 1, ..TaskCounts::default() });
        assert_eq!((snapshot.queue_wait.count, snapshot.run_time.count), (2, 1));
        let [full, strip] = &snapshot.rungs[..] else { panic!("{:?}", snapshot.rungs) };
        assert_eq!((full.rung, full.started, full.ran), ("full", 1, 0));
        assert_eq!(full.failed, [FaultCount { fault: out_of_memory, count: 1 }]);
        assert_eq!((strip.rung, strip.ran, strip.units, strip.warm), ("strip", 1, 10, 1));
        assert_eq!((strip.bring, strip.open, strip.run), (Nanos(3), Nanos(4), Nanos::millis(2)));
        assert_eq!((strip.reference_hits, strip.reference_misses), (2, 1));
        let p99 = strip.run_time.p99.expect("one was counted");
        assert!(p99 >= Nanos::millis(2) && p99 < Nanos::micros(2126), "{p99}");
    }

    #[test]
    fn every_way_to_end_has_its_count() {
        let end = |end| What::Ended { task: TASK, end };
        let ends = [End::Failed, End::Cancelled, End::Cancelled, End::DeadlinePassed];
        let tasks = counted(&ends.map(end)).tasks;
        assert_eq!((tasks.failed, tasks.cancelled, tasks.deadline_passed, tasks.done), (1, 2, 1, 0));
    }

    #[test]
    fn a_device_keeps_its_own_counts() {
        let facts = [
            What::Returned { device: CARD },
            What::Moved { task: TASK, from: DeviceId(0), to: CARD },
            What::Evicted { device: CARD, sessions: 1, references: 3 },
            What::Evicted { device: CARD, sessions: 2, references: 0 },
            What::Quarantined { device: CARD, ailment: Ailment::Lost },
            What::Gone { device: CARD },
        ];
        let expected = DeviceCounts {
            device: CARD,
            moved_here: 1,
            evictions: 2,
            sessions_closed: 3,
            references_evicted: 3,
            quarantined: 1,
            returned: 1,
            gone: true,
        };
        assert_eq!(counted(&facts).devices, [expected]);
    }

    #[test]
    fn what_finds_no_row_is_counted_as_left_out() {
        let too_many = ROWS_MAX as u16 + 5;
        let facts: Vec<What> = (0..too_many).map(|at| started("full", DeviceId(at), Nanos(1))).collect();
        let snapshot = counted(&facts);
        assert_eq!((snapshot.rungs.len(), snapshot.left_out), (ROWS_MAX, 5));
        assert_eq!(snapshot.queue_wait.count, u64::from(too_many), "the totals still count them");
    }

    #[test]
    fn a_snapshot_is_plain_json() {
        let text = serde_json::to_string(&counted(&[started("full", CARD, Nanos(16))])).expect("plain data");
        assert!(text.contains(r#""rung":"full","started":1,"warm":1,"ran":0,"failed":[],"units":0"#), "{text}");
        assert!(text.contains(r#""queue_wait":{"count":1,"p50":16,"#), "{text}");
    }
}
