//! Quality against bytes: who is given less because others are there, who steps down for an equal, who rises again.

use super::*;
use crate::{GrantKind, Nanos, PressureLevel, Quality, SharePolicy, Sharing};

const SECOND: u64 = 1_000_000_000;

/// A grant of a kind with rungs of so many bytes on the first device and so much quality.
fn of(kind: GrantKind, rungs: &[(u64, f32)]) -> GrantSpec {
    let ladder = rungs.iter().map(|&(bytes, quality)| rung(&[(A, bytes)]).with_quality(Quality::new(quality)));
    GrantSpec { kind, may_rise: true, ..GrantSpec::new(GrantOwner::Caller, ladder.collect()) }
}

fn shared_by(policy: SharePolicy) -> Scheduler<Nothing> {
    three_gpus_sharing(Sharing { policy, leave_levels: 2, ..Sharing::default() })
}

fn llm() -> GrantSpec {
    of(GrantKind::Llm, &[(900, 1.0), (600, 0.8), (300, 0.5)])
}

fn image() -> GrantSpec {
    of(GrantKind::Image, &[(400, 1.0), (200, 0.6)])
}

#[test]
fn one_that_has_more_than_is_recommended_steps_down_for_an_equal_and_rises_again() {
    let mut scheduler = shared_by(SharePolicy::Adaptive);
    let llm = ask(&mut scheduler, 1, llm());
    assert_eq!(scheduler.recommended_quality(llm), Some(Quality::FULL), "what it holds is no pressure on itself");
    let image = ask(&mut scheduler, 2, image());
    assert_eq!(scheduler.recommended_quality(llm), Some(Quality::new(0.9)), "200 of 1000 are waited for");
    assert_eq!(
        heard(&mut scheduler),
        ["grant 1 holds rung 0", "grant 1 should step down to 1"],
        "no further than needed: its lowest rung would free more"
    );
    scheduler.stepped_to(Moment(3), llm, 1).unwrap();
    assert_eq!(heard(&mut scheduler), ["grant 2 holds rung 1"], "at 60 % an image is recommended 70 %");
    assert_eq!(promised(&scheduler)[0], 800);
    scheduler.return_grant(Moment(4), image);
    scheduler.tick(Moment(3 + SECOND));
    assert_eq!(heard(&mut scheduler), ["grant 1 may rise to 0"]);
}

#[test]
fn who_waits_is_a_pressure_by_the_least_that_is_of_use_to_it() {
    let mut scheduler = shared_by(SharePolicy::Adaptive);
    let image = ask(&mut scheduler, 1, of(GrantKind::Image, &[(400, 1.0)]));
    ask(&mut scheduler, 2, of(GrantKind::Llm, &[(900, 1.0), (100, 0.3)]));
    assert_eq!(heard(&mut scheduler), ["grant 1 holds rung 0"]);
    assert_eq!(scheduler.recommended_quality(image), Some(Quality::new(0.55)), "900 are waited for, not 100");
}

#[test]
fn by_the_fixed_policy_nobody_steps_down_for_an_equal() {
    let mut scheduler = shared_by(SharePolicy::Fixed);
    ask(&mut scheduler, 1, llm());
    ask(&mut scheduler, 2, image());
    assert_eq!(heard(&mut scheduler), ["grant 1 holds rung 0"]);
}

