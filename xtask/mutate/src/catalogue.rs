//! Every mutant of the core, numbered, and the files with the switch and all of them in it.
//! Never builds anything. Invariant: the same workspace gives the same numbers.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::find;
use crate::render::{Chosen, Rendered, render};
use crate::site::{Mutant, MutantId, Site, snippet};
use crate::tree::Tree;

/// Where the core's files are.
pub(crate) const CORE: &str = "crates/plimsoll-core/src/";
/// The file that the switch is added to.
pub(crate) const CORE_LIB: &str = "crates/plimsoll-core/src/lib.rs";

/// Files that are tests, or themselves a check.
const LEFT_ALONE: &[&str] = &["scheduler/invariants.rs"];

/// All mutants, and those that turned out not to compile.
pub(crate) struct Catalogue {
    files: Vec<File>,
    pub(crate) mutants: Vec<Mutant>,
    pub(crate) dropped: BTreeSet<MutantId>,
}

struct File {
    /// From the workspace's folder on.
    path: String,
    source: String,
    sites: Vec<Site>,
    /// The number of its first mutant.
    first: MutantId,
}

impl Catalogue {
    /// Finds them all.
    pub(crate) fn of(tree: &Tree) -> Result<Self, String> {
        let mut sources = Vec::new();
        for path in tree.sources(CORE)?.into_iter().filter(|path| !is_left_alone(&path[CORE.len()..])) {
            sources.push((tree.text(&path)?, path));
        }
        let unreadable = |path: &str| format!("{path}: cannot be parsed");
        let (mut files, mut mutants) = (Vec::new(), Vec::new());
        for (source, path) in sources {
            let sites = find::sites(&source).map_err(|_| unreadable(&path))?;
            let first = mutants.len() as MutantId + 1;
            let lines = LineStarts::of(&source);
            mutants.extend(sites.iter().flat_map(|site| described(&path[CORE.len()..], &source, &lines, site)));
            files.push(File { path, source, sites, first });
        }
        mutants.iter_mut().zip(1..).for_each(|(mutant, id)| mutant.id = id);
        Ok(Self { files, mutants, dropped: BTreeSet::new() })
    }

    /// The core's files with these mutants in them, but for those that do not compile.
    pub(crate) fn written(&self, wanted: &BTreeSet<MutantId>) -> BTreeMap<String, Rendered> {
        let is_in = |id: &MutantId| wanted.contains(id) && !self.dropped.contains(id);
        self.files.iter().map(|file| (file.path.clone(), render(&file.source, file.chosen(is_in)))).collect()
    }

    /// The files as they are in the workspace.
    pub(crate) fn sources(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(|file| file.source.as_str())
    }

    pub(crate) fn mutant(&self, id: MutantId) -> &Mutant {
        &self.mutants[id as usize - 1]
    }
}

impl File {
    fn chosen(&self, is_in: impl Fn(&MutantId) -> bool) -> Vec<Chosen<'_>> {
        let mut next = self.first;
        let ids = |site: &Site| {
            let ids = next..next + site.alternatives.len() as MutantId;
            next = ids.end;
            ids.map(|id| Some(id).filter(&is_in)).collect()
        };
        let ids: Vec<Vec<Option<MutantId>>> = self.sites.iter().map(ids).collect();
        self.sites.iter().zip(ids).map(|(site, ids)| Chosen { site, ids }).collect()
    }
}

fn is_left_alone(file: &str) -> bool {
    LEFT_ALONE.contains(&file) || file.ends_with("tests.rs") || file.contains("tests/")
}

fn described(file: &str, source: &str, lines: &LineStarts, site: &Site) -> Vec<Mutant> {
    let (line, column) = lines.place(site.span.start);
    let site_text = if site.span.is_empty() { "" } else { &source[site.span.clone()] };
    let mutant = |what: &String| Mutant {
        id: 0,
        file: file.to_owned(),
        line,
        column,
        function: site.function.clone(),
        what: what.trim_end().to_owned(),
        snippet: snippet(site_text),
    };
    site.alternatives.iter().map(|alternative| mutant(&alternative.what)).collect()
}

/// Where each line of a text begins.
struct LineStarts(Vec<usize>);

impl LineStarts {
    fn of(text: &str) -> Self {
        Self(std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect())
    }

    /// Line and column, both counted from 1.
    fn place(&self, at: usize) -> (usize, usize) {
        let line = self.0.partition_point(|start| *start <= at);
        (line, at - self.0[line - 1] + 1)
    }
}

/// The core's `lib.rs` with the switch. The mutant that is on comes from the environment, and is read once.
pub(crate) fn with_switch(lib: &str) -> String {
    // Mutants are full of parentheses and dead code; the lints have seen the code that people read.
    format!(
        "#![allow(warnings, arithmetic_overflow, unconditional_panic)]\n{lib}\n\
         pub mod mutant_switch {{\n\
         static ON: std::sync::LazyLock<u32> = std::sync::LazyLock::new(|| {{\n\
         std::env::var(\"{}\").ok().and_then(|id| id.parse().ok()).unwrap_or(0)\n\
         }});\n\
         #[inline]\n\
         pub fn is(id: u32) -> bool {{\n*ON == id\n}}\n}}\n",
        crate::trial::SWITCH_VARIABLE
    )
}

/// Bytes of a written file that the compiler complained about, in its own order.
pub(crate) type Complaint = (String, Vec<Range<usize>>);

/// The mutants that these complaints are about; an error with the complaint that is about none.
pub(crate) fn blamed(written: &BTreeMap<String, Rendered>, complaints: &[Complaint]) -> Result<Vec<MutantId>, String> {
    let mut blamed = Vec::new();
    for (file, spans) in complaints {
        let before = blamed.len();
        blamed.extend(written.get(file).map(|rendered| rendered.blame(spans)).unwrap_or_default());
        if blamed.len() == before {
            return Err(format!("{file}: an error that no mutant is to blame for"));
        }
    }
    Ok(blamed)
}
