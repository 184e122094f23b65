//! `plimsoll who`: who holds how much of which device, who waits, and what strangers use.
//! Never wider than the terminal: names are cut to what their line has left, and only where that is nothing a holder takes
//! two lines.

use comfy_table::{Cell, CellAlignment, Color, ColumnConstraint};
use console::{measure_text_width, pad_str, truncate_str};
use plimsoll_core::Bytes;
use plimsoll_daemon::wire::{DeviceState, Holder, Kind, Phase, Sort, State, Urgency, Waiting};

use super::args::WhoArgs;
use crate::output::{self, bad, clean_line, counted, faint, good, line, print_table, short_bytes, table};
use crate::stop::Ended;

/// Cells of a name at the least, however little room there is.
const NAME_MIN: usize = 10;
/// Cells of a name in the list of who waits at the most: the reason below it is what matters.
const WAITING_NAME_MAX: usize = 40;
/// Blanks between two columns.
const GAP: usize = 2;
/// Where the reason of who waits begins: below its name.
const REASON_AT: usize = 7;

/// `plimsoll who`.
pub(crate) fn run(args: &WhoArgs) -> Ended {
    let state = args.socket.connect()?.state().map_err(super::stop)?;
    if args.json {
        return output::json(&state);
    }
    devices(&state)?;
    line("")?;
    holders(&state.holders)?;
    queue(&state.queue, state.at_ms)?;
    for warning in &state.warnings {
        crate::stop::warn(clean_line(warning));
    }
    Ok(())
}

// ---------------------------------------------------------------------------------------------------------- devices

fn devices(state: &State) -> Ended {
    let mut rows = table(&[
        ("device", CellAlignment::Left),
        ("promised", CellAlignment::Right),
        ("line", CellAlignment::Right),
        ("used", CellAlignment::Right),
        ("strangers", CellAlignment::Right),
        ("memory", CellAlignment::Right),
        ("pressure", CellAlignment::Left),
    ]);
    for device in &state.devices {
        let pressure = format!("{:.0} % {}", device.pressure * 100.0, device.level);
        rows.add_row([
            Cell::new(clean_line(&device.name)),
            Cell::new(short_bytes(device.promised)),
            Cell::new(short_bytes(device.line)),
            Cell::new(short_bytes(device.used)),
            Cell::new(short_bytes(device.strangers)),
            Cell::new(short_bytes(device.capacity)),
            match device.level.as_str() {
                "high" | "critical" => bad(pressure),
                _ => good(pressure),
            },
        ]);
    }
    if state.devices.is_empty() {
        return line("no device is known: no driver has answered");
    }
    print_table(&rows)?;
    state.devices.iter().flat_map(notes).try_for_each(|note| wrapped(&note, 0))
}

/// What the figures of a device do not say by themselves.
fn notes(device: &DeviceState) -> Vec<String> {
    let name = clean_line(&device.name);
    let mut notes = Vec::new();
    if device.members > 0 {
        notes.push(format!("{name}: {} of what is promised is other programs', by the book", Bytes(device.members)));
    }
    if device.reserve > 0 {
        notes.push(format!("{name}: {} is left to the desktop", Bytes(device.reserve)));
    }
    if let Some(why) = &device.by_sum {
        let why = clean_line(why);
        notes.push(format!(
            "{name}: what is in use is the sum of all programs: {why}; what is not promised is strangers'"
        ));
    }
    notes
}

// ---------------------------------------------------------------------------------------------------------- holders

/// A holder as it is shown.
struct Row {
    cells: [String; 7],
    name: String,
    standing: Standing,
    is_over: bool,
    is_stranger: bool,
}

