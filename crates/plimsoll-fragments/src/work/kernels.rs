//! Decoding as a kernel, and its twin: the same numbers on every device, because each weight is one product.

use bytemuck::{Pod, Zeroable};
use plimsoll_core::{Bytes, Fault};
use plimsoll_runtime::{Access, Backend, Buffer, Kernel, Launch, Twin};

use crate::limits::PLANE_LEVELS_MAX;
use crate::quant::{Bits, LevelLayout, decode as decode_bytes};

/// Weights that one workgroup writes.
const GROUP: u32 = 64;
/// Workgroups side by side; more go into further rows.
const ROW_GROUPS: u32 = 32_768;

/// As the kernel has them; see there.
#[repr(C)]
#[derive(Copy, Clone, Default, Pod, Zeroable)]
struct Params {
    weights: u32,
    levels: u32,
    row: u32,
    bits: u32,
    scales: u32,
    added: u32,
    planes: [u32; PLANE_LEVELS_MAX],
    classes: u32,
}

static DECODE: Kernel = Kernel {
    name: "fragments_decode",
    wgsl: include_str!("decode.wgsl"),
    entry: "fragments_decode",
    bindings: &[Access::Read, Access::Read, Access::Read, Access::Read, Access::Read, Access::Write],
    params: size_of::<Params>(),
    twin: decode_twin,
};

fn decode_twin(twin: &mut Twin<'_>) {
    let params: Params = twin.params();
    let mut known = 0;
    let cumulative = (0..params.levels).map(|level| {
        known += (params.added >> (4 * level) & 0xf) as u8;
        known
    });
    let bits = Bits::try_from(cumulative.collect::<Vec<u8>>()).expect("the bits of a checked index");
    let (levels, mut weights) = twin.reads_and_writes();
    let levels: Vec<&[u8]> = levels[..params.levels as usize].iter().map(|level| bytemuck::cast_slice(level)).collect();
    decode_bytes(&levels, &bits, &mut weights[0][..params.weights as usize])
        .expect("levels of the sizes they should have");
}

/// Bytes of so many decoded weights.
pub(super) fn result_bytes(weights: usize) -> Bytes {
    Bytes(4 * weights.max(1) as u64)
}

/// Records that a piece is decoded from the levels that are there.
pub(super) fn decode(
    backend: &mut dyn Backend,
    levels: &[&Buffer],
    bits: &Bits,
    weights: usize,
    result: &Buffer,
) -> Result<(), Fault> {
    let layouts: Vec<LevelLayout> =
        (0..levels.len().min(bits.levels())).map(|level| LevelLayout::new(weights, bits, level)).collect();
    let are_right = levels.len() == layouts.len()
        && levels.iter().zip(&layouts).all(|(level, layout)| level.bytes().0 == layout.bytes());
    let (Some(finest), true) = (layouts.last(), are_right) else {
        return Err(Fault::work("the levels of a piece have not the sizes that they should have"));
    };
    let groups = (weights as u32).div_ceil(GROUP).max(1);
    let across = groups.min(ROW_GROUPS);
    let mut params = Params {
        weights: weights as u32,
        levels: levels.len() as u32,
        row: across * GROUP,
        bits: finest.bits.into(),
        scales: layouts[0].table as u32,
        added: layouts.iter().enumerate().map(|(level, layout)| u32::from(layout.added) << (4 * level)).sum(),
        planes: [0; PLANE_LEVELS_MAX],
        classes: finest.classes as u32,
    };
    params.planes.iter_mut().zip(&layouts).for_each(|(begin, layout)| *begin = layout.planes_begin() as u32);
    // Levels that are not there are never looked at, but something has to be bound.
    let mut buffers: Vec<&Buffer> =
        (0..PLANE_LEVELS_MAX).map(|level| *levels.get(level).unwrap_or(&levels[0])).collect();
    buffers.push(result);
    let params = bytemuck::bytes_of(&params);
    backend.launch(&Launch { kernel: &DECODE, buffers: &buffers, params, groups: [across, groups.div_ceil(across), 1] })
}
