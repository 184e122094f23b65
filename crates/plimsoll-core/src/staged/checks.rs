//! Looks on while steps are carried out, and keeps the books for the report at the end.
//! Never steers: it is told what was done, in the order in which it was done, and says what was wrong with it.
//! Invariant: it shares no state with `order.rs`, so a mistake there is found here.

use std::fmt;

use super::declare::EdgeKind;
use super::ids::{EdgeId, PoolId, StageId, StreamId};
use super::order::{Step, Use};
use super::select::Plan;

/// A rule that was broken.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Violation {
    /// A wait for something that nobody has recorded.
    #[error("a wait for edge {} of item {record}, which has no record", .edge.index())]
    NoLiveRecord {
        /// The edge.
        edge: EdgeId,
        /// The item that did not record it.
        record: u64,
    },
    /// A wait, a stage or a record on another stream than declared.
    #[error("stage {} on stream {}, which is not its own", .stage.index(), .stream.index())]
    WrongStream {
        /// The stage.
        stage: StageId,
        /// Where it was.
        stream: StreamId,
    },
    /// A buffer was acquired that a stage before has not released.
    #[error("a buffer of pool {} acquired while another stage has it", .pool.index())]
    StillHeld {
        /// The pool.
        pool: PoolId,
    },
    /// A buffer was used or released by a stage that has not acquired it.
    #[error("stage {} uses a buffer of pool {} that it has not acquired", .stage.index(), .pool.index())]
    NotAcquired {
        /// The stage.
        stage: StageId,
        /// The pool.
        pool: PoolId,
    },
    /// More items were under way than there are slots.
    #[error("item {0} kicked into a slot that was not drained")]
    NotDrained(u64),
    /// An item was kicked, drained or published out of turn, twice, or never before something that needs it.
    #[error("{what} item {item} out of turn: {turn} is next")]
    OutOfTurn {
        /// What was done.
        what: &'static str,
        /// To which item.
        item: u64,
        /// Whose turn it was.
        turn: u64,
    },
    /// Success was claimed for what failed, or was never done.
    #[error("success claimed that was not")]
    FalseClaim,
}

/// What was done so far.
#[derive(Clone, Debug)]
pub struct Checks {
    plan: Plan,
    /// For each edge, the latest item that recorded it.
    recorded: Vec<Option<u64>>,
    waited: Vec<bool>,
    held: Vec<Use>,
    kicked: u64,
    drained: u64,
    published: u64,
    failed: Vec<u64>,
    has_failed: bool,
}

impl Checks {
    /// Nothing was done.
    pub fn new(plan: Plan) -> Self {
        let edges = plan.stages().edge_ids().count();
        let (recorded, waited) = (vec![None; edges], vec![false; edges]);
        let (held, failed) = (Vec::new(), Vec::new());
        Self { plan, recorded, waited, held, kicked: 0, drained: 0, published: 0, failed, has_failed: false }
    }

    /// This step is about to be carried out.
    ///
    /// # Errors
    /// The rule that it breaks.
    pub fn step(&mut self, step: &Step) -> Result<(), Violation> {
        match *step {
            Step::Wait { edge, record, stream, .. } => self.wait(edge, record, stream),
            Step::Acquire(of) => self.acquire(of),
            Step::Run { stage, item, stream } => self.run(stage, item, stream),
            Step::Record { edge, item, stream } => {
                self.recorded[edge.index()] = Some(item);
                self.on_its_stream(self.plan.stages()[edge].from, stream)
            }
            Step::Release(of) => self.release(of),
            Step::Kick { item } => self.kick(item),
            Step::Drain { item } => self.drain(item),
            Step::Publish { item, is_done } => self.publish(item, is_done),
            Step::Complete => {
                let is_complete = !self.has_failed && self.published == self.kicked;
                is_complete.then_some(()).ok_or(Violation::FalseClaim)
            }
        }
    }

    /// A step of this item failed.
    pub fn failed(&mut self, item: u64) {
        self.has_failed = true;
        self.failed.push(item);
    }

    fn wait(&mut self, edge: EdgeId, record: u64, stream: StreamId) -> Result<(), Violation> {
        self.waited[edge.index()] = true;
        let declared = &self.plan.stages()[edge];
        // A counter may be waited for before it is raised: that is what it is for.
        let is_live = declared.kind == EdgeKind::Generation || self.recorded[edge.index()] >= Some(record);
        if !is_live {
            return Err(Violation::NoLiveRecord { edge, record });
        }
        self.on_its_stream(declared.to, stream)
    }

    fn on_its_stream(&self, stage: StageId, stream: StreamId) -> Result<(), Violation> {
        let is_its = self.plan.stages()[stage].stream == stream;
        is_its.then_some(()).ok_or(Violation::WrongStream { stage, stream })
    }

