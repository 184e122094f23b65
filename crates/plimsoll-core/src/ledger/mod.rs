//! The memory ledger: how many bytes of each device are promised, and to whom.
//! Never allocates device memory, waits, or picks a victim (that is `scheduler::evict` and `scheduler::grants`).
//! Invariant: on every device, promised ≤ line at the moment of the promise.

use smallvec::{SmallVec, smallvec};

use crate::grant::{GrantOwner, bytes_on};
use crate::{Bytes, DeviceId};

/// A promise of bytes. Returned once; an old id never means a new lease.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct LeaseId {
    index: u32,
    generation: u32,
}

/// Why bytes were not promised.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShortfallError {
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
    /// Grants hold it: wait for one to be returned, recall one, or ask for less.
    #[error("{wanted} does not fit now: {free} free under the line on {device}, {owner} holds {granted} by a grant")]
    Granted {
        /// The device that is full.
        device: DeviceId,
        /// Bytes asked for.
        wanted: Bytes,
        /// Bytes not promised now.
        free: Bytes,
        /// Who holds most.
        owner: GrantOwner,
        /// How much that one holds.
        granted: Bytes,
    },
}

impl ShortfallError {
    /// Whether the same bytes may be had later.
    pub fn may_pass(&self) -> bool {
        !matches!(self, Self::NeverFits { .. })
    }
}

/// For whom bytes are promised.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Holder {
    /// A run, a session, a reference: they come back by themselves, or can be evicted.
    #[default]
    Own,
    /// A value that lies somewhere: it comes back when its last reader has run.
    Value,
    /// The session that a sequence holds: it comes back when its owner closes it.
    Hold,
    /// Somebody in this process, by a grant: nobody here can give them back.
    Grant,
    /// Another program, by a grant: its driver counts them as others'.
    Program,
}

/// The lease was already returned.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this lease was already returned")]
pub struct AlreadyReturnedError;

#[derive(Clone, Copy, Debug, Default)]
struct Account {
    /// What may be promised: what was measured, under the allotment.
    line: Bytes,
    /// The line as it was measured.
    measured: Bytes,
    /// How much of it may be promised here, where it is shared with others; `None` is all of it.
    allotment: Option<Bytes>,
    /// The highest that the line can be: what other programs hold now they may give back.
    ceiling: Bytes,
    /// The part of what is promised that grants hold.
    outside: Bytes,
    /// The part of that which other programs hold.
    programs: Bytes,
    /// The part of what is promised that values hold.
    values: Bytes,
    /// The part of what is promised that sequences hold.
    holds: Bytes,
    promised: Bytes,
    /// What is not promised, but kept for a grant that waits.
    kept: Bytes,
    peak: Bytes,
    /// The most since somebody began to watch.
    peak_watched: Bytes,
    /// The least and the most since they were last taken.
    extremes: (Bytes, Bytes),
}

impl Account {
    fn unpromised(&self) -> Bytes {
        self.line - self.promised
    }

    fn add(&mut self, bytes: Bytes, holder: Holder) {
        self.promised += bytes;
        self.parts_of(holder).into_iter().flatten().for_each(|part| *part += bytes);
        self.peak = self.peak.max(self.promised);
        self.peak_watched = self.peak_watched.max(self.promised);
        self.extremes.1 = self.extremes.1.max(self.promised);
    }

    fn draw(&mut self) {
        self.line = self.allotment.map_or(self.measured, |allotment| self.measured.min(allotment));
    }

    fn remove(&mut self, bytes: Bytes, holder: Holder) {
        self.promised -= bytes;
        self.extremes.0 = self.extremes.0.min(self.promised);
        self.parts_of(holder).into_iter().flatten().for_each(|part| *part -= bytes);
    }

    /// Where a holder's bytes are counted beside what is promised.
    fn parts_of(&mut self, holder: Holder) -> [Option<&mut Bytes>; 2] {
        match holder {
            Holder::Own => [None, None],
            Holder::Value => [Some(&mut self.values), None],
            Holder::Hold => [Some(&mut self.holds), None],
            Holder::Grant => [Some(&mut self.outside), None],
            Holder::Program => [Some(&mut self.outside), Some(&mut self.programs)],
        }
    }
}

#[derive(Clone, Debug, Default)]
struct Entry {
    generation: u32,
    holder: Holder,
    portions: Option<Portions>,
}

type Portions = SmallVec<[(DeviceId, Bytes); 1]>;

