//! A stream of frames on devices of speeds 1, 2 and 4, out in order. **Simulated**: virtual devices on a virtual clock,
//! driven by the real core. What it shows is what the strategies promise, not how fast any machine is.

use plimsoll_core::DeviceId;
use plimsoll_core::balancer::Strategy;
use plimsoll_testkit::sim::stream::{Played, Stream};

const SPEEDS: [f64; 3] = [1.0, 2.0, 4.0];
const FRAMES: usize = 1_400;

fn play(strategy: Strategy) -> Played {
    let played = Stream::new(strategy, FRAMES, &SPEEDS).play().expect("every frame ends once, with a result");
    assert_eq!(played.shares.iter().sum::<usize>(), FRAMES);
    println!("{strategy}: {:?}, {:.3} of 7, window {}", played.shares, played.speed(), played.window_max);
    played
}

/// Each share is in proportion to these, within this part of itself.
fn assert_shares(played: &Played, wanted: &[f64], tolerance: f64) {
    let sum: f64 = wanted.iter().sum();
    for (&share, wanted) in played.shares.iter().zip(wanted) {
        let wanted = FRAMES as f64 * wanted / sum;
        assert!((share as f64 - wanted).abs() <= wanted * tolerance, "{:?}: {share} for {wanted}", played.shares);
    }
}

#[test]
fn round_robin_is_equal() {
    let shares = play(Strategy::RoundRobin).shares;
    let (least, most) = (shares.iter().min().unwrap(), shares.iter().max().unwrap());
    assert!(most - least <= 1, "{shares:?}");
}

#[test]
fn weighted_is_as_weighted() {
    let played = play(Strategy::WeightedCapacity);
    assert_shares(&played, &SPEEDS, 0.05);
    let [a, b, c] = [4.0, 2.0, 1.0];
    let mut reversed = Stream::new(Strategy::WeightedCapacity, FRAMES, &SPEEDS);
    reversed.devices.iter_mut().zip([a, b, c]).for_each(|(device, weight)| device.weight = Some(weight));
    assert_shares(&reversed.play().unwrap(), &[a, b, c], 0.05);
}

#[test]
fn what_is_measured_decides_and_nothing_is_left_idle() {
    for strategy in [Strategy::AdaptiveThroughput, Strategy::EarliestFinish] {
        let played = play(strategy);
        assert_shares(&played, &SPEEDS, 0.10);
        assert!(played.speed() >= 0.95 * 7.0, "{strategy}: {}", played.speed());
    }
}

/// Frames that take up to a fifth longer than they should, now and then, change little.
#[test]
fn jitter_costs_little() {
    const JITTER: f64 = 0.2;
    for strategy in [Strategy::AdaptiveThroughput, Strategy::EarliestFinish] {
        let mut stream = Stream::new(strategy, FRAMES, &SPEEDS);
        stream.devices.iter_mut().for_each(|device| device.faults.jitter = JITTER);
        let played = stream.play().expect("every frame ends once, with a result");
        assert_shares(&played, &SPEEDS, 0.10);
        let sum = 7.0 / (1.0 + JITTER / 2.0);
        assert!(played.speed() >= 0.95 * sum, "{strategy}: {} of {sum}", played.speed());
    }
}

#[test]
fn the_least_loaded_keeps_everybody_busy() {
    let played = play(Strategy::LeastLoaded);
    let busy: Vec<f64> = played.reports.iter().map(|report| report.busy_share).collect();
    assert!(busy.iter().all(|&busy| busy >= 0.9), "{busy:?}");
}

#[test]
fn a_device_lost_at_frame_50_of_100_loses_and_doubles_nothing() {
    for strategy in Strategy::ALL {
        let mut stream = Stream::new(strategy, 100, &[1.0, 1.0]);
        stream.lose = Some((50, DeviceId(0)));
        let played = stream.play().expect("every frame ends once, with a result");
        assert_eq!(played.shares.iter().sum::<usize>(), 100, "{strategy}");
        let [lost, other] = &played.reports[..] else { panic!("two devices") };
        assert!(lost.failed > 0 && lost.completed + other.completed == 100, "{strategy}: {:?}", played.reports);
        assert_eq!(lost.retried + other.retried, lost.failed, "{strategy}: each goes elsewhere, once");
    }
}

/// With several slots each and copies that overlap, the width is measured while the stream runs.
#[test]
fn a_stream_is_enough_to_measure_widths() {
    let mut stream = Stream::new(Strategy::EarliestFinish, 4_000, &SPEEDS);
    for gpu in &mut stream.devices {
        (gpu.slots, gpu.width_first, gpu.at_once) = (4, Some(2), vec![1.0, 1.8, 2.4, 2.42]);
    }
    let played = stream.play().expect("every frame ends once, with a result");
    let widths: Vec<usize> = played.reports.iter().map(|report| report.slots_used).collect();
    assert_eq!(widths, [3, 3, 3], "{:?}", played.shares);
    assert!(played.speed() >= 0.9 * 7.0 * 2.4, "{}", played.speed());
}

/// A GPU that is slow for a while gets less meanwhile, and its share back afterwards.
#[test]
fn a_device_that_was_slow_for_a_while_gets_its_share_back() {
    const FAST: DeviceId = DeviceId(2);
    for strategy in [Strategy::AdaptiveThroughput, Strategy::EarliestFinish] {
        let mut stream = Stream::new(strategy, 3 * FRAMES, &SPEEDS);
        stream.slow = Some((FRAMES..2 * FRAMES, FAST, 0.2));
        let played = stream.play().expect("every frame ends once, with a result");
        let share = |frames: std::ops::Range<usize>| {
            played.done_by[frames.clone()].iter().filter(|by| **by == FAST).count() as f64 / frames.len() as f64
        };
        let [before, slow, after] =
            [share(0..FRAMES), share(FRAMES + 200..2 * FRAMES), share(2 * FRAMES + 400..3 * FRAMES)];
        println!("{strategy}: {before:.3} before, {slow:.3} while slow, {after:.3} after");
        assert!(slow < 0.25 * before, "{strategy}: {slow} of {before} while it was slow");
        assert!(after > 0.9 * before, "{strategy}: {after} of {before} after it was slow");
    }
}
