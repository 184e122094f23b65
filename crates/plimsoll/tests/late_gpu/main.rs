//! A GPU whose driver opens no device when the machine is opened, and does later: it is part of the machine from the
//! beginning, and does work as soon as it can. Needs a C compiler and Mesa's software Vulkan driver.

mod driver;

use std::env;
use std::fs;
use std::process::Command;

use driver::{REFUSE, RefusingDriver};
use plimsoll::bench::{BenchOptions, bench};
use plimsoll::machine::{DeviceName, GpuUse, Machine, MachineError, MachineOptions};
use plimsoll::{Bytes, DeviceId, DeviceKind, Orchestrator, Task};
use plimsoll_core::health::Ailment;
use plimsoll_runtime::probe::workloads::{CPU, GPU_FULL, SumWork};
use plimsoll_testkit::patience::in_time;

/// Printed by the process that sees it, so that one that ran no test at all does not pass.
const SEEN: &str = "the late GPU did its work";

const GPU: DeviceId = DeviceId(1);

/// Started by the test runner it starts itself once more, with the driver that refuses.
#[test]
fn a_gpu_that_could_not_be_opened_is_tried_again() {
    if let Some(refuse) = env::var_os(REFUSE) {
        return with_the_refusing_driver(|| fs::remove_file(&refuse).expect("it is there until now"));
    }
    let driver = RefusingDriver::make();
    let mut process = Command::new(env::current_exe().expect("this binary"));
    process.args(["--exact", "a_gpu_that_could_not_be_opened_is_tried_again", "--nocapture"]);
    driver.alone_in(&mut process);
    let output = process.output().expect("started");
    let (said, complained) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && said.contains(SEEN), "{said}\n{complained}");
}

fn with_the_refusing_driver(relent: impl FnOnce()) {
    let options = MachineOptions { gpus: GpuUse::WithSoftware, cpu_slots: Some(1), ..MachineOptions::default() };
    let survey = Machine::survey(&options);
    assert!(survey.devices[1].device.is_err(), "what cannot be opened is shown as such");

    let machine = Machine::open(&options);
    assert_eq!(machine.names, [DeviceName::Cpu, DeviceName::Gpu(0)], "{:?}", machine.problems);
    let [problem @ MachineError::NotOpened { name: DeviceName::Gpu(0), .. }] = &machine.problems[..] else {
        panic!("{:?}", machine.problems)
    };
    assert!(problem.to_string().contains("tried again"), "{problem}");
    let facts = machine.devices[1].facts().clone();
    assert!(facts.kind == DeviceKind::Gpu && facts.slots > 0, "{facts:?}");
    assert!(!facts.name.is_empty() && !facts.driver.is_empty() && !facts.key.is_empty(), "{facts:?}");
    assert_eq!((facts.clone(), Bytes::ZERO), (survey.devices[1].facts.clone(), machine.devices[1].memory().ours));

    let orchestrator = Orchestrator::builder().devices(machine.devices).build();
    let sum = orchestrator.register(SumWork);
    let numbers = || Task::new([1.0_f32; 1000].into());
    assert_eq!(orchestrator.reports()[1].health.ailment(), Some(Ailment::Unproven));
    let meanwhile = orchestrator.run(&sum, numbers()).expect("the CPU does it");
    assert_eq!(meanwhile.report.rung, CPU);
    let measured = bench(&orchestrator, BenchOptions { quick: true }, |_| ());
    assert!(measured.cells.iter().all(|cell| cell.device != GPU), "measuring does not wait for it");

    relent();
    let late = orchestrator.submit(&sum, numbers().devices([GPU])).expect("it may come back");
    let late = in_time(late).expect("it is tried again, and works");
    assert_eq!((late.output, late.report.rung, late.report.device), (1000.0, GPU_FULL, GPU));
    let status = &orchestrator.reports()[1];
    assert!(status.health.is_well() && status.line > Bytes::mib(64), "{status:?}");
    println!("{SEEN}");
}
