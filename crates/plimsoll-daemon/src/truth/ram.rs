//! The system's memory as the device `cpu`: what is available to programs, and what each process has resident.
//! Never counts what the kernel can take back at once, such as its cache of files.

use std::fs;
use std::path::{Path, PathBuf};

use plimsoll_core::{Bytes, DeviceKind};

use super::{DeviceTruth, ProcessUse, Truth, TruthError};

/// Processes with less than this are not listed one by one.
const SMALL: Bytes = Bytes::mib(16);

/// Reads `/proc`.
#[derive(Debug)]
pub struct Ram {
    proc_root: PathBuf,
}

impl Ram {
    /// Reads below this folder, which is `/proc` but in tests.
    pub fn new(proc_root: &Path) -> Self {
        Self { proc_root: proc_root.to_owned() }
    }

    fn processes(&self) -> Option<Vec<ProcessUse>> {
        let entries = fs::read_dir(&self.proc_root).ok()?;
        let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
        let used = pids.filter_map(|pid| {
            let bytes = self.resident(pid)?;
            (bytes >= SMALL).then(|| ProcessUse::of(&self.proc_root, pid, bytes))
        });
        Some(used.collect())
    }

    /// Nothing of the kernel's own, and nothing of a process that has ended.
    fn resident(&self, pid: u32) -> Option<Bytes> {
        let status = fs::read_to_string(self.proc_root.join(pid.to_string()).join("status")).ok()?;
        kib(&status, "VmRSS:")
    }
}

impl Truth for Ram {
    fn name(&self) -> &str {
        "system memory"
    }

    fn read(&mut self) -> Result<Vec<DeviceTruth>, TruthError> {
        let failed = |what: String| TruthError { source_name: "system memory".to_owned(), what };
        let path = self.proc_root.join("meminfo");
        let text = fs::read_to_string(&path).map_err(|error| failed(format!("{}: {error}", path.display())))?;
        let figure = |key| kib(&text, key).ok_or_else(|| failed(format!("{} says nothing of {key}", path.display())));
        let (capacity, free) = (figure("MemTotal:")?, figure("MemAvailable:")?);
        Ok(vec![DeviceTruth {
            name: "cpu".to_owned(),
            card: "system memory".to_owned(),
            kind: DeviceKind::Cpu,
            capacity,
            free: free.min(capacity),
            processes: self.processes(),
            in_book: Some(plimsoll::book::MEMORY.to_owned()),
            source: "/proc/meminfo".to_owned(),
            environment: Vec::new(),
        }])
    }
}

/// `MemTotal:       16316412 kB`
fn kib(text: &str, key: &str) -> Option<Bytes> {
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok().map(Bytes::kib)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_memory_and_this_process_some_of_it() {
        let read = Ram::new(Path::new("/proc")).read().unwrap();
        assert!(read[0].capacity > Bytes::mib(64) && read[0].free <= read[0].capacity);
        assert!(read[0].processes.is_some());
    }

    #[test]
    fn recorded_figures() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("meminfo"), "MemTotal:       1000 kB\nMemFree: 1 kB\nMemAvailable:    400 kB\n")
            .unwrap();
        fs::create_dir(root.path().join("42")).unwrap();
        let stat = "42 (big one) S 7 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4242 1000 99 0";
        fs::write(root.path().join("42/stat"), stat).unwrap();
        let status =
            |kib: u64| fs::write(root.path().join("42/status"), format!("Name:\tbig one\nVmRSS:\t  {kib} kB\n"));
        let mut ram = Ram::new(root.path());
        status(40_000).unwrap();
        let read = ram.read().unwrap().remove(0);
        assert_eq!((read.capacity, read.free), (Bytes::kib(1000), Bytes::kib(400)));
        let process = ProcessUse { pid: 42, name: "big one".into(), ancestors: vec![7], bytes: Bytes::kib(40_000) };
        assert_eq!(read.processes, Some(vec![process]));
        status(1).unwrap();
        assert_eq!(ram.read().unwrap().remove(0).processes, Some(vec![]), "small ones are not listed");
        fs::write(root.path().join("meminfo"), "MemTotal: many\n").unwrap();
        assert!(ram.read().unwrap_err().to_string().contains("MemTotal"));
    }
}
