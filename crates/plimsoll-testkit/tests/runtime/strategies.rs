//! What each strategy makes of devices of equal speed.

use plimsoll_core::SequenceId;
use plimsoll_core::balancer::Strategy;
use plimsoll_runtime::{Builder, Orchestrator, Task};

use crate::bounded::{Gate, Meeting, bounded, within};
use crate::scripted::{Piece, Scripted, as_device, virtual_gpu};

/// How many of these tasks each of three devices completes, when all are placed before any ends.
fn shares(tasks: u64, builder: impl FnOnce(Builder) -> Builder) -> Vec<u64> {
    let gpus = ["a", "b", "c"].map(|name| virtual_gpu(name, |gpu| gpu));
    let orchestrator = builder(Orchestrator::builder().devices(gpus.iter().map(as_device))).build();
    let work = orchestrator.register(Scripted::default());
    // Every device has begun, and every task is placed, before any ends.
    let all_placed = Meeting::of(gpus.len() + 1);
    let task = |n| {
        let all_placed = all_placed.clone();
        Task::new(Piece::new(n).on_run(move |_, _| {
            all_placed.attend();
            Ok(())
        }))
    };
    let tickets: Vec<_> = (0..tasks).map(|n| orchestrator.submit(&work, task(n)).unwrap()).collect();
    all_placed.attend();
    for (n, ticket) in (0..).zip(tickets) {
        assert_eq!(within(ticket, "a task").unwrap().output.value, n);
    }
    orchestrator.reports().iter().map(|report| report.figures.completed).collect()
}

#[test]
fn round_robin_is_equal() {
    bounded(|| {
        for _ in 0..5 {
            let shares = shares(100, |builder| builder.strategy(Strategy::RoundRobin));
            assert!(shares.iter().all(|&share| (33..=34).contains(&share)), "{shares:?}");
        }
    });
}

#[test]
fn weights_are_shares() {
    bounded(|| {
        for _ in 0..5 {
            let weighted = |builder: Builder| {
                builder.strategy(Strategy::WeightedCapacity).weight(0, 1.0).weight(1, 2.0).weight(2, 4.0)
            };
            let shares = shares(140, weighted);
            for (share, wanted) in shares.iter().zip([20_u64, 40, 80]) {
                assert!(share.abs_diff(wanted) <= 1, "{shares:?}");
            }
        }
    });
}

#[test]
fn every_strategy_finishes_and_uses_every_device() {
    bounded(|| {
        for strategy in Strategy::ALL {
            let shares = shares(60, |builder| builder.strategy(strategy));
            assert_eq!(shares.iter().sum::<u64>(), 60, "{strategy}");
            assert!(shares.iter().all(|&share| share > 0), "{strategy}: {shares:?}");
        }
    });
}

/// Frames of two films, handed in by turns: each film stays on one device.
#[test]
fn a_sequence_stays_on_one_device() {
    bounded(|| {
        for strategy in Strategy::ALL {
            let gpus = ["a", "b", "c"].map(|name| virtual_gpu(name, |gpu| gpu));
            let orchestrator = Orchestrator::builder().devices(gpus.iter().map(as_device)).strategy(strategy).build();
            let work = orchestrator.register(Scripted::default());
            let (entered, leave) = (Gate::default(), Gate::default());
            let mut films = [Vec::new(), Vec::new()];
            for n in 0..40 {
                let piece = if n < 2 { Piece::new(n).held(&entered, &leave) } else { Piece::new(n) };
                let film = (n % 2) as usize;
                let frame = Task::new(piece).sequence(SequenceId(film as u64));
                films[film].push(orchestrator.submit(&work, frame).unwrap());
            }
            leave.open();
            for film in films {
                let frames = film.into_iter().map(|frame| within(frame, "a frame").unwrap().report.device);
                let mut devices: Vec<_> = frames.collect();
                devices.dedup();
                assert_eq!(devices.len(), 1, "{strategy}: {devices:?}");
            }
        }
    });
}
