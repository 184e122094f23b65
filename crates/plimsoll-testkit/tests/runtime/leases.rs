//! Leases held outside: tasks are kept out of them, and never wait for them for ever.

use std::time::Duration;

use plimsoll_core::{Bytes, Footprint, GrantOwner, Setback, ShortfallError, TaskError};
use plimsoll_runtime::{Orchestrator, Registered, Task};

use crate::bounded::{Gate, bounded, eventually, within};
use crate::scripted::{FIRST, Piece, SECOND, Scripted, anywhere, as_device, gpu_then_cpu, virtual_gpu};

fn two_gpus(wait: Duration) -> (Orchestrator, Registered<Scripted>) {
    let gpus = ["a", "b"].map(|name| virtual_gpu(name, |gpu| gpu.memory(Bytes::mib(100))));
    let builder = Orchestrator::builder().devices(gpus.iter().map(as_device)).margin(1.0).memory_wait_max(wait);
    let orchestrator = builder.build();
    let work = orchestrator.register(Scripted::default());
    (orchestrator, work)
}

const LONG: Duration = Duration::from_secs(600);

fn promised(orchestrator: &Orchestrator) -> Vec<Bytes> {
    orchestrator.reports().iter().map(|report| report.promised).collect()
}

#[test]
fn all_or_nothing_over_two_devices() {
    bounded(|| {
        let (orchestrator, _work) = two_gpus(LONG);
        let (a, b) = (FIRST, SECOND);
        let pair = orchestrator.lease(&[(a, Bytes::mib(60)), (b, Bytes::mib(10))]).unwrap();
        assert_eq!(promised(&orchestrator), [Bytes::mib(60), Bytes::mib(10)]);
        assert_eq!(pair.portions(), [(a, Bytes::mib(60)), (b, Bytes::mib(10))]);
        let refused = orchestrator.lease(&[(b, Bytes::mib(10)), (a, Bytes::mib(60))]).err().unwrap();
        let (wanted, free, granted) = (Bytes::mib(60), Bytes::mib(40), Bytes::mib(60));
        assert_eq!(refused, ShortfallError::Granted { device: a, wanted, free, owner: GrantOwner::Caller, granted });
        let refused = orchestrator.lease(&[(b, Bytes::mib(10)), (a, Bytes::mib(101))]).err().unwrap();
        assert_eq!(refused, ShortfallError::NeverFits { device: a, wanted: Bytes::mib(101), line: Bytes::mib(100) });
        let twice = orchestrator.lease(&[(a, Bytes::mib(30)), (a, Bytes::mib(30))]).err().unwrap();
        assert!(matches!(twice, ShortfallError::Granted { wanted, .. } if wanted == Bytes::mib(60)), "{twice}");
        assert_eq!(promised(&orchestrator), [Bytes::mib(60), Bytes::mib(10)], "a refusal takes nothing");
        drop(pair);
        assert_eq!(promised(&orchestrator), [Bytes::ZERO, Bytes::ZERO]);
    });
}

#[test]
fn tasks_wait_for_it_and_go_on_when_it_is_dropped() {
    bounded(|| {
        let (orchestrator, work) = two_gpus(LONG);
        let lease = orchestrator.lease(&[(FIRST, Bytes::mib(80)), (SECOND, Bytes::mib(80))]).unwrap();
        let big = anywhere(Footprint::task(Bytes::mib(50)));
        let waiting: Vec<_> =
            (0..6).map(|n| orchestrator.submit(&work, Task::new(Piece::new(n).ladder(big.clone()))).unwrap()).collect();
        let small = Piece::new(9).ladder(anywhere(Footprint::task(Bytes::mib(10))));
        let small = orchestrator.submit(&work, Task::new(small)).unwrap();
        assert_eq!(within(small, "what fits beside the lease").unwrap().output.value, 9);
        assert_eq!(orchestrator.unsettled(), 6, "what does not fit waits");
        drop(lease);
        for (n, ticket) in (0..).zip(waiting) {
            assert_eq!(within(ticket, "a task that waited for the lease").unwrap().output.value, n);
        }
        eventually("all is returned", || promised(&orchestrator) == [Bytes::ZERO, Bytes::ZERO]);
    });
}

