//! What deciding alone costs: nanoseconds a task without threads, locks or work.
//!
//! `cargo bench -p plimsoll-core --bench decide`; with `--tasks N` each way once over N tasks and nothing else, for
//! callgrind (`cargo xtask instructions`).
//!
//! Two devices, two rungs, cost models, bytes reserved, dispatched, settled, learnt. One by one: submitted, taken and settled
//! each by itself. In batches: as a slot takes tiny tasks, one behind the other on one session.

use std::time::{Duration, Instant};

use plimsoll_core::scheduler::{BatchOutcome, Config, DeviceSpec, Host, Measured, Outcome, RunId, Settled};
use plimsoll_core::{
    Bytes, DeviceId, DeviceKind, Footprint, Ladder, Moment, Nanos, Place, Rung, Scheduler, TaskSpec, WorkloadId,
};

const TASKS: u64 = 200_000;
const ROUNDS: usize = 7;
const BATCH: u64 = 256;
const DEVICES: [DeviceId; 2] = [DeviceId(0), DeviceId(1)];

struct Nothing;

impl Host for Nothing {
    type Job = ();
    type Session = ();
    type Prepared = ();
    type Value = ();
    type State = ();
}

struct Bench {
    scheduler: Scheduler<Nothing>,
    workload: WorkloadId,
    ladder: Ladder,
}

impl Bench {
    fn new() -> Self {
        let mut scheduler = Scheduler::new(Config::default(), Moment::START);
        for _ in DEVICES {
            let device = scheduler.add_device(DeviceSpec::new(DeviceKind::Cpu, 1, Bytes::gib(8)));
            scheduler.device_opened(Moment::START, device);
        }
        let ladder = Ladder::from(vec![
            Rung::new("full", Place::Anywhere, Footprint::task(Bytes::kib(64))),
            Rung::new("strip", Place::Anywhere, Footprint::task(Bytes::kib(4))),
        ]);
        Self { workload: scheduler.register("empty"), scheduler, ladder }
    }

    fn submit(&mut self, now: Moment) {
        let spec = TaskSpec::new(self.workload, self.ladder.clone(), 1);
        self.scheduler.submit(now, spec, ()).expect("there is queue space");
    }

    fn settle(&mut self, now: Moment, run: RunId) -> u64 {
        let measured = Measured { run: Nanos(100), ..Measured::default() };
        let settled = self.scheduler.settle(now, run, Outcome { result: Ok(()), session: Some(()), measured });
        u64::from(matches!(settled, Settled::Done(_)))
    }
}

fn one_by_one(tasks: u64) {
    let mut bench = Bench::new();
    let mut done = 0;
    for n in 0..tasks {
        let now = Moment(n * 100);
        bench.submit(now);
        for device in DEVICES {
            while let Some(assignment) = bench.scheduler.take(now, device) {
                done += bench.settle(now, assignment.run);
            }
        }
    }
    assert_eq!(done, tasks);
}

fn in_batches(tasks: u64) {
    let mut bench = Bench::new();
    let (mut submitted, mut done, mut round) = (0, 0, 0);
    while done < tasks {
        round += 1;
        let now = Moment(round * 25_600);
        while submitted < tasks && submitted < done + BATCH {
            bench.submit(now);
            submitted += 1;
        }
        for device in DEVICES {
            let Some(head) = bench.scheduler.take(now, device) else { continue };
            let mut batch = 1;
            while bench.scheduler.take_behind(now, head.run).is_some() {
                batch += 1;
            }
            let measured = Measured { run: Nanos(100 * batch as u64), ..Measured::default() };
            let outcome = BatchOutcome {
                done: batch,
                fault: None,
                session: Some(()),
                measured,
                value: None,
                moves: Default::default(),
                state: None,
            };
            bench.scheduler.settle_batch(now, head.run, outcome, |settled| {
                done += u64::from(matches!(settled, Settled::Done(_)));
            });
        }
    }
    assert_eq!(done, tasks);
}

/// Its name, and what it does with so many tasks.
type Way = (&'static str, fn(u64));

const WAYS: [Way; 2] = [("one by one", one_by_one), ("in batches", in_batches)];

fn main() {
    let mut arguments = std::env::args().skip_while(|argument| argument != "--tasks").skip(1);
    if let Some(tasks) = arguments.next() {
        let tasks = tasks.parse().expect("--tasks takes a number");
        let way = arguments.next().unwrap_or_default();
        return WAYS.iter().filter(|(name, _)| name.ends_with(&way)).for_each(|(_, run)| run(tasks));
    }
    println!("{:<12} {:>9} {:>11}", "deciding", "best ns", "median ns");
    for (name, run) in WAYS {
        let mut took: Vec<Duration> = (0..ROUNDS).map(|_| timed(|| run(TASKS))).collect();
        took.sort_unstable();
        let nanos = |took: Duration| took.as_nanos() as u64 / TASKS;
        println!("{name:<12} {:>9} {:>11}", nanos(took[0]), nanos(took[ROUNDS / 2]));
    }
}

fn timed(work: impl FnOnce()) -> Duration {
    let began = Instant::now();
    work();
    began.elapsed()
}
