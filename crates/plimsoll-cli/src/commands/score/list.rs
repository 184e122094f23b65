//! `--list-metrics`: what each metric is, where it can run, and whose code computes it.

use comfy_table::Cell;
use comfy_table::CellAlignment::{Left, Right};
use plimsoll::image::metrics::{About, Better, Display, Metric};
use serde::Serialize;

use crate::output;
use crate::stop::Ended;

/// Scores beyond this have no meaning of their own; a metric's range only goes so far because numbers do.
const ENDLESS: f64 = 1e6;

pub(super) fn show(as_json: bool) -> Ended {
    let abouts: Vec<&About> = Metric::ALL.iter().map(|metric| metric.about()).collect();
    if as_json {
        return output::json(&abouts.iter().map(|about| Listed::new(about)).collect::<Vec<_>>());
    }
    let columns =
        [("METRIC", Left), ("RANGE", Left), ("PERFECT", Right), ("BETTER", Left), ("RUNGS", Left), ("SOURCE", Left)];
    let mut table = output::table(&columns);
    for about in &abouts {
        let row = [range(about), about.perfect.to_string(), better(about).to_owned(), about.rungs.join(", ")];
        let cells = std::iter::once(Cell::new(about.name)).chain(row.iter().map(Cell::new));
        table.add_row(cells.chain([Cell::new(about.source)]));
    }
    output::print_table(&table)?;
    output::line("")?;
    for about in &abouts {
        output::line(format_args!("{:<12} {}", about.name, about.what))?;
    }
    let displays: Vec<String> = Display::ALL.iter().map(ToString::to_string).collect();
    output::line(format_args!("\nDisplays for cvvdp: {}", displays.join(", ")))
}

fn range(about: &About) -> String {
    let end = |value: f64| match value {
        value if value < -ENDLESS => "-∞".to_owned(),
        value if value > ENDLESS => "∞".to_owned(),
        value => value.to_string(),
    };
    format!("{} to {}", end(*about.range.start()), end(*about.range.end()))
}

fn better(about: &About) -> &'static str {
    match about.better {
        Better::Higher => "higher",
        Better::Lower => "lower",
    }
}

/// The names of its fields are a promise to other programs.
#[derive(Serialize)]
struct Listed {
    name: &'static str,
    what: &'static str,
    minimum: Option<f64>,
    maximum: Option<f64>,
    perfect: f64,
    better: &'static str,
    tolerance: f64,
    rungs: &'static [&'static str],
    source: &'static str,
}

impl Listed {
    fn new(about: &'static About) -> Self {
        let bound = |value: f64| (value.abs() <= ENDLESS).then_some(value);
        Self {
            name: about.name,
            what: about.what,
            minimum: bound(*about.range.start()),
            maximum: bound(*about.range.end()),
            perfect: about.perfect,
            better: better(about),
            tolerance: about.tolerance,
            rungs: about.rungs,
            source: about.source,
        }
    }
}
