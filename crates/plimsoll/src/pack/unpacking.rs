//! Pieces under way: whole ones are unpacked side by side, parts of one frame one after the other, all written in order.
//! Never holds more than the window. Invariant: what is written of whole pieces is a prefix of the unpacked file (parts, and
//! frames of a draft, are written before the checksum at their end is known); an error comes once, last, and is that of the
//! first place in the file that has one.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::io::Write;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};

use plimsoll_blocks::UnpackError;
use plimsoll_blocks::early::{Early, EarlyBytes};
use plimsoll_blocks::pool::{Pool, PooledBytes};
use plimsoll_blocks::scan::{Part, Piece, Whole};
use plimsoll_blocks::workloads::{PartWork, SMALL_WINDOW, UnpackWork, Unpacked};
use plimsoll_runtime::{Held, Orchestrator, Registered, RunError, SubmitError, Task, Ticket};

use super::error::PackError;
use super::packer::{BYTES_MAX, PackSummary, UnpackOptions, items_max};
use super::watch::PackWatch;
use crate::intake::{Broken, Intake};

/// Parts of one frame under way: one that is unpacked, one that waits.
const PARTS_MAX: usize = 3;

/// Which of the unpacked bytes are wanted.
#[derive(Copy, Clone, Debug)]
pub(super) struct Wanted {
    pub(super) skip: u64,
    pub(super) take: u64,
    pub(super) options: UnpackOptions,
}

/// Unpacks pieces.
pub(super) fn unpack(
    orchestrator: &Orchestrator,
    pool: &Pool,
    pieces: Intake<Piece, UnpackError>,
    wanted: Wanted,
    output: &mut dyn Write,
    watch: &PackWatch,
) -> Result<PackSummary, PackError> {
    let mut unpacking = Unpacking {
        orchestrator,
        whole: orchestrator.register(UnpackWork::new(pool)),
        parts: orchestrator.register(PartWork::new(pool)),
        small_parts: orchestrator.register(PartWork::of_small_windows(pool)),
        input: Some(pieces),
        waiting: None,
        under_way: VecDeque::new(),
        bytes: 0,
        stream: None,
        items: items_max(orchestrator),
        submitted: 0,
        last: None,
        is_draft: wanted.options.is_draft,
        watch,
    };
    let mut delivery = Delivery::new(wanted, output, watch);
    while !delivery.is_over()
        && let Some(done) = unpacking.next()
    {
        match done? {
            Delivered::Some(bytes) => delivery.write(&bytes)?,
            Delivered::Last { bytes, packed, retries } => delivery.add(&bytes, packed, retries)?,
        }
    }
    delivery.end()
}

/// The unpacked file as it is written, piece by piece.
pub(super) struct Delivery<'a> {
    window: Window,
    output: &'a mut dyn Write,
    watch: &'a PackWatch,
    summary: PackSummary,
}

impl<'a> Delivery<'a> {
    pub(super) fn new(wanted: Wanted, output: &'a mut dyn Write, watch: &'a PackWatch) -> Self {
        Self { window: Window { wanted, given: 0 }, output, watch, summary: PackSummary::default() }
    }

    /// Whether all that is wanted was written.
    pub(super) fn is_over(&self) -> bool {
        self.window.is_over()
    }

    /// Writes what is wanted of the next bytes.
    fn write(&mut self, bytes: &[u8]) -> Result<(), PackError> {
        let part = self.window.cut(bytes)?;
        self.output.write_all(part).map_err(PackError::Output)?;
        self.watch.add(part.len() as u64, 0);
        self.summary.raw += part.len() as u64;
        Ok(())
    }

    /// The same, with which a piece ends.
    pub(super) fn add(&mut self, bytes: &[u8], packed: u64, retries: u64) -> Result<(), PackError> {
        self.write(bytes)?;
        self.watch.add(0, packed);
        self.summary.packed += packed;
        self.summary.blocks += 1;
        self.summary.retries += retries;
        Ok(())
    }

    pub(super) fn end(self) -> Result<PackSummary, PackError> {
        self.output.flush().map_err(PackError::Output)?;
        Ok(self.summary)
    }
}

/// Cuts what is wanted out of what comes.
struct Window {
    wanted: Wanted,
    given: u64,
}

impl Window {
    fn is_over(&self) -> bool {
        self.given >= self.wanted.take
    }

