//! Which GPUs are in this machine, each physical card once.
//! Never opens one. Invariant: one card seen through several APIs or drivers is listed once, two equal cards twice.

use plimsoll_runtime::Nature;
use wgpu::{Adapter, AdapterInfo, Backend, Backends, DeviceType, Instance, InstanceDescriptor, InstanceFlags};

/// A graphics API, the preferred one first.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Api {
    Vulkan,
    Metal,
    Dx12,
    Gl,
}

impl Api {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Vulkan => "Vulkan",
            Self::Metal => "Metal",
            Self::Dx12 => "DX12",
            Self::Gl => "OpenGL",
        }
    }

    fn of(backend: Backend) -> Option<Self> {
        match backend {
            Backend::Vulkan => Some(Self::Vulkan),
            Backend::Metal => Some(Self::Metal),
            Backend::Dx12 => Some(Self::Dx12),
            Backend::Gl => Some(Self::Gl),
            Backend::Noop | Backend::BrowserWebGpu => None,
        }
    }
}

/// What sort of card it is, in the order in which people expect them listed.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Sort {
    Discrete,
    Integrated,
    Other,
    Software,
}

/// One way to one card, as plain data.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Record {
    pub(crate) api: Api,
    pub(crate) sort: Sort,
    pub(crate) name: String,
    pub(crate) vendor: u32,
    pub(crate) device: u32,
    /// `0000:01:00.0`, or empty if the API does not say.
    pub(crate) bus: String,
    pub(crate) driver: String,
    /// Its place among the records that do not differ from it in anything else.
    pub(crate) ordinal: usize,
}

impl Record {
    fn of(info: AdapterInfo) -> Option<Self> {
        let sort = match info.device_type {
            DeviceType::DiscreteGpu => Sort::Discrete,
            DeviceType::IntegratedGpu => Sort::Integrated,
            DeviceType::VirtualGpu | DeviceType::Other => Sort::Other,
            DeviceType::Cpu => Sort::Software,
        };
        Some(Self {
            api: Api::of(info.backend)?,
            sort,
            name: info.name,
            vendor: info.vendor,
            device: info.device,
            bus: info.device_pci_bus_id,
            driver: format!("{} {}", info.driver, info.driver_info).trim().to_owned(),
            ordinal: 0,
        })
    }

    pub(crate) fn nature(&self) -> Nature {
        if self.sort == Sort::Software { Nature::Software } else { Nature::Hardware }
    }

    /// Whether both could be the same card, by what is printed on it. OpenGL often has no device number.
    fn same_model(&self, other: &Self) -> bool {
        self.vendor == other.vendor && self.device == other.device && (self.device != 0 || self.name == other.name)
    }

    fn same_bus(&self, other: &Self) -> bool {
        !self.bus.is_empty() && self.bus == other.bus
    }
}

/// Counts equal records, so that each has a name of its own.
fn number(mut records: Vec<Record>) -> Vec<Record> {
    for at in 0..records.len() {
        let (before, rest) = records.split_at_mut(at);
        let equal = |other: &&Record| Record { ordinal: 0, ..(*other).clone() } == rest[0];
        let ordinal = before.iter().filter(equal).count();
        rest[0].ordinal = ordinal;
    }
    records
}

/// wgpu finds the bus of a DX12 adapter by its model, so equal cards all seem to sit in the first one's place.
fn forget_repeated_dx12_buses(records: &mut [(usize, Record)]) {
    let is_dx12 = |record: &Record| record.api == Api::Dx12;
    let dx12: Vec<String> = records.iter().filter(|(_, r)| is_dx12(r)).map(|(_, r)| r.bus.clone()).collect();
    for (_, record) in records.iter_mut().filter(|(_, record)| is_dx12(record)) {
        if dx12.iter().filter(|bus| **bus == record.bus).count() > 1 {
            record.bus.clear();
        }
    }
}

/// The places of one record for each card: the first in the order of [`Api`].
fn each_card_once(records: &[Record]) -> Vec<usize> {
    let mut records: Vec<(usize, Record)> = records.iter().cloned().enumerate().collect();
    forget_repeated_dx12_buses(&mut records);
    records.sort_by_key(|(_, record)| record.api);
    let mut cards: Vec<&(usize, Record)> = Vec::new();
    for (at, (_, record)) in records.iter().enumerate() {
        if !is_listed(record, &records[..at], &cards) {
            cards.push(&records[at]);
        }
    }
    cards.sort_by_key(|(_, card)| card.sort);
    cards.into_iter().map(|(place, _)| *place).collect()
}

/// Whether `record` is a card in `cards`: by its bus where both APIs tell, else by counting. The n-th card of a model
/// under one API is the n-th of that model under another.
fn is_listed(record: &Record, earlier: &[(usize, Record)], cards: &[&(usize, Record)]) -> bool {
    if cards.iter().any(|(_, card)| card.same_bus(record)) {
        return true;
    }
    let might_be = |(_, card): &&&(usize, Record)| {
        card.api != record.api && card.same_model(record) && (card.bus.is_empty() || record.bus.is_empty())
    };
    let before = earlier.iter().filter(|(_, other)| other.api == record.api && other.same_model(record)).count();
    cards.iter().filter(might_be).count() > before
}

/// A fresh connection to the drivers. Each logical GPU has one of its own: those of one connection share a software
/// driver's threads.
fn connect() -> Instance {
    Instance::new(InstanceDescriptor {
        backends: Backends::VULKAN | Backends::METAL | Backends::DX12,
        // Validation layers would slow every call; wgpu itself checks ours.
        flags: InstanceFlags::empty(),
        ..InstanceDescriptor::new_without_display_handle()
    })
}

