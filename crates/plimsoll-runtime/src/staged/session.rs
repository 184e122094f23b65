//! Staged work in a session: items go in, and come out once each, oldest first.
//! Never waits but where the order says so, and never drops an item: it is published, with its output or its fault, or
//! given back by [`StagedSession::abandon`].
//! Invariant: steps are carried out in the order in which `plimsoll_core::staged::Order` gives them; in debug builds
//! `plimsoll_core::staged::Checks` looks at each.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use plimsoll_core::staged::{Checks, Edge, EdgeKind, Order, Plan, Report, StageId, Stages, Step, StreamId, Use};
use plimsoll_core::{Bytes, Fault};

use super::pools::{Acquired, Pools, Readbacks};
use crate::backend::Backend;
use crate::fence::{Fence, FenceState};

/// How long a kick is waited for. A device that is still at it then has stalled, whatever its own limit says.
const KICK_WAIT_MAX: Duration = Duration::from_secs(600);

/// What the stages of staged work do. They wait for nothing and keep nothing that they are lent.
pub trait Payload: Send {
    /// What is fed.
    type Item: Send;
    /// What comes out.
    type Output: Send;

    /// Records a stage's work for an item. Bytes that are to come out are asked for with [`Acquired::stage_read`].
    ///
    /// # Errors
    /// The item fails with it: it is published with this fault.
    fn run(
        &mut self,
        stage: &'static str,
        item: &Self::Item,
        buffers: &mut Acquired<'_>,
        backend: &mut dyn Backend,
    ) -> Result<(), Fault>;

    /// The last stage of the drain: makes the output of what was read back.
    ///
    /// # Errors
    /// As [`Payload::run`].
    fn drained(&mut self, item: &Self::Item, bytes: Vec<u8>) -> Result<Self::Output, Fault>;

    /// Host memory of this size for what is read back. Whoever has some to use again gives it here.
    fn host_buffer(&mut self, bytes: Bytes) -> Vec<u8> {
        vec![0; bytes.0 as usize]
    }
}

/// An item that has left.
#[derive(Debug)]
pub struct Published<I, O> {
    /// The item, back in its owner's hands.
    pub item: I,
    /// What came of it.
    pub result: Result<O, Fault>,
}

/// What came out of one call, oldest first.
type AllPublished<P> = Vec<Published<<P as Payload>::Item, <P as Payload>::Output>>;

/// An item that was fed and not published.
struct UnderWay<P: Payload> {
    number: u64,
    item: P::Item,
    fence: Option<Fence>,
    readbacks: Readbacks,
    output: Option<P::Output>,
    fault: Option<Fault>,
}

/// Staged work on one device, inside the session of a workload: usually one that a sequence holds, so that items stay under
/// way from task to task.
///
/// ```
/// use plimsoll_core::staged::{Count, Draft, EdgeDecl, EdgeKind, Facts, HOST, Memory, Plan, PoolDecl, StageDecl, Stages, Usage};
/// use plimsoll_core::{Bytes, Fault};
/// use plimsoll_runtime::cpu::CpuDevice;
/// use plimsoll_runtime::staged::{Acquired, Payload, StagedSession};
/// use plimsoll_runtime::{Backend, Device};
///
/// struct Echo;
///
/// impl Payload for Echo {
///     type Item = [u8; 4];
///     type Output = Vec<u8>;
///
///     fn run(&mut self, _: &'static str, item: &[u8; 4], buffers: &mut Acquired<'_>, backend: &mut dyn Backend) -> Result<(), Fault> {
///         backend.write(buffers.buffer("word")?, Bytes::ZERO, item)?; // and launches
///         buffers.stage_read("word", Bytes::ZERO, Bytes(4), backend)
///     }
///
///     fn drained(&mut self, _: &[u8; 4], bytes: Vec<u8>) -> Result<Vec<u8>, Fault> {
///         Ok(bytes)
///     }
/// }
///
/// let pool = |name, count, memory| PoolDecl { name, bytes: Bytes(4), count, memory };
/// let stages = Stages::check(Draft {
///     streams: vec!["queue"],
///     stages: vec![StageDecl { name: "pass", stream: "queue", uses: vec![("word", Usage::Writes), ("out", Usage::Writes)] }],
///     drain: vec![StageDecl { name: "collect", stream: HOST, uses: vec![("out", Usage::Reads)] }],
///     pools: vec![pool("word", Count::Fixed(1), Memory::Device), pool("out", Count::PerDepth, Memory::Readback)],
///     edges: vec![
///         EdgeDecl { name: "passed", from: "pass", to: "pass", guards: "word", kind: EdgeKind::StreamOrder },
///         EdgeDecl { name: "out filled", from: "pass", to: "collect", guards: "out", kind: EdgeKind::Event },
///         EdgeDecl { name: "out free", from: "collect", to: "pass", guards: "out", kind: EdgeKind::HostRule },
///     ],
///     depth_max: 3,
/// })?;
/// let plan = Plan::select(&stages, Facts::depth(2));
/// assert_eq!(plan.footprint(), Bytes(12)); // before anything is allocated
///
/// let mut slot = CpuDevice::open().open_backend()?;
/// let mut session = StagedSession::open(plan, Echo, &mut *slot)?;
/// let mut published = Vec::new();
/// for item in 0..5_u32 {
///     published.extend(session.feed(item.to_ne_bytes(), &mut *slot)); // drains the item two before it
/// }
/// assert_eq!(published.len(), 3);
/// published.extend(session.flush(&mut *slot));
/// assert!(published.into_iter().all(|each| each.result.is_ok_and(|output| output == each.item)));
/// assert!(session.is_complete() && session.report().is_clean());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct StagedSession<P: Payload> {
    payload: P,
    pools: Pools,
    order: Order,
    checks: Checks,
    /// Oldest first.
    under_way: VecDeque<UnderWay<P>>,
    /// What the stage at hand has acquired.
    acquired: Vec<Use>,
    published: AllPublished<P>,
    is_complete: bool,
}

