//! The stock tools that pack and unpack, for the tests that hold our files against theirs: from the distribution's
//! packages. Never installs anything where they already are.

use crate::packages;

/// A program, an argument that it has nothing against, and the package it comes with.
const TOOLS: [(&str, &str, &str); 6] = [
    ("zstd", "--version", "zstd"),
    ("pzstd", "--version", "zstd"),
    ("gzip", "--version", "gzip"),
    ("pigz", "--version", "pigz"),
    ("bgzip", "--version", "tabix"),
    ("strings", "--version", "binutils"),
];

/// Makes sure that there are all of them.
pub(crate) fn ensure() -> Result<(), String> {
    ensure_through(packages::answers, install)
}

fn ensure_through(
    is_there: impl Fn(&str, &str) -> bool,
    install: impl Fn(&str, &str) -> Result<(), String>,
) -> Result<(), String> {
    for (program, argument, package) in TOOLS {
        if is_there(program, argument) {
            continue;
        }
        install(program, package)?;
        if !is_there(program, argument) {
            return Err(format!("{package} was installed and {program} does not start; try `{program} {argument}`"));
        }
    }
    Ok(())
}

fn install(program: &str, package: &str) -> Result<(), String> {
    println!("==> no {program}");
    let elsewhere = format!("tests need {program} and there is no apt-get; install {program}, then run this again");
    packages::install(package, &elsewhere)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn only_what_is_missing_is_installed() {
        let installed = RefCell::new(Vec::new());
        let install = |program: &str, package: &str| {
            installed.borrow_mut().push(format!("{program} from {package}"));
            Ok(())
        };
        let is_there = |program: &str, _: &str| program != "bgzip" || !installed.borrow().is_empty();
        assert_eq!(ensure_through(is_there, install), Ok(()));
        assert_eq!(*installed.borrow(), ["bgzip from tabix"]);
    }

    #[test]
    fn what_still_does_not_start_is_an_error_as_is_a_failed_install() {
        let silent = ensure_through(|_, _| false, |_, _| Ok(()));
        assert_eq!(silent, Err("zstd was installed and zstd does not start; try `zstd --version`".to_owned()));
        assert_eq!(ensure_through(|_, _| false, |_, _| Err("no room".to_owned())), Err("no room".to_owned()));
    }
}
