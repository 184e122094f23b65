//! Those who hold values and hand in what reads them: the stages of items, in the step that ends the one before or later,
//! or all of them at once, before there is anything to read; values with several readers, and with none.
//! Never holds a handle for longer than somebody may still hand in a reader.

use std::hash::{Hash, Hasher};
use std::rc::Rc;

use plimsoll_core::task::ItemStage;
use plimsoll_core::{Moment, Nanos, TaskError, TaskSpec, ValueId};
use rustc_hash::FxHasher;
use smallvec::SmallVec;

use super::{Cost, Happening, World};
use crate::sim::truth::VirtualValue;

/// How often the next stage is handed in later than in the step that ended the one before.
const LATER: f64 = 0.2;

impl World {
    /// An item that arrives at this moment. Each stage takes the values of stages before it, by their place.
    pub fn arrive_in_stages(&mut self, at: Moment, stages: Vec<(TaskSpec, Cost, Vec<usize>)>) -> Vec<usize> {
        let (first, item) = (self.tasks.len(), self.items.len());
        self.items.push(None);
        for (stage, (spec, cost, takes)) in stages.into_iter().enumerate() {
            let job = self.add(spec, cost);
            let takes: Vec<usize> = takes.into_iter().map(|before| first + before).collect();
            takes.iter().for_each(|&before| self.tasks[before].readers.push(job));
            let task = &mut self.tasks[job];
            task.stage = Some((item, stage as u8));
            if takes.is_empty() {
                self.plan(at, Happening::Submit(job));
            }
            self.tasks[job].takes = takes;
        }
        (first..self.tasks.len()).collect()
    }

    /// The stages of an item do not wait for what they read to be made: it is claimed by whoever hands its maker in, and
    /// its readers follow at once.
    pub fn claim_values_of(&mut self, jobs: &[usize]) {
        for &job in jobs {
            let task = &mut self.tasks[job];
            task.spec.is_claimed = !task.readers.is_empty();
        }
    }

    /// The handle to what this job makes is given up before that is made. Nobody may read it.
    pub fn give_up_value_of(&mut self, job: usize) {
        self.tasks[job].gives_up_its_value = true;
    }

    /// Whether there are values at all.
    pub(in crate::sim) fn has_items(&self) -> bool {
        !self.items.is_empty()
    }

    /// All stages of an item are as old as its first.
    pub(super) fn note_item(&mut self, job: usize) {
        let Some((item, stage)) = self.tasks[job].stage else { return };
        let since = *self.items[item].get_or_insert(self.now);
        self.tasks[job].spec.item = Some(ItemStage { since, stage });
    }

    /// The values that a job takes, as handles name them.
    pub(super) fn values_of(&self, job: usize) -> SmallVec<[ValueId; 1]> {
        self.tasks[job].takes.iter().filter_map(|&maker| self.tasks[maker].value).map(|(value, _)| value).collect()
    }

    /// A job was taken in whose value is claimed: each of its readers has a handle from now on.
    pub(super) fn claim_value(&mut self, job: usize) -> Result<(), String> {
        let Some(value) = self.value_of(job).filter(|_| self.tasks[job].spec.is_claimed) else { return Ok(()) };
        let mut wanted = self.tasks[job].readers.clone();
        wanted.retain(|&reader| self.tasks[reader].end.is_none());
        (1..wanted.len()).for_each(|_| self.scheduler.share_value(value));
        self.tasks[job].value = Some((value, wanted.len().max(1)));
        if wanted.is_empty() {
            self.give_up_value(job);
        }
        for reader in wanted {
            let is_named = |maker: &usize| self.tasks[*maker].value.is_some();
            // What came of one may have ended the others.
            if self.tasks[reader].end.is_none() && self.tasks[reader].takes.iter().all(is_named) {
                self.hand_in_reader(reader)?;
            }
        }
        Ok(())
    }

    /// A reader was handed in: the handle that named the value to it is spent.
    pub(super) fn spend_handle(&mut self, maker: usize) {
        if let Some((_, handles)) = &mut self.tasks[maker].value {
            *handles -= 1;
        }
    }

    /// One that was held is given up unused.
    pub(super) fn give_up_value(&mut self, maker: usize) {
        if let Some((value, handles)) = &mut self.tasks[maker].value {
            *handles -= 1;
            self.scheduler.drop_value(self.now, *value);
        }
    }

    /// An attempt starts whose output nobody will want.
    pub(super) fn give_up_before_it_is_made(&mut self, job: usize) {
        if let Some(value) = self.value_of(job).filter(|_| self.tasks[job].gives_up_its_value) {
            self.scheduler.share_value(value);
            self.scheduler.drop_value(self.now, value);
        }
    }

