//! amdgpu, xe and i915 on Linux: how much memory a card has from sysfs, and what each process has of it from the `fdinfo`
//! of its open files. i915 as it comes with the kernel does not say how much a card has: its owner may.
//! Never opens a card: only its books are read.
//! Invariant: a client of a driver counts once, however many files name it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use plimsoll_core::{Bytes, DeviceKind};

use super::{DeviceTruth, ProcessUse, Truth, TruthError};

/// Processes that are looked at, and open files of each.
const PROCESSES_MAX: usize = 32_768;
/// See [`PROCESSES_MAX`].
const FILES_MAX: usize = 4_096;

/// Tiles of a card.
const TILES_MAX: usize = 16;

/// Which card.
#[derive(Clone, Debug)]
struct Card {
    name: String,
    driver: Driver,
    /// `0000:03:00.0`
    bus: String,
    /// `card0`: files of the driver.
    folder: PathBuf,
    /// All its memory, by its owner's word.
    said: Option<Bytes>,
    /// Its place among the cards of its driver, as programs count them.
    number: usize,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Driver {
    Amd,
    Intel,
}

/// Reads the cards of these drivers.
#[derive(Debug)]
pub struct Drm {
    proc_root: PathBuf,
    cards: Vec<Card>,
}

impl Drm {
    /// Cards below these folders, which are `/sys` and `/proc` but in tests; nothing if there are none. GPUs are counted on.
    /// What a card has although its driver does not say so is in `said`, by the card's place on the bus.
    pub fn find(sys_root: &Path, proc_root: &Path, gpus: &mut usize, said: &BTreeMap<String, Bytes>) -> Option<Self> {
        let entries = fs::read_dir(sys_root.join("class/drm")).ok()?;
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut numbered: Vec<(u32, String)> =
            names.filter_map(|name| Some((name.strip_prefix("card")?.parse().ok()?, name))).collect();
        numbered.sort_unstable();
        let mut cards: Vec<Card> = Vec::new();
        for (_, entry) in numbered {
            let folder = sys_root.join("class/drm").join(entry);
            let Some((driver, bus)) = what_it_is(&folder) else { continue };
            let said = said.get(&bus).copied();
            if Pool::vram(&folder, said).is_none() {
                continue;
            }
            let number = cards.iter().filter(|card| card.driver == driver).count();
            cards.push(Card { name: format!("gpu{gpus}"), driver, bus, folder, said, number });
            *gpus += 1;
        }
        (!cards.is_empty()).then(|| Self { proc_root: proc_root.to_owned(), cards })
    }

    /// What each process has of each card, by the card's place on the bus.
    fn uses(&self) -> BTreeMap<String, BTreeMap<u32, Bytes>> {
        let mut uses: BTreeMap<String, BTreeMap<u32, Bytes>> = BTreeMap::new();
        let mut seen: BTreeSet<(String, u64)> = BTreeSet::new();
        let processes = fs::read_dir(&self.proc_root).into_iter().flatten().flatten().take(PROCESSES_MAX);
        for process in processes {
            let Some(pid) = process.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
            let files = fs::read_dir(process.path().join("fdinfo")).into_iter().flatten().flatten().take(FILES_MAX);
            for file in files {
                if !is_of_a_card(&process.path(), &file.file_name()) {
                    continue;
                }
                let Some(client) = fs::read_to_string(file.path()).ok().as_deref().and_then(Client::parse) else {
                    continue;
                };
                if seen.insert((client.bus.clone(), client.id)) {
                    *uses.entry(client.bus).or_default().entry(pid).or_default() += client.bytes;
                }
            }
        }
        uses
    }

