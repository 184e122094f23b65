//! The arguments of `cargo xtask mutate`, checked once into a plan.

use crate::site::MutantId;

/// What `--help` prints.
pub(crate) const HELP: &str = "\
cargo xtask mutate [OPTION...]   does a test fail when a line of plimsoll-core is wrong?

  --sample N      try N mutants at random over the whole core (200)
  --seed N        the seed of that sample (1)
  --folder NAME   try every mutant below this folder of the core's src, or in this file
  --only ID,ID    try these mutants
  --named         try the faults that tests once let through
  --baseline      only see that everything passes with no mutant on
  --list          print every mutant with its number; build nothing
  --own           by the core's own tests alone: minutes instead of hours, and what they miss others may catch
  --jobs N        mutants at a time (2)

Fails if a mutant is missed that is not in xtask/mutate/misses.txt, or if fewer than 90 % are caught.";

/// Which mutants to try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    Sample { count: usize, seed: u64 },
    Folder(String),
    Only(Vec<MutantId>),
    Named,
    Nothing,
}

/// Whose tests a mutant must get past.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Tests {
    /// Those of the core, and of what is built on it.
    All,
    /// Those of the core.
    Own,
}

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    Help,
    List,
    Try { which: Which, tests: Tests, jobs: usize },
}

impl Plan {
    /// From the arguments as typed.
    pub(crate) fn of(arguments: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let mut arguments = arguments.into_iter();
        let (mut which, mut tests, mut count, mut seed, mut jobs) = (None, Tests::All, 200, 1, 2);
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
            match argument.as_str() {
                "-h" | "--help" | "help" => return Ok(Self::Help),
                "--list" => return Ok(Self::List),
                "--own" => tests = Tests::Own,
                "--named" => which = Some(Which::Named),
                "--baseline" => which = which.or(Some(Which::Nothing)),
                "--folder" => which = Some(Which::Folder(value()?)),
                "--only" => which = Some(Which::Only(value()?.split(',').map(number).collect::<Result<_, _>>()?)),
                "--sample" => count = number(&value()?)?,
                "--seed" => seed = number(&value()?)?,
                "--jobs" => jobs = number(&value()?)?,
                _ => return Err(format!("there is no option '{argument}'\n\n{HELP}")),
            }
        }
        Ok(Self::Try { which: which.unwrap_or(Which::Sample { count, seed }), tests, jobs })
    }
}

fn number<N: std::str::FromStr>(text: &str) -> Result<N, String> {
    text.trim().parse().map_err(|_| format!("'{text}' is not a number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(line: &str) -> Result<Plan, String> {
        Plan::of(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn options_become_a_plan() {
        let sample =
            |count, seed, jobs| Ok(Plan::Try { which: Which::Sample { count, seed }, tests: Tests::All, jobs });
        assert_eq!(plan(""), sample(200, 1, 2));
        assert_eq!(plan("--sample 60 --seed 7 --jobs 1"), sample(60, 7, 1));
        assert_eq!(plan("--only 3,5"), Ok(Plan::Try { which: Which::Only(vec![3, 5]), tests: Tests::All, jobs: 2 }));
        let own = Plan::Try { which: Which::Folder("scheduler".into()), tests: Tests::Own, jobs: 2 };
        assert_eq!(plan("--folder scheduler --own"), Ok(own));
        assert!(plan("--sample many").is_err() && plan("--sample").is_err() && plan("--all").is_err());
    }
}
