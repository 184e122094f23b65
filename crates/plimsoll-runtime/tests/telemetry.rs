//! Telemetry of a real orchestrator: what the listeners saw is what the callers got.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use plimsoll_core::event::FaultKind;
use plimsoll_core::scheduler::{Config, DeviceSpec, Host};
use plimsoll_core::{Bytes, DeviceKind, Fault, Footprint, Ladder, Moment, Place, Rung, Scheduler, TaskSpec};
use plimsoll_runtime::telemetry::{Counters, Progress, Snapshot, Summary, TraceWriter};
use plimsoll_runtime::{Backend, Context, Done, Orchestrator, Reference, RunError, Session, Shutdown, Task, Workload};
use serde_json::Value;

const TASKS: u64 = 100;
/// Every such task fails.
const BAD: u64 = 10;

/// Adds a number to the sum of a reference; some numbers it does not like.
struct AddToSum;

struct Adding;

impl Workload for AddToSum {
    type Input = u64;
    type Reference = Vec<u64>;
    type Prepared = u64;
    type Output = u64;

    fn name(&self) -> &str {
        "add to sum"
    }

    fn units(&self, input: &u64) -> u64 {
        input + 1
    }

    fn ladder(&self, _: &u64) -> Ladder {
        let footprint = Footprint { session: Bytes(64), task: Bytes(16), reference: Bytes(8) };
        Ladder::new([Rung::new("cpu", Place::On(DeviceKind::Cpu), footprint)])
    }

    fn open(&self, _: &Rung, _: &u64, _: &mut dyn Backend) -> Result<Box<dyn Session<Self>>, Fault> {
        Ok(Box::new(Adding))
    }
}

impl Session<AddToSum> for Adding {
    fn prepare(&mut self, reference: &Vec<u64>, _: &mut dyn Backend) -> Result<u64, Fault> {
        Ok(reference.iter().sum())
    }

    fn run(&mut self, input: &u64, context: &mut Context<'_, AddToSum>) -> Result<u64, Fault> {
        std::thread::sleep(Duration::from_micros(200));
        match input % BAD {
            3 => Err(Fault::work("three is a bad number")),
            7 => panic!("seven is worse"),
            _ => Ok(input + context.reference(0)?),
        }
    }
}

/// What the callers got, and what the listeners saw.
struct Seen {
    results: Vec<Result<Done<u64>, RunError>>,
    counters: Snapshot,
    progress: Progress,
    trace: Vec<Value>,
    summary: Summary,
}

fn run() -> Seen {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("trace.json");
    let (counters, progress) = (Counters::new(), Progress::new());
    progress.expect_total(TASKS);
    let (writer, trace) = TraceWriter::create(&path, ["the pool"]).expect("created");
    let orchestrator = Orchestrator::builder()
        .cpu(2)
        .listener(counters.listener())
        .listener(progress.listener())
        .listener(writer)
        .build();
    let add = orchestrator.register(AddToSum);
    let references = [vec![1_u64, 2], vec![30, 40]].map(Reference::new);
    let tasks = (0..TASKS).map(|n| Task::new(n).reference(&references[n as usize % 2]));
    let results = orchestrator.run_all(&add, tasks).ordered().collect();
    orchestrator.shutdown(Shutdown::Drain(Duration::from_secs(60)));
    let summary = trace.finish().expect("finished");
    let text = fs::read_to_string(&path).expect("read");
    let trace = serde_json::from_str(&text).expect("JSON");
    Seen { results, counters: counters.snapshot(), progress, trace, summary }
}

#[test]
fn what_listeners_saw_is_what_callers_got() {
    let seen = run();
    let done: Vec<&Done<u64>> = seen.results.iter().flatten().collect();
    let failed = seen.results.len() - done.len();
    assert_eq!((done.len(), failed), (80, 20));
    counters_match(&seen, &done);
    trace_matches(&seen, &done);
    let now = seen.progress.now();
    assert_eq!((now.done, now.failed, now.share(), now.eta), (80, 20, Some(1.0), Some(plimsoll_core::Nanos::ZERO)));
}

