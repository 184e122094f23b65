//! Frames of every depth and layout come back from a device as they went in.

use std::sync::Arc;

use plimsoll_core::Bytes;
use plimsoll_runtime::cpu::CpuBackend;
use plimsoll_runtime::{Backend, Buffer, Cancellation, Device};

use super::programs::{Dice, frame};
use super::reference;
use crate::frames::format::{Colour, Format, Matrix, Range, Sampling, Siting, Yuv};
use crate::frames::packed::Packed;
use crate::image::Size;
use crate::run::Run;

fn formats() -> Vec<Format> {
    let yuv =
        |sampling| Colour::Yuv(Yuv { matrix: Matrix::Bt601, range: Range::Full, sampling, siting: Siting::Centre });
    let samplings = [Sampling::S420, Sampling::S422, Sampling::S444].map(yuv);
    let colours = samplings.into_iter().chain([Colour::Rgb, Colour::Mono(Range::Full)]);
    let sizes = [(1, 1), (2, 1), (1, 3), (3, 5), (7, 7), (35, 18), (1031, 3)];
    let all = colours.flat_map(|colour| {
        (8..=16).flat_map(move |depth| {
            sizes.map(|(width, height)| Format::new(Size { width, height }, depth, colour).unwrap())
        })
    });
    all.collect()
}

fn there_and_back(backend: &mut dyn Backend) {
    for format in formats() {
        let bytes = frame(&mut Dice::new(format.size().pixels()), format);
        let mut run = Run { backend: &mut *backend, cancellation: Cancellation::never() };
        let from = Packed::open(&mut run, format).unwrap();
        let to = Packed::open(&mut run, format).unwrap();
        from.upload(&mut run, Some(&bytes)).unwrap();
        let sizes = format.plane_sizes();
        let planes: Vec<Buffer> = sizes.iter().map(|size| run.allocate(size.pixels()).unwrap()).collect();
        for (at, plane) in planes.iter().enumerate() {
            from.unpack(&mut run, at, plane).unwrap();
        }
        for (plane, wanted) in planes.iter().zip(reference::planes_of(format, &bytes)) {
            let got = plimsoll_runtime::read_floats(run.backend, plane, wanted.len()).unwrap();
            assert!(got == wanted, "{format}: unpacked");
        }
        to.pack(&mut run, &planes.iter().collect::<Vec<_>>()).unwrap();
        assert!(to.download(&mut run).unwrap() == bytes, "{format}: packed");
    }
}

#[test]
fn every_layout_comes_back_from_the_twins() {
    there_and_back(&mut CpuBackend::new(Arc::default(), Bytes::MAX));
}

#[test]
fn every_layout_comes_back_from_a_gpu() {
    let found = plimsoll_wgpu::discover();
    let card = found.first().expect("a Vulkan device; Debian has a software one in mesa-vulkan-drivers");
    let gpu = card.open(&plimsoll_wgpu::OpenOptions::default()).expect("the device opens").remove(0);
    there_and_back(&mut *gpu.open_backend().unwrap());
}

/// A picture may be grey in three planes that are one.
#[test]
fn one_plane_may_stand_for_three() {
    let format = Format::new(Size { width: 5, height: 3 }, 8, Colour::Rgb).unwrap();
    let mut backend = CpuBackend::new(Arc::default(), Bytes::MAX);
    let mut run = Run { backend: &mut backend, cancellation: Cancellation::never() };
    let packed = Packed::open(&mut run, format).unwrap();
    let plane = run.allocate(15).unwrap();
    run.backend.write(&plane, Bytes::ZERO, bytemuck::cast_slice(&[0.2_f32; 15])).unwrap();
    packed.pack(&mut run, &[&plane, &plane, &plane]).unwrap();
    assert_eq!(packed.download(&mut run).unwrap(), [51; 45]);
}
