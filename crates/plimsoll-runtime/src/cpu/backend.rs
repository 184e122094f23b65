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

/// Locks every buffer, in the order of addresses; gives the locks back in the order of bindings.
fn lock_all<'a>(buffers: &[&'a CpuBuffer], bindings: &[Access]) -> Vec<Locked<'a>> {
    let mut order: Vec<usize> = (0..buffers.len()).collect();
    order.sort_by_key(|&binding| std::ptr::from_ref(buffers[binding]));
    let mut locked: Vec<(usize, Locked<'a>)> = order
        .into_iter()
        .map(|binding| {
            let lock = match bindings[binding] {
                Access::Read => Locked::Read(read_lock(buffers[binding])),
                Access::Write => Locked::Write(write_lock(buffers[binding])),
            };
            (binding, lock)
        })
        .collect();
    locked.sort_by_key(|(binding, _)| *binding);
    locked.into_iter().map(|(_, lock)| lock).collect()
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
        let mut locked = lock_all(&own, launch.kernel.bindings);
        let buffers = locked.iter_mut().map(Locked::words).collect();
        (launch.kernel.twin)(&mut Twin { groups: launch.groups, params: launch.params, buffers });
        Ok(())
    }

    fn read(&mut self, buffer: &Buffer, offset: Bytes, into: &mut [u8]) -> Result<(), Fault> {
        let own = self.own(buffer)?;
        check_range(buffer, offset, into.len())?;
        into.copy_from_slice(&bytemuck::cast_slice(&read_lock(own))[offset.0 as usize..][..into.len()]);
        Ok(())
    }

    fn charge_to(&mut self, scope: Arc<Gauge>) -> Arc<Gauge> {
        std::mem::replace(&mut self.scope, scope)
    }
}
