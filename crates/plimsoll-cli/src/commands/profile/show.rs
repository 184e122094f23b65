//! `plimsoll profile show`: the profile for people, or all of it as JSON.

use clap::Args as ClapArgs;
use comfy_table::{Cell as TableCell, CellAlignment};
use plimsoll::machine::{Listed, Machine};
use plimsoll_core::profile::{Cell, CellKey, Freshness, Hardware, Measured, Profile, Stale};
use plimsoll_core::{Nanos, UnixSeconds};
use plimsoll_runtime::profile_file::ProfileFile;
use plimsoll_runtime::{SOFTWARE, today};
use serde::Serialize;

use super::failures::{FailureReport, UnsupportedReport};
use super::warn_of;
use crate::machine_args::MachineArgs;
use crate::output;
use crate::stop::{Ended, Stop};

/// Show what was measured
#[derive(Debug, ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Print JSON, with times in nanoseconds and sizes in bytes
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Each line is one way to do a workload on one device: what opening it costs, how many runs were learnt from, and what the \
smallest and the largest size took. Below it: where memory ran out, with how much free, and when it is tried again; and \
what a device cannot do.

Examples:
  plimsoll profile show
  plimsoll profile show --json | jq '.cells[] | {workload, rung, device, runs}'";

pub(super) fn run(args: &Args, file: &ProfileFile, hardware: &Hardware, machine: &MachineArgs) -> Ended {
    let now = today();
    let loaded = file.load(now).map_err(Stop::failed)?;
    warn_of(&loaded.warnings);
    let report = match &loaded.profile {
        Some(profile) => Report::new(file, profile, hardware, &Names::of_this_machine(machine)?, now),
        None => Report { path: file.path().display().to_string(), ..Report::default() },
    };
    match args.json {
        true => output::json(&report),
        false => report.print(now),
    }
}

/// Whether the profile can be relied on, in a word, and if not why.
pub(super) fn state(freshness: &Freshness) -> (&'static str, Option<String>) {
    let stale = |reason: String| ("stale", Some(format!("{reason}; `plimsoll bench` measures again")));
    match freshness {
        Freshness::Fresh => ("fresh", None),
        Freshness::Stale(Stale::Age { days }) => stale(format!("it was measured {days} days ago")),
        Freshness::Stale(Stale::Clock) => stale("it says that it was measured in the future".to_owned()),
        Freshness::Stale(Stale::Changed(mismatch)) => stale(mismatch.to_string()),
        Freshness::Foreign(mismatch) => {
            ("foreign", Some(format!("{mismatch}; `plimsoll bench` measures this machine")))
        }
        _ => ("unknown", None),
    }
}

/// What the devices of this machine are called, by the keys under which the profile knows them.
pub(super) struct Names(Vec<(String, String)>);

impl Names {
    fn of_this_machine(machine: &MachineArgs) -> Result<Self, Stop> {
        let name = |listed: &Listed| (listed.facts.key.clone(), listed.name.to_string());
        Ok(Self(Machine::survey(&machine.options()?).devices.iter().map(name).collect()))
    }

    /// Cards that are alike share their figures, and so their key.
    pub(super) fn of(&self, key: &str) -> Option<String> {
        let names: Vec<&str> = self.0.iter().filter(|(known, _)| known == key).map(|(_, name)| name.as_str()).collect();
        (!names.is_empty()).then(|| names.join(" "))
    }
}

/// What is shown. The names of its fields are a promise to other programs.
#[derive(Default, Serialize)]
struct Report {
    path: String,
    /// `null` if there is no profile.
    profile: Option<About>,
    cells: Vec<CellReport>,
    failures: Vec<FailureReport>,
    unsupported: Vec<UnsupportedReport>,
}

#[derive(Serialize)]
struct About {
    software: String,
    /// When the last of it was measured; each cell says when it was.
    measured_at: UnixSeconds,
    machine: String,
    devices: Vec<String>,
    state: &'static str,
    reason: Option<String>,
}

#[derive(Serialize)]
struct CellReport {
    workload: String,
    rung: String,
    /// What this machine calls it; `null` if it is not in this machine, or not opened in the same way.
    device: Option<String>,
    device_key: String,
    open_ns: Option<Nanos>,
    runs: u64,
    learnt_at: UnixSeconds,
    /// Too old to rely on: it is measured again in passing.
    stale: bool,
    sizes: Vec<SizeReport>,
}

#[derive(Serialize)]
struct SizeReport {
    units: u64,
    median_ns: Nanos,
    /// As a share of the median.
    spread: f64,
    runs: u64,
}

impl Report {
    fn new(file: &ProfileFile, profile: &Profile, hardware: &Hardware, names: &Names, now: UnixSeconds) -> Self {
        let failures = profile.failures();
        Self {
            path: file.path().display().to_string(),
            profile: Some(About::new(profile, hardware, now)),
            cells: profile.cells().map(|(key, cell)| CellReport::new(key, cell, names, now)).collect(),
            failures: failures.iter().map(|failed| FailureReport::new(failed, names)).collect(),
            unsupported: failures.unsupported().map(|each| UnsupportedReport::new(each, names)).collect(),
        }
    }
}

