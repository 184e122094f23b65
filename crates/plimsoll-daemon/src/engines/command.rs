//! An engine that its owner drives with commands: a probe that prints what it holds, and steps that give it back.
//! Never runs anything that is not in the owner's configuration, and never through a shell.
//! Invariant: a command ends within its time limit, with all that it started, and prints no more than is read.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::{Adapter, Busy, EngineError, Step, Survey};

/// What a command may print. A probe prints a line.
const PRINTED_MAX: usize = 64 << 10;
/// How often a running command is looked at.
const LOOK: Duration = Duration::from_millis(5);

/// The commands of an engine, program first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandSteps {
    /// Prints `{"pid": PROCESS, "held": BYTES, "busy": true or false}`; each may be missing. Without its process no driver can
    /// say what it holds, and it stays without a lease.
    pub probe: Vec<String>,
    /// From what is given back first to what is given back last.
    pub steps: Vec<CommandStep>,
    /// How long each command may take, in seconds.
    #[serde(default = "half_a_minute")]
    pub seconds_max: f64,
}

/// One step and its way back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandStep {
    /// What people read.
    pub name: String,
    /// Gives the memory back.
    pub down: Vec<String>,
    /// Takes it again; without it, the engine does that by itself.
    #[serde(default)]
    pub up: Vec<String>,
}

fn half_a_minute() -> f64 {
    30.0
}

#[derive(Debug)]
pub(super) struct CommandEngine {
    engine: String,
    commands: CommandSteps,
    taken: AtomicUsize,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Probe {
    pid: Option<u32>,
    held: Option<u64>,
    busy: Option<bool>,
}

impl CommandEngine {
    pub(super) fn new(engine: &str, commands: CommandSteps) -> Self {
        Self { engine: engine.to_owned(), commands, taken: AtomicUsize::new(0) }
    }

    fn probe(&self) -> Result<Probe, EngineError> {
        let printed = self.run(&self.commands.probe)?;
        serde_json::from_slice(&printed).map_err(|error| EngineError::Shape {
            engine: self.engine.clone(),
            call: format!("the probe {}", shown(&self.commands.probe)),
            expected: "{\"pid\": PROCESS, \"held\": BYTES, \"busy\": true or false}",
            got: error.to_string(),
        })
    }

    fn run(&self, words: &[String]) -> Result<Vec<u8>, EngineError> {
        let limit = Duration::from_secs_f64(self.commands.seconds_max.clamp(0.01, 3600.0));
        run(words, limit).map_err(|why| EngineError::Command {
            engine: self.engine.clone(),
            command: shown(words),
            why,
        })
    }
}

impl Adapter for CommandEngine {
    fn survey(&self) -> Result<Survey, EngineError> {
        let Probe { pid, held, .. } = self.probe()?;
        Ok(Survey { pid, held, asleep: self.depth() > 0, ..Survey::default() })
    }

    fn busy(&self, _: &Survey) -> Result<Busy, EngineError> {
        Ok(match self.probe()?.busy {
            Some(false) => Busy::Idle,
            Some(true) => Busy::Items(1),
            None => Busy::Unknown("its probe does not say".to_owned()),
        })
    }

    fn steps(&self, _: &Survey) -> Vec<Step> {
        let left = &self.commands.steps[self.depth()..];
        left.iter().map(|step| Step { name: step.name.clone(), told: None }).collect()
    }

