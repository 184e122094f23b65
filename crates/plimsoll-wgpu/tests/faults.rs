//! Faults on a real Vulkan device: each comes out typed, and the device is right afterwards. A machine without one
//! fails here: install Mesa's software one (`mesa-vulkan-drivers`).

use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use plimsoll_core::{Bytes, Fault};
use plimsoll_runtime::cpu::CpuDevice;
use plimsoll_runtime::probe::{Blur, blur_full};
use plimsoll_runtime::{Access, Backend, Buffer, Device, FenceState, Kernel, Launch, check};
use plimsoll_wgpu::{OpenOptions, WgpuDevice, discover};

fn open(options: &OpenOptions) -> Vec<Arc<WgpuDevice>> {
    let found = discover();
    let found = found.first().expect("a Vulkan device; Debian has a software one in mesa-vulkan-drivers");
    found.open(options).expect("the device opens")
}

fn small() -> Arc<WgpuDevice> {
    open(&OpenOptions::default().with_memory_limit(Bytes::mib(64))).remove(0)
}

#[test]
fn no_card_is_listed_twice() {
    let found = discover();
    assert!(!found.is_empty());
    for (at, gpu) in found.iter().enumerate() {
        assert!(!gpu.name().is_empty() && !gpu.api().is_empty());
        assert!(gpu.bus().is_empty() || found[..at].iter().all(|other| other.bus() != gpu.bus()));
    }
}

#[test]
fn memory_runs_out_at_the_injected_allocation_and_the_device_goes_on() {
    let gpu = small();
    let mut slot = gpu.open_backend().unwrap();
    gpu.injection().out_of_memory_in(2);
    assert!(matches!(check::known_answer(&mut *slot), Err(Fault::OutOfMemory { wanted: Bytes(2048), .. })));
    check::known_answer(&mut *slot).unwrap();
    drop(slot);
    assert_eq!(gpu.memory().ours, Bytes::ZERO);
}

#[test]
fn an_injected_wrong_answer_is_noticed() {
    let gpu = small();
    let mut slot = gpu.open_backend().unwrap();
    gpu.injection().wrong_answer_in(1);
    assert!(matches!(check::known_answer(&mut *slot), Err(Fault::WrongAnswer { .. })));
    check::known_answer(&mut *slot).unwrap();
}

/// wgpu runs a callback on whichever thread asks first: one slot's answer may be on its way on another's.
#[test]
fn slots_that_wait_beside_each_other_all_get_their_answers() {
    let gpu = small();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut slot = gpu.open_backend().unwrap();
                (0..2_000).for_each(|_| check::known_answer(&mut *slot).unwrap());
            });
        }
    });
}

/// Fences are asked and waited for with short limits, while other slots hand work over and empty the queue.
#[test]
fn slots_that_wait_for_moments_beside_each_other_never_lose_the_device() {
    let gpu = small();
    thread::scope(|scope| {
        for seed in 0..4_u8 {
            let gpu = &gpu;
            scope.spawn(move || {
                let mut slot = gpu.open_backend().unwrap();
                let buffer = slot.allocate(Bytes(64)).unwrap();
                for round in 0..1_000_u64 {
                    slot.write(&buffer, Bytes::ZERO, &[seed; 64]).unwrap();
                    let readback = slot.stage_read(&buffer, Bytes::ZERO, Bytes(64)).unwrap();
                    let fence = slot.kick().unwrap();
                    let limit = Duration::from_micros(round % 3 * 20);
                    while slot.wait(&fence, limit).unwrap() == FenceState::UnderWay {}
                    let mut into = [0; 64];
                    slot.collect(readback, &mut into).unwrap();
                    assert_eq!(into, [seed; 64]);
                }
            });
        }
    });
}

#[test]
fn logical_devices_share_a_card_and_fail_alone() {
    let whole = open(&OpenOptions::default())[0].memory().capacity;
    let parts = open(&OpenOptions::default().with_logical(3));
    assert_eq!(parts.len(), 3);
    assert!(parts.iter().all(|part| part.memory().capacity == Bytes(whole.0 / 3)));
    assert_ne!(parts[0].facts().name, parts[1].facts().name);
    assert_eq!(parts[0].facts().key, parts[1].facts().key);
    let mut slots: Vec<_> = parts.iter().map(|part| part.open_backend().unwrap()).collect();
    parts[1].lose();
    check::known_answer(&mut *slots[0]).unwrap();
    assert!(matches!(check::known_answer(&mut *slots[1]), Err(Fault::DeviceLost { .. })));
    check::known_answer(&mut *slots[2]).unwrap();
    let buffer = slots[0].allocate(Bytes(4)).unwrap();
    assert!(matches!(slots[2].poison(&buffer), Err(Fault::WorkFailed(_))), "another logical device's buffer");
}

