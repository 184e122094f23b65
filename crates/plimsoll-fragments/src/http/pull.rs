//! Fetches fragments into a store: once, however many processes ask, and never again what is there.
//! Invariant: it ends. What brings nothing for long enough is an error, and what came stays for the next time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::client::Origin;
use crate::digest::Checksum;
use crate::error::FragmentError;
use crate::file::Model;
use crate::index::Fragment;
use crate::store::{Claim, DiskStore, Part, Wanted};

/// Bytes that are asked for at once at most: what a request can bring in its time even over a slow line.
const RUN_BYTES: u64 = 16 << 20;
/// Requests in a row that bring next to nothing before it is given up.
const FAILURES_MAX: u32 = 4;
/// What a request has to bring, or all that it asked for, to count as progress.
const PROGRESS_BYTES: u64 = 256 << 10;
/// How long it waits for other processes that bring nothing.
const OTHERS_MAX: Duration = Duration::from_secs(120);
/// How often it looks what other processes have fetched.
const LOOK: Duration = Duration::from_millis(20);

/// Follows a pull; cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct PullWatch {
    fetched: Arc<AtomicU64>,
    there: Arc<AtomicU64>,
    is_stopped: Arc<AtomicBool>,
}

impl PullWatch {
    /// Bytes that came over the line.
    pub fn fetched(&self) -> u64 {
        self.fetched.load(Ordering::Relaxed)
    }

    /// Bytes that are there: fetched by this process, by others, or before.
    pub fn there(&self) -> u64 {
        self.there.load(Ordering::Relaxed)
    }

    /// Ends the pull soon; what came stays.
    pub fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
    }

    fn check(&self) -> Result<(), FragmentError> {
        if self.is_stopped.load(Ordering::Relaxed) { Err(FragmentError::Stopped) } else { Ok(()) }
    }
}

/// What a pull did.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Pulled {
    /// Fragments that are wanted.
    pub fragments: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes that this process fetched.
    pub fetched: u64,
}

/// Fetches the index of a model, unless the store knows it.
///
/// # Errors
/// If it cannot be had.
pub fn pull_index(store: &DiskStore, origin: &Origin, watch: &PullWatch) -> Result<Arc<Model>, FragmentError> {
    let (head, address) = (origin.head(), origin.address());
    if let Ok(Some(model)) = store.model(head.index_digest, address) {
        return Ok(model);
    }
    let checksum = Checksum(0);
    let index = Fragment { offset: head.index_offset, bytes: head.index_bytes, digest: head.index_digest, checksum };
    pull(store, origin, &[index], watch)?;
    let bytes = store.read_by_digest(index.digest)?;
    let parsed = head.index(&bytes, address)?;
    store.remember(address, head, &bytes)?;
    Ok(Arc::new(Model { name: address.to_owned(), id: head.index_digest, index: parsed }))
}

/// Fetches fragments of a file.
///
/// # Errors
/// If some cannot be had; those that came stay.
pub fn pull(
    store: &DiskStore,
    origin: &Origin,
    fragments: &[Fragment],
    watch: &PullWatch,
) -> Result<Pulled, FragmentError> {
    let mut pulled = Pulled { fragments: fragments.len() as u64, ..Pulled::default() };
    pulled.bytes = fragments.iter().map(|fragment| fragment.bytes).sum();
    let missing: Vec<Fragment> = fragments.iter().filter(|fragment| !store.has((*fragment).into())).copied().collect();
    let missing_bytes: u64 = missing.iter().map(|fragment| fragment.bytes).sum();
    watch.there.fetch_add(pulled.bytes - missing_bytes, Ordering::Relaxed);
    // All of them, also those that are there: nobody makes room of them while the others come.
    let wanted: Vec<Wanted> = fragments.iter().map(Wanted::from).collect();
    let _room = if missing.is_empty() { None } else { Some(store.reserve(&wanted)?) };
    let before = watch.fetched();
    let mut rest = missing;
    let mut others = Others::default();
    while !rest.is_empty() {
        watch.check()?;
        let left = one_round(store, origin, &rest, watch)?;
        if left.len() == rest.len() {
            others.wait(store, &left)?;
        }
        rest = left;
    }
    pulled.fetched = watch.fetched() - before;
    Ok(pulled)
}

