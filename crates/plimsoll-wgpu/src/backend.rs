//! One worker's slot on a GPU: buffers, copies and launches, recorded and handed over together.
//! Never waits, except to read or collect, for a fence, to reuse a staging buffer, or to make room.
//! Invariant: a call succeeds only if the device is not known to be lost after it, and work that was recorded but not
//! handed over taints every buffer it would have written, so nobody reads what was never computed.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use std::time::Duration;

use plimsoll_core::{Bytes, Fault, MemoryMoment};
use plimsoll_runtime::gauge::{Charge, Gauge};
use plimsoll_runtime::misuse::{MisuseError, Pieces, check_launch, check_range, check_readback, check_size};
use plimsoll_runtime::{Access, Backend, Buffer, Fence, FenceState, Kicks, Launch, Origin, POISON, Readback, Staged};
use wgpu::{BindGroupEntry, BindingResource, BufferBinding, BufferUsages};

use crate::completion::Completion;
use crate::fetch::Fetcher;
use crate::generation::Generation;
use crate::inject::FaultInjection;
use crate::readback::{CopiedBy, GpuReadback};
use crate::spares::Spares;
use crate::staging::{Download, Sizes, Upload, create, poison_source};

/// Launches recorded before they are handed over, so that the device is not idle while we record.
const RECORDED_MAX: usize = 64;

/// What a buffer of a task is used for.
const STORAGE: BufferUsages = BufferUsages::STORAGE.union(BufferUsages::COPY_SRC).union(BufferUsages::COPY_DST);

/// The same of one that is written where it lies.
const MAPPED: BufferUsages = STORAGE.union(BufferUsages::MAP_WRITE);

/// What a slot needs of its device.
#[derive(Clone, Debug)]
pub(crate) struct Home {
    pub(crate) gauge: Arc<Gauge>,
    /// What the allocator refuses past.
    pub(crate) ceiling: Bytes,
    pub(crate) sizes: Sizes,
    pub(crate) injection: Arc<FaultInjection>,
}

/// One worker's way to a GPU.
#[derive(Debug)]
pub(crate) struct WgpuBackend {
    home: Home,
    generation: Arc<Generation>,
    scope: Arc<Gauge>,
    upload: Upload,
    download: Download,
    uniform: wgpu::Buffer,
    poison: wgpu::Buffer,
    encoder: Option<wgpu::CommandEncoder>,
    /// The taints of the buffers that recorded work writes.
    written: Vec<Arc<AtomicBool>>,
    /// Of those that it reads: as long as they are here, nobody writes into the same memory for somebody else.
    read: Vec<Arc<AtomicBool>>,
    /// The readbacks that recorded work copies into.
    copied: Vec<CopiedBy>,
    launches: usize,
    origin: Origin,
    /// What this slot submitted last.
    last: Option<Arc<Completion>>,
    kicks: Kicks,
    staged: Staged,
    /// Kept open beside the slots, so that a fetch need not make it.
    _fetcher: Arc<Fetcher>,
    spares: Arc<Spares>,
    _charge: Charge,
}

/// What a fence stands for here; none if its slot had submitted nothing.
type Kicked = Option<Arc<Completion>>;

/// What a [`Buffer`] of this backend holds.
#[derive(Debug)]
pub(crate) struct GpuBuffer {
    pub(crate) raw: wgpu::Buffer,
    origin: Origin,
    /// Set if work on it was lost, so that what it holds means nothing.
    tainted: Arc<AtomicBool>,
    unreclaimed: Arc<AtomicU64>,
    /// Where it goes when nobody needs it any more, if it can be written where it lies.
    spares: Weak<Spares>,
}

impl Drop for GpuBuffer {
    fn drop(&mut self) {
        let spares = self.spares.upgrade().filter(|_| !self.is_recorded());
        let let_go = spares.map_or(self.raw.size(), |spares| spares.keep(self.raw.clone()).0);
        self.unreclaimed.fetch_add(let_go, Relaxed);
    }
}

