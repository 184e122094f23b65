//! The thread behind a holder: waits for its grant, brings levels to the device, takes the finest away when the grant is
//! recalled, and brings them back when there is room.
//! Invariant: it says that it is on a lower rung only after the bytes above it are gone, whoever was using them.

use std::mem;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use std::vec;

use plimsoll_core::{Priority, TaskError};
use plimsoll_fragments::index::{Fragment, Tensor};
use plimsoll_fragments::quant::{check_level, differences};
use plimsoll_fragments::work::{UploadInput, difference_bytes};
use plimsoll_fragments::{Checksum, FragmentError};
use plimsoll_runtime::{Buffer, Grant, GrantWaitError, PendingGrant, RunError, Task, Ticket};

use super::error::HoldError;
use super::holder::{HeldLevel, Shared};

/// How often it looks whether there is room again, and whether anybody still wants it.
const LOOK: Duration = Duration::from_millis(50);

pub(super) fn start(shared: &Arc<Shared>) -> (Sender<()>, JoinHandle<()>) {
    let (wake, woken) = mpsc::channel();
    let keeper = Keeper { shared: Arc::clone(shared), wake: wake.clone(), woken };
    let thread = thread::Builder::new().name("plimsoll-holder".to_owned());
    let thread = thread.spawn(move || keeper.run()).expect("a thread for a holder");
    (wake, thread)
}

struct Keeper {
    shared: Arc<Shared>,
    wake: Sender<()>,
    woken: Receiver<()>,
}

/// Bytes of levels after which no more go with them. A task costs as much as half a megabyte that is copied; and while these go,
/// those behind them are looked for.
const TOGETHER: usize = 4 << 20;

/// One level of one piece.
#[derive(Copy, Clone)]
struct Place {
    tensor: usize,
    piece: usize,
    level: usize,
}

/// A level as a device has it.
struct Level {
    place: Place,
    bytes: Arc<Vec<u8>>,
    checksum: Checksum,
}

/// Levels on their way to the device.
struct Upload {
    levels: Vec<(Place, Checksum)>,
    bytes: u64,
    /// Whether their bytes were checked before they were sent.
    is_checked: bool,
    ticket: Ticket<Vec<Buffer>>,
}

impl Keeper {
    fn run(self) {
        let arrival = Arc::clone(&self.shared.arrival);
        let ended = self.keep();
        let mut state = self.shared.state();
        state.has_left = true;
        state.grant = None;
        state.is_lost = false;
        state.trouble = ended.clone().err();
        drop(state);
        self.shared.changed.notify_all();
        arrival.tell(ended.and(Err(HoldError::Left)));
    }

    fn is_over(&self) -> bool {
        self.shared.is_dropped.load(Ordering::Acquire)
    }

    /// Until it has to leave, or nobody wants it any more.
    fn keep(&self) -> Result<(), HoldError> {
        let request = self.shared.ladder.request(&self.shared.wanted);
        let pending = self.shared.orchestrator.grant(request).map_err(HoldError::Refused)?;
        let Some(grant) = self.given(pending)? else { return Ok(()) };
        let wake = self.wake.clone();
        grant.on_recall(move |_| {
            // A keeper that is gone has nothing to step down from.
            let _ = wake.send(());
        });
        self.shared.state().grant = Some(grant.id());
        let kept = self.hold(&grant);
        // Before the grant goes, so that no byte is free that is not.
        self.drop_to(&[]);
        kept
    }

    /// Waits for the grant, as long as somebody wants it.
    fn given(&self, mut pending: PendingGrant) -> Result<Option<Grant>, HoldError> {
        while !self.is_over() {
            match pending.wait(LOOK) {
                Ok(grant) => return Ok(Some(grant)),
                Err(GrantWaitError::StillWaiting(again)) => pending = again,
                Err(GrantWaitError::Refused(refusal)) => return Err(HoldError::Refused(refusal)),
            }
        }
        Ok(None)
    }

