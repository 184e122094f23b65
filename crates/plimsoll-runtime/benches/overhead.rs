//! What the path of a task costs: nanoseconds per empty task, beside peers that choose, reserve and learn nothing.
//!
//! `cargo bench -p plimsoll-runtime --bench overhead`
//!
//! Plimsoll chooses among two rungs on two devices with cost models, reserves bytes, dispatches, settles and learns.
//! All run in this process, one after the other, several rounds interleaved; the best round of each counts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use plimsoll_core::scheduler::{Config, DeviceSpec, Host, Measured, Outcome, Settled};
use plimsoll_core::{
    Bytes, DeviceId, DeviceKind, Fault, Footprint, Ladder, Moment, Nanos, Place, Rung, Scheduler, TaskSpec,
};
use plimsoll_runtime::{Backend, Context, Orchestrator, Pipeline, Session, Task, Workload};

const TASKS: u64 = 200_000;
const TRIPS: u64 = 5_000;
const ROUNDS: usize = 7;

/// Does nothing, in two ways.
struct Empty {
    ladder: Ladder,
}

struct EmptySession;

impl Workload for Empty {
    type Input = u64;
    type Reference = ();
    type Prepared = ();
    type Output = u64;

    fn name(&self) -> &str {
        "empty"
    }

    fn ladder(&self, _: &u64) -> Ladder {
        self.ladder.clone()
    }

    fn open(&self, _: &Rung, _: &u64, _: &mut dyn Backend) -> Result<Box<dyn Session<Self>>, Fault> {
        Ok(Box::new(EmptySession))
    }
}

impl Session<Empty> for EmptySession {
    fn run(&mut self, input: &u64, _: &mut Context<'_, Empty>) -> Result<u64, Fault> {
        Ok(*input)
    }
}

fn empty() -> Empty {
    let small = Footprint::task(Bytes::kib(4));
    Empty {
        ladder: Ladder::from(vec![
            Rung::new("full", Place::Anywhere, Footprint::task(Bytes::kib(64))),
            Rung::new("strip", Place::Anywhere, small),
        ]),
    }
}

fn orchestrator() -> Orchestrator {
    Orchestrator::builder().cpu(1).cpu(1).build()
}

/// Every task through `run_all`.
fn plimsoll_run_all() -> Duration {
    let orchestrator = orchestrator();
    let workload = orchestrator.register(empty());
    orchestrator.run_all(&workload, (0..1000).map(Task::new)).for_each(drop);
    let began = Instant::now();
    let sum: u64 = orchestrator.run_all(&workload, (0..TASKS).map(Task::new)).map(|done| done.unwrap().output).sum();
    let took = began.elapsed();
    assert_eq!(sum, TASKS * (TASKS - 1) / 2);
    took
}

/// Every task handed in by itself.
fn plimsoll_submit() -> Duration {
    let orchestrator = orchestrator();
    let workload = orchestrator.register(empty());
    orchestrator.run_all(&workload, (0..1000).map(Task::new)).for_each(drop);
    let mut inbox = orchestrator.inbox(&workload);
    let began = Instant::now();
    let mut sum = 0;
    for n in 0..TASKS {
        inbox.submit(Task::new(n)).unwrap();
        while let Some(done) = inbox.poll_any() {
            sum += done.unwrap().output;
        }
    }
    while let Some(done) = inbox.poll_any_blocking(Duration::from_secs(10)) {
        sum += done.unwrap().output;
    }
    let took = began.elapsed();
    assert_eq!(sum, TASKS * (TASKS - 1) / 2);
    took
}

/// Items through a pipeline of one stage or three on one slot: what they differ by is two hand-offs, each with the work of
/// an empty task.
fn plimsoll_stages(stages: usize) -> Duration {
    let orchestrator = Orchestrator::builder().cpu(1).build();
    let workload = orchestrator.register(empty());
    let once = Pipeline::of(&workload).items_max(1024);
    orchestrator.run_pipeline(&once, (0..1000).map(Task::new)).for_each(drop);
    let thrice = Pipeline::of(&workload).then(&workload, Task::new).then(&workload, Task::new).items_max(1024);
    let pipeline = if stages == 1 { once } else { thrice };
    let began = Instant::now();
    let items = orchestrator.run_pipeline(&pipeline, (0..TASKS).map(Task::new));
    let sum: u64 = items.map(|done| done.unwrap().output).sum();
    let took = began.elapsed();
    assert_eq!(sum, TASKS * (TASKS - 1) / 2);
    took
}

