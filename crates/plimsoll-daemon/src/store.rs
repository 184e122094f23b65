//! The daemon's books on disk: which leases there are, for the next daemon, and what happened.
//! Never stops the daemon: a disk that is full is a warning, and the books in memory go on.
//! Invariants: a line that was cut by a kill is left out and nothing else; a lease's number is never given out again; both
//! files stay below a limit whatever happens.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::broker::StoredLease;
use crate::folder::{private, write_whole};
use crate::wire::{Event, LeaseId};

/// Lines of the journal that are no longer of use before it is written anew.
const DEAD_MAX: usize = 4_096;
/// Numbers of leases that are set aside at once: so many are lost at the most if the daemon is killed.
const NUMBERS_AHEAD: u64 = 1_024;
/// Bytes of an event file before the next one is begun. There are two.
const EVENTS_BYTES_MAX: u64 = 4 << 20;
/// Events that are tried first after a write has failed: a full disk is asked often, and mostly in vain.
const EVENTS_AGAIN: usize = 16;
/// Bytes of one line that are read back.
const LINE_MAX: u64 = 1 << 20;

/// One line of the journal.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Entry {
    /// Numbers below this may have been given out.
    Next(u64),
    /// A lease as it stands.
    Lease(Box<StoredLease>),
    /// A lease is over.
    Ended(LeaseId),
}

/// The journal of leases.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: Option<File>,
    live: BTreeMap<LeaseId, StoredLease>,
    /// Numbers below this are set aside.
    next: u64,
    dead: usize,
}

impl Journal {
    /// Reads what an earlier daemon left, and begins anew with it.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn open(path: &Path) -> io::Result<(Self, Vec<StoredLease>, u64)> {
        let (mut live, mut next) = (BTreeMap::new(), 1);
        for entry in lines(path)?.filter_map(|line| serde_json::from_str(&line).ok()) {
            match entry {
                Entry::Next(number) => next = next.max(number),
                Entry::Lease(lease) => drop(live.insert(lease.id, *lease)),
                Entry::Ended(id) => drop(live.remove(&id)),
            }
        }
        next = live.keys().next_back().map_or(next, |last| next.max(last.0 + 1));
        let leases = live.values().cloned().collect();
        let mut journal = Self { path: path.to_owned(), file: None, live, next, dead: 0 };
        journal.rewrite()?;
        Ok((journal, leases, next))
    }

    /// Writes down what changed, and that numbers below `next` are given out.
    ///
    /// # Errors
    /// Why it could not; the next call tries all of it again.
    pub fn write(&mut self, changed: Vec<(LeaseId, Option<StoredLease>)>, next: u64) -> io::Result<()> {
        let mut lines = Vec::new();
        if next >= self.next {
            self.next = next + NUMBERS_AHEAD;
            lines.extend(line(&Entry::Next(self.next)));
        }
        for (id, lease) in changed {
            match lease {
                Some(lease) => {
                    lines.extend(line(&Entry::Lease(Box::new(lease.clone()))));
                    self.dead += usize::from(self.live.insert(id, lease).is_some());
                }
                None if self.live.remove(&id).is_some() => {
                    lines.extend(line(&Entry::Ended(id)));
                    self.dead += 2;
                }
                None => {}
            }
        }
        if lines.is_empty() && self.file.is_some() {
            return Ok(());
        }
        match &mut self.file {
            Some(file) if self.dead <= DEAD_MAX => {
                let written = file.write_all(&lines);
                if written.is_err() {
                    // A part of a line may be there: it is written anew, whole.
                    self.file = None;
                }
                written
            }
            _ => self.rewrite(),
        }
    }

    fn rewrite(&mut self) -> io::Result<()> {
        let mut lines = line(&Entry::Next(self.next));
        for lease in self.live.values() {
            lines.extend(line(&Entry::Lease(Box::new(lease.clone()))));
        }
        self.file = None;
        write_whole(&self.path, &lines)?;
        self.file = Some(private().append(true).open(&self.path)?);
        self.dead = 0;
        Ok(())
    }
}

fn line(entry: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(entry).unwrap_or_default();
    line.push(b'\n');
    line
}

