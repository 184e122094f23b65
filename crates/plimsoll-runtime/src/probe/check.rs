//! Whether a device's answers can be trusted: run when it is opened, and again after any memory fault.
//! Never repairs or excuses: one wrong word and the device is not to be trusted.

use std::sync::atomic::{AtomicU32, Ordering};

use plimsoll_core::Fault;

use super::known_answer::{expected, run};
use crate::backend::{Backend, POISON};

/// An odd step visits every nonce before any comes again, and changes many bits each time.
const NONCE_STEP: u32 = 0x9e37_79b9;

static NONCE: AtomicU32 = AtomicU32::new(NONCE_STEP);

/// Runs the known-answer kernel.
///
/// ```
/// # mod plimsoll { pub use plimsoll_core::*; pub mod device { pub use plimsoll_runtime::{Device, check, cpu::CpuDevice}; } }
/// use plimsoll::device::{CpuDevice, Device, check};
///
/// let mut slot = CpuDevice::open().open_backend()?;
/// check::known_answer(&mut *slot)?;
/// # Ok::<(), plimsoll::Fault>(())
/// ```
///
/// # Errors
/// [`Fault::WrongAnswer`] if any word of the answer is wrong; whatever else the backend reports.
pub fn known_answer(backend: &mut dyn Backend) -> Result<(), Fault> {
    let nonce = NONCE.fetch_add(NONCE_STEP, Ordering::Relaxed);
    let (got, wanted) = (run(backend, nonce)?, expected(nonce));
    match got.iter().zip(&wanted).position(|(got, wanted)| got != wanted) {
        None => Ok(()),
        Some(at) => Err(Fault::WrongAnswer { detail: describe(at, got[at], wanted[at]) }),
    }
}

fn describe(at: usize, got: u32, wanted: u32) -> String {
    match got {
        POISON => format!("known answer: word {at} was never written"),
        _ => format!("known answer: word {at} is {got:#010x}, should be {wanted:#010x}"),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use plimsoll_core::Bytes;

    use super::*;
    use crate::backend::{Buffer, Launch};
    use crate::cpu::CpuDevice;
    use crate::device::Device;
    use crate::fence::{Fence, FenceState};
    use crate::gauge::Gauge;
    use crate::readback::Readback;

    /// A backend that calculates rightly and then tampers with what is read.
    struct Liar<F> {
        inner: Box<dyn Backend>,
        tamper: F,
    }

    impl<F: FnMut(&mut [u32]) + Send> Backend for Liar<F> {
        fn buffer_limit(&self) -> Bytes {
            self.inner.buffer_limit()
        }
        fn allocate(&mut self, bytes: Bytes) -> Result<Buffer, Fault> {
            self.inner.allocate(bytes)
        }
        fn poison(&mut self, buffer: &Buffer) -> Result<(), Fault> {
            self.inner.poison(buffer)
        }
        fn write(&mut self, buffer: &Buffer, offset: Bytes, data: &[u8]) -> Result<(), Fault> {
            self.inner.write(buffer, offset, data)
        }
        fn launch(&mut self, launch: &Launch<'_>) -> Result<(), Fault> {
            self.inner.launch(launch)
        }
        fn read(&mut self, buffer: &Buffer, offset: Bytes, into: &mut [u8]) -> Result<(), Fault> {
            self.inner.read(buffer, offset, into)?;
            (self.tamper)(bytemuck::cast_slice_mut(into));
            Ok(())
        }
        fn finish(&mut self) -> Result<(), Fault> {
            self.inner.finish()
        }
        fn kick(&mut self) -> Result<Fence, Fault> {
            self.inner.kick()
        }
        fn wait(&mut self, fence: &Fence, limit: Duration) -> Result<FenceState, Fault> {
            self.inner.wait(fence, limit)
        }
        fn stage_read(&mut self, buffer: &Buffer, offset: Bytes, bytes: Bytes) -> Result<Readback, Fault> {
            self.inner.stage_read(buffer, offset, bytes)
        }
        fn collect(&mut self, readback: Readback, into: &mut [u8]) -> Result<(), Fault> {
            self.inner.collect(readback, into)?;
            (self.tamper)(bytemuck::cast_slice_mut(into));
            Ok(())
        }
        fn abandon(&mut self) {
            self.inner.abandon();
        }
        fn charge_to(&mut self, scope: Arc<Gauge>) -> Arc<Gauge> {
            self.inner.charge_to(scope)
        }
    }

    fn check(tamper: impl FnMut(&mut [u32]) + Send) -> Result<(), Fault> {
        let inner = CpuDevice::open().open_backend()?;
        known_answer(&mut Liar { inner, tamper })
    }

    #[track_caller]
    fn refuses(tamper: impl FnMut(&mut [u32]) + Send) {
        assert!(matches!(check(tamper), Err(Fault::WrongAnswer { .. })));
    }

    #[test]
    fn honest_answers_pass_every_time() {
        for _ in 0..50 {
            check(|_| ()).unwrap();
        }
    }

    #[test]
    fn nothing_but_the_answer_passes() {
        refuses(|words| words.fill(0));
        refuses(|words| words.fill(POISON));
        refuses(|words| words.fill(u32::MAX));
        refuses(|words| words[511] = POISON);
        refuses(|words| words[0] = 0);
        refuses(|words| words.reverse());
        for bit in 0..32 {
            refuses(|words| words[300] ^= 1 << bit);
        }
    }

    #[test]
    fn an_earlier_answer_does_not_pass() {
        let inner = CpuDevice::open().open_backend().unwrap();
        let mut stale: Option<Vec<u32>> = None;
        let tamper = |words: &mut [u32]| words.copy_from_slice(stale.get_or_insert_with(|| words.to_vec()));
        let mut liar = Liar { inner, tamper };
        known_answer(&mut liar).unwrap();
        assert!(matches!(known_answer(&mut liar), Err(Fault::WrongAnswer { .. })));
    }

    #[test]
    fn not_one_word_of_an_earlier_answer_is_right_again() {
        let nonce = NONCE_STEP;
        let mut later = nonce;
        for _ in 0..2000 {
            later = later.wrapping_add(NONCE_STEP);
            let same = expected(nonce).iter().zip(expected(later)).filter(|(a, b)| **a == *b).count();
            assert_eq!(same, 0, "{nonce} and {later}");
        }
    }
}