    fn device(&self, card: &Card, uses: &BTreeMap<String, BTreeMap<u32, Bytes>>) -> Option<DeviceTruth> {
        let pool = Pool::vram(&card.folder, card.said)?;
        let uses = uses.get(&card.bus).into_iter().flatten();
        let processes: Vec<_> = uses.map(|(pid, bytes)| ProcessUse::of(&self.proc_root, *pid, *bytes)).collect();
        let by_processes: Bytes = processes.iter().map(|process| process.bytes).sum();
        let used = pool.used.unwrap_or(by_processes);
        let variables: &[&str] = match card.driver {
            Driver::Amd => &["HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"],
            Driver::Intel => &["ZE_AFFINITY_MASK"],
        };
        let number = card.number.to_string();
        Some(DeviceTruth {
            name: card.name.clone(),
            card: match card.driver {
                Driver::Amd => format!("AMD GPU at {}", card.bus),
                Driver::Intel => format!("Intel GPU at {}", card.bus),
            },
            kind: DeviceKind::Gpu,
            capacity: pool.total,
            free: pool.total - used,
            processes: Some(processes),
            source: source(pool.used.is_some(), rustix::process::geteuid().is_root()).to_owned(),
            in_book: Some(card.bus.clone()),
            environment: variables.iter().map(|variable| ((*variable).to_owned(), number.clone())).collect(),
        })
    }
}

/// Where the figures come from. A driver that does not say what is in use leaves the sum over processes, and only root sees
/// those of all users.
fn source(says_used: bool, sees_all: bool) -> &'static str {
    match says_used || sees_all {
        true => "sysfs and fdinfo",
        false => "sysfs and fdinfo of this user's processes: what other users have is not seen",
    }
}

/// Files that are no cards are not read: there may be thousands. Where links cannot be read everything is.
fn is_of_a_card(process: &Path, file: &std::ffi::OsStr) -> bool {
    match fs::read_link(process.join("fd").join(file)) {
        Ok(target) => target.starts_with("/dev/dri"),
        Err(_) => true,
    }
}

fn what_it_is(folder: &Path) -> Option<(Driver, String)> {
    let uevent = fs::read_to_string(folder.join("device/uevent")).ok()?;
    let value = |key: &str| uevent.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    let driver = match value("DRIVER")? {
        "amdgpu" => Driver::Amd,
        "xe" | "i915" => Driver::Intel,
        _ => return None,
    };
    Some((driver, value("PCI_SLOT_NAME")?.to_owned()))
}

/// A card's own memory.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
struct Pool {
    total: Bytes,
    /// What is in use, if the driver says.
    used: Option<Bytes>,
}

impl Pool {
    /// amdgpu says how much there is and how much is used; xe how much there is, tile by tile; i915 both where it is Intel's
    /// own, and neither where it comes with the kernel: then its owner's word counts.
    fn vram(folder: &Path, said: Option<Bytes>) -> Option<Self> {
        let number = |name: &str| fs::read_to_string(folder.join(name)).ok()?.trim().parse::<u64>().ok().map(Bytes);
        if let Some(total) = number("device/mem_info_vram_total") {
            return Some(Self { total, used: number("device/mem_info_vram_used") });
        }
        if let Some(total) = number("lmem_total_bytes").filter(|total| *total > Bytes::ZERO) {
            return Some(Self { total, used: number("lmem_avail_bytes").map(|free| total - free) });
        }
        let tiles = (0..TILES_MAX).map_while(|tile| number(&format!("device/tile{tile}/physical_vram_size_bytes")));
        let total: Bytes = tiles.sum();
        let total = Some(total).filter(|total| *total > Bytes::ZERO).or(said);
        total.map(|total| Self { total, used: None })
    }
}

/// One client of a driver, as an open file tells of it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Client {
    bus: String,
    id: u64,
    bytes: Bytes,
}

impl Client {
    fn parse(text: &str) -> Option<Self> {
        let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':')).map(str::trim);
        let sizes = |prefix: &str| -> Option<Bytes> {
            let of = |line: &str| {
                let (key, value) = line.split_once(':')?;
                let region = key.strip_prefix(prefix)?;
                is_on_card(region).then(|| size(value))?
            };
            let found: Vec<Bytes> = text.lines().filter_map(of).collect();
            (!found.is_empty()).then(|| found.into_iter().sum())
        };
        Some(Self {
            bus: value("drm-pdev")?.to_owned(),
            id: value("drm-client-id")?.parse().ok()?,
            // What is there now; older drivers say it by another name, or only what was asked for.
            bytes: sizes("drm-resident-")
                .or_else(|| sizes("drm-memory-"))
                .or_else(|| sizes("drm-total-"))
                .unwrap_or_default(),
        })
    }
}

/// Regions of the card's own memory: `vram` and `vram0` of amdgpu and xe, `local0` of i915. What firmware took before anybody
/// asked (`stolen-local0`) is nobody's use.
fn is_on_card(region: &str) -> bool {
    let region = region.trim_end_matches(|each: char| each.is_ascii_digit()).trim_end_matches('-');
    matches!(region, "vram" | "local")
}

