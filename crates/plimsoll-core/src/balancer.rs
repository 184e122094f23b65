//! Picks among devices that could take a task, each with the best rung that it could take it on. All rungs offered are
//! of equal quality, so the answer is the same wherever it goes.
//! Never looks at memory or health: only devices that may take the task are offered to it. Picking changes nothing;
//! `Balancer::count` does, once for each task that is placed. A task that follows its sequence is not picked for, but
//! counts where it is placed: the free tasks then go to the others, until the shares are right again.
//! Invariant: a device offered often enough is picked, measured or not.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::DeviceId;

/// How to pick.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// One after the other: the device whose last task was placed longest ago.
    RoundRobin,
    /// The device with the fewest tasks per slot.
    LeastLoaded,
    /// In proportion to fixed weights (slots, unless given).
    WeightedCapacity,
    /// In proportion to measured throughput. What an idle device takes over from another's queue comes on top.
    AdaptiveThroughput,
    /// The rung and device that finish first. Looks over all rungs at once.
    #[default]
    EarliestFinish,
}

impl Strategy {
    /// Every strategy.
    pub const ALL: [Self; 5] =
        [Self::RoundRobin, Self::LeastLoaded, Self::WeightedCapacity, Self::AdaptiveThroughput, Self::EarliestFinish];

    /// Whether the share of each device is fixed: a task then stays where it was placed, even if another device is idle
    /// or its own has no memory for it yet.
    pub(crate) fn keeps_shares(self) -> bool {
        matches!(self, Self::RoundRobin | Self::WeightedCapacity)
    }

    fn name(self) -> &'static str {
        match self {
            Self::RoundRobin => "round-robin",
            Self::LeastLoaded => "least-loaded",
            Self::WeightedCapacity => "weighted",
            Self::AdaptiveThroughput => "adaptive",
            Self::EarliestFinish => "earliest-finish",
        }
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A word that names no strategy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no strategy; use round-robin, least-loaded, weighted, adaptive or earliest-finish")]
pub struct ParseStrategyError(String);

impl FromStr for Strategy {
    type Err = ParseStrategyError;
    fn from_str(word: &str) -> Result<Self, ParseStrategyError> {
        Self::ALL
            .into_iter()
            .find(|strategy| strategy.name() == word)
            .ok_or_else(|| ParseStrategyError(word.to_owned()))
    }
}

/// A device that could take the task, and the best rung that it could take it on.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(crate) struct Offer {
    pub(crate) device: DeviceId,
    pub(crate) rung: usize,
    pub(crate) slots: usize,
    pub(crate) depth: usize,
    pub(crate) weight: Option<f64>,
    pub(crate) units_per_second: Option<f64>,
}

/// The devices that could take a task, in their order.
pub(crate) type Offers = Vec<Offer>;

type Shares = SmallVec<[f64; 8]>;

/// Credit is kept within this many tasks, so that what was placed without a choice is made up for, but not for ever.
const CREDIT_MAX: f64 = 4.0;

/// What picking remembers of each device.
#[derive(Clone, Debug, Default)]
pub(crate) struct Balancer {
    standings: Vec<Standing>,
    placed: u64,
}

#[derive(Copy, Clone, Debug, Default)]
struct Standing {
    /// The number of the task that was placed there last; 0 if none was.
    last: u64,
    /// Its share of all tasks placed, less those placed there.
    credit: f64,
}

impl Balancer {
    /// The index of the offer to take; `None` only if there are no offers.
    pub(crate) fn pick(&self, strategy: Strategy, offers: &[Offer]) -> Option<usize> {
        match strategy {
            Strategy::RoundRobin => {
                first_by(offers, |at| (self.standing(&offers[at]).last, offers[at].device), Ord::cmp)
            }
            Strategy::WeightedCapacity | Strategy::AdaptiveThroughput => {
                let shares = shares(strategy, offers);
                let due = |at: usize| -(self.standing(&offers[at]).credit + shares[at]);
                first_by(offers, due, f64::total_cmp)
            }
            Strategy::LeastLoaded | Strategy::EarliestFinish => {
                let load = |at: usize| (offers[at].depth as f64 / offers[at].slots.max(1) as f64, offers[at].rung);
                first_by(offers, load, |a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)))
            }
        }
    }

    /// A task was placed on the `at`-th of these: every offer gets its share of a task in credit, and the one that got
    /// the task pays for it. Over any run of picks each device is within one task of its share. A task that could go
    /// nowhere else takes nobody's turn: files that only the CPU reads keep no frames from it.
    pub(crate) fn count(&mut self, strategy: Strategy, offers: &[Offer], at: usize) {
        if offers.len() < 2 {
            return;
        }
        let shares = shares(strategy, offers);
        for (offer, share) in offers.iter().zip(shares) {
            self.standing_mut(offer.device).credit += share;
        }
        self.placed += 1;
        let last = self.placed;
        let taker = self.standing_mut(offers[at].device);
        taker.last = last;
        taker.credit -= 1.0;
        for offer in offers {
            let standing = self.standing_mut(offer.device);
            standing.credit = standing.credit.clamp(-CREDIT_MAX, CREDIT_MAX);
        }
    }

    fn standing(&self, offer: &Offer) -> Standing {
        self.standings.get(offer.device.index()).copied().unwrap_or_default()
    }

    fn standing_mut(&mut self, device: DeviceId) -> &mut Standing {
        if self.standings.len() <= device.index() {
            self.standings.resize(device.index() + 1, Standing::default());
        }
        &mut self.standings[device.index()]
    }
}

