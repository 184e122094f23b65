//! The order of staged work: which step comes next. The one place that orders anything.
//! Never carries a step out, and knows neither items nor buffers, only their numbers.
//! Invariant: every item that was fed is drained once and published once, oldest first, whatever failed; and whatever a
//! failed item acquired is released (`tests`).
//!
//! An item that failed still passes through its remaining stages: it waits and records like any other, and only its
//! payload is left out. So no chain of waits has a gap, and nobody waits for a record that is never made. It is drained
//! at once, after all before it, so that its owner hears of it before anything is kicked on top of it.

use std::collections::VecDeque;

use super::ids::{EdgeId, PoolId, StageId, StreamId};
use super::select::{Mode, Plan};

/// One step, to be carried out before the next is asked for.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Queue a wait on a stream for what `record` (an item) recorded on this edge. On the host: wait.
    Wait {
        /// The edge.
        edge: EdgeId,
        /// The item whose record is waited for.
        record: u64,
        /// The item that waits.
        item: u64,
        /// The stream of the stage that waits.
        stream: StreamId,
    },
    /// All waits for the buffer are queued: from here to its release the stage may use it.
    Acquire(Use),
    /// Hand the stage's payload to its stream. On the host: do it.
    Run {
        /// The stage.
        stage: StageId,
        /// The item.
        item: u64,
        /// Where it runs.
        stream: StreamId,
    },
    /// Record on a stream that all before it is done.
    Record {
        /// The edge.
        edge: EdgeId,
        /// The item.
        item: u64,
        /// The stream of the stage that records.
        stream: StreamId,
    },
    /// The stage is through with the buffer.
    Release(Use),
    /// All stages of the item are queued: hand them to the device.
    Kick {
        /// The item.
        item: u64,
    },
    /// The stages of the item's drain follow.
    Drain {
        /// The item.
        item: u64,
    },
    /// The item leaves.
    Publish {
        /// The item.
        item: u64,
        /// Whether all of its stages succeeded.
        is_done: bool,
    },
    /// All that was ever fed was published, and all of it succeeded.
    Complete,
}

/// A stage's use of a buffer.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Use {
    /// The stage.
    pub stage: StageId,
    /// The pool.
    pub pool: PoolId,
    /// Which buffer of it.
    pub buffer: usize,
    /// For which item.
    pub item: u64,
}

impl Step {
    /// The item it is done for, or none if it is for all.
    pub fn item(&self) -> Option<u64> {
        match *self {
            Self::Acquire(of) | Self::Release(of) => Some(of.item),
            Self::Wait { item, .. }
            | Self::Run { item, .. }
            | Self::Record { item, .. }
            | Self::Kick { item }
            | Self::Drain { item }
            | Self::Publish { item, .. } => Some(item),
            Self::Complete => None,
        }
    }
}

/// An item that was fed and not published.
#[derive(Debug)]
struct UnderWay {
    item: u64,
    has_failed: bool,
    is_drain_queued: bool,
}

/// What comes next. Ask for steps until there are none, then feed or flush.
#[derive(Debug)]
pub struct Order {
    plan: Plan,
    next_item: u64,
    /// Oldest first.
    under_way: VecDeque<UnderWay>,
    steps: VecDeque<Step>,
    has_failed: bool,
}

impl Order {
    /// Nothing is under way.
    pub fn new(plan: Plan) -> Self {
        Self { plan, next_item: 0, under_way: VecDeque::new(), steps: VecDeque::new(), has_failed: false }
    }

    /// The way it runs.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Queues what the next item needs, and gives its number.
    pub fn feed(&mut self) -> u64 {
        let item = self.next_item;
        self.next_item += 1;
        // The slot that it takes is drained first; with one slot that is the item before it.
        self.drain_down_to(self.plan.depth() - 1);
        self.under_way.push_back(UnderWay { item, has_failed: false, is_drain_queued: false });
        self.queue_stages(item, false);
        self.steps.push_back(Step::Kick { item });
        if self.plan.mode() == Mode::DrainAfterKick {
            self.drain_down_to(0);
        }
        item
    }

    /// Queues the drain of everything under way.
    pub fn flush(&mut self) {
        self.drain_down_to(0);
        self.steps.push_back(Step::Complete);
    }

    /// The next step.
    pub fn step(&mut self) -> Option<Step> {
        loop {
            match self.steps.pop_front()? {
                Step::Run { item, .. } if self.has_failed(item) => {}
                Step::Complete if self.has_failed => {}
                Step::Publish { item, .. } => {
                    let is_done = self.under_way.pop_front().is_some_and(|oldest| !oldest.has_failed);
                    return Some(Step::Publish { item, is_done });
                }
                step => return Some(step),
            }
        }
    }

    /// A step of this item could not be carried out.
    pub fn failed(&mut self, item: u64) {
        self.has_failed = true;
        if let Some(failed) = self.under_way.iter_mut().find(|under_way| under_way.item == item) {
            failed.has_failed = true;
            let is_told = failed.is_drain_queued;
            if !is_told {
                self.drain_down_to(0);
            }
        }
    }

    /// The items that were fed and not published, oldest first.
    pub fn unpublished(&self) -> impl Iterator<Item = u64> {
        self.under_way.iter().map(|under_way| under_way.item)
    }

    fn has_failed(&self, item: u64) -> bool {
        self.under_way.iter().any(|under_way| under_way.item == item && under_way.has_failed)
    }

    /// Queues the drains of the oldest until so many are left without.
    fn drain_down_to(&mut self, left: usize) {
        let begin = self.under_way.partition_point(|under_way| under_way.is_drain_queued);
        for at in begin..self.under_way.len().saturating_sub(left).max(begin) {
            self.under_way[at].is_drain_queued = true;
            let item = self.under_way[at].item;
            self.steps.push_back(Step::Drain { item });
            self.queue_stages(item, true);
            self.steps.push_back(Step::Publish { item, is_done: false });
        }
    }

    fn queue_stages(&mut self, item: u64, is_drain: bool) {
        for stage in self.plan.stages().stage_ids() {
            if self.plan.stages()[stage].is_drain == is_drain {
                self.queue_stage(item, stage);
            }
        }
    }

    /// Waits, then the buffers, then the payload, then records.
    fn queue_stage(&mut self, item: u64, stage: StageId) {
        let (plan, steps) = (&self.plan, &mut self.steps);
        let stages = plan.stages();
        let (stream, uses) = (stages[stage].stream, &stages[stage].uses);
        let buffer_of = |pool| (item % plan.count(pool) as u64) as usize;
        let of = |pool| Use { stage, pool, buffer: buffer_of(pool), item };
        let edges = |pool| stages.edge_ids().filter(move |edge| stages[*edge].guards == pool && plan.records(*edge));
        for (pool, _) in uses {
            for edge in edges(*pool).filter(|edge| stages[*edge].to == stage) {
                if let Some(record) = item.checked_sub(plan.lag(edge)) {
                    steps.push_back(Step::Wait { edge, record, item, stream });
                }
            }
            steps.push_back(Step::Acquire(of(*pool)));
        }
        steps.push_back(Step::Run { stage, item, stream });
        for (pool, _) in uses {
            for edge in edges(*pool).filter(|edge| stages[*edge].from == stage) {
                steps.push_back(Step::Record { edge, item, stream });
            }
            steps.push_back(Step::Release(of(*pool)));
        }
    }
}
