//! Readings: what drivers say of each device, and who uses more than was promised.
//! Never asks a driver: readings are facts that are handed in.
//! Invariant: what a process uses of a device is counted for the lease of the nearest process above it that has one there;
//! if none has, it is a member's of the book, or a stranger's.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use plimsoll_core::line::{Margin, Memory};
use plimsoll_core::scheduler::DeviceSpec;
use plimsoll_core::{Bytes, DeviceId, DeviceKind, GrantOwner, Moment, Nanos};

use super::show::Figures;
use super::{About, Broker, Device, Lease, Readings, SAMPLES_MAX};
use crate::truth::{DeviceTruth, ProcessUse};
use crate::wire::{LeaseId, Sample, Say};

/// Programs without a lease that are shown of one device: the largest.
const STRANGERS_MAX: usize = 16;
/// A stranger is worth an event from this part of a device on.
const STRANGER_PART: u64 = 20;
/// What a holder may use beyond its promise before it is told: drivers round up.
const OVER_PART: u64 = 64;
/// Samples are at least so far apart.
const SAMPLE_EVERY: Nanos = Nanos::seconds(1);

/// A program without a lease.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Stranger {
    pub(super) pid: u32,
    pub(super) name: String,
    pub(super) bytes: Bytes,
}

/// What each process that has a lease uses of a device, and who else is there.
struct Attributed {
    programs: BTreeMap<u32, Bytes>,
    members: BTreeMap<u32, Bytes>,
    strangers: Vec<Stranger>,
}

impl Broker {
    /// These devices are about to be read.
    pub fn reading_begins(&mut self, names: &[String]) {
        for device in self.devices.iter_mut().filter(|device| names.contains(&device.truth.name)) {
            device.readings.begun += 1;
            self.scheduler.memory_reading_begins(device.id);
        }
    }

    /// Makes devices known, as if nobody used them: what was promised by an earlier daemon is adopted before they are read.
    pub fn add_devices(&mut self, now: Moment, truths: &[DeviceTruth]) {
        for truth in truths {
            if self.devices.iter().all(|device| device.truth.name != truth.name) {
                self.add_device(now, truth);
            }
        }
    }

    fn add_device(&mut self, now: Moment, truth: &DeviceTruth) {
        if self.devices.len() >= plimsoll_core::DeviceSet::LIMIT {
            return;
        }
        // Where there is no screen nothing is left to it.
        let usual = if truth.kind == DeviceKind::Gpu { self.settings.reserve } else { Bytes::ZERO };
        let reserve = self.settings.reserves.get(&truth.name).copied().unwrap_or(usual);
        let margin = self.margin(truth, reserve);
        let id = self.scheduler.add_device(DeviceSpec { margin, ..DeviceSpec::new(truth.kind, 1, truth.capacity) });
        if self.is_in_book() && truth.in_book.is_some() {
            self.scheduler.set_allotment(now, id, Some(Bytes::ZERO));
        }
        let (samples, used, strangers) = (VecDeque::new(), None, Vec::new());
        let used_by_members = BTreeMap::new();
        let (truth, sampled, readings) = (truth.clone(), None, Readings::default());
        self.devices.push(Device { id, truth, reserve, samples, sampled, readings, used, used_by_members, strangers });
    }

    /// Strangers may grow into the reserve without disturbing anybody.
    fn margin(&self, truth: &DeviceTruth, reserve: Bytes) -> Margin {
        let limit = (reserve > Bytes::ZERO).then_some(truth.capacity - reserve);
        Margin { share: self.settings.margin, limit }
    }

    /// Devices were read.
    pub fn read(&mut self, now: Moment, truths: Vec<DeviceTruth>) {
        self.add_devices(now, &truths);
        self.adopt_what_waits(now);
        for truth in truths {
            let found = self.devices.iter().position(|device| device.truth.name == truth.name);
            if let Some(at) = found {
                self.read_device(now, at, truth);
            }
        }
        self.hear(now);
    }