/// All adapters with their records.
fn adapters() -> Vec<(Record, Adapter)> {
    let adapters = pollster::block_on(connect().enumerate_adapters(Backends::all()));
    let known: Vec<(Record, Adapter)> =
        adapters.into_iter().filter_map(|adapter| Some((Record::of(adapter.get_info())?, adapter))).collect();
    let (records, adapters): (Vec<_>, Vec<_>) = known.into_iter().unzip();
    number(records).into_iter().zip(adapters).collect()
}

/// Looks for a card again, over a connection of its own.
pub(crate) fn find(wanted: &Record) -> Option<Adapter> {
    adapters().into_iter().find(|(record, _)| record == wanted).map(|(_, adapter)| adapter)
}

/// A GPU that is there. Whether it works is known once it was opened and passed its check.
#[derive(Clone, Debug)]
pub struct FoundGpu {
    pub(crate) record: Record,
}

impl FoundGpu {
    /// What people call it.
    pub fn name(&self) -> &str {
        &self.record.name
    }

    /// Driver name and version.
    pub fn driver(&self) -> &str {
        &self.record.driver
    }

    /// `Vulkan`, `Metal` or `DX12`.
    pub fn api(&self) -> &'static str {
        self.record.api.name()
    }

    /// Where it sits, for example `0000:01:00.0`; empty if the platform does not say.
    pub fn bus(&self) -> &str {
        &self.record.bus
    }

    /// Whether it is hardware, or made of CPU cores.
    pub fn nature(&self) -> Nature {
        self.record.nature()
    }
}

/// Every GPU of this machine once, discrete cards first and software ones last. Empty without drivers.
pub fn discover() -> Vec<FoundGpu> {
    let records: Vec<Record> = adapters().into_iter().map(|(record, _)| record).collect();
    each_card_once(&records).into_iter().map(|place| FoundGpu { record: records[place].clone() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(api: Api, device: u32, bus: &str) -> Record {
        Record {
            api,
            sort: Sort::Discrete,
            name: format!("card {device}"),
            vendor: 0x10de,
            device,
            bus: bus.to_owned(),
            driver: format!("{} driver", api.name()),
            ordinal: 0,
        }
    }

    fn listed(records: &[Record]) -> Vec<(Api, String)> {
        let name = |place: usize| (records[place].api, records[place].name.clone());
        each_card_once(records).into_iter().map(name).collect()
    }

    #[test]
    fn one_card_under_two_apis_is_one_card() {
        let vulkan = record(Api::Vulkan, 1, "0000:01:00.0");
        for other in [record(Api::Dx12, 1, "0000:01:00.0"), record(Api::Dx12, 1, ""), record(Api::Gl, 1, "")] {
            assert_eq!(listed(&[other, vulkan.clone()]), [(Api::Vulkan, "card 1".to_owned())]);
        }
    }

    #[test]
    fn two_equal_cards_are_two_cards() {
        let by_bus = [record(Api::Vulkan, 1, "0000:01:00.0"), record(Api::Vulkan, 1, "0000:02:00.0")];
        assert_eq!(listed(&by_bus).len(), 2);
        let without_bus = [record(Api::Metal, 1, ""), record(Api::Metal, 1, "")];
        assert_eq!(listed(&without_bus).len(), 2);
    }

    #[test]
    fn two_equal_cards_under_two_apis_are_two_cards() {
        let vulkan = [record(Api::Vulkan, 1, "0000:01:00.0"), record(Api::Vulkan, 1, "0000:02:00.0")];
        let repeated = [record(Api::Dx12, 1, "0000:01:00.0"), record(Api::Dx12, 1, "0000:01:00.0")];
        let all = [vulkan.clone(), repeated.clone()].concat();
        assert_eq!(listed(&all), [(Api::Vulkan, "card 1".to_owned()), (Api::Vulkan, "card 1".to_owned())]);
        assert_eq!(listed(&repeated).len(), 2, "DX12 alone");
    }

    #[test]
    fn two_drivers_of_one_card_are_one_card() {
        let radv = record(Api::Vulkan, 1, "0000:03:00.0");
        let amdvlk = Record { driver: "another".to_owned(), name: "same card".to_owned(), ..radv.clone() };
        assert_eq!(listed(&[radv, amdvlk]).len(), 1);
    }

    #[test]
    fn a_card_that_only_one_api_sees_is_kept() {
        let records = [record(Api::Vulkan, 1, "0000:01:00.0"), record(Api::Dx12, 1, ""), record(Api::Dx12, 2, "")];
        assert_eq!(listed(&records), [(Api::Vulkan, "card 1".to_owned()), (Api::Dx12, "card 2".to_owned())]);
        let third = [record(Api::Vulkan, 1, ""), record(Api::Dx12, 1, ""), record(Api::Dx12, 1, "")];
        assert_eq!(listed(&third).len(), 2, "DX12 sees one more of them");
    }

    #[test]
    fn discrete_cards_come_first_and_software_last() {
        let software = Record { sort: Sort::Software, ..record(Api::Vulkan, 0, "") };
        let integrated = Record { sort: Sort::Integrated, ..record(Api::Vulkan, 7, "0000:00:02.0") };
        let discrete = record(Api::Dx12, 9, "");
        let names: Vec<String> = listed(&[software, integrated, discrete]).into_iter().map(|(_, name)| name).collect();
        assert_eq!(names, ["card 9", "card 7", "card 0"]);
    }

    #[test]
    fn equal_records_are_numbered() {
        let numbered = number(vec![record(Api::Metal, 1, ""), record(Api::Metal, 2, ""), record(Api::Metal, 1, "")]);
        assert_eq!(numbered.iter().map(|record| record.ordinal).collect::<Vec<_>>(), [0, 0, 1]);
    }
}