    fn cut<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8], PackError> {
        let skipped = (bytes.len() as u64).min(self.wanted.skip);
        self.wanted.skip -= skipped;
        let rest = &bytes[skipped as usize..];
        let left = self.wanted.take - self.given;
        let part = &rest[..(rest.len() as u64).min(left) as usize];
        self.given += part.len() as u64;
        match self.wanted.options.limit {
            Some(limit) if self.given > limit.0 => Err(UnpackError::OverLimit { limit }.into()),
            _ => Ok(part),
        }
    }
}

/// What came of a piece.
enum Delivered {
    /// Some of its bytes.
    Some(EarlyBytes),
    /// All of them, or the last.
    Last { bytes: PooledBytes, packed: u64, retries: u64 },
}

struct UnderWay {
    number: u64,
    packed: u64,
    /// Bytes that it counts for.
    size: u64,
    ticket: Waiting,
    /// Its bytes as they come, if they do before it is done.
    early: Option<Arc<Early>>,
    /// How its task ended.
    ended: Option<Result<Given, RunError>>,
}

impl UnderWay {
    /// Its next bytes, or how it ended once all that came before were taken.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<EarlyBytes, Result<Given, RunError>>> {
        if let Poll::Ready(bytes) = self.poll_early(context) {
            return Poll::Ready(Ok(bytes));
        }
        let ended = match self.ended.take() {
            Some(ended) => ended,
            None => ready!(self.ticket.poll(context)),
        };
        // Some may have come between the two looks.
        match self.poll_early(context) {
            Poll::Ready(bytes) => {
                self.ended = Some(ended);
                Poll::Ready(Ok(bytes))
            }
            Poll::Pending => Poll::Ready(Err(ended)),
        }
    }

    fn poll_early(&self, context: &Context<'_>) -> Poll<EarlyBytes> {
        self.early.as_ref().map_or(Poll::Pending, |early| early.poll(context))
    }
}

enum Waiting {
    Whole(Ticket<PooledBytes>),
    Part(Ticket<Unpacked>),
}

/// What a task gave.
struct Given {
    bytes: PooledBytes,
    /// Parts that were handed in wait for a further task.
    has_more: bool,
    retries: u64,
}

impl Waiting {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<Given, RunError>> {
        match self {
            Self::Whole(ticket) => Pin::new(ticket).poll(context).map_ok(|done| Given {
                retries: done.report.attempts.len() as u64,
                bytes: done.output,
                has_more: false,
            }),
            Self::Part(ticket) => Pin::new(ticket).poll(context).map_ok(|done| Given {
                retries: done.report.attempts.len() as u64,
                bytes: done.output.bytes,
                has_more: done.output.has_more,
            }),
        }
    }
}

/// A frame, or members, of which parts are under way.
struct Stream {
    held: Held<PartWork>,
    under_way: usize,
    has_more: bool,
    /// Its last part was handed in.
    is_whole: bool,
}

struct Unpacking<'a> {
    orchestrator: &'a Orchestrator,
    whole: Registered<UnpackWork>,
    parts: Registered<PartWork>,
    /// Of files that refer back no further than is usual.
    small_parts: Registered<PartWork>,
    /// `None` once it has nothing more to give.
    input: Option<Intake<Piece, UnpackError>>,
    /// A piece for which there is no room yet.
    waiting: Option<Piece>,
    under_way: VecDeque<UnderWay>,
    bytes: u64,
    stream: Option<Stream>,
    items: usize,
    submitted: u64,
    /// What ends it once all pieces before it are delivered.
    last: Option<PackError>,
    /// Frames may be written before they are whole.
    is_draft: bool,
    watch: &'a PackWatch,
}

