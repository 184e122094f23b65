//! What a workload can get wrong in a call to a backend, checked the same way on every backend.
//! Never looks at a device: what a call says about itself is enough.
//! Invariant: a call that passes here is refused by no backend as malformed (`conformance`).

use plimsoll_core::{Bytes, Fault};

use crate::backend::{Buffer, Launch};
use crate::fence::KICKS_LIMIT;
use crate::kernel::{Access, Kernel};

/// A call that no device can do as asked. Always the workload's mistake, hence [`Fault::WorkFailed`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MisuseError {
    /// A size or offset that is not a multiple of 4 bytes, or an empty buffer.
    #[error("{0} bytes: sizes are multiples of 4 and not zero, offsets are multiples of 4")]
    Unaligned(u64),
    /// A range that does not lie in its buffer.
    #[error("bytes {offset}..+{length} of a buffer of {size} bytes")]
    OutOfRange {
        /// Where the range starts.
        offset: u64,
        /// How long it is.
        length: u64,
        /// How large the buffer is.
        size: u64,
    },
    /// A buffer, fence or readback of another device.
    #[error("the {0} belongs to another device")]
    Foreign(&'static str),
    /// Too many or too few buffers for the kernel.
    #[error("kernel '{kernel}' takes {wanted} buffers, got {got}")]
    BufferCount {
        /// The kernel.
        kernel: &'static str,
        /// How many it binds.
        wanted: usize,
        /// How many the launch carries.
        got: usize,
    },
    /// One buffer bound twice, once at least to be written.
    #[error("kernel '{kernel}' got one buffer as bindings {first} and {second}")]
    SameBuffer {
        /// The kernel.
        kernel: &'static str,
        /// One binding.
        first: usize,
        /// The other.
        second: usize,
    },
    /// Too many or too few parameter bytes for the kernel, or a kernel that asks for an impossible number.
    #[error("kernel '{kernel}' takes {wanted} bytes of parameters, got {got}")]
    ParamBytes {
        /// The kernel.
        kernel: &'static str,
        /// How many it takes.
        wanted: usize,
        /// How many the launch carries.
        got: usize,
    },
    /// A kick while [`KICKS_LIMIT`] fences of the slot are held and not drained.
    #[error("{KICKS_LIMIT} kicks of this slot are not drained: wait for one of their fences before the next")]
    TooManyKicks,
    /// A readback that was collected before its work was handed over.
    #[error("the readback was only recorded: kick or finish its work before it is collected")]
    NotHandedOver,
    /// A readback whose work was abandoned, or refused by the device.
    #[error("the work that this readback belongs to was abandoned, so there is nothing to collect")]
    Abandoned,
    /// A readback collected into memory of another size.
    #[error("the readback has {wanted} bytes, but is collected into {got}")]
    ReadbackBytes {
        /// How many it has.
        wanted: u64,
        /// How many there is room for.
        got: u64,
    },
    /// Pieces that do not fill their buffer.
    #[error("the pieces end at byte {got} of a buffer of {wanted} bytes")]
    Pieces {
        /// How large the buffer is.
        wanted: u64,
        /// How many bytes there were.
        got: u64,
    },
    /// More workgroups in one direction than [`Kernel::GROUPS_LIMIT`].
    #[error("kernel '{kernel}' launched with {groups:?} workgroups; at most 65535 in each direction")]
    TooManyGroups {
        /// The kernel.
        kernel: &'static str,
        /// The workgroups asked for.
        groups: [u32; 3],
    },
}

impl From<MisuseError> for Fault {
    fn from(misuse: MisuseError) -> Self {
        Self::work(misuse)
    }
}

/// Checks the size of a buffer to be made.
///
/// # Errors
/// [`MisuseError::Unaligned`].
pub fn check_size(bytes: Bytes) -> Result<(), MisuseError> {
    if bytes.0 == 0 || !bytes.0.is_multiple_of(4) { Err(MisuseError::Unaligned(bytes.0)) } else { Ok(()) }
}