    /// What a job that was taken in makes.
    fn value_of(&self, job: usize) -> Option<ValueId> {
        self.tasks[job].id.map(ValueId::of)
    }

    /// An attempt that was asked for has made its value: who ran it holds it until it is known whether it counts.
    pub(super) fn hold_what_was_made(&mut self, job: usize) {
        if let Some(value) = self.value_of(job).filter(|_| !self.tasks[job].gives_up_its_value) {
            self.scheduler.share_value(value);
        }
    }

    /// It does not count.
    pub(super) fn let_go_of_what_was_made(&mut self, job: usize) {
        if let Some(value) = self.value_of(job).filter(|_| !self.tasks[job].gives_up_its_value) {
            self.scheduler.drop_value(self.now, value);
        }
    }

    /// A job has given its result: there is a handle for each that will read what it made, or one that nobody uses.
    pub(super) fn receive_value(&mut self, job: usize) {
        if self.tasks[job].value_bytes().0 == 0 || self.tasks[job].gives_up_its_value {
            return;
        }
        let Some(value) = self.value_of(job) else { return };
        if self.tasks[job].spec.is_claimed {
            // Its readers have theirs; the one that came with the result is one too many.
            return self.scheduler.drop_value(self.now, value);
        }
        let wanted = self.tasks[job].readers.iter().filter(|&&reader| self.tasks[reader].end.is_none()).count();
        (1..wanted).for_each(|_| self.scheduler.share_value(value));
        self.tasks[job].value = Some((value, wanted.max(1)));
        if wanted == 0 {
            let after = Nanos::micros(self.rng.within(0, 200_000));
            self.plan(self.now + after, Happening::GiveUpValue(job));
        }
    }

    /// A job has ended: what reads its value is handed in, or ends with it.
    pub(super) fn follow_up(&mut self, job: usize) -> Result<(), String> {
        let task = &self.tasks[job];
        if task.id.is_none() {
            // Whatever was kept for it is not needed.
            let unused: Vec<usize> = task.takes.iter().copied().filter(|&maker| self.has_handle(maker)).collect();
            unused.into_iter().for_each(|maker| self.give_up_value(maker));
        }
        let error = match &self.tasks[job].end {
            Some(Err(error)) => Some(error.clone()),
            _ => None,
        };
        let follows = error.map(|error| match (error, self.tasks[job].id) {
            (first, Some(task)) if !matches!(first, TaskError::PredecessorFailed { .. }) => {
                TaskError::PredecessorFailed { task, cause: Box::new(first) }
            }
            (error, _) => error,
        });
        for reader in self.tasks[job].readers.clone() {
            let task = &self.tasks[reader];
            let is_left_to_core = task.id.is_some();
            if task.end.is_some() || is_left_to_core {
                continue;
            }
            match &follows {
                Some(error) => self.end(reader, Err(error.clone()))?,
                None if self.tasks[reader].takes.iter().all(|&maker| self.tasks[maker].succeeded()) => {
                    self.hand_in_reader(reader)?;
                }
                None => {}
            }
        }
        Ok(())
    }

    fn has_handle(&self, maker: usize) -> bool {
        self.tasks[maker].value.is_some_and(|(_, handles)| handles > 0)
    }

    fn hand_in_reader(&mut self, reader: usize) -> Result<(), String> {
        if std::mem::replace(&mut self.tasks[reader].is_handed_in, true) {
            return Ok(());
        }
        if self.rng.chance(LATER) {
            let after = Nanos::micros(self.rng.within(0, 100_000));
            self.plan(self.now + after, Happening::Submit(reader));
            return Ok(());
        }
        self.submit(reader)
    }

    /// What a job makes of these.
    pub(super) fn content(job: usize, of: impl Iterator<Item = u64>) -> u64 {
        let mut hasher = FxHasher::default();
        job.hash(&mut hasher);
        of.for_each(|content| content.hash(&mut hasher));
        hasher.finish()
    }

    /// What a job has to make, whoever makes it and however often.
    pub(in crate::sim) fn right_content(&self, job: usize) -> u64 {
        Self::content(job, self.tasks[job].takes.iter().map(|&maker| self.right_content(maker)))
    }

    pub(super) fn note_made(&mut self, job: usize, value: &Rc<VirtualValue>) {
        self.made.retain(|(_, made)| made.strong_count() > 0);
        self.made.push((job, Rc::downgrade(value)));
    }

    /// Values that are really there, each with its maker and how many hold it.
    pub(in crate::sim) fn values_there(&self) -> impl Iterator<Item = (usize, Rc<VirtualValue>)> + '_ {
        self.made.iter().filter_map(|(job, made)| Some((*job, made.upgrade()?)))
    }
}
