//! The staged method: every mix of devices and threads gives the same bytes, whatever a device does.

use std::io::Cursor;
use std::sync::Arc;
use std::time::Duration;

use plimsoll::machine::{GpuUse, Machine, MachineOptions};
use plimsoll::pack::{Format, Method, PackError, PackOptions, PackWatch, Packer, PackerOptions, StageChoice, Stages};
use plimsoll::{Bytes, Device, Nanos, Orchestrator};
use plimsoll_runtime::cpu::CpuDevice;
use plimsoll_testkit::virtual_device::{Calls, ScriptedFault, VirtualDevice, VirtualDeviceBuilder};

use crate::data::{mixed, pack, packer, unpack};

const CHOICES: [StageChoice; 3] = [StageChoice::Auto, StageChoice::Cpu, StageChoice::Gpu];

fn staged(format: Format, filter: Option<&str>) -> PackOptions {
    let filter = filter.and_then(|filter| filter.parse().ok());
    PackOptions { format, method: Some(Method::Staged), filter, ..PackOptions::default() }
}

/// The CPU and lavapipe.
fn devices(threads: usize) -> Vec<Arc<dyn Device>> {
    let options = MachineOptions { gpus: GpuUse::WithSoftware, cpu_slots: Some(threads), ..MachineOptions::default() };
    let machine = Machine::open(&options);
    assert!(machine.devices.len() > 1, "tests need a Vulkan device: `cargo xtask test` installs one");
    machine.devices
}

fn on(devices: Vec<Arc<dyn Device>>, stages: Stages) -> Packer {
    Packer::new(Orchestrator::builder().devices(devices).build(), PackerOptions { stages, ..PackerOptions::default() })
}

#[test]
fn every_mix_of_stages_gives_the_same_bytes() {
    let raw = mixed(300_001, 60);
    for (format, filter) in [(Format::Zstd, None), (Format::Zstd, Some("delta:u32,shuffle:u32")), (Format::Gzip, None)]
    {
        let options = PackOptions { block: Some(Bytes(128 << 10)), ..staged(format, filter) };
        let expected = pack(&packer(1), &options, &raw);
        assert!(unpack(&packer(2), &expected).unwrap() == raw, "{format}");
        for find in CHOICES {
            for code in CHOICES {
                for filter in CHOICES {
                    let packer = on(devices(2), Stages { filter, find, code });
                    assert!(pack(&packer, &options, &raw) == expected, "{format}: {filter:?} {find:?} {code:?}");
                }
            }
        }
    }
}

#[test]
fn the_bytes_are_the_same_for_1_2_and_8_threads() {
    let raw = mixed(3_000_000, 61);
    for format in [Format::Zstd, Format::Gzip] {
        let options = staged(format, None);
        let expected = pack(&packer(1), &options, &raw);
        for threads in [2, 8] {
            let packer = packer(threads);
            for _ in 0..10 {
                assert!(pack(&packer, &options, &raw) == expected, "{format}, {threads} threads");
            }
        }
    }
}

/// Where a block runs and when is never seen in the bytes. Ten runs where the scheduler is free to choose; where it is not,
/// two.
#[test]
fn every_mix_on_every_number_of_threads_gives_the_same_bytes_each_time() {
    let raw = mixed(200_000, 63);
    let (auto, cpu, gpu) = (StageChoice::Auto, StageChoice::Cpu, StageChoice::Gpu);
    for (format, filter) in [(Format::Zstd, Some("shuffle:u32")), (Format::Gzip, None)] {
        let options = PackOptions { block: Some(Bytes(64 << 10)), ..staged(format, filter) };
        let expected = pack(&packer(1), &options, &raw);
        for threads in [1, 2, 8] {
            for (filter, find, code) in [(auto, auto, auto), (gpu, gpu, gpu), (cpu, gpu, cpu), (gpu, cpu, gpu)] {
                let packer = on(devices(threads), Stages { filter, find, code });
                for run in 0..if find == auto { 10 } else { 2 } {
                    let got = pack(&packer, &options, &raw);
                    assert!(got == expected, "{format}: {filter:?} {find:?} {code:?}, {threads} threads, run {run}");
                }
            }
        }
    }
}