#[test]
fn the_rung_that_is_given_is_the_best_that_is_not_above_what_is_recommended() {
    for (policy, rung) in [(SharePolicy::Fixed, 0), (SharePolicy::Adaptive, 1)] {
        let mut scheduler = shared_by(policy);
        scheduler.lease(Moment(1), &[(A, Bytes(500))]).unwrap();
        assert_eq!(scheduler.pressure(A).level(), PressureLevel::Medium);
        assert_eq!((scheduler.pressure(A).value(), scheduler.pressure(B).value()), (0.5, 0.0));
        heard(&mut scheduler);
        ask(&mut scheduler, 2, of(GrantKind::Image, &[(400, 1.0), (300, 0.7), (100, 0.5)]));
        assert_eq!(heard(&mut scheduler), [format!("grant 2 holds rung {rung}")], "{policy}: 75 % are recommended");
    }
    let mut scheduler = shared_by(SharePolicy::Adaptive);
    scheduler.lease(Moment(1), &[(A, Bytes(500))]).unwrap();
    heard(&mut scheduler);
    let recommended = |priority| scheduler.recommended_quality_for(GrantKind::Image, priority, A).value();
    assert_eq!([Priority::Low, Priority::Normal, Priority::Critical].map(recommended), [0.6, 0.75, 0.9]);
    let either = vec![rung(&[(A, 400)]), rung(&[(B, 400)])];
    ask(&mut scheduler, 2, GrantSpec::new(GrantOwner::Caller, either.clone()));
    assert_eq!(heard(&mut scheduler), ["grant 2 holds rung 1"], "on the empty device all of it is recommended");
}

#[test]
fn what_is_idle_is_no_pressure() {
    let mut scheduler = shared_by(SharePolicy::Adaptive);
    open_warm_session(&mut scheduler, 200);
    scheduler.lease(Moment(2), &[(A, Bytes(500))]).unwrap();
    assert_eq!(promised(&scheduler)[0], 700);
    assert_eq!(scheduler.pressure(A).value(), 0.5, "the idle 200 would go if somebody needed them");
}

#[test]
fn a_ladder_without_another_quality_is_given_as_it_is() {
    let mut scheduler = shared_by(SharePolicy::Adaptive);
    scheduler.lease(Moment(1), &[(A, Bytes(500))]).unwrap();
    heard(&mut scheduler);
    ask(&mut scheduler, 2, with(Priority::Low, of(GrantKind::Llm, &[(300, 1.0), (100, 1.0)])));
    assert_eq!(heard(&mut scheduler), ["grant 2 holds rung 0"]);
}

/// What is recommended is a quality: who has no better one than that has nothing to share, however large its rung is.
#[test]
fn of_rungs_of_one_quality_the_larger_is_kept() {
    let mut scheduler = shared_by(SharePolicy::Adaptive);
    ask(&mut scheduler, 1, of(GrantKind::Image, &[(600, 1.0), (200, 1.0)]));
    heard(&mut scheduler);
    ask(&mut scheduler, 2, of(GrantKind::Image, &[(500, 1.0)]));
    assert!(heard(&mut scheduler).is_empty(), "an equal waits");
    ask(&mut scheduler, 3, with(Priority::High, on_a(&[500])));
    assert_eq!(heard(&mut scheduler), ["grant 1 should step down to 1"], "for somebody more urgent it could");
}

/// Under pressure the better rung is not recommended, so nobody is troubled for the bytes that it would take.
#[test]
fn nobody_steps_down_for_a_rung_that_is_not_recommended() {
    for (policy, asked) in [(SharePolicy::Adaptive, 1), (SharePolicy::Fixed, 2)] {
        let mut scheduler = shared_by(policy);
        ask(&mut scheduler, 1, with(Priority::Low, of(GrantKind::Other, &[(900, 1.0), (600, 1.0), (100, 1.0)])));
        heard(&mut scheduler);
        ask(&mut scheduler, 2, of(GrantKind::Image, &[(700, 1.0), (200, 0.5)]));
        assert_eq!(heard(&mut scheduler), [format!("grant 1 should step down to {asked}")], "{policy}");
    }
}

