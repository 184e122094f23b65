//! How many slots are used at once on real threads, and that the others hold nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use plimsoll_core::Bytes;
use plimsoll_runtime::{Device, Orchestrator, Task};
use plimsoll_testkit::virtual_device::VirtualDevice;

use crate::bounded::{bounded, eventually};
use crate::scripted::{Piece, Scripted, as_device, virtual_gpu};

/// A device whose reads last, beside each other: the more slots, the more it gets done.
fn paced(slots: usize) -> Arc<VirtualDevice> {
    virtual_gpu("paced", |gpu| gpu.slots(slots).width_first(2).pace(Duration::from_millis(2)))
}

/// The most tasks that were ever on the device at once.
fn run(orchestrator: &Orchestrator, tasks: u64) -> usize {
    let work = orchestrator.register(Scripted::default());
    let (inside, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let task = |n| {
        let (inside, most) = (Arc::clone(&inside), Arc::clone(&most));
        Task::new(Piece::new(n).units(1_000).on_run(move |_, context| {
            let now = inside.fetch_add(1, Ordering::SeqCst) + 1;
            most.fetch_max(now, Ordering::SeqCst);
            let buffer = context.backend.allocate(Bytes(4))?;
            let read = context.backend.read(&buffer, Bytes::ZERO, &mut [0; 4]);
            inside.fetch_sub(1, Ordering::SeqCst);
            read
        }))
    };
    let values = orchestrator.run_all(&work, (0..tasks).map(task)).ordered().map(|done| done.unwrap().output.value);
    assert!(values.eq(0..tasks), "each once, in order");
    most.load(Ordering::SeqCst)
}

#[test]
fn only_as_many_slots_as_are_wanted_are_opened() {
    bounded(|| {
        let gpu = paced(4);
        let orchestrator = Orchestrator::builder().device(as_device(&gpu)).build();
        let proven = gpu.calls().slots;
        // Too few to measure anything.
        assert!(run(&orchestrator, 12) <= 2);
        assert!(gpu.calls().slots - proven <= 2);
        assert_eq!((gpu.facts().slots, orchestrator.reports()[0].figures.slots_used), (4, 2));
    });
}

/// Whether a third slot helps is up to the clock; that it is tried, woken from its sleep and opened, is not.
#[test]
fn a_device_with_enough_to_do_is_tried_wider() {
    bounded(|| {
        let gpu = paced(4);
        let orchestrator = Orchestrator::builder().device(as_device(&gpu)).build();
        let proven = gpu.calls().slots;
        run(&orchestrator, 600);
        assert!(gpu.calls().slots - proven >= 3);
        assert!((1..=4).contains(&orchestrator.reports()[0].figures.slots_used));
    });
}

/// It is lost while it is tried how wide it should be, again and again: nothing is lost or done twice.
#[test]
fn a_device_that_comes_and_goes_is_measured_anew() {
    bounded(|| {
        let gpu = paced(4);
        let orchestrator = Orchestrator::builder().device(as_device(&gpu)).cpu(1).build();
        std::thread::scope(|scope| {
            let loser = scope.spawn(|| {
                for _ in 0..10 {
                    std::thread::sleep(Duration::from_millis(30));
                    gpu.lose();
                }
            });
            run(&orchestrator, 400);
            loser.join().unwrap();
        });
        eventually("it is back", || orchestrator.reports()[0].health.is_well());
        run(&orchestrator, 50);
    });
}
