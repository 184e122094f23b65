//! Buffers as words in memory, launches as calls of the kernel's twin.
//! Never starts a thread: one worker, one core.
//! Invariant: a launch locks its buffers in the order of their addresses, so two slots that share buffers cannot
//! wait for each other.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use plimsoll_core::{Bytes, Fault, MemoryMoment};

use crate::backend::{Backend, Buffer, Launch, POISON, Seen, View};
use crate::fence::{Fence, FenceState, Kicks};
use crate::gauge::{Charge, Gauge};
use crate::kernel::{Access, Twin, Words};
use crate::large_pages;
use crate::misuse::{MisuseError, Pieces, check_launch, check_range, check_readback, check_size};
use crate::origin::Origin;
use crate::readback::{Readback, Staged};

/// One core's way to memory.
#[derive(Debug)]
pub struct CpuBackend {
    device: Arc<Gauge>,
    scope: Arc<Gauge>,
    ceiling: Bytes,
    origin: Origin,
    kicks: Kicks,
    staged: Staged,
}

/// What a [`Buffer`] of this backend holds.
#[derive(Debug)]
struct CpuBuffer {
    words: RwLock<Vec<u32>>,
    origin: Origin,
}

/// The CPU that is charged on this gauge. It is never lost, so it has one life.
fn origin(device: &Arc<Gauge>) -> Origin {
    Origin::new(device, 0)
}

fn own<'a>(buffer: &'a Buffer, origin: &Origin) -> Result<&'a CpuBuffer, Fault> {
    let own = buffer.content::<CpuBuffer>().ok_or(MisuseError::Foreign("buffer"))?;
    origin.check(&own.origin, "buffer")?;
    Ok(own)
}

/// Copies bytes out of a buffer of the CPU that is charged on this gauge. Whatever was launched is done.
pub(super) fn fetch(device: &Arc<Gauge>, buffer: &Buffer, offset: Bytes, into: &mut [u8]) -> Result<(), Fault> {
    copy_out(own(buffer, &origin(device))?, buffer, offset, into)
}

fn copy_out(own: &CpuBuffer, buffer: &Buffer, offset: Bytes, into: &mut [u8]) -> Result<(), Fault> {
    check_range(buffer, offset, into.len())?;
    into.copy_from_slice(&bytemuck::cast_slice(&read_lock(own))[offset.0 as usize..][..into.len()]);
    Ok(())
}

impl CpuBackend {
    /// A slot that charges `device` and allocates up to `ceiling` bytes on it.
    pub fn new(device: Arc<Gauge>, ceiling: Bytes) -> Self {
        let origin = origin(&device);
        let (kicks, staged) = (Kicks::new(origin.clone()), Staged::new(origin.clone()));
        Self { device, scope: Arc::default(), ceiling, origin, kicks, staged }
    }

    fn own<'a>(&self, buffer: &'a Buffer) -> Result<&'a CpuBuffer, Fault> {
        own(buffer, &self.origin)
    }

    /// Promises memory for `bytes`.
    fn charge(&self, bytes: Bytes) -> Result<Charge, Fault> {
        Charge::new(bytes, self.ceiling, &self.device, &self.scope).ok_or_else(|| out_of_memory(bytes))
    }
}

fn out_of_memory(wanted: Bytes) -> Fault {
    Fault::OutOfMemory { moment: MemoryMoment::Run, wanted }
}

/// `bytes` of memory full of `fill`.
fn filled<T: Copy>(bytes: Bytes, fill: T) -> Result<Vec<T>, Fault> {
    let mut memory = reserved(bytes)?;
    memory.resize(bytes.0 as usize / size_of::<T>(), fill);
    Ok(memory)
}

/// Room for exactly `bytes`.
fn reserved<T>(bytes: Bytes) -> Result<Vec<T>, Fault> {
    let refused = || out_of_memory(bytes);
    let count = usize::try_from(bytes.0 / size_of::<T>() as u64).map_err(|_| refused())?;
    let mut memory = Vec::new();
    memory.try_reserve_exact(count).map_err(|_| refused())?;
    large_pages::ask_for(&mut memory);
    Ok(memory)
}

/// Whole words, wherever they lie.
fn append(words: &mut Vec<u32>, piece: &[u8]) {
    match bytemuck::try_cast_slice(piece) {
        Ok(aligned) => words.extend_from_slice(aligned),
        Err(_) => words.extend(piece.as_chunks().0.iter().map(|word| u32::from_ne_bytes(*word))),
    }
}

