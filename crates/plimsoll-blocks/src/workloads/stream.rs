//! A frame or members that have no end in sight, part by part: the tasks of a held session on the CPU, or calls of a
//! [`PartUnpacker`].
//! Never gives more than its room at once, however much a part unpacks to: what is left is given by the tasks after it.
//! Invariant: parts are unpacked in the order in which they were handed in.

use std::collections::VecDeque;
use std::sync::Mutex;

use plimsoll_core::{Bytes, DeviceKind, Fault, Footprint, Ladder, Place, Rung};
use plimsoll_runtime::{Backend, Context, Session, Workload};

use crate::error::UnpackError;
use crate::faults;
use crate::gzip::stream::MemberStream;
use crate::pool::{Pool, PooledBytes};
use crate::scan::{Part, PartKind};
use crate::zstd::codec::{FrameUnpacker, WINDOW_LOG_MAX};

/// What one task gives at the most.
pub(super) const ROOM: usize = 2 << 20;

/// The same of who is followed step by step by somebody who writes: with a decoder's tables it lies in a core's cache.
const STEP: usize = 512 << 10;

/// What levels up to 19 of zstd refer back at the most, and more than gzip does.
pub const SMALL_WINDOW: u64 = 8 << 20;

/// Unpacks parts.
pub struct PartWork {
    pool: Pool,
    ladder: Ladder,
}

/// What came of a part.
#[derive(Debug)]
pub struct Unpacked {
    /// Its bytes.
    pub bytes: PooledBytes,
    /// Parts that were handed in wait for a further task.
    pub has_more: bool,
}

impl PartWork {
    /// Unpacks parts of whatever window into buffers of this pool. The window is the file's choice; promised is the largest
    /// that is taken.
    pub fn new(pool: &Pool) -> Self {
        Self::of_window(pool, 1 << WINDOW_LOG_MAX)
    }

    /// The same for parts whose window is at most [`SMALL_WINDOW`], as nearly all are.
    pub fn of_small_windows(pool: &Pool) -> Self {
        Self::of_window(pool, SMALL_WINDOW + (1 << 20))
    }

    fn of_window(pool: &Pool, session: u64) -> Self {
        let footprint = Footprint { session: Bytes(session), task: Bytes(ROOM as u64), reference: Bytes::ZERO };
        let ladder = Ladder::from(vec![Rung::new("cpu", Place::On(DeviceKind::Cpu), footprint)]);
        Self { pool: pool.clone(), ladder }
    }
}

impl Workload for PartWork {
    /// The part, which goes into the session; none to go on with what is there. A held session runs a task once.
    type Input = Mutex<Option<Part>>;
    type Reference = ();
    type Prepared = ();
    type Output = Unpacked;

    fn name(&self) -> &str {
        "unpack-part"
    }

    fn ladder(&self, _: &Self::Input) -> Ladder {
        self.ladder.clone()
    }

    fn open(&self, _: &Rung, _: &Self::Input, _: &mut dyn Backend) -> Result<Box<dyn Session<Self>>, Fault> {
        Ok(Box::new(PartUnpacker::new(&self.pool)))
    }
}

impl Session<PartWork> for PartUnpacker {
    fn run(&mut self, part: &Mutex<Option<Part>>, _: &mut Context<'_, PartWork>) -> Result<Unpacked, Fault> {
        let taken = part.lock().map_err(|_| Fault::work("a part was lost to a panic"))?.take();
        self.unpack(taken).map_err(Fault::work)
    }
}

/// Unpacks the parts of one frame, or of one run of members.
pub struct PartUnpacker {
    pool: Pool,
    frames: Option<FrameUnpacker>,
    members: Option<MemberStream>,
    waiting: VecDeque<Part>,
    /// How far the first of them was read.
    read: usize,
    /// What is given at once at the most.
    room: usize,
}

impl PartUnpacker {
    /// Unpacks into buffers of this pool.
    pub fn new(pool: &Pool) -> Self {
        Self { pool: pool.clone(), frames: None, members: None, waiting: VecDeque::new(), read: 0, room: ROOM }
    }

    /// The same, giving so little at once that it is still in a cache when somebody else writes it.
    pub fn in_steps(pool: &Pool) -> Self {
        Self { room: STEP, ..Self::new(pool) }
    }

    /// What the parts give that were handed in until now; none is handed in to go on with those that are there.
    ///
    /// # Errors
    /// [`UnpackError`] with its place in the file.
    pub fn unpack(&mut self, part: Option<Part>) -> Result<Unpacked, UnpackError> {
        let room = self.room;
        faults::point("unpack-part");
        self.waiting.extend(part);
        let mut bytes = self.pool.take(room);
        let into = bytes.vec_mut();
        while let Some(part) = self.waiting.front() {
            let (rest, at) = (&part.bytes[self.read..], part.at + self.read as u64);
            let (read, ended) = match part.kind {
                PartKind::Zstd => FrameUnpacker::opened(&mut self.frames, at)?.part(rest, at, room, into)?,
                PartKind::Gzip => {
                    let members = self.members.get_or_insert_with(|| MemberStream::new(at));
                    (members.feed(rest, room, into)?, false)
                }
            };
            self.read += read;
            let is_read = self.read >= part.bytes.len();
            if is_read && part.is_last {
                match (&self.members, part.kind) {
                    (_, PartKind::Zstd) if !ended && into.len() >= room => {
                        return Ok(Unpacked { bytes, has_more: true });
                    }
                    (_, PartKind::Zstd) if !ended => {
                        return Err(UnpackError::CutOff { at: at + read as u64, inside: "a zstd frame" });
                    }
                    (Some(members), PartKind::Gzip) => members.end()?,
                    _ => {}
                }
            }
            if is_read {
                self.waiting.pop_front();
                self.read = 0;
            } else if into.len() >= room {
                return Ok(Unpacked { bytes, has_more: true });
            } else if read == 0 {
                return Err(UnpackError::damaged(
                    at,
                    crate::DamageError::Content("a frame ends before its last block".to_owned()),
                ));
            }
            if into.len() >= room {
                return Ok(Unpacked { bytes, has_more: true });
            }
        }
        Ok(Unpacked { bytes, has_more: false })
    }
}