/// A GPU that is slow, fails, is lost, or answers wrongly: the right bytes every time, and what it cost is counted.
#[test]
fn a_gpu_that_misbehaves_changes_nothing() {
    let raw = mixed(6_000_000, 62);
    let away = [ScriptedFault::Lost { launch: 5 }, ScriptedFault::StaysAway { reopening: 1 }];
    let faults: [&[ScriptedFault]; 8] = [
        &[],
        &[ScriptedFault::OutOfMemory { allocation: 6 }],
        &away[..1],
        // Disconnected: it does not come back when it is looked for.
        &away,
        &[ScriptedFault::Stalled { read: 5, after: Nanos::seconds(1) }],
        &[ScriptedFault::WrongAnswer { read: 4 }],
        &[ScriptedFault::Unsupported { kernel: "match_find" }],
        &[ScriptedFault::Unsupported { kernel: "huffman_put" }],
    ];
    for (format, filter) in [(Format::Zstd, None), (Format::Zstd, Some("shuffle:u32")), (Format::Gzip, None)] {
        let options = PackOptions { block: Some(Bytes(256 << 10)), ..staged(format, filter) };
        let expected = pack(&packer(1), &options, &raw);
        for faults in faults {
            let gpu = VirtualDevice::gpu("scripted").slots(1).pace(Duration::from_millis(2));
            let gpu = Arc::new(faults.iter().copied().fold(gpu, VirtualDeviceBuilder::fault).build());
            let cpu: Arc<dyn Device> = Arc::new(CpuDevice::builder().slots(1).build());
            let used: Arc<dyn Device> = Arc::<VirtualDevice>::clone(&gpu);
            let packer = on(vec![cpu, used], Stages::default());
            let (packed, retries) = pack_counting(&packer, &options, &raw);
            assert!(packed == expected, "{format}: a GPU with {faults:?}");
            let happened = faults.first().is_some_and(|fault| has_happened(*fault, gpu.calls()));
            assert!(!happened || retries > 0, "{format}: {faults:?} cost a retry that nobody counted");
            assert!(!faults.is_empty() || retries == 0, "{format}: {retries} retries for nothing");
        }
    }
}

/// Whether the GPU came to the call at which it was to fail. Its first read and launch are its known answer.
fn has_happened(fault: ScriptedFault, calls: Calls) -> bool {
    match fault {
        ScriptedFault::OutOfMemory { allocation } => calls.allocations >= allocation,
        ScriptedFault::Lost { launch } => calls.launches >= launch,
        ScriptedFault::Stalled { read, .. } | ScriptedFault::WrongAnswer { read } => calls.reads >= read,
        _ => false,
    }
}

/// Where nothing but the GPU may do the work, its loss does happen, and the block is tried again once it is back.
#[test]
fn retries_of_a_gpu_are_counted() {
    let raw = mixed(3_000_000, 64);
    let options = PackOptions { block: Some(Bytes(256 << 10)), ..staged(Format::Zstd, None) };
    let expected = pack(&packer(1), &options, &raw);
    let fault = ScriptedFault::Lost { launch: 5 };
    let gpu = Arc::new(VirtualDevice::gpu("scripted").slots(1).fault(fault).build());
    let cpu: Arc<dyn Device> = Arc::new(CpuDevice::builder().slots(1).build());
    let stages = Stages { find: StageChoice::Gpu, ..Stages::default() };
    let used: Arc<dyn Device> = Arc::<VirtualDevice>::clone(&gpu);
    let packer = on(vec![cpu, used], stages);
    let (packed, retries) = pack_counting(&packer, &options, &raw);
    assert!(packed == expected && has_happened(fault, gpu.calls()), "{:?}", gpu.calls());
    assert!(retries > 0, "{:?}", gpu.calls());
}

/// What comes out, and how often something was tried in vain.
fn pack_counting(packer: &Packer, options: &PackOptions, raw: &[u8]) -> (Vec<u8>, u64) {
    let recipe = options.recipe(Some(raw.len() as u64)).expect("options that can be meant");
    let mut packed = Vec::new();
    let done = packer.pack(Cursor::new(raw.to_vec()), &mut packed, &recipe, &PackWatch::default());
    (packed, done.expect("it can be packed").retries)
}

#[test]
fn a_gpu_that_is_not_there_is_said_so() {
    let packer = on(
        vec![Arc::new(CpuDevice::builder().slots(1).build())],
        Stages { find: StageChoice::Gpu, ..Stages::default() },
    );
    let recipe = staged(Format::Zstd, None).recipe(None).unwrap();
    let refused = packer.pack(std::io::empty(), &mut Vec::new(), &recipe, &PackWatch::default()).unwrap_err();
    assert!(matches!(refused, PackError::NoGpu { stage: "match" }), "{refused}");
}
