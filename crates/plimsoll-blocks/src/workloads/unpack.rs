//! A whole frame, or a run of members, unpacked by itself on the CPU: as a task, or by whoever has an [`Unpacker`].
//! Invariant: what comes out has the length and the checksum that the file says, or it is an error with its place.

use plimsoll_core::{Bytes, DeviceKind, Fault, Footprint, Ladder, Place, Rung};
use plimsoll_runtime::{Backend, Context, Session, Workload};

use crate::draft::Placed;
use crate::error::{DamageError, UnpackError};
use crate::extent::Feed;
use crate::faults;
use crate::gzip::member::MemberUnpacker;
use crate::pool::{Pool, PooledBytes};
use crate::scan::{Content, MemberPlace, Packed, Whole};
use crate::zstd::codec::{FrameUnpacker, WINDOW_LOG_MAX};

/// The largest window of a frame that is unpacked block by block. Nothing is held of it but what the frame gives.
const STEPS_WINDOW_MAX: u64 = 1 << WINDOW_LOG_MAX;

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
        match &piece.placed {
            Some(placed) => self.write_in_place(piece, placed).map(|()| PooledBytes::default()),
            None => self.whole(piece),
        }
    }

    fn whole(&mut self, piece: &Whole) -> Result<PooledBytes, UnpackError> {
        let read: PooledBytes;
        let packed: &[u8] = match &piece.bytes {
            Packed::Taken(bytes) => bytes,
            Packed::Left(extent) => {
                read = extent.read(&self.pool)?;
                &read
            }
        };
        let out = match &piece.content {
            Content::Frame { raw, .. } => {
                let mut out = self.pool.take(piece.raw_max);
                let frames = FrameUnpacker::opened(&mut self.frames, piece.at)?;
                frames.whole(packed, piece.at, piece.raw_max, out.vec_mut())?;
                check_length(piece, *raw, &out)?;
                out
            }
            Content::Members(places) => {
                let mut out = self.pool.take_filled(piece.raw_max);
                self.members(packed, piece.at, places, out.vec_mut())?;
                out
            }
        };
        Ok(match piece.filter {
            None => out,
            Some(filter) => self.pool.adopt(filter.undo(&out)),
        })
    }

    /// Writes what a piece gives where it belongs, a frame's bytes while they come.
    fn write_in_place(&mut self, piece: &Whole, placed: &Placed) -> Result<(), UnpackError> {
        let mut written = 0;
        let out = match piece.content {
            Content::Frame { raw, window } if window <= STEPS_WINDOW_MAX => {
                let mut out = self.pool.take(piece.raw_max);
                let frames = FrameUnpacker::opened(&mut self.frames, piece.at)?;
                let mut can_write = true;
                let mut packed = match &piece.bytes {
                    Packed::Taken(bytes) => Feed::Memory(bytes),
                    Packed::Left(extent) => Feed::of_file(extent, &self.pool),
                };
                let is_whole = frames.block_by_block(&mut packed, piece.at, out.vec_mut(), |there| {
                    can_write = placed.write(there, &mut written, false);
                    can_write
                })?;
                if !can_write {
                    return Ok(());
                }
                if !is_whole {
                    let what = DamageError::Content("a frame ends before its last block".to_owned());
                    return Err(UnpackError::damaged(piece.at, what));
                }
                check_length(piece, raw, &out)?;
                out
            }
            _ => self.whole(piece)?,
        };
        placed.write(&out, &mut written, true);
        Ok(())
    }

    fn members(
        &mut self,
        mut packed: &[u8],
        mut at: u64,
        places: &[MemberPlace],
        out: &mut [u8],
    ) -> Result<(), UnpackError> {
        let members = self.members.get_or_insert_with(MemberUnpacker::new);
        let mut rest = out;
        for place in places {
            let (member, behind) = packed.split_at(place.packed);
            let (into, left) = rest.split_at_mut(place.raw);
            members.whole(member, place.header, at, into)?;
            (packed, rest, at) = (behind, left, at + place.packed as u64);
        }
        Ok(())
    }
}

