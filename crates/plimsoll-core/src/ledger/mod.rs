//! The memory ledger: how many bytes of each device are promised, and to whom.
//! Never allocates device memory, waits, or picks a victim (that is `scheduler::evict`).
//! Invariant: on every device, promised ≤ line at the moment of the promise.

use smallvec::{SmallVec, smallvec};

use crate::{Bytes, DeviceId};

/// A promise of bytes. Returned once; an old id never means a new lease.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct LeaseId {
    index: u32,
    generation: u32,
}

/// Why bytes were not promised.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Shortfall {
    /// More than the device will ever have for us: choose another rung or device.
    #[error("{wanted} never fits under the line of {line} on {device}")]
    NeverFits {
        /// The device that is too small.
        device: DeviceId,
        /// Bytes asked for.
        wanted: Bytes,
        /// The highest that its line can be.
        line: Bytes,
    },
    /// More than is unpromised now: wait, or evict something.
    #[error("{wanted} does not fit now: {free} free under the line on {device}")]
    NotNow {
        /// The device that is full.
        device: DeviceId,
        /// Bytes asked for.
        wanted: Bytes,
        /// Bytes not promised now.
        free: Bytes,
    },
}

/// The lease was already returned.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this lease was already returned")]
pub struct AlreadyReturned;

#[derive(Clone, Copy, Debug, Default)]
struct Account {
    line: Bytes,
    /// The highest that the line can be: what other programs hold now they may give back.
    ceiling: Bytes,
    /// The part of what is promised that somebody outside holds.
    outside: Bytes,
    promised: Bytes,
    peak: Bytes,
    /// The most since somebody began to watch.
    peak_watched: Bytes,
}

#[derive(Clone, Debug, Default)]
struct Entry {
    generation: u32,
    outside: bool,
    portions: Option<Portions>,
}

pub(crate) type Portions = SmallVec<[(DeviceId, Bytes); 1]>;

/// The book.
///
/// ```
/// use plimsoll_core::{Bytes, DeviceId, ledger::{Ledger, Shortfall}};
/// let gpu = DeviceId(0);
/// let mut ledger = Ledger::default();
/// ledger.set_line(gpu, Bytes::mib(64), Bytes::mib(80));
/// let lease = ledger.reserve(gpu, Bytes::mib(48))?;
/// assert!(matches!(ledger.reserve(gpu, Bytes::mib(32)), Err(Shortfall::NotNow { .. })));
/// assert!(matches!(ledger.reserve(gpu, Bytes::mib(65)), Err(Shortfall::NotNow { .. })));
/// assert!(matches!(ledger.reserve(gpu, Bytes::mib(81)), Err(Shortfall::NeverFits { .. })));
/// ledger.release(lease).unwrap();
/// assert_eq!(ledger.promised(gpu), Bytes::ZERO);
/// # Ok::<(), Shortfall>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    accounts: Vec<Account>,
    entries: Vec<Entry>,
    vacant: Vec<u32>,
    forgetful: bool,
}

impl Ledger {
    /// Breaks the book on purpose: from now on only half of each promise is written down. The simulator's invariants
    /// must catch it (`testkit::fuzz::tests::broken_cores_are_caught`).
    #[doc(hidden)]
    pub fn break_on_purpose(&mut self) {
        self.forgetful = true;
    }

    /// Moves a device's line, and says how high it can ever be. Leases already given stay good.
    pub fn set_line(&mut self, device: DeviceId, line: Bytes, ceiling: Bytes) {
        if self.accounts.len() <= device.index() {
            self.accounts.resize(device.index() + 1, Account::default());
        }
        let account = &mut self.accounts[device.index()];
        (account.line, account.ceiling) = (line, ceiling.max(line));
    }

    /// The bytes of a device that may be promised.
    pub fn line(&self, device: DeviceId) -> Bytes {
        self.account(device).line
    }

    /// The highest that a device's line can be.
    pub fn ceiling(&self, device: DeviceId) -> Bytes {
        self.account(device).ceiling
    }

    /// The bytes of a device that are promised to somebody outside: nobody here can give them back.
    pub fn outside(&self, device: DeviceId) -> Bytes {
        self.account(device).outside
    }

    /// The bytes of a device that are promised.
    pub fn promised(&self, device: DeviceId) -> Bytes {
        self.account(device).promised
    }

    /// The most bytes of a device that were ever promised at once.
    pub fn promised_peak(&self, device: DeviceId) -> Bytes {
        self.account(device).peak
    }

