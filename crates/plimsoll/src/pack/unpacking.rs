//! Pieces under way: whole ones are unpacked side by side, parts of one frame one after the other, all written in order; but
//! whoever unpacks a whole piece of a draft writes it himself, if its place is known.
//! Never holds more than the window. Invariant: what is written of whole pieces to anything but a draft is a prefix of the
//! unpacked file (parts are written before the checksum at their end is known); an error comes once, last, and is that of
//! the first place in the file that has one.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::io::{Read, Seek, Write};
use std::ops::Range;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};

use plimsoll_blocks::UnpackError;
use plimsoll_blocks::draft::{Draft, Placed};
use plimsoll_blocks::pool::{Pool, PooledBytes};
use plimsoll_blocks::range::RangePlan;
use plimsoll_blocks::scan::{Part, Piece, Scanner, Whole};
use plimsoll_blocks::workloads::{PartWork, SMALL_WINDOW, UnpackWork, Unpacked};
use plimsoll_core::Bytes;
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
    pub(super) limit: Option<Bytes>,
}

impl Wanted {
    /// Everything.
    pub(super) fn all(options: &UnpackOptions) -> Self {
        Self { skip: 0, take: u64::MAX, limit: options.limit }
    }

    /// A range of it, and the pieces that hold it.
    pub(super) fn range<R: Read + Seek>(
        mut input: R,
        range: &Range<u64>,
        options: &UnpackOptions,
        pool: &Pool,
    ) -> Result<(Self, Scanner<R>), PackError> {
        let plan = RangePlan::new(&mut input, range)?;
        let wanted = Self { skip: plan.skip, take: plan.take, limit: options.limit };
        Ok((wanted, plan.scanner(input, pool)?))
    }
}

/// Where unpacked bytes go.
pub(super) enum Output<'a> {
    /// In order.
    Stream(&'a mut dyn Write),
    /// In whatever order they come.
    Draft(Arc<dyn Draft>),
}

impl Output<'_> {
    fn write(&mut self, bytes: &[u8], at: u64) -> Result<(), PackError> {
        let written = match self {
            Self::Stream(output) => output.write_all(bytes),
            Self::Draft(draft) => draft.write_at(bytes, at),
        };
        written.map_err(PackError::Output)
    }
}

/// Unpacks pieces.
pub(super) fn unpack<'a>(
    orchestrator: &Orchestrator,
    pool: &Pool,
    pieces: Intake<Piece, UnpackError>,
    wanted: Wanted,
    output: Output<'a>,
    watch: &'a PackWatch,
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
        placing: match &output {
            Output::Draft(draft) => Some(Placing { draft: Arc::clone(draft), next: Some(0), limit: wanted.limit }),
            Output::Stream(_) => None,
        },
        delivered: 0,
        watch,
    };
    let mut delivery = Delivery::new(wanted, output, watch);
    while !delivery.is_over()
        && let Some(done) = unpacking.next()
    {
        let Delivered { bytes, placed, packed, retries } = done?;
        delivery.pass(placed);
        delivery.add(&bytes, packed, retries)?;
    }
    delivery.end()
}

/// The unpacked file as it is written, piece by piece.
pub(super) struct Delivery<'a> {
    window: Window,
    output: Output<'a>,
    watch: &'a PackWatch,
    summary: PackSummary,
}

impl<'a> Delivery<'a> {
    pub(super) fn new(wanted: Wanted, output: Output<'a>, watch: &'a PackWatch) -> Self {
        Self { window: Window { wanted, given: 0 }, output, watch, summary: PackSummary::default() }
    }

    /// Whether all that is wanted was written.
    pub(super) fn is_over(&self) -> bool {
        self.window.is_over()
    }

    /// So many bytes were written by others.
    fn pass(&mut self, count: u64) {
        self.window.given += count;
        self.watch.add(count, 0);
        self.summary.raw += count;
    }

    /// Writes what is wanted of the next piece.
    pub(super) fn add(&mut self, bytes: &[u8], packed: u64, retries: u64) -> Result<(), PackError> {
        let at = self.window.given;
        let part = self.window.cut(bytes)?;
        self.output.write(part, at)?;
        self.watch.add(part.len() as u64, packed);
        self.summary.raw += part.len() as u64;
        self.summary.packed += packed;
        self.summary.blocks += 1;
        self.summary.retries += retries;
        Ok(())
    }

