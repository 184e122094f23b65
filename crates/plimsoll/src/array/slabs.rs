//! How many steps are handled together.
//! Invariant: a slab begins where the windows of every level do, so that levels are made of each slab by itself.

use plimsoll_arrays::Layout;

/// Bytes of a slab at the most, unless a row of chunks has more: the first chunks are packed while the rest of a shard is
/// still coming, and memory is used again before it has left the caches. Slabs of whole shards of 28 MiB took a fifth
/// longer for 4 × 56 MiB that nobody packs, and twice the memory.
const SLAB_BYTES_MAX: u64 = 8 << 20;
/// Bytes of a slab at the least, if steps are small. More wait longer before they are written, and are lost with the process;
/// fewer cost more to hand over than to pack.
const SLAB_BYTES_MIN: u64 = 4 << 20;
/// Bytes of a row of chunks that is a slab at the most: a GPU cuts whole rows only.
const ROW_BYTES_MAX: u64 = 32 << 20;

/// Steps along the first dimension in one slab.
pub(super) fn steps(layout: &Layout) -> u64 {
    let grid = &layout.levels()[0].grid;
    let fitting = |bytes: u64| (bytes / grid.step_bytes().max(1)).max(1);
    // The windows of every level begin at multiples of this.
    let window = layout.levels().iter().map(|level| level.factor[0]).max().unwrap_or(1);
    let (row, most) = (grid.chunk[0].next_multiple_of(window), fitting(ROW_BYTES_MAX));
    if most < row {
        return most.next_multiple_of(window);
    }
    // What is whole can be written: a row of shards is enough.
    let wanted = fitting(shard_bytes(layout).min(SLAB_BYTES_MAX));
    (wanted / row).max(1) * row
}

/// How many slabs are as much as a row of shards, within limits: so much is kept for each part of the way to the store,
/// so that a store that pauses does not stop a camera at once.
pub(super) fn in_shard(layout: &Layout) -> u64 {
    (shard_bytes(layout) / (steps(layout) * layout.levels()[0].grid.step_bytes()).max(1)).max(1)
}

/// Bytes of a row of shards, within limits.
fn shard_bytes(layout: &Layout) -> u64 {
    let grid = &layout.levels()[0].grid;
    grid.object()[0].saturating_mul(grid.step_bytes()).clamp(SLAB_BYTES_MIN, ROW_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use plimsoll_arrays::{ArraySpec, DataType, Levels};

    use super::*;

    fn steps_of(shape: &[u64], chunk: &[u64], levels: u32, axes: Option<&[&str]>) -> u64 {
        let axes = axes.map(|names| names.iter().map(|name| name.parse().unwrap()).collect());
        let levels = Levels::Count(levels);
        let spec = ArraySpec { levels, axes, ..ArraySpec::new(shape.to_vec(), DataType::U16, chunk.to_vec()) };
        steps(&Layout::new(&spec).unwrap())
    }

    #[test]
    fn whole_rows_of_chunks_where_they_fit() {
        assert_eq!(steps_of(&[0, 256, 256, 256], &[1, 64, 64, 64], 1, None), 1);
        assert_eq!(steps_of(&[0, 512, 512], &[2, 128, 128], 1, None), 8, "the least that is worth it");
        assert_eq!(steps_of(&[0, 512, 512], &[60, 128, 128], 1, None), 60, "as many as a row of files");
        assert_eq!(steps_of(&[0], &[100], 1, None), (2 << 20) / 100 * 100);
        assert_eq!(steps_of(&[0, 512, 512], &[12, 128, 128], 1, None), 12, "a whole row, though it has 6 MiB");
        assert_eq!(steps_of(&[0, 512, 512], &[17, 128, 128], 1, None), 17, "a whole row, though it has 8.5 MiB");
    }

    #[test]
    fn a_shard_comes_in_several_slabs() {
        let layout_of = |steps: u64| {
            let shard = Some(vec![steps, 512, 512]);
            Layout::new(&ArraySpec { shard, ..ArraySpec::new(vec![0, 512, 512], DataType::U16, vec![1, 128, 128]) })
        };
        let of = |shard: u64| layout_of(shard).map(|layout| (steps(&layout), in_shard(&layout))).unwrap();
        assert_eq!(of(4), (8, 1), "the least that is worth it");
        assert_eq!(of(16), (16, 1));
        assert_eq!(of(48), (16, 3));
        assert_eq!(of(4096), (16, 4), "not as many as the shard");
    }

    #[test]
    fn parts_of_a_row_where_it_is_larger() {
        assert_eq!(steps_of(&[0, 2048, 2304], &[64, 128, 128], 1, None), 3);
        assert_eq!(steps_of(&[0, 4096, 4096], &[64, 128, 128], 3, Some(&["z", "y", "x"])), 4, "two halvings of four");
    }

    #[test]
    fn windows_begin_with_a_slab() {
        assert_eq!(steps_of(&[0, 64, 64], &[3, 64, 64], 3, Some(&["z", "y", "x"])) % 4, 0);
    }
}
