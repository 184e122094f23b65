//! The steps of a filter as kernels, and their twins: the same bytes on every device.
//! Never undoes anything: that is done where the bytes are needed, on the CPU.

use bytemuck::{Pod, Zeroable};
use plimsoll_core::{Bytes, Fault};
use plimsoll_runtime::{Access, Backend, Buffer, Kernel, Launch, Twin};

use super::{Element, Filter, Step, StepKind};

/// Words that one workgroup writes.
const GROUP: u32 = 256;
/// Workgroups side by side; more go into further rows.
const ROW_GROUPS: u32 = 32_768;

#[repr(C)]
#[derive(Copy, Clone, Pod, Zeroable)]
struct Params {
    bytes: u32,
    width: u32,
    row: u32,
    unused: u32,
}

const fn kernel(name: &'static str, twin: fn(&mut Twin<'_>)) -> Kernel {
    Kernel {
        name,
        wgsl: include_str!("filter.wgsl"),
        entry: name,
        bindings: &[Access::Read, Access::Write],
        params: size_of::<Params>(),
        twin,
    }
}

static SHUFFLE: Kernel = kernel("filter_shuffle", |twin| step_twin(twin, StepKind::Shuffle));
static BITSHUFFLE: Kernel = kernel("filter_bitshuffle", |twin| step_twin(twin, StepKind::Bitshuffle));
static DELTA: Kernel = kernel("filter_delta", |twin| step_twin(twin, StepKind::Delta));

fn step_twin(twin: &mut Twin<'_>, kind: StepKind) {
    let Params { bytes, width, .. } = twin.params();
    let element = match width {
        1 => Element::U8,
        2 => Element::U16,
        4 => Element::U32,
        _ => Element::U64,
    };
    let (from, to) = twin.words_from_to(0, 1);
    let from = &bytemuck::cast_slice::<u32, u8>(from)[..bytes as usize];
    let to: &mut [u8] = bytemuck::cast_slice_mut(to);
    let (to, behind) = to.split_at_mut(bytes as usize);
    to.copy_from_slice(from);
    Step { kind, element }.apply_to(from, to);
    // The kernel writes whole words.
    let rest = (bytes as usize).next_multiple_of(4) - bytes as usize;
    behind[..rest].fill(0);
}

/// Bytes of the buffers that a block of so many bytes takes.
pub(crate) fn buffer_bytes(bytes: usize) -> Bytes {
    Bytes(bytes.next_multiple_of(4).max(4) as u64)
}

/// Does a filter to a block that lies on the device in `block`; what comes of it lies in one of the two buffers.
pub(crate) fn apply(
    backend: &mut dyn Backend,
    filter: &Filter,
    bytes: usize,
    block: Buffer,
    scratch: Buffer,
) -> Result<Buffer, Fault> {
    let (mut from, mut to) = (block, scratch);
    for Step { kind, element } in filter.steps() {
        let kernel = match kind {
            StepKind::Shuffle => &SHUFFLE,
            StepKind::Bitshuffle => &BITSHUFFLE,
            StepKind::Delta => &DELTA,
        };
        let groups = (bytes.div_ceil(4) as u32).div_ceil(GROUP).max(1);
        let across = groups.min(ROW_GROUPS);
        let params = Params { bytes: bytes as u32, width: element.width() as u32, row: across * GROUP, unused: 0 };
        backend.poison(&to)?;
        let (buffers, params) = (&[&from, &to][..], bytemuck::bytes_of(&params));
        backend.launch(&Launch { kernel, buffers, params, groups: [across, groups.div_ceil(across), 1] })?;
        std::mem::swap(&mut from, &mut to);
    }
    Ok(from)
}