impl<P: Payload> fmt::Debug for StagedSession<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StagedSession").field("plan", &self.plan().to_string()).finish_non_exhaustive()
    }
}

impl<P: Payload> StagedSession<P> {
    /// Allocates the pools: with the readbacks of as many items as can be under way they take [`Plan::footprint`] bytes.
    ///
    /// # Errors
    /// As [`Backend::allocate`]; [`Fault::WorkFailed`] for stages that one queue cannot run (see the head of this module).
    pub fn open(plan: Plan, payload: P, backend: &mut dyn Backend) -> Result<Self, Fault> {
        check_for_one_queue(plan.stages())?;
        let (pools, checks) = (Pools::open(&plan, backend)?, Checks::new(plan.clone()));
        let order = Order::new(plan);
        let (under_way, acquired, published) = (VecDeque::new(), Vec::new(), Vec::new());
        Ok(Self { payload, pools, order, checks, under_way, acquired, published, is_complete: true })
    }

    /// Kicks an item, and gives what had to be drained for it. An item that fails here comes back in the same call.
    pub fn feed(&mut self, item: P::Item, backend: &mut dyn Backend) -> AllPublished<P> {
        self.is_complete = false;
        let number = self.order.feed();
        let (fence, readbacks, output, fault) = (None, Readbacks::default(), None, None);
        self.under_way.push_back(UnderWay { number, item, fence, readbacks, output, fault });
        self.carry_out(backend)
    }

    /// Drains everything under way.
    pub fn flush(&mut self, backend: &mut dyn Backend) -> AllPublished<P> {
        self.order.flush();
        self.carry_out(backend)
    }

    /// Whether all that was ever fed has left by a flush, with an output each.
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Gives up what is under way, because the device is lost or the session steps down: the items that were not published
    /// come back, oldest first, with the payload. The device is not asked.
    pub fn abandon(self) -> (P, Vec<P::Item>) {
        debug_assert!(self.under_way.iter().map(|under_way| under_way.number).eq(self.order.unpublished()));
        (self.payload, self.under_way.into_iter().map(|under_way| under_way.item).collect())
    }

    /// How it runs; as text, which way was selected and why.
    pub fn plan(&self) -> &Plan {
        self.order.plan()
    }

    /// Its payload.
    pub fn payload(&self) -> &P {
        &self.payload
    }

    /// How its edges and buffers were used so far: to be clean at the end.
    pub fn report(&self) -> Report {
        self.checks.report()
    }

    fn carry_out(&mut self, backend: &mut dyn Backend) -> AllPublished<P> {
        while let Some(step) = self.order.step() {
            let looked_at = self.checks.step(&step);
            debug_assert!(looked_at.is_ok(), "{step:?}: {looked_at:?}");
            if let (Err(fault), Some(item)) = (self.execute(step, backend), step.item()) {
                self.fail(item, fault);
            }
        }
        std::mem::take(&mut self.published)
    }

