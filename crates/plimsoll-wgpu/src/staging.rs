//! The way between our memory and the device's: a few buffers of fixed size, used again and again.
//! Never grows: larger copies go in pieces. `Queue::write_buffer` is not used, because it loses the device when memory
//! runs out.
//! Invariant: a buffer is mapped by us or used by the device, never both.

use std::sync::mpsc;

use plimsoll_core::{Bytes, Fault};
use wgpu::{BufferUsages, MapMode, SubmissionIndex};

use crate::generation::Generation;

/// Bytes of the buffers of one slot.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sizes {
    /// Each upload buffer, and the download buffer.
    chunk: u64,
    /// The source of poison.
    poison: u64,
    /// All buffers that are kept to be written again.
    spares: u64,
}

impl Sizes {
    /// At least this much, so that parameters always fit.
    const CHUNK_MIN: u64 = 16 << 10;
    /// Above this a copy takes far longer than its submission: more would not be faster.
    const CHUNK_MAX: u64 = 4 << 20;
    const POISON_MAX: u64 = 256 << 10;
    /// Of the buffer through which values leave for other devices: they go in pieces, one after the other, and what more
    /// would gain is little beside the copy.
    const FETCH_MAX: u64 = 1 << 20;
    /// Of buffers that are kept to be written again: what more would gain is gained once a model, and these bytes are nobody
    /// else's.
    const SPARES_MAX: u64 = 256 << 20;
    /// The parameters of one launch.
    pub(crate) const UNIFORM: u64 = plimsoll_runtime::Kernel::PARAMS_LIMIT as u64;

    /// Of what the device may hold a thirty-second part for all slots together, within bounds: with all their buffers
    /// they then stay within an eighth of it. One slot alone takes no more than one of two.
    pub(crate) fn for_capacity(capacity: Bytes, slots: usize) -> Self {
        let chunk = (capacity.0 / (32 * slots.max(2) as u64)).clamp(Self::CHUNK_MIN, Self::CHUNK_MAX) & !255;
        Self { chunk, poison: (chunk / 4).min(Self::POISON_MAX), spares: 0 }
    }

    /// The same for a device whose memory is the host's: there a 256th part is for buffers that are written again.
    pub(crate) fn with_spares(self, capacity: Bytes) -> Self {
        Self { spares: (capacity.0 / 256).min(Self::SPARES_MAX), ..self }
    }

    /// Sizes of which the last buffer to be made is larger than any device has.
    #[cfg(test)]
    pub(crate) fn that_fail_half_way() -> Self {
        Self { chunk: Self::CHUNK_MIN, poison: 1 << 50, spares: 0 }
    }

    /// The buffer that all who fetch share.
    pub(crate) fn fetch(self) -> Bytes {
        Bytes(self.chunk.min(Self::FETCH_MAX))
    }

    /// What buffers that are kept to be written again may have together.
    pub(crate) fn spares(self) -> Bytes {
        Bytes(self.spares)
    }

    /// The download buffer of a slot.
    pub(crate) fn download(self) -> u64 {
        self.chunk
    }

    /// All that a slot holds besides its tasks' buffers.
    pub(crate) fn total(self) -> Bytes {
        Bytes((Upload::CHUNKS as u64 + 1) * self.chunk + self.poison + Self::UNIFORM)
    }
}

/// Makes a buffer, or says that there is no room for it.
pub(crate) fn create(
    generation: &Generation,
    label: &'static str,
    size: u64,
    usage: BufferUsages,
    mapped_at_creation: bool,
) -> Result<wgpu::Buffer, Fault> {
    let descriptor = wgpu::BufferDescriptor { label: Some(label), size, usage, mapped_at_creation };
    generation.call(Bytes(size), || generation.device.create_buffer(&descriptor))
}

/// Maps a buffer that the device is done with once `after` is.
fn map(
    generation: &Generation,
    buffer: &wgpu::Buffer,
    mode: MapMode,
    length: u64,
    after: SubmissionIndex,
) -> Result<(), Fault> {
    let mapped = ask_for(generation, buffer, mode, length)?;
    generation.wait(Some(after))?;
    // Another slot that waited beside us may have taken our callback along, and not have come to run it yet.
    match mapped.recv_timeout(generation.answer_timeout()) {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(lost(error)),
        Err(error) => Err(lost(error)),
    }
}

