//! What Vulkan tells of a card's memory: the size of its heaps, and with VK_EXT_memory_budget what is free now.
//! The only file of the workspace with unsafe code: this one question has no safe way to be asked.
//! Never creates, frees or changes anything on the device.

#![expect(unsafe_code, reason = "wgpu has no safe way to ask Vulkan for a card's memory")]

use ash::vk;
use plimsoll_core::Bytes;

use super::Figures;

/// One heap of a card, as plain data.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
struct Heap {
    size: Bytes,
    device_local: bool,
    /// What this program may have of it now, and what it has; only with the extension.
    budget: Option<(Bytes, Bytes)>,
}

pub(super) fn read(adapter: &wgpu::Adapter) -> Option<Figures> {
    add_up(&heaps(adapter)?)
}

fn heaps(adapter: &wgpu::Adapter) -> Option<Vec<Heap>> {
    // SAFETY: the guard only lends the handle; nothing is destroyed through it, and it lives to the end of this call.
    let hal = unsafe { adapter.as_hal::<wgpu::hal::api::Vulkan>() }?;
    let card = hal.physical_device_capabilities();
    if hal.shared_instance().instance_api_version().min(card.properties().api_version) < vk::API_VERSION_1_1 {
        return None;
    }
    let with_budget = card.supports_extension(ash::ext::memory_budget::NAME);
    let mut budget = vk::PhysicalDeviceMemoryBudgetPropertiesEXT::default();
    let mut properties = vk::PhysicalDeviceMemoryProperties2::default();
    if with_budget {
        properties = properties.push_next(&mut budget);
    }
    let instance = hal.shared_instance().raw_instance();
    // SAFETY: the physical device belongs to this instance and both outlive the call; both speak Vulkan 1.1, which
    // has this function. `properties` and what is chained to it are valid for writes, and the budget is only chained
    // if the card knows its extension.
    unsafe { instance.get_physical_device_memory_properties2(hal.raw_physical_device(), &mut properties) };
    let found = properties.memory_properties;
    let heaps = found.memory_heaps.iter().take(found.memory_heap_count as usize).enumerate();
    Some(
        heaps
            .map(|(index, heap)| Heap {
                size: Bytes(heap.size),
                device_local: heap.flags.contains(vk::MemoryHeapFlags::DEVICE_LOCAL),
                budget: with_budget.then(|| (Bytes(budget.heap_budget[index]), Bytes(budget.heap_usage[index]))),
            })
            .collect(),
    )
}

/// The card's own heaps together. Cards with a window into their memory list it as a heap of its own.
fn add_up(heaps: &[Heap]) -> Option<Figures> {
    let own: Vec<&Heap> = heaps.iter().filter(|heap| heap.device_local).collect();
    if own.is_empty() {
        return None;
    }
    let capacity = own.iter().map(|heap| heap.size).sum();
    let free: Option<Vec<Bytes>> = own.iter().map(|heap| heap.budget.map(|(budget, used)| budget - used)).collect();
    Some(Figures {
        capacity,
        free: free.map(|each| each.into_iter().sum::<Bytes>().min(capacity)),
        source: if own[0].budget.is_some() { "VK_EXT_memory_budget" } else { "device-local heap" },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heap(gib: u64, device_local: bool, budget: Option<(u64, u64)>) -> Heap {
        let budget = budget.map(|(budget, used)| (Bytes::gib(budget), Bytes::gib(used)));
        Heap { size: Bytes::gib(gib), device_local, budget }
    }

    #[test]
    fn only_the_cards_own_heaps_count() {
        let heaps = [heap(8, true, Some((7, 2))), heap(32, false, Some((30, 1))), heap(1, true, Some((1, 1)))];
        let expected = Figures { capacity: Bytes::gib(9), free: Some(Bytes::gib(5)), source: "VK_EXT_memory_budget" };
        assert_eq!(add_up(&heaps), Some(expected));
    }

    #[test]
    fn without_the_extension_free_is_unknown() {
        let expected = Figures { capacity: Bytes::gib(8), free: None, source: "device-local heap" };
        assert_eq!(add_up(&[heap(8, true, None), heap(32, false, None)]), Some(expected));
        assert_eq!(add_up(&[heap(32, false, None)]), None);
    }

    #[test]
    fn over_budget_is_nothing_free() {
        assert_eq!(add_up(&[heap(8, true, Some((2, 5)))]).unwrap().free, Some(Bytes::ZERO));
    }
}
