//! Devices that go away, answer wrongly or not at all: their tasks move, and every result is right.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use plimsoll_core::balancer::Strategy;
use plimsoll_core::event::{Event, What};
use plimsoll_core::{Bytes, DeviceId, Fault, Setback, TaskError};
use plimsoll_runtime::{Orchestrator, Task, check};
use plimsoll_testkit::patience::ended_within;
use plimsoll_testkit::virtual_device::ScriptedFault;

use crate::bounded::{Gate, Meeting, bounded, eventually, within};
use crate::scripted::{ALL, FIRST, Piece, SECOND, Scripted, as_device, gpu_then_cpu, virtual_gpu};

fn both(value: u64) -> Piece {
    Piece::new(value).ladder(gpu_then_cpu(Bytes::ZERO)).checked()
}

#[test]
fn lost_while_a_task_is_on_it() {
    bounded(|| {
        let gpu = virtual_gpu("v", |gpu| gpu);
        let orchestrator = Orchestrator::builder()
            .device(as_device(&gpu))
            .cpu(1)
            .strategy(Strategy::WeightedCapacity)
            .weight(0, ALL)
            .build();
        let work = orchestrator.register(Scripted::default());
        let (entered, leave) = (Gate::default(), Gate::default());
        let (tell, wait) = (entered.clone(), leave.clone());
        let piece = Piece::new(1).ladder(gpu_then_cpu(Bytes::ZERO)).on_run(move |rung, context| {
            if rung == "gpu" {
                tell.open();
                wait.pass();
            }
            check::known_answer(context.backend)
        });
        let moved = orchestrator.submit(&work, Task::new(piece)).unwrap();
        entered.pass();
        let behind: Vec<_> = (0..50).map(|n| orchestrator.submit(&work, Task::new(both(n))).unwrap()).collect();
        gpu.lose();
        leave.open();
        let done = within(moved, "the task on the lost device").unwrap();
        assert_eq!(done.output.value, 1);
        let [lost] = &done.report.attempts[..] else { panic!("{:?}", done.report.attempts) };
        assert_eq!((lost.rung, lost.device), ("gpu", FIRST));
        assert!(matches!(lost.setback, Setback::Failed(Fault::DeviceLost { .. })));
        for (n, ticket) in behind.into_iter().enumerate() {
            assert_eq!(within(ticket, "a task queued behind it").unwrap().output.value, n as u64);
        }
        eventually("it is reopened", || orchestrator.reports()[0].health.is_well());
        let again = orchestrator.run(&work, Task::new(both(7)).devices([FIRST])).unwrap();
        assert_eq!((again.output.value, again.report.device), (7, FIRST));
        assert_eq!(gpu.calls().reopenings, 1);
    });
}

#[test]
fn lost_at_scripted_launches_with_many_tasks() {
    bounded(|| {
        let gpu = virtual_gpu("v", |gpu| {
            [5, 30, 31, 90].iter().fold(gpu, |gpu, &launch| gpu.fault(ScriptedFault::Lost { launch }))
        });
        let orchestrator = Orchestrator::builder().device(as_device(&gpu)).build();
        let work = orchestrator.register(Scripted::default());
        let tasks = (0..200).map(|n| Task::new(Piece::new(n).checked()));
        let results = orchestrator.run_all(&work, tasks).ordered();
        let values: Vec<u64> = results.map(|done| done.unwrap().output.value).collect();
        assert_eq!(values, (0..200).collect::<Vec<_>>(), "there is no other device: each loss is survived");
        assert!(gpu.calls().reopenings >= 4);
    });
}

/// Two slots lose the same device at once: it is reopened once, and what runs in its new life is left alone.
#[test]
fn a_late_report_of_an_old_loss_is_not_a_new_one() {
    bounded(|| {
        let gpu = virtual_gpu("v", |gpu| gpu.slots(2));
        let orchestrator = Orchestrator::builder().device(as_device(&gpu)).build();
        let work = orchestrator.register(Scripted::default());
        let (both_in, late) = (Meeting::of(3), Gate::default());
        let first_time = |waits_for: Gate| {
            let (both_in, first) = (both_in.clone(), AtomicBool::new(true));
            Piece::new(1).on_run(move |_, context| {
                if first.swap(false, Ordering::SeqCst) {
                    both_in.attend();
                    waits_for.pass();
                }
                check::known_answer(context.backend)
            })
        };
        let now = Gate::default();
        let early = orchestrator.submit(&work, Task::new(first_time(now.clone()))).unwrap();
        let tardy = orchestrator.submit(&work, Task::new(first_time(late.clone()))).unwrap();
        both_in.attend();
        gpu.lose();
        now.open();
        within(early, "the one that reports the loss").unwrap();
        assert!(orchestrator.reports()[0].health.is_well());
        let reopenings = gpu.calls().reopenings;
        late.open();
        let tardy = within(tardy, "the one that reports it late").unwrap();
        assert_eq!(tardy.report.attempts.len(), 1);
        assert_eq!(gpu.calls().reopenings, reopenings, "the new life of the device has no fault");
    });
}