impl GpuBuffer {
    /// Whether recorded work names it that was not handed over: what that finds there must be what was there.
    fn is_recorded(&self) -> bool {
        Arc::strong_count(&self.tainted) > 1
    }

    /// The buffer as this life of this device knows it, if it is its own and what it holds means something.
    pub(crate) fn of<'a>(buffer: &'a Buffer, origin: &Origin) -> Result<&'a Self, Fault> {
        let own = buffer.content::<Self>().ok_or(MisuseError::Foreign("buffer"))?;
        origin.check(&own.origin, "buffer")?;
        if own.tainted.load(Relaxed) {
            return Err(Fault::work("earlier work on this buffer failed, so what it holds means nothing"));
        }
        Ok(own)
    }
}

pub(crate) fn out_of_memory(wanted: Bytes) -> Fault {
    Fault::OutOfMemory { moment: MemoryMoment::Run, wanted }
}

impl WgpuBackend {
    pub(crate) fn open(home: Home, generation: Arc<Generation>) -> Result<Self, Fault> {
        generation.health.check()?;
        let scope = Arc::new(Gauge::default());
        let held = home.sizes.total();
        let charge = Charge::new(held, home.ceiling, &home.gauge, &scope).ok_or_else(|| out_of_memory(held))?;
        let uniform_usage = BufferUsages::UNIFORM | BufferUsages::COPY_DST;
        let origin = Origin::new(&home.gauge, generation.number);
        let mut slot = Self {
            upload: Upload::new(&generation, home.sizes)?,
            download: Download::new(&generation, home.sizes.download())?,
            uniform: create(&generation, "params", Sizes::UNIFORM, uniform_usage, false)?,
            poison: poison_source(&generation, home.sizes)?,
            encoder: None,
            written: Vec::new(),
            read: Vec::new(),
            copied: Vec::new(),
            launches: 0,
            scope: Arc::default(),
            last: None,
            kicks: Kicks::new(origin.clone()),
            staged: Staged::new(origin.clone()),
            origin,
            _fetcher: Fetcher::of(&generation, || home.clone())?,
            spares: Spares::of(&generation, || home.clone())?,
            _charge: charge,
            home,
            generation,
        };
        let pattern = vec![POISON; slot.poison.size() as usize / 4];
        let poison = slot.poison.clone();
        slot.stage(&poison, 0, bytemuck::cast_slice(&pattern))?;
        // At once: a first task that fails must not take the poison with it.
        slot.finish()?;
        slot.generation.tick()?;
        Ok(slot)
    }

