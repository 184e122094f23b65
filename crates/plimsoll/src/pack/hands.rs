//! A file unpacked into a draft by a few threads of its own, each taking the next piece, for what is unpacked before a scheduler
//! has started. Beside a frame or members that only one of them can unpack, a stream, the others read and write.
//! Never holds more than a piece for each hand, and [`PARTS_MAX`] parts and [`WRITES_MAX`] steps of a stream. Nobody waits but
//! for the pieces before his own, which were taken before it: whoever has the first of them can always go on, and does himself
//! what nobody else has begun.
//! Invariant: it ends as a [`Packer`](super::Packer) does: an error comes once, last, and is that of the first place.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use plimsoll_blocks::UnpackError;
use plimsoll_blocks::draft::{Draft, Placed};
use plimsoll_blocks::pool::{Pool, PooledBytes};
use plimsoll_blocks::scan::{Part, Piece, Scanner, Whole};
use plimsoll_blocks::workloads::{PartUnpacker, Unpacker};
use plimsoll_core::Bytes;

use super::error::PackError;
use super::packer::PackSummary;
use super::small::{caught, check, next};
use super::watch::PackWatch;

/// Steps of a stream that wait to be written. With none free to write them, who unpacks writes.
const WRITES_MAX: usize = 3;

/// Parts of a stream that were read ahead.
const PARTS_MAX: usize = 2;

/// Packed bytes behind the first piece for which another thread is started: that takes as long as to unpack so many.
const WORTH_A_HAND: u64 = 64 << 10;

/// Of a file.
pub(super) type Pieces = Scanner<io::Empty>;

/// What is unpacked, and where it goes.
pub(super) struct Work<'a> {
    pub(super) pool: &'a Pool,
    pub(super) draft: Arc<dyn Draft>,
    pub(super) limit: Option<Bytes>,
    pub(super) watch: &'a PackWatch,
}

/// Unpacks all pieces by so many hands, the caller's thread among them. The others start once there is something for them.
pub(super) fn unpack(hands: usize, pieces: Pieces, work: Work<'_>) -> Result<PackSummary, PackError> {
    let table = Table { work, state: Mutex::new(State::new(pieces)), changed: Condvar::new() };
    thread::scope(|scope| {
        let first = table.job();
        let others = if table.has_work_beside(first.as_ref()) { 1..hands } else { 0..0 };
        for _ in others {
            let hand = thread::Builder::new().name("plimsoll-hand".to_owned());
            // What is not started leaves more to the others.
            let _ = hand.spawn_scoped(scope, || table.work(table.job()));
        }
        table.work(first);
    });
    let state = table.state.into_inner().unwrap_or_else(PoisonError::into_inner);
    match state.failed {
        Some((_, error)) => Err(error),
        None => Ok(PackSummary { raw: state.places.at, ..state.done }),
    }
}

/// What all hands share.
struct Table<'a> {
    work: Work<'a>,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// `None` while somebody looks for the next piece.
    pieces: Option<Pieces>,
    /// What somebody unpacks and others read ahead. No further piece is taken meanwhile.
    stream: Option<Stream>,
    /// There are no more.
    is_over: bool,
    places: Places,
    writes: VecDeque<Step>,
    /// The first place at which it failed until now, by number.
    failed: Option<(u64, PackError)>,
    done: PackSummary,
}

impl State {
    fn new(pieces: Pieces) -> Self {
        let (places, writes, done) = (Places::default(), VecDeque::new(), PackSummary::default());
        Self { pieces: Some(pieces), stream: None, is_over: false, places, writes, failed: None, done }
    }

    /// Whether anything before a piece failed.
    fn failed_before(&self, number: u64) -> bool {
        self.failed.as_ref().is_some_and(|(failed, _)| *failed < number)
    }
}

/// Where pieces belong.
#[derive(Default)]
struct Places {
    /// The first piece of which nobody knows how much it gives.
    first: u64,
    /// Where that belongs.
    at: u64,
    /// How much it and those after it give that were taken.
    counts: VecDeque<Option<u64>>,
}

impl Places {
    /// Takes the next piece: its number.
    fn take(&mut self) -> u64 {
        self.counts.push_back(None);
        self.first + self.counts.len() as u64 - 1
    }

    /// A piece gives so much.
    fn tell(&mut self, number: u64, count: u64) {
        self.counts[(number - self.first) as usize] = Some(count);
        while let Some(Some(count)) = self.counts.front() {
            (self.first, self.at) = (self.first + 1, self.at + count);
            self.counts.pop_front();
        }
    }
}

