//! A recall: the engine goes down its steps until the driver shows that it holds no more than it may keep.
//! Never tells the broker that it stepped down before the driver's figure fell.
//! Invariant: ends when the time that the recall gives is over; whatever is left is said.

use std::time::{Duration, Instant};

use plimsoll_core::Bytes;

use super::super::{Descending, Descent, Engine, EngineError};
use super::{Ending, Keeper};
use crate::wire::{Recall, Request, Say, Step};

/// How often an engine that works is looked at again.
const AGAIN: Duration = Duration::from_millis(250);

impl Keeper {
    pub(super) fn give_back(&mut self, recall: &Recall) -> Result<(), Ending> {
        self.close(&format!("the engine gives its memory back: {}", recall.because));
        let until = Instant::now() + Duration::from_millis(recall.within_ms);
        loop {
            let descent = self.descend(recall, until)?;
            let is_busy = matches!(descent.problems[..], [EngineError::Busy { .. } | EngineError::BusyUnknown { .. }]);
            if is_busy && Instant::now() + AGAIN < until {
                std::thread::sleep(AGAIN);
                continue;
            }
            return self.tell_what_came_of_it(recall, &descent);
        }
    }

    fn descend(&mut self, recall: &Recall, until: Instant) -> Result<Descent, Ending> {
        let view = self.view()?;
        // What it holds beyond the lease that is recalled is not asked for.
        let promised = view.promised;
        let (held, by_process) = match view.used {
            Some(used) => (used, true),
            None => (view.in_use, false),
        };
        let keep = held.saturating_sub(promised.saturating_sub(recall.bytes));
        let (broker, process) = (self.broker.clone(), self.process);
        let (name, device) = (self.engine.name.clone(), view.device);
        let truth = move |_: &Engine| {
            let (name, device) = (name.clone(), device.clone());
            let view = broker.with_blocking(move |broker, _| broker.engine(&name, process, device.as_deref())).ok()?;
            if by_process { view.used } else { Some(view.in_use) }
        };
        let under_way = self.doorway.as_ref().map_or(0, |doorway| doorway.under_way());
        // Only who is two levels above makes anybody leave.
        let forced = !matches!(recall.step, Step::StepDown);
        let left = until.saturating_duration_since(Instant::now());
        let to = Descending { forced, under_way, ..Descending::to(keep, left) };
        let to = Descending { settle: to.settle.min(left.max(AGAIN)), ..to };
        let mut measures = self.books.lock().clone();
        let descent = self.engine.descend(&truth, to, &mut measures);
        if let Some(process) = self.process {
            measures.set_depth(&self.engine.name, process, self.engine.adapter.depth());
        }
        *self.books.lock() = measures;
        self.books.write();
        Ok(descent)
    }

    fn tell_what_came_of_it(&mut self, recall: &Recall, descent: &Descent) -> Result<(), Ending> {
        for step in &descent.taken {
            let text = format!(
                "{} gave back {} with '{}' in {:.1} s, by its driver's word",
                self.engine.name,
                Bytes(step.bytes),
                step.step,
                step.took.as_secs_f64()
            );
            self.note(Some(step.bytes), text)?;
        }
        for problem in &descent.problems {
            self.note(None, problem.to_string())?;
        }
        let fell = descent.before.saturating_sub(descent.after);
        let has_left = descent.at_the_bottom && fell > 0 || descent.after <= descent.before.saturating_sub(recall.bytes.max(1));
        let lease = recall.lease;
        let answer = match recall.rung {
            Some(rung) if fell > 0 => self.ask(Request::Stepped { lease, rung })?,
            None if has_left => self.ask(Request::Return { lease })?,
            _ => {
                let problem = descent.problems.last().map_or_else(
                    || format!("{} gave nothing back", self.engine.name),
                    ToString::to_string,
                );
                self.warn(Some(problem))?;
                // Its memory is where it was, so its requests may as well go on.
                self.reopen()?;
                Say::Done
            }
        };
        if let Say::Error { message } = answer {
            self.note(None, format!("{}: {message}", self.engine.name))?;
        }
        Ok(())
    }

    fn reopen(&self) -> Result<(), Ending> {
        let holds = !self.view()?.held.is_empty();
        if let Some(doorway) = self.doorway.as_ref().filter(|_| holds) {
            doorway.open();
        }
        Ok(())
    }
}
