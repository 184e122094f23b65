//! Devices of speeds 1, 2 and 4 on real threads: the faster one is, the more frames it gets.

use std::sync::Arc;
use std::time::Duration;

use plimsoll::frames::{Distributor, DistributorOptions, FrameStats};
use plimsoll::image::frames::Chain;
use plimsoll::{Device, Orchestrator, Strategy};
use plimsoll_testkit::virtual_device::VirtualDevice;

use crate::film::{endless_luck, film};

const FRAMES: u64 = 350;
/// How long a frame takes on each device.
const PACES: [Duration; 3] = [Duration::from_millis(40), Duration::from_millis(20), Duration::from_millis(10)];
/// How much more than a device of half its speed a device gets, at least. `testkit tests/stream.rs` holds the scheduler to
/// shares within 10 % where time is simulated; here threads share a machine that does other things too, and the benchmark
/// `frames` prints how close it comes.
const MORE_MIN: f64 = 1.5;

fn through(strategy: Strategy) -> FrameStats {
    let device = |(at, pace): (usize, Duration)| {
        Arc::new(VirtualDevice::gpu(&format!("virtual {at}")).pace(pace).build()) as Arc<dyn Device>
    };
    let described = Orchestrator::builder().devices(PACES.into_iter().enumerate().map(device)).strategy(strategy);
    let distributor = Distributor::new(described.build(), DistributorOptions::default());
    let chain: Chain = "crop=8x8".parse().expect("a chain");
    let mut stream = distributor.stream(endless_luck(film(FRAMES)), &chain);
    assert!(stream.all(|done| done.is_ok()));
    stream.stats()
}

#[test]
fn each_device_gets_frames_by_its_speed() {
    for strategy in [Strategy::EarliestFinish, Strategy::AdaptiveThroughput] {
        let stats = through(strategy);
        let shares: Vec<u64> = stats.devices.iter().map(|device| device.completed).collect();
        assert_eq!(shares.iter().sum::<u64>(), FRAMES, "{strategy}: {shares:?}");
        for pair in shares.windows(2) {
            assert!(pair[1] as f64 >= MORE_MIN * pair[0] as f64, "{strategy}: {shares:?}");
        }
    }
}
