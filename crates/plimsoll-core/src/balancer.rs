//! Picks among devices that could take the same rung.
//! Never looks at memory or health: only devices that may take the task are offered to it.
//! Invariant: a device offered often enough is picked, measured or not.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::DeviceId;

/// How to pick.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// One after the other.
    RoundRobin,
    /// The device with the fewest tasks per slot.
    LeastLoaded,
    /// In proportion to fixed weights (slots, unless given).
    WeightedCapacity,
    /// In proportion to measured throughput.
    AdaptiveThroughput,
    /// The rung and device that finish first. Looks over all rungs at once.
    #[default]
    EarliestFinish,
}

impl Strategy {
    /// Every strategy.
    pub const ALL: [Self; 5] =
        [Self::RoundRobin, Self::LeastLoaded, Self::WeightedCapacity, Self::AdaptiveThroughput, Self::EarliestFinish];

    /// Whether the share of each device is fixed: a task then stays where it was placed, even if another device is idle.
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
pub struct UnknownStrategy(String);

impl FromStr for Strategy {
    type Err = UnknownStrategy;
    fn from_str(word: &str) -> Result<Self, UnknownStrategy> {
        Self::ALL.into_iter().find(|strategy| strategy.name() == word).ok_or_else(|| UnknownStrategy(word.to_owned()))
    }
}

/// A device that could take the task.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Offer {
    pub(crate) device: DeviceId,
    pub(crate) slots: usize,
    pub(crate) depth: usize,
    pub(crate) weight: Option<f64>,
    pub(crate) units_per_second: Option<f64>,
}

/// What picking remembers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Balancer {
    last: Option<DeviceId>,
    credit: Vec<f64>,
}

impl Balancer {
    /// The index of the offer to take; `None` only if there are no offers.
    pub(crate) fn pick(&mut self, strategy: Strategy, offers: &[Offer]) -> Option<usize> {
        match strategy {
            Strategy::RoundRobin => self.next_in_turn(offers),
            Strategy::WeightedCapacity => self.by_weight(offers, |offer| offer.weight.unwrap_or(offer.slots as f64)),
            Strategy::AdaptiveThroughput => self.by_throughput(offers),
            Strategy::LeastLoaded | Strategy::EarliestFinish => least_loaded(offers),
        }
    }

    fn next_in_turn(&mut self, offers: &[Offer]) -> Option<usize> {
        let after = |offer: &Offer| self.last.is_none_or(|last| offer.device > last);
        let at = offers.iter().position(after).or(if offers.is_empty() { None } else { Some(0) })?;
        self.last = Some(offers[at].device);
        Some(at)
    }

    /// A device without figures counts as the mean of the others, so it gets its turn and its figures.
    fn by_throughput(&mut self, offers: &[Offer]) -> Option<usize> {
        let known: Vec<f64> = offers.iter().filter_map(|offer| offer.units_per_second).collect();
        let mean = if known.is_empty() { 1.0 } else { known.iter().sum::<f64>() / known.len() as f64 };
        self.by_weight(offers, |offer| offer.units_per_second.unwrap_or(mean) * offer.slots as f64)
    }

    /// Each pick gives every offer its weight in credit and takes the sum from the one picked: over any run of picks
    /// each device is within one pick of its share.
    fn by_weight(&mut self, offers: &[Offer], weight: impl Fn(&Offer) -> f64) -> Option<usize> {
        let sum: f64 = offers.iter().map(&weight).sum();
        let mut best: Option<(usize, f64)> = None;
        for (at, offer) in offers.iter().enumerate() {
            let credit = self.credit_of(offer.device);
            *credit += weight(offer) / sum.max(f64::MIN_POSITIVE);
            if best.is_none_or(|(_, most)| *credit > most) {
                best = Some((at, *credit));
            }
        }
        let (at, _) = best?;
        *self.credit_of(offers[at].device) -= 1.0;
        Some(at)
    }

    fn credit_of(&mut self, device: DeviceId) -> &mut f64 {
        if self.credit.len() <= device.index() {
            self.credit.resize(device.index() + 1, 0.0);
        }
        &mut self.credit[device.index()]
    }
}

fn least_loaded(offers: &[Offer]) -> Option<usize> {
    let load = |offer: &Offer| offer.depth as f64 / offer.slots.max(1) as f64;
    (0..offers.len()).min_by(|&a, &b| load(&offers[a]).total_cmp(&load(&offers[b])))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offer(device: u16) -> Offer {
        Offer { device: DeviceId(device), slots: 1, depth: 0, weight: None, units_per_second: None }
    }

    fn shares(strategy: Strategy, offers: &[Offer], picks: usize) -> Vec<usize> {
        let mut balancer = Balancer::default();
        let mut counts = vec![0; offers.len()];
        (0..picks).for_each(|_| counts[balancer.pick(strategy, offers).unwrap()] += 1);
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
        assert!(shares(Strategy::AdaptiveThroughput, &[measured, faster, offer(2)], 40)[2] > 0);
    }

    #[test]
    fn the_least_loaded_per_slot_is_picked() {
        let wide = Offer { slots: 4, depth: 6, ..offer(0) };
        let narrow = Offer { slots: 1, depth: 2, ..offer(1) };
        assert_eq!(Balancer::default().pick(Strategy::LeastLoaded, &[narrow, wide]), Some(1));
        assert_eq!(Balancer::default().pick(Strategy::LeastLoaded, &[]), None);
    }

    #[test]
    fn strategies_have_one_name_each() {
        for strategy in Strategy::ALL {
            assert_eq!(strategy.to_string().parse(), Ok(strategy));
        }
        assert!("fastest".parse::<Strategy>().is_err());
    }
}
