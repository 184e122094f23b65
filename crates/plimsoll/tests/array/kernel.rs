//! The kernel that makes a level, on lavapipe and as its twin: the bytes of the reference for every type, reduction and odd
//! shape. A machine without a Vulkan device fails here: install Mesa's software one (`mesa-vulkan-drivers`).

use plimsoll::array::levels::{Block, reference};
use plimsoll::array::{DataType, Reduction};
use plimsoll::{Backend, Bytes, Device};
use plimsoll_arrays::work::kernels::{ReduceStep, buffer_bytes, reduces_on_gpu};
use plimsoll_runtime::cpu::CpuDevice;

use crate::devices;

/// Shapes, and along which dimensions they are halved.
const CASES: [(&[usize], &[bool]); 10] = [
    (&[1], &[true]),
    (&[7], &[true]),
    (&[5, 3], &[true, true]),
    (&[5, 3], &[false, true]),
    (&[1, 9, 4], &[false, true, true]),
    (&[3, 5, 7], &[true, true, true]),
    (&[4, 4, 4], &[true, true, true]),
    (&[2, 3, 5, 7], &[false, true, true, true]),
    (&[2, 1, 3, 5, 9], &[false, false, true, true, true]),
    (&[3, 5, 2, 3, 4], &[true, false, true, false, true]),
];

/// Words among which are all kinds of NaN, zeros of both signs, infinities, and the ends of every integer type.
const ODD: [u32; 8] = [0, 0x8000_0000, 0x7f80_0000, 0xff80_0000, 0x7fc0_0001, 0xffff_ffff, 0x7fff_8000, 0x7c00_fc01];

fn elements(bytes: usize, seed: u64) -> Vec<u8> {
    let mut state = seed;
    let words = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let random = (state >> 32) as u32;
        if random.is_multiple_of(3) { ODD[(random >> 8) as usize % ODD.len()] } else { random.rotate_left(7) }
    });
    words.flat_map(u32::to_le_bytes).take(bytes).collect()
}

fn reduced(step: ReduceStep<'_>, elements: &[u8], backend: &mut dyn Backend) -> Vec<u8> {
    let bytes = step.reduced_shape().iter().product::<usize>() * step.data_type.bytes();
    let finer = backend.allocate(buffer_bytes(elements.len() as u64)).unwrap();
    let coarser = backend.allocate(buffer_bytes(bytes as u64)).unwrap();
    let mut words = elements.to_vec();
    words.resize(finer.bytes().0 as usize, 0);
    backend.write(&finer, Bytes::ZERO, &words).unwrap();
    step.launch(&finer, &coarser, backend).unwrap();
    let mut out = vec![0; coarser.bytes().0 as usize];
    backend.read(&coarser, Bytes::ZERO, &mut out).unwrap();
    assert!(out[bytes..].iter().all(|byte| *byte == 0), "the last word is filled up with zeros");
    out.truncate(bytes);
    out
}

fn check(step: ReduceStep<'_>, seed: u64, backend: &mut dyn Backend) {
    let elements = elements(step.shape.iter().product::<usize>() * step.data_type.bytes(), seed);
    let block = Block { elements: &elements, shape: step.shape, halved: step.halved };
    let mut expected = Vec::new();
    reference(step.data_type, step.reduction, block, &mut expected);
    assert!(reduced(step, &elements, backend) == expected, "{step:?}, seed {seed}");
}

fn check_all(backend: &mut dyn Backend) {
    let mut kinds = 0;
    for data_type in DataType::ALL {
        for reduction in Reduction::ALL.into_iter().filter(|reduction| reduces_on_gpu(data_type, *reduction)) {
            kinds += 1;
            for (shape, halved) in CASES {
                for seed in 0..3 {
                    check(ReduceStep { data_type, reduction, shape, halved }, seed, backend);
                }
            }
        }
    }
    assert_eq!(kinds, 6 * 5 + 2 * 4, "every type of up to 32 bits, but no mean of floats");
}

#[test]
fn every_type_and_reduction_gives_the_bytes_of_the_reference_on_a_vulkan_device() {
    let gpu = devices::lavapipe();
    check_all(&mut *gpu.open_backend().unwrap());
}

#[test]
fn the_twin_gives_the_bytes_of_the_reference() {
    check_all(&mut *CpuDevice::open().open_backend().unwrap());
}

#[test]
fn means_of_the_ends_of_a_type_do_not_wrap() {
    let gpu = devices::lavapipe();
    let mut backend = gpu.open_backend().unwrap();
    for data_type in [DataType::U32, DataType::I32, DataType::U16, DataType::I16, DataType::U8, DataType::I8] {
        let step = ReduceStep { data_type, reduction: Reduction::Mean, shape: &[2, 2, 2], halved: &[true; 3] };
        let width = data_type.bytes();
        for end in [[0xff; 4], [0xff, 0xff, 0xff, 0x7f], [0, 0, 0, 0x80]] {
            let element = &end[4 - width..];
            let elements = element.repeat(8);
            assert_eq!(reduced(step, &elements, &mut *backend), element, "{data_type}");
        }
    }
}

#[test]
fn a_level_larger_than_one_row_of_workgroups() {
    let gpu = devices::lavapipe();
    let step = ReduceStep {
        data_type: DataType::U16,
        reduction: Reduction::Max,
        shape: &[4_300, 2_000],
        halved: &[false, true],
    };
    check(step, 1, &mut *gpu.open_backend().unwrap());
}

#[test]
fn what_the_kernel_cannot_do_is_refused() {
    let device = CpuDevice::open();
    let mut backend = device.open_backend().unwrap();
    let [finer, coarser] = [(); 2].map(|()| backend.allocate(Bytes(64)).unwrap());
    let refused = |data_type, reduction, shape: &[usize], backend: &mut dyn Backend| {
        let step = ReduceStep { data_type, reduction, shape, halved: &vec![true; shape.len()] };
        step.launch(&finer, &coarser, backend).is_err()
    };
    assert!(refused(DataType::F32, Reduction::Mean, &[2], &mut *backend));
    assert!(refused(DataType::U64, Reduction::Max, &[2], &mut *backend));
    assert!(refused(DataType::U8, Reduction::Max, &[2; 4], &mut *backend), "windows of sixteen");
    assert!(refused(DataType::U8, Reduction::Max, &[1; 6], &mut *backend), "six dimensions");
}