    fn read_device(&mut self, now: Moment, at: usize, truth: DeviceTruth) {
        let (id, reserve) = (self.devices[at].id, self.devices[at].reserve);
        if truth.capacity != self.devices[at].truth.capacity {
            self.scheduler.set_margin(id, self.margin(&truth, reserve));
        }
        let memory = Memory { capacity: truth.capacity, free: truth.free.min(truth.capacity), ..Memory::default() };
        match truth.processes.as_deref().map(|processes| self.attribute(at, processes)) {
            Some(attributed) => self.read_by_process(now, at, memory, attributed),
            None => {
                self.devices[at].used = None;
                self.devices[at].used_by_members.clear();
                self.devices[at].strangers.clear();
                self.scheduler.set_memory(now, id, memory);
            }
        }
        self.devices[at].truth = truth;
        self.devices[at].readings.ended = self.devices[at].readings.begun;
        self.sample(now, at);
    }

    fn read_by_process(&mut self, now: Moment, at: usize, memory: Memory, attributed: Attributed) {
        let id = self.devices[at].id;
        let owner = |pid: &u32| GrantOwner::Program(u64::from(*pid));
        let used: Vec<_> = attributed.programs.iter().map(|(pid, bytes)| (owner(pid), *bytes)).collect();
        // What a lease without a known process uses cannot be told from strangers': there the sum has to do.
        match self.unknown_on(id) {
            Some(_) => self.scheduler.set_memory(now, id, memory),
            None => self.scheduler.set_memory_by_owner(now, id, memory, &used),
        }
        let shares = self.shares(id, &attributed.programs);
        self.tell_who_is_over(now, at, &shares);
        self.devices[at].used = Some(shares);
        self.devices[at].used_by_members = attributed.members;
        self.meet_strangers(now, at, attributed.strangers);
    }

    fn all(&self) -> impl Iterator<Item = (LeaseId, &Lease)> {
        let returning = self.returning.values().map(|(id, lease)| (*id, lease));
        self.leases.iter().chain(returning)
    }

    /// A lease on a device that nobody knows the process of.
    pub(super) fn unknown_on(&self, device: DeviceId) -> Option<&Lease> {
        let is_unknown = |lease: &&Lease| lease.process.is_none() && self.promised(lease, device) > Bytes::ZERO;
        self.all().map(|(_, lease)| lease).find(is_unknown)
    }

    /// What a lease is promised of a device, with what it has given back and nobody knows to be free.
    pub(super) fn promised(&self, lease: &Lease, device: DeviceId) -> Bytes {
        self.scheduler.promised_to_grant(lease.grant, device)
    }

    /// Whose use is whose: the nearest process with a lease on the device, upwards; or a member's of the book.
    fn attribute(&self, at: usize, processes: &[ProcessUse]) -> Attributed {
        let device = self.devices[at].id;
        let members = self.member_processes(&self.devices[at]);
        let pids = |is_meant: &dyn Fn(&Lease) -> bool| -> BTreeSet<u32> {
            let meant = self.all().filter(|(_, lease)| is_meant(lease));
            meant.filter_map(|(_, lease)| lease.process).map(|process| process.pid).collect()
        };
        let here = pids(&|lease| self.promised(lease, device) > Bytes::ZERO);
        let anywhere = pids(&|_| true);
        let mut attributed = Attributed { programs: BTreeMap::new(), members: BTreeMap::new(), strangers: Vec::new() };
        for each in processes {
            let line = || std::iter::once(each.pid).chain(each.ancestors.iter().copied());
            if let Some(program) = line().find(|pid| here.contains(pid)) {
                *attributed.programs.entry(program).or_default() += each.bytes;
                continue;
            }
            if members.contains(&each.pid) {
                attributed.members.insert(each.pid, each.bytes);
                continue;
            }
            // What it is promised elsewhere, or waits for, is no lease for this. The core is told whose it is all the same:
            // once it has a lease here, this is its own.
            if let Some(program) = line().find(|pid| anywhere.contains(pid)) {
                *attributed.programs.entry(program).or_default() += each.bytes;
            }
            attributed.strangers.push(Stranger { pid: each.pid, name: each.name.clone(), bytes: each.bytes });
        }
        attributed.strangers.sort_by_key(|stranger| std::cmp::Reverse(stranger.bytes));
        attributed.strangers.truncate(STRANGERS_MAX);
        attributed
    }

