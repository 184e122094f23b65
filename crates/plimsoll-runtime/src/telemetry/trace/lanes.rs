//! Which lane of a device a run is drawn in. Events do not name slots, so lanes are found from what overlaps.
//! Never lays two spans of one lane over each other, whatever it is told.
//! Invariant: if starts and ends come in their order, there are as many lanes as runs were ever under way at once.
//!
//! A slot may take several short tasks in one moment and runs them one after the other; all of them are reported when
//! the last has ended. So what starts in one moment shares a lane as long as the spans fit one behind the other, and
//! else (two slots that did start in one moment) is moved to a lane of its own.

use plimsoll_core::{Moment, Nanos};

pub(super) struct Lanes {
    lanes: Vec<Lane>,
    limit: usize,
    /// The lane that was held last.
    latest: Option<usize>,
}

#[derive(Default)]
struct Lane {
    /// Runs that started here and have not ended.
    holders: u32,
    held_at: Moment,
    busy_until: Moment,
}

/// A span and the lane it was laid in.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Laid {
    pub(super) lane: usize,
    pub(super) begin: Moment,
    pub(super) length: Nanos,
}

impl Laid {
    /// The first so much of it, and the rest.
    pub(super) fn split(self, first: Nanos) -> (Self, Self) {
        let length = first.min(self.length);
        let rest = Self { begin: self.begin + length, length: self.length - length, ..self };
        (Self { length, ..self }, rest)
    }
}

impl Lanes {
    pub(super) fn new(limit: usize) -> Self {
        Self { lanes: Vec::new(), limit, latest: None }
    }

    pub(super) fn len(&self) -> usize {
        self.lanes.len()
    }

    /// Keeps a lane for a run that starts now; `None` if all are taken.
    pub(super) fn hold(&mut self, at: Moment) -> Option<usize> {
        let joined = self.latest.filter(|&lane| self.lanes[lane].holders > 0 && self.lanes[lane].held_at == at);
        let lane = joined.or_else(|| self.vacant(at))?;
        self.lanes[lane].holders += 1;
        self.lanes[lane].held_at = at;
        self.latest = Some(lane);
        Some(lane)
    }

    /// The run that held it has left nothing to draw, or is about to be laid.
    pub(super) fn let_go(&mut self, lane: usize) {
        let lane = &mut self.lanes[lane];
        lane.holders = lane.holders.saturating_sub(1);
    }

    /// Lays a span of this length between two moments, in the lane that was held for it if it fits there. One that is
    /// longer than that time is cut. `None` if there is no lane for it.
    pub(super) fn lay(&mut self, held: Option<usize>, from: Moment, until: Moment, length: Nanos) -> Option<Laid> {
        let until = until.max(from);
        let length = length.min(until.since(from));
        let fits = |lane: &usize| self.lanes[*lane].busy_until.max(from) + length <= until;
        let lane = held.filter(fits).or_else(|| self.vacant(from))?;
        let begin = self.lanes[lane].busy_until.max(from);
        self.lanes[lane].busy_until = begin + length;
        Some(Laid { lane, begin, length })
    }

    /// What is left of the time between two moments behind what a lane already has.
    pub(super) fn left(&self, held: Option<usize>, from: Moment, until: Moment) -> Nanos {
        let busy_until = held.map_or(from, |lane| self.lanes[lane].busy_until);
        if busy_until > until { until.since(from) } else { until.since(busy_until.max(from)) }
    }

    /// The first lane that nobody holds and that is free from then on.
    fn vacant(&mut self, from: Moment) -> Option<usize> {
        let vacant = self.lanes.iter().position(|lane| lane.holders == 0 && lane.busy_until <= from);
        if vacant.is_none() && self.lanes.len() < self.limit {
            self.lanes.push(Lane::default());
            return Some(self.lanes.len() - 1);
        }
        vacant
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Starts and ends a run in its order; gives its lane.
    fn run(lanes: &mut Lanes, from: u64, until: u64) -> usize {
        let held = lanes.hold(Moment(from));
        held.into_iter().for_each(|lane| lanes.let_go(lane));
        lanes.lay(held, Moment(from), Moment(until), Nanos(until - from)).expect("there is room").lane
    }

    #[test]
    fn runs_one_after_the_other_share_a_lane() {
        let mut lanes = Lanes::new(8);
        assert_eq!([run(&mut lanes, 0, 5), run(&mut lanes, 5, 9), run(&mut lanes, 12, 13)], [0, 0, 0]);
    }

    #[test]
    fn runs_at_the_same_time_get_as_many_lanes_as_slots() {
        let mut lanes = Lanes::new(8);
        let (long, first) = (lanes.hold(Moment(0)), lanes.hold(Moment(1)));
        assert_eq!((long, first), (Some(0), Some(1)));
        lanes.let_go(1);
        assert_eq!(lanes.lay(first, Moment(1), Moment(3), Nanos(2)).map(|laid| laid.lane), Some(1));
        assert_eq!(run(&mut lanes, 4, 6), 1);
        lanes.let_go(0);
        assert_eq!(lanes.lay(long, Moment(0), Moment(9), Nanos(9)).map(|laid| laid.lane), Some(0));
        assert_eq!(lanes.len(), 2);
    }

    #[test]
    fn what_one_slot_took_at_once_lies_in_one_lane() {
        let mut lanes = Lanes::new(8);
        let batch = [2, 3, 1].map(|length| (lanes.hold(Moment(10)), Nanos(length)));
        let begins = batch.map(|(held, length)| {
            lanes.let_go(held.expect("held"));
            lanes.lay(held, Moment(10), Moment(17), length).expect("it fits").begin
        });
        assert_eq!(begins, [Moment(10), Moment(12), Moment(15)]);
        assert_eq!(lanes.len(), 1);
    }

    #[test]
    fn two_slots_that_start_in_one_moment_get_a_lane_each() {
        let mut lanes = Lanes::new(8);
        let both = [lanes.hold(Moment(0)), lanes.hold(Moment(0))];
        let laid = both.map(|held| {
            lanes.let_go(held.expect("held"));
            lanes.lay(held, Moment(0), Moment(10), Nanos(9)).expect("there is room").lane
        });
        assert_eq!(laid, [0, 1]);
    }

    #[test]
    fn no_more_lanes_than_the_limit() {
        let mut lanes = Lanes::new(1);
        assert_eq!((lanes.hold(Moment(0)), lanes.hold(Moment(1))), (Some(0), None));
        assert_eq!(lanes.lay(None, Moment(1), Moment(2), Nanos(1)), None);
    }

    proptest! {
        #[test]
        fn spans_of_a_lane_never_overlap(
            spans in prop::collection::vec((0..100_u64, 0..100_u64, 0..100_u64, any::<bool>()), 0..60),
        ) {
            let mut lanes = Lanes::new(4);
            let mut laid: Vec<Laid> = Vec::new();
            for (from, until, length, holds) in spans {
                let held = if holds { lanes.hold(Moment(from)) } else { None };
                held.into_iter().for_each(|lane| lanes.let_go(lane));
                laid.extend(lanes.lay(held, Moment(from), Moment(until), Nanos(length)));
            }
            for (at, one) in laid.iter().enumerate() {
                for other in laid[..at].iter().filter(|other| other.lane == one.lane) {
                    prop_assert!(one.begin >= other.begin + other.length, "{one:?} over {other:?}");
                }
            }
        }
    }
}
