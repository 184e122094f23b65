//! Fences: how a slot finds out later that the device has done what was handed over up to some point.
//! Never waits: a backend does. Owns whose a fence is, and how many of a slot's nobody has drained.
//! Invariant: at most [`KICKS_LIMIT`] fences of one slot are held by somebody and not drained (`conformance`).

use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};

use plimsoll_core::Fault;

use crate::misuse::MisuseError;
use crate::origin::Origin;

/// Fences of one slot that are held and not drained. Two keep a device busy; this is far more than any pipeline is deep,
/// and few enough that a workload which never drains hears of it soon. A full slot refuses the next kick.
pub const KICKS_LIMIT: usize = 64;

/// What a fence says.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum FenceState {
    /// All that was handed over before the fence is done.
    Done,
    /// Some of it is not done yet.
    UnderWay,
}

/// Stands for all that one slot had handed over when it was made by [`crate::Backend::kick`]. Every slot of the same
/// device can wait for it, any number of times.
#[derive(Clone, Debug)]
pub struct Fence(Arc<Kick>);

#[derive(Debug)]
struct Kick {
    origin: Origin,
    /// Counts the kicks of its slot, from 1.
    number: u64,
    /// The slot's kicks up to this number were drained. Guards no memory, so relaxed order does.
    drained: Arc<AtomicU64>,
    work: Box<dyn Any + Send + Sync>,
}

/// The kicks of one slot. Only backends use this.
#[derive(Debug)]
pub struct Kicks {
    origin: Origin,
    made: u64,
    drained: Arc<AtomicU64>,
    /// Those that may still be held by somebody, oldest first.
    held: Vec<Weak<Kick>>,
}

impl Kicks {
    /// None so far, on a slot of this device and life.
    pub fn new(origin: Origin) -> Self {
        Self { origin, made: 0, drained: Arc::default(), held: Vec::new() }
    }

    /// Checks that one more is allowed; call before anything is handed over.
    ///
    /// # Errors
    /// [`MisuseError::TooManyKicks`].
    pub fn check_limit(&mut self) -> Result<(), MisuseError> {
        let drained = self.drained.load(Relaxed);
        self.held.retain(|kick| kick.upgrade().is_some_and(|kick| kick.number > drained));
        if self.held.len() < KICKS_LIMIT { Ok(()) } else { Err(MisuseError::TooManyKicks) }
    }

    /// A fence for `work`, which is the backend's own word for what was handed over.
    pub fn fence(&mut self, work: impl Any + Send + Sync) -> Fence {
        self.made += 1;
        let (origin, drained) = (self.origin.clone(), Arc::clone(&self.drained));
        let kick = Arc::new(Kick { origin, number: self.made, drained, work: Box::new(work) });
        self.held.push(Arc::downgrade(&kick));
        Fence(kick)
    }

    /// What a fence of any slot of this device and life stands for.
    ///
    /// # Errors
    /// [`Fault::WorkFailed`] for another device's; [`Fault::DeviceLost`] for one of an earlier life.
    pub fn work_of<'a, W: Any>(&self, fence: &'a Fence) -> Result<&'a W, Fault> {
        self.origin.check(&fence.0.origin, "fence")?;
        fence.0.work.downcast_ref().ok_or_else(|| MisuseError::Foreign("fence").into())
    }

    /// All that this slot has kicked is known to be done.
    pub fn all_drained(&self) {
        self.drained.fetch_max(self.made, Relaxed);
    }
}

impl Fence {
    /// Passes on what a backend found out. A fence that is done is drained, and so are its slot's earlier ones.
    pub fn found(&self, state: FenceState) -> FenceState {
        if state == FenceState::Done {
            self.0.drained.fetch_max(self.0.number, Relaxed);
        }
        state
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full() -> (Kicks, Vec<Fence>) {
        let mut kicks = Kicks::new(Origin::new(&Arc::default(), 0));
        let fences = (0..KICKS_LIMIT).map(|_| kicks.fence(())).collect();
        assert_eq!(kicks.check_limit(), Err(MisuseError::TooManyKicks));
        (kicks, fences)
    }

    #[test]
    fn a_drained_fence_drains_the_earlier_ones_only() {
        let (mut kicks, fences) = full();
        fences[5].found(FenceState::UnderWay);
        assert_eq!(kicks.check_limit(), Err(MisuseError::TooManyKicks));
        fences[5].found(FenceState::Done);
        // Out of order, which is no news.
        fences[2].found(FenceState::Done);
        let more: Vec<Fence> = (0..6).map(|_| kicks.check_limit().map(|()| kicks.fence(())).unwrap()).collect();
        assert_eq!((more.len(), kicks.check_limit()), (6, Err(MisuseError::TooManyKicks)));
        kicks.all_drained();
        assert_eq!(kicks.check_limit(), Ok(()));
    }

    #[test]
    fn a_fence_that_nobody_holds_is_not_waited_for() {
        let (mut kicks, mut fences) = full();
        let kept = fences[0].clone();
        drop(fences.drain(..2));
        assert_eq!(kicks.check_limit(), Ok(()), "one is gone");
        let _another = kicks.fence(());
        assert_eq!(kicks.check_limit(), Err(MisuseError::TooManyKicks), "the other has a clone");
        drop(kept);
        assert_eq!(kicks.check_limit(), Ok(()));
    }
}
