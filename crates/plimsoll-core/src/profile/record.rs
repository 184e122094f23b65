//! The shape of a profile in a file: what is written, and the checks that what is read must pass.
//! Never reads or writes one: it is handed text already parsed.
//! Invariant: whatever the figures in a record, the profile made of it is within all limits
//! (`nothing_absurd_gets_in`); a cell that is not is left out, with the reason.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::failure::{FAILURES_MAX, Refutation};
use super::machine::CLOCK_SLACK_S;
use super::name::is_clean;
use super::track::Track;
use super::{CELLS_MAX, Cell, CellKey, FailedCell, Hardware, Profile, TIME_MAX, UNITS_MAX, UnsupportedCell, WINDOW};
use crate::{Bytes, MemoryMoment, Nanos, UnixSeconds};

/// The version of the shape. A change of shape or meaning raises it; a version before this one leaves such a file alone.
///
/// 2: a failure says how much was free and how often it had happened; what a device cannot do. Those of 1 are read.
pub const SCHEMA: u32 = 2;

/// The oldest shape that is read. What it does not have yet has a default.
const SCHEMA_OLDEST: u32 = 1;

/// Devices in one machine's summary.
const DEVICES_MAX: usize = 64;

/// A profile as it lies in a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    schema: u32,
    software: String,
    measured_at: UnixSeconds,
    machine: Hardware,
    #[serde(default, rename = "cell", skip_serializing_if = "Vec::is_empty")]
    cells: Vec<CellRecord>,
    #[serde(default, rename = "failure", skip_serializing_if = "Vec::is_empty")]
    failures: Vec<FailureRecord>,
    #[serde(default, rename = "refuted", skip_serializing_if = "Vec::is_empty")]
    refuted: Vec<RefutationRecord>,
    #[serde(default, rename = "unsupported", skip_serializing_if = "Vec::is_empty")]
    unsupported: Vec<UnsupportedRecord>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CellRecord {
    workload: String,
    rung: String,
    device: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    open: Option<OpenRecord>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    reference: Vec<SizeRecord>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    run: Vec<SizeRecord>,
}

/// `times_ns` in order of arrival, oldest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct OpenRecord {
    learnt: u64,
    at: UnixSeconds,
    times_ns: Vec<Nanos>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SizeRecord {
    units: u64,
    learnt: u64,
    at: UnixSeconds,
    times_ns: Vec<Nanos>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FailureRecord {
    workload: String,
    rung: String,
    device: String,
    units: u64,
    bytes: Bytes,
    /// Not known of a failure that shape 1 holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    free: Option<Bytes>,
    moment: MemoryMoment,
    #[serde(default)]
    step: u8,
    software: String,
    at: UnixSeconds,
    until: UnixSeconds,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RefutationRecord {
    workload: String,
    rung: String,
    device: String,
    units: u64,
    bytes: Bytes,
    at: UnixSeconds,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct UnsupportedRecord {
    workload: String,
    rung: String,
    device: String,
    detail: String,
    software: String,
    at: UnixSeconds,
}

/// Why a record as a whole is no profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The shape is another one.
    #[error("its shape is version {found}; this software reads versions {SCHEMA_OLDEST} to {SCHEMA}")]
    Schema {
        /// The version found.
        found: u32,
    },
    /// It does not say whose it is.
    #[error("its {field} is missing, too long or not printable")]
    Name {
        /// Which name.
        field: &'static str,
    },
}

/// A part of a record that was left out, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dropped {
    /// Which part.
    pub what: String,
    /// What is wrong with it.
    pub reason: &'static str,
}

impl fmt::Display for Dropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} was left out: {}", self.what, self.reason)
    }
}

impl Profile {
    /// The profile as it is written to a file.
    pub fn to_record(&self) -> Record {
        Record {
            schema: SCHEMA,
            software: self.software.clone(),
            measured_at: signed(self.measured_at),
            machine: self.machine.clone(),
            cells: self.cells.iter().map(|(key, cell)| CellRecord::new(key, cell)).collect(),
            failures: self.failures.iter().map(FailureRecord::new).collect(),
            refuted: self.failures.refutations().map(RefutationRecord::new).collect(),
            unsupported: self.failures.unsupported().map(UnsupportedRecord::new).collect(),
        }
    }