    fn own<'a>(&self, buffer: &'a Buffer) -> Result<&'a GpuBuffer, Fault> {
        GpuBuffer::of(buffer, &self.origin)
    }

    /// Where the next command goes.
    fn encoder(&mut self) -> Result<&mut wgpu::CommandEncoder, Fault> {
        let encoder = match self.encoder.take() {
            Some(encoder) => encoder,
            None => self.generation.encoder()?,
        };
        Ok(self.encoder.insert(encoder))
    }

    /// Notes that recorded work writes the buffer.
    fn will_write(&mut self, buffer: &GpuBuffer) {
        self.written.push(Arc::clone(&buffer.tainted));
    }

    /// Notes that recorded work reads the buffer.
    fn will_read(&mut self, buffer: &GpuBuffer) {
        self.read.push(Arc::clone(&buffer.tainted));
    }

    /// Hands over what is recorded; none if there is nothing.
    fn flush(&mut self) -> Result<Option<Arc<Completion>>, Fault> {
        let Some(encoder) = self.encoder.take() else { return Ok(None) };
        self.launches = 0;
        match self.hand_over(encoder) {
            Ok(completion) => {
                let completion = Arc::new(completion);
                self.written.clear();
                self.read.clear();
                for copied_by in self.copied.drain(..) {
                    // Each is recorded once, so nothing was set before.
                    let _ = copied_by.set(Arc::clone(&completion));
                }
                self.upload.submitted(&completion.submission);
                self.last = Some(Arc::clone(&completion));
                Ok(Some(completion))
            }
            Err(fault) => {
                self.taint();
                Err(fault)
            }
        }
    }

    /// What recorded work would have written or copied never comes now.
    fn taint(&mut self) {
        self.written.drain(..).for_each(|tainted| tainted.store(true, Relaxed));
        self.read.clear();
        self.copied.clear();
        self.staged.abandoned();
    }

    /// Never asks a device that is lost: one that hangs would hang us too.
    fn hand_over(&mut self, encoder: wgpu::CommandEncoder) -> Result<Completion, Fault> {
        self.generation.health.check()?;
        self.upload.seal();
        let submitted = self.generation.submit(encoder);
        if submitted.is_err() && self.generation.health.check().is_ok() {
            // The sealed buffer is no longer ours, and the device was never told of it.
            match Upload::new(&self.generation, self.home.sizes) {
                Ok(fresh) => self.upload = fresh,
                Err(fault) => self.generation.health.lose(format!("no upload buffer: {fault}")),
            }
        }
        submitted
    }

    /// Copies data of any length into a buffer, through the upload buffers.
    fn stage(&mut self, target: &wgpu::Buffer, mut offset: u64, mut data: &[u8]) -> Result<(), Fault> {
        while !data.is_empty() {
            if self.upload.room() == 0 {
                self.flush()?;
            }
            let (piece, rest) = data.split_at(data.len().min(self.upload.room() as usize));
            let staged = self.upload.put(&self.generation, piece)?;
            let (source, source_offset) = (staged.buffer.clone(), staged.offset);
            self.encoder()?.copy_buffer_to_buffer(&source, source_offset, target, offset, piece.len() as u64);
            offset += piece.len() as u64;
            data = rest;
        }
        Ok(())
    }

    /// Makes the buffer; if the driver has no room, once more after all that was dropped is really gone.
    fn create(&mut self, label: &'static str, bytes: Bytes, usage: BufferUsages) -> Result<wgpu::Buffer, Fault> {
        let is_mapped = usage.contains(BufferUsages::MAP_WRITE);
        match create(&self.generation, label, bytes.0, usage, is_mapped) {
            Err(Fault::OutOfMemory { .. }) => {
                self.reclaim()?;
                create(&self.generation, label, bytes.0, usage, is_mapped)
            }
            made => made,
        }
    }

    /// Memory for a task: charged, and really there.
    fn obtain(
        &mut self,
        label: &'static str,
        bytes: Bytes,
        usage: BufferUsages,
    ) -> Result<(wgpu::Buffer, Charge), Fault> {
        let charge = self.charge(bytes)?;
        Ok((self.create(label, bytes, usage)?, charge))
    }

    /// Promises memory to a task.
    fn charge(&mut self, bytes: Bytes) -> Result<Charge, Fault> {
        // Beyond this wgpu would call it misuse; to a task it is memory that is not there.
        if bytes > self.buffer_limit() || self.home.injection.allocation_fails() {
            return Err(out_of_memory(bytes));
        }
        self.evict_idle(bytes)?;
        Charge::new(bytes, self.home.ceiling, &self.home.gauge, &self.scope).ok_or_else(|| out_of_memory(bytes))
    }

    fn reclaim(&mut self) -> Result<(), Fault> {
        self.flush()?;
        self.spares.clear();
        self.generation.reclaim()
    }

    /// wgpu frees a dropped buffer when the work that names it is done. Until then it counts against the ceiling.
    fn evict_idle(&mut self, bytes: Bytes) -> Result<(), Fault> {
        let unreclaimed = Bytes(self.generation.unreclaimed.load(Relaxed));
        let held = self.home.gauge.now() + unreclaimed;
        if unreclaimed > Bytes::ZERO && held + bytes > self.home.ceiling { self.reclaim() } else { Ok(()) }
    }

    /// A buffer that is about to be written.
    fn storage(&mut self, bytes: Bytes) -> Result<(GpuBuffer, Charge), Fault> {
        let (raw, charge) = self.obtain("storage", bytes, STORAGE)?;
        let own = self.owned(raw, Weak::new());
        self.generation.tick()?;
        self.will_write(&own);
        Ok((own, charge))
    }

    fn owned(&self, raw: wgpu::Buffer, spares: Weak<Spares>) -> GpuBuffer {
        let (origin, unreclaimed) = (self.origin.clone(), Arc::clone(&self.generation.unreclaimed));
        GpuBuffer { raw, origin, tainted: Arc::default(), unreclaimed, spares }
    }

    /// A buffer that is mapped: one that was there before, if the device is done with it. The memory of a new one is cleared
    /// first, by wgpu and page by page by the system, which takes far longer than to write it.
    fn mapped(&mut self, bytes: Bytes) -> Result<(wgpu::Buffer, Charge), Fault> {
        let charge = self.charge(bytes)?;
        if let Some(spare) = self.spares.take(&self.generation, bytes)? {
            return Ok((spare, charge));
        }
        let raw = self.create("storage", bytes, MAPPED)?;
        self.generation.tick()?;
        Ok((raw, charge))
    }

    /// A buffer of a device whose memory is ours, written where it lies: nothing is recorded, and nobody waits.
    fn mapped_from(
        &mut self,
        bytes: Bytes,
        mut places: Pieces,
        pieces: &mut dyn Iterator<Item = &[u8]>,
    ) -> Result<Buffer, Fault> {
        let (raw, charge) = self.mapped(bytes)?;
        let lost = |error: wgpu::MapRangeError| Fault::DeviceLost { detail: error.to_string() };
        let mut view = raw.get_mapped_range_mut(..).map_err(lost)?;
        for piece in pieces {
            let begin = places.next(piece)?.0 as usize;
            view.slice(begin..begin + piece.len()).copy_from_slice(piece);
        }
        places.end()?;
        drop(view);
        self.generation.call(Bytes::ZERO, || raw.unmap())?;
        self.generation.health.check()?;
        let own = self.owned(raw, Arc::downgrade(&self.spares));
        Ok(Buffer::new(Box::new(own), charge))
    }

    /// A buffer that is written through the upload buffers.
    fn staged_from(
        &mut self,
        bytes: Bytes,
        mut places: Pieces,
        pieces: &mut dyn Iterator<Item = &[u8]>,
    ) -> Result<Buffer, Fault> {
        let (own, charge) = self.storage(bytes)?;
        for piece in pieces {
            self.stage(&own.raw, places.next(piece)?.0, piece)?;
        }
        places.end()?;
        self.generation.health.check()?;
        Ok(Buffer::new(Box::new(own), charge))
    }

    fn record_poison(&mut self, target: &wgpu::Buffer) -> Result<(), Fault> {
        let source = self.poison.clone();
        for offset in (0..target.size()).step_by(source.size() as usize) {
            let length = source.size().min(target.size() - offset);
            self.encoder()?.copy_buffer_to_buffer(&source, 0, target, offset, length);
        }
        Ok(())
    }

    fn bind(
        &self,
        launch: &Launch<'_>,
        own: &[&GpuBuffer],
        layout: &wgpu::BindGroupLayout,
    ) -> Result<wgpu::BindGroup, Fault> {
        let storage = own.iter().map(|buffer| buffer.raw.as_entire_binding());
        let size = std::num::NonZeroU64::new(launch.kernel.params as u64);
        let params = size.map(|_| BindingResource::Buffer(BufferBinding { buffer: &self.uniform, offset: 0, size }));
        let entries: Vec<BindGroupEntry<'_>> =
            (0..).zip(storage.chain(params)).map(|(binding, resource)| BindGroupEntry { binding, resource }).collect();
        let descriptor = wgpu::BindGroupDescriptor { label: Some(launch.kernel.name), layout, entries: &entries };
        let device = &self.generation.device;
        self.generation.call(Bytes::ZERO, || device.create_bind_group(&descriptor))
    }

    /// One piece of a read, no longer than the download buffer.
    fn read_piece(&mut self, source: &wgpu::Buffer, offset: u64, into: &mut [u8]) -> Result<(), Fault> {
        let target = self.download.buffer.clone();
        self.encoder()?.copy_buffer_to_buffer(source, offset, &target, 0, into.len() as u64);
        let completion = self.flush()?.ok_or_else(|| Fault::work("nothing was recorded"))?;
        self.download.take(&self.generation, completion.submission.clone(), into)?;
        self.generation.health.check()
    }
}