/// A kernel of which only the text matters. Its one buffer is binding 0.
macro_rules! kernel {
    ($name:ident, $wgsl:literal) => {
        static $name: Kernel = Kernel {
            name: stringify!($name),
            wgsl: $wgsl,
            entry: "main",
            bindings: &[Access::Write],
            params: 0,
            twin: |_| (),
        };
    };
}

kernel!(NO_SHADER, "this is no shader");
kernel!(NO_SUCH_ENTRY, "@compute @workgroup_size(1) fn another() {}");
kernel!(
    OTHER_BINDINGS,
    "@group(0) @binding(7) var<storage, read_write> data: array<u32>;
     @compute @workgroup_size(1) fn main() { data[0] = 1u; }"
);
kernel!(
    TOO_MANY_INVOCATIONS,
    "@group(0) @binding(0) var<storage, read_write> data: array<u32>;
     @compute @workgroup_size(1024, 64) fn main() { data[0] = 1u; }"
);
kernel!(
    TOO_MUCH_WORKGROUP_MEMORY,
    "@group(0) @binding(0) var<storage, read_write> data: array<u32>;
     var<workgroup> tile: array<u32, 1000000>;
     @compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) { tile[i] = i; data[0] = tile[63u - i]; }"
);
kernel!(
    NEEDS_A_FEATURE,
    "enable f16;
     @group(0) @binding(0) var<storage, read_write> data: array<f16>;
     @compute @workgroup_size(1) fn main() { data[0] = 1h; }"
);
kernel!(
    TAKES_LONG,
    "@group(0) @binding(0) var<storage, read_write> data: array<u32>;
     @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
         var word = id.x + data[0];
         for (var round = 0u; round < 60000u; round++) { word = word * 1664525u + 1013904223u; }
         data[id.x % arrayLength(&data)] = word;
     }"
);
kernel!(
    WRITES_ONE,
    "@group(0) @binding(0) var<storage, read_write> data: array<u32>;
     @compute @workgroup_size(1) fn main() { data[0] = 1u; }"
);

fn one_group<'a>(kernel: &'static Kernel, buffers: &'a [&'a Buffer]) -> Launch<'a> {
    Launch { kernel, buffers, params: &[], groups: [1, 1, 1] }
}

#[test]
fn a_kernel_that_the_device_cannot_compile_is_not_supported_by_it() {
    let gpu = small();
    let mut slot = gpu.open_backend().unwrap();
    let buffer = slot.allocate(Bytes(64)).unwrap();
    let kernels = [
        &NO_SHADER,
        &NO_SUCH_ENTRY,
        &OTHER_BINDINGS,
        &TOO_MANY_INVOCATIONS,
        &TOO_MUCH_WORKGROUP_MEMORY,
        &NEEDS_A_FEATURE,
    ];
    for kernel in kernels {
        for _ in 0..2 {
            let fault = slot.launch(&one_group(kernel, &[&buffer])).unwrap_err();
            assert!(matches!(&fault, Fault::Unsupported { detail } if detail.contains(kernel.name)), "{fault:?}");
        }
    }
    slot.launch(&one_group(&WRITES_ONE, &[&buffer])).unwrap();
    let mut into = [0; 4];
    slot.read(&buffer, Bytes::ZERO, &mut into).unwrap();
    assert_eq!(into, [1, 0, 0, 0], "what does compile runs on");
    check::known_answer(&mut *slot).unwrap();
}

#[test]
fn misuse_of_a_kernel_is_the_works_fault_whether_or_not_it_compiles() {
    let mut slot = small().open_backend().unwrap();
    let (buffer, foreign) =
        (slot.allocate(Bytes(64)).unwrap(), small().open_backend().unwrap().allocate(Bytes(64)).unwrap());
    for kernel in [&NO_SHADER, &WRITES_ONE] {
        for buffers in [&[][..], &[&foreign], &[&buffer, &buffer]] {
            let fault = slot.launch(&one_group(kernel, buffers)).unwrap_err();
            assert!(matches!(fault, Fault::WorkFailed(_)), "{fault:?}");
        }
    }
}

