//! A scripted source: a file says what there is, and is read again at each reading. For machines without a GPU, for trying
//! things out, and for tests. What a process uses can be said by a file that the process writes itself.
//! Never adds anything of its own: what the script does not say is not there.
//!
//! ```toml
//! [[devices]]
//! name = "gpu0"
//! capacity = "24GiB"
//! strangers = "1GiB"            # used by programs without a lease
//! in_book = "0000:03:00.0"      # what it is called in the book that the user's programs share
//! uses_folder = "uses"          # beside the script: uses/PID or uses/PID-STARTED holds the bytes that a process uses of it
//! [devices.processes]
//! 4242 = "2GiB"                 # used by process 4242
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use plimsoll_core::{Bytes, DeviceKind};
use serde::Deserialize;

use super::{DeviceTruth, ProcessUse, Truth, TruthError};
use crate::process::Process;
use crate::size::Size;

/// Bytes of a script at most.
const SCRIPT_MAX: u64 = 1 << 20;
/// Files of a folder of uses that are looked at.
const USES_MAX: usize = 4_096;

/// Reads a script.
#[derive(Debug)]
pub struct Scripted {
    path: PathBuf,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Script {
    #[serde(default)]
    devices: Vec<Device>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Device {
    name: String,
    #[serde(default)]
    card: Option<String>,
    capacity: Size,
    #[serde(default)]
    in_book: Option<String>,
    #[serde(default)]
    strangers: Option<Size>,
    #[serde(default)]
    processes: BTreeMap<String, Size>,
    #[serde(default)]
    uses_folder: Option<PathBuf>,
    /// Whether it tells processes apart.
    #[serde(default = "yes")]
    by_process: bool,
    #[serde(default)]
    environment: Option<BTreeMap<String, String>>,
}

fn yes() -> bool {
    true
}

impl Scripted {
    /// The script at this path: TOML, or JSON if its name says so.
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    fn script(&self) -> Result<Script, String> {
        let length = fs::metadata(&self.path).map_err(|error| error.to_string())?.len();
        if length > SCRIPT_MAX {
            return Err(format!("it has {length} bytes, at most {SCRIPT_MAX} are read"));
        }
        let text = fs::read_to_string(&self.path).map_err(|error| error.to_string())?;
        match self.path.extension().is_some_and(|extension| extension == "json") {
            true => serde_json::from_str(&text).map_err(|error| error.to_string()),
            false => toml::from_str(&text).map_err(|error| error.to_string()),
        }
    }

    fn device(&self, device: Device) -> Result<DeviceTruth, String> {
        let Size(capacity) = device.capacity;
        let mut processes = Vec::new();
        for (pid, size) in &device.processes {
            let pid = pid.parse().map_err(|_| format!("'{pid}' is no number of a process"))?;
            processes.push(ProcessUse::of(Path::new("/proc"), pid, size.0));
        }
        if let Some(folder) = &device.uses_folder {
            let beside = self.path.parent().unwrap_or(Path::new("."));
            processes.extend(uses(&beside.join(folder)));
        }
        let strangers = device.strangers.map_or(Bytes::ZERO, |Size(bytes)| bytes);
        let used: Bytes = processes.iter().map(|process| process.bytes).sum();
        let environment = match device.environment {
            Some(environment) => environment.into_iter().collect(),
            None => visible(&device.name),
        };
        Ok(DeviceTruth {
            kind: if device.name.starts_with("cpu") { DeviceKind::Cpu } else { DeviceKind::Gpu },
            card: device.card.unwrap_or_else(|| "scripted".to_owned()),
            name: device.name,
            capacity,
            free: capacity - (strangers + used),
            processes: device.by_process.then_some(processes),
            source: "script".to_owned(),
            in_book: device.in_book,
            environment,
        })
    }
}

/// `gpu3` is what programs see as device 3.
fn visible(name: &str) -> Vec<(String, String)> {
    let number = name.strip_prefix("gpu").filter(|number| number.parse::<u32>().is_ok());
    number.map(|number| ("CUDA_VISIBLE_DEVICES".to_owned(), number.to_owned())).into_iter().collect()
}

/// What living processes say of themselves. A dead one has nothing, whatever its file says. Numbers are used again: one that
/// also says when it began (as [`Process`] has it) is not taken for the next of its number.
fn uses(folder: &Path) -> Vec<ProcessUse> {
    let entries = fs::read_dir(folder).into_iter().flatten().take(USES_MAX);
    let said = entries.filter_map(|entry| {
        let path = entry.ok()?.path();
        let name = path.file_name()?.to_str()?;
        let (pid, started) = name.split_once('-').map_or((name, None), |(pid, started)| (pid, Some(started)));
        let pid: u32 = pid.parse().ok()?;
        let process = Process::find(pid)?;
        if started.is_some_and(|started| started.parse() != Ok(process.started)) {
            return None;
        }
        let bytes: Bytes = fs::read_to_string(&path).ok()?.trim().parse().ok()?;
        Some(ProcessUse::of(Path::new("/proc"), pid, bytes))
    });
    said.collect()
}

impl Truth for Scripted {
    fn name(&self) -> &str {
        "script"
    }

    fn read(&mut self) -> Result<Vec<DeviceTruth>, TruthError> {
        let read = self.script().and_then(|script| {
            script.devices.into_iter().map(|device| self.device(device)).collect::<Result<Vec<_>, _>>()
        });
        read.map_err(|what| TruthError { source_name: self.path.display().to_string(), what })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_read_again_each_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("truth.toml");
        fs::write(&path, "[[devices]]\nname = 'gpu0'\ncapacity = '10GiB'\nstrangers = '1GiB'\nuses_folder = 'uses'\n")
            .unwrap();
        let mut scripted = Scripted::new(&path);
        let read = scripted.read().unwrap().remove(0);
        assert_eq!((read.capacity, read.free), (Bytes::gib(10), Bytes::gib(9)));
        assert_eq!(read.environment, [("CUDA_VISIBLE_DEVICES".to_owned(), "0".to_owned())]);
        let this = std::process::id();
        fs::create_dir(folder.path().join("uses")).unwrap();
        fs::write(folder.path().join(format!("uses/{this}")), "2GiB\n").unwrap();
        fs::write(folder.path().join("uses/4194305"), "5GiB\n").unwrap();
        let read = scripted.read().unwrap().remove(0);
        assert_eq!(read.free, Bytes::gib(7), "what a process that is not there says is not counted");
        assert_eq!(read.processes.unwrap()[0].pid, this);
        fs::remove_file(folder.path().join(format!("uses/{this}"))).unwrap();
        let started = Process::this().started;
        fs::write(folder.path().join(format!("uses/{this}-{started}")), "3GiB\n").unwrap();
        fs::write(folder.path().join(format!("uses/{this}-{}", started - 1)), "5GiB\n").unwrap();
        let read = scripted.read().unwrap().remove(0);
        assert_eq!(read.free, Bytes::gib(6), "nor what another process of its number said");
    }

    #[test]
    fn what_is_wrong_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let wrong = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            Scripted::new(&path).read().unwrap_err().to_string()
        };
        assert!(wrong("a.toml", "[[devices]]\nname = 'gpu0'\ncapacity = 'much'\n").contains("'much' is not a size"));
        assert!(wrong("b.toml", "[[devices]]\nname = 'gpu0'\ncapacity = 1\nfree = 2\n").contains("free"));
        assert!(wrong("c.json", "{\"devices\": [").contains("EOF"));
        assert!(Scripted::new(&folder.path().join("none")).read().is_err());
    }
}
