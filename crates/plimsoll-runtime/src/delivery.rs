//! Settle and deliver: what becomes of an attempt that is over. Under the lock the scheduler says whether it counts, and the
//! next stages are submitted; outside it results go to whoever asked.
//! Never delivers what the scheduler did not accept.

use std::any::Any;
use std::sync::Arc;

use plimsoll_core::scheduler::{BatchOutcome, Measured, Moved, NotTaken, Report, RunId, SetTask, Settled};
use plimsoll_core::{Fault, Moment, Nanos, TaskError, TaskId};
use smallvec::SmallVec;

use crate::fan_out::{Begun, Fan};
use crate::job::{Job, OpenSession, Output};
use crate::shared::quietly;
use crate::task_path::{Described, Times, refused, submit_described};
use crate::value::KeptBuffers;

/// An attempt that is over, on its way to the scheduler.
pub(crate) struct Attempted {
    pub(crate) run: RunId,
    pub(crate) finished: Vec<Finished>,
    pub(crate) failed: Option<Failed>,
    /// Those behind one that failed, or that took far too long: they go back to be chosen for again.
    pub(crate) not_started: Vec<Arc<dyn Job>>,
    pub(crate) measured: Measured,
    pub(crate) session: Option<OpenSession>,
    pub(crate) value: Option<KeptBuffers>,
    pub(crate) moves: SmallVec<[Moved; 1]>,
    /// What a held session held, on its way to another.
    pub(crate) state: Option<Box<dyn Any + Send>>,
}

pub(crate) struct Finished {
    pub(crate) task: TaskId,
    pub(crate) job: Arc<dyn Job>,
    pub(crate) output: Output,
}

pub(crate) struct Failed {
    pub(crate) job: Arc<dyn Job>,
    pub(crate) fault: Fault,
    pub(crate) took: Nanos,
}

impl Attempted {
    pub(crate) fn of(run: RunId) -> Self {
        Self {
            run,
            finished: Vec::new(),
            failed: None,
            not_started: Vec::new(),
            measured: Measured::default(),
            session: None,
            value: None,
            moves: SmallVec::new(),
            state: None,
        }
    }

    /// What a session held was taken out of it.
    pub(crate) fn left(&mut self, finished: Finished, state: Box<dyn Any + Send>) {
        self.finished.push(finished);
        self.state = Some(state);
    }

    pub(crate) fn fail(&mut self, job: Arc<dyn Job>, fault: Fault, times: &mut Times) {
        self.failed = Some(Failed { job, fault, took: times.lap() });
    }

    pub(crate) fn has_result(&self) -> bool {
        !self.finished.is_empty()
    }
}

/// A result that counts.
pub(crate) struct Accepted {
    pub(crate) task: TaskId,
    pub(crate) job: Arc<dyn Job>,
    pub(crate) output: Box<dyn Any + Send>,
    report: Report,
}

/// What an attempt that does not count leaves behind. The job may be the last to hold its input and references.
pub(crate) struct Unwanted {
    _job: Arc<dyn Job>,
    _output: Option<Output>,
}

/// Results that the scheduler accepted, to be handed over outside the lock.
#[derive(Default)]
pub(crate) struct Delivery {
    results: Vec<Accepted>,
    next_stages: Vec<Described>,
    /// Tasks of one item that are submitted together.
    next_sets: Vec<Vec<Described>>,
    /// Stages that fanned out, for whoever gathers what comes of that.
    fanned_out: Vec<(Arc<dyn Begun>, TaskId, Report)>,
    /// Stages that were not taken in.
    refused: Vec<(Arc<dyn Job>, TaskError)>,
    /// Dropped outside the lock: a caller's type may do anything when it goes.
    unwanted: Vec<Unwanted>,
}