fn counters_match(seen: &Seen, done: &[&Done<u64>]) {
    let Snapshot { tasks, rungs, devices, left_out, .. } = &seen.counters;
    assert_eq!((tasks.submitted, tasks.done, tasks.failed, *left_out), (TASKS, 80, 20, 0));
    let [row] = &rungs[..] else { panic!("one device, one rung: {rungs:?}") };
    assert_eq!((row.rung, row.ran, row.started), ("cpu", 80, TASKS));
    let faults: BTreeMap<String, u64> =
        row.failed.iter().map(|failed| (format!("{:?}", failed.fault), failed.count)).collect();
    let [work, panic] = [FaultKind::WorkFailed, FaultKind::Panicked].map(|fault| format!("{fault:?}"));
    assert_eq!(faults, BTreeMap::from([(work, 10), (panic, 10)]));
    let reports = || done.iter().map(|done| &done.report);
    let numbered = seen.results.iter().zip(1..);
    let units: u64 = numbered.filter(|(result, _)| result.is_ok()).map(|(_, units)| units).sum();
    assert_eq!(row.units, units);
    assert_eq!(row.run, reports().map(|report| report.run).sum());
    assert_eq!(row.open, reports().map(|report| report.open).sum());
    assert_eq!(row.bring, reports().map(|report| report.bring).sum());
    assert_eq!(row.reference_hits + row.reference_misses, TASKS, "one reference a task");
    assert_eq!((row.run_time.count, row.queue_wait.count), (80, TASKS));
    assert!(row.run_time.p50 >= Some(plimsoll_core::Nanos::micros(200)), "{:?}", row.run_time);
    assert_eq!((devices.len(), devices[0].returned, devices[0].quarantined), (1, 1, 0));
}

fn trace_matches(seen: &Seen, done: &[&Done<u64>]) {
    let of = |cat: &str| seen.trace.iter().filter(|entry| entry["cat"] == cat).collect::<Vec<_>>();
    let mut drawn: Vec<&str> = of("run").iter().map(|run| run["args"]["task"].as_str().expect("its name")).collect();
    let mut finished: Vec<String> = done.iter().map(|done| done.id.to_string()).collect();
    drawn.sort_unstable();
    finished.sort_unstable();
    assert_eq!(drawn, finished, "one run for each task that finished");
    assert_eq!((of("failed").len(), of("cut").len(), seen.summary.runs), (20, 0, 80));
    let lanes = seen.trace.iter().filter(|entry| {
        entry["name"] == "thread_name" && entry["args"]["name"].as_str().is_some_and(|name| name.contains("slot"))
    });
    let lanes: Vec<&str> = lanes.map(|lane| lane["args"]["name"].as_str().expect("text")).collect();
    assert!((1..=2).contains(&lanes.len()), "no more lanes than slots: {lanes:?}");
    assert!(lanes.iter().all(|name| name.starts_with("0: the pool, slot ")), "{lanes:?}");
    let mut depths = seen.trace.iter().filter(|entry| entry["name"] == "queue depth, 0: the pool");
    assert_eq!(depths.next_back().expect("tasks were queued")["args"]["tasks"], 0, "the queue is empty at the end");
    let memory = seen.trace.iter().rfind(|entry| entry["name"] == "memory, 0: the pool").expect("told");
    assert!(memory["args"]["line"].as_u64() > Some(0), "{memory}");
}

struct Nothing;

impl Host for Nothing {
    type Job = ();
    type Session = ();
    type Prepared = ();
    type Value = ();
    type State = ();
}

/// Submits a task and starts it.
fn start_one(listen: bool) -> usize {
    let now = Moment::START;
    let mut scheduler: Scheduler<Nothing> = Scheduler::new(Config::default(), now);
    let device = scheduler.add_device(DeviceSpec::new(DeviceKind::Cpu, 1, Bytes::gib(1)));
    scheduler.listen(listen);
    scheduler.device_opened(now, device);
    let workload = scheduler.register("nothing");
    let rung = Rung::new("cpu", Place::Anywhere, Footprint::task(Bytes(1)));
    assert!(scheduler.submit(now, TaskSpec::new(workload, Ladder::new([rung]), 1), ()).is_ok());
    assert!(scheduler.take(now, device).is_some());
    scheduler.drain_events().len()
}

#[test]
fn without_listeners_no_event_is_made() {
    assert_eq!(start_one(false), 0);
    assert!(start_one(true) > 0);
}
