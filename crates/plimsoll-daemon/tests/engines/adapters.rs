//! Every adapter: down by steps that the driver confirms, and back; every adapter with every misbehaviour: the error
//! says which, and nothing hangs.

use std::sync::Arc;
use std::time::{Duration, Instant};

use plimsoll_daemon::engines::discover::discover;
use plimsoll_daemon::engines::listeners::Processes;
use plimsoll_daemon::engines::{
    CommandStep, CommandSteps, Descending, Descent, Engine, EngineError, EngineKind, Http, Limits, Measures,
};

use crate::fakes::{Fake, Fault, MIB};

const HELD: u64 = 900 * MIB;
const BASE: u64 = 100 * MIB;

fn limits() -> Limits {
    let half = Duration::from_millis(500);
    Limits { connect: half, ask: half, step: half }
}

fn engine_of(fake: &Fake, kind: EngineKind) -> Engine {
    let http = Http::new(kind.name(), fake.server.address, limits(), None);
    Engine::listening(kind, http).unwrap()
}

fn to(keep: u64) -> Descending {
    let (settle, quiet) = (Duration::from_millis(700), Duration::from_millis(150));
    Descending { settle, quiet, ..Descending::to(keep, Duration::from_secs(20)) }
}

fn descend(engine: &Engine, fake: &Arc<Fake>, to: Descending, measures: &mut Measures) -> Descent {
    let driver = Arc::clone(fake);
    engine.descend(&move |_: &Engine| Some(driver.held()), to, measures)
}

fn started(kind: EngineKind) -> (Arc<Fake>, Engine) {
    let fake = Arc::new(Fake::start(kind));
    let engine = engine_of(&fake, kind);
    (fake, engine)
}

/// The steps of each kind with what the driver shows after each.
fn steps_of(kind: EngineKind) -> Vec<(&'static str, u64)> {
    match kind {
        EngineKind::Ollama => vec![("small", 700 * MIB), ("big", BASE)],
        EngineKind::LlamaCpp | EngineKind::LlamaSwap => vec![("big", 300 * MIB), ("small", BASE)],
        EngineKind::Comfyui => vec![("models", 200 * MIB), ("models and cached results", BASE)],
        EngineKind::Vllm => vec![("sleep 1", BASE)],
        EngineKind::Sglang => vec![("kv_cache", 600 * MIB), ("weights", BASE)],
        EngineKind::Automatic1111 => vec![("checkpoint", BASE)],
        EngineKind::Command => Vec::new(),
    }
}

#[test]
fn every_engine_goes_down_by_steps_that_the_driver_confirms() {
    for kind in EngineKind::LISTENING {
        let (fake, engine) = started(kind);
        let mut measures = Measures::default();
        let descent = descend(&engine, &fake, to(0), &mut measures);
        assert_eq!((descent.before, descent.after), (HELD, BASE), "{kind}: {descent:?}");
        assert_eq!(descent.problems, [], "{kind}");
        assert!(descent.at_the_bottom, "{kind}");
        let mut held = HELD;
        let expected: Vec<(String, u64)> = steps_of(kind)
            .into_iter()
            .map(|(step, after)| {
                let fell = held - after;
                held = after;
                (step.to_owned(), fell)
            })
            .collect();
        let taken: Vec<(String, u64)> = descent.taken.iter().map(|one| (one.step.clone(), one.bytes)).collect();
        assert_eq!(taken, expected, "{kind}");
        for (step, bytes) in expected {
            assert_eq!(measures.of(kind.name(), &step).map(|one| one.bytes), Some(bytes), "{kind}: {step}");
        }
    }
}

#[test]
fn no_more_steps_are_taken_than_are_needed() {
    for kind in EngineKind::LISTENING {
        let (fake, engine) = started(kind);
        let after_one = steps_of(kind)[0].1;
        let descent = descend(&engine, &fake, to(after_one), &mut Measures::default());
        assert_eq!(descent.after, after_one, "{kind}: {descent:?}");
        assert_eq!(descent.taken.len(), 1, "{kind}");
        let again = descend(&engine, &fake, to(after_one), &mut Measures::default());
        assert_eq!(again.taken, [], "{kind}: it is low enough already");
    }
}

#[test]
fn what_must_be_called_back_is_called_back() {
    for kind in EngineKind::LISTENING {
        let (fake, engine) = started(kind);
        descend(&engine, &fake, to(0), &mut Measures::default());
        engine.adapter.restore().unwrap();
        engine.adapter.restore().unwrap();
        let comes_back = matches!(kind, EngineKind::Vllm | EngineKind::Sglang | EngineKind::Automatic1111);
        assert_eq!(fake.held(), if comes_back { HELD } else { BASE }, "{kind}");
        assert!(!engine.adapter.survey().unwrap().asleep, "{kind}");
        assert_eq!(fake.state().crashed, None, "{kind}");
        let again = descend(&engine, &fake, to(0), &mut Measures::default());
        assert_eq!(again.after, BASE, "{kind}: {again:?}");
    }
}

