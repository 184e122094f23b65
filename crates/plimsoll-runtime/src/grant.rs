//! Grants as a program holds them: ask, wait, hear of a recall, step down, return by dropping.
//! Never decides who gets what (the scheduler does), and never returns a grant twice: a handle has no `clone`.
//! Invariant: what a grant was given is not handed to its owner before what had to go for it is closed.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plimsoll_core::scheduler::{Discards, GrantNews};
use plimsoll_core::{
    Bytes, DeviceId, GrantError, GrantId, GrantOwner, GrantRung, GrantSpec, Moment, Nanos, Priority, ShortfallError,
    StepError,
};

use crate::job::Runtime;
use crate::keeper;
use crate::monitor::Guard;
use crate::shared::{Shared, State, drop_quietly};
use crate::wait::Wait;

/// What is asked for: bytes of devices for as long as they are held.
///
/// ```
/// # mod plimsoll { pub use plimsoll_core::*; pub use plimsoll_runtime::*; }
/// use plimsoll::{Bytes, DeviceId};
/// use plimsoll::{GrantRequest, Orchestrator};
/// use std::time::Duration;
/// let orchestrator = Orchestrator::builder().cpu(1).build();
/// let cpu = DeviceId(0);
/// let request = GrantRequest::new(&[(cpu, Bytes::mib(2))]).or(&[(cpu, Bytes::mib(1))]);
/// let grant = orchestrator.grant(request)?.wait(Duration::from_secs(10)).expect("a machine with a little memory");
/// assert_eq!(grant.portions(), [(cpu, Bytes::mib(2))]);
/// assert!(grant.recalled().is_none(), "nobody needs it back");
/// grant.step_to(1)?;
/// assert_eq!(grant.portions(), [(cpu, Bytes::mib(1))]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing is asked for before `Orchestrator::grant`"]
pub struct GrantRequest {
    owner: GrantOwner,
    ladder: Vec<GrantRung>,
    priority: Priority,
    deadline: Option<Duration>,
    patience: Option<Duration>,
    may_rise: bool,
}

impl GrantRequest {
    /// These bytes, all at once, for somebody in this process. It waits as long as it takes.
    pub fn new(portions: &[(DeviceId, Bytes)]) -> Self {
        Self {
            owner: GrantOwner::Caller,
            ladder: vec![GrantRung::new(portions)],
            priority: Priority::default(),
            deadline: None,
            patience: None,
            may_rise: false,
        }
    }

    /// If those do not fit, these: a lower rung.
    pub fn or(self, portions: &[(DeviceId, Bytes)]) -> Self {
        self.or_rung(GrantRung::new(portions))
    }

    /// If those do not fit, this rung.
    pub fn or_rung(mut self, rung: GrantRung) -> Self {
        self.ladder.push(rung);
        self
    }

    /// For another program: what it gives back is free when the driver says so.
    pub fn owner(mut self, owner: GrantOwner) -> Self {
        self.owner = owner;
        self
    }

    /// How urgent it is. While it is held, only what is more urgent can have it recalled.
    pub fn priority(mut self, priority: Priority) -> Self {
        self.priority = priority;
        self
    }

    /// When it is no longer wanted, from now, if it still waits; the nearer, the sooner its turn comes.
    pub fn deadline(mut self, within: Duration) -> Self {
        self.deadline = Some(within);
        self
    }

    /// How long it waits before it is refused.
    pub fn patience(mut self, at_most: Duration) -> Self {
        self.patience = Some(at_most);
        self
    }

    /// Tells the owner, once it has stepped down, when a better rung fits again: see [`Grant::may_rise`].
    pub fn may_rise(mut self) -> Self {
        self.may_rise = true;
        self
    }

    fn into_spec(self, now: Moment) -> GrantSpec {
        GrantSpec {
            priority: self.priority,
            deadline: self.deadline.map(|within| now + Nanos::from(within)),
            patience: self.patience.map_or(Nanos::MAX, Nanos::from),
            may_rise: self.may_rise,
            ..GrantSpec::new(self.owner, self.ladder)
        }
    }
}

/// A grant that was asked for. Dropping it cancels the wait.
#[must_use = "dropping it cancels the wait"]
pub struct PendingGrant(Handle);