/// The index of the smallest, and of equals the first.
fn first_by<K>(offers: &[Offer], key: impl Fn(usize) -> K, order: impl Fn(&K, &K) -> Ordering) -> Option<usize> {
    (0..offers.len()).min_by(|&a, &b| order(&key(a), &key(b)))
}

/// What part of a task is due to each offer.
fn shares(strategy: Strategy, offers: &[Offer]) -> Shares {
    let weights: Shares = match strategy {
        Strategy::WeightedCapacity => offers.iter().map(|offer| offer.weight.unwrap_or(offer.slots as f64)).collect(),
        Strategy::AdaptiveThroughput => throughputs(offers),
        _ => offers.iter().map(|_| 1.0).collect(),
    };
    let sum: f64 = weights.iter().sum();
    weights.into_iter().map(|weight| weight / sum.max(f64::MIN_POSITIVE)).collect()
}

/// A device without figures counts as the mean of the others, so it gets its turn and its figures.
fn throughputs(offers: &[Offer]) -> Shares {
    let known: Shares = offers.iter().filter_map(|offer| offer.units_per_second).collect();
    let mean = if known.is_empty() { 1.0 } else { known.iter().sum::<f64>() / known.len() as f64 };
    offers.iter().map(|offer| offer.units_per_second.unwrap_or(mean) * offer.slots as f64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offer(device: u16) -> Offer {
        Offer { device: DeviceId(device), rung: 0, slots: 1, depth: 0, weight: None, units_per_second: None }
    }

    fn shares(strategy: Strategy, offers: &[Offer], picks: usize) -> Vec<usize> {
        let mut balancer = Balancer::default();
        let mut counts = vec![0; offers.len()];
        for _ in 0..picks {
            let at = balancer.pick(strategy, offers).unwrap();
            assert_eq!(balancer.pick(strategy, offers), Some(at), "picking changes nothing");
            balancer.count(strategy, offers, at);
            counts[at] += 1;
        }
        counts
    }

    #[test]
    fn round_robin_is_equal() {
        assert_eq!(shares(Strategy::RoundRobin, &[offer(0), offer(2), offer(5)], 31), [11, 10, 10]);
    }

    #[test]
    fn weights_are_kept_within_one() {
        let offers = [1.0, 2.0, 4.0].into_iter().enumerate();
        let offers: Vec<_> = offers.map(|(at, w)| Offer { weight: Some(w), ..offer(at as u16) }).collect();
        assert_eq!(shares(Strategy::WeightedCapacity, &offers, 70), [10, 20, 40]);
    }

    #[test]
    fn throughput_decides_and_the_unmeasured_get_tried() {
        let measured = Offer { units_per_second: Some(3.0), ..offer(0) };
        let faster = Offer { units_per_second: Some(9.0), ..offer(1) };
        assert_eq!(shares(Strategy::AdaptiveThroughput, &[measured, faster], 40), [10, 30]);
        assert_eq!(
            shares(Strategy::AdaptiveThroughput, &[measured, faster, offer(2)], 36),
            [6, 18, 12],
            "as the mean of the others"
        );
    }

    #[test]
    fn the_least_loaded_per_slot_is_picked() {
        let wide = Offer { slots: 4, depth: 6, ..offer(0) };
        let narrow = Offer { slots: 1, depth: 2, ..offer(1) };
        assert_eq!(Balancer::default().pick(Strategy::LeastLoaded, &[narrow, wide]), Some(1));
        assert_eq!(Balancer::default().pick(Strategy::LeastLoaded, &[]), None);
    }

    #[test]
    fn of_equal_loads_the_better_rung_is_picked() {
        let offers = [Offer { rung: 1, ..offer(0) }, offer(1)];
        assert_eq!(Balancer::default().pick(Strategy::LeastLoaded, &offers), Some(1));
    }

    #[test]
    fn a_task_for_one_device_only_takes_nobodys_turn() {
        for strategy in [Strategy::RoundRobin, Strategy::WeightedCapacity] {
            let offers = [offer(0), offer(1), offer(2)];
            let mut balancer = Balancer::default();
            let mut counts = [0; 3];
            for _ in 0..60 {
                balancer.count(strategy, &offers[..1], 0);
                let at = balancer.pick(strategy, &offers).unwrap();
                balancer.count(strategy, &offers, at);
                counts[at] += 1;
            }
            assert_eq!(counts, [20; 3], "{strategy}");
        }
    }

    /// Every other task is placed on the first device without a choice: the others share the rest, all of them.
    #[test]
    fn what_is_placed_without_a_choice_counts_where_it_is() {
        for strategy in [Strategy::RoundRobin, Strategy::WeightedCapacity] {
            let offers = [offer(0), offer(1), offer(2)];
            let mut balancer = Balancer::default();
            let mut counts = [0; 3];
            for _ in 0..60 {
                balancer.count(strategy, &offers, 0);
                let at = balancer.pick(strategy, &offers).unwrap();
                balancer.count(strategy, &offers, at);
                counts[at] += 1;
            }
            assert_eq!(counts, [0, 30, 30], "{strategy}");
            let first = (0..30).find(|_| {
                let at = balancer.pick(strategy, &offers).unwrap();
                balancer.count(strategy, &offers, at);
                at == 0
            });
            assert!(first.is_some(), "{strategy}: it is not made up for without end");
        }
    }

    #[test]
    fn strategies_have_one_name_each() {
        for strategy in Strategy::ALL {
            assert_eq!(strategy.to_string().parse(), Ok(strategy));
        }
        assert!("fastest".parse::<Strategy>().is_err());
    }
}
