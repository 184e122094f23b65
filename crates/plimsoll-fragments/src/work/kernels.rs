//! Decoding as kernels, and their twins: the same numbers on every device, because each weight is one product, and the exact
//! level is whole numbers.

use bytemuck::{Pod, Zeroable};
use plimsoll_core::{Bytes, Fault};
use plimsoll_runtime::{Access, Backend, Buffer, Kernel, Launch, Twin};

use crate::data_type::Float;
use crate::limits::PLANE_LEVELS_MAX;
use crate::quant::{Bits, LevelLayout, decode_from, moved_on};

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
    begin: u32,
    all: u32,
    unused: [u32; 2],
}

/// As the kernel of the exact level has them; see there.
#[repr(C)]
#[derive(Copy, Clone, Pod, Zeroable)]
struct ExactParams {
    weights: u32,
    row: u32,
    begin: u32,
    kind: u32,
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
    let weights = &mut weights[0][..params.weights as usize];
    decode_from(&levels, &bits, params.all as usize, params.begin as usize, weights)
        .expect("levels of the sizes they should have");
}

static EXACT: Kernel = Kernel {
    name: "fragments_exact",
    wgsl: include_str!("exact.wgsl"),
    entry: "fragments_exact",
    bindings: &[Access::Read, Access::Write],
    params: size_of::<ExactParams>(),
    twin: exact_twin,
};

const KINDS: [Float; 3] = [Float::F16, Float::BF16, Float::F32];

fn exact_twin(twin: &mut Twin<'_>) {
    let params: ExactParams = twin.params();
    let (differences, weights) = twin.words_from_to(0, 1);
    let float = KINDS[params.kind as usize];
    let differences = &bytemuck::cast_slice(differences)[params.begin as usize * float.bytes()..];
    moved_on(float, differences, &mut weights[..params.weights as usize]);
}

/// Bytes of so many decoded weights.
pub(super) fn result_bytes(weights: usize) -> Bytes {
    Bytes(4 * weights.max(1) as u64)
}

/// What is decoded of a piece: all of it, or weights from the first of a group.
#[derive(Copy, Clone, Debug)]
pub(super) struct Part {
    pub(super) all: usize,
    pub(super) begin: usize,
    pub(super) weights: usize,
}

/// Workgroups for so many weights, and the weights in a row of them.
fn groups(weights: usize) -> ([u32; 3], u32) {
    let groups = (weights as u32).div_ceil(GROUP).max(1);
    let across = groups.min(ROW_GROUPS);
    ([across, groups.div_ceil(across), 1], across * GROUP)
}

/// Records that a part of a piece is decoded from the levels of bit planes that are there.
pub(super) fn decode(
    backend: &mut dyn Backend,
    levels: &[&Buffer],
    bits: &Bits,
    part: Part,
    result: &Buffer,
) -> Result<(), Fault> {
    let layouts: Vec<LevelLayout> =
        (0..levels.len().min(bits.levels())).map(|level| LevelLayout::new(part.all, bits, level)).collect();
    let are_right = levels.len() == layouts.len()
        && levels.iter().zip(&layouts).all(|(level, layout)| level.bytes().0 == layout.bytes());
    let (Some(finest), true) = (layouts.last(), are_right) else {
        return Err(Fault::work("the levels of a piece have not the sizes that they should have"));
    };
    let (groups, row) = groups(part.weights);
    let mut params = Params {
        weights: part.weights as u32,
        levels: levels.len() as u32,
        row,
        bits: finest.bits.into(),
        scales: layouts[0].table as u32,
        added: layouts.iter().enumerate().map(|(level, layout)| u32::from(layout.added) << (4 * level)).sum(),
        planes: [0; PLANE_LEVELS_MAX],
        classes: finest.classes as u32,
        begin: part.begin as u32,
        all: part.all as u32,
        unused: [0; 2],
    };
    params.planes.iter_mut().zip(&layouts).for_each(|(begin, layout)| *begin = layout.planes_begin() as u32);
    // Levels that are not there are never looked at, but something has to be bound.
    let mut buffers: Vec<&Buffer> =
        (0..PLANE_LEVELS_MAX).map(|level| *levels.get(level).unwrap_or(&levels[0])).collect();
    buffers.push(result);
    let params = bytemuck::bytes_of(&params);
    backend.launch(&Launch { kernel: &DECODE, buffers: &buffers, params, groups })
}

/// Records that what was decoded from all levels of bit planes becomes what was packed, to the last bit.
pub(super) fn exact(
    backend: &mut dyn Backend,
    differences: &Buffer,
    float: Float,
    part: Part,
    result: &Buffer,
) -> Result<(), Fault> {
    if differences.bytes().0 != difference_bytes(float, part.all) {
        return Err(Fault::work("the exact level of a piece has not the size that it should have"));
    }
    let (groups, row) = groups(part.weights);
    let kind = KINDS.iter().position(|kind| *kind == float).unwrap_or_default() as u32;
    let params = ExactParams { weights: part.weights as u32, row, begin: part.begin as u32, kind };
    let params = bytemuck::bytes_of(&params);
    backend.launch(&Launch { kernel: &EXACT, buffers: &[differences, result], params, groups })
}

/// Bytes of the exact level of a piece on a device: whole words.
pub fn difference_bytes(float: Float, weights: usize) -> u64 {
    (weights * float.bytes()).next_multiple_of(4) as u64
}