/// The book.
///
/// ```
/// use plimsoll_core::{Bytes, DeviceId, ledger::{Ledger, ShortfallError}};
/// let gpu = DeviceId(0);
/// let mut ledger = Ledger::default();
/// ledger.set_line(gpu, Bytes::mib(64), Bytes::mib(80));
/// let lease = ledger.reserve(gpu, Bytes::mib(48))?;
/// assert!(matches!(ledger.reserve(gpu, Bytes::mib(32)), Err(ShortfallError::NotNow { .. })));
/// assert!(matches!(ledger.reserve(gpu, Bytes::mib(65)), Err(ShortfallError::NotNow { .. })));
/// assert!(matches!(ledger.reserve(gpu, Bytes::mib(81)), Err(ShortfallError::NeverFits { .. })));
/// ledger.release(lease).unwrap();
/// assert_eq!(ledger.promised(gpu), Bytes::ZERO);
/// # Ok::<(), ShortfallError>(())
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
        (account.measured, account.ceiling) = (line, ceiling.max(line));
        account.draw();
    }

    /// Says how much of a device's line may be promised here; `None` is all of it. Leases already given stay good, and
    /// the ceiling stays where it is: others may give back what they were allotted.
    pub fn set_allotment(&mut self, device: DeviceId, allotment: Option<Bytes>) {
        if let Some(account) = self.accounts.get_mut(device.index()) {
            account.allotment = allotment;
            account.draw();
        }
    }

    /// How much of a device's line may be promised here; `None` is all of it.
    pub fn allotment(&self, device: DeviceId) -> Option<Bytes> {
        self.account(device).allotment
    }

    /// The line of a device as it was measured: what may be promised if the allotment is large enough.
    pub fn measured(&self, device: DeviceId) -> Bytes {
        self.account(device).measured
    }

    /// Whether the allotment keeps the line below what was measured.
    pub fn is_capped(&self, device: DeviceId) -> bool {
        let account = self.account(device);
        account.line < account.measured
    }

    /// The least and the most that were promised of a device since this was last asked.
    pub(crate) fn take_extremes(&mut self, device: DeviceId) -> (Bytes, Bytes) {
        let Some(account) = self.accounts.get_mut(device.index()) else { return Default::default() };
        std::mem::replace(&mut account.extremes, (account.promised, account.promised))
    }

    /// The bytes of a device that may be promised.
    pub fn line(&self, device: DeviceId) -> Bytes {
        self.account(device).line
    }

    /// The highest that a device's line can be.
    pub fn ceiling(&self, device: DeviceId) -> Bytes {
        self.account(device).ceiling
    }

    /// The bytes of a device that grants hold: no run here will give them back.
    pub fn outside(&self, device: DeviceId) -> Bytes {
        self.account(device).outside
    }

    /// The part of [`Ledger::outside`] that other programs hold, or have given back without anybody knowing it to be free.
    pub fn programs(&self, device: DeviceId) -> Bytes {
        self.account(device).programs
    }

    /// The bytes of a device that values hold: they come back when their readers have run.
    pub fn values(&self, device: DeviceId) -> Bytes {
        self.account(device).values
    }

    /// The bytes of a device that sessions hold which sequences own: they come back when their owners close them.
    pub fn holds(&self, device: DeviceId) -> Bytes {
        self.account(device).holds
    }

    /// The bytes of a device that no run here gives back when it ends: what grants and sequences hold.
    pub fn lasting(&self, device: DeviceId) -> Bytes {
        self.outside(device) + self.holds(device)
    }

    /// A lease has another holder from now on: what a run had stays when the run is over.
    pub(crate) fn passes_to(&mut self, lease: LeaseId, holder: Holder) {
        let Some(entry) = self.live(lease) else { return };
        let before = std::mem::replace(&mut entry.holder, holder);
        let portions = entry.portions.clone().unwrap_or_default();
        for (device, bytes) in portions {
            let account = &mut self.accounts[device.index()];
            account.parts_of(before).into_iter().flatten().for_each(|part| *part -= bytes);
            account.parts_of(holder).into_iter().flatten().for_each(|part| *part += bytes);
        }
    }

    /// Keeps so many bytes of a device for a grant that waits: nothing else is promised them.
    pub(crate) fn keep(&mut self, device: DeviceId, bytes: Bytes) {
        if let Some(account) = self.accounts.get_mut(device.index()) {
            account.kept = bytes;
        }
    }

    /// The bytes of a device that are kept for a grant that waits.
    pub fn kept(&self, device: DeviceId) -> Bytes {
        self.account(device).kept
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

    /// The bytes of a device that can still be promised to whoever asks.
    #[inline]
    pub fn free(&self, device: DeviceId) -> Bytes {
        let account = self.account(device);
        account.unpromised() - account.kept
    }

    /// The bytes of a device that are not promised, those kept for a grant included.
    pub fn unpromised(&self, device: DeviceId) -> Bytes {
        self.account(device).unpromised()
    }

    /// Whether the bytes could be promised now.
    ///
    /// # Errors
    /// Why they could not.
    pub fn check(&self, device: DeviceId, wanted: Bytes) -> Result<(), ShortfallError> {
        let account = self.account(device);
        if wanted > account.ceiling {
            return Err(ShortfallError::NeverFits { device, wanted, line: account.ceiling });
        }
        let free = account.unpromised() - account.kept;
        if wanted > free {
            return Err(ShortfallError::NotNow { device, wanted, free });
        }
        Ok(())
    }

    fn check_grant(&self, device: DeviceId, wanted: Bytes) -> Result<(), ShortfallError> {
        let account = self.account(device);
        if wanted > account.ceiling {
            return Err(ShortfallError::NeverFits { device, wanted, line: account.ceiling });
        }
        if wanted > account.unpromised() {
            return Err(ShortfallError::NotNow { device, wanted, free: account.unpromised() });
        }
        Ok(())
    }

    /// Promises bytes of one device.
    ///
    /// # Errors
    /// Why they do not fit.
    #[inline]
    pub fn reserve(&mut self, device: DeviceId, bytes: Bytes) -> Result<LeaseId, ShortfallError> {
        self.check(device, bytes)?;
        Ok(self.enter(smallvec![(device, bytes)], Holder::Own))
    }

    /// Promises bytes of several devices by a grant, those kept for it included: all or nothing.
    ///
    /// # Errors
    /// The first device on which they do not fit.
    pub fn reserve_all(&mut self, portions: &[(DeviceId, Bytes)], holder: Holder) -> Result<LeaseId, ShortfallError> {
        let portions = crate::grant::summed(portions);
        portions.iter().try_for_each(|&(device, bytes)| self.check_grant(device, bytes))?;
        Ok(self.enter(portions.into_iter().collect(), holder))
    }

    /// Promises what a lease has less than these portions in addition: all or nothing.
    ///
    /// # Errors
    /// The first device on which that does not fit.
    pub fn extend(&mut self, lease: LeaseId, portions: &[(DeviceId, Bytes)]) -> Result<(), ShortfallError> {
        let more = |ledger: &Self, (device, bytes): (DeviceId, Bytes)| (device, bytes - ledger.held(lease, device));
        let more: Portions = portions.iter().map(|&portion| more(self, portion)).collect();
        let more = crate::grant::summed(&more);
        more.iter().try_for_each(|&(device, bytes)| self.check_grant(device, bytes))?;
        let Some(entry) = self.live(lease) else { return Ok(()) };
        let holder = entry.holder;
        let held = entry.portions.get_or_insert_default();
        for &(device, bytes) in &more {
            match held.iter_mut().find(|(on, _)| *on == device) {
                Some((_, held)) => *held += bytes,
                None => held.push((device, bytes)),
            }
        }
        more.iter().for_each(|&(device, bytes)| self.accounts[device.index()].add(bytes, holder));
        Ok(())
    }

    /// Puts what a lease holds of a device beyond `keep` into a lease of its own; `None` if that is nothing. What is
    /// promised stays the same.
    pub fn split(&mut self, lease: LeaseId, device: DeviceId, keep: Bytes) -> Option<LeaseId> {
        let rest = self.held(lease, device) - keep;
        if rest == Bytes::ZERO {
            return None;
        }
        let entry = self.live(lease)?;
        let holder = entry.holder;
        let portions = entry.portions.as_mut()?;
        portions.iter_mut().filter(|(on, _)| *on == device).for_each(|(_, held)| *held = keep);
        portions.retain(|(_, held)| *held > Bytes::ZERO);
        Some(self.write(smallvec![(device, rest)], holder))
    }

    /// What a lease holds of a device.
    pub fn held(&self, lease: LeaseId, device: DeviceId) -> Bytes {
        bytes_on(self.portions(lease), device)
    }

    /// What a lease holds.
    pub fn portions(&self, lease: LeaseId) -> &[(DeviceId, Bytes)] {
        let entry = self.entries.get(lease.index as usize).filter(|entry| entry.generation == lease.generation);
        entry.and_then(|entry| entry.portions.as_deref()).unwrap_or_default()
    }

    /// Takes a lease back.
    ///
    /// # Errors
    /// [`AlreadyReturnedError`] if it was: the book does not change.
    #[inline]
    pub fn release(&mut self, lease: LeaseId) -> Result<(), AlreadyReturnedError> {
        let entry = self.live(lease).ok_or(AlreadyReturnedError)?;
        let portions = entry.portions.take().ok_or(AlreadyReturnedError)?;
        entry.generation = entry.generation.wrapping_add(1);
        let holder = entry.holder;
        self.vacant.push(lease.index);
        for (device, bytes) in portions {
            self.accounts[device.index()].remove(bytes, holder);
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

    fn live(&mut self, lease: LeaseId) -> Option<&mut Entry> {
        self.entries.get_mut(lease.index as usize).filter(|entry| entry.generation == lease.generation)
    }

    #[inline]
    fn enter(&mut self, portions: Portions, holder: Holder) -> LeaseId {
        for &(device, bytes) in &portions {
            let bytes = if self.forgetful { bytes.share(0.5) } else { bytes };
            self.accounts[device.index()].add(bytes, holder);
        }
        self.write(portions, holder)
    }

    /// Writes a lease down whose bytes are counted already.
    #[inline]
    fn write(&mut self, portions: Portions, holder: Holder) -> LeaseId {
        let index = self.vacant.pop().unwrap_or_else(|| {
            self.entries.push(Entry::default());
            (self.entries.len() - 1) as u32
        });
        let entry = &mut self.entries[index as usize];
        (entry.portions, entry.holder) = (Some(portions), holder);
        LeaseId { index, generation: entry.generation }
    }
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
        assert_eq!(ledger.release(first), Err(AlreadyReturnedError));
        let second = ledger.reserve(A, Bytes(70)).unwrap();
        assert_eq!(ledger.release(first), Err(AlreadyReturnedError), "an old id never means a new lease");
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
        let refused = ledger.reserve_all(&[(A, Bytes(50)), (B, Bytes(20))], Holder::Grant);
        assert!(matches!(refused, Err(ShortfallError::NeverFits { device: B, .. })));
        assert_eq!(ledger.promised(A), Bytes::ZERO);
        let twice = ledger.reserve_all(&[(A, Bytes(60)), (A, Bytes(60))], Holder::Grant);
        assert!(matches!(twice, Err(ShortfallError::NeverFits { device: A, wanted: Bytes(120), .. })));
    }

    #[test]
    fn a_lowered_line_stops_new_promises_only() {
        let mut ledger = two_devices(100);
        let lease = ledger.reserve(A, Bytes(80)).unwrap();
        ledger.set_line(A, Bytes(50), Bytes(100));
        assert!(matches!(ledger.check(A, Bytes(90)), Err(ShortfallError::NotNow { .. })), "the line may rise again");
        assert!(matches!(ledger.check(A, Bytes(101)), Err(ShortfallError::NeverFits { .. })));
        assert!(matches!(ledger.reserve(A, Bytes(1)), Err(ShortfallError::NotNow { free: Bytes::ZERO, .. })));
        ledger.release(lease).unwrap();
        assert!(ledger.reserve(A, Bytes(50)).is_ok());
    }

    #[test]
    fn an_unknown_device_has_no_room() {
        assert!(matches!(Ledger::default().check(DeviceId(9), Bytes(1)), Err(ShortfallError::NeverFits { .. })));
    }

    #[test]
    fn what_is_kept_is_promised_to_grants_only() {
        let mut ledger = two_devices(100);
        ledger.keep(A, Bytes(70));
        assert!(matches!(ledger.check(A, Bytes(31)), Err(ShortfallError::NotNow { free: Bytes(30), .. })));
        assert!(ledger.reserve(A, Bytes(30)).is_ok());
        assert!(ledger.reserve(A, Bytes(1)).is_err());
        assert_eq!((ledger.free(A), ledger.unpromised(A)), (Bytes::ZERO, Bytes(70)));
        assert!(ledger.reserve_all(&[(A, Bytes(71))], Holder::Grant).is_err());
        assert!(ledger.reserve_all(&[(A, Bytes(70))], Holder::Grant).is_ok());
    }

    #[test]
    fn a_lease_that_passes_to_another_holder_is_counted_there() {
        let mut ledger = two_devices(100);
        let lease = ledger.reserve(A, Bytes(30)).unwrap();
        ledger.passes_to(lease, Holder::Value);
        assert_eq!((ledger.values(A), ledger.holds(A), ledger.promised(A)), (Bytes(30), Bytes::ZERO, Bytes(30)));
        ledger.passes_to(lease, Holder::Hold);
        ledger.passes_to(lease, Holder::Hold);
        assert_eq!((ledger.values(A), ledger.holds(A), ledger.outside(A)), (Bytes::ZERO, Bytes(30), Bytes::ZERO));
        ledger.release(lease).unwrap();
        assert_eq!((ledger.holds(A), ledger.promised(A)), (Bytes::ZERO, Bytes::ZERO));
    }

    #[test]
    fn a_lease_is_extended_all_or_nothing() {
        let mut ledger = two_devices(100);
        let lease = ledger.reserve_all(&[(A, Bytes(40))], Holder::Program).unwrap();
        let refused = ledger.extend(lease, &[(A, Bytes(50)), (B, Bytes(101))]);
        assert!(matches!(refused, Err(ShortfallError::NeverFits { device: B, .. })));
        assert_eq!((ledger.promised(A), ledger.promised(B)), (Bytes(40), Bytes::ZERO));
        ledger.extend(lease, &[(A, Bytes(30)), (B, Bytes(60))]).unwrap();
        assert_eq!((ledger.held(lease, A), ledger.held(lease, B)), (Bytes(40), Bytes(60)), "nothing is taken away");
        assert_eq!((ledger.programs(A), ledger.outside(B)), (Bytes(40), Bytes(60)));
        ledger.release(lease).unwrap();
        assert_eq!((ledger.programs(A), ledger.outside(B)), (Bytes::ZERO, Bytes::ZERO));
    }

    #[test]
    fn a_split_lease_promises_the_same_until_a_part_is_released() {
        let mut ledger = two_devices(100);
        let lease = ledger.reserve_all(&[(A, Bytes(40)), (B, Bytes(10))], Holder::Program).unwrap();
        let rest = ledger.split(lease, A, Bytes(15)).unwrap();
        assert_eq!(
            (ledger.held(lease, A), ledger.held(rest, A), ledger.promised(A)),
            (Bytes(15), Bytes(25), Bytes(40))
        );
        assert!(ledger.split(lease, A, Bytes(15)).is_none(), "nothing more to take out");
        ledger.release(rest).unwrap();
        assert_eq!((ledger.promised(A), ledger.programs(A), ledger.promised(B)), (Bytes(15), Bytes(15), Bytes(10)));
        assert_eq!(ledger.split(rest, A, Bytes::ZERO), None, "an old lease has nothing");
    }

    #[derive(Clone, Debug)]
    enum Step {
        Reserve(u64, u64),
        Extend(usize, u64),
        Split(usize, u64),
        Release(usize),
        Line(u64),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            (0..120_u64, 0..120_u64).prop_map(|(a, b)| Step::Reserve(a, b)),
            (0..64_usize, 0..90_u64).prop_map(|(at, bytes)| Step::Extend(at, bytes)),
            (0..64_usize, 0..90_u64).prop_map(|(at, bytes)| Step::Split(at, bytes)),
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
                        if let Ok(lease) = ledger.reserve_all(&[(A, Bytes(a)), (B, Bytes(b))], Holder::Grant) {
                            // The line may have moved below what is promised; nothing is still a promise that can be kept.
                            prop_assert!(a == 0 || ledger.promised(A) <= ledger.line(A));
                            prop_assert!(b == 0 || ledger.promised(B) <= ledger.line(B));
                            live.push(lease);
                        }
                    }
                    Step::Extend(at, bytes) if !live.is_empty() => {
                        let before = ledger.promised(A);
                        let extended = ledger.extend(live[at % live.len()], &[(A, Bytes(bytes))]).is_ok();
                        prop_assert!(before == ledger.promised(A) || extended && ledger.promised(A) <= ledger.line(A));
                    }
                    Step::Split(at, keep) if !live.is_empty() => {
                        let before = ledger.promised(A);
                        let rest = ledger.split(live[at % live.len()], A, Bytes(keep));
                        prop_assert_eq!(before, ledger.promised(A));
                        live.extend(rest);
                    }
                    Step::Release(at) if !live.is_empty() => {
                        let lease = live.swap_remove(at % live.len());
                        prop_assert!(ledger.release(lease).is_ok());
                        prop_assert!(ledger.release(lease).is_err());
                    }
                    Step::Release(_) | Step::Extend(..) | Step::Split(..) => {}
                    Step::Line(line) => ledger.set_line(A, Bytes(line), Bytes(150)),
                }
                for device in [A, B] {
                    prop_assert_eq!(ledger.promised(device), ledger.recount(device));
                    prop_assert_eq!(ledger.outside(device), ledger.promised(device), "all of these are grants");
                }
                prop_assert_eq!(ledger.leases(), live.len());
            }
        }
    }
}