    fn take(&self, step: &Step, _: bool) -> Result<(), EngineError> {
        let Some(found) = self.commands.steps.iter().find(|one| one.name == step.name) else { return Ok(()) };
        self.run(&found.down)?;
        self.taken.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn restore(&self) -> Result<(), EngineError> {
        while let Some(last) = self.depth().checked_sub(1) {
            let up = &self.commands.steps[last].up;
            if !up.is_empty() {
                self.run(up)?;
            }
            self.taken.fetch_sub(1, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Its owner wrote the steps: a probe that does not say means that they may be taken at any time.
    fn waits_by_itself(&self) -> bool {
        true
    }

    fn depth(&self) -> usize {
        self.taken.load(Ordering::Relaxed).min(self.commands.steps.len())
    }

    fn set_depth(&self, depth: usize) {
        self.taken.store(depth.min(self.commands.steps.len()), Ordering::Relaxed);
    }
}

fn shown(words: &[String]) -> String {
    format!("'{}'", words.join(" "))
}

/// Runs a program in a process group of its own, and ends the whole group when its time is over.
fn run(words: &[String], limit: Duration) -> Result<Vec<u8>, String> {
    let (program, arguments) = words.split_first().ok_or("is empty")?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
    let mut child = command.spawn().map_err(|error| format!("cannot be started: {error}"))?;
    let until = Instant::now() + limit;
    let outcome = watch(&mut child, until, limit);
    // Whatever it left behind goes with it, also after success: a step has no background.
    end_group(&child);
    let _ = child.wait();
    outcome
}

fn watch(child: &mut Child, until: Instant, limit: Duration) -> Result<Vec<u8>, String> {
    let mut pipe = child.stdout.take().ok_or("has no output")?;
    set_nonblocking(&pipe).map_err(|error| format!("has an output that cannot be read: {error}"))?;
    let mut printed = Vec::new();
    loop {
        let ended = child.try_wait().map_err(|error| format!("cannot be watched: {error}"))?;
        read_what_is_there(&mut pipe, &mut printed)?;
        if let Some(status) = ended {
            return if status.success() { Ok(printed) } else { Err(format!("failed: {status}")) };
        }
        if Instant::now() >= until {
            return Err(format!("did not end within {} s, and was stopped", limit.as_secs_f32()));
        }
        std::thread::sleep(LOOK);
    }
}

fn read_what_is_there(pipe: &mut impl Read, printed: &mut Vec<u8>) -> Result<(), String> {
    let mut buffer = [0; 4096];
    loop {
        match pipe.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => printed.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(format!("has an output that cannot be read: {error}")),
        }
        if printed.len() > PRINTED_MAX {
            return Err(format!("printed more than {PRINTED_MAX} bytes"));
        }
    }
}

fn set_nonblocking(pipe: &impl std::os::fd::AsFd) -> rustix::io::Result<()> {
    rustix::io::ioctl_fionbio(pipe, true)
}

fn end_group(child: &Child) {
    let group = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
    if let Some(group) = group {
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> Vec<String> {
        ["sh", "-c", script].map(str::to_owned).to_vec()
    }

    #[test]
    fn what_a_command_prints_is_read_and_its_failure_is_told() {
        assert_eq!(run(&sh("echo here"), Duration::from_secs(5)), Ok(b"here\n".to_vec()));
        assert!(run(&sh("exit 3"), Duration::from_secs(5)).unwrap_err().contains('3'));
        assert!(run(&["/nonexistent/x".to_owned()], Duration::from_secs(5)).unwrap_err().contains("started"));
        assert!(run(&[], Duration::from_secs(5)).is_err());
    }

    #[test]
    fn a_command_that_never_ends_is_stopped_with_all_that_it_started() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("child");
        let script = format!("sleep 600 & echo $! > {}; wait", file.display());
        let before = Instant::now();
        assert!(run(&sh(&script), Duration::from_millis(300)).unwrap_err().contains("stopped"));
        assert!(before.elapsed() < Duration::from_secs(10));
        let child: i32 = std::fs::read_to_string(&file).unwrap().trim().parse().unwrap();
        let gone = |child| rustix::process::test_kill_process(rustix::process::Pid::from_raw(child).unwrap()).is_err();
        let until = Instant::now() + Duration::from_secs(10);
        while !gone(child) && !is_zombie(child) {
            assert!(Instant::now() < until, "the child of the command still runs");
            std::thread::sleep(LOOK);
        }
    }

    fn is_zombie(pid: i32) -> bool {
        std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| stat.contains(") Z "))
    }

    #[test]
    fn a_command_that_prints_without_end_is_stopped() {
        let error =
            run(&sh("while :; do echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; done"), Duration::from_secs(20));
        assert!(error.unwrap_err().contains("more than"));
    }

    #[test]
    fn a_command_that_ends_but_leaves_a_child_with_its_output_does_not_keep_us() {
        let before = Instant::now();
        assert_eq!(run(&sh("sleep 600 & echo done"), Duration::from_secs(5)), Ok(b"done\n".to_vec()));
        assert!(before.elapsed() < Duration::from_secs(4));
    }
}