impl fmt::Debug for PendingGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingGrant").finish_non_exhaustive()
    }
}

/// Why there is no grant (yet).
pub enum GrantWaitError {
    /// It still waits: wait again, or drop it.
    StillWaiting(PendingGrant),
    /// It is over.
    Refused(GrantError),
}

impl std::fmt::Debug for GrantWaitError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::StillWaiting(pending) => write!(f, "{} still waits", pending.id()),
            Self::Refused(refusal) => write!(f, "refused: {refusal}"),
        }
    }
}

impl PendingGrant {
    /// Which.
    pub fn id(&self) -> GrantId {
        self.0.id
    }

    /// Waits until it is given, at most this long.
    ///
    /// # Errors
    /// The claim, if it took longer, or why it is refused.
    pub fn wait(self, at_most: Duration) -> Result<Grant, GrantWaitError> {
        let outcome = self.0.wait_for(Wait::at_most(at_most), |mailbox| match mailbox.refused.take() {
            Some(refusal) => Some(Err(refusal)),
            None => mailbox.granted.take().map(Ok),
        });
        match outcome {
            None => Err(GrantWaitError::StillWaiting(self)),
            Some(Err(refusal)) => Err(GrantWaitError::Refused(refusal)),
            Some(Ok(discards)) => {
                drop_quietly(discards);
                Ok(Grant(self.0))
            }
        }
    }
}

/// Bytes of devices that are promised to their owner. Tasks are kept out of them. Dropping it returns them; another
/// program's are free once the driver says so.
#[must_use = "dropping a grant returns it"]
pub struct Grant(Handle);

/// A request to step down.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Recall {
    /// The rung to step down to; `None` to leave, by dropping the grant.
    pub to: Option<usize>,
    /// When that should have happened.
    pub until: Instant,
    /// Its time is over. Nothing is taken by force: what happens now is up to the owner.
    pub overdue: bool,
}

impl std::fmt::Debug for Grant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Grant").field("id", &self.0.id).field("portions", &self.portions()).finish()
    }
}

impl Grant {
    /// Which.
    pub fn id(&self) -> GrantId {
        self.0.id
    }

    /// The rung of its ladder that it holds; the best is 0.
    pub fn rung(&self) -> usize {
        let state = self.0.shared.lock();
        state.scheduler.grant(self.0.id).and_then(|status| status.rung).unwrap_or(0)
    }

    /// What is promised.
    pub fn portions(&self) -> Vec<(DeviceId, Bytes)> {
        let state = self.0.shared.lock();
        state.scheduler.grant(self.0.id).map_or_else(Vec::new, |status| status.promised.into_vec())
    }

    /// Whether it should step down, and how far.
    pub fn recalled(&self) -> Option<Recall> {
        self.wait_for_recall(Duration::ZERO)
    }

    /// Waits until it should step down, at most this long.
    pub fn wait_for_recall(&self, at_most: Duration) -> Option<Recall> {
        let heard = self.0.wait_for(Wait::at_most(at_most), |mailbox| {
            let recall = mailbox.recall?;
            Some((recall, std::mem::take(&mut mailbox.to_close)))
        });
        let (recall, to_close) = heard?;
        drop_quietly(to_close);
        Some(recall)
    }

    /// Calls this whenever it should step down, and once more if it has not in time. Called outside all locks, on
    /// whichever thread noticed; keep it short. Two calls may overtake each other: [`Grant::recalled`] knows the latest.
    pub fn on_recall(&self, call: impl Fn(Recall) + Send + Sync + 'static) {
        let call: OnRecall = Arc::new(call);
        let mut state = self.0.shared.lock();
        let Some(mailbox) = state.mailboxes.get_mut(&self.0.id) else { return };
        mailbox.on_recall = Some(Arc::clone(&call));
        let (missed, to_close) = (mailbox.recall, std::mem::take(&mut mailbox.to_close));
        drop(state);
        drop_quietly(to_close);
        if let Some(recall) = missed {
            call(recall);
        }
    }

    /// A better rung that fits now, if the request asked to hear of it: [`Grant::begin_step`], then
    /// [`Grant::step_to`].
    pub fn may_rise(&self) -> Option<usize> {
        let mut state = self.0.shared.lock();
        state.mailboxes.get_mut(&self.0.id)?.may_rise.take()
    }