    pub(super) fn end(self) -> Result<PackSummary, PackError> {
        if let Output::Stream(output) = self.output {
            output.flush().map_err(PackError::Output)?;
        }
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
        match self.wanted.limit {
            Some(limit) if self.given > limit.0 => Err(UnpackError::OverLimit { limit }.into()),
            _ => Ok(part),
        }
    }
}

/// What came of a piece: its bytes, or how many of them were put into their place.
struct Delivered {
    bytes: PooledBytes,
    placed: u64,
    packed: u64,
    retries: u64,
}

struct UnderWay {
    number: u64,
    packed: u64,
    /// Bytes that it counts for.
    size: u64,
    ticket: Waiting,
    /// Where who unpacks it puts its bytes, and how many they are.
    placed: Option<(Arc<Placed>, u64)>,
}

impl UnderWay {
    /// What it comes to, of what its task gave.
    fn deliver(&self, given: Given) -> Result<Delivered, PackError> {
        let placed = match &self.placed {
            None => 0,
            Some((placed, count)) => match placed.failed() {
                None => *count,
                Some(error) => return Err(PackError::Output(error)),
            },
        };
        Ok(Delivered { bytes: given.bytes, placed, packed: self.packed, retries: given.retries })
    }
}

/// The places of pieces in a draft.
struct Placing {
    draft: Arc<dyn Draft>,
    /// That of the next piece, unless one before it does not tell how much it gives.
    next: Option<u64>,
    limit: Option<Bytes>,
}

impl Placing {
    /// Gives a piece its place, if that is known and within the limit; what goes beyond is refused when it is delivered.
    fn place(&mut self, whole: &mut Whole) -> Option<(Arc<Placed>, u64)> {
        let (at, count) = (self.next.take()?, whole.raw_max() as u64);
        if self.limit.is_some_and(|limit| at + count > limit.0) {
            return None;
        }
        let placed = whole.place(&self.draft, at)?;
        self.next = Some(at + count);
        Some((placed, count))
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
    /// If it goes into a draft.
    placing: Option<Placing>,
    /// Bytes of the pieces that are delivered.
    delivered: u64,
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
        let ended = ready!(first.ticket.poll(context));
        let Some(first) = self.under_way.pop_front() else { return Poll::Pending };
        self.bytes -= first.size;
        let delivered = ended.map_err(|failure| PackError::of_block(first.number, failure)).and_then(|given| {
            if let (Waiting::Part(_), Some(stream)) = (&first.ticket, &mut self.stream) {
                stream.under_way -= 1;
                stream.has_more = given.has_more;
            }
            first.deliver(given)
        });
        if let Ok(delivered) = &delivered {
            self.delivered += delivered.bytes.len() as u64 + delivered.placed;
        }
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
        let placed = self.place(&mut whole);
        let (packed, size) = (whole.packed() as u64, (whole.packed() + whole.raw_max()) as u64);
        let number = self.submitted;
        let ticket = self.orchestrator.submit(&self.whole, Task::new(whole));
        let ticket = ticket.map_err(|SubmitError { reason, .. }| PackError::Refused { number, reason })?;
        self.push(Waiting::Whole(ticket), placed, packed, size);
        Ok(())
    }

    /// Where a piece goes by the hand of who unpacks it, if all pieces before it tell how much they give.
    fn place(&mut self, whole: &mut Whole) -> Option<(Arc<Placed>, u64)> {
        let placing = self.placing.as_mut()?;
        if self.under_way.is_empty() && self.stream.is_none() {
            placing.next = Some(self.delivered);
        }
        placing.place(whole)
    }

    fn submit_part(&mut self, part: Part) -> Result<(), PackError> {
        if let Some(placing) = &mut self.placing {
            placing.next = None;
        }
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

    fn push(&mut self, ticket: Waiting, placed: Option<(Arc<Placed>, u64)>, packed: u64, size: u64) {
        self.under_way.push_back(UnderWay { number: self.submitted, packed, size, ticket, placed });
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
