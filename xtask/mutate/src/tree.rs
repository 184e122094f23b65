//! The scratch copy of the workspace that mutants are written into.
//! Never touches the workspace itself. Invariant: a file whose text did not change keeps its time, so that cargo builds
//! only what did.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the workspace and its copy are.
pub(crate) struct Tree {
    workspace: PathBuf,
    /// The copy.
    pub(crate) copy: PathBuf,
    /// Where the copy is built.
    pub(crate) target: PathBuf,
}

impl Tree {
    /// The copy below the usual target folder. Each name has one of its own, so that going from one to the other
    /// builds nothing again; what they depend on is built once for all.
    pub(crate) fn new(name: &str) -> Self {
        let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let usual = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
        let scratch = workspace.join(usual).join("mutants");
        Self { workspace, copy: scratch.join(name), target: scratch.join("target") }
    }

    /// Makes the copy what the workspace is now, uncommitted changes included; `changed` says what to write instead of
    /// a file's own bytes.
    pub(crate) fn refresh(&self, changed: &[(String, String)]) -> Result<(), String> {
        let files = self.files()?;
        for name in &files {
            let replaced = changed.iter().find(|(path, _)| path == name).map(|(_, text)| text.clone().into_bytes());
            let bytes = match replaced {
                Some(bytes) => bytes,
                None => fs::read(self.workspace.join(name)).map_err(|error| format!("{name}: {error}"))?,
            };
            write_if_changed(&self.copy.join(name), &bytes)?;
        }
        let kept: BTreeSet<PathBuf> = files.iter().map(|name| self.copy.join(name)).collect();
        remove_others(&self.copy, &kept)
    }

    /// The Rust files below a folder of the workspace, in order.
    pub(crate) fn sources(&self, folder: &str) -> Result<Vec<String>, String> {
        let mut files = self.files()?;
        files.retain(|name| name.starts_with(folder) && name.ends_with(".rs"));
        files.sort();
        Ok(files)
    }

    /// The text of a file of the workspace.
    pub(crate) fn text(&self, name: &str) -> Result<String, String> {
        fs::read_to_string(self.workspace.join(name)).map_err(|error| format!("{name}: {error}"))
    }

    /// Every file that belongs to the project, new ones included.
    fn files(&self) -> Result<Vec<String>, String> {
        let mut git = Command::new("git");
        git.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]).current_dir(&self.workspace);
        let listed = git.output().map_err(|error| format!("cannot start git: {error}"))?;
        if !listed.status.success() {
            return Err("git does not list the project's files; mutants need a clone of the repository".to_owned());
        }
        let names = String::from_utf8(listed.stdout).map_err(|error| error.to_string())?;
        let names: BTreeSet<&str> = names.split_terminator('\0').collect();
        // A file that was removed and not yet committed is still listed.
        Ok(names.into_iter().filter(|name| self.workspace.join(name).is_file()).map(str::to_owned).collect())
    }
}

fn write_if_changed(path: &Path, bytes: &[u8]) -> Result<(), String> {
    if fs::read(path).is_ok_and(|there| there == bytes) {
        return Ok(());
    }
    let folder = path.parent().ok_or("a file lies in a folder")?;
    let written = fs::create_dir_all(folder).and_then(|()| fs::write(path, bytes));
    written.map_err(|error| format!("{}: {error}", path.display()))
}

/// What tests left behind, or what is gone from the workspace. The lock file is cargo's to keep.
fn remove_others(folder: &Path, kept: &BTreeSet<PathBuf>) -> Result<(), String> {
    let listed = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for path in listed.filter_map(|entry| Some(entry.ok()?.path())) {
        if path.is_dir() {
            remove_others(&path, kept)?;
        } else if !kept.contains(&path) {
            fs::remove_file(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        }
    }
    Ok(())
}