    /// The profile in a record, and what had to be left out of it. Nothing in it is dated later than `now`; a figure
    /// from the future has no date, so that it is measured again.
    ///
    /// # Errors
    /// [`RecordError`] if it cannot be told what shape it has or whose it is.
    pub fn from_record(record: Record, now: UnixSeconds) -> Result<(Self, Vec<Dropped>), RecordError> {
        record.check()?;
        let mut profile = Self::new(record.machine, &record.software, record.measured_at);
        let mut dropped = Vec::new();
        let mut note = |part: Result<(), Dropped>| dropped.extend(part.err());
        for (count, cell) in record.cells.into_iter().enumerate() {
            note(profile.add_cell(cell, count, now));
        }
        for (count, failure) in record.failures.into_iter().enumerate() {
            note(profile.add_failure(failure, count, now));
        }
        for (count, refuted) in record.refuted.into_iter().enumerate() {
            note(profile.add_refutation(refuted, count, now));
        }
        for (count, unsupported) in record.unsupported.into_iter().enumerate() {
            note(profile.add_unsupported(unsupported, count, now));
        }
        Ok((profile, dropped))
    }

    fn add_cell(&mut self, record: CellRecord, count: usize, now: UnixSeconds) -> Result<(), Dropped> {
        let key = checked_key("cell", &record.workload, &record.rung, &record.device)?;
        let drop = |reason| Dropped { what: format!("cell {key}"), reason };
        if count >= CELLS_MAX {
            return Err(drop("there are too many cells"));
        }
        let cell = record.cell(now).map_err(drop)?;
        self.absorb(&key, &cell);
        Ok(())
    }

    fn add_failure(&mut self, record: FailureRecord, count: usize, now: UnixSeconds) -> Result<(), Dropped> {
        let key = checked_key("failure", &record.workload, &record.rung, &record.device)?;
        let what = format!("failure {key}");
        if count >= FAILURES_MAX {
            return Err(Dropped { what, reason: "there are too many failures" });
        }
        if !is_clean(&record.software) {
            return Err(Dropped { what, reason: "its software version is too long or not printable" });
        }
        if is_ahead(record.at, now) {
            return Err(Dropped { what, reason: "it is dated in the future" });
        }
        let FailureRecord { units, bytes, free, moment, step, software, at, until, .. } = record;
        let failed = FailedCell::out_of_memory(key, units, bytes, moment, &software, at.min(now));
        let failed = failed.ok_or(Dropped { what, reason: "a prediction is not remembered" })?;
        self.failures.remember(failed.with_free(free).with_step(step).until_at_most(until));
        Ok(())
    }

    fn add_unsupported(&mut self, record: UnsupportedRecord, count: usize, now: UnixSeconds) -> Result<(), Dropped> {
        let key = checked_key("unsupported", &record.workload, &record.rung, &record.device)?;
        let what = format!("unsupported {key}");
        if count >= FAILURES_MAX {
            return Err(Dropped { what, reason: "there are too many of them" });
        }
        if !is_clean(&record.software) || !is_clean(&record.detail) {
            return Err(Dropped { what, reason: "its software version or detail is too long or not printable" });
        }
        if is_ahead(record.at, now) {
            return Err(Dropped { what, reason: "it is dated in the future" });
        }
        let unsupported = UnsupportedCell::new(key, &record.detail, &record.software, record.at.min(now));
        self.failures.remember_unsupported(unsupported);
        Ok(())
    }

    fn add_refutation(&mut self, record: RefutationRecord, count: usize, now: UnixSeconds) -> Result<(), Dropped> {
        let key = checked_key("refutation", &record.workload, &record.rung, &record.device)?;
        if count >= FAILURES_MAX {
            return Err(Dropped { what: format!("refutation {key}"), reason: "there are too many refutations" });
        }
        let RefutationRecord { units, bytes, at, .. } = record;
        self.failures.refute(Refutation { key, units, bytes, at: at.min(now) });
        Ok(())
    }
}

