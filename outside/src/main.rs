//! Uses everything of the crate that a program with work of its own needs, by the names that `plimsoll` gives it.
//! Never names another crate of ours: what cannot be written here cannot be written by anybody.

use std::error::Error;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context as Polling, Poll, Wake, Waker};
use std::time::Duration;

use plimsoll::device::{
    Charge, CpuDevice, DeviceReport, Fence, FenceState, Gauge, Health, MemoryReading, Nature, Readback, ResidencyCounts,
};
use plimsoll::profile::{Cell, CellKey, Freshness, Hardware, Profile};
use plimsoll::{
    Ailment, Attempt, Backend, Buffer, Bytes, Candidate, Context, Device, DeviceFacts, DeviceId, DeviceKind,
    DeviceStatus, End, Event, Fault, FaultKind, Footprint, GrantRequest, Ladder, Launch, Listener, Machine,
    MachineOptions, Moment, Orchestrator, Pipeline, Place, Priority, ProfileFile, ProfileFileError, Quality, Refusal,
    Report, Rung, Session, Shutdown, Task, TaskError, RunError, TaskResult, Ticket, WaitError, Workload, workload,
};

type Outcome = Result<(), Box<dyn Error>>;

/// Joins numbers with a prefix that is prepared once.
#[derive(Debug)]
struct Join;

struct JoinSession;

impl Workload for Join {
    type Input = u64;
    type Reference = Vec<u8>;
    type Prepared = String;
    type Output = String;

    fn name(&self) -> &str {
        "join"
    }

    fn ladder(&self, _: &u64) -> Ladder {
        Ladder::new([Rung::new("cpu", Place::On(DeviceKind::Cpu), Footprint::task(Bytes::kib(64)))])
    }

    fn open(&self, _: &Rung, _: &u64, _: &mut dyn Backend) -> Result<Box<dyn Session<Self>>, Fault> {
        Ok(Box::new(JoinSession))
    }
}

impl Session<Join> for JoinSession {
    fn prepare(&mut self, prefix: &Vec<u8>, _: &mut dyn Backend) -> Result<String, Fault> {
        String::from_utf8(prefix.clone()).map_err(Fault::work)
    }

    fn run(&mut self, number: &u64, context: &mut Context<'_, Join>) -> Result<String, Fault> {
        // A reference and the backend at the same time.
        let prefix = context.reference(0)?;
        let scratch: Buffer = context.backend.allocate(Bytes(4))?;
        context.backend.write(&scratch, Bytes::ZERO, &(*number as u32).to_ne_bytes())?;
        Ok(format!("{prefix}{number}"))
    }
}

/// A device of one's own: the CPU under another name.
struct Renamed {
    inner: CpuDevice,
    facts: DeviceFacts,
}

impl Device for Renamed {
    fn facts(&self) -> &DeviceFacts {
        &self.facts
    }

    fn memory(&self) -> MemoryReading {
        self.inner.memory()
    }

    fn open_backend(&self) -> Result<Box<dyn Backend>, Fault> {
        self.inner.open_backend()
    }

    fn fetch(&self, buffer: &Buffer, offset: Bytes, out: &mut [u8]) -> Result<(), Fault> {
        self.inner.fetch(buffer, offset, out)
    }

    fn reopen(&self) -> Result<(), Fault> {
        self.inner.reopen()
    }
}

fn own_device() -> Arc<dyn Device> {
    let inner = CpuDevice::builder().slots(1).build();
    let facts = DeviceFacts { name: "mine".to_owned(), ..inner.facts().clone() };
    Arc::new(Renamed { inner, facts })
}

fn references(orchestrator: &Orchestrator) -> Outcome {
    let join = orchestrator.register(Join);
    let prefix = orchestrator.pin_reference(&join, b"no. ".to_vec());
    let why: Vec<Candidate> = orchestrator.why(&join, Task::new(1).reference(&prefix));
    assert!(why.iter().any(|candidate| candidate.rung == "cpu"));
    let tasks = (0..100).map(|number| Task::new(number).reference(&prefix));
    for done in orchestrator.run_all(&join, tasks) {
        let done = done?;
        assert_eq!(done.output, format!("no. {}", done.index));
    }
    Ok(())
}

