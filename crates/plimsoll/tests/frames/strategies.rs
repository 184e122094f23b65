//! Four logical GPUs and the CPU through every strategy: in order, right, and shared out as promised.

use std::sync::Arc;

use plimsoll::frames::{Distributor, DistributorOptions, FrameStats};
use plimsoll::image::frames::{Chain, Frame};
use plimsoll::{Builder, Device, Orchestrator, Strategy};

use crate::devices::{cpu, distributor, logical_gpus};
use crate::film::{difference, endless_luck, film};

const FRAMES: u64 = 200;
const WEIGHTS: [f64; 5] = [4.0, 1.0, 2.0, 1.0, 2.0];

fn chain() -> Chain {
    "crop=40x30+2+4,blur=1.5".parse().expect("a chain")
}

fn on_one_device() -> Vec<Frame> {
    let done = distributor(vec![cpu(1)]).distribute(film(FRAMES), &chain()).expect("all frames");
    done.into_iter().map(|done| done.frame).collect()
}

fn through(described: Builder, options: DistributorOptions) -> (Vec<Frame>, FrameStats) {
    let distributor = Distributor::new(described.build(), options);
    let mut stream = distributor.stream(endless_luck(film(FRAMES)), &chain());
    let frames = (0..).zip(&mut stream).map(|(number, done)| {
        let done = done.expect("no frame fails");
        assert_eq!(done.number, number, "out of order");
        done.frame
    });
    let frames = frames.collect();
    (frames, stream.stats())
}

fn four_gpus_and_a_cpu() -> Vec<Arc<dyn Device>> {
    let gpus = logical_gpus(4).into_iter().map(|gpu| gpu as Arc<dyn Device>);
    std::iter::once(cpu(1)).chain(gpus).collect()
}

#[test]
fn every_strategy_gives_every_frame_in_order_and_keeps_its_promise() {
    let (devices, right) = (four_gpus_and_a_cpu(), on_one_device());
    for strategy in Strategy::ALL {
        let described = Orchestrator::builder().devices(devices.clone()).strategy(strategy);
        let described =
            WEIGHTS.into_iter().enumerate().fold(described, |described, (at, weight)| described.weight(at, weight));
        let (frames, stats) = through(described, DistributorOptions::default());
        assert_eq!(frames.len(), right.len(), "{strategy}");
        let worst = frames.iter().zip(&right).map(|(a, b)| difference(a, b)).max();
        assert!(worst <= Some(1), "{strategy}: codes differ by {worst:?}");
        let shares: Vec<u64> = stats.devices.iter().map(|device| device.completed).collect();
        assert_eq!(shares.iter().sum::<u64>(), FRAMES, "{strategy}: {shares:?}");
        promise(strategy, &shares);
    }
}

fn promise(strategy: Strategy, shares: &[u64]) {
    let (least, most) = (shares.iter().min().unwrap(), shares.iter().max().unwrap());
    match strategy {
        Strategy::RoundRobin => assert!(most - least <= 1, "{shares:?}"),
        Strategy::WeightedCapacity => {
            let sum: f64 = WEIGHTS.iter().sum();
            for (share, weight) in shares.iter().zip(WEIGHTS) {
                let promised = FRAMES as f64 * weight / sum;
                assert!((*share as f64 - promised).abs() <= 0.05 * promised, "{promised} promised: {shares:?}");
            }
        }
        _ => assert!(*most < FRAMES, "one device did all: {shares:?}"),
    }
}

#[test]
fn on_the_cpu_rung_every_strategy_gives_the_same_bytes() {
    let (devices, right) = (four_gpus_and_a_cpu(), on_one_device());
    for strategy in Strategy::ALL {
        let described = Orchestrator::builder().devices(devices.clone()).strategy(strategy);
        let options = DistributorOptions { rung: Some("cpu"), ..DistributorOptions::default() };
        assert!(through(described, options).0 == right, "{strategy}");
    }
}
