//! What `plimsoll top` shows, as lines of text for a screen of some size: devices, holders, who waits, what happened.
//! Never reads keys, clocks or sockets: it is given all that it shows, so that tests can look at it.
//! Invariant: no line is wider than the screen, and there are never more lines than it has (`tests`).

use anstyle::{AnsiColor, Style};
use console::{measure_text_width, truncate_str};
use plimsoll_daemon::wire::{DeviceState, Event, Holder, Phase, Sort, State, Step, Urgency, Waiting};

use crate::output::clean;

/// Events shown at the most, however high the screen is: older ones are what `plimsoll events` is for.
const EVENTS_MAX: usize = 8;
/// Holders shown at the least, if there are any, before anything below them gets lines.
const HOLDERS_MIN: usize = 4;
/// Cells of a device's bar at the most: beyond this it tells no more.
const BAR_MAX: usize = 48;

/// The screen's size in cells.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) width: usize,
    pub(super) height: usize,
}

/// What is shown.
#[derive(Debug)]
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
    let state = picture.state;
    let mut lines = vec![title(picture)];
    lines.extend(
        state.warnings.iter().take(2).map(|text| Line::default().with(coloured(AnsiColor::Yellow), clean(text))),
    );
    lines.push(Line::default());
    lines.extend(state.devices.iter().flat_map(|device| device_lines(device, size.width)));
    let events = picture.events.len().min(EVENTS_MAX);
    let waiting = state.queue.len().min(4);
    let below = (waiting + 2) * usize::from(waiting > 0) + (events + 2) * usize::from(events > 0);
    let left = size.height.saturating_sub(lines.len() + 2);
    let holders = left.saturating_sub(below).max(HOLDERS_MIN);
    lines.push(Line::default());
    lines.extend(holder_lines(picture, holders, size.width));
    if waiting > 0 {
        lines.push(Line::default());
        lines.push(Line::default().with(BOLD, format!("WAITING  {}", state.queue.len())));
        lines.extend(state.queue.iter().take(waiting).map(waiting_line));
    }
    if events > 0 {
        lines.push(Line::default());
        lines.push(Line::default().with(BOLD, "WHAT HAPPENED"));
        lines.extend(picture.events.iter().rev().take(events).map(event_line));
    }
    lines.truncate(size.height);
    lines
}

fn title(picture: &Picture<'_>) -> Line {
    let state = picture.state;
    let about = format!("plimsoll {}  policy {}  ", state.version, state.policy);
    let line = Line::default().with(BOLD, about);
    match picture.trouble {
        Some(trouble) => line.with(coloured(AnsiColor::Red), clean(trouble)),
        None => line.with(SOFT, "q quits, ↑ ↓ scroll"),
    }
}

// ---------------------------------------------------------------------------------------------------------- devices

fn device_lines(device: &DeviceState, width: usize) -> [Line; 2] {
    let colour = match device.level.as_str() {
        "critical" => AnsiColor::Red,
        "high" => AnsiColor::Yellow,
        _ => AnsiColor::Green,
    };
    let name = Line::default()
        .with(BOLD, format!("{:<6}", device.name))
        .with(coloured(colour), format!("{:>4.0} % taken  ", device.pressure * 100.0))
        .with(PLAIN, format!("{} promised of {}", bytes(device.promised), bytes(device.line)))
        .with(SOFT, format!(", {} in use of {}  {}", bytes(device.used), bytes(device.capacity), clean(&device.card)));
    [name, bar(device, width)]
}

/// Used under leases, promised and not used, strangers; `|` is the line.
fn bar(device: &DeviceState, width: usize) -> Line {
    let cells = width.saturating_sub(8).clamp(10, BAR_MAX);
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
    Line([(PLAIN, "      ".to_owned())].into_iter().chain(spans).collect())
}

// ---------------------------------------------------------------------------------------------------------- holders

