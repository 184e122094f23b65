//! What `plimsoll top` shows, as lines of text for a screen of some size: devices, holders, who waits, what happened.
//! Never reads keys, clocks or sockets: it is given all that it shows, so that tests can look at it.
//! Invariant: no line is wider than the screen, and there are never more lines than it has (`tests`).

use anstyle::{AnsiColor, Style};
use console::{measure_text_width, truncate_str};
use plimsoll_daemon::wire::{DeviceState, Event, Holder, Phase, Sort, State, Step, Urgency, Waiting};

use super::super::told::time;
use crate::output::{clean_line, counted, short_bytes as bytes};

/// Events shown at the most, however high the screen is: older ones are what `plimsoll events` is for.
const EVENTS_MAX: usize = 8;
/// Holders shown at the least, if there are any, before anything below them gets lines.
const HOLDERS_MIN: usize = 2;
/// Lines before the holders, who waits and what happened: a count or a blank, and a title.
const HOLDERS_TITLES: usize = 2;
/// See [`HOLDERS_TITLES`].
const WAITING_TITLES: usize = 2;
/// See [`HOLDERS_TITLES`].
const EVENTS_TITLES: usize = 2;
/// Of who waits at the most: `plimsoll who` shows all.
const WAITING_MAX: usize = 6;
/// Cells of the name of who waits.
const WAITING_NAME: usize = 28;
/// Warnings at the most.
const WARNINGS_MAX: usize = 2;
/// A screen this wide has room for more columns, and for reasons beside who waits.
const WIDE: usize = 120;
/// Cells of a holder's row beside its name.
const OTHER_COLUMNS: usize = 67;
/// Cells of a device's bar at the most: beyond this it tells no more.
const BAR_MAX: usize = 48;

/// The screen's size in cells.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) width: usize,
    pub(super) height: usize,
}

/// What is shown.
#[derive(Copy, Clone, Debug)]
pub(super) struct Picture<'a> {
    pub(super) state: &'a State,
    /// The newest last.
    pub(super) events: &'a [Event],
    /// Holders passed over at the top of the list.
    pub(super) scrolled: usize,
    /// Why the figures are old, if they are.
    pub(super) trouble: Option<&'a str>,
}

/// A run of text in one style.
type Span = (Style, String);

/// One line of the screen.
#[derive(Clone, Debug, Default)]
pub(super) struct Line(Vec<Span>);

const PLAIN: Style = Style::new();
const BOLD: Style = Style::new().bold();
const SOFT: Style = Style::new().dimmed();

fn coloured(colour: AnsiColor) -> Style {
    Style::new().fg_color(Some(colour.into()))
}

impl Line {
    fn with(mut self, style: Style, text: impl Into<String>) -> Self {
        self.0.push((style, text.into()));
        self
    }

    fn plain(text: impl Into<String>) -> Self {
        Self::default().with(PLAIN, text)
    }

    /// The text with its colours, cut to a width.
    pub(super) fn painted(&self, width: usize) -> String {
        let mut left = width;
        let mut painted = String::new();
        for (style, text) in &self.0 {
            if left == 0 {
                break;
            }
            let cut = truncate_str(text, left, "…");
            left -= measure_text_width(&cut).min(left);
            painted.push_str(&format!("{style}{cut}{style:#}"));
        }
        painted
    }
}

/// All lines, first to last.
pub(super) fn lines(picture: &Picture<'_>, size: Size) -> Vec<Line> {
    let mut lines = head(picture, size);
    let plan = Plan::of(picture, size, lines.len());
    lines.extend(holder_lines(picture, plan.holders, size.width));
    lines.extend(waiting_lines(picture.state, plan.waiting, size.width));
    if plan.events > 0 {
        lines.push(Line::default());
        lines.push(Line::default().with(BOLD, "WHAT HAPPENED"));
        lines.extend(picture.events.iter().rev().take(plan.events).map(event_line));
    }
    lines.truncate(size.height);
    lines
}

/// Holders that fit a screen: what a page moves by.
pub(super) fn page(picture: &Picture<'_>, size: Size) -> usize {
    Plan::of(picture, size, head(picture, size).len()).holders.max(1)
}