/// `1234 KiB`, `5 MiB` or `99`.
fn size(text: &str) -> Option<Bytes> {
    let mut words = text.split_ascii_whitespace();
    let number: u64 = words.next()?.parse().ok()?;
    match words.next() {
        None => Some(Bytes(number)),
        Some("KiB") => Some(Bytes::kib(number)),
        Some("MiB") => Some(Bytes::mib(number)),
        Some("GiB") => Some(Bytes::gib(number)),
        Some(_) => None,
    }
}

impl Truth for Drm {
    fn name(&self) -> &str {
        "sysfs and fdinfo"
    }

    fn read(&mut self) -> Result<Vec<DeviceTruth>, TruthError> {
        let uses = self.uses();
        let read: Vec<_> = self.cards.iter().filter_map(|card| self.device(card, &uses)).collect();
        match read.is_empty() {
            true => {
                Err(TruthError { source_name: self.name().to_owned(), what: "no card answers any more".to_owned() })
            }
            false => Ok(read),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    const AMD: &str = "pos:\t0\ndrm-driver:\tamdgpu\ndrm-client-id:\t28\ndrm-pdev:\t0000:03:00.0\n\
        drm-memory-vram:\t2048 KiB\ndrm-memory-gtt: \t9 KiB\ndrm-resident-vram:\t1024 KiB\n";
    const XE: &str = "drm-driver:\txe\ndrm-client-id:\t3\ndrm-pdev:\t0000:04:00.0\ndrm-total-vram0:\t8 MiB\n\
        drm-resident-vram0:\t4 MiB\ndrm-resident-vram1:\t1 MiB\ndrm-resident-system:\t77 MiB\n";

    fn recorded() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let at = root.path();
        write(at, "sys/class/drm/card0/device/uevent", "DRIVER=amdgpu\nPCI_SLOT_NAME=0000:03:00.0\n");
        write(at, "sys/class/drm/card0/device/mem_info_vram_total", "1073741824\n");
        write(at, "sys/class/drm/card0/device/mem_info_vram_used", "104857600\n");
        write(at, "sys/class/drm/card1/device/uevent", "DRIVER=xe\nPCI_SLOT_NAME=0000:04:00.0\n");
        write(at, "sys/class/drm/card1/device/tile0/physical_vram_size_bytes", "536870912\n");
        write(at, "sys/class/drm/card1-HDMI-A-1/status", "connected");
        write(at, "sys/class/drm/card2/device/uevent", "DRIVER=ast\nPCI_SLOT_NAME=0000:09:00.0\n");
        write(at, "proc/40/fdinfo/3", AMD);
        write(at, "proc/40/fdinfo/4", AMD);
        write(at, "proc/41/fdinfo/9", &AMD.replace("28", "29"));
        write(at, "proc/41/fdinfo/10", XE);
        write(at, "proc/42/fdinfo/1", "pos:\t0\nflags:\t02\n");
        root
    }

    #[test]
    fn a_client_counts_once_and_only_what_is_on_the_card() {
        let root = recorded();
        let mut gpus = 2;
        let mut drm =
            Drm::find(&root.path().join("sys"), &root.path().join("proc"), &mut gpus, &BTreeMap::new()).unwrap();
        let read = drm.read().unwrap();
        assert_eq!((gpus, read.len()), (4, 2));
        let uses = |device: &DeviceTruth| {
            device.processes.iter().flatten().map(|each| (each.pid, each.bytes)).collect::<Vec<_>>()
        };
        assert_eq!((read[0].name.as_str(), read[0].free), ("gpu2", Bytes::mib(1024 - 100)));
        assert_eq!(uses(&read[0]), [(40, Bytes::mib(1)), (41, Bytes::mib(1))]);
        assert_eq!((read[1].name.as_str(), read[1].capacity, read[1].free), ("gpu3", Bytes::mib(512), Bytes::mib(507)));
        assert_eq!(uses(&read[1]), [(41, Bytes::mib(5))]);
        assert_eq!(read[1].environment, [("ZE_AFFINITY_MASK".to_owned(), "0".to_owned())]);
    }

    /// As the kernel's documentation of `drm-usage-stats` has it, by i915 of a card with memory of its own.
    const I915: &str = "pos:\t0\nflags:\t02100002\nmnt_id:\t26\nino:\t443\ndrm-driver:\ti915\ndrm-client-id:\t12\n\
        drm-pdev:\t0000:05:00.0\ndrm-total-system0:\t1024 KiB\ndrm-shared-system0:\t0\ndrm-active-system0:\t0\n\
        drm-resident-system0:\t1024 KiB\ndrm-purgeable-system0:\t0\ndrm-total-local0:\t65536 KiB\ndrm-shared-local0:\t0\n\
        drm-active-local0:\t0\ndrm-resident-local0:\t49152 KiB\ndrm-purgeable-local0:\t0\n\
        drm-resident-stolen-local0:\t4096 KiB\ndrm-engine-render:\t9288864723 ns\ndrm-engine-capacity-video:\t2\n";

    /// A card of i915 beside the processor's own graphics, which has no memory of its own.
    fn i915_machine() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let at = root.path();
        write(at, "sys/class/drm/card0/device/uevent", "DRIVER=i915\nPCI_SLOT_NAME=0000:00:02.0\n");
        write(at, "sys/class/drm/card1/device/uevent", "DRIVER=i915\nPCI_SLOT_NAME=0000:05:00.0\n");
        write(at, "proc/50/fdinfo/7", I915);
        root
    }

