//! Match finding as kernels, and their twins: a match for every position of a block, the same on every device.

use bytemuck::{Pod, Zeroable};
use plimsoll_core::{Bytes, Fault};
use plimsoll_runtime::{Access, Backend, Kernel, Launch, Twin};

use super::tables::{Tables, fill_first};
use super::{FIRST_BITS, LANE, LANE_BITS, LENGTH_MAX, Match, Reach};

/// Positions of one workgroup.
const GROUP: u32 = 256;
/// Bits of a distance in a word; the length has the rest.
const DISTANCE_BITS: u32 = 20;

#[repr(C)]
#[derive(Copy, Clone, Pod, Zeroable)]
struct Params {
    bytes: u32,
    distance_max: u32,
    row: u32,
    unused: u32,
}

const BINDINGS: &[Access] = &[Access::Read, Access::Write, Access::Write, Access::Write];

static FIRST: Kernel = Kernel {
    name: "match_first",
    wgsl: include_str!("matches.wgsl"),
    entry: "match_first",
    bindings: BINDINGS,
    params: size_of::<Params>(),
    twin: match_first,
};

static FIND: Kernel = Kernel {
    name: "match_find",
    wgsl: include_str!("matches.wgsl"),
    entry: "match_find",
    bindings: BINDINGS,
    params: size_of::<Params>(),
    twin: match_find,
};

fn match_first(twin: &mut Twin<'_>) {
    let Params { bytes, .. } = twin.params();
    let (block, first) = twin.words_from_to(0, 1);
    fill_first(&bytemuck::cast_slice::<u32, u8>(block)[..bytes as usize], first);
}

fn match_find(twin: &mut Twin<'_>) {
    let Params { bytes, distance_max, .. } = twin.params();
    let (block, found) = twin.words_from_to(0, 3);
    let block = &bytemuck::cast_slice::<u32, u8>(block)[..bytes as usize];
    let mut tables = Tables::new();
    let mut finder = tables.finder(block, Reach { distance_max });
    for (position, found) in found.iter_mut().enumerate().take(block.len()) {
        let Match { length, distance } = finder.at(position);
        *found = length << DISTANCE_BITS | distance;
    }
}

/// Bytes of the buffers that a block of so many bytes takes: itself, its tables, and what is found.
pub(crate) fn bytes_for(bytes: usize) -> Bytes {
    let buffers = sizes(bytes);
    Bytes(buffers.iter().map(|buffer| buffer.0).sum())
}

fn sizes(bytes: usize) -> [Bytes; 4] {
    let lanes = bytes.div_ceil(LANE).max(1) as u64;
    // One word more than the block: the kernel reads the word behind an unaligned one.
    let block = bytes.next_multiple_of(4) as u64 + 4;
    [Bytes(block), Bytes(4 << FIRST_BITS), Bytes(lanes * (4 << LANE_BITS)), Bytes(bytes.max(1) as u64 * 4)]
}

/// A match for every position of a block.
pub(crate) fn find(backend: &mut dyn Backend, block: &[u8], reach: Reach) -> Result<Vec<u32>, Fault> {
    let [block_bytes, first_bytes, lane_bytes, found_bytes] = sizes(block.len());
    let mut padded = block.to_vec();
    padded.resize(block_bytes.0 as usize, 0);
    let data = backend.allocate(block_bytes)?;
    backend.write(&data, Bytes::ZERO, &padded)?;
    let first = backend.allocate(first_bytes)?;
    backend.write(&first, Bytes::ZERO, &vec![0xff; first_bytes.0 as usize])?;
    let lanes = backend.allocate(lane_bytes)?;
    backend.write(&lanes, Bytes::ZERO, &vec![0; lane_bytes.0 as usize])?;
    let found = backend.allocate(found_bytes)?;
    let (buffers, length) = (&[&data, &first, &lanes, &found][..], block.len() as u32);
    let params =
        Params { bytes: length, distance_max: reach.distance_max, row: length.next_multiple_of(GROUP), unused: 0 };
    let params = bytemuck::bytes_of(&params);
    let groups = [length.div_ceil(GROUP).max(1), 1, 1];
    backend.launch(&Launch { kernel: &FIRST, buffers, params, groups })?;
    let groups = [block.len().div_ceil(LANE).max(1) as u32, 1, 1];
    backend.launch(&Launch { kernel: &FIND, buffers, params, groups })?;
    let mut matches = vec![0_u32; block.len()];
    backend.read(&found, Bytes::ZERO, bytemuck::cast_slice_mut(&mut matches))?;
    check(&matches)?;
    Ok(matches)
}

/// A length or distance that cannot be was never computed, or wrongly.
fn check(matches: &[u32]) -> Result<(), Fault> {
    let is_wrong = |(position, found): (usize, &u32)| {
        let Match { length, distance } = unpacked(*found);
        length > LENGTH_MAX || distance as usize > position || (length > 0) != (distance > 0)
    };
    match matches.iter().enumerate().position(is_wrong) {
        Some(at) => Err(Fault::WrongAnswer { detail: format!("the match at {at} of {} cannot be", matches.len()) }),
        None => Ok(()),
    }
}

/// A match out of its word.
pub(crate) fn unpacked(word: u32) -> Match {
    Match { length: word >> DISTANCE_BITS, distance: word & ((1 << DISTANCE_BITS) - 1) }
}