/// A table of leases and strangers, and what they come to.
pub(super) fn holders(holders: &[Holder]) -> Ended {
    if holders.is_empty() {
        return line("nobody holds anything");
    }
    let mut drawn = table(&[
        ("lease", CellAlignment::Right),
        ("holder", CellAlignment::Left),
        ("pid", CellAlignment::Right),
        ("kind", CellAlignment::Left),
        ("on", CellAlignment::Left),
        ("promised", CellAlignment::Right),
        ("used", CellAlignment::Right),
        ("quality", CellAlignment::Left),
    ]);
    let rows: Vec<Row> = holders.iter().map(row).collect();
    let titles = ["lease", "pid", "kind", "on", "promised", "used", "quality"];
    let others = (0..titles.len()).map(|at| {
        let cells = rows.iter().map(|row| measure_text_width(&row.cells[at]));
        GAP + cells.max().unwrap_or(0).max(titles[at].len())
    });
    // The last column ends with a blank as well.
    let name = left_beside(others.sum::<usize>() + 1);
    if name > NAME_MIN {
        // Names are cut: nothing else has to give way.
        for column in drawn.column_iter_mut() {
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
    }
    for row in &rows {
        drawn.add_row(row.drawn(name));
    }
    print_table(&drawn)?;
    wrapped(&totals(holders), 0)
}

/// What is left of a line beside so many cells.
fn left_beside(others: usize) -> usize {
    output::width().map_or(usize::MAX, |width| usize::from(width).saturating_sub(others).max(NAME_MIN))
}

fn row(holder: &Holder) -> Row {
    let (promised, used) = (promised(holder), used(holder));
    let is_stranger = holder.sort == Sort::Stranger;
    let (text, standing) = standing(holder);
    Row {
        cells: [
            holder.lease.map_or_else(|| "–".to_owned(), |id| id.0.to_string()),
            holder.pid.map_or_else(|| "?".to_owned(), |pid| pid.to_string()),
            what_for(holder),
            on(holder),
            if is_stranger { "–".to_owned() } else { short_bytes(promised.0) },
            used.map_or_else(|| "?".to_owned(), |used| short_bytes(used.0)),
            text,
        ],
        name: clean_line(&holder.name),
        standing,
        is_over: used.is_some_and(|used| used > promised) && !is_stranger,
        is_stranger,
    }
}

impl Row {
    fn drawn(&self, name: usize) -> [Cell; 8] {
        let [lease, pid, what, on, promised, used, standing] = &self.cells;
        [
            Cell::new(lease),
            Cell::new(truncate_str(&self.name, name, "…")),
            Cell::new(pid),
            Cell::new(what),
            Cell::new(on),
            if self.is_stranger { faint(promised) } else { Cell::new(promised) },
            if self.is_over { bad(used) } else { Cell::new(used) },
            match self.standing {
                Standing::Well => Cell::new(standing),
                Standing::Aside => faint(standing),
                Standing::Asked => Cell::new(standing).fg(Color::Red),
            },
        ]
    }
}

fn promised(holder: &Holder) -> Bytes {
    Bytes(holder.portions.iter().map(|portion| portion.promised).sum())
}

/// What a holder uses of all its devices; nothing if one of them does not say.
fn used(holder: &Holder) -> Option<Bytes> {
    holder.portions.iter().map(|portion| portion.used).sum::<Option<u64>>().map(Bytes)
}

fn on(holder: &Holder) -> String {
    let names: Vec<_> = holder.portions.iter().map(|portion| clean_line(&portion.device)).collect();
    match &names[..] {
        [first, _, _, ..] => format!("{first} and {} more", names.len() - 1),
        few => few.join("+"),
    }
}

fn what_for(holder: &Holder) -> String {
    match holder.sort {
        Sort::Stranger => "stranger".to_owned(),
        Sort::Engine => format!("engine {}", urgency(holder.priority)),
        Sort::Member => "member".to_owned(),
        Sort::Lease => format!("{} {}", kind(holder.kind), urgency(holder.priority)),
    }
}

/// How much a holder's standing matters to whoever reads.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Standing {
    Well,
    Aside,
    Asked,
}

