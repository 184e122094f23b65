//! Which devices a strategy shares tasks out among.

use super::*;
use crate::{Quality, Refusal};

#[test]
fn the_cpu_gets_its_share_on_a_rung_of_its_own() {
    let mut scheduler = a_box(Strategy::RoundRobin, 2);
    let spec = spec(&mut scheduler, gpu_or_cpu());
    for _ in 0..9 {
        scheduler.submit(Moment::START, spec.clone(), ()).unwrap();
    }
    assert_eq!(depths(&scheduler), [3, 3, 3]);
}

#[test]
fn no_strategy_trades_quality_for_a_share() {
    for strategy in Strategy::ALL.into_iter().filter(|strategy| *strategy != Strategy::EarliestFinish) {
        let mut scheduler = a_box(strategy, 2);
        let ladder = gpu_or_cpu();
        let (gpu, cpu) = (ladder.rungs()[0].clone(), ladder.rungs()[1].clone());
        let ladder = Ladder::from(vec![gpu, cpu.with_quality(Quality::new(0.5))]);
        let spec = TaskSpec { quality_min: Quality::new(0.5), ..spec(&mut scheduler, ladder) };
        for _ in 0..8 {
            scheduler.submit(Moment::START, spec.clone(), ()).unwrap();
        }
        assert_eq!(depths(&scheduler), [0, 4, 4], "{strategy}");
    }
}

/// Nobody would be in time: then the best quality is as late as any.
#[test]
fn nor_is_quality_traded_when_all_would_be_too_late() {
    let mut scheduler = a_box(Strategy::RoundRobin, 2);
    let (ladder, half) = (gpu_or_cpu(), Quality::new(0.5));
    let (gpu, cpu) = (ladder.rungs()[0].clone(), ladder.rungs()[1].clone().with_quality(half));
    let soon = Some(Moment(1));
    let spec = TaskSpec { quality_min: half, deadline: soon, ..spec(&mut scheduler, Ladder::from(vec![gpu, cpu])) };
    for _ in 0..8 {
        scheduler.submit(Moment::START, spec.clone(), ()).unwrap();
    }
    assert_eq!(depths(&scheduler), [0, 4, 4]);
}

/// The order of a ladder's rungs says nothing of whose turn it is.
#[test]
fn of_equal_devices_the_first_begins() {
    let mut scheduler = a_box(Strategy::WeightedCapacity, 1);
    for device in [CPU, GPU] {
        scheduler.device_mut(device).spec.weight = Some(1.0);
    }
    let spec = spec(&mut scheduler, gpu_or_cpu());
    scheduler.submit(Moment::START, spec, ()).unwrap();
    assert_eq!(depths(&scheduler), [1, 0]);
}

#[test]
fn a_device_is_offered_with_its_best_rung_that_fits() {
    let mut scheduler = a_box(Strategy::RoundRobin, 2);
    let rung = |name, bytes| Rung::new(name, Place::On(DeviceKind::Gpu), Footprint::task(Bytes(bytes)));
    let spec = spec(&mut scheduler, Ladder::from(vec![rung("full", 700), rung("strip", 100)]));
    // Less of the first GPU is left than the best rung needs.
    scheduler.device_mut(DeviceId(1)).spec.margin.limit = Some(Bytes(500));
    let memory = scheduler.device(DeviceId(1)).memory;
    scheduler.set_memory(Moment(1), DeviceId(1), memory);
    for _ in 0..4 {
        scheduler.submit(Moment(2), spec.clone(), ()).unwrap();
    }
    assert_eq!(depths(&scheduler), [0, 2, 2]);
    let started = |device| scheduler.take(Moment(3), DeviceId(device)).map(|assignment| assignment.rung);
    assert_eq!([1, 2].map(started), [Some(1), Some(0)]);
}

/// What `why` says is what happens next, and asking changes nothing.
#[test]
fn why_foretells_the_choice() {
    for strategy in Strategy::ALL {
        let mut scheduler = a_box(strategy, 2);
        let spec = spec(&mut scheduler, gpu_or_cpu());
        for _ in 0..12 {
            let before = depths(&scheduler);
            let candidates = scheduler.why(Moment::START, &spec);
            let foretold = candidates.iter().find(|candidate| candidate.refusal.is_none()).unwrap().device;
            let others = candidates.iter().filter(|candidate| candidate.refusal == Some(Refusal::OtherDevicePicked));
            assert_eq!(others.count(), if strategy == Strategy::EarliestFinish { 0 } else { 2 }, "{strategy}");
            scheduler.submit(Moment::START, spec.clone(), ()).unwrap();
            let grew = depths(&scheduler).iter().zip(before).position(|(now, before)| *now > before).unwrap();
            assert_eq!(foretold, DeviceId(grew as u16), "{strategy}");
        }
    }
}
