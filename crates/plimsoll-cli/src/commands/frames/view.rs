//! The live view on stderr: frames so far, and a bar for each device. Nothing where stderr is no terminal.
//! Never holds the work up: it draws what others counted, on a thread of its own.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use plimsoll::frames::FrameMeter;
use plimsoll::machine::DeviceName;

use super::live::{Lane, Live};

/// Between two drawings.
const TICK: Duration = Duration::from_millis(120);
/// What rates are taken over: long enough to stand still, short enough to follow.
const LOOK_BACK: Duration = Duration::from_secs(3);
/// Devices that get a bar. More would not fit a terminal.
const BARS_MAX: usize = 16;
/// Columns beside a bar, with two digits for slots and room for the ^C that terminals show: a line that wraps, or that ^C
/// makes wrap, stays behind when the view is cleared.
const BESIDE_BAR: usize = 56;
const BAR_MAX: usize = 60;

/// What is drawn.
pub(super) struct View {
    bars: Vec<ProgressBar>,
    multi: MultiProgress,
    shared: Arc<Shared>,
}

/// What the drawing looks at.
struct Shared {
    live: Live,
    names: Vec<String>,
    total: Option<u64>,
    /// Bars are drawn past anstream, which would have looked at `NO_COLOR`.
    in_colour: bool,
    meter: Mutex<Option<FrameMeter>>,
    past: Mutex<VecDeque<Sample>>,
}

/// What was counted at a moment.
#[derive(Clone)]
struct Sample {
    at: Instant,
    frames: u64,
    /// Frames and busy seconds of each device.
    devices: Vec<(u64, f64)>,
}

impl View {
    pub(super) fn new(live: &Live, names: &[DeviceName], total: Option<u64>, on_terminal: bool) -> Self {
        let shared = Arc::new(Shared {
            live: live.clone(),
            names: names.iter().map(ToString::to_string).collect(),
            total,
            in_colour: AutoStream::choice(&io::stderr()) != ColorChoice::Never,
            meter: Mutex::default(),
            past: Mutex::default(),
        });
        let target = if on_terminal { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let multi = MultiProgress::with_draw_target(target);
        Self { bars: Vec::new(), multi, shared }.with_bars(on_terminal)
    }

    fn with_bars(mut self, on_terminal: bool) -> Self {
        if !on_terminal {
            return self;
        }
        let lines = (0..=self.shared.names.len().min(BARS_MAX)).map(|line| {
            let shared = Arc::clone(&self.shared);
            let draw = move |_: &ProgressState, out: &mut dyn std::fmt::Write| {
                // A line that cannot be drawn is drawn next time.
                let _ = out.write_str(&shared.line(line));
            };
            let style = ProgressStyle::with_template("{line}").unwrap_or_else(|_| ProgressStyle::default_bar());
            self.multi.add(ProgressBar::no_length().with_style(style.with_key("line", draw)))
        });
        self.bars = lines.collect();
        self
    }

    /// From now on there is something to show.
    pub(super) fn follow(&self, meter: FrameMeter) {
        *self.shared.meter.lock().unwrap_or_else(PoisonError::into_inner) = Some(meter);
        self.bars.iter().for_each(|bar| bar.enable_steady_tick(TICK));
    }

    /// Leaves the terminal as it was.
    pub(super) fn clear(&self) {
        self.bars.iter().for_each(ProgressBar::finish_and_clear);
    }
}

impl Shared {
    /// Line 0 is for all frames, the others for a device each.
    fn line(&self, line: usize) -> String {
        let Some(now) = self.sample() else { return String::new() };
        let then = self.remember(&now, line == 0);
        let width = console_width();
        let bar = width.saturating_sub(BESIDE_BAR).min(BAR_MAX);
        let seconds = now.at.duration_since(then.at).as_secs_f64().max(1e-3);
        match line {
            0 => self.total_line(&now, (now.frames - then.frames) as f64 / seconds, bar),
            line => self.device_line(line - 1, &now, &then, seconds, bar),
        }
    }

    fn sample(&self) -> Option<Sample> {
        let stats = self.meter.lock().unwrap_or_else(PoisonError::into_inner).as_ref()?.stats();
        let completed = |name: &String| {
            stats.devices.iter().find(|device| device.device == *name).map_or(0, |device| device.completed)
        };
        let lanes = self.live.now();
        let devices = self.names.iter().zip(&lanes).map(|(name, lane)| (completed(name), lane.busy_seconds));
        Some(Sample { at: Instant::now(), frames: stats.frames, devices: devices.collect() })
    }

    /// Keeps a sample if told to; gives the one to compare with.
    fn remember(&self, now: &Sample, keep: bool) -> Sample {
        let mut past = self.past.lock().unwrap_or_else(PoisonError::into_inner);
        while past.len() > 1 && now.at.duration_since(past[0].at) > LOOK_BACK {
            past.pop_front();
        }
        if keep {
            past.push_back(now.clone());
        }
        past.front().unwrap_or(now).clone()
    }

    fn total_line(&self, now: &Sample, rate: f64, bar: usize) -> String {
        let share = self.total.map(|total| now.frames as f64 / total.max(1) as f64);
        let count = match self.total {
            Some(total) => format!("{} of {total}", now.frames),
            None => now.frames.to_string(),
        };
        let left = self.total.filter(|_| rate > 0.0).map(|total| total.saturating_sub(now.frames) as f64 / rate);
        let left = left.map(|left| format!("{} left", clock(left))).unwrap_or_default();
        let bar = self.drawn(share, bar, AnsiColor::Cyan);
        format!("{:<7} {bar} {count:>15}  {rate:>7.1} fps  {left}", "frames")
    }

    fn device_line(&self, at: usize, now: &Sample, then: &Sample, seconds: f64, bar: usize) -> String {
        let (Some(lane), Some(name)) = (self.live.now().get(at).copied(), self.names.get(at)) else {
            return String::new();
        };
        let Lane { slots, running, .. } = lane;
        let [(frames, busy), (frames_then, busy_then)] = [now, then].map(|sample| sample.devices[at]);
        let rate = (frames - frames_then) as f64 / seconds;
        let busy = ((busy - busy_then) / seconds / slots as f64).clamp(0.0, 1.0);
        let (bar, busy) = (self.drawn(Some(busy), bar, AnsiColor::Green), busy * 100.0);
        format!("{name:<7} {bar} {busy:>8.0} % busy  {rate:>7.1} fps  {running} of {slots} slots")
    }

    /// A bar; without a share, only its place.
    fn drawn(&self, share: Option<f64>, width: usize, colour: AnsiColor) -> String {
        let full = share.map_or(0, |share| ((share.clamp(0.0, 1.0) * width as f64).round() as usize).min(width));
        let (bright, faint) = match self.in_colour {
            true => (Style::new().fg_color(Some(colour.into())), Style::new().dimmed()),
            false => (Style::new(), Style::new()),
        };
        format!("{bright}{}{bright:#}{faint}{}{faint:#}", "━".repeat(full), "─".repeat(width - full))
    }
}

fn clock(seconds: f64) -> String {
    let seconds = seconds.round() as u64;
    match seconds {
        0..3600 => format!("{}:{:02}", seconds / 60, seconds % 60),
        _ => format!("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60),
    }
}

fn console_width() -> usize {
    usize::from(console::Term::stderr().size().1)
}
