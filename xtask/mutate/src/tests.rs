//! The instrumenter as a whole: small source in, expected text out.

use crate::find;
use crate::render::{Chosen, Rendered, SWITCH, render};
use crate::site::MutantId;

/// All mutants of a source, numbered from 1.
fn rendered(source: &str) -> Rendered {
    let sites = find::sites(source).unwrap();
    let mut next = 1..;
    let chosen = sites.iter().map(|site| {
        let ids: Vec<Option<MutantId>> = site.alternatives.iter().map(|_| next.next()).collect();
        Chosen { site, ids }
    });
    render(source, chosen.collect())
}

/// The text of all mutants; the switch is written `on` for short.
fn text(source: &str) -> String {
    rendered(source).text.replace(SWITCH, "on")
}

#[test]
fn a_comparison_moves_its_boundary_or_turns_round() {
    assert_eq!(
        text("fn f() -> &X { a < b }"),
        "fn f() -> &X { (if on(1) { (a) <= (b) } else if on(2) { (a) >= (b) } else { (a < b) }) }"
    );
}

#[test]
fn sites_within_sites_are_written_within_them() {
    assert_eq!(
        text("fn f() -> &X { a && !b }"),
        "fn f() -> &X { (if on(1) { (a) || (!b) } else { (a && (if on(2) { b } else { (!b) })) }) }"
    );
}

#[test]
fn a_condition_is_negated_once() {
    assert_eq!(text("fn f() -> &X { if a() { b } }"), "fn f() -> &X { if (if on(1) { !(a()) } else { (a()) }) { b } }");
    assert!(!text("fn f() -> &X { if a == b { c } }").contains("!("));
    assert_eq!(
        text("fn f() -> &X { if a && let Some(b) = c { d } }"),
        "fn f() -> &X { if a && let Some(b) = c { d } }"
    );
}

#[test]
fn statements_are_left_out() {
    assert_eq!(text("fn f() -> &X { a.b(); c }"), "fn f() -> &X { { if on(1) {  } else { a.b(); } }; c }");
    assert_eq!(
        text("fn f() -> &X { a += 1; b }"),
        "fn f() -> &X { { if on(1) {  } else if on(2) { a -= 1; } else { a += 1; } }; b }"
    );
}

#[test]
fn a_function_returns_a_plain_value_of_its_type() {
    assert_eq!(
        text("fn f() -> bool { a }"),
        "fn f() -> bool {if on(1) { return true; } if on(2) { return false; }  a }"
    );
    assert_eq!(text("fn f() -> Result<u8, E> { a }").matches("return Ok(").count(), 2);
    assert_eq!(text("fn f() -> Known { a }"), "fn f() -> Known {if on(1) { return Default::default(); }  a }");
    assert_eq!(text("fn f() -> &Known { a }"), "fn f() -> &Known { a }");
}

#[test]
fn guards_and_extremes_are_changed() {
    assert_eq!(
        text("fn f() -> &X { match a { b if c => d.min(e) } }"),
        "fn f() -> &X { match a { b if (if on(1) { true } else if on(2) { false } else { (c) }) => \
         (if on(3) { d.max(e) } else { (d.min(e)) }) } }"
    );
}

#[test]
fn what_the_compiler_computes_and_what_only_tests_or_people_see_is_left_alone() {
    for source in [
        "const A: bool = 1 < 2;",
        "const fn f() -> bool { 1 < 2 }",
        "#[cfg(test)] mod tests { fn f() -> bool { 1 < 2 } }",
        "impl fmt::Display for A { fn fmt(&self) -> bool { 1 < 2 } }",
        "fn check_invariants() -> bool { 1 < 2 }",
        "fn f() -> &X { let a: [u8; 1 + 1] = [0; 1 + 1]; a }",
    ] {
        assert_eq!(text(source), source);
    }
}

#[test]
fn an_error_is_blamed_on_the_mutant_that_it_points_into() {
    let rendered = rendered("fn f() -> &X { a + b < c }");
    let place = |text: &str| {
        let start = rendered.text.find(text).unwrap();
        start..start + text.len()
    };
    assert_eq!(rendered.blame(&[place("<= (c)")]), [1]);
    assert_eq!(rendered.blame(&[place("(a) - (b)")]), [3]);
    // The plain source within the inner site: one of its mutants does not fit its surroundings.
    assert_eq!(rendered.blame(&[place("{ (a + b) }")]), [3]);
    assert_eq!(rendered.blame(&[place("fn f")]), [0; 0]);
}
