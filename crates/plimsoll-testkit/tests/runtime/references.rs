//! References: prepared once a device, shared by content, kept by handle, evicted when room is needed.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use plimsoll_core::{Bytes, Footprint};
use plimsoll_runtime::{Orchestrator, Reference, Registered, Task};

use crate::bounded::{bounded, within};
use crate::scripted::{Piece, Scripted, anywhere, as_device, virtual_gpu};

type Prepares = Arc<AtomicU64>;

fn counting() -> (Scripted, Prepares) {
    let prepares = Prepares::default();
    let count = Arc::clone(&prepares);
    let work = Scripted::default().on_prepare(move |_, _| {
        count.fetch_add(1, Ordering::SeqCst);
        // Long enough for others to come by while it is being prepared.
        std::thread::sleep(std::time::Duration::from_millis(2));
        Ok(())
    });
    (work, prepares)
}

#[test]
fn prepared_once_per_device_whoever_names_it() {
    bounded(|| {
        let gpus = ["a", "b"].map(|name| virtual_gpu(name, |gpu| gpu.slots(3)));
        let orchestrator = Orchestrator::builder().devices(gpus.iter().map(as_device)).build();
        let (work, prepares) = counting();
        let work = orchestrator.register(work);
        let used = Mutex::new(BTreeMap::new());
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    // Each caller has its own copy: the content is the same.
                    let reference = Reference::new(vec![7_u8; 100]);
                    let tasks = (0..25).map(|n| Task::new(Piece::new(n)).reference(&reference));
                    for result in orchestrator.run_all(&work, tasks) {
                        let done = result.unwrap();
                        assert_eq!(done.output.references, [(700, 0)]);
                        assert_eq!(done.report.reference_hits + done.report.reference_misses, 1);
                        let mut used = used.lock().unwrap();
                        let (hits, misses) = used.entry(done.report.device).or_insert((0, 0));
                        *hits += u64::from(done.report.reference_hits);
                        *misses += u64::from(done.report.reference_misses);
                    }
                });
            }
        });
        let used = used.into_inner().unwrap();
        assert_eq!(prepares.load(Ordering::SeqCst), used.len() as u64, "once on each device that was used");
        assert_eq!(used.values().map(|(hits, misses)| hits + misses).sum::<u64>(), 100);
        for (device, (hits, misses)) in used {
            let counted = orchestrator.reports()[device.index()].residency;
            assert_eq!((counted.hits, counted.misses, misses), (hits, misses, 1), "{device}");
        }
    });
}

#[test]
fn a_handle_and_a_copy_are_the_same_content() {
    bounded(|| {
        let orchestrator = Orchestrator::builder().cpu(1).build();
        let (work, prepares) = counting();
        let work = orchestrator.register(work);
        let handle = orchestrator.pin_reference(&work, vec![1, 2, 3]);
        let copy = Reference::new(vec![1, 2, 3]);
        let other = Reference::new(vec![4]);
        let run = |task: Task<Scripted>| orchestrator.run(&work, task).unwrap().output.references;
        assert_eq!(run(Task::new(Piece::new(1)).reference(&handle)), [(6, 0)]);
        assert_eq!(run(Task::new(Piece::new(2)).reference(&copy)), [(6, 0)]);
        assert_eq!(run(Task::new(Piece::new(3)).reference(&other).reference(&copy)), [(4, 0), (6, 0)]);
        assert_eq!(prepares.load(Ordering::SeqCst), 2);
    });
}

/// A task may name the same content several times: it is there at each place, and prepared once.
#[test]
fn equal_references_are_there_at_each_place_and_prepared_once() {
    bounded(|| {
        let orchestrator = Orchestrator::builder().cpu(1).build();
        let (work, prepares) = counting();
        let work = orchestrator.register(work);
        let handle = orchestrator.pin_reference(&work, vec![1, 2, 3]);
        let (copy, other) = (Reference::new(vec![1, 2, 3]), Reference::new(vec![4]));
        let named = [&copy, &other, &handle, &other, &copy];
        let task = named.iter().fold(Task::new(Piece::new(1)), |task, reference| task.reference(reference));
        let done = orchestrator.run(&work, task).unwrap();
        assert_eq!(done.output.references, [(6, 0), (4, 0), (6, 0), (4, 0), (6, 0)]);
        assert_eq!((prepares.load(Ordering::SeqCst), done.report.reference_misses), (2, 2));
        let twice = Task::new(Piece::new(2)).reference(&other).reference(&other);
        assert_eq!(orchestrator.run(&work, twice).unwrap().output.references, [(4, 0), (4, 0)]);
        assert_eq!(prepares.load(Ordering::SeqCst), 2);
        // Refused and submitted again, it is still the same task.
        let (small, leave) = (Orchestrator::builder().cpu(1).queue_limit(1).build(), crate::bounded::Gate::default());
        let registered = small.register(counting().0);
        let entered = crate::bounded::Gate::default();
        let held = small.submit(&registered, Task::new(Piece::new(3).held(&entered, &leave))).unwrap();
        let twice = Task::new(Piece::new(4)).reference(&copy).reference(&other).reference(&copy);
        let refused = small.try_submit(&registered, twice).expect_err("the queue is full");
        leave.open();
        within(held, "the first").unwrap();
        assert_eq!(small.run(&registered, *refused.task).unwrap().output.references, [(6, 0), (4, 0), (6, 0)]);
    });
}

