//! The backend: what a device's worker does with buffers and kernels.
//! Never chooses anything; an error is a typed [`Fault`] and never aborts the process.
//! Invariant: every byte it allocates is charged to its device's gauge and to the current scope's (`conformance`).

use std::any::Any;
use std::sync::{Arc, RwLockReadGuard};
use std::time::Duration;

use plimsoll_core::{Bytes, Fault};

use crate::fence::{Fence, FenceState};
use crate::gauge::{Charge, Gauge};
use crate::kernel::Kernel;
use crate::misuse::Pieces;
use crate::readback::Readback;

/// The word that fills an output before anything has written it: a quiet NaN that no computation yields by chance.
/// A result that still holds it was never computed.
pub const POISON: u32 = 0x7fc0_dead;

/// Memory on a device. Dropping it gives the bytes back at once.
#[derive(Debug)]
pub struct Buffer {
    content: Box<dyn Any + Send + Sync>,
    charge: Charge,
}

impl Buffer {
    /// Wraps a backend's own buffer type. Only backends call this.
    pub fn new(content: Box<dyn Any + Send + Sync>, charge: Charge) -> Self {
        Self { content, charge }
    }

    /// The backend's own buffer, if it is of type `T`.
    pub fn content<T: Any>(&self) -> Option<&T> {
        self.content.downcast_ref()
    }

    /// Its size.
    pub fn bytes(&self) -> Bytes {
        self.charge.bytes()
    }

    /// From now on its bytes count on this gauge instead of the one of whoever allocated it: for what outlives its task
    /// under a grant of its own.
    pub fn charge_to(&mut self, gauge: &Arc<Gauge>) {
        self.charge.move_to(gauge);
    }
}

/// The words of a buffer: see [`Backend::view`].
#[derive(Debug)]
pub struct View<'a>(pub(crate) Seen<'a>);

#[derive(Debug)]
pub(crate) enum Seen<'a> {
    Here(RwLockReadGuard<'a, Vec<u32>>),
    Copy(Vec<u32>),
}

impl View<'_> {
    /// The words as numbers.
    pub fn floats(&self) -> &[f32] {
        match &self.0 {
            Seen::Here(words) => bytemuck::cast_slice(words),
            Seen::Copy(words) => bytemuck::cast_slice(words),
        }
    }
}

/// One kernel over some buffers.
#[derive(Debug)]
pub struct Launch<'a> {
    /// What to run.
    pub kernel: &'static Kernel,
    /// Its buffers, in the order of [`Kernel::bindings`]; one that is written is bound once, one that is only read may
    /// be bound several times.
    pub buffers: &'a [&'a Buffer],
    /// Its parameters, exactly [`Kernel::params`] bytes.
    pub params: &'a [u8],
    /// Workgroups in x, y, z.
    pub groups: [u32; 3],
}

/// One worker's way to its device. Calls return when the order of effects is fixed; [`Backend::read`] waits for them.
/// Each piece of work ends with [`Backend::finish`] or [`Backend::abandon`], so that nothing of it crosses over to the next.
///
/// A worker that prepares the next piece while the device works on this one does not [`Backend::read`], which waits for
/// everything and keeps the device idle meanwhile. It kicks and drains:
///
/// ```
/// use std::time::Duration;
///
/// use plimsoll_core::{Bytes, Fault};
/// use plimsoll_runtime::cpu::CpuDevice;
/// use plimsoll_runtime::{Backend, Device, FenceState};
///
/// fn prepare(slot: &mut dyn Backend, piece: u32) -> Result<(plimsoll_runtime::Fence, plimsoll_runtime::Readback), Fault> {
///     let buffer = slot.allocate(Bytes(4))?;
///     slot.write(&buffer, Bytes::ZERO, &piece.to_ne_bytes())?; // and launches
///     let readback = slot.stage_read(&buffer, Bytes::ZERO, Bytes(4))?;
///     Ok((slot.kick()?, readback))
/// }
///
/// let mut slot = CpuDevice::open().open_backend()?;
/// let mut ahead = prepare(&mut *slot, 0)?;
/// for piece in 1..=3_u32 {
///     let next = prepare(&mut *slot, piece)?;
///     let (fence, readback) = std::mem::replace(&mut ahead, next);
///     let mut bytes = [0; 4];
///     if slot.wait(&fence, Duration::from_secs(60))? == FenceState::Done {
///         slot.collect(readback, &mut bytes)?; // while the device works on `piece`
///     }
///     assert_eq!(u32::from_ne_bytes(bytes), piece - 1);
/// }
/// # Ok::<(), Fault>(())
/// ```
///
/// Sizes and offsets are multiples of 4 bytes. Misuse (a foreign buffer, a range outside it, wrong parameters) is
/// [`Fault::WorkFailed`]: the workload's mistake, on every backend alike.
pub trait Backend: Send {
    /// Bytes in one buffer at most.
    fn buffer_limit(&self) -> Bytes;