/// How many of what there is are shown.
struct Plan {
    holders: usize,
    waiting: usize,
    events: usize,
}

impl Plan {
    /// Holders come first: a short list leaves its room to what happened, a long one takes two thirds. Who waits has half of
    /// the screen at the most.
    fn of(picture: &Picture<'_>, size: Size, above: usize) -> Self {
        let state = picture.state;
        let left = size.height.saturating_sub(above);
        let each = if size.width < WIDE { 2 } else { 1 };
        let waiting = state.queue.len().min(WAITING_MAX).min((left / 2).saturating_sub(WAITING_TITLES) / each);
        let left = left.saturating_sub(if waiting > 0 { WAITING_TITLES + waiting * each } else { 0 });
        let events = picture.events.len().min(EVENTS_MAX);
        let events_need = if events > 0 { events + EVENTS_TITLES } else { 0 };
        let most = left.saturating_sub(events_need).max(left * 2 / 3).max(HOLDERS_TITLES + HOLDERS_MIN);
        let holders = state.holders.len().min(most - HOLDERS_TITLES);
        let left = left.saturating_sub(HOLDERS_TITLES + holders);
        Self { holders, waiting, events: events.min(left.saturating_sub(EVENTS_TITLES)) }
    }
}

fn head(picture: &Picture<'_>, size: Size) -> Vec<Line> {
    let state = picture.state;
    let warnings = state.warnings.iter().take(WARNINGS_MAX);
    let yellow = coloured(AnsiColor::Yellow);
    let mut lines = vec![title(picture)];
    lines.extend(warnings.map(|text| Line::default().with(yellow, clean_line(text))));
    lines.push(Line::default());
    // A bar for each if that leaves two thirds of the screen to the rest.
    let has_bars = state.devices.len() * 2 <= size.height / 3;
    let most = if has_bars { state.devices.len() } else { (size.height / 3).max(1) };
    for device in state.devices.iter().take(most) {
        lines.push(device_line(device));
        lines.extend(has_bars.then(|| bar(device, size.width)));
    }
    if let Some(more) = state.devices.len().checked_sub(most).filter(|more| *more > 0) {
        lines.push(Line::default().with(SOFT, format!("and {more} more devices, which `plimsoll who` shows")));
    }
    lines
}

fn title(picture: &Picture<'_>) -> Line {
    let state = picture.state;
    let about = format!("plimsoll {}  policy {}  ", state.version, state.policy);
    let line = Line::default().with(BOLD, about);
    match picture.trouble {
        Some(trouble) => line.with(coloured(AnsiColor::Red), clean_line(trouble)),
        None => line.with(SOFT, "q quits, ↑ ↓ scroll"),
    }
}

// ---------------------------------------------------------------------------------------------------------- devices

fn device_line(device: &DeviceState) -> Line {
    let colour = match device.level.as_str() {
        "critical" => AnsiColor::Red,
        "high" => AnsiColor::Yellow,
        _ => AnsiColor::Green,
    };
    let (used, capacity) = (bytes(device.used), bytes(device.capacity));
    Line::default()
        .with(BOLD, padded(&clean_line(&device.name), 6))
        .with(coloured(colour), format!("{:>4.0} % taken  ", device.pressure * 100.0))
        .with(PLAIN, format!("{} promised of {}", bytes(device.promised), bytes(device.line)))
        .with(SOFT, format!(", {used} in use of {capacity}  {}", clean_line(&device.card)))
}

/// Used under leases, promised and not used, strangers; `|` is the line. Beside it what the colours mean.
fn bar(device: &DeviceState, width: usize) -> Line {
    let cells = (width * 2 / 5).clamp(10, BAR_MAX);
    let part = |bytes: u64| (bytes as f64 / device.capacity.max(1) as f64 * cells as f64).round() as usize;
    let leased = device.used.saturating_sub(device.strangers);
    let kinds = [
        ('█', coloured(AnsiColor::Blue), part(leased)),
        ('▒', coloured(AnsiColor::Blue), part(device.promised.saturating_sub(leased))),
        ('▓', coloured(AnsiColor::Yellow), part(device.strangers)),
    ];
    let line_at = part(device.line + device.strangers).min(cells.saturating_sub(1));
    let mut drawn: Vec<(Style, char)> = kinds
        .into_iter()
        .flat_map(|(cell, style, count)| std::iter::repeat_n((style, cell), count))
        .chain(std::iter::repeat((SOFT, '·')))
        .take(cells)
        .collect();
    drawn[line_at] = (BOLD, '|');
    let spans = drawn.chunk_by(|a, b| a.0 == b.0).map(|run| (run[0].0, run.iter().map(|(_, cell)| *cell).collect()));
    let spans = [(PLAIN, "      ".to_owned())].into_iter().chain(spans);
    Line(spans.chain([(SOFT, format!("  {}", beside_bar(device)))]).collect())
}