/// Maps a buffer to be written, if the device is done with it now; says whether it is mapped. Asked once: one that is not
/// will be when nobody expects it.
pub(crate) fn map_idle(generation: &Generation, buffer: &wgpu::Buffer) -> Result<bool, Fault> {
    let mapped = ask_for(generation, buffer, MapMode::Write, buffer.size())?;
    generation.tick()?;
    match mapped.try_recv() {
        Ok(result) => result.map(|()| true).map_err(lost),
        Err(_) => Ok(false),
    }
}

type Mapped = Result<(), wgpu::BufferAsyncError>;

/// Asks for a buffer of ours to be mapped, which is told when the device is asked next.
fn ask_for(
    generation: &Generation,
    buffer: &wgpu::Buffer,
    mode: MapMode,
    length: u64,
) -> Result<mpsc::Receiver<Mapped>, Fault> {
    let (sender, mapped) = mpsc::sync_channel(1);
    let asked = generation.call(Bytes::ZERO, || {
        buffer.map_async(mode, ..length, move |result| {
            // Nobody listens any more if the wait timed out.
            let _ = sender.try_send(result);
        });
    });
    // The buffer is ours and was sound when it was made. If it is not any more its device has gone, even where wgpu does not
    // tell of that yet; no task is to blame.
    asked.map_err(|fault| match fault {
        Fault::WorkFailed(error) => lost(error),
        other => other,
    })?;
    Ok(mapped)
}

fn lost(error: impl std::fmt::Display) -> Fault {
    Fault::DeviceLost { detail: error.to_string() }
}

/// A piece of data in an upload buffer, to be copied from there.
pub(crate) struct Staged<'a> {
    pub(crate) buffer: &'a wgpu::Buffer,
    pub(crate) offset: u64,
}

#[derive(Debug)]
struct Chunk {
    buffer: wgpu::Buffer,
    /// The submission that reads from it; none while it is mapped.
    read_by: Option<SubmissionIndex>,
}

/// Buffers that we fill while the device still reads from earlier ones.
#[derive(Debug)]
pub(crate) struct Upload {
    chunks: [Chunk; Self::CHUNKS],
    size: u64,
    current: usize,
    filled: u64,
}

impl Upload {
    /// One to fill, one to be read from: a third gave nothing more.
    const CHUNKS: usize = 2;
    /// Mapped ranges start at multiples of this.
    const ALIGNMENT: u64 = 16;

    pub(crate) fn new(generation: &Generation, sizes: Sizes) -> Result<Self, Fault> {
        let chunk = || -> Result<Chunk, Fault> {
            let usage = BufferUsages::MAP_WRITE | BufferUsages::COPY_SRC;
            let buffer = create(generation, "upload", sizes.chunk, usage, true)?;
            Ok(Chunk { buffer, read_by: None })
        };
        Ok(Self { chunks: [chunk()?, chunk()?], size: sizes.chunk, current: 0, filled: 0 })
    }

    /// Bytes that still fit before the next submission.
    pub(crate) fn room(&self) -> u64 {
        self.size - self.filled
    }

    /// Puts data, at most [`Upload::room`] bytes, into the current buffer.
    pub(crate) fn put(&mut self, generation: &Generation, data: &[u8]) -> Result<Staged<'_>, Fault> {
        let chunk = &mut self.chunks[self.current];
        if let Some(submission) = chunk.read_by.clone() {
            map(generation, &chunk.buffer, MapMode::Write, self.size, submission)?;
            chunk.read_by = None;
        }
        let offset = self.filled;
        let end = offset + data.len() as u64;
        chunk.buffer.get_mapped_range_mut(offset..end).map_err(lost)?.copy_from_slice(data);
        self.filled = end.next_multiple_of(Self::ALIGNMENT).min(self.size);
        Ok(Staged { buffer: &chunk.buffer, offset })
    }

    /// Takes back what was put into the current buffer and not handed over.
    pub(crate) fn discard(&mut self) {
        self.filled = 0;
    }

    /// Lets go of the current buffer so that the device may read it. Call before submitting, and then
    /// [`Upload::submitted`].
    pub(crate) fn seal(&mut self) {
        if self.filled > 0 {
            self.chunks[self.current].buffer.unmap();
        }
    }

    /// Goes on with the next buffer.
    pub(crate) fn submitted(&mut self, submission: &SubmissionIndex) {
        if self.filled > 0 {
            self.chunks[self.current].read_by = Some(submission.clone());
            self.current = (self.current + 1) % Self::CHUNKS;
            self.filled = 0;
        }
    }
}

