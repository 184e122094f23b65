//! `plimsoll devices`: what is in this machine, how much of it we may use, and whether it answers rightly.
//! Never trusts presence: every device runs its known-answer check before it is shown as working.

use clap::Args as ClapArgs;
use comfy_table::{Cell, CellAlignment};
use plimsoll::machine::{Listed, Machine};
use plimsoll_core::line::Margin;
use plimsoll_core::{Bytes, DeviceKind, Fault};
use plimsoll_runtime::{Device, MemoryReading, Nature, check};
use serde::Serialize;

use crate::machine_args::MachineArgs;
use crate::output;
use crate::stop::{Ended, Stop, warn};

/// List every CPU and GPU, its memory, and whether it works
#[derive(Debug, ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Print JSON, with sizes in bytes
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
The line is what may be promised to tasks: 85 % of what other programs leave, under --memory-limit. A \
device that fails its check is listed with the reason, and gets no work.

Examples:
  plimsoll devices
  plimsoll devices --logical-gpus 2 --memory-limit gpu0=2GiB
  plimsoll devices --json | jq '.devices[] | select(.used) | .line_bytes'";

pub(crate) fn run(args: &Args, machine: &MachineArgs) -> Ended {
    let report = Report::of_this_machine(machine)?;
    report.warnings.iter().for_each(warn);
    match args.json {
        true => output::json(&report)?,
        false => report.print()?,
    }
    report.outcome()
}

/// What is shown. The names of its fields are a promise to other programs.
#[derive(Serialize)]
struct Report {
    devices: Vec<Entry>,
    warnings: Vec<String>,
}

#[derive(Serialize)]
struct Entry {
    id: String,
    name: String,
    kind: DeviceKind,
    nature: Nature,
    driver: String,
    api: String,
    bus: String,
    key: String,
    /// Tasks at once.
    slots: usize,
    #[serde(flatten)]
    memory: MemoryEntry,
    check: CheckEntry,
    used: bool,
    unused_because: Option<&'static str>,
}

/// All `null` for a device that could not be opened.
#[derive(Default, Serialize)]
struct MemoryEntry {
    capacity_bytes: Option<Bytes>,
    free_bytes: Option<Bytes>,
    limit_bytes: Option<Bytes>,
    line_bytes: Option<Bytes>,
    memory_source: Option<&'static str>,
}

#[derive(Serialize)]
struct CheckEntry {
    passed: bool,
    reason: Option<String>,
}

impl Report {
    fn of_this_machine(machine: &MachineArgs) -> Result<Self, Stop> {
        let survey = Machine::survey(&machine.options()?);
        Ok(Self {
            devices: survey.devices.iter().map(Entry::of).collect(),
            warnings: survey.problems.iter().map(ToString::to_string).collect(),
        })
    }
}

impl Entry {
    fn of(listed: &Listed) -> Self {
        // Read first: the check takes memory of its own.
        let memory = listed.device.as_ref().map(|device| MemoryEntry::of(&**device)).unwrap_or_default();
        let checked = listed.device.as_ref().map_err(Fault::clone).and_then(|device| known_answer(&**device));
        let facts = listed.facts.clone();
        Self {
            id: listed.name.to_string(),
            name: facts.name,
            kind: facts.kind,
            nature: facts.nature,
            driver: facts.driver,
            api: facts.api,
            bus: facts.bus,
            key: facts.key,
            slots: facts.slots,
            memory,
            used: listed.asked_for && checked.is_ok(),
            unused_because: unused_because(listed, &checked),
            check: CheckEntry { passed: checked.is_ok(), reason: checked.err().map(|fault| fault.to_string()) },
        }
    }
}

fn known_answer(device: &dyn Device) -> Result<(), Fault> {
    check::known_answer(&mut *device.open_backend()?)
}

fn unused_because(listed: &Listed, checked: &Result<(), Fault>) -> Option<&'static str> {
    match (&listed.device, checked) {
        (Err(_), _) => Some("it could not be opened"),
        (Ok(_), Err(_)) => Some("it failed its check"),
        (Ok(_), Ok(())) if !listed.asked_for => Some("it runs on the CPU's cores; --software-gpu uses it"),
        _ => None,
    }
}

