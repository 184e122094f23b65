//! Reads one device's memory on a thread of its own: a driver may take long to answer, or for ever. A device that answers at
//! once is asked by whoever wants a reading, and has no thread.
//! Never holds a lock that anybody else needs while it asks the device, and nobody else asks it: who wants a reading asks the
//! reader and goes on.
//! Invariant: a reading that was asked for begins after it was asked for (`tests::loom_no_ask_is_lost`), and readings
//! arrive in the order in which they were taken, because there is one thread, or one at a time.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use plimsoll_core::DeviceId;
use plimsoll_core::line::{Margin, Memory};

use crate::device::Device;
use crate::shared::Shared;
use crate::sync::{Condvar, Mutex, MutexGuard, lock};
use crate::wait::Wait;

/// How long whoever places a task waits for a reading that it asked for. Most take well below a millisecond; a driver
/// that needs longer is not worth a pause of its caller. One that is already beyond this is not waited for at all.
pub(crate) const ANSWER_WAIT_MAX: Duration = Duration::from_millis(5);

/// Where a reader sleeps, and where those sleep who wait for it.
pub(crate) struct MemoryReader {
    state: Mutex<State>,
    asked: Condvar,
    answered: Condvar,
    /// Of a device that answers at once.
    at_once: OnceLock<Mutex<Reading>>,
}

#[derive(Default)]
struct State {
    /// How often somebody asked.
    asks: u64,
    /// The asks that the reading under way, or else the last one, answers.
    begun: u64,
    /// The asks that were answered.
    answered: u64,
    /// Since when the device has been asked, while it is.
    reading_since: Option<Instant>,
    /// Whether any reading ever came.
    is_known: bool,
    closing: bool,
}

/// An ask, to wait for its answer.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Ask {
    number: u64,
    /// The device has not answered the ask before for so long that it is not worth waiting for.
    pub(crate) hangs: bool,
}

impl MemoryReader {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State::default()),
            asked: Condvar::new(),
            answered: Condvar::new(),
            at_once: OnceLock::new(),
        })
    }

    /// From now on whoever asks reads.
    pub(crate) fn read_at_once(&self, reading: Reading) {
        let _ = self.at_once.set(Mutex::new(reading));
    }

    /// Asks for a reading that begins from now on.
    pub(crate) fn ask(&self) -> Ask {
        let mut state = lock(&self.state);
        state.asks += 1;
        let hangs = state.reading_since.is_some_and(|since| since.elapsed() > ANSWER_WAIT_MAX);
        let ask = Ask { number: state.asks, hangs };
        drop(state);
        match self.at_once.get() {
            None => self.asked.notify_one(),
            Some(reading) => {
                let reading = lock(reading);
                // Who waited for its turn may have been answered meanwhile.
                if self.is_wanted() && self.next() {
                    self.answer(reading.read());
                }
            }
        }
        ask
    }

    /// Waits until the device's memory was read for this ask, or could not be.
    pub(crate) fn wait(&self, ask: Ask, wait: Wait) {
        let mut state = lock(&self.state);
        while state.answered < ask.number && !state.closing {
            let Some(nap) = wait.nap() else { return };
            state = self.answered.wait_timeout(state, nap).map_or_else(|gone| gone.into_inner().0, |ok| ok.0);
        }
    }

    /// Waits for the device's first reading as long as it takes, if there was none yet; says whether there is one now.
    pub(crate) fn wait_for_the_first(&self) -> bool {
        if !lock(&self.state).is_known {
            let ask = self.ask();
            self.wait(ask, Wait::Forever);
        }
        lock(&self.state).is_known
    }

    /// The reader's thread may go, and nobody waits for it any more.
    pub(crate) fn close(&self) {
        lock(&self.state).closing = true;
        self.asked.notify_all();
        self.answered.notify_all();
    }

    /// Whether somebody asked whom no reading answers yet.
    fn is_wanted(&self) -> bool {
        let state = lock(&self.state);
        state.begun != state.asks && !state.closing
    }

    /// Sleeps until somebody asks; `false` when it is over.
    fn next(&self) -> bool {
        let mut state = lock(&self.state);
        while state.begun == state.asks && !state.closing {
            state = self.asked.wait(state).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
        self.begin(state)
    }

    fn begin(&self, mut state: MutexGuard<'_, State>) -> bool {
        state.begun = state.asks;
        state.reading_since = Some(Instant::now());
        !state.closing
    }

    fn answer(&self, came: bool) {
        let mut state = lock(&self.state);
        state.answered = state.begun;
        state.reading_since = None;
        state.is_known |= came;
        drop(state);
        self.answered.notify_all();
    }
}

