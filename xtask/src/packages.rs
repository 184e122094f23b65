//! The distribution's packages that tests need: asks whether a program is there, installs what is missing.
//! Never removes or upgrades a package.

use std::process::{Command, Stdio};

/// Whether a program can be started by this name.
pub(crate) fn is_program(name: &str) -> bool {
    answers(name, "--version")
}

/// Whether a program can be started by this name, and has nothing against the argument.
pub(crate) fn answers(name: &str, argument: &str) -> bool {
    let asked = Command::new(name).arg(argument).stdout(Stdio::null()).stderr(Stdio::null()).status();
    asked.is_ok_and(|status| status.success())
}

/// Installs a package of Debian or Ubuntu. Where there is no apt-get, `elsewhere` says what to do.
pub(crate) fn install(package: &str, elsewhere: &str) -> Result<(), String> {
    if !is_program("apt-get") {
        return Err(elsewhere.to_owned());
    }
    println!("==> installing {package}");
    let apt = |arguments: &[&str]| as_root("apt-get", arguments).status().is_ok_and(|status| status.success());
    let installed = || apt(&["install", "--yes", "--no-install-recommends", package]);
    // A fresh container has no package lists yet; elsewhere they need not be fetched again.
    if installed() || (apt(&["update"]) && installed()) {
        return Ok(());
    }
    Err(format!("{package} could not be installed; install it with `apt-get install {package}` as root"))
}

fn as_root(program: &str, arguments: &[&str]) -> Command {
    let mut command = if is_root() { Command::new("env") } else { Command::new("sudo") };
    if !is_root() {
        command.arg("env");
    }
    command.args(["DEBIAN_FRONTEND=noninteractive", program]).args(arguments);
    command
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_answer_or_are_not_there() {
        assert!(answers("cargo", "--version"));
        assert!(!answers("cargo", "--no-such-option"));
        assert!(!is_program("no-such-program"));
    }
}
