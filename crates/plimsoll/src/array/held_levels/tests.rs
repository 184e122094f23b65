//! Levels from every depth, from a session that is recalled, from devices that are lost or short of memory: always those
//! that the CPU alone makes, each slab once and in its turn.

use std::future::poll_fn;
use std::sync::Mutex;
use std::time::Duration;

use plimsoll_arrays::work::{DeviceStages, Form};
use plimsoll_arrays::{ArraySpec, DataType, Layout, Levels, Reduction};
use plimsoll_blocks::pool::Pool;
use plimsoll_core::event::What;
use plimsoll_core::{Bytes, Priority};
use plimsoll_runtime::cpu::CpuDevice;
use plimsoll_runtime::{Builder, Device, Grant, GrantRequest, Workload as _};
use plimsoll_testkit::virtual_device::{ScriptedFault, VirtualDevice};

use super::*;
use crate::array::{ArrayOptions, level_maker};

const SLABS: usize = 20;
const STEPS: u64 = 4;
const LEVELS: DeviceStages = DeviceStages { levels: true, scatter: false, shuffle: false };
const PATIENCE: Duration = Duration::from_secs(120);

/// Halved along the first dimension too, with odd sizes.
fn layout() -> Arc<Layout> {
    let spec = ArraySpec {
        levels: Levels::Count(3),
        reduction: Reduction::Mean,
        axes: Some(["z", "y", "x"].map(|name| name.parse().unwrap()).to_vec()),
        ..ArraySpec::new(vec![0, 13, 11], DataType::U8, vec![4, 8, 8])
    };
    Arc::new(Layout::new(&spec).unwrap())
}

