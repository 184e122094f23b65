//! The profile: what this machine measured. Cells by (workload, rung, device), and where memory ran out.
//! Never opens a file or reads a clock: `plimsoll-runtime` keeps it on disk and says what time it is.
//! Invariant: merging what several processes learnt gives the same whatever the order (`merging_is_commutative`), and
//! nothing read from a file enters without being checked (`record`).
//!
//! | file | owns |
//! |---|---|
//! | `robust` | windows of samples, medians, what to do with a sample that is far off |
//! | `track` | a window and when it last learnt |
//! | `curve` | time by size |
//! | `cell` | open + reference + run of one (workload, rung, device): what the scheduler holds |
//! | `failure` | where memory ran out, with how much free, until when that counts |
//! | `unsupported` | what a device cannot do at all |
//! | `machine` | whose figures these are, and whether they are fresh |
//! | `record` | the shape in a file |

mod cell;
mod curve;
mod failure;
mod key;
mod machine;
mod name;
mod record;
mod robust;
mod track;
mod unsupported;

use std::collections::BTreeMap;

pub use cell::{Cell, Measured};
pub use curve::{Basis, Estimate, UNITS_MAX};
pub use failure::{
    FAILURE_LIFE_S, FAILURE_STEP_MAX, FAILURE_WAIT_FIRST, FAILURES_MAX, FailedAt, FailedCell, Failures, RanOut,
};
pub use key::CellKey;
pub use machine::{DeviceSummary, Freshness, Hardware, Mismatch, Origin, STALE_AFTER_DAYS, Stale};
pub use name::NAME_MAX;
pub use record::{Dropped, Record, RecordError, SCHEMA};
pub use robust::{AGREEMENT, PATIENCE, Reception, SETTLED, TIME_MAX, Verdict, WINDOW, Window};
pub use unsupported::{UNSUPPORTED_LIFE_S, UnsupportedCell};

use crate::UnixSeconds;

/// Cells in one profile: some hundred rungs on a handful of devices, several driver versions over. At the limit the
/// one that learnt longest ago goes.
pub const CELLS_MAX: usize = 2048;

/// What one machine measured with one version of the software.
///
/// ```
/// # use plimsoll_core as plimsoll;
/// use plimsoll::profile::{Cell, CellKey, Hardware, Profile};
/// use plimsoll::{Nanos, UnixSeconds};
///
/// let now = UnixSeconds(1_760_000_000);
/// let machine = Hardware { key: "a1b2".into(), devices: vec![] };
/// let mut profile = Profile::new(machine.clone(), "0.1.0", now);
/// let mut cell = Cell::default();
/// cell.learn_run(1 << 20, Nanos::micros(900));
/// profile.record(&CellKey::new("blur", "gpu-full", "card"), &mut cell, now);
/// assert!(profile.freshness(now, &machine, "0.1.0").is_fresh());
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    machine: Hardware,
    software: String,
    measured_at: UnixSeconds,
    cells: BTreeMap<CellKey, Cell>,
    failures: Failures,
}

impl Profile {
    /// An empty profile of this machine and version of the software, dated now.
    pub fn new(machine: Hardware, software: &str, measured_at: UnixSeconds) -> Self {
        let devices = machine.devices.into_iter().map(|device| DeviceSummary {
            name: name::clean(&device.name),
            driver: name::clean(&device.driver),
            kind: device.kind,
        });
        Self {
            machine: Hardware { key: name::clean(&machine.key), devices: devices.collect() },
            software: name::clean(software),
            measured_at,
            cells: BTreeMap::new(),
            failures: Failures::default(),
        }
    }