fn beside_bar(device: &DeviceState) -> String {
    let figures = [(device.members, "by the book"), (device.strangers, "strangers'"), (device.reserve, "reserved")];
    let figures = figures.into_iter().filter(|(count, _)| *count > 0);
    let figures = figures.map(|(count, what)| format!("{} {what}", bytes(count)));
    let by_sum = device.by_sum.as_ref().map(|_| "use: sum only".to_owned());
    by_sum.into_iter().chain(figures).collect::<Vec<_>>().join(", ")
}

// ---------------------------------------------------------------------------------------------------------- holders

fn holder_lines(picture: &Picture<'_>, most: usize, width: usize) -> Vec<Line> {
    let holders = &picture.state.holders;
    if holders.is_empty() {
        return vec![Line::default(), Line::plain("Nobody holds anything.")];
    }
    let first = picture.scrolled.min(holders.len().saturating_sub(most));
    let columns = Columns::of(width);
    let shown = holders.iter().skip(first).take(most);
    let mut lines = vec![counts(holders, first, most), columns.title()];
    lines.extend(shown.map(|holder| columns.holder(holder)));
    lines
}

/// How many there are of each sort, and which of them are on the screen.
fn counts(holders: &[Holder], first: usize, most: usize) -> Line {
    let sorts = [
        (Sort::Lease, "lease"),
        (Sort::Engine, "engine"),
        (Sort::Member, "member of the book"),
        (Sort::Stranger, "stranger"),
    ];
    let of = |sort: Sort| holders.iter().filter(|holder| holder.sort == sort).count();
    let each = sorts.into_iter().map(|(sort, name)| (of(sort), name)).filter(|(count, _)| *count > 0);
    let each: Vec<String> = each.map(|(count, name)| counted(count as u64, name)).collect();
    let line = Line::default().with(SOFT, each.join(", "));
    match most < holders.len() {
        true => line.with(BOLD, format!("  {} to {} of {}", first + 1, first + most, holders.len())),
        false => line,
    }
}

/// How wide the columns are whose width depends on the screen's.
#[derive(Copy, Clone)]
struct Columns {
    name: usize,
    has_pid: bool,
}

impl Columns {
    fn of(width: usize) -> Self {
        let has_pid = width >= WIDE;
        let others = if has_pid { OTHER_COLUMNS + 8 } else { OTHER_COLUMNS };
        Self { name: width.saturating_sub(others).clamp(12, 48), has_pid }
    }

    fn row(self, style: Style, [lease, name, pid, device]: [&str; 4]) -> Line {
        let pid = if self.has_pid { format!("{pid:>7} ") } else { String::new() };
        Line::default().with(style, format!("{lease:>5} {} {pid}{} ", padded(name, self.name), padded(device, 7)))
    }

    fn title(self) -> Line {
        let title = self.row(BOLD, ["LEASE", "HOLDER", "PID", "DEVICE"]);
        title.with(BOLD, format!("{:>9} {:>9} {:>5} {:<10} {}", "PROMISED", "IN USE", "QUAL.", "PRIORITY", "STATE"))
    }

