//! `--stats`: what each device did, and how close the run came to the best schedule of the same work.

use comfy_table::CellAlignment::{Left, Right};
use plimsoll::machine::DeviceName;
use plimsoll::regret::RegretMeter;
use plimsoll::{Bytes, Orchestrator};
use serde::Serialize;

use super::args::StatsFormat;
use super::device_name;
use crate::output;
use crate::stop::{Ended, Stop};

/// The figures of a run. The names of its fields are a promise to other programs.
#[derive(Serialize)]
pub(super) struct Stats {
    #[serde(skip)]
    format: StatsFormat,
    /// From the first task to the end of the last.
    elapsed_seconds: f64,
    /// What no schedule of the work that ran could beat.
    lower_bound_seconds: f64,
    /// The time over the bound.
    regret_seconds: f64,
    devices: Vec<DeviceStats>,
}

#[derive(Serialize)]
struct DeviceStats {
    device: String,
    /// Tasks done, loading files included.
    tasks: u64,
    failed: u64,
    /// The share of the time of its slots that went into tasks.
    busy_share: f64,
    slots: usize,
    /// The most bytes that were ever promised at once.
    promised_peak: u64,
    line: u64,
}

impl Stats {
    pub(super) fn of(
        orchestrator: &Orchestrator,
        meter: &RegretMeter,
        names: &[DeviceName],
        format: StatsFormat,
    ) -> Self {
        let regret = meter.regret(orchestrator);
        let devices = orchestrator.reports().into_iter().map(|status| DeviceStats {
            device: device_name(status.device, names),
            tasks: status.figures.completed,
            failed: status.figures.failed,
            busy_share: status.figures.busy_share,
            slots: status.figures.slots_used,
            promised_peak: status.promised_peak.0,
            line: status.line.0,
        });
        Self {
            format,
            elapsed_seconds: regret.elapsed.as_secs_f64(),
            lower_bound_seconds: regret.lower_bound.as_secs_f64(),
            regret_seconds: regret.over().as_secs_f64(),
            devices: devices.collect(),
        }
    }

    /// Beside a table on stdout; beside rows for other programs on stderr.
    pub(super) fn print(&self, to_stdout: bool) -> Ended {
        let say = |line: &str| match to_stdout {
            true => output::line(line),
            false => {
                output::aside(line);
                Ok(())
            }
        };
        match self.format {
            StatsFormat::Json => say(&serde_json::to_string_pretty(self).map_err(Stop::failed)?),
            StatsFormat::Table => self.lines().iter().try_for_each(|line| say(line)),
        }
    }

    fn lines(&self) -> Vec<String> {
        let columns = [
            ("DEVICE", Left),
            ("TASKS", Right),
            ("FAILED", Right),
            ("BUSY", Right),
            ("SLOTS", Right),
            ("PROMISED", Right),
        ];
        let mut table = output::table(&columns);
        for device in &self.devices {
            let promised = format!("{} of {}", Bytes(device.promised_peak), Bytes(device.line));
            let busy = format!("{:.0} %", device.busy_share * 100.0);
            let counts = [device.tasks.to_string(), device.failed.to_string(), busy, device.slots.to_string()];
            table.add_row([device.device.clone()].into_iter().chain(counts).chain([promised]));
        }
        let Self { elapsed_seconds, lower_bound_seconds, regret_seconds, .. } = self;
        let over = 100.0 * regret_seconds / lower_bound_seconds.max(1e-9);
        let mut lines = vec![String::new()];
        lines.extend(table.lines().map(|line| line.trim_end().to_owned()));
        lines.push(String::new());
        lines.push(format!(
            "lower bound   {lower_bound_seconds:.3} s: no schedule of this work on these devices is shorter"
        ));
        lines.push(format!("regret        {regret_seconds:.3} s over it ({over:.1} %), {elapsed_seconds:.3} s in all"));
        lines
    }
}
