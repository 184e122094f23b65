//! Cutting into chunks and shuffling, on lavapipe and as twins: whichever stages a GPU does, the store has the same bytes.

use std::io::Cursor;
use std::sync::Arc;

use plimsoll::array::sink::Memory;
use plimsoll::array::{
    ArrayError, ArrayOptions, ArraySpec, ArrayWriter, DataType, Layout, Levels, Reduction, StageChoice, write_array,
};
use plimsoll::{Backend, Bytes, Device, Orchestrator};
use plimsoll_arrays::codec::ChunkCodec;
use plimsoll_arrays::copy::{Place, copy_box};
use plimsoll_arrays::work::DeviceStages;
use plimsoll_arrays::work::kernels::buffer_bytes;
use plimsoll_arrays::work::scatter::ScatterStep;
use plimsoll_arrays::work::shuffle::ShuffleStep;
use plimsoll_arrays::{Fill, Grid};
use plimsoll_runtime::cpu::CpuDevice;
use plimsoll_testkit::virtual_device::{ScriptedFault, VirtualDevice, VirtualDeviceBuilder};

use crate::cases;
#[cfg(feature = "gpu")]
use crate::devices;

fn mixed(bytes: usize) -> Vec<u8> {
    (0..bytes as u64).map(|at| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}

/// Launches something from one buffer into another, behind eight bytes that are to stay.
fn launched(
    bytes: &[u8],
    out: usize,
    backend: &mut dyn Backend,
    launch: impl FnOnce(&plimsoll::Buffer, &plimsoll::Buffer, &mut dyn Backend),
) -> Vec<u8> {
    let from = backend.allocate(buffer_bytes(bytes.len() as u64)).unwrap();
    let to = backend.allocate(buffer_bytes(8 + out as u64)).unwrap();
    let mut words = bytes.to_vec();
    words.resize(from.bytes().0 as usize, 0);
    backend.write(&from, Bytes::ZERO, &words).unwrap();
    backend.write(&to, Bytes::ZERO, &vec![0xaa; to.bytes().0 as usize]).unwrap();
    launch(&from, &to, backend);
    let mut read = vec![0; to.bytes().0 as usize];
    backend.read(&to, Bytes::ZERO, &mut read).unwrap();
    assert_eq!(read[..8], [0xaa; 8], "what lies before stays");
    assert!(read[8 + out..].iter().all(|byte| *byte == 0), "the last word is filled up with zeros");
    read[8..8 + out].to_vec()
}

/// Chunks by plain copies.
fn cut(grid: &Grid, steps: u64, fill: &[u8], elements: &[u8]) -> Vec<u8> {
    let mut shape = grid.shape.clone();
    shape[0] = steps;
    let counts: Vec<u64> = shape.iter().zip(&grid.chunk).map(|(size, chunk)| size.div_ceil(*chunk)).collect();
    let mut out = Vec::new();
    for number in 0..counts.iter().product::<u64>() {
        let (mut rest, mut start) = (number, vec![0; shape.len()]);
        for at in (0..shape.len()).rev() {
            start[at] = rest % counts[at] * grid.chunk[at];
            rest /= counts[at];
        }
        let extent: Vec<u64> = (0..shape.len()).map(|at| (shape[at] - start[at]).min(grid.chunk[at])).collect();
        let mut chunk = fill.repeat(grid.chunk_elements());
        let (from, into) =
            (Place { shape: &shape, start: &start }, Place { shape: &grid.chunk, start: &vec![0; shape.len()] });
        copy_box(elements, from, &mut chunk, into, &extent, grid.element_bytes());
        out.extend(chunk);
    }
    out
}

/// Shape, chunk, and how many steps come.
const CUTS: [(&[u64], &[u64], u64); 7] = [
    (&[0], &[5], 12),
    (&[0, 7], &[1, 3], 4),
    (&[0, 50, 37], &[2, 16, 16], 4),
    (&[0, 50, 37], &[4, 16, 16], 3),
    (&[0, 3, 10, 11], &[1, 2, 4, 8], 2),
    (&[0, 2, 3, 5, 7], &[2, 1, 2, 3, 4], 5),
    (&[0, 64, 64], &[1, 32, 64], 1),
];

fn check_cuts(backend: &mut dyn Backend) {
    for data_type in [DataType::U8, DataType::I16, DataType::F32, DataType::U64, DataType::F64] {
        for (shape, chunk, steps) in CUTS {
            let grid = Grid::new(shape.to_vec(), chunk.to_vec(), None, data_type).unwrap();
            let fill: Vec<u8> = (1..=data_type.bytes() as u8).collect();
            let elements = mixed((steps * grid.step_bytes()) as usize);
            let expected = cut(&grid, steps, &fill, &elements);
            let step = ScatterStep { grid: &grid, steps, fill: &fill, into: Bytes(8) };
            let got = launched(&elements, expected.len(), backend, |from, to, backend| {
                step.launch(from, to, backend).unwrap();
            });
            assert!(got == expected, "{data_type} {shape:?} {chunk:?} {steps}");
        }
    }
}

fn check_shuffles(backend: &mut dyn Backend) {
    for data_type in [DataType::U8, DataType::U16, DataType::I32, DataType::F64] {
        for shuffle in ["shuffle", "bitshuffle"] {
            // Smaller than a block, one of its size, larger ones, and one whose elements do not come in eights.
            for elements in [8, 33, 1_000, (256 << 10) / data_type.bytes(), (300 << 10) / data_type.bytes() + 3] {
                let codec = format!("blosc:lz4:5:{shuffle}").parse().unwrap();
                let codec = ChunkCodec::new(codec, data_type, elements * data_type.bytes());
                let Some((_, block)) = codec.shuffle() else { continue };
                let chunks = mixed(3 * codec.chunk_bytes());
                let mut expected = chunks.clone();
                let each = chunks.chunks(codec.chunk_bytes()).zip(expected.chunks_mut(codec.chunk_bytes()));
                for (from, to) in each {
                    for (from, to) in from.chunks(block).zip(to.chunks_mut(block)) {
                        if let Some(step) = codec.shuffle_step(from.len()) {
                            step.apply_to(from, to);
                        }
                    }
                }
                let step = ShuffleStep { codec, bytes: chunks.len() as u64, begin: Bytes(8) };
                let behind = [vec![7; 8], chunks].concat();
                let got = launched(&behind, expected.len(), backend, |from, to, backend| {
                    step.launch(from, to, backend).unwrap();
                });
                assert!(got == expected, "{data_type} {shuffle} {elements}");
            }
        }
    }
}

#[cfg(feature = "gpu")]
#[test]
fn kernels_cut_and_shuffle_on_a_vulkan_device_as_plain_copies_do() {
    let gpu = devices::lavapipe();
    let mut backend = gpu.open_backend().unwrap();
    check_cuts(&mut *backend);
    check_shuffles(&mut *backend);
}

#[test]
fn their_twins_do_so_too() {
    let mut backend = CpuDevice::open().open_backend().unwrap();
    check_cuts(&mut *backend);
    check_shuffles(&mut *backend);
}

fn specs() -> Vec<(ArraySpec, u64)> {
    let axes = |names: &[&str]| Some(names.iter().map(|name| name.parse().unwrap()).collect());
    let with = |codec: &str, spec: ArraySpec| ArraySpec { codec: codec.parse().unwrap(), ..spec };
    let filled = ArraySpec { fill: Fill::Integer(0x3f3e), ..cases::frames() };
    vec![
        (with("blosc:lz4:5:shuffle", cases::frames()), 11),
        (with("blosc:zstd:3:bitshuffle", filled), 9),
        (with("none", cases::frames()), 5),
        (with("blosc:lz4:3:shuffle", ArraySpec { axes: axes(&["z", "y", "x"]), ..cases::frames() }), 21),
        (ArraySpec { order: Some(vec![0, 2, 1]), ..with("blosc:lz4:5:bitshuffle", cases::frames()) }, 7),
        // Levels of floats by their mean stay on the CPU.
        (ArraySpec { data_type: DataType::F64, ..with("blosc:lz4:5:shuffle", cases::frames()) }, 6),
        (ArraySpec { levels: Levels::Count(1), ..with("gzip:1", cases::frames()) }, 6),
        (
            ArraySpec {
                levels: Levels::Count(3),
                reduction: Reduction::Median,
                shard: Some(vec![2, 2, 4, 8, 8]),
                ..with(
                    "blosc:lz4:1:bitshuffle",
                    ArraySpec::new(vec![6, 3, 5, 9, 10], DataType::U8, vec![1, 1, 4, 4, 8]),
                )
            },
            6,
        ),
    ]
}

fn options(stages: DeviceStages) -> ArrayOptions {
    let on = |is| if is { StageChoice::Gpu } else { StageChoice::Cpu };
    let DeviceStages { levels, scatter, shuffle } = stages;
    ArrayOptions { levels_on: on(levels), scatter_on: on(scatter), shuffle_on: on(shuffle), ..ArrayOptions::default() }
}

fn written(orchestrator: &Orchestrator, spec: &ArraySpec, bytes: &[u8], options: &ArrayOptions) -> Arc<Memory> {
    let store = Arc::new(Memory::default());
    let (layout, input) = (Layout::new(spec).unwrap(), Cursor::new(bytes.to_vec()));
    write_array(orchestrator, layout, store.clone(), input, options).unwrap();
    store
}

/// Every choice of stages, for every array, and the one that is made by what was measured.
fn check_choices(orchestrator: &Orchestrator) {
    let mut tried = 0;
    for (spec, steps) in specs() {
        let bytes = cases::elements(&spec, steps);
        let expected = written(&cases::orchestrator(2), &spec, &bytes, &options(DeviceStages::default()));
        let layout = Layout::new(&spec).unwrap();
        let is_own = spec.order.is_none();
        for stages in DeviceStages::possible(&layout, layout.levels()[0].grid.chunk[0]).choices() {
            let store = written(orchestrator, &spec, &bytes, &options(stages));
            assert!(*store.objects() == *expected.objects(), "{} {} with {stages}", spec.data_type, spec.codec);
            assert!(is_own || !stages.shuffle);
            tried += 1;
        }
        let chosen = written(orchestrator, &spec, &bytes, &ArrayOptions::default());
        assert!(*chosen.objects() == *expected.objects(), "{} {} as chosen", spec.data_type, spec.codec);
    }
    assert!(tried >= 30, "{tried} choices");
}

#[cfg(feature = "gpu")]
#[test]
fn whichever_stages_a_vulkan_device_does_the_store_has_the_same_bytes() {
    check_choices(&Orchestrator::builder().devices(devices::machine()).build());
}

fn with_virtual(gpu: VirtualDeviceBuilder) -> Arc<Orchestrator> {
    let cpu: Arc<dyn Device> = Arc::new(CpuDevice::builder().slots(2).build());
    let devices: [Arc<dyn Device>; 2] = [Arc::new(gpu.build()), cpu];
    Arc::new(Orchestrator::builder().devices(devices).build())
}

#[test]
fn whichever_stages_a_virtual_device_does_the_store_has_the_same_bytes() {
    check_choices(&with_virtual(VirtualDevice::gpu("v")));
}

/// Of several slabs, all stages on the device: lost at each launch of the first slabs, short of memory at each allocation.
#[test]
fn a_device_that_is_lost_or_runs_out_of_memory_in_any_stage_changes_no_byte() {
    let spec = ArraySpec {
        shard: Some(vec![4, 256, 256]),
        levels: Levels::Count(2),
        codec: "blosc:lz4:5:shuffle".parse().unwrap(),
        ..ArraySpec::new(vec![0, 512, 700], DataType::U16, vec![2, 128, 128])
    };
    let bytes = cases::elements(&spec, 13);
    let expected = written(&cases::orchestrator(2), &spec, &bytes, &options(DeviceStages::default()));
    let all = options(DeviceStages { levels: true, scatter: true, shuffle: true });
    let lost = (1..=12).map(|launch| ScriptedFault::Lost { launch });
    let full = (1..=8).map(|allocation| ScriptedFault::OutOfMemory { allocation });
    for fault in lost.chain(full) {
        let orchestrator = with_virtual(VirtualDevice::gpu("v").fault(fault));
        let store = written(&orchestrator, &spec, &bytes, &all);
        assert!(*store.objects() == *expected.objects(), "{fault:?}");
    }
}

#[test]
fn stages_that_cannot_run_there_are_errors_before_the_store_is_touched() {
    let with_gpu = with_virtual(VirtualDevice::gpu("v"));
    let refused = |orchestrator: &Orchestrator, spec: &ArraySpec, options: &ArrayOptions| {
        let store = Arc::new(Memory::default());
        let layout = Layout::new(spec).unwrap();
        let ended = write_array(orchestrator, layout, store.clone(), Cursor::new(Vec::new()), options);
        assert!(store.objects().is_empty());
        ended.unwrap_err()
    };
    let shuffle = ArrayOptions { shuffle_on: StageChoice::Gpu, ..ArrayOptions::default() };
    let scatter = ArrayOptions { scatter_on: StageChoice::Gpu, ..ArrayOptions::default() };
    let error = refused(&with_gpu, &cases::frames(), &shuffle);
    assert!(matches!(error, ArrayError::NotForGpu { stage: "shuffle", .. }), "zstd shuffles nothing: {error}");
    let tall = ArraySpec { shape: vec![0, 4_096, 4_096], chunk: vec![64, 128, 128], shard: None, ..cases::frames() };
    let error = refused(&with_gpu, &tall, &scatter);
    assert!(matches!(error, ArrayError::NotForGpu { stage: "scatter", .. }), "a slab is no row of chunks: {error}");
    let error = refused(&cases::orchestrator(1), &cases::frames(), &scatter);
    assert!(matches!(error, ArrayError::NoGpu { stage: "scatter" }), "{error}");
    let torn = ArrayOptions { scatter_on: StageChoice::Cpu, ..shuffle };
    let blosc = ArraySpec { codec: "blosc:lz4:5:shuffle".parse().unwrap(), ..cases::frames() };
    let error = refused(&with_gpu, &blosc, &torn);
    assert!(matches!(error, ArrayError::NotForGpu { stage: "shuffle", .. }), "{error}");
}

#[test]
fn arrays_that_share_a_device_give_their_slots_back_at_once() {
    let spec = ArraySpec { codec: "blosc:lz4:5:shuffle".parse().unwrap(), ..cases::frames() };
    let layout = Layout::new(&spec).unwrap();
    let all = options(DeviceStages { levels: true, scatter: true, shuffle: true });
    let orchestrator = with_virtual(VirtualDevice::gpu("v"));
    let alone = all.explain(&orchestrator, &layout).unwrap();
    assert!(alone.contains("levels, scatter, shuffle") && alone.contains("pipelined"), "{alone}");
    let shared = ArrayOptions { arrays_at_once: 3, ..all };
    let told = shared.explain(&orchestrator, &layout).unwrap();
    assert!(told.contains("drained right after it was kicked"), "{told}");
    let bytes = cases::elements(&spec, 23);
    let expected = written(&cases::orchestrator(2), &spec, &bytes, &options(DeviceStages::default()));
    let begin = || {
        let store = Arc::new(Memory::default());
        let writer = ArrayWriter::new(orchestrator.clone(), layout.clone(), store.clone(), shared.clone()).unwrap();
        (store, writer)
    };
    let mut arrays: Vec<_> = (0..3).map(|_| begin()).collect();
    for piece in bytes.chunks(5_000) {
        arrays.iter_mut().for_each(|(_, writer)| writer.append(piece).unwrap());
    }
    for (store, writer) in arrays {
        writer.close().unwrap();
        assert!(*store.objects() == *expected.objects());
    }
}

#[test]
fn the_choice_is_made_by_what_was_measured_and_says_so() {
    let spec = ArraySpec { codec: "blosc:lz4:5:shuffle".parse().unwrap(), ..cases::frames() };
    let layout = Layout::new(&spec).unwrap();
    let orchestrator = with_virtual(VirtualDevice::gpu("v"));
    let told = ArrayOptions::default().explain(&orchestrator, &layout).unwrap();
    // Nothing, levels, and each with scatter, and with shuffle.
    assert_eq!(told.lines().filter(|line| line.contains("(GPU ")).count(), 6, "{told}");
    let none = ArrayOptions::default().explain(&cases::orchestrator(1), &layout).unwrap();
    assert!(none.contains("there is no GPU") && none.contains("side by side"), "{none}");
}
