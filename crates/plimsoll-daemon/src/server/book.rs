//! The daemon as a member of the book: a thread that keeps its entries, so that leases and the user's other programs stay
//! below the line together, by the book's one rule.
//! Never decides anything (`plimsoll_core::allotment` does), and never lets the broker wait for a file.
//! Invariant: leases are promised no more than the book says that this daemon was allotted (`Membership`).

use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io, thread};

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

/// What a member is called in lists. Several of our own program run at once as a rule, and what tells them apart is the command
/// they were started with.
fn called(program: &str, pid: u32) -> String {
    let own = std::env::args_os().next().map(PathBuf::from);
    let is_own = own.as_deref().and_then(Path::file_name).is_some_and(|own| own == program);
    let command = is_own.then(|| fs::read(format!("/proc/{pid}/cmdline")).ok()).flatten();
    match command.as_deref().and_then(first_word) {
        Some(word) => format!("{program} {word}"),
        None => program.to_owned(),
    }
}

/// The first argument of a command line as the kernel gives it, if it is the name of a command.
fn first_word(line: &[u8]) -> Option<&str> {
    let word = str::from_utf8(line.split(|byte| *byte == 0).nth(1)?).ok()?;
    (!word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')).then_some(word)
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
        let mut others: Vec<Entry> = entries.iter().filter(|entry| !is_own(entry)).cloned().collect();
        others.iter_mut().for_each(|entry| entry.program = called(&entry.program, entry.member.pid));
        let _ = self.handle.with_blocking(move |broker, _| broker.set_members(others));
    }

    fn warned(&mut self, warning: Option<Warning>) {
        let warning = warning.map(|warning| warning.to_string());
        let _ = self.handle.with_blocking(move |broker, now| broker.warn(now, "book", warning));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_of_our_own_program_are_told_apart() {
        assert_eq!(first_word(b"/usr/bin/plimsoll\0score\0-m\0ssim2\0"), Some("score"));
        for other in [b"plimsoll\0".as_slice(), b"plimsoll\0/somebody/secret\0", b"plimsoll\0-x\x1b\0", b""] {
            assert_eq!(first_word(other), None, "{}", String::from_utf8_lossy(other));
        }
        assert_eq!(called("python", std::process::id()), "python", "others are called what they call themselves");
    }
}
