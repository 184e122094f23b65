//! The devices of this machine, opened as somebody asked: the CPU first, then each GPU or its logical parts.
//! Never fails: a GPU that cannot be opened is a [`MachineError`] to show and stays a device; work goes to the others until it
//! can, which the scheduler tries again and again.
//! Invariant: a device keeps its name whether or not the devices before it could be opened or are used.

mod memory_limit;
mod name;
mod options;

use std::fmt;
use std::sync::Arc;

use plimsoll_core::{Bytes, DeviceSet, Fault};
use plimsoll_runtime::book::{self, Book, Listed as InBook, Place};
use plimsoll_runtime::cpu::CpuDevice;
use plimsoll_runtime::{Device, DeviceFacts, Nature};

use crate::gpus::{self, FoundGpu, discover};

/// What drivers say of cards' memory, without opening one.
#[cfg(feature = "gpu")]
pub use plimsoll_wgpu::truth;

pub use memory_limit::{MemoryLimit, ParseMemoryLimitError};
pub use name::{DeviceName, ParseDeviceNameError};
pub use options::{
    ALONE, GpuUse, LEASE, LEASE_BYTES, LEASE_PLACES, MEMORY_LIMIT, MachineOptions, NO_GPU, OnLease, SOFTWARE_GPU,
    SettingError,
};

/// The devices to work with.
///
/// ```
/// use plimsoll::machine::{Machine, MachineOptions};
///
/// let machine = Machine::open(&MachineOptions::from_env()?);
/// for (name, device) in machine.names.iter().zip(&machine.devices) {
///     println!("{name}: {}", device.facts().name);
/// }
/// # Ok::<(), plimsoll::machine::SettingError>(())
/// ```
#[non_exhaustive]
pub struct Machine {
    /// The CPU, then every GPU that is used, also those that could not be opened yet.
    pub devices: Vec<Arc<dyn Device>>,
    /// What each of `devices` is called, in the same order.
    pub names: Vec<DeviceName>,
    /// What did not go as asked. Nothing here stops the work.
    pub problems: Vec<MachineError>,
}

impl fmt::Debug for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Machine").field("names", &self.names).field("problems", &self.problems).finish_non_exhaustive()
    }
}

/// Something about the machine that its user should hear of.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MachineError {
    /// A GPU is there and cannot be used yet.
    #[error("{name} ({card}) could not be opened and is tried again later: {fault}")]
    NotOpened {
        /// The GPU, or the logical part of it.
        name: DeviceName,
        /// What people call it.
        card: String,
        /// The driver's reason.
        fault: Fault,
    },
    /// A memory limit names a device that is not there.
    #[error("there is a memory limit for {name}, but no such device; `plimsoll devices` lists those there are")]
    NoSuchDevice {
        /// The name in the limit.
        name: DeviceName,
    },
    /// One scheduler holds only so many devices.
    #[error(
        "{left_out} GPUs are left out: at most {} devices work together; ask for fewer logical GPUs",
        DeviceSet::LIMIT
    )]
    TooMany {
        /// GPUs or logical parts that are not used.
        left_out: usize,
    },
}

/// A device of the machine, used or not.
#[non_exhaustive]
pub struct Listed {
    /// What it is called.
    pub name: DeviceName,
    /// What is known of it. Of a GPU that could not be opened, only what can be seen from outside.
    pub facts: DeviceFacts,
    /// Whether [`Machine::open`] would use it.
    pub asked_for: bool,
    /// The device, or why it could not be opened.
    pub device: Result<Arc<dyn Device>, Fault>,
}

impl fmt::Debug for Listed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listed").field("name", &self.name).field("asked_for", &self.asked_for).finish_non_exhaustive()
    }
}

/// Everything in the machine, to look at.
#[derive(Debug)]
#[non_exhaustive]
pub struct Survey {
    /// The CPU, then every GPU, those that are not used included.
    pub devices: Vec<Listed>,
    /// What did not go as asked. GPUs that could not be opened are in `devices`.
    pub problems: Vec<MachineError>,
}

impl Machine {
    /// Opens the devices that the options ask for.
    pub fn open(options: &MachineOptions) -> Self {
        let plan = Plan::new(options, to_use(options, gpus::may_be_there(), discover));
        let mut machine = Self { devices: Vec::new(), names: Vec::new(), problems: plan.problems(options) };
        for Part { name, device, opened, .. } in plan.open(options, |card| card.asked_for) {
            if let Err(fault) = opened {
                let card = device.facts().name.clone();
                machine.problems.push(MachineError::NotOpened { name, card, fault });
            }
            machine.devices.push(device);
            machine.names.push(name);
        }
        machine
    }

