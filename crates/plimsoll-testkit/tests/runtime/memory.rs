//! Memory runs out: the ladder holds on every path, the reasons are listed, and what failed is remembered.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use plimsoll_core::balancer::Strategy;
use plimsoll_core::{Bytes, Fault, Footprint, Ladder, MemoryMoment, Refusal, Setback, TaskError};
use plimsoll_runtime::{Done, Orchestrator, Pipeline, Reference, Registered, Task, check, workload};
use plimsoll_testkit::virtual_device::VirtualDevice;

use crate::bounded::{Gate, PATIENCE, bounded, within};
use crate::scripted::{
    ALL, Answer, FIRST, Piece, SECOND, Scripted, anywhere, as_device, gpu, gpu_then_cpu, virtual_gpu,
};

const TOO_MUCH: Bytes = Bytes::mib(200);

/// A GPU of 100 MiB and a CPU; the better rung is always taken first, and nothing is taken over.
fn small_gpu(work: Scripted) -> (Orchestrator, Registered<Scripted>, Arc<VirtualDevice>) {
    let gpu = virtual_gpu("small", |gpu| gpu.memory(Bytes::mib(100)));
    let orchestrator = Orchestrator::builder()
        .device(as_device(&gpu))
        .cpu(2)
        .strategy(Strategy::WeightedCapacity)
        .weight(0, ALL)
        .build();
    let work = orchestrator.register(work);
    (orchestrator, work, gpu)
}

#[derive(Copy, Clone, Debug, PartialEq)]
enum When {
    Open,
    Prepare,
    Run,
}

fn allocate_too_much(rung: &'static str, backend: &mut dyn plimsoll_runtime::Backend) -> Result<(), Fault> {
    if rung == "gpu" {
        backend.allocate(TOO_MUCH)?;
    }
    Ok(())
}

fn scripted(when: When) -> Scripted {
    match when {
        When::Prepare => Scripted::default().on_prepare(allocate_too_much),
        _ => Scripted::default(),
    }
}

/// A task that runs out on the GPU. Each has its own size, so that nothing remembered of one decides for another:
/// smaller and smaller.
fn task(when: When, value: u64, reference: &Reference<Scripted>) -> Task<Scripted> {
    let piece = Piece::new(value).units(1_000_000 - value).ladder(gpu_then_cpu(Bytes::mib(50) - Bytes(value)));
    match when {
        When::Open => Task::new(piece.on_open(allocate_too_much)),
        When::Prepare => Task::new(piece).reference(reference),
        When::Run => Task::new(piece.on_run(|rung, context| allocate_too_much(rung, context.backend))),
    }
}

#[track_caller]
fn stepped_down(done: &Done<Answer>, when: When, value: u64) {
    assert_eq!((done.output.value, done.report.rung, done.report.device), (value, "cpu", SECOND));
    let [attempt] = &done.report.attempts[..] else { panic!("{when:?}: {:?}", done.report.attempts) };
    assert_eq!((attempt.rung, attempt.device), ("gpu", FIRST));
    let moment = if when == When::Run { MemoryMoment::Run } else { MemoryMoment::Open };
    let Setback::Failed(Fault::OutOfMemory { moment: at, wanted }) = &attempt.setback else { panic!("{attempt}") };
    assert_eq!((*at, *wanted), (moment, TOO_MUCH));
}

/// What an item's first stage tried in vain is in what its last one reports.
#[test]
fn an_item_tells_the_attempts_at_all_its_stages() {
    bounded(|| {
        let (orchestrator, work, _gpu) = small_gpu(scripted(When::Run));
        let same = orchestrator.register(workload::function("same", |n: &u64| Ok::<_, std::io::Error>(*n)));
        let value = |answer: Answer| Task::new(answer.value);
        let pipeline = Pipeline::of(&work).then(&same, value).then(&same, Task::new);
        let reference = Reference::new(vec![1]);
        let done = orchestrator.run_pipeline(&pipeline, [task(When::Run, 7, &reference)]).next().unwrap().unwrap();
        let tried: Vec<_> = done.report.attempts.iter().map(|attempt| (attempt.rung, attempt.device)).collect();
        assert_eq!((done.output, tried), (7, vec![("gpu", FIRST)]));
    });
}

