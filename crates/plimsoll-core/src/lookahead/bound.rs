//! What no plan can beat: the work shared out in fractions, and the longest chain.
//! Never underestimates what a plan may reach: integers throughout, no rounding in the wrong direction.
//! Invariant: `lower_bound <= makespan` of every plan (`tests::no_plan_beats_the_bound`).

use super::affordable;
use super::problem::{NEVER, Problem};

/// What a nanosecond on each class is worth: the multipliers of the fractional share-out.
///
/// Whatever the prices, a task pays at least its cheapest price somewhere, and a class that works until `T` earns at
/// most its price × slots × `T`; so the sum of cheapest prices bounds `T` from below. The best prices make it tight,
/// and tell the list scheduler which tasks belong where.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Prices(pub(super) Vec<u64>);

/// The lower bound of a problem, and the prices behind it.
pub(super) struct Bound {
    pub(super) makespan: u64,
    pub(super) prices: Prices,
}

/// Rounds of adjustment where more than two classes compete. For 250 tasks on 3, 4 and 6 classes 32 rounds end within
/// 0.01 % of where 2000 end, and take 0.2 to 0.4 ms.
const ROUNDS: u32 = 32;

/// Price of an average class in those rounds: 20 bits leave room for prices far apart.
const UNIT: f64 = (1 << 20) as f64;

impl Bound {
    /// Work shared out in fractions, or the longest chain with each task where it is fastest, whichever is later.
    pub(super) fn new(problem: &Problem) -> Self {
        let (prices, area) = prices(problem);
        Self { makespan: area.max(longest_chain(problem)), prices }
    }
}

fn longest_chain(problem: &Problem) -> u64 {
    let first_free = problem.slots.iter().map(|slot| slot.free_at).min().unwrap_or(0);
    let chain = |task: usize| problem.least(task).saturating_add(problem.tail[task]);
    let longest = (0..problem.len).map(chain).max().map_or(0, |chain| chain.saturating_add(first_free));
    let delayed = problem.delayed.iter().map(|&(task, until)| chain(task as usize).saturating_add(until));
    delayed.fold(longest, u64::max)
}

/// The best prices found, and the bound they give.
fn prices(problem: &Problem) -> (Prices, u64) {
    let candidates = match problem.classes {
        0 | 1 => vec![Prices(vec![1; problem.classes])],
        2 => two_classes(problem),
        _ => many_classes(problem),
    };
    let priced = candidates.into_iter().map(|prices| (area(problem, &prices), prices));
    let best = priced.max_by_key(|&(bound, _)| bound);
    best.map_or((Prices(Vec::new()), 0), |(bound, prices)| (prices, bound))
}

/// The earliest moment by which the slots, at these prices, can have earned what the tasks pay.
fn area(problem: &Problem, prices: &Prices) -> u64 {
    let mut owed = (0..problem.len).map(|task| cheapest(problem, prices, task)).fold(0, u128::saturating_add);
    let mut slots: Vec<_> = problem.slots.iter().map(|slot| (slot.free_at, prices.0[slot.class])).collect();
    slots.sort_unstable();
    let mut rate = 0;
    let mut end = 0;
    for (place, &(free_at, price)) in slots.iter().enumerate() {
        rate += u128::from(price);
        owed = owed.saturating_add(u128::from(price) * u128::from(free_at));
        end = if rate > 0 { owed.div_ceil(rate) } else { u128::from(free_at) };
        let earned = rate > 0 || owed == 0;
        if earned && slots.get(place + 1).is_some_and(|&(next, _)| end <= u128::from(next)) {
            break;
        }
    }
    u64::try_from(end).unwrap_or(u64::MAX)
}

fn cheapest(problem: &Problem, prices: &Prices, task: usize) -> u128 {
    let pays = problem.costs(task).iter().zip(&prices.0).filter(|&(&cost, _)| cost != NEVER);
    pays.map(|(&cost, &price)| u128::from(cost) * u128::from(price)).min().unwrap_or(0)
}

/// With two classes the best price is the cost ratio of some task: sort by ratio, sum from both ends, take the best.
/// The sums are floating point and only pick the price; `area` then computes the bound exactly.
fn two_classes(problem: &Problem) -> Vec<Prices> {
    let mut both: Vec<(f64, u64, u64)> = Vec::with_capacity(problem.len);
    let (mut left, mut right) = (0.0, 0.0);
    for task in 0..problem.len {
        match *problem.costs(task) {
            [a, NEVER] => left += a as f64,
            [NEVER, b] => right += b as f64,
            [a, b] => {
                right += b as f64;
                both.push((a as f64 / b as f64, a, b));
            }
            _ => {}
        }
    }
    both.sort_unstable_by(|x, y| x.0.total_cmp(&y.0));
    let slots = |class| problem.slots.iter().filter(|slot| slot.class == class).count() as f64;
    let (left_slots, right_slots) = (slots(0), slots(1));
    let mut best = (f64::NEG_INFINITY, vec![1, 1]);
    for (_, a, b) in both {
        left += a as f64;
        right -= b as f64;
        let bound = (b as f64 * left + a as f64 * right) / (b as f64 * left_slots + a as f64 * right_slots);
        if bound > best.0 {
            best = (bound, vec![b, a]);
        }
    }
    // All the price on one class is what counts when that class alone can run most of the work.
    vec![Prices(best.1), Prices(vec![1, 0]), Prices(vec![0, 1])]
}

/// With more classes: raise the price of a class that is asked for more than its share, again and again.
fn many_classes(problem: &Problem) -> Vec<Prices> {
    let mut weight = vec![1.0f64; problem.classes];
    let rounds = affordable(ROUNDS, problem.len);
    let mut tried = Vec::with_capacity(rounds as usize);
    for round in 0..rounds {
        let prices = Prices(weight.iter().map(|&w| ((w * UNIT) as u64).max(1)).collect());
        let load = load_per_slot(problem, &prices);
        tried.push(prices);
        let mean = f64::max(load.iter().sum::<f64>() / load.len() as f64, 1.0);
        let step = 1.0 / (1.0 + f64::from(round) / 4.0);
        for (weight, load) in weight.iter_mut().zip(load) {
            // A class nobody asks for gets cheaper by a bounded factor, not free at once.
            *weight = (*weight * (load / mean).clamp(0.25, 4.0).powf(step)).clamp(1e-5, 1e9);
        }
    }
    tried
}

/// The time each slot of a class is asked for when every task goes where its price is lowest.
fn load_per_slot(problem: &Problem, prices: &Prices) -> Vec<f64> {
    let mut load = vec![0.0; problem.classes];
    for task in 0..problem.len {
        let class = prices.side(problem.costs(task));
        load[class] += problem.cost(task, class) as f64;
    }
    let mut slots = vec![0.0; problem.classes];
    problem.slots.iter().for_each(|slot| slots[slot.class] += 1.0);
    load.iter().zip(slots).map(|(load, slots)| load / f64::max(slots, 1.0)).collect()
}

impl Prices {
    /// The class on which a task of these costs pays least.
    pub(super) fn side(&self, costs: &[u64]) -> usize {
        let able = costs.iter().enumerate().filter(|&(_, &cost)| cost != NEVER);
        able.min_by_key(|&(class, &cost)| u128::from(cost) * u128::from(self.0[class])).map_or(0, |(class, _)| class)
    }
}
