//! The staged method: every mix of devices and threads gives the same bytes, whatever a device does.

use std::sync::Arc;
use std::time::Duration;

use plimsoll::machine::{GpuUse, Machine, MachineOptions};
use plimsoll::pack::{Format, Method, PackError, PackOptions, PackWatch, Packer, PackerOptions, StageChoice, Stages};
use plimsoll::{Bytes, Device, Nanos, Orchestrator};
use plimsoll_runtime::cpu::CpuDevice;
use plimsoll_testkit::virtual_device::{ScriptedFault, VirtualDevice, VirtualDeviceBuilder};

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
    let raw = mixed(2_300_001, 60);
    for (format, filter) in [(Format::Zstd, None), (Format::Zstd, Some("delta:u32,shuffle:u32")), (Format::Gzip, None)]
    {
        let options = staged(format, filter);
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
    let faults = [
        None,
        Some(ScriptedFault::OutOfMemory { allocation: 6 }),
        Some(ScriptedFault::Lost { launch: 5 }),
        Some(ScriptedFault::Stalled { read: 5, after: Nanos::seconds(1) }),
        Some(ScriptedFault::WrongAnswer { read: 4 }),
        Some(ScriptedFault::Unsupported { kernel: "match_find" }),
        Some(ScriptedFault::Unsupported { kernel: "huffman_put" }),
    ];
    for (format, filter) in [(Format::Zstd, None), (Format::Zstd, Some("shuffle:u32")), (Format::Gzip, None)] {
        let options = staged(format, filter);
        let expected = pack(&packer(1), &options, &raw);
        for fault in faults {
            let gpu = VirtualDevice::gpu("scripted").slots(1).pace(Duration::from_millis(2));
            let gpu: Arc<dyn Device> = Arc::new(fault.into_iter().fold(gpu, VirtualDeviceBuilder::fault).build());
            let cpu: Arc<dyn Device> = Arc::new(CpuDevice::builder().slots(1).build());
            let packer = on(vec![cpu, gpu], Stages::default());
            assert!(pack(&packer, &options, &raw) == expected, "{format}: a GPU with {fault:?}");
        }
    }
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