#[test]
fn vllm_that_dropped_its_weights_loads_them_between_waking_its_parts() {
    let fake = Arc::new(Fake::start(EngineKind::Vllm));
    let engine = Engine::vllm_without_weights(Http::new("vllm", fake.server.address, limits(), None));
    descend(&engine, &fake, to(0), &mut Measures::default());
    engine.adapter.restore().unwrap();
    assert_eq!(fake.held(), HELD);
    let calls: Vec<String> = fake.state().log.iter().filter(|line| line.starts_with("POST")).cloned().collect();
    let begins = [
        "POST /sleep?level=2",
        "POST /wake_up?tags=weights",
        "POST /collective_rpc {\"method\":\"reload_weights\"}",
        "POST /wake_up?tags=kv_cache",
    ];
    assert_eq!(calls.len(), begins.len(), "{calls:?}");
    assert!(calls.iter().zip(begins).all(|(call, begin)| call.starts_with(begin)), "{calls:?}");
}

#[test]
fn measured_steps_become_the_rungs() {
    for kind in EngineKind::LISTENING {
        let (fake, engine) = started(kind);
        let mut measures = Measures::default();
        descend(&engine, &fake, to(0), &mut measures);
        let fresh = Fake::start(kind);
        let engine = engine_of(&fresh, kind);
        let survey = engine.adapter.survey().unwrap();
        let rungs = engine.ladder(HELD, &survey, &measures);
        let bytes: Vec<u64> = rungs.iter().map(|rung| rung.bytes).collect();
        let mut expected = vec![HELD];
        expected.extend(steps_of(kind).iter().map(|(_, after)| *after));
        assert_eq!(bytes, expected, "{kind}");
        assert!(
            rungs
                .iter()
                .skip(1)
                .all(|rung| rung.switch_ms > 0 || kind == EngineKind::Sglang || kind == EngineKind::Automatic1111),
            "{kind}: {rungs:?}"
        );
        assert!(rungs.windows(2).all(|pair| pair[0].quality > pair[1].quality), "{kind}: {rungs:?}");
    }
}

#[test]
fn a_busy_engine_is_left_alone_unless_it_is_forced() {
    for kind in EngineKind::LISTENING {
        let (fake, engine) = started(kind);
        fake.state().busy = 3;
        // Ollama does not tell, and waits by itself: only the gate's count makes it busy.
        let under_way = if kind == EngineKind::Ollama { 3 } else { 0 };
        let descent = descend(&engine, &fake, Descending { under_way, ..to(0) }, &mut Measures::default());
        assert_eq!(descent.problems, [EngineError::Busy { engine: kind.name().to_owned(), items: 3 }]);
        assert_eq!(fake.held(), HELD, "{kind}");
        if kind == EngineKind::Comfyui {
            continue; // Its worker reads the flag only when it is idle.
        }
        let forced = descend(&engine, &fake, Descending { forced: true, under_way, ..to(0) }, &mut Measures::default());
        let is_never_forced = kind == EngineKind::Sglang;
        assert_eq!(forced.after, if is_never_forced { HELD } else { BASE }, "{kind}: {forced:?}");
        assert_eq!(fake.state().crashed, None, "{kind}");
    }
}

#[test]
fn an_engine_that_cuts_requests_off_is_not_touched_while_nobody_knows_whether_it_works() {
    for kind in [EngineKind::LlamaSwap, EngineKind::LlamaCpp] {
        let (fake, engine) = started(kind);
        fake.state().has_no_slots = true;
        let descent = descend(&engine, &fake, to(0), &mut Measures::default());
        assert!(matches!(descent.problems[..], [EngineError::BusyUnknown { .. }]), "{kind}: {descent:?}");
        assert_eq!(fake.held(), HELD, "{kind}");
        let forced = descend(&engine, &fake, Descending { forced: true, ..to(0) }, &mut Measures::default());
        assert_eq!(forced.after, BASE, "{kind}: {forced:?}");
    }
}