impl About {
    fn new(profile: &Profile, hardware: &Hardware, now: UnixSeconds) -> Self {
        let origin = profile.origin();
        let (state, reason) = state(&profile.freshness(now, hardware, SOFTWARE));
        Self {
            software: origin.software.to_owned(),
            measured_at: profile.learnt_at(),
            machine: origin.machine.key.clone(),
            devices: origin.machine.devices.iter().map(|device| device.name.clone()).collect(),
            state,
            reason,
        }
    }
}

impl CellReport {
    fn new(key: &CellKey, cell: &Cell, names: &Names, now: UnixSeconds) -> Self {
        let size = |Measured { units, median, spread, learnt, .. }| SizeReport {
            units,
            median_ns: median,
            spread,
            runs: learnt,
        };
        Self {
            workload: key.workload().to_owned(),
            rung: key.rung().to_owned(),
            device: names.of(key.device()),
            device_key: key.device().to_owned(),
            open_ns: cell.open(),
            runs: cell.learnt(),
            learnt_at: cell.learnt_at(),
            stale: cell.is_stale(now),
            sizes: cell.sizes().map(size).collect(),
        }
    }
}

impl Report {
    fn print(&self, now: UnixSeconds) -> Ended {
        let Some(about) = &self.profile else {
            output::line(format_args!("There is no profile at {} yet.", self.path))?;
            return output::line("`plimsoll bench` measures this machine.");
        };
        about.print(&self.path, now)?;
        if !self.cells.is_empty() {
            self.print_cells()?;
        }
        FailureReport::print_all(&self.failures, now)?;
        UnsupportedReport::print_all(&self.unsupported, now)
    }

    fn print_cells(&self) -> Ended {
        use CellAlignment::{Left, Right};
        output::line("")?;
        let mut table = output::table(&[
            ("WORKLOAD", Left),
            ("RUNG", Left),
            ("DEVICE", Left),
            ("OPEN", Right),
            ("RUNS", Right),
            ("SMALLEST", Right),
            ("LARGEST", Right),
            ("", Left),
        ]);
        for cell in &self.cells {
            table.add_row(cell.row());
        }
        output::print_table(&table)?;
        if self.cells.iter().any(|cell| cell.stale) {
            output::line("\nstale: too old to rely on; measured again in passing, or by `plimsoll bench`")?;
        }
        Ok(())
    }
}

impl About {
    fn print(&self, path: &str, now: UnixSeconds) -> Ended {
        let ago = span(now.0.saturating_sub(self.measured_at.0));
        output::line(format_args!("File      {path}"))?;
        output::line(format_args!("Measured  {ago} ago, by version {}", self.software))?;
        output::line(format_args!("Machine   {}", self.devices.join(" + ")))?;
        match &self.reason {
            None => output::line(format_args!("State     {}", self.state)),
            Some(reason) => output::line(format_args!("State     {}: {reason}", self.state)),
        }
    }
}

impl CellReport {
    fn row(&self) -> Vec<TableCell> {
        let size = |size: Option<&SizeReport>| match size {
            Some(size) => TableCell::new(format!("{} in {}", output::count(size.units), size.median_ns)),
            None => TableCell::new("-"),
        };
        let device = match &self.device {
            Some(name) => TableCell::new(name),
            None => output::faint(&self.device_key),
        };
        vec![
            TableCell::new(&self.workload),
            TableCell::new(&self.rung),
            device,
            TableCell::new(self.open_ns.map_or_else(|| "-".to_owned(), |open| open.to_string())),
            TableCell::new(self.runs),
            size(self.sizes.first()),
            size(self.sizes.last()),
            if self.stale { output::faint("stale") } else { TableCell::new("") },
        ]
    }
}

/// A span of time in its largest unit.
pub(super) fn span(seconds: u64) -> String {
    let (number, unit) = match seconds {
        0..60 => (seconds, "second"),
        60..3_600 => (seconds / 60, "minute"),
        3_600..86_400 => (seconds / 3_600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    format!("{number} {unit}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_said_as_people_say_them() {
        assert_eq!([1, 59, 3_600, 172_800].map(span), ["1 second", "59 seconds", "1 hour", "2 days"]);
    }

    #[test]
    fn a_stale_profile_says_why_and_what_to_do() {
        let (word, reason) = state(&Freshness::Stale(Stale::Age { days: 9 }));
        assert_eq!(word, "stale");
        assert_eq!(reason.unwrap(), "it was measured 9 days ago; `plimsoll bench` measures again");
        assert_eq!(state(&Freshness::Fresh), ("fresh", None));
    }
}