/// How long the scheduler's lock is held for a task, in nanoseconds: submitted together, and one by one.
fn lock_held() -> [f64; 2] {
    let orchestrator = orchestrator();
    let workload = orchestrator.register(empty());
    let spent = || {
        let times = orchestrator.lock_times();
        times.taken as f64 * times.mean().unwrap_or_default().as_nanos() as f64
    };
    let begun = spent();
    orchestrator.run_all(&workload, (0..TASKS).map(Task::new)).for_each(drop);
    let together = spent();
    let mut inbox = orchestrator.inbox(&workload);
    for n in 0..TASKS {
        inbox.submit(Task::new(n)).unwrap();
        while inbox.poll_any().is_some() {}
    }
    while inbox.poll_any_blocking(Duration::from_secs(10)).is_some() {}
    [together - begun, spent() - together].map(|nanos| nanos / TASKS as f64)
}

/// The decisions alone, on one thread, without locks or queues between threads.
fn core_alone() -> Duration {
    struct Nothing;
    impl Host for Nothing {
        type Job = ();
        type Session = ();
        type Prepared = ();
        type Value = ();
        type State = ();
    }
    let mut scheduler = Scheduler::<Nothing>::new(Config::default(), Moment::START);
    for _ in 0..2 {
        let device = scheduler.add_device(DeviceSpec::new(DeviceKind::Cpu, 1, Bytes::gib(8)));
        scheduler.device_opened(Moment::START, device);
    }
    let (workload, ladder) = (scheduler.register("empty"), empty().ladder);
    let began = Instant::now();
    let mut done = 0;
    for n in 0..TASKS {
        let now = Moment(n * 100);
        scheduler.submit(now, TaskSpec::new(workload, ladder.clone(), 1), ()).unwrap();
        for device in [DeviceId(0), DeviceId(1)] {
            while let Some(assignment) = scheduler.take(now, device) {
                let measured = Measured { run: Nanos(100), ..Measured::default() };
                let outcome = Outcome { result: Ok(()), session: Some(()), measured };
                done += u64::from(matches!(scheduler.settle(now, assignment.run, outcome), Settled::Done(_)));
            }
        }
    }
    assert_eq!(done, TASKS);
    began.elapsed()
}

fn plimsoll_round_trip() -> Duration {
    let orchestrator = orchestrator();
    let workload = orchestrator.register(empty());
    orchestrator.run_all(&workload, (0..1000).map(Task::new)).for_each(drop);
    let began = Instant::now();
    for n in 0..TRIPS {
        assert_eq!(orchestrator.run(&workload, Task::new(n)).unwrap().output, n);
    }
    began.elapsed()
}

fn rayon_scope() -> Duration {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    let sum = AtomicU64::new(0);
    let began = Instant::now();
    pool.scope(|scope| {
        for n in 0..TASKS {
            let sum = &sum;
            scope.spawn(move |_| {
                sum.fetch_add(n, Ordering::Relaxed);
            });
        }
    });
    let took = began.elapsed();
    assert_eq!(sum.into_inner(), TASKS * (TASKS - 1) / 2);
    took
}

fn rayon_round_trip() -> Duration {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    let began = Instant::now();
    for n in 0..TRIPS {
        assert_eq!(pool.install(|| n), n);
    }
    began.elapsed()
}

/// Two workers on a bounded channel, results back through another.
fn crossbeam(tasks: u64, window: usize) -> Duration {
    let (to_workers, from_caller) = crossbeam_channel::bounded::<Box<dyn FnOnce() -> u64 + Send>>(1024);
    let (to_caller, from_workers) = crossbeam_channel::bounded::<u64>(1024);
    let workers: Vec<_> = (0..2)
        .map(|_| {
            let (inputs, outputs) = (from_caller.clone(), to_caller.clone());
            std::thread::spawn(move || inputs.iter().for_each(|work| outputs.send(work()).unwrap()))
        })
        .collect();
    let began = Instant::now();
    let (mut sent, mut got, mut sum) = (0, 0, 0);
    while got < tasks {
        while sent < tasks && ((sent - got) as usize) < window {
            let n = sent;
            to_workers.send(Box::new(move || n)).unwrap();
            sent += 1;
        }
        sum += from_workers.recv().unwrap();
        got += 1;
    }
    let took = began.elapsed();
    assert_eq!(sum, tasks * (tasks - 1) / 2);
    drop(to_workers);
    workers.into_iter().for_each(|worker| worker.join().unwrap());
    took
}