impl MemoryEntry {
    /// Read while no slot is open. What open slots hold for themselves is nobody's to promise, so the line is drawn
    /// where it will be once they are.
    fn of(device: &dyn Device) -> Self {
        let reading = device.memory();
        let overhead = device.overhead();
        let with_slots_open = MemoryReading { free: reading.free - overhead, ours: reading.ours + overhead, ..reading };
        let (memory, margin) = with_slots_open.for_the_line(overhead, Margin::default());
        let (line, source) = (margin.line(memory), reading.source);
        Self {
            capacity_bytes: Some(reading.capacity),
            free_bytes: Some(reading.free),
            limit_bytes: reading.limit,
            line_bytes: Some(line),
            memory_source: Some(source),
        }
    }
}

impl Report {
    /// One device that works is enough to work with.
    fn outcome(&self) -> Ended {
        match self.devices.iter().any(|device| device.check.passed) {
            true => Ok(()),
            false => Err(Stop::failed("no device passed its check; update the driver that the reasons above name")),
        }
    }

    /// Two tables rather than one: what it can do now, and what it is. Together they would not fit a terminal.
    fn print(&self) -> Ended {
        use CellAlignment::{Left, Right};
        let mut now = output::table(&[
            ("DEVICE", Left),
            ("NAME", Left),
            ("CAPACITY", Right),
            ("FREE", Right),
            ("LINE", Right),
            ("TASKS", Right),
            ("CHECK", Left),
        ]);
        now.add_rows(self.devices.iter().map(Entry::row_now));
        output::print_table(&now)?;
        output::line("")?;
        let mut what = output::table(&[
            ("DEVICE", Left),
            ("USED", Left),
            ("KIND", Left),
            ("API", Left),
            ("DRIVER", Left),
            ("BUS", Left),
            ("MEMORY FROM", Left),
        ]);
        what.add_rows(self.devices.iter().map(Entry::row_what));
        output::print_table(&what)?;
        self.devices.iter().try_for_each(Entry::print_why_unused)
    }
}

impl Entry {
    fn row_now(&self) -> Vec<Cell> {
        let size = |bytes: Option<Bytes>| Cell::new(bytes.map_or_else(|| "-".to_owned(), |bytes| bytes.to_string()));
        vec![
            Cell::new(&self.id),
            Cell::new(&self.name),
            size(self.memory.capacity_bytes),
            size(self.memory.free_bytes),
            size(self.memory.line_bytes),
            Cell::new(self.slots),
            if self.check.passed { output::good("passed") } else { output::bad("failed") },
        ]
    }

    fn row_what(&self) -> Vec<Cell> {
        let or_dash = |text: &str| Cell::new(if text.is_empty() { "-" } else { text });
        let kind = match (self.kind, self.nature) {
            (DeviceKind::Cpu, _) => "CPU",
            (DeviceKind::Gpu, Nature::Software) => "software GPU",
            (DeviceKind::Gpu, _) => "GPU",
        };
        vec![
            Cell::new(&self.id),
            if self.used { Cell::new("yes") } else { output::faint("no") },
            Cell::new(kind),
            or_dash(&self.api),
            or_dash(&self.driver),
            or_dash(&self.bus),
            or_dash(self.memory.memory_source.unwrap_or_default()),
        ]
    }

    fn print_why_unused(&self) -> Ended {
        match (self.unused_because, &self.check.reason) {
            (None, _) => Ok(()),
            (Some(because), None) => output::line(format_args!("\n{} is not used: {because}", self.id)),
            (Some(because), Some(reason)) => {
                output::line(format_args!("\n{} is not used: {because} ({reason})", self.id))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use plimsoll::machine::MachineOptions;

    use super::*;

    fn cpu(passed: bool) -> Entry {
        let options = MachineOptions { gpus: plimsoll::machine::GpuUse::None, ..MachineOptions::default() };
        let mut listed = Machine::survey(&options).devices.remove(0);
        if !passed {
            listed.device = Err(Fault::DeviceLost { detail: "unplugged".to_owned() });
        }
        Entry::of(&listed)
    }

    fn outcome(devices: Vec<Entry>) -> Ended {
        Report { devices, warnings: Vec::new() }.outcome()
    }

    #[test]
    fn one_device_that_works_is_enough() {
        assert!(outcome(vec![cpu(false), cpu(true)]).is_ok());
        assert!(outcome(vec![cpu(false)]).is_err());
    }

    #[test]
    fn a_device_that_does_not_open_is_listed_with_the_reason() {
        let entry = cpu(false);
        assert!(!entry.used && entry.memory.line_bytes.is_none());
        assert_eq!(entry.check.reason.as_deref(), Some("device lost: unplugged"));
        assert_eq!(entry.unused_because, Some("it could not be opened"));
    }
}