#[test]
fn lost_for_good() {
    bounded(|| {
        let gpu = virtual_gpu("v", |gpu| {
            (1..100)
                .fold(gpu, |gpu, reopening| gpu.fault(ScriptedFault::StaysAway { reopening }))
                .fault(ScriptedFault::Lost { launch: 4 })
        });
        let orchestrator = Orchestrator::builder()
            .device(as_device(&gpu))
            .cpu(2)
            .strategy(Strategy::WeightedCapacity)
            .weight(0, ALL)
            .device_wait_max(Duration::from_millis(300))
            .build();
        let work = orchestrator.register(Scripted::default());
        let tasks = (0..100).map(|n| Task::new(both(n)));
        let results = orchestrator.run_all(&work, tasks).ordered();
        let values: Vec<u64> = results.map(|done| done.unwrap().output.value).collect();
        assert_eq!(values, (0..100).collect::<Vec<_>>());
        assert!(!orchestrator.reports()[0].health.is_well());
        let stuck = Task::new(both(1)).devices([FIRST]).deadline(Duration::from_millis(50));
        let stuck = orchestrator.submit(&work, stuck).unwrap();
        let error = within(stuck, "a task for the lost device alone").err().unwrap().error;
        assert!(matches!(error, TaskError::DeadlinePassed { started: false }), "{error}");
        let patient = orchestrator.submit(&work, Task::new(both(1)).devices([FIRST])).unwrap();
        let error = within(patient, "the same without a deadline").err().unwrap().error;
        let TaskError::Exhausted { attempts } = &error else { panic!("{error}") };
        assert!(!attempts.is_empty() && error.to_string().contains("quarantine: lost"), "{error}");
    });
}

#[test]
fn a_task_that_kills_every_device_it_touches_ends() {
    bounded(|| {
        let gpu = virtual_gpu("v", |gpu| gpu);
        let orchestrator = Orchestrator::builder().device(as_device(&gpu)).build();
        let work = orchestrator.register(Scripted::default());
        let killer = Arc::clone(&gpu);
        let piece = Piece::new(1).on_run(move |_, context| {
            killer.lose();
            check::known_answer(context.backend)
        });
        let ticket = orchestrator.submit(&work, Task::new(piece)).unwrap();
        let error = within(ticket, "a task that kills its device").err().unwrap().error;
        let TaskError::Exhausted { attempts } = &error else { panic!("{error}") };
        assert!(attempts.len() > 1 && error.to_string().contains("device lost"), "{error}");
        eventually("the device comes back", || orchestrator.reports()[0].health.is_well());
        assert_eq!(orchestrator.run(&work, Task::new(Piece::new(2).checked())).unwrap().output.value, 2);
    });
}

#[test]
fn a_wrong_answer_puts_the_device_in_quarantine() {
    bounded(|| {
        let gpu = virtual_gpu("liar", |gpu| gpu);
        let events = Arc::new(std::sync::Mutex::new(Vec::new()));
        let heard = Arc::clone(&events);
        let orchestrator = Orchestrator::builder()
            .device(as_device(&gpu))
            .cpu(1)
            .strategy(Strategy::WeightedCapacity)
            .weight(0, ALL)
            .listener(move |some: &[Event]| heard.lock().unwrap().extend(some.iter().cloned()))
            .build();
        let work = orchestrator.register(Scripted::default());
        assert_eq!(orchestrator.run(&work, Task::new(both(1))).unwrap().report.device, FIRST);
        // The next answer is wrong, and so is the first known answer after that.
        let reads = gpu.calls().reads;
        gpu.add_fault(ScriptedFault::WrongAnswer { read: reads + 1 });
        gpu.add_fault(ScriptedFault::WrongAnswer { read: reads + 2 });
        let done = orchestrator.run(&work, Task::new(both(2))).unwrap();
        assert_eq!((done.output.value, done.report.device), (2, SECOND));
        assert!(matches!(done.report.attempts[0].setback, Setback::Failed(Fault::WrongAnswer { .. })));
        eventually("it proves itself again", || orchestrator.reports()[0].health.is_well());
        assert!(gpu.calls().reads >= reads + 3, "it was asked for its known answer until that was right");
        assert_eq!(gpu.calls().reopenings, 2);
        assert_eq!(orchestrator.run(&work, Task::new(both(3))).unwrap().report.device, FIRST);
        // Listeners hear of it a moment after it is so.
        let of_health = || {
            let heard = events.lock().unwrap();
            let here = heard.iter().filter_map(|event| match event.what {
                What::Quarantined { device: FIRST, .. } => Some("quarantined"),
                What::Returned { device: FIRST } => Some("returned"),
                _ => None,
            });
            here.collect::<Vec<_>>()
        };
        eventually("it is heard", || of_health() == ["returned", "quarantined", "returned"]);
    });
}