#[test]
fn the_ladder_holds_on_every_path() {
    for when in [When::Open, When::Prepare, When::Run] {
        bounded(move || {
            let (orchestrator, work, gpu) = small_gpu(scripted(when));
            let reference = Reference::new(vec![1]);
            let mut values = 0..;
            let mut next = || values.next().unwrap();
            let value = next();
            stepped_down(&orchestrator.run(&work, task(when, value, &reference)).unwrap(), when, value);
            let value = next();
            let ticket = orchestrator.submit(&work, task(when, value, &reference)).unwrap();
            stepped_down(&within(ticket, "a ticket").unwrap(), when, value);
            let mut inbox = orchestrator.inbox(&work);
            let value = next();
            inbox.submit(task(when, value, &reference)).unwrap();
            stepped_down(&inbox.poll_any_blocking(PATIENCE).unwrap().unwrap(), when, value);
            // One at a time, so that each is placed before the next, smaller one has failed.
            for _ in 0..5 {
                let value = next();
                let mut results = orchestrator.run_all(&work, [task(when, value, &reference)]);
                stepped_down(&results.next().unwrap().unwrap(), when, value);
                let value = next();
                let mut results = orchestrator.run_all(&work, [task(when, value, &reference)]).ordered();
                stepped_down(&results.next().unwrap().unwrap(), when, value);
            }
            // And all together: whatever was remembered meanwhile, every answer is right and none fails.
            let first = next();
            let tasks = (first..first + 50).map(|value| task(when, value, &reference));
            let sum: u64 = orchestrator.run_all(&work, tasks).map(|done| done.unwrap().output.value).sum();
            assert_eq!(sum, (first..first + 50).sum::<u64>());
            let report = &orchestrator.reports()[0];
            assert_eq!(report.promised, Bytes::ZERO, "{when:?}");
            assert_eq!(plimsoll_runtime::Device::memory(&*gpu).ours, Bytes::ZERO, "{when:?}");
        });
    }
}

#[test]
fn strict_has_no_ladder() {
    bounded(|| {
        let (orchestrator, work, _gpu) = small_gpu(Scripted::default());
        let strict = task(When::Run, 1, &Reference::new(vec![])).strict();
        let error = orchestrator.run(&work, strict).err().unwrap().error;
        let TaskError::Exhausted { attempts } = &error else { panic!("{error}") };
        assert_eq!((attempts[0].rung, attempts[0].device), ("gpu", FIRST));
        assert!(error.to_string().contains("out of memory while running: wanted 200"), "{error}");
    });
}

#[test]
fn what_failed_is_remembered_until_it_succeeds() {
    bounded(|| {
        let gpu = virtual_gpu("two", |gpu| gpu.memory(Bytes::mib(100)).slots(2));
        let builder =
            Orchestrator::builder().device(as_device(&gpu)).cpu(1).strategy(Strategy::WeightedCapacity).weight(0, ALL);
        let orchestrator = builder.memory_retry_first(std::time::Duration::from_secs(3_600)).build();
        let work = orchestrator.register(Scripted::default());
        let attempts_on_gpu = Arc::new(AtomicU64::new(0));
        let full = Arc::new(AtomicBool::new(true));
        let sized = |value: u64, units: u64| {
            let (tried, full) = (Arc::clone(&attempts_on_gpu), Arc::clone(&full));
            let piece = Piece::new(value).units(units).ladder(gpu_then_cpu(Bytes(units)));
            Task::new(piece.on_run(move |rung, context| {
                if rung == "gpu" {
                    tried.fetch_add(1, Ordering::SeqCst);
                    if full.load(Ordering::SeqCst) {
                        context.backend.allocate(TOO_MUCH)?;
                    }
                }
                Ok(())
            }))
        };
        // One of this size is already on the device and will succeed in the end.
        let (entered, leave) = (Gate::default(), Gate::default());
        let slow = Piece::new(9).units(1000).ladder(gpu_then_cpu(Bytes(1000))).held(&entered, &leave);
        let slow = orchestrator.submit(&work, Task::new(slow)).unwrap();
        entered.pass();
        assert_eq!(orchestrator.run(&work, sized(1, 1000)).unwrap().report.attempts.len(), 1);
        let second = orchestrator.run(&work, sized(2, 1000)).unwrap();
        assert_eq!((second.report.rung, second.report.attempts.len()), ("cpu", 0), "straight to the next rung");
        let larger = orchestrator.run(&work, sized(3, 2000)).unwrap();
        assert_eq!(larger.report.rung, "cpu", "what is larger would fail as well");
        assert_eq!(attempts_on_gpu.load(Ordering::SeqCst), 1);
        let why = orchestrator.why(&work, sized(4, 1000));
        assert!(why.iter().any(|each| matches!(each.refusal, Some(Refusal::FailedBefore { units: 1000 }))), "{why:?}");
        full.store(false, Ordering::SeqCst);
        let smaller = orchestrator.run(&work, sized(5, 500)).unwrap();
        assert_eq!(smaller.report.rung, "gpu", "what is smaller is still tried");
        assert_eq!(orchestrator.run(&work, sized(6, 1000)).unwrap().report.rung, "cpu");
        leave.open();
        assert_eq!(within(slow, "the slow one").unwrap().report.rung, "gpu");
        let cleared = orchestrator.run(&work, sized(7, 1000)).unwrap();
        assert_eq!(cleared.report.rung, "gpu", "a failure never hides a later success at its size");
    });
}

