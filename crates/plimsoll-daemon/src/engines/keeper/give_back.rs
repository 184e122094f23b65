//! A recall: the engine goes down its steps until the driver shows that it holds no more than it may keep.
//! Never tells the broker that it stepped down before the driver's figure fell. Where the driver does not tell processes apart
//! that is the figure of all programs together, and it is said so.
//! Invariant: ends when the time that the recall gives is over; whatever is left is said.

use std::time::{Duration, Instant};

use plimsoll_core::Bytes;

use super::super::{Descending, Descent, Engine, EngineError};
use super::{Ending, Keeper, RECALL};
use crate::broker::EngineView;
use crate::wire::{Recall, Request, Say, Step};

/// How often an engine that works is looked at again.
const AGAIN: Duration = Duration::from_millis(250);
/// How often it is looked whether a reading has come.
const LOOK: Duration = Duration::from_millis(20);
/// How long a reading that begins now is waited for. One that takes longer is of a driver that hangs.
const FRESH_WITHIN: Duration = Duration::from_secs(2);
/// After how long what did not come back is tried again.
const RETRY_MIN: Duration = Duration::from_secs(5);
/// See [`RETRY_MIN`].
const RETRY_MAX: Duration = Duration::from_secs(300);
/// How long such a try may take.
const RETRY_WITHIN_MS: u64 = 5_000;

/// Whose figure was watched.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Figure {
    /// The engine's own.
    Engine,
    /// Everybody's on this device.
    Sum(String),
}

impl Figure {
    fn word(&self) -> String {
        match self {
            Self::Engine => "by its driver's word".to_owned(),
            Self::Sum(device) => format!("by what all programs together use of {device}"),
        }
    }

    fn remark(&self) -> String {
        match self {
            Self::Engine => String::new(),
            Self::Sum(device) => {
                format!(
                    " (the driver of {device} does not tell processes apart: what all programs use is what it shows)"
                )
            }
        }
    }
}

/// A recall that was not carried out.
#[derive(Debug)]
pub(super) struct Late {
    recall: Recall,
    problems: Vec<String>,
    pause: Duration,
    next: Instant,
}

impl Keeper {
    pub(super) fn give_back(&mut self, recall: &Recall) -> Result<(), Ending> {
        self.close(&format!("the engine gives its memory back: {}", recall.because));
        let within = Duration::from_millis(recall.within_ms);
        let (began, until) = (Instant::now(), Instant::now() + within);
        loop {
            // Only who is two levels above makes anybody leave; even so, what is under way has half of the time to end.
            let forced = !matches!(recall.step, Step::StepDown) && began.elapsed() > within / 2;
            let (descent, figure) = self.descend(recall, forced, until)?;
            let is_busy = matches!(descent.problems[..], [EngineError::Busy { .. } | EngineError::BusyUnknown { .. }]);
            if is_busy && Instant::now() + AGAIN < until {
                std::thread::sleep(AGAIN);
                continue;
            }
            return self.tell_what_came_of_it(recall, &descent, &figure);
        }
    }

    fn descend(&mut self, recall: &Recall, forced: bool, until: Instant) -> Result<(Descent, Figure), Ending> {
        let view = self.fresh_view(until)?;
        // What it holds beyond the lease that is recalled is not asked for.
        let promised = view.promised;
        let (held, figure) = match view.used {
            Some(used) => (used, Figure::Engine),
            None => (view.in_use, Figure::Sum(view.device.clone().unwrap_or_else(|| "its device".to_owned()))),
        };
        let by_process = figure == Figure::Engine;
        let keep = held.saturating_sub(promised.saturating_sub(recall.bytes));
        let (broker, process) = (self.broker.clone(), self.process);
        let (name, device) = (self.engine.name.clone(), view.device);
        let truth = move |_: &Engine| {
            let (name, device) = (name.clone(), device.clone());
            let view = broker.with_blocking(move |broker, _| broker.engine(&name, process, device.as_deref())).ok()?;
            if by_process { view.used } else { Some(view.in_use) }
        };
        let under_way = self.doorway.as_ref().map_or(0, |doorway| doorway.under_way());
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
        Ok((descent, figure))
    }

    /// How the engine stands by a reading that began after this call: what it has loaded since an older one would look as if
    /// it had given nothing back. A driver that hangs leaves its last figure.
    fn fresh_view(&self, until: Instant) -> Result<EngineView, Ending> {
        let mut view = self.view()?;
        let (begun, until) = (view.readings.begun, until.min(Instant::now() + FRESH_WITHIN));
        while view.readings.ended <= begun && Instant::now() < until {
            std::thread::sleep(LOOK);
            view = self.view()?;
        }
        Ok(view)
    }

    fn tell_what_came_of_it(&mut self, recall: &Recall, descent: &Descent, figure: &Figure) -> Result<(), Ending> {
        for step in &descent.taken {
            let text = format!(
                "{} gave back {} with '{}' in {:.1} s, {}",
                self.engine.name,
                Bytes(step.bytes),
                step.step,
                step.took.as_secs_f64(),
                figure.word()
            );
            self.note(Some(step.bytes), text)?;
        }
        let remark = figure.remark();
        let problems: Vec<String> = descent.problems.iter().map(|problem| format!("{problem}{remark}")).collect();
        // A second try that fails as the first did is no news.
        let is_news = self.late.as_ref().is_none_or(|late| late.problems != problems);
        for problem in problems.iter().filter(|_| is_news) {
            self.note(None, problem.clone())?;
        }
        // Where only the sum is known, an engine that has nothing left to give may have let it go before: the lease goes back,
        // and the core gives it to nobody unless the sum leaves room for it.
        let has_nothing = *figure != Figure::Engine && descent.at_the_bottom && descent.problems.is_empty();
        if !(descent.is_done() || has_nothing) {
            let pause = self.late.as_ref().map_or(RETRY_MIN, |late| (late.pause * 2).min(RETRY_MAX));
            let why = problems.last().cloned().unwrap_or_else(|| format!("{} gave nothing back", self.engine.name));
            self.late = Some(Late { recall: recall.clone(), problems, pause, next: Instant::now() + pause });
            self.warn(RECALL, Some(why))?;
            // Its memory is where it was, so its requests may as well go on.
            return self.reopen();
        }
        self.late = None;
        let lease = recall.lease;
        let answer = match recall.rung {
            Some(rung) => self.ask(Request::Stepped { lease, rung })?,
            None => self.ask(Request::Return { lease })?,
        };
        match answer {
            Say::Error { message } => self.note(None, format!("{}: {message}", self.engine.name)),
            _ => Ok(()),
        }
    }

    /// Tries again what did not come back in time, less and less often, as long as it is asked for.
    pub(super) fn try_again(&mut self, is_recalled: bool) -> Result<(), Ending> {
        match self.late.take() {
            Some(late) if is_recalled && Instant::now() >= late.next => {
                let recall = Recall { within_ms: RETRY_WITHIN_MS, ..late.recall.clone() };
                self.late = Some(late);
                self.give_back(&recall)
            }
            Some(late) if is_recalled => {
                self.late = Some(late);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn reopen(&self) -> Result<(), Ending> {
        let holds = !self.view()?.held.is_empty();
        if let Some(doorway) = self.doorway.as_ref().filter(|_| holds) {
            doorway.open();
        }
        Ok(())
    }
}
