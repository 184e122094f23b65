//! A whole frame, or a run of members, unpacked by itself on the CPU.
//! Invariant: what comes out has the length and the checksum that the file says, or it is an error with its place.

use plimsoll_core::{Bytes, DeviceKind, Fault, Footprint, Ladder, Place, Rung};
use plimsoll_runtime::{Backend, Context, Session, Workload};

use crate::error::{DamageError, UnpackError};
use crate::faults;
use crate::gzip::member::MemberUnpacker;
use crate::pool::{Pool, PooledBytes};
use crate::scan::{Content, MemberPlace, Whole};
use crate::zstd::codec::FrameUnpacker;

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
        let frames = FrameUnpacker::new().map_err(Fault::work)?;
        Ok(Box::new(UnpackSession { pool: self.pool.clone(), frames, members: MemberUnpacker::new() }))
    }
}

struct UnpackSession {
    pool: Pool,
    frames: FrameUnpacker,
    members: MemberUnpacker,
}

impl Session<UnpackWork> for UnpackSession {
    fn run(&mut self, piece: &Whole, _: &mut Context<'_, UnpackWork>) -> Result<PooledBytes, Fault> {
        faults::point("unpack");
        self.unpack(piece).map_err(Fault::work)
    }
}

impl UnpackSession {
    fn unpack(&mut self, piece: &Whole) -> Result<PooledBytes, UnpackError> {
        let out = match &piece.content {
            Content::Frame { raw } => {
                let mut out = self.pool.take(piece.raw_max);
                self.frames.whole(&piece.bytes, piece.at, piece.raw_max, out.vec_mut())?;
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

    fn members(&mut self, piece: &Whole, places: &[MemberPlace], out: &mut [u8]) -> Result<(), UnpackError> {
        let (mut packed, mut rest, mut at) = (&piece.bytes[..], out, piece.at);
        for place in places {
            let (member, behind) = packed.split_at(place.packed);
            let (into, left) = rest.split_at_mut(place.raw);
            self.members.whole(member, place.header, at, into)?;
            (packed, rest, at) = (behind, left, at + place.packed as u64);
        }
        Ok(())
    }
}