    /// Has every level of its rung there, whichever rung that is at the moment.
    fn hold(&self, grant: &Grant) -> Result<(), HoldError> {
        let first = grant.rung();
        self.shared.state().rung = first;
        self.shared.arrival.total.store(self.shared.ladder.bytes(first).0, Ordering::Relaxed);
        while !self.is_over() {
            if let Some(recall) = grant.recalled() {
                let Some(rung) = recall.to else { return Ok(()) };
                self.step_down(grant, rung);
                continue;
            }
            if self.shared.state().is_lost {
                self.drop_to(&[]);
                self.shared.state().is_lost = false;
            }
            let rung = self.shared.state().rung;
            if !self.missing(rung).is_empty() {
                self.bring(grant, rung)?;
                continue;
            }
            self.shared.arrival.tell(Ok(()));
            self.shared.changed.notify_all();
            if let Some(rung) = grant.may_rise() {
                self.rise(grant, rung);
            }
            // This keeper has a sender of its own, so the channel never closes.
            let _ = self.woken.recv_timeout(LOOK);
        }
        Ok(())
    }

    /// Gives the bytes above a rung back, and takes what they were one tier down, as far as memory has room.
    fn step_down(&self, grant: &Grant, rung: usize) {
        let dropped = self.drop_to(self.shared.ladder.counts(rung));
        // Told before the grant knows: whoever is given the room next may ask at once.
        let before = mem::replace(&mut self.shared.state().rung, rung);
        if grant.step_to(rung).is_err() {
            self.shared.state().rung = before;
        }
        self.shared.changed.notify_all();
        // From disk, which has everything: a task on the device could wait for the very grant that waits for this one.
        for fragment in dropped {
            if self.is_over() || grant.recalled().is_some() {
                return;
            }
            if self.shared.model.wants_in_memory(&fragment) {
                // If it cannot be read now, whoever needs it is told.
                let _ = self.shared.model.fragment(&fragment);
            }
        }
    }

    /// Takes a better rung, if its levels can be had.
    fn rise(&self, grant: &Grant, rung: usize) {
        let before = grant.rung();
        if grant.begin_step(rung).is_err() {
            return;
        }
        let risen = self.bring(grant, rung);
        if risen.is_err() {
            self.drop_to(self.shared.ladder.counts(before));
        }
        let reached = if risen.is_ok() { rung } else { before };
        // A recall that came meanwhile is heard next.
        let _ = grant.step_to(reached);
        let mut state = self.shared.state();
        state.rung = reached;
        state.trouble = risen.err();
        drop(state);
        self.shared.changed.notify_all();
    }

    /// Brings every level of a rung that is not there, the coarsest first. Some are read while those before them go to the
    /// device.
    fn bring(&self, grant: &Grant, rung: usize) -> Result<(), HoldError> {
        let mut before = None;
        let mut missing = self.missing(rung).into_iter();
        while let Some(&place) = missing.as_slice().first() {
            if self.is_over() || grant.recalled().is_some_and(|recall| recall.to.is_none_or(|to| to > rung)) {
                break;
            }
            let next = self.upload(place, &mut missing);
            let arrived = before.take().map_or(Ok(()), |before| self.arrived(before));
            if let Err(error) = arrived {
                // Nothing is on its way any more when this returns: the grant may go next.
                let _ = next.map(|next| next.ticket.wait());
                return Err(error);
            }
            before = Some(next?);
        }
        before.map_or(Ok(()), |before| self.arrived(before))
    }

    fn missing(&self, rung: usize) -> Vec<Place> {
        let counts = self.shared.ladder.counts(rung);
        let state = self.shared.state();
        let mut missing = Vec::new();
        for (tensor, (pieces, count)) in state.levels.iter().zip(counts).enumerate() {
            for (piece, levels) in pieces.iter().enumerate() {
                missing.extend((levels.len()..*count).map(|level| Place { tensor, piece, level }));
            }
        }
        missing.sort_by_key(|place| place.level);
        missing
    }

    fn fragment(&self, place: Place) -> Fragment {
        self.tensor(place).pieces[place.piece][place.level]
    }

    /// Sends what is missing next: levels that lie in memory together, any other by itself, from whichever tier has it.
    fn upload(&self, next: Place, missing: &mut vec::IntoIter<Place>) -> Result<Upload, HoldError> {
        let (mut levels, mut bytes) = (Vec::new(), 0);
        while bytes < TOGETHER
            && let Some(level) = missing.as_slice().first().and_then(|place| self.as_it_lies(*place))
        {
            bytes += level.bytes.len();
            levels.push(level);
            missing.next();
        }
        if levels.is_empty() {
            missing.next();
            return self.send(vec![self.checked(next)?], true);
        }
        self.send(levels, false)
    }