// A twin that panicked may have left half an answer, which is its task's to discard; the words are still words.
fn read_lock(buffer: &CpuBuffer) -> RwLockReadGuard<'_, Vec<u32>> {
    buffer.words.read().unwrap_or_else(PoisonError::into_inner)
}

fn write_lock(buffer: &CpuBuffer) -> RwLockWriteGuard<'_, Vec<u32>> {
    buffer.words.write().unwrap_or_else(PoisonError::into_inner)
}

enum Locked<'a> {
    Read(RwLockReadGuard<'a, Vec<u32>>),
    Write(RwLockWriteGuard<'a, Vec<u32>>),
}

impl Locked<'_> {
    fn words(&mut self) -> Words<'_> {
        match self {
            Self::Read(guard) => Words::Read(guard),
            Self::Write(guard) => Words::Write(guard),
        }
    }
}

/// Every buffer locked once, in the order of addresses, and which lock each binding's is.
struct LockedAll<'a> {
    locks: Vec<Locked<'a>>,
    of_binding: Vec<usize>,
}

impl<'a> LockedAll<'a> {
    fn new(buffers: &[&'a CpuBuffer], bindings: &[Access]) -> Self {
        let address = |binding: usize| std::ptr::from_ref(buffers[binding]);
        let mut order: Vec<usize> = (0..buffers.len()).collect();
        order.sort_by_key(|&binding| address(binding));
        let (mut locks, mut of_binding) = (Vec::new(), vec![0; buffers.len()]);
        for (place, &binding) in order.iter().enumerate() {
            // Bound again: it is only read, and a second lock of one thread could wait for a writer between the two.
            if place == 0 || address(order[place - 1]) != address(binding) {
                locks.push(match bindings[binding] {
                    Access::Read => Locked::Read(read_lock(buffers[binding])),
                    Access::Write => Locked::Write(write_lock(buffers[binding])),
                });
            }
            of_binding[binding] = locks.len() - 1;
        }
        Self { locks, of_binding }
    }

    /// The words of each binding.
    fn words(&mut self) -> Vec<Words<'_>> {
        let mut words: Vec<Words<'_>> = self.locks.iter_mut().map(Locked::words).collect();
        let of_binding = self.of_binding.iter().map(|&lock| match &words[lock] {
            Words::Read(words) => Words::Read(words),
            Words::Write(_) => std::mem::replace(&mut words[lock], Words::Read(&[])),
        });
        of_binding.collect()
    }
}

impl Backend for CpuBackend {
    fn buffer_limit(&self) -> Bytes {
        self.ceiling
    }

    fn allocate(&mut self, bytes: Bytes) -> Result<Buffer, Fault> {
        check_size(bytes)?;
        let charge = self.charge(bytes)?;
        let content = CpuBuffer { words: RwLock::new(filled(bytes, POISON)?), origin: self.origin.clone() };
        Ok(Buffer::new(Box::new(content), charge))
    }

    fn allocate_from(&mut self, bytes: Bytes, pieces: &mut dyn Iterator<Item = &[u8]>) -> Result<Buffer, Fault> {
        let mut places = Pieces::of(bytes)?;
        let charge = self.charge(bytes)?;
        let mut words = reserved(bytes)?;
        for piece in pieces {
            places.next(piece)?;
            append(&mut words, piece);
        }
        places.end()?;
        Ok(Buffer::new(Box::new(CpuBuffer { words: RwLock::new(words), origin: self.origin.clone() }), charge))
    }

    fn adopt(&mut self, words: Vec<u32>) -> Result<Buffer, Fault> {
        let bytes = Bytes(size_of_val(&words[..]) as u64);
        check_size(bytes)?;
        let charge = self.charge(bytes)?;
        let content = CpuBuffer { words: RwLock::new(words), origin: self.origin.clone() };
        Ok(Buffer::new(Box::new(content), charge))
    }

