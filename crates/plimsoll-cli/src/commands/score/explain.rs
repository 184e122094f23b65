//! Why each choice was made, as it stood when the task started, as lines for people.

use std::fmt::Write;

use plimsoll::Candidate;
use plimsoll::machine::DeviceName;
use plimsoll::score::{MetricScore, Scored};

use super::{device_name, names, naming_devices};

/// What was chosen for each score of a pair, what else there was and why not, and what came of it.
pub(super) fn lines(scored: &Scored, devices: &[DeviceName]) -> String {
    let mut text = String::new();
    let Ok(scores) = &scored.outcome else { return text };
    for score in scores.good() {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{} of {}:", score.metric, names::shown(&scored.pair.distorted));
        for candidate in &score.report.why {
            let _ = writeln!(text, "  {}", candidate_line(candidate, devices));
        }
        for attempt in &score.report.attempts {
            let _ = writeln!(text, "  stepped down: {}", naming_devices(&attempt.to_string(), devices));
        }
        let _ = writeln!(text, "  {}", outcome_line(score, devices));
    }
    text
}

fn candidate_line(candidate: &Candidate, names: &[DeviceName]) -> String {
    let place = format!("{} on {}", candidate.rung, device_name(candidate.device, names));
    match (&candidate.refusal, &candidate.estimate) {
        (Some(refusal), _) => format!("refused {place}: {}", naming_devices(&refusal.to_string(), names)),
        (None, Some(estimate)) => {
            let basis = if estimate.measured { "measured" } else { "guessed" };
            format!("chosen  {place}: done in {} ({basis}), needs {}", estimate.finish(), estimate.bytes)
        }
        (None, None) => format!("chosen  {place}"),
    }
}

fn outcome_line(score: &MetricScore, names: &[DeviceName]) -> String {
    let report = &score.report;
    let place = format!("{} on {}", report.rung, device_name(report.device, names));
    let peak = report.bytes_peak.map_or_else(String::new, |peak| format!(", held {peak}"));
    format!("ran     {place}: {} waited, {} ran, promised {}{peak}", report.queued, report.run, report.bytes_predicted)
}