fn standing(holder: &Holder) -> (String, Standing) {
    let quality = format!("{:.0} %", holder.quality * 100.0);
    match (holder.sort, holder.phase) {
        (Sort::Stranger, _) => ("–".to_owned(), Standing::Aside),
        (Sort::Member, _) => ("by the book".to_owned(), Standing::Aside),
        (_, Phase::Recalled) => ("asked back".to_owned(), Standing::Asked),
        (_, Phase::Returning) => ("given back".to_owned(), Standing::Aside),
        (_, Phase::Held) if holder.pinned => (format!("{quality} pinned"), Standing::Well),
        (_, Phase::Held) => (quality, Standing::Well),
    }
}

/// How many there are of each sort, with their sums.
fn totals(holders: &[Holder]) -> String {
    let sorts = [
        (Sort::Lease, "lease"),
        (Sort::Engine, "engine"),
        (Sort::Member, "member of the book"),
        (Sort::Stranger, "stranger"),
    ];
    let totals = sorts.iter().filter_map(|(sort, name)| {
        let of: Vec<&Holder> = holders.iter().filter(|holder| holder.sort == *sort).collect();
        let count = (!of.is_empty()).then(|| counted(of.len() as u64, name))?;
        let promised: Bytes = of.iter().map(|holder| promised(holder)).sum();
        // Where one is not known the sum would say too little.
        let used = of.iter().map(|holder| used(holder).map(|bytes| bytes.0)).sum::<Option<u64>>();
        let used = used.map_or_else(|| "? used".to_owned(), |used| format!("{} used", Bytes(used)));
        Some(match sort {
            Sort::Stranger => format!("{count}: {used}"),
            _ => format!("{count}: {promised} promised, {used}"),
        })
    });
    totals.collect::<Vec<_>>().join("; ")
}

// ------------------------------------------------------------------------------------------------------------ queue

/// Who waits: a line with what it wants, and below it why it has it not.
pub(super) fn queue(queue: &[Waiting], now_ms: u64) -> Ended {
    if queue.is_empty() {
        return Ok(());
    }
    let names = queue.iter().map(|waiting| measure_text_width(&clean_line(&waiting.name)));
    let name = names.max().unwrap_or(0).clamp(NAME_MIN, WAITING_NAME_MAX).min(left_beside(48));
    line("")?;
    let titles = format!("{:>5}  {:<name$}  {:<16}  {:>10}  {:>7}", "waits", "who", "kind", "needs", "for");
    line(format_args!("{bold}{titles}{bold:#}", bold = anstyle::Style::new().bold()))?;
    line("─".repeat(measure_text_width(&titles)))?;
    for waiting in queue {
        let lease = waiting.lease.map_or_else(|| "–".to_owned(), |id| id.0.to_string());
        let who = clean_line(&waiting.name);
        let who = pad_str(&who, name, console::Alignment::Left, Some("…"));
        let what = match waiting.lease {
            Some(_) => format!("{} {}", kind(waiting.kind), urgency(waiting.priority)),
            None => format!("member {}", urgency(waiting.priority)),
        };
        let waited = time(now_ms.saturating_sub(waiting.since_ms));
        line(format_args!("{lease:>5}  {who}  {what:<16}  {:>10}  {waited:>7}", Bytes(waiting.bytes)))?;
        let estimate = waiting.estimate_ms.map_or_else(String::new, |ms| format!("; about {} more", time(ms)));
        wrapped(&format!("{}{estimate}", clean_line(&waiting.reason)), REASON_AT)?;
    }
    let count = counted(queue.len() as u64, "program");
    line(format_args!("{count} {}", if queue.len() == 1 { "waits" } else { "wait" }))
}

/// A span of time in as few characters as tell it.
fn time(ms: u64) -> String {
    let seconds = ms.div_ceil(1_000);
    match seconds {
        0..100 => format!("{seconds} s"),
        100..6_000 => format!("{} min", seconds / 60),
        _ => format!("{} h", seconds / 3_600),
    }
}