    fn view<'a>(&mut self, buffer: &'a Buffer) -> Result<View<'a>, Fault> {
        let own = own(buffer, &self.origin)?;
        self.kicks.all_drained();
        Ok(View(Seen::Here(read_lock(own))))
    }

    fn poison(&mut self, buffer: &Buffer) -> Result<(), Fault> {
        write_lock(self.own(buffer)?).fill(POISON);
        Ok(())
    }

    fn write(&mut self, buffer: &Buffer, offset: Bytes, data: &[u8]) -> Result<(), Fault> {
        let own = self.own(buffer)?;
        check_range(buffer, offset, data.len())?;
        let mut words = write_lock(own);
        bytemuck::cast_slice_mut(&mut words)[offset.0 as usize..][..data.len()].copy_from_slice(data);
        Ok(())
    }

    fn launch(&mut self, launch: &Launch<'_>) -> Result<(), Fault> {
        check_launch(launch)?;
        let own: Vec<&CpuBuffer> = launch.buffers.iter().map(|buffer| self.own(buffer)).collect::<Result<_, _>>()?;
        let mut locked = LockedAll::new(&own, launch.kernel.bindings);
        let buffers = locked.words();
        (launch.kernel.twin)(&mut Twin { groups: launch.groups, params: launch.params, buffers });
        Ok(())
    }

    fn read(&mut self, buffer: &Buffer, offset: Bytes, into: &mut [u8]) -> Result<(), Fault> {
        copy_out(self.own(buffer)?, buffer, offset, into)?;
        self.kicks.all_drained();
        Ok(())
    }

    /// Every call took effect when it was made.
    fn finish(&mut self) -> Result<(), Fault> {
        self.staged.handed_over();
        Ok(())
    }

    fn kick(&mut self) -> Result<Fence, Fault> {
        self.kicks.check_limit()?;
        self.finish()?;
        Ok(self.kicks.fence(()))
    }

    /// Done when it was kicked.
    fn wait(&mut self, fence: &Fence, _: Duration) -> Result<FenceState, Fault> {
        self.kicks.work_of::<()>(fence)?;
        Ok(fence.found(FenceState::Done))
    }

    /// Copies at once: what comes later does not change it.
    fn stage_read(&mut self, buffer: &Buffer, offset: Bytes, bytes: Bytes) -> Result<Readback, Fault> {
        let own = self.own(buffer)?;
        check_readback(buffer, offset, bytes)?;
        let charge = self.charge(bytes)?;
        let mut copy: Vec<u8> = filled(bytes, 0)?;
        copy_out(own, buffer, offset, &mut copy)?;
        Ok(self.staged.record(copy, charge))
    }

    fn collect(&mut self, readback: Readback, into: &mut [u8]) -> Result<(), Fault> {
        let (copy, _charge) = self.staged.collect::<Vec<u8>>(readback, into)?;
        into.copy_from_slice(&copy);
        Ok(())
    }

    fn abandon(&mut self) {
        self.staged.abandoned();
    }

    fn charge_to(&mut self, scope: Arc<Gauge>) -> Arc<Gauge> {
        std::mem::replace(&mut self.scope, scope)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::read_floats;
    use crate::kernel::Kernel;

    static SUM: Kernel = Kernel {
        name: "sum",
        wgsl: "",
        entry: "sum",
        bindings: &[Access::Read, Access::Write, Access::Read],
        params: 0,
        twin: |twin| {
            let (reads, mut writes) = twin.reads_and_writes();
            writes[0].iter_mut().zip(reads[0]).zip(reads[1]).for_each(|((out, a), b)| *out = a + b);
        },
    };

    fn sum<'a>(buffers: &'a [&'a Buffer]) -> Launch<'a> {
        Launch { kernel: &SUM, buffers, params: &[], groups: [1, 1, 1] }
    }

    #[test]
    fn words_are_adopted_and_seen_where_they_lie() {
        let mut backend = CpuBackend::new(Arc::default(), Bytes(8));
        let words = vec![1.0_f32.to_bits(), 2.0_f32.to_bits()];
        let lies_at = words.as_ptr().addr();
        let buffer = backend.adopt(words).unwrap();
        let view = backend.view(&buffer).unwrap();
        assert_eq!((view.floats(), view.floats().as_ptr().addr()), (&[1.0, 2.0][..], lies_at));
        assert!(matches!(backend.adopt(vec![0]), Err(Fault::OutOfMemory { .. })), "they count");
        drop(view);
        drop(buffer);
        assert!(backend.adopt(vec![0]).is_ok());
    }

    #[test]
    fn what_is_only_read_may_be_bound_twice() {
        let mut backend = CpuBackend::new(Arc::default(), Bytes::MAX);
        let [one, two] = [1.0_f32, 2.0].map(|value| {
            let buffer = backend.allocate(Bytes(8)).unwrap();
            backend.write(&buffer, Bytes::ZERO, bytemuck::cast_slice(&[value; 2])).unwrap();
            buffer
        });
        backend.launch(&sum(&[&two, &one, &two])).unwrap();
        assert_eq!(read_floats(&mut backend, &one, 2).unwrap(), [4.0; 2]);
        assert!(matches!(backend.launch(&sum(&[&one, &one, &two])), Err(Fault::WorkFailed { .. })));
    }
}
