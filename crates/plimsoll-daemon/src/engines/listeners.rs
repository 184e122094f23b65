//! Which process of this user listens on a port.
//! Never asks anybody but the kernel's files, and reads no more of them than [`PROCESSES_MAX`].
//! Invariant: a process that ends while it is looked at is as if it had not been there.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::process::Stat;

/// Processes that are looked at. Linux allows four million; a desktop has hundreds.
pub const PROCESSES_MAX: usize = 65_536;
/// The state of a listening socket in `/proc/net/tcp`.
const LISTENING: &str = "0A";

/// The kernel's view of processes, under `/proc` or, in tests, elsewhere.
#[derive(Clone, Debug)]
pub struct Processes {
    root: PathBuf,
}

impl Default for Processes {
    fn default() -> Self {
        Self::under("/proc")
    }
}

impl Processes {
    /// The kernel's view under this folder.
    #[must_use]
    pub fn under(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Who listens on a port, if it is a process whose open files may be seen. If several do, the first started.
    #[must_use]
    pub fn listener(&self, port: u16) -> Option<u32> {
        let inodes = self.inodes(port);
        if inodes.is_empty() {
            return None;
        }
        let owner = |pid: &u32| self.sockets(*pid).iter().any(|inode| inodes.contains(inode));
        let started = |pid: &u32| Stat::read(&self.root, *pid).map(|stat| stat.started);
        self.pids().into_iter().filter(owner).min_by_key(started)
    }

    /// Whether anybody listens on a port, of whatever user.
    #[must_use]
    pub fn is_listened_on(&self, port: u16) -> bool {
        !self.inodes(port).is_empty()
    }

    fn pids(&self) -> Vec<u32> {
        let entries = fs::read_dir(&self.root).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).take(PROCESSES_MAX).collect()
    }

    fn inodes(&self, port: u16) -> BTreeSet<u64> {
        ["net/tcp", "net/tcp6"].iter().flat_map(|table| listening_inodes(&self.root.join(table), port)).collect()
    }

    fn sockets(&self, pid: u32) -> Vec<u64> {
        let entries = fs::read_dir(self.root.join(pid.to_string()).join("fd")).into_iter().flatten().flatten();
        let target = |path: PathBuf| fs::read_link(path).ok()?.to_str().map(str::to_owned);
        let inode = |text: String| text.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok();
        entries.filter_map(|entry| target(entry.path()).and_then(inode)).collect()
    }
}

fn listening_inodes(table: &Path, port: u16) -> Vec<u64> {
    let text = fs::read_to_string(table).unwrap_or_default();
    let inode = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let local = words.get(1)?.rsplit_once(':')?.1;
        let matches = words.get(3) == Some(&LISTENING) && u16::from_str_radix(local, 16) == Ok(port);
        if matches { words.get(9)?.parse().ok() } else { None }
    };
    text.lines().skip(1).filter_map(inode).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn process(root: &Path, pid: u32, name: &str, parent: u32, started: u64, sockets: &[u64]) {
        let folder = root.join(pid.to_string());
        fs::create_dir_all(folder.join("fd")).unwrap();
        let zeros = "0 ".repeat(17);
        fs::write(folder.join("stat"), format!("{pid} ({name}) S {parent} {zeros}{started} 0 0\n")).unwrap();
        for (at, inode) in sockets.iter().enumerate() {
            symlink(format!("socket:[{inode}]"), folder.join("fd").join(at.to_string())).unwrap();
        }
    }

    fn machine() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir_all(root.join("net")).unwrap();
        let header =
            "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";
        // 11434 is 2CAA: one listens, one is connected from that very port.
        let tcp = format!(
            "{header}   0: 0100007F:2CAA 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 777 1 0\n   \
             1: 0100007F:2CAA 0100007F:9999 01 00000000:00000000 00:00000000 00000000  1000        0 778 1 0\n"
        );
        fs::write(root.join("net/tcp"), tcp).unwrap();
        let tcp6 = format!(
            "{header}   0: 00000000000000000000000000000000:1F90 00000000000000000000000000000000:0000 0A 00000000:00000000 \
             00:00000000 00000000  1000        0 900 1 0\nrubbish\n"
        );
        fs::write(root.join("net/tcp6"), tcp6).unwrap();
        process(root, 50, "ollama (a) b", 1, 30, &[777]);
        process(root, 51, "runner", 50, 40, &[]);
        process(root, 52, "deep", 51, 41, &[]);
        process(root, 60, "client", 1, 20, &[778]);
        process(root, 70, "swap", 1, 50, &[900]);
        process(root, 71, "swap", 70, 60, &[900]);
        fs::write(root.join("not-a-pid"), "").unwrap();
        folder
    }

    #[test]
    fn the_listener_is_found_and_a_client_of_the_same_port_is_not() {
        let folder = machine();
        let processes = Processes::under(folder.path());
        assert_eq!(processes.listener(11434), Some(50));
        assert_eq!(processes.listener(8080), Some(70), "a child that inherited the socket is not the listener");
        assert_eq!(processes.listener(1), None);
        assert!(processes.is_listened_on(8080));
        assert!(!processes.is_listened_on(1));
    }

    #[test]
    fn this_very_process_is_found_by_the_port_it_listens_on() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let processes = Processes::default();
        assert_eq!(processes.listener(port), Some(std::process::id()));
        drop(listener);
        assert_eq!(processes.listener(port), None);
    }
}
