//! After an out-of-memory nothing of a device counts before it has given its known answer; and what a run shows of its
//! device counts also when nobody waits for its result.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_core::balancer::Strategy;
use plimsoll_core::{Bytes, Fault, Ladder, Nanos, Setback};
use plimsoll_runtime::{Orchestrator, Task, check};
use plimsoll_testkit::virtual_device::{ScriptedFault, VirtualDevice};

use crate::bounded::{Gate, bounded, eventually, within};
use crate::scripted::{ALL, FIRST, OnDrop, Piece, Scripted, as_device, gpu, gpu_then_cpu, virtual_gpu};

/// A task runs out of memory on the GPU and steps down to the CPU; the check after it meets `fault`.
fn out_of_memory_then(fault: impl Fn(&VirtualDevice) -> ScriptedFault) -> (Orchestrator, Arc<VirtualDevice>) {
    let gpu = virtual_gpu("v", |gpu| gpu);
    let orchestrator = Orchestrator::builder()
        .device(as_device(&gpu))
        .cpu(1)
        .strategy(Strategy::WeightedCapacity)
        .weight(0, ALL)
        .build();
    let work = orchestrator.register(Scripted::default());
    gpu.add_fault(ScriptedFault::OutOfMemory { allocation: gpu.calls().allocations + 1 });
    gpu.add_fault(fault(&gpu));
    let piece = Piece::new(1).ladder(gpu_then_cpu(Bytes(1_000))).on_run(|rung, context| match rung {
        "gpu" => context.backend.allocate(Bytes(64)).map(drop),
        _ => Ok(()),
    });
    let done = orchestrator.run(&work, Task::new(piece)).unwrap();
    assert!(matches!(done.report.attempts[0].setback, Setback::Failed(Fault::OutOfMemory { .. })));
    (orchestrator, gpu)
}

/// The device was opened again, gave its known answer, and does work.
fn comes_back(orchestrator: &Orchestrator, gpu: &VirtualDevice) {
    eventually("it is reopened and well", || gpu.calls().reopenings > 0 && orchestrator.reports()[0].health.is_well());
    let work = orchestrator.register(Scripted::named("another"));
    let task = Task::new(Piece::new(2).ladder(gpu_then_cpu(Bytes(1))).checked()).devices([FIRST]);
    assert_eq!(orchestrator.run(&work, task).unwrap().report.device, FIRST);
}

#[test]
fn a_check_that_runs_out_of_memory_itself_is_not_passed() {
    bounded(|| {
        let next = |gpu: &VirtualDevice| ScriptedFault::OutOfMemory { allocation: gpu.calls().allocations + 2 };
        let (orchestrator, gpu) = out_of_memory_then(next);
        comes_back(&orchestrator, &gpu);
    });
}

#[test]
fn a_device_lost_in_the_check_is_reopened() {
    bounded(|| {
        let next = |gpu: &VirtualDevice| ScriptedFault::Lost { launch: gpu.calls().launches + 1 };
        let (orchestrator, gpu) = out_of_memory_then(next);
        comes_back(&orchestrator, &gpu);
    });
}

#[test]
fn a_device_that_stalls_in_the_check_is_reopened() {
    bounded(|| {
        let after = Nanos::seconds(60);
        let next = |gpu: &VirtualDevice| ScriptedFault::Stalled { read: gpu.calls().reads + 1, after };
        let (orchestrator, gpu) = out_of_memory_then(next);
        comes_back(&orchestrator, &gpu);
    });
}

#[test]
fn a_wrong_answer_in_the_check_is_found() {
    bounded(|| {
        let next = |gpu: &VirtualDevice| ScriptedFault::WrongAnswer { read: gpu.calls().reads + 1 };
        let (orchestrator, gpu) = out_of_memory_then(next);
        comes_back(&orchestrator, &gpu);
    });
}

/// The check after an out-of-memory is under way on one slot, and will show that the device answers wrongly. A result
/// that another slot has meanwhile is not delivered, and neither is anything started.
#[test]
fn other_slots_deliver_nothing_while_the_check_is_under_way() {
    bounded(|| {
        let card = virtual_gpu("v", |gpu| gpu.slots(2).pace(Duration::from_millis(400)));
        let orchestrator = Orchestrator::builder().device(as_device(&card)).build();
        let work = orchestrator.register(Scripted::default());
        let on_gpu = || Ladder::new([gpu(Bytes(64))]);
        let (entered, leave) = (Gate::default(), Gate::default());
        let beside =
            orchestrator.submit(&work, Task::new(Piece::new(7).ladder(on_gpu()).held(&entered, &leave))).unwrap();
        entered.pass();
        let calls = card.calls();
        card.add_fault(ScriptedFault::OutOfMemory { allocation: calls.allocations + 1 });
        card.add_fault(ScriptedFault::WrongAnswer { read: calls.reads + 1 });
        let piece = Piece::new(1).ladder(on_gpu()).on_run(|_, context| context.backend.allocate(Bytes(64)).map(drop));
        let out_of_memory = orchestrator.submit(&work, Task::new(piece)).unwrap();
        eventually("the check is under way", || card.calls().reads == calls.reads + 1);
        let reopened_before = card.calls().reopenings;
        leave.open();
        let done = within(beside, "the one beside it").unwrap();
        assert_eq!(done.output.value, 7);
        assert_eq!(reopened_before, 0);
        assert!(card.calls().reopenings > 0, "its result came only once the device was well again");
        assert!(matches!(done.report.attempts[..], [ref first] if matches!(first.setback, Setback::Distrusted)));
        assert!(within(out_of_memory, "the one that ran out").is_err());
    });
}

#[test]
fn a_wrong_answer_after_a_cancel_is_noticed() {
    bounded(|| {
        let gpu = virtual_gpu("wrong", |gpu| gpu);
        let orchestrator = Orchestrator::builder().device(as_device(&gpu)).build();
        let work = orchestrator.register(Scripted::default());
        let (entered, leave, over) = (Gate::default(), Gate::default(), Gate::default());
        let (tell, wait, ended) = (entered.clone(), leave.clone(), over.clone());
        let piece = Piece::new(1).on_run(move |_, context| {
            tell.open();
            wait.pass();
            check::known_answer(context.backend)
        });
        let piece = piece.baggage(OnDrop::new(move || ended.open()));
        gpu.add_fault(ScriptedFault::WrongAnswer { read: gpu.calls().reads + 1 });
        let ticket = orchestrator.submit(&work, Task::new(piece)).unwrap();
        entered.pass();
        assert!(ticket.cancel());
        leave.open();
        over.pass();
        eventually("it is reopened", || gpu.calls().reopenings == 1 && orchestrator.reports()[0].health.is_well());
    });
}