    fn holder(self, holder: &Holder) -> Line {
        let promised: u64 = holder.portions.iter().map(|portion| portion.promised).sum();
        let used = holder.portions.iter().map(|portion| portion.used).sum::<Option<u64>>();
        let has_lease = matches!(holder.sort, Sort::Lease | Sort::Engine);
        let is_stranger = holder.sort == Sort::Stranger;
        let is_over = !is_stranger && used.is_some_and(|used| used > promised);
        let style = if is_stranger { SOFT } else { PLAIN };
        let quality = if has_lease { format!("{:.0} %", holder.quality * 100.0) } else { "–".to_owned() };
        let priority = if has_lease { urgency(holder.priority) } else { "–" };
        let lease = holder.lease.map_or_else(|| "–".to_owned(), |id| id.0.to_string());
        let pid = holder.pid.map_or_else(|| "?".to_owned(), |pid| pid.to_string());
        let (state_style, state) = standing(holder);
        self.row(style, [&lease, &clean_line(&holder.name), &pid, &on(holder)])
            .with(style, format!("{:>9} ", if is_stranger { "–".to_owned() } else { bytes(promised) }))
            .with(
                if is_over { coloured(AnsiColor::Red) } else { style },
                format!("{:>9} ", used.map_or_else(|| "?".to_owned(), bytes)),
            )
            .with(style, format!("{quality:>5} {priority:<10} "))
            .with(state_style, state)
    }
}

/// Where a holder is: one device, or the first and how many more.
fn on(holder: &Holder) -> String {
    match &holder.portions[..] {
        [] => String::new(),
        [one] => clean_line(&one.device),
        [first, more @ ..] => format!("{} +{}", clean_line(&first.device), more.len()),
    }
}

fn standing(holder: &Holder) -> (Style, &'static str) {
    let (warn, bad) = (coloured(AnsiColor::Yellow), coloured(AnsiColor::Red));
    match (&holder.recall, holder.phase, holder.sort) {
        (Some(recall), ..) => match recall.step {
            Step::StepDown => (warn, "asked for less"),
            Step::Leave => (bad, "asked to leave"),
            Step::Stop => (bad, "being stopped"),
        },
        (None, Phase::Returning, _) => (warn, "returning"),
        (None, Phase::Recalled, _) => (warn, "recalled"),
        (None, Phase::Held, Sort::Stranger) => (SOFT, "no lease"),
        (None, Phase::Held, Sort::Member) => (SOFT, "shares the book"),
        (None, Phase::Held, _) if holder.pinned => (coloured(AnsiColor::Green), "pinned"),
        (None, Phase::Held, _) => (coloured(AnsiColor::Green), "held"),
    }
}

// ------------------------------------------------------------------------------------------------- queue and events

/// Who waits, with the reason beside it, or below it on a narrow screen.
fn waiting_lines(state: &State, most: usize, width: usize) -> Vec<Line> {
    if most == 0 {
        return Vec::new();
    }
    let mut lines = vec![Line::default(), Line::default().with(BOLD, format!("WAITING  {}", state.queue.len()))];
    for waiting in state.queue.iter().take(most) {
        let (what, why) = waiting_line(waiting);
        match width < WIDE {
            true => lines.extend([what, Line::default().with(SOFT, format!("      {why}"))]),
            false => lines.push(what.with(SOFT, why)),
        }
    }
    lines
}

fn waiting_line(waiting: &Waiting) -> (Line, String) {
    let estimate = waiting.estimate_ms.map_or_else(String::new, |ms| format!("; about {} s more", ms.div_ceil(1_000)));
    let lease = waiting.lease.map_or_else(|| "–".to_owned(), |id| id.0.to_string());
    let name = padded(&clean_line(&waiting.name), WAITING_NAME);
    let what = format!("{lease:>5} {name} {:>9} {:<10} ", bytes(waiting.bytes), urgency(waiting.priority));
    (Line::plain(what), format!("{}{estimate}", clean_line(&waiting.reason)))
}

fn event_line(event: &Event) -> Line {
    let colour = match event.what.as_str() {
        "refused" | "not-freed" | "stopped" => AnsiColor::Red,
        "recalled" | "overdue" | "warning" | "over" => AnsiColor::Yellow,
        _ => AnsiColor::Green,
    };
    let time = time(event.at_ms);
    Line::default()
        .with(SOFT, format!("{} ", time.split('.').next().unwrap_or_default()))
        .with(coloured(colour), padded(&clean_line(&event.what), 10))
        .with(PLAIN, clean_line(&event.text))
}

// ------------------------------------------------------------------------------------------------------------ words

fn urgency(urgency: Urgency) -> &'static str {
    match urgency {
        Urgency::Background => "background",
        Urgency::Low => "low",
        Urgency::Normal => "normal",
        Urgency::High => "high",
        Urgency::Critical => "critical",
    }
}

