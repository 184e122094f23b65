//! Those who use the scheduler: they hand in tasks one by one or as a known set, come back when the queue is full, cancel,
//! hold handles, and close everything. Those who hold memory are in `owners.rs`.
//! Never looks at devices.

use plimsoll_core::scheduler::SetTask;
use plimsoll_core::{ContentKey, Moment, Nanos, SubmitErrorKind, TaskError, TaskId, TaskSpec};

use super::{Cost, Happening, TaskTruth, World};

/// When somebody who found the queue full comes back.
const COME_BACK: Nanos = Nanos::millis(100);

/// A handle that somebody holds to some content: its owner, and each task that was given it until that has ended.
#[derive(Clone, Debug)]
pub(super) struct Handle {
    content: ContentKey,
    holders: u32,
}

/// Tasks handed in together, each with those of the set that come before it.
#[derive(Clone, Debug)]
pub(super) struct Set(Vec<(usize, Vec<u32>)>);

/// What a caller was told.
enum Answer {
    TakenIn(Vec<TaskId>),
    ComeBack,
    Closed,
    /// The session of its sequence was closed.
    NotHeld,
}

impl World {
    /// A task that arrives at this moment, to run after others that arrived before.
    pub fn arrive(&mut self, at: Moment, spec: TaskSpec, cost: Cost, predecessors: Vec<usize>) -> usize {
        let job = self.add(spec, cost);
        self.tasks[job].predecessors = predecessors;
        self.plan(at, Happening::Submit(job));
        job
    }

    /// Tasks that arrive together as a known set. Each names the tasks before it by their place in the set.
    pub fn arrive_together(&mut self, at: Moment, set: Vec<(TaskSpec, Cost, Vec<u32>)>) -> Vec<usize> {
        let first = self.tasks.len();
        let mut members = Vec::new();
        for (spec, cost, after) in set {
            let job = self.add(spec, cost);
            let task = &mut self.tasks[job];
            task.predecessors = after.iter().map(|before| first + *before as usize).collect();
            task.in_set = true;
            members.push((job, after));
        }
        self.sets.push(Set(members));
        self.plan(at, Happening::SubmitSet(self.sets.len() - 1));
        (first..self.tasks.len()).collect()
    }

    /// A task that the caller of the world hands in itself.
    pub fn add(&mut self, spec: TaskSpec, cost: Cost) -> usize {
        self.tasks.push(TaskTruth::new(spec, cost));
        self.tasks.len() - 1
    }

    /// Makes a task's work fail, or panic.
    pub fn sabotage(&mut self, job: usize, panics: bool) {
        let task = &mut self.tasks[job];
        task.panics = panics;
        task.fails = !panics;
    }

    /// A task's result is of no use after this moment.
    pub fn set_deadline(&mut self, job: usize, deadline: Moment) {
        self.tasks[job].spec.deadline = Some(deadline);
    }

    /// The caller cancels a task at this moment.
    pub fn cancel_at(&mut self, at: Moment, job: usize) {
        self.plan(at, Happening::Cancel(job));
    }

    /// Somebody holds a handle to this content from one moment to the other.
    pub fn pin_at(&mut self, at: Moment, until: Moment, content: ContentKey) {
        self.handles.push(Handle { content, holders: 0 });
        self.plan(at, Happening::Pin(self.handles.len() - 1));
        self.plan(until, Happening::LetGo(self.handles.len() - 1));
    }

    /// Everything ends at this moment, whether done or not.
    pub fn shut_down_at(&mut self, at: Moment) {
        self.plan(at, Happening::ShutDown);
    }

    /// Hands in a whole set at once; the jobs are those that [`World::add`] gave.
    ///
    /// # Errors
    /// The scheduler's refusal, in words.
    pub fn submit_all(&mut self, set: Vec<SetTask<usize>>) -> Result<(), String> {
        let jobs: Vec<usize> = set.iter().map(|task| task.job).collect();
        let ids = self.scheduler.submit_all(self.now, set).map_err(|(refusal, _)| refusal.to_string())?;
        self.taken_in(jobs, ids);
        Ok(())
    }

