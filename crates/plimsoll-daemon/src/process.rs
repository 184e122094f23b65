//! Processes of this machine: who is alive, who started whom, and how one is stopped.
//! Never signals a process of another user, nor one that took the number of another since.
//! Invariant: a [`Process`] is a number and the moment its process began, so that a number which is used again is another.

use std::path::Path;
use std::{fs, io};

use rustix::process::{Pid, Signal};
use serde::{Deserialize, Serialize};

/// Parents of a process that are looked at: whoever nests deeper is a stranger.
const ANCESTORS_MAX: usize = 32;

/// One process, not its number alone.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// When it began, in ticks since the machine did; 0 where nobody can tell.
    pub started: u64,
}

/// What the kernel says of a process in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) name: String,
    pub(crate) is_dead: bool,
    pub(crate) parent: u32,
    pub(crate) started: u64,
}

impl Process {
    /// The living process with this number.
    pub fn find(pid: u32) -> Option<Self> {
        match Stat::read(Path::new("/proc"), pid) {
            Some(stat) => (!stat.is_dead).then_some(Self { pid, started: stat.started }),
            // Where there is no such folder the number has to do.
            None if !Path::new("/proc/self/stat").exists() => exists(pid).then_some(Self { pid, started: 0 }),
            None => None,
        }
    }

    /// This process.
    pub fn this() -> Self {
        let pid = std::process::id();
        Self::find(pid).unwrap_or(Self { pid, started: 0 })
    }

    /// Whether it still runs. One that has ended and was not yet waited for holds no memory, and does not count.
    pub fn is_alive(self) -> bool {
        Self::find(self.pid) == Some(self)
    }

    /// Whether it belongs to whoever runs this process.
    pub fn is_of_this_user(self) -> bool {
        use std::os::unix::fs::MetadataExt;
        let owner = fs::metadata(format!("/proc/{}", self.pid)).map(|about| about.uid());
        match owner {
            Ok(owner) => owner == rustix::process::geteuid().as_raw(),
            Err(_) => !Path::new("/proc/self/stat").exists() && exists(self.pid),
        }
    }

    /// Asks it to end, or ends it. Says whether it was there to hear it.
    ///
    /// # Errors
    /// Why it could not be told.
    pub fn stop(self, how: Stop) -> io::Result<bool> {
        if !self.is_alive() || !self.is_of_this_user() {
            return Ok(false);
        }
        let Some(pid) = i32::try_from(self.pid).ok().and_then(Pid::from_raw) else { return Ok(false) };
        let signal = match how {
            Stop::Ask => Signal::TERM,
            Stop::Kill => Signal::KILL,
        };
        match rustix::process::kill_process(pid, signal) {
            Ok(()) => Ok(true),
            Err(rustix::io::Errno::SRCH) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

/// How a process is stopped.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// It is asked to end (`SIGTERM`).
    Ask,
    /// It is ended (`SIGKILL`).
    Kill,
}

fn exists(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| rustix::process::test_kill_process(pid).is_ok())
}

impl Stat {
    /// Reads it below this folder, which is `/proc` but in tests.
    pub(crate) fn read(root: &Path, pid: u32) -> Option<Self> {
        parse(&fs::read_to_string(root.join(pid.to_string()).join("stat")).ok()?)
    }
}

/// `12 (a name (with) brackets) S 1 …`: fields are counted after the last bracket.
fn parse(line: &str) -> Option<Stat> {
    let (open, close) = (line.find('(')?, line.rfind(')')?);
    let name = line.get(open + 1..close)?.to_owned();
    let fields: Vec<&str> = line.get(close + 1..)?.split_ascii_whitespace().collect();
    let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
    Some(Stat {
        name,
        is_dead: matches!(*fields.first()?, "Z" | "X" | "x"),
        parent: u32::try_from(number(1)?).ok()?,
        started: number(19)?,
    })
}

/// Who started a process, who started that one, and so on; not the first process of the machine.
pub(crate) fn ancestors(root: &Path, pid: u32) -> Vec<u32> {
    let mut found = Vec::new();
    let mut at = pid;
    while found.len() < ANCESTORS_MAX
        && let Some(stat) = Stat::read(root, at)
        && stat.parent > 1
    {
        found.push(stat.parent);
        at = stat.parent;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_a_process_is_read_whatever_its_name() {
        let rest = "S 7 1 1 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 4242 1000 99 18446744073709551615 0";
        let stat = parse(&format!("12 (a (b) c) {rest}")).unwrap();
        assert_eq!((stat.name.as_str(), stat.parent, stat.started), ("a (b) c", 7, 4242));
        assert!(parse(&format!("12 (dead) {}", rest.replacen('S', "Z", 1))).unwrap().is_dead);
        for broken in ["", "12 (a", "12 (a)", ") (", "12 (a) S x"] {
            assert_eq!(parse(broken), None, "{broken}");
        }
    }

    #[test]
    fn a_process_is_its_number_and_when_it_began() {
        let this = Process::this();
        assert!(this.is_alive() && this.is_of_this_user() && this.started > 0);
        let other = Process { started: this.started + 1, ..this };
        assert!(!other.is_alive(), "the same number, another process");
        assert!(!other.stop(Stop::Kill).unwrap(), "and it is not stopped: this test goes on");
    }

    #[test]
    fn a_child_that_ended_is_not_alive_though_nobody_waited_for_it() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let process = Process { pid: child.id(), started: 0 };
        let patience = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while Process::find(process.pid).is_some() {
            assert!(std::time::Instant::now() < patience, "it ends");
            std::thread::yield_now();
        }
        child.wait().unwrap();
    }

    #[test]
    fn ancestors_end() {
        let this = std::process::id();
        let parents = ancestors(Path::new("/proc"), this);
        assert!(!parents.contains(&this) && parents.len() <= ANCESTORS_MAX);
    }
}
