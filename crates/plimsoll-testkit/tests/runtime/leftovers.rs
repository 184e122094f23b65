//! What one task leaves behind on a real GPU's slot (lavapipe): commands it never handed over, errors nobody asked for.
//! They are that task's own, and no other task ever hears of them.

use std::sync::Arc;

use plimsoll_core::{Bytes, Fault, Footprint, Ladder, MemoryMoment};
use plimsoll_runtime::{Access, Backend, Device, Kernel, Launch, Orchestrator, Reference, RunError, Task};
use plimsoll_wgpu::{OpenOptions, discover};

use crate::bounded::bounded;
use crate::scripted::{Piece, Scripted, gpu};

/// Says that its buffer has 1024 words, which wgpu compares with the buffer when the work is handed over.
static WANTS_MORE: Kernel = Kernel {
    name: "wants_more",
    wgsl: "@group(0) @binding(0) var<storage, read_write> data: array<u32, 1024>;
           @compute @workgroup_size(1) fn main() { data[0] = 1u; }",
    entry: "main",
    bindings: &[Access::Write],
    params: 0,
    twin: |_| (),
};

/// Records a launch that is refused once it is handed over, and leaves it at that.
fn record_nonsense(backend: &mut dyn Backend) -> Result<(), Fault> {
    let buffer = backend.allocate(Bytes(64))?;
    backend.launch(&Launch { kernel: &WANTS_MORE, buffers: &[&buffer], params: &[], groups: [1, 1, 1] })
}

fn own_reason() -> Fault {
    Fault::work("its own reason")
}

fn on_the_gpu() -> Ladder {
    let mut rung = gpu(Bytes::kib(16));
    rung.footprint = Footprint { session: Bytes::kib(16), task: Bytes::kib(16), reference: Bytes::kib(16) };
    Ladder::new([rung])
}

/// One slot of one GPU, so that every task comes to the same one.
fn one_slot() -> Orchestrator {
    let found = discover();
    let found = found.first().expect("a Vulkan device; Debian has a software one in mesa-vulkan-drivers");
    let options = OpenOptions::default().with_memory_limit(Bytes::mib(64)).with_slots(1);
    let device: Arc<dyn Device> = found.open(&options).expect("it opens").remove(0);
    Orchestrator::builder().device(device).build()
}

/// Runs a guilty task and then innocent ones of another workload on the same slot, which must all be right. Gives the
/// guilty one's own error.
#[track_caller]
fn the_guilty_alone_fails(guilty: Scripted, task: Task<Scripted>) -> RunError {
    let orchestrator = one_slot();
    let (guilty, innocent) = (orchestrator.register(guilty), orchestrator.register(Scripted::named("innocent")));
    let right = || Task::new(Piece::new(2).ladder(on_the_gpu()).checked());
    orchestrator.run(&innocent, right()).expect("it works before");
    let failure = orchestrator.run(&guilty, task).err().expect("the guilty task fails");
    for nth in 0..3 {
        if let Err(failure) = orchestrator.run(&innocent, right()) {
            panic!("innocent task {nth} after it: {failure}");
        }
    }
    assert!(orchestrator.reports()[0].health.is_well());
    failure
}

fn guilty_piece() -> Piece {
    Piece::new(1).ladder(on_the_gpu())
}

/// A piece whose session or reference is never good for a run: running it would be told as its error.
fn never_run() -> Piece {
    guilty_piece().on_run(|_, _| Err(Fault::work("it ran on what was refused")))
}

fn guilty() -> Scripted {
    Scripted::named("guilty")
}

#[test]
fn commands_of_a_task_that_failed_are_discarded() {
    bounded(|| {
        let task = Task::new(guilty_piece().on_run(|_, context| {
            record_nonsense(context.backend)?;
            Err(own_reason())
        }));
        let failure = the_guilty_alone_fails(guilty(), task);
        assert!(failure.to_string().contains("its own reason"), "{failure}");
    });
}

#[test]
fn commands_of_a_task_that_was_cancelled_are_discarded() {
    bounded(|| {
        let task = Task::new(guilty_piece().on_run(|_, context| {
            record_nonsense(context.backend)?;
            Err(Fault::Cancelled)
        }));
        let failure = the_guilty_alone_fails(guilty(), task);
        assert!(failure.to_string().contains("cancelled"), "{failure}");
    });
}

#[test]
fn commands_of_a_task_that_panicked_are_discarded() {
    bounded(|| {
        let task = Task::new(guilty_piece().on_run(|_, context| {
            record_nonsense(context.backend)?;
            panic!("its own panic")
        }));
        let failure = the_guilty_alone_fails(guilty(), task);
        assert!(failure.to_string().contains("its own panic"), "{failure}");
    });
}

/// Its known answer, which the device must then give, is not mixed with the commands either.
#[test]
fn commands_of_a_task_that_ran_out_of_memory_are_discarded() {
    bounded(|| {
        let task = Task::new(guilty_piece().on_run(|_, context| {
            record_nonsense(context.backend)?;
            Err(Fault::OutOfMemory { moment: MemoryMoment::Run, wanted: Bytes::kib(16) })
        }));
        let failure = the_guilty_alone_fails(guilty(), task);
        assert!(failure.to_string().contains("out of memory"), "{failure}");
    });
}

#[test]
fn a_task_that_reads_nothing_fails_of_what_it_recorded() {
    bounded(|| {
        let task = Task::new(guilty_piece().on_run(|_, context| record_nonsense(context.backend)));
        let failure = the_guilty_alone_fails(guilty(), task);
        assert!(failure.to_string().contains("Validation Error"), "{failure}");
    });
}

#[test]
fn an_opening_that_failed_leaves_nothing() {
    bounded(|| {
        let task = Task::new(guilty_piece().on_open(|_, backend| {
            record_nonsense(backend)?;
            Err(own_reason())
        }));
        let failure = the_guilty_alone_fails(guilty(), task);
        assert!(failure.to_string().contains("its own reason"), "{failure}");
    });
}

#[test]
fn an_opening_fails_of_what_it_recorded() {
    bounded(|| {
        let task = Task::new(never_run().on_open(|_, backend| record_nonsense(backend)));
        let failure = the_guilty_alone_fails(guilty(), task);
        assert!(failure.to_string().contains("Validation Error"), "{failure}");
    });
}

#[test]
fn a_preparing_fails_of_what_it_recorded() {
    bounded(|| {
        let task = Task::new(never_run()).reference(&Reference::new(vec![1, 2, 3]));
        let failure = the_guilty_alone_fails(guilty().on_prepare(|_, backend| record_nonsense(backend)), task);
        assert!(failure.to_string().contains("Validation Error"), "{failure}");
    });
}