/// The parts of a frame or of members, after the first.
#[derive(Default)]
struct Stream {
    parts: VecDeque<Result<Part, PackError>>,
    /// There are no more to read.
    is_read: bool,
}

/// Unpacked bytes of a stream that nobody has written yet.
struct Step {
    number: u64,
    bytes: PooledBytes,
    at: u64,
}

/// What there is to do.
enum Job {
    Write(Step),
    /// A piece, and the place where who unpacks it writes how many bytes, if that is known.
    Whole(u64, Whole, Option<(Arc<Placed>, u64)>),
    /// What only one can unpack: its first part.
    Stream(u64, Part),
}

impl Table<'_> {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What one hand does, until nothing is left to do.
    fn work(&self, mut job: Option<Job>) {
        let mut whole = Unpacker::new(self.work.pool);
        while let Some(begun) = job {
            let (number, ended) = match begun {
                Job::Write(step) => (step.number, self.write(&step)),
                Job::Whole(number, piece, placed) => (number, self.whole(&mut whole, number, &piece, placed)),
                Job::Stream(number, part) => (number, self.stream(number, part)),
            };
            if let Err(error) = ended {
                self.fail(number, error);
            }
            self.changed.notify_all();
            job = self.job();
        }
    }

    /// Whether others have something to do beside the first job.
    fn has_work_beside(&self, first: Option<&Job>) -> bool {
        match first {
            Some(Job::Stream(_, part)) => !part.is_last,
            Some(_) => self.state().pieces.as_ref().is_some_and(|pieces| pieces.left() >= WORTH_A_HAND),
            None => false,
        }
    }

    /// What to do next. Whoever finds nobody looking for a piece looks for one.
    fn job(&self) -> Option<Job> {
        let mut state = self.state();
        loop {
            if state.failed.is_some() {
                return None;
            }
            if let Some(step) = state.writes.pop_front() {
                return Some(Job::Write(step));
            }
            let is_wanted = match &state.stream {
                Some(stream) => !stream.is_read && stream.parts.len() < PARTS_MAX,
                None if state.is_over => return None,
                None => true,
            };
            match state.pieces.take_if(|_| is_wanted) {
                None => state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(pieces) if state.stream.is_some() => {
                    drop(state);
                    self.read_ahead(pieces);
                    state = self.state();
                }
                Some(pieces) => {
                    drop(state);
                    let job = self.take(pieces);
                    self.changed.notify_all();
                    return job;
                }
            }
        }
    }

    /// Takes the next piece.
    fn take(&self, mut pieces: Pieces) -> Option<Job> {
        let found = next(&mut pieces, self.work.watch, PackError::Unpack);
        let mut state = self.state();
        let number = state.places.take();
        let job = match found {
            Ok(Some(Piece::Part(part))) => {
                state.stream = Some(Stream { is_read: part.is_last, ..Stream::default() });
                Some(Job::Stream(number, part))
            }
            Ok(Some(Piece::Whole(mut piece))) => {
                let placed = self.place(&mut state.places, number, &mut piece);
                Some(Job::Whole(number, piece, placed))
            }
            Ok(None) => None,
            Err(error) => {
                drop(state);
                self.fail(number, error);
                state = self.state();
                None
            }
        };
        state.is_over = job.is_none();
        state.pieces = Some(pieces);
        job
    }

    /// Gives a piece its place, if that is known and within the limit.
    fn place(&self, places: &mut Places, number: u64, piece: &mut Whole) -> Option<(Arc<Placed>, u64)> {
        let count = piece.raw_max() as u64;
        if places.first < number || self.is_over_limit(places.at + count) {
            return None;
        }
        let placed = piece.place(&self.work.draft, places.at)?;
        places.tell(number, count);
        Some((placed, count))
    }

    fn is_over_limit(&self, end: u64) -> bool {
        self.work.limit.is_some_and(|limit| end > limit.0)
    }

    fn whole(
        &self,
        hand: &mut Unpacker,
        number: u64,
        piece: &Whole,
        placed: Option<(Arc<Placed>, u64)>,
    ) -> Result<(), PackError> {
        let bytes = caught(number, || hand.unpack(piece))??;
        let count = match placed {
            Some((placed, count)) => match placed.failed() {
                Some(error) => return Err(PackError::Output(error)),
                None => count,
            },
            None => {
                let Some(at) = self.turn(number) else { return Ok(()) };
                let count = bytes.len() as u64;
                self.tell(number, at, count)?;
                self.write(&Step { number, bytes, at })?;
                count
            }
        };
        self.note(count, piece.packed() as u64);
        Ok(())
    }

    /// Waits until it is known where a piece belongs; none if one before it failed.
    fn turn(&self, number: u64) -> Option<u64> {
        let is_early = |state: &mut State| state.places.first < number && !state.failed_before(number);
        let state = self.changed.wait_while(self.state(), is_early).unwrap_or_else(PoisonError::into_inner);
        (!state.failed_before(number)).then_some(state.places.at)
    }

    /// A piece that belongs here gives so much: those after it may be written too.
    fn tell(&self, number: u64, at: u64, count: u64) -> Result<(), PackError> {
        self.check_limit(at + count)?;
        self.state().places.tell(number, count);
        self.changed.notify_all();
        Ok(())
    }

    fn check_limit(&self, end: u64) -> Result<(), PackError> {
        match self.work.limit {
            Some(limit) if self.is_over_limit(end) => Err(UnpackError::OverLimit { limit }.into()),
            _ => Ok(()),
        }
    }

    /// All parts of a frame or of members, while others read them and write what they give.
    fn stream(&self, number: u64, first: Part) -> Result<(), PackError> {
        let unpacked = self.parts(number, first);
        self.state().stream = None;
        unpacked
    }

    fn parts(&self, number: u64, first: Part) -> Result<(), PackError> {
        let Some(begin) = self.turn(number) else { return Ok(()) };
        let (mut parts, mut at, mut next_part) = (PartUnpacker::in_steps(self.work.pool), begin, Some(first));
        while let Some(part) = next_part {
            let (mut packed, mut given, mut has_more) = (part.packed() as u64, Some(part), true);
            while has_more {
                check(self.work.watch)?;
                let step = caught(number, || parts.unpack(given.take()))??;
                has_more = step.has_more;
                let end = at + step.bytes.len() as u64;
                self.check_limit(end)?;
                self.note(end - at, std::mem::take(&mut packed));
                if !self.hand_over(Step { number, bytes: step.bytes, at })? {
                    return Ok(());
                }
                at = end;
            }
            next_part = self.next_part()?;
        }
        self.tell(number, begin, at - begin)
    }

    /// The next part of the stream, read ahead or here; none after the last.
    fn next_part(&self) -> Result<Option<Part>, PackError> {
        let mut state = self.state();
        while let Some(stream) = &mut state.stream {
            if let Some(part) = stream.parts.pop_front() {
                // There is room for another.
                self.changed.notify_all();
                return part.map(Some);
            }
            if stream.is_read {
                break;
            }
            state = match state.pieces.take() {
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(pieces) => {
                    drop(state);
                    self.read_ahead(pieces);
                    self.state()
                }
            };
        }
        Ok(None)
    }

    /// Reads one more part of the stream.
    fn read_ahead(&self, mut pieces: Pieces) {
        let found = next(&mut pieces, self.work.watch, PackError::Unpack);
        let mut state = self.state();
        state.pieces = Some(pieces);
        if let Some(stream) = &mut state.stream {
            let part = match found {
                Ok(Some(Piece::Part(part))) => Some(Ok(part)),
                Ok(_) => None,
                Err(error) => Some(Err(error)),
            };
            stream.is_read = !matches!(&part, Some(Ok(part)) if !part.is_last);
            stream.parts.extend(part);
        }
        self.changed.notify_all();
    }

    /// Leaves a step to whoever has nothing else to do, or writes it. `false` if nothing more is wanted.
    fn hand_over(&self, step: Step) -> Result<bool, PackError> {
        let mut state = self.state();
        if state.failed.is_some() {
            return Ok(false);
        }
        if state.writes.len() < WRITES_MAX {
            state.writes.push_back(step);
            drop(state);
            self.changed.notify_all();
            return Ok(true);
        }
        drop(state);
        self.write(&step).map(|()| true)
    }

    fn write(&self, step: &Step) -> Result<(), PackError> {
        caught(step.number, || self.work.draft.write_at(&step.bytes, step.at))?.map_err(PackError::Output)
    }

    /// So much of it is done.
    fn note(&self, raw: u64, packed: u64) {
        self.work.watch.add(raw, packed);
        let done = &mut self.state().done;
        (done.packed, done.blocks) = (done.packed + packed, done.blocks + 1);
    }

    /// The error of the first place is told.
    fn fail(&self, number: u64, error: PackError) {
        let mut state = self.state();
        if state.failed.as_ref().is_none_or(|(failed, _)| number < *failed) {
            state.failed = Some((number, error));
        }
    }
}
