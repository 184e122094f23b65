//! Everything at once: every ticket resolves exactly once, and afterwards the books balance.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use plimsoll_core::rng::Rng;
use plimsoll_core::{Bytes, Fault, Footprint, Ladder, Place, Rung, TaskError};
use plimsoll_runtime::{Device, Orchestrator, Reference, Task, check};
use plimsoll_testkit::virtual_device::{ScriptedFault, VirtualDevice};

use crate::bounded::{bounded, eventually, within};
use crate::scripted::{Piece, Scripted, as_device, cpu, virtual_gpu};

const THREADS: u64 = 8;
const TASKS: u64 = 500;

fn ladder(bytes: Bytes) -> Ladder {
    let footprint = Footprint { session: Bytes::mib(4), task: bytes, reference: Bytes::mib(2) };
    Ladder::new([Rung::new("gpu", Place::On(plimsoll_core::DeviceKind::Gpu), footprint), cpu()])
}

#[derive(Copy, Clone, Debug, PartialEq)]
enum Fate {
    Right,
    Fails,
    Panics,
    Cancelled,
    Late,
    Forgotten,
}

fn fate(rng: &mut Rng) -> Fate {
    match rng.below(40) {
        0 | 1 => Fate::Fails,
        2 => Fate::Panics,
        3 | 4 => Fate::Cancelled,
        5 => Fate::Late,
        6 => Fate::Forgotten,
        _ => Fate::Right,
    }
}

fn piece(rng: &mut Rng, value: u64, fate: Fate) -> Piece {
    let bytes = Bytes::mib(1 + rng.below(40) as u64);
    let piece = Piece::new(value).ladder(ladder(bytes)).params(value % 3).shape(rng.below(4) as u64);
    let kernel = rng.below(4) == 0;
    piece.units(bytes.0).on_run(move |rung, context| {
        if rung == "gpu" {
            let _held = context.backend.allocate(bytes)?;
        }
        if kernel {
            check::known_answer(context.backend)?;
        }
        match fate {
            Fate::Fails => Err(Fault::work("it was to fail")),
            Fate::Panics => panic!("it was to panic"),
            _ => Ok(()),
        }
    })
}

