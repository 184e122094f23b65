//! Members: the user's other programs that share the book, and what may be promised to leases beside them.
//! Never reads or writes the book (`server/book.rs` does), and never asks a member for anything: the book's rule does.
//! Invariant: of a device that is in the book no more is promised than the book allots to this daemon.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll::book::{Entry, Seen};
use plimsoll_core::allotment::Standing;
use plimsoll_core::{Bytes, DeviceId, Moment, Priority};

use super::{Broker, Device};
use crate::wire::{Holder, Portion, Sort, Urgency, Waiting};

/// The least that a lease waits although its client does not want to: the book is asked first, which takes a moment.
pub(super) const ALLOTTED_WITHIN_MS: u64 = 250;
/// The share of what nobody was allotted that is kept at hand.
const AT_HAND: f64 = 0.5;
/// Members that are named in a sentence.
const NAMED_MAX: usize = 3;

/// What the book says of others, as it was last read.
#[derive(Clone, Debug, Default)]
pub(super) struct Members {
    /// The daemon is a member itself.
    is_joined: bool,
    others: Vec<Entry>,
}

impl Broker {
    /// From now on devices that are in the book are promised as far as it allots them.
    pub fn join_book(&mut self, now: Moment) {
        self.members.is_joined = true;
        for (device, _) in self.in_book() {
            // What an earlier daemon promised is there already.
            let promised = self.scheduler.ledger().promised(device);
            self.scheduler.set_allotment(now, device, Some(promised));
        }
    }

    pub(super) fn is_in_book(&self) -> bool {
        self.members.is_joined
    }

    /// Devices of the book, with their names in it.
    pub fn in_book(&self) -> Vec<(DeviceId, String)> {
        let named = self.devices.iter().filter_map(|device| Some((device.id, device.truth.in_book.clone()?)));
        named.filter(|_| self.members.is_joined).collect()
    }

    /// What these devices are called in the book, if the daemon is in it.
    pub(super) fn places(&self, devices: &[DeviceId]) -> Vec<String> {
        self.in_book().into_iter().filter(|(device, _)| devices.contains(device)).map(|(_, name)| name).collect()
    }

    /// Where the daemon stands on a device: what leases use is its own, and everybody else's is others'.
    pub fn stand(&mut self, device: DeviceId) -> Seen {
        let standing = self.scheduler.standing(device);
        let strangers = self.scheduler.strangers_on(device);
        let known = self.devices.iter().find(|each| each.id == device);
        let used = known.map_or(Bytes::ZERO, |known| known.truth.capacity - known.truth.free);
        Seen {
            // It never rests: who asks next should not have to wait for the book.
            standing: Standing { ours: used - strangers, strangers, urgency: Some(Priority::Background), ..standing },
            allotment: self.scheduler.ledger().allotment(device),
            wanted: self.scheduler.wanted_allotment(device).or_else(|| self.wanted_at_hand(known?)),
        }
    }

    /// While nobody else wants any of it, half of what nobody was allotted is kept at hand for who asks next.
    fn wanted_at_hand(&self, device: &Device) -> Option<(Bytes, Priority)> {
        let figures = self.figures(device);
        let (promised, allotted) = (self.scheduler.ledger().promised(device.id), self.allotted(device.id));
        let unallotted = figures.line - (figures.members + allotted);
        let is_contended = self.members_on(device).any(|entry| entry.wanted.is_some());
        let is_short = allotted - promised < unallotted.share(AT_HAND / 2.0);
        (is_short && !is_contended).then(|| (allotted + unallotted.share(AT_HAND), Priority::Background))
    }

    /// No more than this is promised from now on; holders less urgent than this are asked to step down.
    pub fn lower(&mut self, now: Moment, device: DeviceId, line: Bytes, recall: Option<Priority>) {
        let line = self.scheduler.ledger().allotment(device).map_or(line, |allotment| allotment.min(line));
        self.scheduler.set_allotment(now, device, Some(line));
        if let Some(priority) = recall {
            self.scheduler.step_down_for_others(now, device, priority);
        }
        self.hear(now);
    }

    /// The book allots so much, or cannot be used: then what is free may be promised.
    pub fn allot(&mut self, now: Moment, device: DeviceId, line: Option<Bytes>) {
        self.scheduler.set_allotment(now, device, line);
        self.hear(now);
    }

