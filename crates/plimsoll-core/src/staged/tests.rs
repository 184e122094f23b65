//! The rules of the order, each under its name; what declarations are refused; which way is selected, and why.
//! Whether the declared edges hold against real interleavings is the simulator's to show.

use std::sync::Arc;

use super::EdgeKind::{AliasOf, Event, Generation, HostRule, StreamOrder};
use super::Usage::{Reads, Updates, Writes};
use super::*;
use crate::Bytes;

fn stage(name: &'static str, stream: &'static str, uses: &[(&'static str, Usage)]) -> StageDecl {
    StageDecl { name, stream, uses: uses.to_vec() }
}

fn pool(name: &'static str, count: Count, memory: Memory) -> PoolDecl {
    PoolDecl { name, bytes: Bytes(64), count, memory }
}

fn edge(
    name: &'static str,
    from: &'static str,
    to: &'static str,
    guards: &'static str,
    kind: EdgeKind<&'static str>,
) -> EdgeDecl {
    EdgeDecl { name, from, to, guards, kind }
}

/// Loads into one staging buffer, adds to sums that stay, gives what it made.
fn summing() -> Draft {
    Draft {
        streams: vec!["copy", "compute"],
        stages: vec![
            stage("load", "copy", &[("staging", Writes)]),
            stage("work", "compute", &[("staging", Reads), ("sums", Updates), ("out", Writes)]),
        ],
        drain: vec![stage("collect", HOST, &[("out", Reads)])],
        pools: vec![
            pool("staging", Count::Fixed(1), Memory::Device),
            pool("sums", Count::Fixed(1), Memory::Device),
            pool("out", Count::PerDepth, Memory::Readback),
        ],
        edges: vec![
            edge("loaded", "load", "work", "staging", Event),
            edge("staging read", "work", "load", "staging", Event),
            edge("summed", "work", "work", "sums", StreamOrder),
            edge("worked", "work", "collect", "out", Event),
            edge("collected", "collect", "work", "out", HostRule),
        ],
        depth_max: 3,
    }
}

/// Each item begins with a tail that the drain of the one before it leaves with the host.
fn gated(copies_on: &'static str) -> Draft {
    Draft {
        streams: vec!["compute", "drain"],
        stages: vec![stage("fill", "compute", &[("tail", Reads), ("chunks", Writes)])],
        drain: vec![
            stage("copy", copies_on, &[("chunks", Reads), ("out", Writes)]),
            stage("deliver", HOST, &[("out", Reads), ("tail", Writes)]),
        ],
        pools: vec![
            pool("chunks", Count::PerDepth, Memory::Device),
            pool("out", Count::PerDepth, Memory::Readback),
            pool("tail", Count::Fixed(1), Memory::Host),
        ],
        edges: vec![
            edge("filled", "fill", "copy", "chunks", Event),
            edge("copied", "copy", "deliver", "out", Event),
            edge("chunks free", "copy", "fill", "chunks", HostRule),
            edge("out free", "deliver", "copy", "out", HostRule),
            edge("tail known", "deliver", "fill", "tail", Generation),
            edge("tail read", "fill", "deliver", "tail", AliasOf("filled")),
        ],
        depth_max: 2,
    }
}

fn checked(draft: Draft) -> Arc<Stages> {
    Stages::check(draft).unwrap_or_else(|error| panic!("{error}"))
}

/// Every way to run the two of them.
fn ways() -> Vec<Plan> {
    let facts = [1, 2, 3].map(|depth| Facts { depth, sharers: 1, has_gates: true });
    let facts = facts.into_iter().chain([Facts { depth: 1, sharers: 4, has_gates: true }]);
    let drafts = [checked(summing()), checked(gated("drain"))];
    facts.flat_map(|facts| drafts.iter().map(move |stages| Plan::select(stages, facts))).collect()
}

/// A run of some items in which some stages fail: every step, as it was looked at by [`Checks`].
struct Ran {
    steps: Vec<Step>,
    checks: Checks,
}

fn run(plan: &Plan, items: u64, fails: impl Fn(u64, StageId) -> bool) -> Ran {
    let (mut order, mut checks) = (Order::new(plan.clone()), Checks::new(plan.clone()));
    let mut steps = Vec::new();
    for at in 0..=items {
        if at < items {
            assert_eq!(order.feed(), at);
        } else {
            order.flush();
        }
        while let Some(step) = order.step() {
            checks.step(&step).unwrap_or_else(|violation| panic!("{violation}: {step:?}"));
            steps.push(step);
            if let Step::Run { stage, item, .. } = step
                && fails(item, stage)
            {
                order.failed(item);
                checks.failed(item);
            }
        }
    }
    assert_eq!(order.unpublished().count(), 0);
    Ran { steps, checks }
}

/// Runs every way with every stage of every item failing, alone and with another.
fn with_every_fault(look: impl Fn(&Plan, &Ran, &[u64])) {
    const ITEMS: u64 = 6;
    for plan in ways() {
        for stage in plan.stages().stage_ids() {
            for first in 0..ITEMS {
                for second in first..ITEMS {
                    let failing = [first, second];
                    let ran = run(&plan, ITEMS, |item, at| at == stage && failing.contains(&item));
                    look(&plan, &ran, &failing);
                }
            }
        }
    }
}

fn items(steps: &[Step], of: impl Fn(&Step) -> bool) -> Vec<u64> {
    steps.iter().filter(|step| of(step)).filter_map(Step::item).collect()
}

/// Kicks, drains and publications in words.
fn script(plan: &Plan, items: u64, fails: impl Fn(u64, StageId) -> bool) -> String {
    let words = run(plan, items, fails).steps.into_iter().filter_map(|step| match step {
        Step::Kick { item } => Some(format!("kick {item}")),
        Step::Drain { item } => Some(format!("drain {item}")),
        Step::Publish { item, is_done } => Some(format!("{} {item}", if is_done { "done" } else { "failed" })),
        Step::Complete => Some("complete".to_owned()),
        _ => None,
    });
    words.collect::<Vec<_>>().join(", ")
}

fn summing_at(depth: usize, sharers: usize) -> Plan {
    Plan::select(&checked(summing()), Facts { sharers, ..Facts::depth(depth) })
}

// ------------------------------------------------------------------------------------------------------------ the rules

#[test]
fn each_mode_drains_when_it_says() {
    let never = |_, _| false;
    assert_eq!(
        script(&summing_at(2, 1), 3, never),
        "kick 0, kick 1, drain 0, done 0, kick 2, drain 1, done 1, drain 2, done 2, complete"
    );
    assert_eq!(
        script(&summing_at(1, 1), 3, never),
        "kick 0, drain 0, done 0, kick 1, drain 1, done 1, kick 2, drain 2, done 2, complete"
    );
    let mut order = Order::new(summing_at(1, 4));
    order.feed();
    assert_eq!(std::iter::from_fn(|| order.step()).last(), Some(Step::Publish { item: 0, is_done: true }));
    let mut order = Order::new(summing_at(1, 1));
    order.feed();
    assert_eq!(std::iter::from_fn(|| order.step()).last(), Some(Step::Kick { item: 0 }), "it stays under way");
}

#[test]
fn a_failure_is_told_before_anything_is_kicked_on_top_of_it() {
    let fails = |item, stage: StageId| item == 1 && stage.index() == 0;
    assert_eq!(
        script(&summing_at(3, 1), 3, fails),
        "kick 0, kick 1, drain 0, done 0, drain 1, failed 1, kick 2, drain 2, done 2"
    );
}

#[test]
fn behind_a_failure_no_payload_of_the_item_runs() {
    for plan in ways() {
        for failing in plan.stages().stage_ids() {
            let steps = run(&plan, 3, |item, stage| item == 1 && stage == failing).steps;
            let ran = |of: u64| -> Vec<StageId> {
                let stage = |step: &Step| match *step {
                    Step::Run { stage, item, .. } if item == of => Some(stage),
                    _ => None,
                };
                steps.iter().filter_map(stage).collect()
            };
            let all: Vec<StageId> = plan.stages().stage_ids().collect();
            assert_eq!(ran(1), all[..=failing.index()], "{plan}");
            assert_eq!((ran(0), ran(2)), (all.clone(), all), "{plan}: the others' run");
        }
    }
}

#[test]
fn oldest_first() {
    with_every_fault(|_, ran, _| {
        assert!(items(&ran.steps, |step| matches!(step, Step::Drain { .. })).is_sorted());
        assert!(items(&ran.steps, |step| matches!(step, Step::Publish { .. })).is_sorted());
    });
}

#[test]
fn each_kick_is_drained_exactly_once() {
    with_every_fault(|_, ran, _| {
        let kicked = items(&ran.steps, |step| matches!(step, Step::Kick { .. }));
        assert_eq!(kicked, [0, 1, 2, 3, 4, 5]);
        assert_eq!(kicked, items(&ran.steps, |step| matches!(step, Step::Drain { .. })));
    });
}

#[test]
fn each_item_is_published_exactly_once_on_every_way_out() {
    with_every_fault(|_, ran, failing| {
        let published: Vec<(u64, bool)> = ran
            .steps
            .iter()
            .filter_map(|step| match step {
                Step::Publish { item, is_done } => Some((*item, *is_done)),
                _ => None,
            })
            .collect();
        let wanted: Vec<(u64, bool)> = (0..6).map(|item| (item, !failing.contains(&item))).collect();
        assert_eq!(published, wanted);
    });
}

#[test]
fn a_slot_is_released_even_if_dispatch_failed() {
    with_every_fault(|plan, ran, _| {
        let report = ran.checks.report();
        assert!(report.is_clean(), "{plan}: {report}");
    });
}

#[test]
fn every_wait_has_a_live_record_on_its_declared_stream_whatever_failed() {
    // `run` puts every step before `Checks`; here, that there were waits to look at, and as many as without a fault.
    with_every_fault(|plan, ran, _| {
        let waits = |steps: &[Step]| steps.iter().filter(|step| matches!(step, Step::Wait { .. })).count();
        assert_eq!(waits(&ran.steps), waits(&run(plan, 6, |_, _| false).steps));
    });
}

#[test]
fn completion_is_claimed_only_on_success() {
    for plan in ways() {
        assert_eq!(run(&plan, 6, |_, _| false).steps.last(), Some(&Step::Complete));
    }
    with_every_fault(|_, ran, _| assert!(!ran.steps.contains(&Step::Complete)));
}

#[test]
fn a_buffer_is_acquired_behind_its_waits_and_released_behind_its_records() {
    let plan = summing_at(2, 1);
    let (work, steps) = (StageId(1), run(&plan, 3, |_, _| false).steps);
    let of_second: Vec<&Step> = steps.iter().filter(|step| step.item() == Some(1)).collect();
    let begin = of_second.iter().position(|step| matches!(step, Step::Acquire(of) if of.stage == work)).unwrap();
    assert!(matches!(of_second[begin - 1], Step::Wait { record: 1, .. }), "the wait for what was loaded");
    let run_at = of_second.iter().position(|step| matches!(step, Step::Run { stage, .. } if *stage == work)).unwrap();
    assert!(matches!(of_second[run_at + 1], Step::Record { item: 1, .. }), "recorded right behind the payload");
    assert!(matches!(of_second[run_at + 2], Step::Release(of) if of.stage == work));
}

// -------------------------------------------------------------------------------------------------- what is refused

#[test]
fn no_drain_copy_lies_behind_the_next_kicks_wait() {
    let wanted = StagesError::DrainBehindGate { stage: "copy", edge: "tail known" };
    let mut draft = gated("compute");
    draft.edges[0].kind = StreamOrder;
    assert_eq!(Stages::check(draft).err(), Some(wanted));
}

#[test]
fn declarations_are_refused_by_name() {
    let unordered = |pool, before, after, items, depth| StagesError::NotOrdered { pool, before, after, items, depth };
    type Edit = fn(&mut Draft);
    fn without(draft: &mut Draft, edge: usize) {
        draft.edges.remove(edge);
    }
    let cases: &[(Edit, StagesError)] = &[
        (|draft| draft.depth_max = 0, StagesError::Depth(0)),
        (|draft| draft.depth_max = 9, StagesError::Depth(9)),
        (|draft| draft.drain.clear(), StagesError::NoWayOut),
        (|draft| draft.drain[0].stream = "copy", StagesError::NoWayOut),
        (|draft| draft.stages[0].stream = "copper", StagesError::Unknown { what: "stream", name: "copper" }),
        (|draft| draft.edges[0].to = "wort", StagesError::Unknown { what: "stage", name: "wort" }),
        (|draft| draft.edges[0].kind = AliasOf("sum"), StagesError::Unknown { what: "edge", name: "sum" }),
        (|draft| draft.stages[0].uses[0].0 = "stage", StagesError::Unknown { what: "pool", name: "stage" }),
        (|draft| draft.streams.push(HOST), StagesError::Twice(HOST)),
        (|draft| draft.edges[1].name = "loaded", StagesError::Twice("loaded")),
        (
            |draft| draft.stages[0].uses.push(("staging", Reads)),
            StagesError::UsedTwice { stage: "load", pool: "staging" },
        ),
        (|draft| draft.pools[0].count = Count::Fixed(0), StagesError::NoBuffers("staging")),
        (|draft| draft.pools[0].bytes = Bytes(6), StagesError::NoBuffers("staging")),
        (|draft| draft.stages[0].uses[0].1 = Reads, StagesError::NeverWritten("staging")),
        (|draft| draft.pools[1].count = Count::Fixed(2), StagesError::CarriedByMany("sums")),
        (|draft| without(draft, 0), StagesError::NoReadyEdge("staging")),
        (|draft| without(draft, 1), StagesError::NoConsumedEdge("staging")),
        (|draft| without(draft, 2), StagesError::NoConsumedEdge("sums")),
        (|draft| draft.edges[0].guards = "out", StagesError::NoUser { edge: "loaded", stage: "load" }),
        (|draft| draft.edges[2].kind = Event, StagesError::OneStream("summed")),
        (|draft| draft.edges[0].kind = StreamOrder, StagesError::TwoStreams("loaded")),
        (|draft| draft.edges[0].kind = HostRule, StagesError::NotTheHosts("loaded")),
        (|draft| draft.edges[1].kind = Generation, StagesError::NotTheHosts("staging read")),
        // One buffer for several items, and nothing but the drain of an item that is still under way.
        (|draft| draft.edges[1].kind = HostRule, unordered("staging", "work", "load", 1, 2)),
        (|draft| draft.pools[2].count = Count::Fixed(1), unordered("out", "collect", "work", 1, 2)),
        (|draft| draft.edges[0].kind = AliasOf("worked"), unordered("staging", "load", "work", 0, 1)),
        // As many staging buffers as slots: the drain does what the event was for.
        (|draft| draft.pools[0].count = Count::PerDepth, StagesError::NotNeeded("staging read")),
        (
            |draft| draft.edges.push(edge("again", "work", "work", "sums", AliasOf("loaded"))),
            StagesError::NoAlias { edge: "again", of: "loaded" },
        ),
    ];
    for (edit, wanted) in cases {
        let mut draft = summing();
        edit(&mut draft);
        assert_eq!(Stages::check(draft).err().as_ref(), Some(wanted), "{wanted}");
    }
}

/// No drain waits until a trace is filed, and its buffer is used again by the seventh item only: a run that is long enough
/// for the other pools does not show it.
#[test]
fn the_proof_is_as_long_as_the_largest_pool_asks_for() {
    let filed = |kind| {
        let mut draft = summing();
        draft.streams.push("side");
        draft.stages[1].uses.push(("trace", Writes));
        draft.stages.push(stage("file", "side", &[("trace", Reads)]));
        draft.pools.push(pool("trace", Count::Fixed(6), Memory::Device));
        draft.edges.push(edge("traced", "work", "file", "trace", Event));
        draft.edges.push(edge("filed", "file", "work", "trace", kind));
        Stages::check(Draft { depth_max: 2, ..draft }).err()
    };
    let wanted = StagesError::NotOrdered { pool: "trace", before: "file", after: "work", items: 6, depth: 1 };
    assert_eq!((filed(HostRule), filed(Event)), (Some(wanted.clone()), Some(wanted)));
}

/// Two stages that only read a buffer may do so in any order, or at once.
#[test]
fn who_only_reads_waits_for_no_other_reader() {
    let mut draft = summing();
    draft.streams.push("side");
    draft.stages.push(stage("look", "side", &[("staging", Reads), ("note", Writes)]));
    draft.drain[0].uses.push(("note", Reads));
    draft.pools.push(pool("note", Count::PerDepth, Memory::Readback));
    draft.edges.extend([
        edge("to be seen", "load", "look", "staging", Event),
        edge("seen", "look", "load", "staging", Event),
        edge("noted", "look", "collect", "note", Event),
        edge("note free", "collect", "look", "note", HostRule),
    ]);
    checked(draft);
}

#[test]
fn an_order_that_is_missing_says_between_which_items() {
    let missing =
        |items| StagesError::NotOrdered { pool: "out", before: "collect", after: "work", items, depth: 2 }.to_string();
    assert!(missing(0).ends_with("waiting for 'collect' of the same item"), "{}", missing(0));
    assert!(missing(3).ends_with("waiting for 'collect' of 3 items before"), "{}", missing(3));
}

#[test]
fn a_host_that_waits_for_its_own_later_step_is_a_cycle() {
    let mut draft = gated("drain");
    draft.stages[0].stream = HOST;
    draft.edges[5].kind = HostRule;
    assert_eq!(Stages::check(draft).err(), Some(StagesError::Cycle("fill")));
}

// -------------------------------------------------------------------------------------------------- select and report

#[test]
fn the_way_is_selected_from_facts_and_explained() {
    let (summing, gated) = (checked(summing()), checked(gated("drain")));
    let gates = Facts { depth: 2, sharers: 1, has_gates: true };
    let explained = [
        Plan::select(&summing, Facts::depth(3)),
        Plan::select(&summing, Facts::depth(9)),
        Plan::select(&summing, Facts::depth(0)),
        Plan::select(&summing, Facts { depth: 1, sharers: 4, has_gates: false }),
        Plan::select(&gated, gates),
        Plan::select(&gated, Facts { has_gates: false, ..gates }),
    ];
    expect_test::expect![[r#"
        pipelined, depth 3: a slot is drained only when it is about to be filled again
        pipelined, depth 3: a slot is drained only when it is about to be filled again
        each item is drained before the next is kicked: there is one slot
        each item is drained right after it was kicked: there is one slot, and 4 share the device
        pipelined, depth 2: a slot is drained only when it is about to be filled again
        each item is drained before the next is kicked: this device cannot wait for 'tail known', which the host raises"#]]
    .assert_eq(&explained.map(|plan| plan.to_string()).join("\n"));
}

#[test]
fn the_footprint_is_the_pools_of_the_device_at_that_depth() {
    let bytes = |depth| summing_at(depth, 1).footprint();
    assert_eq!([1, 2, 3].map(bytes), [3, 4, 5].map(|buffers| Bytes(64 * buffers)));
    assert_eq!(
        Plan::select(&checked(gated("drain")), Facts::depth(1)).footprint(),
        Bytes(128),
        "the host keeps its own"
    );
}

#[test]
fn the_report_knows_what_a_depth_does_not_need() {
    let report = |depth: usize, items: u64| run(&summing_at(depth, 1), items, |_, _| false).checks.report();
    for (depth, items) in [(1, 4), (2, 4), (3, 4), (3, 1), (3, 0)] {
        assert!(report(depth, items).is_clean(), "depth {depth}, {items} items: {}", report(depth, items));
    }
    assert_eq!(report(1, 4).not_needed_here, ["staging read"]);
    assert_eq!(report(2, 4).to_string(), "every edge was used");
}

#[test]
fn the_report_names_edges_that_were_recorded_in_vain_and_items_that_never_left() {
    let plan = summing_at(2, 1);
    let steps = run(&plan, 4, |_, _| false).steps;
    let replayed = |keep: &dyn Fn(&Step) -> bool| {
        let mut checks = Checks::new(plan.clone());
        for step in steps.iter().filter(|step| keep(step)) {
            // What is left out is a violation as well: here only the books count.
            let _ = checks.step(step);
        }
        checks.report()
    };
    let (loaded, out) = (EdgeId(0), PoolId(2));
    let report = replayed(&|step| !matches!(step, Step::Wait { edge, .. } if *edge == loaded));
    assert_eq!(report.never_waited, ["loaded"]);
    let report =
        replayed(&|step| !matches!(step, Step::Wait { edge, .. } | Step::Record { edge, .. } if *edge == loaded));
    assert_eq!(report.never_used, ["loaded"]);
    let report = replayed(&|step| !matches!(step, Step::Release(of) if of.pool == out && of.item == 3));
    assert_eq!((report.held.as_slice(), report.is_clean()), (&["out"][..], false));
    assert_eq!(replayed(&|step| !matches!(step, Step::Publish { item: 3, .. })).under_way, 1);
}

#[test]
fn what_is_done_out_of_turn_is_noticed() {
    let (kick, drain) = (|item| Step::Kick { item }, |item| Step::Drain { item });
    let publish = |item| Step::Publish { item, is_done: true };
    let looked_at = |before: &[Step], step: Step| {
        let mut checks = Checks::new(summing_at(3, 1));
        assert!(before.iter().all(|step| checks.step(step).is_ok()), "{before:?}");
        checks.step(&step)
    };
    let out_of_turn = |what, item, turn| Err(Violation::OutOfTurn { what, item, turn });
    assert_eq!(looked_at(&[kick(0)], kick(2)), out_of_turn("kicked", 2, 1));
    let both_kicked = [kick(0), kick(1)];
    assert_eq!(looked_at(&both_kicked, drain(1)), out_of_turn("drained", 1, 0));
    assert_eq!(looked_at(&both_kicked, publish(0)), out_of_turn("published", 0, 0), "it was never drained");
    let both_drained = [kick(0), kick(1), drain(0), drain(1)];
    assert_eq!(looked_at(&both_drained, drain(2)), out_of_turn("drained", 2, 2), "it was never kicked");
    assert_eq!(looked_at(&both_drained, publish(1)), out_of_turn("published", 1, 0));
}

#[test]
fn that_an_item_which_failed_is_done_is_noticed_as_a_false_claim() {
    let plan = summing_at(2, 1);
    for has_failed in [false, true] {
        let mut checks = Checks::new(plan.clone());
        for step in run(&plan, 2, |_, _| false).steps {
            if has_failed && matches!(step, Step::Publish { item: 0, .. }) {
                checks.failed(0);
            }
            let is_false = has_failed && matches!(step, Step::Publish { item: 0, .. } | Step::Complete);
            let looked_at = checks.step(&step);
            assert_eq!(matches!(looked_at, Err(Violation::FalseClaim)), is_false, "{step:?}");
        }
    }
}

#[test]
fn a_step_on_another_stream_than_declared_is_noticed() {
    let plan = summing_at(2, 1);
    let elsewhere = |own: StreamId| StreamId(if own.index() == 1 { 2 } else { 1 });
    let steps = run(&plan, 3, |_, _| false).steps;
    for (at, step) in steps.iter().enumerate() {
        let moved = match *step {
            Step::Wait { edge, record, item, stream } => Step::Wait { edge, record, item, stream: elsewhere(stream) },
            Step::Run { stage, item, stream } => Step::Run { stage, item, stream: elsewhere(stream) },
            Step::Record { edge, item, stream } => Step::Record { edge, item, stream: elsewhere(stream) },
            _ => continue,
        };
        let mut checks = Checks::new(plan.clone());
        assert!(steps[..at].iter().all(|step| checks.step(step).is_ok()));
        assert!(matches!(checks.step(&moved), Err(Violation::WrongStream { .. })), "{moved:?}");
    }
}