/// Cut or filled to a width in cells, whatever characters it is made of.
fn padded(text: &str, width: usize) -> String {
    console::pad_str(text, width, console::Alignment::Left, Some("…")).into_owned()
}

#[cfg(test)]
mod tests {
    use plimsoll_daemon::wire::{LeaseId, Portion, Recall};

    use super::*;

    const GIB: u64 = 1 << 30;

    fn holder(name: &str, sort: Sort, promised: u64, used: u64) -> Holder {
        Holder {
            sort,
            name: name.to_owned(),
            portions: vec![Portion { device: "gpu0".to_owned(), promised, used: Some(used) }],
            rungs: 2,
            quality: 1.0,
            recommended: 1.0,
            ..Holder::default()
        }
    }

    fn state(holders: usize) -> State {
        let mut state = State {
            version: "0.1.0".to_owned(),
            policy: "adaptive".to_owned(),
            devices: vec![DeviceState {
                name: "gpu0".to_owned(),
                card: "NVIDIA GeForce RTX 4090".to_owned(),
                capacity: 24 * GIB,
                line: 20 * GIB,
                promised: 14 * GIB,
                used: 13 * GIB,
                strangers: GIB,
                pressure: 0.7,
                level: "medium".to_owned(),
                ..DeviceState::default()
            }],
            ..State::default()
        };
        let recall = Recall {
            lease: LeaseId(2),
            step: Step::Leave,
            rung: None,
            bytes: 0,
            within_ms: 1_000,
            because: "lease 9".to_owned(),
        };
        let kinds = [
            holder("python infer.py", Sort::Lease, 10 * GIB, 9 * GIB),
            Holder {
                recall: Some(recall),
                ..holder("模型服务器 --with a very long command line", Sort::Lease, 4 * GIB, 5 * GIB)
            },
            holder("Xorg\u{1b}[31m\nroot", Sort::Stranger, 0, 1_000 << 20),
        ];
        state.holders = kinds.into_iter().cycle().take(holders).collect();
        state
    }

    fn shown(state: &State, size: Size, scrolled: usize) -> Vec<String> {
        let events: Vec<Event> = (1..=20)
            .map(|id| Event {
                id,
                what: "granted".to_owned(),
                name: format!("lease {id}"),
                text: format!("lease {id} holds 1 B"),
                ..Event::default()
            })
            .collect();
        let picture = Picture { state, events: &events, scrolled, trouble: None };
        let lines = lines(&picture, size);
        lines.iter().map(|line| console::strip_ansi_codes(&line.painted(size.width)).into_owned()).collect()
    }

    #[test]
    fn it_fits_every_screen() {
        for (holders, width, height) in
            [(0, 80, 24), (3, 80, 24), (200, 80, 24), (200, 40, 10), (3, 200, 60), (3, 20, 3)]
        {
            let lines = shown(&state(holders), Size { width, height }, 0);
            assert!(lines.len() <= height, "{holders} holders on {width} × {height}: {} lines", lines.len());
            let widest = lines.iter().map(|line| measure_text_width(line)).max().unwrap_or(0);
            assert!(widest <= width, "{holders} holders on {width} × {height}: {widest} wide");
        }
    }

    #[test]
    fn who_holds_too_much_and_who_has_to_go_is_seen_at_eighty_columns() {
        let lines = shown(&state(3), Size { width: 80, height: 24 }, 0);
        let row = lines.iter().find(|line| line.contains("模型")).expect("a row");
        for word in ["gpu0", "4.0 GiB", "5.0 GiB", "asked to leave"] {
            assert!(row.contains(word), "{word} is missing: {row}");
        }
        let stranger = lines.iter().find(|line| line.contains("Xorg")).expect("a row");
        assert!(stranger.contains("no lease") && !stranger.contains(['\u{1b}', '\n']), "{stranger}");
        let title = lines.iter().find(|line| line.contains("PROMISED")).expect("a title");
        let end = |line: &str, word: &str| {
            measure_text_width(line.split_once(word).unwrap_or_else(|| panic!("{word}: {line}")).0)
        };
        assert_eq!(end(row, "asked to leave"), end(title, "STATE"), "columns stand below their titles");
        assert_eq!(end(stranger, "no lease"), end(title, "STATE"), "whatever the name is made of: {stranger}");
    }

