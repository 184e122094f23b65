//! The profile as text: TOML out, TOML in, within a bound.
//! Never touches a file.
//! Invariant: no text, however mangled, makes it panic (`mangled_text_never_panics`).

use std::borrow::Cow;

use plimsoll_core::UnixSeconds;
use plimsoll_core::profile::{Dropped, Profile, RecordError, SCHEMA};
use serde::Deserialize;

/// Bytes of a profile's text. A machine with a hundred cells of ten sizes takes a hundred thousand.
pub(super) const FILE_MAX: u64 = 16 << 20;

const HEAD: &str = "\
# What Plimsoll measured on this machine. `plimsoll bench` measures again, `plimsoll profile clear` forgets.
# Times are the latest of each size, oldest first; `learnt` counts all there ever were; dates are seconds since 1970.

";

/// Why a text is no profile that can be used.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unreadable {
    /// A later version wrote it.
    Newer { found: u32 },
    /// It is damaged.
    Corrupt { reason: String },
}

/// The only field every version of the shape has.
#[derive(Deserialize)]
struct Shape {
    schema: u32,
}

/// The profile's text. One that is too long loses the cells that learnt longest ago.
pub(super) fn print(profile: &Profile) -> Result<String, toml::ser::Error> {
    let mut profile = Cow::Borrowed(profile);
    loop {
        let text = format!("{HEAD}{}", toml::to_string(&profile.to_record())?);
        let cells = profile.cells().len();
        if text.len() as u64 <= FILE_MAX || cells == 0 {
            return Ok(text);
        }
        profile.to_mut().keep_newest(cells / 2);
    }
}

/// The profile in a text, and what had to be left out of it.
pub(super) fn parse(text: &str, now: UnixSeconds) -> Result<(Profile, Vec<Dropped>), Unreadable> {
    let corrupt = |error: toml::de::Error| Unreadable::Corrupt { reason: explain(text, &error) };
    // First the shape alone: a later one may well have fields that this version would call mistakes.
    let Shape { schema } = toml::from_str(text).map_err(corrupt)?;
    if schema > SCHEMA {
        return Err(Unreadable::Newer { found: schema });
    }
    let record = toml::from_str(text).map_err(corrupt)?;
    Profile::from_record(record, now)
        .map_err(|error: RecordError| Unreadable::Corrupt { reason: format!("it cannot be used: {error}") })
}

