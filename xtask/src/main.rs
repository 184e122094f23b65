//! Development commands: `cargo xtask <command>`. Reads like a table of contents; each step is in `steps`.
//! Never a dependency of the product, and depends on nothing but std, so that it builds in seconds on a fresh machine.

mod archivers;
mod browser;
mod campaigns;
mod components;
mod instructions;
mod packages;
mod perf;
mod python;
mod steps;
mod video;
mod vulkan;

use std::env;
use std::process::ExitCode;

const HELP: &str = "\
cargo xtask test [STEP...]      check everything, or only the named steps
cargo xtask mutate [OPTION...]  does a test fail when a line of plimsoll-core is wrong? `--help` lists the options
cargo xtask campaign [--rounds N] [NAME...]   hostile input by the hour, through all campaigns or the named ones
cargo xtask python              the Python packages that tests and the benchmark `array` need, in an environment of their own
cargo xtask api                 list the public API in docs/api/, so that a change of it stands in the diff
cargo xtask perf [OPTION...]    this revision against another, in turns; fails if it is worse; `--help` lists the options
cargo xtask instructions [--check | --update]   count what the scheduler spends on a task (callgrind; installs valgrind)

Steps, in order:";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words[..] {
        [] | ["help" | "-h" | "--help", ..] => {
            print_help();
            Ok(())
        }
        ["test", ref named @ ..] => test(named),
        ["instructions", ref words @ ..] => instructions::run(words),
        ["perf", ref words @ ..] => perf::run(words),
        ["campaign", ref words @ ..] => campaigns::run(words),
        ["python"] => python::ensure(&steps::root(), &steps::target()).map(|_| ()),
        ["api"] => api(),
        ["mutate", ref options @ ..] => mutate(options),
        [unknown, ..] => Err(format!("there is no command '{unknown}'; `cargo xtask` lists them")),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("error: {reason}");
            ExitCode::FAILURE
        }
    }
}

/// What CI runs, and what a contributor runs: the same.
fn test(named: &[&str]) -> Result<(), String> {
    let steps = steps::choose(named)?;
    components::ensure(&steps)?;
    if steps.iter().any(|step| step.needs_gpu) {
        vulkan::ensure()?;
    }
    if steps.iter().any(|step| step.needs_video) {
        video::ensure()?;
    }
    if steps.iter().any(|step| step.needs_archivers) {
        archivers::ensure()?;
    }
    let mut tools = Vec::new();
    if steps.iter().any(|step| step.needs_browser) {
        tools.extend(browser::ensure(&steps::target())?);
    }
    if steps.iter().any(|step| step.needs_python) {
        tools.extend(python::ensure(&steps::root(), &steps::target())?);
    }
    steps::run(&steps, &tools)
}

/// A program of its own, because it parses Rust: nothing else here needs more than std.
fn mutate(options: &[&str]) -> Result<(), String> {
    let mut command = steps::cargo();
    command.args(["run", "--quiet", "--release", "--package", "mutate", "--"]).args(options);
    let ended = command.status().map_err(|error| format!("cannot start cargo: {error}"))?;
    if ended.success() { Ok(()) } else { Err("mutants are left; see above".to_owned()) }
}

/// A program of its own too.
fn api() -> Result<(), String> {
    let mut command = steps::cargo();
    command.args(["run", "--quiet", "--package", "api"]);
    let ended = command.status().map_err(|error| format!("cannot start cargo: {error}"))?;
    if ended.success() { Ok(()) } else { Err("the lists were not written; see above".to_owned()) }
}

fn print_help() {
    println!("{HELP}");
    for step in steps::ALL {
        println!("  {:8} {}", step.name, step.what);
    }
    println!("\nCampaigns:");
    for campaign in campaigns::ALL {
        println!("  {:12} {}", campaign.name, campaign.what);
    }
}