    /// Reserves what another rung needs more, beside what is held, so that it can be used before the rest is given back.
    ///
    /// # Errors
    /// Why that cannot be, or where it does not fit now.
    pub fn begin_step(&self, rung: usize) -> Result<(), StepError> {
        let discards = self.0.change(|state, now, id| state.scheduler.begin_step(now, id, rung))?;
        drop_quietly(discards);
        Ok(())
    }

    /// The owner is on this rung now, and has given back what it had more.
    ///
    /// # Errors
    /// Why that cannot be: a rung that needs more on some device has to be begun first.
    pub fn step_to(&self, rung: usize) -> Result<(), StepError> {
        let to_close = self.0.change(|state, now, id| {
            state.scheduler.stepped_to(now, id, rung)?;
            let Some(mailbox) = state.mailboxes.get_mut(&id) else { return Ok(Discards::default()) };
            mailbox.recall = mailbox.recall.filter(|recall| recall.to.is_none_or(|to| rung < to));
            mailbox.may_rise = None;
            Ok(std::mem::take(&mut mailbox.to_close))
        })?;
        drop_quietly(to_close);
        Ok(())
    }
}

type OnRecall = Arc<dyn Fn(Recall) + Send + Sync>;

/// What a grant's owner has not heard yet. It lies behind the scheduler's lock, so news arrive in order.
#[derive(Default)]
pub(crate) struct Mailbox {
    granted: Option<Discards<Runtime>>,
    refused: Option<GrantError>,
    recall: Option<Recall>,
    /// To be closed before what a recall's rung needs elsewhere is used.
    to_close: Discards<Runtime>,
    may_rise: Option<usize>,
    on_recall: Option<OnRecall>,
}

/// The mailboxes of all grants that somebody holds a handle to.
pub(crate) type Mailboxes = BTreeMap<GrantId, Mailbox>;

/// Calls to be made once the lock is released.
#[derive(Default)]
pub(crate) struct Calls(Vec<(OnRecall, Recall)>);

impl Calls {
    pub(crate) fn make(self) {
        self.0.into_iter().for_each(|(call, recall)| crate::shared::quietly(|| call(recall)));
    }
}

/// Puts news into their mailboxes. Gives the calls to make, and adds what nobody will close to what is to be dropped.
pub(crate) fn deliver(shared: &Shared, state: &mut State, orphans: &mut Discards<Runtime>) -> Calls {
    let mut calls = Calls::default();
    for news in state.scheduler.drain_grant_news() {
        let (grant, discards) = match news {
            GrantNews::Granted { grant, discards, .. } => (grant, Some(discards)),
            GrantNews::Refused { grant, refusal } => {
                state.mailboxes.entry(grant).and_modify(|mailbox| mailbox.refused = Some(refusal));
                continue;
            }
            GrantNews::MayRise { grant, rung } => {
                state.mailboxes.entry(grant).and_modify(|mailbox| mailbox.may_rise = Some(rung));
                continue;
            }
            GrantNews::Recalled { grant, to, until, discards } => {
                let recall = Recall { to, until: shared.clock.instant(until), overdue: false };
                recalled(state, grant, recall, discards, &mut calls, orphans);
                continue;
            }
            // Only the host of another program can stop it; an owner in this process is told once more.
            GrantNews::Overdue { grant } | GrantNews::Stop { grant, .. } => {
                let recall = state.mailboxes.get(&grant).and_then(|mailbox| mailbox.recall);
                if let Some(recall) = recall {
                    let recall = Recall { overdue: true, ..recall };
                    recalled(state, grant, recall, Discards::default(), &mut calls, orphans);
                }
                continue;
            }
        };
        match (state.mailboxes.get_mut(&grant), discards) {
            (Some(mailbox), discards) => mailbox.granted = discards,
            (None, Some(discards)) => orphans.extend(discards),
            (None, None) => {}
        }
    }
    calls
}