/// The lines of a file that are whole and of a bearable length; none if it is not there.
fn lines(path: &Path) -> io::Result<impl Iterator<Item = String>> {
    let file = match File::open(path) {
        Ok(file) => Some(BufReader::new(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let mut file = file;
    Ok(std::iter::from_fn(move || {
        let mut line = Vec::new();
        let read = file.as_mut()?.take(LINE_MAX).read_until(b'\n', &mut line).unwrap_or(0);
        (read > 0).then(|| String::from_utf8_lossy(&line).into_owned())
    }))
}

/// What happened, on disk.
#[derive(Debug)]
pub struct EventFile {
    path: PathBuf,
    file: Option<File>,
    /// All lines in the file are whole up to here.
    bytes: u64,
    /// The last event that was written.
    written: u64,
    /// The last write failed: those events are still to be written.
    is_behind: bool,
}

impl EventFile {
    /// Reads what is kept, oldest first.
    ///
    /// # Errors
    /// The files cannot be read or written.
    pub fn open(path: &Path) -> io::Result<(Self, Vec<Event>)> {
        let mut events: Vec<Event> = Vec::new();
        for path in [older(path), path.to_owned()] {
            events.extend(lines(&path)?.filter_map(|line| serde_json::from_str::<Event>(&line).ok()));
        }
        events.sort_by_key(|event| event.id);
        events.dedup_by_key(|event| event.id);
        let mut file = private().append(true).create(true).open(path)?;
        // A line that a kill has cut ends here.
        file.write_all(b"\n")?;
        let bytes = file.metadata()?.len();
        let written = events.last().map_or(0, |event| event.id);
        Ok((Self { path: path.to_owned(), file: Some(file), bytes, written, is_behind: false }, events))
    }

    /// Writes events that are not yet written.
    ///
    /// # Errors
    /// Why it could not; the next call tries them again.
    pub fn write<'a>(&mut self, events: impl Iterator<Item = &'a Event>) -> io::Result<()> {
        let before = self.written;
        let mut events = events.filter(|event| event.id > before);
        if self.is_behind {
            self.write_lines(events.by_ref().take(EVENTS_AGAIN))?;
        }
        self.write_lines(events)
    }

    fn write_lines<'a>(&mut self, events: impl Iterator<Item = &'a Event>) -> io::Result<()> {
        let (mut bytes, mut last) = (Vec::new(), self.written);
        for event in events {
            bytes.extend(line(event));
            last = event.id;
        }
        if bytes.is_empty() {
            return Ok(());
        }
        let written = self.append(&bytes);
        self.is_behind = written.is_err();
        if written.is_ok() {
            self.written = last;
        }
        written
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.bytes > EVENTS_BYTES_MAX {
            self.begin_the_next()?;
        }
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(private().append(true).create(true).open(&self.path)?),
        };
        let written = file.write_all(bytes);
        match written {
            Ok(()) => self.bytes += bytes.len() as u64,
            Err(_) => self.take_back(),
        }
        written
    }

    /// A part of what could not be written may be there: the next line must not begin in the middle of one.
    fn take_back(&mut self) {
        if let Some(file) = &self.file {
            let _ = file.set_len(self.bytes);
        }
    }

    fn begin_the_next(&mut self) -> io::Result<()> {
        self.file = None;
        match std::fs::rename(&self.path, older(&self.path)) {
            // It was moved before, and the next one could not be made.
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        self.file = Some(private().append(true).create(true).open(&self.path)?);
        self.bytes = 0;
        Ok(())
    }

    /// The last event that was written.
    pub fn written(&self) -> u64 {
        self.written
    }
}

fn older(path: &Path) -> PathBuf {
    path.with_extension("older.jsonl")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::broker::StoredOwner;
    use crate::wire::LeaseRequest;

    fn lease(id: u64) -> StoredLease {
        let request: LeaseRequest =
            serde_json::from_str(r#"{"name":"a","ladder":[{"bytes":5}],"devices":["gpu0"]}"#).unwrap();
        let (process, secret) = (None, "s".to_owned());
        let devices = vec!["gpu0".to_owned()];
        StoredLease {
            id: LeaseId(id),
            request,
            rung: 0,
            devices,
            owner: StoredOwner::Http,
            process,
            is_attached: false,
            secret,
        }
    }

    fn ids(leases: &[StoredLease]) -> Vec<u64> {
        leases.iter().map(|lease| lease.id.0).collect()
    }

    #[test]
    fn the_next_daemon_knows_what_is_live_and_uses_no_number_twice() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("leases.jsonl");
        let (mut journal, leases, next) = Journal::open(&path).unwrap();
        assert_eq!((leases.len(), next), (0, 1));
        journal.write(vec![(LeaseId(1), Some(lease(1))), (LeaseId(2), Some(lease(2)))], 3).unwrap();
        journal.write(vec![(LeaseId(1), None)], 3).unwrap();
        let (_, leases, next) = Journal::open(&path).unwrap();
        assert_eq!(ids(&leases), [2]);
        assert!(next > 2, "{next}");
    }

    #[test]
    fn a_line_cut_by_a_kill_costs_itself_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("leases.jsonl");
        let (mut journal, ..) = Journal::open(&path).unwrap();
        journal.write(vec![(LeaseId(1), Some(lease(1)))], 2).unwrap();
        journal.write(vec![(LeaseId(2), Some(lease(2)))], 3).unwrap();
        let whole = fs::read(&path).unwrap();
        for cut in 0..whole.len() {
            fs::write(&path, &whole[..cut]).unwrap();
            let (_, leases, next) = Journal::open(&path).unwrap();
            assert!(ids(&leases) == [1; 0] || ids(&leases) == [1] || ids(&leases) == [1, 2], "cut at {cut}");
            assert!(leases.iter().all(|lease| lease.id.0 < next));
        }
        fs::write(&path, [&whole[..], b"{\"lease\":{}}\n\xff\xfe\n"].concat()).unwrap();
        assert_eq!(ids(&Journal::open(&path).unwrap().1), [1, 2]);
    }

    #[test]
    fn the_journal_stays_small() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("leases.jsonl");
        let (mut journal, ..) = Journal::open(&path).unwrap();
        for id in 1..20_000 {
            journal.write(vec![(LeaseId(id), Some(lease(id)))], id + 1).unwrap();
            journal.write(vec![(LeaseId(id), None)], id + 1).unwrap();
        }
        let lines = fs::read_to_string(&path).unwrap().lines().count();
        assert!(lines < DEAD_MAX * 2, "{lines} lines");
        assert!(Journal::open(&path).unwrap().2 >= 20_000);
    }

    #[test]
    fn events_survive_and_their_files_stay_small() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events.jsonl");
        let text = "x".repeat(1_000);
        let event = |id| Event { id, text: text.clone(), ..Event::default() };
        let (mut file, kept) = EventFile::open(&path).unwrap();
        assert!(kept.is_empty());
        for id in 1..12_000 {
            file.write([&event(id)].into_iter()).unwrap();
        }
        drop(file);
        let size: u64 =
            fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).sum();
        assert!(size <= 2 * (EVENTS_BYTES_MAX + 4_096), "{size} bytes");
        let (file, kept) = EventFile::open(&path).unwrap();
        assert_eq!(file.written(), 11_999);
        assert!(kept.len() > 3_000 && kept.windows(2).all(|pair| pair[0].id + 1 == pair[1].id));
    }

    fn ids_in(path: &Path) -> Vec<u64> {
        let text = fs::read_to_string(path).unwrap();
        let lines = text.lines().filter(|line| !line.is_empty());
        lines
            .map(|line| serde_json::from_str::<Event>(line).unwrap_or_else(|error| panic!("{error}: {line}")).id)
            .collect()
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_journal_that_could_not_be_written_is_written_anew_although_nothing_changes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("leases.jsonl");
        let (mut journal, ..) = Journal::open(&path).unwrap();
        journal.file = Some(private().append(true).open("/dev/full").unwrap());
        let error = journal.write(vec![(LeaseId(1), Some(lease(1)))], 2).expect_err("it is full");
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        journal.write(Vec::new(), 2).unwrap();
        assert_eq!(ids(&Journal::open(&path).unwrap().1), [1]);
    }

    /// `/dev/full` is a disk without space.
    #[cfg(target_os = "linux")]
    #[test]
    fn events_that_could_not_be_written_are_written_when_there_is_space() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events.jsonl");
        let events: Vec<Event> = (1..=100).map(|id| Event { id, ..Event::default() }).collect();
        let since = |file: &EventFile| events[file.written() as usize..].to_vec();
        let (mut file, _) = EventFile::open(&path).unwrap();
        file.write(events[..10].iter()).unwrap();
        file.file = Some(private().append(true).open("/dev/full").unwrap());
        for _ in 0..3 {
            let error = file.write(since(&file).iter()).expect_err("it is full");
            assert_eq!(error.kind(), io::ErrorKind::StorageFull);
            assert_eq!(file.written(), 10, "what is not on disk is not written");
        }
        file.file = None;
        file.write(since(&file).iter()).unwrap();
        assert_eq!(ids_in(&path), (1..=100).collect::<Vec<_>>());
    }

    /// A write that fails in the middle leaves a part of a line: what comes next must not go on with it.
    #[test]
    fn a_part_of_a_line_is_taken_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events.jsonl");
        let (mut file, _) = EventFile::open(&path).unwrap();
        let event = |id| Event { id, ..Event::default() };
        file.write([&event(1)].into_iter()).unwrap();
        let whole = fs::read(&path).unwrap();
        // A file that cannot be written, and can be cut, does not exist: so the part is there already.
        fs::write(&path, [&whole[..], b"{\"id\":2,\"at"].concat()).unwrap();
        file.take_back();
        file.write([&event(2)].into_iter()).unwrap();
        assert_eq!(ids_in(&path), [1, 2]);
    }

    #[test]
    fn a_next_file_that_could_not_be_begun_is_begun_later() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events.jsonl");
        let (mut file, _) = EventFile::open(&path).unwrap();
        let event = |id| Event { id, ..Event::default() };
        file.write([&event(1)].into_iter()).unwrap();
        // As if the old one had been moved, and the disk had had no place for another.
        file.bytes = EVENTS_BYTES_MAX + 1;
        fs::rename(&path, older(&path)).unwrap();
        file.write([&event(2)].into_iter()).unwrap();
        assert_eq!((ids_in(&older(&path)), ids_in(&path)), (vec![1], vec![2]));
    }
}
