//! NVIDIA's own books, loaded at run time; silent where there is no NVIDIA driver.
//! Never used for other makers' cards. The card is found by its place on the bus, so equal cards are told apart.

use std::sync::OnceLock;

use nvml_wrapper::Nvml;
use plimsoll_core::Bytes;

use super::Figures;

/// NVIDIA's number as a maker of PCI cards.
const NVIDIA: u32 = 0x10de;

/// One connection for the process: opening it costs milliseconds, and memory is read again and again.
pub(crate) fn connection() -> Option<&'static Nvml> {
    static NVML: OnceLock<Option<Nvml>> = OnceLock::new();
    NVML.get_or_init(|| Nvml::init().ok()).as_ref()
}

pub(super) fn read(vendor: u32, bus: &str) -> Option<Figures> {
    if vendor != NVIDIA || bus.is_empty() {
        return None;
    }
    let memory = connection()?.device_by_pci_bus_id(bus).ok()?.memory_info().ok()?;
    Some(Figures { capacity: Bytes(memory.total), free: Some(Bytes(memory.free)), source: "NVML" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_makers_and_unknown_places_are_not_asked() {
        assert_eq!(read(0x1002, "0000:01:00.0"), None);
        assert_eq!(read(NVIDIA, ""), None);
    }

    #[test]
    fn a_card_that_is_not_there_is_no_figure_and_no_panic() {
        assert_eq!(read(NVIDIA, "ffff:ff:1f.7"), None);
    }
}
