//! A pass: one kernel over planes, with its parameters. The kernel's twin and the CPU rung run the same rows.
//! Never allocates on a device; the two executors do (`device.rs`, `host/`).
//! Invariant: rows of any band come out as they would in one call for the whole plane.

use std::fmt;
use std::ops::Range;

use bytemuck::Pod;
use plimsoll_runtime::{Kernel, Twin};

use super::codes::OnCodes;
use super::rows::{Rows, RowsMut};
use crate::image::Size;

/// One kernel over planes. The type is the kernel's uniform, so its fields are what the WGSL says.
///
/// Every input plane is of one size, and so is every output plane. The kernel binds its inputs, then its table if it has
/// one, then its outputs; it has one invocation for each pixel of an output plane, in workgroups of 16 x 16, and writes
/// each exactly once.
pub(crate) trait Pass: Pod + Send + Sync + fmt::Debug {
    /// Planes read.
    const INPUTS: usize = 1;
    /// Planes written.
    const OUTPUTS: usize = 1;

    /// The kernel; its twin is [`twin`] of this type.
    fn kernel() -> &'static Kernel;

    /// The size of each input plane; that of the output, if the pass does not say.
    fn input(&self) -> Size {
        self.output()
    }

    /// The size of each output plane.
    fn output(&self) -> Size;

    /// The input rows that these output rows are made of, all within the plane; the same rows, if the pass does not say.
    /// One that looks anywhere gives `0..height`, one that looks nowhere an empty range.
    fn reach(&self, _table: &[f32], rows: Range<u32>) -> Range<u32> {
        rows
    }

    /// What it does to codes, where it can be said without numbers; `None`, if the pass does not say.
    fn on_codes<'a>(&self, _table: &'a [f32]) -> Option<OnCodes<'a>> {
        None
    }

    /// Computes output rows. Each function of rows that takes long is `#[autoversion]`ed.
    fn rows(&self, table: &[f32], rows: Range<u32>, inputs: &[Rows<'_>], outputs: &mut [RowsMut<'_>]);
}

/// The CPU twin of a pass's kernel: all rows at once.
pub(crate) fn twin<P: Pass>(twin: &mut Twin<'_>) {
    let pass: P = twin.params();
    let (reads, writes) = twin.reads_and_writes();
    let (inputs, tables) = reads.split_at(P::INPUTS);
    let inputs: Vec<Rows<'_>> = inputs.iter().map(|plane| whole(plane, pass.input())).collect();
    let mut outputs: Vec<RowsMut<'_>> = writes.into_iter().map(|plane| whole_mut(plane, pass.output())).collect();
    let table = tables.first().copied().unwrap_or_default();
    pass.rows(table, 0..pass.output().height, &inputs, &mut outputs);
}

/// Buffers are used again for smaller planes, so they may be longer.
fn whole(plane: &[f32], size: Size) -> Rows<'_> {
    Rows::new(&plane[..size.pixels() as usize], size.width)
}

fn whole_mut(plane: &mut [f32], size: Size) -> RowsMut<'_> {
    RowsMut::new(&mut plane[..size.pixels() as usize], size.width)
}

/// A pass of any type with its table.
pub(crate) trait AnyPass: Send + Sync + fmt::Debug {
    fn kernel(&self) -> &'static Kernel;
    fn params(&self) -> &[u8];
    fn table(&self) -> &[f32];
    fn output(&self) -> Size;
    fn reach(&self, rows: Range<u32>) -> Range<u32>;
    fn on_codes(&self) -> Option<OnCodes<'_>>;
    fn rows(&self, rows: Range<u32>, inputs: &[Rows<'_>], outputs: &mut [RowsMut<'_>]);
}

/// A pass and the table it looks things up in: weights of a filter, samples of an overlay.
#[derive(Debug)]
pub(super) struct WithTable<P> {
    pub(super) pass: P,
    pub(super) table: Vec<f32>,
}

impl<P: Pass> AnyPass for WithTable<P> {
    fn kernel(&self) -> &'static Kernel {
        P::kernel()
    }

    fn params(&self) -> &[u8] {
        bytemuck::bytes_of(&self.pass)
    }

    fn table(&self) -> &[f32] {
        &self.table
    }

    fn output(&self) -> Size {
        self.pass.output()
    }

    fn reach(&self, rows: Range<u32>) -> Range<u32> {
        self.pass.reach(&self.table, rows)
    }

    fn on_codes(&self) -> Option<OnCodes<'_>> {
        self.pass.on_codes(&self.table)
    }

    fn rows(&self, rows: Range<u32>, inputs: &[Rows<'_>], outputs: &mut [RowsMut<'_>]) {
        self.pass.rows(&self.table, rows, inputs, outputs);
    }
}