    /// Memory filled with [`POISON`].
    ///
    /// # Errors
    /// [`Fault::OutOfMemory`] if it does not fit; [`Fault::DeviceLost`] if the device is gone.
    fn allocate(&mut self, bytes: Bytes) -> Result<Buffer, Fault>;

    /// Memory that holds what the pieces give, one behind the other: `bytes` in all. Nothing is written there before them,
    /// so that each byte is written once.
    ///
    /// # Errors
    /// As [`Backend::allocate`] and [`Backend::write`]; [`Fault::WorkFailed`] if the pieces have more or fewer bytes.
    fn allocate_from(&mut self, bytes: Bytes, pieces: &mut dyn Iterator<Item = &[u8]>) -> Result<Buffer, Fault> {
        let mut places = Pieces::of(bytes)?;
        let buffer = self.allocate(bytes)?;
        for piece in pieces {
            self.write(&buffer, places.next(piece)?, piece)?;
        }
        places.end()?;
        Ok(buffer)
    }

    /// Memory that holds these words: the very same where the device's memory is the host's, a copy of them elsewhere.
    ///
    /// # Errors
    /// As [`Backend::allocate`] and [`Backend::write`].
    fn adopt(&mut self, words: Vec<u32>) -> Result<Buffer, Fault> {
        let data: &[u8] = bytemuck::cast_slice(&words);
        self.allocate_from(Bytes(data.len() as u64), &mut std::iter::once(data))
    }