/// Checks that `length` bytes at `offset` lie in the buffer.
///
/// # Errors
/// [`MisuseError::Unaligned`] or [`MisuseError::OutOfRange`].
pub fn check_range(buffer: &Buffer, offset: Bytes, length: usize) -> Result<(), MisuseError> {
    let (offset, length, size) = (offset.0, length as u64, buffer.bytes().0);
    if let Some(&odd) = [offset, length].iter().find(|n| !n.is_multiple_of(4)) {
        return Err(MisuseError::Unaligned(odd));
    }
    match offset.checked_add(length) {
        Some(end) if end <= size => Ok(()),
        _ => Err(MisuseError::OutOfRange { offset, length, size }),
    }
}

/// Where the pieces go that a buffer is made from: one behind the other, to its last byte.
#[derive(Debug)]
pub struct Pieces {
    wanted: u64,
    got: u64,
}

impl Pieces {
    /// Of a buffer of so many bytes.
    ///
    /// # Errors
    /// [`MisuseError::Unaligned`].
    pub fn of(bytes: Bytes) -> Result<Self, MisuseError> {
        check_size(bytes)?;
        Ok(Self { wanted: bytes.0, got: 0 })
    }

    /// Where the next piece begins.
    ///
    /// # Errors
    /// [`MisuseError::Unaligned`], or [`MisuseError::Pieces`] if it ends behind the buffer.
    pub fn next(&mut self, piece: &[u8]) -> Result<Bytes, MisuseError> {
        let (offset, length) = (self.got, piece.len() as u64);
        if !length.is_multiple_of(4) {
            return Err(MisuseError::Unaligned(length));
        }
        self.got += length;
        if self.got > self.wanted {
            self.end()?;
        }
        Ok(Bytes(offset))
    }

    /// No piece is left.
    ///
    /// # Errors
    /// [`MisuseError::Pieces`] if they do not end where the buffer does.
    pub fn end(&self) -> Result<(), MisuseError> {
        let Self { wanted, got } = *self;
        if got == wanted { Ok(()) } else { Err(MisuseError::Pieces { wanted, got }) }
    }
}

/// Checks a readback of `bytes` at `offset` of the buffer.
///
/// # Errors
/// [`MisuseError::Unaligned`] or [`MisuseError::OutOfRange`].
pub fn check_readback(buffer: &Buffer, offset: Bytes, bytes: Bytes) -> Result<(), MisuseError> {
    check_size(bytes)?;
    // What does not fit an address is larger than any buffer.
    check_range(buffer, offset, usize::try_from(bytes.0).unwrap_or(usize::MAX & !3))
}

/// Checks that a launch carries what its kernel takes.
///
/// # Errors
/// The first thing that does not match.
pub fn check_launch(launch: &Launch<'_>) -> Result<(), MisuseError> {
    let Kernel { name: kernel, bindings, params, .. } = *launch.kernel;
    if launch.buffers.len() != bindings.len() {
        return Err(MisuseError::BufferCount { kernel, wanted: bindings.len(), got: launch.buffers.len() });
    }
    for (second, buffer) in launch.buffers.iter().enumerate() {
        let clash = |first: &usize| {
            std::ptr::eq(launch.buffers[*first], *buffer)
                && [bindings[*first], bindings[second]].contains(&Access::Write)
        };
        if let Some(first) = (0..second).find(clash) {
            return Err(MisuseError::SameBuffer { kernel, first, second });
        }
    }
    if launch.params.len() != params || params > Kernel::PARAMS_LIMIT || !params.is_multiple_of(16) {
        return Err(MisuseError::ParamBytes { kernel, wanted: params, got: launch.params.len() });
    }
    if launch.groups.iter().any(|&groups| groups > Kernel::GROUPS_LIMIT) {
        return Err(MisuseError::TooManyGroups { kernel, groups: launch.groups });
    }
    Ok(())
}