    /// The first fault of an item is what it is published with.
    fn fail(&mut self, item: u64, fault: Fault) {
        self.order.failed(item);
        self.checks.failed(item);
        if let Some(failed) = self.find(item) {
            failed.fault.get_or_insert(fault);
        }
    }

    fn find(&mut self, number: u64) -> Option<&mut UnderWay<P>> {
        self.under_way.iter_mut().find(|under_way| under_way.number == number)
    }

    fn execute(&mut self, step: Step, backend: &mut dyn Backend) -> Result<(), Fault> {
        match step {
            Step::Wait { record, stream: StreamId::HOST, .. } | Step::Drain { item: record } => {
                self.wait_for(record, backend)
            }
            // One queue: what was recorded before is done before.
            Step::Wait { .. } | Step::Record { .. } => Ok(()),
            Step::Acquire(of) => {
                self.acquired.push(of);
                Ok(())
            }
            Step::Run { stage, item, .. } => self.run(stage, item, backend),
            Step::Release(of) => {
                self.acquired.retain(|acquired| *acquired != of);
                Ok(())
            }
            Step::Kick { item } => {
                let fence = backend.kick()?;
                if let Some(kicked) = self.find(item) {
                    kicked.fence = Some(fence);
                }
                Ok(())
            }
            Step::Publish { .. } => {
                self.publish();
                Ok(())
            }
            Step::Complete => {
                self.is_complete = true;
                Ok(())
            }
        }
    }

    /// Waits until the kick of an item is done. One that was published is.
    fn wait_for(&mut self, item: u64, backend: &mut dyn Backend) -> Result<(), Fault> {
        let Some(fence) = self.find(item).and_then(|under_way| under_way.fence.clone()) else { return Ok(()) };
        match backend.wait(&fence, KICK_WAIT_MAX)? {
            FenceState::Done => Ok(()),
            FenceState::UnderWay => Err(Fault::Stalled { after: KICK_WAIT_MAX.into() }),
        }
    }

    fn run(&mut self, stage: StageId, item: u64, backend: &mut dyn Backend) -> Result<(), Fault> {
        let Self { payload, pools, order, under_way, acquired, .. } = self;
        let stages = order.plan().stages();
        let this = under_way.iter_mut().find(|under_way| under_way.number == item);
        let this = this.expect("an item that is run is under way");
        if stages.stage_ids().next_back() == Some(stage) {
            let readbacks = std::mem::take(&mut this.readbacks);
            let wanted = readbacks.bytes();
            let mut bytes = payload.host_buffer(wanted);
            bytes.resize(wanted.0 as usize, 0);
            readbacks.collect(&mut bytes, backend)?;
            this.output = Some(payload.drained(&this.item, bytes)?);
            return Ok(());
        }
        let mut buffers = pools.acquired(acquired, &mut this.readbacks);
        payload.run(stages[stage].name, &this.item, &mut buffers, backend)
    }

    /// The oldest item leaves.
    fn publish(&mut self) {
        let Some(UnderWay { item, output, fault, .. }) = self.under_way.pop_front() else { return };
        let result = match (fault, output) {
            (None, Some(output)) => Ok(output),
            (Some(fault), _) => Err(fault),
            (None, None) => Err(Fault::work("the item left before its last stage was run")),
        };
        self.published.push(Published { item, result });
    }
}

/// What a backend cannot do is refused before anything is allocated.
fn check_for_one_queue(stages: &Stages) -> Result<(), Fault> {
    let mut all = stages.stage_ids().map(|stage| &stages[stage]);
    if let Some(copy) = all.find(|stage| stage.is_drain && stage.stream != StreamId::HOST) {
        let name = copy.name;
        return Err(Fault::work(format!(
            "stage '{name}' of the drain would lie behind the next kick: record it in the kick"
        )));
    }
    let is_answer = |edge: &Edge| {
        let (from, to) = (&stages[edge.from], &stages[edge.to]);
        let is_in_kick = edge.kind == EdgeKind::Event && !edge.is_to_later_item() && !to.is_drain;
        is_in_kick && to.stream == StreamId::HOST && from.stream != StreamId::HOST
    };
    match stages.edge_ids().map(|edge| &stages[edge]).find(|edge| is_answer(edge)) {
        Some(edge) => {
            Err(Fault::work(format!("edge '{}' needs the device's answer in the middle of a kick", edge.name)))
        }
        None => Ok(()),
    }
}
