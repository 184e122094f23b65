//! The command that `plimsoll run` runs: what it sees, which signals reach it, and how it ends.
//! Never swallows a signal that asks a program to end.

use std::ffi::OsStr;
use std::io::{self, IsTerminal};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus};

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;

/// What shells add to the number of the signal that ended a command.
const BY_SIGNAL: i32 = 128;

/// A command under way.
pub(super) struct Running {
    child: Child,
    signals: Signals,
    /// The terminal tells the command itself.
    has_terminal: bool,
}

impl Running {
    /// Starts it. From now on signals to this program go to the command.
    pub(super) fn start(command: &[impl AsRef<OsStr>], environment: &[(String, String)]) -> io::Result<Self> {
        let signals = Signals::new([SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2])?;
        let (program, args) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let environment = environment.iter().map(|(name, value)| (name, value));
        let child = Command::new(program).args(args).envs(environment).spawn()?;
        Ok(Self { child, signals, has_terminal: io::stdin().is_terminal() })
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Passes on signals that came, and says how the command has ended, if it has.
    pub(super) fn look(&mut self) -> io::Result<Option<ExitStatus>> {
        let came: Vec<i32> = self.signals.pending().collect();
        for signal in came {
            // Ctrl-C reaches everybody at the terminal.
            let is_known = self.has_terminal && matches!(signal, SIGINT | SIGQUIT);
            if !is_known {
                self.signal(signal);
            }
        }
        self.child.try_wait()
    }

    fn signal(&self, signal: i32) {
        // A child that was not waited for keeps its number, so it is nobody else's.
        let pid = i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw);
        if let (Some(pid), Some(signal)) = (pid, rustix::process::Signal::from_named_raw(signal)) {
            let _ = rustix::process::kill_process(pid, signal);
        }
    }
}

/// The exit code that says the same.
pub(super) fn exit_code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| BY_SIGNAL + status.signal().unwrap_or(0))
}
