//! How a command ends early: with an error that says what to do next, or because nobody reads on.
//! Invariant: errors go to stderr as `error: …` and exit 1, or 2 for wrong usage. Whoever reads text may leave when he has
//! seen enough; whoever leaves before all frames are there is told of. No name from outside reaches a terminal as it is.

use std::error::Error;
use std::fmt::Display;
use std::process::ExitCode;
use std::{io, iter};

use anstyle::{AnsiColor, Style};
#[cfg(any(feature = "score", feature = "frames", feature = "pack", feature = "array", feature = "fragments"))]
use plimsoll::StopSign;

use crate::output;

/// Why a command did not get to its end.
#[derive(Debug)]
pub(crate) enum Stop {
    /// Whoever read our output has seen enough, as `head` does.
    ReaderLeft,
    /// Whoever read what we made left before all of it was there.
    OutputClosed {
        /// What is left of it.
        left: String,
    },
    /// The user stopped it, or the system did.
    Interrupted {
        /// What is left of it, and how to go on.
        left: String,
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
    const BY_SIGNAL: u8 = 128;
    /// The signal that a closed pipe sends to programs that do not expect one.
    const SIGPIPE: u8 = 13;
    /// The exit code of a command that found images which will not do.
    const MISSED: u8 = 3;
    /// The exit code of a command that was typed wrongly, as clap has it.
    const USAGE: u8 = 2;

    /// What was typed cannot be meant.
    pub(crate) fn usage(what: impl Display) -> Self {
        Self::Usage { what: output::clean(what) }
    }

    /// The user or the system stopped it.
    pub(crate) fn interrupted(left: String) -> Self {
        Self::Interrupted { left }
    }

    /// An error that says itself what to do.
    pub(crate) fn failed(what: impl Display) -> Self {
        Self::Failed { what: output::clean(what), next: None }
    }

    /// An error and what caused it.
    pub(crate) fn failed_with_causes(error: &dyn Error) -> Self {
        Self::failed(with_causes(error))
    }

    /// The same with a command that helps.
    pub(crate) fn with_next(self, command: impl Display) -> Self {
        match self {
            Self::Failed { what, .. } => Self::Failed { what, next: Some(output::clean(command)) },
            Self::ReaderLeft
            | Self::OutputClosed { .. }
            | Self::Interrupted { .. }
            | Self::Missed { .. }
            | Self::Usage { .. } => self,
        }
    }
}

/// An error and what caused it, in one sentence.
pub(crate) fn with_causes(error: &dyn Error) -> String {
    let causes = iter::successors(error.source(), |&cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
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
        Err(Stop::OutputClosed { left }) => {
            output::aside(format_args!(
                "{YELLOW}stopped:{YELLOW:#} whoever read the output left; {}",
                output::clean(left)
            ));
            ExitCode::from(Stop::BY_SIGNAL + Stop::SIGPIPE)
        }
        Err(Stop::Missed { count }) => {
            let images = if count == 1 { "image is" } else { "images are" };
            output::aside(format_args!("{RED}error:{RED:#} {count} {images} worse than --fail-below allows"));
            ExitCode::from(Stop::MISSED)
        }
        Err(Stop::Interrupted { left }) => {
            output::aside(format_args!("{YELLOW}stopped:{YELLOW:#} {}", output::clean(left)));
            ExitCode::from(signal::exit_code())
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

/// The first Ctrl-C, or whatever else asks a program to end, asks for an orderly end; the second ends at once.
#[cfg(any(feature = "score", feature = "frames", feature = "pack", feature = "array", feature = "fragments"))]
pub(crate) fn on_signal() -> StopSign {
    let stop = StopSign::default();
    let raised = stop.clone();
    let handler = move || {
        if raised.is_raised() {
            std::process::exit(signal::exit_code().into());
        }
        raised.raise();
    };
    if let Err(error) = signal::on_each(handler) {
        warn(format_args!("Ctrl-C will end the run at once: {error}"));
    }
    stop
}

/// The same without a thread, for work that is over in a moment and looks at the sign before it ends.
#[cfg(feature = "pack")]
pub(crate) fn on_signal_in_a_moment() -> StopSign {
    let stop = StopSign::default();
    if let Err(error) = signal::note_each(&stop) {
        warn(format_args!("Ctrl-C will end the run at once: {error}"));
    }
    stop
}

/// Tells of something that did not stop the work.
pub(crate) fn warn(what: impl Display) {
    output::aside(format_args!("{YELLOW}warning:{YELLOW:#} {}", output::clean(what)));
}

/// Signals that ask a program to end, and which of them came.
#[cfg(unix)]
mod signal {
    use std::sync::atomic::{AtomicU8, Ordering};
    use std::{io, thread};

    #[cfg(feature = "pack")]
    use plimsoll::StopSign;

    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;

    /// The last that came.
    static CAME: AtomicU8 = AtomicU8::new(SIGINT as u8);

    /// As shells have it: 130 after Ctrl-C, 143 after `kill`, 129 when the terminal went away.
    pub(super) fn exit_code() -> u8 {
        super::Stop::BY_SIGNAL + CAME.load(Ordering::Relaxed)
    }

    pub(super) fn on_each(mut handler: impl FnMut() + Send + 'static) -> io::Result<()> {
        let mut signals = Signals::new(asking())?;
        let thread = thread::Builder::new().name("plimsoll-signals".to_owned());
        thread.spawn(move || {
            for signal in signals.forever() {
                CAME.store(signal as u8, Ordering::Relaxed);
                handler();
            }
        })?;
        Ok(())
    }

    /// The first that comes is noted, the second ends at once.
    #[cfg(feature = "pack")]
    #[expect(unsafe_code, reason = "a handler without a thread may do very little")]
    pub(super) fn note_each(sign: &StopSign) -> io::Result<()> {
        for signal in asking() {
            let sign = sign.clone();
            let handler = move || {
                CAME.store(signal as u8, Ordering::Relaxed);
                if sign.is_raised() {
                    signal_hook::low_level::exit(exit_code().into());
                }
                sign.note();
            };
            // SAFETY: it stores to atomics and ends the process, both of which a signal handler may do.
            unsafe { signal_hook::low_level::register(signal, handler)? };
        }
        Ok(())
    }

    /// What asks us to end.
    fn asking() -> impl Iterator<Item = i32> {
        let hang_up = Some(SIGHUP).filter(|signal| !is_ignored(*signal));
        [SIGINT, SIGTERM].into_iter().chain(hang_up)
    }

    /// Whoever started us wants us to outlive it, as `nohup` does.
    #[expect(unsafe_code, reason = "there is no safe call for it among our dependencies")]
    fn is_ignored(signal: i32) -> bool {
        // SAFETY: an all-zero `sigaction` is a valid one, and the call only writes what is set into it.
        let set = unsafe {
            let mut set: libc::sigaction = std::mem::zeroed();
            (libc::sigaction(signal, std::ptr::null(), &raw mut set) == 0).then_some(set)
        };
        set.is_some_and(|set| set.sa_sigaction == libc::SIG_IGN)
    }
}

/// What asks a program to end where there are no signals.
#[cfg(windows)]
mod signal {
    /// As after Ctrl-C elsewhere.
    pub(super) fn exit_code() -> u8 {
        super::Stop::BY_SIGNAL + 2
    }

    pub(super) fn on_each(handler: impl FnMut() + Send + 'static) -> Result<(), ctrlc::Error> {
        ctrlc::set_handler(handler)
    }

    #[cfg(feature = "pack")]
    pub(super) fn note_each(sign: &plimsoll::StopSign) -> Result<(), ctrlc::Error> {
        let sign = sign.clone();
        on_each(move || sign.raise())
    }
}
