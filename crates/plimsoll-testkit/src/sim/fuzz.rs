//! Many seeds, and what must hold in each: no task lost or done twice, the ledger balanced, never past the line, no
//! starvation, the first cause kept, sequences together.
//! Never stops at a pass: the first failing seed is the result.

use plimsoll_core::TaskError;

use super::scenario::Scenario;
use super::world::{TaskTruth, World};

/// A broken core, to see that the invariants would notice.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Mutation {
    /// The ledger writes down half of each promise.
    ForgetfulLedger,
}

/// A seed that failed, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The seed.
    pub seed: u64,
    /// What did not hold.
    pub broken: String,
}

/// What a clean seed did.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// Tasks taken in.
    pub tasks: u64,
    /// Tasks that gave a result.
    pub done: u64,
}

/// Plays one seed.
///
/// # Errors
/// What did not hold.
pub fn play(seed: u64, mutation: Option<Mutation>) -> Result<Passed, Failure> {
    let fail = |broken: String| Failure { seed, broken };
    let mut scenario = Scenario::new(seed);
    let mut world = scenario.build(seed);
    if mutation == Some(Mutation::ForgetfulLedger) {
        world.scheduler().break_ledger_on_purpose();
    }
    world.run().map_err(fail)?;
    for job in 0..world.tasks().len() {
        check_end(&world, job).map_err(fail)?;
    }
    let done = world.tasks().iter().filter(|task| matches!(task.end, Some(Ok(_)))).count() as u64;
    Ok(Passed { tasks: world.tasks().len() as u64, done })
}

/// Whether a task ended as it should have, seen from outside. Whether one that was refused could have been done is
/// `checks::refusals`' to say.
fn check_end(world: &World, job: usize) -> Result<(), String> {
    let task = &world.tasks()[job];
    match task.end.as_ref() {
        None => Err(format!("task {job} never ended")),
        Some(Ok(_)) if task.fails || task.panics => Err(format!("task {job} succeeded although its work fails")),
        Some(Ok(_)) => predecessors_succeeded(world, job, task),
        // Of one that was to be made again, `checks::values` has said whether it could have been.
        Some(Err(TaskError::PredecessorFailed { task: before, .. }))
            if world.job(*before).is_none() && !task.takes.is_empty() =>
        {
            Ok(())
        }
        Some(Err(TaskError::SessionLost { .. })) if task.spec.holds => Ok(()),
        Some(Err(TaskError::PredecessorFailed { task: before, cause }))
            if world.job(*before).is_none() && task.spec.holds =>
        {
            let is_right =
                matches!(**cause, TaskError::SessionLost { .. } | TaskError::Cancelled | TaskError::ShutDown);
            if is_right { Ok(()) } else { Err(format!("task {job} ended with its session's step down: {cause}")) }
        }
        Some(Err(TaskError::PredecessorFailed { cause, .. })) => caused_by_an_ancestor(world, job, cause),
        Some(Err(TaskError::WorkFailed(cause))) if task.fails && cause.to_string() == format!("work {job}") => Ok(()),
        Some(Err(TaskError::Panicked { message })) if task.panics && *message == format!("work {job}") => Ok(()),
        Some(Err(TaskError::Cancelled | TaskError::ShutDown)) => Ok(()),
        Some(Err(TaskError::DeadlinePassed { .. })) if task.spec.deadline.is_some() => Ok(()),
        Some(Err(TaskError::Exhausted { .. } | TaskError::NeverFits { .. })) => Ok(()),
        Some(Err(error)) => Err(format!("task {job} should have succeeded, but: {error}")),
    }
}

fn predecessors_succeeded(world: &World, job: usize, task: &TaskTruth) -> Result<(), String> {
    for before in task.needs() {
        let first = &world.tasks()[before];
        if !matches!(first.end, Some(Ok(_))) || first.ended_at > task.ended_at {
            return Err(format!("task {job} succeeded although task {before} had not"));
        }
    }
    Ok(())
}

/// The cause kept must be that of a task which this one, directly or not, had to wait for.
fn caused_by_an_ancestor(world: &World, job: usize, cause: &TaskError) -> Result<(), String> {
    let text = cause.to_string();
    let mut ancestors: Vec<usize> = world.tasks()[job].needs().collect();
    while let Some(before) = ancestors.pop() {
        let first = &world.tasks()[before];
        if let Some(Err(error)) = &first.end
            && !matches!(error, TaskError::PredecessorFailed { .. })
            && error.to_string() == text
        {
            return Ok(());
        }
        ancestors.extend(first.needs());
    }
    Err(format!("task {job} blames '{text}', which no task before it ended with"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Enough seeds to notice a broken core in seconds; `plimsoll sim fuzz` plays as many as you like.
    const SEEDS: u64 = 400;

    #[test]
    fn seeds_are_clean() {
        let wanted = std::env::var("SEEDS").map_or(SEEDS, |count| count.parse().expect("a number of seeds"));
        for seed in 0..wanted {
            if let Err(failure) = play(seed, None) {
                panic!("seed {seed}: {}\nreplay: plimsoll sim fuzz --start {seed} --seeds 1", failure.broken);
            }
        }
    }

    /// Two tasks in one place of a queue; a worse answer while the better was warm; a device that stood still for a task whose
    /// memory values held; a grant that nobody looked at when what it waited for was stolen, or gave up; a
    /// session that was asked to leave while it was closed.
    #[test]
    fn seeds_that_once_failed_are_clean() {
        for seed in [2_904, 8_977, 45_983, 61_446, 76_632, 76_734] {
            if let Err(failure) = play(seed, None) {
                panic!("seed {seed}: {}", failure.broken);
            }
        }
    }

    #[test]
    fn broken_cores_are_caught() {
        let caught = (0..SEEDS).filter(|&seed| play(seed, Some(Mutation::ForgetfulLedger)).is_err()).count();
        assert!(caught > 0, "a ledger that forgets half of each promise went unnoticed");
    }

    #[test]
    fn a_seed_gives_the_same_run_again() {
        for seed in 0..20 {
            assert_eq!(play(seed, None), play(seed, None));
        }
    }
}
