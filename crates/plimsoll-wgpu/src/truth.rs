//! What NVIDIA's driver says of its cards' memory, and of each process's part of it.
//! Never opens a card: only the driver's books are read.

use std::collections::BTreeMap;

use nvml_wrapper::Device;
use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::error::NvmlError;
use plimsoll_core::Bytes;

use crate::memory::nvml;

/// A card as its driver tells of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CardMemory {
    /// What people call it.
    pub name: String,
    /// What programs select it by, whatever the order they count in.
    pub uuid: String,
    /// Its place on the bus, as every other part of this program writes it: `0000:03:00.0`.
    pub bus: String,
    /// All its memory.
    pub capacity: Bytes,
    /// What is free, counting everybody.
    pub free: Bytes,
    /// What each process has of it; `None` where the driver does not tell, as on Windows and for parts of a card.
    pub processes: Option<Vec<(u32, Bytes)>>,
}

/// Every NVIDIA card, in the driver's order.
///
/// # Errors
/// What the driver says. Without an NVIDIA driver there are no cards, and that is no error.
pub fn nvidia_cards() -> Result<Vec<CardMemory>, String> {
    let Some(nvml) = nvml::connection() else { return Ok(Vec::new()) };
    let count = nvml.device_count().map_err(|error| error.to_string())?;
    let card = |index| nvml.device_by_index(index).and_then(|device| read(&device));
    (0..count).map(card).collect::<Result<Vec<_>, _>>().map_err(|error| error.to_string())
}

fn read(device: &Device<'_>) -> Result<CardMemory, NvmlError> {
    let memory = device.memory_info()?;
    Ok(CardMemory {
        name: device.name()?,
        uuid: device.uuid()?,
        bus: short(&device.pci_info()?.bus_id),
        capacity: Bytes(memory.total),
        free: Bytes(memory.free),
        processes: processes(device),
    })
}

/// NVML counts domains with eight digits, everybody else with four.
fn short(bus: &str) -> String {
    let bus = bus.to_ascii_lowercase();
    match bus.split_once(':') {
        Some((domain, rest)) if domain.len() == 8 && domain.starts_with("0000") => format!("{}:{rest}", &domain[4..]),
        _ => bus,
    }
}

/// A process that computes and draws is in both lists, with the same figure.
fn processes(device: &Device<'_>) -> Option<Vec<(u32, Bytes)>> {
    let lists = [device.running_compute_processes().ok()?, device.running_graphics_processes().ok()?];
    let mut used: BTreeMap<u32, Bytes> = BTreeMap::new();
    for process in lists.into_iter().flatten() {
        let UsedGpuMemory::Used(bytes) = process.used_gpu_memory else { return None };
        let known = used.entry(process.pid).or_default();
        *known = (*known).max(Bytes(bytes));
    }
    Some(used.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_on_the_bus_is_written_as_elsewhere() {
        assert_eq!(short("00000000:0A:00.0"), "0000:0a:00.0");
        assert_eq!(short("0000:01:00.0"), "0000:01:00.0");
        assert_eq!(short("00010000:01:00.0"), "00010000:01:00.0", "a domain that needs more digits keeps them");
        assert_eq!(short(""), "");
    }

    #[test]
    fn a_machine_without_the_driver_has_no_such_cards() {
        assert!(nvml::connection().is_some() || nvidia_cards() == Ok(Vec::new()));
    }
}
