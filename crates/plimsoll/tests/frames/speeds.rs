//! Devices of speeds 1, 2 and 4 on real threads: each gets frames by its speed, and none is idle while there are some.

use std::sync::Arc;
use std::time::Duration;

use plimsoll::frames::{Distributor, DistributorOptions, FrameStats};
use plimsoll::image::frames::Chain;
use plimsoll::{Device, Strategy};
use plimsoll_testkit::virtual_device::VirtualDevice;

use crate::film::{endless_luck, film};

const FRAMES: u64 = 350;
/// How long a frame takes on each device.
const PACES: [Duration; 3] = [Duration::from_millis(40), Duration::from_millis(20), Duration::from_millis(10)];
/// Frames per second of all three together.
const SUM: f64 = 25.0 + 50.0 + 100.0;
/// Of the sum, that must come out on real threads of a machine that does other things too; `testkit tests/stream.rs` holds
/// the scheduler itself to 95 % where time is simulated.
const SHARE_MIN: f64 = 0.90;

fn through(strategy: Strategy) -> FrameStats {
    let device = |(at, pace): (usize, Duration)| {
        Arc::new(VirtualDevice::gpu(&format!("virtual {at}")).pace(pace).build()) as Arc<dyn Device>
    };
    let devices = PACES.into_iter().enumerate().map(device).collect();
    let options = DistributorOptions { strategy, ..DistributorOptions::default() };
    let distributor = Distributor::new(devices, options).expect("there are devices");
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
        for (share, promised) in shares.iter().zip([50.0, 100.0, 200.0]) {
            assert!((*share as f64 - promised).abs() <= 0.1 * promised, "{strategy}: {shares:?}");
        }
        let rate = stats.frames_per_second;
        assert!(rate >= SHARE_MIN * SUM, "{strategy}: {rate} frames per second of {SUM}");
    }
}