fn tickets(orchestrator: &Orchestrator) -> Outcome {
    let work = workload::function_with("half", |n: &u64, call| {
        call.progress(1, 2);
        call.check_cancelled()?;
        if n % 2 == 0 { Ok(n / 2) } else { Err(Fault::work("odd")) }
    });
    let half = orchestrator.register(work.units(|n| *n).bytes(|_| Bytes::kib(1)).or("again", |n, _| Ok::<_, Fault>(n / 2)));
    let mut ticket: Ticket<u64> = orchestrator.submit(&half, Task::new(8).priority(Priority::High))?;
    let done = match ticket.wait_timeout(Duration::from_secs(60)) {
        Ok(done) => done,
        Err(WaitError::TimedOut { .. }) => return Err("it hangs".into()),
        Err(other) => return Err(other.into()),
    };
    let report: &Report = &done.report;
    assert_eq!((done.output, report.rung), (4, "cpu"));
    let failure: RunError = orchestrator.run(&half, Task::new(7)).err().ok_or("seven is odd")?;
    assert!(matches!(failure.error, TaskError::WorkFailed(_)), "{failure}");
    let quick = Task::new(2).quality_min(Quality::FULL).deadline(Duration::from_secs(60));
    let result: TaskResult<u64> = block_on(async { orchestrator.submit_async(&half, quick).await?.cancel_on_drop().await });
    assert_eq!(result?.output, 1);
    Ok(())
}

fn pipelines(orchestrator: &Orchestrator) -> Outcome {
    let parse = orchestrator.register(workload::function("parse", |text: &String| text.parse::<u64>()));
    let double = orchestrator.register(workload::function("double", |n: &u64| Ok::<_, Fault>(n * 2)));
    let pipeline = Pipeline::of(&parse).then(&double, Task::new).items_max(4);
    let doubled = orchestrator.run_pipeline(&pipeline, (0..20).map(|n: u64| Task::new(n.to_string())));
    let sum = doubled.map(|done| done.map(|done| done.output)).sum::<Result<u64, _>>()?;
    assert_eq!(sum, 380);
    Ok(())
}

fn grants(orchestrator: &Orchestrator) -> Outcome {
    let request = GrantRequest::new(&[(DeviceId(0), Bytes::mib(1))]);
    let grant = orchestrator.grant(request)?.wait(Duration::from_secs(60)).map_err(|not| format!("{not:?}"))?;
    assert_eq!(grant.portions(), [(DeviceId(0), Bytes::mib(1))]);
    Ok(())
}

fn reports(orchestrator: &Orchestrator) {
    for status in orchestrator.reports() {
        let status: DeviceStatus = status;
        let (health, counts): (&Health, ResidencyCounts) = (&status.health, status.residency);
        println!("{}: {health:?}, {} hits", status.device, counts.hits);
    }
}

/// Types that stand in signatures and need not be made: it is enough that they have a name.
#[expect(clippy::type_complexity, reason = "a list of names")]
fn nameable(
    _: Option<(Attempt, Refusal, Ailment, End, FaultKind, Moment, Nature, DeviceReport, Gauge, Charge)>,
    _: Option<(Fence, FenceState, Readback, Launch<'_>, Cell, CellKey, Freshness, Hardware, Profile)>,
    _: Option<(ProfileFile, ProfileFileError)>,
) {
}

fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(std::thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Polling::from_waker(&waker)) {
            return output;
        }
        std::thread::park();
    }
}

fn main() -> Outcome {
    let machine = Machine::open(&MachineOptions::from_env()?);
    assert!(machine.problems.is_empty(), "{machine:?}");
    let events = |events: &[Event]| assert!(!events.is_empty());
    let listener: Box<dyn Listener> = Box::new(events);
    drop(listener);
    let devices = machine.devices.into_iter().chain([own_device()]);
    let orchestrator = Orchestrator::builder().devices(devices).listener(events).build();
    references(&orchestrator)?;
    tickets(&orchestrator)?;
    pipelines(&orchestrator)?;
    grants(&orchestrator)?;
    reports(&orchestrator);
    nameable(None, None, None);
    orchestrator.shutdown(Shutdown::Drain(Duration::from_secs(60)));
    println!("all of it works by the names that plimsoll gives");
    Ok(())
}