#[test]
fn other_parameters_share_neither_session_nor_reference() {
    bounded(|| {
        let orchestrator = Orchestrator::builder().cpu(2).build();
        let (work, prepares) = counting();
        let work = orchestrator.register(work);
        let reference = Reference::new(vec![5]);
        let tasks = (0..60).map(|n| Task::new(Piece::new(n).params(n % 3)).reference(&reference));
        for (n, result) in (0..).zip(orchestrator.run_all(&work, tasks).ordered()) {
            let output = result.unwrap().output;
            assert_eq!((output.params, output.references), (n % 3, vec![(5, n % 3)]));
        }
        assert_eq!(prepares.load(Ordering::SeqCst), 3);
    });
}

fn tight(orchestrator: &Orchestrator, work: &Registered<Scripted>, reference: &Reference<Scripted>) -> bool {
    let footprint = Footprint { session: Bytes::mib(1), task: Bytes::mib(1), reference: Bytes::mib(10) };
    let task = Task::new(Piece::new(1).ladder(anywhere(footprint))).reference(reference);
    let done = orchestrator.run(work, task).unwrap();
    let wanted: u64 = reference_sum(reference);
    assert_eq!(done.output.references, [(wanted, 0)]);
    done.report.reference_misses == 1
}

/// The references of these tests hold one byte, which their key tells.
fn reference_sum(reference: &Reference<Scripted>) -> u64 {
    (0..=255_u8).find(|byte| Reference::<Scripted>::new(vec![*byte]).key() == reference.key()).map(u64::from).unwrap()
}

#[test]
fn eviction_makes_room_and_results_stay_right() {
    bounded(|| {
        let orchestrator = Orchestrator::builder().cpu(1).memory_limit(Bytes::mib(35)).build();
        let (work, prepares) = counting();
        let work = orchestrator.register(work);
        let references: Vec<_> = (0..10).map(|n| Reference::new(vec![n])).collect();
        for _ in 0..3 {
            for reference in &references {
                tight(&orchestrator, &work, reference);
                let report = &orchestrator.reports()[0];
                assert!(report.promised <= report.line, "{} promised, the line is {}", report.promised, report.line);
            }
        }
        let report = &orchestrator.reports()[0];
        assert!(report.residency.evictions >= 7, "{:?}", report.residency);
        assert_eq!(report.residency.misses, prepares.load(Ordering::SeqCst));
        assert!(report.promised_peak <= Bytes::mib(35));
    });
}

#[test]
fn what_a_handle_holds_goes_last() {
    bounded(|| {
        let orchestrator = Orchestrator::builder().cpu(1).memory_limit(Bytes::mib(35)).build();
        let (work, _) = counting();
        let work = orchestrator.register(work);
        let handle = orchestrator.pin_reference(&work, vec![0]);
        assert!(tight(&orchestrator, &work, &handle));
        for n in 1..20 {
            tight(&orchestrator, &work, &Reference::new(vec![n]));
        }
        assert!(!tight(&orchestrator, &work, &handle), "it is still there");
        drop(handle);
        for n in 1..20 {
            tight(&orchestrator, &work, &Reference::new(vec![n]));
        }
        assert!(tight(&orchestrator, &work, &Reference::new(vec![0])), "nobody held it any more");
    });
}

/// A handle keeps its content before all others as long as it lives, whoever else had or has it.
#[test]
fn a_handle_holds_what_was_already_there_and_what_others_let_go() {
    bounded(|| {
        let orchestrator = Orchestrator::builder().cpu(1).memory_limit(Bytes::mib(35)).build();
        let (work, _) = counting();
        let work = orchestrator.register(work);
        assert!(tight(&orchestrator, &work, &Reference::new(vec![0])), "prepared without a handle");
        let handle = orchestrator.pin_reference(&work, vec![0]);
        for n in 1..20 {
            tight(&orchestrator, &work, &Reference::new(vec![n]));
        }
        assert!(!tight(&orchestrator, &work, &handle), "the handle came later, and holds it");
        drop(orchestrator.pin_reference(&work, vec![0]));
        for n in 1..20 {
            tight(&orchestrator, &work, &Reference::new(vec![n]));
        }
        assert!(!tight(&orchestrator, &work, &handle), "another handle of the same content went, this one lives");
    });
}

#[test]
fn many_references_at_once_under_a_small_limit() {
    bounded(|| {
        let orchestrator = Orchestrator::builder().cpu(3).memory_limit(Bytes::mib(40)).build();
        let (work, _) = counting();
        let work = orchestrator.register(work);
        let footprint = Footprint { session: Bytes::mib(1), task: Bytes::mib(1), reference: Bytes::mib(10) };
        let references: Vec<_> = (0..6).map(|n| Reference::new(vec![n])).collect();
        let tickets: Vec<_> = (0..120_u64)
            .map(|n| {
                let piece = Piece::new(n).ladder(anywhere(footprint));
                let task = Task::new(piece).reference(&references[(n * 7 % 6) as usize]);
                orchestrator.submit(&work, task).unwrap()
            })
            .collect();
        for (n, ticket) in (0..).zip(tickets) {
            assert_eq!(within(ticket, "a task with a reference").unwrap().output.references, [(n * 7 % 6, 0)]);
        }
        let report = &orchestrator.reports()[0];
        assert!(report.promised_peak <= Bytes::mib(40) && report.promised <= report.line);
    });
}
