//! Builds the core with all its mutants, and drops those that the compiler refuses until it builds.
//! Invariant: what is dropped is remembered beside the copy, and only for exactly these sources.

use std::collections::BTreeSet;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;

use crate::catalogue::{self, Catalogue};
use crate::compile::{self, Built, Program};
use crate::options::Tests;
use crate::render::Rendered;
use crate::site::MutantId;
use crate::tree::Tree;

/// Rounds of asking the compiler. It finds errors of names before those of types, and those of borrows last.
const ROUNDS_MAX: usize = 24;

/// The test programs with every mutant that compiles in them.
pub(crate) fn build(tree: &Tree, catalogue: &mut Catalogue, tests: Tests) -> Result<Vec<Program>, String> {
    recall(tree, catalogue);
    let all: BTreeSet<MutantId> = catalogue.mutants.iter().map(|mutant| mutant.id).collect();
    let lib = tree.text(catalogue::CORE_LIB)?;
    for _ in 0..ROUNDS_MAX {
        let mut written = catalogue.written(&all);
        if let Some(rendered) = written.get_mut(catalogue::CORE_LIB) {
            *rendered = Rendered { text: catalogue::with_switch(&lib), ..Rendered::default() };
        }
        let files: Vec<(String, String)> =
            written.iter().map(|(path, file)| (path.clone(), file.text.clone())).collect();
        tree.refresh(&files)?;
        let checked = compile::check(tree)?;
        let built = if checked.complaints.is_empty() { compile::tests(tree, tests)? } else { checked };
        let Built { programs, complaints, said } = built;
        if complaints.is_empty() {
            remember(tree, catalogue)?;
            eprintln!("==> {} mutants, {} do not compile", all.len(), catalogue.dropped.len());
            return Ok(programs);
        }
        let blamed = catalogue::blamed(&written, &complaints).map_err(|reason| format!("{reason}\n{said}"))?;
        eprintln!("    {} mutants do not compile", blamed.len());
        catalogue.dropped.extend(blamed);
    }
    Err(format!("the core does not build after {ROUNDS_MAX} rounds of dropping mutants"))
}

/// What was dropped the last time, if the sources are still the same.
fn recall(tree: &Tree, catalogue: &mut Catalogue) {
    let Ok(text) = fs::read_to_string(memory(tree)) else { return };
    let mut lines = text.lines();
    if lines.next() == Some(fingerprint(catalogue).as_str()) {
        catalogue.dropped = lines.filter_map(|line| line.parse().ok()).collect();
    }
}

fn remember(tree: &Tree, catalogue: &Catalogue) -> Result<(), String> {
    let ids = catalogue.dropped.iter().map(|id| format!("\n{id}"));
    let text = format!("{}{}", fingerprint(catalogue), ids.collect::<String>());
    fs::write(memory(tree), text).map_err(|error| format!("{}: {error}", memory(tree).display()))
}

fn memory(tree: &Tree) -> PathBuf {
    tree.target.join("dropped.txt")
}

fn fingerprint(catalogue: &Catalogue) -> String {
    let mut hasher = DefaultHasher::new();
    catalogue.sources().for_each(|source| source.hash(&mut hasher));
    catalogue.mutants.iter().for_each(|mutant| mutant.what.hash(&mut hasher));
    format!("{:016x}", hasher.finish())
}
