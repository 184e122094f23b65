//! How a command ends early: with an error that says what to do next, or because nobody reads on.
//! Invariant: errors go to stderr as `error: …` and exit 1, or 2 for wrong usage; a closed pipe is no error.

use std::error::Error;
use std::fmt::Display;
use std::process::ExitCode;
use std::sync::atomic::{AtomicI32, Ordering};
use std::{io, iter, thread};

use anstyle::{AnsiColor, Style};
use plimsoll::StopSign;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::output;

/// Why a command did not get to its end.
#[derive(Debug)]
pub(crate) enum Stop {
    /// Whoever read our output has seen enough, as `head` does.
    ReaderLeft,
    /// The user stopped it, or the system did.
    Interrupted {
        /// What is left of it, and how to go on.
        left: String,
        /// The signal that did.
        signal: i32,
    },
    /// Some scores are worse than will do.
    Missed {
        /// Of how many images.
        count: usize,
    },
    /// What was typed cannot be meant.
    Usage {
        /// What is wrong with it.
        what: String,
    },
    /// It failed.
    Failed {
        /// What went wrong.
        what: String,
        /// A command that helps, if `what` does not say.
        next: Option<String>,
    },
}

/// How a command ends.
pub(crate) type Ended = Result<(), Stop>;

impl Stop {
    /// What shells add to the number of the signal that ended a command.
    const SIGNALLED: i32 = 128;
    /// The exit code of a command that found images which will not do.
    const MISSED: u8 = 3;
    /// The exit code of a command that was typed wrongly, as clap has it.
    const USAGE: u8 = 2;

    /// What was typed cannot be meant.
    pub(crate) fn usage(what: impl Display) -> Self {
        Self::Usage { what: what.to_string() }
    }

    /// The user or the system stopped it.
    pub(crate) fn interrupted(left: String) -> Self {
        Self::Interrupted { left, signal: SIGNAL.load(Ordering::Relaxed) }
    }

    /// An error that says itself what to do.
    pub(crate) fn failed(what: impl Display) -> Self {
        Self::Failed { what: what.to_string(), next: None }
    }

    /// An error and what caused it.
    pub(crate) fn failed_with_causes(error: &dyn Error) -> Self {
        let causes = iter::successors(error.source(), |&cause| cause.source());
        Self::failed(causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}")))
    }

    /// The same with a command that helps.
    pub(crate) fn with_next(self, command: impl Display) -> Self {
        match self {
            Self::Failed { what, .. } => Self::Failed { what, next: Some(command.to_string()) },
            Self::ReaderLeft | Self::Interrupted { .. } | Self::Missed { .. } | Self::Usage { .. } => self,
        }
    }
}

/// An error of writing to stdout.
impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::ReaderLeft,
            _ => Self::failed(format_args!("cannot write the output: {error}; send it elsewhere")),
        }
    }
}

const RED: Style = AnsiColor::Red.on_default().bold();
const YELLOW: Style = AnsiColor::Yellow.on_default().bold();
const CYAN: Style = AnsiColor::Cyan.on_default().bold();

/// Shows an error, if there is one.
pub(crate) fn exit_code(ended: Ended) -> ExitCode {
    match ended {
        Ok(()) | Err(Stop::ReaderLeft) => ExitCode::SUCCESS,
        Err(Stop::Missed { count }) => {
            let images = if count == 1 { "image is" } else { "images are" };
            output::aside(format_args!("{RED}error:{RED:#} {count} {images} worse than --fail-below allows"));
            ExitCode::from(Stop::MISSED)
        }
        Err(Stop::Interrupted { left, signal }) => {
            output::aside(format_args!("{YELLOW}stopped:{YELLOW:#} {left}"));
            ExitCode::from((Stop::SIGNALLED + signal) as u8)
        }
        Err(Stop::Usage { what }) => {
            output::aside(format_args!("{RED}error:{RED:#} {what}"));
            ExitCode::from(Stop::USAGE)
        }
        Err(Stop::Failed { what, next }) => {
            output::aside(format_args!("{RED}error:{RED:#} {what}"));
            if let Some(command) = next {
                output::aside(format_args!("  {CYAN}try:{CYAN:#} {command}"));
            }
            ExitCode::FAILURE
        }
    }
}

/// The signal that asked for an end.
static SIGNAL: AtomicI32 = AtomicI32::new(SIGINT);

/// The first Ctrl-C, SIGTERM or SIGHUP asks for an orderly end, the second ends at once.
pub(crate) fn on_signal() -> StopSign {
    let stop = StopSign::default();
    let raised = stop.clone();
    let listen = move |mut signals: Signals| {
        for signal in signals.forever() {
            SIGNAL.store(signal, Ordering::Relaxed);
            if raised.is_raised() {
                std::process::exit(Stop::SIGNALLED + signal);
            }
            raised.raise();
        }
    };
    let started = Signals::new([SIGINT, SIGTERM, SIGHUP])
        .and_then(|signals| thread::Builder::new().name("signals".to_owned()).spawn(move || listen(signals)));
    if let Err(error) = started {
        warn(format_args!("Ctrl-C will end the run at once: {error}"));
    }
    stop
}

/// Tells of something that did not stop the work.
pub(crate) fn warn(what: impl Display) {
    output::aside(format_args!("{YELLOW}warning:{YELLOW:#} {what}"));
}
