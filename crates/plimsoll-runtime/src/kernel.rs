//! A kernel: WGSL text and the CPU twin of the same name, as data that any backend can launch.
//! Never names a GPU API.
//! Invariant: kernel and twin agree within the workload's stated tolerance (the conformance suite).

use std::fmt;

/// How a kernel uses one of its buffers.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// `var<storage, read>`
    Read,
    /// `var<storage, read_write>`
    Write,
}

/// A compute kernel in two forms.
///
/// The WGSL binds its storage buffers in group 0, binding 0, 1, … in the order of [`Kernel::bindings`], and, when
/// [`Kernel::params`] is not zero, a uniform of that many bytes at the next binding. Buffers are arrays of 32-bit words.
pub struct Kernel {
    /// The name of both forms.
    pub name: &'static str,
    /// The shader text.
    pub wgsl: &'static str,
    /// The entry point in it.
    pub entry: &'static str,
    /// The storage buffers, in order.
    pub bindings: &'static [Access],
    /// Bytes of uniform parameters, a multiple of 16 up to [`Kernel::PARAMS_LIMIT`].
    pub params: usize,
    /// The same work on the CPU: one call does the whole launch.
    pub twin: fn(&mut Twin<'_>),
}

impl Kernel {
    /// Bytes of parameters a launch may carry. Larger tables belong in a buffer.
    pub const PARAMS_LIMIT: usize = 256;
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernel").field("name", &self.name).finish_non_exhaustive()
    }
}

/// What the CPU twin of a launch sees.
#[derive(Debug)]
pub struct Twin<'a> {
    /// Workgroups in x, y, z, as the GPU would get them.
    pub groups: [u32; 3],
    /// The parameter bytes.
    pub params: &'a [u8],
    /// The storage buffers in binding order.
    pub buffers: Vec<&'a mut [u32]>,
}

impl Twin<'_> {
    /// The parameters as a plain type.
    ///
    /// # Panics
    /// If the launch carried another number of bytes than `T` has: the kernel and its caller disagree.
    pub fn params<T: bytemuck::AnyBitPattern>(&self) -> T {
        bytemuck::pod_read_unaligned(self.params)
    }

    /// Buffer `index` as floats.
    pub fn floats(&mut self, index: usize) -> &mut [f32] {
        bytemuck::cast_slice_mut(self.buffers[index])
    }

    /// Two different buffers as floats: one to read, one to write.
    pub fn floats_from_to(&mut self, from: usize, to: usize) -> (&[f32], &mut [f32]) {
        let [from, to] = self.buffers.get_disjoint_mut([from, to]).expect("two different bindings of this kernel");
        (bytemuck::cast_slice(from), bytemuck::cast_slice_mut(to))
    }
}
