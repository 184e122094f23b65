//! Which machine it was, and which revisions: a figure without them says nothing.

use std::fmt;
use std::fs;
use std::process::Command;

use super::builds::Sides;

/// Where and what was measured.
pub(crate) struct Machine {
    cpu: String,
    cores: usize,
    memory_mib: u64,
    rustc: String,
    base: String,
    this: String,
}

impl Machine {
    pub(crate) fn here(sides: &Sides) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let cpu = field("/proc/cpuinfo", "model name").unwrap_or_else(|| std::env::consts::ARCH.to_owned());
        let memory = field("/proc/meminfo", "MemTotal").and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
        Self {
            cpu,
            cores,
            memory_mib: memory.unwrap_or(0) / 1024,
            rustc: rustc_version(),
            base: sides.base_revision.clone(),
            this: sides.this_revision.clone(),
        }
    }

    pub(crate) fn fields(&self) -> Vec<(&'static str, String)> {
        vec![
            ("cpu", self.cpu.clone()),
            ("cores", self.cores.to_string()),
            ("memory_mib", self.memory_mib.to_string()),
            ("rustc", self.rustc.clone()),
            ("base", self.base.clone()),
            ("revision", self.this.clone()),
        ]
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cpu, cores, memory_mib, rustc, base, this } = self;
        writeln!(out, "{cpu}, {cores} cores, {memory_mib} MiB, {rustc}")?;
        writeln!(out, "base {base:.12}, this {this:.24}; medians of rounds in turns")?;
        write!(out, "{:<24} {:<10} {:>12} {:>12} {:>10}   PEER", "ROW", "FIGURE", "BASE", "THIS", "CHANGE")
    }
}

/// What compiled it.
pub(crate) fn rustc_version() -> String {
    let output = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into())).arg("--version").output();
    output.map_or_else(|_| "rustc".to_owned(), |output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn field(file: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}