/// Every fault, both when the engine is asked and when it is to take a step.
#[test]
fn every_engine_with_every_fault_is_told_apart_and_nothing_hangs() {
    let faults = [
        Fault::YesWithoutFreeing,
        Fault::HalfFreed,
        Fault::Slow(Duration::from_secs(3)),
        Fault::GoneInTheMiddle,
        Fault::WrongJson,
        Fault::NotJson,
        Fault::Redirect,
        Fault::Endless,
        Fault::Failing,
    ];
    std::thread::scope(|scope| {
        for kind in EngineKind::LISTENING {
            scope.spawn(move || {
                for fault in faults {
                    with_fault(kind, fault);
                }
            });
        }
    });
}

fn with_fault(kind: EngineKind, fault: Fault) {
    let (fake, engine) = started(kind);
    fake.state().on_step = Some(fault);
    let began = Instant::now();
    let descent = descend(&engine, &fake, to(0), &mut Measures::default());
    assert!(began.elapsed() < Duration::from_secs(10), "{kind} with {fault:?} took {:?}", began.elapsed());
    let told = descent.problems.first();
    // What only looks at the status of an answer cannot tell one 200 from another: the driver does.
    let reads_no_answer = !matches!(kind, EngineKind::Ollama | EngineKind::LlamaCpp);
    let as_expected = match fault {
        Fault::YesWithoutFreeing => matches!(told, Some(EngineError::NotFreed { .. })),
        Fault::HalfFreed => descent.after > BASE && descent.after < HELD,
        Fault::Slow(_) => matches!(told, Some(EngineError::TooSlow { .. })),
        Fault::GoneInTheMiddle => matches!(told, Some(EngineError::Gone { .. })),
        Fault::WrongJson | Fault::NotJson if reads_no_answer => matches!(told, Some(EngineError::NotFreed { .. })),
        Fault::WrongJson | Fault::NotJson => matches!(told, Some(EngineError::Shape { .. })),
        Fault::Redirect => matches!(told, Some(EngineError::Redirected { .. })),
        Fault::Endless => matches!(told, Some(EngineError::TooLarge { .. } | EngineError::TooSlow { .. })),
        Fault::Failing => matches!(told, Some(EngineError::Refused { status: 500, .. })),
    };
    assert!(as_expected, "{kind} with {fault:?}: {descent:?}");
    let named = descent.problems.iter().all(|problem| problem.to_string().contains(kind.name()));
    assert!(named, "{kind} with {fault:?}: {:?}", descent.problems);
    if fault == Fault::HalfFreed && kind == EngineKind::Ollama {
        assert!(matches!(told, Some(EngineError::FreedLess { .. })), "{descent:?}");
    }

    // When it is asked: nothing is known, nothing is done.
    let (fake, engine) = started(kind);
    if matches!(fault, Fault::YesWithoutFreeing | Fault::HalfFreed) {
        return;
    }
    fake.state().on_ask = Some(fault);
    let descent = descend(&engine, &fake, to(0), &mut Measures::default());
    assert_eq!(descent.after, HELD, "{kind} with {fault:?} when asked: {descent:?}");
    assert_eq!(descent.problems.len(), 1, "{kind} with {fault:?} when asked: {descent:?}");
}

#[test]
fn an_engine_that_is_not_there_and_a_driver_that_says_nothing_are_told() {
    for kind in EngineKind::LISTENING {
        let (fake, engine) = started(kind);
        fake.server.stop();
        while std::net::TcpStream::connect(fake.server.address).is_ok() {
            std::thread::sleep(Duration::from_millis(5));
        }
        let descent = descend(&engine, &fake, to(0), &mut Measures::default());
        assert!(matches!(descent.problems[..], [EngineError::NotThere { .. }]), "{kind}: {descent:?}");
        let blind = engine.descend(&|_: &Engine| None, to(0), &mut Measures::default());
        assert!(matches!(blind.problems[..], [EngineError::NoTruth { .. }]), "{kind}: {blind:?}");
    }
}

#[test]
fn an_engine_whose_memory_goes_late_is_waited_for_and_one_that_dies_has_given_all() {
    let (fake, engine) = started(EngineKind::Ollama);
    fake.state().frees_after = Duration::from_millis(400);
    let descent = descend(&engine, &fake, to(BASE), &mut Measures::default());
    assert_eq!((descent.after, descent.problems.len()), (BASE, 0), "{descent:?}");
    assert!(descent.taken.iter().all(|one| one.took >= Duration::from_millis(350)), "{descent:?}");
    let (fake, engine) = started(EngineKind::Vllm);
    let driver = Arc::clone(&fake);
    let dying = move |_: &Engine| {
        let asked = driver.state().log.iter().any(|line| line.contains("/sleep"));
        if asked {
            driver.state().crashed = Some("killed".to_owned());
        }
        Some(driver.held())
    };
    let descent = engine.descend(&dying, to(BASE), &mut Measures::default());
    assert_eq!(descent.after, 0, "{descent:?}");
}