    /// Opens every device once, also those that the options do not ask for: for showing what is there.
    pub fn survey(options: &MachineOptions) -> Survey {
        let plan = Plan::new(options, if options.gpus == GpuUse::None { Vec::new() } else { discover() });
        let devices = plan.open(options, |_| true).into_iter().map(Part::listed).collect();
        Survey { problems: plan.problems(options), devices }
    }
}

/// The CPU, a GPU or a logical part of one.
struct Part {
    name: DeviceName,
    asked_for: bool,
    device: Arc<dyn Device>,
    opened: Result<(), Fault>,
}

impl Part {
    /// The same device, its memory shared with other programs.
    fn shared_by(self, book: Option<&Book>, parts: u16, lease: Option<&OnLease>) -> Self {
        let Some(book) = book else { return self };
        let device = name_in_book(self.name, self.device.facts(), parts);
        let (device, limit) = within_lease(device, lease);
        Self {
            device: Arc::new(InBook::new(self.device, Place { book: book.clone(), device }).with_limit(limit)),
            ..self
        }
    }

    fn listed(self) -> Listed {
        let Self { name, asked_for, device, opened } = self;
        Listed { name, facts: device.facts().clone(), asked_for, device: opened.map(|()| device) }
    }
}

/// The cards of this machine with the names of their parts.
struct Plan {
    parts: u16,
    cards: Vec<Card>,
    left_out: usize,
}

/// A card, and the number of its first part.
struct Card {
    found: FoundGpu,
    first: u16,
    asked_for: bool,
}

impl Plan {
    fn new(options: &MachineOptions, found: Vec<FoundGpu>) -> Self {
        let parts = options.logical_gpus.clamp(1, MachineOptions::LOGICAL_GPUS_MAX) as u16;
        let software_too = wants_software(options, found.iter().map(FoundGpu::nature));
        // The CPU is one of the devices that work together.
        let room = (DeviceSet::LIMIT - 1) / usize::from(parts);
        let left_out = found.len().saturating_sub(room) * usize::from(parts);
        let card = |(number, found): (u16, FoundGpu)| {
            let asked_for = software_too || found.nature() == Nature::Hardware;
            Card { found, first: number * parts, asked_for }
        };
        Self { parts, cards: (0..).zip(found.into_iter().take(room)).map(card).collect(), left_out }
    }

    fn problems(&self, options: &MachineOptions) -> Vec<MachineError> {
        let gpus = self.cards.len() as u16 * self.parts;
        let is_there = |name| match name {
            DeviceName::Cpu => true,
            // Who leaves all GPUs out for once need not rewrite the limit.
            DeviceName::Gpu(number) => number < gpus || options.gpus == GpuUse::None,
        };
        let nobody = options.memory_limit.names().filter(|name| !is_there(*name));
        let too_many = (self.left_out > 0).then_some(MachineError::TooMany { left_out: self.left_out });
        nobody.map(|name| MachineError::NoSuchDevice { name }).chain(too_many).collect()
    }

    fn open(&self, options: &MachineOptions, wanted: impl Fn(&Card) -> bool) -> Vec<Part> {
        let cards = self.cards.iter().filter(|card| wanted(card));
        let parts = std::iter::once(open_cpu(options)).chain(cards.flat_map(|card| card.open(self.parts, options)));
        let book = (!options.alone).then(Book::of_user);
        parts.map(|part| part.shared_by(book.as_ref(), self.parts, options.lease.as_ref())).collect()
    }
}

/// The GPUs that may be used, and those that a limit may name. Where neither is to be had no driver is loaded.
fn to_use(options: &MachineOptions, may_be_there: bool, discover: impl FnOnce() -> Vec<FoundGpu>) -> Vec<FoundGpu> {
    let is_named = || options.memory_limit.names().any(|name| name != DeviceName::Cpu);
    let matters = match options.gpus {
        GpuUse::None => false,
        GpuUse::WithSoftware => true,
        GpuUse::Hardware => may_be_there || options.logical_gpus > 1 || is_named(),
    };
    if matters { discover() } else { Vec::new() }
}

