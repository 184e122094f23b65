//! What every file looks like: it opens with a header, fits in a reader's head, and holds nothing of one machine.

use std::path::PathBuf;

use crate::tree;

/// Lines of a source file at most. rayon and ripgrep keep nearly all below it, and read the better for it.
const LINES_MAX: usize = 800;

/// Longer files, each with its reason. Split a file rather than adding it here.
const LONGER_WITH_REASON: &[(&str, &str)] = &[];

fn sources() -> Vec<PathBuf> {
    tree::crates().iter().flat_map(|folder| tree::rust_files(&folder.join("src"))).collect()
}

#[test]
fn files_open_with_a_header() {
    let without = |path: &&PathBuf| !opens_with_header(&tree::text(path));
    let wrong: Vec<String> = sources().iter().filter(without).map(|path| tree::shown(path)).collect();
    assert!(wrong.is_empty(), "begin these with `//!`: what it owns, what it never does\n{}\n", wrong.join("\n"));
}

fn opens_with_header(source: &str) -> bool {
    source.starts_with("//! ")
}

#[test]
fn files_are_short() {
    let wrong: Vec<String> =
        sources().iter().filter_map(|path| too_long(&tree::shown(path), &tree::text(path))).collect();
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

fn too_long(name: &str, source: &str) -> Option<String> {
    let lines = source.lines().count();
    let has_reason = LONGER_WITH_REASON.iter().any(|(known, _)| *known == name);
    match (lines > LINES_MAX, has_reason) {
        (true, false) => Some(format!("{name} has {lines} lines; split it, at {LINES_MAX} it asks for a reason")),
        (false, true) => Some(format!("{name} is short again; take it off the list")),
        _ => None,
    }
}

/// Written in two pieces, so that this file is not its own first find.
fn machine_paths() -> [String; 4] {
    [["/ro", "ot/"], ["/ho", "me/"], ["/Use", "rs/"], ["/tmp/", "wt"]].map(|pieces| pieces.concat())
}

fn machine_path_in(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    machine_paths().into_iter().find(|path| text.contains(path.as_str()))
}

#[test]
fn no_file_holds_a_path_of_somebodys_machine() {
    let wrong: Vec<String> = tree::tracked()
        .iter()
        .filter_map(|path| {
            let found = machine_path_in(&std::fs::read(path).expect("readable"))?;
            Some(format!("{} holds {found}", tree::shown(path)))
        })
        .collect();
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

#[test]
fn planted_faults_are_caught() {
    assert!(!opens_with_header("use std::fmt;\n//! Late."));
    assert!(too_long("crates/new/src/lib.rs", &"\n".repeat(LINES_MAX + 1)).is_some());
    assert!(too_long("crates/new/src/lib.rs", &"\n".repeat(LINES_MAX)).is_none());
    for path in machine_paths() {
        assert_eq!(machine_path_in(format!("\u{fffd}open(\"{path}me/x\")").as_bytes()), Some(path));
    }
    assert_eq!(machine_path_in(b"/usr/share/vulkan"), None);
}