/// The formula gives a more urgent holder more; what it has beyond that it shares even with somebody less urgent.
#[test]
fn the_least_urgent_shares_first_and_the_more_urgent_too() {
    let mut scheduler = shared_by(SharePolicy::Adaptive);
    let holder = |priority| with(priority, of(GrantKind::Image, &[(450, 1.0), (250, 0.6)]));
    let high = ask(&mut scheduler, 1, holder(Priority::High));
    ask(&mut scheduler, 2, holder(Priority::Normal));
    scheduler.begin_step(Moment(2), GrantId(2), 0).unwrap();
    scheduler.stepped_to(Moment(2), GrantId(2), 0).unwrap();
    heard(&mut scheduler);
    ask(&mut scheduler, 3, with(Priority::Low, of(GrantKind::Image, &[(300, 0.5)])));
    assert_eq!(heard(&mut scheduler), ["grant 2 should step down to 1"], "200 are missing");
    ask(&mut scheduler, 4, with(Priority::Low, of(GrantKind::Image, &[(200, 0.5)])));
    assert!(heard(&mut scheduler).is_empty(), "who waits behind another asks for nothing yet");
    scheduler.stepped_to(Moment(5), GrantId(2), 1).unwrap();
    assert_eq!(heard(&mut scheduler), ["grant 3 holds rung 0", "grant 1 should step down to 1"]);
    scheduler.stepped_to(Moment(6), high, 1).unwrap();
    assert_eq!(heard(&mut scheduler), ["grant 4 holds rung 0"]);
}

#[test]
fn policies_say_who_gives_way_first() {
    let two = |kind| of(kind, &[(450, 1.0), (200, 0.5)]);
    for (policy, gives_way) in
        [(SharePolicy::LlmFirst, GrantKind::Image), (SharePolicy::DiffusionFirst, GrantKind::Llm)]
    {
        for kinds in [[GrantKind::Llm, GrantKind::Image], [GrantKind::Image, GrantKind::Llm]] {
            let mut scheduler = shared_by(policy);
            for (at, kind) in (1..).zip(kinds) {
                let id = ask(&mut scheduler, at, two(kind));
                if scheduler.grant(id).unwrap().rung == Some(1) {
                    scheduler.begin_step(Moment(at), id, 0).unwrap();
                    scheduler.stepped_to(Moment(at), id, 0).unwrap();
                }
            }
            heard(&mut scheduler);
            ask(&mut scheduler, 3, of(GrantKind::Other, &[(200, 0.5)]));
            let asked = 1 + kinds.iter().position(|kind| *kind == gives_way).unwrap();
            assert_eq!(heard(&mut scheduler), [format!("grant {asked} should step down to 1")], "{policy} {kinds:?}");
        }
    }
}

#[test]
fn by_the_balanced_policy_each_gives_a_like_part() {
    for (policy, asked) in [
        (SharePolicy::Adaptive, vec!["grant 3 should step down to 2"]),
        (SharePolicy::Balanced, vec!["grant 3 should step down to 1", "grant 2 should step down to 1"]),
    ] {
        let mut scheduler = shared_by(policy);
        for at in 1..4 {
            let id = ask(&mut scheduler, at, of(GrantKind::Other, &[(300, 1.0), (200, 0.8), (100, 0.6)]));
            if scheduler.grant(id).unwrap().rung != Some(0) {
                scheduler.begin_step(Moment(at), id, 0).unwrap();
                scheduler.stepped_to(Moment(at), id, 0).unwrap();
            }
        }
        heard(&mut scheduler);
        ask(&mut scheduler, 4, of(GrantKind::Other, &[(300, 0.5)]));
        assert_eq!(heard(&mut scheduler), asked, "{policy}: 200 are missing");
    }
}

#[test]
fn below_what_is_of_use_to_its_kind_is_like_leaving() {
    let mut scheduler = shared_by(SharePolicy::Adaptive);
    ask(&mut scheduler, 1, of(GrantKind::Llm, &[(600, 1.0), (100, 0.3)]));
    heard(&mut scheduler);
    ask(&mut scheduler, 2, with(Priority::High, on_a(&[500])));
    assert!(heard(&mut scheduler).is_empty(), "one level above is not enough");
    ask(&mut scheduler, 3, with(Priority::Critical, on_a(&[500])));
    assert_eq!(heard(&mut scheduler), ["grant 1 should step down to 1"]);
}

