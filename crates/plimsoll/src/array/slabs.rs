//! How many steps are handled together.
//! Invariant: a slab begins where the windows of every level do, so that levels are made of each slab by itself.

use plimsoll_arrays::Layout;

/// Bytes of a slab at the most: they keep every core busy with chunks of it, and a few lie in memory at once.
const SLAB_BYTES_MAX: u64 = 32 << 20;
/// Bytes of a slab at the least, if steps are small. More wait longer before they are written, and are lost with the process;
/// fewer cost more to hand over than to pack.
const SLAB_BYTES_MIN: u64 = 4 << 20;

/// Steps along the first dimension in one slab.
pub(super) fn steps(layout: &Layout) -> u64 {
    let grid = &layout.levels()[0].grid;
    // The windows of every level begin at multiples of this.
    let window = layout.levels().iter().map(|level| level.factor[0]).max().unwrap_or(1);
    // What is whole can be written: a row of shards is enough.
    let shards = grid.object()[0].saturating_mul(grid.step_bytes()).clamp(SLAB_BYTES_MIN, SLAB_BYTES_MAX);
    let wanted = (shards / grid.step_bytes().max(1)).max(1);
    let row = grid.chunk[0].next_multiple_of(window);
    if wanted >= row { wanted / row * row } else { wanted.next_multiple_of(window) }
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