/// One line for people, where the parser would draw a picture.
fn explain(text: &str, error: &toml::de::Error) -> String {
    let message = error.message().replace('\n', ", ");
    match error.span() {
        Some(span) => {
            let line = text.as_bytes().iter().take(span.start).filter(|&&byte| byte == b'\n').count() + 1;
            format!("line {line}: {message}")
        }
        None => message,
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use plimsoll_core::profile::{Cell, CellKey, DeviceSummary, FailedCell, Hardware, UnsupportedCell};
    use plimsoll_core::{Bytes, DeviceKind, MemoryMoment, Nanos};
    use proptest::prelude::*;

    use super::*;

    const NOW: UnixSeconds = UnixSeconds(1_760_000_000);

    fn machine() -> Hardware {
        let cpu = DeviceSummary { name: "Ryzen \"9\"".into(), kind: DeviceKind::Cpu, driver: String::new() };
        Hardware { key: "a1b2c3".into(), devices: vec![cpu] }
    }

    fn profile(runs: &[(u64, u64)]) -> Profile {
        let mut profile = Profile::new(machine(), "0.1.0", NOW);
        let key = CellKey::new("blur", "gpu-full", "card");
        let mut cell = Cell::default();
        runs.iter().for_each(|&(units, took)| cell.learn_run(units, Nanos(took)));
        runs.iter().take(1).for_each(|&(units, took)| cell.learn_reference(took, Nanos(units)));
        cell.learn_open(Nanos::millis(12));
        profile.record(&key, &mut cell, NOW);
        let bytes = Bytes::MAX;
        let failed = FailedCell::out_of_memory(key.clone(), u64::MAX, bytes, MemoryMoment::Run, "0.1.0", NOW);
        let failed = failed.expect("it happened").with_free(Some(Bytes(7))).with_step(3);
        profile.failures_mut().remember(failed);
        profile.failures_mut().succeeded(&CellKey::new("sum", "gpu-full", "card"), 5, Bytes(20), NOW);
        profile.failures_mut().remember_unsupported(UnsupportedCell::new(key, "no \"f64\"", "0.1.0", NOW));
        profile
    }

    fn reason(text: &str) -> String {
        match parse(text, NOW) {
            Err(Unreadable::Corrupt { reason }) => reason,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_shape_of_the_file() {
        let text = print(&profile(&[(1 << 20, 900_000), (1 << 20, 910_000)])).expect("printed");
        expect![[r##"
            # What Plimsoll measured on this machine. `plimsoll bench` measures again, `plimsoll profile clear` forgets.
            # Times are the latest of each size, oldest first; `learnt` counts all there ever were; dates are seconds since 1970.

            schema = 2
            software = "0.1.0"
            measured_at = 1760000000

            [machine]
            key = "a1b2c3"

            [[machine.devices]]
            name = 'Ryzen "9"'
            kind = "cpu"
            driver = ""

            [[cell]]
            workload = "blur"
            rung = "gpu-full"
            device = "card"

            [cell.open]
            learnt = 1
            at = 1760000000
            times_ns = [12000000]

            [[cell.reference]]
            units = 900000
            learnt = 1
            at = 1760000000
            times_ns = [1048576]

            [[cell.run]]
            units = 1048576
            learnt = 2
            at = 1760000000
            times_ns = [900000, 910000]

            [[failure]]
            workload = "blur"
            rung = "gpu-full"
            device = "card"
            units = 9223372036854775807
            bytes = 9223372036854775807
            free = 7
            moment = "run"
            step = 3
            software = "0.1.0"
            at = 1760000000
            until = 1760003600

            [[refuted]]
            workload = "sum"
            rung = "gpu-full"
            device = "card"
            units = 5
            bytes = 20
            at = 1760000000

            [[unsupported]]
            workload = "blur"
            rung = "gpu-full"
            device = "card"
            detail = 'no "f64"'
            software = "0.1.0"
            at = 1760000000
        "##]]
        .assert_eq(&text);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let text = print(&profile(&[(10, 10)])).expect("printed");
        let damaged = [
            String::new(),
            text[..text.len() / 2].to_owned(),
            text.replace("learnt =", "learned ="),
            text.replace("schema = 2", "schema = 0"),
            text.replace("units = 10", "units = -10"),
            text.replace("a1b2c3", ""),
        ];
        let reasons: Vec<String> = damaged.iter().map(|text| reason(text)).collect();
        expect![[r#"
            line 1: missing field `schema`
            line 28: key with no value, expected `=`
            line 22: unknown field `learned`, expected one of `learnt`, `at`, `times_ns`
            it cannot be used: its shape is version 0; this software reads versions 1 to 2
            line 27: invalid value: integer `-10`, expected u64
            it cannot be used: its machine key is missing, too long or not printable"#]]
        .assert_eq(&reasons.join("\n"));
        let later = text.replace("schema = 2", "schema = 3\nshiny = true");
        assert_eq!(parse(&later, NOW).err(), Some(Unreadable::Newer { found: 3 }));
    }

    /// As version 0.1.0 of the shape wrote it.
    #[test]
    fn a_file_of_the_first_shape_is_still_read() {
        let text = print(&profile(&[(10, 10)])).expect("printed");
        let (text, _) = text.split_once("\n[[refuted]]").expect("it comes after the failures");
        let text = text.replace("schema = 2", "schema = 1").replace("free = 7\n", "").replace("step = 3\n", "");
        let (profile, dropped) = parse(&text, NOW).expect("read");
        assert_eq!((profile.cells().len(), dropped.len()), (1, 0));
        let failed: Vec<_> = profile.failures().iter().map(|failed| (failed.free(), failed.step())).collect();
        assert_eq!(failed, [(None, 0)]);
    }

    #[test]
    fn a_text_that_would_be_too_long_loses_its_oldest_cells() {
        let mut profile = Profile::new(machine(), "0.1.0", NOW);
        let mut cell = Cell::default();
        (0..240).for_each(|i| cell.learn_run(1 << (i / 4) | (i % 4) << (i / 4) >> 2, Nanos(1 << 40)));
        for i in 0..1000 {
            let mut cell = cell.clone();
            profile.record(&CellKey::new(&format!("w{i:04}"), "full", "card"), &mut cell, NOW.plus(i));
        }
        let text = print(&profile).expect("printed");
        assert!(text.len() as u64 <= FILE_MAX);
        let (kept, dropped) = parse(&text, NOW.plus(1000)).expect("sound");
        assert_eq!(dropped, []);
        assert_eq!(kept.cells().last().map(|(key, _)| key.workload().to_owned()), Some("w0999".into()));
    }

    proptest! {
        #[test]
        fn text_gives_the_same_profile_back(runs in prop::collection::vec((any::<u64>(), any::<u64>()), 1..60)) {
            let before = profile(&runs);
            let (after, dropped) = parse(&print(&before).expect("printed"), NOW).expect("sound");
            prop_assert_eq!(dropped, vec![]);
            prop_assert_eq!(after.to_record(), before.to_record());
            for ((_, after), (_, before)) in after.cells().zip(before.cells()) {
                for (units, _) in &runs {
                    prop_assert_eq!(after.run(*units), before.run(*units));
                }
            }
        }

        #[test]
        fn mangled_text_never_panics(
            at in any::<prop::sample::Index>(),
            cut in 0_usize..200,
            put in "[-0-9a-z\\[\\]=\"\n.]{0,12}",
        ) {
            let text = print(&profile(&[(1000, 5000), (90_000, 80_000)])).expect("printed");
            let from = at.index(text.len());
            let to = (from + cut).min(text.len());
            let mangled = format!("{}{put}{}", &text[..from], &text[to..]);
            if let Ok((profile, _)) = parse(&mangled, NOW) {
                for (_, cell) in profile.cells() {
                    prop_assert!(cell.run(1 << 30).is_none_or(|estimate| estimate.time > Nanos::ZERO));
                }
            }
        }
    }
}
