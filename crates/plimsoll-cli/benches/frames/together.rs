//! Several devices together beside the sum of them, on virtual devices that take 40, 20 and 10 ms for a frame: simulated
//! speeds, but the real scheduler, threads, window and order.

use std::sync::Arc;
use std::time::{Duration, Instant};

use plimsoll::frames::{Distributor, DistributorOptions};
use plimsoll::image::Size;
use plimsoll::image::frames::{Chain, Colour, Format, Frame, Range};
use plimsoll::{Device, Orchestrator, Strategy};
use plimsoll_testkit::virtual_device::VirtualDevice;

const PACES_MS: [u64; 3] = [40, 20, 10];
const FRAMES: u64 = 700;
/// Frames that a device does alone to show how fast it really is here: sleeping takes longer on a busy machine.
const FRAMES_ALONE: u64 = 70;
/// What earliest-finish must reach of the sum.
const TARGET: f64 = 0.95;

/// Prints throughput and shares for each strategy.
pub(crate) fn show() {
    let alone = |pace: &u64| run(Strategy::EarliestFinish, &[*pace], FRAMES_ALONE).0;
    let sum: f64 = PACES_MS.iter().map(alone).sum();
    println!(
        "\n{FRAMES} frames on virtual devices of speeds 1, 2, 4 (simulated); each alone, they sum up to {sum:.0} frames/s"
    );
    println!("{:<16} {:>9} {:>12}  SHARES", "STRATEGY", "FRAMES/S", "OF THE SUM");
    for strategy in Strategy::ALL {
        let (rate, shares) = run(strategy, &PACES_MS, FRAMES);
        let of_sum = rate / sum;
        println!("{strategy:<16} {rate:>9.1} {:>11.1}%  {}", 100.0 * of_sum, shares.join(" "));
        if strategy == Strategy::EarliestFinish {
            let verdict = if of_sum >= TARGET { "reached" } else { "BELOW" };
            println!("aim: at least {:.0}% of the sum: {verdict}", 100.0 * TARGET);
        }
    }
}

fn run(strategy: Strategy, paces: &[u64], frames: u64) -> (f64, Vec<String>) {
    let device = |(at, pace): (usize, &u64)| {
        let device = VirtualDevice::gpu(&format!("virtual {at}")).pace(Duration::from_millis(*pace)).build();
        Arc::new(device) as Arc<dyn Device>
    };
    let devices: Vec<_> = paces.iter().enumerate().map(device).collect();
    let described = Orchestrator::builder().devices(devices).strategy(strategy);
    let described = described.weight(0, 1.0).weight(1, 2.0).weight(2, 4.0);
    let distributor = Distributor::new(described.build(), DistributorOptions::default());
    let chain: Chain = "crop=8x8".parse().expect("a chain");
    let format = Format::new(Size { width: 16, height: 16 }, 8, Colour::Mono(Range::Full)).expect("a format");
    let all = (0..frames).map(move |number| Frame::new(format, vec![number as u8; 256]));
    let start = Instant::now();
    let mut stream = distributor.stream(all, &chain);
    for (number, done) in (0..).zip(stream.by_ref()) {
        assert_eq!(done.expect("it works").number, number, "in order");
    }
    let rate = frames as f64 / start.elapsed().as_secs_f64();
    let shares = stream.stats().devices.iter().map(|device| device.completed.to_string()).collect();
    (rate, shares)
}
