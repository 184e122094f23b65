//! The three passes of a mean over frames. Any number of frames goes through few buffers: sums and weights are handed
//! from pass to pass, one other frame each.

use std::ops::Range;

use bytemuck::{Pod, Zeroable};
use plimsoll_runtime::{Access, Kernel};

use super::weigh::{Columns, begin, finish, go_on};
use crate::frames::graph::{Pass, Rows, RowsMut, twin};
use crate::frames::ops::edges::rows_around;
use crate::frames::ops::exp2;
use crate::image::Size;

static FIRST: Kernel = Kernel {
    name: "temporal_first",
    wgsl: concat!(exp2::wgsl!(), include_str!("likeness.wgsl"), include_str!("first.wgsl")),
    entry: "temporal_first",
    bindings: &[Access::Read, Access::Read, Access::Write, Access::Write],
    params: size_of::<FirstPass>(),
    twin: twin::<FirstPass>,
};

static NEXT: Kernel = Kernel {
    name: "temporal_next",
    wgsl: concat!(exp2::wgsl!(), include_str!("likeness.wgsl"), include_str!("next.wgsl")),
    entry: "temporal_next",
    bindings: &[Access::Read, Access::Read, Access::Read, Access::Read, Access::Write, Access::Write],
    params: size_of::<NextPass>(),
    twin: twin::<NextPass>,
};

static LAST: Kernel = Kernel {
    name: "temporal_last",
    wgsl: include_str!("last.wgsl"),
    entry: "temporal_last",
    bindings: &[Access::Read, Access::Read, Access::Read, Access::Write],
    params: size_of::<LastPass>(),
    twin: twin::<LastPass>,
};

/// The uniform of `temporal_first`; the WGSL says what each field means.
#[repr(C)]
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
pub(super) struct FirstPass {
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) strength: f32,
    pub(super) padding: u32,
}

/// The uniform of `temporal_next`; the WGSL says what each field means.
#[repr(C)]
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
pub(super) struct NextPass {
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) strength: f32,
    pub(super) padding: u32,
}

/// The uniform of `temporal_last`; the WGSL says what each field means.
#[repr(C)]
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
pub(super) struct LastPass {
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) padding: [u32; 2],
}

impl Pass for FirstPass {
    const INPUTS: usize = 2;
    const OUTPUTS: usize = 2;

    fn kernel() -> &'static Kernel {
        &FIRST
    }

    fn output(&self) -> Size {
        Size { width: self.width, height: self.height }
    }

    fn reach(&self, _: &[f32], rows: Range<u32>) -> Range<u32> {
        rows_around(rows, 1, self.height)
    }

    fn rows(&self, _: &[f32], rows: Range<u32>, inputs: &[Rows<'_>], outputs: &mut [RowsMut<'_>]) {
        let [own, other] = [inputs[0], inputs[1]];
        let [sum, weight] = outputs else { unreachable!("a first pass gives two planes") };
        let mut columns = Columns::new(own, other, self.input(), rows.start);
        for y in rows {
            begin(columns.next_row(), self.strength, [own.row(y), other.row(y)], [sum.row(y), weight.row(y)]);
        }
    }
}

impl Pass for NextPass {
    const INPUTS: usize = 4;
    const OUTPUTS: usize = 2;

    fn kernel() -> &'static Kernel {
        &NEXT
    }

    fn output(&self) -> Size {
        Size { width: self.width, height: self.height }
    }

    fn reach(&self, _: &[f32], rows: Range<u32>) -> Range<u32> {
        rows_around(rows, 1, self.height)
    }

    fn rows(&self, _: &[f32], rows: Range<u32>, inputs: &[Rows<'_>], outputs: &mut [RowsMut<'_>]) {
        let [sum, weight] = outputs else { unreachable!("a next pass gives two planes") };
        let mut columns = Columns::new(inputs[0], inputs[1], self.input(), rows.start);
        for y in rows {
            let reads = [0, 1, 2, 3].map(|input| inputs[input].row(y));
            go_on(columns.next_row(), self.strength, reads, [sum.row(y), weight.row(y)]);
        }
    }
}

impl Pass for LastPass {
    const INPUTS: usize = 3;

    fn kernel() -> &'static Kernel {
        &LAST
    }

    fn output(&self) -> Size {
        Size { width: self.width, height: self.height }
    }

    fn rows(&self, _: &[f32], rows: Range<u32>, inputs: &[Rows<'_>], outputs: &mut [RowsMut<'_>]) {
        for y in rows {
            finish([0, 1, 2].map(|input| inputs[input].row(y)), outputs[0].row(y));
        }
    }
}
