//! The kernels of butteraugli, each WGSL text and the CPU twin of the same name, in the order in which they are used.
//! What every one of them takes is planes of one size, row by row without gaps.

pub(super) mod difference;
pub(super) mod fir;
pub(super) mod halve_three;
pub(super) mod malta;
pub(super) mod mask;
pub(super) mod norms;
pub(super) mod opsin;
pub(super) mod split;

use bytemuck::{Pod, Zeroable};

/// Pixels of a plane in each direction: the parameters of kernels that need no others.
#[repr(C)]
#[derive(Copy, Clone, Pod, Zeroable)]
pub(super) struct Extent {
    pub(super) width: u32,
    pub(super) rows: u32,
    unused: [u32; 2],
}

impl Extent {
    pub(super) fn of([width, rows]: [u32; 2]) -> Self {
        Self { width, rows, unused: [0; 2] }
    }

    /// Pixels of the plane. Buffers may be longer.
    pub(super) fn pixels(self) -> usize {
        self.width as usize * self.rows as usize
    }
}