    /// What may be promised of a device, or is.
    pub fn allotted(&self, device: DeviceId) -> Bytes {
        let ledger = self.scheduler.ledger();
        ledger.allotment(device).unwrap_or_default().max(ledger.promised(device))
    }

    /// Whether more is wanted than the book allots, since this was last asked.
    pub fn wants_allotment(&mut self) -> bool {
        !self.scheduler.drain_wants().is_empty()
    }

    /// What others have in the book.
    pub fn set_members(&mut self, others: Vec<Entry>) {
        self.members.others = others;
    }

    fn members_on<'a>(&'a self, device: &'a Device) -> impl Iterator<Item = &'a Entry> {
        let is_on = move |entry: &&Entry| device.truth.in_book.as_ref().is_some_and(|name| *name == entry.device);
        self.members.others.iter().filter(is_on)
    }

    /// What other members may promise of a device.
    pub(super) fn allotted_to_members(&self, device: &Device) -> Bytes {
        self.members_on(device).map(|entry| entry.allotted).sum()
    }

    /// What of a device's use is members', as far as they or the driver say.
    pub(super) fn used_by_members(&self, device: &Device) -> Bytes {
        let said: Bytes = self.members_on(device).map(|entry| entry.in_use_now).sum();
        let seen: Bytes = device.used_by_members.values().copied().sum();
        let used = if device.used.is_some() { seen } else { said };
        used.min(self.scheduler.strangers_on(device.id))
    }

    /// Processes of members on a device.
    pub(super) fn member_processes(&self, device: &Device) -> BTreeSet<u32> {
        self.members_on(device).map(|entry| entry.member.pid).collect()
    }

    /// Other programs of the user that share a device: one for each process.
    pub(super) fn members_of<'a>(&'a self, device: &'a Device) -> impl Iterator<Item = Holder> + 'a {
        let mut by_process: BTreeMap<u32, (&str, Bytes)> = BTreeMap::new();
        for entry in self.members_on(device) {
            let (_, allotted) = by_process.entry(entry.member.pid).or_insert((&entry.program, Bytes::ZERO));
            *allotted += entry.allotted;
        }
        by_process.into_iter().map(|(pid, (program, allotted))| {
            let used = device.used.as_ref().map(|_| device.used_by_members.get(&pid).map_or(0, |bytes| bytes.0));
            Holder {
                sort: Sort::Member,
                name: program.to_owned(),
                pid: Some(pid),
                portions: vec![Portion { device: device.truth.name.clone(), promised: allotted.0, used }],
                quality: 1.0,
                recommended: 1.0,
                ..Holder::default()
            }
        })
    }

    /// Members that want more of a device than they were allotted.
    pub(super) fn members_waiting(&self) -> impl Iterator<Item = Waiting> {
        let waits = |device: &Device, entry: &Entry| {
            let want = entry.wanted?;
            let reason =
                format!("it may promise {} of {}, and wants {}", entry.allotted, device.truth.name, want.bytes);
            Some(Waiting {
                name: entry.program.clone(),
                pid: Some(entry.member.pid),
                priority: urgency(want.priority),
                bytes: (want.bytes - entry.allotted).0,
                devices: vec![device.truth.name.clone()],
                since_ms: want.since.0 / 1_000_000,
                reason,
                ..Waiting::default()
            })
        };
        self.devices
            .iter()
            .flat_map(move |device| self.members_on(device).filter_map(move |entry| waits(device, entry)))
    }

    /// Who of the user's other programs has what a lease would need, if the book is why it waits.
    pub(super) fn members_in_the_way(&self, device: DeviceId) -> Option<String> {
        let known = self.devices.iter().find(|each| each.id == device)?;
        let allotted = self.allotted_to_members(known);
        if !self.scheduler.ledger().is_capped(device) || allotted == Bytes::ZERO {
            return None;
        }
        let holders = self.members_of(known).filter(|holder| holder.portions[0].promised > 0).take(NAMED_MAX);
        let named = holders.map(|holder| format!("{} ({})", holder.name, Bytes(holder.portions[0].promised)));
        Some(named.collect::<Vec<_>>().join(", "))
    }
}

fn urgency(priority: Priority) -> Urgency {
    match priority {
        Priority::Background => Urgency::Background,
        Priority::Low => Urgency::Low,
        Priority::Normal => Urgency::Normal,
        Priority::High => Urgency::High,
        Priority::Critical => Urgency::Critical,
    }
}
