//! Levels made on a GPU: the store has the bytes that it has without one, whatever the device does meanwhile.

use std::io::Cursor;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use plimsoll::array::sink::Memory;
use plimsoll::array::{
    ArrayError, ArrayOptions, ArraySpec, ArrayWriter, DataType, Layout, Levels, Reduction, StageChoice, write_array,
};
use plimsoll::{Device, Event, Orchestrator, What};

use crate::{cases, devices};

fn on(levels_on: StageChoice) -> ArrayOptions {
    let others = StageChoice::Cpu;
    ArrayOptions { levels_on, scatter_on: others, shuffle_on: others, ..ArrayOptions::default() }
}

fn written(orchestrator: &Orchestrator, spec: &ArraySpec, bytes: &[u8], levels_on: StageChoice) -> Arc<Memory> {
    let store = Arc::new(Memory::default());
    let (layout, input) = (Layout::new(spec).unwrap(), Cursor::new(bytes.to_vec()));
    write_array(orchestrator, layout, store.clone(), input, &on(levels_on)).unwrap();
    store
}

/// An orchestrator, and the rungs on which tasks were begun.
fn heard(devices: Vec<Arc<dyn Device>>) -> (Arc<Orchestrator>, Arc<Mutex<Vec<&'static str>>>) {
    let rungs = Arc::new(Mutex::new(Vec::new()));
    let begun = Arc::clone(&rungs);
    let listener = move |events: &[Event]| {
        for event in events {
            if let What::Started { rung, .. } = event.what {
                begun.lock().unwrap().push(rung);
            }
        }
    };
    (Arc::new(Orchestrator::builder().devices(devices).listener(listener).build()), rungs)
}

/// Types and reductions in shapes of odd sizes, halved along different dimensions.
fn specs() -> Vec<(ArraySpec, u64)> {
    let axes = |names: &[&str]| Some(names.iter().map(|name| name.parse().unwrap()).collect());
    let frames = |data_type, reduction| ArraySpec { data_type, reduction, ..cases::frames() };
    let mut specs = vec![
        (frames(DataType::U16, Reduction::Mean), 11),
        (frames(DataType::U8, Reduction::Mean), 5),
        (frames(DataType::I8, Reduction::SecondHighest), 3),
        (frames(DataType::I16, Reduction::Median), 4),
        (frames(DataType::U32, Reduction::Max), 1),
        (frames(DataType::I32, Reduction::Mean), 7),
        (frames(DataType::F16, Reduction::Min), 4),
        (frames(DataType::F32, Reduction::Median), 4),
    ];
    let along_first = ArraySpec { axes: axes(&["z", "y", "x"]), ..frames(DataType::U8, Reduction::Mean) };
    specs.push((along_first, 21));
    let five = ArraySpec {
        levels: Levels::Count(3),
        ..ArraySpec::new(vec![6, 3, 5, 9, 10], DataType::U8, vec![1, 1, 4, 4, 8])
    };
    specs.push((five, 6));
    specs
}

#[test]
fn the_store_has_the_same_bytes_with_levels_of_a_gpu() {
    for (spec, steps) in specs() {
        let bytes = cases::elements(&spec, steps);
        let expected = written(&cases::orchestrator(2), &spec, &bytes, StageChoice::Cpu);
        for choice in [StageChoice::Auto, StageChoice::Gpu, StageChoice::Cpu] {
            let (orchestrator, rungs) = heard(devices::machine());
            let store = written(&orchestrator, &spec, &bytes, choice);
            let name = format!("{} {} {choice:?}", spec.data_type, spec.reduction);
            assert!(*store.objects() == *expected.objects(), "{name}");
            drop(orchestrator);
            let has_used = rungs.lock().unwrap().iter().any(|rung| rung.starts_with("gpu"));
            assert!(has_used || choice != StageChoice::Gpu, "{name}: it was to be made on the GPU");
            assert!(!has_used || choice != StageChoice::Cpu, "{name}: it was not to be made on the GPU");
        }
    }
}

#[test]
fn what_a_gpu_cannot_make_is_made_on_the_cpu_or_is_an_error_before_the_store_is_touched() {
    let no_gpu = cases::orchestrator(2);
    let floats = ArraySpec { data_type: DataType::F32, ..cases::frames() };
    let refused = |orchestrator: &Orchestrator, spec: &ArraySpec| {
        let store = Arc::new(Memory::default());
        let layout = Layout::new(spec).unwrap();
        let ended = write_array(orchestrator, layout, store.clone(), Cursor::new(Vec::new()), &on(StageChoice::Gpu));
        assert!(store.objects().is_empty());
        ended.unwrap_err()
    };
    assert!(matches!(refused(&no_gpu, &cases::frames()), ArrayError::NoGpu { stage: "levels" }));
    let with_gpu = Orchestrator::builder().devices(devices::machine()).build();
    assert!(matches!(refused(&with_gpu, &floats), ArrayError::NotForGpu { .. }));
    let bytes = cases::elements(&floats, 5);
    let expected = written(&no_gpu, &floats, &bytes, StageChoice::Cpu);
    assert!(*written(&with_gpu, &floats, &bytes, StageChoice::Auto).objects() == *expected.objects());
    let one = ArraySpec { levels: Levels::Count(1), ..cases::frames() };
    assert!(!on(StageChoice::Auto).wants_gpu(&Layout::new(&one).unwrap()));
    assert!(!on(StageChoice::Auto).wants_gpu(&Layout::new(&floats).unwrap()));
    assert!(on(StageChoice::Auto).wants_gpu(&Layout::new(&cases::frames()).unwrap()));
}

/// A step of it is a slab.
fn large() -> ArraySpec {
    ArraySpec {
        levels: Levels::Count(2),
        codec: "none".parse().unwrap(),
        ..ArraySpec::new(vec![0, 4_100, 8_191], DataType::U8, vec![1, 1_024, 1_024])
    }
}

#[test]
fn a_device_lost_in_the_middle_of_a_stream_changes_no_byte() {
    let (spec, steps) = (large(), 6);
    let row: Vec<u8> = (0..8_191_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let frame = |at: usize| {
        let mut frame = row.repeat(4_100);
        frame.rotate_left(at * 977);
        frame
    };
    let write = |orchestrator: Arc<Orchestrator>, choice, between: &dyn Fn(usize)| {
        let store = Arc::new(Memory::default());
        let layout = Layout::new(&spec).unwrap();
        let mut writer = ArrayWriter::new(orchestrator, layout, store.clone(), on(choice)).unwrap();
        for at in 0..steps {
            writer.append(&frame(at)).unwrap();
            between(at);
        }
        assert_eq!(writer.close().unwrap().steps, steps as u64);
        store
    };
    let expected = write(cases::orchestrator(2), StageChoice::Cpu, &|_| {});
    let gpu = devices::lavapipe();
    let (orchestrator, rungs) = heard(vec![gpu.clone() as Arc<dyn Device>, devices::cpu(2)]);
    let losses = AtomicUsize::new(0);
    let store = write(orchestrator, StageChoice::Gpu, &|at| {
        if at == 2 || at == 4 {
            gpu.lose();
            losses.fetch_add(1, Ordering::Relaxed);
        }
    });
    assert_eq!(losses.load(Ordering::Relaxed), 2);
    assert!(rungs.lock().unwrap().contains(&"gpu-3"), "it began on the GPU");
    assert!(*store.objects() == *expected.objects(), "bytes have changed");
}