fn tokio_spawn() -> Duration {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let began = Instant::now();
    let sum: u64 = runtime.block_on(async {
        let mut sum = 0;
        let mut handles = std::collections::VecDeque::new();
        for n in 0..TASKS {
            handles.push_back(tokio::spawn(async move { n }));
            if handles.len() == 1024 {
                sum += handles.pop_front().unwrap().await.unwrap();
            }
        }
        for handle in handles {
            sum += handle.await.unwrap();
        }
        sum
    });
    let took = began.elapsed();
    assert_eq!(sum, TASKS * (TASKS - 1) / 2);
    took
}

fn tokio_round_trip() -> Duration {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let began = Instant::now();
    for n in 0..TRIPS {
        assert_eq!(runtime.block_on(async { tokio::spawn(async move { n }).await.unwrap() }), n);
    }
    began.elapsed()
}

type Measurement = (&'static str, u64, Box<dyn Fn() -> Duration>);

fn main() {
    let measurements: Vec<Measurement> = vec![
        ("plimsoll run_all", TASKS, Box::new(plimsoll_run_all)),
        ("plimsoll submit, one by one", TASKS, Box::new(plimsoll_submit)),
        ("plimsoll's decisions alone", TASKS, Box::new(core_alone)),
        ("rayon scope.spawn", TASKS, Box::new(rayon_scope)),
        ("crossbeam-channel, 2 workers", TASKS, Box::new(|| crossbeam(TASKS, 1024))),
        ("tokio spawn", TASKS, Box::new(tokio_spawn)),
        ("plimsoll round trip", TRIPS, Box::new(plimsoll_round_trip)),
        ("rayon round trip", TRIPS, Box::new(rayon_round_trip)),
        ("crossbeam-channel round trip", TRIPS, Box::new(|| crossbeam(TRIPS, 1))),
        ("tokio round trip", TRIPS, Box::new(tokio_round_trip)),
        ("plimsoll pipeline, 1 stage", TASKS, Box::new(|| plimsoll_stages(1))),
        ("plimsoll pipeline, 3 stages", TASKS, Box::new(|| plimsoll_stages(3))),
    ];
    // With a word, only what has it in its name: for a profiler.
    if let Some(word) = std::env::args().nth(1).filter(|word| !word.starts_with('-')) {
        for (name, count, run) in measurements.iter().filter(|(name, ..)| name.contains(&word)) {
            let each = (0..ROUNDS).map(|_| run().as_nanos() as f64 / *count as f64).fold(f64::INFINITY, f64::min);
            println!("{name:<32} {each:>12.0} ns");
        }
        return;
    }
    let mut best = vec![f64::INFINITY; measurements.len()];
    let mut all: Vec<Vec<f64>> = vec![Vec::new(); measurements.len()];
    for _ in 0..ROUNDS {
        for (at, (_, count, run)) in measurements.iter().enumerate() {
            let each = run().as_nanos() as f64 / *count as f64;
            best[at] = best[at].min(each);
            all[at].push(each);
        }
    }
    println!("{:<32} {:>12} {:>12} {:>10}", "empty task, 2 workers", "best ns", "median ns", "× plimsoll");
    for (at, (name, count, _)) in measurements.iter().enumerate() {
        all[at].sort_by(f64::total_cmp);
        let base = if *count == TASKS { best[0] } else { best[6] };
        println!("{name:<32} {:>12.0} {:>12.0} {:>10.2}", best[at], all[at][ROUNDS / 2], best[at] / base);
    }
    println!(
        "a stage handed on to the next on its slot: {:.0} ns, its empty task included",
        (best[11] - best[10]) / 2.0
    );
    let [together, one_by_one] = lock_held();
    println!("the scheduler's lock is held for {together:.0} ns a task with run_all, {one_by_one:.0} ns one by one");
    println!("idle: {:.4} CPU-seconds used in one second with nothing to do", idle());
}

/// Processor time of the whole process over one idle second.
fn idle() -> f64 {
    let orchestrator = Arc::new(orchestrator());
    let workload = orchestrator.register(empty());
    orchestrator.run_all(&workload, (0..1000).map(Task::new)).for_each(drop);
    std::thread::sleep(Duration::from_millis(600));
    let before = cpu_seconds();
    std::thread::sleep(Duration::from_secs(1));
    cpu_seconds() - before
}

fn cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
