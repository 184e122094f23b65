//! Where the workspace's files are.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The workspace's folder.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace").to_owned()
}

/// A path as people write it: from the workspace's folder on.
pub(crate) fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

/// The folders of all crates of the workspace.
pub(crate) fn crates() -> Vec<PathBuf> {
    let mut crates = entries(&root().join("crates"));
    crates.retain(|path| path.join("Cargo.toml").is_file());
    crates.extend([root().join("xtask"), root().join("xtask/mutate")]);
    crates
}

/// Every Rust file in a folder and below.
pub(crate) fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = walk(folder);
    files.retain(|path| path.extension().is_some_and(|extension| extension == "rs"));
    files
}

/// Every file that belongs to the project: those that git tracks, or without git all but what is built.
pub(crate) fn tracked() -> Vec<PathBuf> {
    let listed = Command::new("git").args(["ls-files", "-z"]).current_dir(root()).output();
    match listed {
        Ok(output) if output.status.success() => {
            let names = String::from_utf8(output.stdout).expect("our file names are text");
            // A file that was removed and not yet committed is still listed.
            names.split_terminator('\0').map(|name| root().join(name)).filter(|path| path.is_file()).collect()
        }
        _ => walk(&root()),
    }
}

fn walk(folder: &Path) -> Vec<PathBuf> {
    let is_ours = |path: &PathBuf| !path.ends_with("target") && !path.ends_with(".git");
    let below = |path: PathBuf| if path.is_dir() { walk(&path) } else { vec![path] };
    entries(folder).into_iter().filter(is_ours).flat_map(below).collect()
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let listed = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = listed.map(|entry| entry.expect("readable").path()).collect();
    paths.sort();
    paths
}

/// The text of a file.
pub(crate) fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
