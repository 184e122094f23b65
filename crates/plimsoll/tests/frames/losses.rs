//! Devices that go away while frames are on them.

use std::sync::Arc;
use std::time::Duration;

use plimsoll::frames::{Distributor, DistributorOptions, FrameError};
use plimsoll::image::frames::Chain;
use plimsoll::{Device, Orchestrator, Strategy};
use plimsoll_testkit::virtual_device::{ScriptedFault, VirtualDevice};

use crate::devices::{cpu, distributor, logical_gpus};
use crate::film::{difference, endless_luck, film};

fn chain() -> Chain {
    "crop=40x30+2+4,blur=1.5".parse().expect("a chain")
}

#[test]
fn a_gpu_lost_at_frame_50_of_100_costs_no_frame() {
    let right = distributor(vec![cpu(1)]).distribute(film(100), &chain()).expect("all frames");
    let gpus = logical_gpus(2);
    let devices: Vec<Arc<dyn Device>> = gpus.iter().map(|gpu| Arc::clone(gpu) as Arc<dyn Device>).collect();
    // In turn, so that the one that is lost has frames.
    let described = Orchestrator::builder().devices(devices).strategy(Strategy::RoundRobin);
    let distributor = Distributor::new(described.build(), DistributorOptions::default());
    let mut stream = distributor.stream(endless_luck(film(100)), &chain());
    let mut seen = 0;
    for (number, done) in (0..).zip(&mut stream) {
        let done = done.expect("no frame is lost with the device");
        assert_eq!(done.number, number, "out of order or doubled");
        assert!(difference(&done.frame, &right[number as usize].frame) <= 1, "frame {number} is wrong");
        if number == 49 {
            gpus[1].lose();
        }
        seen += 1;
    }
    assert_eq!(seen, 100);
    let stats = stream.stats();
    let failed: u64 = stats.devices.iter().map(|device| device.failed).sum();
    let retried: u64 = stats.devices.iter().map(|device| device.retried).sum();
    assert!(failed > 0 && retried > 0, "the loss went unnoticed: {stats:?}");
}

#[test]
fn a_frame_that_no_device_can_give_ends_the_stream_after_those_before_it() {
    let gone = VirtualDevice::gpu("flaky");
    let gone = (1..100).fold(gone, |gone, reopening| gone.fault(ScriptedFault::StaysAway { reopening })).build();
    let gone = Arc::new(gone);
    let orchestrator = Orchestrator::builder().device_wait_max(Duration::from_millis(50));
    let orchestrator = orchestrator.device(Arc::clone(&gone) as Arc<dyn Device>).build();
    let distributor = Distributor::new(orchestrator, DistributorOptions::default());
    let mut stream = distributor.stream(endless_luck(film(100)), &chain());
    for number in 0..10 {
        assert_eq!(stream.next().expect("more to come").expect("well so far").number, number);
    }
    gone.lose();
    let rest: Vec<_> = stream.by_ref().collect();
    let (last, before) = rest.split_last().expect("an error at least");
    assert!(before.iter().all(Result::is_ok));
    let error = last.as_ref().expect_err("nobody is left to give the frame");
    assert!(matches!(error, FrameError::Failed { .. }), "{error}");
    assert_eq!(error.number(), 10 + before.len() as u64);
    assert!(stream.next().is_none());
}