impl Unpacking<'_> {
    /// What the next piece gives, in order.
    fn next(&mut self) -> Option<Result<Delivered, PackError>> {
        pollster::block_on(poll_fn(|context| self.poll(context)))
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Delivered, PackError>>> {
        if self.watch.sign().poll_raised(context).is_ready() {
            return Poll::Ready(Some(Err(PackError::Stopped)));
        }
        self.fill(context);
        let Some(first) = self.under_way.front_mut() else {
            if self.input.is_some() || self.waiting.is_some() {
                return Poll::Pending;
            }
            return Poll::Ready(self.last.take().map(Err));
        };
        let ended = match ready!(first.poll(context)) {
            Ok(bytes) => return Poll::Ready(Some(Ok(Delivered::Some(bytes)))),
            Err(ended) => ended,
        };
        let Some(first) = self.under_way.pop_front() else { return Poll::Pending };
        self.bytes -= first.size;
        let delivered = ended.map_err(|failure| PackError::of_block(first.number, failure)).map(|given| {
            if let (Waiting::Part(_), Some(stream)) = (&first.ticket, &mut self.stream) {
                stream.under_way -= 1;
                stream.has_more = given.has_more;
            }
            Delivered::Last { bytes: given.bytes, packed: first.packed, retries: given.retries }
        });
        Poll::Ready(Some(delivered))
    }

    /// Hands pieces in while there is room for them.
    fn fill(&mut self, context: &mut Context<'_>) {
        loop {
            self.go_on_with_stream();
            if !self.takes_pieces() {
                return;
            }
            let piece = match self.waiting.take() {
                Some(piece) => piece,
                None => match self.pull(context) {
                    Some(piece) => piece,
                    None => return,
                },
            };
            if !self.has_room(&piece) {
                self.waiting = Some(piece);
                return;
            }
            let result = match piece {
                Piece::Whole(whole) => self.submit_whole(whole),
                Piece::Part(part) => self.submit_part(part),
            };
            if let Err(error) = result {
                self.end(error);
            }
        }
    }

    fn pull(&mut self, context: &mut Context<'_>) -> Option<Piece> {
        let Poll::Ready(given) = self.input.as_mut()?.poll_item(context) else { return None };
        match given {
            Some(Ok(piece)) => return Some(piece),
            Some(Err(Broken::Failed(error))) => self.end(error.into()),
            Some(Err(Broken::Panicked(message))) => self.end(PackError::InputPanicked(message)),
            None => self.input = None,
        }
        None
    }

    /// What a stream still has to give comes before every later piece.
    fn takes_pieces(&self) -> bool {
        self.stream.as_ref().is_none_or(|stream| !stream.is_whole && !stream.has_more && stream.under_way < PARTS_MAX)
    }

    fn has_room(&self, piece: &Piece) -> bool {
        let size = size_of_piece(piece);
        self.under_way.is_empty() || (self.under_way.len() < self.items && self.bytes + size <= BYTES_MAX)
    }

    /// Lets a stream give what it has not given yet; closes it when that is all.
    fn go_on_with_stream(&mut self) {
        let Some(stream) = &self.stream else { return };
        if stream.has_more && stream.under_way < PARTS_MAX - 1 {
            if let Err(error) = self.submit_to_stream(None, 0) {
                self.end(error);
            }
        } else if stream.is_whole && !stream.has_more && stream.under_way == 0 {
            self.stream = None;
        }
    }

    fn submit_whole(&mut self, mut whole: Whole) -> Result<(), PackError> {
        let early = self.is_draft.then(|| whole.come_early()).flatten();
        let (packed, size) = (whole.packed() as u64, (whole.packed() + whole.raw_max()) as u64);
        let number = self.submitted;
        let ticket = self.orchestrator.submit(&self.whole, Task::new(whole));
        let ticket = ticket.map_err(|SubmitError { reason, .. }| PackError::Refused { number, reason })?;
        self.push(Waiting::Whole(ticket), early, packed, size);
        Ok(())
    }

    fn submit_part(&mut self, part: Part) -> Result<(), PackError> {
        if part.is_first {
            let parts = if part.window() <= SMALL_WINDOW { &self.small_parts } else { &self.parts };
            let held = self.orchestrator.hold(parts);
            self.stream = Some(Stream { held, under_way: 0, has_more: false, is_whole: false });
        }
        let packed = part.packed() as u64;
        self.submit_to_stream(Some(part), packed)
    }

    fn submit_to_stream(&mut self, part: Option<Part>, packed: u64) -> Result<(), PackError> {
        let number = self.submitted;
        let Some(stream) = &mut self.stream else { return Ok(()) };
        stream.is_whole |= part.as_ref().is_some_and(|part| part.is_last);
        let ticket = stream.held.submit(Task::new(Mutex::new(part)));
        let ticket = ticket.map_err(|SubmitError { reason, .. }| PackError::Refused { number, reason })?;
        stream.under_way += 1;
        self.push(Waiting::Part(ticket), None, packed, packed);
        Ok(())
    }

    fn push(&mut self, ticket: Waiting, early: Option<Arc<Early>>, packed: u64, size: u64) {
        self.under_way.push_back(UnderWay { number: self.submitted, packed, size, ticket, early, ended: None });
        self.submitted += 1;
        self.bytes += size;
    }

    fn end(&mut self, error: PackError) {
        (self.input, self.waiting) = (None, None);
        self.last.get_or_insert(error);
    }
}

fn size_of_piece(piece: &Piece) -> u64 {
    match piece {
        Piece::Whole(whole) => (whole.packed() + whole.raw_max()) as u64,
        Piece::Part(part) => part.packed() as u64,
    }
}
