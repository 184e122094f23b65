//! The Python packages that read and write arrays, for the tests and the benchmark that hold ours against theirs: in an
//! environment of their own below the target folder, at the versions that the test names.
//! Never touches the user's own Python, and never installs anything where the right versions already are.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::packages::{answers, install};

/// Where to find it, for the test.
const VARIABLE: &str = "PLIMSOLL_PYTHON";

/// What is installed, at which versions.
const REQUIREMENTS: &str = "crates/plimsoll-arrays/tests/requirements.txt";

/// Pythons that the packages are built for, in the order in which they are tried.
const PYTHONS: [&str; 2] = ["python3", "/usr/bin/python3"];

/// Makes sure that there is a Python with the packages; gives the variable that leads the test to it.
pub(crate) fn ensure(root: &Path, target: &Path) -> Result<Vec<(&'static str, OsString)>, String> {
    let wanted = fs::read_to_string(root.join(REQUIREMENTS)).map_err(|error| format!("{REQUIREMENTS}: {error}"))?;
    let folder = target.join("python");
    let python = python_in(&folder);
    if !has(&folder, &wanted) {
        ensure_venv()?;
        println!("==> installing Python packages in {}", folder.display());
        make(&folder)?;
        let requirements = root.join(REQUIREMENTS);
        pip(&python, &requirements)?;
        // Only what was installed whole counts as there.
        fs::write(installed(&folder), wanted)
            .map_err(|error| format!("cannot write into {}: {error}", folder.display()))?;
    }
    Ok(vec![(VARIABLE, python.into_os_string())])
}

fn python_in(folder: &Path) -> PathBuf {
    folder.join("bin").join("python")
}

/// The list of what is installed.
fn installed(folder: &Path) -> PathBuf {
    folder.join("installed.txt")
}

fn has(folder: &Path, wanted: &str) -> bool {
    fs::read_to_string(installed(folder)).is_ok_and(|there| there == wanted)
        && answers(&python_in(folder).to_string_lossy(), "--version")
}

/// Debian keeps what makes environments apart from Python itself.
fn ensure_venv() -> Result<(), String> {
    let can_make = |python: &str| {
        let asked = Command::new(python).args(["-c", "import ensurepip, venv"]).output();
        asked.is_ok_and(|output| output.status.success())
    };
    if PYTHONS.iter().any(|python| can_make(python)) {
        return Ok(());
    }
    let elsewhere = "tests need Python 3.11 or newer with venv and pip and there is no apt-get; install them, then run \
                     this again";
    ["python3-venv", "python3-pip"].into_iter().try_for_each(|package| install(package, elsewhere))
}

fn make(folder: &Path) -> Result<(), String> {
    let made = |python: &str| {
        let status = Command::new(python).args(["-m", "venv", "--clear"]).arg(folder).status();
        status.is_ok_and(|status| status.success())
    };
    match PYTHONS.iter().any(|python| made(python)) {
        true => Ok(()),
        false => Err(format!("no Python makes an environment; try `python3 -m venv {}`", folder.display())),
    }
}

fn pip(python: &Path, requirements: &Path) -> Result<(), String> {
    let mut command = Command::new(python);
    command.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"]).arg(requirements);
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(format!("pip could not install what {REQUIREMENTS} lists; see above")),
        Err(error) => Err(format!("cannot start {}: {error}", python.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_environment_without_its_list_is_made_again() {
        assert!(!has(Path::new("no/such/folder"), "zarr==3.1.6"));
    }

    #[test]
    fn every_package_has_a_version() {
        let requirements = fs::read_to_string(crate::steps::root().join(REQUIREMENTS)).unwrap();
        let packages: Vec<&str> = requirements.lines().filter(|line| !line.starts_with('#')).collect();
        assert!(!packages.is_empty() && packages.iter().all(|package| package.contains("==")), "{packages:?}");
    }
}