    /// What each lease uses. A process with several fills one after the other; what is beyond all of them is the last's.
    fn shares(&self, device: DeviceId, programs: &BTreeMap<u32, Bytes>) -> BTreeMap<LeaseId, Bytes> {
        let mut left = programs.clone();
        let mut shares = BTreeMap::new();
        let mut last: BTreeMap<u32, LeaseId> = BTreeMap::new();
        for (id, lease) in self.all() {
            let promised = self.promised(lease, device);
            let Some(pid) = lease.process.map(|process| process.pid).filter(|_| promised > Bytes::ZERO) else {
                continue;
            };
            let left = left.entry(pid).or_default();
            let share = promised.min(*left);
            *left -= share;
            shares.insert(id, share);
            last.insert(pid, id);
        }
        for (pid, id) in last {
            *shares.entry(id).or_default() += left.get(&pid).copied().unwrap_or_default();
        }
        shares
    }

    fn tell_who_is_over(&mut self, now: Moment, at: usize, shares: &BTreeMap<LeaseId, Bytes>) {
        let device = self.devices[at].id;
        let name = self.devices[at].truth.name.clone();
        for (id, used) in shares {
            let Some(promised) = self.leases.get(id).map(|lease| self.promised(lease, device)) else { continue };
            let is_over = *used > promised + Bytes(promised.0 / OVER_PART);
            let told = self.leases.change(id, |lease| std::mem::replace(&mut lease.told_over, is_over));
            let Some(lease) = self.leases.get(id) else { continue };
            if is_over && told == Some(false) {
                let text = format!(
                    "{} uses {used} of {name}, and was promised {promised}: what is beyond counts as a stranger's",
                    lease.request.name
                );
                let about = About { bytes: Some(used.0), ..About::lease("over", *id, lease, text) };
                self.note(now, About { device: Some(name.clone()), ..about });
                self.tell(*id, Say::Over { lease: *id, device: name.clone(), promised: promised.0, used: used.0 });
            }
        }
    }

    /// Programs that have just come and take a good part of the device.
    fn meet_strangers(&mut self, now: Moment, at: usize, strangers: Vec<Stranger>) {
        let known: BTreeSet<u32> = self.devices[at].strangers.iter().map(|stranger| stranger.pid).collect();
        let (name, part) =
            (self.devices[at].truth.name.clone(), Bytes(self.devices[at].truth.capacity.0 / STRANGER_PART));
        for stranger in strangers.iter().filter(|each| each.bytes > part && !known.contains(&each.pid)) {
            let Stranger { pid, name: program, bytes } = stranger;
            let text = format!("{program} (process {pid}) uses {bytes} of {name} without a lease");
            let (device, bytes, name) = (Some(name.clone()), Some(bytes.0), program.clone());
            self.note(now, About { device, bytes, name, text, ..About::of("stranger") });
        }
        self.devices[at].strangers = strangers;
    }

    fn sample(&mut self, now: Moment, at: usize) {
        let at_ms = self.wall_ms(now);
        let device = &self.devices[at];
        if device.sampled.is_some_and(|last| now.since(last) < SAMPLE_EVERY) {
            return;
        }
        let Figures { line, promised, used, strangers, .. } = self.figures(device);
        let [line, promised, used, strangers] = [line, promised, used, strangers].map(|bytes| bytes.0);
        let sample = Sample { at_ms, line, promised, used, strangers };
        self.devices[at].sampled = Some(now);
        let samples = &mut self.devices[at].samples;
        if samples.len() == SAMPLES_MAX {
            samples.pop_front();
        }
        samples.push_back(sample);
    }
}
