//! The flags that say which devices to use and how much of each, and their meeting with the environment.
//! Invariant: a flag wins over the environment.

use clap::Args;
use plimsoll::machine::{GpuUse, MachineOptions, MemoryLimit};

use crate::stop::Stop;

#[derive(Debug, Args)]
#[command(next_help_heading = "Machine")]
pub(crate) struct MachineArgs {
    /// Memory to use at most: 8GiB for every device, or gpu0=2GiB,cpu=4GiB
    #[arg(long, global = true, value_name = "SIZE")]
    memory_limit: Option<MemoryLimit>,
    /// Open each GPU as N devices that share it
    #[arg(long, global = true, value_name = "N", value_parser = parse_parts)]
    logical_gpus: Option<usize>,
    /// Leave GPUs out
    #[arg(long, global = true, conflicts_with_all = ["software_gpu", "logical_gpus"])]
    no_gpu: bool,
    /// Also use GPUs made of CPU cores, such as Mesa's lavapipe
    #[arg(long, global = true)]
    software_gpu: bool,
}

impl MachineArgs {
    /// Whether memory is limited, by a flag or by the environment.
    pub(crate) fn has_memory_limit(&self) -> bool {
        self.memory_limit.is_some() || std::env::var_os(plimsoll::machine::MEMORY_LIMIT).is_some()
    }

    /// What the flags ask for, and where they say nothing the environment.
    pub(crate) fn options(&self) -> Result<MachineOptions, Stop> {
        let environment = MachineOptions::from_env().map_err(Stop::failed)?;
        Ok(MachineOptions {
            gpus: self.gpus().unwrap_or(environment.gpus),
            logical_gpus: self.logical_gpus.unwrap_or(environment.logical_gpus),
            memory_limit: self.memory_limit.clone().unwrap_or(environment.memory_limit),
            cpu_slots: environment.cpu_slots,
            alone: environment.alone,
            lease: environment.lease,
        })
    }

    fn gpus(&self) -> Option<GpuUse> {
        match (self.no_gpu, self.software_gpu) {
            (true, _) => Some(GpuUse::None),
            (false, true) => Some(GpuUse::WithSoftware),
            (false, false) => None,
        }
    }

    /// Whether GPUs are to be opened in parts.
    pub(crate) fn divides_gpus(&self) -> bool {
        self.logical_gpus.is_some_and(|parts| parts > 1)
    }
}

fn parse_parts(text: &str) -> Result<usize, String> {
    let max = MachineOptions::LOGICAL_GPUS_MAX;
    let parts = text.parse().ok().filter(|parts| (1..=max).contains(parts));
    parts.ok_or_else(|| format!("write a number from 1 to {max}"))
}
