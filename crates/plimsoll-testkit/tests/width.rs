//! How many slots of a device are used at once, in the simulator: a virtual device gets more done with several tasks at
//! once, up to a point that only it knows, and the core finds that point.

use plimsoll_core::event::What;
use plimsoll_core::scheduler::Config;
use plimsoll_core::{Bytes, DeviceId, DeviceKind, Footprint, Ladder, Moment, Nanos, Place, Rung, SequenceId, TaskSpec};
use plimsoll_testkit::sim::world::{Cost, VirtualGpu, World};

const DEVICE: DeviceId = DeviceId(0);
const FRAMES: usize = 1_500;
const FRAME: Nanos = Nanos::millis(10);

/// Plays a queue of equal frames on one device. Says how wide it was in the end, how often that changed, and how long
/// it all took.
fn play(at_once: &[f64], width_first: Option<usize>) -> (usize, usize, Nanos) {
    let mut gpu = VirtualGpu::new(DeviceKind::Gpu, at_once.len(), 1.0, Bytes::gib(1));
    gpu.at_once = at_once.to_vec();
    gpu.width_first = width_first;
    gpu.faults.jitter = 0.03;
    let mut world = World::new(Config::default(), vec![gpu], 11);
    let workload = world.scheduler().register("frame");
    let footprint = Footprint { session: Bytes::mib(8), ..Footprint::task(Bytes::mib(8)) };
    let ladder = Ladder::from(vec![Rung::new("gpu", Place::On(DeviceKind::Gpu), footprint)]);
    for _ in 0..FRAMES {
        let cost = Cost { gpu: FRAME, open: Nanos::millis(50), ..Cost::default() };
        world.arrive(Moment::START, TaskSpec::new(workload, ladder.clone(), 1_000), cost, Vec::new());
    }
    world.scheduler().listen(true);
    world.run().expect("nothing goes wrong here");
    let events = world.scheduler().drain_events();
    let widths = events.iter().filter(|event| matches!(event.what, What::WidthChanged { device: DEVICE, .. }));
    let (took, changes) = (world.makespan(), widths.count());
    (world.scheduler().width(DEVICE), changes, took)
}

#[test]
fn it_is_as_wide_as_helps_and_no_wider() {
    for (at_once, best) in
        [([1.0, 1.78, 1.79, 1.79], 2), ([1.0, 1.8, 2.4, 2.43], 3), ([1.0, 1.8, 2.4, 2.9], 4), ([1.0, 1.0, 1.0, 1.0], 1)]
    {
        let (width, changes, _) = play(&at_once, Some(2));
        assert_eq!(width, best, "{at_once:?}");
        assert!((2..=8).contains(&changes), "{at_once:?}: it tried, and then left it: {changes}");
    }
}

#[test]
fn measuring_pays() {
    let at_once = [1.0, 1.8, 2.4, 2.9];
    let (.., measured) = play(&at_once, Some(2));
    let best = FRAME.0 as f64 * 1.015 * FRAMES as f64 / 2.9;
    assert!(measured.0 as f64 <= best * 1.15, "{measured} where {best} ns would be best");
    let (width, changes, _) = play(&at_once, None);
    assert_eq!((width, changes), (4, 0), "who does not ask gets all slots");
}

/// A sequence does not stand in the way: what is measured is the device, not the task.
#[test]
fn frames_of_a_sequence_run_side_by_side() {
    let mut gpu = VirtualGpu::new(DeviceKind::Gpu, 2, 1.0, Bytes::gib(1));
    gpu.at_once = vec![1.0, 2.0];
    let mut world = World::new(Config::default(), vec![gpu], 1);
    let workload = world.scheduler().register("frame");
    let ladder = Ladder::from(vec![Rung::new("gpu", Place::Anywhere, Footprint::task(Bytes(1)))]);
    for _ in 0..10 {
        let spec = TaskSpec { sequence: Some(SequenceId(1)), ..TaskSpec::new(workload, ladder.clone(), 1) };
        world.arrive(Moment::START, spec, Cost { gpu: FRAME, ..Cost::default() }, Vec::new());
    }
    world.run().expect("nothing goes wrong here");
    assert_eq!(world.makespan(), Nanos::millis(50));
}