impl Record {
    fn check(&self) -> Result<(), RecordError> {
        let name = |ok: bool, field| if ok { Ok(()) } else { Err(RecordError::Name { field }) };
        if !(SCHEMA_OLDEST..=SCHEMA).contains(&self.schema) {
            return Err(RecordError::Schema { found: self.schema });
        }
        name(is_name(&self.machine.key), "machine key")?;
        name(is_name(&self.software), "software version")?;
        let devices = &self.machine.devices;
        name(devices.len() <= DEVICES_MAX, "list of devices")?;
        name(devices.iter().all(|device| is_clean(&device.name) && is_clean(&device.driver)), "list of devices")
    }
}

impl CellRecord {
    fn new(key: &CellKey, cell: &Cell) -> Self {
        let size = |(units, track)| SizeRecord::new(units, track);
        Self {
            workload: key.workload().to_owned(),
            rung: key.rung().to_owned(),
            device: key.device().to_owned(),
            open: cell.open.as_ref().map(OpenRecord::new),
            reference: cell.reference.iter().map(size).collect(),
            run: cell.run.iter().map(size).collect(),
        }
    }

    fn cell(&self, now: UnixSeconds) -> Result<Cell, &'static str> {
        let mut cell = Cell::default();
        for size in &self.run {
            cell.run.add(size.units()?, size.track(now)?);
        }
        for size in &self.reference {
            cell.reference.add(size.units()?, size.track(now)?);
        }
        if let Some(open) = &self.open {
            cell.open = Some(checked_track(&open.times_ns, open.learnt, dated(open.at, now))?);
        }
        if cell.is_empty() { Err("nothing was measured") } else { Ok(cell) }
    }
}

impl OpenRecord {
    fn new(track: &Track) -> Self {
        let window = track.window();
        Self { learnt: learnt(track), at: signed(track.at()), times_ns: window.times().collect() }
    }
}

impl SizeRecord {
    fn new(units: u64, track: &Track) -> Self {
        let OpenRecord { learnt, at, times_ns } = OpenRecord::new(track);
        Self { units, learnt, at, times_ns }
    }

    fn units(&self) -> Result<u64, &'static str> {
        let sensible = (1..=UNITS_MAX).contains(&self.units);
        if sensible { Ok(self.units) } else { Err("its units must be at least 1 and below 2^62") }
    }

    fn track(&self, now: UnixSeconds) -> Result<Track, &'static str> {
        checked_track(&self.times_ns, self.learnt, dated(self.at, now))
    }
}

impl FailureRecord {
    fn new(failed: &FailedCell) -> Self {
        let key = failed.key();
        Self {
            workload: key.workload().to_owned(),
            rung: key.rung().to_owned(),
            device: key.device().to_owned(),
            units: failed.units(),
            bytes: failed.bytes(),
            free: failed.free(),
            moment: failed.moment(),
            step: failed.step(),
            software: failed.software().to_owned(),
            at: failed.at(),
            until: failed.until(),
        }
    }
}

impl RefutationRecord {
    fn new(refuted: &Refutation) -> Self {
        Self {
            workload: refuted.key.workload().to_owned(),
            rung: refuted.key.rung().to_owned(),
            device: refuted.key.device().to_owned(),
            units: refuted.units,
            bytes: refuted.bytes,
            at: signed(refuted.at),
        }
    }
}

impl UnsupportedRecord {
    fn new(unsupported: &UnsupportedCell) -> Self {
        let key = unsupported.key();
        Self {
            workload: key.workload().to_owned(),
            rung: key.rung().to_owned(),
            device: key.device().to_owned(),
            detail: unsupported.detail().to_owned(),
            software: unsupported.software().to_owned(),
            at: unsupported.at(),
        }
    }
}

/// Whether a date is so far ahead that the clock was wrong then, or is now.
fn is_ahead(at: UnixSeconds, now: UnixSeconds) -> bool {
    at > now.plus(CLOCK_SLACK_S)
}

/// The date of a figure: one from the future would stay fresh for ever, so it has none.
fn dated(at: UnixSeconds, now: UnixSeconds) -> UnixSeconds {
    if is_ahead(at, now) { UnixSeconds::default() } else { at.min(now) }
}

