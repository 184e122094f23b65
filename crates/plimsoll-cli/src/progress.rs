//! How far it is, on a terminal.

use std::io::{self, IsTerminal};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// How often the line is drawn again, and how long nothing is shown at first: short work shows none.
const EVERY: Duration = Duration::from_millis(200);

/// A line that follows the work until it is dropped.
pub(crate) struct Progress(Option<(Sender<()>, JoinHandle<()>)>);

impl Progress {
    #[cfg(feature = "pack")]
    pub(crate) fn start(
        is_wanted: bool,
        total: Option<u64>,
        name: String,
        position: impl Fn() -> u64 + Send + 'static,
    ) -> Self {
        Self::start_with(is_wanted, total, name, position, || None)
    }

    /// The same with something behind the name, asked for each time.
    pub(crate) fn start_with(
        is_wanted: bool,
        total: Option<u64>,
        name: String,
        position: impl Fn() -> u64 + Send + 'static,
        mut detail: impl FnMut() -> Option<String> + Send + 'static,
    ) -> Self {
        if !is_wanted || !io::stderr().is_terminal() {
            return Self(None);
        }
        let (ended, end) = mpsc::channel();
        let follow = move || {
            let mut bar = None;
            while end.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                let bar = bar.get_or_insert_with(|| drawn(total, &name));
                bar.set_position(position());
                if let Some(detail) = detail() {
                    bar.set_message(format!("{name} {detail}"));
                }
            }
            if let Some(bar) = bar {
                bar.finish_and_clear();
            }
        };
        let thread = std::thread::Builder::new().name("plimsoll-progress".to_owned()).spawn(follow);
        Self(thread.ok().map(|thread| (ended, thread)))
    }
}

fn drawn(total: Option<u64>, name: &str) -> ProgressBar {
    let (bar, template) = match total {
        Some(total) => {
            (ProgressBar::new(total), "{msg} {wide_bar} {bytes} of {total_bytes}  {bytes_per_sec}  {eta} left")
        }
        None => (ProgressBar::no_length(), "{msg} {bytes}  {bytes_per_sec}  {elapsed}"),
    };
    let style = ProgressStyle::with_template(template);
    let bar = bar.with_message(name.to_owned());
    if let Ok(style) = style { bar.with_style(style) } else { bar }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((ended, thread)) = self.0.take() {
            drop(ended);
            // It only draws; if it panicked, there is no line to clear.
            let _ = thread.join();
        }
    }
}
