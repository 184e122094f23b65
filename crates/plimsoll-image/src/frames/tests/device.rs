//! Buffers are given to other planes only when nobody reads them any more, and what was never computed is never taken
//! for an answer.

use std::sync::Arc;

use plimsoll_core::{Bytes, Fault};
use plimsoll_runtime::cpu::CpuBackend;
use plimsoll_runtime::{Backend, Buffer, Cancellation, Device, read_floats};

use super::programs::{Dice, format_of_sources, frame, idle, program};
use super::reference;
use crate::frames::device::DeviceWork;
use crate::frames::format::{Colour, Format, Matrix, Range, Sampling, Siting, Yuv};
use crate::frames::plan::Program;
use crate::image::Size;
use crate::run::Run;

fn cpu() -> CpuBackend {
    CpuBackend::new(Arc::default(), Bytes::MAX)
}

#[test]
fn buffers_are_used_again_only_when_nobody_reads_them() {
    let (mut shared, mut separate) = (0, 0);
    for seed in 0..1000 {
        let mut dice = Dice::new(seed);
        let program = program(&mut dice);
        let from = program.from.unwrap_or_else(|| format_of_sources(&program));
        let gauge = Arc::default();
        let mut backend = CpuBackend::new(Arc::clone(&gauge), Bytes::MAX);
        let mut run = Run { backend: &mut backend, cancellation: Cancellation::never() };
        let work = DeviceWork::open(&mut run, &program).unwrap();
        shared += gauge.now().0;
        let frames = program.from.into_iter().chain(program.to);
        separate += frames.map(|format| format.frame_bytes() as u64).sum::<u64>();
        let nodes = program.graph.nodes().iter();
        separate += nodes.map(|node| node.size().pixels() * 4 * node.outputs() as u64).sum::<u64>();
        for _ in 0..2 {
            let input = frame(&mut dice, from);
            one_run(&mut run, &work, &program, &input, seed);
        }
    }
    assert!(shared * 10 < separate * 9, "{shared} bytes of buffers, {separate} of planes: nothing was used again");
}

fn one_run(run: &mut Run<'_>, work: &DeviceWork, program: &Program, input: &[u8], seed: u64) {
    let from = program.from.unwrap_or_else(|| format_of_sources(program));
    let sources = reference::planes_of(from, input);
    let wanted = reference::results(program, sources.clone());
    let given: Vec<Buffer> = sources.iter().map(|plane| uploaded(run, plane)).collect();
    match program.to {
        Some(to) => {
            let got = work.frame(run, program, Some(input), &given.iter().collect::<Vec<_>>()).unwrap();
            assert!(got == reference::frame_of(to, &wanted), "seed {seed}");
        }
        None => {
            let got = work.planes(run, program, Some(input)).unwrap();
            assert_eq!(got.len(), wanted.len());
            for (got, wanted) in got.iter().zip(wanted) {
                assert!(read_floats(run.backend, got, wanted.len()).unwrap() == wanted, "seed {seed}");
            }
        }
    }
}

fn uploaded(run: &mut Run<'_>, plane: &[f32]) -> Buffer {
    let buffer = run.allocate(plane.len() as u64).unwrap();
    run.backend.write(&buffer, Bytes::ZERO, bytemuck::cast_slice(plane)).unwrap();
    buffer
}

fn every_layout() -> Vec<Format> {
    let yuv = Yuv { matrix: Matrix::Bt709, range: Range::Full, sampling: Sampling::S420, siting: Siting::Left };
    let colours = [Colour::Yuv(yuv), Colour::Rgb, Colour::Mono(Range::Full)];
    let size = Size { width: 37, height: 19 };
    colours.into_iter().flat_map(|colour| [8, 12].map(|depth| Format::new(size, depth, colour).unwrap())).collect()
}

fn a_pass_that_computes_nothing(backend: &mut dyn Backend) {
    for format in every_layout() {
        let program = idle(format);
        let mut run = Run { backend: &mut *backend, cancellation: Cancellation::never() };
        let work = DeviceWork::open(&mut run, &program).unwrap();
        let input = frame(&mut Dice::new(5), format);
        for _ in 0..2 {
            let got = work.frame(&mut run, &program, Some(&input), &[]);
            assert!(matches!(got, Err(Fault::WrongAnswer { .. })), "{format}: {:?}", got.map(|bytes| bytes.len()));
        }
    }
}

#[test]
fn what_a_twin_never_computed_is_a_wrong_answer() {
    a_pass_that_computes_nothing(&mut cpu());
}

#[test]
fn what_a_gpu_never_computed_is_a_wrong_answer() {
    let found = plimsoll_wgpu::discover();
    let card = found.first().expect("a Vulkan device; Debian has a software one in mesa-vulkan-drivers");
    let gpu = card.open(&plimsoll_wgpu::OpenOptions::default()).expect("the device opens").remove(0);
    a_pass_that_computes_nothing(&mut *gpu.open_backend().unwrap());
}