#[test]
fn a_lease_that_is_never_dropped_is_not_waited_for_for_ever() {
    bounded(|| {
        let gpu = virtual_gpu("a", |gpu| gpu.memory(Bytes::mib(100)));
        let orchestrator = Orchestrator::builder()
            .device(as_device(&gpu))
            .cpu(1)
            .margin(1.0)
            .strategy(plimsoll_core::balancer::Strategy::RoundRobin)
            .memory_wait_max(Duration::from_millis(50))
            .build();
        let work = orchestrator.register(Scripted::default());
        let _lease = orchestrator.lease(&[(FIRST, Bytes::mib(80))]).unwrap();
        let steps_down = Task::new(Piece::new(1).ladder(gpu_then_cpu(Bytes::mib(50))));
        let steps_down = orchestrator.submit(&work, steps_down).unwrap();
        let strict = Task::new(Piece::new(2).ladder(gpu_then_cpu(Bytes::mib(50)))).strict();
        let strict = orchestrator.submit(&work, strict).unwrap();
        let done = within(steps_down, "a task with another rung").unwrap();
        assert_eq!((done.output.value, done.report.rung), (1, "cpu"));
        let error = within(strict, "a task without another rung").err().unwrap().error;
        let TaskError::Exhausted { attempts } = &error else { panic!("{error}") };
        assert!(matches!(attempts[0].setback, Setback::Refused(_)), "{error}");
        assert!(error.to_string().contains("a caller holds 80.0 MiB by a grant"), "{error}");
    });
}

/// Small tasks that keep a device busy do not keep a large one waiting for a lease for ever.
#[test]
fn a_busy_device_does_not_hide_a_wait_that_is_hopeless() {
    bounded(|| {
        let gpu = virtual_gpu("a", |gpu| gpu.memory(Bytes::mib(100)));
        let orchestrator = Orchestrator::builder()
            .device(as_device(&gpu))
            .margin(1.0)
            .memory_wait_max(Duration::from_millis(50))
            .build();
        let work = orchestrator.register(Scripted::default());
        let _lease = orchestrator.lease(&[(FIRST, Bytes::mib(80))]).unwrap();
        let large = Piece::new(1).ladder(anywhere(Footprint::task(Bytes::mib(50))));
        let mut large = orchestrator.submit(&work, Task::new(large)).unwrap();
        let small = || Task::new(Piece::new(2).ladder(anywhere(Footprint::task(Bytes::mib(1)))));
        let until = std::time::Instant::now() + crate::bounded::PATIENCE;
        let ended = loop {
            assert!(std::time::Instant::now() < until, "the large task is still waiting");
            orchestrator.run(&work, small()).unwrap();
            if let Some(result) = large.poll_now() {
                break result;
            }
        };
        assert!(matches!(ended.err().unwrap().error, TaskError::Exhausted { .. }));
    });
}

#[test]
fn a_lease_closes_idle_sessions_but_nothing_in_use() {
    bounded(|| {
        let (orchestrator, work) = two_gpus(LONG);
        let session = anywhere(Footprint { session: Bytes::mib(70), ..Footprint::default() });
        let warm = Task::new(Piece::new(1).ladder(session.clone())).devices([FIRST]);
        orchestrator.run(&work, warm).unwrap();
        assert_eq!(promised(&orchestrator)[0], Bytes::mib(70));
        let lease = orchestrator.lease(&[(FIRST, Bytes::mib(100))]).unwrap();
        assert_eq!(promised(&orchestrator)[0], Bytes::mib(100));
        drop(lease);
        let (entered, leave) = (Gate::default(), Gate::default());
        let busy = Task::new(Piece::new(1).ladder(session).held(&entered, &leave)).devices([FIRST]);
        let busy = orchestrator.submit(&work, busy).unwrap();
        entered.pass();
        let refused = orchestrator.lease(&[(FIRST, Bytes::mib(100))]).err().unwrap();
        assert!(matches!(refused, ShortfallError::NotNow { .. }), "{refused}");
        leave.open();
        within(busy, "the busy session").unwrap();
        drop(orchestrator.lease(&[(FIRST, Bytes::mib(100))]).unwrap());
    });
}

#[test]
fn a_lease_outlives_its_orchestrator() {
    bounded(|| {
        let (orchestrator, _work) = two_gpus(LONG);
        let lease = orchestrator.lease(&[(FIRST, Bytes::mib(10))]).unwrap();
        drop(orchestrator);
        drop(lease);
    });
}