/// The last one ends within a window.
fn slab(layout: &Layout, at: usize) -> Slab {
    let steps = if at + 1 == SLABS { STEPS - 1 } else { STEPS };
    let bytes = steps * layout.levels()[0].grid.step_bytes();
    let mut elements = Pool::default().take(bytes as usize);
    let mixed = |n: u64| ((n + at as u64 * 7_919).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8;
    elements.vec_mut().extend((0..bytes).map(mixed));
    Slab { first: at as u64 * STEPS, steps, elements, form: Form::Steps, place: None }
}

/// First step, steps and elements of every level of every slab, in the order in which they came out.
type Out = Vec<Vec<(u64, u64, Vec<u8>)>>;

/// The next slab that comes out, hurried only if nothing else can be done.
fn next(maker: &mut dyn LevelMaker) -> Result<WithLevels, ArrayError> {
    pollster::block_on(poll_fn(|context| {
        loop {
            if let Poll::Ready(made) = maker.poll(context) {
                return Poll::Ready(made);
            }
            match maker.hurry() {
                Ok(true) => {}
                Ok(false) => return Poll::Pending,
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }))
}

fn seen(slabs: &WithLevels) -> Vec<(u64, u64, Vec<u8>)> {
    slabs.iter().map(|slab| (slab.first, slab.steps, slab.elements.to_vec())).collect()
}

/// Takes all slabs through, with something done before each.
fn through<M: LevelMaker>(mut maker: M, mut before: impl FnMut(usize, &M)) -> Result<Out, ArrayError> {
    let layout = layout();
    let mut out = Out::new();
    for at in 0..SLABS {
        before(at, &maker);
        while !maker.has_room() {
            out.push(seen(&next(&mut maker)?));
        }
        maker.submit(slab(&layout, at))?;
    }
    while !maker.is_empty() {
        out.push(seen(&next(&mut maker)?));
    }
    Ok(out)
}

impl LevelMaker for Box<dyn LevelMaker> {
    fn has_room(&self) -> bool {
        (**self).has_room()
    }
    fn submit(&mut self, slab: Slab) -> Result<(), ArrayError> {
        (**self).submit(slab)
    }
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<WithLevels, ArrayError>> {
        (**self).poll(context)
    }
    fn hurry(&mut self) -> Result<bool, ArrayError> {
        (**self).hurry()
    }
    fn is_empty(&self) -> bool {
        (**self).is_empty()
    }
}

fn expected() -> Out {
    let orchestrator = Orchestrator::builder().cpu(2).build();
    let maker = level_maker::open(
        &orchestrator,
        &layout(),
        &Pool::default(),
        DeviceStages::default(),
        &ArrayOptions::default(),
    );
    let expected = through(maker, |_, _| {}).unwrap();
    assert_eq!(expected.len(), SLABS);
    expected
}

fn work() -> StagedSlabsWork {
    StagedSlabsWork::new(&layout(), &Pool::default(), STEPS, LEVELS)
}

/// With buffers for far longer slabs than come, so that what a device needs to be checked is small beside them.
fn large_work() -> StagedSlabsWork {
    StagedSlabsWork::new(&layout(), &Pool::default(), 1 << 16, LEVELS)
}

/// What the session of a rung takes then.
fn session_bytes(rung: &str) -> Bytes {
    let ladder = large_work().ladder(&SlabStep::Flush);
    ladder.rungs().iter().find(|known| known.name == rung).unwrap().footprint.session
}

type Rungs = Arc<Mutex<Vec<&'static str>>>;

fn orchestrator(gpu: &Arc<VirtualDevice>) -> (Builder, Rungs) {
    let rungs = Rungs::default();
    let begun = Arc::clone(&rungs);
    let listener = move |events: &[plimsoll_core::event::Event]| {
        for event in events {
            if let What::Started { rung, .. } = event.what {
                begun.lock().unwrap().push(rung);
            }
        }
    };
    let cpu: Arc<dyn Device> = Arc::new(CpuDevice::builder().slots(2).build());
    let devices = [Arc::clone(gpu) as Arc<dyn Device>, cpu];
    (Orchestrator::builder().devices(devices).margin(1.0).listener(listener), rungs)
}

/// Every rung once for each time that work went there from another.
fn changes(rungs: &Rungs) -> Vec<&'static str> {
    let mut rungs = rungs.lock().unwrap().clone();
    rungs.dedup();
    rungs
}

#[test]
fn a_session_recalled_from_depth_3_to_2_to_1_to_the_cpu_loses_no_slab() {
    let gpu = Arc::new(VirtualDevice::gpu("v").build());
    let (builder, rungs) = orchestrator(&gpu);
    let orchestrator = builder.build();
    let recall = |at: usize, maker: &HeldLevels| match at {
        5 => assert!(maker.held.recall("gpu-2")),
        10 => assert!(maker.held.recall("gpu-1")),
        15 => assert!(maker.held.recall("cpu")),
        _ => {}
    };
    let out = through(HeldLevels::new(&orchestrator, work(), StageChoice::Auto), recall).unwrap();
    assert!(out == expected(), "slabs were lost, or their bytes changed");
    drop(orchestrator);
    assert_eq!(changes(&rungs), ["gpu-3", "gpu-2", "gpu-1", "cpu"]);
}

#[test]
fn as_deep_as_memory_allows() {
    let expected = expected();
    for (rung, bytes) in ["gpu-3", "gpu-2", "gpu-1"].map(|rung| (rung, session_bytes(rung))) {
        let gpu = Arc::new(VirtualDevice::gpu("v").memory(bytes).build());
        let (builder, rungs) = orchestrator(&gpu);
        let orchestrator = builder.build();
        let out = through(HeldLevels::new(&orchestrator, large_work(), StageChoice::Gpu), |_, _| {}).unwrap();
        assert!(out == expected, "{rung}: bytes changed");
        drop(orchestrator);
        assert_eq!(changes(&rungs), [rung]);
    }
    let gpu = Arc::new(VirtualDevice::gpu("v").memory(Bytes(session_bytes("gpu-1").0 - 4)).build());
    let (builder, rungs) = orchestrator(&gpu);
    let orchestrator = builder.build();
    let out = through(HeldLevels::new(&orchestrator, large_work(), StageChoice::Auto), |_, _| {}).unwrap();
    assert!(out == expected, "bytes changed");
    drop(orchestrator);
    assert_eq!(changes(&rungs), ["cpu"]);
}

#[test]
fn memory_taken_away_in_the_middle_costs_depth_and_then_the_gpu_but_no_byte() {
    let [three, two, one] = ["gpu-3", "gpu-2", "gpu-1"].map(session_bytes);
    let gpu = Arc::new(VirtualDevice::gpu("v").memory(three).build());
    let (builder, rungs) = orchestrator(&gpu);
    let orchestrator = builder.build();
    let (device, _) = orchestrator.devices().find(|(_, facts)| facts.name == "v").unwrap();
    let mut taken: Vec<Grant> = Vec::new();
    let mut take = |bytes: Bytes| {
        let request = GrantRequest::new(&[(device, bytes)]).priority(Priority::High);
        taken.push(orchestrator.grant(request).unwrap().wait(PATIENCE).expect("the session gives it back"));
    };
    let maker = HeldLevels::new(&orchestrator, large_work(), StageChoice::Auto);
    let before = |at: usize, _: &HeldLevels| match at {
        5 => take(three - two),
        10 => take(two - one),
        15 => take(one),
        _ => {}
    };
    let out = through(maker, before).unwrap();
    assert!(out == expected(), "slabs were lost, or their bytes changed");
    assert_eq!(changes(&rungs), ["gpu-3", "gpu-2", "gpu-1", "cpu"]);
    drop(taken);
}

#[test]
fn a_device_lost_at_any_launch_costs_no_slab() {
    let expected = expected();
    for launch in 1..=2 * SLABS as u64 {
        let gpu = Arc::new(VirtualDevice::gpu("v").fault(ScriptedFault::Lost { launch }).build());
        let orchestrator = orchestrator(&gpu).0.build();
        let out = through(HeldLevels::new(&orchestrator, work(), StageChoice::Auto), |_, _| {}).unwrap();
        assert!(out == expected, "lost at launch {launch}: slabs were lost, or their bytes changed");
    }
}

#[test]
fn memory_that_runs_out_in_a_session_costs_no_slab() {
    let expected = expected();
    for allocation in 1..=20 {
        let gpu = Arc::new(VirtualDevice::gpu("v").fault(ScriptedFault::OutOfMemory { allocation }).build());
        let orchestrator = orchestrator(&gpu).0.build();
        let out = through(HeldLevels::new(&orchestrator, work(), StageChoice::Auto), |_, _| {}).unwrap();
        assert!(out == expected, "allocation {allocation}: slabs were lost, or their bytes changed");
    }
}

#[test]
fn a_device_that_is_lost_again_and_again_is_left_for_the_cpu() {
    let lost = |at: u64| {
        let builder = VirtualDevice::gpu("v");
        let often = (at..400).step_by(5).fold(builder, |gpu, launch| gpu.fault(ScriptedFault::Lost { launch }));
        Arc::new(often.build())
    };
    let expected = expected();
    for at in 5..10 {
        let orchestrator = orchestrator(&lost(at)).0.build();
        let out = through(HeldLevels::new(&orchestrator, work(), StageChoice::Auto), |_, _| {}).unwrap();
        assert!(out == expected, "slabs were lost, or their bytes changed");
    }
}

/// The scheduler itself avoids a device that fails; whatever it does, sessions are not begun again without end.
#[test]
fn sessions_that_are_lost_too_often_are_the_cpus_or_an_error() {
    let gpu = Arc::new(VirtualDevice::gpu("v").build());
    let (builder, rungs) = orchestrator(&gpu);
    let orchestrator = builder.build();
    let lose = |maker: &mut HeldLevels| {
        maker.is_lost = true;
        maker.restart()
    };
    let mut maker = HeldLevels::new(&orchestrator, work(), StageChoice::Auto);
    (0..RESTARTS_MAX).for_each(|_| lose(&mut maker).unwrap());
    lose(&mut maker).unwrap();
    assert!(through(maker, |_, _| {}).unwrap() == expected(), "slabs were lost, or their bytes changed");
    for on in [StageChoice::Auto, StageChoice::Gpu] {
        let mut maker = HeldLevels::new(&orchestrator, work(), on);
        (0..RESTARTS_MAX + usize::from(on == StageChoice::Auto)).for_each(|_| lose(&mut maker).unwrap());
        let ended = lose(&mut maker).unwrap_err();
        assert!(matches!(ended, ArrayError::SessionsLost { .. }), "{ended}");
    }
    drop(orchestrator);
    assert_eq!(changes(&rungs), ["cpu"]);
}