/// What a reader needs. While it asks the device it holds nothing of the orchestrator, so that one that hangs for ever
/// keeps nothing alive but the device.
pub(crate) struct Reading {
    pub(crate) shared: Weak<Shared>,
    pub(crate) device: Arc<dyn Device>,
    pub(crate) id: DeviceId,
    pub(crate) margin: Margin,
}

impl Reading {
    /// Reads whenever somebody asks, until the orchestrator closes.
    pub(crate) fn read_until_closing(&self, reader: &MemoryReader) {
        while reader.next() {
            reader.answer(self.read());
        }
    }

    /// Reads once; says whether a reading came.
    fn read(&self) -> bool {
        self.begins();
        // A device's own code may panic: its last reading then goes on counting.
        let figures = catch_unwind(AssertUnwindSafe(|| self.figures())).ok();
        let came = figures.is_some();
        if let Some((memory, margin)) = figures {
            self.arrived(memory, margin);
        }
        came
    }

    fn figures(&self) -> (Memory, Margin) {
        self.device.memory().for_the_line(self.device.overhead(), self.margin)
    }

    fn begins(&self) {
        let Some(shared) = self.shared.upgrade() else { return };
        shared.lock().scheduler.memory_reading_begins(self.id);
    }

    fn arrived(&self, memory: Memory, margin: Margin) {
        let Some(shared) = self.shared.upgrade() else { return };
        let mut state = shared.lock();
        let now = shared.now();
        state.scheduler.set_margin(self.id, margin);
        state.scheduler.set_memory(now, self.id, memory);
        shared.release(state);
    }
}

#[cfg(all(test, not(loom)))]
mod at_once {
    use super::*;
    use crate::cpu::CpuDevice;

    #[test]
    fn a_device_that_answers_at_once_is_read_by_who_asks() {
        let device = Arc::new(CpuDevice::builder().slots(1).build());
        assert!(device.answers_at_once());
        let reader = MemoryReader::new();
        reader.read_at_once(Reading { shared: Weak::new(), device, id: DeviceId(0), margin: Margin::default() });
        let ask = reader.ask();
        let state = lock(&reader.state);
        assert_eq!((state.answered, state.is_known), (ask.number, true), "there is no thread that could do it later");
        drop(state);
        assert!(reader.wait_for_the_first());
        reader.close();
        assert!(reader.ask().number > ask.number && !reader.is_wanted(), "nothing is read after the end");
    }
}

#[cfg(all(test, loom))]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use loom::thread;

    use super::*;

    /// Whoever asks is answered by a reading that began after it asked, whatever the reader was doing.
    #[test]
    fn loom_no_ask_is_lost() {
        loom::model(|| {
            let reader = MemoryReader::new();
            // What the device would say, and what was read of it. Not loom's: the reader's lock is what orders them.
            let figures = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
            let reads = {
                let (reader, figures) = (Arc::clone(&reader), Arc::clone(&figures));
                thread::spawn(move || {
                    while reader.next() {
                        figures[1].store(figures[0].load(Ordering::SeqCst), Ordering::SeqCst);
                        reader.answer(true);
                    }
                })
            };
            reader.ask();
            figures[0].store(1, Ordering::SeqCst);
            let ask = reader.ask();
            reader.wait(ask, Wait::Forever);
            assert_eq!(figures[1].load(Ordering::SeqCst), 1, "an old reading does not answer it");
            reader.close();
            reads.join().unwrap();
        });
    }

    #[test]
    fn loom_closing_ends_every_wait() {
        loom::model(|| {
            let reader = MemoryReader::new();
            let waits = {
                let reader = Arc::clone(&reader);
                thread::spawn(move || {
                    let ask = reader.ask();
                    reader.wait(ask, Wait::Forever);
                })
            };
            reader.close();
            waits.join().unwrap();
            assert!(!reader.next());
        });
    }
}
