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
    /// Workgroups in one direction of a launch: what every GPU API grants. Spread larger launches over y and z.
    pub const GROUPS_LIMIT: u32 = 65_535;
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernel").field("name", &self.name).finish_non_exhaustive()
    }
}

/// One storage buffer as the CPU twin sees it.
///
/// What a kernel only reads, its twin only reads: two slots can then work from one prepared reference at once.
#[derive(Debug)]
pub enum Words<'a> {
    /// Bound as [`Access::Read`].
    Read(&'a [u32]),
    /// Bound as [`Access::Write`].
    Write(&'a mut [u32]),
}

impl Words<'_> {
    fn read(&self) -> &[u32] {
        match self {
            Self::Read(words) => words,
            Self::Write(words) => words,
        }
    }

    fn write(&mut self) -> &mut [u32] {
        match self {
            Self::Read(_) => panic!("the kernel's bindings say that it only reads this buffer"),
            Self::Write(words) => words,
        }
    }
}

/// What the CPU twin of a launch sees.
///
/// Its accessors panic where the twin disagrees with its kernel's own description, as indexing does.
#[derive(Debug)]
pub struct Twin<'a> {
    /// Workgroups in x, y, z, as the GPU would get them.
    pub groups: [u32; 3],
    /// The parameter bytes.
    pub params: &'a [u8],
    /// The storage buffers in binding order.
    pub buffers: Vec<Words<'a>>,
}

impl Twin<'_> {
    /// The parameters as a plain type.
    ///
    /// # Panics
    /// If the launch carried another number of bytes than `T` has: the kernel and its caller disagree.
    pub fn params<T: bytemuck::AnyBitPattern>(&self) -> T {
        bytemuck::pod_read_unaligned(self.params)
    }

    /// Buffer `index` as floats, to read.
    pub fn floats(&self, index: usize) -> &[f32] {
        bytemuck::cast_slice(self.buffers[index].read())
    }

    /// Buffer `index` as floats, to write.
    ///
    /// # Panics
    /// If the kernel only reads it.
    pub fn floats_mut(&mut self, index: usize) -> &mut [f32] {
        bytemuck::cast_slice_mut(self.buffers[index].write())
    }

    /// Buffer `index` as words, to read.
    pub fn words(&self, index: usize) -> &[u32] {
        self.buffers[index].read()
    }

    /// Buffer `index` as words, to write.
    ///
    /// # Panics
    /// If the kernel only reads it.
    pub fn words_mut(&mut self, index: usize) -> &mut [u32] {
        self.buffers[index].write()
    }

    /// Two different buffers as words: one to read, one to write.
    ///
    /// # Panics
    /// If they are the same, or the kernel only reads the second.
    pub fn words_from_to(&mut self, from: usize, to: usize) -> (&[u32], &mut [u32]) {
        let [from, to] = self.buffers.get_disjoint_mut([from, to]).expect("two different bindings of this kernel");
        (from.read(), to.write())
    }

    /// Two different buffers as floats: one to read, one to write.
    ///
    /// # Panics
    /// As [`Twin::words_from_to`].
    pub fn floats_from_to(&mut self, from: usize, to: usize) -> (&[f32], &mut [f32]) {
        let (from, to) = self.words_from_to(from, to);
        (bytemuck::cast_slice(from), bytemuck::cast_slice_mut(to))
    }

    /// Every buffer as floats, by what the kernel does with it: those it only reads, then those it writes, each in the
    /// order of their bindings. For kernels with more than one buffer of a kind.
    pub fn reads_and_writes(&mut self) -> (Vec<&[f32]>, Vec<&mut [f32]>) {
        let (mut reads, mut writes) = (Vec::new(), Vec::new());
        for words in &mut self.buffers {
            match words {
                Words::Read(words) => reads.push(bytemuck::cast_slice(words)),
                Words::Write(words) => writes.push(bytemuck::cast_slice_mut(words)),
            }
        }
        (reads, writes)
    }
}
