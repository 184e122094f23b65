//! Goes down an engine's steps until the driver shows that it holds no more than it may keep.
//! Never counts an answer as success, and never takes a step while the engine works, unless it is forced.
//! Invariant: each step ends in time; what it gave by the driver's figure is learnt, or the reason is told.

use std::time::{Duration, Instant};

use super::{Busy, Engine, EngineError, Measures, Step, Survey};

/// How often the driver's figure is read while it is expected to fall.
const LOOK: Duration = Duration::from_millis(20);

/// What the driver says.
pub trait Truth: Send + Sync {
    /// Device memory that an engine holds, its child processes included; none if no driver says.
    fn held(&self, engine: &Engine) -> Option<u64>;
}

impl<F: Fn(&Engine) -> Option<u64> + Send + Sync> Truth for F {
    fn held(&self, engine: &Engine) -> Option<u64> {
        self(engine)
    }
}

/// How far an engine is to go.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Descending {
    /// What it may still hold.
    pub keep: u64,
    /// Somebody two levels above wants it: what is under way may be cut off.
    pub forced: bool,
    /// Requests that a gate has let through and that have not ended.
    pub under_way: u64,
    /// How long the figure of one step is watched.
    pub settle: Duration,
    /// A figure that fell, and then did not move for so long, has settled.
    pub quiet: Duration,
    /// No step begins after this.
    pub until: Instant,
}

impl Descending {
    /// Down to `keep`, within this time.
    #[must_use]
    pub fn to(keep: u64, within: Duration) -> Self {
        let (settle, quiet) = (Duration::from_secs(15), Duration::from_secs(2));
        Self { keep, forced: false, under_way: 0, settle, quiet, until: Instant::now() + within }
    }
}

/// A step that was taken, by the driver's figure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepTaken {
    /// Its name.
    pub step: String,
    /// By how much the figure fell.
    pub bytes: u64,
    /// From the call until it had fallen.
    pub took: Duration,
}

/// What became of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Descent {
    /// What the driver showed before.
    pub before: u64,
    /// What it shows now.
    pub after: u64,
    /// The steps that gave something back.
    pub taken: Vec<StepTaken>,
    /// What was not as it should be, in order.
    pub problems: Vec<EngineError>,
    /// The driver shows no more than the engine may keep.
    pub is_reached: bool,
    /// No step is left.
    pub at_the_bottom: bool,
}

impl Descent {
    /// Everything was given back that was asked for, or that there was.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.is_reached || self.at_the_bottom && self.after < self.before
    }
}

impl Engine {
    /// Goes down step by step until the driver's figure is low enough or there is no step left. Blocks.
    pub fn descend(&self, truth: &dyn Truth, to: Descending, measures: &mut Measures) -> Descent {
        let Some(before) = truth.held(self) else {
            let problems = vec![EngineError::NoTruth { engine: self.name.clone() }];
            return Descent { problems, ..Descent::default() };
        };
        let mut descent = Descent { before, after: before, ..Descent::default() };
        if before > to.keep
            && let Err(problem) = self.descend_from(truth, to, measures, &mut descent)
        {
            descent.problems.push(problem);
        }
        descent.is_reached = descent.after <= to.keep;
        descent
    }

    fn descend_from(
        &self,
        truth: &dyn Truth,
        to: Descending,
        measures: &mut Measures,
        descent: &mut Descent,
    ) -> Result<(), EngineError> {
        let survey = self.adapter.survey()?;
        let forced = self.may_begin(&survey, to)?;
        for step in self.adapter.steps(&survey) {
            if descent.after <= to.keep || Instant::now() >= to.until {
                return Ok(());
            }
            let began = Instant::now();
            self.adapter.take(&step, forced)?;
            let expected = measures.of(&self.name, &step.name).map(|one| one.bytes).or(step.told);
            let watched = self.watch(truth, descent.after, expected, to)?;
            self.settle(&step, began, watched, measures, descent);
        }
        descent.at_the_bottom = true;
        Ok(())
    }

    /// Whether a step may be taken now, and if so, whether over what is under way.
    fn may_begin(&self, survey: &Survey, to: Descending) -> Result<bool, EngineError> {
        let engine = self.name.clone();
        let busy = match self.adapter.busy(survey)? {
            // Requests that came through the gate are known even where the engine does not tell.
            Busy::Idle | Busy::Unknown(_) if to.under_way > 0 => Busy::Items(to.under_way),
            other => other,
        };
        match busy {
            Busy::Idle => Ok(false),
            Busy::Unknown(_) if self.adapter.waits_by_itself() => Ok(false),
            Busy::Items(_) | Busy::Unknown(_) if to.forced && self.adapter.may_be_forced() => Ok(true),
            Busy::Items(items) => Err(EngineError::Busy { engine, items }),
            Busy::Unknown(why) => Err(EngineError::BusyUnknown { engine, why }),
        }
    }

    /// Watches the driver's figure fall: until it is as low as expected, or has settled, or the time is over.
    fn watch(&self, truth: &dyn Truth, before: u64, expected: Option<u64>, to: Descending) -> Result<u64, EngineError> {
        let until = Instant::now() + to.settle;
        let mut lowest = before;
        let mut moved = Instant::now();
        loop {
            let Some(held) = truth.held(self) else {
                return Err(EngineError::NoTruth { engine: self.name.clone() });
            };
            if held < lowest {
                (lowest, moved) = (held, Instant::now());
            }
            let as_expected = expected.is_some_and(|bytes| bytes > 0 && lowest <= before.saturating_sub(bytes));
            let has_settled = lowest < before && moved.elapsed() >= to.quiet;
            if as_expected || has_settled || lowest == 0 || Instant::now() >= until {
                return Ok(held);
            }
            std::thread::sleep(LOOK);
        }
    }

    fn settle(&self, step: &Step, began: Instant, held: u64, measures: &mut Measures, descent: &mut Descent) {
        let fell = descent.after.saturating_sub(held);
        let took = began.elapsed();
        if fell == 0 {
            descent.problems.push(EngineError::NotFreed {
                engine: self.name.clone(),
                step: step.name.clone(),
                held,
                waited: took,
                todo: self.adapter.if_not_freed(),
            });
        } else {
            measures.learn(&self.name, &step.name, fell, u64::try_from(took.as_millis()).unwrap_or(u64::MAX));
            descent.taken.push(StepTaken { step: step.name.clone(), bytes: fell, took });
            // A tenth less is how the two count; half is not.
            if let Some(told) = step.told.filter(|told| fell < told - told / 10) {
                descent.problems.push(EngineError::FreedLess {
                    engine: self.name.clone(),
                    step: step.name.clone(),
                    fell,
                    told,
                });
            }
        }
        descent.after = held;
    }
}