impl Backend for WgpuBackend {
    fn buffer_limit(&self) -> Bytes {
        self.generation.buffer_limit()
    }

    fn allocate(&mut self, bytes: Bytes) -> Result<Buffer, Fault> {
        self.generation.health.check()?;
        check_size(bytes)?;
        let (own, charge) = self.storage(bytes)?;
        self.record_poison(&own.raw)?;
        Ok(Buffer::new(Box::new(own), charge))
    }

    fn allocate_from(&mut self, bytes: Bytes, pieces: &mut dyn Iterator<Item = &[u8]>) -> Result<Buffer, Fault> {
        self.generation.health.check()?;
        let places = Pieces::of(bytes)?;
        if self.generation.shares_memory {
            self.mapped_from(bytes, places, pieces)
        } else {
            self.staged_from(bytes, places, pieces)
        }
    }

    fn poison(&mut self, buffer: &Buffer) -> Result<(), Fault> {
        self.generation.health.check()?;
        let own = self.own(buffer)?;
        self.will_write(own);
        self.record_poison(&own.raw)?;
        self.generation.health.check()
    }

    fn write(&mut self, buffer: &Buffer, offset: Bytes, data: &[u8]) -> Result<(), Fault> {
        self.generation.health.check()?;
        let own = self.own(buffer)?;
        check_range(buffer, offset, data.len())?;
        self.will_write(own);
        self.stage(&own.raw, offset.0, data)?;
        self.generation.health.check()
    }