    pub(super) fn submit(&mut self, job: usize) -> Result<(), String> {
        // It ended with what it was to read, before it was taken in.
        if self.tasks[job].end.is_some() {
            return Ok(());
        }
        self.ask_for_memory();
        self.note_item(job);
        let predecessors = &self.tasks[job].predecessors;
        let was_refused = |before: &usize| self.tasks[*before].id.is_none() && self.tasks[*before].end.is_some();
        if predecessors.iter().any(was_refused) {
            return self.end(job, Err(TaskError::ShutDown));
        }
        let Some(after) = self.ids_of(predecessors) else {
            self.plan(self.now + COME_BACK, Happening::Submit(job));
            return Ok(());
        };
        let mut spec = TaskSpec { after: after.into(), ..self.spec_now(job) };
        loop {
            let answer = self.scheduler.submit(self.now, spec.clone(), job).map(|id| vec![id]);
            let answer = answer.map_err(|back| back.refusal);
            if let Err(SubmitErrorKind::SessionLost { undrained }) = answer {
                self.refused_by_loss(job, undrained)?;
            }
            if let Err(SubmitErrorKind::UnknownValue { .. }) = answer {
                // Its maker may have failed just now: then this one ends with it.
                self.release()?;
                if self.tasks[job].end.is_some() {
                    return Ok(());
                }
            }
            let Err(SubmitErrorKind::ForgottenPredecessor { task }) = answer else {
                let answer = self.judge(1, answer)?;
                return self.answered(vec![job], answer, Happening::Submit(job));
            };
            // The caller remembers how it ended, and leaves it out if that was well.
            let before = &self.tasks[self.jobs[&task]];
            if let Some(Err(error)) = &before.end {
                let cause = Box::new(error.first_cause().clone());
                return self.end(job, Err(TaskError::PredecessorFailed { task, cause }));
            }
            spec.after.retain(|after| *after != task);
        }
    }

    pub(super) fn submit_set(&mut self, at: usize) -> Result<(), String> {
        self.ask_for_memory();
        let Set(members) = self.sets[at].clone();
        let set = members.iter().map(|(job, after)| SetTask {
            spec: self.spec_now(*job),
            job: *job,
            after: after.iter().copied().collect(),
        });
        let set = set.collect();
        let answer = self.scheduler.submit_all(self.now, set).map_err(|(refusal, _)| refusal);
        let answer = self.judge(members.len(), answer)?;
        self.answered(members.into_iter().map(|(job, _)| job).collect(), answer, Happening::SubmitSet(at))
    }

    /// The task as its caller would describe it now.
    fn spec_now(&self, job: usize) -> TaskSpec {
        let mut spec = self.tasks[job].spec.clone();
        for reference in &mut spec.references {
            reference.pinned = self.is_pinned(reference.content);
        }
        spec.takes = self.values_of(job);
        spec
    }

    /// The scheduler's names of these tasks; none if one of them is itself still waiting to be taken in.
    fn ids_of(&self, jobs: &[usize]) -> Option<Vec<TaskId>> {
        jobs.iter().map(|&job| self.tasks[job].id).collect()
    }

    /// What a caller makes of an answer. A queue is full exactly when it holds as many tasks as it may.
    fn judge(&self, wanted: usize, answer: Result<Vec<TaskId>, SubmitErrorKind>) -> Result<Answer, String> {
        let (unsettled, limit) = (self.scheduler.unsettled(), self.scheduler.config().queue_limit);
        if self.scheduler.is_full() != (unsettled >= limit) {
            return Err(format!("is_full says {} with {unsettled} of {limit} tasks", self.scheduler.is_full()));
        }
        match answer {
            Ok(ids) => Ok(Answer::TakenIn(ids)),
            Err(SubmitErrorKind::QueueFull { .. }) if unsettled + wanted > limit => Ok(Answer::ComeBack),
            Err(SubmitErrorKind::ShuttingDown) => Ok(Answer::Closed),
            Err(SubmitErrorKind::SessionLost { .. }) => Ok(Answer::ComeBack),
            Err(SubmitErrorKind::NotHeld { .. }) => Ok(Answer::NotHeld),
            Err(refusal) => Err(format!("refused with {unsettled} of {limit} tasks: {refusal}")),
        }
    }

