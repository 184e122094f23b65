//! Coding as a stage: the sequences of a block become a zstd frame, by the library, or a gzip member, on any device.

use plimsoll_core::{Bytes, DeviceKind, Fault, Footprint, Ladder, Place, Rung};
use plimsoll_runtime::{Backend, Context, Session, Workload};

use super::Packed;
use super::find::Found;
use crate::faults;
use crate::gzip::header::OUR_HEADER;
use crate::gzip::member::{StreamCheck, finish_ours};
use crate::huffman::{kernels, layout, tokens};
use crate::options::Recipe;
use crate::pool::Pool;
use crate::zstd::codec::FramePacker;
use crate::zstd::sequences::SequencePacker;

/// Codes blocks as zstd frames.
pub struct CodeFrameWork {
    recipe: Recipe,
    pool: Pool,
}

impl CodeFrameWork {
    /// As the recipe says.
    pub fn new(recipe: Recipe, pool: &Pool) -> Self {
        Self { recipe, pool: pool.clone() }
    }
}

impl Workload for CodeFrameWork {
    type Input = Found;
    type Reference = ();
    type Prepared = ();
    type Output = Packed;

    fn name(&self) -> &str {
        "pack-code-zstd"
    }

    fn units(&self, found: &Found) -> u64 {
        found.bytes.len() as u64
    }

    fn ladder(&self, found: &Found) -> Ladder {
        let session = Bytes(FramePacker::context_bytes(&self.recipe) as u64);
        let task = Bytes(found.bytes.len() as u64 * 2);
        let footprint = Footprint { session, task, reference: Bytes::ZERO };
        Ladder::from(vec![Rung::new("cpu", Place::On(DeviceKind::Cpu), footprint)])
    }

    fn open(&self, _: &Rung, _: &Found, _: &mut dyn Backend) -> Result<Box<dyn Session<Self>>, Fault> {
        let packer = SequencePacker::new(self.recipe.level).map_err(Fault::work)?;
        Ok(Box::new(FrameSession { packer, pool: self.pool.clone() }))
    }
}

struct FrameSession {
    packer: SequencePacker,
    pool: Pool,
}

impl Session<CodeFrameWork> for FrameSession {
    fn run(&mut self, found: &Found, _: &mut Context<'_, CodeFrameWork>) -> Result<Packed, Fault> {
        faults::point("code-frame");
        let mut bytes = self.pool.take(zstd_safe::compress_bound(found.bytes.len()));
        self.packer.pack(&found.bytes, &found.sequences, bytes.vec_mut()).map_err(Fault::work)?;
        Ok(Packed { bytes, raw: found.bytes.len(), members: Vec::new() })
    }
}

/// Codes blocks as gzip members.
pub struct CodeMemberWork {
    pool: Pool,
}

impl CodeMemberWork {
    /// Into buffers of this pool.
    pub fn new(pool: &Pool) -> Self {
        Self { pool: pool.clone() }
    }
}

impl Workload for CodeMemberWork {
    type Input = Found;
    type Reference = ();
    type Prepared = ();
    type Output = Packed;

    fn name(&self) -> &str {
        "pack-code-gzip"
    }

    fn units(&self, found: &Found) -> u64 {
        found.bytes.len() as u64
    }

    fn ladder(&self, found: &Found) -> Ladder {
        // There are no more tokens than bytes.
        let footprint = Footprint::task(kernels::bytes_for(found.bytes.len()));
        Ladder::from(vec![
            Rung::new("gpu", Place::On(DeviceKind::Gpu), footprint),
            Rung::new("cpu", Place::On(DeviceKind::Cpu), footprint),
        ])
    }

    fn open(&self, rung: &Rung, _: &Found, _: &mut dyn Backend) -> Result<Box<dyn Session<Self>>, Fault> {
        let on_device = rung.place == Place::On(DeviceKind::Gpu);
        Ok(Box::new(MemberSession { pool: self.pool.clone(), on_device, check: StreamCheck::new() }))
    }
}

struct MemberSession {
    pool: Pool,
    on_device: bool,
    check: StreamCheck,
}

impl Session<CodeMemberWork> for MemberSession {
    fn run(&mut self, found: &Found, context: &mut Context<'_, CodeMemberWork>) -> Result<Packed, Fault> {
        faults::point("code-member");
        let raw: &[u8] = &found.bytes;
        let tokens = tokens::tokens(raw, &found.sequences);
        let layout = layout::layout(&tokens);
        let coded = layout.bits.div_ceil(8);
        let mut bytes = self.pool.take(raw.len() + raw.len() / 8 + 1024);
        bytes.vec_mut().extend([0; OUR_HEADER]);
        if coded > stored_bytes(raw.len()) {
            store(raw, bytes.vec_mut());
        } else if self.on_device {
            let stream = kernels::on_device(context.backend, &tokens, &layout)?;
            if !self.check.gives(&stream, raw) {
                return Err(Fault::WrongAnswer { detail: "the coded stream does not give the block again".to_owned() });
            }
            bytes.vec_mut().extend(stream);
        } else {
            bytes.vec_mut().extend(kernels::on_host(&tokens, layout));
        }
        finish_ours(raw, bytes.vec_mut(), 0).map_err(Fault::work)?;
        Ok(Packed { bytes, raw: raw.len(), members: Vec::new() })
    }
}

/// Bytes of a stored deflate block at the most.
const STORED: usize = 65_535;

fn stored_bytes(raw: usize) -> usize {
    raw + raw.div_ceil(STORED).max(1) * 5
}

/// Appends a deflate stream that holds the bytes as they are.
fn store(raw: &[u8], into: &mut Vec<u8>) {
    let count = raw.len().div_ceil(STORED);
    for (at, piece) in raw.chunks(STORED).enumerate() {
        let length = piece.len() as u16;
        into.push(u8::from(at + 1 == count));
        into.extend(length.to_le_bytes());
        into.extend((!length).to_le_bytes());
        into.extend(piece);
    }
}
