//! What `plimsoll profile show` says of failures: where memory ran out, and what devices cannot do.

use plimsoll_core::profile::{FAILURE_LIFE_S, FailedCell, UnsupportedCell};
use plimsoll_core::{Bytes, MemoryMoment, UnixSeconds};
use serde::Serialize;

use super::show::{Names, span};
use crate::output;
use crate::stop::Ended;

/// Where memory ran out. The names of its fields are a promise to other programs.
#[derive(Serialize)]
pub(super) struct FailureReport {
    workload: String,
    rung: String,
    device: Option<String>,
    device_key: String,
    units: u64,
    bytes: Bytes,
    /// What others left of the device then; `null` if it was not written down.
    free: Option<Bytes>,
    moment: MemoryMoment,
    /// How many others in a row there were before it.
    step: u8,
    at: UnixSeconds,
    until: UnixSeconds,
}

impl FailureReport {
    pub(super) fn new(failed: &FailedCell, names: &Names) -> Self {
        let key = failed.key();
        Self {
            workload: key.workload().to_owned(),
            rung: key.rung().to_owned(),
            device: names.of(key.device()),
            device_key: key.device().to_owned(),
            units: failed.units(),
            bytes: failed.bytes(),
            free: failed.free(),
            moment: failed.moment(),
            step: failed.step(),
            at: failed.at(),
            until: failed.until(),
        }
    }

    pub(super) fn print_all(failures: &[Self], now: UnixSeconds) -> Ended {
        let mut remembered = failures.iter().filter(|failure| now < failure.until.plus(FAILURE_LIFE_S)).peekable();
        if remembered.peek().is_some() {
            output::line("\nMemory ran out at these sizes; `plimsoll profile forget` forgets it:")?;
        }
        remembered.try_for_each(|failure| output::line(format_args!("  {}", failure.sentence(now))))
    }

    fn sentence(&self, now: UnixSeconds) -> String {
        let Self { workload, rung, bytes, moment, .. } = self;
        let device = self.device.as_ref().unwrap_or(&self.device_key);
        let (size, ago) = (output::count(self.units), span(now.0.saturating_sub(self.at.0)));
        let free = self.free.map_or_else(String::new, |free| format!(" with {free} free"));
        let before = match self.step {
            0 => String::new(),
            1 => ", once in a row before".to_owned(),
            times => format!(", {times} times in a row before"),
        };
        let next = match self.until.0.saturating_sub(now.0) {
            0 => "may be tried again".to_owned(),
            left => format!("tried again in {}, or when more is free", span(left)),
        };
        format!("{workload}, {rung} on {device}: {size} ({bytes}) {moment}, {ago} ago{free}{before}; {next}")
    }
}

/// What a device cannot do. The names of its fields are a promise to other programs.
#[derive(Serialize)]
pub(super) struct UnsupportedReport {
    workload: String,
    rung: String,
    device: Option<String>,
    device_key: String,
    detail: String,
    at: UnixSeconds,
    until: UnixSeconds,
}

impl UnsupportedReport {
    pub(super) fn new(unsupported: &UnsupportedCell, names: &Names) -> Self {
        let key = unsupported.key();
        Self {
            workload: key.workload().to_owned(),
            rung: key.rung().to_owned(),
            device: names.of(key.device()),
            device_key: key.device().to_owned(),
            detail: unsupported.detail().to_owned(),
            at: unsupported.at(),
            until: unsupported.until(),
        }
    }

    pub(super) fn print_all(unsupported: &[Self], now: UnixSeconds) -> Ended {
        let mut counting = unsupported.iter().filter(|each| now < each.until).peekable();
        if counting.peek().is_some() {
            output::line("\nThese devices cannot do these rungs; `plimsoll profile forget` has them tried again:")?;
        }
        counting.try_for_each(|each| {
            let Self { workload, rung, detail, .. } = each;
            let device = each.device.as_ref().unwrap_or(&each.device_key);
            let left = span(each.until.0.saturating_sub(now.0));
            output::line(format_args!("  {workload}, {rung} on {device}: {detail}; tried again in {left}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(free: Option<Bytes>, step: u8, until: u64) -> FailureReport {
        FailureReport {
            workload: "blur".into(),
            rung: "gpu-full".into(),
            device: Some("gpu0".into()),
            device_key: "card".into(),
            units: 4,
            bytes: Bytes::gib(9),
            free,
            moment: MemoryMoment::Run,
            step,
            at: UnixSeconds(40),
            until: UnixSeconds(until),
        }
    }

    #[test]
    fn a_failure_says_how_much_was_free_how_often_it_happened_and_when_it_is_tried_again() {
        let sentence = |failure: FailureReport| failure.sentence(UnixSeconds(100));
        assert_eq!(
            sentence(failure(Some(Bytes::gib(2)), 3, 108)),
            "blur, gpu-full on gpu0: 4 (9.0 GiB) while running, 1 minute ago with 2.0 GiB free, 3 times in a row before; \
             tried again in 8 seconds, or when more is free"
        );
        assert_eq!(
            sentence(failure(None, 0, 90)),
            "blur, gpu-full on gpu0: 4 (9.0 GiB) while running, 1 minute ago; may be tried again"
        );
    }
}
