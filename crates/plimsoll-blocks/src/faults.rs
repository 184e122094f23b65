//! Places where a test can make a stage panic. Without the feature `faults`, which only tests ask for, there are none.
//!
//! What is planned is planned for the whole process: tests that plan something run alone.

/// Where a stage can be made to panic: at the beginning of a run of its session.
#[inline]
pub(crate) fn point(stage: &str) {
    #[cfg(feature = "faults")]
    planned::point(stage);
    #[cfg(not(feature = "faults"))]
    let _ = stage;
}

#[cfg(feature = "faults")]
pub use planned::{STAGES, panic_in};

#[cfg(feature = "faults")]
mod planned {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Mutex, PoisonError};

    /// Every stage there is.
    pub const STAGES: [&str; 7] = ["pack", "filter", "match", "code-frame", "code-member", "unpack", "unpack-part"];

    static IS_PLANNED: AtomicBool = AtomicBool::new(false);
    static PLAN: Mutex<Option<Plan>> = Mutex::new(None);

    struct Plan {
        stage: &'static str,
        runs_before: u64,
    }

    /// Lets a stage run so many times from now on, then panic every time; `None` lets all stages be.
    pub fn panic_in(plan: Option<(&'static str, u64)>) {
        let plan = plan.map(|(stage, runs_before)| Plan { stage, runs_before });
        IS_PLANNED.store(plan.is_some(), Ordering::SeqCst);
        *PLAN.lock().unwrap_or_else(PoisonError::into_inner) = plan;
    }

    pub(super) fn point(stage: &str) {
        if IS_PLANNED.load(Ordering::Relaxed) && is_due(stage) {
            panic!("the stage '{stage}' panics on purpose");
        }
    }

    fn is_due(stage: &str) -> bool {
        let mut plan = PLAN.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(plan) = plan.as_mut().filter(|plan| plan.stage == stage) else { return false };
        let is_due = plan.runs_before == 0;
        plan.runs_before = plan.runs_before.saturating_sub(1);
        is_due
    }
}