/// The buffer through which results come back.
#[derive(Debug)]
pub(crate) struct Download {
    pub(crate) buffer: wgpu::Buffer,
    pub(crate) size: u64,
}

impl Download {
    pub(crate) fn new(generation: &Generation, size: u64) -> Result<Self, Fault> {
        let usage = BufferUsages::MAP_READ | BufferUsages::COPY_DST;
        Ok(Self { buffer: create(generation, "download", size, usage, false)?, size })
    }

    /// Copies out what the submission has put here.
    pub(crate) fn take(
        &self,
        generation: &Generation,
        submission: SubmissionIndex,
        into: &mut [u8],
    ) -> Result<(), Fault> {
        take(generation, &self.buffer, submission, into)
    }
}

/// Copies out what the submission has put into a buffer that can be mapped.
pub(crate) fn take(
    generation: &Generation,
    buffer: &wgpu::Buffer,
    submission: SubmissionIndex,
    into: &mut [u8],
) -> Result<(), Fault> {
    let length = into.len() as u64;
    map(generation, buffer, MapMode::Read, length, submission)?;
    let copied = match buffer.get_mapped_range(..length) {
        Ok(view) => {
            into.copy_from_slice(&view);
            Ok(())
        }
        Err(error) => Err(lost(error)),
    };
    buffer.unmap();
    copied
}

/// The device's own copy of the poison pattern, copied from to fill outputs: no kernel to compile, no binding limit.
pub(crate) fn poison_source(generation: &Generation, sizes: Sizes) -> Result<wgpu::Buffer, Fault> {
    create(generation, "poison", sizes.poison, BufferUsages::COPY_SRC | BufferUsages::COPY_DST, false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_of_ours_that_is_gone_is_a_lost_device_before_anybody_tells_of_it() {
        let generation = Generation::of_any_gpu();
        let usage = BufferUsages::MAP_READ | BufferUsages::COPY_DST;
        let buffer = create(&generation, "download", 64, usage, false).unwrap();
        let after = generation.submit(generation.encoder().unwrap()).unwrap().submission;
        buffer.destroy();
        let fault = map(&generation, &buffer, MapMode::Read, 64, after);
        assert!(matches!(fault, Err(Fault::DeviceLost { .. })), "{fault:?}");
        generation.health.check().expect("nobody has told of a loss");
    }

    #[test]
    fn all_slots_together_stay_within_an_eighth_of_the_device() {
        for capacity in [Bytes::mib(8), Bytes::mib(64), Bytes::gib(1), Bytes::gib(80)] {
            for slots in 1..=4 {
                let sizes = Sizes::for_capacity(capacity, slots as usize).with_spares(capacity);
                let held = Bytes(slots * sizes.total().0) + sizes.fetch() + sizes.spares();
                assert!(sizes.spares() > Bytes::ZERO);
                assert!(held.0 <= capacity.0 / 8, "{capacity}: {held} for {slots}");
            }
        }
    }

    #[test]
    fn sizes_are_bounded_and_aligned() {
        assert_eq!(Sizes::for_capacity(Bytes::MAX, 2).chunk, Sizes::CHUNK_MAX);
        assert_eq!(Sizes::for_capacity(Bytes::ZERO, 2).chunk, Sizes::CHUNK_MIN);
        assert_eq!(Sizes::for_capacity(Bytes(64 * 123_457), 2).chunk % 256, 0);
        assert_eq!(Sizes::for_capacity(Bytes::MAX, 2).with_spares(Bytes::MAX).spares, Sizes::SPARES_MAX);
    }
}
