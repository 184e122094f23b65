//! AMD's books on Linux: files beside the card's entry on the bus.
//! Never guesses: a missing or unreadable file means that this source has nothing to say.

use std::fs;
use std::path::Path;

use plimsoll_core::Bytes;

use super::Figures;

const SOURCE: &str = "sysfs mem_info";

/// Reads the card at `bus`. A card without memory of its own (`integrated`) also uses the system's, called GTT.
pub(super) fn read(bus: &str, integrated: bool) -> Option<Figures> {
    if bus.is_empty() || bus.contains('/') {
        return None;
    }
    let folder = Path::new("/sys/bus/pci/devices").join(bus);
    let text = |name: &str| fs::read_to_string(folder.join(name)).ok();
    let pool = |total: &str, used: &str| parse_pool(&text(total)?, &text(used)?);
    let vram = pool("mem_info_vram_total", "mem_info_vram_used")?;
    let system = if integrated { pool("mem_info_gtt_total", "mem_info_gtt_used") } else { None };
    Some(add_up(vram, system))
}

/// One pool of memory.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
struct Pool {
    total: Bytes,
    used: Bytes,
}

fn parse_pool(total: &str, used: &str) -> Option<Pool> {
    let bytes = |text: &str| text.trim().parse().ok().map(Bytes);
    Some(Pool { total: bytes(total)?, used: bytes(used)? })
}

fn add_up(vram: Pool, system: Option<Pool>) -> Figures {
    let pools = [Some(vram), system].into_iter().flatten();
    let (capacity, free) = pools.fold((Bytes::ZERO, Bytes::ZERO), |(capacity, free), pool| {
        (capacity + pool.total, free + (pool.total - pool.used))
    });
    Figures { capacity, free: Some(free), source: SOURCE }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_of_its_own_counts_its_own_memory() {
        let vram = parse_pool("17163091968\n", "1073741824\n").unwrap();
        let figures = add_up(vram, None);
        assert_eq!(figures.capacity, Bytes(17_163_091_968));
        assert_eq!(figures.free, Some(Bytes(17_163_091_968 - 1_073_741_824)));
    }

    #[test]
    fn an_integrated_one_adds_the_system_memory_it_may_use() {
        let vram = Pool { total: Bytes::mib(512), used: Bytes::mib(500) };
        let gtt = Pool { total: Bytes::gib(15), used: Bytes::gib(1) };
        let figures = add_up(vram, Some(gtt));
        assert_eq!(figures.capacity, Bytes::mib(512) + Bytes::gib(15));
        assert_eq!(figures.free, Some(Bytes::mib(12) + Bytes::gib(14)));
    }

    #[test]
    fn nonsense_is_no_figure() {
        assert_eq!(parse_pool("", "0"), None);
        assert_eq!(parse_pool("12 apples", "0"), None);
        assert_eq!(read("", false), None);
        assert_eq!(read("../../etc", false), None);
    }
}