/// Any other fault is never stored as out-of-memory.
#[test]
fn a_failure_of_the_work_is_not_remembered_as_memory() {
    bounded(|| {
        let (orchestrator, work, gpu) = small_gpu(Scripted::default());
        let fails = Piece::new(1).ladder(gpu_then_cpu(Bytes(10))).on_run(|_, _| Err(Fault::work("odd")));
        assert!(orchestrator.run(&work, Task::new(fails)).is_err());
        gpu.lose();
        let moved = Piece::new(2).ladder(gpu_then_cpu(Bytes(10))).checked();
        assert_eq!(orchestrator.run(&work, Task::new(moved)).unwrap().report.rung, "cpu");
        crate::bounded::eventually("it is back", || orchestrator.reports()[0].health.is_well());
        let next = Piece::new(3).ladder(gpu_then_cpu(Bytes(10)));
        assert_eq!(orchestrator.run(&work, Task::new(next)).unwrap().report.rung, "gpu");
    });
}

#[test]
fn never_fits_says_what_and_what_to_do() {
    bounded(|| {
        let gpu = virtual_gpu("v", |gpu| gpu.memory(Bytes::gib(1)));
        let orchestrator = Orchestrator::builder().device(as_device(&gpu)).memory_limit(Bytes::mib(64)).build();
        let work = orchestrator.register(Scripted::default());
        let piece = || Piece::new(1).ladder(gpu_then_cpu(Bytes::mib(96)));
        let errors = [
            orchestrator.run(&work, Task::new(piece())).err().unwrap(),
            orchestrator.run_all(&work, [Task::new(piece())]).next().unwrap().err().unwrap(),
            within(orchestrator.submit(&work, Task::new(piece())).unwrap(), "a ticket").err().unwrap(),
        ];
        for failed in errors {
            let TaskError::NeverFits { needed, line, .. } = &failed.error else { panic!("{failed}") };
            assert_eq!((*needed, *line), (Bytes::mib(96), Bytes::mib(64)));
            let text = failed.to_string();
            for part in ["96", "64", "raise the memory limit", "gpu on device 0"] {
                assert!(text.contains(part), "{part:?} is not in: {text}");
            }
        }
        assert_eq!(orchestrator.unsettled(), 0);
    });
}

/// A footprint that is declared too small is corrected by what was measured: once, not once for every task that was
/// already under way.
#[test]
fn a_wrong_footprint_is_corrected_once() {
    bounded(|| {
        const SLOTS: usize = 6;
        let gpu = virtual_gpu("v", |gpu| gpu.memory(Bytes::mib(100)).slots(SLOTS));
        let orchestrator = Orchestrator::builder().device(as_device(&gpu)).margin(1.0).build();
        let work = orchestrator.register(Scripted::default());
        let together = crate::bounded::Meeting::of(SLOTS);
        let hungry = |value| {
            let together = together.clone();
            let piece = Piece::new(value).ladder(anywhere(Footprint::task(Bytes::mib(1))));
            Task::new(piece.on_run(move |_, context| {
                together.attend();
                context.backend.allocate(Bytes::mib(3)).map(drop)
            }))
        };
        for round in 0..3 {
            let results = orchestrator.run_all(&work, (0..50).map(hungry));
            for result in results {
                result.unwrap_or_else(|failed| panic!("round {round}: {failed}"));
            }
        }
        let why = orchestrator.why(&work, hungry(0));
        let predicted = why[0].estimate.expect("it fits").bytes;
        assert_eq!(predicted, Bytes::mib(3), "what it was seen to take");
        let (entered, leave) = (Gate::default(), Gate::default());
        let held = Piece::new(1).ladder(anywhere(Footprint::task(Bytes::mib(1)))).held(&entered, &leave);
        let held = orchestrator.submit(&work, Task::new(held)).unwrap();
        entered.pass();
        assert_eq!(orchestrator.reports()[0].promised, Bytes::mib(3), "and that is what is promised");
        leave.open();
        within(held, "the held task").unwrap();
    });
}

