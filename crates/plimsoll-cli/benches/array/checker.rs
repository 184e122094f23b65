//! Reads back what was written, with zarr-python: one process for all rows, so that it starts once.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use crate::sides;

/// The process; ends when its input is closed.
pub(crate) struct Checker {
    process: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Checker {
    pub(crate) fn start() -> Self {
        let mut command = sides::python(&["check"]);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("python starts");
        let input = process.stdin.take();
        let output = BufReader::new(process.stdout.take().expect("its output"));
        Self { process, input, output }
    }

    /// An error with what differs, unless everything that was asked for is there.
    pub(crate) fn check(&mut self, asked: &str) -> Result<(), String> {
        let input = self.input.as_mut().ok_or("the checker has ended")?;
        writeln!(input, "{asked}").map_err(|error| error.to_string())?;
        let mut answer = String::new();
        self.output.read_line(&mut answer).map_err(|error| error.to_string())?;
        if answer.trim() == "same" { Ok(()) } else { Err(answer) }
    }
}

impl Drop for Checker {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.process.wait();
    }
}
