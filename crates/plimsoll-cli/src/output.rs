//! What goes to stdout, and beside it to stderr: tables as wide as the terminal, JSON, plain lines.
//! Never panics when nobody reads, as `println!` does: every write can end in [`Stop`].
//! Invariant: colours reach a terminal only, and never one with `NO_COLOR`; anstream takes them out elsewhere.

use std::env;
use std::fmt::Display;
use std::io::{IsTerminal, Write};

use anstyle::{AnsiColor, Style};
use comfy_table::{
    Attribute, Cell, CellAlignment, Color, ColumnConstraint, ContentArrangement, LineStyle, Table, TableStyle,
};
#[cfg(all(feature = "serve", unix))]
use plimsoll_core::Bytes;
use serde::Serialize;

use crate::stop::{Ended, Stop};

/// A rule below the header and nothing else: it reads well, and copies well into a report.
const STYLE: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// Narrower than this a table is no help; the terminal may wrap it then.
const WIDTH_MIN: u16 = 40;

/// Prints text and ends the line.
pub(crate) fn line(text: impl Display) -> Ended {
    writeln!(anstream::stdout(), "{text}").map_err(Stop::from)
}

/// So many of a thing, in words: `1 task`, `3 cached hits`, `2 misses`, `3 members of the book`.
pub(crate) fn counted(count: impl Into<u64>, name: &str) -> String {
    let count = count.into();
    let (thing, rest) = name.split_at(name.find(" of ").unwrap_or(name.len()));
    let plural = match count {
        1 => "",
        _ if thing.ends_with("ss") || thing.ends_with("ch") => "es",
        _ => "s",
    };
    format!("{count} {thing}{plural}{rest}")
}

/// Prints text on stderr and ends the line. Nobody's work ends because nobody can be told of it.
pub(crate) fn aside(text: impl Display) {
    let _ = writeln!(anstream::stderr(), "{text}");
}

/// Tells on stderr of one thing that went wrong among many that did not.
pub(crate) fn error_line(text: impl Display) {
    let red = Style::new().fg_color(Some(AnsiColor::Red.into()));
    aside(format_args!("{red}failed:{red:#} {}", clean(text)));
}

/// Text with names from outside in it, safe for a terminal: control characters, but for ends of lines, are written out.
pub(crate) fn clean(text: impl Display) -> String {
    text.to_string().split('\n').map(clean_line).collect::<Vec<_>>().join("\n")
}

/// [`clean`] for what has to stay on one line: ends of lines are written out too. A name with one would add a row to a table,
/// or an event to a list, that is not there.
pub(crate) fn clean_line(text: impl Display) -> String {
    let mut clean = String::new();
    for each in text.to_string().chars() {
        match each.is_control() || is_misleading(each) {
            true => clean.extend(each.escape_default()),
            false => clean.push(each),
        }
    }
    clean
}

/// Turns the direction of what follows, or ends a line without being a control character, and so makes names look like
/// others.
fn is_misleading(each: char) -> bool {
    matches!(each, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Prints a value for other programs.
pub(crate) fn json(value: &impl Serialize) -> Ended {
    let text = serde_json::to_string_pretty(value).map_err(Stop::failed)?;
    line(text)
}

/// A table with these columns. Numbers stand to the right.
pub(crate) fn table(columns: &[(&str, CellAlignment)]) -> Table {
    let mut table = Table::new();
    table.load_style(STYLE).set_content_arrangement(ContentArrangement::Dynamic).enforce_styling();
    // Blanks stay outside the colours, so that `print_table` can cut them off.
    table.style_text_only();
    table.set_header(columns.iter().map(|(title, _)| Cell::new(title).add_attribute(Attribute::Bold)));
    for (column, (_, alignment)) in table.column_iter_mut().zip(columns) {
        column.set_padding((0, 1)).set_cell_alignment(*alignment);
        if *alignment == CellAlignment::Right {
            // A number and its unit stay on one line; names may wrap.
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
    }
    if let Some(width) = width_when_piped() {
        table.set_width(width);
    }
    table
}

/// Prints a table without the blanks that fill its lines.
pub(crate) fn print_table(table: &Table) -> Ended {
    table.lines().try_for_each(|row| line(row.trim_end()))
}

/// How wide lines may be; `None` where they may be as long as they need to be.
pub(crate) fn width() -> Option<u16> {
    match std::io::stdout().is_terminal() {
        true => Table::new().set_content_arrangement(ContentArrangement::Dynamic).width(),
        false => width_when_piped(),
    }
}

/// comfy-table asks the terminal itself. Elsewhere lines are as long as they need to be, unless someone says.
fn width_when_piped() -> Option<u16> {
    if std::io::stdout().is_terminal() {
        return None;
    }
    let columns = env::var("COLUMNS").ok()?.parse().ok()?;
    (columns >= WIDTH_MIN).then_some(columns)
}

/// Text that says all is well.
pub(crate) fn good(text: impl Display) -> Cell {
    Cell::new(text).fg(Color::Green)
}

/// Text that says something is wrong.
pub(crate) fn bad(text: impl Display) -> Cell {
    Cell::new(text).fg(Color::Red)
}

/// Text of lesser interest.
pub(crate) fn faint(text: impl Display) -> Cell {
    Cell::new(text).add_attribute(Attribute::Dim)
}

/// Bytes in nine cells at the most: a thousand and more of a unit are rounded up to one of the next.
#[cfg(all(feature = "serve", unix))]
pub(crate) fn short_bytes(count: u64) -> String {
    let text = Bytes(count).to_string();
    match text.len() > 9 {
        true => Bytes(count + count / 40).to_string(),
        false => text,
    }
}

/// A number of units as people say it.
pub(crate) fn count(units: u64) -> String {
    let value = units as f64;
    match units {
        0..10_000 => units.to_string(),
        10_000..1_000_000 => format!("{:.1}k", value / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1}M", value / 1e6),
        _ => format!("{:.1}G", value / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_are_counted_in_words() {
        let names = ["task", "cached hit", "miss", "batch", "member of the book"];
        let counted = |count: u64| names.map(|name| counted(count, name));
        assert_eq!(counted(1), ["1 task", "1 cached hit", "1 miss", "1 batch", "1 member of the book"]);
        assert_eq!(counted(2), ["2 tasks", "2 cached hits", "2 misses", "2 batches", "2 members of the book"]);
    }

    #[test]
    fn control_characters_are_written_out() {
        assert_eq!(clean("a\u{1b}[2Jb\r\nc\u{9b}d\u{202e}e"), "a\\u{1b}[2Jb\\r\nc\\u{9b}d\\u{202e}e");
        assert_eq!(clean("Größe 名前"), "Größe 名前");
        assert_eq!(clean_line("a\u{1b}b\r\nc\u{2028}"), "a\\u{1b}b\\r\\nc\\u{2028}");
    }

    #[cfg(all(feature = "serve", unix))]
    #[test]
    fn figures_have_nine_cells() {
        assert_eq!([999 << 20, 1_000 << 20, 1_023 << 20].map(short_bytes), ["999.0 MiB", "1.0 GiB", "1.0 GiB"]);
    }

    #[test]
    fn counts_are_short() {
        assert_eq!([0, 9_999, 10_000, 16_777_216].map(count), ["0", "9999", "10.0k", "16.8M"]);
    }
}