    /// Where and with what it was measured.
    pub fn origin(&self) -> Origin<'_> {
        Origin { machine: &self.machine, software: &self.software }
    }

    /// When something was last put into it, or it was begun. What is in it has dates of its own.
    pub fn measured_at(&self) -> UnixSeconds {
        self.measured_at
    }

    /// A cell, to go on learning from.
    pub fn cell(&self, key: &CellKey) -> Option<&Cell> {
        self.cells.get(key)
    }

    /// All cells by name.
    pub fn cells(&self) -> impl ExactSizeIterator<Item = (&CellKey, &Cell)> {
        self.cells.iter()
    }

    /// Takes over what a cell has learnt. It is dated in both places, so that what is merely handed in again does
    /// not look newer than what another process learnt meanwhile.
    pub fn record(&mut self, key: &CellKey, cell: &mut Cell, now: UnixSeconds) {
        cell.stamp(now);
        if !cell.is_empty() {
            self.absorb(key, cell);
            self.keep_newest(CELLS_MAX);
        }
    }

    /// Where memory ran out.
    pub fn failures(&self) -> &Failures {
        &self.failures
    }

    /// Where memory ran out, to remember or refute.
    pub fn failures_mut(&mut self) -> &mut Failures {
        &mut self.failures
    }

    /// When the last of its figures was learnt; when it was begun, if it has none.
    pub fn learnt_at(&self) -> UnixSeconds {
        self.cells.values().map(Cell::learnt_at).max().unwrap_or(self.measured_at)
    }

    /// Whether it can be relied on, on this machine with this version of the software. What is too old in one that is
    /// fresh is left out when it is used ([`Cell::without_stale`]).
    pub fn freshness(&self, now: UnixSeconds, machine: &Hardware, software: &str) -> Freshness {
        Freshness::of(self.learnt_at(), self.origin(), Origin { machine, software }, now)
    }

    /// Takes over what another process learnt: size by size the later one, and the failures of both.
    ///
    /// # Errors
    /// [`Mismatch`] if the other is of another machine or version; nothing is taken over then.
    pub fn merge(&mut self, other: &Self) -> Result<(), Mismatch> {
        if let Some(mismatch) = other.origin().mismatch(self.origin()) {
            return Err(mismatch);
        }
        self.measured_at = self.measured_at.max(other.measured_at);
        for (key, cell) in &other.cells {
            self.absorb(key, cell);
        }
        self.failures.merge(&other.failures);
        self.keep_newest(CELLS_MAX);
        Ok(())
    }

    /// Takes over what an earlier profile knows of other cells. Those in this one were measured anew: nothing that was
    /// known of them before counts, failures included.
    ///
    /// # Errors
    /// [`Mismatch`] if the other is of another machine or version; nothing is taken over then.
    pub fn keep_unmeasured(&mut self, earlier: &Self) -> Result<(), Mismatch> {
        let mut others = earlier.clone();
        let measured = |key: &CellKey| self.cells.contains_key(key);
        others.failures.forget_cells(measured);
        others.cells.retain(|key, _| !measured(key));
        self.merge(&others)
    }

    /// Forgets the cells that learnt longest ago until at most this many are left.
    pub fn keep_newest(&mut self, limit: usize) {
        if self.cells.len() <= limit {
            return;
        }
        let mut by_age: Vec<_> = self.cells.iter().map(|(key, cell)| (cell.learnt_at(), key.clone())).collect();
        by_age.sort_unstable();
        for (_, key) in &by_age[..by_age.len() - limit] {
            self.cells.remove(key);
        }
    }

    fn absorb(&mut self, key: &CellKey, cell: &Cell) {
        match self.cells.get_mut(key) {
            Some(known) => known.merge(cell),
            None => {
                // Merged into an empty one rather than cloned: what is not of the file stays out.
                let mut known = Cell::default();
                known.merge(cell);
                self.cells.insert(key.clone(), known);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Bytes, MemoryMoment, Nanos};

    const NOW: UnixSeconds = UnixSeconds(1_760_000_000);

    fn empty() -> Profile {
        Profile::new(Hardware { key: "k".into(), devices: vec![] }, "1.0", NOW)
    }

    fn learnt(name: &str, took: u64, at: UnixSeconds) -> Profile {
        let mut profile = empty();
        let mut cell = Cell::default();
        cell.learn_run(1_000, Nanos(took));
        profile.record(&CellKey::new(name, "full", "card"), &mut cell, at);
        profile
    }

    fn run(profile: &Profile, name: &str) -> Option<Nanos> {
        Some(profile.cell(&CellKey::new(name, "full", "card"))?.run(1_000)?.time)
    }

    #[test]
    fn what_two_processes_learnt_is_all_there() {
        let mut ours = learnt("blur", 5_000, NOW);
        ours.merge(&learnt("sum", 7_000, NOW)).expect("same machine");
        assert_eq!((run(&ours, "blur"), run(&ours, "sum")), (Some(Nanos(5_000)), Some(Nanos(7_000))));
    }

    #[test]
    fn the_later_of_two_wins() {
        let (old, new) = (learnt("blur", 5_000, NOW), learnt("blur", 9_000, NOW.plus(1)));
        for (mut ours, theirs) in [(old.clone(), &new), (new.clone(), &old)] {
            ours.merge(theirs).expect("same machine");
            assert_eq!(run(&ours, "blur"), Some(Nanos(9_000)));
        }
    }

    #[test]
    fn a_profile_is_as_new_as_the_last_that_was_put_into_it() {
        let begun = |at| Profile::new(Hardware { key: "k".into(), devices: vec![] }, "1.0", at);
        for (ours, theirs) in [(NOW, NOW.plus(9)), (NOW.plus(9), NOW)] {
            let mut profile = begun(ours);
            assert_eq!(profile.measured_at(), ours);
            profile.merge(&begun(theirs)).expect("same machine");
            assert_eq!(profile.measured_at(), NOW.plus(9));
        }
    }

    #[test]
    fn handing_in_an_unchanged_cell_does_not_make_it_newer() {
        let mut cell = Cell::default();
        cell.learn_run(1_000, Nanos(5_000));
        let (mut ours, key) = (empty(), CellKey::new("blur", "full", "card"));
        ours.record(&key, &mut cell, NOW);
        let theirs = learnt("blur", 9_000, NOW.plus(10));
        ours.record(&key, &mut cell, NOW.plus(20));
        ours.merge(&theirs).expect("same machine");
        assert_eq!(run(&ours, "blur"), Some(Nanos(9_000)));
    }

    #[test]
    fn a_profile_of_another_machine_or_version_is_not_merged() {
        let mut ours = learnt("blur", 5_000, NOW);
        let before = ours.clone();
        let other = Profile::new(Hardware { key: "other".into(), devices: vec![] }, "1.0", NOW);
        assert!(matches!(ours.merge(&other), Err(Mismatch::Key { .. })));
        let newer = Profile::new(Hardware { key: "k".into(), devices: vec![] }, "1.1", NOW);
        assert!(matches!(ours.merge(&newer), Err(Mismatch::Software { .. })));
        assert_eq!(ours, before);
    }

    #[test]
    fn one_run_of_anything_does_not_make_the_rest_fresh() {
        let day = 24 * 3600;
        let mut ours = learnt("blur", 5_000, NOW);
        let later = NOW.plus(8 * day);
        assert!(!ours.freshness(later, &ours.machine, "1.0").is_fresh());
        ours.merge(&learnt("sum", 7_000, later)).expect("same machine");
        let cell = |name: &str| ours.cell(&CellKey::new(name, "full", "card")).expect("it was learnt");
        assert!(ours.freshness(later, &ours.machine, "1.0").is_fresh());
        assert!(cell("blur").is_stale(later) && !cell("sum").is_stale(later));
    }

    #[test]
    fn what_was_not_measured_anew_is_kept_with_its_failures() {
        let failed = |name: &str| {
            let key = CellKey::new(name, "full", "card");
            FailedCell::out_of_memory(key, 1 << 30, Bytes(4), MemoryMoment::Run, "1.0", NOW).expect("it happened")
        };
        let mut earlier = learnt("blur", 5_000, NOW);
        earlier.merge(&learnt("sum", 7_000, NOW)).expect("same machine");
        let mut other_size = Cell::default();
        other_size.learn_run(1 << 20, Nanos(9));
        earlier.record(&CellKey::new("sum", "full", "card"), &mut other_size, NOW);
        ["blur", "sum"].into_iter().for_each(|name| earlier.failures_mut().remember(failed(name)));
        earlier.failures_mut().remember_unsupported(UnsupportedCell::new(failed("sum").key().clone(), "", "1.0", NOW));
        let mut anew = learnt("sum", 900, NOW.plus(1));
        anew.keep_unmeasured(&earlier).expect("same machine");
        assert_eq!((run(&anew, "blur"), run(&anew, "sum")), (Some(Nanos(5_000)), Some(Nanos(900))));
        let sum = anew.cell(failed("sum").key()).expect("measured");
        assert_eq!(sum.sizes().count(), 1, "a cell that was measured anew is that alone");
        assert_eq!(anew.failures().iter().collect::<Vec<_>>(), [&failed("blur")]);
        assert_eq!(anew.failures().unsupported().count(), 0);
        let foreign = Profile::new(Hardware { key: "other".into(), devices: vec![] }, "1.0", NOW);
        assert!(anew.keep_unmeasured(&foreign).is_err());
    }

    #[test]
    fn the_cells_are_bounded_and_the_newest_stay() {
        let mut profile = empty();
        for i in 0..CELLS_MAX as u64 + 10 {
            let mut cell = Cell::default();
            cell.learn_open(Nanos(1));
            profile.record(&CellKey::new(&format!("w{i}"), "full", "card"), &mut cell, NOW.plus(i));
        }
        assert_eq!(profile.cells().len(), CELLS_MAX);
        assert!(profile.cells().all(|(_, cell)| cell.learnt_at() >= NOW.plus(10)));
        profile.merge(&learnt("from another process", 1, NOW.plus(1_000_000))).expect("same machine");
        assert_eq!(profile.cells().len(), CELLS_MAX);
        assert!(profile.cells().all(|(_, cell)| cell.learnt_at() >= NOW.plus(11)));
    }

    fn any_profile() -> impl Strategy<Value = Profile> {
        let facts = prop::collection::vec((0_u8..6, 1_u64..5_000, 1_u64..1 << 40, 0_u64..4), 0..40);
        facts.prop_map(|facts| {
            let mut profile = empty();
            for (name, units, took, at) in facts {
                let key = CellKey::new(&format!("w{name}"), "full", "card");
                let mut cell = profile.cell(&key).cloned().unwrap_or_default();
                cell.learn_run(units, Nanos(took));
                cell.learn_reference(units, Nanos(took / 2));
                cell.learn_open(Nanos(took / 3));
                profile.record(&key, &mut cell, NOW.plus(at));
                if took % 5 == 0 {
                    let refuted = CellKey::new("refuted", "full", "card");
                    profile.failures_mut().succeeded(&refuted, units, Bytes(took), NOW.plus(at));
                }
                let failed =
                    FailedCell::out_of_memory(key, units, Bytes(took), MemoryMoment::Open, "1.0", NOW.plus(at));
                let failed = failed.expect("it happened").with_step(took as u8 % 40).with_free(Some(Bytes(units)));
                if took % 3 == 0 {
                    let unsupported = UnsupportedCell::new(failed.key().clone(), "no", "1.0", NOW.plus(at));
                    profile.failures_mut().remember_unsupported(unsupported);
                }
                profile.failures_mut().remember(failed);
            }
            profile
        })
    }

    proptest! {
        #[test]
        fn merging_is_commutative(a in any_profile(), b in any_profile()) {
            let (mut ab, mut ba) = (a.clone(), b.clone());
            ab.merge(&b).expect("same machine");
            ba.merge(&a).expect("same machine");
            prop_assert_eq!(&ab, &ba);
            ab.merge(&a).expect("same machine");
            prop_assert_eq!(&ab, &ba, "merging twice changes nothing");
        }

        #[test]
        fn a_record_gives_the_same_profile_back(profile in any_profile()) {
            let (back, dropped) = Profile::from_record(profile.to_record(), NOW.plus(10)).expect("our own");
            prop_assert_eq!(dropped, vec![]);
            for (key, cell) in profile.cells() {
                let back = back.cell(key).expect("it was there");
                for units in [1, 100, 1_000, 4_999, 1 << 30] {
                    prop_assert_eq!(back.run(units), cell.run(units));
                }
            }
            prop_assert_eq!(back.failures(), profile.failures());
            prop_assert_eq!(back.to_record(), profile.to_record());
        }
    }
}
