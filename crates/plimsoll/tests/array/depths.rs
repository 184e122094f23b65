//! A held session of levels on a real Vulkan device, recalled from depth 3 to 2 to 1 to the CPU while slabs are under way.

use std::sync::Arc;

use plimsoll::array::{ArraySpec, DataType, Layout, Levels, Reduction};
use plimsoll::{Device, Held, Orchestrator, Task};
use plimsoll_arrays::work::{DeviceStages, Form, Slab, SlabStep, StagedSlabsWork};
use plimsoll_blocks::pool::Pool;
use plimsoll_testkit::patience::in_time;

use crate::devices;

const SLABS: u64 = 16;
const LEVELS: DeviceStages = DeviceStages { levels: true, scatter: false, shuffle: false };

fn layout() -> Arc<Layout> {
    let spec = ArraySpec {
        levels: Levels::Count(3),
        reduction: Reduction::SecondHighest,
        ..ArraySpec::new(vec![0, 37, 51], DataType::I16, vec![1, 16, 16])
    };
    Arc::new(Layout::new(&spec).unwrap())
}

fn slab(layout: &Layout, first: u64) -> Arc<Slab> {
    let bytes = layout.levels()[0].grid.step_bytes();
    let mut elements = Pool::default().take(bytes as usize);
    let mixed = |at: u64| ((at + first * 7_919).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8;
    elements.vec_mut().extend((0..bytes).map(mixed));
    Arc::new(Slab { first, steps: 1, elements, form: Form::Steps, place: None })
}

/// The elements of every level of every slab, and the rungs that they came from.
fn through(
    devices: Vec<Arc<dyn Device>>,
    before: impl Fn(u64, &Held<StagedSlabsWork>),
) -> (Vec<Vec<Vec<u8>>>, Vec<&'static str>) {
    let (layout, orchestrator) = (layout(), Orchestrator::builder().devices(devices).build());
    let work = orchestrator.register(StagedSlabsWork::new(&layout, &Pool::default(), 1, LEVELS));
    let held = orchestrator.hold(&work);
    let (mut out, mut rungs) = (Vec::new(), Vec::new());
    let mut step = |step: SlabStep| {
        let done = in_time(held.submit(Task::new(step)).unwrap()).unwrap();
        let elements = |slab: &Arc<Slab>| slab.elements.to_vec();
        out.extend(done.output.iter().map(|slabs| slabs.iter().map(elements).collect::<Vec<_>>()));
        rungs.push(done.report.rung);
    };
    for first in 0..SLABS {
        before(first, &held);
        step(SlabStep::Feed(slab(&layout, first)));
    }
    step(SlabStep::Flush);
    rungs.dedup();
    (out, rungs)
}

#[test]
fn every_depth_of_a_vulkan_device_and_the_cpu_give_the_same_bytes() {
    let (expected, rungs) = through(vec![devices::cpu(1)], |_, _| {});
    assert_eq!((expected.len() as u64, rungs), (SLABS, vec!["cpu"]));
    let gpu: Arc<dyn Device> = devices::lavapipe();
    let (out, rungs) = through(vec![gpu, devices::cpu(1)], |at, held| match at {
        4 => assert!(held.recall("gpu-2")),
        8 => assert!(held.recall("gpu-1")),
        12 => assert!(held.recall("cpu")),
        _ => {}
    });
    assert!(out == expected, "slabs were lost, or their bytes changed");
    assert_eq!(rungs, ["gpu-3", "gpu-2", "gpu-1", "cpu"]);
}