#[test]
fn a_kernel_that_a_lost_device_does_not_compile_says_nothing_of_the_kernel() {
    let gpu = small();
    let mut slot = gpu.open_backend().unwrap();
    let buffer = slot.allocate(Bytes(64)).unwrap();
    gpu.lose();
    for kernel in [&NO_SHADER, &WRITES_ONE] {
        let fault = slot.launch(&one_group(kernel, &[&buffer])).unwrap_err();
        assert!(matches!(fault, Fault::DeviceLost { .. }), "{fault:?}");
    }
}

/// Says that its second buffer has 1024 words, which wgpu compares with the buffer when the work is handed over.
static WANTS_MORE: Kernel = Kernel {
    name: "wants_more",
    wgsl: "@group(0) @binding(0) var<storage, read> source: array<u32>;
           @group(0) @binding(1) var<storage, read_write> written: array<u32, 1024>;
           @compute @workgroup_size(1) fn main() { written[0] = source[0]; }",
    entry: "main",
    bindings: &[Access::Read, Access::Write],
    params: 0,
    twin: |_| (),
};

/// A slot that has recorded work which will be refused, the buffer it reads and the buffer it writes.
fn with_nonsense_recorded() -> (Box<dyn Backend>, Buffer, Buffer) {
    let mut slot = small().open_backend().unwrap();
    let source = slot.allocate(Bytes(4)).unwrap();
    slot.write(&source, Bytes::ZERO, &[7; 4]).unwrap();
    slot.finish().unwrap();
    let target = slot.allocate(Bytes(64)).unwrap();
    slot.launch(&one_group(&WANTS_MORE, &[&source, &target])).unwrap();
    (slot, source, target)
}

/// What the work only read is as it was; what it should have written means nothing; and the slot goes on.
fn assert_only_what_it_writes_is_tainted(slot: &mut dyn Backend, source: &Buffer, target: &Buffer) {
    let mut into = [0; 4];
    let tainted = slot.read(target, Bytes::ZERO, &mut into);
    assert!(matches!(tainted, Err(Fault::WorkFailed(_))), "what it holds means nothing: {tainted:?}");
    check::known_answer(slot).unwrap();
    slot.read(source, Bytes::ZERO, &mut into).unwrap();
    assert_eq!(into, [7; 4]);
}

#[test]
fn work_that_was_refused_is_told_where_it_is_read() {
    let (mut slot, source, target) = with_nonsense_recorded();
    let refused = slot.read(&target, Bytes::ZERO, &mut [0; 4]);
    assert!(matches!(refused, Err(Fault::WorkFailed(_))), "{refused:?}");
    assert_only_what_it_writes_is_tainted(&mut *slot, &source, &target);
}

#[test]
fn work_that_was_refused_is_told_when_it_is_finished_and_only_then() {
    let (mut slot, source, target) = with_nonsense_recorded();
    let refused = slot.finish();
    assert!(matches!(refused, Err(Fault::WorkFailed(_))), "{refused:?}");
    slot.finish().unwrap();
    assert_only_what_it_writes_is_tainted(&mut *slot, &source, &target);
}

#[test]
fn work_that_was_abandoned_is_never_refused() {
    let (mut slot, source, target) = with_nonsense_recorded();
    slot.abandon();
    slot.finish().unwrap();
    assert_only_what_it_writes_is_tainted(&mut *slot, &source, &target);
}

#[test]
fn work_that_went_with_its_slot_is_abandoned() {
    let gpu = small();
    let (mut slot, mut other) = (gpu.open_backend().unwrap(), gpu.open_backend().unwrap());
    let buffer = slot.allocate(Bytes(4)).unwrap();
    slot.write(&buffer, Bytes::ZERO, &[7; 4]).unwrap();
    drop(slot);
    let read = other.read(&buffer, Bytes::ZERO, &mut [0; 4]);
    assert!(matches!(read, Err(Fault::WorkFailed(_))), "nobody finished it: {read:?}");
}