fn recalled(
    state: &mut State,
    grant: GrantId,
    recall: Recall,
    discards: Discards<Runtime>,
    calls: &mut Calls,
    orphans: &mut Discards<Runtime>,
) {
    let Some(mailbox) = state.mailboxes.get_mut(&grant) else { return orphans.extend(discards) };
    mailbox.recall = Some(recall);
    match &mailbox.on_recall {
        // Whoever is called has them closed before.
        Some(call) => {
            calls.0.push((Arc::clone(call), recall));
            orphans.extend(discards);
        }
        None => mailbox.to_close.extend(discards),
    }
}

/// Everything that waits in mailboxes to be closed: nobody may hold what was warm longer than its orchestrator.
pub(crate) fn left_to_close(state: &mut State) -> Discards<Runtime> {
    let mut all = Discards::default();
    for mailbox in state.mailboxes.values_mut() {
        mailbox.granted.iter_mut().for_each(|discards| all.extend(std::mem::take(discards)));
        all.extend(std::mem::take(&mut mailbox.to_close));
    }
    all
}

/// One grant in the scheduler, from the moment it is asked for until it is dropped.
struct Handle {
    shared: Arc<Shared>,
    id: GrantId,
}

impl Handle {
    /// Looks into the mailbox until there is what is looked for.
    fn wait_for<T>(&self, wait: Wait, mut take: impl FnMut(&mut Mailbox) -> Option<T>) -> Option<T> {
        let mut state = self.shared.lock();
        loop {
            let found = state.mailboxes.get_mut(&self.id).and_then(&mut take);
            let nap = wait.nap();
            if found.is_some() || nap.is_none() {
                self.shared.release(state);
                return found;
            }
            state = self.shared.release_to_wait(state, self.shared.grants_condvar(), nap);
        }
    }

    /// Changes something under the lock, and lets everybody know.
    fn change<T>(&self, change: impl FnOnce(&mut Guard<'_, State>, Moment, GrantId) -> T) -> T {
        let mut state = self.shared.lock();
        let now = self.shared.now();
        let changed = change(&mut state, now, self.id);
        // Something may be due at another time now, or has to be seen in a reading of memory.
        state.notify_one(self.shared.watchdog_condvar());
        self.shared.release(state);
        changed
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let mailbox = self.change(|state, _, id| state.mailboxes.remove(&id));
        if let Some(mailbox) = mailbox {
            mailbox.granted.into_iter().for_each(drop_quietly);
            drop_quietly(mailbox.to_close);
        }
        self.change(|state, now, id| state.scheduler.return_grant(now, id));
    }
}

/// Asks for a grant.
pub(crate) fn request(shared: &Arc<Shared>, request: GrantRequest) -> Result<PendingGrant, GrantError> {
    shared.refresh_memory();
    keeper::have_allotted(shared, request.ladder.first().map_or(&[], GrantRung::portions), request.priority);
    let mut state = shared.lock();
    let now = shared.now();
    let asked = state.scheduler.request(now, request.into_spec(now));
    let asked = asked.map(|id| handle(shared, &mut state, id));
    state.notify_one(shared.watchdog_condvar());
    shared.release(state);
    asked.map(PendingGrant)
}

/// Takes bytes at once, or not at all.
pub(crate) fn lease(shared: &Arc<Shared>, portions: &[(DeviceId, Bytes)]) -> Result<Grant, ShortfallError> {
    shared.refresh_memory();
    keeper::have_allotted(shared, portions, Priority::default());
    let mut state = shared.lock();
    let now = shared.now();
    let leased = state.scheduler.lease(now, portions);
    let leased = leased.map(|(id, discards)| (handle(shared, &mut state, id), discards));
    shared.release(state);
    let (handle, discards) = leased?;
    drop_quietly(discards);
    Ok(Grant(handle))
}

fn handle(shared: &Arc<Shared>, state: &mut State, id: GrantId) -> Handle {
    state.mailboxes.insert(id, Mailbox::default());
    Handle { shared: Arc::clone(shared), id }
}

/// Asks the owner of a grant to step down.
pub(crate) fn recall(shared: &Shared, id: GrantId, to: Option<usize>, within: Duration) -> Result<(), StepError> {
    let mut state = shared.lock();
    let now = shared.now();
    let recalled = state.scheduler.recall(now, id, to, within.into());
    shared.release(state);
    recalled
}
