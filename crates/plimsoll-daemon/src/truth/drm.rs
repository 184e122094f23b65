//! amdgpu and xe on Linux: how much memory a card has from sysfs, and what each process has of it from the `fdinfo` of
//! its open files.
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
    folder: PathBuf,
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
    pub fn find(sys_root: &Path, proc_root: &Path, gpus: &mut usize) -> Option<Self> {
        let entries = fs::read_dir(sys_root.join("class/drm")).ok()?;
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut numbered: Vec<(u32, String)> =
            names.filter_map(|name| Some((name.strip_prefix("card")?.parse().ok()?, name))).collect();
        numbered.sort_unstable();
        let mut cards: Vec<Card> = Vec::new();
        for (_, entry) in numbered {
            let folder = sys_root.join("class/drm").join(entry).join("device");
            let Some((driver, bus)) = what_it_is(&folder) else { continue };
            if Pool::vram(&folder).is_none() {
                continue;
            }
            let number = cards.iter().filter(|card| card.driver == driver).count();
            cards.push(Card { name: format!("gpu{gpus}"), driver, bus, folder, number });
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
        let pool = Pool::vram(&card.folder)?;
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
            source: "sysfs and fdinfo".to_owned(),
            environment: variables.iter().map(|variable| ((*variable).to_owned(), number.clone())).collect(),
        })
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
    let uevent = fs::read_to_string(folder.join("uevent")).ok()?;
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
    /// amdgpu says how much there is and how much is used; xe says how much there is, tile by tile. i915 says neither: its
    /// cards are not known here.
    fn vram(folder: &Path) -> Option<Self> {
        let number = |name: &str| fs::read_to_string(folder.join(name)).ok()?.trim().parse().ok().map(Bytes);
        if let Some(total) = number("mem_info_vram_total") {
            return Some(Self { total, used: number("mem_info_vram_used") });
        }
        let tiles = (0..TILES_MAX).map_while(|tile| number(&format!("tile{tile}/physical_vram_size_bytes")));
        let total: Bytes = tiles.sum();
        (total > Bytes::ZERO).then_some(Self { total, used: None })
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
        let sizes = |prefixes: &[&str]| -> Option<Bytes> {
            let of = |line: &str| {
                let (key, value) = line.split_once(':')?;
                let region = prefixes.iter().find_map(|prefix| key.strip_prefix(prefix))?;
                is_on_card(region).then(|| size(value))?
            };
            let found: Vec<Bytes> = text.lines().filter_map(of).collect();
            (!found.is_empty()).then(|| found.into_iter().sum())
        };
        Some(Self {
            bus: value("drm-pdev")?.to_owned(),
            id: value("drm-client-id")?.parse().ok()?,
            // What is there now; older drivers say it by another name.
            bytes: sizes(&["drm-resident-"]).or_else(|| sizes(&["drm-memory-"])).unwrap_or_default(),
        })
    }
}

/// Regions of the card's own memory: `vram` and `vram0` of amdgpu and xe, `local0` of i915.
fn is_on_card(region: &str) -> bool {
    region.trim_end_matches(|each: char| each.is_ascii_digit()).trim_end_matches('-') == "vram"
        || region.starts_with("local")
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
        let mut drm = Drm::find(&root.path().join("sys"), &root.path().join("proc"), &mut gpus).unwrap();
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
    fn a_machine_without_cards_has_no_such_source() {
        let root = tempfile::tempdir().unwrap();
        assert!(Drm::find(root.path(), root.path(), &mut 0).is_none());
    }
}