fn checked_key(what: &str, workload: &str, rung: &str, device: &str) -> Result<CellKey, Dropped> {
    let key = CellKey::new(workload, rung, device);
    if [workload, rung, device].into_iter().all(is_name) {
        Ok(key)
    } else {
        Err(Dropped { what: format!("{what} {key}"), reason: "a name is missing, too long or not printable" })
    }
}

fn checked_track(times: &[Nanos], learnt: u64, at: UnixSeconds) -> Result<Track, &'static str> {
    if times.len() > WINDOW {
        return Err("a size has at most nine times");
    }
    if times.iter().any(|time| *time == Nanos::ZERO || *time > TIME_MAX) {
        return Err("a time must be at least 1 ns and at most seven days");
    }
    Track::restore(times, learnt, at).ok_or("a size has no times")
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && is_clean(name)
}

/// File formats have signed numbers.
fn signed(at: UnixSeconds) -> UnixSeconds {
    UnixSeconds(at.0.min(i64::MAX as u64))
}

fn learnt(track: &Track) -> u64 {
    track.window().learnt().min(i64::MAX as u64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::profile::{DeviceSummary, FAILURE_LIFE_S, FAILURE_STEP_MAX, RecordError, UNSUPPORTED_LIFE_S};

    const NOW: UnixSeconds = UnixSeconds(1_760_000_000);

    fn record() -> Record {
        Record {
            schema: SCHEMA,
            software: "1.0".into(),
            measured_at: NOW,
            machine: Hardware { key: "k".into(), devices: vec![] },
            cells: vec![],
            failures: vec![],
            refuted: vec![],
            unsupported: vec![],
        }
    }

    fn failure(at: UnixSeconds) -> FailureRecord {
        FailureRecord {
            workload: "w".into(),
            rung: "r".into(),
            device: "d".into(),
            units: u64::MAX,
            bytes: Bytes::MAX,
            free: Some(Bytes::MAX),
            moment: MemoryMoment::Run,
            step: u8::MAX,
            software: "1.0".into(),
            at,
            until: UnixSeconds(u64::MAX),
        }
    }

    fn unsupported(at: UnixSeconds) -> UnsupportedRecord {
        let [workload, rung, device] = ["w", "r", "d"].map(String::from);
        UnsupportedRecord { workload, rung, device, detail: "no f64".into(), software: "1.0".into(), at }
    }

    fn size(units: u64, times: &[u64]) -> SizeRecord {
        SizeRecord { units, learnt: 0, at: NOW, times_ns: times.iter().copied().map(Nanos).collect() }
    }

    fn cell(name: &str, run: Vec<SizeRecord>) -> CellRecord {
        CellRecord {
            workload: name.into(),
            rung: "full".into(),
            device: "card".into(),
            open: None,
            reference: vec![],
            run,
        }
    }

    fn reasons(cells: Vec<CellRecord>) -> Vec<String> {
        let (profile, dropped) = Profile::from_record(Record { cells, ..record() }, NOW).expect("whose it is is clear");
        assert!(profile.cells().all(|(key, _)| key.workload() == "good"));
        dropped.iter().map(Dropped::to_string).collect()
    }

    #[test]
    fn a_record_of_another_shape_or_of_nobody_is_refused() {
        let with = |change: fn(&mut Record)| {
            let mut record = record();
            change(&mut record);
            Profile::from_record(record, NOW).expect_err("refused")
        };
        assert_eq!(with(|r| r.schema = 0), RecordError::Schema { found: 0 });
        assert_eq!(with(|r| r.schema = 3), RecordError::Schema { found: 3 });
        assert_eq!(with(|r| r.machine.key.clear()), RecordError::Name { field: "machine key" });
        assert_eq!(with(|r| r.software = "\u{7}".into()), RecordError::Name { field: "software version" });
        let devices = RecordError::Name { field: "list of devices" };
        assert_eq!(with(|r| r.machine.devices = vec![summary("card", "1"); DEVICES_MAX + 1]), devices);
        assert_eq!(with(|r| r.machine.devices = vec![summary("\u{7}", "1")]), devices);
        assert_eq!(with(|r| r.machine.devices = vec![summary("card", "\u{7}")]), devices);
        let machine = Hardware { key: "k".into(), devices: vec![summary("card", "1"); DEVICES_MAX] };
        assert!(Profile::from_record(Record { machine, ..record() }, NOW).is_ok());
    }

    fn summary(name: &str, driver: &str) -> DeviceSummary {
        DeviceSummary { name: name.into(), kind: crate::DeviceKind::Gpu, driver: driver.into() }
    }

    /// File formats have signed numbers: what is larger is written as the largest of those.
    #[test]
    fn counts_and_dates_are_written_as_they_are_as_far_as_a_file_can_hold_them() {
        let mut cell = cell("good", vec![size(10, &[5])]);
        cell.run[0].learnt = 20;
        cell.open = Some(OpenRecord { learnt: u64::MAX, at: NOW, times_ns: vec![Nanos(7)] });
        let read = Record { cells: vec![cell], measured_at: NOW, ..record() };
        let (mut profile, _) = Profile::from_record(read, NOW).expect("whose it is is clear");
        let written = profile.to_record();
        assert_eq!((written.measured_at, written.cells[0].run[0].learnt), (NOW, 20));
        assert_eq!(written.cells[0].open.as_ref().map(|open| (open.learnt, open.at)), Some((i64::MAX as u64, NOW)));
        profile.measured_at = UnixSeconds(u64::MAX);
        assert_eq!(profile.to_record().measured_at, UnixSeconds(i64::MAX as u64));
    }

    /// It would refute failures that have yet to happen.
    #[test]
    fn a_success_from_the_future_is_one_of_now() {
        let FailureRecord { workload, rung, device, units, bytes, .. } = failure(NOW);
        let refuted = RefutationRecord { workload, rung, device, units, bytes, at: NOW.plus(1_000) };
        let (mut profile, _) = Profile::from_record(Record { refuted: vec![refuted], ..record() }, NOW).expect("sound");
        let (later, _) = Profile::from_record(Record { failures: vec![failure(NOW.plus(1))], ..record() }, NOW.plus(1))
            .expect("sound");
        profile.failures_mut().merge(later.failures());
        assert_eq!(profile.failures().iter().count(), 1);
    }

    #[test]
    fn a_cell_with_a_senseless_figure_is_left_out_with_the_reason_and_the_others_stay() {
        let good = cell("good", vec![size(10, &[5, TIME_MAX.0]), size(100, &[5; WINDOW])]);
        assert_eq!(
            reasons(vec![
                good.clone(),
                cell("bad", vec![size(10, &[5]), size(20, &[0])]),
                cell("bad", vec![size(10, &[TIME_MAX.0 + 1])]),
                cell("bad", vec![size(0, &[5])]),
                cell("bad", vec![size(u64::MAX, &[5])]),
                cell("bad", vec![size(10, &[5; 10])]),
                cell("bad", vec![size(10, &[])]),
                cell("bad", vec![]),
                cell("", vec![size(10, &[5])]),
                good,
            ]),
            [
                "cell bad by full on card was left out: a time must be at least 1 ns and at most seven days",
                "cell bad by full on card was left out: a time must be at least 1 ns and at most seven days",
                "cell bad by full on card was left out: its units must be at least 1 and below 2^62",
                "cell bad by full on card was left out: its units must be at least 1 and below 2^62",
                "cell bad by full on card was left out: a size has at most nine times",
                "cell bad by full on card was left out: a size has no times",
                "cell bad by full on card was left out: nothing was measured",
                "cell  by full on card was left out: a name is missing, too long or not printable",
            ]
        );
    }

    #[test]
    fn nothing_is_dated_in_the_future_nor_counts_for_ever() {
        let soon = NOW.plus(CLOCK_SLACK_S);
        let mut cell = cell("good", vec![size(10, &[5])]);
        cell.run[0].at = soon;
        let record = |cell: &CellRecord, at| Record {
            cells: vec![cell.clone()],
            failures: vec![failure(at)],
            unsupported: vec![unsupported(at)],
            ..record()
        };
        let (profile, dropped) = Profile::from_record(record(&cell, soon), NOW).expect("sound");
        assert_eq!(dropped, []);
        assert!(profile.cells().all(|(_, cell)| cell.learnt_at() == NOW));
        assert!(profile.failures().iter().all(|failed| failed.until() == NOW.plus(FAILURE_LIFE_S)));
        assert!(profile.failures().iter().all(|failed| failed.step() == FAILURE_STEP_MAX));
        assert!(profile.failures().unsupported().all(|each| each.until() == NOW.plus(UNSUPPORTED_LIFE_S)));
        // With a clock that is far off, a figure counts as old and a failure not at all.
        cell.run[0].at = NOW.plus(1_000_000);
        let (profile, dropped) = Profile::from_record(record(&cell, NOW.plus(1_000_000)), NOW).expect("sound");
        assert!(profile.cells().all(|(_, cell)| cell.is_stale(NOW)));
        assert_eq!((profile.failures().iter().count(), profile.failures().unsupported().count()), (0, 0));
        assert_eq!(dropped.iter().map(|part| part.reason).collect::<Vec<_>>(), ["it is dated in the future"; 2]);
    }

    #[test]
    fn what_is_unsupported_is_checked_as_the_rest_is() {
        let with = |change: fn(&mut UnsupportedRecord)| {
            let mut bad = unsupported(NOW);
            change(&mut bad);
            let record = Record { unsupported: vec![unsupported(NOW), bad], ..record() };
            let (profile, dropped) = Profile::from_record(record, NOW).expect("whose it is is clear");
            assert_eq!(profile.failures().unsupported().count(), 1);
            dropped.len()
        };
        assert_eq!(with(|record| record.workload.clear()), 1);
        assert_eq!(with(|record| record.detail = "\u{7}".into()), 1);
        assert_eq!(with(|record| record.software = "x".repeat(1_000)), 1);
    }

    #[test]
    fn of_everything_only_so_much_is_read() {
        let many = |limit: usize| (0..=limit).map(|n| format!("w{n}"));
        let refuted = |workload| {
            let FailureRecord { rung, device, units, bytes, at, .. } = failure(NOW);
            RefutationRecord { workload, rung, device, units, bytes, at }
        };
        let record = Record {
            cells: many(CELLS_MAX).map(|name| cell(&name, vec![size(10, &[5])])).collect(),
            failures: many(FAILURES_MAX).map(|workload| FailureRecord { workload, ..failure(NOW) }).collect(),
            refuted: many(FAILURES_MAX).map(|name| refuted(format!("other {name}"))).collect(),
            unsupported: many(FAILURES_MAX)
                .map(|workload| UnsupportedRecord { workload, ..unsupported(NOW) })
                .collect(),
            ..record()
        };
        let (profile, dropped) = Profile::from_record(record, NOW).expect("whose it is is clear");
        let reasons: Vec<_> = dropped.iter().map(|part| part.reason).collect();
        let too_many = ["too many cells", "too many failures", "too many refutations", "too many of them"];
        assert_eq!(reasons, too_many.map(|what| format!("there are {what}")));
        let failures = profile.failures();
        let kept = [failures.iter().count(), failures.refutations().count(), failures.unsupported().count()];
        assert_eq!((profile.cells().len(), kept), (CELLS_MAX, [FAILURES_MAX; 3]));
    }

    proptest! {
        #[test]
        fn nothing_absurd_gets_in(
            sizes in prop::collection::vec((any::<u64>(), prop::collection::vec(any::<u64>(), 0..12)), 0..12),
            asked: u64,
        ) {
            let run = sizes.iter().map(|(units, times)| size(*units, times)).collect();
            let record = Record { cells: vec![cell("any", run)], ..record() };
            let (profile, dropped) = Profile::from_record(record, NOW).expect("whose it is is clear");
            prop_assert_eq!(profile.cells().len() + dropped.len(), 1);
            for (_, cell) in profile.cells() {
                prop_assert!(cell.run(asked).is_some_and(|estimate| estimate.time > Nanos::ZERO));
                prop_assert!(cell.sizes().all(|size| size.median <= TIME_MAX));
            }
        }
    }
}