#[test]
fn a_stalled_read_moves_the_task() {
    bounded(|| {
        let gpu = virtual_gpu("v", |gpu| gpu);
        let orchestrator = Orchestrator::builder()
            .device(as_device(&gpu))
            .cpu(1)
            .strategy(Strategy::WeightedCapacity)
            .weight(0, ALL)
            .build();
        let work = orchestrator.register(Scripted::default());
        let read = gpu.calls().reads + 1;
        gpu.add_fault(ScriptedFault::Stalled { read, after: plimsoll_core::Nanos::seconds(60) });
        let done = orchestrator.run(&work, Task::new(both(2))).unwrap();
        assert_eq!((done.output.value, done.report.device), (2, SECOND));
        eventually("it is reopened", || orchestrator.reports()[0].health.is_well());
    });
}

/// The only slot of a device hangs in a call that never comes back: its task moves, and so do all that would follow.
#[test]
fn work_that_hangs_takes_nothing_else_with_it() {
    bounded(|| {
        let gpu = virtual_gpu("hung", |gpu| gpu);
        let orchestrator = Orchestrator::builder()
            .device(as_device(&gpu))
            .cpu(1)
            .strategy(Strategy::WeightedCapacity)
            .weight(0, ALL)
            .stall_after(Duration::from_millis(100))
            .build();
        let work = orchestrator.register(Scripted::default());
        assert_eq!(orchestrator.run(&work, Task::new(both(1))).unwrap().report.device, FIRST);
        let (entered, leave) = (Gate::default(), Gate::default());
        let (tell, wait) = (entered.clone(), leave.clone());
        let hangs = Piece::new(1).ladder(gpu_then_cpu(Bytes::ZERO)).on_run(move |rung, _| {
            if rung == "gpu" {
                tell.open();
                wait.pass();
            }
            Ok(())
        });
        let hung = orchestrator.submit(&work, Task::new(hangs)).unwrap();
        entered.pass();
        let queued: Vec<_> = (0..5).map(|n| orchestrator.submit(&work, Task::new(both(n))).unwrap()).collect();
        let done = within(hung, "the hung task").unwrap();
        assert_eq!(done.report.device, SECOND);
        assert!(matches!(done.report.attempts[0].setback, Setback::Failed(Fault::Stalled { .. })));
        for ticket in queued {
            within(ticket, "a task queued behind the hung one").unwrap();
        }
        for n in 0..5 {
            let mut later = orchestrator.submit(&work, Task::new(both(n))).unwrap();
            // Less than the hung call lasts, so that waiting for it does not pass.
            let later = ended_within(&mut later, Duration::from_secs(10)).expect("a task after the hung one ends");
            assert_eq!(later.unwrap().output.value, n);
        }
        leave.open();
        eventually("the device is whole again", || {
            let task = Task::new(both(9)).devices([FIRST]).deadline(Duration::from_secs(5));
            orchestrator.run(&work, task).is_ok()
        });
    });
}

#[test]
fn a_cancelled_task_that_hangs_is_noticed_too() {
    bounded(|| {
        let gpu = virtual_gpu("hung", |gpu| gpu);
        let orchestrator = Orchestrator::builder()
            .device(as_device(&gpu))
            .cpu(1)
            .strategy(Strategy::WeightedCapacity)
            .weight(0, ALL)
            .stall_after(Duration::from_millis(100))
            .build();
        let work = orchestrator.register(Scripted::default());
        let (entered, leave) = (Gate::default(), Gate::default());
        let hangs = Piece::new(1).ladder(gpu_then_cpu(Bytes::ZERO)).held(&entered, &leave);
        let hung = orchestrator.submit(&work, Task::new(hangs)).unwrap();
        entered.pass();
        assert!(hung.cancel());
        let mut later = orchestrator.submit(&work, Task::new(both(3))).unwrap();
        let later = ended_within(&mut later, Duration::from_secs(10)).expect("a task after the cancelled one ends");
        assert_eq!(later.unwrap().report.device, SECOND);
        leave.open();
    });
}

#[test]
fn devices_that_flicker_lose_no_task() {
    bounded(|| {
        let gpus = ["a", "b"].map(|name| virtual_gpu(name, |gpu| gpu.slots(2)));
        let orchestrator = Orchestrator::builder().devices(gpus.iter().map(as_device)).cpu(1).build();
        let work = orchestrator.register(Scripted::default());
        let done = AtomicU64::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut at = 0;
                while done.load(Ordering::SeqCst) < 2000 {
                    gpus[at % 2].lose();
                    at += 1;
                    std::thread::sleep(Duration::from_millis(3));
                }
            });
            let tasks = (0..2000).map(|n| Task::new(both(n)));
            let results = orchestrator.run_all(&work, tasks).ordered();
            for (n, result) in results.enumerate() {
                done.fetch_add(1, Ordering::SeqCst);
                assert_eq!(result.map(|done| done.output.value).unwrap_or(u64::MAX), n as u64);
            }
        });
        let devices: Vec<DeviceId> = orchestrator.devices().map(|(id, _)| id).collect();
        assert_eq!(devices.len(), 3);
    });
}