    #[test]
    fn who_waits_is_seen_with_its_reason_on_every_screen() {
        let mut state = state(200);
        let reason = "it needs 9.0 GiB of gpu0, 1.0 GiB are free; held by python infer.py (10.0 GiB)";
        let waiting = Waiting {
            lease: Some(LeaseId(7)),
            name: "render\nfarm".to_owned(),
            bytes: 9 * GIB,
            reason: reason.to_owned(),
            estimate_ms: Some(1_500),
            ..Waiting::default()
        };
        state.queue = vec![waiting; 30];
        for (width, height) in [(80, 24), (200, 60)] {
            let lines = shown(&state, Size { width, height }, 0);
            assert!(lines.iter().any(|line| line == "WAITING  30"), "{lines:#?}");
            assert!(
                lines.iter().any(|line| line.contains("    7 render\\nfarm") && line.contains("9.0 GiB")),
                "{lines:#?}"
            );
            assert!(lines.iter().any(|line| line.contains("held by python infer.py")), "{lines:#?}");
            assert!(lines.iter().filter(|line| line.contains("gpu0 ") && line.contains('%')).count() > 3, "{lines:#?}");
        }
    }

    #[test]
    fn a_machine_with_many_devices_leaves_room_for_its_holders() {
        let mut state = state(200);
        state.devices = vec![state.devices[0].clone(); 16];
        let lines = shown(&state, Size { width: 80, height: 24 }, 0);
        assert!(lines.iter().any(|line| line.contains("and 8 more devices")), "{lines:#?}");
        assert!(lines.iter().filter(|line| line.contains("python infe")).count() > 1, "{lines:#?}");
    }

    #[test]
    fn a_device_says_what_is_not_its_holders() {
        let mut state = state(0);
        let device = &mut state.devices[0];
        (device.members, device.reserve) = (3 * GIB, 2 * GIB);
        device.by_sum = Some("its driver does not tell processes apart".to_owned());
        let lines = shown(&state, Size { width: 140, height: 24 }, 0);
        let bar = lines.iter().find(|line| line.contains('▓')).expect("a bar");
        for word in ["3.0 GiB by the book", "1.0 GiB strangers'", "2.0 GiB reserved", "sum only"] {
            assert!(bar.contains(word), "{word}: {bar}");
        }
    }

    #[test]
    fn members_of_the_book_are_seen_with_what_they_may_promise() {
        let mut state = state(0);
        state.holders = vec![holder("plimsoll", Sort::Member, 3 * GIB, GIB)];
        let lines = shown(&state, Size { width: 80, height: 24 }, 0);
        assert!(lines.iter().any(|line| line == "1 member of the book"), "{lines:#?}");
        let row = lines.iter().find(|line| line.contains("shares the book")).expect("a row");
        assert!(row.contains("3.0 GiB") && row.contains("1.0 GiB"), "{row}");
    }

    #[test]
    fn a_long_list_is_scrolled_and_never_past_its_end() {
        let many = state(200);
        let size = Size { width: 80, height: 24 };
        let names = |scrolled| shown(&many, size, scrolled).into_iter().filter(|line| line.contains("gpu0 ")).count();
        assert!(names(0) > 3);
        assert_eq!(names(0), names(100_000), "the last page is as full as the first");
        let picture = Picture { state: &many, events: &[], scrolled: 0, trouble: None };
        let page = page(&picture, size);
        let place = |scrolled| lines(&Picture { scrolled, ..picture }, size)[4].painted(80);
        assert!(place(0).contains(&format!("1 to {page} of 200")), "{}", place(0));
        assert!(place(page).contains(&format!("{} to {} of 200", page + 1, 2 * page)), "{}", place(page));
    }

    #[test]
    fn old_figures_say_so() {
        let state = state(1);
        let picture = Picture { state: &state, events: &[], scrolled: 0, trouble: Some("the daemon does not answer") };
        let title = lines(&picture, Size { width: 80, height: 24 })[0].painted(80);
        assert!(title.contains("does not answer"), "{title}");
    }
}