    /// The words of a buffer after all earlier work: as they lie where the device's memory is the host's, a copy of them
    /// elsewhere. Nobody writes the buffer while they are looked at.
    ///
    /// # Errors
    /// As [`Backend::read`].
    fn view<'a>(&mut self, buffer: &'a Buffer) -> Result<View<'a>, Fault> {
        let mut words = vec![0; (buffer.bytes().0 / 4) as usize];
        self.read(buffer, Bytes::ZERO, bytemuck::cast_slice_mut(&mut words))?;
        Ok(View(Seen::Copy(words)))
    }

    /// Fills a buffer with [`POISON`] again, before it is used for another output.
    ///
    /// # Errors
    /// [`Fault::DeviceLost`] if the device is gone.
    fn poison(&mut self, buffer: &Buffer) -> Result<(), Fault>;

    /// Copies `data` to `offset` bytes into the buffer.
    ///
    /// # Errors
    /// [`Fault::OutOfMemory`] if staging memory does not fit; [`Fault::DeviceLost`] if the device is gone.
    fn write(&mut self, buffer: &Buffer, offset: Bytes, data: &[u8]) -> Result<(), Fault>;

    /// Runs a kernel after all earlier writes and launches.
    ///
    /// # Errors
    /// As [`Backend::write`].
    fn launch(&mut self, launch: &Launch<'_>) -> Result<(), Fault>;

    /// Waits for all earlier work and copies bytes out of a buffer.
    ///
    /// # Errors
    /// As [`Backend::write`]; [`Fault::Stalled`] if the device does not answer within its time limit.
    fn read(&mut self, buffer: &Buffer, offset: Bytes, into: &mut [u8]) -> Result<(), Fault>;

    /// Ends a piece of work that succeeded. Everything that was recorded is handed to the device, and what is wrong with
    /// it is reported here, to whoever recorded it. Other slots then find in its buffers what was put there. Does not
    /// wait until the device has done it: [`Backend::read`] does.
    ///
    /// # Errors
    /// As [`Backend::write`]; [`Fault::WorkFailed`] if the device refuses what was recorded.
    fn finish(&mut self) -> Result<(), Fault>;

    /// Hands everything over as [`Backend::finish`] does, and returns a fence for all that this slot has handed over so
    /// far. Does not wait until the device has done it. A driver may still take its time: Mesa's software GPU accepts no
    /// work before it has done what it was given last, so there only the preparing of a piece runs beside the one before.
    ///
    /// # Errors
    /// As [`Backend::finish`]; [`Fault::WorkFailed`] if [`crate::KICKS_LIMIT`] fences of this slot are held and not
    /// drained: what was recorded is still recorded then, and can be kicked once one of them is.
    fn kick(&mut self) -> Result<Fence, Fault>;

    /// Waits until what a fence stands for is done, at most as long as `limit`; with a limit of zero it only asks. A limit
    /// that passes is no fault. The fence may be another slot's of the same device.
    ///
    /// # Errors
    /// [`Fault::DeviceLost`] if the device is gone, or the life of it that the fence is of; [`Fault::Stalled`] if the
    /// device does not answer within its own time limit; [`Fault::WorkFailed`] for another device's fence.
    fn wait(&mut self, fence: &Fence, limit: Duration) -> Result<FenceState, Fault>;

    /// Records that bytes are copied out of a buffer, after all earlier writes and launches and before all later ones. They
    /// are collected once the work was handed over. The readback holds as many bytes of the device meanwhile, charged
    /// like a buffer's.
    ///
    /// [`Backend::read`] queues its copy behind all that was handed over before it, later pieces too; this one lies in the
    /// queue before them.
    ///
    /// # Errors
    /// As [`Backend::allocate`].
    fn stage_read(&mut self, buffer: &Buffer, offset: Bytes, bytes: Bytes) -> Result<Readback, Fault>;

    /// Copies out what [`Backend::stage_read`] asked for, on any slot of the device. Waits until the work it was recorded
    /// with is done, and for nothing that was handed over later.
    ///
    /// # Errors
    /// As [`Backend::read`]; [`Fault::WorkFailed`] if it was never handed over, or `into` has another size.
    fn collect(&mut self, readback: Readback, into: &mut [u8]) -> Result<(), Fault>;

    /// Ends a piece of work that failed. What was recorded and not yet handed over is discarded, and nobody hears of it
    /// again: buffers that it would have written hold nothing of meaning, all others are as they were. A slot that is
    /// dropped abandons what was not finished.
    fn abandon(&mut self);

    /// From now on allocations are charged to this gauge too. Returns the gauge that was charged before.
    fn charge_to(&mut self, scope: Arc<Gauge>) -> Arc<Gauge>;
}

/// Reads 32-bit floats and refuses any that nothing has written.
///
/// # Errors
/// As [`Backend::read`]; [`Fault::WrongAnswer`] if poison is left.
pub fn read_floats(backend: &mut dyn Backend, buffer: &Buffer, count: usize) -> Result<Vec<f32>, Fault> {
    let mut words = vec![0_u32; count];
    backend.read(buffer, Bytes::ZERO, bytemuck::cast_slice_mut(&mut words))?;
    match words.iter().position(|&word| word == POISON) {
        Some(at) => Err(Fault::WrongAnswer { detail: format!("word {at} of {count} was never written") }),
        None => Ok(words.into_iter().map(f32::from_bits).collect()),
    }
}