// ------------------------------------------------------------------------------------------------------------ words

/// A sentence over as many lines as it needs, each beginning after so many blanks.
fn wrapped(text: &str, indent: usize) -> Ended {
    let width = output::width().map_or(usize::MAX, |width| usize::from(width).saturating_sub(indent).max(NAME_MIN));
    let mut row = String::new();
    for word in text.split(' ').flat_map(|word| pieces(word, width)) {
        let is_full = measure_text_width(&row) + 1 + measure_text_width(word) > width;
        if is_full && !row.is_empty() {
            line(format_args!("{:indent$}{row}", ""))?;
            row.clear();
        }
        if !row.is_empty() {
            row.push(' ');
        }
        row.push_str(word);
    }
    line(format_args!("{:indent$}{row}", ""))
}

/// A word, in pieces that fit a line.
fn pieces(mut word: &str, width: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    while measure_text_width(word) > width {
        let mut wide = 0;
        let fits = |(_, each): &(usize, char)| {
            wide += measure_text_width(each.encode_utf8(&mut [0; 4]));
            wide > width
        };
        let end = word.char_indices().find(fits).map_or(word.len(), |(at, _)| at);
        // A character wider than the line is a piece by itself.
        let end = if end == 0 { word.chars().next().map_or(word.len(), char::len_utf8) } else { end };
        let (piece, rest) = word.split_at(end);
        pieces.push(piece);
        word = rest;
    }
    if !word.is_empty() || pieces.is_empty() {
        pieces.push(word);
    }
    pieces
}

fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Llm => "llm",
        Kind::Image => "image",
        Kind::Video => "video",
        Kind::Batch => "batch",
        Kind::Other => "other",
    }
}

fn urgency(urgency: Urgency) -> &'static str {
    match urgency {
        Urgency::Background => "background",
        Urgency::Low => "low",
        Urgency::Normal => "normal",
        Urgency::High => "high",
        Urgency::Critical => "critical",
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_daemon::wire::Portion;

    use super::*;

    #[test]
    fn totals_are_by_sort_and_do_not_add_what_is_not_known() {
        let holder = |sort, promised: u64, used| Holder {
            sort,
            portions: vec![Portion { device: "gpu0".into(), promised: promised << 20, used }],
            ..Holder::default()
        };
        let mib = |mib: u64| Some(mib << 20);
        let all = [
            holder(Sort::Lease, 10, mib(4)),
            holder(Sort::Lease, 20, mib(5)),
            holder(Sort::Member, 7, None),
            holder(Sort::Member, 7, mib(1)),
            holder(Sort::Stranger, 0, mib(3)),
        ];
        assert_eq!(
            totals(&all),
            "2 leases: 30.0 MiB promised, 9.0 MiB used; 2 members of the book: 14.0 MiB promised, ? used; \
             1 stranger: 3.0 MiB used"
        );
    }

    #[test]
    fn many_devices_are_counted() {
        let portion = |at| Portion { device: format!("gpu{at}"), ..Portion::default() };
        let of = |count| on(&Holder { portions: (0..count).map(portion).collect(), ..Holder::default() });
        assert_eq!([of(1), of(2), of(8)], ["gpu0", "gpu0+gpu1", "gpu0 and 7 more"]);
    }

    #[test]
    fn a_word_wider_than_the_line_is_cut() {
        assert_eq!(pieces("abcdefg", 3), ["abc", "def", "g"]);
        assert_eq!(pieces("模型服务器", 4), ["模型", "服务", "器"]);
        assert_eq!(pieces("模型", 1), ["模", "型"]);
    }

    #[test]
    fn times_are_short() {
        assert_eq!([0, 1_500, 200_000, 7_200_000].map(time), ["0 s", "2 s", "3 min", "2 h"]);
    }
}