    fn acquire(&mut self, of: Use) -> Result<(), Violation> {
        if self.held.iter().any(|held| (held.pool, held.buffer) == (of.pool, of.buffer)) {
            return Err(Violation::StillHeld { pool: of.pool });
        }
        self.held.push(of);
        Ok(())
    }

    fn run(&mut self, stage: StageId, item: u64, stream: StreamId) -> Result<(), Violation> {
        for (pool, _) in &self.plan.stages()[stage].uses {
            let is_held = self.held.iter().any(|held| (held.stage, held.pool, held.item) == (stage, *pool, item));
            if !is_held {
                return Err(Violation::NotAcquired { stage, pool: *pool });
            }
        }
        self.on_its_stream(stage, stream)
    }

    fn release(&mut self, of: Use) -> Result<(), Violation> {
        let place = self.held.iter().position(|held| *held == of);
        let place = place.ok_or(Violation::NotAcquired { stage: of.stage, pool: of.pool })?;
        self.held.swap_remove(place);
        Ok(())
    }

    fn kick(&mut self, item: u64) -> Result<(), Violation> {
        in_turn("kicked", item, self.kicked)?;
        self.kicked += 1;
        let is_room = self.kicked - self.drained <= self.plan.depth() as u64;
        is_room.then_some(()).ok_or(Violation::NotDrained(item))
    }

    fn drain(&mut self, item: u64) -> Result<(), Violation> {
        in_turn("drained", item, self.drained)?;
        self.drained += 1;
        let is_kicked = item < self.kicked;
        is_kicked.then_some(()).ok_or(Violation::OutOfTurn { what: "drained", item, turn: self.kicked })
    }

    fn publish(&mut self, item: u64, is_done: bool) -> Result<(), Violation> {
        in_turn("published", item, self.published)?;
        self.published += 1;
        if item >= self.drained {
            return Err(Violation::OutOfTurn { what: "published", item, turn: self.drained });
        }
        let has_failed = self.failed.contains(&item);
        self.failed.retain(|failed| *failed != item);
        if is_done && has_failed { Err(Violation::FalseClaim) } else { Ok(()) }
    }

    /// What the books say at the end.
    pub fn report(&self) -> Report {
        let stages = self.plan.stages();
        let named = |is_meant: &dyn Fn(EdgeId) -> bool| -> Vec<&'static str> {
            stages.edge_ids().filter(|edge| is_meant(*edge)).map(|edge| stages[edge].name).collect()
        };
        let is_recorded = |edge: EdgeId| self.recorded[edge.index()].is_some();
        let is_waited = |edge: EdgeId| self.waited[edge.index()];
        // The first items wait for nobody before them.
        let is_expected = |edge: EdgeId| self.plan.records(edge) && self.plan.lag(edge) < self.kicked;
        Report {
            never_waited: named(&|edge| is_recorded(edge) && !is_waited(edge) && is_expected(edge)),
            never_used: named(&|edge| !is_recorded(edge) && !is_waited(edge) && is_expected(edge)),
            not_needed_here: named(&|edge| {
                matches!(stages[edge].kind, EdgeKind::Event | EdgeKind::Generation) && !self.plan.records(edge)
            }),
            held: self.held.iter().map(|of| stages[of.pool].name).collect(),
            under_way: self.kicked.saturating_sub(self.published),
        }
    }
}

fn in_turn(what: &'static str, item: u64, turn: u64) -> Result<(), Violation> {
    if item == turn { Ok(()) } else { Err(Violation::OutOfTurn { what, item, turn }) }
}

/// How edges and buffers were used until the end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Edges that were recorded and never waited for, though somebody should have.
    pub never_waited: Vec<&'static str>,
    /// Edges that were neither recorded nor waited for, though they are needed at this depth.
    pub never_used: Vec<&'static str>,
    /// Edges that are declared and not needed at this depth: as expected.
    pub not_needed_here: Vec<&'static str>,
    /// Pools of which a buffer was not released.
    pub held: Vec<&'static str>,
    /// Items that were kicked and not published.
    pub under_way: u64,
}

impl Report {
    /// Whether everything is as it should be.
    pub fn is_clean(&self) -> bool {
        let Self { never_waited, never_used, held, under_way, .. } = self;
        never_waited.is_empty() && never_used.is_empty() && held.is_empty() && *under_way == 0
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = Vec::new();
        let lists = [
            ("recorded, never waited for", &self.never_waited),
            ("never used", &self.never_used),
            ("not needed at this depth", &self.not_needed_here),
            ("not released", &self.held),
        ];
        lines.extend(
            lists
                .iter()
                .filter(|(_, names)| !names.is_empty())
                .map(|(what, names)| format!("{what}: {}", names.join(", "))),
        );
        lines.extend((self.under_way > 0).then(|| format!("{} items not published", self.under_way)));
        if lines.is_empty() { f.write_str("every edge was used") } else { f.write_str(&lines.join("; ")) }
    }
}
