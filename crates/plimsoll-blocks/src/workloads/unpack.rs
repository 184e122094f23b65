//! A whole frame, or a run of members, unpacked by itself on the CPU: as a task, or by whoever has an [`Unpacker`].
//! Invariant: what comes out has the length and the checksum that the file says, or it is an error with its place.

use plimsoll_core::{Bytes, DeviceKind, Fault, Footprint, Ladder, Place, Rung};
use plimsoll_runtime::{Backend, Context, Session, Workload};

use crate::early::{Early, Filler};
use crate::error::{DamageError, UnpackError};
use crate::faults;
use crate::gzip::member::MemberUnpacker;
use crate::pool::{Pool, PooledBytes};
use crate::scan::{Content, MemberPlace, Whole};
use crate::zstd::codec::FrameUnpacker;

/// Packed bytes that are read at once of a frame whose bytes come early: what they give stays in a core's cache until it is
/// written, and nobody is woken for less.
const STEP: usize = 128 << 10;

/// Unpacks whole pieces.
pub struct UnpackWork {
    pool: Pool,
}

impl UnpackWork {
    /// Unpacks into buffers of this pool.
    pub fn new(pool: &Pool) -> Self {
        Self { pool: pool.clone() }
    }
}

impl Workload for UnpackWork {
    type Input = Whole;
    type Reference = ();
    type Prepared = ();
    type Output = PooledBytes;

    fn name(&self) -> &str {
        "unpack"
    }

    fn units(&self, piece: &Whole) -> u64 {
        piece.raw_max as u64
    }

    fn ladder(&self, piece: &Whole) -> Ladder {
        let footprint = Footprint::task(Bytes(piece.raw_max as u64 + (256 << 10)));
        Ladder::from(vec![Rung::new("cpu", Place::On(DeviceKind::Cpu), footprint)])
    }

    fn open(&self, _: &Rung, _: &Whole, _: &mut dyn Backend) -> Result<Box<dyn Session<Self>>, Fault> {
        Ok(Box::new(Unpacker::new(&self.pool)))
    }
}

impl Session<UnpackWork> for Unpacker {
    fn run(&mut self, piece: &Whole, _: &mut Context<'_, UnpackWork>) -> Result<PooledBytes, Fault> {
        self.unpack(piece).map_err(Fault::work)
    }
}

/// Unpacks whole pieces, one after the other. What it needs for a format is opened with the first piece of it.
pub struct Unpacker {
    pool: Pool,
    frames: Option<FrameUnpacker>,
    members: Option<MemberUnpacker>,
}

impl Unpacker {
    /// Unpacks into buffers of this pool.
    pub fn new(pool: &Pool) -> Self {
        Self { pool: pool.clone(), frames: None, members: None }
    }

    /// What a piece gives.
    ///
    /// # Errors
    /// [`UnpackError`] with its place in the file.
    pub fn unpack(&mut self, piece: &Whole) -> Result<PooledBytes, UnpackError> {
        faults::point("unpack");
        if let Some(early) = &piece.early {
            return self.step_by_step(piece, early);
        }
        let out = match &piece.content {
            Content::Frame { raw, .. } => {
                let mut out = self.pool.take(piece.raw_max);
                let frames = FrameUnpacker::opened(&mut self.frames, piece.at)?;
                frames.whole(&piece.bytes, piece.at, piece.raw_max, out.vec_mut())?;
                let got = out.len() as u64;
                if let Some(said) = raw.filter(|said| *said != got) {
                    return Err(UnpackError::damaged(piece.at, DamageError::Length { said, got }));
                }
                out
            }
            Content::Members(places) => {
                let mut out = self.pool.take_filled(piece.raw_max);
                self.members(piece, places, out.vec_mut())?;
                out
            }
        };
        Ok(match piece.filter {
            None => out,
            Some(filter) => self.pool.adopt(filter.undo(&out)),
        })
    }

    /// Gives what a frame gives as it comes: nothing is left for the end.
    fn step_by_step(&mut self, piece: &Whole, early: &Early) -> Result<PooledBytes, UnpackError> {
        let frames = FrameUnpacker::opened(&mut self.frames, piece.at)?;
        frames.begin_in_place(piece.at)?;
        let mut filler = Filler::begin(early, self.pool.take_filled(piece.raw_max));
        let (mut read, mut has_ended) = (0, false);
        for step in piece.bytes.chunks(STEP) {
            let (took, ended) = frames.in_place(step, piece.at, &mut filler)?;
            (read, has_ended) = (read + took, ended);
            if ended || took < step.len() {
                break;
            }
            filler.publish();
        }
        let (said, got) = (piece.raw_max as u64, filler.filled() as u64);
        if !has_ended || read < piece.bytes.len() {
            let what = DamageError::Content("a frame ends before its last block".to_owned());
            return Err(UnpackError::damaged(piece.at, what));
        }
        if got != said {
            return Err(UnpackError::damaged(piece.at, DamageError::Length { said, got }));
        }
        filler.publish();
        Ok(PooledBytes::default())
    }