#[test]
fn a_holder_stays_on_its_rung_for_a_while_but_not_for_somebody_far_more_urgent() {
    let sharing = Sharing { residency_min: Nanos::seconds(10), ..Sharing::between_programs() };
    for (priority, is_asked_at_once) in [(Priority::Normal, false), (Priority::High, false), (Priority::Critical, true)]
    {
        let mut scheduler = three_gpus_sharing(sharing);
        ask(&mut scheduler, 0, llm());
        heard(&mut scheduler);
        ask(&mut scheduler, 1, with(priority, image()));
        let asked = ["grant 1 should step down to 1"];
        assert_eq!(heard(&mut scheduler) == asked, is_asked_at_once, "{priority}");
        if !is_asked_at_once {
            assert_eq!(scheduler.next_tick(), Some(Moment(10 * SECOND)));
            scheduler.tick(Moment(10 * SECOND));
            assert_eq!(heard(&mut scheduler), asked, "{priority}");
        }
    }
}

#[test]
fn what_it_costs_to_switch_gives_time_for_it_and_keeps_one_there() {
    let mut scheduler = shared_by(SharePolicy::Adaptive);
    let mut spec = llm();
    spec.ladder[1].switch_cost = Nanos::seconds(20);
    let id = ask(&mut scheduler, 0, spec);
    heard(&mut scheduler);
    let other = ask(&mut scheduler, 1, image());
    let until = Moment(1 + 40 * SECOND);
    assert_eq!(phase(&scheduler, id), Some(GrantPhase::Recalled { to: Some(1), until }), "twice what it takes");
    scheduler.stepped_to(Moment(2), id, 1).unwrap();
    scheduler.return_grant(Moment(3), other);
    heard(&mut scheduler);
    scheduler.tick(Moment(79 * SECOND));
    assert!(heard(&mut scheduler).is_empty());
    scheduler.tick(Moment(2 + 80 * SECOND));
    assert_eq!(heard(&mut scheduler), ["grant 1 may rise to 0"], "four times what it took");
}

/// Its devices were over the line by a hair when it had to step down. It does not go back to a hair below.
#[test]
fn nobody_rises_to_nearly_where_it_fell_from_until_that_is_forgotten() {
    let sharing = Sharing { residency_min: Nanos::seconds(10), ..Sharing::default() };
    for (beside, rises_at) in [(0, 11), (80, 81)] {
        let mut scheduler = three_gpus_sharing(sharing);
        let id = ask(&mut scheduler, 0, GrantSpec { may_rise: true, ..with(Priority::Low, on_a(&[900, 300])) });
        let other = ask(&mut scheduler, SECOND, on_a(&[110]));
        scheduler.stepped_to(Moment(SECOND), id, 1).unwrap();
        if beside > 0 {
            scheduler.lease(Moment(SECOND), &[(A, Bytes(beside))]).unwrap();
        }
        scheduler.return_grant(Moment(2 * SECOND), other);
        heard(&mut scheduler);
        let mut told_at = None;
        for second in 3..100 {
            scheduler.tick(Moment(second * SECOND));
            if heard(&mut scheduler).contains(&"grant 1 may rise to 0".to_owned()) {
                told_at = told_at.or(Some(second));
            }
        }
        assert_eq!(told_at, Some(rises_at), "{beside} beside it: 101 % made it fall, 96 % are far enough below");
    }
}

#[test]
fn who_waits_for_one_device_keeps_nobody_from_rising_on_another() {
    let mut scheduler = three_gpus();
    let spec =
        GrantSpec { may_rise: true, ..GrantSpec::new(GrantOwner::Caller, vec![rung(&[(B, 900)]), rung(&[(B, 300)])]) };
    let id = ask(&mut scheduler, 1, spec);
    scheduler.stepped_to(Moment(2), id, 1).unwrap();
    ask(&mut scheduler, 3, on_a(&[900]));
    ask(&mut scheduler, 4, on_a(&[900]));
    heard(&mut scheduler);
    scheduler.tick(Moment(2 + SECOND));
    assert_eq!(heard(&mut scheduler), ["grant 1 may rise to 0"]);
}