    /// A level that goes as it lies in memory, if it is there and not damaged: its bytes are checked on their way, and not
    /// read once more for it.
    fn as_it_lies(&self, place: Place) -> Option<Level> {
        if self.tensor(place).is_exact(place.level) {
            return None;
        }
        let fragment = self.fragment(place);
        let lying = self.shared.model.lying_in_memory(&fragment)?;
        let (bytes, checksum) = self.as_on_device(place, lying, fragment.checksum).ok()?;
        Some(Level { place, bytes, checksum })
    }

    fn checked(&self, place: Place) -> Result<Level, HoldError> {
        let fragment = self.fragment(place);
        let (bytes, checksum) = self.as_on_device(place, self.shared.model.fragment(&fragment)?, fragment.checksum)?;
        Ok(Level { place, bytes, checksum })
    }

    fn send(&self, levels: Vec<Level>, is_checked: bool) -> Result<Upload, HoldError> {
        let bytes = levels.iter().map(|level| level.bytes.len() as u64).sum();
        let sent: Vec<(Place, Checksum)> = levels.iter().map(|level| (level.place, level.checksum)).collect();
        let levels = levels.into_iter().map(|level| (level.bytes, level.checksum)).collect();
        let input = UploadInput { levels, gauge: Arc::clone(&self.shared.gauge) };
        let task = Task::new(input).devices([self.shared.wanted.device]).priority(Priority::Critical);
        let ticket = self.shared.orchestrator.submit(&self.shared.upload, task);
        let ticket = ticket.map_err(|refused| HoldError::Task(refused.into()))?;
        Ok(Upload { levels: sent, bytes, is_checked, ticket })
    }

    /// Waits until levels are there. If memory had damaged one, they are taken once more, that one from the tier below.
    fn arrived(&self, upload: Upload) -> Result<(), HoldError> {
        let Upload { levels: sent, bytes, is_checked, ticket } = upload;
        let done = match ticket.wait() {
            Err(RunError { error: TaskError::WorkFailed(_), .. }) if !is_checked => {
                let levels = sent.into_iter().map(|(place, _)| self.checked(place)).collect::<Result<_, _>>()?;
                return self.arrived(self.send(levels, true)?);
            }
            done => done.map_err(HoldError::Task)?,
        };
        let mut state = self.shared.state();
        for ((place, checksum), buffer) in sent.into_iter().zip(done.output) {
            let levels = &mut state.levels[place.tensor][place.piece];
            debug_assert_eq!(levels.len(), place.level);
            levels.push(HeldLevel { buffer: Arc::new(buffer), checksum });
        }
        self.shared.arrival.brought.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }

    fn tensor(&self, place: Place) -> &Tensor {
        &self.shared.model.model().index.tensors[self.shared.ladder.tensors[place.tensor]]
    }

    /// A level as a device has it. The exact one goes there unpacked: a device decodes it weight by weight.
    fn as_on_device(
        &self,
        place: Place,
        bytes: Arc<Vec<u8>>,
        checksum: Checksum,
    ) -> Result<(Arc<Vec<u8>>, Checksum), FragmentError> {
        let (index, tensor) = (&self.shared.model.model().index, self.tensor(place));
        let weights = tensor.piece_elements(place.piece);
        let (Some(float), true) = (tensor.float(), tensor.is_exact(place.level)) else {
            check_level(&bytes, &index.bits, place.level, weights)?;
            return Ok((bytes, checksum));
        };
        let mut unpacked = differences(&bytes, float, weights)?;
        unpacked.resize(difference_bytes(float, weights) as usize, 0);
        let checksum = Checksum::of(&unpacked);
        Ok((Arc::new(unpacked), checksum))
    }

    /// Takes away every level above these counts; all, if there are none. Comes back when the bytes are free, with what went.
    fn drop_to(&self, counts: &[usize]) -> Vec<Fragment> {
        let mut taken: Vec<(Place, HeldLevel)> = Vec::new();
        let mut state = self.shared.state();
        for (tensor, pieces) in state.levels.iter_mut().enumerate() {
            let keep = counts.get(tensor).copied().unwrap_or(0);
            for (piece, levels) in pieces.iter_mut().enumerate() {
                let above = levels.split_off(keep.min(levels.len()));
                taken.extend((keep..).zip(above).map(|(level, held)| (Place { tensor, piece, level }, held)));
            }
        }
        while taken.iter().any(|(_, held)| Arc::strong_count(&held.buffer) > 1) {
            state = self.shared.changed.wait_timeout(state, LOOK).unwrap_or_else(PoisonError::into_inner).0;
        }
        drop(state);
        taken.into_iter().map(|(place, _)| self.fragment(place)).collect()
    }
}
