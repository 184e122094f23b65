//! Buffers as words in memory, launches as calls of the kernel's twin.
//! Never starts a thread: one worker, one core.
//! Invariant: a launch locks its buffers in the order of their addresses, so two slots that share buffers cannot
//! wait for each other.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use plimsoll_core::{Bytes, Fault, MemoryMoment};

use crate::backend::{Backend, Buffer, Launch, POISON};
use crate::gauge::{Charge, Gauge};
use crate::kernel::{Access, Twin, Words};
use crate::misuse::{Misuse, check_launch, check_range, check_size};

/// One core's way to memory.
#[derive(Debug)]
pub struct CpuBackend {
    device: Arc<Gauge>,
    scope: Arc<Gauge>,
    ceiling: Bytes,
}

/// What a [`Buffer`] of this backend holds. The gauge tells whose it is: there is one per device.
#[derive(Debug)]
struct CpuBuffer {
    words: RwLock<Vec<u32>>,
    home: Arc<Gauge>,
}

impl CpuBackend {
    /// A slot that charges `device` and allocates up to `ceiling` bytes on it.
    pub fn new(device: Arc<Gauge>, ceiling: Bytes) -> Self {
        Self { device, scope: Arc::default(), ceiling }
    }

    fn own<'a>(&self, buffer: &'a Buffer) -> Result<&'a CpuBuffer, Misuse> {
        let own = buffer.content::<CpuBuffer>().ok_or(Misuse::ForeignBuffer)?;
        if Arc::ptr_eq(&own.home, &self.device) { Ok(own) } else { Err(Misuse::ForeignBuffer) }
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
        let refused = || Fault::OutOfMemory { moment: MemoryMoment::Run, wanted: bytes };
        let charge = Charge::new(bytes, self.ceiling, &self.device, &self.scope).ok_or_else(refused)?;
        let count = usize::try_from(bytes.0 / 4).map_err(|_| refused())?;
        let mut words = Vec::new();
        words.try_reserve_exact(count).map_err(|_| refused())?;
        words.resize(count, POISON);
        let content = CpuBuffer { words: RwLock::new(words), home: Arc::clone(&self.device) };
        Ok(Buffer::new(Box::new(content), charge))
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
        let own = self.own(buffer)?;
        check_range(buffer, offset, into.len())?;
        into.copy_from_slice(&bytemuck::cast_slice(&read_lock(own))[offset.0 as usize..][..into.len()]);
        Ok(())
    }

    /// Every call took effect when it was made.
    fn finish(&mut self) -> Result<(), Fault> {
        Ok(())
    }

    fn abandon(&mut self) {}

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
