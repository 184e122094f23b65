//! `cargo xtask mutate`: does a test fail when a line of plimsoll-core is wrong? Reads like a table of contents.
//! All mutants are compiled once, each behind a switch that the environment sets (mutant schemata), because a build for
//! each would take minutes on a small machine; then the test programs run once for each mutant.
//! Never changes the workspace: mutants live in a copy below the target folder.
//!
//! | file | what it does |
//! |---|---|
//! | `find`, `values` | where a mutant could be, and what it would say |
//! | `render` | writes a file with all of them, and knows whose fault an error is |
//! | `catalogue` | numbers them |
//! | `learn` | drops those that do not compile, by asking the compiler |
//! | `suites`, `trial` | runs the tests against each |
//! | `named`, `misses` | the checked-in lists: faults that must be caught, and mutants that need not be |

mod catalogue;
mod compile;
mod find;
mod learn;
mod misses;
mod named;
mod options;
mod render;
mod report;
mod sample;
mod site;
mod suites;
#[cfg(test)]
mod tests;
mod tree;
mod trial;
mod values;

use std::process::ExitCode;

use catalogue::Catalogue;
use options::{Plan, Tests, Which};
use site::MutantId;
use suites::Suites;
use tree::Tree;

/// The copy with the mutants of the catalogue.
const NUMBERED: &str = "numbered";

fn main() -> ExitCode {
    let outcome = Plan::of(std::env::args().skip(1)).and_then(|plan| match plan {
        Plan::Help => {
            println!("{}", options::HELP);
            Ok(true)
        }
        Plan::List => list(),
        Plan::Try { which: Which::Named, tests, jobs } => try_named(tests, jobs),
        Plan::Try { which, tests, jobs } => try_numbered(&which, tests, jobs),
    });
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(reason) => {
            eprintln!("error: {reason}");
            ExitCode::FAILURE
        }
    }
}

fn list() -> Result<bool, String> {
    let catalogue = Catalogue::of(&Tree::new(NUMBERED))?;
    catalogue.mutants.iter().for_each(|mutant| println!("{}", mutant.shown()));
    Ok(true)
}

/// The faults with names: each must be caught.
fn try_named(tests: Tests, jobs: usize) -> Result<bool, String> {
    let tree = Tree::new("named");
    let mut files = named::written(&tree)?;
    files.push((catalogue::CORE_LIB.to_owned(), catalogue::with_switch(&tree.text(catalogue::CORE_LIB)?)));
    tree.refresh(&files)?;
    let built = compile::tests(&tree, tests)?;
    if !built.complaints.is_empty() {
        return Err(format!("a named fault does not compile; renew it in xtask/mutate/src/named.rs\n{}", built.said));
    }
    let suites = baseline(built.programs)?;
    let ids: Vec<MutantId> = (1..).take(named::ALL.len()).collect();
    let name = |id: MutantId| named::ALL[id as usize - 1].name;
    let verdicts =
        suites.try_all(&ids, jobs, |done, id, verdict| report::progress(done, ids.len(), name(id), verdict))?;
    Ok(report::named(&verdicts, name))
}

/// Those of the catalogue: a sample, a folder, or some by number.
fn try_numbered(which: &Which, tests: Tests, jobs: usize) -> Result<bool, String> {
    let known = misses::KnownMisses::load()?;
    let tree = Tree::new(NUMBERED);
    let mut catalogue = Catalogue::of(&tree)?;
    let programs = learn::build(&tree, &mut catalogue, tests)?;
    let suites = baseline(programs)?;
    let ids = chosen(&catalogue, which);
    let shown = |id: MutantId| catalogue.mutant(id).shown();
    let verdicts = suites.try_all(&ids, jobs, |done, id, verdict| {
        report::progress(done, ids.len(), &shown(id), verdict);
    })?;
    Ok(report::numbered(&catalogue, &known, &verdicts))
}

fn baseline(programs: Vec<compile::Program>) -> Result<Suites, String> {
    eprintln!("==> with no mutant on");
    Suites::baseline(programs)
}

fn chosen(catalogue: &Catalogue, which: &Which) -> Vec<MutantId> {
    let alive = catalogue.mutants.iter().filter(|mutant| !catalogue.dropped.contains(&mutant.id));
    match which {
        Which::Sample { count, seed } => {
            let all: Vec<MutantId> = alive.map(|mutant| mutant.id).collect();
            sample::sample(&all, *count, *seed)
        }
        Which::Folder(folder) => {
            alive.filter(|mutant| mutant.file.starts_with(folder)).map(|mutant| mutant.id).collect()
        }
        Which::Only(ids) => alive.map(|mutant| mutant.id).filter(|id| ids.contains(id)).collect(),
        Which::Named | Which::Nothing => Vec::new(),
    }
}
