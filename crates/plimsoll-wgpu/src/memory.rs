//! How much memory a GPU has, and how much of it is free now, from whatever the platform offers.
//! Never counts our own buffers: that is the gauge. Says where each figure came from.
//! Invariant: the logical devices of one card never claim, together, more than the card has.

pub(crate) mod nvml;
mod sysfs;
#[cfg(not(target_vendor = "apple"))]
mod vulkan_budget;

use plimsoll_core::Bytes;
use plimsoll_runtime::{MemoryReading, cpu};

use crate::discover::{Record, Sort};

/// A card's memory as some source tells it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Figures {
    /// All there is.
    pub(crate) capacity: Bytes,
    /// What is free now counting every program, if the source knows.
    pub(crate) free: Option<Bytes>,
    pub(crate) source: &'static str,
}

/// Assumed for a card that tells nothing. Every card that runs compute shaders has it.
const ASSUMED: Figures = Figures { capacity: Bytes::gib(1), free: None, source: "assumed" };

/// Reads a card's memory now: from the driver's own books first, then from what Vulkan tells a program.
pub(crate) fn read(adapter: Option<&wgpu::Adapter>, record: &Record) -> Figures {
    let vulkan = adapter.and_then(vulkan);
    match record.sort {
        Sort::Software => software(vulkan),
        _ => nvml::read(record.vendor, &record.bus)
            .or_else(|| sysfs::read(&record.bus, record.sort == Sort::Integrated))
            .or(vulkan)
            .unwrap_or(ASSUMED),
    }
}

#[cfg(not(target_vendor = "apple"))]
fn vulkan(adapter: &wgpu::Adapter) -> Option<Figures> {
    vulkan_budget::read(adapter)
}

#[cfg(target_vendor = "apple")]
fn vulkan(_: &wgpu::Adapter) -> Option<Figures> {
    None
}

/// A GPU made of CPU cores lives in the system's memory, whatever its heap says.
fn software(heap: Option<Figures>) -> Figures {
    let system = cpu::memory::read();
    let capacity = heap.map_or(system.capacity, |heap| heap.capacity.min(system.capacity));
    Figures { capacity, free: Some(system.free.min(capacity)), source: system.source }
}

/// What one of `share` logical devices of a card may count on. `ours_all` is what all of them hold.
///
/// What others use is split evenly: each logical device sees its part of the card shrink by its part of that.
pub(crate) fn share(card: Figures, share: u64, ours: Bytes, ours_all: Bytes, limit: Option<Bytes>) -> MemoryReading {
    let others = card.free.map_or(Bytes::ZERO, |free| card.capacity - free - ours_all);
    let capacity = Bytes(card.capacity.0 / share);
    let free = capacity - Bytes(others.0 / share) - ours;
    MemoryReading { capacity, free, limit, ours, resident: None, source: card.source }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CARD: Figures = Figures { capacity: Bytes::gib(8), free: Some(Bytes::gib(5)), source: "test" };

    #[test]
    fn a_whole_card_has_what_the_source_says() {
        // 3 GiB in use, 1 of them ours.
        let reading = share(CARD, 1, Bytes::gib(1), Bytes::gib(1), None);
        assert_eq!((reading.capacity, reading.free, reading.ours), (Bytes::gib(8), Bytes::gib(5), Bytes::gib(1)));
    }

    #[test]
    fn without_a_live_figure_only_ours_is_in_use() {
        let reading = share(Figures { free: None, ..CARD }, 1, Bytes::gib(1), Bytes::gib(1), None);
        assert_eq!((reading.capacity, reading.free), (Bytes::gib(8), Bytes::gib(7)));
    }

    #[test]
    fn logical_devices_together_have_one_card() {
        // 3 GiB in use: 1 by the first logical device, 2 by other programs.
        let first = share(CARD, 2, Bytes::gib(1), Bytes::gib(1), None);
        let second = share(CARD, 2, Bytes::ZERO, Bytes::gib(1), None);
        assert_eq!((first.capacity, second.capacity), (Bytes::gib(4), Bytes::gib(4)));
        assert_eq!((first.free, second.free), (Bytes::gib(2), Bytes::gib(3)));
        assert_eq!(first.free + second.free, Bytes::gib(5));
    }

    #[test]
    fn a_limit_is_told_beside_the_truth() {
        let reading = share(CARD, 1, Bytes::mib(16), Bytes::mib(16), Some(Bytes::mib(64)));
        assert_eq!((reading.capacity, reading.limit), (Bytes::gib(8), Some(Bytes::mib(64))));
    }

    #[test]
    fn a_crowded_card_has_nothing_free_and_never_wraps() {
        let full = Figures { free: Some(Bytes::ZERO), ..CARD };
        assert_eq!(share(full, 3, Bytes::gib(1), Bytes::gib(9), None).free, Bytes(CARD.capacity.0 / 3) - Bytes::gib(1));
        assert_eq!(share(full, 1, Bytes::ZERO, Bytes::ZERO, Some(Bytes::gib(1))).free, Bytes::ZERO);
    }
}
