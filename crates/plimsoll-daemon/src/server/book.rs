//! The daemon as a member of the book: a thread that keeps its entries, so that leases and the user's other programs stay
//! below the line together, by the book's one rule.
//! Never decides anything (`plimsoll_core::allotment` does), and never lets the broker wait for a file.
//! Invariant: leases are promised no more than the book says that this daemon was allotted (`Membership`).

use std::time::Duration;
use std::{io, thread};

use plimsoll::book::{Book, Entry, Membership, Promiser, Seen, Waker, Warning};
use plimsoll_core::{Bytes, DeviceId, Priority};

use super::Handle;
use crate::process::Process;

/// How often the book is looked at although nobody wakes it: people want to see who is in it.
const LOOK: Duration = Duration::from_millis(500);

/// Starts the thread; what wakes it when more is wanted.
pub(super) fn start(handle: Handle, book: &Book) -> io::Result<Waker> {
    let mut membership = Membership::new(book, Leases { handle, this: Process::this() });
    let waker = membership.member().waker();
    thread::Builder::new().name("plimsoll-book".to_owned()).spawn(move || {
        while membership.add_devices() {
            let nap = membership.look();
            membership.member().wait(Some(nap.map_or(LOOK, |nap| nap.min(LOOK))));
        }
    })?;
    Ok(waker)
}

/// The daemon's leases, as the book knows them. A daemon that is ending answers nothing, and nothing is kept then.
struct Leases {
    handle: Handle,
    this: Process,
}

trait AddDevices {
    /// Devices that drivers told of since. Nothing if the daemon is ending.
    fn add_devices(&mut self) -> bool;
}

impl AddDevices for Membership<Leases> {
    fn add_devices(&mut self) -> bool {
        let Ok(devices) = self.promiser().handle.with_blocking(|broker, _| broker.in_book()) else { return false };
        for (device, name) in devices {
            if !self.has(device) {
                self.add(device, name, u64::from(device.0), false);
            }
        }
        true
    }
}

impl Promiser for Leases {
    fn stand(&mut self, device: DeviceId) -> Seen {
        self.handle.with_blocking(move |broker, _| broker.stand(device)).unwrap_or_default()
    }

    fn lower(&mut self, device: DeviceId, line: Bytes, _idle: Bytes, recall: Option<Priority>) {
        let _ = self.handle.with_blocking(move |broker, now| broker.lower(now, device, line, recall));
    }

    fn allotted(&mut self, device: DeviceId) -> Bytes {
        self.handle.with_blocking(move |broker, _| broker.allotted(device)).unwrap_or_default()
    }

    fn raise(&mut self, device: DeviceId, line: Bytes) {
        let _ = self.handle.with_blocking(move |broker, now| broker.allot(now, device, Some(line)));
    }

    fn go_alone(&mut self, device: DeviceId) {
        let _ = self.handle.with_blocking(move |broker, now| {
            broker.set_members(Vec::new());
            broker.allot(now, device, None);
        });
    }

    fn saw(&mut self, entries: &[Entry]) {
        let is_own = |entry: &Entry| (entry.member.pid, entry.member.started) == (self.this.pid, self.this.started);
        let others: Vec<Entry> = entries.iter().filter(|entry| !is_own(entry)).cloned().collect();
        let _ = self.handle.with_blocking(move |broker, _| broker.set_members(others));
    }

    fn warned(&mut self, warning: Option<Warning>) {
        let warning = warning.map(|warning| warning.to_string());
        let _ = self.handle.with_blocking(move |broker, now| broker.warn(now, "book", warning));
    }
}