    fn members(&mut self, piece: &Whole, places: &[MemberPlace], out: &mut [u8]) -> Result<(), UnpackError> {
        let members = self.members.get_or_insert_with(MemberUnpacker::new);
        let (mut packed, mut rest, mut at) = (&piece.bytes[..], out, piece.at);
        for place in places {
            let (member, behind) = packed.split_at(place.packed);
            let (into, left) = rest.split_at_mut(place.raw);
            members.whole(member, place.header, at, into)?;
            (packed, rest, at) = (behind, left, at + place.packed as u64);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use super::*;
    use crate::options::PackOptions;
    use crate::scan::{Piece, Scanner};
    use crate::workloads::BlockPacker;

    fn frame(raw: &[u8], pool: &Pool) -> Whole {
        let recipe = PackOptions::default().recipe(None).unwrap();
        let packed = BlockPacker::new(&recipe, pool).unwrap().pack(raw).unwrap();
        match Scanner::new(&packed.bytes[..], pool).next() {
            Some(Ok(Piece::Whole(whole))) => whole,
            other => panic!("{other:?}"),
        }
    }

    fn taken(early: &Early) -> Vec<u8> {
        let mut taken = Vec::new();
        while let Poll::Ready(bytes) = early.poll(&Context::from_waker(Waker::noop())) {
            taken.extend_from_slice(&bytes);
        }
        taken
    }

    fn numbers(bytes: usize) -> Vec<u8> {
        (0..bytes as u32 / 4).flat_map(|n| (n / 3).to_le_bytes()).collect()
    }

    #[test]
    fn what_comes_early_is_the_frame() {
        let pool = Pool::default();
        for bytes in [1 << 20, (1 << 20) + 4, 8 * STEP, 3_000_000] {
            let raw = numbers(bytes);
            let mut whole = frame(&raw, &pool);
            let early = whole.come_early().expect("it is large enough");
            let rest = Unpacker::new(&pool).unpack(&whole).unwrap();
            assert!(taken(&early) == raw && rest.is_empty(), "{bytes}");
        }
    }

    /// A worker that was lost and another after it: whoever writes gets every byte once.
    #[test]
    fn a_second_attempt_gives_only_what_was_not_taken_from_the_first() {
        let (pool, raw) = (Pool::default(), numbers(3_000_000));
        let mut whole = frame(&raw, &pool);
        let early = whole.come_early().expect("it is large enough");
        let mut unpacker = Unpacker::new(&pool);
        let begun = whole.bytes.len() / 2;
        {
            let frames = FrameUnpacker::opened(&mut unpacker.frames, 0).unwrap();
            frames.begin_in_place(0).unwrap();
            let mut filler = Filler::begin(&early, pool.take_filled(raw.len()));
            frames.in_place(&whole.bytes[..begun], 0, &mut filler).unwrap();
            filler.publish();
        }
        let mut all = taken(&early);
        assert!(all.len() > 100_000 && all.len() < raw.len() && raw.starts_with(&all), "{}", all.len());
        unpacker.unpack(&whole).unwrap();
        all.extend_from_slice(&taken(&early));
        assert!(all == raw);
        unpacker.unpack(&whole).unwrap();
        assert!(taken(&early).is_empty(), "all of it was taken");
    }

    /// Bytes that were taken stay when the attempt that gave them is over, and another has begun.
    #[test]
    fn what_was_taken_stays_as_it_is() {
        let (pool, raw) = (Pool::default(), numbers(2_000_000));
        let mut whole = frame(&raw, &pool);
        let early = whole.come_early().expect("it is large enough");
        Unpacker::new(&pool).unpack(&whole).unwrap();
        let Poll::Ready(bytes) = early.poll(&Context::from_waker(Waker::noop())) else { panic!("nothing came") };
        drop(Filler::begin(&early, pool.take_filled(raw.len())));
        drop((whole, early));
        pool.take_filled(raw.len()).filled_to(raw.len()).fill(7);
        assert!(raw.starts_with(&bytes));
    }

    #[test]
    fn small_frames_do_not_come_early() {
        let pool = Pool::default();
        assert!(frame(&numbers(500_000), &pool).come_early().is_none());
    }

    #[test]
    fn a_frame_after_a_damaged_one_is_unpacked_as_ever() {
        let (pool, raw) = (Pool::default(), numbers(2_000_000));
        let (mut bad, mut good) = (frame(&raw, &pool), frame(&raw, &pool));
        let middle = bad.bytes.len() / 2;
        bad.bytes.flip(middle);
        bad.come_early();
        let early = good.come_early().expect("it is large enough");
        let mut unpacker = Unpacker::new(&pool);
        let error = unpacker.unpack(&bad).unwrap_err();
        assert!(matches!(error, UnpackError::Damaged { at: 0, .. }), "{error}");
        unpacker.unpack(&good).unwrap();
        assert!(taken(&early) == raw);
    }
}
