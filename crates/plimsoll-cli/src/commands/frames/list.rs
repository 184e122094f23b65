//! `--list-ops`: the operations there are, how each is written and what it does.

use comfy_table::Cell;
use comfy_table::CellAlignment::Left;
use plimsoll::image::frames::{About, Chain};
use serde::Serialize;

use crate::output;
use crate::stop::Ended;

pub(super) fn show(as_json: bool) -> Ended {
    let all = Chain::operations();
    if as_json {
        return output::json(&all.iter().map(Listed::new).collect::<Vec<_>>());
    }
    let mut table = output::table(&[("OPERATION", Left), ("WHAT IT DOES", Left)]);
    table.add_rows(all.iter().map(|about| [Cell::new(about.usage), Cell::new(about.what)]));
    output::print_table(&table)?;
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
