//! The parts of a Rust toolchain that some steps need, and that a minimal one lacks.
//! Never changes the toolchain's version.

use std::process::{Command, Stdio};

use crate::steps::{Step, cargo};

/// Makes sure that every step has its component, and adds it through rustup where that is there.
pub(crate) fn ensure(steps: &[&Step]) -> Result<(), String> {
    steps.iter().filter_map(|step| step.component).filter(|component| !is_there(component)).try_for_each(add)
}

fn is_there(component: &str) -> bool {
    let subcommand = if component == "rustfmt" { "fmt" } else { component };
    let asked = cargo().args([subcommand, "--version"]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    asked.is_ok_and(|status| status.success())
}

fn add(component: &str) -> Result<(), String> {
    println!("==> {component} is missing: rustup component add {component}");
    let added = Command::new("rustup").args(["component", "add", component]).status();
    if added.is_ok_and(|status| status.success()) && is_there(component) {
        return Ok(());
    }
    Err(format!(
        "{component} is missing and could not be added; install it with `rustup component add {component}`, or with \
         your system's packages"
    ))
}