    /// Begins to watch what is promised of a device.
    pub(crate) fn watch(&mut self, device: DeviceId) {
        if let Some(account) = self.accounts.get_mut(device.index()) {
            account.peak_watched = account.promised;
        }
    }

    /// The most bytes of a device that were promised at once since [`Ledger::watch`].
    pub(crate) fn peak_watched(&self, device: DeviceId) -> Bytes {
        self.account(device).peak_watched
    }

    /// The bytes of a device that can still be promised.
    pub fn free(&self, device: DeviceId) -> Bytes {
        let account = self.account(device);
        account.line - account.promised
    }

    /// Whether the bytes could be promised now.
    ///
    /// # Errors
    /// Why they could not.
    pub fn check(&self, device: DeviceId, wanted: Bytes) -> Result<(), Shortfall> {
        let account = self.account(device);
        if wanted > account.ceiling {
            return Err(Shortfall::NeverFits { device, wanted, line: account.ceiling });
        }
        let free = account.line - account.promised;
        if wanted > free {
            return Err(Shortfall::NotNow { device, wanted, free });
        }
        Ok(())
    }

    /// Promises bytes of one device.
    ///
    /// # Errors
    /// Why they do not fit.
    pub fn reserve(&mut self, device: DeviceId, bytes: Bytes) -> Result<LeaseId, Shortfall> {
        self.check(device, bytes)?;
        Ok(self.enter(smallvec![(device, bytes)], false))
    }

    /// Promises bytes of several devices to somebody outside: all or nothing.
    ///
    /// # Errors
    /// The first device on which they do not fit.
    pub fn reserve_all(&mut self, portions: &[(DeviceId, Bytes)]) -> Result<LeaseId, Shortfall> {
        let sums = summed(portions);
        for &(device, bytes) in &sums {
            self.check(device, bytes)?;
        }
        Ok(self.enter(sums, true))
    }

    /// Takes a lease back.
    ///
    /// # Errors
    /// [`AlreadyReturned`] if it was: the book does not change.
    pub fn release(&mut self, lease: LeaseId) -> Result<(), AlreadyReturned> {
        let entry = self.entries.get_mut(lease.index as usize).ok_or(AlreadyReturned)?;
        if entry.generation != lease.generation {
            return Err(AlreadyReturned);
        }
        let portions = entry.portions.take().ok_or(AlreadyReturned)?;
        entry.generation = entry.generation.wrapping_add(1);
        let outside = entry.outside;
        self.vacant.push(lease.index);
        for (device, bytes) in portions {
            let account = &mut self.accounts[device.index()];
            account.promised -= bytes;
            account.outside -= if outside { bytes } else { Bytes::ZERO };
        }
        Ok(())
    }

    /// Live leases.
    pub fn leases(&self) -> usize {
        self.entries.len() - self.vacant.len()
    }

    /// The sum of the live leases on a device, counted anew: what [`Ledger::promised`] must equal.
    pub fn recount(&self, device: DeviceId) -> Bytes {
        let portions = self.entries.iter().filter_map(|entry| entry.portions.as_ref()).flatten();
        portions.filter(|(held, _)| *held == device).map(|(_, bytes)| *bytes).sum()
    }

    fn account(&self, device: DeviceId) -> Account {
        self.accounts.get(device.index()).copied().unwrap_or_default()
    }

    fn enter(&mut self, portions: Portions, outside: bool) -> LeaseId {
        for &(device, bytes) in &portions {
            let account = &mut self.accounts[device.index()];
            account.promised += if self.forgetful { bytes.share(0.5) } else { bytes };
            account.outside += if outside { bytes } else { Bytes::ZERO };
            account.peak = account.peak.max(account.promised);
            account.peak_watched = account.peak_watched.max(account.promised);
        }
        let index = self.vacant.pop().unwrap_or_else(|| {
            self.entries.push(Entry::default());
            (self.entries.len() - 1) as u32
        });
        let entry = &mut self.entries[index as usize];
        (entry.portions, entry.outside) = (Some(portions), outside);
        LeaseId { index, generation: entry.generation }
    }
}