    fn launch(&mut self, launch: &Launch<'_>) -> Result<(), Fault> {
        self.generation.health.check()?;
        check_launch(launch)?;
        let own: Vec<&GpuBuffer> = launch.buffers.iter().map(|buffer| self.own(buffer)).collect::<Result<_, _>>()?;
        let pipeline = self.generation.pipelines.of(&self.generation, launch.kernel)?;
        let uniform = self.uniform.clone();
        self.stage(&uniform, 0, launch.params)?;
        let bound = own.iter().zip(launch.kernel.bindings);
        bound.for_each(|(buffer, access)| match access {
            Access::Read => self.will_read(buffer),
            Access::Write => self.will_write(buffer),
        });
        let group = self.bind(launch, &own, &pipeline.layout)?;
        let mut pass = self.encoder()?.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        pass.set_pipeline(&pipeline.compute);
        pass.set_bind_group(0, &group, &[]);
        let [x, y, z] = launch.groups;
        pass.dispatch_workgroups(x, y, z);
        drop(pass);
        self.launches += 1;
        if self.launches >= RECORDED_MAX {
            self.flush()?;
        }
        self.generation.health.check()
    }

    fn read(&mut self, buffer: &Buffer, offset: Bytes, into: &mut [u8]) -> Result<(), Fault> {
        self.generation.health.check()?;
        let own = self.own(buffer)?;
        check_range(buffer, offset, into.len())?;
        if into.is_empty() {
            self.reclaim()?;
        }
        let mut from = offset.0;
        let piece_size = self.download.size as usize;
        for piece in into.chunks_mut(piece_size) {
            self.read_piece(&own.raw, from, piece)?;
            from += piece.len() as u64;
        }
        self.kicks.all_drained();
        self.home.injection.tamper(into);
        Ok(())
    }