/// Fetches whatever nobody else is fetching. Gives what others are.
fn one_round(
    store: &DiskStore,
    origin: &Origin,
    fragments: &[Fragment],
    watch: &PullWatch,
) -> Result<Vec<Fragment>, FragmentError> {
    let mut busy = Vec::new();
    let mut run = Run::default();
    for fragment in fragments {
        watch.check()?;
        match store.claim(fragment.into())? {
            Claim::There => {
                watch.there.fetch_add(fragment.bytes, Ordering::Relaxed);
            }
            Claim::Busy => busy.push(*fragment),
            Claim::Mine(part) => {
                if !run.takes(fragment, &part) {
                    std::mem::take(&mut run).fetch(origin, watch)?;
                }
                run.parts.push((*fragment, part));
            }
        }
    }
    run.fetch(origin, watch)?;
    Ok(busy)
}

/// Fragments that lie side by side and are fetched by one request.
#[derive(Default)]
struct Run {
    parts: Vec<(Fragment, Part)>,
}

impl Run {
    fn takes(&self, fragment: &Fragment, part: &Part) -> bool {
        let Some((last, _)) = self.parts.last() else { return true };
        let bytes: u64 = self.parts.iter().map(|(_, part)| part.missing()).sum();
        last.end() == fragment.offset && part.have() == 0 && bytes + fragment.bytes <= RUN_BYTES
    }

    /// Fetches all of it, with as many requests as it takes.
    fn fetch(mut self, origin: &Origin, watch: &PullWatch) -> Result<(), FragmentError> {
        let mut failures = 0;
        self.parts.reverse();
        self.commit_whole(watch)?;
        while let Some((fragment, part)) = self.parts.last() {
            watch.check()?;
            let begin = fragment.offset + part.have();
            let bytes: u64 = self.parts.iter().map(|(_, part)| part.missing()).sum();
            let (came, result) = origin.read(begin, bytes, |bytes| {
                watch.check()?;
                watch.fetched.fetch_add(bytes.len() as u64, Ordering::Relaxed);
                self.take(bytes, watch)
            });
            match result {
                Ok(()) => return Ok(()),
                Err(error @ (FragmentError::Server { .. } | FragmentError::Damaged { .. })) => {
                    failures = if came >= PROGRESS_BYTES && matches!(error, FragmentError::Server { .. }) {
                        0
                    } else {
                        failures + 1
                    };
                    if failures >= FAILURES_MAX {
                        return Err(error);
                    }
                    thread::sleep(Duration::from_millis(100 << failures));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The next bytes of the run, into the parts they belong to.
    fn take(&mut self, mut bytes: &[u8], watch: &PullWatch) -> Result<(), FragmentError> {
        while !bytes.is_empty() {
            let Some((_, part)) = self.parts.last_mut() else { return Ok(()) };
            let (now, later) = bytes.split_at(bytes.len().min(part.missing() as usize));
            part.append(now)?;
            watch.there.fetch_add(now.len() as u64, Ordering::Relaxed);
            bytes = later;
            self.commit_whole(watch)?;
        }
        Ok(())
    }

    /// Those in front that are all there get their names.
    fn commit_whole(&mut self, watch: &PullWatch) -> Result<(), FragmentError> {
        while let Some((fragment, part)) = self.parts.last()
            && part.missing() == 0
        {
            let fragment = *fragment;
            let (_, part) = self.parts.pop().expect("it was just seen");
            if let Err(back) = part.commit_or_back() {
                let (error, part) = *back;
                watch.there.fetch_sub(fragment.bytes.min(watch.there()), Ordering::Relaxed);
                self.parts.push((fragment, part));
                return Err(error);
            }
        }
        Ok(())
    }
}

/// What other processes are fetching, and since when nothing of it grew.
#[derive(Default)]
struct Others {
    seen: Option<(u64, Instant)>,
}

impl Others {
    fn wait(&mut self, store: &DiskStore, left: &[Fragment]) -> Result<(), FragmentError> {
        let bytes: u64 = left.iter().map(|fragment| store.fetched_so_far(Wanted::from(fragment))).sum();
        let now = Instant::now();
        match self.seen {
            Some((before, since)) if before == bytes => {
                if now - since > OTHERS_MAX {
                    return Err(FragmentError::Busy {
                        what: format!("{} fragments", left.len()),
                        seconds: OTHERS_MAX.as_secs(),
                    });
                }
            }
            _ => self.seen = Some((bytes, now)),
        }
        thread::sleep(LOOK);
        Ok(())
    }
}
