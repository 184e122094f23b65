//! Sweeps as the library runs them.

use std::fs;
use std::sync::Arc;

use plimsoll::image::metrics::Metric;
use plimsoll::regret::RegretMeter;
use plimsoll::score::{PairError, SweepOptions};
use plimsoll::{Bytes, Orchestrator};

use crate::made::{Folder, cores, scored};

#[test]
fn every_pair_is_scored_by_every_metric_on_a_line_that_holds_few_of_them() {
    let folder = Folder::new();
    let reference = folder.picture("reference.ppm", (512, 384), 0);
    let variants: Vec<_> = (0..30).map(|at| folder.picture(&format!("{at}.ppm"), (512, 384), at % 40 + 1)).collect();
    let orchestrator = cores(Bytes::mib(64));
    let metrics = [Metric::Psnr, Metric::Ssim, Metric::MsSsim, Metric::Dssim];
    let all = scored(&orchestrator, SweepOptions::of(metrics), &reference, &variants);
    assert_eq!(all.len(), 30);
    for scored in &all {
        let scores = scored.outcome.as_ref().unwrap_or_else(|error| panic!("{}: {error}", scored.at));
        assert_eq!(scores.good().map(|score| score.metric).collect::<Vec<_>>(), metrics, "{:?}", scores.failures());
    }
    drop(all);
    let status = &orchestrator.reports()[0];
    assert!(status.promised_peak <= Bytes::mib(64), "{}", status.promised_peak);
}

/// A size that cannot match is seen in the header: the pixels, which are not even there, are never asked for.
#[test]
fn what_a_header_already_refuses_is_not_decoded() {
    let folder = Folder::new();
    let reference = folder.picture("reference.ppm", (64, 64), 0);
    let mut other = folder.picture("other.ppm", (64, 63), 0);
    let header_alone = fs::read(&other).expect("there")[..3000].to_vec();
    other = folder.write("other.ppm", &header_alone);
    let orchestrator = cores(Bytes::mib(64));
    let all = scored(&orchestrator, SweepOptions::of([Metric::Psnr]), &reference, &[other]);
    assert!(matches!(all[0].outcome, Err(PairError::Sizes(_))), "{:?}", all[0].outcome);
}

#[test]
fn images_that_do_not_fit_are_refused_with_what_they_need() {
    let folder = Folder::new();
    let reference = folder.picture("reference.ppm", (3000, 2000), 0);
    let same = folder.picture("same.ppm", (3000, 2000), 3);
    let small = folder.picture("small.ppm", (64, 64), 3);
    let orchestrator = cores(Bytes::mib(32));
    let all = scored(&orchestrator, SweepOptions::of([Metric::Psnr]), &reference, &[same]);
    let Err(error @ PairError::DoesNotFit { needed, line }) = &all[0].outcome else { panic!("{:?}", all[0].outcome) };
    assert!(*needed > Bytes(2 * 3000 * 2000 * 3) && *line == Bytes::mib(32), "{error}");
    assert!(error.to_string().contains("32.0 MiB"), "{error}");
    let all = scored(&orchestrator, SweepOptions::of([Metric::Psnr]), &small, std::slice::from_ref(&small));
    assert!(all[0].outcome.is_ok(), "what fits is scored: {:?}", all[0].outcome);
}

#[test]
fn a_metric_that_fails_costs_the_others_nothing() {
    let folder = Folder::new();
    let reference = folder.picture("reference.ppm", (96, 64), 0);
    let variant = folder.picture("variant.ppm", (96, 64), 9);
    let orchestrator = cores(Bytes::mib(64));
    let strips_only = SweepOptions { rung: Some("cpu-strip"), ..SweepOptions::of([Metric::Zensim, Metric::Psnr]) };
    let all = scored(&orchestrator, strips_only, &reference, &[variant]);
    let scores = all[0].outcome.as_ref().expect("scored");
    assert!(scores.scores[0].is_err() && scores.scores[1].is_ok());
    assert!(scores.failures().is_some_and(|told| told.starts_with("zensim: ")), "{:?}", scores.failures());
}

#[test]
fn what_ran_is_explained_and_measured_against_the_best_schedule() {
    let folder = Folder::new();
    let reference = folder.picture("reference.ppm", (256, 192), 0);
    let variants: Vec<_> = (0..12).map(|at| folder.picture(&format!("{at}.ppm"), (256, 192), at + 1)).collect();
    let meter = RegretMeter::new();
    let orchestrator = Arc::new(Orchestrator::builder().cpu(2).listener(meter.listener()).build());
    let options = SweepOptions { explain: true, ..SweepOptions::of([Metric::Ssim]) };
    for scored in scored(&orchestrator, options, &reference, &variants) {
        let scores = scored.outcome.expect("scored");
        let report = &scores.good().next().expect("one metric").report;
        let ran = (report.why[0].rung, report.why[0].device, report.why[0].refusal.is_none());
        assert_eq!(ran, (report.rung, report.device, true), "{:?}", report.why);
    }
    let regret = meter.regret(&orchestrator);
    assert!(regret.lower_bound.0 > 0 && regret.lower_bound <= regret.elapsed, "{regret}");
}
