//! The vocabulary: a site is a piece of source with other ways to write it; each of those ways is one mutant.
//! Never reads or writes a file.

use std::ops::Range;

/// How a mutant is named at run time. 0 is none: the code as it was written.
pub(crate) type MutantId = u32;

/// How the choice between a site's alternatives is written.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// An expression with a value: `(if … { … } else { … })`.
    Value,
    /// An expression without one: `{ if … { … } else { … } }`.
    Action,
    /// Statements that come first in a function's body. The span is empty.
    Entry,
}

/// One other way to write a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Alternative {
    /// What is changed, for people and for the list of known misses: `< to <=`.
    pub(crate) what: String,
    pub(crate) text: String,
}

/// A piece of one file's source that can be written in other ways.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Site {
    /// In bytes of the source.
    pub(crate) span: Range<usize>,
    pub(crate) shape: Shape,
    /// The function it lies in, with the type it belongs to.
    pub(crate) function: String,
    pub(crate) alternatives: Vec<Alternative>,
}

/// One change to the core, and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mutant {
    pub(crate) id: MutantId,
    /// From the core's `src` on.
    pub(crate) file: String,
    pub(crate) line: usize,
    pub(crate) column: usize,
    pub(crate) function: String,
    pub(crate) what: String,
    /// The source it changes, on one line.
    pub(crate) snippet: String,
}

impl Mutant {
    /// A description that survives edits elsewhere in the file: no line numbers.
    pub(crate) fn description(&self) -> String {
        let parts = [&self.file, &self.function, &self.what, &self.snippet];
        parts.into_iter().filter(|part| !part.is_empty()).map(String::as_str).collect::<Vec<_>>().join(" | ")
    }

    /// For people: where to look, and what was changed there.
    pub(crate) fn shown(&self) -> String {
        let Self { id, file, line, column, function, what, snippet } = self;
        let colon = if snippet.is_empty() { "" } else { ": " };
        format!("{file}:{line}:{column} {function}: {what}{colon}{snippet}  [{id}]")
    }
}

/// Source on one line, cut where it gets too long to read.
pub(crate) fn snippet(source: &str) -> String {
    const LONGEST: usize = 90;
    let line = source.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}
