//! `--list-ops`: the operations there are, how each is written and what it does.

use anstyle::Style;
use plimsoll::image::frames::stream::SELECTIONS;
use plimsoll::image::frames::{About, Chain};
use serde::Serialize;

use crate::output;
use crate::stop::Ended;

pub(super) fn show(as_json: bool) -> Ended {
    let selections = SELECTIONS.map(|(name, usage, what)| Listed { name, usage, what });
    let all: Vec<Listed> = Chain::operations().iter().map(Listed::new).chain(selections).collect();
    if as_json {
        return output::json(&all);
    }
    let bold = Style::new().bold();
    for Listed { name, usage, what } in all {
        let arguments = usage.strip_prefix(name).unwrap_or(usage);
        output::line(format_args!("{bold}{name}{bold:#}{arguments}\n    {what}"))?;
    }
    output::line("\nOperations of a chain are separated by commas, their arguments by colons.")
}

/// The names of its fields are a promise to other programs.
#[derive(Serialize)]
struct Listed {
    name: &'static str,
    usage: &'static str,
    what: &'static str,
}

impl Listed {
    fn new(about: &About) -> Self {
        Self { name: about.name, usage: about.usage, what: about.what }
    }
}