    fn finish(&mut self) -> Result<(), Fault> {
        self.flush()?;
        self.generation.health.check()?;
        self.staged.handed_over();
        Ok(())
    }

    fn kick(&mut self) -> Result<Fence, Fault> {
        self.generation.health.check()?;
        self.kicks.check_limit()?;
        self.finish()?;
        let kicked: Kicked = self.last.clone();
        Ok(self.kicks.fence(kicked))
    }

    fn wait(&mut self, fence: &Fence, limit: Duration) -> Result<FenceState, Fault> {
        self.generation.health.check()?;
        let state = match self.kicks.work_of::<Kicked>(fence)? {
            Some(completion) => completion.wait(&self.generation, limit)?,
            None => FenceState::Done,
        };
        self.generation.health.check()?;
        Ok(fence.found(state))
    }

    fn stage_read(&mut self, buffer: &Buffer, offset: Bytes, bytes: Bytes) -> Result<Readback, Fault> {
        self.generation.health.check()?;
        let own = self.own(buffer)?;
        check_readback(buffer, offset, bytes)?;
        let (raw, charge) = self.obtain("readback", bytes, GpuReadback::USAGE)?;
        self.generation.tick()?;
        self.will_read(own);
        self.encoder()?.copy_buffer_to_buffer(&own.raw, offset.0, &raw, 0, bytes.0);
        let copied_by = CopiedBy::default();
        self.copied.push(Arc::clone(&copied_by));
        let unreclaimed = Arc::clone(&self.generation.unreclaimed);
        Ok(self.staged.record(GpuReadback { raw, copied_by, unreclaimed, collected: false }, charge))
    }

    fn collect(&mut self, readback: Readback, into: &mut [u8]) -> Result<(), Fault> {
        self.generation.health.check()?;
        let (own, _charge) = self.staged.collect::<GpuReadback>(readback, into)?;
        own.collect(&self.generation, into)?;
        self.generation.health.check()?;
        self.home.injection.tamper(into);
        Ok(())
    }

    fn abandon(&mut self) {
        self.encoder = None;
        self.launches = 0;
        self.upload.discard();
        self.taint();
    }

    fn charge_to(&mut self, scope: Arc<Gauge>) -> Arc<Gauge> {
        std::mem::replace(&mut self.scope, scope)
    }
}