#[test]
fn buffers_slots_and_devices_go_in_any_order() {
    let gpu = small();
    let mut slot = gpu.open_backend().unwrap();
    let early = slot.allocate(Bytes(64)).unwrap();
    slot.launch(&one_group(&WRITES_ONE, &[&early])).unwrap();
    drop(early);
    slot.finish().unwrap();
    check::known_answer(&mut *slot).unwrap();
    let late = slot.allocate(Bytes(64)).unwrap();
    slot.launch(&one_group(&WRITES_ONE, &[&late])).unwrap();
    drop(slot);
    assert_eq!(gpu.memory().ours, Bytes(64));
    let mut slot = gpu.open_backend().unwrap();
    slot.poison(&late).unwrap_err();
    drop(gpu);
    check::known_answer(&mut *slot).unwrap();
    drop(slot);
    drop(late);
}

/// Too little even for the slots themselves.
#[test]
fn a_slot_that_does_not_fit_leaves_nothing_charged() {
    let gpu = open(&OpenOptions::default().with_memory_limit(Bytes::kib(16))).remove(0);
    for _ in 0..3 {
        assert!(matches!(gpu.open_backend().err(), Some(Fault::OutOfMemory { .. })));
        assert_eq!(gpu.memory().ours, Bytes::ZERO);
    }
}

#[test]
fn a_loss_in_the_middle_of_work_never_gives_a_wrong_answer() {
    let gpu = small();
    let blur = Blur::new(64, 64, 3).unwrap();
    let pixels: Vec<f32> = (0..64 * 64).map(|i| (i % 97) as f32 / 97.0).collect();
    let wanted = blur_full(&mut *CpuDevice::open().open_backend().unwrap(), blur, &pixels).unwrap();
    let (sender, first) = mpsc::channel();
    let worker_gpu = Arc::clone(&gpu);
    let worker = thread::spawn(move || {
        let mut slot = worker_gpu.open_backend().unwrap();
        loop {
            match blur_full(&mut *slot, blur, &pixels) {
                Ok(got) => assert!(got.iter().zip(&wanted).all(|(got, wanted)| (got - wanted).abs() < 1e-5)),
                Err(fault) => break fault,
            }
            // Nobody listens after the first.
            let _ = sender.send(());
        }
    });
    first.recv().unwrap();
    gpu.lose();
    let fault = worker.join().unwrap();
    assert!(matches!(fault, Fault::DeviceLost { .. }), "{fault:?}");
    gpu.reopen().unwrap();
    check::known_answer(&mut *gpu.open_backend().unwrap()).unwrap();
    assert_eq!(gpu.memory().ours, Bytes::ZERO);
}

#[test]
fn a_device_that_does_not_answer_in_time_is_stalled_and_can_be_reopened() {
    let gpu = open(&OpenOptions::default().with_answer_timeout(Duration::ZERO)).remove(0);
    let mut slot = gpu.open_backend().unwrap();
    // Far more work than is done between handing it over and asking for it.
    let blur = Blur::new(512, 512, Blur::RADIUS_LIMIT).unwrap();
    let fault = blur_full(&mut *slot, blur, &vec![0.5; 512 * 512]).unwrap_err();
    assert!(matches!(fault, Fault::Stalled { .. }), "{fault:?}");
    assert!(matches!(slot.allocate(Bytes(4)), Err(Fault::DeviceLost { .. })));
    gpu.reopen().unwrap();
    gpu.open_backend().unwrap().allocate(Bytes(4)).unwrap();
}

/// Who only asks is told in the end, as is who waits.
#[test]
fn a_device_that_does_not_answer_is_stalled_for_who_asks_again_and_again() {
    let gpu = open(&OpenOptions::default().with_answer_timeout(Duration::from_millis(1))).remove(0);
    let mut slot = gpu.open_backend().unwrap();
    let buffer = slot.allocate(Bytes(64)).unwrap();
    slot.launch(&Launch { groups: [4096, 1, 1], ..one_group(&TAKES_LONG, &[&buffer]) }).unwrap();
    let fence = slot.kick().unwrap();
    let fault = loop {
        match slot.wait(&fence, Duration::ZERO) {
            Ok(state) => assert_eq!(state, FenceState::UnderWay),
            Err(fault) => break fault,
        }
    };
    assert!(matches!(fault, Fault::Stalled { .. }), "{fault:?}");
    assert!(matches!(slot.wait(&fence, Duration::ZERO), Err(Fault::DeviceLost { .. })));
}
