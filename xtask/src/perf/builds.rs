//! The two revisions and their programs, each built into a target folder of its own.
//! Never changes the working tree: the other revision is checked out below target.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::matrix::{self, Program, Row};
use crate::{instructions, steps};

/// The programs of a revision.
pub(crate) struct Build {
    pub(crate) cli: PathBuf,
    /// Not there if no row needs it, or the revision has none.
    small_tasks: Option<PathBuf>,
}

/// Both revisions.
pub(crate) struct Sides {
    /// `None` where this one is measured by itself, to be kept.
    pub(crate) base: Option<Build>,
    pub(crate) this: Build,
    pub(crate) base_revision: String,
    pub(crate) this_revision: String,
}

impl Build {
    pub(crate) fn program(&self, program: Program) -> Option<&Path> {
        match program {
            Program::Cli => Some(&self.cli),
            Program::SmallTasks => self.small_tasks.as_deref(),
        }
    }

    fn of(source: &Path, target: &Path, rows: &[&Row]) -> Result<Self, String> {
        let wants = |program| rows.iter().any(|row| row.program == program);
        let whole = ["--package", "plimsoll-cli", "--bin", "plimsoll"];
        let cli = match matrix::features(rows) {
            Some(features) => {
                let part = [&whole[..], &["--no-default-features", "--features", &features]].concat();
                // An older revision may not know the features.
                build(source, target, &part).or_else(|_| build(source, target, &whole))?
            }
            None => build(source, target, &whole)?,
        };
        let bench = ["--package", "plimsoll-runtime", "--bench", "small_tasks"];
        let small_tasks = if wants(Program::SmallTasks) { build(source, target, &bench).ok() } else { None };
        Ok(Self { cli, small_tasks })
    }
}

impl Sides {
    /// This revision alone.
    pub(crate) fn this_alone(rows: &[&Row]) -> Result<Self, String> {
        println!("==> building this revision");
        let this = Build::of(&steps::root(), &steps::target(), rows)?;
        let this_revision = this_revision(git(&["rev-parse", "HEAD"])?)?;
        Ok(Self { base: None, this, base_revision: "none".to_owned(), this_revision })
    }

    pub(crate) fn build(base: Option<&str>, folder: &Path, rows: &[&Row]) -> Result<Self, String> {
        let head = git(&["rev-parse", "HEAD"])?;
        let base = match base {
            Some(named) => git(&["rev-parse", "--verify", &format!("{named}^{{commit}}")])?,
            None => usual_base(&head)?,
        };
        let source = folder.join("base");
        check_out(&source, &base)?;
        println!("==> building this revision, then {base:.12}");
        let this = Build::of(&steps::root(), &steps::target(), rows)?;
        let base_target = folder.join("base-target");
        seed(&base_target)?;
        let base_build = Build::of(&source, &base_target, rows)?;
        Ok(Self { base: Some(base_build), this, base_revision: base, this_revision: this_revision(head)? })
    }
}

fn this_revision(head: String) -> Result<String, String> {
    let is_clean = git(&["status", "--porcelain", "--untracked-files=no"])?.is_empty();
    Ok(if is_clean { head } else { format!("{head} and changes") })
}

/// Where this branch left main; on main itself, the revision before.
fn usual_base(head: &str) -> Result<String, String> {
    match git(&["merge-base", "HEAD", "main"]) {
        Ok(base) if base != head => Ok(base),
        _ => git(&["rev-parse", "HEAD~1"]),
    }
}

/// A work tree below target, at this revision.
fn check_out(source: &Path, revision: &str) -> Result<(), String> {
    if source.join(".git").exists() {
        let mut command = Command::new("git");
        command.arg("-C").arg(source).args(["checkout", "--quiet", "--detach", "--force", revision]);
        return answer(command).map(|_| ());
    }
    git(&["worktree", "prune"])?;
    let source = source.to_string_lossy();
    git(&["worktree", "add", "--quiet", "--detach", "--force", &source, revision]).map(|_| ())
}

/// The other revision has the same dependencies, but for a few: what is built of them for this one is copied, once.
fn seed(target: &Path) -> Result<(), String> {
    let built = steps::target().join("release");
    if target.exists() || !built.exists() {
        return Ok(());
    }
    std::fs::create_dir_all(target).map_err(|error| format!("cannot make {}: {error}", target.display()))?;
    // With times: cargo looks at them. What cannot be copied is built.
    let copied = Command::new("cp").args(["-a", "--reflink=auto"]).args([&built, target]).status();
    if !copied.is_ok_and(|status| status.success()) {
        println!("nothing could be copied to {}; everything is built there", target.display());
    }
    Ok(())
}

fn git(words: &[&str]) -> Result<String, String> {
    let mut command = Command::new("git");
    command.args(words).current_dir(steps::root());
    answer(command)
}

fn answer(mut command: Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("cannot start git: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    Err(format!("{command:?} failed: {}", String::from_utf8_lossy(&output.stderr).trim()))
}

/// Builds one program with the release profile and says where it is.
fn build(source: &Path, target: &Path, what: &[&str]) -> Result<PathBuf, String> {
    let mut command = steps::cargo();
    command.current_dir(source).env("CARGO_TARGET_DIR", target);
    command.args(["build", "--release", "--message-format", "json"]).args(what);
    let output = command.output().map_err(|error| format!("cannot start cargo: {error}"))?;
    if !output.status.success() {
        return Err(format!(
            "{} does not build in {}\n{}",
            what.join(" "),
            source.display(),
            String::from_utf8_lossy(&output.stderr)
        ));
    }
    let messages = String::from_utf8_lossy(&output.stdout);
    messages.lines().rev().find_map(instructions::executable).ok_or_else(|| "cargo named no program".to_owned())
}