/// Whether software GPUs are used: if somebody asks for them, or for parts of a GPU where there is no other to divide.
fn wants_software(options: &MachineOptions, mut found: impl Iterator<Item = Nature>) -> bool {
    match options.gpus {
        GpuUse::None => false,
        GpuUse::WithSoftware => true,
        GpuUse::Hardware => options.logical_gpus > 1 && found.all(|nature| nature == Nature::Software),
    }
}

/// The same in every program: where the card sits, if that is known. Parts of a card stand for cards of their own.
fn name_in_book(name: DeviceName, facts: &DeviceFacts, parts: u16) -> String {
    let card = if facts.bus.is_empty() { &facts.key } else { &facts.bus };
    match name {
        DeviceName::Cpu => book::MEMORY.to_owned(),
        DeviceName::Gpu(number) if parts > 1 => format!("{card} {}/{parts} of gpu{}", number % parts, number / parts),
        // Equal cards whose place nobody knows are told apart by their number.
        DeviceName::Gpu(number) if facts.bus.is_empty() => format!("{card} gpu{number}"),
        DeviceName::Gpu(_) => card.clone(),
    }
}

/// What a lease promises is in the book already, by the daemon that gave it: those who run on it share that, and no more.
fn within_lease(device: String, lease: Option<&OnLease>) -> (String, Option<Bytes>) {
    match lease.filter(|lease| lease.places.contains(&device)) {
        Some(lease) => (format!("lease {} on {device}", lease.id), Some(lease.bytes)),
        None => (device, None),
    }
}

fn open_cpu(options: &MachineOptions) -> Part {
    let name = DeviceName::Cpu;
    let builder = CpuDevice::builder().memory_limit(options.memory_limit.of(name));
    let cpu = options.cpu_slots.map_or(builder, |slots| builder.slots(slots)).build();
    Part { name, asked_for: true, device: Arc::new(cpu), opened: Ok(()) }
}