    fn find(root: &Path, said: &[(&str, Bytes)]) -> Option<Drm> {
        let said = said.iter().map(|(bus, bytes)| ((*bus).to_owned(), *bytes)).collect();
        Drm::find(&root.join("sys"), &root.join("proc"), &mut 0, &said)
    }

    #[test]
    fn a_card_of_i915_has_what_its_driver_or_its_owner_says() {
        let root = i915_machine();
        assert!(find(root.path(), &[]).is_none(), "nobody says how much it has: it is not guessed");
        let mut drm = find(root.path(), &[("0000:05:00.0", Bytes::mib(256))]).unwrap();
        let read = drm.read().unwrap();
        assert_eq!(read.len(), 1, "the processor's own graphics have no memory of their own");
        assert_eq!(
            (read[0].capacity, read[0].free),
            (Bytes::mib(256), Bytes::mib(256 - 48)),
            "what is there of it now"
        );
        assert_eq!(read[0].processes.as_ref().unwrap()[0].bytes, Bytes::mib(48));
        write(root.path(), "sys/class/drm/card1/lmem_total_bytes", "536870912\n");
        write(root.path(), "sys/class/drm/card1/lmem_avail_bytes", "402653184\n");
        let read = find(root.path(), &[("0000:05:00.0", Bytes::mib(256))]).unwrap().read().unwrap();
        assert_eq!(
            (read[0].capacity, read[0].free),
            (Bytes::mib(512), Bytes::mib(384)),
            "the driver's word goes first"
        );
        assert_eq!(read[0].in_book.as_deref(), Some("0000:05:00.0"));
    }

    #[test]
    fn what_was_asked_for_counts_where_no_more_is_said() {
        let said = |text: &str| Client::parse(&format!("drm-pdev: a\ndrm-client-id: 1\n{text}")).unwrap().bytes;
        assert_eq!(said("drm-total-local0:\t7 MiB\ndrm-total-system0:\t9 MiB\n"), Bytes::mib(7));
        assert_eq!(said("drm-total-vram0:\t7 MiB\ndrm-resident-vram0:\t3 MiB\n"), Bytes::mib(3));
        assert_eq!(said("drm-resident-stolen-local0:\t7 MiB\n"), Bytes::ZERO);
    }

    #[test]
    fn older_names_count_and_nonsense_does_not() {
        let old = Client::parse("drm-pdev: a\ndrm-client-id: 1\ndrm-memory-vram:\t3 KiB\n").unwrap();
        assert_eq!(old.bytes, Bytes::kib(3));
        let local = Client::parse("drm-pdev: a\ndrm-client-id: 1\ndrm-resident-local0: 7\n").unwrap();
        assert_eq!(local.bytes, Bytes(7));
        for broken in ["", "drm-pdev: a", "drm-pdev: a\ndrm-client-id: x"] {
            assert_eq!(Client::parse(broken), None);
        }
        assert_eq!(size("9 apples"), None);
        assert_eq!(size("18446744073709551615 GiB"), Some(Bytes::MAX));
    }

    #[test]
    fn what_other_users_have_is_said_not_to_be_seen_where_it_is_not() {
        assert_eq!([source(true, false), source(true, true), source(false, true)], ["sysfs and fdinfo"; 3]);
        assert!(source(false, false).contains("other users"));
    }

    #[test]
    fn a_machine_without_cards_has_no_such_source() {
        let root = tempfile::tempdir().unwrap();
        assert!(Drm::find(root.path(), root.path(), &mut 0, &BTreeMap::new()).is_none());
    }
}