/// Two idle sessions of one kind: a task needs one of them and the room of the other.
#[test]
fn a_second_idle_session_of_the_same_kind_gives_way() {
    bounded(|| {
        let gpu = virtual_gpu("v", |gpu| gpu.memory(Bytes::mib(100)).slots(2));
        let orchestrator = Orchestrator::builder().device(as_device(&gpu)).margin(1.0).build();
        let work = orchestrator.register(Scripted::default());
        let ladder = |task| anywhere(Footprint { session: Bytes::mib(40), task, reference: Bytes::ZERO });
        let meeting = crate::bounded::Meeting::of(2);
        let pair = [1, 2].map(|value| {
            let meeting = meeting.clone();
            let piece = Piece::new(value).ladder(ladder(Bytes::mib(10))).on_run(move |_, _| {
                meeting.attend();
                Ok(())
            });
            orchestrator.submit(&work, Task::new(piece)).unwrap()
        });
        for ticket in pair {
            within(ticket, "one of two at once").unwrap();
        }
        assert_eq!(orchestrator.reports()[0].promised, Bytes::mib(80), "both sessions stay warm");
        let large = orchestrator.submit(&work, Task::new(Piece::new(3).ladder(ladder(Bytes::mib(50))))).unwrap();
        assert_eq!(within(large, "a task that needs the room of one of them").unwrap().output.value, 3);
    });
}

/// Other programs take memory: the line moves, and what no longer fits steps down.
#[test]
fn the_line_is_live() {
    bounded(|| {
        let (orchestrator, work, gpu) = small_gpu(Scripted::default());
        let piece = || Task::new(Piece::new(1).ladder(gpu_then_cpu(Bytes::mib(60))));
        assert_eq!(orchestrator.run(&work, piece()).unwrap().report.rung, "gpu");
        gpu.occupy(Bytes::mib(80));
        crate::bounded::eventually("the task steps down", || {
            orchestrator.run(&work, piece()).unwrap().report.rung == "cpu"
        });
        gpu.occupy(Bytes::ZERO);
        crate::bounded::eventually("the device is used again", || {
            orchestrator.run(&work, piece()).unwrap().report.rung == "gpu"
        });
    });
}

/// Another program takes most of a card and lets it go again, over and over. Some tasks are caught by it between the
/// promise and the allocation; every one of them ends with its answer, on the only device there is.
#[test]
fn a_hog_that_comes_and_goes_fails_nothing() {
    bounded(|| {
        let card = virtual_gpu("shared", |gpu| gpu.memory(Bytes::mib(100)).slots(2));
        let orchestrator = Orchestrator::builder().device(as_device(&card)).build();
        let work = orchestrator.register(Scripted::default());
        let stop = Arc::new(AtomicBool::new(false));
        let hog = {
            let (card, stop) = (Arc::clone(&card), Arc::clone(&stop));
            std::thread::spawn(move || {
                while !stop.load(Ordering::SeqCst) {
                    for taken in [Bytes::mib(80), Bytes::ZERO] {
                        card.occupy(taken);
                        std::thread::sleep(Duration::from_millis(300));
                    }
                }
            })
        };
        let tasks = (0..200).map(|n| {
            let ladder = Ladder::new([gpu(Bytes::mib(30 + n % 20))]);
            Task::new(Piece::new(n).units(30 + n % 20).ladder(ladder).on_run(|_, context| {
                std::thread::sleep(Duration::from_millis(5));
                check::known_answer(context.backend)
            }))
        });
        let values = orchestrator.run_all(&work, tasks).ordered().map(|done| done.unwrap().output.value);
        assert!(values.eq(0..200));
        stop.store(true, Ordering::SeqCst);
        hog.join().unwrap();
    });
}
