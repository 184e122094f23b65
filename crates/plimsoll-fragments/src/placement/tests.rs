//! One rule of placement at a time; how well it does as a whole is `tests/placement`.

use super::*;

#[test]
fn pins_stay_and_capacity_holds() {
    let mut tier = Placement::new(100);
    tier.pin(1, 40);
    assert!(tier.used(1, 40, 1.0).is_empty());
    for key in 2..50 {
        let gone = tier.used(key, 30, 1.0);
        assert!(!gone.contains(&1) && tier.held() <= 100);
    }
    tier.unpin(&1);
    assert!(tier.make_room(100).contains(&1));
    assert_eq!(tier.held(), 0);
}

#[test]
fn a_scan_does_not_flush_what_is_hot() {
    let mut tier = Placement::new(100);
    for _ in 0..5 {
        (0..8).for_each(|hot| drop(tier.used(hot, 10, 1.0)));
    }
    (1_000..2_000).for_each(|scanned| drop(tier.used(scanned, 10, 1.0)));
    assert!((0..8).all(|hot| tier.has(&hot)));
}

#[test]
fn what_is_hinted_stays() {
    let mut tier = Placement::new(30);
    (0..3).for_each(|key| drop(tier.used(key, 10, 1.0)));
    tier.hint([(1, 10, 1.0), (2, 10, 1.0)]);
    tier.used(9, 10, 1.0);
    assert!(tier.has(&1) && tier.has(&2));
}

#[test]
fn what_was_withdrawn_is_a_hint_no_more() {
    let mut tier = Placement::new(20);
    for _ in 0..4 {
        (0..2).for_each(|key| drop(tier.used(key, 10, 1.0)));
    }
    tier.hint([(7, 10, 1.0)]);
    tier.withdraw([7]);
    tier.used(7, 10, 1.0);
    assert!(!tier.has(&7), "it has no past, and nobody says any more that it is used next");
}

#[test]
fn hints_that_never_come_true_are_believed_no_more() {
    let mut tier = Placement::new(100);
    for round in 0..50 {
        (0..8).for_each(|hot| drop(tier.used(hot, 10, 1.0)));
        tier.hint((0..10).map(|lie| (1_000 + 10 * round + lie, 10, 1.0)));
        (0..10).for_each(|lie| drop(tier.used(5_000 + 10 * round + lie, 10, 1.0)));
        tier.withdraw((0..10).map(|lie| 1_000 + 10 * round + lie));
    }
    tier.hint((0..8).map(|lie| (9_000 + lie, 10, 1.0)));
    (0..8).for_each(|lie| drop(tier.used(9_000 + lie, 10, 1.0)));
    assert!((0..8).all(|hot| tier.has(&hot)));
}

#[test]
fn what_costs_more_to_bring_back_stays() {
    let mut tier = Placement::new(20);
    for _ in 0..4 {
        tier.used(1, 10, 100.0);
        tier.used(2, 10, 1.0);
        tier.used(3, 10, 1.0);
    }
    assert!(tier.has(&1), "it takes a hundred times as long to bring back");
}

#[test]
fn what_is_larger_than_the_tier_empties_nothing() {
    let mut tier = Placement::new(100);
    for _ in 0..3 {
        (0..8).for_each(|hot| drop(tier.used(hot, 10, 1.0)));
        assert_eq!(tier.used(99, 101, 1.0), [99]);
    }
    assert!((0..8).all(|hot| tier.has(&hot)));
}

/// Of several that come round, the ones that come soonest stay: the opposite of what LRU does.
#[test]
fn of_what_comes_round_that_which_comes_soonest_stays() {
    let mut tier = Placement::new(60);
    for _ in 0..20 {
        (0..10).for_each(|key| drop(tier.used(key, 10, 1.0)));
    }
    let brought =
        |tier: &mut Placement<i32>| (0..10).filter(|key| !(tier.has(key), drop(tier.used(*key, 10, 1.0))).0).count();
    let passes: Vec<usize> = (0..9).map(|_| brought(&mut tier)).collect();
    assert!(passes.iter().sum::<usize>() <= 9 * 5, "four of ten do not fit, LRU would bring all: {passes:?}");
}

/// While one forecast is followed the others are tried on names alone; when habits change, another is followed.
#[test]
fn the_forecast_that_brings_least_is_followed() {
    let mut tier = Placement::new(100);
    for round in 0..40_u64 {
        (0..20).for_each(|key| drop(tier.used(key, 10, 1.0)));
        let _ = round;
    }
    assert_eq!(tier.forecast_of(REAL), Forecast::Regularity);
    // A few that are used far more often than others, in no order.
    let mut dice = 1_u64;
    for _ in 0..20_000 {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let unit = (dice >> 33) as f64 / (1_u64 << 31) as f64;
        tier.used(1_000 + (200_f64.powf(unit)) as u64, 10, 1.0);
    }
    assert_eq!(tier.forecast_of(REAL), Forecast::Frequency);
}

#[test]
fn a_tier_of_thousands_holds_its_capacity_too() {
    let mut tier = Placement::new(10_000);
    for key in 0..40_000_u64 {
        tier.used(key % 1_700, 10, 1.0);
        assert!(tier.held() <= 10_000);
    }
    let count = (0..1_700).filter(|key| tier.has(key)).count();
    assert_eq!(count as u64 * 10, tier.held());
}

#[test]
fn what_is_remembered_is_bounded() {
    let mut tier = Placement::new(10);
    for key in 0..(REMEMBERED_MAX as u64 + 5_000) {
        tier.used(key, 10, 1.0);
    }
    assert!(tier.known.len() <= REMEMBERED_MAX + 1 && tier.gone.len() <= tier.known.len());
    tier.hint((0..3 * REMEMBERED_MAX as u64).map(|key| (1_000_000 + key, 10, 1.0)));
    assert!(tier.known.len() <= REMEMBERED_MAX + 1);
    for key in 0..10 {
        tier.pin(5_000_000 + key, 10);
        tier.unpin(&(5_000_000 + key));
    }
    (0..REMEMBERED_MAX as u64).for_each(|key| drop(tier.used(7_000_000 + key, 10, 1.0)));
    assert!((0..10).all(|key| !tier.known.contains_key(&(5_000_000 + key))), "what was pinned is forgotten as well");
}