    fn answered(&mut self, jobs: Vec<usize>, answer: Answer, again: Happening) -> Result<(), String> {
        match answer {
            Answer::TakenIn(ids) => {
                self.taken_in(jobs.clone(), ids);
                return jobs.into_iter().try_for_each(|job| self.claim_value(job));
            }
            Answer::ComeBack => self.plan(self.now + COME_BACK, again),
            Answer::NotHeld => return jobs.into_iter().try_for_each(|job| self.end(job, Err(TaskError::Cancelled))),
            Answer::Closed => return jobs.into_iter().try_for_each(|job| self.end(job, Err(TaskError::ShutDown))),
        }
        Ok(())
    }

    fn taken_in(&mut self, jobs: Vec<usize>, ids: Vec<TaskId>) {
        let mut has_deadline = false;
        for (job, id) in jobs.into_iter().zip(ids) {
            self.raise_predecessors(job);
            self.jobs.insert(id, job);
            let task = &mut self.tasks[job];
            task.id = Some(id);
            task.submitted_at = self.now;
            task.order = Some(self.jobs.len() as u64);
            let takes = task.takes.clone();
            has_deadline |= task.spec.deadline.is_some();
            for (at, handle) in self.handles.iter_mut().enumerate().filter(|(_, handle)| handle.holders > 0) {
                if task.spec.references.iter().any(|reference| reference.content == handle.content) {
                    handle.holders += 1;
                    task.handles.push(at);
                }
            }
            if let (Some(checks), Some(sequence)) = (&mut self.checks, task.spec.sequence.filter(|_| !task.spec.holds))
            {
                checks.joined(id, sequence);
            }
            takes.into_iter().for_each(|maker| self.spend_handle(maker));
            self.joined_holder(job);
        }
        self.tell_watchdog_of_work(has_deadline);
    }

    /// Whatever a task waits for is as urgent as itself.
    fn raise_predecessors(&mut self, job: usize) {
        let has_failed = |before: &usize| matches!(self.tasks[*before].end, Some(Err(_)));
        if self.tasks[job].predecessors.iter().any(has_failed) {
            return;
        }
        let priority = self.tasks[job].spec.priority;
        let mut raised = self.tasks[job].predecessors.clone();
        while let Some(before) = raised.pop() {
            let task = &mut self.tasks[before];
            if task.end.is_none() && task.spec.priority < priority {
                task.spec.priority = priority;
                raised.extend(&task.predecessors);
            }
        }
    }

    pub(super) fn cancel(&mut self, job: usize) {
        if let Some(id) = self.tasks[job].id {
            self.scheduler.cancel(self.now, id);
        }
    }

    pub(super) fn pin(&mut self, handle: usize) {
        self.handles[handle].holders = 1;
        self.scheduler.pin(self.handles[handle].content);
    }

    /// One of those that held a handle does so no more; with the last of them it goes.
    pub(super) fn let_go(&mut self, handle: usize) {
        let Handle { content, holders } = &mut self.handles[handle];
        *holders -= 1;
        if *holders == 0 {
            self.scheduler.unpin(*content);
        }
    }

    /// A task is over and no attempt at it is under way: it lets go of the handles it was given.
    pub(super) fn let_go_of_handles(&mut self, job: usize) {
        if self.tasks[job].end.is_some() && !self.flights().any(|flight| flight.job == job) {
            std::mem::take(&mut self.tasks[job].handles).into_iter().for_each(|handle| self.let_go(handle));
        }
    }

    pub(in crate::sim) fn is_pinned(&self, content: ContentKey) -> bool {
        self.handles.iter().any(|handle| handle.holders > 0 && handle.content == content)
    }
}