/// Makes trouble until told to stop.
fn trouble(gpus: &[Arc<VirtualDevice>], stop: &AtomicBool) {
    let mut rng = Rng::new(99);
    while !stop.load(Ordering::SeqCst) {
        let gpu = &gpus[rng.below(gpus.len())];
        let calls = gpu.calls();
        match rng.below(6) {
            0 => gpu.lose(),
            1 => gpu.add_fault(ScriptedFault::WrongAnswer { read: calls.reads + 1 }),
            2 => gpu.add_fault(ScriptedFault::Lost { launch: calls.launches + 2 }),
            3 => gpu.occupy(Bytes::mib(rng.below(90) as u64)),
            _ => gpu.add_fault(ScriptedFault::OutOfMemory { allocation: calls.allocations + 3 }),
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    gpus.iter().for_each(|gpu| gpu.occupy(Bytes::ZERO));
}

#[test]
fn a_storm_of_tasks_and_faults() {
    bounded(|| {
        let gpus: Vec<_> =
            ["a", "b"].iter().map(|name| virtual_gpu(name, |gpu| gpu.memory(Bytes::mib(100)).slots(2))).collect();
        let orchestrator = Orchestrator::builder().devices(gpus.iter().map(as_device)).cpu(2).queue_limit(256).build();
        let work = orchestrator.register(Scripted::default());
        let references: Vec<_> = (1..6_u8).map(|n| Reference::new(vec![n])).collect();
        let (stop, resolved) = (AtomicBool::new(false), AtomicU64::new(0));
        std::thread::scope(|scope| {
            scope.spawn(|| trouble(&gpus, &stop));
            let submitters: Vec<_> = (0..THREADS)
                .map(|thread| {
                    let (orchestrator, work, references, resolved) = (&orchestrator, &work, &references, &resolved);
                    scope.spawn(move || {
                        let mut rng = Rng::new(thread);
                        let mut tickets = Vec::new();
                        for n in 0..TASKS {
                            let (value, fate) = (thread * 10_000 + n, fate(&mut rng));
                            let mut task = Task::new(piece(&mut rng, value, fate));
                            let with = rng.below(6);
                            if let Some(reference) = references.get(with) {
                                task = task.reference(reference);
                            }
                            if fate == Fate::Late {
                                task = task.deadline(Duration::from_micros(50));
                            }
                            let ticket = orchestrator.submit(work, task).expect("room comes");
                            match fate {
                                Fate::Forgotten => {
                                    drop(ticket);
                                    resolved.fetch_add(1, Ordering::SeqCst);
                                    continue;
                                }
                                Fate::Cancelled => {
                                    ticket.cancel();
                                }
                                _ => {}
                            }
                            tickets.push((value, fate, with, ticket));
                        }
                        for (value, fate, with, ticket) in tickets {
                            match (fate, within(ticket, "a task in the storm")) {
                                (Fate::Right | Fate::Late | Fate::Cancelled, Ok(done)) => {
                                    assert_eq!((done.output.value, done.output.params), (value, value % 3));
                                    let wanted: Vec<_> = references
                                        .get(with)
                                        .map(|_| (with as u64 + 1, value % 3))
                                        .into_iter()
                                        .collect();
                                    assert_eq!(done.output.references, wanted);
                                }
                                (Fate::Fails, Err(failed)) => {
                                    assert!(matches!(failed.error, TaskError::WorkFailed(_)), "{failed}");
                                }
                                (Fate::Panics, Err(failed)) => {
                                    assert!(matches!(failed.error, TaskError::Panicked { .. }), "{failed}");
                                }
                                (Fate::Cancelled, Err(failed)) => {
                                    assert!(matches!(failed.error, TaskError::Cancelled), "{failed}");
                                }
                                (Fate::Late, Err(failed)) => {
                                    assert!(matches!(failed.error, TaskError::DeadlinePassed { .. }), "{failed}");
                                }
                                (fate, Ok(_)) => panic!("{fate:?} succeeded"),
                                (fate, Err(failed)) => panic!("{fate:?} ended with {failed}"),
                            }
                            resolved.fetch_add(1, Ordering::SeqCst);
                        }
                    })
                })
                .collect();
            let outcomes: Vec<_> = submitters.into_iter().map(|submitter| submitter.join()).collect();
            stop.store(true, Ordering::SeqCst);
            for outcome in outcomes {
                outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            }
        });
        assert_eq!(resolved.load(Ordering::SeqCst), THREADS * TASKS);
        eventually("everything has ended", || orchestrator.unsettled() == 0);
        eventually("nothing runs any more", || orchestrator.reports().iter().all(|report| report.figures.depth == 0));
        eventually("the line is back where it was", || {
            drop(orchestrator.lease(&[]));
            orchestrator.reports().iter().all(|report| report.promised <= report.line)
        });
        // What is still promised is what lies idle: a lease of everything drives all of it out.
        let lines: Vec<_> = orchestrator.reports().iter().map(|report| (report.device, report.line)).collect();
        drop(orchestrator.lease(&lines[..2]).unwrap_or_else(|short| panic!("something is still held: {short}")));
        for (report, gpu) in orchestrator.reports().iter().zip(&gpus) {
            assert_eq!(report.promised, Bytes::ZERO, "{}", report.device);
            assert_eq!(gpu.memory().ours, Bytes::ZERO, "{}", report.device);
        }
    });
}

#[test]
fn many_short_tasks_from_many_threads_all_come_back() {
    bounded(|| {
        let orchestrator = Orchestrator::builder().cpu(3).build();
        let work = orchestrator.register(Scripted::default());
        std::thread::scope(|scope| {
            for thread in 0..8_u64 {
                let (orchestrator, work) = (&orchestrator, &work);
                scope.spawn(move || {
                    for round in 0..100 {
                        let tickets: Vec<_> = (0..20)
                            .map(|n| {
                                let value = thread * 1_000_000 + round * 100 + n;
                                (value, orchestrator.submit(work, Task::new(Piece::new(value))).unwrap())
                            })
                            .collect();
                        for (value, ticket) in tickets {
                            assert_eq!(within(ticket, "a short task").unwrap().output.value, value);
                        }
                    }
                });
            }
        });
        assert_eq!(orchestrator.unsettled(), 0);
    });
}