#[test]
fn sglang_of_before_is_asked_the_way_it_knows() {
    let (fake, engine) = started(EngineKind::Sglang);
    fake.state().is_old = true;
    fake.state().busy = 2;
    let descent = descend(&engine, &fake, to(0), &mut Measures::default());
    assert!(matches!(descent.problems[..], [EngineError::Busy { .. }]), "{descent:?}");
    fake.state().busy = 0;
    assert_eq!(descend(&engine, &fake, to(0), &mut Measures::default()).after, BASE);
    // A daemon that starts again knows how deep it was, and calls back exactly that.
    let again = engine_of(&fake, EngineKind::Sglang);
    again.adapter.set_depth(engine.adapter.depth());
    again.adapter.restore().unwrap();
    assert_eq!((fake.held(), fake.state().crashed.clone()), (HELD, None));
}

#[test]
fn engines_are_found_where_they_listen_and_other_programs_are_not_taken_for_them() {
    let fakes: Vec<(EngineKind, Fake)> =
        EngineKind::LISTENING.into_iter().map(|kind| (kind, Fake::start(kind))).collect();
    let processes = Processes::default();
    // Every kind is tried on every port: each must recognise its own only.
    let ports: Vec<u16> = fakes.iter().map(|(_, fake)| fake.server.address.port()).collect();
    let tries: Vec<(EngineKind, u16)> =
        ports.iter().flat_map(|port| EngineKind::LISTENING.map(|kind| (kind, *port))).collect();
    let found: Vec<(EngineKind, u16)> = discover(&tries, &processes, limits())
        .iter()
        .map(|engine| (engine.kind, engine.address.unwrap().port()))
        .collect();
    let expected: Vec<(EngineKind, u16)> =
        fakes.iter().map(|(kind, fake)| (*kind, fake.server.address.port())).collect();
    assert_eq!(found, expected);
}

#[test]
fn commands_of_the_owner_are_an_engine_too() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("held");
    std::fs::write(&file, "800").unwrap();
    let sh = |script: String| vec!["sh".to_owned(), "-c".to_owned(), script];
    let set = |bytes: u64| sh(format!("echo {bytes} > {}", file.display()));
    let commands = CommandSteps {
        probe: sh(format!("echo \"{{\\\"held\\\": $(cat {})}}\"", file.display())),
        steps: vec![
            CommandStep { name: "half".to_owned(), down: set(400), up: set(800) },
            CommandStep { name: "all".to_owned(), down: set(0), up: set(400) },
        ],
        seconds_max: 5.0,
    };
    let engine = Engine::of_commands("mine", commands.clone());
    let driver = |_: &Engine| std::fs::read_to_string(&file).ok()?.trim().parse().ok();
    assert_eq!(engine.adapter.survey().unwrap().held, Some(800));
    let mut measures = Measures::default();
    let descent = engine.descend(&driver, to(500), &mut measures);
    assert_eq!((descent.after, descent.problems.len()), (400, 0), "{descent:?}");
    let descent = engine.descend(&driver, to(0), &mut measures);
    assert_eq!((descent.after, descent.at_the_bottom), (0, true), "{descent:?}");
    engine.adapter.restore().unwrap();
    assert_eq!(driver(&engine), Some(800));

    let wrong = |probe: &str, down: &str| CommandSteps {
        probe: sh(probe.to_owned()),
        steps: vec![CommandStep { name: "x".to_owned(), down: sh(down.to_owned()), up: Vec::new() }],
        seconds_max: 0.3,
    };
    for (probe, down, says) in [
        ("echo 12", ":", "held"),
        ("echo '{\"hold\": 1}'", ":", "hold"),
        ("exit 1", ":", "failed"),
        ("sleep 60", ":", "stopped"),
        ("echo '{}'", "sleep 60", "stopped"),
        ("echo '{}'", "exit 9", "9"),
        ("echo '{}'", ":", "still shows"),
    ] {
        let engine = Engine::of_commands("mine", wrong(probe, down));
        let began = Instant::now();
        let descent = engine.descend(&|_: &Engine| Some(5), to(0), &mut Measures::default());
        let said: String = descent.problems.iter().map(ToString::to_string).collect();
        assert!(said.contains(says) && said.contains("mine"), "{probe} / {down}: {said}");
        assert!(began.elapsed() < Duration::from_secs(5));
    }
    let busy = Engine::of_commands("mine", wrong("echo '{\"busy\": true}'", ":"));
    let descent = busy.descend(&|_: &Engine| Some(5), to(0), &mut Measures::default());
    assert!(matches!(descent.problems[..], [EngineError::Busy { .. }]), "{descent:?}");
}