/// One portion a device.
pub(crate) fn summed(portions: &[(DeviceId, Bytes)]) -> Portions {
    let mut sums = Portions::new();
    for &(device, bytes) in portions {
        match sums.iter_mut().find(|(known, _)| *known == device) {
            Some((_, sum)) => *sum += bytes,
            None => sums.push((device, bytes)),
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const A: DeviceId = DeviceId(0);
    const B: DeviceId = DeviceId(1);

    fn two_devices(line: u64) -> Ledger {
        let mut ledger = Ledger::default();
        ledger.set_line(A, Bytes(line), Bytes(line));
        ledger.set_line(B, Bytes(line), Bytes(line));
        ledger
    }

    #[test]
    fn a_lease_returns_once() {
        let mut ledger = two_devices(100);
        let first = ledger.reserve(A, Bytes(60)).unwrap();
        ledger.release(first).unwrap();
        assert_eq!(ledger.release(first), Err(AlreadyReturned));
        let second = ledger.reserve(A, Bytes(70)).unwrap();
        assert_eq!(ledger.release(first), Err(AlreadyReturned), "an old id never means a new lease");
        assert_eq!(ledger.promised(A), Bytes(70));
        ledger.release(second).unwrap();
        assert_eq!(ledger.leases(), 0);
    }

    #[test]
    fn the_most_that_was_ever_promised_is_kept() {
        let mut ledger = two_devices(100);
        let first = ledger.reserve(A, Bytes(60)).unwrap();
        let second = ledger.reserve(A, Bytes(30)).unwrap();
        [first, second].into_iter().for_each(|lease| ledger.release(lease).unwrap());
        ledger.reserve(A, Bytes(10)).unwrap();
        assert_eq!((ledger.promised_peak(A), ledger.promised_peak(B)), (Bytes(90), Bytes::ZERO));
    }

    #[test]
    fn several_devices_are_all_or_nothing() {
        let mut ledger = two_devices(100);
        ledger.set_line(B, Bytes(10), Bytes(10));
        let refused = ledger.reserve_all(&[(A, Bytes(50)), (B, Bytes(20))]);
        assert!(matches!(refused, Err(Shortfall::NeverFits { device: B, .. })));
        assert_eq!(ledger.promised(A), Bytes::ZERO);
        let twice = ledger.reserve_all(&[(A, Bytes(60)), (A, Bytes(60))]);
        assert!(matches!(twice, Err(Shortfall::NeverFits { device: A, wanted: Bytes(120), .. })));
    }

    #[test]
    fn a_lowered_line_stops_new_promises_only() {
        let mut ledger = two_devices(100);
        let lease = ledger.reserve(A, Bytes(80)).unwrap();
        ledger.set_line(A, Bytes(50), Bytes(100));
        assert!(matches!(ledger.check(A, Bytes(90)), Err(Shortfall::NotNow { .. })), "the line may rise again");
        assert!(matches!(ledger.check(A, Bytes(101)), Err(Shortfall::NeverFits { .. })));
        assert!(matches!(ledger.reserve(A, Bytes(1)), Err(Shortfall::NotNow { free: Bytes::ZERO, .. })));
        ledger.release(lease).unwrap();
        assert!(ledger.reserve(A, Bytes(50)).is_ok());
    }

    #[test]
    fn an_unknown_device_has_no_room() {
        assert!(matches!(Ledger::default().check(DeviceId(9), Bytes(1)), Err(Shortfall::NeverFits { .. })));
    }

    #[derive(Clone, Debug)]
    enum Step {
        Reserve(u64, u64),
        Release(usize),
        Line(u64),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            (0..120_u64, 0..120_u64).prop_map(|(a, b)| Step::Reserve(a, b)),
            (0..64_usize).prop_map(Step::Release),
            (0..150_u64).prop_map(Step::Line),
        ];
        proptest::collection::vec(step, 0..200)
    }

    proptest! {
        #[test]
        fn promised_is_the_sum_of_live_leases(steps in steps()) {
            let mut ledger = two_devices(100);
            let mut live = Vec::new();
            for step in steps {
                match step {
                    Step::Reserve(a, b) => {
                        if let Ok(lease) = ledger.reserve_all(&[(A, Bytes(a)), (B, Bytes(b))]) {
                            // The line may have moved below what is promised; nothing is still a promise that can be kept.
                            prop_assert!(a == 0 || ledger.promised(A) <= ledger.line(A));
                            prop_assert!(b == 0 || ledger.promised(B) <= ledger.line(B));
                            live.push(lease);
                        }
                    }
                    Step::Release(at) if !live.is_empty() => {
                        let lease = live.swap_remove(at % live.len());
                        prop_assert!(ledger.release(lease).is_ok());
                        prop_assert!(ledger.release(lease).is_err());
                    }
                    Step::Release(_) => {}
                    Step::Line(line) => ledger.set_line(A, Bytes(line), Bytes(150)),
                }
                for device in [A, B] {
                    prop_assert_eq!(ledger.promised(device), ledger.recount(device));
                    prop_assert_eq!(ledger.outside(device), ledger.promised(device), "all of these are outside");
                }
                prop_assert_eq!(ledger.leases(), live.len());
            }
        }
    }
}
