//! Plain functions as workloads: what they say they need is promised, and they step down like any other.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use plimsoll_core::{Bytes, DeviceId, Quality, TaskError};
use plimsoll_runtime::{Orchestrator, Task, workload};
use plimsoll_testkit::virtual_device::VirtualDevice;

use crate::bounded::{Gate, bounded, eventually};

const CPU: DeviceId = DeviceId(0);

/// A CPU of two slots and 100 MiB.
fn small_machine() -> Orchestrator {
    let cpu = VirtualDevice::cpu("cpu").slots(2).memory(Bytes::mib(100)).build();
    Orchestrator::builder().device(Arc::new(cpu)).memory_wait_max(Duration::from_millis(50)).build()
}

#[test]
fn the_bytes_that_a_function_says_are_promised_while_it_runs() {
    bounded(|| {
        let orchestrator = Arc::new(small_machine());
        let (under_way, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (inner, seen) = (Arc::downgrade(&orchestrator), Arc::new(AtomicUsize::new(0)));
        let promised = Arc::clone(&seen);
        let (now, peak) = (Arc::clone(&under_way), Arc::clone(&most));
        let large = workload::function("large", move |_: &u64| {
            peak.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            let orchestrator = inner.upgrade().expect("it runs this");
            promised.store(orchestrator.reports()[CPU.index()].promised.0 as usize, Ordering::SeqCst);
            std::thread::sleep(Duration::from_millis(2));
            now.fetch_sub(1, Ordering::SeqCst);
            Ok::<_, std::io::Error>(())
        });
        let large = orchestrator.register(large.bytes(|_| Bytes::mib(60)));
        for done in orchestrator.run_all(&large, (0..20).map(Task::new)) {
            done.unwrap();
        }
        assert_eq!(most.load(Ordering::SeqCst), 1, "two of them are more than the line");
        assert_eq!(seen.load(Ordering::SeqCst) as u64, Bytes::mib(60).0);
    });
}

#[test]
fn a_function_steps_down_to_the_one_that_needs_less() {
    bounded(|| {
        let orchestrator = small_machine();
        let both = workload::function("sum", |n: &u64| Ok::<_, std::io::Error>(("whole", *n)))
            .bytes(|n| Bytes::mib(*n))
            .or("strip", |n: &u64, _| Ok::<_, std::io::Error>(("strip", *n)))
            .bytes(|_| Bytes::mib(1));
        let both = orchestrator.register(both);
        let run = |n| orchestrator.run(&both, Task::new(n)).unwrap();
        let (small, large) = (run(10), run(500));
        assert_eq!((small.output, small.report.rung), (("whole", 10), "cpu"));
        assert_eq!((large.output, large.report.rung), (("strip", 500), "strip"));
    });
}

#[test]
fn a_function_of_lower_quality_is_taken_only_by_whom_it_suits() {
    bounded(|| {
        let orchestrator = small_machine();
        let exact = workload::function("answer", |_: &u64| Ok::<_, std::io::Error>(42)).bytes(|_| Bytes::mib(500));
        let rough = exact.or("rough", |_, _| Ok::<_, std::io::Error>(40)).quality(Quality::new(0.5));
        let work = orchestrator.register(rough);
        let strict = orchestrator.run(&work, Task::new(1)).expect_err("nothing of full quality fits");
        assert!(matches!(strict.error, TaskError::NeverFits { .. } | TaskError::Exhausted { .. }), "{strict}");
        let task = Task::new(1).quality_min(Quality::new(0.5));
        assert_eq!(orchestrator.run(&work, task).unwrap().output, 40);
    });
}

#[test]
fn a_function_hears_of_a_cancel_and_says_how_far_it_is() {
    bounded(|| {
        let orchestrator = small_machine();
        let (half, go_on) = (Gate::default(), Gate::default());
        let (tell, wait) = (half.clone(), go_on.clone());
        let heard = Arc::new(AtomicUsize::new(0));
        let hears = Arc::clone(&heard);
        let slow = workload::function_with("slow", move |_: &u64, call| {
            call.progress(1, 2);
            tell.open();
            wait.pass();
            let still_wanted = call.check_cancelled();
            hears.fetch_add(usize::from(still_wanted.is_err()), Ordering::SeqCst);
            still_wanted
        });
        let slow = orchestrator.register(slow);
        let ticket = orchestrator.submit(&slow, Task::new(1)).unwrap();
        half.pass();
        assert_eq!(ticket.progress(), 0.5);
        assert!(ticket.cancel());
        go_on.open();
        assert!(matches!(ticket.wait().err().unwrap().error, TaskError::Cancelled));
        eventually("the function has heard of it", || heard.load(Ordering::SeqCst) == 1);
    });
}
