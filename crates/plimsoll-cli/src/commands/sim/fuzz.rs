//! `plimsoll sim fuzz`: many seeds, each a random box with random work and faults, and what must hold in all of them.
//! Invariant: of several failing seeds the lowest is reported, whatever the number of threads.

use std::any::Any;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use clap::{Args as ClapArgs, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use plimsoll_testkit::sim::fuzz::{Failure, Mutation, Passed, play};
use serde::Serialize;

use crate::output;
use crate::stop::{Ended, Stop};

/// Play random boxes, work and faults, and check that nothing is lost
#[derive(Debug, ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// How many seeds to play
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,
    /// The first seed
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    start: u64,
    /// How many to play at once [default: one on each core]
    #[arg(long, value_name = "J", value_parser = parse_jobs)]
    jobs: Option<usize>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Break the core on purpose, to see that it is noticed
    #[arg(long, hide = true)]
    mutation: Option<Broken>,
}

const EXAMPLES: &str = "\
In each seed no task may be lost or done twice, the ledger must balance, no device may go past its line, no task may \
starve, and the first cause of a failure must be kept. The first seed that breaks this is printed with the command that \
plays it again.

Examples:
  plimsoll sim fuzz --seeds 10000
  plimsoll sim fuzz --start 421 --seeds 1  play one seed again";

/// More would only take turns on the cores.
const JOBS_MAX: usize = 1024;

#[derive(Copy, Clone, Debug, ValueEnum)]
enum Broken {
    /// The ledger writes down half of each promise.
    ForgetfulLedger,
}

impl From<Broken> for Mutation {
    fn from(broken: Broken) -> Self {
        match broken {
            Broken::ForgetfulLedger => Self::ForgetfulLedger,
        }
    }
}

fn parse_jobs(text: &str) -> Result<usize, String> {
    let jobs = text.parse().ok().filter(|jobs| (1..=JOBS_MAX).contains(jobs));
    jobs.ok_or_else(|| format!("write a number from 1 to {JOBS_MAX}"))
}

pub(crate) fn run(args: &Args) -> Ended {
    let last = args.start.checked_add(args.seeds);
    let seeds = args.start..last.ok_or_else(|| Stop::failed("the last seed is too large; lower --start or --seeds"))?;
    let jobs = args.jobs.unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from));
    let begun = Instant::now();
    let tally = play_all(&seeds, jobs, args.mutation.map(Mutation::from), &progress(args));
    let report = Report::new(args, tally, begun.elapsed());
    match args.json {
        true => output::json(&report)?,
        false => report.print()?,
    }
    report.outcome()
}

/// On a terminal only; indicatif draws nothing elsewhere.
fn progress(args: &Args) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:30} {human_pos} of {human_len} seeds, {eta} left")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(args.seeds).with_style(style)
}

/// What the seeds that were played add up to.
#[derive(Default)]
struct Tally {
    played: u64,
    tasks: u64,
    done: u64,
    first_failure: Option<Failure>,
}

impl Tally {
    fn add(&mut self, played: Result<Passed, Failure>) {
        self.played += 1;
        match played {
            Ok(passed) => {
                self.tasks += passed.tasks;
                self.done += passed.done;
            }
            Err(failure) => self.keep_lowest(Some(failure)),
        }
    }

    fn merge(mut self, other: Self) -> Self {
        self.played += other.played;
        self.tasks += other.tasks;
        self.done += other.done;
        self.keep_lowest(other.first_failure);
        self
    }

    fn keep_lowest(&mut self, other: Option<Failure>) {
        let both = self.first_failure.take().into_iter().chain(other);
        self.first_failure = both.min_by_key(|failure| failure.seed);
    }
}

/// Plays the seeds in order on several threads until one fails. Those below it are then already handed out, and are
/// played to their end, so the lowest failure of all threads is the first.
fn play_all(seeds: &Range<u64>, jobs: usize, mutation: Option<Mutation>, progress: &ProgressBar) -> Tally {
    let (next, failed) = (AtomicU64::new(seeds.start), AtomicBool::new(false));
    let worker = || {
        let mut tally = Tally::default();
        while !failed.load(Ordering::Relaxed) {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if !seeds.contains(&seed) {
                break;
            }
            let played = play_caught(seed, mutation);
            failed.fetch_or(played.is_err(), Ordering::Relaxed);
            tally.add(played);
            progress.inc(1);
        }
        tally
    };
    let tallies: Vec<Tally> = thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().filter_map(|worker| worker.join().ok()).collect()
    });
    progress.finish_and_clear();
    tallies.into_iter().fold(Tally::default(), Tally::merge)
}

/// A panic in the core is a failing seed like any other.
fn play_caught(seed: u64, mutation: Option<Mutation>) -> Result<Passed, Failure> {
    catch_unwind(AssertUnwindSafe(|| play(seed, mutation)))
        .unwrap_or_else(|panic| Err(Failure { seed, broken: format!("panicked: {}", message(&*panic)) }))
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a message")
}

/// What is shown. The names of its fields are a promise to other programs.
#[derive(Serialize)]
struct Report {
    start: u64,
    seeds: u64,
    /// Fewer than `seeds` if one failed.
    played: u64,
    tasks: u64,
    done: u64,
    seconds: f64,
    failure: Option<FailureReport>,
}

#[derive(Serialize)]
struct FailureReport {
    seed: u64,
    broken: String,
    replay: String,
}

impl Report {
    fn new(args: &Args, tally: Tally, took: Duration) -> Self {
        let mutation = args.mutation.map(|_| " --mutation forgetful-ledger").unwrap_or_default();
        let failure = tally.first_failure.map(|Failure { seed, broken }| FailureReport {
            seed,
            broken,
            replay: format!("plimsoll sim fuzz --start {seed} --seeds 1{mutation}"),
        });
        Self {
            start: args.start,
            seeds: args.seeds,
            played: tally.played,
            tasks: tally.tasks,
            done: tally.done,
            seconds: took.as_secs_f64(),
            failure,
        }
    }

    fn print(&self) -> Ended {
        let Self { seeds, played, tasks, done, seconds, .. } = self;
        let end = if self.failure.is_none() { "all clean" } else { "stopped at the first that failed" };
        output::line(format_args!(
            "Played {played} of {seeds} seeds, {end}: {tasks} tasks, {done} done, {seconds:.1} s"
        ))
    }

    fn outcome(&self) -> Ended {
        match &self.failure {
            None => Ok(()),
            Some(failure) => Err(Stop::failed(format_args!("seed {} failed: {}", failure.seed, failure.broken))
                .with_next(&failure.replay)),
        }
    }
}