impl Drop for WgpuBackend {
    /// Buffers may outlive the slot that should have filled them.
    fn drop(&mut self) {
        self.abandon();
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_runtime::probe::known_answer;

    use super::*;

    #[test]
    fn a_slot_that_fails_half_way_to_open_leaves_nothing_charged() {
        let gauge = Arc::new(Gauge::default());
        let home = |sizes| Home { gauge: Arc::clone(&gauge), ceiling: Bytes::MAX, sizes, injection: Arc::default() };
        let generation = Arc::new(Generation::of_any_gpu());
        for _ in 0..3 {
            assert!(WgpuBackend::open(home(Sizes::that_fail_half_way()), Arc::clone(&generation)).is_err());
            assert_eq!(gauge.now(), Bytes::ZERO);
        }
        assert!(gauge.peak() > Bytes::ZERO, "it was charged before it failed");
        let sizes = Sizes::for_capacity(Bytes::mib(64), 2).with_spares(Bytes::mib(64));
        let slot = WgpuBackend::open(home(sizes), generation);
        assert_eq!(slot.map(|slot| slot.home.gauge.now()).ok(), Some(sizes.total() + sizes.fetch() + sizes.spares()));
        assert_eq!(gauge.now(), Bytes::ZERO);
    }

    /// A software GPU shares our memory: here it also plays a card that has its own.
    #[test]
    fn a_buffer_made_from_pieces_is_the_same_whichever_way_they_go() {
        let sizes = Sizes::for_capacity(Bytes::mib(64), 2);
        let bytes: Vec<u8> = (0..3_000_000_u32).map(|n| (n / 7) as u8).collect();
        for shares_memory in [true, false] {
            let home = Home { gauge: Arc::default(), ceiling: Bytes::MAX, sizes, injection: Arc::default() };
            let mut generation = Generation::of_any_gpu();
            assert!(generation.shares_memory, "it has no memory of its own");
            generation.shares_memory = shares_memory;
            let mut slot = WgpuBackend::open(home, Arc::new(generation)).unwrap();
            for (count, piece) in [(4, 4), (1_000, 12), (3_000_000, 256 << 10), (3_000_000, 3_000_000)] {
                let made = slot.allocate_from(Bytes(count as u64), &mut bytes[..count].chunks(piece)).unwrap();
                slot.finish().unwrap();
                let mut read = vec![0; count];
                slot.read(&made, Bytes::ZERO, &mut read).unwrap();
                assert!(read == bytes[..count], "{count} bytes in pieces of {piece}, {shares_memory}");
            }
        }
    }

    fn slot_with_spares() -> (WgpuBackend, Arc<Generation>) {
        let sizes = Sizes::for_capacity(Bytes::mib(64), 2).with_spares(Bytes::mib(64));
        let home = Home { gauge: Arc::default(), ceiling: Bytes::MAX, sizes, injection: Arc::default() };
        let generation = Arc::new(Generation::of_any_gpu());
        (WgpuBackend::open(home, Arc::clone(&generation)).unwrap(), generation)
    }

    fn made(slot: &mut WgpuBackend, word: u32, count: usize) -> Buffer {
        slot.adopt(vec![word; count]).unwrap()
    }

    fn raw(buffer: &Buffer) -> wgpu::Buffer {
        buffer.content::<GpuBuffer>().unwrap().raw.clone()
    }

    fn words(slot: &mut WgpuBackend, buffer: &Buffer) -> Vec<u32> {
        let mut words = vec![0; buffer.bytes().0 as usize / 4];
        slot.read(buffer, Bytes::ZERO, bytemuck::cast_slice_mut(&mut words)).unwrap();
        words
    }

    #[test]
    fn a_buffer_that_was_freed_is_written_again_and_charged_once() {
        let (mut slot, generation) = slot_with_spares();
        let held = slot.home.gauge.now();
        let first = made(&mut slot, 1, 1_000);
        let memory = raw(&first);
        assert_eq!(words(&mut slot, &first), [1; 1_000]);
        drop(first);
        assert_eq!((slot.home.gauge.now(), generation.unreclaimed.load(Relaxed)), (held, 0));
        let other = made(&mut slot, 2, 999);
        assert!(raw(&other) != memory, "a buffer has the size that was asked for");
        let again = made(&mut slot, 3, 1_000);
        assert!(raw(&again) == memory);
        assert_eq!(slot.home.gauge.now(), held + Bytes(4 * 1_999));
        assert_eq!((words(&mut slot, &again), words(&mut slot, &other)), (vec![3; 1_000], vec![2; 999]));
        // Pieces that do not fill it: what lies there is nobody's, and it is not kept.
        drop(again);
        assert!(slot.allocate_from(Bytes(4_000), &mut std::iter::once(&[0; 8][..])).is_err());
        assert!(raw(&made(&mut slot, 4, 1_000)) != memory);
    }

    #[test]
    fn a_buffer_that_recorded_work_reads_keeps_its_words_until_then() {
        let (mut slot, _generation) = slot_with_spares();
        let first = made(&mut slot, 7, 256);
        let readback = slot.stage_read(&first, Bytes::ZERO, first.bytes()).unwrap();
        drop(first);
        let second = made(&mut slot, 8, 256);
        slot.finish().unwrap();
        let mut read = [0_u32; 256];
        slot.collect(readback, bytemuck::cast_slice_mut(&mut read)).unwrap();
        assert_eq!(read, [7; 256]);

        // What the kernel gives for as many steps in each lane.
        let answer = |slot: &mut WgpuBackend, steps: u32, dropped: bool, next: usize| {
            let input = made(slot, steps, 256);
            let output = slot.allocate(Bytes(2_048)).unwrap();
            let launch = Launch {
                kernel: &known_answer::KERNEL,
                buffers: &[&input, &output],
                params: &[0; 16],
                groups: [4, 1, 1],
            };
            slot.launch(&launch).unwrap();
            let kept = (!dropped).then_some(input);
            // More than were freed before, so that the input's turn would come.
            let next: Vec<Buffer> = (0..next).map(|_| made(slot, 1, 256)).collect();
            let answer = words(slot, &output);
            drop((kept, next));
            answer
        };
        let right = answer(&mut slot, 9, false, 4);
        assert_eq!(answer(&mut slot, 9, true, 8), right);
        drop(second);
    }

    #[test]
    fn work_that_is_abandoned_or_done_keeps_no_buffer_from_being_written_again() {
        let (mut slot, _generation) = slot_with_spares();
        for abandoned in [true, false] {
            let buffer = made(&mut slot, 7, 64);
            let memory = raw(&buffer);
            let readback = slot.stage_read(&buffer, Bytes::ZERO, Bytes(4)).unwrap();
            if abandoned {
                slot.abandon();
            } else {
                slot.finish().unwrap();
                slot.collect(readback, &mut [0; 4]).unwrap();
            }
            drop(buffer);
            assert!(raw(&made(&mut slot, 8, 64)) == memory, "{abandoned}");
        }
    }

    #[test]
    fn buffers_that_were_freed_are_bounded_and_go_when_memory_is_short() {
        let (mut slot, generation) = slot_with_spares();
        let limit = slot.home.sizes.spares();
        let quarter = limit.0 as usize / 16;
        let buffers: Vec<Buffer> = (0..5).map(|_| made(&mut slot, 1, quarter)).collect();
        let memory: Vec<wgpu::Buffer> = buffers.iter().map(raw).collect();
        for buffer in buffers {
            drop(buffer);
        }
        assert_eq!(generation.unreclaimed.load(Relaxed), limit.0 / 4, "the first had to go");
        assert!(raw(&made(&mut slot, 1, quarter)) == memory[1], "the oldest of the others");
        generation.unreclaimed.store(0, Relaxed);
        drop(made(&mut slot, 1, 4 * quarter + 1));
        assert_eq!(generation.unreclaimed.load(Relaxed), limit.0 + 4, "larger than all that is kept");
        slot.reclaim().unwrap();
        assert!(!memory.contains(&raw(&made(&mut slot, 1, quarter))));
        let small: Vec<Buffer> = (0..crate::spares::KEPT_MAX).map(|_| made(&mut slot, 1, 1)).collect();
        drop(small);
        assert_eq!(generation.unreclaimed.load(Relaxed), limit.0 / 4, "their number is bounded too");
    }

    #[test]
    fn a_readback_that_never_came_is_unreclaimed_and_one_that_came_is_not() {
        let sizes = Sizes::for_capacity(Bytes::mib(64), 2);
        let home = Home { gauge: Arc::default(), ceiling: Bytes::MAX, sizes, injection: Arc::default() };
        let generation = Arc::new(Generation::of_any_gpu());
        let mut slot = WgpuBackend::open(home, Arc::clone(&generation)).unwrap();
        let buffer = slot.allocate(Bytes(64)).unwrap();
        let [came, dropped] = [16, 20].map(|bytes| slot.stage_read(&buffer, Bytes::ZERO, Bytes(bytes)).unwrap());
        slot.finish().unwrap();
        slot.collect(came, &mut [0; 16]).unwrap();
        assert_eq!(generation.unreclaimed.load(Relaxed), 0);
        drop(dropped);
        assert_eq!(generation.unreclaimed.load(Relaxed), 20);
    }
}