fn holder_lines(picture: &Picture<'_>, most: usize, width: usize) -> Vec<Line> {
    let holders = &picture.state.holders;
    if holders.is_empty() {
        return vec![Line::plain("Nobody holds anything.")];
    }
    let first = picture.scrolled.min(holders.len().saturating_sub(most.saturating_sub(1).max(1)));
    let rows = most.saturating_sub(1).max(1);
    let name = width.saturating_sub(68).clamp(12, 40);
    let title = format!(
        "{:<name$} {:<9} {:>9} {:>9} {:>7} {:<10} {}",
        format!("HOLDER  {}", holders.len()),
        "DEVICE",
        "PROMISED",
        "IN USE",
        "QUALITY",
        "PRIORITY",
        "STATE"
    );
    let mut lines = vec![Line::default().with(BOLD, title)];
    lines.extend(holders.iter().skip(first).take(rows).map(|holder| holder_line(holder, name)));
    lines
}

fn holder_line(holder: &Holder, name: usize) -> Line {
    let promised: u64 = holder.portions.iter().map(|portion| portion.promised).sum();
    let used = holder.portions.iter().map(|portion| portion.used).sum::<Option<u64>>();
    let devices: Vec<&str> = holder.portions.iter().map(|portion| portion.device.as_str()).collect();
    let has_lease = matches!(holder.sort, Sort::Lease | Sort::Engine);
    let is_stranger = holder.sort == Sort::Stranger;
    let is_over = !is_stranger && used.is_some_and(|used| used > promised);
    let style = if is_stranger { SOFT } else { PLAIN };
    let quality = if has_lease { format!("{:.0} %", holder.quality * 100.0) } else { "–".to_owned() };
    let priority = if has_lease { urgency(holder.priority) } else { "–" };
    let (state_style, state) = standing(holder);
    Line::default()
        .with(style, padded(&clean(&holder.name), name))
        .with(style, format!(" {} ", padded(&devices.join(","), 9)))
        .with(style, format!("{:>9} ", if is_stranger { "–".to_owned() } else { bytes(promised) }))
        .with(
            if is_over { coloured(AnsiColor::Red) } else { style },
            format!("{:>9} ", used.map_or_else(|| "–".to_owned(), bytes)),
        )
        .with(style, format!("{quality:>7} {priority:<10} "))
        .with(state_style, state)
}

fn standing(holder: &Holder) -> (Style, &'static str) {
    let (warn, bad) = (coloured(AnsiColor::Yellow), coloured(AnsiColor::Red));
    match (&holder.recall, holder.phase, holder.sort) {
        (Some(recall), ..) => match recall.step {
            Step::StepDown => (warn, "asked to step down"),
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

fn waiting_line(waiting: &Waiting) -> Line {
    let estimate = waiting.estimate_ms.map_or_else(String::new, |ms| format!(", about {} s", ms.div_ceil(1_000)));
    Line::plain(format!("{}  {}  ", clean(&waiting.name), bytes(waiting.bytes)))
        .with(SOFT, format!("{}  {}{estimate}", urgency(waiting.priority), clean(&waiting.reason)))
}

fn event_line(event: &Event) -> Line {
    let colour = match event.what.as_str() {
        "refused" | "not-freed" | "stopped" => AnsiColor::Red,
        "recalled" | "overdue" | "warning" => AnsiColor::Yellow,
        _ => AnsiColor::Green,
    };
    Line::default()
        .with(coloured(colour), format!("{:<9} ", event.what))
        .with(PLAIN, format!("{}  ", clean(&event.name)))
        .with(SOFT, clean(&event.text))
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

fn bytes(count: u64) -> String {
    plimsoll_core::Bytes(count).to_string()
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
            holder("Xorg\u{1b}[31m", Sort::Stranger, 0, GIB),
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
                text: "holds".to_owned(),
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
        assert!(stranger.contains("no lease") && !stranger.contains('\u{1b}'), "{stranger}");
    }

    #[test]
    fn members_of_the_book_are_seen_with_what_they_may_promise() {
        let mut state = state(0);
        state.holders = vec![holder("plimsoll", Sort::Member, 3 * GIB, GIB)];
        let lines = shown(&state, Size { width: 80, height: 24 }, 0);
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
    }

    #[test]
    fn old_figures_say_so() {
        let state = state(1);
        let picture = Picture { state: &state, events: &[], scrolled: 0, trouble: Some("the daemon does not answer") };
        let title = lines(&picture, Size { width: 80, height: 24 })[0].painted(80);
        assert!(title.contains("does not answer"), "{title}");
    }
}
