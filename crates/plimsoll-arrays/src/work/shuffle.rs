//! Shuffling the blocks of chunks, as a kernel and its twin: the same bytes on every device.
//! Invariant: a chunk that was shuffled here packs to the bytes that the codec gives when it shuffles itself.

use bytemuck::{Pod, Zeroable};
use plimsoll_core::{Bytes, Fault};
use plimsoll_runtime::{Access, Backend, Buffer, Kernel, Launch, Twin};

use super::kernels::{GROUP, LEVEL_BYTES_MAX, ROW_GROUPS};
use crate::codec::{ChunkCodec, Shuffle};
use crate::data_type::DataType;
use crate::layout::Layout;

/// As the kernel has them; see there.
#[repr(C)]
#[derive(Copy, Clone, Pod, Zeroable)]
struct Params {
    chunk: u32,
    block: u32,
    width: u32,
    is_bits: u32,
    bytes: u32,
    begin: u32,
    row: u32,
    unused: u32,
}

static SHUFFLE: Kernel = Kernel {
    name: "array_shuffle",
    wgsl: include_str!("shuffle.wgsl"),
    entry: "array_shuffle",
    bindings: &[Access::Read, Access::Write],
    params: size_of::<Params>(),
    twin: shuffle_twin,
};

fn shuffle_twin(twin: &mut Twin<'_>) {
    let params: Params = twin.params();
    let width = params.width as usize;
    let data_type = DataType::ALL.into_iter().find(|known| known.bytes() == width).expect("a width that there is");
    let shuffle = if params.is_bits == 1 { Shuffle::Bit } else { Shuffle::Byte };
    let (begin, bytes) = (4 * params.begin as usize, params.bytes as usize);
    let (chunks, shuffled) = twin.words_from_to(0, 1);
    // The kernel writes whole words.
    let padded = begin..begin + bytes.next_multiple_of(4);
    let shuffled = &mut bytemuck::cast_slice_mut::<u32, u8>(shuffled)[padded];
    shuffled[bytes..].fill(0);
    let chunks = &bytemuck::cast_slice::<u32, u8>(chunks)[begin..begin + bytes];
    shuffled[..bytes].copy_from_slice(chunks);
    let sizes = (params.chunk as usize, params.block as usize);
    for (from, to) in chunks.chunks(sizes.0).zip(shuffled[..bytes].chunks_mut(sizes.0)) {
        for (from, to) in from.chunks(sizes.1).zip(to.chunks_mut(sizes.1)) {
            if let Some(step) = shuffle.step(data_type.filter_element(), from.len()) {
                step.apply_to(from, to);
            }
        }
    }
}

/// Whether chunks of such an array can be shuffled before they are packed: those that are stored in another order are put
/// into it first.
pub(super) fn is_shuffled(layout: &Layout) -> bool {
    layout.chunk_codec().shuffle().is_some() && layout.order().is_own()
}

/// Chunks to be shuffled.
#[derive(Copy, Clone, Debug)]
pub struct ShuffleStep {
    /// How they are packed.
    pub codec: ChunkCodec,
    /// Bytes of all of them.
    pub bytes: u64,
    /// Where they begin, in both buffers, in whole words.
    pub begin: Bytes,
}

impl ShuffleStep {
    /// Records that the chunks in one buffer are shuffled into another.
    ///
    /// # Errors
    /// As [`Backend::launch`]; [`Fault::WorkFailed`] if there is nothing to shuffle, or more than the kernel counts.
    pub fn launch(&self, chunks: &Buffer, shuffled: &Buffer, backend: &mut dyn Backend) -> Result<(), Fault> {
        let Self { codec, bytes, begin } = *self;
        let Some((shuffle, block)) = codec.shuffle().filter(|_| bytes <= LEVEL_BYTES_MAX) else {
            return Err(Fault::work(format!("{bytes} bytes by {:?} are not for the kernel", codec.codec())));
        };
        let groups = (bytes.div_ceil(4) as u32).div_ceil(GROUP).max(1);
        let across = groups.min(ROW_GROUPS);
        let params = Params {
            chunk: codec.chunk_bytes() as u32,
            block: block as u32,
            width: codec.data_type().bytes() as u32,
            is_bits: u32::from(shuffle == Shuffle::Bit),
            bytes: bytes as u32,
            begin: (begin.0 / 4) as u32,
            row: across * GROUP,
            unused: 0,
        };
        let (buffers, params) = (&[chunks, shuffled][..], bytemuck::bytes_of(&params));
        backend.launch(&Launch { kernel: &SHUFFLE, buffers, params, groups: [across, groups.div_ceil(across), 1] })
    }
}
