//! What a plan of a set is told: of its tasks, of what is under way, and of the devices.

use super::plans::{OTHER, known_on_the_cpu, set, two_gpus};
use super::*;
use crate::scheduler::ahead::SIMULATIONS_AGAIN;

fn costs(scheduler: &mut Scheduler<Nothing>, spec: &TaskSpec) -> Vec<Option<Nanos>> {
    let outlook = scheduler.outlook(Moment(1), &set(spec, 4)).expect("it is worth a plan");
    outlook.tasks[0].costs.to_vec()
}

#[test]
fn a_gpu_that_nobody_has_tried_counts_as_twice_as_fast_and_as_a_guess() {
    let (mut scheduler, spec) = known_on_the_cpu();
    assert_eq!(costs(&mut scheduler, &spec), [Some(Nanos::millis(2)), Some(Nanos::millis(1))]);
    let outlook = scheduler.outlook(Moment(1), &set(&spec, 4)).expect("it is worth a plan");
    assert_eq!(outlook.guessed[0], crate::DeviceSet::only(GPU));
}

#[test]
fn what_nobody_has_tried_anywhere_takes_as_long_as_the_others() {
    let (mut scheduler, spec) = two_gpus(50);
    let known = TaskSpec { workload: scheduler.register("known"), ..spec };
    [GPU, OTHER].iter().for_each(|on| scheduler.teach(known.workload, "gpu", *on, 10, Nanos::millis(7)));
    let unknown = TaskSpec { workload: scheduler.register("unknown"), ..known.clone() };
    let mut tasks = set(&known, 4);
    tasks[3].spec = unknown;
    let outlook = scheduler.outlook(Moment(1), &tasks).expect("it is worth a plan");
    let typical = Some(Nanos::millis(7));
    assert_eq!(outlook.tasks[3].costs[..], [None, typical, typical]);
}

/// That something else is being tried there says nothing of this.
#[test]
fn what_another_workload_tries_is_tried_all_the_same() {
    let (mut scheduler, spec) = known_on_the_cpu();
    let other = TaskSpec { workload: scheduler.register("other"), ladder: on_gpu(10), ..spec.clone() };
    scheduler.submit(Moment(1), other, ()).unwrap();
    start(&mut scheduler, Moment(1), GPU.0);
    assert_eq!(costs(&mut scheduler, &spec)[1], Some(Nanos::millis(1)));
    let same = TaskSpec { devices: crate::DeviceSet::only(GPU), ..spec.clone() };
    scheduler.add_device(DeviceSpec::new(DeviceKind::Gpu, 1, Bytes(1_000)));
    scheduler.device_opened(Moment(1), OTHER);
    let tried = TaskSpec { devices: crate::DeviceSet::only(OTHER), ..same };
    scheduler.submit(Moment(1), tried, ()).unwrap();
    start(&mut scheduler, Moment(1), OTHER.0);
    assert_eq!(costs(&mut scheduler, &spec)[1], None, "whatever comes of it is waited for");
}

/// What a lower quality takes elsewhere says nothing of the better.
#[test]
fn what_is_known_of_a_device_of_its_kind_counts_for_the_same_quality_only() {
    let (mut scheduler, spec) = two_gpus(50);
    let half = crate::Quality::new(0.5);
    let rung = |name| Rung::new(name, Place::On(DeviceKind::Gpu), Footprint::task(Bytes(10)));
    let ladder = Ladder::from(vec![rung("good"), rung("cheap").with_quality(half)]);
    let spec = TaskSpec { workload: scheduler.register("other"), ladder, quality_min: half, ..spec };
    scheduler.teach(spec.workload, "cheap", OTHER, 10, Nanos::millis(1));
    let outlook = scheduler.outlook(Moment(1), &set(&spec, 4)).expect("it is worth a plan");
    assert!(outlook.guessed[0].contains(GPU));
}

#[test]
fn of_rungs_that_all_have_to_wait_for_memory_the_cheapest_counts() {
    let (mut scheduler, spec) = two_gpus(50);
    let only = crate::DeviceSet::only(GPU);
    scheduler.submit(Moment(1), TaskSpec { devices: only, ladder: on_gpu(700), ..spec.clone() }, ()).unwrap();
    start(&mut scheduler, Moment(1), GPU.0);
    let rung = |name, bytes| Rung::new(name, Place::On(DeviceKind::Gpu), Footprint::task(Bytes(bytes)));
    let ladder = Ladder::from(vec![rung("slow", 500), rung("quick", 400)]);
    scheduler.teach(spec.workload, "slow", GPU, 10, Nanos::millis(4));
    scheduler.teach(spec.workload, "quick", GPU, 10, Nanos::millis(1));
    let spec = TaskSpec { devices: only, ladder, ..spec };
    assert_eq!(costs(&mut scheduler, &spec)[1], Some(Nanos::millis(1)));
}

/// Work of others that is queued comes first, shared by the slots; what is under way of the set itself is waited for.
#[test]
fn a_new_plan_counts_with_what_is_queued_and_what_is_under_way() {
    let (mut scheduler, spec) = known_on_the_cpu();
    let here = TaskSpec { devices: crate::DeviceSet::only(CPU), ..spec.clone() };
    let long = TaskSpec { workload: scheduler.register("long"), ..here.clone() };
    scheduler.teach(long.workload, "any", CPU, 10, Nanos::millis(6));
    let mut tasks = set(&here, 6);
    tasks[0].spec = long;
    tasks[5].after.extend([0, 1]);
    scheduler.submit_all(Moment::START, tasks).expect("there is space");
    let runs = [(); 2].map(|()| start(&mut scheduler, Moment::START, CPU.0));
    assert_eq!(runs.iter().map(|run| run.estimate.run).max(), Some(Nanos::millis(6)), "both that one waits for run");
    for _ in 0..2 {
        scheduler.submit(Moment::START, here.clone(), ()).unwrap();
    }
    scheduler.more_is_known();
    let outlook = scheduler.next_outlook(Moment::START).expect("it is due");
    assert_eq!(outlook.tasks.iter().map(|task| task.not_before).max(), Some(Nanos::millis(6)));
    assert_eq!(outlook.devices[0].free_at, Nanos::millis(2), "two of 2 ms on two slots");
    let mut busy = outlook.devices[0].busy.clone();
    busy.sort_unstable();
    assert_eq!(busy, [Nanos::millis(4), Nanos::millis(8)], "what runs comes before what is queued");
    assert_eq!(outlook.budget.simulations, 50.min(SIMULATIONS_AGAIN));
}

#[test]
fn a_gpu_that_nobody_has_tried_is_compared_with_where_it_is_fastest() {
    let (mut scheduler, spec) = known_on_the_cpu();
    let slow = scheduler.add_device(DeviceSpec::new(DeviceKind::Cpu, 1, Bytes(1_000)));
    scheduler.device_opened(Moment::START, slow);
    scheduler.teach(spec.workload, "any", slow, 10, Nanos::millis(8));
    let known = [2, 1, 8].map(|ms| Some(Nanos::millis(ms)));
    assert_eq!(costs(&mut scheduler, &spec), known);
}
