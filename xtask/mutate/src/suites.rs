//! The test programs that a mutant must get past, the core's own first, then the fastest, and whether it did.
//! Never trusts a clock alone: a test that fails among threads must fail once more with nothing beside it.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::compile::Program;
use crate::site::MutantId;
use crate::trial::{self, Ended};

/// Programs that need a GPU's driver, and say nothing of the core that others do not.
const LEFT_OUT: &[(&str, &str)] = &[("plimsoll-testkit", "conformance"), ("plimsoll-testkit", "ladder")];
/// Programs with threads and clocks, which a busy machine can fail.
const WITH_CLOCKS: &[(&str, &str)] =
    &[("plimsoll-testkit", "runtime"), ("plimsoll-runtime", "lib"), ("plimsoll-runtime", "telemetry")];
/// How often a test that failed among threads is run again: some mutants lose a race only now and then.
const AGAIN: usize = 3;
/// Longest that a program may take with no mutant on.
const BASELINE_MAX: Duration = Duration::from_secs(900);
/// A hang is what takes this many times as long, and then some.
const HANG_FACTOR: u32 = 3;
const HANG_GRACE: Duration = Duration::from_secs(10);
/// How much longer it may take when it is run again to be sure.
const HANG_AGAIN_FACTOR: u32 = 4;

/// One test program, and how long it may take.
struct Suite {
    program: Program,
    limit: Duration,
}

/// All of them.
pub(crate) struct Suites(Vec<Suite>);

/// What became of a mutant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// By which test.
    Caught(String),
    Missed,
}

impl Suites {
    /// Runs every program with no mutant on: all must pass, and what each took decides their order.
    pub(crate) fn baseline(programs: Vec<Program>) -> Result<Self, String> {
        let mut timed = Vec::new();
        for program in programs.into_iter().filter(|program| !LEFT_OUT.contains(&program.id())) {
            let begun = Instant::now();
            if !passes(&program)? {
                let (package, target) = program.id();
                return Err(format!("{package} {target} fails with no mutant on; mend that first"));
            }
            timed.push((begun.elapsed(), program));
        }
        // The core's own tests catch most, and soon: what is left to the others is little.
        timed.sort_by_key(|(took, program)| (program.package != "plimsoll-core", *took));
        for (took, program) in &timed {
            eprintln!("    {:6.1} s  {} {}", took.as_secs_f64(), program.package, program.target);
        }
        let suite = |(took, program)| Suite { program, limit: took * HANG_FACTOR + HANG_GRACE };
        Ok(Self(timed.into_iter().map(suite).collect()))
    }

    /// Tries all mutants, so many at a time.
    pub(crate) fn try_all(
        &self,
        mutants: &[MutantId],
        jobs: usize,
        progress: impl Fn(usize, MutantId, &Verdict) + Sync,
    ) -> Result<Vec<(MutantId, Verdict)>, String> {
        let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        let work = || -> Result<(), String> {
            while let Some(&mutant) = mutants.get(next.fetch_add(1, Ordering::Relaxed)) {
                let verdict = self.judge(mutant)?;
                let mut done = done.lock().map_err(|_| "another trial panicked")?;
                progress(done.len() + 1, mutant, &verdict);
                done.push((mutant, verdict));
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..jobs.max(1)).map(|_| scope.spawn(work)).collect();
            workers.into_iter().try_for_each(|worker| worker.join().map_err(|_| "a trial panicked".to_owned())?)
        })?;
        let mut verdicts = done.into_inner().map_err(|_| "a trial panicked")?;
        verdicts.sort_by_key(|(mutant, _)| *mutant);
        Ok(verdicts)
    }

    fn judge(&self, mutant: MutantId) -> Result<Verdict, String> {
        for suite in &self.0 {
            if let Some(by) = suite.catches(mutant)? {
                return Ok(Verdict::Caught(by));
            }
        }
        Ok(Verdict::Missed)
    }
}

impl Suite {
    /// What catches this mutant, if anything does.
    fn catches(&self, mutant: MutantId) -> Result<Option<String>, String> {
        let (package, target) = self.program.id();
        Ok(match trial::run(&self.program, None, mutant, self.limit)? {
            Ended::Passed => None,
            Ended::Hung => self.hangs_again(mutant)?.then(|| format!("{package} {target} (hangs)")),
            Ended::Failed(None) => Some(format!("{package} {target} (dies)")),
            Ended::Failed(Some(test)) => {
                let is_sure = !WITH_CLOCKS.contains(&(package, target)) || self.fails_again(&test, mutant)?;
                is_sure.then(|| format!("{package} {target} {test}"))
            }
        })
    }

    /// A busy machine makes slow what does not hang: it has far more time at the second try.
    fn hangs_again(&self, mutant: MutantId) -> Result<bool, String> {
        Ok(trial::run(&self.program, None, mutant, self.limit * HANG_AGAIN_FACTOR)? != Ended::Passed)
    }

    fn fails_again(&self, test: &str, mutant: MutantId) -> Result<bool, String> {
        for _ in 0..AGAIN {
            if trial::run(&self.program, Some(test), mutant, self.limit)? != Ended::Passed {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Once more if it fails: a busy machine is no reason to stop.
fn passes(program: &Program) -> Result<bool, String> {
    let run = || trial::run(program, None, 0, BASELINE_MAX);
    Ok(run()? == Ended::Passed || run()? == Ended::Passed)
}

impl Program {
    fn id(&self) -> (&str, &str) {
        (&self.package, &self.target)
    }
}