/// A frame gives as much as it says, if it does.
fn check_length(piece: &Whole, said: Option<u64>, out: &[u8]) -> Result<(), UnpackError> {
    let got = out.len() as u64;
    match said.filter(|said| *said != got) {
        Some(said) => Err(UnpackError::damaged(piece.at, DamageError::Length { said, got })),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::draft::Draft;
    use crate::options::PackOptions;
    use crate::scan::{Piece, Scanner};
    use crate::workloads::BlockPacker;

    /// Where the last frame begins.
    const BEHIND: usize = 100;

    /// Keeps what is written behind a gap, and refuses what would make it longer than it may become.
    struct Kept {
        bytes: Mutex<Vec<u8>>,
        length_max: usize,
    }

    impl Kept {
        fn new(length_max: usize) -> Arc<Self> {
            Arc::new(Self { bytes: Mutex::default(), length_max })
        }

        fn bytes(&self) -> Vec<u8> {
            self.bytes.lock().unwrap().split_off(BEHIND)
        }
    }

    impl Draft for Kept {
        fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
            let (mut kept, start) = (self.bytes.lock().unwrap(), at as usize);
            let end = start + bytes.len();
            if end > self.length_max {
                return Err(io::ErrorKind::StorageFull.into());
            }
            if kept.len() < end {
                kept.resize(end, 0);
            }
            kept[start..end].copy_from_slice(bytes);
            Ok(())
        }
    }

    /// Puts a piece into the place behind the gap.
    fn placed(whole: &mut Whole, kept: &Arc<Kept>) -> Arc<Placed> {
        let draft: Arc<dyn Draft> = Arc::clone(kept) as _;
        whole.place(&draft, BEHIND as u64).expect("it tells how much it gives")
    }

    fn frame(raw: &[u8], pool: &Pool) -> Whole {
        let recipe = PackOptions::default().recipe(None).unwrap();
        let packed = BlockPacker::new(&recipe, pool).unwrap().pack(raw).unwrap();
        match Scanner::new(&packed.bytes[..], pool).next() {
            Some(Ok(Piece::Whole(whole))) => whole,
            other => panic!("{other:?}"),
        }
    }

    fn numbers(bytes: usize) -> Vec<u8> {
        (0..bytes as u32 / 4).flat_map(|n| (n / 3).to_le_bytes()).collect()
    }

    #[test]
    fn a_frame_is_written_to_its_place_while_it_comes_however_often() {
        let pool = Pool::default();
        for bytes in [0, 4, 100_000, 1 << 20, (1 << 20) + 4, 3_000_000] {
            let (raw, kept, mut unpacker) = (numbers(bytes), Kept::new(usize::MAX), Unpacker::new(&pool));
            let mut whole = frame(&raw, &pool);
            let place = placed(&mut whole, &kept);
            for _ in 0..2 {
                assert!(unpacker.unpack(&whole).unwrap().is_empty() && place.failed().is_none());
            }
            assert!(bytes == 0 || kept.bytes() == raw, "{bytes}");
        }
    }

    #[test]
    fn an_output_that_fails_is_no_damage_and_ends_the_piece() {
        let (pool, raw, kept) = (Pool::default(), numbers(3_000_000), Kept::new(1 << 20));
        let mut whole = frame(&raw, &pool);
        let place = placed(&mut whole, &kept);
        let mut unpacker = Unpacker::new(&pool);
        assert!(unpacker.unpack(&whole).unwrap().is_empty());
        assert_eq!(place.failed().map(|error| error.kind()), Some(io::ErrorKind::StorageFull));
        let written = kept.bytes();
        assert!(written.len() > 500_000 && raw.starts_with(&written), "{}", written.len());
    }

    #[test]
    fn a_frame_after_a_damaged_one_is_unpacked_as_ever() {
        let (pool, raw, kept) = (Pool::default(), numbers(2_000_000), Kept::new(usize::MAX));
        let (mut bad, mut good) = (frame(&raw, &pool), frame(&raw, &pool));
        let middle = bad.packed() / 2;
        bad.bytes.flip(middle);
        placed(&mut bad, &kept);
        placed(&mut good, &kept);
        let mut unpacker = Unpacker::new(&pool);
        let error = unpacker.unpack(&bad).unwrap_err();
        assert!(matches!(error, UnpackError::Damaged { at: 0, .. }), "{error}");
        unpacker.unpack(&good).unwrap();
        assert!(kept.bytes() == raw);
    }
}
