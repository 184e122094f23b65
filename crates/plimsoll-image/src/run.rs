//! What a metric or a chain has at hand while it works on a device.

use plimsoll_core::{Bytes, Fault};
use plimsoll_runtime::{Backend, Buffer, Cancellation, Kernel, Launch};

/// One task's way to its device.
pub(crate) struct Run<'a> {
    /// The device.
    pub(crate) backend: &'a mut dyn Backend,
    /// Whether the result is still wanted.
    pub(crate) cancellation: Cancellation<'a>,
}

/// Pixels of one workgroup in each direction: every kernel over a plane has `@workgroup_size(16, 16)`.
const GROUP: u32 = 16;

/// Pixels in one direction that a launch over a plane covers at most.
pub(crate) const SIDE_MAX: u32 = Kernel::GROUPS_LIMIT * GROUP;

impl Run<'_> {
    /// A buffer for this many 32-bit words.
    pub(crate) fn allocate(&mut self, words: u64) -> Result<Buffer, Fault> {
        self.backend.allocate(Bytes(words * 4))
    }

    /// Runs a kernel with one invocation for each of `width` x `rows` pixels (and some over, which do nothing).
    pub(crate) fn over(
        &mut self,
        kernel: &'static Kernel,
        buffers: &[&Buffer],
        params: &impl bytemuck::NoUninit,
        width: u32,
        rows: u32,
    ) -> Result<(), Fault> {
        self.launch(kernel, buffers, params, [width.div_ceil(GROUP), rows.div_ceil(GROUP), 1])
    }

    /// As [`Run::over`], with parameters whose type is not known here.
    pub(crate) fn over_bytes(
        &mut self,
        kernel: &'static Kernel,
        buffers: &[&Buffer],
        params: &[u8],
        width: u32,
        rows: u32,
    ) -> Result<(), Fault> {
        self.launch_bytes(kernel, buffers, params, [width.div_ceil(GROUP), rows.div_ceil(GROUP), 1])
    }

    /// Runs a kernel in this many workgroups. Asks first whether the result is still wanted.
    pub(crate) fn launch(
        &mut self,
        kernel: &'static Kernel,
        buffers: &[&Buffer],
        params: &impl bytemuck::NoUninit,
        groups: [u32; 3],
    ) -> Result<(), Fault> {
        self.launch_bytes(kernel, buffers, bytemuck::bytes_of(params), groups)
    }

    fn launch_bytes(
        &mut self,
        kernel: &'static Kernel,
        buffers: &[&Buffer],
        params: &[u8],
        groups: [u32; 3],
    ) -> Result<(), Fault> {
        self.cancellation.check()?;
        self.backend.launch(&Launch { kernel, buffers, params, groups })
    }
}
