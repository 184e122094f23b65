//! The sum of many floats as a tree of fixed shape, level by level.
//! Never adds in an order that depends on the device, on timing or on how the values were cut into pieces.

use bytemuck::{Pod, Zeroable};
use plimsoll_core::{Bytes, Fault};

use crate::backend::{Backend, Buffer, Launch, read_floats};
use crate::kernel::{Access, Kernel, Twin};

/// Values that one workgroup adds, as the WGSL says.
const BRANCH: usize = 1024;
/// Invocations in one workgroup.
const LANES: usize = 256;

/// Values on the device at once. A multiple of [`BRANCH`], so that pieces do not show in the tree; large enough that
/// a launch costs more than its submission.
const PIECE: usize = 1 << 20;

/// One level of the tree.
pub static KERNEL: Kernel = Kernel {
    name: "sum",
    wgsl: include_str!("sum.wgsl"),
    entry: "sum",
    bindings: &[Access::Read, Access::Write],
    params: size_of::<Params>(),
    twin: sum_level,
};

/// The uniform; the WGSL says what each field means.
#[repr(C)]
#[derive(Copy, Clone, Pod, Zeroable)]
struct Params {
    count: u32,
    first_out: u32,
    unused: [u32; 2],
}

/// More values than a 32-bit index can name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} values are more than one sum can take")]
pub struct TooManyValuesError(usize);

/// Bytes that [`sum`] of `count` values holds at most, exactly.
pub fn sum_bytes(count: usize) -> Bytes {
    let (first, second) = level_sizes(count);
    Bytes(4 * (count.min(PIECE) + first + second) as u64)
}

/// Words of the two buffers between which the levels go to and fro; the second is not needed for a single level.
fn level_sizes(count: usize) -> (usize, usize) {
    let first = count.div_ceil(BRANCH);
    (first, if first > 1 { first.div_ceil(BRANCH) } else { 0 })
}

/// Adds up the values. The sum of nothing is 0.
///
/// # Errors
/// Whatever the backend reports; [`Fault::WorkFailed`] if there are more than 2^32 values.
pub fn sum(backend: &mut dyn Backend, values: &[f32]) -> Result<f32, Fault> {
    if values.is_empty() {
        return Ok(0.0);
    }
    if u32::try_from(values.len()).is_err() {
        return Err(Fault::work(TooManyValuesError(values.len())));
    }
    let (first_size, second_size) = level_sizes(values.len());
    let source = allocate_floats(backend, values.len().min(PIECE))?;
    let mut filled = allocate_floats(backend, first_size)?;
    first_level(backend, values, &source, &filled)?;
    if second_size == 0 {
        return first_float(backend, &filled);
    }
    let mut spare = allocate_floats(backend, second_size)?;
    let mut count = first_size;
    while count > 1 {
        backend.poison(&spare)?;
        launch_level(backend, &filled, &spare, count, 0)?;
        std::mem::swap(&mut filled, &mut spare);
        count = count.div_ceil(BRANCH);
    }
    first_float(backend, &filled)
}

fn allocate_floats(backend: &mut dyn Backend, count: usize) -> Result<Buffer, Fault> {
    backend.allocate(Bytes(count as u64 * 4))
}

fn first_float(backend: &mut dyn Backend, buffer: &Buffer) -> Result<f32, Fault> {
    Ok(read_floats(backend, buffer, 1)?[0])
}

/// Brings the values piece by piece; each piece leaves its part of the first level.
fn first_level(backend: &mut dyn Backend, values: &[f32], source: &Buffer, partial: &Buffer) -> Result<(), Fault> {
    for (index, piece) in values.chunks(PIECE).enumerate() {
        backend.write(source, Bytes::ZERO, bytemuck::cast_slice(piece))?;
        launch_level(backend, source, partial, piece.len(), index * (PIECE / BRANCH))?;
    }
    Ok(())
}

fn launch_level(
    backend: &mut dyn Backend,
    source: &Buffer,
    partial: &Buffer,
    count: usize,
    first_out: usize,
) -> Result<(), Fault> {
    let params = Params { count: count as u32, first_out: first_out as u32, unused: [0; 2] };
    let groups = count.div_ceil(BRANCH) as u32;
    let across = groups.min(Kernel::GROUPS_LIMIT);
    backend.launch(&Launch {
        kernel: &KERNEL,
        buffers: &[source, partial],
        params: bytemuck::bytes_of(&params),
        groups: [across, groups.div_ceil(across), 1],
    })
}

fn sum_level(twin: &mut Twin<'_>) {
    let params: Params = twin.params();
    let (source, partial) = twin.floats_from_to(0, 1);
    let groups = source[..params.count as usize].chunks(BRANCH);
    for (values, partial) in groups.zip(&mut partial[params.first_out as usize..]) {
        *partial = sum_group(values);
    }
}

/// One workgroup's values, added in its order: four strided values a lane, then lanes by halves.
fn sum_group(values: &[f32]) -> f32 {
    let mut lanes = [0.0_f32; LANES];
    for strip in values.chunks(LANES) {
        for (lane, value) in lanes.iter_mut().zip(strip) {
            *lane += value;
        }
    }
    let mut reach = LANES / 2;
    while reach > 0 {
        let (low, high) = lanes.split_at_mut(reach);
        for (low, high) in low.iter_mut().zip(high) {
            *low += *high;
        }
        reach /= 2;
    }
    lanes[0]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::CpuDevice;
    use crate::device::Device;

    #[test]
    fn whole_numbers_add_up_exactly_over_all_levels_and_pieces() {
        let mut slot = CpuDevice::open().open_backend().unwrap();
        for count in [0, 1, 2, 255, 257, 1023, 1024, 1025, 5000, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE + 7] {
            let values: Vec<f32> = (0..count).map(|i| (i % 5) as f32).collect();
            let wanted: u64 = (0..count as u64).map(|i| i % 5).sum();
            assert_eq!(sum(&mut *slot, &values).unwrap(), wanted as f32, "{count} values");
        }
    }

    #[test]
    fn footprint_counts_a_piece_and_two_levels() {
        assert_eq!(sum_bytes(0), Bytes::ZERO);
        assert_eq!(sum_bytes(1), Bytes(8));
        assert_eq!(sum_bytes(1025), Bytes(4 * (1025 + 2 + 1)));
        assert_eq!(sum_bytes(3 * PIECE), Bytes(4 * (PIECE + 3072 + 3) as u64));
    }
}