impl Delivery {
    pub(crate) fn settle(&mut self, scheduler: &mut crate::Core, now: Moment, attempted: Attempted) {
        let Attempted { run, finished, failed, not_started, measured, session, value, moves, state } = attempted;
        let done = finished.len();
        let (failed, fault) = failed.map(|Failed { job, fault, took }| (job, (fault, took))).unzip();
        let mut finished = finished.into_iter();
        let outcome = BatchOutcome { done, fault, session, measured, value, moves, state };
        scheduler.settle_batch(now, run, outcome, |settled| {
            let Some(Finished { task, job, output }) = finished.next() else { return };
            match (settled, output) {
                (Settled::Done(report), Output::Last(output)) => {
                    self.results.push(Accepted { task, job, output, report });
                }
                (Settled::Done(report), Output::Next(next)) => {
                    let attempts = job.attempts_and(report.attempts);
                    if !attempts.is_empty() {
                        next.1.inherit(attempts);
                    }
                    self.next_stages.push(*next);
                    self.unwanted.push(Unwanted { _job: job, _output: None });
                }
                (Settled::Done(report), Output::Fan(fan)) => {
                    let Fan { set, gathering } = *fan;
                    self.next_sets.push(set);
                    self.fanned_out.push((gathering, task, report));
                    self.unwanted.push(Unwanted { _job: job, _output: None });
                }
                (Settled::Dropped, output) => self.unwanted.push(Unwanted { _job: job, _output: Some(output) }),
            }
        });
        self.submit_next_stages(scheduler, now);
        let without_result = failed.into_iter().chain(not_started);
        self.unwanted.extend(without_result.map(|job| Unwanted { _job: job, _output: None }));
    }

    /// The stages that follow those that are done: in the same step, so that this slot can take one of them at once.
    fn submit_next_stages(&mut self, scheduler: &mut crate::Core, now: Moment) {
        for (spec, job) in self.next_stages.drain(..) {
            if job.is_of_an_ended_group() {
                self.refused.push((job, TaskError::Cancelled));
                continue;
            }
            if let Err(back) = submit_described(scheduler, now, (spec, job)) {
                let NotTaken { refusal, job, .. } = *back;
                self.refused.push((job, refused(&refusal)));
            }
        }
        for set in std::mem::take(&mut self.next_sets) {
            self.submit_set(scheduler, now, set);
        }
    }

    /// All tasks that an item fans out into: known as a whole, so that they are planned as one.
    fn submit_set(&mut self, scheduler: &mut crate::Core, now: Moment, set: Vec<Described>) {
        if set.iter().any(|(_, job)| job.is_of_an_ended_group()) {
            return self.refused.extend(set.into_iter().map(|(_, job)| (job, TaskError::Cancelled)));
        }
        let readers: Vec<_> =
            set.iter().filter(|(spec, _)| !spec.takes.is_empty()).map(|(_, job)| Arc::clone(job)).collect();
        let set = set.into_iter().map(|(spec, job)| SetTask { spec, job, after: SmallVec::new() }).collect();
        match scheduler.submit_all(now, set) {
            Ok(_) => readers.iter().for_each(|reader| reader.spend_values()),
            Err((refusal, set)) => {
                self.refused.extend(set.into_iter().map(|SetTask { job, .. }| (job, refused(&refusal))));
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.results.is_empty() && self.unwanted.is_empty() && self.refused.is_empty() && self.fanned_out.is_empty()
    }

    pub(crate) fn hand_over(&mut self) {
        let mut results = self.results.drain(..).peekable();
        while let Some(Accepted { task, job, output, report }) = results.next() {
            let another_follows = results.peek().is_some_and(|next| next.job.reply_address() == job.reply_address());
            quietly(move || job.deliver(task, Ok((output, report)), another_follows));
        }
        drop(results);
        for (gathering, stage, report) in self.fanned_out.drain(..) {
            quietly(move || gathering.begun(stage, report));
        }
        for (job, error) in self.refused.drain(..) {
            quietly(move || job.refuse(error));
        }
        self.unwanted.drain(..).for_each(|unwanted| quietly(move || drop(unwanted)));
    }
}