impl Card {
    fn open(&self, parts: u16, options: &MachineOptions) -> Vec<Part> {
        let names = (self.first..self.first + parts).map(DeviceName::Gpu);
        // One card is opened with one limit for all its parts: the lowest keeps every promise.
        let limit = names.clone().filter_map(|name| options.memory_limit.of(name)).min();
        let opened = gpus::open(&self.found, self.first.into(), usize::from(parts), limit);
        names
            .zip(opened)
            .map(|(name, (device, opened))| Part { name, asked_for: self.asked_for, device, opened })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn software_gpus_are_used_when_asked_for_or_when_there_is_nothing_else_to_divide() {
        use Nature::{Hardware, Software};
        let wants = |gpus, logical_gpus, found: &[Nature]| {
            let options = MachineOptions { gpus, logical_gpus, ..MachineOptions::default() };
            wants_software(&options, found.iter().copied())
        };
        assert!(!wants(GpuUse::Hardware, 1, &[Software]));
        assert!(wants(GpuUse::WithSoftware, 1, &[Hardware, Software]));
        assert!(wants(GpuUse::Hardware, 2, &[Software]));
        assert!(!wants(GpuUse::Hardware, 2, &[Hardware, Software]));
        assert!(!wants(GpuUse::None, 2, &[Software]));
    }

    #[test]
    fn drivers_are_loaded_only_for_gpus_that_may_matter() {
        let asks = |options: MachineOptions, may_be_there| {
            let mut asked = false;
            to_use(&options, may_be_there, || {
                asked = true;
                Vec::new()
            });
            asked
        };
        let of = |gpus| MachineOptions { gpus, ..MachineOptions::default() };
        assert!(asks(of(GpuUse::Hardware), true));
        assert!(!asks(of(GpuUse::Hardware), false), "there are software GPUs at the most, and nobody wants them");
        assert!(asks(of(GpuUse::WithSoftware), false));
        assert!(!asks(of(GpuUse::None), true));
        assert!(asks(MachineOptions { logical_gpus: 2, ..of(GpuUse::Hardware) }, false));
        let named = |limit: &str| MachineOptions { memory_limit: limit.parse().unwrap(), ..of(GpuUse::Hardware) };
        assert!(asks(named("gpu0=1GiB"), false), "who names one is told whether it is there");
        assert!(!asks(named("cpu=1GiB"), false));
    }

    #[test]
    fn what_a_lease_promises_is_shared_by_those_who_run_on_it() {
        let lease = OnLease { id: 7, bytes: Bytes::gib(2), places: vec!["0000:03:00.0".to_owned()] };
        let within = |device: &str| within_lease(device.to_owned(), Some(&lease));
        assert_eq!(within("0000:03:00.0"), ("lease 7 on 0000:03:00.0".to_owned(), Some(Bytes::gib(2))));
        assert_eq!(within("0000:04:00.0"), ("0000:04:00.0".to_owned(), None), "another device is as it was");
        let options = MachineOptions {
            gpus: GpuUse::None,
            lease: Some(OnLease { places: vec![book::MEMORY.to_owned()], ..lease }),
            ..MachineOptions::default()
        };
        let machine = Machine::open(&options);
        assert_eq!(machine.devices[0].memory().limit, Some(Bytes::gib(2)));
        assert_eq!(machine.devices[0].book().map(|place| place.device.as_str()), Some("lease 7 on memory"));
    }

    #[test]
    fn a_device_has_one_name_in_the_book_and_no_other_has_it() {
        let facts = |bus: &str| {
            let cpu = CpuDevice::builder().slots(1).build();
            DeviceFacts { bus: bus.into(), key: "card".into(), ..cpu.facts().clone() }
        };
        let gpu = DeviceName::Gpu;
        assert_eq!(name_in_book(DeviceName::Cpu, &facts(""), 1), "memory");
        assert_eq!(name_in_book(gpu(0), &facts("0000:01:00.0"), 1), name_in_book(gpu(3), &facts("0000:01:00.0"), 1));
        assert_ne!(name_in_book(gpu(0), &facts(""), 1), name_in_book(gpu(1), &facts(""), 1));
        let parts: Vec<String> = (0..4).map(|number| name_in_book(gpu(number), &facts("b"), 2)).collect();
        assert_eq!(parts, ["b 0/2 of gpu0", "b 1/2 of gpu0", "b 0/2 of gpu1", "b 1/2 of gpu1"]);
    }

    #[test]
    fn devices_share_by_the_book_unless_somebody_wants_to_be_alone() {
        let options = MachineOptions { gpus: GpuUse::None, ..MachineOptions::default() };
        assert!(Machine::open(&options).devices[0].book().is_some());
        assert!(Machine::open(&MachineOptions { alone: true, ..options }).devices[0].book().is_none());
    }

    #[test]
    fn without_gpus_there_is_the_cpu() {
        let memory_limit = "gpu0=1GiB".parse().unwrap();
        let options =
            MachineOptions { gpus: GpuUse::None, cpu_slots: Some(3), memory_limit, ..MachineOptions::default() };
        let machine = Machine::open(&options);
        assert_eq!(machine.names, [DeviceName::Cpu]);
        assert_eq!(machine.devices[0].facts().slots, 3);
        assert!(machine.problems.is_empty(), "{:?}", machine.problems);
    }

    #[test]
    fn a_limit_for_a_device_that_is_not_there_is_told() {
        let options = MachineOptions { memory_limit: "gpu99=1GiB".parse().unwrap(), ..MachineOptions::default() };
        let machine = Machine::open(&options);
        assert!(matches!(machine.problems[..], [MachineError::NoSuchDevice { name: DeviceName::Gpu(99) }]));
    }

    #[test]
    fn a_software_gpu_is_surveyed_and_not_used() {
        let options = MachineOptions::default();
        let survey = Machine::survey(&options);
        assert!(survey.devices.len() > 1, "tests need a Vulkan device: `cargo xtask test` installs one");
        let mut software = survey.devices.iter().filter(|listed| listed.facts.nature == Nature::Software);
        assert!(software.all(|listed| !listed.asked_for));
        let used = Machine::open(&options);
        assert!(used.devices.iter().all(|device| device.facts().nature == Nature::Hardware));
    }

    #[test]
    fn parts_of_a_card_are_devices_of_their_own_under_one_limit() {
        let memory_limit = "gpu1=256MiB".parse().unwrap();
        let options =
            MachineOptions { gpus: GpuUse::WithSoftware, logical_gpus: 3, memory_limit, ..MachineOptions::default() };
        let machine = Machine::open(&options);
        let names: Vec<String> = machine.names.iter().map(DeviceName::to_string).collect();
        assert_eq!(names[..4], ["cpu", "gpu0", "gpu1", "gpu2"], "{:?}", machine.problems);
        let limits: Vec<_> = machine.devices[1..4].iter().map(|device| device.memory().limit).collect();
        assert_eq!(limits, [Some(Bytes::mib(256)); 3]);
    }
}
