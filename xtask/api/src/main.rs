//! `cargo xtask api`: lists the public API of the published crates in `docs/api/`, one file a crate, so that a change of it
//! stands in the diff. A test of this crate fails while a list is not up to date.
//! Never asks the compiler: a lint for unreachable public items makes sure that `pub` in a file means public.

mod strip;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The crates that would be published, and are used as libraries.
const CRATES: &[&str] = &["plimsoll", "plimsoll-core", "plimsoll-image", "plimsoll-runtime", "plimsoll-wgpu"];

fn main() -> ExitCode {
    for name in CRATES {
        let written = listed(name).and_then(|list| fs::write(list_of(name), list).map_err(|error| error.to_string()));
        if let Err(reason) = written {
            eprintln!("error: {name}: {reason}");
            return ExitCode::FAILURE;
        }
    }
    println!("docs/api/ is up to date; `git diff docs/api` shows what has changed");
    ExitCode::SUCCESS
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn list_of(name: &str) -> PathBuf {
    root().join("docs/api").join(format!("{name}.txt"))
}

/// The public items of all files of a crate, file by file.
fn listed(name: &str) -> Result<String, String> {
    let source = root().join("crates").join(name).join("src");
    let mut list = String::new();
    for file in files_below(&source).map_err(|error| error.to_string())? {
        let text = fs::read_to_string(&file).map_err(|error| error.to_string())?;
        let parsed = syn::parse_file(&text).map_err(|error| format!("{}: {error}", file.display()))?;
        let public = strip::public(parsed);
        if !public.items.is_empty() {
            let place = file.strip_prefix(&source).unwrap_or(&file).display().to_string();
            list += &format!("// {place}\n{}\n", prettyplease::unparse(&public));
        }
    }
    Ok(list)
}

fn files_below(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() && path.file_name().is_none_or(|name| name != "tests") {
            files.extend(files_below(&path)?);
        } else if path.extension().is_some_and(|ending| ending == "rs") && path.file_stem() != Some("tests".as_ref()) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_are_up_to_date() {
        for name in CRATES {
            let written = fs::read_to_string(list_of(name)).unwrap_or_default();
            let is_same = written == listed(name).expect("a crate that can be read");
            assert!(is_same, "the public API of {name} has changed: run `cargo xtask api` and look at the diff");
        }
    }
}
